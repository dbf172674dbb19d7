"""`python -m dev.promises`: the tests that hold each promise, written into docs/promises.md.

A test says in its name what it holds: `test_a43_…`, `test_a35_a62_…`, `test_a16_to_a28_…`."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "promises.md"

_CODES = re.compile(r"test_((?:[abdfp][0-9]+_(?:to_)?)+)")
_PROMISE = re.compile(r"- \*\*(?P<code>[abdfp][0-9]+)\*\* ")


class OutOfStep(Exception):
    """A promise that no test holds, or a test of a promise that the page does not have."""


def codes_of(name: str) -> Iterator[str]:
    found = _CODES.match(name)
    words = found[1].rstrip("_").split("_") if found else []
    for at, word in enumerate(words):
        if word != "to":
            yield word
        elif at + 1 < len(words):
            first, last = int(words[at - 1][1:]), int(words[at + 1][1:])
            yield from (f"{words[at - 1][0]}{number}" for number in range(first + 1, last))


def find_tests(folder: Path) -> dict[str, list[str]]:
    """The names of the tests of each promise, in the order of the alphabet."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for code in codes_of(node.name):
                    found[code].add(node.name)
    return {code: sorted(names) for code, names in found.items()}


def fill(page: str, tests: Mapping[str, Sequence[str]]) -> str:
    """The page with the tests of today below each promise."""
    lines: list[str] = []
    held: set[str] = set()
    for line in page.splitlines():
        if line.startswith("  `test_"):
            continue
        lines.append(line)
        if promise := _PROMISE.match(line):
            held.add(code := promise["code"])
            if code not in tests:
                raise OutOfStep(
                    f"docs/promises.md: {code}: no test holds it. Write one, or drop it"
                )
            lines.append("  " + " · ".join(f"`{name}`" for name in tests[code]))
    for code in sorted(tests.keys() - held):
        raise OutOfStep(f"docs/promises.md: what does {code} of {tests[code][0]} promise? Add it")
    return "\n".join(lines) + "\n"


def main() -> int:
    try:
        page = fill(PAGE.read_text("utf-8"), find_tests(ROOT / "tests"))
    except OutOfStep as error:
        sys.stderr.write(f"{error}\n")
        return 1
    PAGE.write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
