"""One side of a comparison: a stream of results as columns, some 60 bytes and an id per trial."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from callmark.core.chance import ChanceSample, CrossScore, Pair
from callmark.core.compare_records import Check, SideFacts
from callmark.core.inputs import Inputs
from callmark.core.jsontext import Json
from callmark.core.report import ReportHeader
from callmark.core.results import Result
from callmark.core.trial_keys import TrialKeys
from callmark.core.trials import Samples, Trials

UNKNOWN = 0
SPAN_CAP = "integration_span_cap"
COMPARED_INPUTS = ("dataset_sha256", "tool_registry_sha256", "fixtures_sha256")
# What of a sample must be the same on both sides: name in a report -> field of a result.
_HASHES = {
    "item": "item_sha256",
    "tools": "offered_tools_sha256",
    "fixtures": "used_fixtures_sha256",
}
ANSWER = "answer"
_OF_EACH_TRIAL = frozenset({"fixtures", ANSWER})  # the rest is the same in all trials of a sample
_BITS = (1 << 64) - 1


class Marks:
    """64 bits of each hash of each sample, in the order of the samples. 0: not known."""

    def __init__(
        self, indexes: array[int], arrivals: array[int], hashes: dict[str, array[int]]
    ) -> None:
        in_order = all(left < right for left, right in pairwise(arrivals))
        if in_order and len(arrivals) == len(indexes):
            self._columns = hashes
            return
        self._columns = {name: array("Q", bytes(8 * len(indexes))) for name in hashes}
        places = [bisect_left(indexes, index) for index in arrivals]
        for name, marks in hashes.items():
            column = self._columns[name]
            for place, mark in zip(places, marks, strict=True):
                if name in _OF_EACH_TRIAL:  # all of them together, in any order
                    mark = (column[place] + mark) & _BITS
                column[place] = mark

    def at(self, name: str, position: int) -> int:
        return self._columns[name][position]


class Side:
    """Takes results one by one, in any order."""

    def __init__(self, path: str, cross_score: CrossScore | None = None) -> None:
        self._path = path
        self._cross_score = cross_score
        self._trials = Trials()
        self._inputs = Inputs()
        self._chance = ChanceSample()
        self._arrivals: array[int] = array("I")
        names = (*_HASHES, ANSWER)
        self._hashes: dict[str, array[int]] = {name: array("Q") for name in names}
        self._lost = TrialKeys()
        self._caps: set[int] = set()
        self._made: Samples | None = None

    def add(self, result: Result) -> None:
        self._trials.add(result)
        self._inputs.add(result)
        self._caps.add(result.scoring.integration_span_cap)
        if result.scores is None or result.status == "error":
            self._lost.add(result, None)
            return
        self._arrivals.append(result.index)
        for name, field in _HASHES.items():
            self._hashes[name].append(_mark(getattr(result, field)))
        self._hashes[ANSWER].append(_mark(_answer_of(result)))
        if result.scores.kind == "eligible" and self._cross_score is not None:
            self._chance.add(result)

    @property
    def samples(self) -> Samples:
        if self._made is None:
            self._made = self._trials.samples()
        return self._made

    @property
    def header(self) -> ReportHeader:
        """What all results agree in."""
        return self._inputs.filled(ReportHeader(), 1, ())

    def inputs(self) -> dict[str, Json]:
        """What comparable runs have in common. None: not known, or not the same in all results."""
        header = self.header
        cap = next(iter(self._caps)) if len(self._caps) == 1 else None
        found = {name: getattr(header, name) for name in COMPARED_INPUTS}
        return {**found, SPAN_CAP: cap}

    @property
    def disagreeing(self) -> frozenset[str]:
        """The inputs that are not the same in all results."""
        several = {SPAN_CAP} if len(self._caps) > 1 else set()
        return self._inputs.conflicts | several

    def facts(self) -> SideFacts:
        header = self.header
        lost_only = sum(1 for _ in self.lost_only())
        return SideFacts(
            path=self._path,
            samples=len(self.samples) + lost_only,
            trials=self._trials.scored + self._trials.lost,
            errors=self._trials.lost,
            model_fingerprint=header.model_fingerprint,
            runner_fingerprint=header.runner_fingerprint,
        )

    def marks(self) -> Marks:
        return Marks(self._indexes(), self._arrivals, self._hashes)

    def hurt(self) -> bytearray:
        """One byte per sample: whether a trial of it ended in an error."""
        indexes = self._indexes()
        hurt = bytearray(len(indexes))
        for index in self._lost.index:
            place = bisect_left(indexes, index)
            if place < len(indexes) and indexes[place] == index:
                hurt[place] = True
        return hurt

    def lost_only(self) -> Iterator[str]:
        """The samples of which every trial ended in an error."""
        indexes = self._indexes()
        seen: set[int] = set()
        for row, index in enumerate(self._lost.index):
            place = bisect_left(indexes, index)
            is_scored = place < len(indexes) and indexes[place] == index
            if not is_scored and index not in seen:
                seen.add(index)
                yield self._lost.id_at(row)

    def _indexes(self) -> array[int]:
        return array("I", map(self.samples.index_at, range(len(self.samples))))

    def chance_pairs(self) -> dict[str, Pair]:
        if self._cross_score is None:
            return {}
        return {pair.sample_id: pair for pair in self._chance.pairs(self._cross_score)}


def check_inputs(a: Side, b: Side) -> dict[str, Check]:
    """What either side does not know is unchecked, never equal."""
    disagree = a.disagreeing | b.disagreeing
    mine, theirs = a.inputs(), b.inputs()
    return {
        name: "different" if name in disagree else check_values(mine[name], theirs[name])
        for name in mine
    }


def check_values(one: Json, other: Json) -> Check:
    if one is None or other is None:
        return "unchecked"
    return "equal" if one == other else "different"


def _answer_of(result: Result) -> str:
    """All that the model did: what it said and which calls it made."""
    calls = [(entry.turn, entry.name, entry.arguments, entry.raw) for entry in result.tool_trace]
    return repr((result.model_output, calls))


def _mark(text: str) -> int:
    if not text:
        return UNKNOWN
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") | 1
