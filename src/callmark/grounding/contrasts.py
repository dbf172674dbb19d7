"""What is named for what it is not: `not 2219`, `there is no TCK-2044`, `AX-102 would be the next`,
`unlike a 500`. Nobody says of it that a result gives it, so no slip was made."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from callmark.grounding import claims
from callmark.grounding.numbers import SCALE
from callmark.grounding.record_tree import Field, shape_of
from callmark.grounding.spans import Span
from callmark.grounding.text import SIGNS
from callmark.grounding.values import Value, identifier_key

if TYPE_CHECKING:
    from callmark.grounding.checking import Checker, StatementFinding

SHORTEST_CODE = 4  # letters and digits: `A4`, `B1` and `14C` are too common to be anybody's
LONGEST_NAME = 8  # of what may be known by name: nobody knows the item after 3265035808
MOST_STEPS = 9  # from a number to one that was counted on from it
MOST_TOLD = 99 * SCALE  # the same, where the text says how many
_REACH = 60
_LIST = r"(?:[\w#.-]*\d[\w.-]*,?\s+(?:(?:or|and|nor|und|oder|y|o|et|ou)\s+)?)*"
# Right before a number, or the numbers of a list.
_NOT_BEFORE = re.compile(
    r"(?:\b(?:not|no|unlike|nor|instead\s+of|rather\s+than|nicht|statt|anstatt|weder|ni|pas|non"
    r"|en\s+(?:vez|lugar)\s+de|au\s+lieu\s+de)|n['’]t)\s+(?:(?:an?|the|eine?[rnm]?|un[ae]?|de)\s+)?"
    rf"[{SIGNS}]?\s?{_LIST}[{SIGNS}]?$",
    re.IGNORECASE,
)
# Before a code, in its clause.
_NO_SUCH = re.compile(
    r"(?:\b(?:no|not|cannot|without|unlike|neither|nor|instead\s+of|rather\s+than|kein\w*|nicht|statt"
    r"|weder|ni|sin|no\s+existe|en\s+(?:vez|lugar)\s+de|pas|aucune?|sans|au\s+lieu\s+de)"
    r"|n['’]t)\s+(?:(?!and\b|but\b|und\b|sondern\b|y\b|et\b|mais\b|only\b)[\w'’-]+\s+){0,4}"
    rf"{_LIST}[(\"“'`#]?$",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\b(?:would|wäre|würde|sería|serait)\s+(?:be|have|get|become)?\s*(?:\w+\s+){0,2}$",
    re.IGNORECASE,
)
# After a code, or the codes of a list.
_IS_NONE = re.compile(
    rf"[)\"”'`]?\s*,?\s*(?:(?:and|or|und|oder|y|o|et|ou)\s+)?{_LIST}(?:(?:\w+\s+)?"
    r"(?:(?:do|does|did)(?:\s+not|n['’]t)\s+(?:yet\s+)?exist|(?:is|are|was|were)(?:\s+not|n['’]t)"
    r"\s+(?:yet\s+)?(?:there|found|in|on|among|known|listed|valid|part)|(?:is|are)\s+(?:missing"
    r"|unknown|absent)|(?:could|can)\s?(?:not|n['’]t)\s+be\s+found|not\s+found|would\s+(?:be|come)"
    r"|existier(?:t|en)\s+nicht|gibt\s+es\s+nicht|fehl(?:t|en)\b|no\s+existen?\b|n['’]existent?\s+pas))",
    re.IGNORECASE,
)
_BOUNDARY = re.compile(r"[;:!?\n]|\.\s|,\s+(?=(?:and|but|so|which|it|there|you|we|i)\s)")
# Where codes of one form are compared, or follow one another.
_BESIDE = re.compile(
    r"\b(?:than|unlike|liked|between|before|after|above|below|next|previous|later|then|replaces"
    r"|success\w+|predecess\w+|superseded?s?|instead|rather|confuse\w*|als|zwischen|nach|vor"
    r"|nächste\w*|entre|antes|después|siguiente|avant|après|suivant\w*|prochain\w*)\b",
    re.IGNORECASE,
)
_ONWARD = re.compile(
    r"\b(?:next|follow(?:s|ing|ed)|previous|already|so\s+far|then|comes|nächste\w*|folgt|siguiente"
    r"|anterior|prochain\w*|suivant\w*)\b",
    re.IGNORECASE,
)
_ONE = re.compile(
    r"\b(?:an?(?:other)?|one)\s+(?:\w+\s+)?(?:more|less|fewer|further)\b", re.IGNORECASE
)
_COUNT = re.compile(r"(?<![\d.,])\d(?![\d.,]*\d)|\b[a-z]+\b", re.IGNORECASE)
_COUNTS = {
    word: number
    for number, words in enumerate(
        (
            "one another ein eine un una une",
            "two zwei dos deux",
            "three drei tres trois",
            "four vier cuatro quatre",
            "five fünf cinco cinq",
            "six sechs seis",
            "seven sieben siete sept",
            "eight acht ocho huit",
            "nine neun nueve neuf",
        ),
        1,
    )
    for word in words.split()
}


def _clause_before(text: str, start: int, sentence: Span) -> str:
    before = text[max(sentence[0], start - _REACH) : start]
    stops = list(_BOUNDARY.finditer(before))
    return before[stops[-1].end() :] if stops else before


def is_set_against(text: str, value: Value, sentence: Span) -> bool:
    """`1219 points, not 2219`; `unlike a 500 or 502`."""
    return _NOT_BEFORE.search(_clause_before(text, value.start, sentence)) is not None


def is_of_none(text: str, value: Value, sentence: Span) -> bool:
    """`There is no TCK-2044`, `TCK-2044 and TCK-2045 are missing`."""
    before = _clause_before(text, value.start, sentence)
    return bool(
        _NO_SUCH.search(before)
        or _SUPPOSED.search(before)
        or _IS_NONE.match(text, value.end, min(len(text), sentence[1] + 1))
    )


def is_compared(text: str, sentence: Span) -> bool:
    """May a code stand there beside one of the results, which is another?"""
    return _BESIDE.search(text, *sentence) is not None


def is_counted_on(
    text: str, value: Value, number: int, sentence: Span, before: Iterable[Value]
) -> bool:
    """Does the text count from this number of a result to the value? `page 217, so you have read
    216`; `the next build is 4513`; `three more and it would be 1,446`. The number itself stands
    nearby, or the step does."""
    steps = abs(abs(value.readings[0]) - abs(number))
    if not 0 < steps <= MOST_STEPS * SCALE or steps % SCALE:
        return False
    if any(one.readings and abs(one.readings[0]) == abs(number) for one in before):
        return True
    if steps == SCALE and (_ONWARD.search(text, *sentence) or _ONE.search(text, *sentence)):
        return True
    told = {
        _COUNTS.get(one.casefold(), int(one) if one.isdecimal() else 0)
        for one in _COUNT.findall(text, sentence[0], sentence[1])
    }
    return steps // SCALE in told


class Contrasts:
    """Asked where no result states the value."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker

    def find_set_against(self, value: Value, sentence: Span) -> StatementFinding | None:
        """`1219 points, not 2219`, of which no result has the other."""
        text = self._checker.text
        if value.kind != "number" or not is_set_against(text, value, sentence):
            return None
        return self._checker.found(value, "not_claimed", "other")

    def find_code(self, value: Value, sentence: Span) -> StatementFinding | None:
        """An identifier that no result has, of the form of one that a result has."""
        checker, index = self._checker, self._checker.index
        is_number = value.kind == "number" and value.text.isdecimal() and len(value.text) >= 6
        if value.kind != "identifier" and not is_number:
            return None
        before = checker.text[max(0, value.start - 40) : value.start]
        if index.names_a_key(value.key) or claims.is_word(value.text):
            return checker.found(value, "unchecked", "word")
        if claims.EXAMPLE.search(before):
            return checker.found(value, "not_claimed", "example")
        if before.endswith(("***", "•", "xx", "XX")):
            return checker.found(value, "unchecked", "masked")
        turn = checker.turn_at(value.start)
        if checker.names(value.key, turn):
            return checker.found(value, "unchecked", "named")
        lettered = claims.read_lettered(value, index)
        if lettered is not None and lettered.counts_for(turn):
            return checker.found(value, "supported", "match", lettered)
        near = index.shapes.get(shape_of(value.key or value.text))
        if near is None:
            return None
        if is_of_none(checker.text, value, sentence):
            return checker.found(value, "not_claimed", "other")
        return checker.found(value, "altered", self._rule_of(value, sentence), near)

    def _rule_of(self, value: Value, sentence: Span) -> str:
        """The one that is sure of it, or the one that asks for a look."""
        signs = len(identifier_key(value.key or value.text))
        if signs > LONGEST_NAME:
            return "identifier"
        is_other = is_compared(self._checker.text, sentence) and self._has_like(value, sentence)
        return "identifier" if signs >= SHORTEST_CODE and not is_other else "name"

    def _has_like(self, value: Value, sentence: Span) -> bool:
        """Does a code of the same form that a result gives stand in the sentence?"""
        shape = shape_of(value.key or value.text)
        return any(
            shape_of(one.key or one.text) == shape and self._checker.index.stating(one, None)
            for one in self._checker.values_around(value, sentence)
            if one.kind == value.kind
        )

    def is_counted_on(self, value: Value, near: Field, sentence: Span) -> bool:
        """From the leaf that it is a slip away from, or one that it is a few steps from."""
        checker, wanted = self._checker, abs(value.readings[0])
        line = checker.outline.line_at(value.start)
        others = list(checker.values_around(value, (min(line.start, sentence[0]), sentence[1])))
        numbers = checker.index.numbers
        steps = [step * SCALE for step in range(-MOST_STEPS, MOST_STEPS + 1) if step]
        known = [
            abs(near.number or 0),
            *(wanted + step for step in steps if wanted + step in numbers),
        ]
        if any(is_counted_on(checker.text, value, one, sentence, others) for one in known):
            return True
        told = (one.readings[0] for one in others if one.readings and one.start >= sentence[0])
        return any(
            wanted - step in numbers or wanted + step in numbers
            for step in map(abs, told)
            if SCALE <= step <= MOST_TOLD
        )
