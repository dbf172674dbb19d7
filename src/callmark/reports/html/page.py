"""The page of one run: read twice, so that nothing but numbers is kept of a big one."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

import msgspec

from callmark.records.jsontext import Json
from callmark.records.report import GateRule, Report
from callmark.records.results import ByteRange, Result, Scores
from callmark.records.samples import Extractor, ExtractorBy
from callmark.records.trace import TraceEntry, UserTurn
from callmark.reports.finished_run import FinishedRun
from callmark.reports.html.file import PageFile, page_json
from callmark.reports.html.index import (
    NOT_IN_THE_FILE,
    Candidates,
    IndexBuilder,
    TrialChoice,
    row_of,
)
from callmark.reports.html.overview import Distribution, run_head
from callmark.store.lines import read_results
from callmark.summary.chance import ChanceSample, CrossScore
from callmark.summary.failing import failing_rows
from callmark.summary.gates import is_measure
from callmark.summary.metrics import Subset
from callmark.summary.summary import DEFAULT_SEED
from callmark.summary.trials import Trials

Read = Callable[[], Iterator[Result]]
BINS = 10


class PageResult(msgspec.Struct, frozen=True, kw_only=True):
    """One trial as the page shows it: a line of results without what is the same in all lines."""

    sample_id: str
    trial: int
    prompt: str | list[dict[str, Json]]
    metadata: dict[str, Json]
    said: tuple[UserTurn, ...]
    model_output: str
    turns: tuple[ByteRange, ...] | None
    reasoning: str
    tool_trace: tuple[TraceEntry, ...]
    span_extractor: Extractor
    span_extractor_by: ExtractorBy | None
    scores: Scores | None
    status: str
    stop: str
    error: str | None


class PageSide(msgspec.Struct, frozen=True):
    label: str
    result: PageResult


class PageSample(msgspec.Struct, frozen=True):
    """What one row of the index leads to: one trial, or the same one of two runs."""

    sides: tuple[PageSide, ...]


def page_result(result: Result) -> PageResult:
    return PageResult(**{name: getattr(result, name) for name in PageResult.__struct_fields__})


def page_sample(result: Result) -> bytes:
    return page_json(PageSample((PageSide("", page_result(result)),)))


def write_html(finished: FinishedRun, stream: BinaryIO) -> None:
    """Without trials the page shows the report alone."""
    results = finished.results
    write_run_page(
        stream,
        finished.report,
        lambda: iter(()) if results is None else read_results(results),
        name="report" if results is None else str(results),
        cross_score=finished.cross_score,
    )


def write_run_page(
    stream: BinaryIO,
    report: Report,
    read: Read,
    *,
    name: str,
    cross_score: CrossScore | None = None,
) -> None:
    """`read` opens the results, each time anew. `cross_score` gives the distribution of chance."""
    survey = Survey(report, cross_score)
    for result in read():
        survey.add(result)
    short, choice = survey.falls_short(), survey.choice()
    has_measures = any(map(is_measure, report.metrics))
    with PageFile(stream, name, has_measures=has_measures) as page:
        page.head(run_head(report, name, survey.distribution(), choice.counts()))
        index = IndexBuilder()
        # The second reading: what goes into the file in full could be chosen only after all were
        # seen.
        for at, result in enumerate(read()):
            names = short.get(result.index, ())
            place = NOT_IN_THE_FILE
            if choice.full[at]:
                place = page.sample(page_sample(result))
            if choice.rows[at]:
                index.add(row_of(result, names, report.warning_gates), place)
        page.index(index.built())


class Survey:
    """The first look at the results: which samples fall short, and how large all of it is."""

    def __init__(self, report: Report, cross_score: CrossScore | None) -> None:
        self._report = report
        self._cross_score = cross_score
        self._seed = DEFAULT_SEED if report.header.seed is None else report.header.seed
        self._candidates = Candidates(self._seed)
        self._trials = Trials()
        self._samples: array[int] = array("Q")
        self._lost: set[int] = set()
        self._own: Counter[int] = Counter()
        self._chance = ChanceSample()
        self._short: dict[int, tuple[str, ...]] | None = None

    def add(self, result: Result) -> None:
        self._trials.add(result)
        row = row_of(result)
        size = len(page_sample(result)) + 1
        self._candidates.offer(result.sample_id, result.trial, row=row.cost, size=size)
        self._samples.append(result.index)
        scores = result.scores
        if scores is None or result.status == "error":
            self._lost.add(len(self._samples) - 1)
        elif scores.kind == "eligible":
            self._own[bin_of(scores.lax.f1)] += 1
            if self._cross_score is not None:
                self._chance.add(result)

    def falls_short(self) -> dict[int, tuple[str, ...]]:
        """By the place of a sample in its dataset: the gates that it falls short of."""
        if self._short is None:
            self._short = falling_short(self._trials, self._report.header.gates, self._seed)
        return self._short

    def choice(self) -> TrialChoice:
        """First what failed or was lost, then what falls short of a gate that passed."""
        failed = {outcome.name for outcome in self._report.gates if outcome.status == "fail"}
        short = self.falls_short()
        tiers = bytearray(
            0
            if at in self._lost or not failed.isdisjoint(short.get(sample, ()))
            else 1 + (sample not in short)
            for at, sample in enumerate(self._samples)
        )
        return self._candidates.chosen(tiers)

    def distribution(self) -> Distribution:
        chance: Counter[int] | None = None
        if self._cross_score is not None:
            pairs = self._chance.pairs(self._cross_score)
            chance = Counter(bin_of(pair.chance) for pair in pairs)
        return Distribution(_shares(self._own), None if chance is None else _shares(chance))


def falling_short(
    trials: Trials, rules: Mapping[str, GateRule], seed: int
) -> dict[int, tuple[str, ...]]:
    """By the place of a sample in its dataset: the gates, out of these, that it falls short of."""
    found: dict[int, list[str]] = {}
    samples = trials.samples()
    whole = Subset(samples, range(len(samples)), seed)
    for name, rows in failing_rows(whole, rules):
        if name in rules:
            for row in rows:
                found.setdefault(samples.index_at(row), []).append(name)
    return {place: tuple(names) for place, names in found.items()}


def bin_of(f1: float) -> int:
    """0 and 1 have a bin of their own: most answers are there."""
    if f1 <= 0:
        return 0
    return BINS + 1 if f1 >= 1 else 1 + min(BINS - 1, int(f1 * BINS))


def _shares(counts: Counter[int]) -> tuple[float, ...]:
    total = sum(counts.values())
    return tuple(counts[at] / total if total else 0.0 for at in range(BINS + 2))
