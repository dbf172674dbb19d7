"""`python -m scripts.validate_sharding_determinism …` is `toolmark validate-sharding …`."""

import sys

from toolmark.cli import main as toolmark

OUTPUT = ("--output", "eval/reports/sharding_validation.json")


def main(arguments: list[str] | None = None) -> int:
    return toolmark(["validate-sharding", *OUTPUT, *(arguments or sys.argv[1:])])


if __name__ == "__main__":
    sys.exit(main())
