"""Small files beside a run: verdicts of people, what trials took, and where a run's folder goes."""

import json

import pytest

from callmark.errors import BadInput, CannotWrite
from callmark.store.labels import read_labels
from callmark.store.runs import new_run_folder
from callmark.store.spending import SpendingFile


def label_line(statement_id: str) -> str:
    texts = dict.fromkeys(("sample_id", "statement", "sentence"), "x")
    return json.dumps(
        {"statement_id": statement_id, "trial": 0, **texts, "said": [], "results": []}
    )


def test_blank_lines_among_labels_are_none(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text(f"{label_line('a')}\n\n  \n{label_line('b')}\n")
    assert [line.statement_id for line in read_labels(path)] == ["a", "b"]


def test_a_statement_that_is_labelled_twice_is_named(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text(f"{label_line('a')}\n\n{label_line('a')}\n")
    with pytest.raises(BadInput) as caught:
        read_labels(path)
    assert str(caught.value) == f"{path}:3: statement_id a stands there twice"


def test_where_no_folder_can_be_made_the_way_out_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").write_text("a file of mine")
    with (
        pytest.raises(CannotWrite, match=r"^runs: no folder for this run could be made: .* --out"),
        new_run_folder("demo"),
    ):
        pass
    assert (tmp_path / "runs").read_text() == "a file of mine"


def test_what_trials_took_is_never_worth_a_run(tmp_path):
    spending = SpendingFile(tmp_path / "results.jsonl")
    spending.path.mkdir()
    spending.append(b"{}\n")
    spending.path.rmdir()
    spending.append(b"{}\n")  # half of it would be taken for all of it
    spending.close()
    assert not spending.path.exists()
