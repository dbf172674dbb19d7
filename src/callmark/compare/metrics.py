"""The metrics of two sides over their pairs: values, differences, intervals, flips."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress, repeat
from operator import gt, lt, mul, ne, sub
from typing import NamedTuple

import msgspec

from callmark.compare.records import (
    LISTED,
    Compared,
    Decision,
    FallenSample,
    Flips,
    Listed,
    OwnPast,
)
from callmark.compare.sides import MOST_AT_ONCE, Matched, Side, common_measures
from callmark.records.results import Better
from callmark.stats.columns import is_there, take_at
from callmark.stats.estimates import (
    ALPHA,
    SAME,
    Z_TWO_SIDED,
    Interval,
    Pairs,
    Procedure,
    SampledValue,
    Statistic,
    estimate,
    false_discovery,
    fewest_alike,
    fisher,
    holm,
    lower_bound,
    p_worse,
    paired_interval_95,
    procedure_of,
    tango,
)
from callmark.summary.failing import PASSING_F1
from callmark.summary.gates import better_is
from callmark.summary.metrics import (
    Definition,
    Pair,
    Subset,
    cluster_labels,
    count_of,
    defined_parts,
    measure_definition,
)
from callmark.summary.trials import NOT_APPLICABLE, Samples, TrialPlace

_COUNTED_FLAGS = frozenset({"contaminated"})  # columns of a count that hold only yes and no


class MetricPart(NamedTuple):
    """A metric by its name: which samples it is about, what it is made of, and which way it is
    better."""

    name: str
    subset: Subset
    definition: Definition
    better: Better

    @property
    def is_testable(self) -> bool:
        """Whether every sample has a value of its own."""
        return self.definition.made not in ("pooled", "f1")

    @property
    def tells_right(self) -> bool:
        """Whether a value by itself is right or wrong; of a plug-in's number nobody knows."""
        return self.is_yes_no or not self.definition.added

    @property
    def is_yes_no(self) -> bool:
        made, columns = self.definition.made, self.definition.columns
        return made == "rate" or (made == "count" and columns[0] in _COUNTED_FLAGS)

    def is_right(self, value: float) -> bool:
        if self.better == "lower":
            return value <= SAME
        return value >= (1.0 if self.is_yes_no else PASSING_F1) - SAME


class _Both(NamedTuple):
    """The same samples, at these positions of A, on both sides."""

    a: SampledValue
    b: SampledValue
    positions: Sequence[int]


class PairedSides:
    """What both sides have for each pair. Whatever the dataset says is read from A."""

    def __init__(self, a: Side, b: Side, matched: Matched, seed: int) -> None:
        self._a, self._b = a.samples, b.samples
        self._partners, self._alike = matched.partners, matched.alike
        self._seed = seed
        self._repeated = a.samples.repeated or b.samples.repeated
        self._chance_a, self._chance_b = a.chance_pairs, b.chance_pairs
        self._ways = common_measures(a, b)
        self.whole = Subset(self._a, matched.positions, seed)

    def parts(self) -> dict[str, MetricPart]:
        """Of a plug-in's measures only those that one and the same scorer gave on both sides."""
        found = {name: part for name, part in parts_of(self.whole).items() if "." not in name}
        for name, better in self._ways.items():
            kinds = [side.measures.get(name, True) for side in (self._a, self._b)]
            definition = measure_definition(name, yes_no=all(kinds))
            found[name] = MetricPart(name, self.whole, definition, better)
        return found

    def compared(self, part: MetricPart) -> Compared:
        both = self._both(part)
        interval = self._interval(part, both)
        worse = better = None
        if part.is_testable:
            worse, better = self._pairs(part, both).discordant()
        a, b = estimate(both.a), estimate(both.b)
        difference = None if a is None or b is None else b - a
        return Compared(
            metric=part.name,
            role="exploratory",
            better_is=part.better,
            a=a,
            b=b,
            difference=difference,
            ci_95=None if interval is None else (interval.low, interval.high),
            method=None if interval is None else interval.method,
            n=both.a.n,
            worse=worse,
            better=better,
            reason="no pair has a value" if difference is None else None,
        )

    def pairs(self, part: MetricPart) -> Pairs:
        """The gains of a metric that every sample has a value of."""
        return self._pairs(part, self._both(part))

    def flips(self, part: MetricPart) -> Flips:
        lost, gained, neither = array("I"), array("I"), array("I")
        if not part.tells_right:
            return Flips(Listed(), Listed())
        both = self._both(part)
        columns = both.a.columns[0], both.b.columns[0]
        right = {value: part.is_right(value) for value in {*columns[0], *columns[1]}}
        verdicts = (map(right.__getitem__, column) for column in columns)
        for at, was_right, is_right in zip(both.positions, *verdicts, strict=True):
            if was_right != is_right:
                (lost if was_right else gained).append(at)
            elif not is_right:
                neither.append(at)
        return Flips(self._listed(lost), self._listed(gained), self._listed(neither))

    def groups(self) -> dict[str, dict[str, Subset]]:
        """The pairs by what the dataset says about their samples."""
        kept = self._a.place.at(self.whole.positions)
        places = [self._a.places[number] for number in sorted({int(place) for place in kept})]
        locales = {place.locale for place in places if place.locale is not None}
        return {
            "by_tool": self._by({tool for place in places for tool in place.tools}, _has_tool),
            "by_slice": self._by({name for place in places for name in place.slices}, _has_slice),
            "by_locale": self._by(locales, _has_locale),
        }

    def chance(self) -> tuple[Compared, ...]:
        """How well answers fit the results of other samples, where both sides have that."""
        mine, theirs = self._chance_a(), self._chance_b()
        wanted = mine.keys() & theirs.keys()
        named = zip(self.whole.positions, self._names(), strict=True) if wanted else ()
        kept = {name: at for at, name in named if name in wanted}
        if not kept:
            return ()
        labels = cluster_labels(self._a, [*kept.values()])
        chance, lift = (
            [
                SampledValue("mean", ([number(side[name]) for name in kept],), labels)
                for side in (mine, theirs)
            ]
            for number in (_chance_of, _lift_of)
        )
        return self._means("chance_f1", *chance), self._means("grounding_lift", *lift)

    def _names(self) -> Iterable[str]:
        """Of the samples that are pairs, in their order."""
        if len(self._a) > MOST_AT_ONCE:
            return map(self._a.id_at, self.whole.positions)
        return map(self._a.ids().__getitem__, self.whole.positions)

    def _means(self, name: str, a: SampledValue, b: SampledValue) -> Compared:
        mean_a, mean_b = (math.fsum(side.columns[0]) / side.n for side in (a, b))
        interval = paired_interval_95(a, b, self._seed)
        return Compared(
            metric=name,
            role="exploratory",
            better_is=better_is(name),
            a=mean_a,
            b=mean_b,
            difference=mean_b - mean_a,
            ci_95=None if interval is None else (interval.low, interval.high),
            method=None if interval is None else interval.method,
            n=a.n,
        )

    def _both(self, part: MetricPart) -> _Both:
        definition, partners = part.definition, self._partners
        kept = self._applicable(definition, part.subset.over(definition.over))
        theirs = take_at(partners, kept)
        statistic: Statistic = "mean"
        if definition.made in ("rate", "pooled", "f1"):
            statistic = definition.made
        labels = cluster_labels(self._a, kept)
        a, b = (
            SampledValue(statistic, _columns(side, definition, at), labels, self._repeated)
            for side, at in ((self._a, kept), (self._b, theirs))
        )
        return _Both(a, b, kept)

    def _applicable(self, definition: Definition, places: Sequence[int]) -> array[int]:
        """Those of the places for which both sides have a value (for a pooled share: in which
        either has a part)."""
        pooled = definition.made == "pooled"
        name = definition.columns[1 if pooled else 0]
        nothing = 0 if pooled else NOT_APPLICABLE
        fits = is_there if definition.added else partial(ne, nothing)
        a, b = (
            side.measure(name) if definition.added else side.column(name)
            for side in (self._a, self._b)
        )
        mine, theirs = a.fitting(fits, places), b.fitting(fits, take_at(self._partners, places))
        return array("I", compress(places, mine | theirs if pooled else mine & theirs))

    def _pairs(self, part: MetricPart, both: _Both) -> Pairs:
        sign = -1.0 if part.better == "lower" else 1.0
        before, now = both.a.columns[0], both.b.columns[0]
        gains = array("d", map(mul, repeat(sign), map(sub, now, before)))
        alike = all(map(self._alike.__getitem__, both.positions))
        return Pairs(gains, part.is_yes_no, both.a.clusters, both.a.repeated, alike)

    def _interval(self, part: MetricPart, both: _Both) -> Interval | None:
        is_plain = both.a.clusters is None and not both.a.repeated
        if not part.is_yes_no or not is_plain or not both.a.n:
            return paired_interval_95(both.a, both.b, self._seed)
        before, now = both.a.columns[0], both.b.columns[0]
        down, up = sum(map(lt, now, before)), sum(map(gt, now, before))
        return Interval(*tango(down, up, both.a.n, Z_TWO_SIDED), "tango")

    def _by(self, names: set[str], has: Callable[[TrialPlace, str], bool]) -> dict[str, Subset]:
        return {
            name: self.whole.where(lambda place, name=name: has(place, name))  # type: ignore[misc]
            for name in sorted(names)
        }

    def _listed(self, positions: Sequence[int]) -> Listed:
        return _list_samples(self._a, positions)


def parts_of(subset: Subset) -> dict[str, MetricPart]:
    return {
        name: MetricPart(name, *found, better_is(name))
        for name, found in defined_parts(subset).items()
    }


def _chance_of(pair: Pair) -> float:
    return pair.chance


def _lift_of(pair: Pair) -> float:
    return pair.own - pair.chance


def _columns(
    side: Samples, definition: Definition, positions: Sequence[int]
) -> tuple[Sequence[float], ...]:
    column = side.measure if definition.added else side.column
    columns = [column(name).taken(positions) for name in definition.columns]
    if definition.made != "difference":
        return tuple(columns)
    return (array("d", map(float.__sub__, *columns)),)


def _has_tool(place: TrialPlace, name: str) -> bool:
    return name in place.tools


def _has_slice(place: TrialPlace, name: str) -> bool:
    return name in place.slices


def _has_locale(place: TrialPlace, name: str) -> bool:
    return place.locale == name


class _SampleTrials(NamedTuple):
    """How many trials of a sample pass, and how many there are, on both sides."""

    hits_a: int
    total_a: int
    hits_b: int
    total_b: int

    @property
    def is_lower(self) -> bool:
        return self.hits_b * self.total_a < self.hits_a * self.total_b

    @property
    def p(self) -> float:
        return fisher(*self)

    @property
    def smallest_p(self) -> float:
        """With so many passes on both sides together, had B as few of them as it can."""
        return self._with(max(0, self.hits_a + self.hits_b - self.total_a)).p

    @property
    def can_tell(self) -> bool:
        """Whether it would be clear if B passed none."""
        return fisher(self.hits_a, self.total_a, 0, self.total_b) <= ALPHA

    def _with(self, hits_b: int) -> _SampleTrials:
        return self._replace(hits_a=self.hits_a + self.hits_b - hits_b, hits_b=hits_b)


def judge_samples(a: Side, b: Side, matched: Matched) -> OwnPast:
    """Each sample against its own trials in A. Only samples that could have shown a fall are in the
    family that is adjusted for (Tarone's idea, with a false discovery rate)."""
    if not (a.samples.repeated or b.samples.repeated):
        return OwnPast(status="n/a")
    (hits_a, totals_a), (hits_b, totals_b) = a.passes(), b.passes()
    counted = {
        at: _SampleTrials(hits_a[at], totals_a[at], hits_b[partner], totals_b[partner])
        for at in matched.positions
        for partner in (matched.partners[at],)
    }
    # Many samples have the same counts: each is computed once.
    smallest = {one: one.smallest_p for one in set(counted.values())}
    tested = [at for at, one in counted.items() if smallest[one] <= ALPHA]
    ps = {one: one.p for one in set(counted.values())}
    adjusted = dict(zip(tested, false_discovery([ps[counted[at]] for at in tested]), strict=True))
    fallen = [at for at in tested if adjusted[at] <= ALPHA and counted[at].is_lower]
    clear = set(fallen)
    lower = [at for at, one in counted.items() if one.is_lower and at not in clear]
    is_open = {one: p <= ALPHA or not one.can_tell for one, p in ps.items() if one.is_lower}
    unclear = [at for at in lower if is_open[counted[at]]]
    within = [at for at in lower if not is_open[counted[at]]]
    return OwnPast(
        status="fail" if fallen else "inconclusive" if unclear else "pass",
        tested=len(tested),
        fallen_count=len(fallen),
        fallen=tuple(
            _fallen(a.samples.id_at(at), counted[at], adjusted[at]) for at in fallen[:LISTED]
        ),
        within=_list_samples(a.samples, within),
        open=_list_samples(a.samples, unclear),
    )


def _fallen(sample_id: str, one: _SampleTrials, adjusted: float) -> FallenSample:
    return FallenSample(
        sample_id=sample_id,
        passed_a=one.hits_a,
        trials_a=one.total_a,
        passed_b=one.hits_b,
        trials_b=one.total_b,
        p=one.p,
        p_adjusted=adjusted,
    )


def _list_samples(samples: Samples, positions: Sequence[int]) -> Listed:
    return Listed(len(positions), tuple(map(samples.id_at, positions[:LISTED])))


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


def decide(found: Mapping[str, Ruling], past: OwnPast | None = None) -> tuple[Decision, str]:
    """All of them together: one regression is one, and so is a sample that fell below its own past;
    not worse needs every metric that has pairs."""
    if past is None or not past.fallen_count:
        return _decide_by_metrics(found)
    decision, reason = _decide_by_metrics(found)
    many = count_of(past.fallen_count, "sample")
    fell = f"{many} fell below {'its' if past.fallen_count == 1 else 'their'} own past"
    return "regression", f"{reason}; {fell}" if decision == "regression" else fell


def _decide_by_metrics(found: Mapping[str, Ruling]) -> tuple[Decision, str]:
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
    # First, and also within the margin: a loss that is certain is told, however small it is.
    if math.fsum(pairs.gains) < 0 and adjusted <= ALPHA:
        return "regression", "small: even its bound lies within the margin" if is_within else None
    if is_within:
        return "non_inferior", None
    # The bound knows only that nothing differs in n samples; equal answers cannot be worse at all.
    if pairs.alike:
        return "non_inferior", "all answers are the same"
    if bound is None:
        return "inconclusive", "fewer than two independent samples"
    needed = fewest_alike(margin)
    hint = (
        f"; {count_of(pairs.n, 'sample')}, at least {needed} are needed" if pairs.n < needed else ""
    )
    return "inconclusive", f"B may be worse by {-bound:.3f}, the margin is {margin:g}{hint}"
