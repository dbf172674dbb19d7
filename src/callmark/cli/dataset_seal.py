"""`callmark dataset seal`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import CommandParser
from callmark.errors import UsageError
from callmark.reports.layout import Block, line, write

if TYPE_CHECKING:
    from callmark.datasets.seal import Seal, SealPin


def build_parser() -> CommandParser:
    parser = CommandParser(
        "dataset seal",
        """
        Record in the header of a dataset which items, tools and fixtures belong
        together, by their SHA-256.

        `callmark run` and `callmark verify` check them before anything is run, and
        stop with exit code 3 if one differs. The rest of the file stays as it is; a
        dataset without a header gets one. Sealing twice changes nothing.
        """,
        """
        callmark dataset seal dataset.jsonl --fixtures fixtures/
        callmark dataset seal dataset.jsonl --fixtures fixtures/ --registry tools.json --check
        """,
    )
    parser.add_argument("dataset", type=Path, metavar="DATASET")
    parser.add_argument(
        "--fixtures", metavar="DIR", help="pin these fixtures (default: leave their pin as it is)"
    )
    parser.add_argument(
        "--registry",
        metavar="PATH",
        help="tool specs, a file or a folder (default: the built-in tools)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write it (default: in place)"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 3 if a hash differs"
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.broker.broker import ToolBroker
    from callmark.datasets.reader import open_dataset
    from callmark.datasets.seal import check_seal, examine_seal, write_seal
    from callmark.run.offers import check_tools, open_offers

    if options.check and options.out is not None:
        raise UsageError("--check writes nothing: leave out --out")
    offers = open_offers(options.registry, None)
    broker = None
    if options.fixtures is not None:
        broker = ToolBroker(options.fixtures, offers.registry)
    computed = {
        "tool_registry_sha256": offers.registry.sha256,
        "fixtures_sha256": None if broker is None else broker.fixtures_sha256,
    }
    with open_dataset(options.dataset) as dataset:
        warnings = check_tools(dataset, offers)
        seal = examine_seal(dataset, computed)
    if options.check:
        check_seal(seal)
        done = "the seal is whole"
    else:
        changed = write_seal(seal, options.out)
        done = "sealed" if changed else "was sealed already, nothing changed"
    write(_blocks(seal, f"{options.out or seal.dataset}: {done}", warnings), sys.stdout)
    return 0


def _blocks(seal: Seal, done: str, warnings: list[str]) -> Iterator[Block]:
    yield line(done)
    yield from (line(f"{pin.name:<22}{_say(pin)}", indent=2) for pin in seal.pins)
    yield from (line(f"warning: {warning}", "warn", indent=2) for warning in warnings)


def _say(pin: SealPin) -> str:
    from callmark.datasets.seal import shown_pin

    if pin.found is None:
        return f"{shown_pin(pin.had)} (not checked: name the folder with --fixtures)"
    was = f" (was {shown_pin(pin.had)})" if pin.differs and pin.had is not None else ""
    return pin.found + was
