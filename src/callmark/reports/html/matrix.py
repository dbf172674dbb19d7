"""The page of several runs: which are worse than the first, each metric drawn and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from callmark.compare.records import Comparison, MeasuredRun, RunMatrix
from callmark.records.report import Metric
from callmark.reports.compare import (
    BY_ITSELF,
    DECISION_STYLE,
    compared_of,
    headline,
    ids,
    metrics_of,
    names_of,
    run_facts,
    shared_facts,
    sign_text,
)
from callmark.reports.html.overview import (
    MADE_BY,
    Bar,
    PageCell,
    PageHead,
    PageTable,
    Plot,
    metric_cell,
)
from callmark.reports.html.page import IndexBuilder, PageFile
from callmark.reports.layout import Style, one_line, round_text
from callmark.reports.terminal import interval
from callmark.summary.metrics import in_words, label_of, sentence_of

COLUMNS = 5  # runs beside each other in a table of all metrics; more of them get another table


def write_matrix_page(stream: BinaryIO, matrix: RunMatrix) -> None:
    title = one_line(", ".join(names_of(matrix)), 200)
    with PageFile(stream, title) as page:
        page.head(matrix_head(matrix, title))
        page.index(IndexBuilder().built())


def matrix_head(matrix: RunMatrix, title: str) -> PageHead:
    word, style, told = headline(matrix)
    return PageHead(
        kind="runs",
        title=title,
        made_by=MADE_BY,
        word=word.replace("_", " "),
        style=style,
        reason=one_line(told, 2000),
        facts=(*(one_line(fact, 1000) for fact in shared_facts(matrix)), BY_ITSELF),
        warnings=tuple(one_line(warning, 2000) for warning in matrix.warnings),
        tables=tuple(_tables(matrix)),
        plots=tuple(_plots(matrix)),
        pins=tuple(_pins(matrix)),
    )


def _tables(matrix: RunMatrix) -> Iterator[PageTable]:
    labels = tuple(label_of(metric) for metric in matrix.primary)
    yield PageTable(
        id="runs",
        title="The runs",
        columns=("against the first", "run", *labels),
        rows=tuple(_run_row(matrix, at) for at in range(len(matrix.runs))),
        right=tuple(range(2, 2 + len(labels))),
        note="Below each value: its 95 % interval, and the difference from the first run.",
    )
    yield PageTable(
        id="changes",
        title="Samples that changed against the first run",
        columns=("run", "metric", "lost", "gained", "wrong in both", "lost, the first ones"),
        rows=tuple(_flips(matrix)),
        right=(2, 3, 4),
        note="Two of the runs side by side: callmark compare FIRST RUN --html FILE",
    )
    for first in range(0, len(matrix.runs), COLUMNS):
        yield _metrics_table(matrix, first)


def _run_row(matrix: RunMatrix, at: int) -> tuple[PageCell, ...]:
    run, name = matrix.runs[at], names_of(matrix)[at]
    against = matrix.comparisons[at - 1] if at else None
    decision = PageCell("first", "quiet")
    told: list[str] = []
    if against is not None:
        decision = PageCell(against.decision.replace("_", " "), DECISION_STYLE[against.decision])
        shared = shared_facts(matrix)
        own = [fact for fact in run_facts(against) if fact not in shared]
        told = [in_words(against.decision_reason), *own]
    return (
        decision,
        PageCell(name, "strong", note=one_line(". ".join(told), 500)),
        *(_value_cell(run, metric, against) for metric in matrix.primary),
    )


def _value_cell(run: MeasuredRun, metric: str, against: Comparison | None) -> PageCell:
    found = run.metrics.get(metric)
    if found is None:
        return PageCell("no data", "quiet")
    return PageCell(
        round_text(found.value),
        _style(against, metric),
        note="\n".join(filter(None, (interval(found), _difference(against, metric)))),
        title=f"{metric}, n {found.n}",
    )


def _style(against: Comparison | None, metric: str) -> Style:
    one = None if against is None else compared_of(against, metric)
    return "plain" if one is None or one.decision is None else DECISION_STYLE[one.decision]


def _difference(against: Comparison | None, metric: str) -> str:
    one = None if against is None else compared_of(against, metric)
    return "" if one is None or one.difference is None else sign_text(one.difference)


def _flips(matrix: RunMatrix) -> Iterator[tuple[PageCell, ...]]:
    for name, comparison in zip(names_of(matrix)[1:], matrix.comparisons, strict=True):
        for metric, both in comparison.flips.items():
            if both.lost.count + both.gained.count:
                yield (
                    PageCell(name, "strong"),
                    PageCell(label_of(metric), title=metric),
                    PageCell(str(both.lost.count), "bad" if both.lost.count else "quiet"),
                    PageCell(str(both.gained.count), "good" if both.gained.count else "quiet"),
                    PageCell(str(both.neither.count), "quiet"),
                    PageCell(ids(both.lost), "quiet"),
                )


def _metrics_table(matrix: RunMatrix, first: int) -> PageTable:
    runs = matrix.runs[first : first + COLUMNS]
    names = names_of(matrix)[first : first + COLUMNS]
    more = f" ({first + 1} to {first + len(runs)})" if len(matrix.runs) > COLUMNS else ""
    return PageTable(
        id=f"metrics-{first}",
        title=f"All metrics of the runs{more}",
        columns=("metric", *names),
        rows=tuple(
            (metric_cell(metric), *(_plain_cell(run.metrics.get(metric)) for run in runs))
            for metric in metrics_of(matrix)
        ),
        right=tuple(range(1, 1 + len(runs))),
        note="Below each value stands its 95 % interval.",
        folded=True,
    )


def _plain_cell(metric: Metric | None) -> PageCell:
    if metric is None:
        return PageCell("–", "quiet")
    return PageCell(round_text(metric.value), note=interval(metric))


LEGEND = (
    "A line is the 95 % interval, the dashed one is the first run. A square is worse, a full circle"
    " is not, a ring is open.",
)


def _plots(matrix: RunMatrix) -> Iterator[Plot]:
    measured = [
        metric for metric in matrix.primary if any(metric in run.metrics for run in matrix.runs)
    ]
    for metric in measured:
        found = [run.metrics.get(metric) for run in matrix.runs]
        ends = [one.ci_95[1] for one in found if one is not None and one.ci_95 is not None]
        yield Plot(
            id=metric,
            title=label_of(metric),
            note=sentence_of(metric),
            label="run",
            series=("value",),
            bars=tuple(_bar(matrix, at, metric) for at in range(len(matrix.runs))),
            top=max(1.0, *ends) if ends else 1.0,
            level=_number(found[0]),
            points=True,
            marks=LEGEND if metric == measured[0] else (),
        )


def _bar(matrix: RunMatrix, at: int, metric: str) -> Bar:
    found = matrix.runs[at].metrics.get(metric)
    return Bar(
        names_of(matrix)[at],
        (_number(found),),
        spread=None if found is None else found.ci_95,
        style=_style(matrix.comparisons[at - 1] if at else None, metric),
    )


def _number(metric: Metric | None) -> float | None:
    return None if metric is None or metric.value is None else float(metric.value)


def _pins(matrix: RunMatrix) -> Iterator[tuple[str, str]]:
    for name, run in zip(names_of(matrix), matrix.runs, strict=True):
        for key, value in msgspec.structs.asdict(run.facts).items():
            if value is not None and key != "scored_again":
                yield f"{name} {key}", one_line(str(value), 300)
    yield "margin", f"{matrix.comparisons[0].margin:g}"
