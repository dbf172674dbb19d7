"""`callmark merge`."""

from __future__ import annotations

import sys
from pathlib import Path

from callmark.cli.options import CommandParser
from callmark.cli.reporting import RunPaths, add_detail_options, present


def build_parser() -> CommandParser:
    parser = CommandParser(
        "merge",
        """
        Combine the shards of a run into the results and report of a run without
        shards, byte for byte (except `timing`).

        Nothing is scored again. The gates are judged on the whole, by the rules the
        shards were run with, and the exit code follows.

        A missing, incomplete, duplicated or changed shard is refused by name. So are
        samples that are missing or do not belong, and shards of different runs.

        The report of `results.X.jsonl` is `report.X.json` beside it. That of any
        other `NAME.jsonl` is `NAME.report.json`, or a `report.json` in the same
        folder.
        """,
        """
        callmark merge results.shard_*.jsonl
        callmark merge shards/ --out results.jsonl --report report.json --in dataset.jsonl
        """,
    )
    parser.add_argument(
        "shards", nargs="+", type=Path, metavar="SHARD", help="results files, or folders of them"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("results.jsonl"),
        metavar="FILE",
        help="where to write the results (default: results.jsonl)",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="where to write the report (default: report.json beside the results)",
    )
    parser.add_argument(
        "--in",
        dest="dataset",
        type=Path,
        metavar="FILE",
        help="check every sample against this dataset",
    )
    parser.add_argument(
        "--reports",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="the reports, one per SHARD, in the same order",
    )
    add_detail_options(parser, "verdict", "all gates and metrics, tools, locales and slices")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.reports.layout import RunProgress
    from callmark.shards.merge import merge_shards

    report = options.report or options.out.with_name("report.json")
    with RunProgress(sys.stderr, silent=options.quiet) as progress:
        outcome = merge_shards(
            options.shards,
            out=options.out,
            report=report,
            progress=progress,
            dataset=options.dataset,
            reports=options.reports,
        )
    places = RunPaths(results=str(options.out), report=str(report))
    present(outcome.report, places, quiet=options.quiet, verbose=options.verbose)
    return outcome.exit_code
