"""`toolmark dataset export`."""

from __future__ import annotations

import sys
from pathlib import Path

from toolmark.cli.parser import CommandParser
from toolmark.datasets.exporting import EXPORTS, FORMAT_OF_SUFFIX
from toolmark.errors import UsageError
from toolmark.reports.layout import line, write
from toolmark.store.files import check_writable


def build_parser() -> CommandParser:
    parser = CommandParser(
        "dataset export",
        """
        Write what you have in a form that others read: a results file as a log of Inspect (JSON,
        or an archive if the name ends with .eval), a dataset as plain JSON lines without a header
        or as a Parquet table. `toolmark dataset import` reads all of them back.
        """,
        """
        toolmark dataset export results.jsonl --out run.eval
        toolmark dataset export dataset.jsonl --out dataset.parquet
        """,
    )
    parser.add_argument("source", type=Path, metavar="SOURCE", help="results or a dataset, JSONL")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write")
    parser.add_argument("--format", choices=sorted(EXPORTS), help="by default from OUT's ending")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    chosen = options.format or FORMAT_OF_SUFFIX.get(options.out.suffix)
    if chosen is None:
        raise UsageError(f"--out {options.out}: says no format: name it with --format")
    if options.out.resolve() == options.source.resolve():
        raise UsageError(f"{options.out}: is the file that is exported: choose another place")
    check_writable(options.out)
    what, export = EXPORTS[chosen]
    count = export(options.source, options.out)
    noun = "trials" if what == "results" else "samples"
    write([line(f"{options.out}: {count} {noun} ({chosen})", "strong")], sys.stdout)
    return 0
