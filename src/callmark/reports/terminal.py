"""The report as a person reads it: verdict, gates, then what to look at. Only here numbers are
rounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from callmark.records.jsontext import Json
from callmark.records.report import (
    Failing,
    GateOutcome,
    Metric,
    Number,
    Op,
    Power,
    Repeat,
    Report,
    Status,
    Verdict,
)
from callmark.records.report import MetricBlock as MetricBlock
from callmark.reports.layout import Block, Cell, Style, Table, TextLine, line, one_line, round_text
from callmark.summary.failing import StatementList, explain_flag
from callmark.summary.metrics import UNCHANGED

VERDICT_STYLE: dict[Verdict, Style] = {
    "pass": "good",
    "fail": "bad",
    "inconclusive": "warn",
    "incomplete": "warn",
    "empty": "quiet",
}
STATUS_STYLE: dict[Status, Style] = {
    "fail": "bad",
    "inconclusive": "warn",
    "warn": "warn",
    "pass": "good",
    "n/a": "quiet",
}  # in the order in which they are listed
SHOWN_IDS = 6
SHOWN_MISSES = 3
SHOWN_ERRORS = 5
SHOWN_STATEMENTS = 5
SHOWN_CHANGES = 20
LONGEST_FLAG = 300
_BLOCK_COLUMNS = (
    "integration_f1_macro_lax",
    "integration_f1_macro_strict",
    "call_f1_macro",
    "privacy_ok_rate",
)


def report_blocks(
    report: Report,
    *,
    misses: Sequence[str] = (),
    statements: StatementList | None = None,
    changes: Sequence[str] = (),
    next_steps: Sequence[str] = (),
) -> Iterator[Block]:
    """`misses` explains calls without a fixture, `statements` are those of the first trials,
    `changes` says what is otherwise than it was observed, `next_steps` what one can do now."""
    yield from _verdict(report)
    yield from _gates(report)
    if statements is not None:
        yield from _statements(report, statements)
    yield from _ungated(report)
    yield from _per_tool(report)
    yield from _groups("locale", report.locales)
    yield from _groups("slice", report.slices)
    yield from _failing(report)
    yield from _changed(report, changes)
    yield from _misses(report, misses)
    yield from _errors(report)
    yield from _notes(report, next_steps)


def log_blocks(report: Report, *, next_steps: Sequence[str] = ()) -> Iterator[Block]:
    """The same of a log, whose findings were told: what is judged, and where to look. What asks for
    expectations is left out, for a log has none."""
    yield verdict_line(report)
    for warning in report.warnings:
        yield line(f"warning: {warning}", "warn", indent=2)
    yield from _judged_gates(_outcomes(report), report)
    yield from _failing(report)
    yield from _errors(report)
    yield from _notes(report, next_steps)


def bound_text(op: Op, bound: Number) -> str:
    return f"{op} {bound:g}"


def gate_text(outcome: GateOutcome) -> str:
    """What a gate saw and wanted, in one line."""
    low = ", the low end of the interval" if outcome.compared == "ci_95_low" else ""
    value = f"{round_text(outcome.value, outcome.bound)}{low}"
    wanted = bound_text(outcome.op, outcome.bound)
    loosened = ", LOOSENED" if outcome.loosened else ""
    about = f"n {outcome.n}, {policy_text(outcome)}, from {outcome.source}{loosened}"
    reason = f"; {outcome.reason}" if outcome.reason else ""
    return f"{outcome.name} is {value}; wanted {wanted} ({about}){reason}"


def interval(metric: Metric | None) -> str:
    if metric is None or metric.ci_95 is None:
        return ""
    low, high = metric.ci_95
    return f"{low:.3f} to {high:.3f}"


def verdict_line(report: Report) -> TextLine:
    style = VERDICT_STYLE[report.verdict]
    return TextLine((Cell(report.verdict.upper(), style), Cell(f"  {verdict_text(report)}")))


def verdict_text(report: Report) -> str:
    """A pass is counted, since the reason would list most gates; all else says its reason."""
    if report.verdict != "pass":
        return report.verdict_reason
    found = Counter(outcome.status for outcome in report.gates)
    return f"{found['pass']} gates passed, {found['warn']} warn, {found['inconclusive']} open"


def counts_text(report: Report) -> Iterator[str]:
    """Samples, trials and, where there are any, spans: a sentence each."""
    counts = report.counts
    yield (
        f"{counts.samples} samples: {counts.eligible} eligible, {counts.controls} controls, "
        f"{counts.negative_controls} negative controls, {counts.clarify} clarify, "
        f"{counts.unclassified} unclassified"
    )
    yield (
        f"{counts.trials} trials: {counts.trials_error} errors, {counts.trials_missing} missing; "
        f"{counts.unresolved} samples with a call without a fixture"
    )
    wrong = report.misses.wrong_calls
    if wrong:
        tools = ", ".join(f"{tool} {count}" for tool, count in wrong.items())
        yield f"wrong calls, which no sample expects and no fixture answers: {tools}"
    if report.unparsed.count:
        first = report.unparsed.first[0]
        shown = f"{one_line(first.sample_id, 60)}: {one_line(first.raw, LONGEST_FLAG)}"
        yield (
            f"calls in no known format, all of them invalid: {report.unparsed.count}; the first, in"
            f" {shown} (a format of your own would read them: docs/call-formats.md)"
        )
    grounding = report.grounding
    if grounding.spans:
        values = ", ".join(f"{count} {label}" for label, count in grounding.values.items())
        yield (
            f"all answers: {grounding.grounded_lax} of {grounding.spans} spans grounded "
            f"({grounding.grounded_strict} strictly); values: {values}"
        )
    if report.power is not None:
        yield power_text(report.power)
    if report.repeat is not None and report.repeat.flaky + report.repeat.broken:
        yield flaky_text(report.repeat)
    yield from quarantine_texts(report)


def quarantine_texts(report: Report) -> Iterator[str]:
    """The samples that count for no gate, with their owners: the first of them."""
    active = [one for one in report.quarantine if not one.expired and one.trials]
    for one in active[:SHOWN_IDS]:
        who = f"{one_line(one.sample_id, 60)} (passed {one.passed}/{one.trials})"
        yield f"in quarantine until {one.until}: {who}; {one.owner}: {one_line(one.why, 200)}"
    if len(active) > SHOWN_IDS:
        yield f"and {len(active) - SHOWN_IDS} more in quarantine: `quarantine` of the report"


def flaky_text(repeat: Repeat) -> str:
    """Who passes only sometimes, then who never does, and how often: the first of them."""
    shown = [
        f"{one_line(one.sample_id, 60)} {one.passed}/{one.trials}"
        for one in sorted(repeat.samples, key=lambda one: one.passed == 0)[:SHOWN_IDS]
    ]
    left = repeat.flaky + repeat.broken - len(shown)
    more = f" and {left} more" if left else ""
    counted = f"{repeat.steady} samples always pass, {repeat.flaky} sometimes"
    return f"{counted}, {repeat.broken} never: {', '.join(shown)}{more}"


def power_text(power: Power) -> str:
    """`40 samples: a true rate of 0.80 fails in 92 % of runs, 0.90 in 37 %, 0.98 in 0.1 %`."""
    first, *others = power.at
    more = "".join(f", {one.rate:.2f} in {_percent(one.fails)}" for one in others)
    said = f"a true rate of {first.rate:.2f} fails in {_percent(first.fails)} of runs{more}"
    return f"{power.n} samples: {said} ({power.gate})"


def _percent(share: float) -> str:
    if share > 0.995:
        return "over 99 %" if share < 1 else "100 %"
    if share >= 0.01:
        return f"{100 * share:.0f} %"
    return f"{100 * share:.1f} %" if share >= 0.0005 or share == 0 else "under 0.1 %"


def _verdict(report: Report) -> Iterator[Block]:
    yield verdict_line(report)
    yield from (line(text, indent=2) for text in counts_text(report))
    for warning in report.warnings:
        yield line(f"warning: {warning}", "warn", indent=2)


def _gates(report: Report) -> Iterator[Block]:
    outcomes = _outcomes(report)
    yield from _judged_gates(outcomes, report)
    for why, names in absent_gates(outcomes):
        yield line(f"n/a ({why}): {', '.join(names)}", "quiet", indent=2)


def _outcomes(report: Report) -> list[GateOutcome]:
    """Of all gates, those to look at first."""
    outcomes = [*report.gates]
    if report.timing.perf_budget is not None:
        outcomes.append(report.timing.perf_budget)
    order = list(STATUS_STYLE)
    return sorted(outcomes, key=lambda outcome: order.index(outcome.status))


def _judged_gates(outcomes: Sequence[GateOutcome], report: Report) -> Iterator[Block]:
    judged = [outcome for outcome in outcomes if outcome.status != "n/a"]
    if judged:
        yield line()
        yield Table(
            ("status", "gate", "value", "bound", "n", "95 % interval", "policy", "from"),
            tuple(_gate_row(outcome, report.metrics.get(outcome.name)) for outcome in judged),
            frozenset({2, 4}),
        )
    for (status, reason), names in _reasons(judged).items():
        yield line(f"{', '.join(names)}: {reason}", STATUS_STYLE[status], indent=2)


def absent_gates(outcomes: Iterable[GateOutcome]) -> list[tuple[str, list[str]]]:
    """The gates that had nothing to judge, by why."""
    found: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.status == "n/a":
            found.setdefault(outcome.reason or "", []).append(outcome.name)
    return list(found.items())


def _gate_row(outcome: GateOutcome, metric: Metric | None) -> tuple[Cell, ...]:
    open_ = outcome.status == "inconclusive"
    status = outcome.status.upper() if open_ or outcome.status == "fail" else outcome.status
    low = " (low end)" if outcome.compared == "ci_95_low" else ""
    return (
        Cell(status, STATUS_STYLE[outcome.status]),
        Cell(outcome.name),
        Cell(round_text(outcome.value, outcome.bound)),
        Cell(bound_text(outcome.op, outcome.bound) + low),
        Cell(str(outcome.n)),
        Cell(interval(metric), "quiet"),
        Cell(policy_text(outcome), "quiet"),
        Cell(outcome.source + (" LOOSENED" if outcome.loosened else ""), _source_style(outcome)),
    )


def policy_text(outcome: GateOutcome) -> str:
    if outcome.misses is None or outcome.allowed is None:
        return outcome.policy
    return f"{outcome.policy} {outcome.misses}/{outcome.allowed}"


def _source_style(outcome: GateOutcome) -> Style:
    return "warn" if outcome.loosened else "quiet"


def _reasons(outcomes: Sequence[GateOutcome]) -> dict[tuple[Status, str], list[str]]:
    """Why gates did not pass, each reason once, with the gates that have it."""
    found: dict[tuple[Status, str], list[str]] = {}
    for outcome in outcomes:
        if outcome.reason and outcome.status != "pass":
            needed = outcome.needed_n
            decide = "" if needed is None else f" ({needed} samples would decide)"
            found.setdefault((outcome.status, outcome.reason + decide), []).append(outcome.name)
    return found


def _statements(report: Report, listed: StatementList) -> Iterator[Block]:
    """Counts by label, and the first flags, the firm ones before the advisory."""
    if not listed.statements:
        return
    first = listed.trials < report.counts.trials
    which = f" of the first {listed.trials} trials" if first else ""
    counts = ", ".join(f"{count} {label}" for label, count in listed.by_label.items())
    yield line()
    yield TextLine((Cell(f"statements{which}", "strong"), Cell(f": {counts}")))
    for flag in listed.flags[:SHOWN_STATEMENTS]:
        style: Style = "bad" if flag.tier == "firm" else "warn"
        told = f"  {one_line(flag.sample_id, 60)}: {one_line(explain_flag(flag), LONGEST_FLAG)}"
        yield TextLine((Cell(f"{flag.tier:<8}", style), Cell(told)), indent=2)
    left = len(listed.flags) - SHOWN_STATEMENTS
    if left > 0:
        yield line(f"and {left} more flags: callmark show RESULTS --statements", "quiet", indent=2)


def _ungated(report: Report) -> Iterator[Block]:
    gated = {outcome.name for outcome in report.gates}
    free = {name: metric for name, metric in report.metrics.items() if name not in gated}
    known = {name: metric for name, metric in free.items() if metric.value is not None}
    if known:
        yield line()
        yield Table(
            ("without a gate", "value", "n", "95 % interval"),
            tuple(
                (
                    Cell(name),
                    Cell(round_text(metric.value)),
                    Cell(str(metric.n)),
                    Cell(interval(metric), "quiet"),
                )
                for name, metric in known.items()
            ),
            frozenset({1, 2}),
        )
    if report.repeat is not None:
        repeat = report.repeat
        yield line(
            f"over {repeat.trials} trials: pass@1 {round_text(repeat.pass_at_1.value)}, "
            f"pass^{repeat.trials} {round_text(repeat.pass_hat_k.value)}, "
            f"verdict flips on {round_text(repeat.flip_share.value)} of the samples",
            indent=2,
        )
        floors = {name: noise.floor for name, noise in repeat.noise.items() if name in gated}
        moving = ", ".join(f"{name} {one:.3f}" for name, one in floors.items() if one >= 5e-4)
        if moving:
            what = "noise floor (95 of 100 pairs of equal runs of one trial differ by less)"
            yield line(f"{what}: {moving}", indent=2)


def _per_tool(report: Report) -> Iterator[Block]:
    if not report.per_tool_deltas:
        return
    yield line()
    yield Table(
        ("tool", "F1 lax", "F1 strict", "lax - strict", "n"),
        tuple(
            (
                Cell(tool),
                Cell(round_text(delta.lax)),
                Cell(round_text(delta.strict)),
                Cell(round_text(delta.delta_lax_minus_strict)),
                Cell(str(delta.sample_count)),
            )
            for tool, delta in report.per_tool_deltas.items()
        ),
        frozenset({1, 2, 3, 4}),
    )


def _groups(title: str, blocks: dict[str, MetricBlock]) -> Iterator[Block]:
    if not blocks:
        return
    yield line()
    yield Table(
        (title, "samples", "eligible", "F1 lax", "F1 strict", "call F1", "privacy"),
        tuple(
            (
                Cell(name),
                Cell(str(block.n)),
                Cell(str(block.num_eligible)),
                *(Cell(_value(block.metrics.get(column))) for column in _BLOCK_COLUMNS),
            )
            for name, block in blocks.items()
        ),
        frozenset(range(1, 7)),
    )


def _value(metric: Metric | None) -> str:
    return round_text(None if metric is None else metric.value)


def _failing(report: Report) -> Iterator[Block]:
    """What falls short of a gate that can fail, apart from what none decides about."""
    binding = {outcome.name for outcome in report.gates} - report.warning_gates
    failed = {name: short for name, short in report.failing.items() if name in binding}
    others = {name: short for name, short in report.failing.items() if name not in binding}
    yield from _list("samples to look at", failed)
    yield from _list("not failed, but worth a look (warnings, no gate)", others)


def _list(title: str, found: dict[str, Failing]) -> Iterator[Block]:
    found = {name: samples for name, samples in found.items() if samples.count}
    if not found:
        return
    yield line()
    yield line(title, "strong")
    for name, samples in found.items():
        ids = [one_line(sample_id, 60) for sample_id in samples.sample_ids[:SHOWN_IDS]]
        more = f" and {samples.count - len(ids)} more" if samples.count > len(ids) else ""
        yield line(f"{name} ({samples.count}): {', '.join(ids)}{more}", indent=2)


def _changed(report: Report, texts: Sequence[str]) -> Iterator[Block]:
    changed = report.failing.get(UNCHANGED)
    if changed is None or not texts:
        return
    yield line()
    yield line(f"changed beside what was observed ({changed.count}), not wrong yet", "strong")
    for text in texts[:SHOWN_CHANGES]:
        yield line(one_line(text, LONGEST_FLAG), indent=2)
    if changed.count > SHOWN_CHANGES:
        yield line("more of them: callmark show RESULTS ID, or the page", "quiet", indent=2)


def _misses(report: Report, texts: Sequence[str]) -> Iterator[Block]:
    if not report.misses.count:
        return
    tools = ", ".join(f"{tool} {count}" for tool, count in report.misses.by_tool.items())
    yield line()
    yield line(f"calls without a fixture ({report.misses.count}): {tools}", "strong")
    for text in texts[:SHOWN_MISSES]:
        yield from (line(part, indent=2) for part in text.splitlines())


def _errors(report: Report) -> Iterator[Block]:
    if not report.errors.count:
        return
    yield line()
    yield line(f"trials that were not scored ({report.errors.count})", "strong")
    for failed in report.errors.first[:SHOWN_ERRORS]:
        yield line(f"{failed.sample_id} trial {failed.trial}: {failed.error}", indent=2)


def _notes(report: Report, next_steps: Sequence[str]) -> Iterator[Block]:
    seconds = report.timing.wall_time_sec
    if seconds is not None:
        yield line()
        cache, spent = _cache_note(report.timing.more), spending_note(report.timing.more)
        yield line(f"{report.counts.trials} trials in {seconds:.1f} s{cache}", "quiet", indent=2)
        if spent:
            yield line(spent, "quiet", indent=2)
    if next_steps:
        yield line()
        yield line("next", "strong")
        yield from (line(step, indent=2) for step in next_steps)


def spending_note(measured: dict[str, Json]) -> str:
    """Tokens, latency and cost in one line, as far as somebody counted."""
    found = []
    match measured:
        case {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}:
            found.append(f"{prompt:,} tokens in, {completion:,} out")
    match measured:
        case {"latency_p50": float(middle), "latency_p95": float(high)}:
            found.append(f"a trial took {middle:.2f} s (median), {high:.2f} s (95 %)")
    match measured:
        case {"cost": float(cost)}:
            found.append(f"cost {cost:.4g}")
    return "; ".join(found)


def _cache_note(measured: dict[str, Json]) -> str:
    match measured:
        case {"cache_hits": int(hits), "cache_asked": int(asked)}:
            return f"; {hits} of {hits + asked} answers from the cache"
        case _:
            return ""
