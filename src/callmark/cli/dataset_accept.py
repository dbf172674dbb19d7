"""`callmark dataset accept`."""

from __future__ import annotations

import sys
from pathlib import Path

from callmark.cli.options import CommandParser
from callmark.errors import UsageError
from callmark.reports.layout import line, write


def build_parser() -> CommandParser:
    parser = CommandParser(
        "dataset accept",
        """
        Say that what was observed is right.

        `dataset import --expect observed` and `--per-step` expect what some model
        did. Until you accept it, a run that does something else has changed, but is
        not wrong. From then on its calls and values count for every gate; where no
        call was made, none may be made. A header that pins the items pins the new
        ones.
        """,
        """
        callmark dataset accept steps.jsonl refund-7#2 refund-7#3
        callmark dataset accept steps.jsonl --all
        """,
    )
    parser.add_argument("dataset", type=Path, metavar="DATASET")
    parser.add_argument("ids", nargs="*", metavar="ID", help="the samples to accept")
    parser.add_argument("--all", action="store_true", help="every sample that is merely observed")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write it (default: in place)"
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.datasets.accept import accept_observed

    if options.all == bool(options.ids):
        raise UsageError("dataset accept: name the samples, or say --all")
    done = accept_observed(options.dataset, None if options.all else options.ids, options.out)
    place = options.out or options.dataset
    left = f", {done.left} are still merely observed" if done.left else ""
    write([line(f"{place}: {done.accepted} samples are accepted{left}")], sys.stdout)
    return 0
