"""`callmark dataset import`."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import FLAG, INPUTS, CommandParser, Group, add_groups, asking_command
from callmark.datasets.importing import CHOICES
from callmark.errors import UsageError
from callmark.reports.layout import Block, Cell, Table, line, write

if TYPE_CHECKING:
    from callmark.datasets.importing.desk import Desk, Imported, SourcePlace, Unmapped
    from callmark.datasets.importing.importing import Each, ImportReport
    from callmark.datasets.importing.writing import ImportPaths
    from callmark.live.cleaning import LogCleaner

SHOWN_PLACES = 3
FEWEST = 15  # samples that a gate wants (--min-eligible-for-gates)
DEFAULT_MAX_TURNS = 8  # of a run: a longer recording would be cut


EXPECTING: Group = {
    "--expect": {
        "choices": ("observed",),
        "help": "what was done is expected: the calls in their order, the values of the answer. A"
        " run that does otherwise has changed; it is wrong only once you accept what was observed",
    },
    "--per-step": {
        **FLAG,
        "help": "a sample for each turn of the model, with the conversation up to it as the prompt",
    },
    "--accept": {**FLAG, "help": "all of it is right: another call is a mistake"},
    "--pii": {
        "choices": ("surrogate", "keep"),
        "help": "replace personal data with made-up data of the same shape, or keep it (default:"
        " surrogate with --expect or --per-step, else keep). Secrets are always removed",
    },
}
CHOOSING: Group = {
    "--dedupe": {
        **FLAG,
        "help": "leave out what is nearly the same as an earlier conversation, or did the same",
    },
    "--sample": {
        "type": int,
        "metavar": "N",
        "help": "at most N conversations, in turn from each set of tools that is called",
    },
    "--seed": {"type": int, "metavar": "N", "help": "which N (default: 0)"},
}
COMMON = (
    "--out",
    "--format",
    "--fixtures",
    "--answers",
    "--report",
    "--expect",
    "--per-step",
    "--pii",
    "--sample",
)  # what most people need


def build_parser() -> CommandParser:
    parser = CommandParser(
        "dataset import",
        """
        Make a dataset from what you already have: logs, conversations, benchmarks, or
        items as JSONL or Parquet.

        It reads exchanges with OpenAI or Anthropic, sessions of coding agents, and
        LangChain or ShareGPT conversations. It also reads traces, Inspect logs,
        results of tau-bench or tau2, and BFCL questions. Each file is recognised by
        what is in it.

        Tools become a registry, tool results become fixtures, and the model's answers
        become a file. `callmark run --runner replay` and `callmark score` read it.
        Whatever could not be mapped is counted and listed by kind.
        """,
        """
        callmark dataset import conversations.jsonl --out talks.jsonl
        callmark dataset import logs/run.eval --out run.jsonl --report unmapped.json
        callmark dataset import logs/ 'more/**/*.jsonl.gz' --out all.jsonl --report unmapped.json
        callmark dataset import BFCL_v4_simple_python.json --out bfcl.jsonl
        """,
        common=COMMON,
    )
    add = parser.add_argument
    add(
        "source",
        nargs="+",
        metavar="SOURCE",
        help="files, folders or patterns to read, packed with gzip or not; - for standard input",
    )
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
        help=f"format of the source: {', '.join(CHOICES[1:])}, or an importer of --plugin"
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
    add_groups(parser, {"a regression set of what was done": EXPECTING, "a choice": CHOOSING})
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.datasets.importing.choosing import Choice
    from callmark.datasets.importing.importing import import_dataset
    from callmark.datasets.importing.writing import ImportPaths
    from callmark.live.cleaning import clean_detail
    from callmark.plugins import add_plugins, rows_of
    from callmark.records.problems import hint

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
    if getattr(options, "sample", 1) < 1:
        raise UsageError(f"--sample: must be a whole number from 1, not {options.sample}")
    cleaner = _cleaner(options)
    report = import_dataset(
        options.source,
        places,
        format=options.format,
        tools=options.tools,
        accepted=options.accepted,
        added=added,
        choice=Choice(
            dedupe=getattr(options, "dedupe", False),
            sample=getattr(options, "sample", None),
            seed=getattr(options, "seed", 0),
        ),
        each=_each(options, cleaner),
        hide=clean_detail,
    )
    told = (*_made(places, report), *_cleaned(cleaner), *unmapped_blocks(report))
    per_step = getattr(options, "per_step", False)
    following = _next(places, report, expects=_expects(options), per_step=per_step)
    write((*told, line(), *following), sys.stdout)
    return 0


def _expects(options: argparse.Namespace) -> bool:
    """Whether what was observed is expected."""
    return hasattr(options, "expect") or hasattr(options, "per_step")


def _cleaner(options: argparse.Namespace) -> LogCleaner:
    from callmark.live.cleaning import LogCleaner

    pii = getattr(options, "pii", "surrogate" if _expects(options) else "keep")
    return LogCleaner(pii=pii == "surrogate")


def _each(options: argparse.Namespace, cleaner: LogCleaner) -> Each:
    """What is done to each conversation."""
    per_step = getattr(options, "per_step", False)
    accepts = getattr(options, "accept", False)
    if accepts and not _expects(options):
        raise UsageError("--accept: needs --expect observed or --per-step, which observe something")
    if not _expects(options):
        return lambda entry, desk: (cleaner.clean(entry),)

    import os

    import msgspec

    from callmark.config import load_config
    from callmark.datasets.accept import accept_item, is_incomplete
    from callmark.datasets.importing.conversation import expect_observed, split_steps
    from callmark.run.observing import RecordingJudge

    judge = RecordingJudge(load_config(Path(os.devnull), {}))

    def each(entry: Imported, desk: Desk) -> Iterator[Imported]:
        clean = cleaner.clean(entry)
        made: Iterable[Imported] = (
            split_steps(clean, desk, judge.find_facts)
            if per_step
            else (expect_observed(clean, desk, judge.find_facts),)
        )
        for one in made:
            is_right = accepts and not is_incomplete(one.item)
            yield msgspec.structs.replace(one, item=accept_item(one.item)) if is_right else one

    return each


def _cleaned(cleaner: LogCleaner) -> Iterator[Block]:
    told = [
        f"{count} {one if count == 1 else several}"
        for count, one, several in (
            (cleaner.removed, "secret is removed", "secrets are removed"),
            (
                cleaner.replaced,
                "personal value is replaced by a made-up one",
                "personal values are replaced by made-up ones",
            ),
        )
        if count
    ]
    if told:
        yield line(", ".join(told), "quiet")


def _made(places: ImportPaths, report: ImportReport) -> Iterator[Block]:
    from callmark.summary.metrics import count_of

    counts = report.counts
    yield line(
        f"{places.dataset}: {count_of(counts.samples, 'sample')} from {describe_sources(report)}",
        "strong",
    )
    for count, what, path in (
        (counts.tools, "tool", places.registry),
        (counts.fixtures, "fixture", places.fixtures),
        (counts.answers, "answer", places.answers),
    ):
        left = f" ({path} is from before)" if not count and path.exists() else ""
        parts = [count_of(count, what)]
        if what == "answer":
            parts += [count_of(counts.calls, "call"), count_of(counts.results, "result")]
        told = f"{path}: {', '.join(parts)}"
        yield line(told if count else f"no {what}s in the source{left}")


def _next(
    places: ImportPaths, report: ImportReport, *, expects: bool, per_step: bool
) -> Iterator[Block]:
    """A replay brings its own results along: whether the fixtures hold what is expected, only
    `verify` tries."""
    counts = report.counts
    dataset, registry, fixtures, answers = (
        shlex.quote(str(one))
        for one in (places.dataset, places.registry, places.fixtures, places.answers)
    )
    files = f" --registry {registry}" if counts.tools else ""
    files += f" --fixtures {fixtures}" if counts.fixtures else ""
    played = files + (f" --model {answers}" if counts.answers else "")
    if counts.turns > DEFAULT_MAX_TURNS:
        played += f" --max-turns {counts.turns}"
    run = f"callmark run --in {dataset}{played}"
    unasked = sum(one.count for one in report.unmapped if one.kind == "prompt_not_recorded")
    if unasked >= counts.samples > 0:
        yield line(
            "no question is in this log: write them into the prompts before a model is asked",
            "warn",
        )
    elif expects and counts.samples < FEWEST:
        those = "1 sample is" if counts.samples == 1 else f"{counts.samples} samples are"
        more = "" if per_step else "; --per-step makes a sample of each step"
        yield line(f"{those} too few for most gates, which want {FEWEST}{more}", "quiet")
    if expects:
        yield line(f"next: callmark verify {dataset}{files}", "quiet")
        yield line(f"then: {run}", "quiet")
    else:
        yield line(f"next: {run}", "quiet")
    if (
        counts.answers and unasked < counts.samples
    ):  # which `run` plays again; what it is for comes after that
        asked = asking_command(
            str(places.dataset),
            str(places.registry) if counts.tools else None,
            str(places.fixtures) if counts.fixtures else None,
        )
        yield line(f"with a model: {asked}", "quiet")


def describe_sources(report: ImportReport) -> str:
    """`talks.jsonl (openai)`; of several files how many there are of each format."""
    files = Counter(one.format for one in report.sources)
    if files.total() == 1:
        return f"{report.sources[0].source} ({report.format})"
    shares = ", ".join(f"{count} {name}" for name, count in files.items())
    return f"{files.total()} files ({shares})"


def unmapped_blocks(report: ImportReport) -> Iterator[Block]:
    """What the source holds and the dataset does not, or not as it is."""
    if not report.unmapped:
        return
    yield line()
    yield line("not imported exactly as it was:", "warn")
    several = any(place.source for kind in report.unmapped for place in kind.places)
    folder = _common_folder(report)
    yield Table(
        ("kind", "count", "first in" if several else "first on line", "meaning"),
        tuple(
            (
                Cell(kind.kind),
                Cell(str(kind.count)),
                Cell(", ".join(_place(place, folder) for place in _first_places(kind))),
                Cell(kind.meaning),
            )
            for kind in report.unmapped
        ),
        frozenset({1}),
    )
    for kind in report.unmapped:
        if kind.kind == "not_a_log":
            for place in kind.places[:SHOWN_PLACES]:
                yield line(f"{place.source}: {place.detail}", "quiet")


def _first_places(kind: Unmapped) -> tuple[SourcePlace, ...]:
    return kind.places[: 1 if kind.places[0].source else SHOWN_PLACES]


def _common_folder(report: ImportReport) -> Path | None:
    """Where all the files lie, if they were named by absolute paths: a column of a table has no
    room for these."""
    files = [Path(one.source) for one in report.sources]
    if not files or not all(path.is_absolute() for path in files):
        return None
    return Path(os.path.commonpath([path.parent for path in files]))


def _place(place: SourcePlace, folder: Path | None) -> str:
    if not place.source:
        return str(place.line)
    name = place.source
    if folder is not None and Path(name).is_relative_to(folder):
        name = str(Path(name).relative_to(folder))
    return f"{name}:{place.line}" if place.line else name
