"""The forms of a report, from the command line: what CI reads, and what a pull request shows."""

import csv
import json
import re
import socket
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from pyarrow import parquet

from callmark.cli import main
from callmark.cli.completion import words_by_command

ROOT = Path(__file__).parents[2]


class Finished(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def callmark(tmp_path, monkeypatch, capsys):
    """In this process: a child takes a second each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def call(*words: object, **env: str) -> Finished:
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            code = main([str(word) for word in words])
        return Finished(code, *capsys.readouterr())

    return call


@pytest.fixture
def run(callmark, world, tmp_path: Path) -> Path:
    """A finished run in a folder of its own; the first answer tells a card number."""
    told = "4111 1111 1111 1111: 1003 "
    lines = world.answers.read_text("utf-8").replace("It has 1003 ", told, 1)
    world.answers.write_text(lines, "utf-8")
    finished = callmark(*world.arguments("--out", tmp_path / "run" / "results.jsonl", "--quiet"))
    assert finished.returncode == 1, finished.stderr
    return tmp_path / "run"


def names_in(path: Path) -> list[str]:
    return [case.get("name") for case in ET.parse(path).iter("testcase")]  # noqa: S314 - our own file


def test_the_ending_of_the_name_chooses_the_form(callmark, run, tmp_path):
    files = [tmp_path / f"out.{ending}" for ending in ("xml", "md", "csv", "parquet", "json")]
    words = [word for path in files for word in ("-o", path)]
    finished = callmark("report", run, *words)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines() == list(map(str, files))
    junit, markdown, table, frame, report = files
    assert "issues-00" in names_in(junit)
    assert markdown.read_text("utf-8").startswith("### ❌ Failed: ")
    with table.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["sample_id"] for row in rows if row["failed"] == "true"] == ["issues-00"]
    assert parquet.read_table(frame).num_rows == len(rows) == 20
    assert report.read_bytes() == (run / "report.json").read_bytes()


def test_a141_reporting_opens_no_socket_and_repeats_itself(callmark, run, monkeypatch, tmp_path):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    endings = ("xml", "md", "csv", "parquet", "json")
    for name in ("one", "two"):
        words = [word for ending in endings for word in ("-o", f"{name}.{ending}")]
        assert callmark("report", run, *words).returncode == 0
    for ending in endings:
        one, two = (tmp_path / f"{name}.{ending}" for name in ("one", "two"))
        assert one.read_bytes() == two.read_bytes(), ending


@pytest.mark.parametrize("named", ["results.jsonl", "report.json", "."])
def test_results_report_or_folder(callmark, run, named, tmp_path):
    out = tmp_path / "junit.xml"
    finished = callmark("report", run / named, "--junit", out)
    assert finished.returncode == 0, finished.stderr
    assert {"verdict", "privacy_ok_rate", "issues-00"} <= set(names_in(out))


def test_results_without_a_report_are_judged_by_the_shipped_gates(callmark, run, tmp_path):
    (run / "report.json").unlink()
    finished = callmark("report", run, "--markdown", tmp_path / "x.md")
    assert finished.returncode == 0, finished.stderr
    assert "`integration_coverage`" in (tmp_path / "x.md").read_text("utf-8")


def test_a_report_of_another_run_is_refused(callmark, run, tmp_path):
    lines = (run / "results.jsonl").read_text("utf-8").splitlines(keepends=True)
    (run / "results.jsonl").write_text("".join(lines[:-1]), "utf-8")
    finished = callmark("report", run, "-o", tmp_path / "x.csv")
    assert finished.returncode == 2
    assert "19 trials, the report counts 20" in finished.stderr
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "which format?"),
        (["-o", "x.doc"], "cannot tell the format from the name"),
        (["-o", "no/such/../x"], "cannot tell the format"),
        (["--junit", "."], "is a folder"),
    ],
)
def test_wrong_usage_is_one_sentence(callmark, run, words, message):
    finished = callmark("report", run, *words)
    assert finished.returncode == 2
    assert message in finished.stderr


def test_a_report_alone_has_no_table(callmark, run, tmp_path):
    finished = callmark("report", run / "report.json", "-o", tmp_path / "x.csv")
    assert finished.returncode == 2
    assert "name the results file" in finished.stderr
    assert not (tmp_path / "x.csv").exists()


def test_run_writes_them_too_and_a_step_summary(callmark, world, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", "utf-8")
    out = tmp_path / "run" / "results.jsonl"
    words = ("--out", out, "--junit", "j.xml", "--markdown", "m.md", "-o", "t.csv")
    finished = callmark(*world.arguments(*words), GITHUB_STEP_SUMMARY=str(summary))
    assert finished.returncode == 0, finished.stderr
    assert "verdict" in names_in(tmp_path / "j.xml")
    markdown = (tmp_path / "m.md").read_text("utf-8")
    assert markdown.startswith("### ✅ Passed: ")
    assert summary.read_text("utf-8") == f"before\n{markdown}\n"
    assert (tmp_path / "t.csv").read_text("utf-8").count("\n") == 21
    again = callmark("compare", out, out, GITHUB_STEP_SUMMARY=str(summary))
    assert again.returncode == 0, again.stderr
    assert summary.read_text("utf-8").count("### ") == 2


def test_results_do_not_know_of_the_step_summary(callmark, world, tmp_path):
    for name, env in (("a", {}), ("b", {"GITHUB_STEP_SUMMARY": str(tmp_path / "s.md")})):
        callmark(*world.arguments("--out", tmp_path / name / "results.jsonl"), **env)
    first, second = ((tmp_path / name / "results.jsonl").read_bytes() for name in "ab")
    assert first == second


def test_a_step_summary_that_cannot_be_written_is_a_warning(callmark, world, tmp_path):
    finished = callmark(*world.arguments(), GITHUB_STEP_SUMMARY=str(tmp_path))
    assert finished.returncode == 0
    assert "warning: GITHUB_STEP_SUMMARY: " in finished.stderr


def test_an_unfinished_run_leaves_no_green_junit(callmark, world, tmp_path):
    """A sample without an answer is an error trial, and none is allowed."""
    lines = world.answers.read_text("utf-8").splitlines(keepends=True)
    world.answers.write_text("".join(lines[1:]), "utf-8")
    finished = callmark(*world.arguments("--junit", "j.xml", "-o", "t.csv"))
    assert finished.returncode == 4
    [verdict] = [
        case
        for case in ET.parse(tmp_path / "j.xml").iter("testcase")  # noqa: S314 - our own file
        if case.get("name") == "verdict"
    ]
    assert verdict[0].tag == "error"
    assert "issues-00" in names_in(tmp_path / "j.xml")
    assert not (tmp_path / "t.csv").exists()


def test_open_gates_are_errors_where_the_run_says_so(callmark, world, tmp_path):
    words = ("--limit", "3", "--junit", "j.xml", "--fail-on-inconclusive")
    assert callmark(*world.arguments(*words)).returncode == 5
    [case] = [
        case
        for case in ET.parse(tmp_path / "j.xml").iter("testcase")  # noqa: S314 - our own file
        if case.get("name") == "integration_coverage"
    ]
    assert case[0].tag == "error"


@pytest.mark.parametrize("command", ["score", "verify"])
def test_score_and_verify_write_them_too(callmark, run, world, command, tmp_path):
    for item in world.items:
        item["teacher_text"] = "Nothing."
    world.write_dataset({"dataset_version": "test"})
    read = run / "results.jsonl" if command == "score" else world.dataset
    finished = callmark(command, read, "--junit", "j.xml", "-o", "t.csv")
    assert finished.returncode == 2
    assert "add --out FILE" in finished.stderr
    callmark(command, read, "--junit", "j.xml", "-o", "t.csv", "--out", "scored.jsonl")
    assert "issues-00" in names_in(tmp_path / "j.xml")
    assert (tmp_path / "t.csv").read_text("utf-8").count("\n") == 21


def test_compare_chooses_by_the_ending(callmark, run, tmp_path):
    finished = callmark("compare", run, run, "-o", "c.json", "-o", "c.md")
    assert finished.returncode == 0, finished.stderr
    assert json.loads((tmp_path / "c.json").read_text("utf-8"))["decision"] == "non_inferior"
    assert (tmp_path / "c.md").read_text("utf-8").startswith("### ✅ Not worse")
    assert callmark("compare", run, run, "-o", "c.xml").returncode == 2


def test_the_workflow_of_the_docs_names_options_that_exist():
    """And its actions are pinned, its token reads, and it ends."""
    text = (ROOT / "docs" / "ci.md").read_text("utf-8")
    github, gitlab = (
        yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.S)
    )
    [job] = github["jobs"].values()
    assert github["permissions"] == {"contents": "read"}
    assert job["timeout-minutes"] <= 60
    for step in job["steps"]:
        assert "uses" not in step or re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])
    commands = [step.get("run", "") for step in job["steps"]] + gitlab["eval"]["script"]
    runs = [command for command in commands if command.startswith("callmark run")]
    assert len(runs) == 2
    known = set(words_by_command()["run"])
    for command in runs:
        assert {word for word in command.split() if word.startswith("-")} <= known
