"""Where truth and measurement differ, sample by sample and metric by metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

import msgspec

from callmark.records.report import Metric, Report
from dev.prove.measuring import Measured
from dev.prove.rows import Row
from dev.prove.totals import Total, totals_of

_EXACT = 1e-12


class Difference(msgspec.Struct, frozen=True):
    """`where` is a sample's id, or the part of the report. `true` is what the construction says."""

    seed: int
    kind: str
    where: str
    what: str
    true: str
    measured: str

    def __str__(self) -> str:
        return (
            f"seed {self.seed}, {self.kind}, {self.where}, {self.what}:"
            f" true {self.true}, measured {self.measured}"
        )


class Compared(msgspec.Struct, frozen=True):
    """What one run showed. `found` are planted faults that came back as planted, `moved` the
    metrics that changed from the good answers to these, `others` those of them that should not
    have; `numbers` is how many were compared. `flags` of so many `statements` were planted."""

    planted: dict[str, int]
    found: dict[str, int]
    moved: tuple[str, ...]
    others: tuple[str, ...]
    numbers: int
    differences: tuple[Difference, ...]
    statements: int = 0
    flags: int = 0


class Differences:
    """Counts every comparison, and keeps those that failed."""

    def __init__(self, seed: int, kind: str) -> None:
        self.numbers = 0
        self.found: list[Difference] = []
        self._seed, self._kind = seed, kind

    def check(self, where: str, what: str, true: object, measured: object, same: bool) -> bool:
        self.numbers += 1
        if not same:
            entry = Difference(self._seed, self._kind, where, what, str(true), str(measured))
            self.found.append(entry)
        return same

    def equal(self, where: str, what: str, true: object, measured: object) -> bool:
        return self.check(where, what, true, measured, _same(true, measured))


def compare(seed: int, kind: str, run: Measured, good: Measured) -> Compared:
    """One run against its truth, and against the run of the good answers to the same dataset."""
    differences = Differences(seed, kind)
    differences.equal("dataset", "dataset_sha256", good.dataset_sha256, run.dataset_sha256)
    found = _compare_samples(run, good, differences)
    true_rows = run.true_rows()
    totals, before = totals_of(true_rows), totals_of(good.true_rows())
    compare_metrics(totals, run.report.metrics, "metrics", differences)
    _compare_parts(true_rows, run.report, differences)
    moved = moved_metrics(run.report.metrics, good.report.metrics)
    others = tuple(name for name in moved if totals[name] == before[name])
    for name in others:
        differences.check("metrics", name, "not moved", "moved", False)
    return Compared(
        run.planted, found, moved, others, differences.numbers, tuple(differences.found)
    )


def _compare_samples(run: Measured, good: Measured, differences: Differences) -> dict[str, int]:
    """How many planted faults of each kind came back: every number as planted, and at least one
    of them another than that of the good answer."""
    found: Counter[str] = Counter(dict.fromkeys(run.planted, 0))
    planted = Counter(record.fault for record in run.truth.values() if record.fault)
    for kind, count in run.planted.items():
        differences.equal("answers", f"planted {kind}", count, planted[kind])
    differences.equal("results", "samples", list(run.truth), list(run.rows))
    for name, record in run.truth.items():
        numbers = run.rows[name].numbers
        differences.equal(name, "columns", sorted(record.truth), sorted(numbers))
        agreeing = [
            differences.equal(name, column, true, numbers[column])
            for column, true in record.truth.items()
        ]
        if record.fault is None:
            differences.check(
                name, "scores", "those of the good answer", "others",
                run.scores[name] == good.scores[name],
            )  # fmt: skip
        elif all(agreeing) and numbers != good.rows[name].numbers:
            found[record.fault] += 1
    return dict(found)


def compare_metrics(
    totals: Mapping[str, Total],
    metrics: Mapping[str, Metric],
    where: str,
    differences: Differences,
) -> None:
    for name, metric in metrics.items():
        total = totals[name]
        shown = f"{metric.value} = {metric.numerator}/{metric.denominator}"
        shown += f" (n = {metric.n})"
        differences.check(where, name, total, shown, total.agrees(metric))


def _compare_parts(rows: Sequence[Row], report: Report, differences: Differences) -> None:
    """Locales, slices, tools, the histogram of spans and the numbers of samples."""
    for part, members, blocks in (
        ("locales", _by_locale(rows), report.locales),
        ("slices", _by_slice(rows), report.slices),
    ):
        differences.equal(part, "names", sorted(members), sorted(blocks))
        for name, block in blocks.items():
            totals = totals_of(members[name])
            differences.equal(f"{part}.{name}", "n", len(members[name]), block.n)
            compare_metrics(totals, block.metrics, f"{part}.{name}", differences)
    for tool, delta in report.per_tool_deltas.items():
        using = [row for row in _eligible(rows) if tool in row.place.expects]
        differences.equal(f"tools.{tool}", "n", len(using), delta.sample_count)
        for side in ("lax", "strict"):
            mean = sum((row.f1(side) for row in using), Fraction(0)) / len(using)
            differences.equal(f"tools.{tool}", side, float(mean), getattr(delta, side))
    spans = Counter(str(row.count("spans_total")) for row in rows)
    differences.equal("report", "span counts", dict(spans), report.integration_span_count_histogram)
    kinds = Counter(row.place.kind for row in rows)
    for kind, name in (("eligible", "eligible"), ("control", "controls"), ("clarify", "clarify")):
        differences.equal("counts", name, kinds[kind], getattr(report.counts, name))
    unresolved = sum(row.count("unresolved") for row in rows)
    differences.equal("counts", "unresolved", unresolved, report.counts.unresolved)


def _by_locale(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.place.locale is not None:
            found.setdefault(row.place.locale, []).append(row)
    return found


def _by_slice(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        for name in row.place.slices:
            found.setdefault(name, []).append(row)
    return found


def _eligible(rows: Iterable[Row]) -> Iterator[Row]:
    return (row for row in rows if row.place.kind == "eligible")


def moved_metrics(metrics: Mapping[str, Metric], before: Mapping[str, Metric]) -> tuple[str, ...]:
    names = ("value", "numerator", "denominator", "n")
    return tuple(
        metric
        for metric in metrics
        if any(getattr(metrics[metric], name) != getattr(before[metric], name) for name in names)
    )


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, int | float):
        return abs(one - other) <= _EXACT
    return one == other
