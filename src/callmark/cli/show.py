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
        result; the answer with its spans marked; and for each value in it the evidence (which call,
        which JSON path, which value), or that there is none. With --claims, for one sample or the
        whole run: how many values in the answers are supported by results, follow from results,
        were said by the user, or are supported by nothing, and every sentence with an unsupported
        value, beside the nearest value in a result.
        """,
        """
        callmark show results.jsonl search-rope-01
        callmark show demo-run search-rope-01 --full
        callmark show results.jsonl --claims
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
        "--claims",
        action="store_true",
        help="show the values in the answers, and the evidence for each",
    )
    parser.add_argument("--json", action="store_true", help="with --claims: print JSON")
    parser.add_argument("--full", action="store_true", help="show long results in full")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.reports.show import show_blocks
    from callmark.store.files import find_result
    from callmark.store.runs import results_of

    path = results_of(options.run)
    if options.claims:
        return _show_claims(path, options.id, options.trial, as_json=options.json)
    if options.id is None or options.json:
        raise UsageError("show: name a sample (callmark show RUN ID), or give --claims")
    _, result = find_result(path, options.id, options.trial)
    write(show_blocks(result, full=options.full), sys.stdout)
    return 0


def _show_claims(path: Path, sample_id: str | None, trial: int, *, as_json: bool) -> int:
    from callmark.records.claims import add_up_claims
    from callmark.records.jsontext import canonical_json, plain
    from callmark.reports.show import claims_blocks
    from callmark.scorers.claims import claims_of
    from callmark.store.files import find_result, read_results

    if sample_id is None:
        claims = add_up_claims(map(claims_of, read_results(path)))
    else:
        claims = add_up_claims([claims_of(find_result(path, sample_id, trial)[1])])
    if as_json:
        print(canonical_json(plain(claims)))
    else:
        write(claims_blocks(claims), sys.stdout)
    return 0
