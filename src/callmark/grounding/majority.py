"""Which record a line speaks of, by most of what it states: `Torres, 8 May, £44` speaks of the one
record that has two of the three, and the third is then said of it, too."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from callmark.grounding.binding import Binder, is_like
from callmark.grounding.numbers import SCALE
from callmark.grounding.record_tree import Field, RecordIndex, ResultRecord
from callmark.grounding.spans import Outline, Span
from callmark.grounding.values import Value, is_one_value
from callmark.grounding.workings import TurnAt

WIDEST = 320  # characters of a sentence that speaks of one thing
MOST_PLACES = 24  # leaves that state one value; what stands in more of them tells nobody apart
MOST_TOLD = 40  # values of one line
SMALL = 13 * SCALE  # whole numbers below stand everywhere
FEWEST = 2  # things that a record must share with the line

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
