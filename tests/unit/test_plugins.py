"""Names become objects, and a wrong name is told the right ones."""

import pytest

from toolmark.errors import UsageError
from toolmark.plugins import find_runner, runner_names
from toolmark.runners.replay import open_replay


def test_built_in_runners_are_found_by_name():
    assert find_runner("replay") is open_replay
    assert "replay" in runner_names()


def test_a34_an_unknown_runner_is_refused_with_the_known_names():
    with pytest.raises(UsageError, match=r"--runner: there is no 'repaly'; there is: .*replay"):
        find_runner("repaly")


def test_runners_of_other_packages_are_found_by_their_entry_points(tmp_path, monkeypatch):
    package = tmp_path / "other-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[toolmark.runners]\nmine = other_runner:make\nbroken = other_runner:absent\n"
    )
    (tmp_path / "other_runner.py").write_text("def make(options): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_runner("mine").__module__ == "other_runner"
    assert "mine" in runner_names()
    with pytest.raises(UsageError, match="'broken' of other cannot be loaded"):
        find_runner("broken")
