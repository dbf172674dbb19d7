"""`callmark compare A B C`: several runs, each against the first."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from callmark.compare.compare import (
    CompareOptions,
    SideLines,
    check_primary,
    compare_read,
    read_side,
)
from callmark.compare.metrics import MetricPart, parts_of
from callmark.compare.records import Decision, MeasuredRun, RunMatrix
from callmark.compare.sides import Side
from callmark.errors import UsageError
from callmark.records.report import Metric
from callmark.records.seams import Progress
from callmark.store.runs import is_report, unfinished
from callmark.summary.metrics import Made, Subset

WORST_FIRST: tuple[Decision, ...] = ("regression", "inconclusive", "non_inferior")


def compare_many(
    runs: Sequence[SideLines], options: CompareOptions, *, progress: Progress | None = None
) -> RunMatrix:
    """Every run but the first against the first; each is read once."""
    check_primary(options.primary)
    for lines in runs:
        if is_report(lines.path):
            raise unfinished(lines.path.parent) or UsageError(
                f"{lines.path}: is a report, and only two of those can be compared;"
                " of three and more runs name the results"
            )
    read = [(lines, read_side(lines, progress)) for lines in runs]
    base, *others = read
    comparisons = tuple(compare_read(options, base, other) for other in others)
    found = {one.decision for one in comparisons}
    return RunMatrix(
        decision=next(decision for decision in WORST_FIRST if decision in found),
        runs=tuple(_measured(side, options.quarantined, options.seed) for _, side in read),
        comparisons=comparisons,
    )


def _measured(side: Side, quarantined: Collection[str], seed: int) -> MeasuredRun:
    samples = side.samples
    kept = [at for at in range(len(samples)) if samples.id_at(at) not in quarantined]
    parts = parts_of(Subset(samples, kept, seed))
    found = {name: _metric(part) for name, part in parts.items()}
    known = {name: metric for name, metric in found.items() if metric.value is not None}
    return MeasuredRun(facts=side.facts(), metrics=known)


def _metric(part: MetricPart) -> Metric:
    """A count as the share of its samples: runs may differ in size."""
    definition = part.definition
    if definition.made == "count":
        made: Made = "rate" if part.is_yes_no else "mean"
        definition = msgspec.structs.replace(definition, made=made)
    return part.subset.metric(definition)
