"""Only regular files are read: whatever is named instead of one is refused at once, never waited
for."""

import os
import socket
from pathlib import Path

import pytest

from callmark.cli import main
from callmark.errors import BadInput
from callmark.resources import demo_paths
from callmark.store.files import open_input, read_input


@pytest.fixture(params=["pipe", "device", "socket"])
def odd(request, tmp_path):
    """Opening the pipe would wait for ever, reading the device would never end."""
    path = tmp_path / "odd.jsonl"
    match request.param:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "socket":
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(os.path.relpath(path))
    (tmp_path / "odd.j2").symlink_to(path)
    return request.param


DEMO = demo_paths()
RUN = ["run", "--in", str(DEMO.dataset), "--fixtures", str(DEMO.fixtures)]
RUN += ["--model", str(DEMO.answers)]
RUN += ["--runner", "replay", "--dry-run"]
# ODD is no file, and FOLDER holds it; the last value of an option counts.
COMMANDS = [
    [*RUN, "--in", "ODD"],
    [*RUN, "--fixtures", "FOLDER"],
    [*RUN, "--registry", "ODD"],
    [*RUN, "--allowlist", "ODD"],
    [*RUN, "--config", "ODD"],
    [*RUN, "--model", "ODD"],
    [*RUN, "--prompt-wrapper", "ODD.j2"],
    ["score", "ODD"],
    ["score", str(DEMO.answers), "--in", "ODD"],
    ["score", str(DEMO.answers), "--in", str(DEMO.dataset), "--answers", "ODD"],
    ["verify", "ODD"],
    ["show", "ODD", "x"],
    ["report", "ODD", "--html", "page.html"],
    ["compare", "ODD", "ODD"],
    ["merge", "ODD", "--reports", "ODD"],
    ["probe", "ODD"],
    ["probe", "--base", "nowhere", "--adapter", "nowhere", "--cases", "ODD"],
    ["fixtures", "check", "FOLDER"],
    ["fixtures", "suggest", "ODD"],
    ["dataset", "stats", "ODD"],
    ["dataset", "seal", "ODD"],
    ["dataset", "diff", "ODD", "ODD"],
    ["dataset", "import", "ODD", "--out", "made.jsonl", "--format", "jsonl"],
    ["dataset", "import", "ODD", "--out", "made.jsonl", "--format", "inspect"],
    ["dataset", "import", "ODD", "--out", "made.jsonl", "--format", "parquet"],
    ["dataset", "export", "ODD", "--out", "made.jsonl"],
    ["dataset", "add", str(DEMO.dataset), "--from-trace", "ODD", "x"],
    ["baseline", "set", "ODD"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[-3:])[-60:])
def test_f72_what_is_no_regular_file_is_refused_at_once(words, odd, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    named = {"ODD": "odd.jsonl", "ODD.j2": "odd.j2", "FOLDER": "."}
    assert main([named.get(word, word) for word in words]) == 2
    said = capsys.readouterr().err
    assert f": is a {odd}, not a regular file; " in said or "must be a file" in said, said


def test_the_null_device_is_an_empty_file():
    assert read_input(Path(os.devnull)) == b""


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(BadInput, match="is a folder, a file is needed"):
        open_input(tmp_path)
