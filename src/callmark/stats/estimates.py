"""Rates, means and pooled ratios with their intervals. The unit is the sample, or its cluster.

A rate of independent samples has a Wilson interval. Values or calls that are pooled over samples
have one with the *samples* as n, because the values of one answer are not independent. Everything
else has a percentile bootstrap, over clusters where these or repeated trials exist."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
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
    """The value itself: None where there is nothing to estimate it from."""
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


def linear_weights(observed: SampledValue) -> list[float] | None:
    """The weights with which the numbers of one sample add up to what it moves the value by, times
    n; None where there is no value."""
    if estimate(observed) is None:
        return None
    return _linear(observed.statistic, observed.columns)[1]


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


Procedure = Literal["mcnemar", "sign_flip", "paired_bootstrap"]

ALPHA = 0.05
FLIPS = 10_000  # draws of the permutation test; fewer different ones than that are all tried
SAME = 1e-9  # two numbers that differ by less differ by rounding only


class Pairs(msgspec.Struct, frozen=True):
    """What the two sides have for each sample that both answered. `yes_no`: every value is 0 or 1
    and samples are independent units, unless `clusters` or `repeated` (averages over trials) say
    otherwise. `alike`: both sides gave the very same answers."""

    gains: Sequence[float]
    yes_no: bool
    clusters: Sequence[int] | None = None
    repeated: bool = False
    alike: bool = False

    @property
    def n(self) -> int:
        return len(self.gains)

    @property
    def are_plain(self) -> bool:
        return self.clusters is None and not self.repeated

    def discordant(self) -> tuple[int, int]:
        """How many samples are worse and how many better."""
        return (
            sum(1 for gain in self.gains if gain < -SAME),
            sum(1 for gain in self.gains if gain > SAME),
        )


def procedure_of(pairs: Pairs) -> Procedure:
    # Trials of one sample and samples of one cluster are not independent: McNemar and the bootstrap
    # would count them as if they were, and be too sure.
    if not pairs.are_plain:
        return "sign_flip"
    return "mcnemar" if pairs.yes_no else "paired_bootstrap"


def p_worse(pairs: Pairs, seed: int) -> float | None:
    """The one-sided p of the test that fits these pairs; None without any."""
    if not pairs.n:
        return None
    if procedure_of(pairs) == "mcnemar":
        return mcnemar(*pairs.discordant())
    sums = _unit_sums(pairs)
    if procedure_of(pairs) == "sign_flip":
        return sign_flip(sums, seed)
    # The bootstrap alone is too sure of itself where few samples differ; the flips are exact.
    return max(bootstrap_p(pairs.gains, seed), sign_flip(sums, seed))


def lower_bound(pairs: Pairs) -> float | None:
    """The one-sided 95 % lower bound of the mean gain; None below two independent units."""
    if not pairs.n:
        return None
    if pairs.yes_no and pairs.are_plain:
        worse, better = pairs.discordant()
        return tango(worse, better, pairs.n, Z_ONE_SIDED)[0]
    sums = _unit_sums(pairs)
    return _mean_bound(sums * (len(sums) / pairs.n)) if len(sums) > 1 else None


def _mean_bound(units: Floats) -> float:
    """The lowest of three bounds, which together hold where few units differ, but by much. Tango's:
    the gains are taken for so many losses and wins of one size, the one that gives their sum and
    their squares. Bonett and Price's: two more units are imagined, one wholly worse and one wholly
    better. And no nearer to the mean than so many units without any difference could bring it."""
    import numpy as np

    n, total, squares = len(units), float(units.sum()), float(np.square(units).sum())
    moved = float(np.abs(units).sum())
    size = squares / moved if moved > SAME else 1.0
    worse, better = ((moved - total) / 2 / size, (moved + total) / 2 / size)
    score = size * tango(worse, better, n, Z_ONE_SIDED)[0]
    whole = max(1.0, float(np.abs(units).max()))
    centre = total / (n + 2)
    spread = math.sqrt((squares + 2 * whole**2) / (n + 2) - centre**2)
    imagined = centre - Z_ONE_SIDED * spread / math.sqrt(n + 2)
    alike = total / n + tango(0, 0, n, Z_ONE_SIDED)[0]
    return max(-whole, min(score, imagined, alike))


def fewest_alike(margin: float) -> int:
    """So many independent samples without any difference bring the bound above −margin."""
    return math.floor(Z_ONE_SIDED**2 * (1 - margin) / margin) + 1


def mcnemar(worse: int, better: int) -> float:
    """Exact: of `worse + better` samples that differ, at least `worse` are worse by the toss of a
    fair coin."""
    # Pairs that agree say nothing about which side is better: only the others are tossed.
    total = worse + better
    if worse <= better:
        # The longer tail is what is left of the shorter one.
        return 1.0 if worse == 0 else 1.0 - binomial_tail(total, 0.5, better + 1)
    return binomial_tail(total, 0.5, worse)


def fewest_lost(alpha: float = ALPHA) -> int:
    """So many samples must get worse, none better, before the exact test can speak."""
    return math.ceil(math.log2(1 / alpha))


def holm(ps: Sequence[float]) -> list[float]:
    """The p of several tests adjusted so that at 5 % the chance of any false alarm is 5 %."""
    adjusted = [0.0] * len(ps)
    largest = 0.0
    for rank, at in enumerate(sorted(range(len(ps)), key=lambda at: (ps[at], at))):
        # A test is never surer than the one before it in the order of p.
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[at]))
        adjusted[at] = largest
    return adjusted


def false_discovery(ps: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's adjustment: of what is called worse at 5 %, 5 % is wrong on the
    average, and where nothing is worse, anything is called so in 5 % of the cases."""
    adjusted = [0.0] * len(ps)
    smallest = 1.0
    order = sorted(range(len(ps)), key=lambda at: (ps[at], at))
    for rank in range(len(ps), 0, -1):
        at = order[rank - 1]
        smallest = min(smallest, ps[at] * len(ps) / rank)
        adjusted[at] = smallest
    return adjusted


def fisher(hits_a: int, total_a: int, hits_b: int, total_b: int) -> float:
    """Exact: all hits are dealt out among all trials, and B gets no more than it has."""
    hits = hits_a + hits_b
    ways = sum(
        math.comb(total_b, got) * math.comb(total_a, hits - got)
        for got in range(max(0, hits - total_a), hits_b + 1)
    )
    return ways / math.comb(total_a + total_b, hits)


def sign_flip(sums: Sequence[float] | Floats, seed: int) -> float:
    """If the two sides are alike, each unit's gain could as well have the other sign. All ways to
    set the signs if there are at most FLIPS, else so many draws; above 10,000 units the normal
    distribution that they come to."""
    import numpy as np

    units = np.asarray(sums, dtype=np.float64)
    seen, width = float(units.sum()), SAME * max(1.0, float(np.abs(units).sum()))
    # A unit without a difference has no sign to flip, and would only dilute the draws.
    units = units[np.abs(units) > SAME]
    if len(units) == 0:
        return 1.0
    if len(units) > BOOTSTRAP_LIMIT:
        return _normal_below(seen / math.sqrt(float(np.square(units).sum())))
    # Where chosen units keep a + and the others get a -, the sum is twice the chosen minus all.
    most = (seen + width + float(units.sum())) / 2
    if 2 ** len(units) <= FLIPS:
        chosen = _all_choices(len(units)) @ units
        return int((chosen <= most).sum()) / len(chosen)
    # One is added for what was seen itself: a p of 0 cannot come out of finitely many draws.
    return (1 + int((_chosen_sums(units, seed) <= most).sum())) / (1 + FLIPS)


def bootstrap_p(gains: Sequence[float], seed: int) -> float:
    """How often the t of a resample, around the mean seen, lies at least as far below zero as the
    t of the gains: the studentised bootstrap."""
    import numpy as np

    units = np.asarray(gains, dtype=np.float64)
    n, mean = len(units), math.fsum(gains) / len(gains)
    spread = float(units.std(ddof=1)) if n > 1 else 0.0
    # All gains are equal: there is no t, and no doubt about the direction either.
    if spread <= SAME:
        return float(mean >= 0)
    t = mean / (spread / math.sqrt(n))
    if n > BOOTSTRAP_LIMIT:
        return _normal_below(t)
    errors = units - mean
    # The same seed gives the same resamples: first their means, then their mean squares.
    means, squares = (resample("mean", [one], seed) for one in (errors, errors**2))
    widths = np.sqrt(np.maximum(0.0, squares - means**2) / (n - 1))
    return (1 + int((means <= t * widths + SAME).sum())) / (1 + len(means))


def tango(worse: float, better: float, n: int, z: float) -> tuple[float, float]:
    """The score interval of a difference of paired shares, (better − worse) / n: for pairs what
    Wilson's is for one share."""
    share = (better - worse) / n
    return (
        _crossing(lambda delta: _score(worse, better, n, delta) - z, -1.0, share),
        _crossing(lambda delta: _score(worse, better, n, delta) + z, share, 1.0),
    )


def _score(worse: float, better: float, n: int, delta: float) -> float:
    """Tango's statistic: falls from +∞ to −∞ as the supposed difference grows."""
    b = -worse - better + (2 * n - better + worse) * delta
    c = -worse * delta * (1 - delta)
    q = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
    variance = n * (2 * q + delta * (1 - delta))
    distance = better - worse - n * delta
    if variance <= 0:
        return math.copysign(math.inf, distance) if distance else 0.0
    return distance / math.sqrt(variance)


def tango_scores(worse: Floats, better: Floats, n: int, delta: float) -> Floats:
    """The same statistic of many outcomes at once, for one supposed difference."""
    import numpy as np

    b = -worse - better + (2 * n - better + worse) * delta
    c = -worse * delta * (1 - delta)
    q = (np.sqrt(np.maximum(0.0, b * b - 8 * n * c)) - b) / (4 * n)
    variance = n * (2 * q + delta * (1 - delta))
    distance = better - worse - n * delta
    known = variance > 0
    spread = np.sqrt(np.where(known, variance, 1.0))
    certain = np.where(distance == 0, 0.0, np.copysign(np.inf, distance))
    scores: Floats = np.where(known, distance / spread, certain)
    return scores


def _crossing(falls: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(200):
        # Halving until the numbers cannot be halved any further: no tolerance to choose or explain.
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if falls(middle) > 0 else (low, middle)
    return high


def binomial_tail(total: int, chance: float, least: int) -> float:
    """P(X ≥ least), exactly, where each of `total` comes about with this chance by itself."""
    if least <= 0:
        return 1.0
    if least > total or chance <= 0:
        return 0.0
    if chance >= 1:
        return 1.0
    # The shorter way from the edge outwards, where every term is smaller than the one before it.
    if least <= total * chance:
        return max(0.0, 1.0 - binomial_tail(total, 1 - chance, total - least + 1))
    log_first = (
        math.lgamma(total + 1)
        - math.lgamma(least + 1)
        - math.lgamma(total - least + 1)
        + least * math.log(chance)
        + (total - least) * math.log1p(-chance)
    )
    term, terms = 1.0, [1.0]
    odds = chance / (1 - chance)
    for hits in range(least, total):
        term *= odds * (total - hits) / (hits + 1)
        if term < 1e-18:
            break
        terms.append(term)
    return min(1.0, math.exp(log_first) * math.fsum(terms))


def _unit_sums(pairs: Pairs) -> Floats:
    import numpy as np

    if pairs.clusters is None:
        return np.asarray(pairs.gains, dtype=np.float64)
    return np.asarray(sums_by_cluster((pairs.gains,), pairs.clusters)[0], dtype=np.float64)


def _all_choices(units: int) -> Floats:
    """Every way to choose some of the units, a row of 0 and 1 each."""
    import numpy as np

    return ((np.arange(2**units)[:, None] >> np.arange(units)) & 1).astype(np.float64)


def _chosen_sums(units: Floats, seed: int) -> Floats:
    """The sum of units chosen by the toss of a coin, FLIPS times. Eight units share a random
    byte, whose 256 sums are added up once."""
    import numpy as np

    rng = make_generator(seed)
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64)
    sums = np.zeros(FLIPS)
    for start in range(0, len(units), 8):
        eight = units[start : start + 8]
        table = (bits[:, : len(eight)] * eight).sum(axis=1)
        sums += table.take(np.frombuffer(rng.bytes(FLIPS), dtype=np.uint8))
    return sums


def _normal_below(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2
