"""A run as Markdown, for a pull request or a step summary: verdict, gates, what failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import BinaryIO

from callmark.records.report import GateOutcome, Metric, MetricBlock, Report, Status, Verdict
from callmark.reports.finished_run import FailedTrial, FailedTrials, FinishedRun, failed_trials
from callmark.reports.layout import one_line, round_text
from callmark.reports.terminal import (
    STATUS_STYLE,
    absent_gates,
    counts_text,
    interval,
    policy_text,
    verdict_text,
)
from callmark.summary.gates import wanted_text
from callmark.summary.metrics import in_words, label_of, sentence_of

# A comment may have 65,536 characters, a step summary 1 MiB.
LIMIT = 60_000
LONGEST_CODE = 300
LONGEST_TEXT = 2000
_LINKED = re.compile(r"[@#]|:/|www\.|\bGH-\d|(?<![\w.])[0-9a-f]{7,40}\b", re.IGNORECASE)
_MARKUP = re.compile(r"([\\`*_\[\]<>|~!$&])")
_LEFT_OUT = "_{} parts are left out: a comment may not be longer. The report has them all._"


def as_code(text: str, limit: int = LONGEST_CODE) -> str:
    """In a code span nothing means anything, except what ends it, or ends the cell of a table."""
    shown = one_line(text, limit).replace("`", "'").replace("|", "¦")
    return f"`{shown}`" if shown.strip() else "`(empty)`"


def as_text(text: str, limit: int = LONGEST_TEXT) -> str:
    """Prose with names in it: no markup, no HTML, no mention of a person, no link."""
    words = re.split(r"( +)", one_line(text, limit))
    return "".join(
        as_code(word) if _LINKED.search(word) else _MARKUP.sub(r"\\\1", word) for word in words
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The cells are Markdown already. Nothing without a row."""
    if not rows:
        return []
    return [
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]


def fold_lines(title: str, lines: Iterable[str]) -> list[str]:
    """Nothing without a line. A summary is HTML, not Markdown: there other things are escaped."""
    inner = list(lines)
    if not inner:
        return []
    return [
        f"<details><summary>{_html(title)}</summary>",
        "",
        *inner,
        *([""] if inner[-1] else []),
        "</details>",
        "",
    ]


def fit_sections(sections: Iterable[Sequence[str]], limit: int = LIMIT) -> str:
    """One text, shorter than the limit: a section that has no room is left out as a whole."""
    kept: list[str] = []
    left_out, room = 0, limit - 2 * len(_LEFT_OUT)
    for section in sections:
        text = "".join(f"{line}\n" for line in section)
        if len(text) > room:
            left_out += 1
            continue
        room -= len(text)
        kept.append(text)
    if left_out:
        kept.append(_LEFT_OUT.format(left_out) + "\n")
    return "".join(kept)


def _html(title: str) -> str:
    return "".join(_html_words(one_line(title, LONGEST_TEXT)))


def _html_words(title: str) -> Iterator[str]:
    for word in re.split(r"( +)", title):
        safe = escape(word)
        yield f"<code>{safe}</code>" if _LINKED.search(word) else safe


SHOWN_TRIALS = 30
SHOWN_FLAGS = 3  # of one trial
SHOWN_GROUPS = 40
_VERDICTS: dict[Verdict, str] = {
    "pass": "✅ Passed",
    "fail": "❌ Failed",
    "inconclusive": "⚠️ Inconclusive",
    "incomplete": "⚠️ Incomplete",
    "empty": "⚠️ Empty",
}
_STATUSES: dict[Status, str] = {
    "fail": "❌ fail",
    "inconclusive": "❔ INCONCLUSIVE",
    "warn": "⚠️ warn",
    "pass": "✅ pass",
    "n/a": "n/a",
}
_GROUP_COLUMNS = ("samples", "F1 lax", "F1 strict", "call F1")


def write_markdown(finished: FinishedRun, stream: BinaryIO) -> None:
    stream.write(report_markdown(finished).encode())


def report_markdown(finished: FinishedRun) -> str:
    return fit_sections(_sections(finished))


def _sections(finished: FinishedRun) -> Iterator[Sequence[str]]:
    report = finished.report
    reason = as_text(verdict_text(report).removeprefix("failed: "))
    yield [f"### {_VERDICTS[report.verdict]}: {reason}", ""]
    yield [*(f"- {as_text(fact)}" for fact in counts_text(report)), ""]
    for warning in report.warnings:
        yield [f"- **warning:** {as_text(warning)}", ""]
    yield from _gates(finished)
    yield _trials(failed_trials(finished))
    yield fold_lines("By tool", _tools(report))
    for title, groups in (("locale", report.locales), ("slice", report.slices)):
        yield fold_lines(f"By {title}", _groups(title, groups))
    yield fold_lines("Fingerprints", _fingerprints(report))


def _gates(finished: FinishedRun) -> Iterator[Sequence[str]]:
    """What is not all right stands open, what passed is folded."""
    order = list(STATUS_STYLE)
    gates = sorted(finished.gates, key=lambda gate: order.index(gate.status))
    metrics = finished.report.metrics
    loud = [gate for gate in gates if gate.status in ("fail", "inconclusive", "warn")]
    passed = [gate for gate in gates if gate.status == "pass"]
    yield _gate_table(loud, metrics)
    yield [_explained(gate) for gate in loud] + ([""] if loud else [])
    yield fold_lines(f"What passed ({len(passed)})", _gate_table(passed, metrics))
    for why, absent in absent_gates(gates):
        yield [f"n/a, {as_text(why)}: {', '.join(map(_named, absent))}", ""]


def _named(name: str) -> str:
    """The label, and the key beside it for whoever sets a bound."""
    label = label_of(name)
    return as_code(name) if label == name else f"{as_text(label)} ({as_code(name)})"


def _explained(gate: GateOutcome) -> str:
    reason = "" if gate.reason is None else f" {as_text(in_words(gate.reason))}."
    policy = as_text(policy_text(gate))
    return f"- **{as_text(label_of(gate.name))}**: {sentence_of(gate.name)} It {policy}.{reason}"


def _gate_table(gates: Sequence[GateOutcome], metrics: dict[str, Metric]) -> list[str]:
    columns = ("", "gate", "value", "wanted", "n", "95 % interval", "policy")
    return table(columns, [_gate_row(gate, metrics.get(gate.name)) for gate in gates])


def _gate_row(gate: GateOutcome, metric: Metric | None) -> tuple[str, ...]:
    low = " (low end)" if gate.compared == "ci_95_low" else ""
    loosened = " **LOOSENED**" if gate.loosened else ""
    return (
        _STATUSES[gate.status],
        _named(gate.name),
        round_text(gate.value, gate.bound),
        wanted_text(gate.op, gate.bound) + low + loosened,
        str(gate.n),
        interval(metric),
        as_text(policy_text(gate)),
    )


def _trials(failed: FailedTrials) -> list[str]:
    first = failed.first[:SHOWN_TRIALS]
    shown = [text for one in first for text in _trial_lines(one)]
    if failed.count > len(first):
        shown.append(f"- and {failed.count - len(first)} more")
    return fold_lines(f"{failed.count} trials to look at", shown)


def _trial_lines(failed: FailedTrial) -> Iterator[str]:
    trial = f" trial {failed.trial}" if failed.trial else ""
    yield f"- {as_code(failed.sample_id, 80)}{trial}: {as_code('; '.join(failed.reasons))}"
    for flag in failed.flags[:SHOWN_FLAGS]:
        yield f"  - {as_code(flag)}"
    if len(failed.flags) > SHOWN_FLAGS:
        yield f"  - and {len(failed.flags) - SHOWN_FLAGS} more"


def _tools(report: Report) -> list[str]:
    rows = [
        (as_code(tool), round_text(delta.lax), round_text(delta.strict), str(delta.sample_count))
        for tool, delta in list(report.per_tool_deltas.items())[:SHOWN_GROUPS]
    ]
    return table(("tool", "F1 lax", "F1 strict", "n"), rows)


def _groups(title: str, groups: dict[str, MetricBlock]) -> list[str]:
    names = ("integration_f1_macro_lax", "integration_f1_macro_strict", "call_f1_macro")
    rows = [
        (as_code(name), str(block.n), *(_value(block.metrics.get(metric)) for metric in names))
        for name, block in list(groups.items())[:SHOWN_GROUPS]
    ]
    return table((title, *_GROUP_COLUMNS), rows)


def _value(metric: Metric | None) -> str:
    return round_text(None if metric is None else metric.value)


def _fingerprints(report: Report) -> list[str]:
    header = report.header
    named = {
        "model": header.model,
        "runner": header.runner,
        "model_fingerprint": header.model_fingerprint,
        "runner_fingerprint": header.runner_fingerprint,
        "dataset_sha256": header.dataset_sha256,
        "fixtures_sha256": header.fixtures_sha256,
        "tool_registry_sha256": header.tool_registry_sha256,
        "scorer_version": header.scorer_version,
    }
    return [f"- {name}: {as_code(value)}" for name, value in named.items() if value is not None]
