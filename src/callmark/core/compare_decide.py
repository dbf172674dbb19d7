"""Is B worse than A? Decided on vectors: one gain per sample, for each primary metric.

`regression`: worse, and after Holm's adjustment chance explains it in at most 5 of 100 cases.
`non_inferior`: the one-sided 95 % bound of the gain lies above −margin, or both sides gave the
very same answers. Else `inconclusive`."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from callmark.core.compare_records import Decision
from callmark.core.paired import (
    ALPHA,
    Pairs,
    Procedure,
    fewest_alike,
    holm,
    lower_bound,
    p_worse,
    procedure_of,
)


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about one primary metric. Without a pair: nothing."""

    test: Procedure | None = None
    p: float | None = None
    p_adjusted: float | None = None
    bound: float | None = None
    decision: Decision | None = None
    reason: str | None = None


def rulings(
    primary: Mapping[str, Pairs], *, margin: float, seed: int, open_reason: str | None = None
) -> dict[str, Ruling]:
    """One ruling per metric; those without a pair are not in the family that Holm adjusts for.
    `open_reason`: why nothing may be decided at all."""
    ps = {name: p for name, pairs in primary.items() if (p := p_worse(pairs, seed)) is not None}
    adjusted = dict(zip(ps, holm(list(ps.values())), strict=True))
    return {
        name: _ruling(pairs, ps[name], adjusted[name], margin, open_reason)
        if name in ps
        else Ruling(reason="no pair has a value")
        for name, pairs in primary.items()
    }


def decided(found: Mapping[str, Ruling]) -> tuple[Decision, str]:
    """All of them together: one regression is one; not worse needs every metric that has pairs."""
    by_decision: dict[Decision, list[str]] = {}
    for name, ruling in found.items():
        if ruling.decision is not None:
            by_decision.setdefault(ruling.decision, []).append(name)
    if "regression" in by_decision:
        return "regression", f"worse: {', '.join(by_decision['regression'])}"
    if "inconclusive" in by_decision:
        names = by_decision["inconclusive"]
        reasons = {found[name].reason for name in names}
        shared = f" ({reasons.pop()})" if len(reasons) == 1 else ""
        return "inconclusive", f"open: {', '.join(names)}{shared}"
    if "non_inferior" in by_decision:
        return "non_inferior", f"not worse: {', '.join(by_decision['non_inferior'])}"
    return "inconclusive", "no primary metric has a pair"


def _ruling(
    pairs: Pairs, p: float, adjusted: float, margin: float, open_reason: str | None
) -> Ruling:
    bound = lower_bound(pairs)
    decision: Decision = "inconclusive"
    reason = open_reason
    if open_reason is None:
        decision, reason = _decision(pairs, adjusted, bound, margin)
    return Ruling(
        test=procedure_of(pairs),
        p=p,
        p_adjusted=adjusted,
        bound=bound,
        decision=decision,
        reason=reason,
    )


def _decision(
    pairs: Pairs, adjusted: float, bound: float | None, margin: float
) -> tuple[Decision, str | None]:
    is_within = bound is not None and bound > -margin
    if math.fsum(pairs.gains) < 0 and adjusted <= ALPHA:
        return "regression", "small: even its bound lies within the margin" if is_within else None
    if is_within:
        return "non_inferior", None
    if pairs.alike:
        return "non_inferior", "all answers are the same"
    if bound is None:
        return "inconclusive", "fewer than two independent samples"
    needed = fewest_alike(margin)
    hint = f"; {pairs.n} samples, at least {needed} are needed" if pairs.n < needed else ""
    return "inconclusive", f"B may be worse by {-bound:.3f}, the margin is {margin:g}{hint}"
