"""Several at once: `both`, `all three`, `neither`, `only the first`, `A and B`; and a table, where
one head names the record and the other what is asked of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from callmark.grounding.binding import Binder
from callmark.grounding.negation import ClauseWords
from callmark.grounding.polar_keys import Polar, PolarKey
from callmark.grounding.polar_words import root
from callmark.grounding.record_tree import ResultRecord, key_words
from callmark.grounding.spans import Outline, Span
from callmark.grounding.words import NUMBER_WORDS

MOST_ROWS = 40
_ALL = frozenset("all both each every neither none".split())
_SOME_ONLY = re.compile(
    r"\b(?:except|but|other|others|rest|remaining|apart|besides|almost|nearly|not\s+(?:all|both)"
    r"|most|either|different|if|any)\b",
    re.IGNORECASE,
)
# `all rooms with a projector` are not all rooms.
_NARROWING = frozenset(
    "with without that which who whose having under over from for in at near above below".split()
)
_BETWEEN = re.compile(r"[\s,*_(\"”“]*(?:(?:and|&|as\swell\sas|nor)\s+)?(?:the\s+)?[*_\"“]*")
_ONLY = re.compile(r"\bonly\s+(?:the\s+)?[*_\"“]*$", re.IGNORECASE)


def find_exception(
    key: PolarKey, words: ClauseWords, clause: Span, binder: Binder, *, asserted: bool
) -> Polar | None:
    """The field that is not as the clause says of all of them; else one that is, if it speaks of
    several. None: it speaks of nothing that could be told."""
    if len(key.rows) > MOST_ROWS or _SOME_ONLY.search(words.text, *clause):
        return None
    rows = _coordinated(key, words, clause, binder) or _quantified(key, words, binder)
    wrong = [row for row in rows if row.state is not asserted and row.state is not None]
    if len(rows) < 2 or any(row.state is None for row in rows):
        return None
    return wrong[0] if wrong else rows[0]


def _coordinated(
    key: PolarKey, words: ClauseWords, clause: Span, binder: Binder
) -> Sequence[Polar]:
    """`Aspen and Birch have a projector`."""
    end = words.tokens[words.first].start
    mentions = binder.mentions_in((clause[0], end))
    if len(mentions) < 2 or any(len(one.records) > 1 for one in mentions):
        return ()
    for left, right in pairwise(mentions):
        if not _BETWEEN.fullmatch(words.text, left.end, right.start):
            return ()
    return key.rows_of([record for one in mentions for record in one.records])


def _quantified(key: PolarKey, words: ClauseWords, binder: Binder) -> Sequence[Polar]:
    before = [token.word for token in words.tokens[: words.first]]
    places = [at for at, word in enumerate(before) if word in _ALL]
    if len(places) != 1:
        return ()
    at = places[0]
    verb = next((one for one in range(at, words.first) if words.is_verb(one)), words.first)
    if not _NARROWING.isdisjoint(before[at:verb]):
        return ()
    named = [row for row in key.rows if _is_mentioned(row.field.record, binder)]
    group = named if len(named) > 1 else key.rows
    following = before[at + 1 : at + 5]
    size = 2 if before[at] in ("both", "neither") else None
    for word in following:
        size = NUMBER_WORDS.get(word, size) if word not in ("a", "one") else size
    if size is not None:
        return group if len(group) == size else key.rows if len(key.rows) == size else ()
    kinds = {root(word) for row in group for word in key_words(row.field.record.key)}
    is_kind = not kinds.isdisjoint(map(root, following))
    return group if len(named) > 1 or is_kind else ()


def _is_mentioned(record: ResultRecord, binder: Binder) -> bool:
    return any(one.number in binder.mentioned for one in (record, *record.ancestors()))


def find_other(key: PolarKey, words: ClauseWords, binder: Binder) -> Polar | None:
    """`Only Birch has a projector`, though another one that the answer speaks of has one too."""
    end = words.tokens[words.first].start
    mentions = binder.mentions_in((words.tokens[0].start, end))
    if not mentions or not _ONLY.search(words.text[: mentions[0].start][-40:]):
        return None
    own = {record.number for one in mentions for record in one.records}
    for row in key.rows[:MOST_ROWS]:
        kin = {one.number for one in (row.field.record, *row.field.record.ancestors())}
        if row.state is True and not kin & own and _is_mentioned(row.field.record, binder):
            return row
    return None


MOST_CELLS = 30  # of a row
MOST_ROWS = 400
LONGEST_HEAD = 5  # words of a cell that says what is asked
_RULE = re.compile(r"[\s|:+-]+")
_DRESS = " \t*_`~"
_CELL_WORD = re.compile(r"[^\W_]+")
_CELL_ANSWERS = {
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
        is_short = len(_CELL_WORD.findall(self._text, *span)) <= LONGEST_HEAD
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
            answer = _CELL_ANSWERS.get(self._text[start:end].strip(_DRESS).casefold())
            if answer is not None:
                yield TableCell(start, end, (heads[at], cells[0]), answer)


def _cells_of(text: str, start: int, end: int) -> list[Span]:
    bars = [at.start() for at in re.finditer(r"\|", text[start:end])][: MOST_CELLS + 1]
    return [
        (start + left + 1, start + right)
        for left, right in zip(bars, [*bars[1:], end - start], strict=True)
        if text[start + left + 1 : start + right].strip() or right < end - start
    ]
