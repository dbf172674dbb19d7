"""How many of our files take part when one sample goes its way: a reader has to know them all.
Counted are files with a function that ran, in this process, on any thread; imports do not count."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.endpoints import Server, completion
from tests.probing import GOOD, case, write_cases

import callmark

PACKAGE = Path(callmark.__file__).parent
# What a reader can be asked to know. Rules, scans and forms that a sample does not need are not
# entered: whoever adds to its way makes something else join, or tests in the caller.
MOST = {"run": 60, "compare": 28, "probe": 36}
# Runs a command line as `callmark` does, and writes down which files had a function called.
TRACER = """
import json, sys, threading
from pathlib import Path

package, listed = sys.argv[1], sys.argv[2]
ran, local = set(), threading.local()
OPTIMIZED = 0x1  # code of functions; that of modules and class bodies is not

def note(frame, event, argument):
    code = frame.f_code
    if code.co_filename.startswith("<frozen importlib"):
        step = {"call": 1, "return": -1}.get(event, 0)
        local.importing = getattr(local, "importing", 0) + step
    elif event == "call" and code not in ran and not getattr(local, "importing", 0):
        if code.co_filename.startswith(package) and code.co_flags & OPTIMIZED:
            ran.add(code)

def files():
    found = {}
    for code in ran:
        name = str(Path(code.co_filename).relative_to(package))
        found.setdefault(name, []).append(code.co_qualname)
    return {name: sorted(found[name]) for name in sorted(found)}

sys.argv = ["callmark", *sys.argv[3:]]
from callmark.__main__ import main
threading.setprofile(note)
sys.setprofile(note)
try:
    code = main()
except SystemExit as ending:
    code = ending.code
sys.setprofile(None)
Path(listed).write_text(json.dumps(files()))
sys.exit(code)
"""


def files_of(*words: object) -> dict[str, list[str]]:
    """Our files that the command needs, each with its functions that ran."""
    done = subprocess.run(
        [sys.executable, "-c", TRACER, str(PACKAGE), "files.json", *map(str, words)],
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1, 5), done.stderr
    return json.loads(Path("files.json").read_text("utf-8"))


@pytest.fixture
def sample(tmp_path, monkeypatch):
    """A dataset of one sample with a fixture for the call that it expects."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    item = {
        "prompt": "What is the population of Freiburg?",
        "metadata": {
            "sample_id": "freiburg",
            "expected_calls": 1,
            "call_sequence": [{"name": "web.search", "arguments": {"q": "Freiburg"}}],
        },
    }
    Path("dataset.jsonl").write_text(json.dumps(item) + "\n", "utf-8")
    Path("fixtures").mkdir()
    fixture = {
        "name": "web.search",
        "key": {"q": "Freiburg"},
        "result": {"results": [{"title": "Freiburg", "snippet": "population 230,940"}]},
    }
    Path("fixtures/web.jsonl").write_text(json.dumps(fixture) + "\n", "utf-8")
    return Path("dataset.jsonl")


def answer(request):
    if any(message["role"] == "tool" for message in request.messages):
        return completion("Freiburg has 230,940 inhabitants.")
    name = request.body["tools"][0]["function"]["name"]
    names = [tool["function"]["name"] for tool in request.body["tools"]]
    return completion(None, [(next((n for n in names if "search" in n), name), {"q": "Freiburg"})])


def run_served(sample: Path, out: str) -> dict[str, list[str]]:
    with Server(answer) as server:
        return files_of(
            "run", "--in", sample, "--fixtures", "fixtures", "--runner", "openai_http",
            "--model", "stub", "--base-url", server.url, "--out", f"{out}/results.jsonl",
        )  # fmt: skip


def too_many(command: str, files: dict[str, list[str]]) -> str:
    return f"{command}: {len(files)} files, at most {MOST[command]}:\n" + "\n".join(files)


def test_one_served_sample_passes_few_files(sample):
    files = run_served(sample, "run")
    assert Path("run/report.html").is_file()
    trial = json.loads(Path("run/results.jsonl").read_text("utf-8"))
    assert trial["tool_trace"][0]["served_by"] == "fixture:exact"  # it went the whole way
    assert len(files) <= MOST["run"], too_many("run", files)


@pytest.mark.slow
def test_a_comparison_passes_few_files(sample):
    run_served(sample, "a")
    shutil.copytree("a", "b")
    files = files_of("compare", "a/results.jsonl", "b/results.jsonl")
    assert len(files) <= MOST["compare"], too_many("compare", files)


@pytest.mark.slow
def test_a_probe_passes_few_files(sample):
    cases = write_cases(Path("cases.jsonl"), [case(number, "") for number in range(4)])
    with Server(lambda request: completion(GOOD), ["before", "after"]) as server:
        files = files_of(
            "probe", "--base", "before", "--tuned", "after", "--base-url", server.url,
            "--cases", cases, "--json", "probe.json",
        )  # fmt: skip
    assert len(files) <= MOST["probe"], too_many("probe", files)
