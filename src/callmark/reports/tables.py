"""Every trial as one row: CSV for a spreadsheet, Parquet for a data frame."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from callmark.errors import MissingExtra
from callmark.reports.finished import FinishedRun
from callmark.reports.neutral import neutralise
from callmark.reports.trial_columns import COLUMNS, Type, Value, row_of
from callmark.store.lines import read_results

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 2000
LONGEST_CELL = 32_000  # a spreadsheet takes 32,767 characters
# A cell that begins with one of these is a formula to a spreadsheet, the wide forms too.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def write_csv(finished: FinishedRun, stream: BinaryIO) -> None:
    """UTF-8, RFC 4180 with line feeds. A text that a spreadsheet would take for a formula begins
    with an apostrophe, control characters are written out, and what no cell could hold is cut."""
    path = finished.file_of_trials("CSV")
    text = io.TextIOWrapper(stream, "utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        warnings = finished.report.warning_gates
        for result in read_results(path):
            writer.writerow(map(_cell, row_of(result, warnings)))
    finally:
        text.detach()


def write_parquet(finished: FinishedRun, stream: BinaryIO) -> None:
    """Typed columns, texts as they are."""
    path = finished.file_of_trials("Parquet")
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("Parquet", "parquet") from None
    types: dict[Type, pa.DataType] = {
        "text": pa.string(),
        "whole": pa.int64(),
        "number": pa.float64(),
        "yes/no": pa.bool_(),
    }
    schema = pa.schema([(name, types[type_]) for name, type_ in COLUMNS.items()])
    with parquet.ParquetWriter(stream, schema) as writer:
        for rows in _batches(path, finished.report.warning_gates):
            columns = [list(column) for column in zip(*rows, strict=True)]
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _batches(path: Path, warnings: frozenset[str]) -> Iterator[list[list[Value]]]:
    rows = (row_of(result, warnings) for result in read_results(path))
    while batch := list(islice(rows, ROWS_AT_ONCE)):
        yield batch


def _cell(value: Value) -> str | int | float:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            is_formula = value.lstrip(" ").startswith(_FORMULA)
            text = neutralise(f"'{value}" if is_formula else value)
            return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"
    return value
