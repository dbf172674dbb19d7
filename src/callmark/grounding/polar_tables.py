"""Yes or no in the cells of a table: one head names the record, the other what is asked of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from callmark.grounding.spans import Outline, Span

MOST_CELLS = 30  # of a row
MOST_ROWS = 400
LONGEST_HEAD = 5  # words of a cell that says what is asked
_RULE = re.compile(r"[\s|:+-]+")
_DRESS = " \t*_`~"
_WORD = re.compile(r"[^\W_]+")
_ANSWERS = {
    answer: state
    for answers, state in (
        ("yes|y|✓|✔|✔️|✅|☑|true|included|available|allowed|required|ja|sí|si|oui|on|enabled", True),
        ("no|n|✗|✘|✕|❌|✖|×|false|not included|not available|unavailable|not allowed|not required"
         "|none|nein|non|off|disabled|excluded", False),
    )
    for answer in answers.split("|")
}  # fmt: skip


class TableCell(NamedTuple):
    """A cell that answers yes or no, under one head and behind another."""

    start: int
    end: int
    heads: tuple[Span, Span]
    answer: bool


class AnswerTables:
    """The tables of one answer."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._text = outline.text

    def is_head(self, span: Span) -> bool:
        """Is it the head of a column or of a row, which says nothing by itself?"""
        line = self._outline.line_at(span[0])
        if not self._text.startswith("|", line.start):
            return False
        head = self._outline.table_head(line)
        is_first = self._text.find("|", line.start + 1, span[0]) < 0
        is_short = len(_WORD.findall(self._text, *span)) <= LONGEST_HEAD
        return (head is not None and head.start == line.start) or (is_first and is_short)

    @cached_property
    def cells(self) -> list[TableCell]:
        return list(self._find_cells())

    def _find_cells(self) -> Iterator[TableCell]:
        if "|" not in self._text:
            return
        heads: dict[int, list[Span]] = {}
        rows = 0
        for line in self._outline.lines:
            head = self._outline.table_head(line)
            if head is None or rows > MOST_ROWS:
                continue
            rows += 1
            cells = _cells_of(self._text, line.start, line.end)
            if head.start == line.start:
                heads[head.start] = cells
            elif not _RULE.fullmatch(self._text, line.start, line.end):
                yield from self._answers_in(cells, heads.get(head.start, []))

    def _answers_in(self, cells: Sequence[Span], heads: Sequence[Span]) -> Iterator[TableCell]:
        for at, (start, end) in enumerate(cells[1 : len(heads)], start=1):
            answer = _ANSWERS.get(self._text[start:end].strip(_DRESS).casefold())
            if answer is not None:
                yield TableCell(start, end, (heads[at], cells[0]), answer)


def _cells_of(text: str, start: int, end: int) -> list[Span]:
    bars = [at.start() for at in re.finditer(r"\|", text[start:end])][: MOST_CELLS + 1]
    return [
        (start + left + 1, start + right)
        for left, right in zip(bars, [*bars[1:], end - start], strict=True)
        if text[start + left + 1 : start + right].strip() or right < end - start
    ]
