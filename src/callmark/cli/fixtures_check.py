"""`callmark fixtures check`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import LIVE, CommandParser, add_groups, live_options, refuse_options
from callmark.errors import UsageError
from callmark.reports.layout import Block, Cell, Style, Table, TextLine, line, one_line, write

if TYPE_CHECKING:
    from callmark.broker.broker import ToolBroker
    from callmark.broker.check import ExpectedUse, FixtureCheck, HitRate, ToolChanges
    from callmark.calls.registry import Registry

SHOWN_FAILURES = 10
SHOWN_SAMPLES = 20
FLOOR = 0.95


def build_parser() -> CommandParser:
    parser = CommandParser(
        "fixtures check",
        """
        Ask for every recorded tool answer in many spellings, and see whether it is
        found.

        Spellings vary in case, blanks, nulls, key order, 3.0 for 3 and _ for a dot.
        With --in, every call that the dataset expects is looked up too. With the
        tools as they are now (--registry, --mcp or --python), changed tools and the
        samples they touch are named.

        Exit code 1 if fewer than 95 % are answered, or if a tool vanished or takes
        other arguments.
        """,
        """
        callmark fixtures check fixtures/
        callmark fixtures check fixtures/ --in dataset.jsonl --registry tools.json
        callmark fixtures check fixtures/ --in dataset.jsonl --mcp "python server.py"
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
        "--recorded",
        metavar="PATH",
        help="tool specs as they were when the answers were recorded (default: those that `record`"
        " left in DIR)",
    )
    parser.add_argument(
        "--floor",
        type=float,
        default=FLOOR,
        metavar="SHARE",
        help="share of calls that must be answered (default: 0.95)",
    )
    add_groups(parser, {"tools as they are now": LIVE})
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.broker.broker import ToolBroker
    from callmark.broker.check import check_fixtures
    from callmark.resources import data_path

    folder = options.folder or str(data_path("fixtures"))
    registry = _tools_now(options)
    broker = ToolBroker(folder, registry)
    dataset = None if options.dataset is None else Path(options.dataset)
    uses = () if dataset is None else expected_uses(dataset)
    check = check_fixtures(broker, floor=options.floor, expected=uses)
    changes = _find_changes(options, registry, broker, dataset)
    is_ok = check.ok and (changes is None or changes.ok)
    write(_blocks(folder, check, is_ok), sys.stdout)
    if changes is not None:
        write(_change_blocks(changes), sys.stdout)
    return 0 if is_ok else 1


def _tools_now(options: argparse.Namespace) -> Registry:
    from callmark.run.offers import open_registry

    if not hasattr(options, "mcp") and not hasattr(options, "python"):
        refuse_options(options, LIVE, "are for --mcp or --python; add it, or leave them out")
        return open_registry(options.registry)
    if options.registry is not None:
        raise UsageError("--registry: the tools are those of --mcp or --python: leave one out")
    from callmark.calls.registry import Registry
    from callmark.live.record import open_live

    with open_live(live_options(options)) as live:
        return Registry.from_specs(list(live.specs), where=live.origin)


def _find_changes(
    options: argparse.Namespace, now: Registry, broker: ToolBroker, dataset: Path | None
) -> ToolChanges | None:
    """None: nobody says which tools there are now."""
    is_live = hasattr(options, "mcp") or hasattr(options, "python")
    if not is_live and options.registry is None:
        if options.recorded is not None:
            raise UsageError(
                "--recorded: which tools are there now? Add --registry, --mcp or --python"
            )
        return None
    from callmark.broker.check import find_changes
    from callmark.datasets.reader import open_dataset
    from callmark.live.recorder import REGISTRY
    from callmark.run.offers import open_registry

    kept = Path(broker.folder) / REGISTRY
    path = options.recorded or (str(kept) if kept.is_file() else None)
    recorded = None if path is None else open_registry(path)
    with ExitStack() as stack:
        opened = () if dataset is None else stack.enter_context(open_dataset(dataset)).samples()
        return find_changes(now, recorded, broker, opened)


def expected_uses(dataset: Path) -> Iterator[ExpectedUse]:
    """The calls that a dataset expects, where it says with which arguments."""
    from callmark.broker.check import ExpectedUse
    from callmark.datasets.reader import open_dataset

    with open_dataset(dataset) as opened:
        for sample in opened.samples():
            for call in sample.expectation.calls:
                if call.arguments is not None:
                    yield ExpectedUse(sample.sample_id, call.name, call.arguments)


def _blocks(folder: str, check: FixtureCheck, is_ok: bool) -> Iterator[Block]:
    from callmark.records.jsontext import canonical_json
    from callmark.summary.metrics import count_of

    verdict = Cell("PASS", "good") if is_ok else Cell("FAIL", "bad")
    yield TextLine((verdict, Cell(f"  {folder}: {count_of(check.fixtures, 'fixture')}")))
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


SAID = {
    "vanished": "there is no such tool any more",
    "changed": "it takes other arguments than it did",
    "described": "it is described otherwise, and takes the same arguments",
    "unknown": "what it was is not known (--recorded)",
}


def _change_blocks(changes: ToolChanges) -> Iterator[Block]:
    if not changes.changes:
        yield line()
        yield line(f"no change seen in {changes.compared} tools", "quiet")
    else:
        yield line()
        yield line(f"tools that changed ({len(changes.changes)} of {changes.compared})", "strong")
    for one in changes.changes:
        tone: Style = "quiet" if one.change == "described" else "bad"
        yield line(f"{one_line(one.tool, 120)}: {SAID[one.change]}", tone, indent=2)
        yield from (line(one_line(text, 200), indent=4) for text in one.differences)
        if one.fixtures:
            yield line(f"fixtures: {one.fixtures}", indent=4)
        if one.samples:
            shown = ", ".join(one_line(name, 60) for name in one.samples[:SHOWN_SAMPLES])
            more = len(one.samples) - SHOWN_SAMPLES
            rest = f" and {more} more" if more > 0 else ""
            yield line(f"samples ({len(one.samples)}): {shown}{rest}", indent=4)
        if one.refused_count:
            yield line(f"calls that it would refuse now ({one.refused_count})", indent=4)
        for refused in one.refused[:SHOWN_FAILURES]:
            yield line(f"{refused.place}: {one_line(refused.why, 200)}", indent=6)
    if changes.added:
        yield line(f"tools that nobody recorded: {', '.join(changes.added)}", "quiet", indent=2)


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
