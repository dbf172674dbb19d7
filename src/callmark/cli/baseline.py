"""`callmark baseline set`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from callmark.cli.parser import CommandParser
from callmark.comparing.opening import results_of
from callmark.errors import BadInput, UsageError
from callmark.reports.neutral import one_line
from callmark.store.files import atomic_writer, check_writable
from callmark.store.jsonl import open_input
from callmark.store.recorded import RecordedAnswer, read_recorded

BASELINE = Path("baseline.jsonl")
BLOCK = 1 << 20


def build_parser() -> CommandParser:
    parser = CommandParser(
        "baseline set",
        """
        Keep the results of a run as the baseline of later ones: they are read once to be sure that
        they are whole, and copied. `callmark run --baseline FILE` then runs, and compares the new
        results with them; `baseline: FILE` in a callmark.yaml does so every time.
        """,
        """
        callmark baseline set runs/results.jsonl
        callmark baseline set runs --out baselines/july.jsonl
        """,
    )
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="results file, or a folder with results.jsonl"
    )
    parser.add_argument(
        "--out", type=Path, default=BASELINE, metavar="FILE", help="where it is kept"
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    results, kept = results_of(options.run), options.out
    if results.absolute() == kept.absolute():
        raise UsageError(f"{kept}: is that run already: choose another --out")
    check_writable(kept)
    statuses = Counter(_status(line) for line in read_recorded(results))
    if not statuses:
        raise BadInput(f"{results}: holds no line to keep")
    with open_input(results) as source, atomic_writer(kept) as target:
        while block := source.read(BLOCK):
            target.write(block)
    name = one_line(str(kept))
    print(f"{name}: {sum(statuses.values())} trials, {statuses['error']} of them errors")
    if statuses["error"]:
        print("  their samples cannot be compared, and over 2 % of such pairs decide nothing")
    print(f"next: callmark run --baseline {name}")
    return 0


def _status(line: object) -> str:
    return line.status if isinstance(line, RecordedAnswer) else "ok"
