"""Every trial, or every statement, as one row: CSV for a spreadsheet, Parquet for a data frame."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, Literal

import msgspec

from callmark.errors import MissingExtra
from callmark.records.jsontext import canonical_json, well_formed
from callmark.records.report import GateRule
from callmark.records.results import Result, Scores
from callmark.records.samples import explain_check
from callmark.records.statements import StatementLabel
from callmark.reports.finished_run import FinishedRun
from callmark.reports.layout import neutralise
from callmark.store.files import read_results
from callmark.summary.failing import (
    TierCounts,
    count_tiers,
    explain_firm,
)
from callmark.summary.gates import is_measure
from callmark.summary.reasons import missing_facts, why_failed

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
    "answered": ("yes/no", "answered"),
}
_LABELS: tuple[StatementLabel, ...] = ("supported", "derived", "user_said", "unsupported")
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
    **{f"statements_{name}": "whole" for name in TierCounts.__struct_fields__},
    "firm_flags": "text",
    "copy_ratio": "number",
    "arguments": "whole",
    "arguments_invented": "whole",
    "checks": "text",
    "changes": "text",
    "missing_facts": "text",
    **dict.fromkeys(_METADATA, "text"),
    "tools": "text",
    "model_output": "text",
}


# One row a statement; `call` and `path` are what it rests on, or should have.
STATEMENT_COLUMNS: dict[str, Type] = {
    "sample_id": "text",
    "trial": "whole",
    "statement": "whole",
    "start": "whole",
    "end": "whole",
    "text": "text",
    "label": "text",
    "rule": "text",
    "tier": "text",
    "call": "whole",
    "path": "text",
    "expected": "text",
    "because": "text",
}


def columns_of(finished: FinishedRun, form: str) -> dict[str, Type]:
    """All of the table: the measures of plug-ins come last. What they are, only the trials say."""
    path = finished.file_of_trials(form)
    measures: dict[str, Type] = {
        name: "yes/no" for name in finished.report.metrics if is_measure(name)
    }
    for result in read_results(path) if measures else ():
        for name, value in ({} if result.scores is None else result.scores.added).items():
            if value is not None and not isinstance(value, bool):
                measures[name] = "number"
    return {**COLUMNS, **measures}


def _changes(scores: Scores | None) -> str | None:
    """None: nothing was observed before."""
    if scores is None or scores.changes is msgspec.UNSET:
        return None
    return "; ".join(scores.changes)


def row_of(
    result: Result,
    warnings: Collection[str] = (),
    rules: Mapping[str, GateRule] | None = None,
    columns: Mapping[str, Type] = COLUMNS,
) -> list[Value]:
    """One trial, in the order of the columns. `warnings`: the gates that only warn."""
    reasons = why_failed(result, warnings, rules)
    more = {} if result.scores is None else result.scores.added
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
        *_statement_cells(scores),
        None if scores is None else "; ".join(map(explain_check, scores.checks)),
        _changes(scores),
        None if scores is None else "; ".join(missing_facts(result)),
        *(_show(result.metadata.get(name)) for name in _METADATA),
        "; ".join(entry.name or "(no name)" for entry in result.tool_trace),
        result.model_output,
        *(_typed(more.get(name), type_) for name, type_ in columns.items() if name not in COLUMNS),
    ]
    return [well_formed(value) if isinstance(value, str) else value for value in row]


def _statement_cells(scores: Scores | None) -> list[Value]:
    if scores is None:
        return [None] * (len(TierCounts.__struct_fields__) + 4)
    origins = scores.arguments
    return [
        *msgspec.structs.astuple(count_tiers(scores)),
        " · ".join(explain_firm(scores)),
        None if scores.copying is None else scores.copying.ratio,
        None if origins is None else len(origins),
        None if origins is None else sum(one.origin == "invented" for one in origins),
    ]


def _typed(value: bool | float | None, type_: Type) -> Value:
    """A column that holds one number holds numbers only."""
    return float(value) if type_ == "number" and value is not None else value


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
    columns = columns_of(finished, "CSV")
    _write_csv(columns, _rows(finished, "CSV", columns), stream)


def write_statements_csv(finished: FinishedRun, stream: BinaryIO) -> None:
    """A row for each statement of each answer."""
    _write_csv(STATEMENT_COLUMNS, _statement_rows(finished, "CSV"), stream)


def _write_csv(columns: Collection[str], rows: Iterator[list[Value]], stream: BinaryIO) -> None:
    text = io.TextIOWrapper(stream, "utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            writer.writerow(map(_cell, row))
    finally:
        # The stream is the caller's: a wrapper that is thrown away would close it.
        text.detach()


def write_parquet(finished: FinishedRun, stream: BinaryIO) -> None:
    """Typed columns, texts as they are."""
    named = columns_of(finished, "Parquet")
    _write_parquet(named, _rows(finished, "Parquet", named), stream)


def write_statements_parquet(finished: FinishedRun, stream: BinaryIO) -> None:
    """A row for each statement of each answer."""
    _write_parquet(STATEMENT_COLUMNS, _statement_rows(finished, "Parquet"), stream)


def _write_parquet(
    named: Mapping[str, Type], all_rows: Iterator[list[Value]], stream: BinaryIO
) -> None:
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
    schema = pa.schema([(name, types[type_]) for name, type_ in named.items()])
    with parquet.ParquetWriter(stream, schema) as writer:
        for rows in _batches(all_rows):
            columns = [list(column) for column in zip(*rows, strict=True)]
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _rows(finished: FinishedRun, form: str, columns: Mapping[str, Type]) -> Iterator[list[Value]]:
    report = finished.report
    for result in read_results(finished.file_of_trials(form)):
        yield row_of(result, report.warning_gates, report.header.gates, columns)


def _statement_rows(finished: FinishedRun, form: str) -> Iterator[list[Value]]:
    for result in read_results(finished.file_of_trials(form)):
        yield from statement_rows(result)


def statement_rows(result: Result) -> Iterator[list[Value]]:
    """The statements of one answer, in the order of STATEMENT_COLUMNS."""
    data = result.model_output.encode("utf-8", "surrogatepass")
    for number, one in enumerate(() if result.scores is None else result.scores.statements):
        said = data[one.start : one.end].decode("utf-8", "replace")
        expected = None if one.expected is None else canonical_json(one.expected)
        place = (one.call, one.path, expected, one.because or None)
        row: list[Value] = [result.sample_id, result.trial, number, one.start, one.end, said]
        row += [one.label, one.rule, one.tier, *place]
        yield [well_formed(value) if isinstance(value, str) else value for value in row]


def _batches(rows: Iterator[list[Value]]) -> Iterator[list[list[Value]]]:
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
