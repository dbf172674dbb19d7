"""A small dataset of every kind, its fixtures and recorded answers, made anew for each test."""

import json
from pathlib import Path

import pytest

from callmark.resources import demo_paths
from callmark.run.conclude import RunOutcome, run
from callmark.store.journal import stamp


def write_lines(path: Path, lines) -> Path:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    return path


def read_lines(path) -> list:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def write_journal(path: Path, lines) -> Path:
    """Lines of a journal, each with the hash of itself that a run would have given it."""
    texts = [json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in bare(lines)]
    head, *others = [text.encode() + b"\n" for text in texts]
    path.write_bytes(head + b"".join(map(stamp, others)))
    return path


def journalled(out) -> list:
    """The trials that stand in the journal of `out`, in the order in which they were finished."""
    return [line for line in read_lines(f"{out}.journal") if "sample_id" in line]


def bare(lines) -> list:
    return [{name: line[name] for name in line if name != "line_sha256"} for line in lines]


def item(number: int, **metadata) -> dict:
    """A sample that expects one search; every fifth is a control."""
    if number % 5 == 4:
        metadata = {"expected_behaviour": "no_tool", **metadata}
    else:
        calls = [{"name": "web.search", "arguments": {"q": f"city {number}"}}]
        metadata = {"call_sequence": calls, "required_facts": [1000 + 7 * number], **metadata}
    return {
        "prompt": f"How many people live in city {number}?",
        "metadata": {"sample_id": f"s{number:03}", **metadata},
    }


def fixture(number: int) -> dict:
    result = {"ok": True, "count": 1000 + 7 * number, "summary": f"City {number} is large."}
    return {"name": "web.search", "key": {"q": f"city {number}"}, "result": result}


def answer(number: int) -> dict:
    if number % 5 == 4:
        return {"sample_id": f"s{number:03}", "model_output": "I can say that without a tool."}
    return {
        "sample_id": f"s{number:03}",
        "model_output": f"There live {1000 + 7 * number} people there.",
        "tool_trace": [{"name": "web.search", "arguments": {"q": f"City  {number}"}}],
    }


class Project:
    """Files of one evaluation, and a way to run it."""

    def __init__(self, folder: Path, size: int = 25) -> None:
        self.folder = folder
        self.dataset = folder / "dataset.jsonl"
        self.fixtures = folder / "fixtures"
        self.answers = folder / "answers.jsonl"
        self.out = folder / "results.jsonl"
        self.report = folder / "report.json"
        self.fixtures.mkdir()
        self.write(
            [item(number) for number in range(size)],
            [fixture(number) for number in range(size)],
            [answer(number) for number in range(size)],
        )

    def write(self, items=None, fixtures=None, answers=None, header=None) -> None:
        if items is not None:
            first = {"__header__": True, "dataset_version": "1", **(header or {})}
            write_lines(self.dataset, [first, *items])
        if fixtures is not None:
            write_lines(self.fixtures / "all.jsonl", fixtures)
        if answers is not None:
            write_lines(self.answers, answers)

    def config(self, **settings) -> dict:
        files = {
            "dataset": str(self.dataset),
            "fixtures": str(self.fixtures),
            "model": str(self.answers),
            "out": str(self.out),
            "report": str(self.report),
        }
        return {**files, **settings}

    def run(self, **settings) -> RunOutcome:
        return run(self.config(**settings))

    def results(self) -> list:
        return read_lines(self.out)


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


@pytest.fixture
def large_project(tmp_path):
    return Project(tmp_path, size=60)


@pytest.fixture
def demo(tmp_path):
    """The settings of the bundled demo, written to a temporary folder."""
    paths = demo_paths()
    return {
        "dataset": str(paths.dataset),
        "fixtures": str(paths.fixtures),
        "model": str(paths.answers),
        "out": str(tmp_path / "results.jsonl"),
        "report": str(tmp_path / "report.json"),
    }
