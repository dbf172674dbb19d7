"""The report as a person reads it: the verdict, what failed and where to look, then the rest; on
request the tables, with every gate, metric, tool, locale and slice. Only here numbers are
rounded."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from callmark.records.jsontext import Json
from callmark.records.report import (
    Failing,
    GateOutcome,
    Metric,
    MetricBlock,
    Power,
    Repeat,
    Report,
    Status,
    Verdict,
)
from callmark.records.statements import GOOD, NEUTRAL, StatementLabel
from callmark.reports.layout import (
    Block,
    Cell,
    Style,
    Table,
    TextLine,
    command,
    line,
    one_line,
    round_text,
)
from callmark.summary.failing import PASSING_F1, StatementList, explain_flag
from callmark.summary.gates import UNJUDGED, better_is, is_below, policy_sentence, wanted_text
from callmark.summary.metrics import (
    UNCHANGED,
    count_of,
    in_words,
    label_of,
    label_words,
    labels_of,
    sentence_of,
)

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
LONGEST_STEP = 78  # of what comes next, in one line
SHOWN_SAMPLES = 3  # to look at, for each gate
SHOWN_GATES = 3  # that one reason keeps open
SHOWN_MISSES = 3
SHOWN_ERRORS = 5
SHOWN_FLAGS = 3
SHOWN_CHANGES = 20
LONGEST_FLAG = 300


def report_blocks(
    report: Report,
    *,
    results: str | None = None,
    misses: Sequence[str] = (),
    statements: StatementList | None = None,
    changes: Sequence[str] = (),
    next_steps: Sequence[str] = (),
    tables: Iterable[Block] | None = None,
) -> Iterator[Block]:
    """`results`: the file with the trials, for the commands that look at them. `misses` explains
    calls without a fixture, `statements` are those of the first trials, `changes` says what is
    otherwise than it was observed, `next_steps` what one can do now. `tables`: those of
    `terminal_tables`, for whoever wants all numbers."""
    verbose = tables is not None
    yield verdict_line(report, is_short=True)
    yield from _judged(report, "fail", "failed", results)
    yield from _open(report, results)
    yield from _facts(report, verbose=verbose)
    yield from _judged(report, "warn", "warnings", results)
    yield from _errors(report)
    yield from _misses(report, misses)
    if statements is not None:
        yield from _statements(report, statements, results, verbose=verbose)
    yield from _changed(report, changes, results)
    yield from tables or ()
    yield from _next(next_steps)


def log_blocks(
    report: Report,
    *,
    results: str | None = None,
    next_steps: Sequence[str] = (),
    tables: Iterable[Block] | None = None,
) -> Iterator[Block]:
    """The same of a log, whose findings were told: what is judged, and where to look. What asks for
    expectations is left out, for a log has none."""
    yield verdict_line(report, is_short=True)
    yield from _judged(report, "fail", "failed", results)
    yield from _open(report, results)
    yield from _judged(report, "warn", "warnings", results)
    yield from _errors(report)
    yield from tables or ()
    yield from _next(next_steps)


def gate_text(outcome: GateOutcome) -> str:
    """What a gate saw and wanted, in one line."""
    loosened = ", LOOSENED" if outcome.loosened else ""
    bound = f"bound from {outcome.source}{loosened}"
    about = f"{count_of(outcome.n, 'sample')}; {policy_text(outcome)}; {bound}"
    reason = f"; {in_words(outcome.reason)}" if outcome.reason else ""
    label = label_of(outcome.name)
    named = label if label == outcome.name else f"{label} ({outcome.name})"
    return f"{named}: {value_text(outcome)}. {sentence_of(outcome.name)} {about}{reason}"


def value_text(outcome: GateOutcome) -> str:
    """`0.812, wanted at least 0.9`."""
    low = " (low end of the interval)" if outcome.compared == "ci_95_low" else ""
    value = "no value" if outcome.value is None else round_text(outcome.value, outcome.bound)
    return f"{value}{low}, wanted {wanted_text(outcome.op, outcome.bound)}"


def policy_text(outcome: GateOutcome) -> str:
    """When it fails, and how far it is from that."""
    if outcome.misses is None:
        return policy_sentence(outcome)
    return f"{policy_sentence(outcome)}; {outcome.misses} fall short"


def interval(metric: Metric | None) -> str:
    if metric is None or metric.ci_95 is None:
        return ""
    low, high = metric.ci_95
    return f"{low:.3f} to {high:.3f}"


def verdict_line(report: Report, *, is_short: bool = False) -> TextLine:
    """`is_short`: the reasons for which gates are open follow, each with its gates."""
    style, told = VERDICT_STYLE[report.verdict], verdict_text(report)
    if is_short and told.startswith(f"{UNJUDGED}: "):
        told = UNJUDGED
    return TextLine((Cell(report.verdict.upper(), style), Cell(f"  {told}")))


def verdict_text(report: Report) -> str:
    """A pass is counted, since the reason would list most gates; all else says its reason."""
    if report.verdict != "pass":
        return in_words(report.verdict_reason)
    found = Counter(outcome.status for outcome in report.gates)
    told = [f"{count_of(found['pass'], 'gate')} passed"]
    if found["warn"]:
        told.append(count_of(found["warn"], "warning"))
    if found["inconclusive"]:
        told.append(f"{found['inconclusive']} inconclusive")
    return ", ".join(told)


def counts_text(report: Report) -> Iterator[str]:
    """Samples, trials and, where there are any, spans: a sentence each."""
    counts = report.counts
    kinds = {
        "eligible": counts.eligible,
        "controls": counts.controls,
        "negative controls": counts.negative_controls,
        "clarify": counts.clarify,
        "unclassified": counts.unclassified,
    }
    yield _told(count_of(counts.samples, "sample"), kinds)
    lost = {"not scored": counts.trials_error, "missing": counts.trials_missing}
    missed = f"{count_of(counts.unresolved, 'sample')} with a call without a fixture"
    trials = _told(count_of(counts.trials, "trial"), lost)
    yield f"{trials}; {missed}" if counts.unresolved else trials
    grounding = report.grounding
    if grounding.spans:
        spans = f"all answers: {grounding.grounded_lax} of {grounding.spans} spans grounded"
        values = {label_words(label): count for label, count in grounding.values.items()}
        yield _told(f"{spans} ({grounding.grounded_strict} strictly); values in them", values)
    yield from notable_texts(report)


def _told(what: str, parts: Mapping[str, int]) -> str:
    """`20 samples: 14 eligible, 6 controls`; of what there is none nothing is said."""
    told = ", ".join(f"{count} {name}" for name, count in parts.items() if count)
    return f"{what}: {told}" if told else what


def notable_texts(report: Report) -> Iterator[str]:
    """What is not as it should be in every run, and what so many samples can tell."""
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
    lower = "; lower is better" if better_is(power.gate) == "lower" else ""
    return f"{count_of(power.n, 'sample')}: {said} ({label_of(power.gate)}{lower})"


def _percent(share: float) -> str:
    if share > 0.995:
        return "over 99 %" if share < 1 else "100 %"
    if share >= 0.01:
        return f"{100 * share:.0f} %"
    return f"{100 * share:.1f} %" if share >= 0.0005 or share == 0 else "under 0.1 %"


def gates_of(report: Report) -> list[GateOutcome]:
    """All of them, the most urgent first, the budget that a clock measured among them."""
    outcomes = [*report.gates]
    if report.timing.perf_budget is not None:
        outcomes.append(report.timing.perf_budget)
    order = list(STATUS_STYLE)
    return sorted(outcomes, key=lambda outcome: order.index(outcome.status))


def _judged(report: Report, status: Status, title: str, results: str | None) -> Iterator[Block]:
    """The gates with this status: what each saw and wanted, why, and the samples to look at."""
    found = [outcome for outcome in gates_of(report) if outcome.status == status]
    warnings = report.warnings if status == "warn" else ()
    if not found and not warnings:
        return
    yield line()
    yield line(title, STATUS_STYLE[status])
    for outcome in found:
        name = Cell(label_of(outcome.name), "strong")
        n = f" ({outcome.n} sample{'s' * (outcome.n != 1)})" if outcome.n else ""
        loosened = f", LOOSENED by {outcome.source}" if outcome.loosened else ""
        yield TextLine((name, Cell(f": {value_text(outcome)}{n}{loosened}")), indent=2)
        yield line(sentence_of(outcome.name), "quiet", indent=4)
        if status == "fail":
            yield line(f"It {policy_text(outcome)}.", "quiet", indent=4)
            yield from _alike(report, outcome.name)
        if outcome.reason:
            yield line(in_words(outcome.reason), indent=4)
        yield from _look(report.failing.get(outcome.name), results)
    yield from (line(warning, indent=2) for warning in warnings)


def _alike(report: Report, gate: str) -> Iterator[Block]:
    """Answers that fit their own results, and those of others as well: that is the dataset's."""
    fit = report.metrics.get("integration_f1_macro_lax")
    if gate != "grounding_lift" or fit is None or fit.value is None:
        return
    if not is_below(fit.value, PASSING_F1):
        yield line(
            "The answers fit their own results, so the samples are too much alike: leave copies"
            " out (callmark dataset import --dedupe).",
            indent=4,
        )


def _look(failing: Failing | None, results: str | None) -> Iterator[Block]:
    """Up to three samples, and the command that shows them."""
    if failing is None or not failing.sample_ids:
        return
    shown = failing.sample_ids[:SHOWN_SAMPLES]
    left = failing.count - len(shown)
    if results is None:
        ids = ", ".join(one_line(sample_id, 60) for sample_id in shown)
        yield line(f"look at: {ids}{f' and {left} more' if left else ''}", indent=4)
        return
    yield show_command(results, shown)
    if left:
        yield line(f"and {left} more", "quiet", indent=4)


def show_command(results: str, sample_ids: Iterable[str], indent: int = 4) -> TextLine:
    return command(f"callmark show {_quoted((results, *sample_ids))}", indent=indent)


def _quoted(words: Iterable[str]) -> str:
    return " ".join(shlex.quote(one_line(word)) for word in words)


def _open(report: Report, results: str | None) -> Iterator[Block]:
    """Each reason once, with the first of the gates that it keeps open; then the samples that fall
    short of any of them."""
    found: dict[str, list[str]] = {}
    for outcome in gates_of(report):
        if outcome.status == "inconclusive":
            needed = outcome.needed_n
            decide = "" if needed is None else f" ({needed} samples would decide)"
            found.setdefault(f"{outcome.reason or 'no reason'}{decide}", []).append(outcome.name)
    if not found:
        return
    yield line()
    yield line("INCONCLUSIVE: not judged, so not passed", "warn")
    for reason, names in found.items():
        left = len(names) - SHOWN_GATES
        more = f" and {left} more" if left > 0 else ""
        told = f"{labels_of(names[:SHOWN_GATES])}{more}"
        yield TextLine((Cell(told, "strong"), Cell(f": {in_words(reason)}")), indent=2)
    binding = {name for several in found.values() for name in several} - report.warning_gates
    short = {name: one for name, one in report.failing.items() if name in binding and one.count}
    ids = tuple(dict.fromkeys(sample_id for one in short.values() for sample_id in one.sample_ids))
    if ids:
        yield line(f"for {labels_of(list(short)[:SHOWN_GATES])}:", indent=2)
    yield from _look(Failing(len(ids), ids), results)


def _facts(report: Report, *, verbose: bool) -> Iterator[Block]:
    """In short: how many samples, trials and seconds; what is not as it should be."""
    if any(outcome.status in ("fail", "inconclusive") for outcome in gates_of(report)):
        yield line()
    if verbose:
        yield from (line(text, indent=2) for text in counts_text(report))
        yield from (line(text, indent=2) for text in time_texts(report))
        yield from (line(text, indent=2) for text in filter(None, (unchanged_text(report),)))
        return
    counts = report.counts
    lost = {"not scored": counts.trials_error, "missing": counts.trials_missing}
    told = "".join(f", {count} {what}" for what, count in lost.items() if count)
    verb = "needs" if counts.eligible == 1 else "need"
    scored = " of those scored" if told else ""  # what was lost is of no kind
    need = f" ({counts.eligible}{scored} {verb} a tool)" if counts.eligible else ""
    first, *others = (*time_texts(report), "")
    took = f"{first}{told}" if first else f"{count_of(counts.trials, 'trial')}{told}"
    yield line(f"{count_of(counts.samples, 'sample')}{need}, {took}", indent=2)
    yield from (line(text, "quiet", indent=2) for text in filter(None, others))
    if counts.unresolved:
        yield line(
            f"{count_of(counts.unresolved, 'sample')} with a call without a fixture", indent=2
        )
    yield from (line(text, indent=2) for text in notable_texts(report))
    if report.repeat is not None:
        yield line(repeat_text(report.repeat), indent=2)
    if told := unchanged_text(report):
        yield line(told, indent=2)


def unchanged_text(report: Report) -> str:
    """`unchanged: 19 of 20 observed samples`; nothing where nothing was merely observed."""
    observed = report.metrics.get(UNCHANGED)
    if observed is None or not observed.n:
        return ""
    failing = report.failing.get(UNCHANGED)
    kept = observed.n - (0 if failing is None else failing.count)
    return f"unchanged: {kept} of {count_of(observed.n, 'observed sample')}"


def repeat_text(repeat: Repeat) -> str:
    return (
        f"over {repeat.trials} trials: pass@1 {round_text(repeat.pass_at_1.value)}, "
        f"pass^{repeat.trials} {round_text(repeat.pass_hat_k.value)}, "
        f"verdict flips on {round_text(repeat.flip_share.value)} of the samples"
    )


def time_texts(report: Report) -> Iterator[str]:
    """How long the trials took, and what they cost, as far as somebody measured it."""
    seconds = report.timing.wall_time_sec
    if seconds is not None:
        trials = count_of(report.counts.trials, "trial")
        yield f"{trials} in {seconds:.1f} s{_cache_note(report.timing.more)}"
        spent = spending_note(report.timing.more)
        if spent:
            yield spent


def absent_gates(outcomes: Iterable[GateOutcome]) -> list[tuple[str, list[str]]]:
    """The gates that had nothing to judge, by why."""
    found: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.status == "n/a":
            found.setdefault(outcome.reason or "", []).append(outcome.name)
    return list(found.items())


def _statements(
    report: Report, listed: StatementList, results: str | None, *, verbose: bool
) -> Iterator[Block]:
    """Counts by label; the first flags, the firm ones before the advisory. A run that passed only
    says where to find them."""
    if not listed.statements:
        return
    first = listed.trials < report.counts.trials
    which = f" of the first {listed.trials} trials" if first else ""
    in_short = report.verdict == "pass" and not verbose
    labels = listed.by_label.items()
    counts = ", ".join(f"{n} {label_words(label)}" for label, n in labels)
    if in_short:
        counts = checked_text(listed.by_label, len(listed.flags))
    if not (in_short and unchanged_text(report)):  # ten lines are enough for a pass
        yield line()
    yield TextLine((Cell(f"statements{which}", "strong"), Cell(f": {counts}")))
    shown = 0 if in_short else SHOWN_FLAGS
    for flag in listed.flags[:shown]:
        style: Style = "bad" if flag.tier == "firm" else "warn"
        told = f"  {one_line(flag.sample_id, 60)}: {one_line(explain_flag(flag), LONGEST_FLAG)}"
        yield TextLine((Cell(f"{flag.tier:<8}", style), Cell(told)), indent=2)
    left = len(listed.flags) - shown
    if left > 0:
        where = "RESULTS" if results is None else _quoted((results,))
        if shown:
            yield line(f"and {left} more", "quiet", indent=2)
        yield command(f"callmark show {where} --statements", indent=2)


def checked_text(by_label: Mapping[StatementLabel, int], flagged: int) -> str:
    """`19 backed by results, 2 flagged, 49 unchecked, 8 no claim`."""
    good = sum(count for label, count in by_label.items() if label in GOOD)
    unchecked = by_label.get("unchecked", 0)
    neutral = sum(by_label.get(label, 0) for label in NEUTRAL)
    other = f", {neutral} said by the user or no claim" if neutral else ""
    return f"{good} backed by results, {flagged} flagged, {unchecked} unchecked{other}"


def _changed(report: Report, texts: Sequence[str], results: str | None) -> Iterator[Block]:
    changed = report.failing.get(UNCHANGED)
    if changed is None or not texts:
        return
    yield line()
    yield line(f"changed from what was observed ({changed.count}), not wrong yet", "strong")
    for text in texts[:SHOWN_CHANGES]:
        yield line(one_line(text, LONGEST_FLAG), indent=2)
    if changed.count > SHOWN_CHANGES:
        where = "RESULTS" if results is None else _quoted((results,))
        yield line(f"more of them: callmark show {where} ID, or the page", "quiet", indent=2)


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
    if report.errors.count > SHOWN_ERRORS:
        yield line(f"and {report.errors.count - SHOWN_ERRORS} more", "quiet", indent=2)


def _next(steps: Sequence[str]) -> Iterator[Block]:
    if not steps:
        return
    yield line()
    yield line("next", "strong")
    for step in steps:
        asked, _, what_for = step.rpartition(": ") if ": " in step else (step, "", "")
        if not step.startswith("callmark ") or (what_for and len(step) <= LONGEST_STEP):
            yield line(step, indent=2)
        elif what_for:  # a command that is broken with its purpose behind it cannot be copied
            yield line(f"{what_for}:", indent=2)
            yield command(asked, indent=4)
        else:
            yield command(step, indent=2)


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


_BLOCK_COLUMNS = (
    "integration_f1_macro_lax",
    "integration_f1_macro_strict",
    "call_f1_macro",
    "privacy_ok_rate",
)


def table_blocks(report: Report) -> Iterator[Block]:
    yield from _gates(report)
    yield from _ungated(report)
    yield from _per_tool(report)
    yield from _groups("locale", report.locales)
    yield from _groups("slice", report.slices)
    yield from _failing(report)


def _gates(report: Report) -> Iterator[Block]:
    outcomes = gates_of(report)
    judged = [outcome for outcome in outcomes if outcome.status != "n/a"]
    if judged:
        yield line()
        yield Table(
            ("status", "gate", "value", "wanted", "n"),
            tuple(_gate_row(outcome) for outcome in judged),
            frozenset({2, 4}),
            elastic=frozenset({1}),
            notes=tuple(_gate_notes(one, report.metrics.get(one.name)) for one in judged),
        )
    for why, names in absent_gates(outcomes):
        yield line(f"n/a ({why}): {labels_of(names)} ({', '.join(names)})", "quiet", indent=2)


def _gate_row(outcome: GateOutcome) -> tuple[Cell, ...]:
    loud = outcome.status in ("inconclusive", "fail")
    style: Style = STATUS_STYLE[outcome.status]
    low = " (low end)" if outcome.compared == "ci_95_low" else ""
    return (
        Cell(outcome.status.upper() if loud else outcome.status, style),
        Cell(label_of(outcome.name)),
        Cell(round_text(outcome.value, outcome.bound)),
        Cell(wanted_text(outcome.op, outcome.bound) + low),
        Cell(str(outcome.n)),
    )


def _gate_notes(outcome: GateOutcome, metric: Metric | None) -> tuple[str, ...]:
    """Its key, for whoever sets its bound; how sure the value is; when it fails."""
    shown = interval(metric)
    loosened = " LOOSENED" if outcome.loosened else ""
    parts = [
        outcome.name,
        f"95 % interval {shown}" if shown else "",
        policy_text(outcome),
        f"from {outcome.source}{loosened}",
    ]
    reason = () if not outcome.reason else (in_words(outcome.reason),)
    return ("; ".join(filter(None, parts)), *reason)


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
                    Cell(label_of(name)),
                    Cell(round_text(metric.value)),
                    Cell(str(metric.n)),
                    Cell(interval(metric), "quiet"),
                )
                for name, metric in known.items()
            ),
            frozenset({1, 2}),
            notes=tuple((f"{name}: {sentence_of(name)}",) for name in known),
        )
    if report.repeat is not None:
        repeat = report.repeat
        yield line(repeat_text(repeat), indent=2)
        floors = {name: noise.floor for name, noise in repeat.noise.items() if name in gated}
        moving = ", ".join(
            f"{label_of(name)} {one:.3f}" for name, one in floors.items() if one >= 5e-4
        )
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
        yield line(f"{label_of(name)} ({samples.count}): {', '.join(ids)}{more}", indent=2)
