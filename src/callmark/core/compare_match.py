"""Which samples of two sides are pairs, which are not, and why."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence

import msgspec

from callmark.core.compare_records import LISTED, Listed, PairCounts
from callmark.core.compare_side import ANSWER, UNKNOWN, Side
from callmark.core.numbering import Numbering
from callmark.errors import BadInput

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


def match(a: Side, b: Side, *, leave_out: Sequence[str] = ()) -> Matched:
    """Pair by sample id. `leave_out`: of `item`, `tools`, `fixtures`, those that must agree for a
    sample to be compared; one that does not is `changed`."""
    matching = _Matching(a, b, leave_out)
    matching.look_up()
    matching.walk()
    return matching.result()


class _Matching:
    def __init__(self, a: Side, b: Side, leave_out: Sequence[str]) -> None:
        self._a, self._b = a.samples, b.samples
        self._leave_out = leave_out
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
        known = Numbering()
        for at in range(len(self._a)):
            sample_id = self._a.id_at(at)
            if known.setdefault(sample_id, at) != at:
                raise _twice(sample_id)
        for at in range(len(self._b)):
            self._place(self._b.id_at(at), at, known)
        for sample_id in self._lost_b:
            self._place(sample_id, _LOST, known)

    def _place(self, sample_id: str, at: int, known: Numbering) -> None:
        if sample_id in self._lost_a:
            del self._lost_a[sample_id]
            self._dropped.add(sample_id)
            return
        mine = known.setdefault(sample_id, _ABSENT)
        if mine == _ABSENT:
            self._added.add(sample_id)
        elif self._partners[mine] != _ABSENT:
            raise _twice(sample_id)
        else:
            self._partners[mine] = at

    def walk(self) -> None:
        """Every sample of A, in order: a pair, or why not."""
        for at, partner in enumerate(self._partners):
            if partner == _ABSENT:
                self._removed.add(self._a.id_at(at))
            elif partner == _LOST or self._hurt_a[at] or self._hurt_b[partner]:
                self._dropped.add(self._a.id_at(at))
            else:
                self._compare(at, partner)
        for sample_id in self._lost_a:
            self._removed.add(sample_id)

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
    return UNKNOWN not in (one, other) and one != other


def _twice(sample_id: str) -> BadInput:
    return BadInput(f"sample {sample_id!r}: occurs twice in one run; each trial must be given once")
