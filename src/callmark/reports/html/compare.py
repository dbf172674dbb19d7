"""The page of a comparison, and of a probe: both sides, and what flipped between them. Of several
runs: which are worse than the first, each metric drawn and as a table."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, BinaryIO

import msgspec

from callmark.compare.records import Compared, Comparison, Listed, MeasuredRun, RunMatrix
from callmark.records.report import Metric
from callmark.records.results import Result
from callmark.reports.compare import (
    BY_ITSELF,
    DECISION_STYLE,
    GROUPS,
    compared_of,
    count_text,
    facts,
    headline,
    ids,
    metrics_of,
    names_of,
    p_text,
    run_facts,
    shared_facts,
    sign_text,
    signed_interval,
)
from callmark.reports.html.overview import (
    MADE_BY,
    Bar,
    PageCell,
    PageHead,
    PageTable,
    Pick,
    Plot,
    left_out,
    metric_cell,
)
from callmark.reports.html.page import (
    NOT_IN_THE_FILE,
    Candidates,
    IndexBuilder,
    PageFile,
    Row,
    TrialChoice,
    excerpt_of,
    page_json,
    page_result,
    traits_facets,
)
from callmark.reports.layout import Style, one_line, round_text
from callmark.reports.terminal import interval
from callmark.store.files import run_names
from callmark.summary.failing import list_trial
from callmark.summary.metrics import in_words, label_of, sentence_of

LABELS: dict[str, str] = {
    "fails": "lost",
    "gained": "gained",
    "both": "wrong on both sides",
    "status": "answer",
    "like": "what went wrong in B",
    "kind": "kind",
    "tool": "tool",
    "locale": "locale",
    "slice": "slice",
}
NUMBERS = ("F1 A", "F1 B")
SEED = 42
Key = tuple[str, int]


class Flipped(msgspec.Struct, frozen=True):
    """The metrics that each sample lost and gained, and those that it misses on both sides, as far
    as the comparison lists them."""

    lost: Mapping[str, tuple[str, ...]]
    gained: Mapping[str, tuple[str, ...]]
    neither: Mapping[str, tuple[str, ...]]


def find_flips(comparison: Comparison) -> Flipped:
    lost: dict[str, tuple[str, ...]] = {}
    gained: dict[str, tuple[str, ...]] = {}
    neither: dict[str, tuple[str, ...]] = {}
    for metric, both in comparison.flips.items():
        for listed, found in ((both.lost, lost), (both.gained, gained), (both.neither, neither)):
            for sample_id in listed.sample_ids:
                found[sample_id] = (*found.get(sample_id, ()), metric)
    return Flipped(lost, gained, neither)


class _Kept(msgspec.Struct, frozen=True):
    start: int
    size: int
    lax: float | None
    answer: bytes


@contextmanager
def pairs_of(
    comparison: Comparison, a: Iterable[Result], b: Iterable[Result]
) -> Iterator[PagePairs]:
    """`a` and `b`: the results of both sides, as they were compared; each is read once."""
    with tempfile.TemporaryFile() as of_a, tempfile.TemporaryFile() as of_b:
        pairs = PagePairs(find_flips(comparison), (of_a, of_b))
        pairs.read(a, b)
        yield pairs


class PagePairs:
    """Both sides are read once; what of them is shown waits in temporary files until it is known
    what fits."""

    def __init__(self, flips: Flipped, spools: tuple[IO[bytes], IO[bytes]]) -> None:
        self._flips = flips
        self._spools = spools
        self._of_a: dict[Key, _Kept] = {}
        self._pairs: list[tuple[_Kept, _Kept]] = []
        self._rows: list[Row] = []
        self._candidates = Candidates(SEED)

    def read(self, a: Iterable[Result], b: Iterable[Result]) -> None:
        for result in a:
            self._of_a[result.sample_id, result.trial] = self._kept(0, result)
        for result in b:
            before = self._of_a.pop((result.sample_id, result.trial), None)
            if before is None:
                continue
            after = self._kept(1, result)
            row = self._row(result, before, after)
            self._candidates.offer(
                result.sample_id, result.trial, row=row.cost, size=before.size + after.size + 60
            )
            self._pairs.append((before, after))
            self._rows.append(row)

    def write(self, page: PageFile, labels: tuple[str, str]) -> None:
        """The chosen samples, and the index. The head must have been written."""
        choice = self._choice()
        index = IndexBuilder(LABELS, NUMBERS)
        for at, row in enumerate(self._rows):
            place = NOT_IN_THE_FILE
            if choice.full[at]:
                place = page.sample(self._encoded(self._pairs[at], labels))
            if choice.rows[at]:
                index.add(row, place)
        page.index(index.built())

    def counts(self) -> tuple[int, int, int]:
        return self._choice().counts()

    def _choice(self) -> TrialChoice:
        tiers = bytearray(map(self._tier, self._rows))
        return self._candidates.chosen(tiers)

    def _tier(self, row: Row) -> int:
        if row.facets["fails"]:
            return 0
        return 1 if row.facets["gained"] else 2 + ("same answer" in row.facets["status"])

    def _kept(self, side: int, result: Result) -> _Kept:
        spool = self._spools[side]
        data = page_json(page_result(result))
        start = spool.tell()
        spool.write(data)
        scores = result.scores
        eligible = scores is not None and scores.kind == "eligible"
        lax = scores.lax.f1 if scores is not None and eligible else None
        answer = hashlib.sha256(result.model_output.encode("utf-8", "surrogatepass")).digest()
        return _Kept(start, len(data), lax, answer)

    def _row(self, result: Result, before: _Kept, after: _Kept) -> Row:
        same = before.answer == after.answer
        listed = list_trial(result)
        facets = traits_facets(listed.traits, self._flips.lost.get(result.sample_id, ()))
        gained = self._flips.gained.get(result.sample_id, ())
        both = self._flips.neither.get(result.sample_id, ())
        answer = "same answer" if same else "another answer"
        status = (answer, "wrong on both sides") if both else (answer,)
        return Row(
            sample_id=result.sample_id,
            trial=result.trial,
            text=excerpt_of(listed),
            facets={**facets, "gained": gained, "both": both, "status": status},
            numbers=(before.lax, after.lax),
        )

    def _encoded(self, pair: tuple[_Kept, _Kept], labels: tuple[str, str]) -> bytes:
        sides = [
            b'{"label":%s,"result":%s}' % (page_json(label), _read(spool, kept))
            for spool, kept, label in zip(self._spools, pair, labels, strict=True)
        ]
        return b'{"sides":[%s]}' % b",".join(sides)


def _read(spool: IO[bytes], kept: _Kept) -> bytes:
    spool.seek(kept.start)
    return spool.read(kept.size)


F1 = "integration_f1_macro_lax"
_NUMBERS = ("A", "B", "B − A", "95 % interval", "n", "worse / better")
_RIGHT = (1, 2, 3, 5, 6)


def write_compare_page(
    stream: BinaryIO, comparison: Comparison, a: Iterable[Result], b: Iterable[Result]
) -> None:
    """`a` and `b`: the results of both sides, as they were compared; each is read once."""
    names = run_names((comparison.a.path, comparison.b.path))
    labels = (f"A · {names[0]}", f"B · {names[1]}")
    name = one_line(" → ".join(names), 200)
    head = comparison_head(comparison, name)
    with (
        pairs_of(comparison, a, b) as pairs,
        PageFile(stream, name) as page,
    ):
        page.head(msgspec.structs.replace(head, left_out=left_out(*pairs.counts())))
        pairs.write(page, labels)


def comparison_head(comparison: Comparison, name: str) -> PageHead:
    return PageHead(
        kind="compare",
        title=name,
        made_by=MADE_BY,
        word=comparison.decision.replace("_", " "),
        style=DECISION_STYLE[comparison.decision],
        reason=one_line(in_words(comparison.decision_reason), 2000),
        facts=tuple(one_line(fact, 1000) for fact in facts(comparison)),
        warnings=tuple(one_line(warning, 2000) for warning in comparison.warnings),
        tables=tuple(comparison_tables(comparison)),
        plots=tuple(plot for plot in comparison_plots(comparison) if plot.bars),
        pins=tuple(_pins(comparison)),
    )


def comparison_tables(comparison: Comparison) -> Iterator[PageTable]:
    flips = tuple(
        (
            metric_cell(name, "strong"),
            _counted(both.lost, "fails", name, "bad"),
            _counted(both.gained, "gained", name, "good"),
            _counted(both.neither, "both", name, "warn"),
        )
        for name, both in comparison.flips.items()
        if both.lost.count + both.gained.count + both.neither.count
    )
    if flips:
        yield PageTable(
            id="flips",
            title="Samples that changed",
            columns=("metric", "lost", "gained", "wrong on both sides"),
            rows=flips,
            right=(1, 2, 3),
            note="Lost: right in A, not in B. Gained: the other way round.",
        )
    if comparison.primary:
        yield PageTable(
            id="primary",
            title="What the decision rests on",
            columns=("decision", "metric", "A", "B", "B − A", "n", "worse / better", "p (Holm)"),
            rows=tuple(_primary_row(one) for one in comparison.primary),
            right=(2, 3, 4, 5, 6, 7),
            note="Below each difference stands its 95 % interval.",
        )
    yield _table("exploratory", "Exploratory metrics (not tested)", "metric", [
        (metric_cell(one.metric), *_cells(one)) for one in comparison.exploratory
        if one.difference is not None
    ])  # fmt: skip
    for title, field in GROUPS.items():
        groups: Mapping[str, Sequence[Compared]] = getattr(comparison, field)
        rows = [
            (PageCell(one_line(f"{group}: {label_of(one.metric)}", 200)), *_cells(one))
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


def _counted(listed: Listed, facet: str, metric: str, style: Style) -> PageCell:
    """A number that leads to its samples; none leads nowhere."""
    if not listed.count:
        return PageCell("0", "quiet")
    return PageCell(str(listed.count), style, Pick(facet, metric))


def _primary_row(one: Compared) -> tuple[PageCell, ...]:
    decision = PageCell("–", "quiet")
    if one.decision is not None:
        decision = PageCell(one.decision.replace("_", " "), DECISION_STYLE[one.decision])
    return (
        decision,
        PageCell(
            one_line(label_of(one.metric), 200),
            "strong",
            note=one_line(in_words(one.reason or "") or sentence_of(one.metric), 500),
            title=one.metric,
        ),
        PageCell(round_text(one.a)),
        PageCell(round_text(one.b)),
        PageCell(sign_text(one.difference), note=signed_interval(one)),
        PageCell(str(one.n)),
        PageCell(count_text(one)),
        PageCell(p_text(one.p_adjusted)),
    )


def _cells(one: Compared) -> tuple[PageCell, ...]:
    return (
        PageCell(round_text(one.a)),
        PageCell(round_text(one.b)),
        PageCell(sign_text(one.difference)),
        PageCell(signed_interval(one), "quiet"),
        PageCell(str(one.n)),
        PageCell(count_text(one)),
    )


def comparison_plots(comparison: Comparison) -> Iterator[Plot]:
    yield Plot(
        id="primary",
        title="Primary metrics, A and B",
        note="Over the samples that both answered.",
        label="metric",
        series=("A", "B"),
        bars=tuple(
            Bar(label_of(one.metric), (one.a, one.b))
            for one in comparison.primary
            if one.a is not None
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
            if value is not None and name != "scored_again":  # said with the pairs
                yield f"{side} {name}", one_line(str(value), 300)
    for name, check in comparison.comparable.items():
        yield name, check
    yield "margin", f"{comparison.margin:g}"
    if comparison.scorer_version is not None:
        yield "scorer_version", comparison.scorer_version


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
        pins=tuple(_run_pins(matrix)),
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


def _run_pins(matrix: RunMatrix) -> Iterator[tuple[str, str]]:
    for name, run in zip(names_of(matrix), matrix.runs, strict=True):
        for key, value in msgspec.structs.asdict(run.facts).items():
            if value is not None and key != "scored_again":
                yield f"{name} {key}", one_line(str(value), 300)
    yield "margin", f"{matrix.comparisons[0].margin:g}"
