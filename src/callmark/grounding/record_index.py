"""The leaves of the record tree by what an answer may state of them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property

from callmark.grounding.dates import Moment, moment_keys
from callmark.grounding.evidence import flat
from callmark.grounding.numbers import TOLERANCE
from callmark.grounding.reading import read_leaf
from callmark.grounding.record_tree import Field, Names, RecordTree, number_of, shape_of
from callmark.grounding.values import Value, identifier_key

LONG_TEXT = 400  # characters of a text that tells a story
FEW_FIELDS = 8
MAX_CANDIDATES = 200  # of one value; whatever stands more often can be bound to nothing
_SHORT = 40
_DIGIT = re.compile(r"\d")


class RecordIndex:
    """Numbers, identifiers, moments and links, each with the leaves that state them."""

    def __init__(self, tree: RecordTree) -> None:
        self.tree = tree
        self.numbers: dict[int, list[Field]] = {}
        self.identifiers: dict[str, list[Field]] = {}
        self.links: dict[str, list[Field]] = {}
        self.moments: dict[tuple[int | None, ...], list[tuple[Moment, Field]]] = {}
        self._minutes: dict[tuple[int | None, ...], list[tuple[Moment, Field]]] = {}
        self.shapes: dict[str, Field] = {}
        self.years: dict[str, list[Field]] = {}
        self.keys = {identifier_key(key) for key in tree.keys}
        self.has_bare = any(not field.key for field in tree.fields)
        self._has_echoes = any(field.echo for field in tree.fields)
        for field in tree.fields:
            self._add(field)

    @cached_property
    def names(self) -> Names:
        return Names(self.tree.records)

    @cached_property
    def _ordered(self) -> list[int]:
        return sorted(self.numbers)

    def _add(self, field: Field) -> None:
        number = number_of(field.value)
        if number is not None:
            _note(self.numbers, number, field)
        elif isinstance(field.value, str) and field.value:
            for value in read_leaf(field.value):
                for one in flat((value,)) if value.inner else (value,):
                    self._add_value(one, field)
            if len(field.value) <= _SHORT and _DIGIT.search(field.value):
                _note(self.identifiers, identifier_key(field.value), field)
                self.shapes.setdefault(shape_of(field.value), field)

    def _add_value(self, value: Value, field: Field) -> None:
        for reading in value.readings:
            _note(self.numbers, reading, field)
        for moment in value.moments:
            if moment.year is not None:
                _note(self.years, str(moment.year), field)
            for key in moment_keys(moment):
                found = self.moments.setdefault(key, [])
                if len(found) < MAX_CANDIDATES:
                    found.append((moment, field))
                    if len(key) == 3:  # a time of day: most are asked for with their minute
                        at = (*key, moment.minute)
                        self._minutes.setdefault(at, []).append((moment, field))
        if value.kind == "identifier":
            _note(self.identifiers, value.key, field)
            self.shapes.setdefault(shape_of(value.text), field)
        elif value.kind in ("url", "email"):
            _note(self.links, value.key, field)

    def stating(self, value: Value, turn: int | None, *, echoes: bool = False) -> list[Field]:
        """The leaves that state this value, echoes of arguments left out unless asked for."""
        found = self._stating(value)
        if self._has_echoes and not echoes:
            found = (field for field in found if not field.echo)
        return list(found) if turn is None else [one for one in found if one.counts_for(turn)]

    def _stating(self, value: Value) -> Iterator[Field]:
        match value.kind:
            case "number":
                for reading in value.readings:
                    for near in self.between(reading - TOLERANCE, reading + TOLERANCE):
                        yield from self.numbers[near]
                if value.text.isdecimal():
                    yield from self.identifiers.get(value.text, ())
                    yield from self.years.get(value.text, ())
            case "identifier":
                yield from self.identifiers.get(value.key, ())
            case "moment":
                for moment in value.moments:
                    yield from self._at(moment)
            case "url" | "email":
                yield from self.links.get(value.key, ())
            case "quote" | "code":
                yield from self.identifiers.get(identifier_key(value.text), ())

    def _at(self, moment: Moment) -> Iterator[Field]:
        if moment.groundable:
            key = moment_keys(moment)[0]
            found = self.moments.get(key, ())
            if not moment.has_day and moment.minute is not None:
                found = self._minutes.get((*key, moment.minute), ())
            for other, field in found:
                if moment.agrees(other):
                    yield field

    def years_of(self, moment: Moment) -> frozenset[int]:
        """The years in which some leaf has this day and month."""
        found = self.moments.get((moment.month, moment.day), ())
        return frozenset(other.year for other, _ in found if other.year is not None)

    @cached_property
    def is_prose(self) -> bool:
        """Are the results texts, and hardly any fields? Texts say things that no rule reads."""
        fields = self.tree.fields
        long = sum(isinstance(one.value, str) and len(one.value) > LONG_TEXT for one in fields)
        return long > 0 and len(fields) - long < FEW_FIELDS

    def between(self, low: int, high: int) -> list[int]:
        """The numbers from `low` to `high` that some leaf states."""
        ordered = self._ordered
        return ordered[bisect_left(ordered, low) : bisect_right(ordered, high)]

    @cached_property
    def columns(self) -> dict[int, tuple[str, str]]:
        """What the numbers under one key of one list come to, with the list's path and the key."""
        columns: dict[int, tuple[str, str]] = {}
        for _, total, path, key in self._column_sums():
            columns.setdefault(total, (path, key))
        return columns

    def _column_sums(self) -> Iterator[tuple[int, int, str, str]]:
        for series in self.tree.series:
            sums: dict[str, tuple[int, int]] = {}
            for entry in series.items:
                for key, value in entry.items() if isinstance(entry, dict) else (("", entry),):
                    number = number_of(value)
                    if number is not None:
                        count, total = sums.get(key, (0, 0))
                        sums[key] = (count + 1, total + number)
            for key, (count, total) in sums.items():
                if count > 1:
                    yield count, total, series.path, key

    @cached_property
    def means(self) -> list[tuple[int, str, str]]:
        """What they come to on average, the lowest first."""
        return sorted(
            (total // count, path, key) for count, total, path, key in self._column_sums()
        )

    def ending_in(self, digits: str) -> Field | None:
        """A leaf whose identifier ends in these digits."""
        found = self._endings.get(digits[-4:], ())
        return next((field for key, field in found if key.endswith(digits)), None)

    @cached_property
    def _endings(self) -> dict[str, list[tuple[str, Field]]]:
        endings: dict[str, list[tuple[str, Field]]] = {}
        for key, fields in self.identifiers.items():
            if len(key) > 4 and key[-4:].isdecimal():
                endings.setdefault(key[-4:], []).append((key, fields[0]))
        return endings


def _note(
    index: dict[int, list[Field]] | dict[str, list[Field]], key: int | str, field: Field
) -> None:
    found = index.setdefault(key, [])  # type: ignore[arg-type]
    if len(found) < MAX_CANDIDATES and (not found or found[-1] is not field):
        found.append(field)
