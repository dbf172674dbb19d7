"""One side of a comparison: a stream of results as columns, some 60 bytes and an id per trial."""

from __future__ import annotations

import operator
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise

import msgspec

from callmark.compare.records import LISTED, Check, Listed, PairCounts, SideFacts
from callmark.errors import BadInput
from callmark.records.jsontext import Json
from callmark.records.report import ReportHeader
from callmark.records.results import MARKED, UNKNOWN, Better, Result, ScorerMark, marks_of
from callmark.stats.columns import KeyIndex, TrialKeys
from callmark.summary.metrics import ChanceSample, CrossScore, Pair
from callmark.summary.repeats import pass_counts
from callmark.summary.run_index import RunIndex
from callmark.summary.summary import Inputs
from callmark.summary.trials import Samples, Trials

SPAN_CAP = "integration_span_cap"
COMPARED_INPUTS = ("dataset_sha256", "tool_registry_sha256", "fixtures_sha256")
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

    def column(self, name: str) -> array[int]:
        return self._columns[name]


class Side:
    """Takes results one by one, in any order."""

    def __init__(
        self, path: str, cross_score: CrossScore | None = None, *, scored_again: bool = False
    ) -> None:
        self._path = path
        self._scored_again = scored_again
        self._cross_score = cross_score
        self._trials = Trials()
        self._inputs = Inputs()
        self._chance = ChanceSample()
        self._pairs: dict[str, Pair] | None = None
        self._arrivals: array[int] = array("I")
        self._hashes: dict[str, array[int]] = {name: array("Q") for name in MARKED}
        self._lost = TrialKeys()
        self._caps: set[int] = set()
        self.scorers: dict[ScorerMark, None] = {}  # of plug-ins, as the lines name them
        self._made: Samples | None = None

    def add(self, result: Result) -> None:
        self._trials.add(result)
        self._inputs.add(result)
        self._caps.add(result.scoring.integration_span_cap)
        self.scorers.update(dict.fromkeys(result.scoring.added))
        if result.scores is None or result.status == "error":
            self._lost.add(result.index, result.trial, result.sample_id, None)
            return
        self._arrivals.append(result.index)
        for column, mark in zip(self._hashes.values(), marks_of(result), strict=True):
            column.append(mark)
        if result.scores.kind == "eligible" and self._cross_score is not None:
            self._chance.add(result)

    def take(self, index: RunIndex, line_at: Callable[[int], Result]) -> None:
        """All results of a run at once, as its index tells them. `line_at`: the one that begins at
        this byte."""
        numbers = index.numbers
        self._trials = index.trials
        self._inputs = Inputs((numbers.fingerprints, numbers.decoding), numbers.conflicts)
        self._caps = {scoring.integration_span_cap for scoring in numbers.scorings}
        self.scorers = dict.fromkeys(mark for one in numbers.scorings for mark in one.added)
        self._arrivals = numbers.trials.index.numbers()
        self._hashes = index.marks
        if self._cross_score is not None and numbers.chance is not None:
            self._pairs = {pair.sample_id: pair for pair in numbers.chance}
        elif self._cross_score is not None:
            for offset in index.chance_offsets():
                self._chance.add(line_at(offset))

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
            scored_again=self._scored_again,
        )

    def passes(self) -> tuple[array[int], array[int]]:
        """Of each sample, how many trials pass, and how many there are."""
        passed, tried = array("I"), array("I")
        for hits, total in pass_counts(self._trials, self.samples):
            passed.append(hits)
            tried.append(total)
        return passed, tried

    def marks(self) -> Marks:
        return Marks(self.samples.indexes(), self._arrivals, self._hashes)

    def hurt(self) -> bytearray:
        """One byte per sample: whether a trial of it ended in an error."""
        indexes = self.samples.indexes()
        hurt = bytearray(len(indexes))
        for index in self._lost.index:
            place = bisect_left(indexes, index)
            if place < len(indexes) and indexes[place] == index:
                hurt[place] = True
        return hurt

    def lost_only(self) -> Iterator[str]:
        """The samples of which every trial ended in an error."""
        indexes = self.samples.indexes()
        seen: set[int] = set()
        for row, index in enumerate(self._lost.index):
            place = bisect_left(indexes, index)
            is_scored = place < len(indexes) and indexes[place] == index
            if not is_scored and index not in seen:
                seen.add(index)
                yield self._lost.id_at(row)

    def chance_pairs(self) -> dict[str, Pair]:
        if self._pairs is None and self._cross_score is not None:
            pairs = self._chance.pairs(self._cross_score)
            self._pairs = {pair.sample_id: pair for pair in pairs}
        return self._pairs or {}


def check_inputs(a: Side, b: Side) -> dict[str, Check]:
    """What either side does not know is unchecked, never equal."""
    disagree = a.disagreeing | b.disagreeing
    mine, theirs = a.inputs(), b.inputs()
    return {
        name: "different" if name in disagree else check_values(mine[name], theirs[name])
        for name in mine
    }


def common_measures(a: Side, b: Side) -> dict[str, Better]:
    """The measures of plug-ins that the same scorer gave on both sides, by the whole name."""
    both = (mark for mark in a.scorers if mark in b.scorers)
    others = other_scorers(a, b)
    return {
        name: way
        for mark in sorted(both, key=lambda mark: mark.name)
        if mark.name not in others
        for name, way in mark.named().items()
    }


def other_scorers(a: Side, b: Side) -> list[str]:
    """The scorers of plug-ins that are not the same on both sides, or not in all lines of one."""
    marks = {**a.scorers, **b.scorers}
    known = [(mark in a.scorers) and (mark in b.scorers) for mark in marks]
    return sorted({mark.name for mark, in_both in zip(marks, known, strict=True) if not in_both})


def check_values(one: Json, other: Json) -> Check:
    if one is None or other is None:
        return "unchecked"
    return "equal" if one == other else "different"


MOST_AT_ONCE = 250_000  # ids that are held against each other at once
_ABSENT = (1 << 32) - 1  # B does not have the sample
_LOST = (1 << 32) - 2  # B has no score for it


class Matched(msgspec.Struct, frozen=True):
    """`positions` of A that have a partner, in order; `partners[at]` is the position in B of the
    sample at position `at` of A, and `alike[at]` whether both answers are the same. `other_…`:
    pairs whose sample, tools or way of being read is not the same on both sides."""

    positions: array[int]
    partners: array[int]
    alike: bytearray
    counts: PairCounts
    other_items: Listed
    other_tools: Listed
    other_extractor: Listed


class _List:
    """Counts all, keeps the first."""

    def __init__(self) -> None:
        self.count = 0
        self._ids: list[str] = []

    def add(self, sample_id: str) -> None:
        self.count += 1
        if len(self._ids) < LISTED:
            self._ids.append(sample_id)

    def listed(self) -> Listed:
        return Listed(self.count, tuple(self._ids))


def match(
    a: Side, b: Side, *, leave_out: Sequence[str] = (), quarantined: Collection[str] = ()
) -> Matched:
    """Pair by sample id. `leave_out`: of `item`, `tools`, `fixtures`, those that must agree for a
    sample to be compared; one that does not is `changed`. `quarantined` samples are no pairs, and
    nobody misses them."""
    matching = _Matching(a, b, leave_out, frozenset(quarantined))
    matching.look_up()
    matching.walk()
    return matching.result()


class _Matching:
    def __init__(
        self, a: Side, b: Side, leave_out: Sequence[str], quarantined: frozenset[str]
    ) -> None:
        self._a, self._b = a.samples, b.samples
        self._leave_out = leave_out
        self._aside, self._quarantined = quarantined, _List()
        self._lost_a, self._lost_b = dict.fromkeys(a.lost_only()), list(b.lost_only())
        self._hurt_a, self._hurt_b = a.hurt(), b.hurt()
        self._marks_a, self._marks_b = a.marks(), b.marks()
        self._partners = array("I", [_ABSENT]) * len(self._a)
        self._positions = array("I")
        self._alike = bytearray(len(self._a))
        self._removed, self._added, self._dropped = _List(), _List(), _List()
        self._changed, self._changed_in = _List(), Counter[str]()
        self._items, self._tools, self._extractor = _List(), _List(), _List()

    def look_up(self) -> None:
        """Every sample of B finds its place in A."""
        if self._has_same_samples():
            self._partners = array("I", range(len(self._a)))
            return
        known = KeyIndex(numbers_only=True)
        for at in range(len(self._a)):
            sample_id = self._a.id_at(at)
            if known.setdefault(sample_id, at).value != at:
                raise _twice(sample_id)
        for at in range(len(self._b)):
            self._place(self._b.id_at(at), at, known)
        for sample_id in self._lost_b:
            self._place(sample_id, _LOST, known)

    def _has_same_samples(self) -> bool:
        """Whether both sides have the same samples in the same order, as they mostly do; False:
        it has to be looked at more closely."""
        if self._lost_a or self._lost_b or self._aside or len(self._a) != len(self._b):
            return False
        if len(self._a) > MOST_AT_ONCE:
            return False
        mine = self._a.ids()
        return mine == self._b.ids() and len(set(mine)) == len(mine)

    def _place(self, sample_id: str, at: int, known: KeyIndex) -> None:
        if sample_id in self._aside:
            return
        if sample_id in self._lost_a:
            del self._lost_a[sample_id]
            self._dropped.add(sample_id)
            return
        mine = known.setdefault(sample_id, _ABSENT).value
        if mine == _ABSENT:
            self._added.add(sample_id)
        elif self._partners[mine] != _ABSENT:
            raise _twice(sample_id)
        else:
            self._partners[mine] = at

    def walk(self) -> None:
        """Every sample of A, in order: a pair, or why not."""
        if self._is_all_alike():
            self._positions = array("I", range(len(self._a)))
            answers = (self._marks_a.column(ANSWER), self._marks_b.column(ANSWER))
            self._alike = bytearray(map(operator.eq, *answers))
            return
        for at, partner in enumerate(self._partners):
            if self._aside and self._a.id_at(at) in self._aside:
                self._quarantined.add(self._a.id_at(at))
            elif partner == _ABSENT:
                self._removed.add(self._a.id_at(at))
            # A sample that lost one of its trials would be averaged over fewer than its partner.
            elif partner == _LOST or self._hurt_a[at] or self._hurt_b[partner]:
                self._dropped.add(self._a.id_at(at))
            else:
                self._compare(at, partner)
        for sample_id in self._lost_a:
            if sample_id not in self._aside:
                self._removed.add(sample_id)

    def _is_all_alike(self) -> bool:
        """Whether every sample of A is a pair with the one at the same place of B, and nothing of
        it is to be told; False: it has to be looked at more closely."""
        return (
            not (self._aside or self._lost_a or any(self._hurt_a) or any(self._hurt_b))
            and self._partners == array("I", range(len(self._b)))
            and all(
                self._marks_a.column(name) == self._marks_b.column(name)
                for name in {"item", "tools", *self._leave_out}
            )
            and all(map(operator.eq, self._a.column("marker"), self._b.column("marker")))
        )

    def _compare(self, at: int, partner: int) -> None:
        differing = [
            name
            for name in ("item", "tools", "fixtures")
            if _differ(self._marks_a.at(name, at), self._marks_b.at(name, partner))
        ]
        left_out = [name for name in differing if name in self._leave_out]
        if left_out:
            self._changed.add(self._a.id_at(at))
            self._changed_in.update(left_out)
            return
        self._positions.append(at)
        answers = self._marks_a.at(ANSWER, at), self._marks_b.at(ANSWER, partner)
        self._alike[at] = answers[0] == answers[1]
        if "item" in differing:
            self._items.add(self._a.id_at(at))
        if "tools" in differing:
            self._tools.add(self._a.id_at(at))
        marker = self._a.column("marker")[at], self._b.column("marker")[partner]
        if marker[0] != marker[1]:
            self._extractor.add(self._a.id_at(at))

    def result(self) -> Matched:
        counts = PairCounts(
            paired=len(self._positions),
            dropped=self._dropped.listed(),
            removed=self._removed.listed(),
            added=self._added.listed(),
            changed=self._changed.listed(),
            changed_in=dict(sorted(self._changed_in.items())),
            quarantined=self._quarantined.listed(),
        )
        return Matched(
            self._positions,
            self._partners,
            self._alike,
            counts,
            self._items.listed(),
            self._tools.listed(),
            self._extractor.listed(),
        )


def _differ(one: int, other: int) -> bool:
    # What is not known cannot accuse anybody; that it is unchecked is said in a warning.
    return UNKNOWN not in (one, other) and one != other


def _twice(sample_id: str) -> BadInput:
    return BadInput(f"sample {sample_id!r}: occurs twice in one run; each trial must be given once")
