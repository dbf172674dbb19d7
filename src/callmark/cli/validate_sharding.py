"""`callmark validate-sharding`."""

from __future__ import annotations

import sys

from callmark.cli.options import INPUTS, RUNNER, CommandParser, Group, add_groups
from callmark.reports.layout import neutralise

# For the help text; `shards.validate` has them for whoever gives none.
NUM_SHARDS = 4
ATOL = RTOL = 1e-6
OUTPUT = "sharding_validation.json"

GROUPS: dict[str, Group] = {
    "what is run": {
        "--dataset": {"metavar": "FILE", "required": True, "help": "the dataset, JSONL"},
        **{name: RUNNER[name] for name in ("--model", "--runner", "--prompt-wrapper", "--seed")},
        "--fixtures": INPUTS["--fixtures"],
        "--config": {"metavar": "FILE", "help": "settings file of all runs; flags win"},
        "--num-shards": {
            "type": int,
            "metavar": "N",
            "help": f"number of shards (default: {NUM_SHARDS})",
        },
    },
    "what counts as equal": {
        "--atol": {
            "type": float,
            "metavar": "D",
            "help": f"absolute tolerance (default: {ATOL:g})",
        },
        "--rtol": {
            "type": float,
            "metavar": "D",
            "help": f"relative tolerance (default: {RTOL:g})",
        },
    },
    "output": {
        "--output": {
            "metavar": "FILE",
            "help": f"where to write the validation report (default: {OUTPUT})",
        },
        "--temp-dir": {"metavar": "DIR", "help": "keep the files of all runs in this folder"},
    },
}


def build_parser() -> CommandParser:
    parser = CommandParser(
        "validate-sharding",
        """
        Does running in shards change anything? Run a dataset as a whole and in
        shards, and compare everything.

        Each run has its own process in determinism mode, on one thread and with one
        hash seed. Fingerprints, places of samples, trials and metrics are compared,
        and whether a shard missed fixtures or breached privacy. The report says what
        differs, and is always written.

        Exit code: 0 equal; 1 different, or equal but such a gate failed. If a run
        itself fails, nothing is compared, and its exit code is returned.
        """,
        """
        callmark validate-sharding --dataset dataset.jsonl --fixtures fixtures --model a.jsonl
        callmark validate-sharding --dataset dataset.jsonl --config callmark.yaml --num-shards 16
        """,
    )
    add_groups(parser, GROUPS)
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.shards.validate import sharding_config, validate_sharding

    settings = {
        name: getattr(options, name)
        for group in GROUPS.values()
        for flag in group
        if hasattr(options, name := flag.removeprefix("--").replace("-", "_"))
    }
    config = sharding_config(settings)
    outcome = validate_sharding(config, say=lambda text: print(text, file=sys.stderr))
    found = outcome.validation
    if found.ok:
        sizes = ", ".join(map(str, found.shard_sizes))
        print(f"EQUAL  {found.num_shards} shards of {sizes} samples give what one run gives")
    else:
        print(found.heading)
        for reason in found.reasons:
            print(f"  {neutralise(reason)}")
    print(f"\n{config.output}: all checks")
    return outcome.exit_code
