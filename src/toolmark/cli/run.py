"""`toolmark run`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from toolmark.cli.cluster import shard_of_this_process
from toolmark.cli.compare import DECIDED, options_of
from toolmark.cli.compare import present as present_comparison
from toolmark.cli.options import (
    ENGINE,
    FLAG,
    GATES,
    INPUTS,
    LOCAL,
    PART,
    RUNNER,
    SCORING,
    SERVED,
    Group,
    add_groups,
    flags_given,
)
from toolmark.cli.parser import CommandParser
from toolmark.cli.reporting import Places, present
from toolmark.comparing.compare import Tools, compare_runs, write_comparison
from toolmark.comparing.opening import results_of
from toolmark.config import RunConfig, load_config
from toolmark.errors import Incomplete
from toolmark.reports.progress import RunProgress
from toolmark.running.run import INTERRUPTED, DryRun, ShownPrompt, dry_run, show_prompt
from toolmark.running.selection import RESULTS
from toolmark.shards.files import report_beside, shard_names
from toolmark.shards.run import run_anywhere

REPORT = "report.json"
COMPARISON = "comparison.json"
BY_URGENCY = (130, 2, 3, 4, 1, 5, 0)  # of several exit codes the first one counts
OUTPUT: Group = {
    "--out": {
        "metavar": "FILE",
        "help": "results, one line per trial (results.jsonl, results.shard_I.jsonl)",
    },
    "--report": {
        "metavar": "FILE",
        "help": "the report (report.json beside --out, report.shard_I.json)",
    },
    "--resume": {**FLAG, "help": "go on with the journal of an unfinished run"},
    "--restart": {**FLAG, "help": "throw that journal away"},
    "--cache": {
        "metavar": "DIR",
        "help": "keep the model's answers there, and ask for none of them twice",
    },
    "--no-cache": {**FLAG, "help": "keep and take none, whatever a settings file says"},
    "--dry-run": {**FLAG, "help": "check everything, run nothing"},
}
BASELINE: Group = {
    "--baseline": {
        "metavar": "RUN",
        "help": "then compare with this earlier run; comparison.json beside the report",
    },
    **DECIDED,
}
GROUPS: dict[str, Group] = {
    "what is run": INPUTS,
    "who answers": RUNNER,
    "a served model (openai_http)": SERVED,
    "a local model (hf_local)": LOCAL,
    "only a part": PART,
    "many processes": ENGINE,
    "scoring": SCORING,
    "gates and exit code": GATES,
    "against an earlier run": BASELINE,
    "output": OUTPUT,
}


def build_parser() -> CommandParser:
    parser = CommandParser(
        "run",
        """
        Run a dataset: give every prompt to the runner, answer its tool calls from the fixtures,
        score what it says against what the tools returned, and judge the gates. Results and report
        are written, the report is printed, and the exit code says how it ended. Everything may
        stand in a toolmark.yaml (`toolmark init`); flags win.
        """,
        """
        toolmark run --in dataset.jsonl --fixtures fixtures/ --runner replay --model answers.jsonl
        toolmark run --only search-rope-01 --out one.jsonl
        toolmark run --baseline baseline.jsonl
        toolmark run --resume
        """,
    )
    add_groups(parser, GROUPS)
    parser.add_argument("--show-prompt", metavar="ID", help="print the first request of a sample")
    parser.add_argument("--quiet", action="store_true", help="print only the verdict")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    config = config_of(options)
    if options.show_prompt is not None:
        return _print_json(show_prompt(config, options.show_prompt))
    if config.dry_run:
        return _print_json(dry_run(config))
    if config.baseline is None:
        return run_and_present(config, quiet=options.quiet)
    results_of(Path(config.baseline))  # a missing one is said before hours of running
    code = run_and_present(config, quiet=options.quiet)
    if code in (INTERRUPTED, Incomplete.exit_code):
        print(f"not compared with {config.baseline}: the run is not complete", file=sys.stderr)
        return code
    return min(code, compare_with_baseline(config, quiet=options.quiet), key=BY_URGENCY.index)


def run_and_present(config: RunConfig, *, quiet: bool, more: tuple[str, ...] = ()) -> int:
    with RunProgress(sys.stderr, silent=quiet) as progress:
        outcome = run_anywhere(config, progress=progress)
    places = Places(
        results=config.out,
        report=config.report,
        fixtures=config.fixtures,
        registry=config.registry,
        redact_pii=config.redact_pii,
    )
    present(outcome.report, places, quiet=quiet, more=more)
    return outcome.exit_code


def compare_with_baseline(config: RunConfig, *, quiet: bool) -> int:
    """The new results against the baseline; written beside the report."""
    comparison = compare_runs(
        Path(str(config.baseline)),
        Path(str(config.out)),
        options_of(config),
        tools=Tools(config.registry, config.allowlist),
    )
    write_comparison(Path(str(config.report)).with_name(COMPARISON), comparison)
    return present_comparison(comparison, quiet=quiet)


def config_of(options: argparse.Namespace) -> RunConfig:
    """The settings of this command line, with a place for the output if nobody named one."""
    flags = flags_given(options, list(GROUPS.values()))
    if flags.pop("no_cache", False):
        flags["cache"] = None
    if flags.get("num_shards") == "auto":
        flags["num_shards"], flags["shard_index"] = shard_of_this_process()
    file: Path | None = getattr(options, "config", None)
    config = load_config(file, flags)
    sharded = config.num_shards > 1 and config.engine is None
    out = config.out or (shard_names(config.shard_index)[0] if sharded else RESULTS)
    # Shards in one folder must not write over each other's reports.
    beside = report_beside(Path(out)) if sharded else Path(out).with_name(REPORT)
    return msgspec.structs.replace(config, out=out, report=config.report or str(beside))


def _print_json(value: DryRun | ShownPrompt) -> int:
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    return 0
