"""Accepting: what was merely observed becomes what is right."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from callmark.datasets.reader import Item, find_header, header_fields, open_dataset
from callmark.datasets.seal import DATASET, sealed_line
from callmark.errors import UsageError
from callmark.records.jsontext import want_object
from callmark.records.problems import hint
from callmark.records.samples import sample_id_of
from callmark.store.files import (
    Line,
    atomic_writer,
    check_writable,
    is_blank,
    lines_of,
    object_of,
    open_input,
)


class Acceptance(msgspec.Struct, frozen=True):
    """How many samples were accepted, and how many are still merely observed."""

    accepted: int
    left: int


def accept_item(item: Item) -> Item:
    """The item with what was observed as what is right. Where no call was made, none is right."""
    metadata = dict(want_object(item.get("metadata")))
    if not metadata.pop("observed", None):
        return item
    if not metadata.get("call_sequence"):
        metadata.pop("call_sequence", None)
        given = metadata.get("checks") or []
        checks = given if isinstance(given, list) else [given]
        metadata["checks"] = [*checks, {"calls_at_most": 0}]
    return {**item, "metadata": metadata}


def accept_observed(
    dataset: Path, ids: Collection[str] | None = None, out: Path | None = None
) -> Acceptance:
    """Writes the dataset to `out`, or in its own place, with the samples of these ids accepted;
    None: all that are merely observed. Other lines stay as they are, byte for byte; a header that
    pins the items pins the new ones."""
    with open_dataset(dataset) as opened:
        observed = [one.sample_id for one in opened.samples() if one.expectation.observed]
    chosen = frozenset(observed if ids is None else ids)
    unknown = sorted(chosen.difference(observed))
    if unknown:
        what = "expects nothing that was merely observed, or is not there"
        raise UsageError(f"{dataset}: {unknown[0]!r} {what}{hint(unknown[0], observed)}")
    target = out or dataset
    check_writable(target)
    header = _header_of(dataset)
    hasher = hashlib.sha256()
    for data in _body(dataset, chosen, header):
        hasher.update(data)
    with atomic_writer(target) as stream:
        if header is not None:
            is_pinned = DATASET in header_fields(header[1])
            stream.write(sealed_line(*header, {DATASET: hasher.hexdigest()} if is_pinned else {}))
        for data in _body(dataset, chosen, header):
            hasher.update(data)
            stream.write(data)
    return Acceptance(len(chosen), len(observed) - len(chosen))


def _header_of(dataset: Path) -> tuple[Line, Item] | None:
    with open_input(dataset) as stream:
        return find_header(stream, str(dataset))


def _body(
    dataset: Path, chosen: Collection[str], header: tuple[Line, Item] | None
) -> Iterator[bytes]:
    with open_input(dataset) as stream:
        for line in lines_of(stream, str(dataset)):
            if header is not None and line.number <= header[0].number:
                continue
            item = None if is_blank(line.json) else object_of(line.json)
            if item is None or sample_id_of(item) not in chosen:
                yield line.data
            else:
                yield json.dumps(accept_item(item), ensure_ascii=False).encode() + b"\n"
