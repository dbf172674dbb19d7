"""How a process ends when something around it, or in it, breaks: with its own exit code, or with 70
and a sentence."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pace import few

ROOT = Path(__file__).parents[2]
PLUGIN = """
import os

def make(options):
    raise KeyError(os.environ["MY_TOKEN"])
"""


def in_bash(command, env, folder):
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


REDIRECTIONS = [
    ">&-",
    "2>&-",
    ">&- 2>&-",
    "<&- >&- 2>&-",
    "| head -1",
    "2>&1 | true",
    "2>/dev/full",
]


@pytest.mark.parametrize(
    ("redirection", "code"),
    few([("2>&1 | true", 1), (">&- 2>&-", 1), *((each, 0) for each in REDIRECTIONS)], 2),
)
def test_f14_a_run_that_nobody_listens_to_ends_as_it_would(
    world, child_environment, redirection, code
):
    """To files nothing is lost, and the exit code is the run's own."""
    if code:
        said = [json.loads(line) for line in world.answers.read_text("utf-8").splitlines()]
        world.write(
            world.answers, [{**line, "model_output": "", "tool_trace": []} for line in said]
        )
    words = " ".join([sys.executable, "-m", "callmark", *world.arguments()])
    finished = in_bash(
        f"{words} {redirection}; exit ${{PIPESTATUS[0]}}", child_environment, world.folder
    )
    assert "Traceback" not in finished.stderr
    assert finished.returncode == code, finished.stderr
    assert len((world.folder / "results.jsonl").read_text("utf-8").splitlines()) == 20
    assert (world.folder / "report.json").is_file()
    assert not (world.folder / "results.jsonl.journal").exists()


@pytest.mark.parametrize("redirection", few(["2>&1 | true", ">&- 2>&-"]))
@pytest.mark.parametrize(
    "words",
    [
        "score results.jsonl --in dataset.jsonl --fixtures fixtures",
        "verify dataset.jsonl --fixtures fixtures",
        "compare results.jsonl results.jsonl",
        "show results.jsonl issues-03",
        "fixtures check fixtures",
        "run --help",
        "--help",
        "",
        "run --in nowhere.jsonl",
    ],
)
def test_f14_every_command_ends_as_it_would(world, callmark, child_environment, words, redirection):
    if "results.jsonl" in words:
        assert callmark(*world.arguments(), cwd=world.folder).returncode == 0
    command = f"{sys.executable} -m callmark {words}"
    expected = in_bash(command, child_environment, world.folder).returncode
    finished = in_bash(
        f"{command} {redirection}; exit ${{PIPESTATUS[0]}}", child_environment, world.folder
    )
    assert finished.returncode == expected
    assert "Traceback" not in finished.stderr
    assert "Broken pipe" not in finished.stderr


@pytest.mark.slow
def test_f14_a_closed_stream_is_never_a_file_that_is_opened_later(world, child_environment):
    """Without a standard output the next file gets its number: a print would go into it."""
    words = " ".join([sys.executable, "-m", "callmark", *world.arguments("--quiet")])
    in_bash(words, child_environment, world.folder)
    right = (world.folder / "results.jsonl").read_bytes()
    in_bash(f"{words} <&- >&- 2>&-", child_environment, world.folder)
    assert (world.folder / "results.jsonl").read_bytes() == right


def test_f14_a_pipe_that_another_program_made_non_blocking_is_waited_for(world, child_environment):
    read, write = os.pipe()
    os.set_blocking(write, False)
    while True:
        try:
            os.write(write, b"x" * 4096)
        except BlockingIOError:
            break
    command = [sys.executable, "-m", "callmark", "run", "--help"]
    child = subprocess.Popen(command, env=child_environment, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        text = stream.read()
    assert child.wait(60) == 0, child.stderr.read()
    child.stderr.close()
    assert b"usage: callmark run" in text


@pytest.fixture
def damaged(tmp_path):
    """An installation one of whose own files is not what the code takes for granted."""
    home = tmp_path / "installed"
    left_out = shutil.ignore_patterns("tiny", "page", "__pycache__")
    shutil.copytree(ROOT / "src" / "callmark", home / "callmark", ignore=left_out)
    (home / "callmark" / "data" / "config" / "eval.default.yaml").write_text("- 1\n")
    return home


def test_f13_a_fault_of_ours_ends_with_70_and_says_what_to_do(world, callmark, damaged):
    finished = callmark(*world.arguments(), PYTHONPATH=str(damaged))
    assert finished.returncode == 70, finished.stderr
    assert finished.stderr.startswith("Traceback (most recent call last):")
    sentence, advice = finished.stderr.rstrip().splitlines()[-2:]
    assert sentence.startswith("callmark: error: a fault of callmark itself, not of your files: ")
    assert "Please report it where you got callmark from" in advice


def test_f13_a_plug_in_that_fails_is_named_and_secrets_are_not_shown(world, callmark, tmp_path):
    package = tmp_path / "plugged" / "other-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[callmark.runners]\nbroken = other_runner:make\n")
    (package.parent / "other_runner.py").write_text(PLUGIN)
    path = os.pathsep.join([str(ROOT / "src"), str(package.parent)])
    secret = "correct+horse/battery=="
    words = world.arguments("--runner", "broken")
    finished = callmark(*words, PYTHONPATH=path, MY_TOKEN=secret)
    assert finished.returncode == 2, finished.stderr
    assert "the runner 'broken' of other failed: KeyError: " in finished.stderr
    assert secret not in finished.stderr
