"""Rates, means and pooled ratios with their intervals. The unit is the sample, or its cluster.

A rate of independent samples has a Wilson interval. Values or calls that are pooled over samples
have one with the *samples* as n, because the values of one answer are not independent. Everything
else has a percentile bootstrap, over clusters where these or repeated trials exist."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, assert_never

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Columns = Sequence[Sequence[float] | Floats]

Statistic = Literal["rate", "mean", "pooled", "f1"]
Method = Literal[
    "wilson",
    "wilson_by_sample",
    "tango",
    "bootstrap",
    "normal",
    "cluster_bootstrap",
    "cluster_normal",
]

RESAMPLES = 1000
BOOTSTRAP_LIMIT = 10_000  # above this many units the normal approximation is as good
_BLOCK = 200_000  # draws at a time: they stay in the processor's cache, and the stream is the same
Z_TWO_SIDED = 1.959963984540054  # the 97.5 % point of the normal distribution
_Z_NORMAL = 1.96
Z_ONE_SIDED = 1.6448536269514722  # the 95 % point
# numpy refuses negative seeds; a dataset's or a user's seed may be any whole number.
_SEED_BITS = (1 << 64) - 1


class Rate(msgspec.Struct, frozen=True):
    """A share that keeps what it was made of. No denominator: no value."""

    hits: int | float
    total: int | float

    @property
    def value(self) -> float | None:
        return None if self.total == 0 else self.hits / self.total


class Interval(msgspec.Struct, frozen=True):
    low: float
    high: float
    method: Method


class SampledValue(msgspec.Struct, frozen=True):
    """What a number is computed from, one entry per sample in the order of the dataset.

    Columns: `rate` and `mean` (values,), `pooled` (hits, totals), `f1` (grounded, spans, found,
    required). `clusters` labels the samples that belong together; `repeated` says that the values
    are averages over trials, so that a rate is no longer a count of yes and no."""

    statistic: Statistic
    columns: tuple[Sequence[float], ...]
    clusters: Sequence[int] | None = None
    repeated: bool = False

    @property
    def n(self) -> int:
        return len(self.columns[0])


def estimate(observed: SampledValue) -> float | None:
    """The value itself: None where nothing stands behind it."""
    # fsum rounds once, at the end: the same bytes in whatever order trials were finished.
    sums = [math.fsum(column) for column in observed.columns]
    match observed.statistic:
        case "rate" | "mean":
            return Rate(sums[0], observed.n).value
        case "pooled":
            return Rate(sums[0], sums[1]).value
        case "f1":
            return f1_of(sums[0], sums[1], sums[2], sums[3]) if observed.n else None
        case _:
            assert_never(observed.statistic)


def f1_of(grounded: float, spans: float, found: float, required: float) -> float:
    """F1 of pooled counts. No span, or nothing found: 0."""
    precision = grounded / spans if spans else 0.0
    recall = found / required if required else 0.0
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0


def interval_95(observed: SampledValue, seed: int) -> Interval | None:
    """The two-sided 95 % interval, None where fewer than two units leave nothing to judge by."""
    if _is_wilson(observed):
        hits, total, method = _wilson_counts(observed)
        return Interval(*wilson(hits, total, Z_TWO_SIDED), method) if total else None
    units = _units(observed)
    if units is None:
        return None
    method = _method(observed, len(units[0]))
    low, high = _spread(observed.statistic, units, seed, (2.5, 97.5), _Z_NORMAL)
    return Interval(low, high, method)


def paired_interval_95(a: SampledValue, b: SampledValue, seed: int) -> Interval | None:
    """The interval of estimate(b) − estimate(a), both over the same samples in the same order:
    the same draws for both, so that what they have in common cancels."""
    units_a, units_b = _units(a), _units(b)
    if units_a is None or units_b is None:
        return None
    statistic, method = b.statistic, _method(b, len(units_b[0]))
    if len(units_b[0]) <= BOOTSTRAP_LIMIT:
        differences = resample(statistic, units_b, seed) - resample(statistic, units_a, seed)
        return Interval(*_percentiles(differences, (2.5, 97.5)), method)
    value_a, weights_a = _linear(statistic, units_a)
    value_b, weights_b = _linear(statistic, units_b)
    weights = [-weight for weight in weights_a] + weights_b
    half = _Z_NORMAL * _standard_error([*units_a, *units_b], weights)
    return Interval(value_b - value_a - half, value_b - value_a + half, method)


def bounds_one_sided(observed: SampledValue, seed: int) -> tuple[float, float] | None:
    """The lower and the upper one-sided 95 % bound."""
    if _is_wilson(observed):
        hits, total, _ = _wilson_counts(observed)
        return wilson(hits, total, Z_ONE_SIDED) if total else None
    units = _units(observed)
    if units is None:
        return None
    return _spread(observed.statistic, units, seed, (5.0, 95.0), Z_ONE_SIDED)


def deciding_n(observed: SampledValue, bound: float, seed: int) -> int | None:
    """How many samples, at the value seen, would put a one-sided bound on one side of `bound`.
    None: no number would."""
    value, sides = estimate(observed), bounds_one_sided(observed, seed)
    if value is None or sides is None or value == bound:
        return None
    if _is_wilson(observed):
        # The Wilson bound reaches `bound` where the score test against it is at its limit.
        if not 0 < bound < 1:
            return None
        return math.ceil(Z_ONE_SIDED**2 * bound * (1 - bound) / (value - bound) ** 2)
    # The width of an interval shrinks with the square root of n.
    width = value - sides[0] if value > bound else sides[1] - value
    return max(observed.n, math.ceil(observed.n * (width / (value - bound)) ** 2))


def wilson(hits: float, total: float, z: float) -> tuple[float, float]:
    """The Wilson score interval for `hits` of `total`."""
    share = hits / total
    z2 = z * z / total
    centre = (share + z2 / 2) / (1 + z2)
    half = z * math.sqrt(share * (1 - share) / total + z2 / (4 * total)) / (1 + z2)
    return max(0.0, centre - half), min(1.0, centre + half)


def resample(statistic: Statistic, columns: Columns, seed: int) -> Floats:
    """The statistic of 1000 resamples of the units, drawn as
    `default_rng(seed).integers(0, n, (1000, n))`."""
    import numpy as np

    units: list[Floats] = [np.asarray(column[:], dtype=np.float64) for column in columns]
    n = len(units[0])
    rng = make_generator(seed)
    parts: list[Floats] = []
    for rows in _blocks(n):
        draws = rng.integers(0, n, (rows, n))
        if len(units) == 1:
            parts.append(units[0].take(draws).mean(axis=1))
        else:
            sums = [column.take(draws).sum(axis=1) for column in units]
            parts.append(_statistic_of(statistic, sums))
    return np.concatenate(parts)


def make_generator(seed: int) -> np.random.Generator:
    """The generator that every draw comes from; any whole number is a seed."""
    import numpy as np

    return np.random.default_rng(seed & _SEED_BITS)


def _blocks(n: int) -> Iterator[int]:
    size = max(1, _BLOCK // n)
    for start in range(0, RESAMPLES, size):
        yield min(size, RESAMPLES - start)


def _is_wilson(observed: SampledValue) -> bool:
    return (
        observed.statistic in ("rate", "pooled")
        and observed.clusters is None
        and not observed.repeated
    )


def _wilson_counts(observed: SampledValue) -> tuple[float, float, Method]:
    if observed.statistic == "rate":
        return math.fsum(observed.columns[0]), observed.n, "wilson"
    share = estimate(observed)
    # Twenty values in one answer are right or wrong together: they count as one observation.
    return (share or 0.0) * observed.n, 0 if share is None else observed.n, "wilson_by_sample"


def _method(observed: SampledValue, units: int) -> Method:
    if observed.clusters is None and not observed.repeated:
        return "bootstrap" if units <= BOOTSTRAP_LIMIT else "normal"
    return "cluster_bootstrap" if units <= BOOTSTRAP_LIMIT else "cluster_normal"


def _units(observed: SampledValue) -> Columns | None:
    """One row per independent unit: a sample, or the sums over a cluster of samples."""
    columns: Columns = observed.columns
    if observed.clusters is not None:
        columns = sums_by_cluster(columns, observed.clusters)
    enough = len(columns[0]) >= 2 and estimate(observed) is not None
    return columns if enough else None


def sums_by_cluster(columns: Columns, clusters: Sequence[int]) -> Columns:
    """In the order in which the clusters appear. A single column gets their sizes beside it."""
    import numpy as np

    # np.unique sorts by label. The draws of the bootstrap depend on the order of the units, so they
    # are put back into that of the dataset, which is the same in every run.
    labels = np.asarray(clusters)
    _, first, cluster = np.unique(labels, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.intp)
    place[np.argsort(first)] = np.arange(len(first))
    unit = place[cluster]
    weights = [*columns, np.ones(len(unit))] if len(columns) == 1 else columns
    return [np.bincount(unit, weights=column[:]).astype(np.float64) for column in weights]


def _spread(
    statistic: Statistic, units: Columns, seed: int, percents: tuple[float, float], z: float
) -> tuple[float, float]:
    if len(units[0]) <= BOOTSTRAP_LIMIT:
        return _percentiles(resample(statistic, units, seed), percents)
    value, weights = _linear(statistic, units)
    error = _standard_error(units, weights)
    return value - z * error, value + z * error


def _percentiles(values: Floats, percents: tuple[float, float]) -> tuple[float, float]:
    import numpy as np

    # A resample can lack a denominator altogether: it says nothing and is left out.
    low, high = np.percentile(values[np.isfinite(values)], percents)
    return float(low), float(high)


def _statistic_of(statistic: Statistic, sums: list[Floats]) -> Floats:
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        if statistic != "f1":
            return sums[0] / sums[1]
        precision = np.where(sums[1] > 0, sums[0] / sums[1], 0.0)
        recall = np.where(sums[3] > 0, sums[2] / sums[3], 0.0)
        total = precision + recall
        return np.where(total > 0, 2 * precision * recall / total, 0.0)


def _linear(statistic: Statistic, units: Columns) -> tuple[float, list[float]]:
    """The value, and the weights with which a unit's numbers add up to its error: 1 for a mean,
    those of the delta method for a ratio."""
    n = len(units[0])
    sums = [math.fsum(column) for column in units]
    if len(units) == 1:
        value, weights = sums[0] / n, [1.0]
    elif statistic != "f1":
        value = sums[0] / sums[1]
        weights = [n / sums[1], -value * n / sums[1]]
    else:
        value, weights = f1_of(sums[0], sums[1], sums[2], sums[3]), [0.0] * 4
        if value > 0:
            precision, recall = sums[0] / sums[1], sums[2] / sums[3]
            scale = 2 * n / (precision + recall) ** 2
            by_span, by_fact = scale * recall**2 / sums[1], scale * precision**2 / sums[3]
            weights = [by_span, -by_span * precision, by_fact, -by_fact * recall]
    return value, weights


def _standard_error(units: Columns, weights: Sequence[float]) -> float:
    """s / √n of the units' errors."""
    n = len(units[0])
    sums = (math.fsum(column) for column in units)
    mean = math.fsum(weight * total for weight, total in zip(weights, sums, strict=True)) / n
    return math.sqrt(_squares(units, weights, mean) / (n - 1) / n)


def _squares(units: Columns, weights: Sequence[float], mean: float) -> float:
    """The sum of squared errors, in blocks: a million units take no room of their own."""
    import numpy as np

    squares = []
    for start in range(0, len(units[0]), _BLOCK):
        errors: Floats = np.full(len(units[0][start : start + _BLOCK]), -mean)
        for column, weight in zip(units, weights, strict=True):
            errors += weight * np.asarray(column[start : start + _BLOCK], dtype=np.float64)
        squares.append(float(np.square(errors).sum()))
    return math.fsum(squares)
