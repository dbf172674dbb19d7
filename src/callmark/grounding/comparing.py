"""More or less: two numbers that an answer compares, the wrong way round."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from callmark.grounding.arithmetic import half_unit
from callmark.grounding.denials import around
from callmark.grounding.numbers import SCALE
from callmark.grounding.reading import dimension_of
from callmark.grounding.spans import Outline
from callmark.grounding.values import Value

MOST_BEFORE = 8  # numbers before a comparison, one of which is compared
MOST_COMPARED = 100  # comparisons of one answer
WINDOW = 60  # characters around one of its words, in which a comparison stands whole
LONGEST = 48  # characters from a comparison to the number that something is compared with
_MORE = (
    r"(?:more|higher|greater|larger|bigger|longer|heavier|warmer|hotter|faster|dearer|pricier)"
    r"\sthan|above|over|ahead\sof|up\sfrom|in\sexcess\sof|mehr\sals|höher\sals|teurer\sals"
    r"|größer\sals|länger\sals|über|más\s(?:que|alt[oa]\sque|car[oa]\sque)|por\sencima\sde"
    r"|superior\sa|de\splus\sque|plus\s(?:élevée?|ch(?:er|ère))\sque|au[- ]dessus\sd"
)
_LESS = (
    r"(?:less|fewer|lower|smaller|shorter|lighter|cooler|colder|slower|cheaper)\sthan|below|under"
    r"|behind|short\sof|down\sfrom|beneath|weniger\sals|niedriger\sals|günstiger\sals"
    r"|billiger\sals|kleiner\sals|kürzer\sals|unter|menos\sque|más\s(?:baj|barat)[oa]\sque"
    r"|por\sdebajo\sde|inferior\sa|de\smoins\sque|moins\s(?:élevée?|ch(?:er|ère))\sque"
    r"|(?:en|au)[- ]dessous\sd"
)
# One of these words stands in every comparison.
_COMPARING = frozenset(
    """
    than above over ahead up excess below under behind short down beneath als über unter que encima
    debajo superior inferior dessus dessous
    """.split()
)
_WAY = re.compile(rf"(?<!\w)(?:(?P<more>{_MORE})|(?P<less>{_LESS}))(?:\b|(?=['’e]))", re.IGNORECASE)
# `9% more`, `three points above`, `$900 under`: what stands between the difference and the word.
_DIFFERENCE = re.compile(r"[\s*_]*(?:[^\W\d_]+\.?\s){0,2}$")
# `($120.5 billion) is slightly behind`
_IS = re.compile(
    r"[)\s*_]*\b(?:is|are|was|were|ist|sind|war|waren|es|son|era|está|est|sont|était)\s"
    r"(?:[^\W\d_]+\s){0,2}$",
    re.IGNORECASE,
)
_NOT = re.compile(r"\b(?:not|no|nicht|kein\w*|pas|if|would|than|or)\b|n['’]t\b|\?", re.IGNORECASE)
_OTHER = re.compile(
    r"[,.;:!?\n|]\s|\b(?:and|or|but|und|oder|y|o|et|ou|to|for|since|in|at|of)\b", re.I
)


class WrongWay(NamedTuple):
    """From `start` to `end` one number is said to be more than another, and it is less; or less,
    and it is more."""

    start: int
    end: int
    is_more: bool
    compared: Value
    other: Value

    @property
    def because(self) -> str:
        return f"{self.compared.text} is {'less' if self.is_more else 'more'}"


def find_wrong_ways(outline: Outline, values: Sequence[Value]) -> Iterator[WrongWay]:
    numbers = [one for one in values if one.kind == "number" and one.readings]
    near = around(outline, outline.places_of(outline.words & _COMPARING), WINDOW)
    ways = (one for span in near for one in _WAY.finditer(outline.text, *span))
    for count, way in enumerate(ways):
        if count >= MOST_COMPARED:
            return
        at = bisect_left(numbers, way.end(), key=lambda one: one.start)
        if 0 < at < len(numbers):
            found = _judge(outline, numbers, at, way)
            if found is not None:
                yield found


def _judge(
    outline: Outline, numbers: Sequence[Value], at: int, way: re.Match[str]
) -> WrongWay | None:
    text, other, before = outline.text, numbers[at], numbers[at - 1]
    sentence = outline.sentence_at(way.start())
    if not sentence[0] <= before.start or other.start > min(sentence[1], way.end() + LONGEST):
        return None
    if outline.is_proposed(sentence) or _OTHER.search(text, way.end(), other.start):
        return None
    if _NOT.search(text, max(sentence[0], before.start - 20), way.start()):
        return None
    is_more = way["more"] is not None
    between = text[before.end : way.start()]
    if _IS.fullmatch(between) and _measures_alike(before, other):
        if _is_more(before, other) is (not is_more):
            return WrongWay(before.start, other.end, is_more, before, other)
        return None
    if not _DIFFERENCE.fullmatch(between):
        return None
    block = text.rfind("\n\n", 0, way.start())
    near = [one for one in numbers[max(0, at - 1 - MOST_BEFORE) : at - 1] if one.start > block]
    near += [one for one in numbers[at + 1 : at + 2] if one.start < sentence[1]]
    apart = [one for one in near if _is_apart(one, other, before, between)]
    if not apart or any(_is_more(one, other) is is_more for one in apart):
        return None
    return WrongWay(before.start, other.end, is_more, apart[-1], other)


def _is_more(one: Value, other: Value) -> bool | None:
    first, second = one.readings[0], other.readings[0]
    return None if first == second else first > second


def _measures_alike(one: Value, other: Value) -> bool:
    return (
        bool(one.unit)
        and dimension_of(one.unit) == dimension_of(other.unit)
        and one.form.percent is other.form.percent
        and one.form.factor == other.form.factor
    )


def _is_apart(one: Value, other: Value, difference: Value, noun: str) -> bool:
    """Do these two lie so far apart, as numbers or as a share of the other one?"""
    if (one.unit or other.unit) and dimension_of(one.unit) != dimension_of(other.unit):
        return False
    first, second = one.readings[0], other.readings[0]
    gap, said = abs(first - second), abs(difference.readings[0])
    if not gap or not said:
        return False
    slack = half_unit(difference)
    if difference.form.percent and not (one.form.percent and "point" in noun.casefold()):
        return second != 0 and abs(gap * 100 * SCALE // abs(second) - said) <= slack
    if difference.unit and dimension_of(difference.unit) != dimension_of(other.unit):
        return False
    return abs(gap - said) <= slack + half_unit(one) + half_unit(other)
