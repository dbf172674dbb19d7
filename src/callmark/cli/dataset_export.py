"""`callmark dataset export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import CommandParser
from callmark.errors import UsageError
from callmark.reports.layout import line, write

if TYPE_CHECKING:
    from callmark.calls.registry import Registry

FORMATS = ("inspect", "jsonl", "parquet")


def build_parser() -> CommandParser:
    parser = CommandParser(
        "dataset export",
        """
        Write results as an Inspect log, or a dataset as plain JSON lines or a Parquet
        table.

        An Inspect log is JSON, or an archive if the name ends in .eval. `callmark
        dataset import` reads all of them back.
        """,
        """
        callmark dataset export results.jsonl --out run.eval
        callmark dataset export dataset.jsonl --out dataset.parquet
        """,
    )
    parser.add_argument("source", type=Path, metavar="SOURCE", help="results or a dataset, JSONL")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write")
    parser.add_argument(
        "--format",
        choices=sorted(FORMATS),
        help="output format (default: from the ending of --out)",
    )
    parser.add_argument(
        "--registry",
        metavar="PATH",
        help="tool specs to store in the log (default: those of the run)",
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.datasets.exporting import (
        DATASET_EXPORTS,
        FORMAT_OF_SUFFIX,
        INSPECT,
        export_inspect,
    )
    from callmark.store.files import check_writable

    chosen = options.format or FORMAT_OF_SUFFIX.get(options.out.suffix)
    if chosen is None:
        raise UsageError(f"--out {options.out}: the name does not tell the format: give --format")
    if options.out.resolve() == options.source.resolve():
        raise UsageError(f"{options.out}: is the file being exported: choose another one")
    check_writable(options.out)
    if chosen == INSPECT:
        tools = _registry_of(options.source, options.registry)
        count = export_inspect(options.source, options.out, tools, named=options.registry)
    elif options.registry is not None:
        raise UsageError(f"--registry: only applies to an Inspect log, this is {chosen}")
    else:
        count = DATASET_EXPORTS[chosen](options.source, options.out)
    from callmark.summary.metrics import count_of

    noun = "trial" if chosen == INSPECT else "sample"
    write([line(f"{options.out}: {count_of(count, noun)} ({chosen})", "strong")], sys.stdout)
    return 0


def _registry_of(results: Path, named: str | None) -> Registry:
    """What was named, else what the run stored; a log may also do without the specs."""
    from callmark.run.offers import open_registry, specs_beside
    from callmark.store.files import read_results

    if named is None:
        first = next(read_results(results), None)
        sha256 = first.fingerprints.tool_registry_sha256 if first else None
        stored = specs_beside(results, sha256) if sha256 else None
        named = str(stored) if stored is not None and stored.is_file() else None
    return open_registry(named)
