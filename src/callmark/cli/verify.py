"""`callmark verify`."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import (
    GATES_ON_ANSWERS,
    INPUTS,
    SCORING,
    CommandParser,
    Group,
    add_groups,
    asking_command,
    flags_given,
)
from callmark.cli.reporting import (
    SHOWN_REJECTED,
    RunPaths,
    add_detail_options,
    add_form_options,
    forms_of,
    present,
)

if TYPE_CHECKING:
    from callmark.config import RunConfig
    from callmark.records.report import Report

READ: Group = {flag: settings for flag, settings in INPUTS.items() if flag != "--in"}
SCORED: Group = {flag: settings for flag, settings in SCORING.items() if flag != "--privacy-echo"}
WRITTEN: Group = {
    "--out": {"metavar": "FILE", "help": "write every scored item here, for `callmark show`"},
    "--report": {"metavar": "FILE", "help": "write the report here"},
}
GROUPS = {
    "input": READ,
    "scoring": SCORED,
    "gates and exit code": GATES_ON_ANSWERS,
    "output": WRITTEN,
}
COMMON = (
    "--fixtures",
    "--registry",
    "--composition",
    "--gate",
    "--out",
    "--report",
    "--config",
)  # what most people need


def build_parser() -> CommandParser:
    parser = CommandParser(
        "verify",
        """
        Check a dataset before a model sees it.

        Every expected call must name an offered tool, keep its schema and have a
        fixture. Every required fact must be in the results of those calls.

        Items with an answer of their own (`teacher_text`) are also scored, with the
        scorer and gates that a model gets. Results come from --fixtures, otherwise
        from `tool_result_fields`. Repeating PII from the prompt is a breach here.

        With --composition, or `composition: true` in the header, quotas count too.
        Each scenario × complexity cell needs 3 items. At least 10 % are controls and,
        from 40 items on, 5 % long contexts.

        Exit code: 0 passed, 1 failed, 5 inconclusive.
        """,
        """
        callmark verify dataset.jsonl --fixtures fixtures/
        callmark verify dataset.jsonl --fixtures fixtures/ --registry tools.json
        callmark verify dataset.jsonl --composition --report verification.json
        callmark verify dataset.jsonl --out verified.jsonl; callmark show verified.jsonl ID
        """,
        common=COMMON,
    )
    parser.add_argument("dataset", metavar="DATASET", help="JSONL file; - is standard input")
    parser.add_argument(
        "--composition", action="store_true", help="judge the quotas of a composed dataset too"
    )
    add_groups(parser, GROUPS)
    add_form_options(parser)
    add_detail_options(parser, "verdict", "all gates and metrics, tools, locales and slices")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.reports.finished_run import FinishedRun, write_forms
    from callmark.reports.layout import RunProgress
    from callmark.run.verify import verify

    config = _config_of(options)
    forms = forms_of(options, has_trials=config.out is not None)
    with RunProgress(sys.stderr, silent=options.quiet) as progress:
        outcome = verify(config, composition=options.composition, progress=progress)
    finished = FinishedRun(
        report=outcome.report,
        results=None if config.out is None else Path(config.out),
        fail_on_inconclusive=config.fail_on_inconclusive,
    )
    write_forms(finished, forms)
    places = RunPaths(
        results=config.out,
        report=config.report,
        fixtures=config.fixtures,
        registry=config.registry,
    )
    more = () if options.quiet else tuple(_next_steps(outcome.report, options.dataset, places))
    present(outcome.report, places, quiet=options.quiet, verbose=options.verbose, more=more)
    return outcome.exit_code


def _next_steps(report: Report, dataset: str, places: RunPaths) -> Iterator[str]:
    """What no model could repeat of a log is rejected, not mended; what is right is asked."""
    from callmark.datasets.reader import open_dataset
    from callmark.run.expectations import CALLS

    failing = report.failing.get(CALLS)
    if dataset == "-" or (failing is None and report.verdict != "pass"):
        return
    with open_dataset(Path(dataset)) as opened:
        observed = [one.sample_id for one in opened.samples() if one.expectation.observed]
    if failing is None:
        # Of what is merely observed, the import has said what comes next.
        if not observed:
            yield asking_command(dataset, places.registry, places.fixtures)
        return
    wrong = [one for one in observed if one in failing.sample_ids]
    if wrong:
        rejects = "".join(f" --reject {shlex.quote(one)}" for one in wrong[:SHOWN_REJECTED])
        accept = f"callmark dataset accept {shlex.quote(dataset)} --all{rejects}"
        yield f"{accept}: accept it, but for what no model could repeat"


def _config_of(options: argparse.Namespace) -> RunConfig:
    """Tools, fixtures and gates as in `callmark run`; the files that a run writes are not those
    of a verification, so only flags name them here."""
    from callmark.config import load_config

    flags = flags_given(options, list(GROUPS.values()))
    named = {"dataset": options.dataset, "out": None, "report": None}
    return load_config(getattr(options, "config", None), {**named, **flags})
