"""`callmark label`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from callmark.cli.options import CommandParser
from callmark.errors import UsageError
from callmark.reports.layout import Block, line, write

if TYPE_CHECKING:
    from callmark.records.statements import LabelLine, Verdict

ANSWERS: dict[str, Verdict] = {"r": "right", "w": "wrong", "u": "unclear"}
QUESTION = "Is it right? r right, w wrong, u unclear, s skip, q quit: "


def build_parser() -> CommandParser:
    parser = CommandParser(
        "label",
        """
        Are the flags right on your own answers? Draw statements from a run for a
        person to judge.

        Every rule gets equally many, and some statements without a flag are mixed in.
        The order gives nothing away. The file shows each statement with what the user
        said and what the tools returned. What the rules say is in FILE.key.json;
        whoever judges should not open it.

        On a terminal you are asked one by one; you can stop and continue later. Or
        set `verdict` in the file to right, wrong or unclear. `callmark agree` counts.
        """,
        """
        callmark label runs/latest --sample 60
        callmark label results.jsonl -o mine.jsonl
        callmark label results.jsonl -o mine.jsonl --second
        """,
    )
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="results file, or a folder with results.jsonl"
    )
    parser.add_argument(
        "--sample", type=int, default=60, metavar="N", help="how many statements (default: 60)"
    )
    parser.add_argument(
        "-o",
        dest="out",
        type=Path,
        default=Path("labels.jsonl"),
        metavar="FILE",
        help="where they are written (default: labels.jsonl); an existing file is continued",
    )
    parser.add_argument(
        "--second", action="store_true", help="you are the second reader: sets verdict_2"
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    if options.sample < 1:
        raise UsageError(f"--sample: must be at least 1, not {options.sample}")

    from callmark.store.labels import key_path, read_labels

    asks = sys.stdin.isatty() and sys.stdout.isatty()
    if options.out.exists():
        if not asks:
            raise UsageError(
                f"{options.out}: exists already, and is left as it is. On a terminal this command"
                f" goes on with it; `callmark agree --labels {options.out}` counts its verdicts."
            )
        lines = read_labels(options.out)
    else:
        lines = _draw(options.run, options.sample, options.out)
        write(_written(options.out, key_path(options.out), lines, asks=asks), sys.stdout)
    if asks:
        _ask_and_keep(options.out, lines, second=options.second)
    return 0


def _draw(run: Path, number: int, out: Path) -> list[LabelLine]:
    from callmark.scorers.labels import draw
    from callmark.store.files import check_writable, read_results
    from callmark.store.labels import write_keys, write_labels
    from callmark.store.runs import results_of

    path = results_of(run)
    check_writable(out)
    keys, lines = draw(read_results(path), number)
    if not lines:
        raise UsageError(
            f"{path}: no statement about a result is in it. If an older version scored it, score it"
            f" again: callmark score {path} --out scored.jsonl"
        )
    write_keys(out, keys)
    write_labels(out, lines)
    return lines


def _written(out: Path, key: Path, lines: list[LabelLine], *, asks: bool) -> Iterator[Block]:
    yield line(f"{out}: {len(lines)} statements to judge")
    yield line(f"{key}: what the rules say of them; not for those who judge")
    if not asks:
        yield line()
        yield line("next", "strong")
        yield line(f"set each `verdict` in {out} to right, wrong or unclear, then", indent=2)
        yield line(f"callmark agree --labels {out}", indent=2)


def _ask_and_keep(out: Path, lines: list[LabelLine], *, second: bool) -> None:
    """Every verdict is on disk before the next question."""
    from callmark.store.labels import write_labels

    current = list(lines)
    for place, judged in ask(current, sys.stdin, sys.stdout, second=second):
        current[place] = judged
        write_labels(out, current)
    field = "verdict_2" if second else "verdict"
    left = sum(getattr(one, field) is None for one in current)
    write([line(f"{out}: {len(current) - left} judged, {left} left")], sys.stdout)


def ask(
    lines: list[LabelLine], answers: TextIO, screen: TextIO, *, second: bool = False
) -> Iterator[tuple[int, LabelLine]]:
    """Each line that has no verdict yet, as its reader judges it. The end of `answers` is `q`."""
    from msgspec.structs import replace

    field = "verdict_2" if second else "verdict"
    waiting = [place for place, one in enumerate(lines) if getattr(one, field) is None]
    for number, place in enumerate(waiting, start=1):
        write(_shown(lines[place], number, len(waiting)), screen)
        while True:
            screen.write(QUESTION)
            screen.flush()
            given = answers.readline()
            word = given.strip().lower()[:1]
            if not given or word == "q":
                screen.write("\n")
                return
            if word in ANSWERS:
                yield place, replace(lines[place], **{field: ANSWERS[word]})
            if word in ANSWERS or word == "s":
                break


def _shown(one: LabelLine, number: int, total: int) -> Iterator[Block]:
    yield line()
    yield line(f"{number} of {total}  {one.sample_id}", "strong")
    for said in one.said:
        yield line(f"user: {said}", indent=2)
    for result in one.results:
        yield line(f"call {result.call} {result.tool or ''} {result.arguments}", indent=2)
        yield line(result.result, indent=4)
    yield line(f"sentence: {one.sentence}")
    yield line(f"statement: {one.statement}", "strong")
