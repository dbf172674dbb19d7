"""One row for each trial: a spreadsheet executes nothing, a data frame has real types."""

import csv
import io
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.builders import make_error, make_result, numbered, served_call
from tests.hostile import HOSTILE
from tests.stated_run import stated
from tests.unit.reports.finished_runs import finished, hostile_result, mixed, report_of

from callmark.errors import MissingExtra, UsageError
from callmark.records.jsontext import well_formed
from callmark.records.results import ArgumentOrigin, Copying, Result, Scores
from callmark.reports.finished_run import FinishedRun
from callmark.reports.tables import COLUMNS, _cell, row_of, write_csv, write_parquet


def csv_of(run: FinishedRun) -> bytes:
    stream = io.BytesIO()
    write_csv(run, stream)
    return stream.getvalue()


def rows_of(run: FinishedRun) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_of(run).decode(), newline="")))


def frame_of(run: FinishedRun) -> pa.Table:
    stream = io.BytesIO()
    write_parquet(run, stream)
    return parquet.read_table(io.BytesIO(stream.getvalue()))


def results() -> list[Result]:
    return [
        make_result(0, trace=[served_call()], metadata={"slices": ["a", "b"], "locale": "de"}),
        make_result(0, trial=1, f1=0.5, values={"unsupported": 2}),
        make_error(1),
    ]


def test_one_row_for_each_trial_with_its_scores(tmp_path: Path):
    first, second, lost = rows_of(finished(tmp_path, results()))
    assert (first["sample_id"], first["trial"], first["f1_lax"]) == ("s0", "0", "1.0")
    assert (first["tools"], first["slices"], first["locale"]) == ("web.search", "a; b", "de")
    assert (first["failed"], first["json_args_valid"], first["clarify_ok"]) == ("false", "true", "")
    assert (second["trial"], second["f1_lax"], second["values_unsupported"]) == ("1", "0.5", "2")
    assert second["reasons"].startswith("F1 0.500: ")
    assert (lost["status"], lost["f1_lax"], lost["reasons"]) == ("error", "", "not scored: timeout")


def test_statements_are_counted_and_firm_flags_told(tmp_path: Path):
    statements = stated("supported", "rounded", "misattributed", "unchecked", "user_said")
    advisory = stated("contradicted", tier="advisory")
    origins = tuple(
        ArgumentOrigin(call=0, path=f"/{origin}", origin=origin) for origin in ("said", "invented")
    )
    changed = {"copying": Copying(stated=3, leaves=4), "arguments": origins, "answered": True}
    first, lost = rows_of(
        finished(
            tmp_path,
            [make_result(0, statements=(*statements, *advisory), **changed), make_error(1)],
        )
    )
    counts = [first[f"statements_{name}"] for name in ("good", "firm", "advisory", "unchecked")]
    assert counts == ["2", "1", "1", "1"]
    assert first["firm_flags"] == "wrong record: says “9”; no result has it"
    assert (first["copy_ratio"], first["answered"]) == ("0.75", "true")
    assert (first["arguments"], first["arguments_invented"]) == ("2", "1")
    assert (lost["statements_good"], lost["firm_flags"], lost["arguments"]) == ("", "", "")


def test_parquet_has_types_and_says_the_same(tmp_path: Path):
    run = finished(tmp_path, results())
    frame = frame_of(run)
    kinds = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "yes/no": pa.bool_()}
    assert {field.name: field.type for field in frame.schema} == {
        name: kinds[type_] for name, type_ in COLUMNS.items()
    }
    assert [list(row.values()) for row in frame.to_pylist()] == list(map(row_of, results()))


def test_every_verdict_of_a_score_has_its_column():
    """A new field of the scores belongs in the table, or here."""
    flat = {
        "spans",
        "recall_kind",
        "lax",
        "strict",
        "values",
        "calls",
        "more",  # one column for each measure of a plug-in
        "privacy",
        "unresolved",
        "strict_keys",
        "statements",  # counted by tier
        "copying",
    }
    assert set(Scores.__struct_fields__) - flat <= set(COLUMNS)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_one_row_and_no_formula(text: str, tmp_path: Path):
    run = finished(tmp_path, [hostile_result(text, 0), make_result(1)])
    first, second = rows_of(run)
    assert second["sample_id"] == "s1"
    for cell in first.values():
        assert not cell.lstrip(" ").startswith(tuple("=+-@\t\r＝＋－＠"))
        assert not set(cell) & set("\x00\x1b\r\x9b\u202e")
    assert frame_of(run).column("model_output").to_pylist()[0] == well_formed(text)


def test_a_number_stays_a_number():
    """Only text is marked: minus one is no formula."""
    assert _cell(-1) == -1
    assert _cell("-1") == "'-1"


def test_equal_runs_give_equal_bytes(tmp_path: Path):
    run = finished(tmp_path, mixed())
    assert csv_of(run) == csv_of(run)
    assert frame_of(run).equals(frame_of(run))


def test_no_trials_is_a_table_without_rows(tmp_path: Path):
    (tmp_path / "empty.jsonl").touch()
    run = FinishedRun(report=report_of(numbered([make_result()])), results=tmp_path / "empty.jsonl")
    assert csv_of(run).decode() == ",".join(COLUMNS) + "\n"
    assert frame_of(run).num_rows == 0


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_a_report_has_no_trials(write):
    with pytest.raises(UsageError, match="name the results file"):
        write(FinishedRun(report=report_of(mixed())), io.BytesIO())


def test_without_the_extra_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install '.\[parquet\]'"):
        write_parquet(finished(tmp_path, mixed()), io.BytesIO())
