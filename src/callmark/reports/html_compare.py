"""The page of a comparison, and of a probe: both sides, and what flipped between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO

import msgspec

from callmark.core.compare_records import Compared, Comparison
from callmark.core.results import Result
from callmark.reports.compare_terminal import (
    DECISION_STYLE,
    GROUPS,
    counted,
    facts,
    interval,
    p_text,
    signed,
)
from callmark.reports.html_file import PageFile
from callmark.reports.html_overview import MADE_BY, left_out
from callmark.reports.html_pairs import pairs_of
from callmark.reports.html_records import Bar, PageCell, PageHead, PageTable, Pick, Plot
from callmark.reports.neutral import one_line
from callmark.reports.terminal import rounded

F1 = "integration_f1_macro_lax"
_NUMBERS = ("A", "B", "B − A", "95 % interval", "n", "worse / better")
_RIGHT = (1, 2, 3, 5, 6)


def write_compare_page(
    stream: BinaryIO, comparison: Comparison, a: Iterable[Result], b: Iterable[Result]
) -> None:
    """`a` and `b`: the results of both sides, as they were compared; each is read once."""
    labels = (f"A  {comparison.a.path}", f"B  {comparison.b.path}")
    name = one_line(f"{comparison.a.path} → {comparison.b.path}", 200)
    head = comparison_head(comparison, name)
    with pairs_of(comparison, a, b) as pairs, PageFile(stream, name) as page:
        page.head(msgspec.structs.replace(head, left_out=left_out(*pairs.counts())))
        pairs.write(page, labels)


def comparison_head(comparison: Comparison, name: str) -> PageHead:
    return PageHead(
        kind="compare",
        title=name,
        made_by=MADE_BY,
        word=comparison.decision.replace("_", " "),
        style=DECISION_STYLE[comparison.decision],
        reason=one_line(comparison.decision_reason, 2000),
        facts=tuple(one_line(fact, 1000) for fact in facts(comparison)),
        warnings=tuple(one_line(warning, 2000) for warning in comparison.warnings),
        tables=tuple(comparison_tables(comparison)),
        plots=tuple(plot for plot in comparison_plots(comparison) if plot.bars),
        pins=tuple(_pins(comparison)),
    )


def comparison_tables(comparison: Comparison) -> Iterator[PageTable]:
    if comparison.primary:
        yield PageTable(
            id="primary",
            title="Primary metrics",
            columns=("decision", "metric", *_NUMBERS, "p (Holm)", "why"),
            rows=tuple(_primary_row(one) for one in comparison.primary),
            right=(2, 3, 4, 6, 7, 8),
        )
    flips = tuple(
        (
            PageCell(name, "strong"),
            PageCell(str(both.lost.count), "plain", Pick("fails", name)),
            PageCell(str(both.gained.count), "plain", Pick("gained", name)),
        )
        for name, both in comparison.flips.items()
        if both.lost.count + both.gained.count
    )
    if flips:
        yield PageTable(
            id="flips",
            title="Samples that flipped",
            columns=("metric", "lost", "gained"),
            rows=flips,
            right=(1, 2),
            note="Lost: right in A, not in B. Gained: the other way round.",
        )
    yield _table("exploratory", "Exploratory metrics (not tested)", "metric", [
        (PageCell(one.metric), *_cells(one)) for one in comparison.exploratory
        if one.difference is not None
    ])  # fmt: skip
    for title, field in GROUPS.items():
        groups: Mapping[str, Sequence[Compared]] = getattr(comparison, field)
        rows = [
            (PageCell(one_line(f"{group}: {one.metric}", 200)), *_cells(one))
            for group, metrics in groups.items()
            for one in metrics
            if one.difference is not None
        ]
        yield _table(f"by-{title}", f"By {title}", title, rows)


def _table(name: str, title: str, first: str, rows: Sequence[tuple[PageCell, ...]]) -> PageTable:
    return PageTable(
        id=name,
        title=title,
        columns=(first, *_NUMBERS),
        rows=tuple(rows),
        right=_RIGHT,
        folded=True,
    )


def _primary_row(one: Compared) -> tuple[PageCell, ...]:
    decision = PageCell("–", "quiet")
    if one.decision is not None:
        decision = PageCell(one.decision.replace("_", " "), DECISION_STYLE[one.decision])
    return (
        decision,
        PageCell(one.metric, "strong"),
        *_cells(one),
        PageCell(p_text(one.p_adjusted)),
        PageCell(one_line(one.reason or "", 500)),
    )


def _cells(one: Compared) -> tuple[PageCell, ...]:
    return (
        PageCell(rounded(one.a)),
        PageCell(rounded(one.b)),
        PageCell(signed(one.difference)),
        PageCell(interval(one), "quiet"),
        PageCell(str(one.n)),
        PageCell(counted(one)),
    )


def comparison_plots(comparison: Comparison) -> Iterator[Plot]:
    yield Plot(
        id="primary",
        title="Primary metrics, A and B",
        note="Over the samples that both answered.",
        label="metric",
        series=("A", "B"),
        bars=tuple(
            Bar(one.metric, (one.a, one.b)) for one in comparison.primary if one.a is not None
        ),
        top=1.0,
    )
    for title, field in GROUPS.items():
        groups: Mapping[str, Sequence[Compared]] = getattr(comparison, field)
        yield Plot(
            id=f"by-{title}",
            title=f"F1 by {title}, A and B",
            note="Mean lax F1 of the eligible samples.",
            label=title,
            series=("A", "B"),
            bars=tuple(
                Bar(one_line(group, 60), (one.a, one.b), Pick(title, group))
                for group, metrics in groups.items()
                for one in metrics
                if one.metric == F1 and one.a is not None
            ),
            top=1.0,
        )


def _pins(comparison: Comparison) -> Iterator[tuple[str, str]]:
    for side, facts_ in (("A", comparison.a), ("B", comparison.b)):
        for name, value in msgspec.structs.asdict(facts_).items():
            if value is not None:
                yield f"{side} {name}", one_line(str(value), 300)
    for name, check in comparison.comparable.items():
        yield name, check
    yield "margin", f"{comparison.margin:g}"
    if comparison.scorer_version is not None:
        yield "scorer_version", comparison.scorer_version
