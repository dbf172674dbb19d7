"""`toolmark doctor`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from toolmark.cli.options import INPUTS, add_groups, flags_given
from toolmark.cli.parser import CommandParser
from toolmark.doctor import Check, examine
from toolmark.reports.layout import Block, Cell, Line, line, write


def build_parser() -> CommandParser:
    parser = CommandParser(
        "doctor",
        """
        Look at this machine: Python, the versions of all dependencies, the files that ship with
        toolmark. With a toolmark.yaml in this folder, or with the options below, also at your own
        dataset, fixtures and tools, and at the hashes that the dataset's header pins. Exit 1 if
        something is wrong.
        """,
        """
        toolmark doctor
        toolmark doctor --in dataset.jsonl --fixtures fixtures/
        """,
    )
    add_groups(parser, {"your files": INPUTS})
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    config = getattr(options, "config", None)
    checks = list(examine(config, flags_given(options, [INPUTS])))
    write(_blocks(checks), sys.stdout)
    return 0 if all(check.ok for check in checks) else 1


def _blocks(checks: Iterable[Check]) -> Iterator[Block]:
    for check in checks:
        mark = Cell("ok    ", "good") if check.ok else Cell("WRONG ", "bad")
        first, *more = check.detail.splitlines() or [""]
        yield Line((mark, Cell(f"{check.subject:<18}{first}")))
        yield from (line(text, indent=24) for text in more)
