"""On a real terminal (a pty): colours and broken lines there, plain text everywhere else, and no
text of a model steers it."""

import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.builders import make_result
from tests.hostile import HOSTILE, STEERING

from callmark.reports.layout import Cell, Table, TextLine, line, plain_text
from callmark.reports.show import show_blocks
from callmark.store.files import encode_result

SOURCE = str(Path(__file__).parents[3] / "src")
OURS = re.compile(r"\x1b\[[\d;]*m")  # colours, and nothing else


def on_a_terminal(words: list[str], **env: str) -> str:
    """What a terminal of 80 columns receives."""
    ours, theirs = pty.openpty()
    known = {"PYTHONPATH": SOURCE, "TERM": "xterm-256color", "COLUMNS": "80", "PATH": os.defpath}
    child = subprocess.Popen(
        [sys.executable, "-m", "callmark", *words],
        stdin=theirs, stdout=theirs, stderr=theirs, env={**known, **env}, close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    received = b""
    try:
        while block := os.read(ours, 65536):
            received += block
    except OSError:  # how a pty says that the other side is closed
        pass
    finally:
        os.close(ours)
        child.wait()
    return received.decode("utf-8")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results.jsonl"
    texts = [text for name, text in HOSTILE.items() if name != "long"]
    lines = [make_result(0, sample_id="hostile", output="\n".join(texts), metadata={})]
    lines.append(make_result(1, sample_id="wordy", output=" ".join(["word"] * 200)))
    path.write_bytes(b"".join(map(encode_result, lines)))
    return path


def test_a_terminal_gets_colours_and_nothing_of_the_model(results: Path):
    shown = on_a_terminal(["show", str(results), "hostile"])
    assert OURS.search(shown)
    rest = OURS.sub("", shown).replace("\r\n", "\n")
    assert not set(rest) & set(STEERING)
    assert "\\x1b[2J" in rest


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_refused(results: Path, name: str, value: str):
    shown = on_a_terminal(["show", str(results), "hostile"], **{name: value})
    assert not set(shown.replace("\r\n", "\n")) & set(STEERING)


def test_long_lines_are_broken_between_words_for_a_screen_only(results: Path):
    shown = OURS.sub("", on_a_terminal(["show", str(results), "wordy"])).replace("\r\n", "\n")
    body = [text for text in shown.split("\n") if "word word" in text]
    assert len(body) > 10
    assert all(len(text) <= 80 for text in body)
    assert re.sub(r"[^a-z ]", "", " ".join(body)).split() == ["word"] * 200


def test_a_bar_says_pace_rest_misses_and_errors():
    """Progress is drawn on the terminal itself; the report comes after it."""
    code = (
        "import sys, time\n"
        "from callmark.records.seams import Standing\n"
        "from callmark.reports import layout\n"
        "layout.BAR_SECONDS = 0.0\n"
        "with layout.RunProgress(sys.stderr) as report:\n"
        "    for n in range(1, 6):\n"
        "        report(Standing(n, 10, misses=3, errors=2)); time.sleep(0.15)\n"
    )
    ours, theirs = pty.openpty()
    env = {"PYTHONPATH": SOURCE, "TERM": "xterm-256color", "COLUMNS": "120"}
    child = subprocess.Popen([sys.executable, "-c", code], stderr=theirs, env=env)
    os.close(theirs)
    received, deadline = b"", time.monotonic() + 60
    try:
        while time.monotonic() < deadline and (block := os.read(ours, 65536)):
            received += block
    except OSError:
        pass
    finally:
        os.close(ours)
        child.wait()
    shown = OURS.sub("", received.decode())
    assert re.search(r"5/10 trials, \d+\.\d/s, 0:0\d left, 3 misses, 2 errors", shown), shown


def test_values_with_evidence_stand_out_in_the_answer():
    """In colours only: the marks around a span stay as they are."""
    from tests.unit.cli.test_show import result

    cells = [
        cell
        for block in show_blocks(result())
        if isinstance(block, TextLine)
        for cell in block.cells
    ]
    assert Cell("17", "supported") in cells
    assert Cell("99", "unsupported") in cells


def test_elastic_columns_give_way_and_others_do_not():
    row = (Cell("gate_of_a_long_name"), Cell("v" * 200), Cell("1"))
    table = Table(("gate", "value", "n"), (row,), frozenset({2}), frozenset({1}))
    shown = plain_text([table], 60).splitlines()
    assert max(map(len, shown)) <= 60
    assert "gate_of_a_long_name  " in shown[1]
    assert shown[1].endswith("…  1")
    assert len(plain_text([table]).splitlines()[1]) > 200


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_neither_steers_nor_breaks_the_layout(text: str):
    for width in (None, 40):
        shown = plain_text([line(text, indent=2), Table(("a",), ((Cell(text),),))], width)
        assert not set(shown) & set(STEERING)
