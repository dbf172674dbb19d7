"""What the dataset's own gates ask: is every kind of item there, often enough, and checkable?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from callmark.core.metrics import Measure
from callmark.core.report import FAILING_CAP, Failing, Metric, Number
from callmark.core.results import Result
from callmark.core.samples import Sample
from callmark.core.stats import SampledValue
from callmark.datasets.stats import LONG_BYTES, LONG_CONTEXT, Cell, cell_of, prompt_bytes
from callmark.running.offers import Offer
from callmark.verifying.given_spans import can_be_checked, gives_spans, span_problems
from callmark.verifying.teacher import calls_disagree

LONG_FROM = 40  # items: a smaller dataset needs no long context
NAMED = 5  # cells or ids in one sentence


class Ids:
    """Counts all, keeps the first."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def add(self, sample_id: str) -> None:
        self.count += 1
        if len(self.first) < FAILING_CAP:
            self.first.append(sample_id)

    def failing(self) -> Failing:
        return Failing(self.count, tuple(self.first))

    def named(self) -> str:
        more = f" and {self.count - NAMED} more" if self.count > NAMED else ""
        return ", ".join(self.first[:NAMED]) + more


class _CellTally:
    """One cell: how many items, and who they are as long as that are few."""

    __slots__ = ("count", "ids")

    def __init__(self) -> None:
        self.count = 0
        self.ids: list[str] = []


class Composition:
    """Takes every item with its verdict, once, in the order of the dataset."""

    def __init__(self, smallest_cell: Number) -> None:
        self._smallest_cell = smallest_cell
        self._cells: dict[Cell, _CellTally] = {}
        self._items = 0
        self._controls = 0
        self._long = 0
        self._with_spans = 0
        self._checked_spans = 0
        self.unverified = Ids()
        self.short = Ids()
        self.other_calls = Ids()
        self.wrong_spans = Ids()
        self.first_wrong_span = ""

    def add(self, sample: Sample, result: Result, offer: Offer) -> None:
        self._items += 1
        self._controls += sample.expectation.kind == "control"
        if result.scores is None:
            self.unverified.add(sample.sample_id)
        if LONG_CONTEXT in sample.expectation.slices:
            self._long += 1
            if prompt_bytes(sample.prompt) < LONG_BYTES:
                self.short.add(sample.sample_id)
        cell = cell_of(sample.metadata)
        if cell is not None:
            self._count_cell(cell, sample.sample_id)
        if gives_spans(sample):
            self._check_spans(sample, result, offer.names)
        if calls_disagree(sample, offer.names, offer.registry):
            self.other_calls.add(sample.sample_id)

    def measures(self) -> dict[str, Measure]:
        smallest = min((cell.count for cell in self._cells.values()), default=None)
        items = self._items
        return {
            "dataset_teacher_texts": _share(items - self.unverified.count, items),
            "dataset_cells": _measure(
                Metric(value=smallest, n=sum(cell.count for cell in self._cells.values()))
            ),
            "dataset_controls": _share(self._controls, items),
            "dataset_long_contexts": _share(self._long, items if items >= LONG_FROM else 0),
            "dataset_spans": _share(
                self._checked_spans - self.wrong_spans.count,
                self._checked_spans,
                population=self._with_spans,
            ),
        }

    def failing(self) -> dict[str, Failing]:
        small = Ids()
        for _, cell in self._small_cells():
            for sample_id in cell.ids:
                small.add(sample_id)
        lists = {
            "dataset_teacher_texts": self.unverified,
            "dataset_cells": small,
            "dataset_spans": self.wrong_spans,
        }
        return {name: ids.failing() for name, ids in lists.items() if ids.count}

    def reasons(self) -> Mapping[str, Callable[[], str]]:
        """What to say of a gate that did not pass."""
        return {
            "dataset_teacher_texts": self._why_unverified,
            "dataset_cells": self._why_cells,
            "dataset_spans": self._why_spans,
            "dataset_long_contexts": lambda: f"{self._long} of {self._items} items",
            "dataset_controls": lambda: f"{self._controls} of {self._items} items",
        }

    def warnings(self) -> list[str]:
        found = {
            f"of {self._long} items that call themselves long contexts have a prompt of fewer than"
            f" {LONG_BYTES} bytes": self.short,
            "items: teacher_text makes other calls than call_sequence says": self.other_calls,
        }
        return [f"{ids.count} {what}: {ids.named()}" for what, ids in found.items() if ids.count]

    def _count_cell(self, key: Cell, sample_id: str) -> None:
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = _CellTally()
        cell.count += 1
        if cell.count >= self._smallest_cell:
            cell.ids.clear()
        elif len(cell.ids) < FAILING_CAP:
            cell.ids.append(sample_id)

    def _check_spans(self, sample: Sample, result: Result, offered: frozenset[str]) -> None:
        self._with_spans += 1
        if not can_be_checked(sample, result):
            return
        self._checked_spans += 1
        problems = span_problems(sample, result, offered)
        if problems:
            self.first_wrong_span = self.first_wrong_span or f"{sample.sample_id}: {problems[0]}"
            self.wrong_spans.add(sample.sample_id)

    def _small_cells(self) -> list[tuple[Cell, _CellTally]]:
        return [
            (key, cell)
            for key, cell in sorted(self._cells.items())
            if cell.count < self._smallest_cell
        ]

    def _why_unverified(self) -> str:
        count = self.unverified.count
        return f"{count} of {self._items} items cannot be verified: {self.unverified.named()}"

    def _why_cells(self) -> str:
        small = self._small_cells()
        named = [f"{key[0]} × {key[1]} has {cell.count}" for key, cell in small[:NAMED]]
        more = f" and {len(small) - NAMED} more cells" if len(small) > NAMED else ""
        return ", ".join(named) + more

    def _why_spans(self) -> str:
        if self.wrong_spans.count:
            return self.first_wrong_span
        unchecked = self._with_spans - self._checked_spans
        others = f"; the text of {unchecked} items is not at hand" if unchecked else ""
        return f"no tokenizer: whether spans begin and end with a token was not checked{others}"


def _share(part: int, whole: int, *, population: int | None = None) -> Measure:
    metric = Metric(
        value=part / whole if whole else None, numerator=part, denominator=whole, n=whole
    )
    return msgspec.structs.replace(
        _measure(metric), population=whole if population is None else population
    )


def _measure(metric: Metric) -> Measure:
    """Exact numbers, no estimate: there is nothing to draw an interval from."""
    return Measure(metric, metric.n, lambda: SampledValue("mean", ((),)))
