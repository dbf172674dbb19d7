"""`callmark dataset diff`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import CommandParser
from callmark.reports.layout import Block, Cell, Style, Table, line, write

if TYPE_CHECKING:
    from callmark.datasets.diff import DatasetDiff, Placed

SHOWN = 20


def build_parser() -> CommandParser:
    parser = CommandParser(
        "dataset diff",
        """
        Compare two versions of a dataset by sample id: what is new, gone or changed.

        Changes are named by field, and changes of the header and the order are told
        too. Differences in spelling only (blanks, order of keys) do not count.
        Samples without an id are identified by their hash, so a changed one counts as
        one gone and one new.
        """,
        """
        callmark dataset diff v1.jsonl v2.jsonl
        callmark dataset diff v1.jsonl v2.jsonl --exit-code --json > changes.json
        """,
    )
    parser.add_argument("a", type=Path, metavar="A", help="the earlier dataset")
    parser.add_argument("b", type=Path, metavar="B", help="the later one")
    parser.add_argument("--exit-code", action="store_true", help="exit 1 if they differ")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    import msgspec

    from callmark.datasets.diff import diff_datasets

    diff = diff_datasets(options.a, options.b)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(diff), indent=2).decode())
    else:
        write(_blocks(diff), sys.stdout)
    return 1 if options.exit_code and diff.differs else 0


def _blocks(diff: DatasetDiff) -> Iterator[Block]:
    yield line(f"{diff.a}: {diff.samples_a} samples, {diff.b}: {diff.samples_b} samples", "strong")
    if not diff.differs:
        yield line("they hold the same", indent=2)
        return
    yield line(
        f"{diff.added_count} added, {diff.removed_count} removed, {diff.changed_count} changed,"
        f" {diff.same} the same{', in another order' if diff.reordered else ''}",
        indent=2,
    )
    yield from _list_places("added", diff.added, diff.added_count, "good")
    yield from _list_places("removed", diff.removed, diff.removed_count, "bad")
    yield from _list_changes(diff)
    if diff.header:
        yield line()
        yield Table(
            ("header", "was", "is"),
            tuple(
                (Cell(name), Cell(_value(change.a)), Cell(_value(change.b)))
                for name, change in diff.header.items()
            ),
        )


def _list_places(
    title: str, samples: Sequence[Placed], count: int, style: Style
) -> Iterator[Block]:
    if not count:
        return
    yield line()
    yield line(f"{title} ({count})", style)
    yield from (line(f"{one.sample_id} (line {one.line})", indent=2) for one in samples[:SHOWN])
    yield from _more(count)


def _list_changes(diff: DatasetDiff) -> Iterator[Block]:
    if not diff.changed_count:
        return
    fields = ", ".join(f"{name} {n}" for name, n in diff.changed_fields.items())
    yield line()
    yield line(f"changed ({diff.changed_count}): {fields}", "warn")
    for one in diff.changed[:SHOWN]:
        where = f"line {one.line_a}, now {one.line_b}"
        yield line(f"{one.sample_id} ({where}): {', '.join(one.fields)}", indent=2)
    yield from _more(diff.changed_count)


def _more(count: int) -> Iterator[Block]:
    if count > SHOWN:
        yield line(f"and {count - SHOWN} more", "quiet", indent=2)


def _value(value: object) -> str:
    from callmark.records.problems import show_value

    return "-" if value is None else show_value(value)
