"""A copy of a dataset that carries the surrogates of a recording, so that its calls find their
fixtures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from callmark.core.identity import sample_id_of
from callmark.core.jsontext import Json
from callmark.datasets.located import find_header, header_fields, located_items
from callmark.datasets.schema import HEADER_KEY
from callmark.errors import UsageError
from callmark.recording.surrogates import Surrogates
from callmark.store.files import atomic_writer
from callmark.store.jsonl import open_input

Item = dict[str, Json]

# A header's hashes are of another dataset now; places in a text are of another text.
_PINS = ("dataset_sha256", "fixtures_sha256", "tool_registry_sha256")
_PLACES = ("integration_spans_bytes", "json_args_spans_bytes")


def items_for_copy(dataset: Path | None) -> list[Item]:
    """Every item, with the id that it has now written down."""
    if dataset is None:
        raise UsageError("--out-dataset: a copy of what? Name the dataset with --in")
    with open_input(dataset) as stream:
        return [_named(item) for _, item in located_items(stream, str(dataset))]


def with_surrogates(item: Item, surrogates: Surrogates) -> Item:
    """Ids stay: results and fixtures are joined by them."""
    changed: Item = surrogates.json(item)
    changed["metadata"]["sample_id"] = item["metadata"]["sample_id"]
    for name in ("sample_id", "id"):
        if name in item:
            changed[name] = item[name]
    if changed.get("teacher_text") != item.get("teacher_text"):
        for name in _PLACES:
            changed["metadata"].pop(name, None)
    return changed


def write_copy(path: Path, dataset: Path | None, items: Sequence[Item]) -> None:
    header = None if dataset is None else _header(dataset)
    with atomic_writer(path) as stream:
        for line in (*([] if header is None else [header]), *items):
            stream.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")


def _named(item: Item) -> Item:
    metadata = item.get("metadata")
    return {**item, "metadata": {**(metadata or {}), "sample_id": sample_id_of(item)}}


def _header(dataset: Path) -> Item | None:
    with open_input(dataset) as stream:
        found = find_header(stream, str(dataset))
    if found is None:
        return None
    kept = {name: value for name, value in header_fields(found[1]).items() if name not in _PINS}
    return {HEADER_KEY: True, **kept}
