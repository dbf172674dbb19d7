"""The probe's numbers, from yes and no per case: did the fine-tune cost valid calls?

`regression` needs both: a drop below the floor, and an exact one-sided McNemar test that chance
does not explain it. `no_regression` needs a bound: the largest drop that chance could hide is
smaller than the floor allows. Between them, enough cases without a drop are `no_drop_seen`, which
says what is not ruled out; few cases are inconclusive, never fine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from callmark.probe.records import Decision
from callmark.stats.estimates import (
    ALPHA,
    SAME,
    Z_ONE_SIDED,
    binomial_tail,
    fewest_lost,
    mcnemar,
    tango,
    tango_scores,
)

MIN_CASES = 20  # fewer cases without a drop say nothing
MIN_STD = 1e-6  # a spread that is smaller is rounding
NULLS_BELOW_BASE = 0.05  # the gate on z needs nulls that lose at least so much of the format
_DEGENERATE = 0.5


class ValidityChange(msgspec.Struct, frozen=True, kw_only=True):
    """Two views on the same cases. `lost` were valid before and are not now, `gained` the other
    way round. `smallest_drop`: the smallest drop that could have been called a regression, with
    so many cases of which so many were valid before; None if no drop could. `lower_bound`: the
    one-sided 95 % bound of the change (Tango's)."""

    n: int
    base_valid: int
    tuned_valid: int
    lost: int
    gained: int
    p: float
    smallest_drop: float | None
    lower_bound: float
    decision: Decision

    @property
    def base_rate(self) -> float:
        return self.base_valid / self.n

    @property
    def tuned_rate(self) -> float:
        return self.tuned_valid / self.n

    @property
    def delta(self) -> float:
        # Of counts, not of rates: 0.95 - 1.0 is a little less than -0.05.
        return (self.tuned_valid - self.base_valid) / self.n


def validity_change(
    base: Sequence[bool | int], tuned: Sequence[bool | int], floor: float
) -> ValidityChange:
    """Decide about two vectors of yes and no, one entry per case, at least one."""
    pairs = [(bool(before), bool(now)) for before, now in zip(base, tuned, strict=True)]
    n, lost, gained = len(pairs), pairs.count((True, False)), pairs.count((False, True))
    base_valid = lost + pairs.count((True, True))
    tuned_valid = base_valid - lost + gained
    p, bound = mcnemar(lost, gained), tango(lost, gained, n, Z_ONE_SIDED)[0]
    decision: Decision = "inconclusive"
    if base_valid or tuned_valid:  # without a single call there is nothing to decide about
        if (gained - lost) / n < floor - SAME:
            decision = "regression" if p <= ALPHA else "inconclusive"
        elif bound > floor and _is_sure(lost, gained, n, floor):
            decision = "no_regression"
        elif n >= MIN_CASES:
            decision = "no_drop_seen"
    return ValidityChange(
        n=n,
        base_valid=base_valid,
        tuned_valid=tuned_valid,
        lost=lost,
        gained=gained,
        p=p,
        smallest_drop=smallest_drop(n, base_valid, floor),
        lower_bound=bound,
        decision=decision,
    )


def smallest_drop(n: int, base_valid: int, floor: float) -> float | None:
    """The smallest drop that n cases could have shown: beyond the floor, and so many cases lost
    (none gained) that the test can speak."""
    beyond_floor = math.floor(-floor * n + SAME) + 1
    lost = max(fewest_lost(), beyond_floor)
    return lost / n if lost <= base_valid else None


MOST_EXACT = 300  # cases; beyond them every outcome takes too long to be looked at
Z_BEYOND = 1.7507  # one-sided 96 %: what keeps Tango's bound wrong in less than 5 of 100 there
_SHARES = 101  # of gained cases that are tried


def _is_sure(lost: int, gained: int, n: int, floor: float) -> bool:
    """Tango's bound is an approximation and a little too sure: at a true drop of 5 points, 64 cases
    of which nearly all change would claim too much in 6 of 100 runs. The exact distribution has
    the last word: whatever share of the cases changes, an outcome that looks as good must be
    rare."""
    if n > MOST_EXACT:
        return tango(lost, gained, n, Z_BEYOND)[0] > floor and (
            gained > 0 or _chance_of_few(lost, n, floor) <= ALPHA
        )
    return _chance_of_as_good(lost, gained, n, floor) <= ALPHA


def _chance_of_few(lost: int, n: int, floor: float) -> float:
    """Of at most so many losses, where cases are only lost, at the floor's rate."""
    return 1.0 - binomial_tail(n, min(1.0, max(0.0, -floor)), lost + 1)


@cache
def _chance_of_as_good(lost: int, gained: int, n: int, floor: float) -> float:
    """Of an outcome that Tango's statistic puts no lower than this one, at a true change of exactly
    the floor; of all shares of gained cases the one that makes it most likely."""
    import numpy as np

    worse, better = (each.ravel() for each in np.indices((n + 1, n + 1), dtype=np.float64))
    possible = worse + better <= n
    worse, better = worse[possible], better[possible]
    scores = tango_scores(worse, better, n, floor)
    seen = scores[(worse == lost) & (better == gained)][0]
    as_good = scores >= seen - SAME
    counts = np.stack([worse, better, n - worse - better])[:, as_good]
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    ways = logs[n] - logs[counts.astype(int)].sum(axis=0)
    low, high = max(0.0, floor), (1.0 + floor) / 2
    likely = 0.0
    for share in low + (high - low) * np.linspace(0, 1, _SHARES) ** 2:  # most change in few cases
        chances = np.array([share - floor, share, max(0.0, 1 - 2 * share + floor)])
        never = (chances <= 0)[:, None] & (counts > 0)
        spread = counts.T @ np.log(np.where(chances > 0, chances, 1.0))
        likely = max(likely, float(np.exp(ways + spread)[~never.any(axis=0)].sum()))
    return likely


POWER = 0.8
MOST_CASES = 20_000
LONGEST_TOOTH = 25  # with a floor of 5 points every twentieth case allows one more loss


def power_of(n: int, lost: float, gained: float, floor: float) -> float:
    """The chance that n cases are called a regression, where the fine-tune spoils the calls of this
    share of them and repairs those of that share. Exact, but for what is rarer than 1e-12."""
    either = lost + gained
    if either <= 0:
        return 0.0
    spread = 8 * math.sqrt(n * either * (1 - either)) + 8
    low, high = max(0, math.floor(n * either - spread)), min(n, math.ceil(n * either + spread))
    return math.fsum(
        _binomial(n, either, differ) * binomial_tail(differ, lost / either, least)
        for differ in range(low, high + 1)
        if (least := _fewest_of(differ, n, floor)) is not None
    )


def cases_needed(drop: float, gained: float, floor: float, power: float = POWER) -> int | None:
    """So many cases find a drop of this size with this power, and so do all larger numbers; None:
    not even a great many do."""

    @cache
    def is_enough(n: int) -> bool:
        return power_of(n, drop + gained, gained, floor) >= power

    def suffices(n: int) -> bool:
        # The power of an exact test rises in teeth: a lucky n must not be taken for the answer.
        return all(is_enough(one) for one in range(n, n + LONGEST_TOOTH))

    high = fewest_lost()
    while not suffices(high):
        high *= 2
        if high > MOST_CASES:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def cases_to_rule_out(floor: float) -> int:
    """So many cases without any loss or gain say that no drop beyond the floor is hidden."""
    n = 1
    while validity_change([1] * n, [1] * n, floor).decision != "no_regression":
        n += 1
    return n


def _fewest_of(differ: int, n: int, floor: float) -> int | None:
    """Of so many cases that differ, how many must be lost to make a regression."""
    beyond = math.floor((differ - floor * n) / 2 + SAME) + 1  # lost − gained > −floor · n
    least = max(beyond, _fewest_significant(differ))
    return least if least <= differ else None


@cache
def _fewest_significant(differ: int) -> int:
    low, high = (differ + 1) // 2, differ + 1
    while low < high:
        middle = (low + high) // 2
        if mcnemar(middle, differ - middle) <= ALPHA:
            high = middle
        else:
            low = middle + 1
    return low


def _binomial(n: int, chance: float, hits: int) -> float:
    if chance >= 1:
        return float(hits == n)
    ways = math.lgamma(n + 1) - math.lgamma(hits + 1) - math.lgamma(n - hits + 1)
    return math.exp(ways + hits * math.log(chance) + (n - hits) * math.log1p(-chance))


class NullStats(msgspec.Struct, frozen=True, kw_only=True):
    """What random adapters of the same shape reach. Each part may be unknown."""

    mean: float | None = None
    std: float | None = None
    n: int | None = None
    degenerate: bool | float = False

    def z(self, rate: float) -> float | None:
        """The distance from the nulls in their own spread; None where they have none."""
        if self.mean is None or self.std is None or (self.n is not None and self.n <= 1):
            return None
        if self.degenerate >= _DEGENERATE or not MIN_STD < self.std < math.inf:
            return None
        z = (rate - self.mean) / self.std
        return z if math.isfinite(z) else None


def null_stats_of(rates: Sequence[float]) -> NullStats | None:
    """Mean and standard deviation of what the nulls reached, taken for the whole population;
    None without nulls."""
    if not rates:
        return None
    n, mean = len(rates), math.fsum(rates) / len(rates)
    squares = math.fsum((rate - mean) ** 2 for rate in rates)
    std = math.sqrt(squares / n)
    return NullStats(mean=mean, std=std, n=n, degenerate=n <= 1 or std <= MIN_STD)


def z_by_rank(rate: float, by_rank: Mapping[str, NullStats] | None) -> dict[str, float] | None:
    """z against the nulls of each rank; ranks without one are left out."""
    found = {name: z for name, stats in (by_rank or {}).items() if (z := stats.z(rate)) is not None}
    return found or None


def rank_text(rate: float, rates: Sequence[float], stats: NullStats | None) -> str | None:
    """Where nulls have no spread, all that can be said: `5 nulls: p ≥ 1/6`."""
    if rates:
        k, reached = len(rates), sum(1 for null in rates if null >= rate - SAME)
    elif stats is not None and stats.n and stats.mean is not None:
        k = stats.n
        reached = k if stats.mean >= rate - SAME else 0
    else:
        return None
    return f"{k} null{'' if k == 1 else 's'}: p ≥ {1 + reached}/{k + 1}"


def z_gate_applies(stats: NullStats | None, base_rate: float) -> bool:
    """Nulls that keep the format cannot tell a good adapter from none."""
    return (
        stats is not None
        and stats.mean is not None
        and stats.mean < base_rate - NULLS_BELOW_BASE - SAME
    )


def score_of(change: ValidityChange, hallucination: float | None, z: float | None) -> float:
    """1 for an adapter that keeps every call and invents no tool, 0 for one that makes no valid
    call or invents every tool. A z only ever lifts it."""
    if change.tuned_valid == 0 or hallucination is None:
        return 0.0
    kept = min(1.0, max(0.0, 1.0 + change.delta)) * max(0.0, 1.0 - hallucination)
    return kept if z is None else max(kept, 0.7 * kept + 0.3 * score_from_z(z))


def score_from_z(z: float) -> float:
    """A logistic curve: 0.5 at no distance, 0.73 at three standard deviations."""
    return 1 / (1 + math.exp(-max(-100.0, min(100.0, z / 3))))
