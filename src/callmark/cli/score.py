"""`callmark score`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import (
    GATES,
    INPUTS,
    SCORING,
    CommandParser,
    Group,
    add_groups,
    flags_given,
)
from callmark.cli.reporting import RunPaths, add_form_options, forms_of, present

if TYPE_CHECKING:
    from callmark.config import RunConfig

READ: Group = {flag: settings for flag, settings in INPUTS.items() if flag != "--fixtures"}
JUDGED: Group = {flag: settings for flag, settings in GATES.items() if flag != "--max-errors"}
WRITTEN: Group = {
    "--out": {"metavar": "FILE", "help": "write the scored lines here"},
    "--report": {"metavar": "FILE", "help": "write the report here"},
}
GROUPS = {"input": READ, "scoring": SCORING, "gates and exit code": JUDGED, "output": WRITTEN}


def build_parser() -> CommandParser:
    parser = CommandParser(
        "score",
        """
        Score answers that already exist, without a model or fixtures: a results file of `callmark
        run` (shards may be concatenated), results of another program (`sample_id`, `model_output`,
        `tool_trace` with results), or OpenAI-style conversations (`messages`, one per line). With
        --in, prompts and expectations come from that dataset, matched by id. Conversations without
        a dataset have no expectations: grounding, arguments and privacy are reported, and gates on
        eligible samples do not apply.
        """,
        """
        callmark score runs/latest --gate integration_f1_macro_lax=0.95
        callmark score conversations.jsonl --out scored.jsonl --report report.json
        """,
    )
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="results or conversations, JSONL; or a run's folder"
    )
    parser.add_argument(
        "--answers",
        type=Path,
        metavar="ANSWERS",
        help="the agent's answers, by sample_id, if FILE is a trace of `fixtures serve`",
    )
    add_groups(parser, GROUPS)
    add_form_options(parser)
    parser.add_argument("--quiet", action="store_true", help="print only the verdict and warnings")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.reports.finished_run import FinishedRun, write_forms
    from callmark.reports.layout import RunProgress
    from callmark.run.play import cross_scorer
    from callmark.run.rescore import score_file

    config = _config_of(options)
    forms = forms_of(options, has_trials=config.out is not None)
    with (
        RunProgress(sys.stderr, silent=options.quiet) as progress,
        _with_answers(_file_of(options.file), options.answers) as file,
    ):
        outcome = score_file(file, config, progress=progress)
    finished = FinishedRun(
        report=outcome.report,
        results=None if config.out is None else Path(config.out),
        cross_score=cross_scorer(),
        fail_on_inconclusive=config.fail_on_inconclusive,
    )
    write_forms(finished, forms)
    present(outcome.report, RunPaths(results=config.out, report=config.report), quiet=options.quiet)
    return outcome.exit_code


def _file_of(named: Path) -> Path:
    """A folder stands for the results in it."""
    from callmark.store.runs import results_of

    return results_of(named) if named.is_dir() else named


@contextmanager
def _with_answers(file: Path, answers: Path | None) -> Iterator[Path]:
    """The file that is scored: a trace and the answers that belong to it become one."""
    import tempfile

    from callmark.live.sessions import join_answers

    if answers is None:
        yield file
        return
    with tempfile.TemporaryDirectory() as folder:
        joined = Path(folder) / file.name
        with joined.open("wb") as stream:
            join_answers(file, answers, stream)
        yield joined


def _config_of(options: argparse.Namespace) -> RunConfig:
    """Gates and tools as in `callmark run`; but the files that a run reads and writes are not
    those of a second scoring, so only flags name them here."""
    import msgspec

    from callmark.config import load_config

    flags = flags_given(options, list(GROUPS.values()))
    config = load_config(getattr(options, "config", None), flags)
    return msgspec.structs.replace(
        config, dataset=flags.get("in"), out=flags.get("out"), report=flags.get("report")
    )
