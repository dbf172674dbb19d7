"""`callmark fixtures record`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import KEPT, LIVE, MODES, CommandParser, add_groups, keeping, live_options
from callmark.errors import Incomplete, UsageError
from callmark.reports.layout import one_line

if TYPE_CHECKING:
    from callmark.live.python import PlannedCall
    from callmark.live.record import Keeping, Recorded
    from callmark.live.recorder import Mode

SHOWN = 10
COMMON = (
    "--in",
    "--calls",
    "--mode",
    "--mcp",
    "--python",
    "--registry",
    "--pin",
    "--pii",
)  # what most people need


def build_parser() -> CommandParser:
    parser = CommandParser(
        "fixtures record",
        """
        Call live tools with the calls of a dataset or a file, and keep their answers
        as fixtures.

        Their schemas become a registry. Nothing is called unless --mode allows it.
        none (the default) lists the calls that have no fixture, and fails if there
        are any. once records into an empty folder; new makes the calls that have no
        fixture; all makes every call again.
        """,
        """
        callmark fixtures record fixtures/ --in dataset.jsonl
        callmark fixtures record fixtures/ --in dataset.jsonl --mcp "uvx mcp-server-time" --mode new
        callmark fixtures record fixtures/ --calls calls.jsonl --python shop:find_order --mode new
        """,
        common=COMMON,
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder for the fixtures")
    parser.add_argument(
        "--in",
        dest="dataset",
        type=Path,
        metavar="FILE",
        help="dataset whose expected calls to record",
    )
    parser.add_argument(
        "--calls", type=Path, metavar="FILE", help="calls to record, JSONL of {name, arguments}"
    )
    parser.add_argument(
        "--mode", choices=MODES, default="none", help="which calls may be made (default: none)"
    )
    parser.add_argument(
        "--registry", type=Path, metavar="FILE", help="tool specs (default: DIR/.registry.json)"
    )
    parser.add_argument(
        "--per-sample",
        action="store_true",
        help="serve each answer only to the sample that asked for it",
    )
    add_groups(parser, {"live tools": LIVE, "what is kept": KEPT})
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    calls = _calls(options)
    kept = keeping(options, options.folder, options.dataset, options.registry)
    if kept.out_dataset is not None and kept.dataset is None:
        raise UsageError("--out-dataset: a copy of what? Name the dataset with --in")
    mode: Mode = options.mode
    done = _record(options, calls, kept, mode)
    _print(done, kept, mode)
    if done.lost:
        raise Incomplete(
            f"{done.unanswered} calls were not answered: {done.lost[0]}; what was answered is"
            " written: fix that, then run the same command with --mode new"
        )
    return 1 if done.missing or done.unknown else 0


def _record(
    options: argparse.Namespace, calls: Iterator[PlannedCall], kept: Keeping, mode: Mode
) -> Recorded:
    from callmark.live.record import open_live, open_registry_of, record
    from callmark.live.recorder import check_folder

    live = live_options(options)
    if mode == "none" or (mode == "once" and open_registry_of(kept, None).broker is not None):
        return record(calls, None, kept, mode)
    check_folder(kept.folder)
    with open_live(live) as tools:
        return record(calls, tools, kept, mode, per_sample=options.per_sample)


def _calls(options: argparse.Namespace) -> Iterator[PlannedCall]:
    from callmark.live.python import calls_of_dataset, calls_of_file

    if (options.dataset is None) == (options.calls is None):
        raise UsageError("which calls? Name a dataset with --in, or a file of calls with --calls")
    if options.calls is not None:
        return calls_of_file(options.calls)
    return calls_of_dataset(options.dataset)


def _print(done: Recorded, kept: Keeping, mode: Mode) -> None:
    from callmark.records.jsontext import canonical_json

    repeated = f" {done.repeated} repeated," if done.repeated else ""
    print(
        f"{kept.folder}: {done.planned} calls: {done.known} known,{repeated} {done.calls} asked,"
        f" {done.written} answers written, {_without_fixture(done)} without a fixture"
    )
    for text in done.warnings:
        print(f"  {one_line(text, 200)}")
    for missed in done.missing[:SHOWN]:
        print(f"  missing: {one_line(f'{missed.name} {canonical_json(missed.key)}', 120)}")
    for unknown in done.unknown[:SHOWN]:
        text = f"{unknown.name} {canonical_json(unknown.key)}"
        print(f"  no such tool, so nothing was recorded: {one_line(text, 120)}")
    if done.missing and mode in ("none", "once"):
        print("  record them: --mode new with --mcp or --python", file=sys.stderr)


def _without_fixture(done: Recorded) -> int:
    return len(done.missing) + len(done.unknown) + done.unanswered
