"""The README and the docs show what really happens. Every `console` block is run, in order, in one
folder per document: each line of output that it shows comes in this order (`…` stands for any lines),
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
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


class Step(NamedTuple):
    command: str
    shown: list[str]
    code: int


def blocks_of(document: Path, language: str) -> list[str]:
    fence = rf"^```{language}\n(.*?)^```$"
    return re.findall(fence, document.read_text("utf-8"), re.M | re.S)


def steps_of(document: Path) -> list[Step]:
    steps: list[Step] = []
    asked = False
    for text in "".join(blocks_of(document, "console")).splitlines():
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
    """The first line that is shown but does not follow the ones before it."""
    lines = iter(text.rstrip() for text in printed.splitlines())
    return next((wanted for wanted in shown if wanted not in lines), None)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_commands_of_a_document_do_what_it_says(document, tmp_path, child_environment):
    """A `make` target would install again; that two of them exist is another test."""
    for name in ("eval", "data", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, call in (("python", sys.executable), ("toolmark", f"{sys.executable} -m toolmark")):
        (commands / name).write_text(f'#!/bin/sh\nexec {call} "$@"\n')
        (commands / name).chmod(0o755)
    path = f"{commands}:{child_environment['PATH']}"
    for step in steps_of(document):
        if step.command.startswith(("make", "pip", "git")):
            continue
        finished = subprocess.run(
            ["bash", "-c", step.command],
            cwd=tmp_path,
            env={**child_environment, "PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        printed = finished.stdout + finished.stderr
        assert finished.returncode == step.code, f"{step.command}\n{printed}"
        absent = in_order(step.shown, printed)
        assert absent is None, f"{document.name}: {step.command}\n  {absent}\n{printed}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_examples_of_a_document_give_what_it_says(document):
    text = "\n".join(blocks_of(document, "python"))
    test = doctest.DocTestParser().get_doctest(text, {}, document.name, str(document), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    assert runner.run(test).failed == 0


def test_there_are_commands_to_run():
    assert sum(len(steps_of(document)) for document in DOCUMENTS) >= 10
    assert shutil.which("bash")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(document):
    for target in LINK.findall(document.read_text("utf-8")):
        assert (document.parent / target).exists(), target


def test_the_docs_say_what_is_out_of_scope():
    text = (ROOT / "docs" / "faq.md").read_text("utf-8")
    for word in ("Streaming", "Responses API", "live tools"):
        assert word in text
