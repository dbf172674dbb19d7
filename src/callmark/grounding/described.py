"""What an answer describes by what it is: `4K, waterproof, black ($466.75)` speaks of the items of
a list that are 4K, waterproof and black, and the price is then said of them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from callmark.grounding.binding import Binder, Names, is_like, words_of_name
from callmark.grounding.majority import OtherThanMost
from callmark.grounding.reading import unit_called
from callmark.grounding.record_tree import Field, RecordIndex, ResultRecord
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import fold, once
from callmark.grounding.values import Value, is_one_value, is_small
from callmark.grounding.workings import TurnAt

WIDEST = 320  # characters in which one thing is described
MOST_PLACES = 40  # leaves that say one thing; what stands in more of them tells nobody apart
MOST_TOLD = 24  # things said of one item
LONGEST_TEXT = 40
FEWEST = 2  # things of other keys that single an item out
MOST_MEANT = 3  # values that items which are all of that have
MOST_COPIES = 12  # of these items: one may have been served again and again
# Behind these words something else is spoken of.
_APART = re.compile(
    r"[.;→➝](?:\s|$)|->|\b(?:to|from|minus|plus|or|instead|versus|vs|than|previous\w*|original\w*|was|old"
    r"|difference|refund\w*|total\w*|charg\w+|balance|paid|pay|using|order\w*|new|current\w*|each|save\w*"
    r"|saving\w*|more|less|fewer|cheaper|higher|lower|about|same|per)\b",
    re.IGNORECASE,
)


class _Told(NamedTuple):
    """Something that is said of items: where it stands, under which keys results have it ("": it is
    a name), and of which items of each kind."""

    start: int
    end: int
    keys: frozenset[str]
    items: dict[str, list[int]]


class DescribedItems:
    """Of one answer, against the items of the lists of the results."""

    def __init__(
        self,
        outline: Outline,
        values: Sequence[Value],
        index: RecordIndex,
        binder: Binder,
        turn_at: TurnAt,
    ) -> None:
        self._outline, self._values = outline, values
        self._starts = [value.start for value in values]
        self._index, self._binder, self._turn_at = index, binder, turn_at
        self._told_in: dict[Span, list[_Told]] = {}
        self._records = {one.number: one for one in index.tree.records}
        self._items: dict[int, int] = {}

    def other_than(
        self, value: Value, fields: Sequence[Field], states: Callable[[Field, Value], bool]
    ) -> OtherThanMost | None:
        """None unless the items that are all that is said around the value have another one under
        its key, and no item that has it is meant as well as they are."""
        if not 0 < len(fields) <= MOST_PLACES or is_small(value):
            return None
        if self._outline.text.startswith("|", self._outline.line_at(value.start).start):
            return None  # the rows of a table are compared as a whole
        keys = {field.key for field in fields}
        having = {self._item_of(field.record) for field in fields}
        if "" in keys or -1 in having:
            return None
        if not all(is_one_value(field.value, value.kind) for field in fields):
            return None
        span = self._scope(value)
        if span[1] - span[0] > WIDEST:
            return None
        meant = self._meant(span, value, keys, having)
        own: list[Field] = []
        for item in meant:
            found = [
                one
                for one in self._binder.fields_of(item).all()
                if one.key in keys and is_like(one, value)
            ]
            if len(found) != 1 or states(found[0], value):
                return None
            own += found
        if len({one.value for one in own}) > MOST_MEANT:
            return None
        first = bisect_left(self._starts, span[0])
        told = self._values[first : bisect_left(self._starts, span[1])]
        if any(states(one, each) for one in own for each in told if each is not value):
            return None
        return OtherThanMost(own[0], fields[0]) if own else None

    def _scope(self, value: Value) -> Span:
        line = self._outline.line_at(value.start)
        return line.span if line.level > 0 else self._outline.clause_at(value.start)

    def _meant(
        self, span: Span, value: Value, keys: set[str], having: set[int]
    ) -> list[ResultRecord]:
        """The items of one list of which all else in the span is said, if that is enough to know
        them by, and of nothing else."""
        if span not in self._told_in:
            self._told_in[span] = list(self._told_of_items(span))
        told = self._told_in[span]
        others = [one for one in told if one.end <= value.start or one.start >= value.end]
        if len(others) < FEWEST or any(not one.keys.isdisjoint(keys) for one in others):
            return []
        if self._is_apart(others, value):
            return []
        by_kind: dict[str, list[tuple[_Told, list[int]]]] = {}
        for one in others:
            for kind, items in one.items.items():
                if len(items) < self._sizes[kind]:
                    by_kind.setdefault(kind, []).append((one, items))
        best: list[ResultRecord] = []
        is_item = self._outline.line_at(value.start).level > 0
        most = FEWEST - 1
        for telling in by_kind.values():
            seen = [key for one, _ in telling for key in one.keys or ("",)]
            if len(seen) != len(set(seen)):  # two things are spoken of
                return []
            votes = Counter(number for _, items in telling for number in items)
            if max((votes[number] for number in having), default=0) >= len(telling):
                return []
            meant = sorted(number for number, count in votes.items() if count == len(telling))
            if len(telling) > most and 0 < len(meant) <= MOST_COPIES:
                is_named = any(not one.keys for one, _ in telling)
                if is_named or is_item or len(telling) > FEWEST:
                    best, most = [self._records[number] for number in meant], len(telling)
        return best

    def _is_apart(self, others: Sequence[_Told], value: Value) -> bool:
        before = [one.end for one in others if one.end <= value.start]
        after = [one.start for one in others if one.start >= value.end]
        between = (max(before), value.start) if before else (value.end, min(after))
        return _APART.search(self._outline.text, *between) is not None

    @once
    def _sizes(self) -> Counter[str]:
        return Counter(one.kind for one in self._index.tree.records)

    def _item_of(self, record: ResultRecord) -> int:
        """The nearest item of a list that it is, or is a part of; else itself, if there are others
        of its kind. -1: nothing that could be taken for another."""
        number = self._items.get(record.number)
        if number is None:
            one: ResultRecord | None = record
            while one is not None and not one.kind.endswith("/*"):
                one = one.parent
            one = record if one is None else one
            number = one.number if one.kind and self._sizes[one.kind] > 1 else -1
            self._items[record.number] = number
        return number

    def _items_of(self, records: Iterable[ResultRecord]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number in dict.fromkeys(map(self._item_of, records)):
            if number >= 0:
                found.setdefault(self._records[number].kind, []).append(number)
        return found

    def _told(self, start: int, end: int, fields: Sequence[Field]) -> _Told:
        keys = frozenset(field.key for field in fields)
        return _Told(start, end, keys, self._items_of(field.record for field in fields))

    def _told_of_items(self, span: Span) -> Iterator[_Told]:
        turn = self._turn_at(span[0])
        taken = -1
        for one in sorted(self._all_told(span, turn), key=lambda each: (each.start, -each.end)):
            if one.start >= taken and one.items:
                taken = one.end
                yield one

    def _all_told(self, span: Span, turn: int | None) -> Iterator[_Told]:
        first = bisect_left(self._starts, span[0])
        values = self._values[first : bisect_left(self._starts, span[1])]
        for value in values if len(values) <= MOST_TOLD else ():
            fields = self._index.stating(value, turn)
            if 0 < len(fields) <= MOST_PLACES:
                yield self._told(value.start, value.end, fields)
        for mention in self._binder.mentions_in(span):
            items = self._items_of(mention.records)
            yield _Told(mention.start, mention.end, frozenset(), items)
        at = bisect_left(self._texts, span)
        for start, end in self._texts[at : at + MOST_TOLD]:
            if end > span[1]:
                break
            said = fold(self._outline.text[start:end])
            fields = [one for one in self._index.tree.texts.get(said, ()) if one.counts_for(turn)]
            if 0 < len(fields) <= MOST_PLACES:
                yield self._told(start, end, fields)

    @once
    def _texts(self) -> list[Span]:
        """Where the answer holds a short text of an item that is no name."""
        words = self._outline.words
        called: dict[int, list[str]] = {}
        records: dict[int, ResultRecord] = {}
        for text, fields in self._index.tree.texts.items():
            if len(text) > LONGEST_TEXT or unit_called(text):
                continue
            if words.issuperset(words_of_name(text)):
                for record in (one.record for one in fields[:1]):
                    records[record.number] = record
                    called.setdefault(record.number, []).append(text)
        names = Names(records.values(), lambda record: called[record.number])
        return [(one.start, one.end) for one in names.mentions(self._outline.text)]
