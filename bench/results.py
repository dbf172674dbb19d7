"""`RESULTS.md`: a section for each command, and in it a table for each module that it measures.
Whoever measures again replaces those tables only."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PLACE = Path(__file__).parent / "RESULTS.md"
HEAD = """\
# What it costs

Written by the commands that head its sections; each replaces its own section only. Every comparison
is between two things that took turns in one run on one machine, so that what is slow there is slow
for both. CPU is that of the measured process with its children, the server's not included. A
**bound** is what a change must keep.
"""
ORDER = ("make bench", "make bench-size", "make bench-peers")
_TITLE = re.compile(r"^(##+) (.*)\n", re.MULTILINE)


class Row(NamedTuple):
    """`bound`: a sign and a number, or nothing."""

    what: str
    figure: str
    bound: str = ""
    verdict: str = ""


def write_table(command: str, module: str, rows: Sequence[Row], notes: Sequence[str] = ()) -> None:
    tables = _tables(PLACE.read_text("utf-8")) if PLACE.exists() else {}
    tables[command, module] = _table(rows, notes)
    text = HEAD
    for name in ORDER:
        own = sorted(part for section, part in tables if section == name)
        text += f"\n## {name}\n" if own else ""
        text += "".join(f"\n### {part}\n{tables[name, part]}" for part in own)
    PLACE.write_text(text, "utf-8")


def _tables(text: str) -> dict[tuple[str, str], str]:
    """What stands below each title of a module, by command and module."""
    _, *parts = _TITLE.split(text)
    found = {}
    command = ""
    for depth, title, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if depth == "##":
            command = title
        else:
            found[command, title] = body.rstrip("\n") + "\n"
    return found


def _table(rows: Sequence[Row], notes: Sequence[str]) -> str:
    lines = ["", _machine(), "", "| measured | figure | bound | |", "|---|---:|---|---|"]
    lines += map(_line, rows)
    for note in notes:
        lines += ["", note]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    # Indented rows explain the one above them.
    what = f"– {row.what.strip()}" if row.what.startswith(" ") else row.what
    return f"| {what} | {row.figure} | {row.bound} | {row.verdict} |"


def _machine() -> str:
    from callmark import __version__

    python, cores = platform.python_version(), os.cpu_count()
    return f"callmark {__version__}, Python {python}, {platform.machine()}, {cores} cores."
