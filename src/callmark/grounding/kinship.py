"""Which leaves belong to the records that a value is said of: their own, those of what they are a
part of, and those of records that name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from callmark.grounding.record_tree import Field, ResultRecord

NEAREST = 12  # records of one name that are looked at
MOST_FIELDS = 400


class RecordSubject(NamedTuple):
    """What a value is said of. `beside`: the name stands right before it, so that nobody else can
    be meant; `inherited`: by what the line stands under, or after; `loose`: by what is no name, but
    tells the record from its siblings; `distant`: in another sentence of its line."""

    records: tuple[ResultRecord, ...]
    beside: bool = False
    inherited: bool = False
    loose: bool = False
    distant: bool = False


def find_kin(fields: Sequence[Field], subject: RecordSubject) -> Field | None:
    """The first that belongs to a record of the subject, or to one that holds it."""
    if len(subject.records) == 1:  # nearly always; and there may be hundreds of fields
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
    return [
        field
        for field in fields[:MOST_FIELDS]
        if any(record.is_kin(field.record) for record in subject.records[:NEAREST])
    ]


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
    return any(
        isinstance(field.value, str) and field.value in names
        for one in near
        for field in one.fields
    )
