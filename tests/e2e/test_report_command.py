"""`callmark report`, and the page that `run` writes by itself."""

import json
import re
from types import SimpleNamespace

import pytest

from callmark.cli import main


@pytest.fixture
def callmark(world, monkeypatch, capfd):
    """In this process: starting another one takes longer than all the rest."""
    monkeypatch.chdir(world.folder)

    def call(*words):
        code = main([str(word) for word in words])
        captured = capfd.readouterr()
        return SimpleNamespace(returncode=code, stdout=captured.out, stderr=captured.err)

    return call


@pytest.fixture
def ran(callmark, world):
    finished = callmark(*world.arguments("--out", "run/results.jsonl", "--quiet"))
    assert finished.returncode == 0, finished.stderr
    return world.folder / "run"


def head_of(page) -> dict:
    text = page.read_text("utf-8")
    [data] = re.findall(r'<script type="application/json" id="head">(.*?)</script>', text)
    return json.loads(data)


def index_of(page) -> dict:
    text = page.read_text("utf-8")
    [data] = re.findall(r'<script type="application/json" id="index">(.*?)</script>', text)
    return json.loads(data)


def test_run_writes_the_page_beside_its_report_unless_told_not_to(callmark, world, ran):
    assert head_of(ran / "report.html")["word"] == "pass"
    assert len(index_of(ran / "report.html")["ids"]) == 20
    callmark(*world.arguments("--out", "no/results.jsonl", "--no-html"))
    made = {path.name for path in (world.folder / "no").iterdir()}
    assert {name for name in made if not name.startswith("tools-")} == {
        "results.jsonl",
        "report.json",
    }
    assert len(made) == 3  # and the tools of the run
    (world.folder / "callmark.yaml").write_text("html: false\n")
    callmark(*world.arguments("--out", "yaml/results.jsonl"))
    assert not (world.folder / "yaml" / "report.html").exists()


def test_a_large_run_writes_its_page_only_if_asked_to(callmark, world, ran, monkeypatch):
    monkeypatch.setattr("callmark.cli.run.PAGE_TRIALS", 19)
    again = world.arguments("--out", "run/results.jsonl", "--restart")
    finished = callmark(*again)
    assert "callmark report run/results.jsonl --html run/report.html" in finished.stdout
    assert not (ran / "report.html").exists()
    callmark(*again, "--html")
    assert len(index_of(ran / "report.html")["ids"]) == 20


def test_a_report_on_standard_output_has_no_page(callmark, world):
    finished = callmark(*world.arguments("--report", "/dev/stdout", "--out", "x/results.jsonl"))
    assert finished.returncode == 0, finished.stderr
    assert not list(world.folder.rglob("*.html"))


def test_the_page_of_a_run_that_broke_off_shows_no_older_samples(callmark, world, ran):
    answers = world.answers.read_text("utf-8").splitlines(keepends=True)
    world.answers.write_text("".join(answers[:5]), "utf-8")
    finished = callmark(*world.arguments("--out", "run/results.jsonl", "--quiet", "--restart"))
    assert finished.returncode != 0
    report = json.loads((ran / "report.json").read_text("utf-8"))
    assert report["complete"] is False
    # Those of this run alone: 5 were answered, of the others no answer is recorded.
    assert len(index_of(ran / "report.html")["ids"]) == 20
    assert head_of(ran / "report.html")["word"] == "incomplete"
    assert "no recorded answer for sample" in (ran / "report.html").read_text("utf-8")
    assert head_of(ran / "report.html")["word"] == "incomplete"


@pytest.mark.parametrize("named", ["run", "run/results.jsonl"])
def test_report_writes_what_run_wrote(callmark, world, ran, named):
    finished = callmark("report", named, "--html", "again.html")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "again.html\n"
    assert finished.stderr == ""
    again, first = head_of(world.folder / "again.html"), head_of(ran / "report.html")
    assert again == first
    assert index_of(world.folder / "again.html") == index_of(ran / "report.html")


def test_results_without_a_report_are_summarised(callmark, world, ran):
    before = head_of(ran / "report.html")
    (ran / "report.json").unlink()
    finished = callmark("report", "run", "--html", "again.html")
    assert finished.returncode == 0
    after = head_of(world.folder / "again.html")
    assert after["word"] == before["word"]
    [gates] = [table for table in after["tables"] if table["id"] == "gates"]
    [known] = [table for table in before["tables"] if table["id"] == "gates"]
    values = {row[1]["text"]: row[2] for row in known["rows"]}
    for row in gates["rows"]:
        if row[1]["text"] != "perf_budget_sec_per_100":
            assert row[2] == values[row[1]["text"]]


def test_a_report_of_other_results_is_not_believed(callmark, world, ran):
    lines = (ran / "results.jsonl").read_bytes().splitlines(keepends=True)
    (ran / "results.jsonl").write_bytes(b"".join(lines[:7]))
    for named in ([], ["--report", "run/report.json"]):
        finished = callmark("report", "run", "--html", "x.html", *named)
        assert finished.returncode == 2
        assert "7 trials, the report counts 20" in finished.stderr
        assert not (world.folder / "x.html").exists()


def test_the_page_of_a_report_alone_shows_its_numbers(callmark, world, ran):
    finished = callmark("report", "run/report.json", "--html", "x.html")
    assert finished.returncode == 0
    assert head_of(world.folder / "x.html")["word"] == "pass"
    assert index_of(world.folder / "x.html")["ids"] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["report", "run"], "which format? Give -o FILE, --html FILE"),
        (["report", "nothing", "--html", "x.html"], "nothing: no such file"),
        (["report", "run", "--html", "run/results.jsonl"], "is the file being read"),
        (["report", "run", "--html", "run"], "is a folder"),
        (
            ["report", "run", "--html", "x.html", "--report", "answers.jsonl"],
            "is no report",
        ),
    ],
)
def test_wrong_usage_says_where_and_what(callmark, ran, words, message):
    finished = callmark(*words)
    assert finished.returncode in (2, 4)
    assert message in finished.stderr
    assert "Traceback" not in finished.stderr


def test_a_broken_line_is_named(callmark, world, ran):
    with (ran / "results.jsonl").open("a") as file:
        file.write("{\n")
    finished = callmark("report", "run", "--html", "x.html")
    assert finished.returncode == 2
    assert "results.jsonl:21" in finished.stderr
    assert not (world.folder / "x.html").exists()
    assert not list(world.folder.glob(".callmark-*"))
