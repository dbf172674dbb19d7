"""`RESULTS.md`: one section for each command, each written by that command alone."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Sequence
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
_SECTION = re.compile(r"^## (.*)\n", re.MULTILINE)


class Row(NamedTuple):
    """`bound`: a sign and a number, or nothing."""

    what: str
    figure: str
    bound: str = ""
    verdict: str = ""


def write_section(command: str, rows: Sequence[Row], notes: Iterable[str] = ()) -> None:
    sections = _sections(PLACE.read_text("utf-8")) if PLACE.exists() else {}
    sections[command] = _section(rows, notes)
    known = [name for name in ORDER if name in sections]
    text = "".join(f"\n## {name}\n{sections[name]}" for name in known)
    PLACE.write_text(HEAD + text, "utf-8")


def _sections(text: str) -> dict[str, str]:
    _, *parts = _SECTION.split(text)
    names, bodies = parts[::2], parts[1::2]
    return {name: body.rstrip("\n") + "\n" for name, body in zip(names, bodies, strict=True)}


def _section(rows: Sequence[Row], notes: Iterable[str]) -> str:
    lines = ["", _machine(), "", "| measured | figure | bound | |", "|---|---:|---|---|"]
    lines += map(_line, rows)
    for note in notes:
        lines += ["", note]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    return f"| {_shown(row.what)} | {row.figure} | {row.bound} | {row.verdict} |"


def _shown(what: str) -> str:
    # Indented rows explain the one above them.
    return f"– {what.strip()}" if what.startswith(" ") else what


def _machine() -> str:
    from toolmark import __version__

    python, cores = platform.python_version(), os.cpu_count()
    return f"toolmark {__version__}, Python {python}, {platform.machine()}, {cores} cores."
