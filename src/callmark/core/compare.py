"""Two sides in, one comparison out: every metric over the samples that both answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from callmark.core.compare_decide import Ruling, decided, rulings
from callmark.core.compare_match import Matched, match
from callmark.core.compare_metrics import MetricPart, PairedSides, parts_of
from callmark.core.compare_records import (
    MARGIN,
    MOST_DROPPED,
    PRIMARY,
    Check,
    Compared,
    Comparison,
    Listed,
    PairCounts,
    PointCheck,
)
from callmark.core.compare_side import COMPARED_INPUTS, Side, check_inputs
from callmark.core.jsontext import Json
from callmark.core.metrics import Subset
from callmark.core.paired import SAME, Pairs
from callmark.core.trials import Trials
from callmark.errors import FingerprintMismatch, UsageError

SEED = 42
F1 = "integration_f1_macro_lax"
GROUP_METRICS = (F1, "integration_f1_macro_strict", "call_f1_macro", "valid_call_rate")
SHOWN = 5  # sample ids in a message


class CompareOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`common`: only samples that are the same on both sides; else runs over other data are
    refused. `max_f1_delta`: the point check of that name."""

    primary: tuple[str, ...] = PRIMARY
    margin: Annotated[float, msgspec.Meta(gt=0, lt=1)] = MARGIN
    common: bool = False
    as_stored: bool = False
    max_f1_delta: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    seed: int = SEED
    scorer_version: str | None = None


def compare_sides(a: Side, b: Side, options: CompareOptions) -> Comparison:
    """Raises FingerprintMismatch where the two are not comparable."""
    checks = check_inputs(a, b)
    refuse_others(checks, a.inputs(), b.inputs(), common=options.common)
    # Two models call differently, so they are served other fixtures: a sign of an edit only where
    # the fixtures as a whole are not known to be the same.
    hashes = ["item", "tools"] + ["fixtures"] * (checks["fixtures_sha256"] != "equal")
    matched = match(a, b, leave_out=hashes if options.common else ())
    checks["span_extractor"] = "different" if matched.other_extractor.count else "equal"
    _refuse_pairs(matched)
    sides = PairedSides(a, b, matched, options.seed)
    parts = sides.parts()
    found = _ruled(sides, parts, options, _why_open(matched.counts, options))
    decision, reason = decided(found)
    groups = _groups(sides)
    compared = {name: sides.compared(part) for name, part in parts.items()}
    return Comparison(
        decision=decision,
        decision_reason=reason,
        paired=True,
        a=a.facts(),
        b=b.facts(),
        comparable=checks,
        common=options.common,
        as_stored=options.as_stored,
        scorer_version=options.scorer_version,
        margin=options.margin,
        seed=options.seed,
        pairs=matched.counts,
        primary=tuple(_with_ruling(compared[name], found[name]) for name in options.primary),
        exploratory=(
            *(one for name, one in compared.items() if name not in options.primary),
            *sides.chance(),
        ),
        flips={name: sides.flips(parts[name]) for name in options.primary},
        point_check=point_check(compared[F1].difference, options.max_f1_delta),
        warnings=tuple(_warnings(checks, matched, options)),
        by_tool=groups["by_tool"],
        by_slice=groups["by_slice"],
        by_locale=groups["by_locale"],
    )


def point_check(difference: float | None, limit: float | None) -> PointCheck | None:
    """The parity of two runs, as a plain limit on the difference."""
    if limit is None:
        return None
    delta = None if difference is None else abs(difference)
    ok = None if delta is None else delta <= limit + SAME
    return PointCheck(metric=F1, delta=delta, limit=limit, ok=ok)


def refuse_others(
    checks: Mapping[str, Check], a: Mapping[str, Json], b: Mapping[str, Json], *, common: bool
) -> None:
    """With `common` the samples themselves say what changed; how they are read must be the same
    in any case."""
    edited = () if common else COMPARED_INPUTS
    differing = [
        name
        for name, check in checks.items()
        if check == "different" and (name in edited or name not in COMPARED_INPUTS)
    ]
    if not differing:
        return
    lines = [f"  {name}: A has {_value(a[name])}, B has {_value(b[name])}" for name in differing]
    advice = "Score both again with the same settings."
    if all(name in COMPARED_INPUTS for name in differing):
        advice = "Compare the samples that are still the same with --common."
    raise FingerprintMismatch("\n".join(["the runs are not comparable:", *lines, advice]))


def _value(value: Json) -> str:
    return "several" if value is None else str(value)


def _refuse_pairs(matched: Matched) -> None:
    for what, pairs in (
        ("the sample itself (prompt or metadata)", matched.other_items),
        ("span_extractor", matched.other_extractor),
    ):
        if pairs.count:
            raise FingerprintMismatch(
                f"the runs are not comparable: {pairs.count} samples differ in {what}:"
                f" {_shown(pairs)}; compare the ones that are the same with --common"
            )


def check_primary(names: Sequence[str]) -> None:
    """Refuses what cannot be tested, before anything is read."""
    nothing = parts_of(Subset(Trials().samples(), (), 0))
    testable = [name for name, part in nothing.items() if part.is_testable]
    if not names:
        raise UsageError("primary_metrics: name at least one metric to decide about")
    for name in names:
        if name in testable:
            continue
        what = "is no metric of a sample"
        if name in nothing:
            what = "is pooled over samples and has no value for each"
        raise UsageError(f"primary_metrics: {name} {what}; known: {', '.join(testable)}")


def _ruled(
    sides: PairedSides,
    parts: Mapping[str, MetricPart],
    options: CompareOptions,
    open_reason: str | None,
) -> dict[str, Ruling]:
    primary: dict[str, Pairs] = {name: sides.pairs(parts[name]) for name in options.primary}
    return rulings(primary, margin=options.margin, seed=options.seed, open_reason=open_reason)


def _why_open(counts: PairCounts, options: CompareOptions) -> str | None:
    missing = counts.dropped.count
    if not options.common:  # samples that only one side has are as good as lost
        missing += counts.removed.count + counts.added.count
    total = counts.paired + missing
    if not total or missing / total <= MOST_DROPPED + SAME:
        return None
    return f"{missing} of {total} pairs are missing, more than {MOST_DROPPED:.0%}"


def _with_ruling(compared: Compared, ruling: Ruling) -> Compared:
    return msgspec.structs.replace(compared, role="primary", **msgspec.structs.asdict(ruling))


def _groups(sides: PairedSides) -> dict[str, dict[str, tuple[Compared, ...]]]:
    """The main metrics by tool, slice and locale."""
    found: dict[str, dict[str, tuple[Compared, ...]]] = {}
    for group, subsets in sides.groups().items():
        found[group] = {}
        for name, subset in subsets.items():
            parts = parts_of(subset)
            found[group][name] = tuple(sides.compared(parts[metric]) for metric in GROUP_METRICS)
    return found


def _warnings(checks: Mapping[str, Check], matched: Matched, options: CompareOptions) -> list[str]:
    found = [
        f"{name}: not known on both sides, so unchecked"
        for name, check in checks.items()
        if check == "unchecked"
    ]
    counts = matched.counts
    if not options.common:
        for side, only in (("A", counts.removed), ("B", counts.added)):
            if only.count:
                found.append(f"{only.count} samples are only in {side}: {_shown(only)}")
    if matched.other_tools.count:
        found.append(
            f"{matched.other_tools.count} samples were offered other tools: "
            f"{_shown(matched.other_tools)}"
        )
    if counts.changed_in.get("fixtures"):
        found.append(
            f"{counts.changed_in['fixtures']} samples were served other fixtures and are left out;"
            " where two models call differently, this favours those that call alike"
        )
    return found


def _shown(listed: Listed) -> str:
    more = f" and {listed.count - SHOWN} more" if listed.count > SHOWN else ""
    return ", ".join(listed.sample_ids[:SHOWN]) + more
