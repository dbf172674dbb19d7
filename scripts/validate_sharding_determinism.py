"""`python -m scripts.validate_sharding_determinism …` is `callmark validate-sharding …`."""

import sys

from callmark.cli import main as callmark

OUTPUT = ("--output", "eval/reports/sharding_validation.json")


def main(arguments: list[str] | None = None) -> int:
    return callmark(["validate-sharding", *OUTPUT, *(arguments or sys.argv[1:])])


if __name__ == "__main__":
    sys.exit(main())
