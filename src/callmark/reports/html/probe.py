"""The page of a probe: the signals, and every case with what base and tuned model called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

import msgspec

from callmark.probe.records import CaseOutcome, ProbeReport, ProbeResult, ViewAnswer
from callmark.records.results import Result
from callmark.reports.html.compare import comparison_plots, comparison_tables, pairs_of
from callmark.reports.html.overview import MADE_BY, PageCell, PageHead, PageTable, left_out
from callmark.reports.html.page import (
    NOT_IN_THE_FILE,
    Candidates,
    IndexBuilder,
    PageFile,
    Row,
    page_json,
)
from callmark.reports.layout import Style, Table, TextLine, one_line
from callmark.reports.probe import decision_lines, probe_blocks

LABELS = {"fails": "lost or wrong", "gained": "gained", "status": "calls", "tool": "expected tool"}
SIDES = ("base", "tuned")
URGENCY: tuple[Style, ...] = ("bad", "warn", "good")  # a page that is green says so of everything


class BothSides(NamedTuple):
    """The results of base and tuned model over a whole dataset; each is read once."""

    base: Iterable[Result]
    tuned: Iterable[Result]


def write_probe_page(stream: BinaryIO, report: ProbeReport, both: BothSides | None = None) -> None:
    """With `both` the samples are those of the dataset, else the cases of the probe."""
    name = one_line(" → ".join(str(model) for model in _models(report)), 200)
    head = probe_head(report, name)
    if both is None or report.comparison is None:
        with PageFile(stream, name) as page:
            _write_cases(page, head, report)
        return
    with pairs_of(report.comparison, *both) as pairs, PageFile(stream, name) as page:
        page.head(msgspec.structs.replace(head, left_out=left_out(*pairs.counts())))
        pairs.write(page, SIDES)


def _write_cases(page: PageFile, head: PageHead, report: ProbeReport) -> None:
    cases = [case for one in report.results for case in _cases(one)]
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
    tables = tuple(_tables(report))
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
        plots=()
        if comparison is None
        else tuple(plot for plot in comparison_plots(comparison) if plot.bars),
        pins=tuple(
            (one_line(f"{side} {key}", 100), one_line(str(value), 300))
            for side, facts in (*report.models.items(), *report.views.items())
            for key, value in (facts if isinstance(facts, dict) else {"": facts}).items()
            if value is not None
        ),
    )


def _facts(report: ProbeReport) -> Iterator[str]:
    """What the terminal says in lines between its tables."""
    alone = msgspec.structs.replace(report, comparison=None, warnings=())
    for block in list(probe_blocks(alone))[1:]:
        if isinstance(block, TextLine):
            text = "".join(cell.text for cell in block.cells).strip()
            if text:
                yield one_line(text, 500)


def _tables(report: ProbeReport) -> Iterator[PageTable]:
    alone = msgspec.structs.replace(report, comparison=None, warnings=())
    for at, block in enumerate(probe_blocks(alone)):
        if isinstance(block, Table):
            yield PageTable(
                id=f"probe-{at}",
                title={"signal": "Signals", "expected tool": "By tool"}.get(
                    block.columns[0], block.columns[0]
                ),
                columns=block.columns,
                rows=tuple(
                    tuple(PageCell(one_line(cell.text, 300), cell.style) for cell in row)
                    for row in block.rows
                ),
                right=tuple(sorted(block.right)),
            )


def _cases(one: ProbeResult) -> Iterator[tuple[Row, bytes]]:
    evidence = one.result.evidence
    if evidence is None:
        return
    for name, case in zip(one.case_names, evidence.cases, strict=True):
        sides = [
            {"label": label, "result": _side(answer)}
            for label, answer in zip(SIDES, (case.base, case.tuned), strict=True)
        ]
        yield _row(name, case), page_json({"sides": sides})


def _side(answer: ViewAnswer) -> dict[str, object]:
    return {"valid": answer.valid, "call": answer.call, "reason": answer.reason}


def _row(name: str, case: CaseOutcome) -> Row:
    lost = ("valid call lost",) if case.base.valid and not case.tuned.valid else ()
    wrong = ("wrong tool",) if case.hallucinated else ()
    gained = ("valid call gained",) if case.tuned.valid and not case.base.valid else ()
    valid = {
        (True, True): "both valid",
        (True, False): "only base valid",
        (False, True): "only tuned valid",
        (False, False): "none valid",
    }[case.base.valid, case.tuned.valid]
    called = "nothing" if case.tuned.call is None else case.tuned.call.name
    return Row(
        sample_id=name,
        trial=0,
        text=one_line(f"expects {case.gold_tool_name}; tuned calls {called}", 160) + "\n",
        facets={
            "fails": (*lost, *wrong),
            "gained": gained,
            "status": (valid,),
            "tool": (case.gold_tool_name,),
        },
        numbers=(),
    )


def _models(report: ProbeReport) -> Iterator[str]:
    for side in report.models.values():
        names = side if isinstance(side, dict) else {"base": side}
        yield str(names.get("adapter") or names.get("base"))
