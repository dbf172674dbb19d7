"""`python -m eval.cli …` is `callmark run …`."""

import sys

from callmark.cli import main as callmark


def main(arguments: list[str] | None = None) -> int:
    return callmark(["run", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    sys.exit(main())
