"""Servers of other people, started for real: recorded, served, asked again by the official client.
`make test-slow` installs them below build/mcp."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import StdioServerParameters
from tests.agents import call_all

from callmark import ground
from callmark.cli import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / "build" / "mcp"
PYTHON = INSTALLED / "servers" / "bin"
OLD_PYTHON = INSTALLED / "old-servers" / "bin"
NODE = INSTALLED / "npm" / "node_modules" / ".bin"


@pytest.fixture(autouse=True)
def installed() -> None:
    if not INSTALLED.exists():
        pytest.skip("make test-slow installs the servers")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "f.txt").write_text("one\n")
    author = {
        "GIT_AUTHOR_DATE": "2024-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2024-01-01T00:00:00Z",
    }
    names = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(
            ["git", *names, *words], cwd=folder, check=True, env={**os.environ, **author}
        )
    (folder / "f.txt").write_text("one\ntwo\n")
    return folder


def record_and_serve(tmp_path: Path, command: list[str], calls, *more: str):
    """What the live server said at first, and what is served of it; both through one client."""
    file, folder = tmp_path / "calls.jsonl", tmp_path / "fixtures"
    lines = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls]
    file.write_text("\n".join(lines))
    words = ["fixtures", "record", str(folder), "--calls", str(file), "--mode", "new", *more]
    assert main([*words, "--mcp", " ".join(command)]) == 0
    serve = ["-m", "callmark", "fixtures", "serve", str(folder)]
    env = {"PYTHONPATH": str(ROOT / "src")}
    server = StdioServerParameters(command=sys.executable, args=serve, env=env)
    return folder, call_all(server, calls, "legacy")


def same_as_live(tmp_path: Path, command: list[str], calls, live_command: list[str] | None = None):
    """Tools and answers of a fresh live server, and those of its recording."""
    _, (tools, answers) = record_and_serve(tmp_path, command, calls, "--pii", "keep")
    head, *rest = live_command or command
    live = call_all(StdioServerParameters(command=head, args=rest), calls, "legacy")
    assert {tool.name: tool for tool in tools} == {tool.name: tool for tool in live[0]}
    assert answers == live[1]
    return answers


def test_git(tmp_path, repository):
    at = {"repo_path": str(repository)}
    answers = same_as_live(
        tmp_path,
        [str(PYTHON / "mcp-server-git"), "--repository", str(repository)],
        [
            ("git_status", at),
            ("git_log", {**at, "max_count": 1}),
            ("git_diff_unstaged", at),
            ("git_show", {**at, "revision": "HEAD"}),
            ("git_show", {**at, "revision": "nope"}),
            ("git_branch", {**at, "branch_type": "local"}),
            ("git_status", {"repo_path": "/etc"}),
            ("git_status", {}),
        ],
    )
    assert [answer.is_error for answer in answers] == [False] * 4 + [True, False, True, True]


def test_filesystem(tmp_path):
    folder = tmp_path / "files"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("hello world\nprice 12.50 EUR\n")
    (folder / "sub" / "b.json").write_text('{"n": 7}')
    answers = same_as_live(
        tmp_path,
        [str(NODE / "mcp-server-filesystem"), str(folder)],
        [
            ("list_directory", {"path": str(folder)}),
            ("read_text_file", {"path": str(folder / "a.txt")}),
            ("read_text_file", {"path": str(folder / "a.txt"), "head": 1}),
            ("directory_tree", {"path": str(folder)}),
            ("search_files", {"path": str(folder), "pattern": "**/*.json"}),
            ("read_text_file", {"path": "/etc/passwd"}),
            ("read_text_file", {"path": str(folder / "none.txt")}),
            ("read_text_file", {}),
            ("list_allowed_directories", {}),
        ],
    )
    assert ground("It costs 12.50 EUR", [_json(answers[1])])["lax"]


def test_memory_whose_answers_depend_on_what_was_asked_before(tmp_path):
    ada = {"name": "Ada", "entityType": "person", "observations": ["born 1815"]}
    calls = [
        ("read_graph", {}),
        ("create_entities", {"entities": [ada]}),
        ("read_graph", {}),
        ("search_nodes", {"query": "ada"}),
        ("delete_entities", {"entityNames": ["Ada"]}),
        ("read_graph", {}),
        ("create_entities", {"entities": "oops"}),
    ]
    command = str(NODE / "mcp-server-memory")
    stores = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    starts = [["/usr/bin/env", f"MEMORY_FILE_PATH={store}", command] for store in stores]
    answers = same_as_live(tmp_path, starts[0], calls, starts[1])
    assert answers[0].structured_content == {"entities": [], "relations": []}
    assert answers[2].structured_content["entities"][0]["name"] == "Ada"
    assert answers[5] == answers[0]


def test_time_with_its_present_pinned(tmp_path):
    """What is recorded now is served for ever; what does not depend on now equals the live one."""
    now = "2026-01-01T08:00:00+01:00"
    calls = [
        ("get_current_time", {"timezone": "Europe/Berlin"}),
        ("get_current_time", {"timezone": "Mars/Base"}),
        ("get_current_time", {}),
        ("convert_time", {"source_timezone": "UTC", "time": "25:99", "target_timezone": "UTC"}),
    ]
    command = [str(PYTHON / "mcp-server-time")]
    pin = ("--pin", f"get_current_time:$.datetime={now}")
    _, (tools, answers) = record_and_serve(tmp_path, command, calls, *pin)
    live = call_all(StdioServerParameters(command=command[0]), calls, "legacy")
    assert {tool.name: tool for tool in tools} == {tool.name: tool for tool in live[0]}
    assert answers[0].structured_content["datetime"] == now
    assert json.loads(answers[0].content[0].text) == answers[0].structured_content
    assert answers[1:] == live[1][1:]


def test_sqlite_answers_in_python_and_hides_its_failures(tmp_path):
    """Rows in Python's own writing ground what they hold. A failure that says it is none is kept
    as it is and named; --error-text marks it."""
    database = tmp_path / "shop.db"
    command = [str(OLD_PYTHON / "mcp-server-sqlite"), "--db-path", str(database)]
    calls = [
        ("create_table", {"query": "CREATE TABLE people (id INTEGER, name TEXT, paid REAL)"}),
        ("write_query", {"query": "INSERT INTO people VALUES (1, 'Ada Lovelace', 12.5)"}),
        ("read_query", {"query": "SELECT * FROM people"}),
        ("read_query", {"query": "SELECT * FROM nothing"}),
    ]
    folder, (_, answers) = record_and_serve(tmp_path, command, calls)
    assert "'Ada Lovelace'" in answers[2].content[0].text
    assert ground("Ada Lovelace has paid 12.50", [_json(answers[2])])["lax"]
    assert answers[3].content[0].text.startswith("Database error")
    assert not answers[3].is_error
    shutil.rmtree(folder)
    database.unlink()
    marking = ("--error-text", "^Database error")
    _, (_, marked) = record_and_serve(tmp_path, command, calls, *marking)
    assert [answer.is_error for answer in marked] == [False, False, False, True]
    assert not ground("The table is nothing", [_json(marked[3])])["lax"]


def _json(answer):
    return answer.model_dump(by_alias=True, mode="json", exclude_none=True)
