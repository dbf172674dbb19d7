"""Numbers that are a slip away from one that a result gives: one digit is another, or two
neighbours have changed places. What an answer worked out hardly ever comes so near."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from callmark.grounding.numbers import SCALE, SCALE_DIGITS
from callmark.grounding.record_tree import Field, RecordIndex
from callmark.grounding.text import once
from callmark.grounding.values import Value, decimals_of

MOST_DIGITS = 15
# How likely a number out of the blue may be to lie so near to a leaf: 4 digits among 20 leaves.
MOST_CHANCE = 0.08


class Slips:
    """The numbers of the results, and how many of them have so many digits."""

    def __init__(self, index: RecordIndex) -> None:
        self._index = index

    def leaf_near(self, value: Value, turn: int | None) -> Field | None:
        """The leaf that was misread, unless one so near may well be there by chance."""
        if value.kind != "number" or not value.readings or value.form.percent:
            return None
        reading, decimals = abs(value.readings[0]), decimals_of(value)
        digits = _digits_of(reading, decimals)
        if not 2 < len(digits) <= MOST_DIGITS or value.form.factor != 1:
            return None
        telling = len(_telling(digits) if not decimals else digits)
        if self._of_length[telling] * telling > MOST_CHANCE * 10 ** (telling - 1):
            return None
        for slip in _slips_of(digits):
            near: int = int(slip) * SCALE // 10**decimals
            if decimals and near % SCALE == 0:
                continue  # 92.6 is no slip of 92
            found = self._index.numbers.get(near, []) + self._index.numbers.get(-near, [])
            if fields := [field for field in found if field.counts_for(turn)]:
                return fields[0]
        return None

    @staticmethod
    def is_slip(value: Value, field: Field) -> bool:
        """Is the number a slip away from this very leaf, which the answer names?"""
        if value.kind != "number" or not value.readings or value.form.percent or not field.number:
            return False
        decimals = decimals_of(value)
        digits = _digits_of(abs(value.readings[0]), decimals)
        if not 2 < len(digits) <= MOST_DIGITS or value.form.factor != 1:
            return False
        near = _digits_of(abs(field.number), decimals)
        return abs(field.number) * 10**decimals % SCALE == 0 and near in _slips_of(digits)

    @once
    def _of_length(self) -> Counter[int]:
        """Distinct numbers by how many digits they have, with and without their decimals."""
        return Counter(
            length
            for number in self._index.numbers
            for length in {
                len(str(abs(number) // SCALE)),
                len(_stated(abs(number))),
                len(_telling(_stated(abs(number)))),
            }
        )


def _digits_of(reading: int, decimals: int) -> str:
    return str(reading * 10**decimals // SCALE) if decimals <= SCALE_DIGITS else ""


def _telling(digits: str) -> str:
    """398,000 has three digits that tell it from others: a rounded number is near to many."""
    return digits.rstrip("0") if digits.endswith("00") else digits


def _stated(number: int) -> str:
    """The digits of a leaf as it stands there: 84.5 has three."""
    return str(number).rstrip("0") if number % SCALE else str(number // SCALE)


def _slips_of(digits: str) -> Iterator[str]:
    for at, digit in enumerate(digits):
        for other in "0123456789"[at == 0 :]:
            if other != digit:
                yield digits[:at] + other + digits[at + 1 :]
        if at and digit != digits[at - 1] and (at > 1 or digit != "0"):
            yield digits[: at - 1] + digit + digits[at - 1] + digits[at + 1 :]
