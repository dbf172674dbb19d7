"""`toolmark show`."""

from __future__ import annotations

import sys
from pathlib import Path

from toolmark.cli.parser import CommandParser
from toolmark.core.results import Result
from toolmark.errors import UsageError
from toolmark.reports.layout import write
from toolmark.reports.show import show_blocks
from toolmark.running.selection import RESULTS
from toolmark.store.lines import read_results


def build_parser() -> CommandParser:
    parser = CommandParser(
        "show",
        """
        Show one conversation of a run: the prompt, every call with its arguments, its verdict and
        its result, the answer with its spans marked, and for each value in it the evidence (which
        call, which JSON path, which value) or that there is none.
        """,
        """
        toolmark show results.jsonl search-rope-01
        toolmark show demo-run search-rope-01 --full
        """,
    )
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="results file, or a folder with results.jsonl"
    )
    parser.add_argument("id", metavar="ID", help="sample id")
    parser.add_argument("--trial", type=int, default=0, metavar="N", help="which trial (0)")
    parser.add_argument("--full", action="store_true", help="do not cut long results")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    run: Path = options.run
    result = _find(run / RESULTS if run.is_dir() else run, options.id, options.trial)
    write(show_blocks(result, full=options.full), sys.stdout)
    return 0


def _find(path: Path, sample_id: str, trial: int) -> Result:
    ids: set[str] = set()
    trials: set[int] = set()
    for result in read_results(path):
        if result.sample_id == sample_id:
            if result.trial == trial:
                return result
            trials.add(result.trial)
        ids.add(result.sample_id)
    if trials:
        has = ", ".join(map(str, sorted(trials)))
        raise UsageError(f"{path}: {sample_id} has no trial {trial}; it has {has}")
    from difflib import get_close_matches

    near = get_close_matches(sample_id, ids, 3)
    hint = f"; near to it: {', '.join(near)}" if near else f"; it holds {len(ids)} samples"
    raise UsageError(f"{path}: no sample {sample_id!r}{hint}")
