"""Rows of tables and items of lists that are all said in the same way: which key a column shows is
learnt from most of its cells, and a cell that shows what another record has under it is wrong."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from callmark.grounding.attribution import place_of_field
from callmark.grounding.cells import (
    FACTORS,
    LONGEST_TEXT,
    ListedCell,
    ReadLeaf,
    Words,
    find_run,
    is_blank,
    is_small,
    stating,
    words_around,
    words_said,
)
from callmark.grounding.checking import StatementFinding
from callmark.grounding.claims import is_hedged
from callmark.grounding.field_words import classes_of, words_of_key
from callmark.grounding.listing import FEWEST_ROWS, BoundRow, BoundRows, Listing
from callmark.grounding.match import Said
from callmark.grounding.record_tree import Field, ResultRecord, stem
from callmark.grounding.spans import Outline
from callmark.grounding.text import fold
from callmark.grounding.values import Value
from callmark.records.statements import FLAGS, RULES, StatementLabel

MOST_WRONG, MOST_WORDS = 3, 8  # of one column: with more that differ it shows something else
MOST_STATES = 6  # of one key that an answer has its own words for
TRIED = 6  # rows that tell whether a column is in another scale
# What another rule made of a value that only stands in the wrong row.
_MENDED: frozenset[StatementLabel] = frozenset(("supported", "rounded", "converted", "unchecked"))

_Place = tuple[int, str, int]  # row and column, and which value of it; its text
_TEXT, _NAME = -1, -2


class WrongCell(NamedTuple):
    """From `start` to `end` the answer says of the record what `taken` has, where `own` is the
    field meant. No `value`: a text; no `taken`: that there is nothing."""

    start: int
    end: int
    record: ResultRecord
    own: Field
    taken: Field | None
    value: Value | None

    def is_open(self, outline: Outline, said: Said, turn: int | None) -> bool:
        """Offered, changed, guessed or said by the user."""
        value = self.value or Value(self.start, self.end, "quote", "")
        sentence = outline.sentence_at(self.start)
        if outline.is_proposed(sentence) or outline.tells_a_change(value, (self.start, self.end)):
            return True
        if self.value is None:
            return said.holds_text(fold(outline.text[self.start : self.end]), turn)
        return is_hedged(outline.text, value) or said.holds(value, turn)

    @property
    def rule(self) -> str:
        return "state" if self.value is None else "binding"


class _Shown(NamedTuple):
    """One part of a column: what a bound row has there."""

    bound: BoundRow
    cell: ListedCell
    value: Value | None
    place: _Place


_Odd = tuple[_Shown, Field, Field]


class _Judged:
    """One table or list of the answer. What one list of the results has is not wrong by another."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._agree: set[_Place] = set()
        self._differ: set[_Place] = set()
        self._wrong: dict[_Place, WrongCell] = {}

    def wrong_cells(self) -> Iterator[WrongCell]:
        """None of a row more than a third of whose cells disagree: it is about something else."""
        cells = {place[:2] for place in self._differ - self._agree}
        differ = Counter(row for row, _ in cells)
        agree = Counter(row for row, _ in {place[:2] for place in self._agree} - cells)
        for place, wrong in sorted(self._wrong.items(), key=lambda one: one[1].start):
            if place not in self._agree and 2 * differ[place[0]] <= agree[place[0]]:
                yield wrong

    def judge(self, bound: BoundRows) -> None:
        columns: dict[tuple[str, int], list[_Shown]] = {}
        for row in bound.rows:
            for cell in row.row.cells:
                if self._listing.names_it(cell, row.record):
                    self._agree.add((row.at, cell.column, _NAME))
                for number, value in enumerate((None, *cell.values), _TEXT):
                    one = _Shown(row, cell, value, (row.at, cell.column, number))
                    columns.setdefault((cell.column, number), []).append(one)
        for (column, number), shown in columns.items():
            if len(shown) >= FEWEST_ROWS:
                if (key := self._judge_column(shown, bound.group)) is not None:
                    self._judge_blanks(columns[column, _TEXT], key)
                elif number == _TEXT:
                    self._judge_wording(shown)

    def _judge_column(self, shown: Sequence[_Shown], group: Sequence[ResultRecord]) -> str | None:
        """The key that it shows, if most of its cells tell."""
        factor, stated = _scale_of(shown)
        stated += [_places_stated(one, factor) for one in shown[len(stated) :]]
        keys = _shared(shown, stated)
        if not keys:
            return None
        best = keys[0]
        agreeing = [one for one, places in zip(shown, stated, strict=True) if best in places]
        if not _tells(agreeing):
            return None
        differing = []
        for one, places in zip(shown, stated, strict=True):
            if not places.isdisjoint(keys):
                self._agree.add(one.place)
            elif (own := one.bound.leaves.get(best)) is not None:
                differing.append((one, own))
        for one, own in differing if len(differing) <= MOST_WRONG else ():
            if own.field.value is not None:
                self._differ.add(one.place)
            column = self._listing.leaves_of(group, best)
            if one.value is None:
                found = _wrong_text(one, own, agreeing, column)
            else:
                found = _wrong_value(one, one.value, own, agreeing, column, factor)
            if found is not None:
                self._wrong.setdefault(one.place, found)
        return best

    def _judge_blanks(self, shown: Sequence[_Shown], key: str) -> None:
        """`no fix yet`, as in rows whose record has none, of a record that has one."""
        blank: set[Words] = set()
        for one in shown:
            own = one.bound.leaves.get(key)
            if own is not None and own.field.value is None and not one.cell.values:
                blank.add(words_said(one.cell.text))
        for one in shown if blank else ():
            own = one.bound.leaves.get(key)
            if own is not None and own.field.value and is_blank(one.cell.text, blank):
                self._differ.add(one.place)
                self._wrong.setdefault(one.place, _wrong(one, own.field, None))

    def _judge_wording(self, shown: Sequence[_Shown]) -> None:
        """A column whose head names a key, and that has a word of its own for each of its values,
        but for one cell that has the word for another one."""
        if any(len(one.cell.text) > LONGEST_TEXT or not one.cell.head for one in shown):
            return
        head = classes_of(frozenset(map(stem, words_said(shown[0].cell.head))))
        deviating: list[_Odd] = []
        for place in sorted(shown[0].bound.leaves):
            odd = _odd_ones(shown, place)
            if odd == []:
                self._agree.update(one.place for one in shown)
                return
            if odd and not head.isdisjoint(words_of_key(place.rpartition("/")[2])):
                deviating += odd
        if len(deviating) == 1:
            one, own, taken = deviating[0]
            self._agree.update(other.place for other in shown if other is not one)
            self._differ.add(one.place)
            self._wrong.setdefault(one.place, _wrong(one, own, taken))


def _shared(shown: Sequence[_Shown], stated: Sequence[set[str]]) -> list[str]:
    """The keys that most of the cells state, of those whose record has something there."""
    counts = Counter(place for places in stated for place in places)
    held = Counter(
        place
        for one in shown
        for place, leaf in one.bound.leaves.items()
        if place in counts and leaf.field.value is not None
    )
    keys = [
        place
        for place, count in counts.items()
        if count >= 2 and 3 * count >= 2 * held[place] and 2 * held[place] >= len(shown)
    ]
    return sorted(keys, key=lambda place: (-counts[place], place))


def _scale_of(shown: Sequence[_Shown]) -> tuple[tuple[int, int], list[set[str]]]:
    """Cents that are shown as euros, seconds as minutes; and what the first ones state so."""
    tried = shown[:TRIED]
    if tried[0].value is None or tried[0].value.kind != "number":
        return (1, 1), []
    plainly: list[set[str]] = []
    for factor in ((1, 1), *FACTORS):
        stated = [_places_stated(one, factor) for one in tried]
        if _shared(tried, stated):
            return factor, stated
        plainly = plainly or stated
    return (1, 1), plainly


def _odd_ones(shown: Sequence[_Shown], place: str) -> list[_Odd] | None:
    """The cells that have not the word of their value: such a cell, its field, and one whose word
    it has. None: the words do not stand for the values."""
    words: dict[str, Counter[str]] = {}
    fields: dict[str, Field] = {}
    for one in shown:
        leaf = one.bound.leaves.get(place)
        if leaf is None or isinstance(leaf.field.value, float):
            return None
        token = fold(str(leaf.field.value))
        words.setdefault(token, Counter())[fold(one.cell.text)] += 1
        fields.setdefault(token, leaf.field)
    if not 1 < len(words) <= min(MOST_STATES, len(shown) // 2):
        return None
    usual = {token: said.most_common(1)[0] for token, said in words.items()}
    value_of = {text: token for token, (text, _) in usual.items()}
    if len(value_of) < len(usual):
        return None
    odd: list[_Odd] = []
    for one in shown:
        own = one.bound.leaves[place].field
        token, text = fold(str(own.value)), fold(one.cell.text)
        if usual[token][0] != text:
            if usual[token][1] < 2 or text not in value_of:
                return None
            odd.append((one, own, fields[value_of[text]]))
    return odd if len(odd) < 2 else None


def _wrong(one: _Shown, own: Field, taken: Field | None) -> WrongCell:
    span = one.value or one.cell
    return WrongCell(span.start, span.end, one.bound.record, own, taken, one.value)


def _wrong_value(
    one: _Shown,
    value: Value,
    own: ReadLeaf,
    agreeing: Sequence[_Shown],
    column: Sequence[ReadLeaf],
    factor: tuple[int, int],
) -> WrongCell | None:
    if own.field.value is not None and not (own.numbers or own.moments):
        return None
    frames = {words_around(other.cell, other.value) for other in agreeing if other.value}
    if one.cell.column.startswith("part") and words_around(one.cell, value) not in frames:
        return None
    if next(stating(one.bound.leaves.values(), value, factor), None) is not None:
        return None  # which of its keys is shown may differ by row: `sale_price`, else `price`
    taken = next(stating(column, value, factor), None)
    return None if taken is None else _wrong(one, own.field, taken.field)


def _wrong_text(
    one: _Shown, own: ReadLeaf, agreeing: Sequence[_Shown], column: Sequence[ReadLeaf]
) -> WrongCell | None:
    words = words_said(one.cell.text)
    if len(words) > MOST_WORDS or find_run(own.words, words) is not None:
        return None
    if own.field.value is not None and not own.words:
        return None
    frames = {
        find_run(words_said(other.cell.text), other.bound.leaves[own.place].words)
        for other in agreeing
    }
    known: dict[str, ReadLeaf] = {}
    for leaf in column:
        if leaf.words:
            known.setdefault("".join(leaf.words), leaf)
    for before, after in sorted(frame for frame in frames if frame is not None):
        end = len(words) - len(after)
        if words[: len(before)] == before and words[end:] == after:
            taken = known.get("".join(words[len(before) : end]))
            if taken is not None:
                return _wrong(one, own.field, taken.field)
    return None


def _places_stated(one: _Shown, factor: tuple[int, int]) -> set[str]:
    """Under which keys the record of the row has what the cell states."""
    leaves = one.bound.leaves.values()
    if one.value is not None:
        return {leaf.place for leaf in stating(leaves, one.value, factor)}
    if len(one.cell.text) > LONGEST_TEXT:
        return set()
    words = words_said(one.cell.text)
    return {leaf.place for leaf in leaves if leaf.words and find_run(words, leaf.words) is not None}


def _tells(agreeing: Sequence[_Shown]) -> bool:
    """Not by chance: more than one text or number, and more than two small ones."""
    said = {one.cell.text if one.value is None else one.value.text for one in agreeing}
    are_small = all(one.value is not None and is_small(one.value) for one in agreeing)
    return len(said) > 1 and (len(agreeing) > 2 or not are_small)


def findings_of_rows(
    listing: Listing,
    findings: Sequence[StatementFinding],
    said: Said,
    written: Sequence[tuple[int, int]],
) -> list[StatementFinding]:
    """The findings, and those of cells that nothing else has flagged. `written`: turn and place of
    the calls that changed something, the last one first."""
    places = sorted((one.start, one.end) for one in findings if one.label in FLAGS)
    labels: dict[tuple[int, int], set[StatementLabel]] = {}
    for one in findings:
        labels.setdefault((one.start, one.end), set()).add(one.label)
    found: dict[tuple[int, int], StatementFinding] = {}
    for wrong in _wrong_cells(listing):
        span, turn = (wrong.start, wrong.end), listing.turn_at(wrong.start)
        at = bisect_left(places, (wrong.end, 0))
        is_told = at > 0 and places[at - 1][1] > wrong.start
        last = next((call for at, call in written if turn is None or at < turn), -1)
        if (
            is_told
            or wrong.own.call < last
            or wrong.is_open(listing.outline, said, turn)
            or (wrong.value is not None and not labels.get(span, set()) <= _MENDED)
            or listing.is_told_otherwise(wrong.record, wrong.own)
        ):
            continue
        because = place_of_field(wrong.taken) if wrong.taken else "the answer says none"
        label = RULES[wrong.rule].label
        found[span] = StatementFinding(*span, label, wrong.rule, (wrong.own,), because)
    kept = [one for one in findings if (one.start, one.end) not in found]
    return [*kept, *found.values()]


def _wrong_cells(listing: Listing) -> Iterator[WrongCell]:
    for tables in listing.tables():
        judged = _Judged(listing)
        for bound in tables:
            judged.judge(bound)
        yield from judged.wrong_cells()
