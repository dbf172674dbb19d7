"""What became of a dataset: samples that are new, gone or changed, by their ids, and the header.

Of the first file only the places of its ids are kept, so two datasets of a million samples fit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import BinaryIO

import msgspec

from callmark.datasets.reader import (
    Item,
    find_header,
    header_fields,
    located_items,
    located_object,
    open_dataset,
)
from callmark.errors import UsageError
from callmark.records.jsontext import Json, canonical_json
from callmark.records.samples import sample_id_of
from callmark.stats.columns import KeyIndex
from callmark.store.files import Line, open_input

LISTED = 1000  # samples listed of each sort; the counts are complete


class Placed(msgspec.Struct, frozen=True):
    sample_id: str
    line: int


class Changed(msgspec.Struct, frozen=True):
    """`fields`: `prompt`, `metadata.call_sequence`, …: those that are not the same any more."""

    sample_id: str
    line_a: int
    line_b: int
    fields: tuple[str, ...]


class HeaderChange(msgspec.Struct, frozen=True):
    a: Json
    b: Json


class DatasetDiff(msgspec.Struct, frozen=True, kw_only=True):
    """From `a` to `b`. Lists hold the first LISTED in the order of their file. `reordered`: the
    samples that both have stand in another order."""

    a: str
    b: str
    samples_a: int
    samples_b: int
    same: int
    added_count: int
    removed_count: int
    changed_count: int
    added: tuple[Placed, ...]
    removed: tuple[Placed, ...]
    changed: tuple[Changed, ...]
    changed_fields: dict[str, int]
    header: dict[str, HeaderChange]
    reordered: bool

    @property
    def differs(self) -> bool:
        counts = self.added_count + self.removed_count + self.changed_count
        return bool(counts or self.header or self.reordered)


def diff_datasets(a: Path, b: Path) -> DatasetDiff:
    """Both are read and checked as any dataset is. What is written differently but means the same
    JSON has not changed."""
    for path in (a, b):
        if path.exists() and not path.is_file():
            raise UsageError(f"{path}: must be a file, which can be read more than once")
    with open_dataset(a) as first, open_dataset(b) as second:
        samples_a, samples_b = first.facts.samples, second.facts.samples
    with open_input(a) as old, open_input(b) as new:
        comparison = _Comparison(str(a), old)
        comparison.walk(str(b), new)
        removed_count, removed = comparison.removed()
        return DatasetDiff(
            a=str(a),
            b=str(b),
            samples_a=samples_a,
            samples_b=samples_b,
            same=samples_b - comparison.added_count - comparison.changed_count,
            added_count=comparison.added_count,
            removed_count=removed_count,
            changed_count=comparison.changed_count,
            added=tuple(comparison.added),
            removed=removed,
            changed=tuple(comparison.changed),
            changed_fields=dict(sorted(comparison.fields.items())),
            header=_header_changes(_header(old, str(a)), _header(new, str(b))),
            reordered=comparison.reordered,
        )


class _Comparison:
    """The second file, sample by sample, against the places of the first."""

    def __init__(self, name: str, stream: BinaryIO) -> None:
        self._name = name
        self._stream = stream
        self._places = KeyIndex()
        self._seen = bytearray()
        self.added: list[Placed] = []
        self.changed: list[Changed] = []
        self.added_count = 0
        self.changed_count = 0
        self.fields: Counter[str] = Counter()
        self.reordered = False
        last = 0
        for line, item in located_items(stream, name):
            self._places.add(sample_id_of(item), line.number, line.offset)
            last = line.number
        self._seen = bytearray(last + 1)

    def walk(self, name: str, stream: BinaryIO) -> None:
        before = 0
        for line, item in located_items(stream, name):
            sample_id = sample_id_of(item)
            place = self._places.find(sample_id)
            if place is None:
                self.added_count += 1
                if len(self.added) < LISTED:
                    self.added.append(Placed(sample_id, line.number))
                continue
            number, offset = place
            self._seen[number] = True
            self.reordered = self.reordered or number < before
            before = number
            self._compare(sample_id, self._line_at(number, offset), line, item)

    def removed(self) -> tuple[int, tuple[Placed, ...]]:
        self._stream.seek(0)
        count = 0
        found: list[Placed] = []
        for line, item in located_items(self._stream, self._name):
            if not self._seen[line.number]:
                count += 1
                if len(found) < LISTED:
                    found.append(Placed(sample_id_of(item), line.number))
        return count, tuple(found)

    def _line_at(self, number: int, offset: int) -> Line:
        self._stream.seek(offset)
        return Line(number, offset, self._stream.readline())

    def _compare(self, sample_id: str, old: Line, line: Line, item: Item) -> None:
        # Most lines of two versions are the same bytes, and need not be parsed to know that.
        if old.json.strip() == line.json.strip():
            return
        fields = changed_fields(located_object(old, self._name), item)
        if not fields:
            return
        self.changed_count += 1
        self.fields.update(fields)
        if len(self.changed) < LISTED:
            self.changed.append(Changed(sample_id, old.number, line.number, fields))


def changed_fields(old: Item, new: Item) -> tuple[str, ...]:
    """The fields that differ, those of the metadata one by one, sorted."""
    before, after = _flat(old), _flat(new)
    return tuple(
        name
        for name in sorted(before.keys() | after.keys())
        if _text(before, name) != _text(after, name)
    )


def _flat(item: Item) -> Item:
    metadata = item.get("metadata")
    if not isinstance(metadata, dict):
        return item
    flat = {name: value for name, value in item.items() if name != "metadata"}
    return flat | {f"metadata.{name}": value for name, value in metadata.items()}


def _text(fields: Item, name: str) -> str | None:
    # As text: 1, 1.0 and true are equal in Python, but not the same dataset.
    return canonical_json(fields[name]) if name in fields else None


def _header(stream: BinaryIO, name: str) -> Item:
    stream.seek(0)
    found = find_header(stream, name)
    return {} if found is None else header_fields(found[1])


def _header_changes(old: Item, new: Item) -> dict[str, HeaderChange]:
    return {
        name: HeaderChange(old.get(name), new.get(name))
        for name in sorted(old.keys() | new.keys())
        if _text(old, name) != _text(new, name)
    }
