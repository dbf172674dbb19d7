"""`callmark dataset accept`."""

from __future__ import annotations

import sys
from pathlib import Path

from callmark.cli.options import CommandParser, asking_command
from callmark.errors import UsageError
from callmark.reports.layout import line, write

SHOWN = 5
BESIDE = (".tools.json", ".fixtures")


def build_parser() -> CommandParser:
    parser = CommandParser(
        "dataset accept",
        """
        Say that what was observed is right.

        `dataset import --expect observed` and `--per-step` expect what some model
        did. Until you accept it, a run that does something else has changed, but is
        not wrong. From then on its calls and values count for every gate; where no
        call was made, none may be made. What is rejected is asked in every run and
        expects nothing; what is removed is asked no more. A header that pins the
        items pins the new ones. `callmark view --accept` accepts and rejects by key.
        """,
        """
        callmark dataset accept steps.jsonl refund-7#2 refund-7#3
        callmark dataset accept steps.jsonl --all --reject refund-9#1
        """,
    )
    parser.add_argument("dataset", type=Path, metavar="DATASET")
    parser.add_argument("ids", nargs="*", metavar="ID", help="the samples to accept")
    parser.add_argument(
        "--all",
        action="store_true",
        help="every observed sample with its question, a result for every call and an answer",
    )
    parser.add_argument(
        "--reject",
        action="append",
        default=[],
        metavar="ID",
        help="what was observed there is not right, and expected no more; may be repeated",
    )
    parser.add_argument(
        "--remove",
        action="append",
        default=[],
        metavar="ID",
        help="take the sample out of the dataset, whatever it expects; may be repeated",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="where to write it (default: in place)"
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.datasets.accept import accept_observed

    named = options.ids or options.reject or options.remove
    if (options.all and options.ids) or not (options.all or named):
        raise UsageError("dataset accept: name the samples, or say --all")
    from callmark.summary.metrics import count_of

    ids = None if options.all else options.ids
    done = accept_observed(
        options.dataset, ids, options.out, rejected=options.reject, removed=options.remove
    )
    place = options.out or options.dataset
    left = f", {done.left} still merely observed" if done.left else ""
    others = {"rejected": done.rejected, "removed": done.removed}
    also = "".join(f", {count} {word}" for word, count in others.items() if count)
    blocks = [line(f"{place}: {count_of(done.accepted, 'sample')} accepted{also}{left}")]
    if done.rejected:
        blocks.append(
            line(
                "What is rejected is still asked, and a replay of its recording fails where the"
                " recording was wrong. --remove ID takes a sample out."
            )
        )
    if done.holes:
        blocks.append(
            line(
                f"{len(done.holes)} not accepted, because the log lacks the result of a call:"
                f" {_named(done.holes)}. Add a fixture and accept them by name, or import with"
                " --per-step."
            )
        )
    if done.silent:
        blocks.append(
            line(
                f"{len(done.silent)} not accepted, because nothing is said after the last result,"
                f" and an accepted sample wants an answer: {_named(done.silent)}. Import with"
                " --per-step, where a call is an end, or accept them by name if an answer belongs"
                " there."
            )
        )
    if done.unasked:
        blocks.append(
            line(
                f"{len(done.unasked)} not accepted, because the log does not hold what was asked:"
                f" {_named(done.unasked)}. Write it into their `prompt` and accept them by name."
            )
        )
    if done.cut:
        blocks.append(
            line(
                f"{len(done.cut)} not accepted, because the user spoke out of turn, and a model"
                f" would not be asked all of it: {_named(done.cut)}. Import with --per-step, where"
                " each step has the whole conversation before it."
            )
        )
    if done.provided:
        blocks.append(
            line(
                f"{len(done.provided)} not accepted, because the model's provider ran a tool of its"
                f" own there, which no fixture can stand for: {_named(done.provided)}. Accept them"
                " by name if no call is right."
            )
        )
    if done.accepted:
        blocks.append(line(f"next: {_run_command(place)}", "quiet"))
    write(blocks, sys.stdout)
    return 0


def _run_command(dataset: Path) -> str:
    """With what an import leaves beside its dataset."""
    tools, fixtures = (dataset.with_name(f"{dataset.stem}{end}") for end in BESIDE)
    return asking_command(
        str(dataset),
        str(tools) if tools.is_file() else None,
        str(fixtures) if fixtures.is_dir() else None,
    )


def _named(ids: tuple[str, ...]) -> str:
    more = len(ids) - SHOWN
    return ", ".join(ids[:SHOWN]) + (f" and {more} more" if more > 0 else "")
