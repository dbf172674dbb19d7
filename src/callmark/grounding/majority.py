"""Which record a line speaks of where no name tells: the one that has most of what it states
(`Torres, 8 May, £44`), or the items that are all that is said (`4K, waterproof, black ($466.75)`).
What else the line states is then said of them, too."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from callmark.grounding.binding import Binder, Names, is_like, words_of_name
from callmark.grounding.numbers import SCALE
from callmark.grounding.reading import unit_called
from callmark.grounding.record_tree import Field, RecordIndex, ResultRecord
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import fold, once
from callmark.grounding.values import Value, is_one_value, is_small
from callmark.grounding.workings import TurnAt

WIDEST = 320  # characters of a sentence that speaks of one thing
MOST_PLACES = 24  # leaves that state one value; what stands in more of them tells nobody apart
MOST_TOLD = 40  # values of one line
SMALL = 13 * SCALE  # whole numbers below stand everywhere
FEWEST = 2  # things that a record must share with the line
MOST_HOLDING = 40  # leaves that say one thing; what stands in more of them tells nobody apart
MOST_THINGS = 24  # things said of one item
LONGEST_TEXT = 40
MOST_MEANT = 3  # values that items which are all of that have
MOST_COPIES = 12  # of these items: one may have been served again and again

_Token = tuple[int, frozenset[int]]  # where it stands, and the list items that have it


class OtherThanMost(NamedTuple):
    """`own`: what the record of the line has where another one has the value, at `of_other`."""

    own: Field
    of_other: Field


class LineRecords:
    """For each line of one answer, the items of lists that its values and names are taken from."""

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
        self._tokens: dict[Span, list[_Token]] = {}
        self._records = {one.number: one for one in index.tree.records}
        self._is_flat = all(one.parent is None for one in index.tree.records)  # nobody is a sibling

    def other_than_most(
        self, value: Value, fields: Sequence[Field], states: Callable[[Field, Value], bool]
    ) -> OtherThanMost | None:
        """None unless all that have the value are siblings of the record that the line is about,
        which has another one there, and says it nowhere in the line."""
        if not 0 < len(fields) <= MOST_PLACES or self._is_flat:
            return None
        span = self._scope(value)
        record = self._beside(value, span) or self._record_of(span, value)
        if record is None:  # `LH1808 at 07:05 for €189.40 and LH1794 at 19:30 for €211.20`
            span = self._part_of(span, value)
            record = self._record_of(span, value)
        if record is None or record.parent is None:
            return None
        for field in fields:
            if not _is_of_sibling(field, record) or not is_one_value(field.value, value.kind):
                return None
        keys = {(field.key, _inner(field.record, record)) for field in fields}
        own = [
            one
            for one in self._binder.fields_of(record).all()
            if (one.key, _inner(one.record, record)) in keys and is_like(one, value, partly=True)
        ]
        if len(own) != 1 or states(own[0], value):
            return None
        if any(states(own[0], one) for one in self._told(span) if one is not value):
            return None
        return OtherThanMost(own[0], fields[0])

    def _scope(self, value: Value) -> Span:
        line = self._outline.line_at(value.start)
        if line.level > 0 or self._outline.text.startswith("|", line.start):
            return self._outline.near(value, line.span)
        return self._outline.near(value, self._outline.sentence_at(value.start))

    def _beside(self, value: Value, span: Span) -> ResultRecord | None:
        """`Lucía at 14:58, Diego at 15:10`: the record whose name stands right before it."""
        near = self._binder.adjacent_mention(value, span)
        # Half a name was meant in passing too often.
        if near is None or near.is_part or len(near.records) != 1:
            return None
        return near.records[0]

    def _part_of(self, span: Span, value: Value) -> Span:
        """From the last name before the value to the next one."""
        start, end = span
        for mention in self._binder.mentions_in(span):
            if mention.end <= value.start:
                start = mention.start
            elif mention.start >= value.end:
                end = min(end, mention.start)
        return start, end

    def _record_of(self, span: Span, value: Value) -> ResultRecord | None:
        if span[1] - span[0] > WIDEST:
            return None
        if span not in self._tokens:
            self._tokens[span] = self._tokens_in(span)
        votes: dict[int, int] = {}
        alone: set[int] = set()
        for start, records in self._tokens[span]:
            if value.start <= start < value.end:
                continue
            for number in records:
                votes[number] = votes.get(number, 0) + 1
            if len(records) == 1:
                alone.update(records)
        best = max(votes.values(), default=0)
        first = [number for number, count in votes.items() if count == best]
        if best < FEWEST or len(first) != 1 or first[0] not in alone:
            return None
        # Where something else in the line is told of another one alone, it speaks of both.
        return self._records[first[0]] if len(alone) == 1 else None

    def _told(self, span: Span) -> Sequence[Value]:
        first = bisect_left(self._starts, span[0])
        return self._values[first : bisect_left(self._starts, span[1])]

    def _tokens_in(self, span: Span) -> list[_Token]:
        told = self._told(span)
        if len(told) > MOST_TOLD:
            return []
        tokens: list[_Token] = []
        turn = self._turn_at(span[0])
        for value in told:
            if _is_small(value):
                continue
            fields = self._index.stating(value, turn)
            if 0 < len(fields) <= MOST_PLACES:
                tokens.append((value.start, _items_of(field.record for field in fields)))
        tokens += [
            (mention.start, _items_of(mention.records[:MOST_PLACES]))
            for mention in self._binder.mentions_in(span)
            if not any(one.start < mention.end and mention.start < one.end for one in told)
        ]
        return [token for token in tokens if token[1]]


def _is_small(value: Value) -> bool:
    return bool(value.readings) and value.kind == "number" and 0 <= value.readings[0] < SMALL


def _items_of(records: Iterable[ResultRecord]) -> frozenset[int]:
    """The records, and what they are parts of, as far as they have siblings."""
    found: set[int] = set()
    for record in records:
        one: ResultRecord | None = record
        while one is not None:
            if one.number in found:
                break
            if one.parent is not None and len(one.parent.children) > 1:
                found.add(one.number)
            one = one.parent
    return frozenset(found)


def _is_of_sibling(field: Field, record: ResultRecord) -> bool:
    """Does it lie in another record of the list, of the same kind?"""
    parent = record.parent
    return (
        parent is not None
        and parent.holds(field.record)
        and not record.is_kin(field.record)
        and field.record is not parent
    )


def _inner(record: ResultRecord, item: ResultRecord) -> str:
    """Where it stands inside its item of the list: its keys, without numbers."""
    depth = item.path.count("/")
    return "/".join(part for part in record.path.split("/")[depth + 1 :] if not part.isdecimal())


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
        if not 0 < len(fields) <= MOST_HOLDING or is_small(value):
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
        for value in values if len(values) <= MOST_THINGS else ():
            fields = self._index.stating(value, turn)
            if 0 < len(fields) <= MOST_HOLDING:
                yield self._told(value.start, value.end, fields)
        for mention in self._binder.mentions_in(span):
            items = self._items_of(mention.records)
            yield _Told(mention.start, mention.end, frozenset(), items)
        at = bisect_left(self._texts, span)
        for start, end in self._texts[at : at + MOST_THINGS]:
            if end > span[1]:
                break
            said = fold(self._outline.text[start:end])
            fields = [one for one in self._index.tree.texts.get(said, ()) if one.counts_for(turn)]
            if 0 < len(fields) <= MOST_HOLDING:
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
