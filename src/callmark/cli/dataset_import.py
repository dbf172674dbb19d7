"""`callmark dataset import`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from callmark.cli.options import INPUTS, CommandParser, add_groups
from callmark.datasets.importing import CHOICES, ImportPaths, ImportReport, import_dataset
from callmark.errors import UsageError
from callmark.plugins import add_plugins, rows_of
from callmark.records.keys import hint
from callmark.reports.layout import Block, Cell, Table, line, write

SHOWN_PLACES = 3
DEFAULT_MAX_TURNS = 8  # of a run: a longer recording would be cut


def build_parser() -> CommandParser:
    parser = CommandParser(
        "dataset import",
        """
        Make a dataset out of what you have: OpenAI-style conversations, results of tau-bench or
        tau2, BFCL questions with their accepted answers, logs of Inspect, our own items as JSONL
        or Parquet. With it come the tools as a registry, the tool results as fixtures, and the
        model's answers as a file that `callmark run --runner replay` and `callmark score` read.
        What could not be mapped is counted and listed by kind.
        """,
        """
        callmark dataset import conversations.jsonl --out talks.jsonl
        callmark dataset import logs/run.eval --out run.jsonl --report unmapped.json
        callmark dataset import BFCL_v4_simple_python.json --out bfcl.jsonl
        """,
    )
    add = parser.add_argument
    add("source", type=Path, metavar="SOURCE", help="the file to read; of tau2 also a folder")
    add("--out", type=Path, required=True, metavar="FILE", help="the dataset, with a sealed header")
    add(
        "--format", metavar="NAME", default="auto",
        help=f"what the source is (auto): {', '.join(CHOICES[1:])}, or an importer of --plugin",
    )  # fmt: skip
    add_groups(parser, {"plug-ins": {"--plugin": INPUTS["--plugin"]}})
    add("--registry", type=Path, metavar="FILE", help="the tools (OUT's name with .tools.json)")
    add("--fixtures", type=Path, metavar="DIR", help="their results (OUT's name with .fixtures)")
    add("--answers", type=Path, metavar="FILE", help="the answers (OUT's name with .answers.jsonl)")
    add("--tools", type=Path, metavar="FILE", help="specs for a source that holds none")
    add(
        "--accepted", type=Path, metavar="FILE",
        help="BFCL's accepted answers, if not in possible_answer/ beside the source",
    )  # fmt: skip
    add("--report", type=Path, metavar="FILE", help="write what was not mapped as JSON")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    add_plugins(getattr(options, "plugin", ()))
    added = rows_of("importer")
    choices = (*CHOICES, *(row.name for row in added))
    if options.format not in choices:
        near = hint(options.format, choices) or f"; there is: {', '.join(choices)}"
        raise UsageError(f"--format: there is no {options.format!r}{near}")
    out: Path = options.out
    places = ImportPaths(
        dataset=out,
        registry=options.registry or out.with_name(f"{out.stem}.tools.json"),
        fixtures=options.fixtures or out.with_name(f"{out.stem}.fixtures"),
        answers=options.answers or out.with_name(f"{out.stem}.answers.jsonl"),
        report=options.report,
    )
    report = import_dataset(
        options.source,
        places,
        format=options.format,
        tools=options.tools,
        accepted=options.accepted,
        added=added,
    )
    write(_blocks(places, report), sys.stdout)
    return 0


def _blocks(places: ImportPaths, report: ImportReport) -> Iterator[Block]:
    counts = report.counts
    yield line(
        f"{places.dataset}: {counts.samples} samples from {report.source} ({report.format})",
        "strong",
    )
    made = (
        (counts.tools, "tools", places.registry, "--registry"),
        (counts.fixtures, "fixtures", places.fixtures, "--fixtures"),
        (counts.answers, "answers", places.answers, "--model"),
    )
    for count, what, path, _ in made:
        left = f" ({path} is from before)" if not count and path.exists() else ""
        yield line(f"{path}: {count} {what}" if count else f"no {what} in the source{left}")
    if report.unmapped:
        yield line()
        yield line("not mapped as it is:", "warn")
        yield Table(
            ("kind", "count", "first on line", "meaning"),
            tuple(
                (
                    Cell(kind.kind),
                    Cell(str(kind.count)),
                    Cell(", ".join(str(place.line) for place in kind.places[:SHOWN_PLACES])),
                    Cell(kind.meaning),
                )
                for kind in report.unmapped
            ),
            frozenset({1}),
        )
    yield line()
    flags = "".join(f" {flag} {path}" for count, _, path, flag in made if count)
    if counts.turns > DEFAULT_MAX_TURNS:
        flags += f" --max-turns {counts.turns}"
    yield line(f"next: callmark run --in {places.dataset}{flags}", "quiet")
