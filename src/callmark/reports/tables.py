"""Every trial as one row: CSV for a spreadsheet, Parquet for a data frame."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from callmark.errors import MissingExtra
from callmark.records.checks import explain_check
from callmark.records.jsontext import well_formed
from callmark.records.results import Result, Scores, ValueLabel
from callmark.reports.finished_run import FinishedRun
from callmark.reports.neutral import neutralise
from callmark.store.lines import read_results
from callmark.summary.failing import why_failed

if TYPE_CHECKING:
    import pyarrow as pa

Type = Literal["text", "whole", "number", "yes/no"]
Value = str | int | float | bool | None

# name -> (type, place in `scores`); empty where the trial was not scored or it does not apply
_SCORES: dict[str, tuple[Type, str]] = {
    "kind": ("text", "kind"),
    "span_extractor": ("text", "span_extractor"),
    "f1_lax": ("number", "lax.f1"),
    "precision_lax": ("number", "lax.precision"),
    "recall_lax": ("number", "lax.recall"),
    "f1_strict": ("number", "strict.f1"),
    "precision_strict": ("number", "strict.precision"),
    "recall_strict": ("number", "strict.recall"),
    "spans_total": ("whole", "spans_total"),
    "spans_counted": ("whole", "spans_counted"),
    "spans_over_cap": ("whole", "spans_over_cap"),
    "spans_grounded_lax": ("whole", "lax.grounded"),
    "spans_grounded_strict": ("whole", "strict.grounded"),
    "facts_required": ("whole", "facts_required"),
    "facts_found_lax": ("whole", "lax.found"),
    "facts_found_strict": ("whole", "strict.found"),
    "calls_expected": ("whole", "calls.expected"),
    "calls_observed": ("whole", "calls.observed"),
    "calls_matched": ("whole", "calls.matched"),
    "call_attempts": ("whole", "calls.attempts"),
    "call_attempts_valid": ("whole", "calls.valid_attempts"),
    "fixture_hits": ("whole", "calls.hits"),
    "fixture_misses": ("whole", "calls.misses"),
    "wrong_calls": ("whole", "calls.wrong_calls"),
    "call_f1": ("number", "call_f1"),
    "json_args_valid": ("yes/no", "json_args_valid"),
    "multi_call_parity_ok": ("yes/no", "multi_call_parity_ok"),
    "recovered": ("yes/no", "recovered"),
    "gave_up_honestly": ("yes/no", "gave_up_honestly"),
    "controls_with_integration": ("whole", "controls_with_integration"),
    "negative_control_ok": ("yes/no", "negative_control_ok"),
    "clarify_ok": ("yes/no", "clarify_ok"),
    "locale_probe_ok": ("yes/no", "locale_probe_ok"),
    "privacy_ok": ("yes/no", "privacy_ok"),
    "checks_ok": ("yes/no", "checks_ok"),
}
_LABELS: tuple[ValueLabel, ...] = ("supported", "derived", "user_said", "unsupported")
_METADATA = ("scenario", "complexity", "locale", "language", "cluster", "slices")
# name -> type, in the order of the table
COLUMNS: dict[str, Type] = {
    "index": "whole",
    "sample_id": "text",
    "trial": "whole",
    "status": "text",
    "stop": "text",
    "error": "text",
    "failed": "yes/no",
    "reasons": "text",
    **{name: type_ for name, (type_, _) in _SCORES.items()},
    **{f"values_{label}": "whole" for label in _LABELS},
    "checks": "text",
    **dict.fromkeys(_METADATA, "text"),
    "tools": "text",
    "model_output": "text",
}


def row_of(result: Result, warnings: Collection[str] = ()) -> list[Value]:
    """One trial, in the order of the columns. `warnings`: the gates that only warn."""
    reasons = why_failed(result, warnings)
    scores = result.scores
    values = None if scores is None else scores.values
    row: list[Value] = [
        result.index,
        result.sample_id,
        result.trial,
        result.status,
        result.stop,
        result.error,
        bool(reasons),
        "; ".join(reasons),
        *(None if scores is None else _at(scores, place) for _, place in _SCORES.values()),
        *(None if values is None else values.get(label, 0) for label in _LABELS),
        None if scores is None else "; ".join(map(explain_check, scores.checks)),
        *(_show(result.metadata.get(name)) for name in _METADATA),
        "; ".join(entry.name or "(no name)" for entry in result.tool_trace),
        result.model_output,
    ]
    return [well_formed(value) if isinstance(value, str) else value for value in row]


def _at(scores: Scores, place: str) -> Value:
    # No strict key, no strict score: an empty cell, not a 0 that would be averaged.
    if place.startswith("strict.") and not scores.strict_keys:
        return None
    found: Value = reduce(getattr, place.split("."), scores)  # type: ignore[assignment]
    return found


def _show(value: object) -> str | None:
    """Metadata say what the dataset says, in whatever type."""
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return None if value is None else str(value)


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
        # The stream is the caller's: a wrapper that is thrown away would close it.
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
