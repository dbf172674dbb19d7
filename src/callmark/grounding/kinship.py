"""Which leaves belong to the records that something is said of. One value may stand in hundreds of
leaves, and each look at one of them is a walk through memory."""

from __future__ import annotations

from collections.abc import Sequence

from callmark.grounding.record_tree import Field, RecordSubject, ResultRecord

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
