"""`toolmark show`."""

from __future__ import annotations

import sys
from pathlib import Path

from toolmark.cli.parser import CommandParser
from toolmark.reports.layout import write
from toolmark.reports.show import show_blocks
from toolmark.running.selection import RESULTS
from toolmark.store.lines import find_result


def build_parser() -> CommandParser:
    parser = CommandParser(
        "show",
        """
        Show one conversation of a run: the prompt, every call with its arguments, its verdict and
        its result, the answer with its spans marked, and for each value in it the evidence (which
        call, which JSON path, which value) or that there is none.
        """,
        """
        toolmark show results.jsonl search-rope-01
        toolmark show demo-run search-rope-01 --full
        """,
    )
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="results file, or a folder with results.jsonl"
    )
    parser.add_argument("id", metavar="ID", help="sample id")
    parser.add_argument("--trial", type=int, default=0, metavar="N", help="which trial (0)")
    parser.add_argument("--full", action="store_true", help="do not cut long results")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    run: Path = options.run
    _, result = find_result(run / RESULTS if run.is_dir() else run, options.id, options.trial)
    write(show_blocks(result, full=options.full), sys.stdout)
    return 0
