"""`callmark dataset generate`."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import CommandParser
from callmark.errors import UsageError
from callmark.reports.layout import Block, Cell, Table, line, write

if TYPE_CHECKING:
    from callmark.datasets.generate import AnswersWanted, GeneratedDataset

SEED = 42
# The names of `datasets.generate.FAULTS`, for the help text: the faults themselves come with the
# whole generator.
KINDS = """
    ungrounded_span altered_number altered_date wrong_locale_form echoed_argument
    result_not_yet_seen missing_call extra_call swapped_calls wrong_argument
    argument_against_schema malformed_call contaminated_control swallowed_decoy invented_on_empty
    unrecovered_error too_many_spans leaked_email leaked_phone leaked_card invented_url
""".split()


def build_parser() -> CommandParser:
    parser = CommandParser(
        "dataset generate",
        """
        Make a dataset from two numbers, with fixtures that answer every call.

        It is stratified and in several languages. It has controls, retries,
        adversarial requests, negative controls, locale probes and long contexts. The
        same numbers give the same bytes.

        With --with-answers, answers with known true scores are written too. Good ones
        pass every gate that the dataset can decide; flawed ones have exactly the
        faults that you ask for.
        """,
        """
        callmark dataset generate --total 400 --out data.jsonl --fixtures fixtures
        callmark dataset generate --total 400 --out data.jsonl --fixtures fixtures \\
            --with-answers flawed --fault altered_number=0.2 --fault leaked_email=0.05
        callmark dataset generate --cases 80 --registry tools.json --out cases.jsonl
        """,
    )
    add = parser.add_argument
    add(
        "--total",
        type=int,
        metavar="N",
        help="number of samples; 400 are enough to decide every gate",
    )
    add(
        "--cases",
        type=int,
        metavar="N",
        help="instead of a dataset: N cases for `callmark probe`, about the tools of --registry",
    )
    add(
        "--registry",
        metavar="FILE",
        help="with --cases: your tools, a file or a folder (default: the built-in ones)",
    )
    add(
        "--seed",
        type=int,
        default=SEED,
        metavar="S",
        help=f"a different seed gives different samples (default: {SEED})",
    )
    add(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="the dataset to write, with a sealed header, or the file of cases",
    )
    add(
        "--fixtures",
        type=Path,
        metavar="DIR",
        help="folder to write the fixtures to",
    )
    add("--with-answers", choices=("good", "flawed"), help="also write recorded answers")
    add(
        "--answers", type=Path, metavar="FILE",
        help="where to write them (default: beside the dataset); their true scores go beside them,"
        " into a .truth.jsonl file",
    )  # fmt: skip
    add(
        "--fault", action="append", default=[], metavar="KIND=RATE",
        help="plant this fault in this share of the samples that it applies to; kinds: "
        + ", ".join(KINDS),
    )  # fmt: skip
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    if options.cases is not None:
        return _write_cases(options)
    _need(options)

    from callmark.datasets.generate import generate

    answers = _answers_of(options)
    made = generate(
        options.total, options.seed, out=options.out, fixtures=options.fixtures, answers=answers
    )
    write(_blocks(options, answers, made), sys.stdout)
    return 0


def _need(options: Namespace) -> None:
    if options.registry is not None:
        raise UsageError("--registry: goes with --cases N: a generated dataset has its own tools")
    for flag in ("total", "fixtures"):
        if getattr(options, flag) is None:
            raise UsageError(
                f"--{flag}: is needed for a dataset\n  see: callmark dataset generate --help"
            )


def _write_cases(options: Namespace) -> int:
    from callmark.probe.case_making import cases_text, make_cases
    from callmark.run.offers import open_registry
    from callmark.store.files import atomic_writer

    for flag in ("total", "fixtures", "with_answers", "answers", "fault"):
        if getattr(options, flag):
            word = f"--{flag.replace('_', '-')}"
            raise UsageError(f"{word}: is for a dataset: leave it out with --cases")
    made = make_cases(open_registry(options.registry), options.cases, options.seed)
    with atomic_writer(options.out) as stream:
        stream.write(cases_text(made.cases).encode())
    silent = sum(1 for case in made.cases if case.gold_tool_name is None)
    tools = {case.gold_tool_name for case in made.cases} - {None}
    text = f"{options.out}: {len(made.cases)} cases for {len(tools)} tools, seed {options.seed}"
    blocks = [line(text, "strong"), line(f"{silent} of them ask for no call")]
    blocks += [line(f"left out: {name}: {why}", "warn") for name, why in made.left_out.items()]
    how = f"--base MODEL --adapter ADAPTER --cases {options.out}"
    write([*blocks, line(f"next: callmark probe {how}", "quiet")], sys.stdout)
    return 0


def _answers_of(options: Namespace) -> AnswersWanted | None:
    from callmark.datasets.generate import AnswersWanted

    faults = dict(_fault(text) for text in options.fault)
    if options.with_answers is None:
        if options.answers or faults:
            raise UsageError("--answers and --fault need --with-answers good or flawed")
        return None
    if (options.with_answers == "flawed") != bool(faults):
        raise UsageError(
            "--with-answers flawed goes with at least one --fault KIND=RATE, good with none"
        )
    path = options.answers or options.out.with_name(f"{options.out.stem}.answers.jsonl")
    return AnswersWanted(path, faults)


def _fault(text: str) -> tuple[str, float]:
    kind, _, rate = text.partition("=")
    try:
        return kind, float(rate)
    except ValueError:
        raise UsageError(f"--fault {text}: write KIND=RATE, such as {kind}=0.2") from None


def _blocks(
    options: Namespace, answers: AnswersWanted | None, made: GeneratedDataset
) -> Iterator[Block]:
    yield line(f"{options.out}: {made.samples} samples, seed {options.seed}", "strong")
    yield line(f"{options.fixtures}: {made.fixtures} fixtures")
    if answers is None:
        return
    yield line(f"{answers.path}: {options.with_answers} answers")
    yield line(f"{answers.truth_path}: what is true of each")
    if made.planted:
        from callmark.datasets.generate import FAULTS

        yield line()
        yield Table(
            ("fault", "planted", "possible", "gate"),
            tuple(
                (
                    Cell(kind),
                    Cell(str(made.planted[kind])),
                    Cell(str(made.applicable[kind])),
                    Cell(FAULTS[kind].gate),
                )
                for kind in sorted(made.planted)
            ),
            frozenset({1, 2}),
        )
    yield line()
    where = f"--in {options.out} --fixtures {options.fixtures} --model {answers.path}"
    yield line(f"next: callmark run {where}", "quiet")
