"""The page of a probe: the signals, and every case with what base and tuned model called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

import msgspec

from callmark.probe.records import (
    CaseOutcome,
    ProbeEvidence,
    ProbeReport,
    ProbeResult,
    SeriesResult,
    ViewAnswer,
)
from callmark.records.results import Result
from callmark.reports.html.compare import comparison_plots, comparison_tables, pairs_of
from callmark.reports.html.overview import (
    MADE_BY,
    Bar,
    PageCell,
    PageHead,
    PageTable,
    Pick,
    Plot,
    left_out,
)
from callmark.reports.html.page import (
    NOT_IN_THE_FILE,
    Candidates,
    IndexBuilder,
    PageFile,
    Row,
    page_json,
)
from callmark.reports.layout import Cell, DiffPiece, Style, Table, diff_words, one_line
from callmark.reports.probe import (
    asking_line,
    change_text,
    decision_lines,
    expected_tool,
    format_line,
    null_lines,
    probe_blocks,
    series_texts,
)
from callmark.reports.probe_case import judgement_of

LABELS = {
    "fails": "lost or wrong",
    "gained": "gained",
    "status": "calls",
    "why": "why",
    "tool": "expected tool",
    "checkpoint": "checkpoint",
    "likeness": "answers",
}
LIKENESS = {
    "same_text": "the same, word for word",
    "same_call": "the same call in other words",
    "other_call": "another call",
}
TITLES = {
    "check": "How turns end",
    "signal": "Signals",
    "expected tool": "By tool",
    "checkpoint": "Checkpoints",
}
SIDES = ("base", "tuned")
STANDINGS = {
    "kept": "both valid",
    "lost": "only base valid",
    "gained": "only tuned valid",
    "both_fail": "none valid",
}
FOLDED = ("check", "signal", "expected tool")  # what the plots show too, or seldom tells
SHOWN_EXAMPLES, EXAMPLE = 6, 300
# The first cell of these rows shows the cases that it names.
PICKED = {"checkpoint": "checkpoint", "expected tool": "tool"}
URGENCY: tuple[Style, ...] = ("bad", "warn", "good")  # a page that is green says so of everything


class BothSides(NamedTuple):
    """The results of base and tuned model over a whole dataset; each is read once."""

    base: Iterable[Result]
    tuned: Iterable[Result]


def write_probe_page(stream: BinaryIO, report: ProbeReport, both: BothSides | None = None) -> None:
    """With `both` the samples are those of the dataset, else the cases of the probe."""
    name = one_line(" → ".join(map(_short, _models(report))), 200)
    head = probe_head(report, name)
    if both is None or report.comparison is None:
        with PageFile(stream, name) as page:
            _write_cases(page, head, report)
        return
    with pairs_of(report.comparison, *both) as pairs, PageFile(stream, name) as page:
        page.head(msgspec.structs.replace(head, left_out=left_out(*pairs.counts())))
        pairs.write(page, SIDES)


def _write_cases(page: PageFile, head: PageHead, report: ProbeReport) -> None:
    cases = list(_listed_cases(report))
    candidates = Candidates(report.seed)
    for row, encoded in cases:
        candidates.offer(row.sample_id, row.trial, row=row.cost, size=len(encoded))
    choice = candidates.chosen(bytearray(0 if row.facets["fails"] else 1 for row, _ in cases))
    page.head(msgspec.structs.replace(head, left_out=left_out(*choice.counts())))
    index = IndexBuilder(LABELS, ())
    for at, (row, encoded) in enumerate(cases):
        place = page.sample(encoded) if choice.full[at] else NOT_IN_THE_FILE
        if choice.rows[at]:
            index.add(row, place)
    page.index(index.built())


def probe_head(report: ProbeReport, name: str) -> PageHead:
    words: list[tuple[str, Style, str]] = [
        (line.cells[0].text, line.cells[0].style, line.cells[1].text.strip())
        for line in decision_lines(report)
    ] or [("NOTHING PROBED", "warn", "the suite holds no tool_use_fidelity")]
    word, style, reason = min(words, key=lambda one: URGENCY.index(one[1]))
    comparison = report.comparison
    tables = (*_failure_tables(report), *_tables(report))
    if comparison is not None:
        tables += tuple(comparison_tables(comparison))
    return PageHead(
        kind="probe",
        title=name,
        made_by=MADE_BY,
        word=word,
        style=style,
        reason=one_line(reason, 2000),
        facts=tuple(_facts(report)),
        warnings=tuple(one_line(warning, 2000) for warning in report.warnings),
        tables=tables,
        plots=tuple(plot for plot in _plots(report) if plot.bars),
        pins=tuple(
            (one_line(f"{side} {key}", 100), one_line(str(value), 300))
            for side, facts in (*report.models.items(), *report.views.items())
            for key, value in (facts if isinstance(facts, dict) else {"": facts}).items()
            if value is not None
        ),
    )


def _plots(report: ProbeReport) -> Iterator[Plot]:
    if report.series is not None:
        yield _series_plot(report.series)
    for at, one in enumerate(report.results):
        if one.result.evidence is not None:
            yield _cases_plot(one.result.evidence, at)
            yield _tools_plot(one.result.evidence, at)
            yield _format_plot(one, at)
    if report.comparison is not None:
        yield from comparison_plots(report.comparison)


def _cases_plot(evidence: ProbeEvidence, at: int) -> Plot:
    counts: Counter[str] = Counter(case.standing for case in evidence.cases)
    return Plot(
        id=f"cases-{at}",
        title="What became of the cases",
        note="Cases by who makes a valid call.",
        label="calls",
        series=("cases",),
        bars=tuple(
            Bar(told, (float(counts[standing]),), Pick("status", told))
            for standing, told in STANDINGS.items()
            if counts[standing]
        ),
    )


def _tools_plot(evidence: ProbeEvidence, at: int) -> Plot:
    groups: dict[str, list[CaseOutcome]] = {}
    for case in evidence.cases:
        groups.setdefault(expected_tool(case), []).append(case)
    return Plot(
        id=f"tools-{at}",
        title="Valid calls by tool",
        note="Share of the cases that expect the tool and get a valid call, whatever it names.",
        label="expected tool",
        series=SIDES,
        bars=tuple(
            Bar(
                one_line(f"{tool} ({len(cases)})", 60),
                (
                    sum(case.base.valid for case in cases) / len(cases),
                    sum(case.tuned.valid for case in cases) / len(cases),
                ),
                Pick("tool", tool),
            )
            for tool, cases in sorted(groups.items())
        ),
        top=1.0,
    )


def _series_plot(series: SeriesResult) -> Plot:
    evidence = series.points[-1].result.evidence
    return Plot(
        id="series",
        title="Valid calls, checkpoint by checkpoint",
        note="Share of cases with a valid call, with its 95 % interval (Wilson); the line is the"
        " base model.",
        label="checkpoint",
        series=("valid calls",),
        bars=tuple(
            Bar(
                one_line(point.checkpoint.label, 60),
                (point.result.ft_value,),
                Pick("checkpoint", point.checkpoint.label),
                point.valid_ci_95,
            )
            for point in series.points
        ),
        top=1.0,
        curve=True,
        level=None if evidence is None else evidence.json_valid_rate_base,
    )


def _format_plot(one: ProbeResult, at: int) -> Plot:
    """Only where it shows something: two views in one format need no drawing."""
    evidence = one.result.evidence
    base, tuned = ({}, {}) if evidence is None else (evidence.formats_base, evidence.formats_ft)
    names = sorted(base.keys() | tuned.keys()) if base != tuned else []
    return Plot(
        id=f"formats-{at}",
        title="How calls are written",
        note="Cases with a valid call in both views, by the format of the call.",
        label="format",
        series=SIDES,
        bars=tuple(
            Bar(one_line(name, 60), (float(base.get(name, 0)), float(tuned.get(name, 0))))
            for name in names
        ),
    )


def _facts(report: ProbeReport) -> Iterator[str]:
    """What stands below the answer: why it was given."""
    if report.series is not None:
        yield from series_texts(report.series)
    for one in report.results:
        result = one.result
        if result.evidence is not None:
            yield f"{result.verdict} by the point rule: {result.message}"
        if result.decision_reason is not None:
            yield f"decision: {result.decision_reason}"
        if (told := format_line(result)) is not None:
            yield f"format_kept {result.format_kept}: {told}"
    for block in null_lines(report.nulls):
        yield "".join(cell.text for cell in block.cells)
    if (asked := asking_line(report)) is not None:
        yield asked


def _failure_tables(report: ProbeReport) -> Iterator[PageTable]:
    for at, one in enumerate(report.results):
        groups = () if one.result.evidence is None else one.result.evidence.failures
        yield PageTable(
            id=f"why-{at}",
            title="Why calls of the tuned model fail",
            columns=("why", "cases", "lost", "no valid call before either"),
            rows=tuple(
                (
                    PageCell(one_line(group.cause, 200), "plain", Pick("why", group.cause)),
                    PageCell(str(group.count)),
                    PageCell(str(group.num_lost), "bad" if group.num_lost else "plain"),
                    PageCell(str(group.num_both_fail)),
                )
                for group in groups
            ),
            right=(1, 2, 3),
        )
        yield _example_table(one, at)


def _example_table(one: ProbeResult, at: int) -> PageTable:
    """Of every kind of failure its first case, so that nobody has to look for one."""
    evidence = one.result.evidence
    groups = () if evidence is None else evidence.failures[:SHOWN_EXAMPLES]
    rows = []
    for group in groups:
        first = group.cases[0] - 1
        case = evidence.cases[first] if evidence is not None else None
        if case is not None:
            texts = (group.cause, one.case_names[first], case.base.text, case.tuned.text)
            cells = (one_line(text.replace("\n", " "), EXAMPLE) or "(no text)" for text in texts)
            rows.append(tuple(map(PageCell, cells)))
    return PageTable(
        id=f"examples-{at}",
        title="For example",
        columns=("why", "case", "base wrote", "tuned wrote"),
        rows=tuple(rows),
        right=(),
    )


def _tables(report: ProbeReport) -> Iterator[PageTable]:
    alone = msgspec.structs.replace(report, comparison=None, warnings=())
    for at, block in enumerate(probe_blocks(alone)):
        if isinstance(block, Table):
            yield PageTable(
                id=f"probe-{at}",
                title=TITLES.get(block.columns[0], block.columns[0]),
                columns=block.columns,
                rows=tuple(_page_row(block, row) for row in block.rows),
                right=tuple(sorted(block.right)),
                folded=block.columns[0] in FOLDED,
            )


def _page_row(block: Table, row: Sequence[Cell]) -> tuple[PageCell, ...]:
    cells = [PageCell(one_line(cell.text, 300), cell.style) for cell in row]
    facet = PICKED.get(block.columns[0])
    if facet is not None:
        cells[0] = PageCell(cells[0].text, "plain", Pick(facet, row[0].text))
    return tuple(cells)


def _listed_cases(report: ProbeReport) -> Iterator[tuple[Row, bytes]]:
    """Of a series those of every checkpoint, the last one first: it is what is decided about."""
    if report.series is None:
        for one in report.results:
            yield from _cases(one)
        return
    names = report.results[0].case_names
    for at, point in reversed(list(enumerate(report.series.points))):
        one = ProbeResult(result=point.result, case_names=names)
        label = point.checkpoint.label
        for row, encoded in _cases(one, label):
            facets = {**row.facets, "checkpoint": (label,)}
            text = f"{one_line(label, 60)}: {row.text}"
            yield msgspec.structs.replace(row, trial=at, facets=facets, text=text), encoded


def _cases(one: ProbeResult, checkpoint: str | None = None) -> Iterator[tuple[Row, bytes]]:
    evidence = one.result.evidence
    if evidence is None:
        return
    why = {at: group.cause for group in evidence.failures for at in group.cases}
    cases = zip(one.case_names, evidence.cases, strict=True)
    for number, (name, case) in enumerate(cases, start=1):
        diff = diff_words(case.base.text, case.tuned.text)
        sides = [
            {"label": label, "result": _side(answer, case.gold_tool_name, pieces)}
            for label, answer, pieces in zip(SIDES, (case.base, case.tuned), diff, strict=True)
        ]
        changes = [change_text(change) for change in case.changes]
        about = [f"case {number}", f"expects {expected_tool(case)}"]
        content = {
            "sides": sides,
            "changes": changes,
            "about": [*about, *([] if checkpoint is None else [checkpoint])],
        }
        yield _row(name, case, why.get(number)), page_json(content)


def _side(answer: ViewAnswer, gold: str | None, pieces: Iterable[DiffPiece]) -> dict[str, object]:
    return {
        "valid": answer.valid,
        "judged": judgement_of(answer, gold),
        "call": answer.call,
        "reason": answer.reason,
        "format": answer.format,
        "ended": answer.ended,
        "written": [[piece.text, piece.differs] for piece in pieces],
    }


def _row(name: str, case: CaseOutcome, why: str | None) -> Row:
    lost = ("valid call lost",) if case.base.valid and not case.tuned.valid else ()
    wrong = ("wrong tool",) if case.hallucinated else ()
    gained = ("valid call gained",) if case.tuned.valid and not case.base.valid else ()
    neither = ("no valid call in either view",) if case.standing == "both_fail" else ()
    valid = STANDINGS[case.standing]
    return Row(
        sample_id=name,
        trial=0,
        text=one_line(f"expects {expected_tool(case)}{'; ' if why else ''}{why or ''}", 160) + "\n",
        facets={
            "fails": (*lost, *wrong, *neither),
            "gained": gained,
            "status": (valid,),
            "why": () if why is None else (why,),
            "tool": (expected_tool(case),),
            "likeness": () if case.likeness is None else (LIKENESS[case.likeness],),
        },
        numbers=(),
    )


def _short(model: str) -> str:
    """Of a path its last part: the rest is the same on both sides."""
    return model.rstrip("/").rpartition("/")[2] if model.startswith("/") else model


def _models(report: ProbeReport) -> Iterator[str]:
    for side in report.models.values():
        names = side if isinstance(side, dict) else {"base": side}
        yield str(names.get("adapter") or names.get("base"))
