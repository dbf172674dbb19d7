"""What an answer lists: tables as rows of cells, items of lists as rows of their parts, each bound
to the record of the results that most of it speaks of."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from callmark.grounding.binding import Binder
from callmark.grounding.cells import ListedCell, ReadLeaf, read_field
from callmark.grounding.record_tree import Field, RecordIndex, ResultRecord
from callmark.grounding.siblings import MOST_SIBLINGS
from callmark.grounding.spans import Outline, OutlineLine, Span
from callmark.grounding.text import Frozen, fold, once
from callmark.grounding.values import Value
from callmark.grounding.workings import TurnAt

FEWEST_VOTES = 2  # for the record of a row
MOST_ROWS = 200
MOST_LISTS = 3  # of the results that the rows may be taken from
MOST_PLACES = 24  # leaves that say the same; what more of them say tells nobody apart
MOST_LEAVES, MOST_PARTS = 60, 12  # of one record
LONGEST_TEXT = 80
BY_NAME = 3  # votes
FEWEST_ROWS = 3  # one that is wrong, and two that tell what the others show
MOST_CELLS = 16
LONGEST_ITEM, LONGEST_LABEL = 320, 40
_ITEM = re.compile(r"[ \t>]*(?:[-*•‣–+]|\(?\d{1,3}[.)])[ \t]+")
_RULE = re.compile(r"[\s|:–-]+")
_BOLD = re.compile(r"\*\*[^*]+\*\*")
_PART = re.compile(r"\s[–—-]\s|[,;]\s|\s?[|()→·]\s?|:[*_]*\s")
_EDGE = " \t*_`\"“”'.:–—"
_INDEX = re.compile(r"/\d+/")
_WORD = re.compile(r"[^\W_]+")
_TOTAL = re.compile(
    r"[\W_]*(?:(?:grand |sub)?totals?|sums?|average|mean|median|overall|all|gesamt\w*|summe"
    r"|insgesamt|schnitt|durchschnitt|media|suma|promedio|somme|moyenne|ensemble)\b",
    re.IGNORECASE,
)


class _Item(NamedTuple):
    """What an item of a list says: after its mark, and in the lines below it."""

    span: Span
    below: list[Span]


class ListedRow(Frozen, frozen=True):
    cells: tuple[ListedCell, ...]


_Bound = tuple[int, ListedRow, ResultRecord]


class BoundRow(NamedTuple):
    """`at`: which row of its block."""

    at: int
    row: ListedRow
    record: ResultRecord
    leaves: dict[str, ReadLeaf]


class BoundRows(NamedTuple):
    """Rows of the answer, each with its own record of one list of the results."""

    group: Sequence[ResultRecord]
    rows: Sequence[BoundRow]


class Listing:
    """The tables and lists of one answer, beside the lists of the results that they show."""

    def __init__(
        self,
        outline: Outline,
        values: Sequence[Value],
        index: RecordIndex,
        binder: Binder,
        turn_at: TurnAt,
    ) -> None:
        self.outline, self._values = outline, values
        self._starts = [value.start for value in values]
        self._index, self.turn_at = index, turn_at
        self._lists = [one for one in index.tree.groups if len(one) <= MOST_SIBLINGS]
        self._list_of = {one.number: at for at, all_ in enumerate(self._lists) for one in all_}
        self._above: dict[int, list[int]] = {}
        self._read: dict[int, dict[str, ReadLeaf]] = {}
        self._mentions = binder.all_mentions
        self._mention_starts = [one.start for one in self._mentions]

    def tables(self) -> Iterator[list[BoundRows]]:
        """For each table or list of the answer, the lists that it may be taken from."""
        for rows in self._blocks():
            if FEWEST_ROWS <= len(rows) <= MOST_ROWS:
                bound = self._bind(rows)
                fullest = sorted(bound, key=lambda at: (-len(bound[at]), at))[:MOST_LISTS]
                told = [(self._lists[at], _apart(bound[at])) for at in fullest]
                yield [
                    BoundRows(group, [BoundRow(*one, self._leaves(one[2])) for one in rows])
                    for group, rows in told
                    if len(rows) >= FEWEST_ROWS
                ]

    # --- what the answer lists

    def _blocks(self) -> Iterator[list[ListedRow]]:
        text = self.outline.text
        tables: dict[int, list[OutlineLine]] = {}
        lists: dict[tuple[float, tuple[Span, ...]], list[_Item]] = {}
        items: dict[Span, _Item] = {}
        for line in self.outline.lines:
            head = self.outline.table_head(line)
            if head is not None:
                tables.setdefault(head.start, []).append(line)
                continue
            start = _start_of_item(text, line)
            if items:
                for above in line.heads:
                    if above in items:  # `- Price: $54`, under the item that it is said of
                        items[above].below.append((start or line.start, line.end))
            if start and line.end - start <= LONGEST_ITEM:
                items[line.span] = _Item((start, line.end), [])
                lists.setdefault((line.level, line.heads[-1:]), []).append(items[line.span])
        for table in tables.values():
            rows = [self._table_row(one) for one in table if not _RULE.fullmatch(text, *one.span)]
            heads = {cell.column: cell.text for cell in rows[0].cells} if rows else {}
            yield [_under(heads, one) for one in rows[1:] if _shows_one(one)]
            yield [one for one in _turned(rows) if _shows_one(one)]
        for block in lists.values():
            if len(block) >= FEWEST_ROWS:
                rows = [ListedRow(tuple(self._cells_of(one)[:MOST_CELLS])) for one in block]
                yield [one for one in rows if _shows_one(one)]

    def _cells_of(self, item: _Item) -> list[ListedCell]:
        cells = list(self._parts(*item.span))
        for start, end in item.below:
            cells += self._labelled(start, end)
        return cells

    def _table_row(self, line: OutlineLine) -> ListedRow:
        cells, start = [], line.start + 1
        for at, part in enumerate(self.outline.text[start : line.end].split("|")[:MOST_CELLS]):
            cell = self._cell(f"{at}", start, start + len(part))
            if cell is not None:
                cells.append(cell)
            start += len(part) + 1
        return ListedRow(tuple(cells))

    def _parts(self, start: int, end: int) -> Iterator[ListedCell]:
        """What stands in bold is one part: `**Harbour, Evening** (1988.77), Claude Ferrand`."""
        at, text = 0, self.outline.text
        bold = [one.span() for one in _BOLD.finditer(text, start, end)]
        for found in (*_PART.finditer(text, start, end), None):
            if found and found[0].strip() not in ("(", ")") and _is_inside(found.start(), bold):
                continue
            cell = self._cell(f"part {at}", start, end if found is None else found.start())
            if cell is not None:
                yield cell
                at += 1
            start = end if found is None else found.end()

    def _labelled(self, start: int, end: int) -> Iterator[ListedCell]:
        text = self.outline.text
        colon = text.find(":", start, min(end, start + LONGEST_LABEL))
        label = " ".join(_WORD.findall(text, start, max(colon, start))).casefold()
        cell = self._cell(f"under {label}", colon + 1, end) if label else None
        if cell is not None:
            yield cell._replace(head=label)

    def _cell(self, column: str, start: int, end: int) -> ListedCell | None:
        raw = self.outline.text[start:end]
        kept = raw.strip(_EDGE)
        if not kept:
            blank = raw.strip(" \t*_`")
            return ListedCell(column, start, end, blank, ()) if blank else None
        start += raw.index(kept)
        end = start + len(kept)
        first = bisect_left(self._starts, start)
        last = bisect_left(self._starts, end, first)
        told = [one for one in self._values[first:last] if one.kind in ("number", "moment")]
        return ListedCell(column, start, end, kept, tuple(told[:MOST_CELLS]))

    # --- which record each row is about

    def _bind(self, rows: Sequence[ListedRow]) -> dict[int, list[_Bound]]:
        """By list: the one record of it that most of the row speaks of."""
        bound: dict[int, list[_Bound]] = {}
        for at, row in enumerate(rows):
            best: dict[int, tuple[int, int, bool]] = {}  # by list: votes, record, is it alone
            for number, count in sorted(self._votes(row).items()):
                most = best.get(self._list_of[number], (FEWEST_VOTES - 1, 0, False))[0]
                if count > most:
                    best[self._list_of[number]] = (count, number, True)
                elif count == most and self._list_of[number] in best:
                    best[self._list_of[number]] = (count, number, False)
            for place, (_, number, is_alone) in best.items():
                if is_alone:
                    one = (at, row, self._index.tree.records[number])
                    bound.setdefault(place, []).append(one)
        return bound

    def _votes(self, row: ListedRow) -> Counter[int]:
        votes: list[int] = []
        turn = self.turn_at(row.cells[0].start)
        for cell in row.cells:
            first = bisect_left(self._mention_starts, cell.start)
            for mention in self._mentions[
                first : bisect_left(self._mention_starts, cell.end, first)
            ]:
                if len(mention.records) <= MOST_PLACES:
                    weight = 1 if mention.is_part or mention.is_day else BY_NAME
                    votes += weight * self._items_of(mention.records)
            told = [self._index.stating(one, turn, echoes=True) for one in cell.values]
            for fields in (self._index.tree.texts.get(fold(cell.text), ()), *told):
                if 0 < len(fields) <= MOST_PLACES:
                    votes += self._items_of([one.record for one in fields])
        records = self._index.tree.records
        return Counter([number for number in votes if records[number].counts_for(turn)])

    def _items_of(self, records: Sequence[ResultRecord]) -> list[int]:
        """The records of lists among them, and those that they are a part of; each once."""
        if len(records) == 1:
            return self._items_above(records[0])
        return list({number for record in records for number in self._items_above(record)})

    def _items_above(self, record: ResultRecord) -> list[int]:
        known = self._above.get(record.number)
        if known is None:
            known = [] if record.parent is None else self._items_above(record.parent)
            if record.number in self._list_of:
                known = [record.number, *known]
            self._above[record.number] = known
        return known

    def _leaves(self, record: ResultRecord) -> dict[str, ReadLeaf]:
        known = self._read.get(record.number)
        if known is None:
            fields = [
                field
                for inner in islice(record.within(), MOST_PARTS)
                for field in inner.fields[:MOST_LEAVES]
            ]
            known = {}
            for field in fields[:MOST_LEAVES]:
                place = field.path[len(record.path) :]
                if place.count("/") == 1 or not _INDEX.search(place):
                    known[place] = read_field(field, place)
            self._read[record.number] = known
        return known

    def leaves_of(self, records: Iterable[ResultRecord], place: str) -> list[ReadLeaf]:
        """What each of them has there."""
        read = (self._leaves(one).get(place) for one in records)
        return [one for one in read if one is not None]

    @once
    def _by_name(self) -> dict[str, list[ResultRecord]]:
        found: dict[str, list[ResultRecord]] = {}
        for record in self._index.tree.records:
            for name in record.names:
                found.setdefault(name, []).append(record)
        return found

    def is_told_otherwise(self, record: ResultRecord, field: Field) -> bool:
        """Has another result something else there, of what has the same name?"""
        return any(
            one.key == field.key and one.value != field.value
            for name in record.names
            for other in self._by_name[name][:MOST_PLACES]
            if other is not record
            and self._list_of.get(other.number) != self._list_of.get(record.number)
            for one in other.fields[:MOST_LEAVES]
        )

    def names_it(self, cell: ListedCell, record: ResultRecord) -> bool:
        first, last = (bisect_left(self._mention_starts, at) for at in (cell.start, cell.end))
        return any(record in one.records for one in self._mentions[first:last])


def _is_inside(position: int, spans: Sequence[Span]) -> bool:
    return any(start < position < end - len("**") for start, end in spans)


def _under(heads: Mapping[str, str], row: ListedRow) -> ListedRow:
    return ListedRow(tuple(one._replace(head=heads.get(one.column, "")) for one in row.cells))


def _shows_one(row: ListedRow) -> bool:
    return bool(row.cells) and _TOTAL.match(row.cells[0].text) is None


def _turned(rows: Sequence[ListedRow]) -> list[ListedRow]:
    """A table whose columns are the records: `| Price | $5 | $7 |`."""
    columns: dict[str, list[ListedCell]] = {}
    for at, row in enumerate(rows[:MOST_CELLS]):
        for cell in row.cells:
            like = cell._replace(column=f"{at}", head=row.cells[0].text)
            columns.setdefault(cell.column, []).append(like)
    return [ListedRow(tuple(cells)) for column, cells in columns.items() if column != "0"]


def has_rows(outline: Outline) -> bool:
    """A table, or so many items that most of them could tell what one should say."""
    listed = 0
    for line in outline.lines:
        if outline.text.startswith("|", line.start):
            return True
        listed += _start_of_item(outline.text, line) > 0
    return listed >= FEWEST_ROWS


def _start_of_item(text: str, line: OutlineLine) -> int:
    """After its mark; 0: it is none."""
    mark = None if text[line.start].isalpha() else _ITEM.match(text, line.start, line.end)
    return 0 if mark is None else mark.end()


def _apart(bound: Sequence[_Bound]) -> list[_Bound]:
    """Without rows that are bound to one record."""
    times = Counter([record.number for _, _, record in bound])
    return [one for one in bound if times[one[2].number] == 1]
