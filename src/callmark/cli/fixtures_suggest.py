"""`callmark fixtures suggest`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from callmark.broker.broker import ToolBroker
from callmark.broker.suggest import suggest
from callmark.cli.parser import CommandParser
from callmark.core.trace import TraceEntry
from callmark.running.offers import open_registry
from callmark.store.lines import read_results


def build_parser() -> CommandParser:
    parser = CommandParser(
        "fixtures suggest",
        """
        Turn the calls of a run that no fixture answered into fixture lines, one per different
        call, on standard output. Put the tool's answer where it says _fill_in and paste the line
        into your fixtures; a line that is not filled in is refused when fixtures are loaded.
        """,
        """
        callmark fixtures suggest results.jsonl
        callmark fixtures suggest results.jsonl --fixtures fixtures/ >> fixtures/new.jsonl
        """,
    )
    parser.add_argument("results", type=Path, metavar="RESULTS", help="results file of a run")
    parser.add_argument(
        "--fixtures",
        metavar="DIR",
        help="leave out calls that this folder answers by now, and note the nearest fixture",
    )
    parser.add_argument("--registry", metavar="PATH", help="tool specs (default: built in)")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    broker = None
    if options.fixtures is not None:
        broker = ToolBroker(options.fixtures, open_registry(options.registry))
    lines = suggest(_entries(options.results), broker)
    for text in lines:
        print(text)
    if not lines:
        print(f"{options.results}: no call is without a fixture", file=sys.stderr)
    return 0


def _entries(results: Path) -> Iterator[tuple[str, TraceEntry]]:
    for result in read_results(results):
        for entry in result.tool_trace:
            yield result.sample_id, entry
