"""From words to a command, and from what a command raises to a sentence and an exit code."""

import sys

import pytest

from callmark.cli import MODULES, main
from callmark.cli import label as label_command
from callmark.errors import Fault


@pytest.fixture
def raising(monkeypatch):
    """Let `callmark label` raise this."""

    def install(error):
        def fail(arguments):
            raise error

        monkeypatch.setattr(label_command, "main", fail)

    return install


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "callmark: error: interrupted\n"),
        (MemoryError(), 4, "the memory of this machine is used up. What is finished is on disk\n"),
        (KeyError("lost"), 70, "not of your files: KeyError: 'lost'\nPlease report it"),
        (Fault("Traceback of a shard\nKeyError: 1"), 70, "not of your files: KeyError: 1\nPlease"),
    ],
)
def test_every_way_to_end_has_its_exit_code_and_a_sentence(raising, capsys, error, code, said):
    raising(error)
    assert main(["label", "run"]) == code
    assert said in capsys.readouterr().err


def test_a_traceback_comes_first_and_without_secrets(raising, monkeypatch, capsys):
    monkeypatch.setenv("MY_TOKEN", "tok-58213907")
    raising(ValueError("refused: tok-58213907"))
    assert main(["label", "run"]) == 70
    said = capsys.readouterr().err
    assert said.startswith("Traceback (most recent call last):")
    assert "ValueError: refused: " in said
    assert "tok-58213907" not in said


def test_a_family_of_commands_asked_for_help_lists_them(capsys):
    assert main(["fixtures", "--help"]) == 0
    members = [name for name in MODULES if name.startswith("fixtures ")]
    shown = capsys.readouterr().out.splitlines()
    assert shown == [f"callmark {name} --help" for name in members]
    assert len(shown) > 2


def test_a_package_that_is_not_installed_is_named(monkeypatch, capsys):
    """A command imports its work after it has read its options."""
    monkeypatch.setitem(sys.modules, "msgspec.structs", None)
    assert main(["agree", "--labels", "labels.jsonl"]) == 2
    assert capsys.readouterr().err == (
        "callmark: error: the Python package msgspec is not installed;"
        " in a checkout, `pip install .` installs it\n"
    )


@pytest.mark.parametrize("missing", ["callmark.no_such_part", "somebody_elses"])
def test_a_part_that_others_miss_is_not_taken_for_a_package_of_ours(raising, capsys, missing):
    raising(ModuleNotFoundError(f"No module named {missing!r}", name=missing))
    assert main(["label", "run"]) == 70
    assert f"ModuleNotFoundError: No module named {missing!r}" in capsys.readouterr().err
