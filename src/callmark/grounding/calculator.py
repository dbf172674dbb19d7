"""A number as one step of arithmetic on others, where that can hardly be chance.

With enough numbers around, some sum or ratio fits anything. So what is found counts only if few
of all that could be worked out lie near it: what matters is not that two numbers give a third, but
that hardly any two others come close."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from callmark.grounding.arithmetic import Sum
from callmark.grounding.numbers import SCALE

CHANCE = 0.08  # how many others may be expected where one was found
ANNOUNCED = 0.3  # the same where a word says that something was worked out
MOST_OPERANDS = 24
_PERCENT = 100 * SCALE


def work_out(
    low: int, high: int, operands: Sequence[int], *, is_share: bool, is_announced: bool
) -> Sum | None:
    """What gives a number from `low` to `high`; for a share only ratios and changes."""
    numbers = _distinct(operands)
    found: Sum | None = None
    near = 0
    middle = max((low + high) // 2, 1)
    for number, how, used in _shares(numbers) if is_share else _steps(numbers):
        if middle <= 2 * number <= 4 * middle:
            near += 1
            if found is None and low <= number <= high:
                found = Sum(how, used)
    if found is None:
        return None
    chance = near * (high - low + 1) / (1.5 * middle)
    return found if chance <= (ANNOUNCED if is_announced else CHANCE) else None


def share_of(low: int, high: int, parts: Sequence[int], wholes: Sequence[int]) -> Sum | None:
    """One of a few parts as a share of one of a few wholes."""
    near = 0
    found: Sum | None = None
    for part in _distinct(parts):
        for number, how, used in (
            row for whole in _distinct(wholes) if whole != part for row in _shares((part, whole))
        ):
            near += low <= 2 * number <= 4 * high
            if found is None and low <= number <= high:
                found = Sum(how, used)
    chance = near * (high - low + 1) / (1.5 * max((low + high) // 2, 1))
    return found if chance <= ANNOUNCED else None


def _distinct(operands: Iterable[int]) -> list[int]:
    return [one for one in dict.fromkeys(map(abs, operands)) if one][:MOST_OPERANDS]


def _steps(numbers: Sequence[int]) -> Iterator[tuple[int, str, tuple[int, ...]]]:
    for one, other in combinations(numbers, 2):
        large, small = (one, other) if one > other else (other, one)
        yield one + other, "sum", (one, other)
        yield large - small, "difference", (large, small)
        yield one * other // SCALE, "product", (one, other)
        yield large * SCALE // small, "ratio", (large, small)
        yield small * SCALE // large, "ratio", (small, large)


def _shares(numbers: Sequence[int]) -> Iterator[tuple[int, str, tuple[int, ...]]]:
    for one, other in combinations(numbers, 2):
        large, small = (one, other) if one > other else (other, one)
        yield _PERCENT * small // large, "share", (small, large)
        yield _PERCENT - _PERCENT * small // large, "share", (large, small)
        yield _PERCENT * large // small - _PERCENT, "share", (large, small)
        yield _PERCENT * large // small, "share", (large, small)
