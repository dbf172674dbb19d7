"""The page of a run that left an index beside its results: nothing of it is worked out again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from callmark._version import __version__
from callmark.records.report import Report
from callmark.records.results import Result
from callmark.reports.html.overview import bin_of
from callmark.reports.html.page import (
    TRIAL_BYTES,
    PageResult,
    Read,
    Survey,
    harmless,
    listed_row,
    page_sample,
)
from callmark.store.files import decode_result, lines_in, result_at
from callmark.store.run_index import SMALLEST, read_index
from callmark.summary.metrics import CrossScore, Pair
from callmark.summary.run_index import RunIndex, unpack_index


def find_index(results: Path) -> RunIndex | None:
    """What the run left for those who would read all of its lines; None: read them."""
    if results.stat().st_size < SMALLEST:
        return None
    parts = read_index(results, version=__version__)
    return None if parts is None else unpack_index(parts, partial(result_at, results))


# A line has its fields as the page wants them: none of them is read.
_Unread = msgspec.defstruct(
    "_Unread",
    [(name, msgspec.Raw, msgspec.Raw()) for name in PageResult.__struct_fields__],
    omit_defaults=True,
)
_decode_unread = msgspec.json.Decoder(_Unread).decode
_encode = msgspec.json.Encoder().encode
_SAMPLE = b'{"sides":[{"label":"","result":%b}]}'


def samples_as_written(results: Path) -> Iterator[bytes]:
    """`page_sample` of all lines of results that have an index: this version wrote them."""
    for line in lines_in(results):
        encoded = harmless(_SAMPLE % _encode(_decode_unread(line.data)))
        large = len(encoded) > TRIAL_BYTES
        yield page_sample(decode_result(line.data)) if large else encoded


def survey_of(report: Report, cross_score: CrossScore | None, index: RunIndex | None) -> Survey:
    """Without an index, and where not all of its rows can be listed, it has to see the results."""
    if index is not None:
        found = IndexedSurvey(report, cross_score, index)
        if found.rows is not None:
            return found
    return Survey(report, cross_score)


def survey_of_run(results: Path, report: Report, cross_score: CrossScore | None) -> Survey | None:
    """None: the run left no index."""
    index = find_index(results)
    return None if index is None else survey_of(report, cross_score, index)


class IndexedSurvey(Survey):
    """The same of a run that left an index: `add` only says how large each trial is, in the order
    of the results."""

    def __init__(self, report: Report, cross_score: CrossScore | None, index: RunIndex) -> None:
        super().__init__(report, cross_score)
        self._chance_of_run = index.numbers.chance
        # What the rows of many trials take is free again as soon as they are listed.
        self._open = index if self._chance_of_run is None and cross_score is not None else None
        self._trials = index.trials
        self._samples = index.numbers.trials.index.numbers()
        for one in index.listed():
            self._keep(listed_row(one))
            if one.traits.kind == "eligible":
                self._own[bin_of(one.f1 or 0.0)] += 1

    def encoded(
        self, read: Read, samples: Iterable[bytes] | None
    ) -> Iterator[tuple[Result | None, bytes]]:
        if samples is None or self._open is not None:
            return super().encoded(read, samples)
        return ((None, sample) for sample in samples)

    def add(self, result: Result | None, size: int = 0) -> None:
        if self._open is not None:
            self._add_to_chance(result)
        if self.rows is not None:
            at = len(self._candidates)
            row = self.rows[at]
            self._candidates.offer(row.sample_id, row.trial, row=row.cost, size=size)

    def _add_to_chance(self, result: Result | None) -> None:
        if result is not None and result.scores is not None and result.scores.kind == "eligible":
            self._chance.add(result)

    def list_all(self, line_at: Callable[[int], Result]) -> None:
        """Nobody asks how large the trials are: all of them are listed."""
        if self._open is not None:
            for offset in self._open.chance_offsets():
                self._chance.add(line_at(offset))

    def _pairs(self, cross_score: CrossScore) -> Sequence[Pair]:
        known = self._chance_of_run
        return super()._pairs(cross_score) if known is None else known
