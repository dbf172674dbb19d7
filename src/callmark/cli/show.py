"""`callmark show`."""

from __future__ import annotations

import sys
from pathlib import Path

from callmark.cli.options import CommandParser
from callmark.errors import UsageError
from callmark.reports.layout import write


def build_parser() -> CommandParser:
    parser = CommandParser(
        "show",
        """
        Show one conversation of a run: the prompt; every call with its arguments, verdict and
        result; the answer with its spans and flags marked; what each statement in it rests on
        (which call, which JSON path, which value); and every flag in one sentence. With
        --statements, for one sample or the whole run: how many statements of the answers have
        each label (supported, derived, unsupported, misattributed, unchecked, …), by which rule,
        and every flag with what was expected instead.
        """,
        """
        callmark show results.jsonl search-rope-01
        callmark show demo-run search-rope-01 --full
        callmark show results.jsonl --statements
        """,
    )
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="results file, or a folder with results.jsonl"
    )
    parser.add_argument("id", nargs="?", metavar="ID", help="sample id")
    parser.add_argument(
        "--trial", type=int, default=0, metavar="N", help="which trial (default: 0)"
    )
    parser.add_argument(
        "--statements",
        "--claims",  # the name that 0.1.0 gave it
        action="store_true",
        help="show the statements of the answers: counts by label, and every flag",
    )
    parser.add_argument("--json", action="store_true", help="with --statements: print JSON")
    parser.add_argument("--full", action="store_true", help="show long results in full")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.reports.show import show_blocks
    from callmark.store.files import find_result
    from callmark.store.runs import results_of

    path = results_of(options.run)
    if options.statements:
        return _show_statements(path, options.id, options.trial, as_json=options.json)
    if options.id is None or options.json:
        raise UsageError("show: name a sample (callmark show RUN ID), or give --statements")
    _, result = find_result(path, options.id, options.trial)
    write(show_blocks(result, full=options.full), sys.stdout)
    return 0


def _show_statements(path: Path, sample_id: str | None, trial: int, *, as_json: bool) -> int:
    from callmark.records.jsontext import canonical_json, plain
    from callmark.reports.finished_run import list_statements
    from callmark.reports.show import statement_blocks
    from callmark.store.files import find_result, read_results

    results = read_results(path) if sample_id is None else [find_result(path, sample_id, trial)[1]]
    listed = list_statements(results)
    if as_json:
        print(canonical_json(plain(listed)))
    else:
        write(statement_blocks(listed), sys.stdout)
    return 0
