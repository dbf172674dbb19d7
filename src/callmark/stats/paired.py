"""Tests and intervals for pairs: the same samples, answered by two sides.

Every p is one-sided: how often chance alone would make B look at least this much worse than A.
`gain` is B − A, turned round where a lower number is the better one, so negative means worse."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from callmark.stats.estimates import (
    BOOTSTRAP_LIMIT,
    Z_ONE_SIDED,
    make_generator,
    resample,
    sums_by_cluster,
)

if TYPE_CHECKING:
    from callmark.stats.estimates import Floats

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
        return 1.0 if worse == 0 else 1.0 - _upper_tail(total, better + 1)
    return _upper_tail(total, worse)


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


def _crossing(falls: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(200):
        # Halving until the numbers cannot be halved any further: no tolerance to choose or explain.
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if falls(middle) > 0 else (low, middle)
    return high


def _upper_tail(total: int, least: int) -> float:
    """P(X ≥ least) of a fair coin tossed `total` times, least above the middle."""
    if least > total:
        return 0.0
    log_first = (
        # By logarithms: the factorials of a thousand pairs do not fit into a float.
        math.lgamma(total + 1) - math.lgamma(least + 1) - math.lgamma(total - least + 1)
    ) - total * math.log(2)
    term, terms = 1.0, [1.0]
    for heads in range(least, total):
        term *= (total - heads) / (heads + 1)
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
