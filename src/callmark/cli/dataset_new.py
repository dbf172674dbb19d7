"""`callmark dataset new`."""

from __future__ import annotations

from pathlib import Path

from callmark.cli.options import CommandParser


def build_parser() -> CommandParser:
    parser = CommandParser(
        "dataset new",
        """
        Append a sample to a dataset: what the user says, and what you expect.

        Each --call is a tool and its arguments, in the order in which you expect
        them. --fact is a value that the answer must contain. Without --call, the
        sample is one that needs no tool. A dataset that does not exist is created.
        """,
        """
        callmark dataset new eval.jsonl --prompt "Say hello."
        callmark dataset new eval.jsonl --registry tools.json --prompt "What does W100 cost?"
          --call find_order order_id=W100 --fact 81.25
        """,
    )
    parser.add_argument("dataset", type=Path, metavar="DATASET")
    parser.add_argument("--prompt", required=True, metavar="TEXT", help="what the user says")
    parser.add_argument(
        "--call",
        action="append",
        nargs="+",
        default=[],
        metavar=("TOOL", "NAME=VALUE"),
        help="expected call; a value is JSON, or else text; may be repeated",
    )
    parser.add_argument(
        "--fact",
        action="append",
        default=[],
        metavar="VALUE",
        help="value that the answer must contain; may be repeated",
    )
    parser.add_argument("--id", metavar="ID", help="id of the sample (default: sample-N)")
    parser.add_argument(
        "--registry", metavar="PATH", help="tool specs, a file or a folder (default: built in)"
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.datasets.add import add_sample, read_call, read_value
    from callmark.run.offers import open_registry

    line, sample_id = add_sample(
        options.dataset,
        prompt=options.prompt,
        calls=[read_call(words) for words in options.call],
        facts=[read_value(text) for text in options.fact],
        sample_id=options.id,
        registry=open_registry(options.registry),
    )
    print(f"{options.dataset}:{line}: {sample_id} is added")
    registry = f" --registry {options.registry}" if options.registry else ""
    if options.call:
        print("next, to record what the tools answer:")
        print(
            f"  callmark fixtures record fixtures/ --in {options.dataset}{registry} --mode new"
            " --python MODULE:NAME"
        )
    print(f"check it: callmark verify {options.dataset} --fixtures fixtures/{registry}")
    return 0
