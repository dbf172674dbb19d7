"""`callmark dataset export`."""

from __future__ import annotations

import sys
from pathlib import Path

from callmark.cli.parser import CommandParser
from callmark.datasets.exporting import (
    DATASET_EXPORTS,
    FORMAT_OF_SUFFIX,
    FORMATS,
    INSPECT,
    export_inspect,
)
from callmark.errors import UsageError
from callmark.reports.layout import line, write
from callmark.running.offers import open_registry
from callmark.store.files import check_writable


def build_parser() -> CommandParser:
    parser = CommandParser(
        "dataset export",
        """
        Write what you have in a form that others read: a results file as a log of Inspect (JSON,
        or an archive if the name ends with .eval), a dataset as plain JSON lines without a header
        or as a Parquet table. `callmark dataset import` reads all of them back.
        """,
        """
        callmark dataset export results.jsonl --out run.eval
        callmark dataset export dataset.jsonl --out dataset.parquet
        """,
    )
    parser.add_argument("source", type=Path, metavar="SOURCE", help="results or a dataset, JSONL")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write")
    parser.add_argument("--format", choices=sorted(FORMATS), help="by default from OUT's ending")
    parser.add_argument(
        "--registry",
        metavar="PATH",
        help="the tools of the results, for the log to hold their specs (default: built in)",
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    chosen = options.format or FORMAT_OF_SUFFIX.get(options.out.suffix)
    if chosen is None:
        raise UsageError(f"--out {options.out}: says no format: name it with --format")
    if options.out.resolve() == options.source.resolve():
        raise UsageError(f"{options.out}: is the file that is exported: choose another place")
    check_writable(options.out)
    if chosen == INSPECT:
        tools = open_registry(options.registry)
        count = export_inspect(options.source, options.out, tools, named=options.registry)
    elif options.registry is not None:
        raise UsageError(f"--registry: goes into a log of results only, this is {chosen}")
    else:
        count = DATASET_EXPORTS[chosen](options.source, options.out)
    noun = "trials" if chosen == INSPECT else "samples"
    write([line(f"{options.out}: {count} {noun} ({chosen})", "strong")], sys.stdout)
    return 0
