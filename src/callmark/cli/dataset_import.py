"""`callmark dataset import`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import INPUTS, CommandParser, add_groups
from callmark.errors import UsageError
from callmark.reports.layout import Block, Cell, Table, line, write

if TYPE_CHECKING:
    from callmark.datasets.importing import ImportPaths, ImportReport

FORMATS = (
    "auto",
    "openai",
    "anthropic",
    "responses",
    "atif",
    "claude-code",
    "codex",
    "gemini-cli",
    "mini-swe-agent",
    "langchain",
    "sharegpt",
    "tau-bench",
    "tau2",
    "bfcl",
    "inspect",
    "otel-genai",
    "openinference",
    "langfuse",
    "openai-agents",
    "jsonl",
    "parquet",
)
SHOWN_PLACES = 3
DEFAULT_MAX_TURNS = 8  # of a run: a longer recording would be cut


def build_parser() -> CommandParser:
    parser = CommandParser(
        "dataset import",
        """
        Make a dataset from what you already have: exchanges with OpenAI or Anthropic, sessions of
        coding agents, LangChain or ShareGPT conversations, results of tau-bench or tau2, BFCL
        questions with their accepted answers, Inspect logs, or our own items as JSONL or Parquet.
        The tools become a registry, the tool results become fixtures, and the model's answers
        become a file that `callmark run --runner replay` and `callmark score` read. Whatever could
        not be mapped is counted and listed by kind.
        """,
        """
        callmark dataset import conversations.jsonl --out talks.jsonl
        callmark dataset import logs/run.eval --out run.jsonl --report unmapped.json
        callmark dataset import BFCL_v4_simple_python.json --out bfcl.jsonl
        """,
    )
    add = parser.add_argument
    add("source", type=Path, metavar="SOURCE", help="the file to read; for tau2 also a folder")
    add(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="the dataset to write, with a sealed header",
    )
    add(
        "--format",
        metavar="NAME",
        default="auto",
        help=f"format of the source: {', '.join(FORMATS[1:])}, or an importer of --plugin"
        " (default: auto)",
    )
    add_groups(parser, {"plug-ins": {"--plugin": INPUTS["--plugin"]}})
    add(
        "--registry",
        type=Path,
        metavar="FILE",
        help="the tools (default: OUT's name with .tools.json)",
    )
    add(
        "--fixtures",
        type=Path,
        metavar="DIR",
        help="their results (default: OUT's name with .fixtures)",
    )
    add(
        "--answers",
        type=Path,
        metavar="FILE",
        help="the answers (default: OUT's name with .answers.jsonl)",
    )
    add("--tools", type=Path, metavar="FILE", help="tool specs, for a source that has none")
    add(
        "--accepted", type=Path, metavar="FILE",
        help="BFCL's accepted answers (default: possible_answer/ beside the source)",
    )  # fmt: skip
    add("--report", type=Path, metavar="FILE", help="write what could not be mapped, as JSON")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.datasets.importing import ImportPaths, import_dataset
    from callmark.plugins import add_plugins, rows_of
    from callmark.records.problems import hint

    add_plugins(getattr(options, "plugin", ()))
    added = rows_of("importer")
    choices = (*FORMATS, *(row.name for row in added))
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
