"""What we have, in files that others read: results as an Inspect log, a dataset as plain JSON lines
or as a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from callmark.datasets.exporting.inspect_log import export_inspect
from callmark.datasets.importing.sources import JSON_COLUMNS, OURS
from callmark.datasets.reader import Item, find_header, header_fields, located_items, open_dataset
from callmark.errors import BadInput, MissingExtra
from callmark.records.jsontext import Json
from callmark.records.samples import sample_id_of
from callmark.store.files import atomic_writer, open_input

__all__ = ["DATASET_EXPORTS", "FORMATS", "FORMAT_OF_SUFFIX", "INSPECT", "export_inspect"]

_ROWS = 1024
_OF_RESULTS = frozenset({"model_output", "tool_trace", "scores"})  # no item has all of them
_PLAIN_COLUMNS = ("user_turns", "teacher_text")


def export_jsonl(source: Path, out: Path) -> int:
    """Every item, without the header, each with its id in `sample_id`."""
    count = 0
    with atomic_writer(out) as target:
        for item in _items(source):
            line = {"sample_id": sample_id_of(item), **_without_id(item)}
            target.write(_text(line).encode() + b"\n")
            count += 1
    return count


def export_parquet(source: Path, out: Path) -> int:
    """One row per item. `prompt`, `metadata` and whatever else an item has (`rest`) are JSON
    texts, as their shape differs from item to item; the header is in the file's own metadata."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("writing Parquet", "parquet") from None
    texts = ("sample_id", *JSON_COLUMNS, "teacher_text")
    fields = [arrow.field(name, arrow.string()) for name in texts]
    fields.append(arrow.field("user_turns", arrow.list_(arrow.string())))
    schema = arrow.schema(fields, metadata={OURS: _text(_header(source)).encode()})
    count = 0
    items = _items(source)
    with atomic_writer(out) as target, parquet.ParquetWriter(target, schema) as table:
        while rows := [_row(item) for item in islice(items, _ROWS)]:
            table.write_table(arrow.Table.from_pylist(rows, schema))
            count += len(rows)
    return count


def _items(source: Path) -> Iterator[Item]:
    open_dataset(source).close()  # every problem of the file, before anything is written
    with open_input(source) as stream:
        for _, item in located_items(stream, str(source)):
            if item.keys() >= _OF_RESULTS:
                raise BadInput(
                    f"{source}: these are results, not a dataset; `callmark report {source} -o"
                    " FILE` writes tables of them, and a log of Inspect ends with .eval"
                )
            yield item


def _header(source: Path) -> Item:
    with open_input(source) as stream:
        found = find_header(stream, str(source))
    return {} if found is None else header_fields(found[1])


def _row(item: Item) -> dict[str, Json]:
    row: dict[str, Json] = {"sample_id": sample_id_of(item)}
    rest: Item = {}
    for name, value in item.items():
        if name in _PLAIN_COLUMNS:
            row[name] = value
        elif name in ("prompt", "metadata"):
            row[name] = _text(value)
        else:
            rest[name] = value
    return {**row, "rest": _text(rest)} if rest else row


def _without_id(item: Item) -> Item:
    return {name: value for name, value in item.items() if name != "sample_id"}


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


INSPECT = "inspect"
# Of a dataset; results go to `export_inspect`.
DATASET_EXPORTS: dict[str, Callable[[Path, Path], int]] = {
    "jsonl": export_jsonl,
    "parquet": export_parquet,
}
FORMATS = (INSPECT, *DATASET_EXPORTS)
FORMAT_OF_SUFFIX = {
    ".eval": INSPECT,
    ".json": INSPECT,
    ".jsonl": "jsonl",
    ".parquet": "parquet",
}
