"""Which numbers may be added to which, which two say the same, how telling one is, and how one came
about."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from callmark.grounding.arithmetic import Sum
from callmark.grounding.numbers import SCALE, decimal_text
from callmark.grounding.reading import dimension_of
from callmark.grounding.record_tree import Field, stem
from callmark.grounding.values import Value, decimals_of

SMALL = 13  # a whole number below it stands in every result
MANY = 100  # so many of one thing are seldom as many of another
_NOUN = re.compile(r"[\s\u00a0-]([^\W\d_]{3,})")


class Worked(NamedTuple):
    """How a number came about, and what shows it."""

    rule: str
    because: str
    fields: tuple[Field, ...] = ()


def digits_of(value: Value) -> int:
    """How many digits tell it from others: not the zeros before or after them, and no `.00`."""
    digits = "".join(filter(str.isdecimal, value.text)).lstrip("0")
    decimals = int(decimals_of(value))
    if decimals and digits[-decimals:].strip("0"):
        return len(digits)
    return len(digits.rstrip("0"))


def may_go_with(one: Value, other: Value) -> bool:
    """Nobody adds degrees to millimetres."""
    if not one.unit or not other.unit or one.unit == other.unit:
        return True
    kinds = {dimension_of(one.unit), dimension_of(other.unit)}
    return len(kinds) == 1 or "money" in kinds or "time" in kinds


def may_be_added(one: Value, other: Value) -> bool:
    """Both are of one dimension, or one of them does not say of which."""
    if not one.readings or not one.unit or not other.unit:
        return bool(one.readings)
    return dimension_of(one.unit) == dimension_of(other.unit)


def says_the_same(text: str, one: Value, other: Value) -> bool:
    """Two equal numbers: `48 square feet` are no `48 hours`, and no `48%`."""
    if one.form.percent != other.form.percent or not may_go_with(one, other):
        return False
    nouns = [_NOUN.match(text, value.end) for value in (one, other) if not value.unit]
    words = {stem(found[1].casefold()) for found in nouns if found is not None}
    return len(words) < 2 or abs(other.readings[0]) >= MANY * SCALE or decimals_of(other) > 0


def readings_of(values: Iterable[Value]) -> list[int]:
    return [
        abs(one.readings[0])
        for one in values
        if one.readings and one.kind == "number" and not one.form.percent
    ]


def worked_of(found: Sum) -> Worked:
    because = " and ".join(map(decimal_text, found.operands))
    return Worked(found.rule, f"a {found.rule} of {because}")
