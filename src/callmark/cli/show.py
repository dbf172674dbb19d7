"""`callmark show`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import CommandParser
from callmark.errors import UsageError
from callmark.reports.layout import Block, Cell, Table, line, one_line, write

if TYPE_CHECKING:
    from callmark.records.results import Result

RULED = 72  # between two conversations
LISTED = 50  # samples, where none is named


def build_parser() -> CommandParser:
    parser = CommandParser(
        "show",
        """
        Show conversations of a run: the prompt, every call and its result, the
        answer, and what each statement rests on.

        Flags are marked in the answer and explained in one sentence each, with the
        call, JSON path and value behind them. Without an id, see which samples there
        are, and why those that failed did. With --statements, see how many
        statements have each label, by which rule, and every flag. For a probe's JSON
        report, see its cases, or what both models wrote for one of them.
        """,
        """
        callmark show results.jsonl search-rope-01
        callmark show demo-run search-rope-01 --full
        callmark show results.jsonl --statements
        callmark show probe.json 3
        callmark show series.json 3 --checkpoint checkpoint-60
        """,
    )
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="results file, a folder with one, or a probe's report"
    )
    parser.add_argument("id", nargs="*", metavar="ID", help="sample ids, or a probe's case")
    parser.add_argument(
        "--trial", type=int, default=0, metavar="N", help="which trial (default: 0)"
    )
    parser.add_argument(
        "--statements",
        "--claims",  # the name that 0.1.0 gave it
        action="store_true",
        help="show the statements of the answers: counts by label, and every flag",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="NAME",
        help="of a probe's series: which checkpoint (default: the last)",
    )
    parser.add_argument("--json", action="store_true", help="with --statements: print JSON")
    parser.add_argument("--full", action="store_true", help="show long results in full")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.reports.show import show_blocks
    from callmark.store.runs import trials_of

    if _is_probe(options.run):
        return _show_probe(options.run, options.id, options.checkpoint)
    if options.checkpoint is not None:
        raise UsageError("--checkpoint: is for a probe's report of a series")
    path = trials_of(options.run)
    if options.statements:
        return _show_statements(path, options.id, options.trial, as_json=options.json)
    if options.json:
        raise UsageError("show: --json is for --statements")
    if not options.id:
        return _list_samples(path, options.trial)
    found = [_find(path, sample_id, options.trial) for sample_id in options.id]
    for number, result in enumerate(found):
        rule = [line(), line("─" * RULED, "quiet")] if number else []
        write([*rule, *show_blocks(result, full=options.full)], sys.stdout)
    return 0


def _find(path: Path, sample_id: str, trial: int) -> Result:
    from callmark.store.files import find_among
    from callmark.store.runs import read_trials

    return find_among(enumerate(read_trials(path)), path, sample_id, trial)[1]


def _list_samples(path: Path, trial: int) -> int:
    """Those of the run, for whoever has no id yet: first what failed, each with its reasons."""
    from callmark.cli.reporting import open_finished, open_unfinished
    from callmark.store.runs import UNFINISHED, is_journal, read_trials

    goes_on = is_journal(path)
    finished = open_unfinished(path) if goes_on else open_finished(path)
    failed, lost, others = _Rows(), _Rows(), _Rows()
    for result in read_trials(path):
        if result.trial == trial:
            reasons = finished.why_failed(result)
            rows = lost if result.scores is None else failed if reasons else others
            rows.add(result, reasons)
    every = failed.count + lost.count + others.count
    shown = [*failed.first, *lost.first, *others.first][:LISTED]
    unscored = f", {lost.count} not scored" if lost.count else ""
    blocks: list[Block] = [
        line(
            f"{failed.count} of {every} samples failed{unscored}",
            "bad" if failed.count else "warn" if lost.count else "good",
        ),
        *([line(UNFINISHED, "warn")] if goes_on else ()),
        line(),
        Table(
            ("sample", "calls", "statements", "flagged", "unchecked"),
            tuple(row for row, _ in shown),
            notes=tuple(reasons for _, reasons in shown),
        ),
    ]
    if every > len(shown):
        blocks.append(line(f"and {every - len(shown)} more", "quiet"))
    blocks.append(line(f"next: callmark show {shlex.quote(str(path))} ID", "quiet"))
    write(blocks, sys.stdout)
    return 0


class _Rows:
    """Counts all, keeps the first."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[tuple[tuple[Cell, ...], tuple[str, ...]]] = []

    def add(self, result: Result, reasons: tuple[str, ...]) -> None:
        self.count += 1
        if len(self.first) < LISTED:
            self.first.append((_row(result), reasons))


def _row(result: Result) -> tuple[Cell, ...]:
    stated = () if result.scores is None else result.scores.statements
    flags = sum(one.is_flag for one in stated)
    unchecked = sum(one.label == "unchecked" for one in stated)
    return (
        Cell(one_line(result.sample_id, 60)),
        Cell(str(len(result.tool_trace))),
        Cell(str(len(stated))),
        Cell(str(flags), "warn" if flags else "plain"),
        Cell(str(unchecked)),
    )


def _is_probe(path: Path) -> bool:
    from callmark.probe.records import is_probe_report
    from callmark.store.files import open_input

    if path.suffix != ".json" or not path.is_file():
        return False
    with open_input(path) as stream:
        return is_probe_report(stream.read(64))


def _show_probe(path: Path, cases: Sequence[str], checkpoint: str | None) -> int:
    import msgspec

    from callmark.errors import BadInput
    from callmark.probe.records import read_probe_report
    from callmark.reports.probe import find_case, of_checkpoint
    from callmark.reports.probe_case import case_blocks, case_list_blocks
    from callmark.store.files import open_input

    with open_input(path) as stream:
        data = stream.read()
    try:
        report = read_probe_report(data)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadInput(
            f"{path}: is no probe report of this version ({error}): probe again with --json"
        ) from None
    if checkpoint is not None:
        report = of_checkpoint(report, checkpoint)
    if not cases:
        write(case_list_blocks(report), sys.stdout)
    for number, case in enumerate(cases):
        rule = [line(), line("─" * RULED, "quiet")] if number else []
        write([*rule, *case_blocks(*find_case(report, case))], sys.stdout)
    return 0


def _show_statements(path: Path, ids: Sequence[str], trial: int, *, as_json: bool) -> int:
    from callmark.records.jsontext import canonical_json, plain
    from callmark.reports.show import statement_blocks
    from callmark.store.runs import read_trials
    from callmark.summary.failing import list_statements

    named = [_find(path, sample_id, trial) for sample_id in ids]
    results: Iterable[Result] = named or read_trials(path)
    listed = list_statements(results)
    if as_json:
        print(canonical_json(plain(listed)))
    else:
        write(statement_blocks(listed), sys.stdout)
    return 0
