"""Numbers under one key of one list: what they come to, and on average."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from operator import itemgetter

from callmark.grounding.record_tree import RecordTree, Series, number_of
from callmark.grounding.text import Frozen

MOST_NEAR = 60  # means near a number that are looked at
_NUMBER = itemgetter(0)


class ListColumn(Frozen, frozen=True):
    """The numbers under one key of the entries of one list."""

    series: Series
    key: str
    count: int
    total: int

    def __str__(self) -> str:
        return f"{self.key} of all {self.series.path}"

    def counts_for(self, turn: int | None) -> bool:
        return self.series.record.counts_for(turn)


class ListColumns:
    """By what their numbers come to; of several, the one that was served first."""

    def __init__(self, tree: RecordTree) -> None:
        self._by_total: dict[int, ListColumn] = {}
        self._means: list[tuple[int, ListColumn]] = []
        for series in tree.series:
            for column in _columns_in(series):
                self._by_total.setdefault(column.total, column)
                self._means.append((column.total // column.count, column))
        self._means.sort(key=_NUMBER)

    def of_total(self, total: int, turn: int | None) -> ListColumn | None:
        column = self._by_total.get(total)
        return column if column is not None and column.counts_for(turn) else None

    def of_mean(self, low: int, high: int, turn: int | None) -> ListColumn | None:
        at = bisect_left(self._means, low, key=_NUMBER)
        for mean, column in self._means[at : at + MOST_NEAR]:
            if mean <= high and column.counts_for(turn):
                return column
        return None

    def totals(self, turn: int | None = None) -> list[int]:
        return [total for total, one in self._by_total.items() if one.counts_for(turn)]


def _columns_in(series: Series) -> Iterator[ListColumn]:
    sums: dict[str, tuple[int, int]] = {}
    for entry in series.items:
        for key, value in entry.items() if isinstance(entry, dict) else (("", entry),):
            number = number_of(value)
            if number is not None:
                count, total = sums.get(key, (0, 0))
                sums[key] = (count + 1, total + number)
    for key, (count, total) in sums.items():
        if count > 1:
            yield ListColumn(series, key, count, total)
