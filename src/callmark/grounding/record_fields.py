"""The fields of one record, by what may be asked of them, and which leaves belong to the records
that something is said of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

from callmark.grounding.reading import unit_called
from callmark.grounding.record_tree import Field, RecordSubject, ResultRecord, key_stems, stem
from callmark.grounding.text import once

MAX_FIELDS = 400  # of the records that a value is said of; larger ones are not searched
_QUANTITY = re.compile(r"[\d.,]+[ -]?(?P<unit>[^\W\d_]{1,12})(?P<what>(?: [^\W\d_]{2,12}){0,2})")


@lru_cache(maxsize=1 << 12)
def name_of_unit(word: str) -> str:
    """`hr` and `hours` are one; of what is no unit, its stem."""
    return unit_called(word) or stem(word)


@lru_cache(maxsize=1 << 12)
def _unit_in(text: str) -> str:
    """That of `8GB` and `1TB SSD`; `6920 Market Street` has none."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return ""
    return unit_called(found["unit"]) if found["what"] else name_of_unit(found["unit"])


class RecordFields:
    """The fields of a record and of all that lies in it, by what may be asked of them."""

    def __init__(self, record: ResultRecord) -> None:
        self._fields = list(islice(_fields_within(record), MAX_FIELDS))

    def all(self) -> Iterator[Field]:
        """Those of one key beside each other."""
        if len({one.key for one in self._fields}) == len(self._fields):  # most records are so
            yield from self._fields
            return
        for fields in self.by_key.values():
            yield from fields

    @once
    def numbers(self) -> list[int]:
        return [one.number for one in self._fields if one.number is not None]

    @once
    def by_key(self) -> dict[str, list[Field]]:
        found: dict[str, list[Field]] = {}
        for field in self._fields:
            found.setdefault(field.key, []).append(field)
        return found

    @once
    def by_stem(self) -> dict[str, list[Field]]:
        found: dict[str, list[Field]] = {}
        for field in self._fields:
            for one in key_stems(field.key):
                found.setdefault(one, []).append(field)
        return found

    @once
    def by_unit(self) -> dict[str, list[Field]]:
        found: dict[str, list[Field]] = {}
        for field in self._fields:
            text = field.value
            if isinstance(text, str) and len(text) <= 24 and (unit := _unit_in(text)):
                found.setdefault(unit, []).append(field)
        return found


def _fields_within(record: ResultRecord) -> Iterator[Field]:
    for inner in record.within():
        yield from inner.fields


MOST_KIN = 400
MOST_ALIKE = 12  # records of one name that are looked at


def find_kin(fields: Sequence[Field], subject: RecordSubject) -> Field | None:
    """The first that belongs to a record of the subject, or to one that holds it."""
    if len(subject.records) == 1:  # nearly always
        first, last = subject.records[0].number, subject.records[0].last
        for field in fields:
            number = field.record.number
            if first <= number <= last or number <= first <= field.record.last:
                return field
        return None
    for field in fields:
        if any(record.is_kin(field.record) for record in subject.records):
            return field
    return None


def find_all_kin(fields: Sequence[Field], subject: RecordSubject) -> list[Field]:
    if len(subject.records) > 1:
        return [
            field
            for field in fields[:MOST_KIN]
            if any(record.is_kin(field.record) for record in subject.records[:MOST_ALIKE])
        ]
    record = subject.records[0]
    if record.number == record.last:  # nothing lies in it, and little holds it
        holding = _and_above(record)
        return [field for field in fields[:MOST_KIN] if field.record in holding]
    first, last = record.number, record.last
    return [
        field
        for field in fields[:MOST_KIN]
        if first <= field.record.number <= last or field.record.number <= first <= field.record.last
    ]


def _and_above(record: ResultRecord | None) -> set[ResultRecord]:
    found: set[ResultRecord] = set()
    while record is not None:
        found.add(record)
        record = record.parent
    return found


def find_first_and_all_kin(
    fields: Sequence[Field], subject: RecordSubject
) -> tuple[Field | None, list[Field]]:
    """Both, with one look at each leaf."""
    found = find_all_kin(fields, subject)
    if len(subject.records) > MOST_ALIKE or (not found and len(fields) > MOST_KIN):
        return find_kin(fields, subject), found
    return (found[0] if found else None), found


def find_joined(fields: Sequence[Field], subject: RecordSubject) -> Field | None:
    """The first whose record, or the one that it is a part of, holds an identifier of the subject
    as a value. Another record of the same kind is never meant."""
    kinds = {(one.kind, one.key) for one in subject.records}
    names = {name for one in subject.records for name in one.names if any(map(str.isdecimal, name))}
    for field in fields if names else ():
        record = field.record
        if (record.kind, record.key) not in kinds and _holds_any(record, names):
            return field
    return None


def _holds_any(record: ResultRecord, names: set[str]) -> bool:
    near = [record] if record.parent is None or record.names else [record, record.parent]
    return any(not names.isdisjoint(one.texts()) for one in near)
