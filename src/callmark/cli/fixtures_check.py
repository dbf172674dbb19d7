"""`callmark fixtures check`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import CommandParser
from callmark.reports.layout import Block, Cell, Table, TextLine, line, one_line, write

if TYPE_CHECKING:
    from callmark.broker.check import ExpectedUse, FixtureCheck, HitRate

SHOWN_FAILURES = 10
FLOOR = 0.95


def build_parser() -> CommandParser:
    parser = CommandParser(
        "fixtures check",
        """
        Ask for every recorded tool answer in many spellings (case, blanks, nulls, key order, 3.0
        for 3, _ for .) and see whether it is found. With --in, also look up every call that the
        dataset expects. Exit code 1 if fewer than 95 % are answered.
        """,
        """
        callmark fixtures check fixtures/
        callmark fixtures check fixtures/ --in dataset.jsonl --registry tools.json
        """,
    )
    parser.add_argument(
        "folder", nargs="?", metavar="DIR", help="folder with fixtures (default: the bundled ones)"
    )
    parser.add_argument(
        "--in", dest="dataset", metavar="FILE", help="dataset whose expected calls to look up"
    )
    parser.add_argument(
        "--registry", metavar="PATH", help="tool specs (default: the built-in tools)"
    )
    parser.add_argument(
        "--floor",
        type=float,
        default=FLOOR,
        metavar="SHARE",
        help="share of calls that must be answered (default: 0.95)",
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.broker.broker import ToolBroker
    from callmark.broker.check import check_fixtures
    from callmark.resources import data_path
    from callmark.run.offers import open_registry

    folder = options.folder or str(data_path("fixtures"))
    broker = ToolBroker(folder, open_registry(options.registry))
    uses = () if options.dataset is None else expected_uses(Path(options.dataset))
    check = check_fixtures(broker, floor=options.floor, expected=uses)
    write(_blocks(folder, check), sys.stdout)
    return 0 if check.ok else 1


def expected_uses(dataset: Path) -> Iterator[ExpectedUse]:
    """The calls that a dataset expects, where it says with which arguments."""
    from callmark.broker.check import ExpectedUse
    from callmark.datasets.reader import open_dataset

    with open_dataset(dataset) as opened:
        for sample in opened.samples():
            for call in sample.expectation.calls:
                if call.arguments is not None:
                    yield ExpectedUse(sample.sample_id, call.name, call.arguments)


def _blocks(folder: str, check: FixtureCheck) -> Iterator[Block]:
    from callmark.records.jsontext import canonical_json

    verdict = Cell("PASS", "good") if check.ok else Cell("FAIL", "bad")
    yield TextLine((verdict, Cell(f"  {folder}: {check.fixtures} fixtures")))
    rows = {"all spellings": check.total, **check.by_variant}
    if check.expected.calls:
        rows["calls that the dataset expects"] = check.expected
    yield line()
    yield _table("asked as", rows, check.floor)
    yield line()
    yield _table("tool", check.by_tool, check.floor)
    for title, places in (
        ("never served", check.unreachable),
        ("not checked, no example of the pattern", check.unchecked),
        ("tools that the registry does not have", check.unknown_tools),
    ):
        if places:
            yield line(f"{title}: {', '.join(places)}", "warn", indent=2)
    if check.failed:
        yield line()
        yield line(f"not answered ({check.failed})", "strong")
    for failure in check.failures[:SHOWN_FAILURES]:
        call = f"{failure.name} {one_line(canonical_json(failure.arguments), 120)}"
        yield line(f"{failure.place}: {failure.variant}: {call}", indent=2)
        yield from (line(part, "quiet", indent=4) for part in failure.why.splitlines())


def _table(title: str, rates: dict[str, HitRate], floor: float) -> Table:
    return Table(
        (title, "hits", "calls", "share"),
        tuple(_row(name, rate, floor) for name, rate in rates.items() if rate.calls),
        frozenset({1, 2, 3}),
    )


def _row(name: str, rate: HitRate, floor: float) -> tuple[Cell, ...]:
    share = rate.share or 0.0
    return (
        Cell(name),
        Cell(str(rate.hits)),
        Cell(str(rate.calls)),
        Cell(f"{share:.1%}", "good" if share >= floor else "bad"),
    )
