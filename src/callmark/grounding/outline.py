"""How an answer is laid out: lines under headings, sentences in lines, clauses in sentences."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from callmark.grounding.spans import Span, sentences
from callmark.grounding.values import Value, break_literal_newlines

WIDE = 300  # characters around a value that are looked at, whatever its sentence is as long as
NEAREST_HEADS = 4
NEAREST_SIBLINGS = 8
_ITEM = re.compile(r"(?:[-*•‣–+]|\(?\d{1,3}[.)])\s")
_HEADING = re.compile(r"#{1,6}\s|\*\*[^*]+\*\*:?$|__[^_]+__:?$")
# Where a new predicate begins, whose negation is its own.
_BREAK = re.compile(
    r";|\s[-–—]\s|[()]|,?\s+\b(?:but|however|although|though|whereas|while|except)\b"
    r"|,\s+(?=(?:and\s+)?(?:there|it|they|which|who|the|this|these|you|we|i|he|she)\b"
    r"(?!\s+(?:and|or)\b))",
    re.IGNORECASE,
)
_MAY_BE_FORMULA = re.compile(
    r"\\[(\[a-z]|\$\$|<\w+>\s*\n\s*(?:def|import)|^\s*(?:def|class) ", re.M
)
# LaTeX, lines of LaTeX, and code that is set between tags or begins with a definition.
_FORMULA = re.compile(
    r"\\\[.{0,4000}?\\\]|\\\(.{0,400}?\\\)|\$\$.{0,2000}?\$\$|<(?P<tag>\w{1,40})>\s*\n\s*(?:def|import|from)\b"
    r".{0,8000}?</(?P=tag)>|^[ \t]*(?:def|class) \w+[^\n]*:[ \t]*\n(?:[ \t]+[^\n]*\n|[ \t]*\n)*"
    r"|^[^\n]*\\(?:frac|times|cdot|sqrt|approx|text|boxed)\b[^\n]*$",
    re.DOTALL | re.MULTILINE,
)
_QUESTION = re.compile(r"[?？؟]")
_PROPOSED = re.compile(
    r"\b(?:would you like|do you want|shall i|should i|may i|can you|could you|please|let me know"
    r"|i(?:['’]ll| will| can| could| would| need|['’]d)|we(?:['’]ll| will| can| could)|you can"
    r"|let me|if you|if we|to proceed|in order to|would|could|might)\b"
    r"|\b(?:möchten sie|soll ich|bitte|ich (?:werde|kann|würde)|wenn sie|falls sie)\b"
    r"|\b(?:quiere|quisiera|por favor|puedo|voy a|si desea|podría)\b"
    r"|\b(?:voulez-vous|souhaitez-vous|veuillez|je (?:vais|peux)|si vous|pourriez-vous)\b",
    re.IGNORECASE,
)


class OutlineLine(NamedTuple):
    """`heads`: the lines that it stands under, outermost first; `siblings`: those before it in the
    same block, the nearest last."""

    start: int
    end: int
    heads: tuple[Span, ...]
    siblings: tuple[Span, ...] = ()
    level: float = 0


class Outline:
    """One answer, split once. Offsets are characters."""

    def __init__(self, text: str) -> None:
        self.text = text = break_literal_newlines(text)
        self.sentences = list(sentences(text))
        self._sentence_starts = [start for start, _ in self.sentences]
        self.lines = list(_lines(text))
        self._line_starts = [line.start for line in self.lines]
        self._clauses: dict[Span, list[Span]] = {}
        self._proposed: dict[Span, bool] = {}

    def sentence_at(self, position: int) -> Span:
        at = bisect_right(self._sentence_starts, position) - 1
        return self.sentences[at] if at >= 0 else (0, len(self.text))

    def line_at(self, position: int) -> OutlineLine:
        at = bisect_right(self._line_starts, position) - 1
        return self.lines[at] if at >= 0 else OutlineLine(0, len(self.text), ())

    def is_formula(self, value: Value) -> bool:
        """Does it stand in mathematics or code, which state nothing of the results?"""
        at = bisect_right(self._formulas, (value.start, len(self.text))) - 1
        return at >= 0 and value.start < self._formulas[at][1]

    @cached_property
    def _formulas(self) -> list[Span]:
        if not _MAY_BE_FORMULA.search(self.text):
            return []
        return [found.span() for found in _FORMULA.finditer(self.text)]

    def table_head(self, line: OutlineLine) -> OutlineLine | None:
        """The first line of the table that a line stands in."""
        return self._table_heads.get(line.start)

    @cached_property
    def _table_heads(self) -> dict[int, OutlineLine]:
        heads: dict[int, OutlineLine] = {}
        above: OutlineLine | None = None
        end = -2
        for line in self.lines:
            if not self.text.startswith("|", line.start):
                above = None
            elif above is None or line.start != end + 1:
                above = line
            if above is not None:
                heads[line.start] = above
            end = line.end
        return heads

    def lines_after(self, line: OutlineLine) -> Iterator[OutlineLine]:
        """Those beside it that follow, under the same heads."""
        at = bisect_right(self._line_starts, line.start)
        for following in self.lines[at : at + NEAREST_SIBLINGS]:
            if following.level < line.level or following.heads[-1:] != line.heads[-1:]:
                return
            if following.level == line.level:
                yield following

    def clauses(self, sentence: Span) -> list[Span]:
        found = self._clauses.get(sentence)
        if found is None:
            found = self._clauses[sentence] = list(_clauses(self.text, *sentence))
        return found

    def clause_at(self, position: int) -> Span:
        sentence = self.sentence_at(position)
        clauses = self.clauses(sentence)
        at = bisect_right(clauses, (position, len(self.text) + 1)) - 1
        return clauses[at] if at >= 0 and position < clauses[at][1] else sentence

    def near(self, value: Value, span: Span | OutlineLine) -> Span:
        """The part of the span that stands near the value."""
        return max(span[0], value.start - WIDE), min(span[1], value.end + WIDE)

    def is_proposed(self, sentence: Span) -> bool:
        """A question, an offer, a plan, a request: nothing that is claimed to be so."""
        found = self._proposed.get(sentence)
        if found is None:
            found = self._proposed[sentence] = (
                _QUESTION.match(self.text, sentence[1]) is not None
                or _PROPOSED.search(self.text, *sentence) is not None
            )
        return found


def _lines(text: str) -> Iterator[OutlineLine]:
    """A line stands under the nearest one before it that is indented less, an item under what
    introduces its list."""
    above: list[tuple[float, int, int]] = []
    before: dict[float, list[Span]] = {}
    start = 0
    for raw in text.split("\n"):
        end = start + len(raw)
        body = raw.strip()
        if body:
            is_item = _ITEM.match(body) is not None
            level: float = len(raw) - len(raw.lstrip(" \t")) + is_item
            if not is_item and _HEADING.match(body):
                level -= 0.5
            while above and above[-1][0] >= level:
                above.pop()
            for deeper in [one for one in before if one > level]:
                del before[deeper]
            siblings = before.setdefault(level, [])
            heads = tuple((head[1], head[2]) for head in above[-NEAREST_HEADS:])
            yield OutlineLine(start, end, heads, tuple(siblings[-NEAREST_SIBLINGS:]), level)
            siblings.append((start, end))
            above.append((level, start, end))
        elif not above or above[-1][0] <= 0:
            before.clear()  # a blank line ends a block of plain lines
        start = end + 1


def _clauses(text: str, start: int, end: int) -> Iterator[Span]:
    position = start
    for found in _BREAK.finditer(text, start, end):
        if found.start() > position:
            yield position, found.start()
        # A joining word belongs to what it joins on.
        position = found.start() if found[0].strip(" ,").isalpha() else found.end()
    if position < end:
        yield position, end
