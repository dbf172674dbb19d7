"""A probe as a person reads it: the answer in one line, the signals, then the cases behind them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, assert_never

import msgspec

from callmark.errors import BadInput
from callmark.probe.records import (
    ArgumentChange,
    CaseOutcome,
    CheckpointStanding,
    Decision,
    FidelityResult,
    NullResult,
    ProbeEvidence,
    ProbeReport,
    ProbeResult,
    SeriesPoint,
    SeriesResult,
    TurnCheck,
    ViewAnswer,
)
from callmark.records.jsontext import Json, canonical_json, want_object
from callmark.reports.compare import (
    comparison_blocks,
    comparison_sections,
    decision_line,
    sign_text,
)
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
from callmark.reports.markdown import as_text, fit_sections, fold_lines, table

SHOWN_CASES = 6
SHOWN_NEXT = 3
SHOWN_GROUPS = 8
SHOWN_CHANGES = 4
LONGEST_CAUSE = 100
LONGEST_NAME = 60
DECISIONS: dict[Decision, tuple[str, Style]] = {
    "regression": ("REGRESSION", "bad"),
    "inconclusive": ("INCONCLUSIVE", "warn"),
    "no_drop_seen": ("NO DROP SEEN", "warn"),
    "no_regression": ("NO REGRESSION", "good"),
}


def probe_blocks(report: ProbeReport, *, verbose: bool = False) -> Iterator[Block]:
    yield from result_blocks(report)
    yield from (line(f"warning: {text}", "warn", indent=2) for text in report.warnings)
    if report.comparison is not None:
        yield line()
        yield line("the whole dataset, base (A) against tuned (B)", "strong")
        yield from comparison_blocks(report.comparison, verbose=verbose)


def result_blocks(report: ProbeReport) -> Iterator[Block]:
    """What the probes and their nulls found."""
    if report.series is not None:
        yield from _series_blocks(report.series)
    alone, first = len(report.results) == 1, 0
    cases = numbered_cases(report)
    for one in report.results:
        last = first + (len(one.case_names) if one.result.evidence is not None else 0)
        yield from _result_blocks(one, cases[first:last], sides_of(report), alone=alone)
        first = last
    if not report.results:
        yield line("NOTHING PROBED  the suite holds no tool_use_fidelity", "warn")
    if report.nulls is not None:
        yield line()
        yield from null_lines(report.nulls)
    if (asked := asking_line(report)) is not None:
        yield line()
        yield line(asked, "quiet")


_SPARKS = "▁▂▃▄▅▆▇█"
CHECKPOINT_STANDINGS: dict[CheckpointStanding, tuple[str, Style]] = {
    "holds": ("holds", "plain"),
    "loses": ("loses", "bad"),
    "dips": ("dips, not confirmed", "warn"),
    "error": ("ERROR", "bad"),
}


def series_texts(series: SeriesResult) -> Iterator[str]:
    """The course of a series in one or two sentences."""
    n = len(series.points)
    if series.first_losing is None:
        yield f"no checkpoint of {n} is a confirmed regression (tested from the last backwards)"
    else:
        losing = sum(1 for one in series.points if one.standing == "loses")
        after = f"and the {losing - 1} after it" if losing > 1 else "which is the last"
        yield f"the first checkpoint that loses is {series.first_losing}, {after}"
    dips = [one.checkpoint.label for one in series.points if one.standing == "dips"]
    if dips:
        yield f"dips that recovered, an observation and no finding: {', '.join(dips)}"


def _series_blocks(series: SeriesResult) -> Iterator[Block]:
    rates = [one.result.ft_value for one in series.points]
    spark = "".join("·" if rate is None else _SPARKS[round(rate * 7)] for rate in rates)
    first, last = (one_line(series.points[at].checkpoint.label, 40) for at in (0, -1))
    yield TextLine((Cell(f"{spark}  ", "strong"), Cell(f"valid calls from {first} to {last}")))
    yield from (line(text, indent=2) for text in series_texts(series))
    yield line()
    yield Table(
        ("checkpoint", "valid calls", "95 % interval", "change", "p", "decision", "wrong tool",
         "other format", "standing"),
        tuple(map(_point_row, series.points)),
        frozenset({1, 3, 4, 6, 7}),
    )  # fmt: skip
    yield line()
    yield line(f"the last checkpoint, {last}", "strong")


def _point_row(point: SeriesPoint) -> tuple[Cell, ...]:
    result, evidence = point.result, point.result.evidence
    word, style = CHECKPOINT_STANDINGS[point.standing]
    label = Cell(one_line(point.checkpoint.label, 40))
    if evidence is None:
        said = Cell(one_line(result.message, 80))
        return (label, *(Cell("") for _ in range(4)), said, Cell(""), Cell(""), Cell(word, style))
    low, high = point.valid_ci_95 or (0.0, 1.0)
    return (
        label,
        Cell(round_text(evidence.json_valid_rate_ft)),
        Cell(f"{low:.3f} to {high:.3f}", "quiet"),
        Cell(sign_text(evidence.validity_delta)),
        Cell(f"{evidence.p_value:.3g}"),
        Cell((result.decision or "").replace("_", " ")),
        Cell(str(evidence.num_hallucinated)),
        Cell(str(evidence.num_format_changed)),
        Cell(word, style),
    )


def answer_lines(report: ProbeReport) -> Iterator[TextLine]:
    """Only what was decided."""
    sides = sides_of(report)
    yield from (answer_line(one.result, sides) for one in report.results)


class Sides(NamedTuple):
    """How the two views are called in a sentence."""

    base: str = "before the fine-tune"
    tuned: str = "after"


def sides_of(report: ProbeReport) -> Sides:
    """One model in two ways (an adapter here and on a server, a type of weights and another) has
    no before and after: there each view has its name."""
    base, tuned = (want_object(report.models.get(view)) for view in ("base", "ft"))
    ways = ("kind", "dtype")
    if base.get("adapter") is None and all(base.get(way) == tuned.get(way) for way in ways):
        return Sides()
    return Sides(f"by {_view_name(base)}", f"by {_view_name(tuned)}")


def _view_name(model: dict[str, Json]) -> str:
    name = str(model.get("adapter") or model.get("base")).rstrip("/").rpartition("/")[2]
    served = ["served"] if model.get("endpoint") else []
    dtype = [str(model["dtype"])] if model.get("dtype") else []
    known = ", ".join([*served, *dtype])
    return one_line(f"{name} ({known})" if known else name, LONGEST_NAME)


def asking_line(report: ProbeReport) -> str | None:
    """How the views were computed, and what may be expected of a repetition."""
    views = report.views
    if not isinstance(views.get("views"), str):
        return None
    sides = {
        SIDE_NAMES.get(name, name): told
        for name, facts in (("", views), *((side, views.get(side)) for side in SIDE_NAMES))
        if (told := _computed(want_object(facts)))
    }
    if len(set(sides.values())) == 1:
        sides = {"": next(iter(sides.values()))}
    told = "; ".join(f"{name} {text}".strip() for name, text in sides.items())
    return f"asked: {views['views']}{f'; {told}' if told else ''}"


SIDE_NAMES = {"base": "base", "ft": "tuned"}
DETERMINISM = {
    "strict": "strict: equal tokens on every repeat",
    "best effort": "best effort: a repeat may differ in a token",
    "loose": "loose: a repeat may differ",
}


def _computed(facts: dict[str, Json]) -> str:
    local, runner = want_object(facts.get("local_model")), want_object(facts.get("runner"))
    if local:
        word = str(local.get("determinism"))
        kind = local.get("quantization") or runner.get("dtype")
        return f"{kind} on {local.get('device')} ({DETERMINISM.get(word, word)})"
    return "served (what a repeat gives is up to the server)" if facts.get("model") else ""


def decision_lines(report: ProbeReport) -> Iterator[TextLine]:
    """The same, with what the whole dataset says: either can be a regression."""
    yield from answer_lines(report)
    if report.comparison is not None:
        yield decision_line(report.comparison)


def quiet_lines(report: ProbeReport) -> Iterator[TextLine]:
    """And with the course of a series, in a sentence."""
    yield from decision_lines(report)
    if report.series is not None:
        yield from (line(text, indent=2) for text in series_texts(report.series))


def answer_line(result: FidelityResult, sides: Sides) -> TextLine:
    word, style = _word(result)
    return TextLine((Cell(word, style), Cell(f"  {_sentence(result, sides)}")))


def _word(result: FidelityResult) -> tuple[str, Style]:
    evidence = result.evidence
    if result.verdict == "error":
        return "ERROR", "bad"
    if evidence is None or result.decision is None:
        return "SKIPPED", "warn"
    if not evidence.num_valid_base + evidence.num_valid_ft:
        return "NO CALLS", "bad"
    if result.hallucination_ok is False and result.decision != "regression":
        return "INVENTED TOOLS", "bad"
    if result.format_kept == "fail" and result.decision != "regression":
        return "FORMAT CHANGED", "bad"
    return DECISIONS[result.decision]


def _sentence(result: FidelityResult, sides: Sides) -> str:
    evidence = result.evidence
    if evidence is None or not evidence.num_valid_base + evidence.num_valid_ft:
        return result.message
    before, after, n = evidence.num_valid_base, evidence.num_valid_ft, evidence.num_cases
    said = f"valid calls: {before} of {n} {sides.base}, {after} {sides.tuned}"
    if not after:
        return said
    invented = evidence.num_hallucinated
    said = f"{said}; {invented or 'none'} of the {after} {_names(invented)} a wrong tool"
    if invented and evidence.num_hallucinated_base:
        said = f"{said}, {evidence.num_hallucinated_base} of the {before} {sides.base}"
    changed = evidence.num_format_changed
    return f"{said}; {changed} in another format" if changed else said


def _names(count: int) -> str:
    return "names" if count == 1 else "name"


def _result_blocks(
    one: ProbeResult, cases: Sequence[NumberedCase], sides: Sides, *, alone: bool
) -> Iterator[Block]:
    result, evidence = one.result, one.result.evidence
    if not alone:
        yield line(result.name, "strong")
    yield answer_line(result, sides)
    if evidence is None:
        return
    said = "" if result.message == _sentence(result, sides) else f": {result.message}"
    yield line(f"{result.verdict} by the point rule{said}", indent=2)
    if result.decision_reason is not None:
        yield line(f"decision: {result.decision_reason}", indent=2)
    if (told := format_line(result)) is not None:
        style: Style = "bad" if result.format_kept == "fail" else "warn"
        yield line(f"format_kept {result.format_kept}: {told}", style, indent=2)
    yield from _check_blocks(evidence.checks)
    yield line()
    yield Table(
        ("signal", "base", "tuned", "change", "95 % interval of tuned"),
        tuple(_signals(result, evidence)),
        frozenset({1, 2, 3}),
    )
    yield line()
    yield _by_tool(evidence.cases)
    yield from _failure_lines(evidence)
    asked = [one for one in cases if one.outcome.gold_tool_name is not None]
    silent = [one for one in cases if one.outcome.gold_tool_name is None]
    yield from _list("lost", _lost(asked), "bad")
    yield from _list("with a call that nobody asked for", _lost(silent), "bad")
    yield from _list("with a wrong tool", _list_invented(cases), "bad")
    yield from _list("wrong in both views", _both_fail(cases), "warn")
    yield from _list("with other arguments", _changed(cases), "plain")
    yield from _list("gained", _gained(asked), "good")
    yield from _list("without the call that nobody asked for", _gained(silent), "good")


CHECKS = {
    "never_ends": "turns that never end (no end token before max_new_tokens)",
    "runs_on": "text after the call",
    "repeats": "the same call again in one answer",
    "ignores_results": "no answer to the result of a call, or the same call again",
    "renders_otherwise": "prompts that its own tokenizer renders otherwise than the base's",
}


def _check_blocks(checks: Sequence[TurnCheck]) -> Iterator[Block]:
    """Before the statistics: is the model still one that can be talked to?"""
    if not checks:
        return
    yield line()
    rows = tuple(
        (
            Cell(CHECKS[one.name]),
            Cell(str(one.base)),
            Cell(str(one.tuned), "bad" if one.tuned > one.base else "plain"),
            Cell(str(one.n)),
        )
        for one in checks
    )
    yield Table(("check", "base", "tuned", "of"), rows, frozenset({1, 2, 3}), frozenset({0}))
    worse = [one for one in checks if one.note and (one.tuned > one.base or not one.n)]
    yield from (line(one.note, "warn", indent=2) for one in worse)


def _signals(result: FidelityResult, evidence: ProbeEvidence) -> Iterator[tuple[Cell, ...]]:
    interval = evidence.raw_ci_95
    between = "" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"
    yield _row(
        "valid calls",
        round_text(evidence.json_valid_rate_base),
        round_text(evidence.json_valid_rate_ft),
        sign_text(evidence.validity_delta),
        between,
    )
    before, calls = evidence.num_hallucinated_base, evidence.num_valid_base
    wrong = "" if before is None or not calls else round_text(before / calls)
    yield _row("calls with a wrong tool", wrong, round_text(evidence.hallucination_rate))
    if evidence.num_no_call:
        base, tuned = (
            round_text(count / evidence.num_no_call)
            for count in (evidence.num_unwanted_base, evidence.num_unwanted_ft)
        )
        pairs = f"over {evidence.num_no_call} cases that ask for none, not judged"
        yield _row("calls where none is asked for", base, tuned, "", pairs)
    yield _row("calls in another format", "", *_format_texts(result, evidence))
    pairs = f"over {evidence.num_arg_pairs_compared} pairs, not judged"
    differ = round_text(evidence.mean_arg_disagreement)
    yield _row("arguments that differ", "", differ, "", pairs)
    same = f"{evidence.num_same_text} word for word, of {len(evidence.cases)} answers"
    shared = evidence.num_same_call / len(evidence.cases)
    yield _row("the same call, or none", "", round_text(shared), "", same)
    if evidence.null_mean is not None:
        z = "no z" if result.z_score is None else f"z {result.z_score:+.2f}"
        rank = evidence.null_rank or ""
        yield _row("valid calls of nulls", "", round_text(evidence.null_mean), z, rank)
    yield _row("score", "", round_text(result.score))


def _format_texts(result: FidelityResult, evidence: ProbeEvidence) -> tuple[str, str, str]:
    if not evidence.num_format_pairs:
        return "n/a", "", "no pair of calls in text"
    changed, n = evidence.num_format_changed, evidence.num_format_pairs
    return round_text(changed / n), "", f"{changed} of {n} pairs: {result.format_kept}"


def format_line(result: FidelityResult) -> str | None:
    """What the fine-tune did to the format of the calls; None where it is kept, or unknown."""
    evidence = result.evidence
    if evidence is None or not evidence.num_format_changed:
        return None
    before, after = (
        ", ".join(f"{name} ({count})" for name, count in formats.items())
        for formats in (evidence.formats_base, evidence.formats_ft)
    )
    changed = f"format changed in {evidence.num_format_changed} of {evidence.num_format_pairs}"
    if evidence.expected_format is not None:
        return f"{changed}: tuned writes {after}, expected {evidence.expected_format}"
    return f"{changed}: base writes {before}, tuned {after}"


def _row(*texts: str) -> tuple[Cell, ...]:
    return tuple(Cell(text) for text in (*texts, *[""] * (5 - len(texts))))


def expected_tool(case: CaseOutcome) -> str:
    return case.gold_tool_name or "(no call)"


def _by_tool(cases: Sequence[CaseOutcome]) -> Table:
    rows = []
    for tool in sorted({expected_tool(case) for case in cases}):
        own = [case for case in cases if expected_tool(case) == tool]
        before = sum(case.base.valid for case in own)
        after = sum(case.tuned.valid for case in own)
        wrong = sum(case.hallucinated is True for case in own)
        rows.append(
            (
                Cell(tool),
                Cell(str(len(own))),
                Cell(str(before)),
                Cell(str(after), "bad" if after < before else "plain"),
                Cell(str(wrong), "bad" if wrong else "plain"),
            )
        )
    columns = ("expected tool", "cases", "valid, base", "valid, tuned", "wrong tool")
    return Table(columns, tuple(rows), frozenset({1, 2, 3, 4}))


class NumberedCase(NamedTuple):
    """A case with the number by which `callmark show` knows it."""

    number: int
    name: str
    outcome: CaseOutcome

    def __str__(self) -> str:
        return f"case {self.number}, {one_line(self.name, LONGEST_NAME).removesuffix('.')}"


def _lost(cases: Sequence[NumberedCase]) -> list[str]:
    return [
        f"{one}: {why_not(one.outcome.tuned, one.outcome.gold_tool_name, one.outcome.tuned.reason)}"
        for one in cases
        if one.outcome.base.valid and not one.outcome.tuned.valid
    ]


def why_not(answer: ViewAnswer, gold: str | None, said: str | None) -> str:
    """A call of another tool is that first: its arguments cannot fit another tool's schema."""
    call = answer.call
    if call is None or gold in (None, call.name):
        return said or "no valid call"
    return f"calls {call.name} instead of {gold}"


def _gained(cases: Sequence[NumberedCase]) -> list[str]:
    found = ((one, one.outcome.base) for one in cases if one.outcome.standing == "gained")
    return [
        f"{one}: {base.cause or base.reason or 'no valid call'} in the base view"
        for one, base in found
    ]


def _list_invented(cases: Sequence[NumberedCase]) -> list[str]:
    found = ((one, one.outcome.tuned.call) for one in cases if one.outcome.hallucinated)
    return [
        f"{one}: calls {call.name}, expected {one.outcome.gold_tool_name}"
        for one, call in found
        if call is not None
    ]


def _failure_lines(evidence: ProbeEvidence) -> Iterator[Block]:
    """Why answers of the tuned view fail, by how often."""
    if not evidence.failures:
        return
    yield line()
    yield line("why calls of the tuned model fail", "strong")
    for group in evidence.failures[:SHOWN_GROUPS]:
        some = "" if group.num_both_fail == group.count else f"{group.num_both_fail} of them "
        both = f", {some}with no valid call before either" if group.num_both_fail else ""
        yield line(f"{group.count} × {one_line(group.cause, LONGEST_CAUSE)}{both}", indent=2)
    if len(evidence.failures) > SHOWN_GROUPS:
        more = evidence.failures[SHOWN_GROUPS:]
        count = sum(group.count for group in more)
        yield line(f"{count} × {len(more)} other reasons (--json lists all)", "quiet", indent=2)


def _both_fail(cases: Sequence[NumberedCase]) -> list[str]:
    found = ((one, one.outcome.tuned) for one in cases if one.outcome.standing == "both_fail")
    return [
        f"{one}: {why_not(tuned, one.outcome.gold_tool_name, tuned.cause or tuned.reason)}"
        for one, tuned in found
    ]


def _changed(cases: Sequence[NumberedCase]) -> list[str]:
    return [
        f"{one}: {'; '.join(map(change_text, one.outcome.changes[:SHOWN_CHANGES]))}"
        for one in cases
        if one.outcome.changes
    ]


def change_text(change: ArgumentChange) -> str:
    """`/top_k: 3 → 5`; a side that does not give the argument says so."""
    base, tuned = (
        "(not given)"
        if isinstance(value, msgspec.UnsetType)
        else one_line(canonical_json(value), LONGEST_NAME)
        for value in (change.base, change.tuned)
    )
    return f"{one_line(change.path, LONGEST_NAME)}: {base} → {tuned}"


def of_checkpoint(report: ProbeReport, label: str) -> ProbeReport:
    """A series as its report would be if this checkpoint were the last; raises BadInput."""
    points = () if report.series is None else report.series.points
    found = next((one for one in points if one.checkpoint.label == label), None)
    if found is None:
        known = ", ".join(one_line(one.checkpoint.label, LONGEST_NAME) for one in points)
        what = f"there is: {known}" if known else "this probe is no series"
        raise BadInput(f"--checkpoint: {one_line(label, LONGEST_NAME)}: {what}")
    last = msgspec.structs.replace(report.results[0], result=found.result)
    return msgspec.structs.replace(report, results=(last,))


def find_case(report: ProbeReport, wanted: str) -> NumberedCase:
    """One case by its number (from 1) or its name; raises BadInput."""
    cases = numbered_cases(report)
    found = [at for at, one in enumerate(cases) if one.name == wanted]
    if not found and wanted.isdecimal() and 1 <= int(wanted) <= len(cases):
        found = [int(wanted) - 1]
    if len(found) != 1:
        why = "is no case of this probe" if not found else f"is the name of {len(found)} cases"
        raise BadInput(
            f"{one_line(wanted, LONGEST_NAME)}: {why}: give its number, 1 to {len(cases)}"
        )
    return cases[found[0]]


def next_blocks(report: ProbeReport, kept: Path | None, page: Path | None) -> Iterator[Block]:
    """Where what both views wrote can be read: the page, and the cases worth a look."""
    cases = numbered_cases(report)
    worth = {one.number: None for one in cases if one.outcome.standing == "lost"}
    worth |= {one.number: None for one in cases if one.outcome.hallucinated}
    yield line()
    yield line("next", "strong")
    if page is not None:
        yield line(f"{page}: both answers to every case in a browser", indent=2)
    if kept is None:
        yield line("--json FILE keeps what both views wrote; callmark show FILE shows it", indent=2)
    else:
        shown = "".join(f" {number}" for number in list(worth)[:SHOWN_NEXT])
        yield command(f"callmark show {shlex.quote(str(kept))}{shown}", indent=2)
    if any(one.result.decision == "inconclusive" for one in report.results):
        yield line("callmark probe --plan 10: how many cases find a drop of 10 points", indent=2)


def numbered_cases(report: ProbeReport) -> list[NumberedCase]:
    pairs = (
        zip(one.case_names, one.result.evidence.cases, strict=True)
        for one in report.results
        if one.result.evidence is not None
    )
    return [NumberedCase(at, *pair) for at, pair in enumerate(chain.from_iterable(pairs), start=1)]


def _list(what: str, cases: Sequence[str], style: Style) -> Iterator[Block]:
    if not cases:
        return
    yield line()
    yield line(f"{len(cases)} {'case' if len(cases) == 1 else 'cases'} {what}", style)
    yield from (line(text, indent=2) for text in cases[:SHOWN_CASES])
    if len(cases) > SHOWN_CASES:
        yield line(f"and {len(cases) - SHOWN_CASES} more (--json lists all)", "quiet", indent=2)


def null_lines(nulls: NullResult | None) -> Iterator[TextLine]:
    if nulls is None:
        return
    if nulls.unavailable is not None:
        yield line(f"no nulls: {nulls.unavailable}", "quiet", indent=2)
    for one in nulls.calibrations:
        cases = "2 sentinel cases" if one.sentinels else f"{one.num_cases} cases of {one.probe}"
        for rank in one.ranks:
            rates = ", ".join(round_text(rate) for rate in rank.rates)
            text = f"{nulls.method} nulls at {rank.rank_multiplier:g} × the rank, {cases}: {rates}"
            yield line(text, "quiet", indent=2)


_ICONS: dict[Style, str] = {"good": "✅", "bad": "❌", "warn": "⚠️"}


def probe_markdown(report: ProbeReport) -> str:
    return fit_sections(_sections(report))


def _sections(report: ProbeReport) -> Iterator[Sequence[str]]:
    for answer in answer_lines(report):
        word, sentence = answer.cells
        icon = _ICONS.get(word.style, "")
        yield [f"### {icon} {as_text(word.text)}: {as_text(sentence.text.strip())}", ""]
    if not report.results:
        yield ["### ⚠️ Nothing probed", ""]
    yield [*(f"- **warning:** {as_text(warning)}" for warning in report.warnings), ""]
    yield fold_lines("Signals and cases", blocks_markdown(result_blocks(report)))
    if report.comparison is not None:
        yield from comparison_sections(report.comparison)


def blocks_markdown(blocks: Iterable[Block]) -> Iterator[str]:
    """What a terminal shows, line by line and table by table."""
    for block in blocks:
        match block:
            case TextLine(cells=cells):
                text = as_text("".join(cell.text for cell in cells).strip())
                yield f"- {text}" if text else ""
            case Table(columns=columns, rows=rows):
                yield ""
                yield from table(
                    [as_text(name) for name in columns],
                    [[as_text(cell.text) for cell in row] for row in rows],
                )
            case _:
                assert_never(block)
