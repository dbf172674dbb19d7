"""`callmark fixtures suggest`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import CommandParser

if TYPE_CHECKING:
    from callmark.calls.registry import Registry
    from callmark.records.trace import TraceEntry


def build_parser() -> CommandParser:
    parser = CommandParser(
        "fixtures suggest",
        """
        Turn the calls of a run that no fixture answered into fixture lines, one per
        distinct call.

        They go to standard output. Put the tool's answer where it says _fill_in and
        paste the line into your fixtures. A line that is not filled in is refused
        when fixtures are loaded.
        """,
        """
        callmark fixtures suggest runs/latest
        callmark fixtures suggest results.jsonl --fixtures fixtures/ >> fixtures/new.jsonl
        """,
    )
    parser.add_argument(
        "results", type=Path, metavar="RUN", help="results file, or a folder with results.jsonl"
    )
    parser.add_argument(
        "--fixtures",
        metavar="DIR",
        help="leave out calls that this folder already answers, and note the nearest fixture",
    )
    parser.add_argument("--registry", metavar="PATH", help="tool specs (default: those of the run)")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.broker.broker import ToolBroker
    from callmark.broker.nearest import suggest
    from callmark.store.runs import results_of

    results = results_of(options.results)
    broker = None
    if options.fixtures is not None:
        broker = ToolBroker(options.fixtures, _registry_of(results, options.registry))
    lines = suggest(_entries(results), broker)
    for text in lines:
        print(text)
    if not lines:
        print(f"{results}: no call is without a fixture", file=sys.stderr)
    return 0


def _registry_of(results: Path, named: str | None) -> Registry:
    """The tools of the run, which decide what a key is."""
    from callmark.run.offers import ToolsOfResults
    from callmark.store.files import read_results

    first = next(read_results(results), None)
    sha256 = None if first is None else first.fingerprints.tool_registry_sha256
    return ToolsOfResults(results, named, instead=named is not None).of(sha256).registry


def _entries(results: Path) -> Iterator[tuple[str, TraceEntry]]:
    from callmark.store.files import read_results

    for result in read_results(results):
        for entry in result.tool_trace:
            yield result.sample_id, entry
