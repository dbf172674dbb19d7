"""The README and the docs show what really happens. Every `console` block is run, in order, in one
folder per document: the lines of output that it shows come in this order (`…` is any lines),
and the exit code is 0 or what `$ echo $?` shows. Every `>>>` example gives what it says."""

import doctest
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "eval" / "HARNESS.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
# Their commands load the model or run hundreds of samples: ten seconds and more, by make test-slow.
LONG = {
    "HARNESS.md", "cache.md", "compare.md", "extending.md", "generate.md", "mcp.md", "page.md", "probe.md",
    "running.md", "scaling.md", "flaky.md", "pytest.md", "verify.md", "README.md", "import.md", "reports.md",
    "labelling.md", "wrappers.md", "quickstart.md", "ci.md", "model.md",
}  # fmt: skip
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)


class File(NamedTuple):
    """A block that begins with "```json NAME" is the file NAME."""

    name: str
    text: str


class Step(NamedTuple):
    command: str
    shown: list[str]
    code: int


def blocks_of(document: Path, language: str) -> list[str]:
    found = FENCE.findall(document.read_text("utf-8"))
    return [text for name, _, text in found if name == language]


def script_of(document: Path) -> list[File | Step]:
    script: list[File | Step] = []
    for language, name, text in FENCE.findall(document.read_text("utf-8")):
        if name:
            script.append(File(name, text))
        elif language == "console":
            script.extend(steps_of(text))
    return script


def steps_of(block: str) -> list[Step]:
    steps: list[Step] = []
    asked = False
    for text in block.splitlines():
        if text == "$ echo $?":
            asked = True
        elif asked:
            steps[-1] = steps[-1]._replace(code=int(text))
            asked = False
        elif text.startswith("$ "):
            steps.append(Step(text.removeprefix("$ "), [], 0))
        elif text.strip() not in ("", "…"):
            steps[-1].shown.append(text.rstrip())
    return steps


def in_order(shown: list[str], printed: str) -> str | None:
    """The first line that is shown but does not follow the ones before it. Columns may be wider: a
    slow machine has more digits in what a clock measured."""
    lines = iter(" ".join(text.split()) for text in printed.splitlines())
    return next((wanted for wanted in shown if " ".join(wanted.split()) not in lines), None)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.name in LONG else [])
        for one in DOCUMENTS
        if script_of(one)
    ],
)
def test_the_commands_of_a_document_do_what_it_says(document, tmp_path, child_environment):
    """A `make` target would install again; that two of them exist is another test."""
    for name in ("eval", "data", "examples", "scripts", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    commands = tmp_path / "bin"
    commands.mkdir()
    # `pip install` is done for real, but into a folder of its own, and nothing is downloaded.
    installed = tmp_path / "installed"
    pip = f"{sys.executable} -m pip --quiet --disable-pip-version-check --no-cache-dir"
    where = f"--target {installed} --no-index --no-deps --no-build-isolation"
    for name, call in (
        ("python", sys.executable),
        ("callmark", f"{sys.executable} -m callmark"),
        ("pip", f"env PIP_ROOT_USER_ACTION=ignore {pip}"),
    ):
        # An MCP client starts a command with few variables: the path to us is none of them.
        home = f"PYTHONPATH={ROOT / 'src'}:{installed}"
        more = where if name == "pip" else ""
        (commands / name).write_text(f'#!/bin/sh\n{home} exec {call} "$@" {more}\n')
        (commands / name).chmod(0o755)
    path = f"{commands}:{child_environment['PATH']}"
    for step in script_of(document):
        if isinstance(step, File):
            file = tmp_path / step.name
            file.parent.mkdir(exist_ok=True)
            file.write_text(step.text, "utf-8")
            continue
        if step.command.startswith("make"):
            continue
        finished = subprocess.run(
            ["bash", "-c", step.command],
            cwd=tmp_path,
            env={**child_environment, "PATH": path},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        printed = finished.stdout + finished.stderr
        assert finished.returncode == step.code, f"{step.command}\n{printed}"
        absent = in_order(step.shown, printed)
        assert absent is None, f"{document.name}: {step.command}\n  {absent}\n{printed}"


@pytest.mark.parametrize(
    "document",
    [one for one in DOCUMENTS if blocks_of(one, "python")],
    ids=lambda path: path.name,
)
def test_the_examples_of_a_document_give_what_it_says(document, monkeypatch):
    monkeypatch.chdir(ROOT)
    text = "\n".join(blocks_of(document, "python"))
    test = doctest.DocTestParser().get_doctest(text, {}, document.name, str(document), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    assert runner.run(test).failed == 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_who_reads_a_file_is_told_its_name(document):
    """What stands beside the language of a block is not shown by a browser."""
    text = document.read_text("utf-8")
    for name in re.findall(r"^```\w+ (\S+)$", text, re.M):
        before = text[: text.index(f" {name}\n")].rsplit("```", 1)[0].rstrip()
        assert f"`{name}`" in before.rsplit("\n\n", 1)[-1], name


def test_there_are_commands_to_run():
    assert sum(len(script_of(document)) for document in DOCUMENTS) >= 10
    assert shutil.which("bash")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(document):
    for target in LINK.findall(document.read_text("utf-8")):
        assert (document.parent / target).exists(), target


def test_the_docs_say_what_is_out_of_scope():
    text = (ROOT / "docs" / "faq.md").read_text("utf-8")
    for word in ("Streaming", "live tools"):
        assert word in text
    assert "Responses API" not in text  # it has a runner of its own
