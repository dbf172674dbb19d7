"""`callmark dataset stats`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import CommandParser
from callmark.reports.layout import Block, Cell, Style, Table, line, write

if TYPE_CHECKING:
    from callmark.datasets.stats import DatasetStats, Decided, GateReach

STYLES: dict[Decided, Style] = {"yes": "good", "open": "warn", "n/a": "quiet"}


def build_parser() -> CommandParser:
    parser = CommandParser(
        "dataset stats",
        """
        Describe a dataset, and say which gates it can decide.

        You see samples by kind, scenario, complexity, locale, slice and tool, how
        many calls they expect, and how long prompts are. A gate with fewer than 15
        samples stays inconclusive, whatever the model does.
        """,
        """
        callmark dataset stats dataset.jsonl
        callmark dataset stats dataset.jsonl --json | jq .cells
        """,
    )
    parser.add_argument("dataset", metavar="DATASET", help="JSONL file; - is standard input")
    parser.add_argument(
        "--min-eligible-for-gates",
        type=int,
        default=15,
        metavar="N",
        help="samples that a gate needs to be decided (default: 15)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    import msgspec

    from callmark.datasets.reader import open_dataset
    from callmark.datasets.stats import dataset_stats

    with open_dataset("-" if options.dataset == "-" else Path(options.dataset)) as dataset:
        stats = dataset_stats(dataset, min_eligible=options.min_eligible_for_gates)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(stats), indent=2).decode())
    else:
        write(_blocks(stats), sys.stdout)
    return 0


def _blocks(stats: DatasetStats) -> Iterator[Block]:
    header = "" if stats.has_header else ", no header"
    yield line(f"{stats.dataset}: {stats.samples} samples{header}", "strong")
    yield line(f"dataset_sha256 {stats.dataset_sha256}", "quiet", indent=2)
    yield line()
    yield from _counts(stats)
    if stats.cells:
        yield line()
        yield _cells(stats.cells)
    yield line()
    yield _gates(stats.gates)


def _counts(stats: DatasetStats) -> Iterator[Block]:
    from callmark.datasets.stats import LONG_BYTES

    sizes = stats.prompt_bytes
    rows = {
        "kinds": _join_counts(stats.kinds.items()),
        "behaviours": _join_counts(stats.behaviours.items()),
        "structures": _join_counts(stats.structures.items()),
        "adversarial": _join_counts(stats.adversarial.items()),
        "languages": _join_counts(stats.languages.items()),
        "locales": _join_counts(stats.locales.items()),
        "locale probes": _join_counts(stats.locale_probes.items()),
        "slices": _join_counts(stats.slices.items()),
        "expected calls": _join_counts(stats.expected_calls.items(), "{n} with {name}"),
        "expected tools": _join_counts(stats.tools.items()),
        "offered tools": _join_counts(stats.offered.items()),
        "with": f"teacher_text {stats.with_teacher_text}, required_facts"
        f" {stats.with_required_facts}, user_turns {stats.with_user_turns},"
        f"{f' checks {stats.with_checks},' if stats.with_checks else ''}"
        f" different clusters {stats.clusters}",
        "checks": _join_counts(stats.checks.items()),
        "prompts": f"{sizes.smallest} to {sizes.largest} bytes, median {sizes.median};"
        f" {sizes.long} of {LONG_BYTES} bytes or more",
    }
    yield from (line(f"{name:<16}{text}", indent=2) for name, text in rows.items() if text)


def _join_counts(table: Iterable[tuple[str, int]], form: str = "{name} {n}") -> str:
    return ", ".join(form.format(name=name or "(none named)", n=n) for name, n in table)


def _cells(cells: Mapping[str, Mapping[str, int]]) -> Table:
    complexities = sorted({name for row in cells.values() for name in row})
    return Table(
        ("scenario × complexity", *complexities, "all"),
        tuple(
            (
                Cell(scenario),
                *(Cell(str(row.get(name, "-"))) for name in complexities),
                Cell(str(sum(row.values()))),
            )
            for scenario, row in cells.items()
        ),
        frozenset(range(1, len(complexities) + 2)),
    )


def _gates(gates: tuple[GateReach, ...]) -> Table:
    return Table(
        ("decidable", "gate", "samples at most", "needed"),
        tuple(
            (
                Cell(reach.decided, STYLES[reach.decided]),
                Cell(reach.name),
                Cell(str(reach.n)),
                Cell(str(reach.needed)),
            )
            for reach in sorted(gates, key=lambda reach: list(STYLES).index(reach.decided))
        ),
        frozenset({2, 3}),
    )
