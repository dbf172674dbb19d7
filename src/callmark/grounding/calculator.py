"""A number as one step of arithmetic on others, where that can hardly be chance.

With enough numbers around, some sum or ratio fits anything. So what is found counts only if few
of all that could be worked out lie near it: what matters is not that two numbers give a third, but
that hardly any two others come close."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from callmark.grounding.arithmetic import Sum
from callmark.grounding.numbers import SCALE

MOST_OPERANDS = 60
_UNLIKE = 50  # times as large
_PERCENT = 100 * SCALE
Step = tuple[int, str, tuple[int, ...]]  # a number, how it came about, of what
Steps = Callable[[Sequence[int]], Iterator[Step]]


class Wanted(NamedTuple):
    """A number from `low` to `high`. `step`: a unit of its last digit that is no zero, since what
    is stated is one of so many such numbers."""

    low: int
    high: int
    step: int

    def chance(self, near: int) -> float:
        """How many of `near` numbers from half to twice as large are expected to hit it."""
        middle = max((self.low + self.high) // 2, 1)
        return near * max(self.high - self.low, self.step) / (1.5 * middle)

    def is_near(self, number: int) -> bool:
        return self.low + self.high <= 4 * number <= 4 * (self.low + self.high)


def work_out(wanted: Wanted, operands: Sequence[int], steps: Steps, at_most: float) -> Sum | None:
    """What gives the number in one of these steps; `at_most` as many others are expected to."""
    found: Sum | None = None
    near = 0
    for number, how, used in steps(_distinct(operands)):
        if wanted.is_near(number):
            near += 1
            if found is None and wanted.low <= number <= wanted.high and number not in used:
                found = Sum(how, used)
    return found if found and wanted.chance(near) <= at_most else None


def share_of(wanted: Wanted, part: int, wholes: Sequence[int], at_most: float) -> Sum | None:
    """A part as a share of one of a few wholes."""

    def steps(numbers: Sequence[int]) -> Iterator[Step]:
        for whole in numbers:
            if whole != part:
                yield from shares((part, whole))

    return work_out(wanted, wholes, steps, at_most)


def _distinct(operands: Iterable[int]) -> list[int]:
    """Without those that change nothing."""
    return [one for one in dict.fromkeys(map(abs, operands)) if one not in (0, SCALE)][
        :MOST_OPERANDS
    ]


def sums(numbers: Sequence[int]) -> Iterator[Step]:
    """Not of what is a hundred times as large: 485,003 is no sum of 485,000 and 3."""
    for one, other in combinations(numbers, 2):
        if max(one, other) > _UNLIKE * min(one, other):
            continue
        yield one + other, "sum", (one, other)
        yield abs(one - other), "difference", (max(one, other), min(one, other))


def products(numbers: Sequence[int]) -> Iterator[Step]:
    for one, other in combinations(numbers, 2):
        large, small = (one, other) if one > other else (other, one)
        yield one * other // SCALE, "product", (one, other)
        yield large * SCALE // small, "ratio", (large, small)
        yield small * SCALE // large, "ratio", (small, large)


def shares(numbers: Sequence[int]) -> Iterator[Step]:
    for one, other in combinations(numbers, 2):
        large, small = (one, other) if one > other else (other, one)
        yield _PERCENT * small // large, "share", (small, large)
        yield _PERCENT - _PERCENT * small // large, "share", (large, small)
        yield _PERCENT * large // small - _PERCENT, "share", (large, small)
        yield _PERCENT * large // small, "share", (large, small)
