"""On which line of a JSON text something stands. Nothing of this is kept while reading: the text
is looked through once more where a message needs it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

PathInJson = tuple[str | int, ...]
# Path inside a file -> `file:line`, for messages.
Locate = Callable[[PathInJson], str]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}:,]|[^\s\]\[{}:,"]+', re.DOTALL)
_BLANK = re.compile(r"[ \t\n\r]+")


def members(text: str) -> Iterator[tuple[PathInJson, int]]:
    """Every value with its path and line, in the order of the text, which must be JSON."""
    path: list[str | int] = []  # of each open object its key, of each open list its position
    key_is_due = False
    for mark, line in _tokens(text):
        if mark in ("}", "]"):
            path.pop()
            key_is_due = False
        elif mark == ",":
            here = path[-1]
            key_is_due = isinstance(here, str)
            if isinstance(here, int):
                path[-1] = here + 1
        elif key_is_due:
            path[-1] = json.loads(mark)
            key_is_due = False
        elif mark != ":":
            yield tuple(path), line
            if mark in ("{", "["):
                path.append("" if mark == "{" else 0)
                key_is_due = mark == "{"


def line_of(text: str, path: PathInJson) -> int:
    """The line on which the value at this path begins, or the one that should have held it. Of
    two values under one name the last: it is the one that counts."""
    lines = dict(members(text))
    return next(lines[path[:size]] for size in range(len(path), -1, -1) if path[:size] in lines)


def lines_of_entries(text: str) -> Iterator[int]:
    """The line on which each entry of a list begins; a list may be long, so this one is fast."""
    decode = json.JSONDecoder().raw_decode
    line, before = 1, 0
    at = text.index("[") + 1
    while text[at := _end_of_blank(text, at)] != "]":
        line += text.count("\n", before, at)
        before = at
        yield line
        at = _end_of_blank(text, decode(text, at)[1])
        at += text[at] == ","


def repeated_name(text: str) -> tuple[PathInJson, int, int] | None:
    """The first value whose name stands there for the second time: path, line, line before."""
    if not _repeats_a_name(text):
        return None
    seen: dict[PathInJson, int] = {}
    for path, line in members(text):
        if path in seen:
            return path, line, seen[path]
        seen[path] = line
    return None


def line_of_token(text: str, wanted: str) -> int:
    """Where a number or a word stands first."""
    return next((line for mark, line in _tokens(text) if mark == wanted), 1)


def line_too_deep(text: str, max_depth: int) -> int:
    """Where more lists and objects are open than may be."""
    depth = 0
    for mark, line in _tokens(text):
        depth += (mark in ("{", "[")) - (mark in ("}", "]"))
        if depth > max_depth:
            return line
    return 1


def _end_of_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line, before = 1, 0
    for found in _TOKEN.finditer(text):
        line += text.count("\n", before, found.start())
        before = found.start()
        yield found[0], line


def _repeats_a_name(text: str) -> bool:
    repeats = False

    def notice(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal repeats
        names = dict(pairs)
        repeats = repeats or len(names) < len(pairs)
        return names

    # The numbers are not looked at: some are too long for `int`.
    json.loads(text, object_pairs_hook=notice, parse_int=str, parse_float=str)
    return repeats
