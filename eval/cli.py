"""`python -m eval.cli …` is `toolmark run …`."""

import sys

from toolmark.cli import main as toolmark


def main(arguments: list[str] | None = None) -> int:
    return toolmark(["run", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    sys.exit(main())
