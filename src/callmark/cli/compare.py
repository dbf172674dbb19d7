"""`callmark compare`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from callmark.cli.options import FLAG, GATES, INPUTS, CommandParser, Group, add_groups, flags_given
from callmark.cli.reporting import (
    add_detail_options,
    add_own_forms,
    append_step_summary,
    own_forms_of,
    say_warnings,
    write_own_forms,
)
from callmark.errors import UsageError
from callmark.reports.layout import FOLD, write

if TYPE_CHECKING:
    from callmark.compare.compare import CompareOptions, SideLines
    from callmark.compare.records import Comparison
    from callmark.config import RunConfig
    from callmark.store.spending import Measured

DECIDED: Group = {
    "--margin": {
        "type": float,
        "metavar": "M",
        "help": "how much worse still counts as no worse (default: 0.03)",
    },
    "--primary-metrics": {
        "action": "append",
        "metavar": "NAME",
        "help": "base the decision on this metric; may be repeated (default: four metrics)",
    },
}
READ: Group = {
    **{flag: INPUTS[flag] for flag in ("--registry", "--allowlist", "--config", "--plugin")},
    "--today": GATES["--today"],
}
CHOSEN: Group = {
    "--common": {**FLAG, "help": "compare only samples that are identical on both sides"},
    "--as-stored": {**FLAG, "help": "use the stored scores instead of scoring again"},
    "--max-f1-delta": {
        "type": float,
        "metavar": "D",
        "help": "only check that macro F1 differs by at most this much, either way; no test",
    },
    "--max-ratio": {
        "action": "append",
        "metavar": "NAME=R",
        "help": "fail if a trial of B takes more than R times what one of A does: tokens, latency"
        " or cost; may be repeated",
    },
}
GROUPS: dict[str, Group] = {
    "what is compared": CHOSEN,
    "what is decided": DECIDED,
    "settings": READ,
}
COMMON = (
    "--common",
    "--margin",
    "--primary-metrics",
    "--config",
    "--json",
    "--markdown",
    "--html",
)  # what most people need


def build_parser() -> CommandParser:
    parser = CommandParser(
        "compare",
        """
        Is B worse than A? Compare runs of the same dataset, sample by sample.

        Each is a results file, or a folder with results.jsonl, for the same dataset,
        tools and fixtures. What another version scored is scored again. Every
        difference comes with its interval, and the primary metrics are tested.
        Of three and more runs, each is compared with the first.

        The decision is `regression` (worse, and not by chance), `non_inferior` (no
        worse than the margin allows) or `inconclusive`. If the dataset was edited in
        between, --common compares the samples that are still the same. Two reports
        without results give differences only.

        Exit code: 0 not worse, 1 worse, 3 not comparable, 5 inconclusive. With
        --max-f1-delta, that check replaces the margin. Tokens, latency and cost of a
        trial are shown where the runs counted them; --max-ratio limits them.
        """,
        """
        callmark compare runs/base runs/tuned
        callmark compare old.jsonl new.jsonl --common --json comparison.json --markdown pr.md
        callmark compare runs/base runs/tuned --html comparison.html
        callmark compare runs/base runs/small runs/large --html models.html
        callmark compare openai/report.json local/report.json --max-f1-delta 0.03
        """,
        common=COMMON,
    )
    parser.add_argument("a", type=Path, metavar="A", help="the earlier run, or the base model's")
    parser.add_argument("b", type=Path, metavar="B", help="the later run, or the tuned model's")
    more = "more runs, each of which is compared with A"
    parser.add_argument("more", type=Path, nargs="*", metavar="C", help=more)
    add_groups(parser, GROUPS)
    add_own_forms(parser, "comparison")
    add_detail_options(parser, "decision", "all metrics, tools, slices and locales")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.compare.compare import SideLines, Tools
    from callmark.config import load_config

    forms = own_forms_of(options)
    config = load_config(getattr(options, "config", None), flags_given(options, [DECIDED, READ]))
    wanted = options_of(config, options)
    # A run carries the specs of its tools; only a flag, never a settings file, overrules them.
    instead = config.source_of("registry") == "flag"
    tools = Tools(config.registry, config.allowlist, instead=instead)
    paths = (options.a, options.b, *options.more)
    keep = ".html" in forms.values() and not options.more
    with ExitStack() as stack:
        runs = [stack.enter_context(SideLines(path, wanted, tools, keep=keep)) for path in paths]
        compare = _compare_many if options.more else _compare_two
        return compare(runs, wanted, forms, options)


def _compare_two(
    runs: Sequence[SideLines],
    wanted: CompareOptions,
    forms: Mapping[Path, str],
    options: argparse.Namespace,
) -> int:
    from callmark.compare.compare import compare_runs, comparison_bytes
    from callmark.reports.compare import comparison_markdown
    from callmark.reports.html.compare import write_compare_page
    from callmark.reports.layout import RunProgress

    a, b = runs
    with RunProgress(sys.stderr, silent=options.quiet) as progress:
        comparison = compare_runs(a, b, wanted, progress=progress)
    write_own_forms(
        forms,
        {
            ".json": lambda stream: stream.write(comparison_bytes(comparison)),
            ".md": lambda stream: stream.write(comparison_markdown(comparison).encode()),
            ".html": lambda stream: write_compare_page(stream, comparison, a.read(), b.read()),
        },
    )
    append_step_summary(lambda: comparison_markdown(comparison))
    return present(comparison, quiet=options.quiet, verbose=options.verbose)


def _compare_many(
    runs: Sequence[SideLines],
    wanted: CompareOptions,
    forms: Mapping[Path, str],
    options: argparse.Namespace,
) -> int:
    from callmark.compare.compare import compare_many, comparison_bytes
    from callmark.compare.records import matrix_exit_code
    from callmark.reports.compare import matrix_blocks, matrix_line, matrix_markdown
    from callmark.reports.html.compare import write_matrix_page
    from callmark.reports.layout import RunProgress

    with RunProgress(sys.stderr, silent=options.quiet) as progress:
        matrix = compare_many(runs, wanted, progress=progress)
    write_own_forms(
        forms,
        {
            ".json": lambda stream: stream.write(comparison_bytes(matrix)),
            ".md": lambda stream: stream.write(matrix_markdown(matrix).encode()),
            ".html": lambda stream: write_matrix_page(stream, matrix),
        },
    )
    append_step_summary(lambda: matrix_markdown(matrix))
    if options.quiet:
        write([matrix_line(matrix)], sys.stdout)
        say_warnings(matrix.warnings)
    else:
        write(matrix_blocks(matrix, verbose=options.verbose), sys.stdout, FOLD)
    return matrix_exit_code(matrix)


def options_of(config: RunConfig, options: argparse.Namespace | None = None) -> CompareOptions:
    from callmark.compare.compare import CompareOptions

    limit = getattr(options, "max_f1_delta", None)
    if limit is not None and not 0 <= limit <= 1:
        raise UsageError(f"--max-f1-delta: must be a number from 0 to 1, not {limit:g}")
    return CompareOptions(
        primary=tuple(dict.fromkeys(config.primary_metrics)),
        margin=config.margin,
        common=getattr(options, "common", False),
        as_stored=getattr(options, "as_stored", False),
        max_f1_delta=limit,
        max_ratio=dict(map(_ratio, getattr(options, "max_ratio", None) or ())),
        quarantined=tuple(
            name for name, entry in config.judge_quarantine().items() if not entry.expired
        ),
    )


def _ratio(given: str) -> tuple[Measured, float]:
    name, _, number = given.partition("=")
    with suppress(ValueError):
        if name in ("tokens", "latency", "cost") and float(number) > 0:
            return cast("Measured", name), float(number)
    raise UsageError(f"--max-ratio: must be tokens=R, latency=R or cost=R, not {given!r}")


def present(comparison: Comparison, *, quiet: bool, verbose: bool = False) -> int:
    from callmark.compare.records import exit_code
    from callmark.reports.compare import comparison_blocks, decision_line

    if not quiet:
        write(comparison_blocks(comparison, verbose=verbose), sys.stdout, FOLD)
    else:
        write([decision_line(comparison)], sys.stdout)
        say_warnings(comparison.warnings)
    return exit_code(comparison)
