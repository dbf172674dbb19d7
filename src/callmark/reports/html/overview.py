"""A report as the top of the page: verdict, gates, plots, fingerprints. Numbers get rounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from callmark._version import __version__
from callmark.records.jsontext import Json
from callmark.records.report import GateOutcome, Metric, MetricBlock, Misses, Report
from callmark.records.statements import RULES as STATEMENT_RULES
from callmark.records.statements import Tier
from callmark.reports.layout import Style, one_line, round_text
from callmark.reports.terminal import (
    STATUS_STYLE,
    VERDICT_STYLE,
    counts_text,
    interval,
    policy_text,
    verdict_line,
)
from callmark.summary.gates import wanted_text
from callmark.summary.metrics import in_words, label_of, sentence_of
from callmark.summary.wording import LABELS, METRICS, POLICIES, RULES, TIERS, Wording

LAX, STRICT = "integration_f1_macro_lax", "integration_f1_macro_strict"
MADE_BY = f"callmark {__version__}"
_BINS = ("0", *(f"< {at / 10:g}" for at in range(1, 11)), "1")
_NO_GATE = "n/a"
_GATE_COLUMNS = ("status", "gate", "value", "wanted", "n", "falling short", "when it fails")
_GATE_NUMBERS = (2, 4, 5)
MOST_KINDS, LONGEST_KIND = 4, 80  # of failures of one trial


class Distribution(msgspec.Struct, frozen=True):
    """Shares of the eligible trials by F1, and of the pairs that make up chance."""

    own: tuple[float, ...]
    chance: tuple[float, ...] | None


def run_head(
    report: Report, name: str, distribution: Distribution, counts: tuple[int, int, int]
) -> PageHead:
    """`counts`: trials, rows in the index, samples in full."""
    return PageHead(
        kind="run",
        title=one_line(name, 200),
        made_by=MADE_BY,
        word=report.verdict,
        style=VERDICT_STYLE[report.verdict],
        reason=verdict_line(report).cells[1].text.strip(),
        facts=tuple(_facts(report)),
        warnings=tuple(one_line(warning, 2000) for warning in report.warnings),
        tables=tuple(_tables(report)),
        plots=tuple(plot for plot in _plots(report, distribution) if plot.bars),
        pins=tuple(_pins(report)),
        left_out=left_out(*counts),
        timing=_timing(report),
    )


def left_out(trials: int, rows: int, full: int) -> str:
    """What a page of bounded size does not hold; nothing if it holds everything."""
    if not trials:
        return "No trials: the run is not complete, or its results are not in a file."
    if full == trials:
        return ""
    listed = "all are listed" if rows == trials else f"{rows} of them are listed"
    return (
        f"{trials} trials, {listed}, and {full} are here in full: failing ones first, then a "
        f"seeded choice. `callmark view` has the rest."
    )


def _facts(report: Report) -> Iterator[str]:
    yield from counts_text(report)
    if report.header.model is not None:
        yield f"model {one_line(report.header.model, 200)}, runner {report.header.runner}"


def _tables(report: Report) -> Iterator[PageTable]:
    yield from _gates(report)
    yield _statements(report)
    gated = {outcome.name for outcome in report.gates}
    yield PageTable(
        id="metrics",
        title="Metrics without a gate",
        columns=("metric", "value", "n", "95 % interval"),
        rows=tuple(
            _metric_row(name, metric)
            for name, metric in report.metrics.items()
            if name not in gated
        ),
        right=(1, 2),
        folded=True,
    )
    if report.errors.count:
        yield PageTable(
            id="errors",
            title=f"Trials that were not scored ({report.errors.count})",
            columns=("sample", "trial", "error"),
            rows=tuple(
                (
                    PageCell(one_line(lost.sample_id, 200)),
                    PageCell(str(lost.trial)),
                    PageCell(one_line(lost.error or "", 500), "bad"),
                )
                for lost in report.errors.first
            ),
            folded=True,
        )


def _gates(report: Report) -> Iterator[PageTable]:
    """What did not pass; what did is folded behind it."""
    outcomes = [outcome for outcome in report.gates if outcome.status != _NO_GATE]
    order = list(STATUS_STYLE)
    outcomes.sort(key=lambda outcome: order.index(outcome.status))
    open_ = tuple(_gate_row(report, one) for one in outcomes if one.status != "pass")
    passed = tuple(_gate_row(report, one) for one in outcomes if one.status == "pass")
    yield PageTable(
        id="gates",
        title="Gates that did not pass",
        columns=_GATE_COLUMNS,
        rows=open_,
        right=_GATE_NUMBERS,
    )
    yield PageTable(
        id="gates-passed",
        title=f"Gates that passed ({len(passed)})",
        columns=_GATE_COLUMNS,
        rows=passed,
        right=_GATE_NUMBERS,
        folded=bool(open_),
    )
    absent = [one for one in report.gates if one.status == _NO_GATE]
    yield PageTable(
        id="gates-absent",
        title=f"Gates that do not apply ({len(absent)})",
        columns=("gate", "why"),
        rows=tuple((metric_cell(one.name), PageCell(in_words(one.reason or ""))) for one in absent),
        folded=True,
    )


def _statements(report: Report) -> PageTable:
    """Each label that an answer got, and below it the rules that raised it; each is a filter."""
    counts = report.statements
    raised = {**counts.advisory, **counts.firm}
    rows = []
    for label, words in LABELS.items():
        if not counts.labels.get(label):
            continue
        cell = PageCell(words.label, "strong", Pick("label", label), words.sentence)
        rows.append((cell, PageCell(str(counts.labels[label])), PageCell("")))
        for rule in STATEMENT_RULES.values():
            if rule.label == label and raised.get(rule.name):
                told = RULES[rule.name]
                tier: Tier = "firm" if counts.firm.get(rule.name) else "advisory"
                name, pick = f"by rule: {told.label}", Pick("rule", rule.name)
                rows.append((
                    PageCell(name, "plain", pick, told.sentence),
                    PageCell(str(raised[rule.name])),
                    PageCell(tier, "bad" if tier == "firm" else "warn", title=TIERS[tier].sentence),
                ))  # fmt: skip
    return PageTable(
        id="statements",
        title="What the answers state",
        columns=("statement", "count", "tier"),
        rows=tuple(rows),
        right=(1,),
        note="A firm flag counts against the answer; an advisory one is only shown.",
    )


def _gate_row(report: Report, outcome: GateOutcome) -> tuple[PageCell, ...]:
    open_ = outcome.status in ("inconclusive", "fail")
    short = report.failing.get(outcome.name)
    pick = Pick("warns" if outcome.policy == "warning_only" else "fails", outcome.name)
    low = " (low end)" if outcome.compared == "ci_95_low" else ""
    needed = "" if outcome.needed_n is None else f" ({outcome.needed_n} samples would decide)"
    reason = "" if outcome.status == "pass" or not outcome.reason else outcome.reason + needed
    source = "" if outcome.source == "default" else f"from {outcome.source}"
    loose = "LOOSENED" if outcome.loosened else ""
    known = report.metrics.get(outcome.name)
    spread = interval(known)
    return (
        PageCell(outcome.status.upper() if open_ else outcome.status, STATUS_STYLE[outcome.status]),
        metric_cell(outcome.name, "strong"),
        PageCell(round_text(outcome.value, outcome.bound), note=spread),
        PageCell(wanted_text(outcome.op, outcome.bound) + low),
        PageCell(str(outcome.n)),
        PageCell(str(short.count), "plain", pick) if short else PageCell(""),
        PageCell(
            policy_text(outcome),
            "warn" if outcome.loosened else "plain",
            note=". ".join(filter(None, (in_words(reason), loose, source))),
            title=f"{outcome.policy}: {POLICIES[outcome.policy].label}",
        ),
    )


def _metric_row(name: str, metric: Metric) -> tuple[PageCell, ...]:
    value = round_text(metric.value) if metric.value is not None else metric.reason or "-"
    return (
        metric_cell(name),
        PageCell(value),
        PageCell(str(metric.n)),
        PageCell(interval(metric), "quiet"),
    )


def _plots(report: Report, distribution: Distribution) -> Iterator[Plot]:
    yield _f1_plot(report, distribution)
    yield Plot(
        id="tools",
        title="Lax against strict, by tool",
        note="Mean F1 of the eligible samples that expect the tool. Lax: any leaf of a result "
        "grounds; strict: only a keyed one.",
        label="tool",
        series=("F1 lax", "F1 strict"),
        bars=tuple(
            Bar(f"{one_line(tool, 60)} ({one.sample_count})", (one.lax, one.strict),
                Pick("tool", tool))
            for tool, one in report.per_tool_deltas.items()
        ),
        top=1.0,
    )  # fmt: skip
    yield _block_plot("locales", "By locale", "locale", report.locales)
    yield _block_plot("slices", "By slice", "slice", report.slices)
    yield Plot(
        id="spans",
        title="Spans per answer",
        note="Samples by the number of integration spans in the answer, before the cap.",
        label="spans",
        series=("samples",),
        bars=tuple(
            Bar(spans, (float(n),)) for spans, n in report.integration_span_count_histogram.items()
        ),
        upright=True,
    )
    yield _missed_plot(report.misses)


def _f1_plot(report: Report, distribution: Distribution) -> Plot:
    own, chance = distribution.own, distribution.chance
    mean, level = report.metrics.get(LAX), report.metrics.get("chance_f1")
    means = [
        f"{name}: mean {round_text(metric.value)}"
        + (f", 95 % interval {interval(metric)}" if metric.ci_95 else "")
        for name, metric in (("answers", mean), ("chance", level))
        if metric is not None and metric.value is not None
    ]
    bars = (
        Bar(label, (own[at],) if chance is None else (own[at], chance[at]))
        for at, label in enumerate(_BINS)
    )
    return Plot(
        id="f1",
        title="F1 beside chance",
        note="Share of the eligible trials by lax F1. Chance: the same answers, scored against the "
        "results of another sample that used the same tools.",
        label="F1",
        series=("answers",) if chance is None else ("answers", "chance"),
        bars=tuple(bars) if any(own) else (),
        top=1.0,
        upright=True,
        marks=tuple(means),
    )


def _missed_plot(misses: Misses) -> Plot:
    wrong = misses.wrong_calls
    return Plot(
        id="misses",
        title="Calls without a fixture, by tool",
        note="Well-formed calls that nothing was recorded for. They ground nothing; wrong calls "
        "are the model's own: every call that was expected has a fixture.",
        label="tool",
        series=("misses", "wrong calls"),
        bars=tuple(
            Bar(
                one_line(tool, 60),
                (float(misses.by_tool.get(tool, 0)), float(wrong.get(tool, 0))),
                Pick(
                    "status", "call without a fixture" if tool in misses.by_tool else "wrong call"
                ),
            )
            for tool in sorted(misses.by_tool.keys() | wrong.keys())
        ),
    )


def _block_plot(name: str, title: str, facet: str, blocks: Mapping[str, MetricBlock]) -> Plot:
    return Plot(
        id=name,
        title=title,
        note="Mean F1, lax and strict, of the eligible samples.",
        label=facet,
        series=("F1 lax", "F1 strict"),
        bars=tuple(
            Bar(
                f"{one_line(group, 60)} ({block.num_eligible})",
                (_value(block, LAX), _value(block, STRICT)),
                Pick(facet, group),
            )
            for group, block in blocks.items()
        ),
        top=1.0,
    )


def _value(block: MetricBlock, name: str) -> float | None:
    metric = block.metrics.get(name)
    return None if metric is None or metric.value is None else float(metric.value)


def _timing(report: Report) -> PageTiming:
    """The budget is said with the time that it is about, and nowhere else."""
    budget = report.timing.perf_budget
    status = "" if budget is None else f": budget {budget.status}"
    rows = [(PageCell(name), PageCell(text)) for name, text in _time_facts(report)]
    if budget is not None:
        wanted = wanted_text(budget.op, budget.bound)
        told = f"{budget.status}: {round_text(budget.value, budget.bound)}, wanted {wanted}"
        rows.insert(0, (metric_cell(budget.name), PageCell(told, STATUS_STYLE[budget.status])))
    table = PageTable(
        id="timing",
        title=f"Timing{status}",
        columns=("what", "value"),
        rows=tuple(rows),
        right=(1,),
        note="Two equal runs differ only here.",
        folded=True,
    )
    return PageTiming(tables=(table,) if rows else (), plots=())


def _time_facts(report: Report) -> Iterator[tuple[str, str]]:
    timing = report.timing
    for name in ("wall_time_sec", "scoring_sec", "sec_per_100"):
        value = getattr(timing, name)
        if value is not None:
            yield name, round_text(value)
    yield from _flat("", timing.more)


def _flat(above: str, value: Json) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from _flat(f"{above} {name}".strip(), entry)
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        yield (
            one_line(above, 100),
            one_line(value, 200) if isinstance(value, str) else round_text(value),
        )


def _pins(report: Report) -> Iterator[tuple[str, str]]:
    header = msgspec.to_builtins(report.header)
    for name, value in header.items():
        if name == "gates" or value is None:
            continue
        if isinstance(value, dict):
            shown = ", ".join(f"{key} {entry}" for key, entry in value.items() if entry is not None)
        else:
            shown = str(value)
        yield name, one_line(shown, 300)


PageKind = Literal["run", "compare", "runs", "probe"]


class Pick(msgspec.Struct, frozen=True):
    """A filter of the sample browser: the samples that have `value` in `facet`."""

    facet: str
    value: str


class PageCell(msgspec.Struct, frozen=True, omit_defaults=True):
    """`note` is read below the text, `title` on it."""

    text: str
    style: Style = "plain"
    pick: Pick | None = None
    note: str = ""
    title: str = ""


def metric_cell(name: str, style: Style = "plain") -> PageCell:
    """The label of a gate or metric, its sentence below and its key on it."""
    label = label_of(name)
    title = "" if label == name else name
    return PageCell(one_line(label, 200), style, note=sentence_of(name), title=title)


def _page_words() -> dict[str, dict[str, tuple[str, str]]]:
    """What the scripts call things, so that a page says what every other form says."""
    tables: dict[str, Mapping[str, Wording]] = {
        "metrics": METRICS,
        "labels": {str(label): words for label, words in LABELS.items()},
        "rules": RULES,
        "tiers": {str(tier): words for tier, words in TIERS.items()},
    }
    return {
        table: {key: (words.label, words.sentence) for key, words in entries.items()}
        for table, entries in tables.items()
    }


class PageTable(msgspec.Struct, frozen=True, kw_only=True):
    """`right`: the columns that hold numbers. `folded`: shown only on demand."""

    id: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[PageCell, ...], ...]
    right: tuple[int, ...] = ()
    note: str = ""
    folded: bool = False


class Bar(msgspec.Struct, frozen=True):
    """One group of bars; None: no data. `pick` leads to the samples behind it. `spread`: the
    interval around the first value, and `style` how it was judged, where a plot is of points."""

    label: str
    values: tuple[float | None, ...]
    pick: Pick | None = None
    spread: tuple[float, float] | None = None
    style: Style = "plain"


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """A bar chart, which is a table as well. `top` is the end of its axis; None: the largest.
    `curve`: points in an order, joined, instead of bars; `points`: one below the other, each with
    its interval; `level`: a line across them."""

    id: str
    title: str
    note: str
    label: str
    series: tuple[str, ...]
    bars: tuple[Bar, ...]
    top: float | None = None
    upright: bool = False
    curve: bool = False
    points: bool = False
    level: float | None = None
    marks: tuple[str, ...] = ()  # lines of text below the drawing


class PageTiming(msgspec.Struct, frozen=True, kw_only=True):
    """What a clock measured: in a file it is a block of its own, `<script … id="timing">`, and the
    pages of two equal runs differ nowhere else."""

    tables: tuple[PageTable, ...]
    plots: tuple[Plot, ...]


class PageHead(msgspec.Struct, frozen=True, kw_only=True):
    kind: PageKind
    title: str
    made_by: str
    word: str
    style: Style
    reason: str
    facts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    tables: tuple[PageTable, ...] = ()
    plots: tuple[Plot, ...] = ()
    pins: tuple[tuple[str, str], ...] = ()
    left_out: str = ""
    timing: PageTiming | None = None
    words: dict[str, dict[str, tuple[str, str]]] = msgspec.field(default_factory=_page_words)


BINS = 10


def bin_of(f1: float) -> int:
    """0 and 1 have a bin of their own: most answers are there."""
    if f1 <= 0:
        return 0
    return BINS + 1 if f1 >= 1 else 1 + min(BINS - 1, int(f1 * BINS))


def shares_of(counts: Counter[int]) -> tuple[float, ...]:
    total = sum(counts.values())
    return tuple(counts[at] / total if total else 0.0 for at in range(BINS + 2))
