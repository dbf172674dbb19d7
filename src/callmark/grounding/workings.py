"""What a number may have been worked out from: sums, differences, products and shares of what the
answer states and the results hold."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from callmark.grounding import arithmetic
from callmark.grounding.binding import NEAREST, Binder
from callmark.grounding.match import Said
from callmark.grounding.numbers import SCALE, decimal_text
from callmark.grounding.reading import is_money
from callmark.grounding.record_tree import Field, RecordIndex, stem
from callmark.grounding.spans import WIDE, Outline, Span
from callmark.grounding.values import Value

MAX_TERMS = 12  # of a sum
SMALL = 13  # a whole number below it stands in every result
_WORD = re.compile(r"[^\W\d_]{2,}")

TurnAt = Callable[[int], int | None]


class Worked(NamedTuple):
    """How a number came about, and what shows it."""

    rule: str
    because: str
    fields: tuple[Field, ...] = ()


class Workings:
    """One answer: what it stated so far, and what follows from it."""

    def __init__(
        self,
        outline: Outline,
        values: list[Value],
        index: RecordIndex,
        binder: Binder,
        said: Said,
        turn_at: TurnAt,
        things: arithmetic.CountedThings,
    ) -> None:
        self.text = outline.text
        self.outline = outline
        self.values = values
        self.index = index
        self.said = said
        self.turn_at = turn_at
        self.stated: list[Value] = []
        self._binder = binder
        self._things = things
        self._by_label: dict[frozenset[str], list[int]] = {}
        self._line_ends: list[tuple[int, int]] = []
        self._money: dict[int, bool] = {}

    def is_money(self, value: Value) -> bool:
        known = self._money.get(value.start)
        if known is None:
            known = self._money[value.start] = is_money(self.text, value)
        return known

    def find(self, value: Value, sentence: Span) -> Worked | None:
        if value.kind != "number" or not value.readings:
            return None
        line = self.outline.line_at(value.start)
        around = [self.outline.near(value, line), *line.heads[-1:]]
        cues = " ".join(self.text[start : min(end, start + WIDE)] for start, end in around)
        if "." not in value.text and not arithmetic.announces(cues):
            return None
        # Cents tell numbers apart: the more of them a number has, the further back it may look.
        reach = arithmetic.FAR if "." in value.text else arithmetic.RECENT
        run = [one for one in self.stated[-reach:] if self._is_alike(one, value)]
        operands = [one.readings[0] for one in run]
        operands += [
            one.readings[0]
            for one in self.values_after(value, sentence[1])
            if self._is_alike(one, value)
        ]
        amounts = self._amounts(value, sentence)
        operands += amounts
        factors = self._factors(cues)
        for factor in factors:  # `$50 for each of 3`, where the $50 stand in the policy
            each, rest = divmod(abs(value.readings[0]), max(factor, 1))
            if factor > 1 and not rest and self.said.holds_number(each, self.turn_at(value.start)):
                operands.append(each)
        if "." in value.text:
            operands += [
                one.readings[0]
                for one in self.values_after(value, len(self.text))
                if self._is_alike(one, value)
            ]
            operands += self._prices
        columns = self.index.columns if arithmetic.announces_a_sum(cues) else {}
        column = columns.get(abs(value.readings[0]))
        if column is not None:
            return Worked("sum", f"{column[1]} of all {column[0]}")
        mean = self._mean(value) if arithmetic.announces_an_average(cues) else None
        if mean is not None:
            return Worked("average", f"{mean[1]} of all {mean[0]}")
        found = arithmetic.follows(
            value,
            cues,
            operands,
            [one.readings[0] for one in run],
            amounts[:8],
            factors,
            self._columns(value),
        ) or arithmetic.of_two(value, [one.readings[0] for one in run])
        if found is None:
            return None
        because = " and ".join(map(decimal_text, found.operands))
        return Worked(found.rule, f"a {found.rule} of {because}")

    def remember(self, value: Value) -> None:
        """By its label, and as the last number of its line: what a total may add up."""
        self.stated.append(value)
        line = self.outline.line_at(value.start)
        if self._line_ends and self._line_ends[-1][0] == line.start:
            self._line_ends.pop()
        self._line_ends.append((line.start, value.readings[0]))
        if self._binder.is_labelled(value):
            label = self._binder.label_of(value)
            self._by_label.setdefault(label, []).append(value.readings[0])

    def _columns(self, value: Value) -> list[list[int]]:
        """Numbers that belong together: of the records around, of lines with one label, and at the
        ends of the lines before."""
        label = self._binder.label_of(value)
        labelled = [
            column[-MAX_TERMS:]
            for words, column in islice(reversed(self._by_label.items()), NEAREST)
            if words and words < label and len(column) > 1
        ]
        ends = [number for _, number in self._line_ends[-MAX_TERMS:]]
        return [*self._binder.columns_around(value), *labelled, ends]

    def _mean(self, value: Value) -> tuple[str, str] | None:
        half = arithmetic.half_unit(value)
        at = bisect_left(self.index.means, (value.readings[0] - half - 1,))
        if at < len(self.index.means) and self.index.means[at][0] <= value.readings[0] + half:
            return self.index.means[at][1:]
        return None

    def _is_alike(self, one: Value, other: Value) -> bool:
        return bool(one.readings) and self.is_money(one) == self.is_money(other)

    def values_after(self, value: Value, end: int) -> list[Value]:
        at = bisect_left(self.values, value.end, key=lambda one: one.start)
        found: list[Value] = []
        while at < len(self.values) and self.values[at].start < end and len(found) < 6:
            found.append(self.values[at])
            at += 1
        return found

    @cached_property
    def _prices(self) -> list[int]:
        """Amounts with decimals that results hold: few numbers are their difference by chance."""
        return [number for number in self.index.numbers if number % SCALE][:200]

    def _amounts(self, value: Value, sentence: Span) -> list[int]:
        """The numbers of the records that the value is said of."""
        subject = self._binder.subject_of(value, sentence)
        return [] if subject is None else list(islice(self._binder.numbers_of(subject), 40))

    def _factors(self, cues: str) -> list[int]:
        """How many of something there are: lengths of lists, and small numbers near."""
        stems = {stem(word) for word in _WORD.findall(cues)}
        lengths = {
            len(series.items)
            for one in stems
            for series in self._things.lists_of((one,))
            if 1 < len(series.items) < SMALL
        }
        return sorted(lengths | arithmetic.counts_in(cues, stems))
