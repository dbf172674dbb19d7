"""Parquet: every row is an entry, of our own items or of any format that has one per line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from callmark.core.jsontext import Json, NotJson, parse_json
from callmark.datasets.importing.desk import Record
from callmark.datasets.importing.lenient import MAX_DEPTH
from callmark.errors import BadInput, MissingExtra
from callmark.store.jsonl import open_input

# Key of the file's own metadata: the header of a table that was exported from here, whose
# columns hold JSON texts.
OURS = b"callmark.header"
JSON_COLUMNS = ("prompt", "metadata", "rest")
_ROWS = 1024


def records_of_table(path: Path) -> Iterator[Record]:
    """Rows count from 1. A null is an absent field."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("reading Parquet", "parquet") from None
    try:
        with open_input(path) as stream, parquet.ParquetFile(stream) as table:
            kept = table.schema_arrow.metadata or {}
            ours = OURS in kept
            if ours:
                yield Record(0, {"__header__": _json(kept[OURS], f"{path}: {OURS.decode()}")})
            number = 0
            for batch in table.iter_batches(_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield Record(number, _item(row, f"{path}:{number}") if ours else _present(row))
    except (arrow.ArrowException, OSError) as error:
        raise BadInput(f"{path}: cannot be read as Parquet: {error}") from None


def _item(row: dict[str, Json], place: str) -> Json:
    item: dict[str, Json] = {}
    for name, value in row.items():
        if value is None:
            continue
        if name == "rest":
            item |= _json(value, f"{place}: {name}")
        elif name != "sample_id":
            item[name] = _json(value, f"{place}: {name}") if name in JSON_COLUMNS else value
    return item


def _json(text: bytes | str, where: str) -> Json:
    try:
        return parse_json(text, max_depth=MAX_DEPTH)
    except (NotJson, TypeError) as error:
        raise BadInput(f"{where}: {error}") from None


def _present(value: Json) -> Json:
    """Columns of structs fill up with nulls what other rows have."""
    if isinstance(value, dict):
        return {name: _present(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_present(entry) for entry in value]
    if isinstance(value, str | int | float | bool | None):
        return value
    return str(value)
