"""A notebook shows a report and a trial by themselves, and a data frame takes the statements."""

import csv
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from pyarrow import parquet

import callmark
from callmark.cli import main
from callmark.records.results import Result
from callmark.reports.tables import STATEMENT_COLUMNS
from callmark.resources import starter_paths

WRONG = ("81.25 EUR", "85.20 EUR")


class Page(HTMLParser):
    """Tags that are open, those that were seen, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, _attributes):
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The starter with one wrong amount in its answers."""
    folder = tmp_path_factory.mktemp("run")
    shipped = starter_paths()
    answers = folder / "answers.jsonl"
    answers.write_text(shipped.answers.read_text("utf-8").replace(*WRONG), "utf-8")
    report = callmark.run(
        dataset=shipped.dataset, fixtures=shipped.fixtures, registry=shipped.registry,
        model=answers, out=folder / "results.jsonl", html=False,
    )  # fmt: skip
    return folder, report


def test_a_report_shows_its_verdict_and_its_gates(run):
    _, report = run
    page = Page(report._repr_html_())
    assert "PASS" in page.text
    assert "answers built on results" in page.text
    assert "18 samples, 16 of them need a tool" in page.text
    assert "n/a" not in page.text


def test_a_trial_shows_its_answer_with_the_flag(run):
    folder, _ = run
    trials = {one.sample_id: one for one in callmark.read_results(folder)}
    assert isinstance(trials["total-W100"], Result)
    page = Page(trials["total-W100"]._repr_html_())
    assert "85.20" in page.text
    assert "FAIL" in page.text
    assert "find_order" in page.text
    assert "PASS" in Page(trials["hello"]._repr_html_()).text


def test_hostile_text_stays_text(run):
    folder, _ = run
    first = next(callmark.read_results(folder))
    evil = "<script>alert(1)</script>\x1b[2J <img src=x onerror=alert(1)>"
    spoilt = msgspec.structs.replace(first, model_output=evil, sample_id=evil)
    shown = spoilt._repr_html_()
    assert not {"script", "img"} & Page(shown).seen
    assert "\x1b" not in shown


def test_statements_are_one_row_each(run):
    folder, _ = run
    rows = callmark.statements(folder)
    counted = sum(len(one.scores.statements) for one in callmark.read_results(folder))
    assert len(rows) == counted > 30
    (wrong,) = [row for row in rows if row["text"] == "85.20" and row["sample_id"] == "total-W100"]
    assert (wrong["label"], wrong["tier"]) == ("unsupported", "advisory")
    assert {row["label"] for row in rows} >= {"supported", "unsupported"}


def test_the_same_rows_as_csv_and_parquet(run, capsys):
    folder, _ = run
    table, columns = folder / "s.csv", folder / "s.parquet"
    words = ["report", str(folder), "-o", f"statements:{table}", "-o", f"statements:{columns}"]
    assert main(words) == 0
    with table.open(encoding="utf-8", newline="") as stream:
        read = list(csv.DictReader(stream))
    assert list(read[0]) == list(STATEMENT_COLUMNS)
    assert parquet.read_table(columns).to_pylist() == callmark.statements(folder)
    assert [row["text"] for row in read] == [row["text"] for row in callmark.statements(folder)]
    assert main(["report", str(folder), "-o", "statements:x.md"]) == 2
    assert "ends in .csv or .parquet" in capsys.readouterr().err


def test_records_do_not_load_the_reports_to_be_defined():
    code = (
        "import sys, callmark.records.report, callmark.records.results;"
        " print('callmark.reports.notebook' in sys.modules)"
    )
    source = Path(callmark.__file__).parents[1]
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(source)},
    )  # fmt: skip
    assert finished.stdout.strip() == "False"
