"""Everything here goes through a child process, as a stranger's shell would."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e.forked import ForkServer

ROOT = Path(__file__).parents[2]
Finished = subprocess.CompletedProcess[str]
Shell = Callable[..., Finished]


@pytest.fixture
def child_environment() -> dict[str, str]:
    """This checkout, no colours, and none of the reader's own settings."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("CALLMARK_")}
    return {**env, "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1"}


@pytest.fixture
def python(tmp_path: Path, child_environment: dict[str, str]) -> Shell:
    def call(*arguments: str | Path, cwd: Path = tmp_path, stdin: str = "", **env: str) -> Finished:
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=cwd,
            env={**child_environment, **env},
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )

    return call


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    server = ForkServer({**os.environ, "PYTHONPATH": str(ROOT / "src")})
    yield server
    server.close()


@pytest.fixture
def callmark(
    python: Shell,
    fork_server: ForkServer,
    child_environment: dict[str, str],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Shell:
    """A call with variables of its own gets a new interpreter, which may depend on them."""
    streams = tmp_path_factory.mktemp("streams")

    def call(*arguments: str | Path, cwd: Path = tmp_path, stdin: str = "", **env: str) -> Finished:
        if env:
            return python("-m", "callmark", *arguments, cwd=cwd, stdin=stdin, **env)
        return fork_server.call(
            list(map(str, arguments)),
            cwd=cwd, env=child_environment, stdin=stdin, streams=streams,
        )  # fmt: skip

    return call


class World:
    """A small dataset with its fixtures and the recorded answers of a good model."""

    def __init__(self, folder: Path, size: int = 20) -> None:
        self.folder = folder
        self.dataset = folder / "dataset.jsonl"
        self.fixtures = folder / "fixtures"
        self.answers = folder / "answers.jsonl"
        self.fixtures.mkdir()
        self.items = [_item(number) for number in range(size)]
        self.write_dataset({"dataset_version": "test"})
        self.write(self.fixtures / "web.search.jsonl", [_fixture(n) for n in range(size)])
        self.write(self.answers, [_answer(number) for number in range(size)])

    def write_dataset(self, header: dict[str, object] | None, *raw_lines: str) -> None:
        head = [] if header is None else [{"__header__": True, **header}]
        self.write(self.dataset, [*head, *self.items])
        with self.dataset.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in raw_lines)

    @staticmethod
    def write(path: Path, values: list[dict[str, object]]) -> None:
        path.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")

    def arguments(self, *more: str | Path) -> list[str]:
        """A run whose results go to results.jsonl here, unless `more` says otherwise."""
        named = {"--in": self.dataset, "--fixtures": self.fixtures, "--model": self.answers}
        if not {"--out", "--num-shards", "--shard-index"}.intersection(more):
            named["--out"] = Path("results.jsonl")
        flat = [str(word) for pair in named.items() for word in pair]
        return ["run", "--runner", "replay", *flat, *map(str, more)]


def _count(number: int) -> int:
    return 1003 + 17 * number


def _call(number: int) -> dict[str, object]:
    return {"name": "web.search", "arguments": {"q": f"open issues of project {number}"}}


def _item(number: int) -> dict[str, object]:
    metadata = {
        "sample_id": f"issues-{number:02}",
        "call_sequence": [_call(number)],
        "required_facts": [_count(number)],
    }
    return {"prompt": f"How many issues does project {number} have?", "metadata": metadata}


def _fixture(number: int) -> dict[str, object]:
    key = {"q": f"open issues of project {number}"}
    return {"name": "web.search", "key": key, "result": {"ok": True, "count": _count(number)}}


def _answer(number: int) -> dict[str, object]:
    text = f"It has {_count(number)} open issues."
    return {"sample_id": f"issues-{number:02}", "model_output": text, "tool_trace": [_call(number)]}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
