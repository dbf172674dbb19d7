"""Arithmetic in words: changes, shares, sums and products whose numbers one sentence states with
their outcome. A sentence is read as a shape, in which one sign stands for each number or date."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from callmark.grounding.outcomes import (
    Claim,
    Shape,
    judge_change,
    judge_fraction,
    judge_moments,
    judge_product,
    judge_rest,
    judge_share,
    judge_sum,
)
from callmark.grounding.phrasing import (
    A_YEAR,
    ARROW,
    AT,
    CHANGES,
    CODE_BEFORE,
    CUES,
    FRACTION,
    FRACTION_SAID,
    MARKS,
    MOMENTS,
    NUMBER,
    ON,
    OTHER,
    PRODUCTS,
    QUARTER,
    RESTS,
    SHARE,
    SHARES,
    SILENT,
    SUMS,
    YEAR,
)
from callmark.grounding.spans import Outline, Span
from callmark.grounding.values import Value

MOST_SENTENCES = 200  # of one answer
LONGEST_SENTENCE = 600
LONGEST_COUNT = 8  # digits


class WrongStep(NamedTuple):
    """From `start` to `end` a step of arithmetic is told in words, and does not come to what is
    said; `because` has what it comes to."""

    start: int
    end: int
    because: str


def find_wrong_steps(outline: Outline, values: Sequence[Value]) -> Iterator[WrongStep]:
    places = outline.places_of(outline.words & CUES)
    if "→" in outline.text or "->" in outline.text:
        places = sorted([*places, *(one.start() for one in ARROW.finditer(outline.text))])
    starts = [one.start for one in values]
    done, count = -1, 0
    for place in places:
        sentence = outline.sentence_at(place)
        if sentence[0] <= done or sentence[1] - sentence[0] > LONGEST_SENTENCE:
            continue
        done = sentence[0]
        first = bisect_left(starts, sentence[0])
        last = bisect_left(starts, sentence[1], first)
        if last - first < 2:
            continue
        count += 1
        if count > MOST_SENTENCES:
            return
        if not outline.is_proposed(sentence):
            yield from _judge_sentence(outline.text, sentence, values[first:last])


def _judge_sentence(text: str, sentence: Span, values: Sequence[Value]) -> Iterator[WrongStep]:
    signs = [_sign_of(one) for one in values]
    asked = [(patterns, judge) for needed, patterns, judge in _JUDGES if needed.are_in(signs)]
    if not asked:
        return
    shape = _shape_of(text, sentence, values)
    for patterns, judge in asked:
        ends: list[int] = []  # of what was judged: no number has two roles
        for pattern in patterns:
            for found in pattern.finditer(shape.text):
                if any(found.start() < end <= found.end() for end in ends):
                    continue
                before = shape.text[max(0, found.start() - 40) : found.end() + 30]
                if SILENT.search(before):
                    continue
                claim = _claim_of(shape, found)
                ends.append(found.end())
                because = judge(claim)
                if because:
                    used = [shape.value_at(at) for at in _signs_in(found)]
                    start, end = used[0].start, used[-1].end
                    if "=" not in text[start:end]:  # a written equation is checked as such
                        yield WrongStep(start, end, because)


def _signs_in(found: re.Match[str]) -> list[int]:
    signs = (NUMBER, SHARE, ON, AT)
    return [at for at in range(*found.span()) if found.string[at] in signs]


def _shape_of(text: str, sentence: Span, values: Sequence[Value]) -> Shape:
    parts: list[str] = []
    places: list[int] = []
    length, at = 0, sentence[0]
    lower = text[sentence[0] : sentence[1]].casefold()
    fractions = {sentence[0] + one.start() for one in FRACTION_SAID.finditer(lower)}
    values = [one for one in values if one.start not in fractions]
    for place, value in enumerate(values):
        between = CODE_BEFORE.sub("", MARKS.sub("", text[at : value.start]).casefold())
        between = between.replace("\u00a0", " ").replace("\u202f", " ").replace("’", "'")
        between = re.sub(r" {2,}", " ", between)
        sign = OTHER if _is_half(text, values, place) else _sign_of(value)
        parts += (between, sign)
        length += len(between) + 1
        places.append(length - 1)
        at = max(at, value.end)
        if text[at - 1 : at] in ".,":
            at -= 1
    rest = MARKS.sub("", text[at : sentence[1]]).casefold().replace("\u00a0", " ")
    return Shape("".join((*parts, rest)), places, list(values))


def _is_half(text: str, values: Sequence[Value], at: int) -> bool:
    """`1 240` that was read as two numbers."""
    beside = (values[max(0, at - 1) : at + 1], values[at : at + 2])
    return any(
        len(pair) > 1 and text[pair[0].end : pair[1].start] in (" ", "\u00a0", "\u202f")
        for pair in beside
    )


def _sign_of(value: Value) -> str:
    if value.kind == "moment":
        moment = value.moments[0] if len(value.moments) == 1 else None
        if moment is not None and moment.has_day:
            return ON
        return AT if moment is not None and moment.hour is not None else YEAR
    if value.kind == "identifier":
        return YEAR if QUARTER.fullmatch(value.text) else OTHER
    if value.kind != "number" or not value.readings:
        return OTHER
    if A_YEAR.fullmatch(value.text) and not value.unit:
        return YEAR
    if value.text.isdecimal() and len(value.text) >= LONGEST_COUNT and not value.unit:
        return OTHER  # so many digits without a comma are a code
    return SHARE if value.form.percent else NUMBER


def _claim_of(shape: Shape, found: re.Match[str]) -> Claim:
    groups = {name: at for name in found.re.groupindex if (at := found.start(name)) >= 0}
    named = {name[0]: shape.value_at(at) for name, at in groups.items() if name[0] in "abc"}
    words = tuple(found[name] for name in groups if name[0] == "w")
    some = named.get("b") or next(iter(named.values()))
    return Claim(shape, found, named.get("a", some), named.get("b", some), named.get("c"), words)


class _Needed(NamedTuple):
    """How many signs each of some patterns has, at least: there is no need to search for it where
    a sentence has fewer. `amounts` are numbers or shares, `moments` days or times."""

    amounts: int = 0
    numbers: int = 0
    shares: int = 0
    moments: int = 0

    def are_in(self, signs: Sequence[str]) -> bool:
        numbers, shares = signs.count(NUMBER), signs.count(SHARE)
        return (
            numbers + shares >= self.amounts
            and numbers >= self.numbers
            and shares >= self.shares
            and max(signs.count(ON), signs.count(AT)) >= self.moments
        )


_JUDGES = (
    (_Needed(moments=2), MOMENTS, judge_moments),
    (_Needed(amounts=2), CHANGES, judge_change),
    (_Needed(numbers=2, shares=1), SHARES, judge_share),
    (_Needed(numbers=2), (FRACTION,), judge_fraction),
    (_Needed(numbers=3), SUMS, judge_sum),
    (_Needed(numbers=3), RESTS, judge_rest),
    (_Needed(numbers=2), PRODUCTS, judge_product),
)
