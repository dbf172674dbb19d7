"""Results that are tables, and texts that list records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from callmark.records.jsontext import Json

_HEADS = ("columns", "headers", "header", "fields", "column_names", "schema")


def width_of(value: Json) -> int:
    """How many cells each row of a table has; 0: it is none."""
    if not isinstance(value, list) or len(value) < 2 or not isinstance(value[0], list):
        return 0
    width = len(value[0])
    is_even = width > 1 and all(
        isinstance(row, list)
        and len(row) == width
        and not any(isinstance(cell, dict | list) for cell in row)
        for row in value
    )
    return width if is_even else 0


def head_of(beside: dict[str, Json], width: int) -> list[str] | None:
    """The names of the columns, as a list of texts or of objects with a name beside the rows."""
    for key in _HEADS:
        names = beside.get(key)
        if isinstance(names, list) and len(names) == width:
            texts = [one.get("name") if isinstance(one, dict) else one for one in names]
            known = [one for one in texts if isinstance(one, str)]
            if len(set(known)) == width:
                return known
    return None


MOST_LINES = 5000  # of a text that is read as records
_PAIR = re.compile(
    r"\s*(?:[-*•]\s+|\d{1,3}[.)]\s+)?[*_]{0,2}(?P<key>[^\W\d_][\w /()#.-]{0,40}?)[*_]{0,2}\s*:"
    r"[*_]{0,2}\s+(?P<value>\S.{0,300})"
)
_RULED = re.compile(r"[\s|:+-]+")
_HEAD_DIGIT = re.compile(r"\d")
_COUNT_LINE = re.compile(r"\s*(?:\(?\d+ rows?\b.*|Time: .*)")  # under what a database prints


def records_of_text(text: str) -> Iterator[dict[str, str]]:
    """What a text lists: the rows of CSV, or blocks of `Key: value` lines, each under its title,
    and the tables between them."""
    lines = text.split("\n")[:MOST_LINES]
    rows = _rows_of(lines) or _rows_of(lines[1:])  # a line before may say of what
    yield from rows
    for is_row, run in groupby(() if rows else lines, lambda line: line.lstrip().startswith("|")):
        part = list(run)
        yield from _rows_of(part) if is_row else _blocks_of(part)


def prose_of(text: str) -> str:
    """What is left of a text without what it lists."""
    if "\n" not in text:
        return text
    lines = text.split("\n")[:MOST_LINES]
    if _rows_of(lines):
        return ""
    kept = [one for one in lines if not (one.lstrip().startswith("|") or _PAIR.fullmatch(one))]
    return "\n".join(kept)


def _blocks_of(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    block: dict[str, str] = {}
    title = ""
    for line in (*lines, ""):
        found = _PAIR.fullmatch(line)
        key = found["key"].strip(" *_") if found else ""
        if not found or key in block:
            if len(block) > 1:
                yield {"title": title} | block if title else block
            if block or not line.strip():
                block, title = {}, ""
            if not found:
                title = line.strip(" \t#*-•:")[:80] or title
                continue
        block[key] = found["value"].strip(" *_") if found else ""


def _rows_of(lines: Sequence[str]) -> list[dict[str, str]]:
    """Lines of CSV, tabs or a Markdown table: all of one width, under a head without digits."""
    filled = [line for line in lines if line.strip()]
    while len(filled) > 3 and _COUNT_LINE.fullmatch(filled[-1]):
        filled.pop()
    for mark in "|\t,;":
        if len(filled) > 1 and filled[0].count(mark) > 1 and not _HEAD_DIGIT.search(filled[0]):
            cells = [
                [cell.strip() for cell in line.strip(" |" if mark == "|" else " ").split(mark)]
                for line in filled
                if not _RULED.fullmatch(line)
            ]
            head = cells[0] if cells else []  # a rule and bars alone are no rows
            if head and all(len(row) == len(head) for row in cells) and len(set(head)) == len(head):
                return [dict(zip(head, row, strict=True)) for row in cells[1:]]
    return []
