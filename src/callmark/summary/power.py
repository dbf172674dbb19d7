"""What the number of samples can tell: how often a gate fails a model of a given true rate."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import assert_never

from callmark.records.report import GateOutcome, GateRule, Power, PowerAt
from callmark.stats.estimates import Z_ONE_SIDED, binomial_tail, wilson
from callmark.summary.gates import TOLERANCE, allowed_misses, is_satisfied, kind_of

_POWER_STEPS = (0.10, 0.05, 0.01)  # from a bound that leaves no room beyond it


def power_of(rules: Iterable[GateRule], outcomes: Iterable[GateOutcome]) -> Power | None:
    """What the samples behind the first gate that could have proved the model can tell; None: no
    such gate was judged, or none of them can fail."""
    by_name = {rule.name: rule for rule in rules}
    judged = (one for one in outcomes if one.status not in ("inconclusive", "n/a"))
    proofs = (one for one in judged if kind_of(by_name[one.name]).proof)
    found = next((one for one in proofs if one.policy != "warning_only"), None)
    if found is None:
        return None
    rule, n = by_name[found.name], found.n
    # More misses never mend a gate: the fewest that fail it are found by halving.
    fewest = bisect_left(range(n + 1), True, key=lambda misses: _fails_by(rule, n, misses))
    at = (
        PowerAt(rate, binomial_tail(n, _miss_chance(rule, rate), fewest))
        for rate in _true_rates(rule)
    )
    return Power(found.name, n, tuple(at))


def _true_rates(rule: GateRule) -> tuple[float, ...]:
    """A clearly bad one, the bound itself, a good one; from the worst to the best."""
    sign = 1 if kind_of(rule).better == "higher" else -1
    room = 1 - rule.bound if sign > 0 else rule.bound
    if room < TOLERANCE:
        return tuple(round(rule.bound - sign * step, 6) for step in _POWER_STEPS)
    bad = min(1.0, max(0.0, rule.bound - sign * 0.1))
    return tuple(round(rate, 6) for rate in (bad, rule.bound, rule.bound + sign * 0.8 * room))


def _miss_chance(rule: GateRule, rate: float) -> float:
    return 1 - rate if kind_of(rule).better == "higher" else rate


def _fails_by(rule: GateRule, n: int, misses: int) -> bool:
    """Whether `misses` of `n` samples, all wrong, fail the gate where the others are all right."""
    is_lower = kind_of(rule).better == "lower"
    hits = misses if is_lower else n - misses
    match rule.policy:
        case "hard_fail":
            return not is_satisfied(rule, hits / n)
        case "count_based_misses":
            return not is_satisfied(rule, hits / n) and misses > allowed_misses(rule, n)
        case "clear_fail" | "confident":
            low, high = wilson(hits, n, Z_ONE_SIDED)
            return not is_satisfied(rule, low if is_lower else high)
        case "warning_only":
            return False
        case _:
            assert_never(rule.policy)
