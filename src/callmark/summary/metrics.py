"""What each metric is: which samples it is taken over, and which of their numbers it is made of."""

from __future__ import annotations

import hashlib
import heapq
import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from callmark.records.report import Metric, MetricBlock, Number, ToolDelta
from callmark.records.results import Result
from callmark.records.samples import CALL_FREE, Kind
from callmark.records.statements import RULES
from callmark.stats.columns import NO_CLUSTER, is_there
from callmark.stats.estimates import SampledValue, Statistic, estimate, interval_95
from callmark.summary import wording
from callmark.summary.trials import (
    KIND_CODE,
    KINDS,
    NOT_APPLICABLE,
    Samples,
    TrialPlace,
)

Over = Literal[
    "eligible", "integration", "control", "negative_control", "clarify", "not_control", "all"
]
Made = Statistic | Literal["count", "difference"]

GATED_LANGUAGES = ("es", "de", "fr")
TEACHER_HEAVY = "teacher_heavy"
CHECKS = "checks_ok_rate"
UNCHANGED = "unchanged_rate"
FLAGGED = "flagged_sample_rate"
UNCHECKED = "unchecked_share"
INVENTED = "invented_argument_rate"


def count_of(count: int, noun: str) -> str:
    """`1 sample`, `0 samples`, `15 samples`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def label_of(name: str) -> str:
    """Of a gate or metric. A plug-in's measure has no words but its own name."""
    found = wording.METRICS.get(name)
    return name if found is None else found.label


def sentence_of(name: str) -> str:
    found = wording.METRICS.get(name)
    return "A measure of one of your plug-ins." if found is None else found.sentence


def labels_of(names: Iterable[str]) -> str:
    return ", ".join(label_of(name) for name in names)


_NAMES = re.compile(r"(?<![\w.])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w.(=])")


_FLAGS = {"min_eligible_for_gates": "--min-eligible-for-gates"}  # settings that reasons name


def in_words(text: str) -> str:
    """A sentence that names gates, metrics and settings by their keys, with their labels, or the
    flag to give, instead."""
    return _NAMES.sub(lambda found: _FLAGS.get(found.group()) or label_of(found.group()), text)


def label_words(label: str) -> str:
    """Of a statement, as a file has it: a label of another version stands for itself."""
    found = wording.LABELS.get(label)  # type: ignore[call-overload]
    return label if found is None else found.label


def rule_words(rule: str) -> str:
    found = wording.RULES.get(rule)
    return rule if found is None else found.label


class Definition(msgspec.Struct, frozen=True):
    """`count` is a plain sum, `difference` the mean of one column minus another. Samples to which
    the first column does not apply are left out; pooled ones without a denominator, too.
    `na_if_empty`: where no sample has it, there was nothing to be judged."""

    name: str
    over: Over
    made: Made
    columns: tuple[str, ...]
    nothing: str  # why there is no value, where there is none
    na_if_empty: bool = False
    added: bool = False  # a plug-in's measure

    @property
    def strict(self) -> bool:
        """Whether it asks for keyed leaves: without a strict key there are none to be found."""
        return any(column.endswith("_strict") for column in self.columns)


def measure_definition(name: str, *, yes_no: bool) -> Definition:
    """A plug-in's measure as a metric: over every sample that it could judge."""
    made: Made = "rate" if yes_no else "mean"
    return Definition(name, "all", made, (name,), "no sample could be judged", added=True)


_NO_ELIGIBLE = "no eligible sample has a score"
_NO_ANSWER = "no eligible sample that is judged by its integration has a score"
NOT_INTEGRATED = "answers are read with `claims`, and no sample has required_facts"
NO_FIRM_RULE = "no rule is firm"
_NO_STATEMENT = "no answer after a served result states anything that a rule could check"
NO_STRICT_KEY = "no strict key is set, and none occurs in a result"

DEFINITIONS: tuple[Definition, ...] = (
    Definition("integration_f1_macro_lax", "integration", "mean", ("f1_lax",), _NO_ANSWER),
    Definition("integration_f1_macro_strict", "integration", "mean", ("f1_strict",), _NO_ANSWER),
    Definition(
        "integration_f1_micro_lax",
        "integration",
        "f1",
        ("grounded_lax", "spans", "found_lax", "required"),
        _NO_ANSWER,
    ),
    Definition(
        "integration_f1_micro_strict",
        "integration",
        "f1",
        ("grounded_strict", "spans", "found_strict", "required"),
        _NO_ANSWER,
    ),
    Definition(
        "integration_precision_micro_lax",
        "integration",
        "pooled",
        ("grounded_lax", "spans"),
        "no answer that is judged by its integration has a span",
    ),
    Definition(
        "integration_precision_micro_strict",
        "integration",
        "pooled",
        ("grounded_strict", "spans"),
        "no answer that is judged by its integration has a span",
    ),
    Definition(
        "integration_recall_micro_lax",
        "integration",
        "pooled",
        ("found_lax", "required"),
        "no fact is required",
    ),
    Definition(
        "integration_recall_micro_strict",
        "integration",
        "pooled",
        ("found_strict", "required"),
        "no fact is required",
    ),
    Definition(
        "integration_delta_lax_minus_strict",
        "integration",
        "difference",
        ("f1_lax", "f1_strict"),
        _NO_ANSWER,
    ),
    Definition("integration_coverage", "integration", "rate", ("has_span",), _NO_ANSWER),
    Definition("grounded_coverage", "integration", "rate", ("has_grounded",), _NO_ANSWER),
    Definition(
        "unsupported_value_rate",
        "eligible",
        "pooled",
        ("unsupported", "values"),
        "no eligible answer states a value that can be checked",
    ),
    Definition(FLAGGED, "all", "rate", ("flagged",), _NO_STATEMENT),
    Definition(UNCHECKED, "all", "pooled", ("unchecked", "judged"), _NO_STATEMENT),
    Definition("answered_rate", "eligible", "rate", ("answered",), _NO_ELIGIBLE),
    Definition(
        "copy_ratio_ok_rate",
        "all",
        "rate",
        ("copy_ok",),
        "no sample with required_facts was served 20 leaves",
        na_if_empty=True,
    ),
    Definition("copy_ratio", "all", "mean", ("copy_ratio",), "no result has a leaf to be stated"),
    Definition(
        INVENTED,
        "all",
        "pooled",
        ("invented", "arguments"),
        "no well-formed call has an argument",
    ),
    Definition(
        "multi_call_parity_rate",
        "all",
        "rate",
        ("parity",),
        "no sample that expects more than one call has a score",
    ),
    Definition(
        "call_f1_macro", "all", "mean", ("call_f1",), "no sample that expects calls has a score"
    ),
    Definition("valid_call_rate", "eligible", "rate", ("valid_call",), _NO_ELIGIBLE),
    Definition("json_args_valid_rate", "all", "rate", ("args_valid",), "no call was attempted"),
    Definition(
        "controls_with_integration",
        "control",
        "count",
        ("contaminated",),
        "no control has a score",
    ),
    Definition(
        "negative_control_ok_rate",
        "negative_control",
        "rate",
        ("negative_ok",),
        "no negative control has a score",
    ),
    Definition(
        "clarify_ok_rate", "clarify", "rate", ("clarify_ok",), "no clarify sample has a score"
    ),
    Definition(
        "error_recovery_rate",
        "all",
        "rate",
        ("recovered",),
        "no sample that expects a retry, or in which a fault was planted, has a score",
    ),
    Definition("privacy_ok_rate", "all", "rate", ("privacy_ok",), "no sample has a score"),
    Definition(
        "fixture_hit_rate",
        "not_control",
        "pooled",
        ("hits", "looked_up"),
        "no well-formed call was looked up in the fixtures",
        na_if_empty=True,
    ),
    Definition(
        "locale_probe_ok_rate", "all", "rate", ("locale_ok",), "no locale probe has a score"
    ),
    Definition(CHECKS, "all", "rate", ("checks_ok",), "no sample with checks has a score"),
    Definition(
        UNCHANGED,
        "all",
        "rate",
        ("unchanged",),
        "no sample whose expectation was merely observed has a score",
    ),
)
_BY_NAME = {definition.name: definition for definition in DEFINITIONS}


_NO_HEAVY = f"no sample of the slice {TEACHER_HEAVY} has a score"
_TEACHER_HEAVY = (
    Definition("teacher_heavy_spans_over_cap", "all", "count", ("over_cap",), _NO_HEAVY),
    Definition("teacher_heavy_f1_lax", "integration", "mean", ("f1_lax",), _NO_HEAVY),
)

BLOCK_METRICS = (
    "integration_f1_macro_lax",
    "integration_f1_macro_strict",
    "integration_delta_lax_minus_strict",
    "integration_coverage",
    "grounded_coverage",
    "unsupported_value_rate",
    FLAGGED,
    UNCHECKED,
    "answered_rate",
    "multi_call_parity_rate",
    "call_f1_macro",
    "valid_call_rate",
    "json_args_valid_rate",
    "privacy_ok_rate",
    "locale_probe_ok_rate",
)


def _is_integrated(kind: Kind, place: TrialPlace) -> bool:
    return kind == "eligible" and place.integrates


# Which samples of the *dataset* a metric is about, scored or not: none of them, and it is n/a.
Belongs = Callable[[Kind, TrialPlace], bool]
_POPULATIONS: dict[str, Belongs] = {
    "multi_call_parity_rate": lambda kind, place: kind not in CALL_FREE and place.calls > 1,
    "call_f1_macro": lambda kind, place: kind not in CALL_FREE and place.calls > 0,
    "json_args_valid_rate": lambda kind, place: not place.observed,
    "error_recovery_rate": lambda kind, place: place.retry,
    "locale_probe_ok_rate": lambda kind, place: place.probe,
    CHECKS: lambda kind, place: place.checks != "nothing",
    UNCHANGED: lambda kind, place: place.observed,
    "teacher_heavy_spans_over_cap": lambda kind, place: TEACHER_HEAVY in place.slices,
    "teacher_heavy_f1_lax": lambda kind, place: (
        _is_integrated(kind, place) and TEACHER_HEAVY in place.slices
    ),
    # Who else is served by a tool, only the trials tell.
    FLAGGED: lambda kind, place: kind == "eligible",
    UNCHECKED: lambda kind, place: kind == "eligible",
    "copy_ratio_ok_rate": lambda kind, place: place.facts and not place.observed,
    "copy_ratio": lambda kind, place: kind == "eligible",
    **dict.fromkeys(
        ("grounding_lift", "chance_f1", "answered_rate"),
        lambda kind, place: kind == "eligible" and not place.step,
    ),
}
_KINDS_OVER: dict[Over, tuple[Kind, ...]] = {
    "eligible": ("eligible",),
    "integration": ("eligible",),
    "control": ("control",),
    "negative_control": ("negative_control",),
    "clarify": ("clarify",),
    "not_control": ("negative_control", "clarify", "eligible", "unclassified"),
    "all": KINDS,
}


class Measure(msgspec.Struct, frozen=True):
    """A metric, how many samples of the dataset it is about, and how to get at the numbers that
    it was computed from (not kept: of a million samples they would fill the memory). `absent`:
    why it is about none, where that is not the dataset's doing."""

    metric: Metric
    population: int
    observe: Callable[[], SampledValue]
    absent: str | None = None


class Subset:
    """Some of the samples, with the positions of each kind found once."""

    def __init__(self, samples: Samples, positions: Sequence[int], seed: int) -> None:
        self.samples = samples
        self.seed = seed
        self.positions = positions
        self._over: dict[Over, Sequence[int]] = {"all": self.positions}

    def over(self, over: Over) -> Sequence[int]:
        if over not in self._over:
            wanted = {KIND_CODE[name] for name in _KINDS_OVER[over]}
            among = self
            if over == "integration":
                among = self.where(lambda place: place.integrates)
            self._over[over] = self.samples.kind.where(wanted.__contains__, among.positions)
        return self._over[over]

    def where(self, belongs: Callable[[TrialPlace], bool]) -> Subset:
        samples = self.samples
        chosen = {number for number, entry in enumerate(samples.places) if belongs(entry)}
        positions = samples.place.where(chosen.__contains__, self.positions) if chosen else ()
        return Subset(samples, positions, self.seed)

    def in_slice(self, name: str) -> Subset:
        return self.where(lambda place: name in place.slices)

    def in_locale(self, locale: str) -> Subset:
        return self.where(lambda place: place.locale == locale)

    def probes(self, language: str) -> Subset:
        return self.where(lambda place: place.probe and place.language == language)

    def metric(self, definition: Definition) -> Metric:
        observed = self.observe(definition)
        nothing = NO_STRICT_KEY if self.lacks_keys(definition) else definition.nothing
        if definition.made == "count":
            return _count(observed, nothing)
        return metric_of(observed, nothing, self.seed)

    def lacks_keys(self, definition: Definition) -> bool:
        """Whether it is a strict metric, and of these samples none has a strict key: the samples
        together decide, not one answer, or silence would leave the denominator."""
        if not definition.strict:
            return False
        eligible = self.over(definition.over)
        return bool(eligible) and not any(self.samples.column("keyed").at(eligible))

    def behind(self, definition: Definition) -> Sequence[int]:
        """The positions of the samples that the metric is made of."""
        column, made = self.samples.column, definition.made
        key, nothing = column(definition.columns[0]), NOT_APPLICABLE
        if made == "pooled":
            key, nothing = column(definition.columns[1]), 0
        over = () if self.lacks_keys(definition) else self.over(definition.over)
        return key.where(is_there if definition.added else lambda one: one != nothing, over)

    def observe(self, definition: Definition) -> SampledValue:
        made, kept = definition.made, self.behind(definition)
        columns = self.samples.columns(definition.columns, kept)
        if made == "difference":
            columns = (columns[0].minus(columns[1]),)
        statistic: Statistic = "mean" if made == "difference" or made == "count" else made
        labels = cluster_labels(self.samples, kept)
        return SampledValue(statistic, columns, labels, self.samples.repeated)


def cluster_labels(samples: Samples, positions: Sequence[int]) -> array[int] | None:
    """The cluster of each sample; one without a cluster stands for itself."""
    cluster = samples.cluster
    if not samples.has_clusters or not any(cluster[at] for at in positions):
        return None
    # A position is never the label of a cluster.
    return array("Q", (at if cluster[at] == NO_CLUSTER else cluster[at] for at in positions))


def metric_of(observed: SampledValue, nothing: str, seed: int) -> Metric:
    value = estimate(observed)
    interval = interval_95(observed, seed)
    numerator, denominator = _parts(observed)
    return Metric(
        value=value,
        numerator=numerator,
        denominator=denominator,
        n=observed.n,
        ci_95=None if interval is None else (interval.low, interval.high),
        method=None if interval is None else interval.method,
        reason=nothing if value is None else None,
    )


def measures(subset: Subset, populations: Mapping[str, int]) -> dict[str, Measure]:
    """Every metric over all samples, those that only gates ask for included."""
    return {
        name: _measure(part, entry, populations.get(name, 0))
        for name, (part, entry) in defined_parts(subset).items()
    }


def defined_parts(subset: Subset) -> dict[str, tuple[Subset, Definition]]:
    """Every metric by name: which of the samples it is about, and what it is made of."""
    found = {entry.name: (subset, entry) for entry in DEFINITIONS}
    delta = _BY_NAME["integration_delta_lax_minus_strict"]
    for language in GATED_LANGUAGES:
        nothing = f"no locale probe of {language} has a score"
        entry = msgspec.structs.replace(delta, nothing=nothing)
        found[f"locale_delta_{language}"] = subset.probes(language), entry
    heavy = subset.in_slice(TEACHER_HEAVY)
    for entry in _TEACHER_HEAVY:
        found[entry.name] = heavy, entry
    for name, yes_no in subset.samples.measures.items():
        found[name] = subset, measure_definition(name, yes_no=yes_no)
    return found


# Of the dataset, not of what was scored: a gate whose samples were all lost is open, never n/a.
def populations_of(
    samples: Samples, unscored: Mapping[tuple[Kind, TrialPlace], int]
) -> dict[str, int]:
    """How many samples of the dataset each metric is about."""
    pairs = Counter(zip(samples.kind, samples.place, strict=True))
    everyone = [
        (KINDS[int(kind)], samples.places[int(place)], n) for (kind, place), n in pairs.items()
    ]
    everyone += [(kind, place, n) for (kind, place), n in unscored.items()]
    belongs = {entry.name: _of_kinds(entry.over) for entry in DEFINITIONS} | _POPULATIONS
    for language in GATED_LANGUAGES:
        belongs[f"locale_delta_{language}"] = _probes_of(language)
    belongs |= dict.fromkeys(samples.measures, _of_kinds("all"))
    return {
        name: sum(n for kind, place, n in everyone if is_member(kind, place))
        for name, is_member in belongs.items()
    }


def blocks(subset: Subset) -> tuple[dict[str, MetricBlock], dict[str, MetricBlock]]:
    """The main metrics per locale and per slice, as far as samples of them have a score."""
    places = [subset.samples.places[int(number)] for number in set(subset.samples.place)]
    locales = sorted({place.locale for place in places if place.locale is not None})
    slices = sorted({name for place in places for name in place.slices})
    return (
        {name: _block(subset.in_locale(name)) for name in locales},
        {name: _block(subset.in_slice(name)) for name in slices},
    )


def tool_deltas(subset: Subset) -> dict[str, ToolDelta]:
    """Lax and strict macro F1 of the samples that are judged by their integration, for each tool
    that they expect."""
    samples = subset.samples
    lax, strict, keyed = (samples.column(name) for name in ("f1_lax", "f1_strict", "keyed"))
    rows: dict[str, array[int]] = {}
    eligible = subset.over("integration")
    for at, place in zip(eligible, samples.place.at(eligible), strict=True):
        for tool in samples.places[int(place)].tools:
            rows.setdefault(tool, array("I")).append(at)
    deltas = {}
    for tool, chosen in sorted(rows.items()):
        n = len(chosen)
        mean_lax = math.fsum(lax.at(chosen)) / n
        if not any(keyed.at(chosen)):
            deltas[tool] = ToolDelta(mean_lax, None, None, n)
            continue
        mean_strict = math.fsum(strict.at(chosen)) / n
        deltas[tool] = ToolDelta(mean_lax, mean_strict, mean_lax - mean_strict, n)
    return deltas


def checks_of_silence(subset: Subset) -> Measure:
    """`checks_ok_rate` of a model that says nothing and calls nothing, on the same samples."""
    asked = subset.where(lambda place: place.checks != "nothing")
    places = (subset.samples.places[int(at)] for at in subset.samples.place.at(asked.positions))
    passed = array("b", (place.checks == "silence" for place in places))
    labels = cluster_labels(subset.samples, asked.positions)
    observed = SampledValue("rate", (passed,), labels)
    metric = metric_of(observed, "no sample has checks", subset.seed)
    return Measure(metric, len(passed), lambda: observed)


def _measure(part: Subset, definition: Definition, population: int) -> Measure:
    metric = part.metric(definition)
    absent = None
    if metric.value is None and (definition.na_if_empty or part.lacks_keys(definition)):
        absent, population = metric.reason, 0
    elif definition.over == "integration" and not population and part.over("eligible"):
        absent = NOT_INTEGRATED
    if definition.name == FLAGGED:
        if not any(rule.tier == "firm" for rule in RULES.values()):
            return Measure(metric, 0, lambda: part.observe(definition), NO_FIRM_RULE)
        population = max(population, int(sum(part.samples.column("served").at(part.positions))))
    return Measure(metric, max(metric.n, population), lambda: part.observe(definition), absent)


def _of_kinds(over: Over) -> Belongs:
    if over == "integration":
        return _is_integrated
    return lambda kind, place: kind in _KINDS_OVER[over]


def _probes_of(language: str) -> Belongs:
    return lambda kind, place: (
        _is_integrated(kind, place) and place.probe and place.language == language
    )


def _block(part: Subset) -> MetricBlock:
    over_cap = Definition("spans_over_cap", "all", "count", ("over_cap",), "")
    return MetricBlock(
        n=len(part.positions),
        num_eligible=len(part.over("eligible")),
        spans_over_cap=part.metric(over_cap).value or 0,
        metrics={name: part.metric(_BY_NAME[name]) for name in BLOCK_METRICS},
    )


def _count(observed: SampledValue, nothing: str) -> Metric:
    if observed.n == 0:
        return Metric(value=None, n=0, reason=nothing)
    total: Number = math.fsum(observed.columns[0])
    if total == int(total):
        total = int(total)
    return Metric(value=total, numerator=total, denominator=observed.n, n=observed.n)


def _parts(observed: SampledValue) -> tuple[Number | None, Number | None]:
    if observed.statistic == "f1":
        return None, None
    numerator: Number = math.fsum(observed.columns[0])
    denominator: Number = observed.n
    if observed.statistic == "pooled":
        denominator = math.fsum(observed.columns[1])
    if observed.statistic != "mean" and not observed.repeated:
        return int(numerator), int(denominator)
    return numerator, denominator


MAX_SAMPLES = 500

# (own, other) -> lax F1 of own's answer against other's tool_trace
CrossScore = Callable[[Result, Result], float]


class Pair(msgspec.Struct, frozen=True):
    own: float
    chance: float
    cluster: str | None
    sample_id: str = ""


def chance_key(sample_id: str) -> int:
    digest = hashlib.sha256(sample_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest, "big")


class ChanceSample:
    """Keeps the first trial of the eligible samples with the smallest hashes."""

    def __init__(self) -> None:
        self._kept: dict[int, Result] = {}
        self._largest: list[int] = []  # a heap of negated hashes

    def add(self, result: Result) -> None:
        key = chance_key(result.sample_id)
        known = self._kept.get(key)
        if known is not None:
            # Trials arrive in any order, and merged shards in yet another: the first trial is
            # always taken.
            if result.trial < known.trial:
                self._kept[key] = result
        elif len(self._kept) < MAX_SAMPLES:
            self._kept[key] = result
            heapq.heappush(self._largest, -key)
        elif key < -self._largest[0]:
            del self._kept[-heapq.heappushpop(self._largest, -key)]
            self._kept[key] = result

    def kept(self) -> tuple[Result, ...]:
        return tuple(self._kept.values())

    def places(self) -> tuple[tuple[int, int], ...]:
        """(index, trial) of what is kept."""
        return tuple(sorted((result.index, result.trial) for result in self._kept.values()))

    def pairs(self, cross_score: CrossScore, left_out: Collection[str] = ()) -> list[Pair]:
        """Each answer with the trace of the next sample of its group, cyclic. A group is the
        samples with results from the same set of tools; a group of one has no other. `left_out`:
        samples that are in none."""
        groups: dict[frozenset[str | None], list[Result]] = {}
        for _, result in sorted(self._kept.items()):
            if result.sample_id in left_out:
                continue
            tools = frozenset(entry.name for entry in result.tool_trace if entry.served)
            groups.setdefault(tools, []).append(result)
        return [
            Pair(_own_f1(own), cross_score(own, other), _cluster_of(own), own.sample_id)
            for members in groups.values()
            if len(members) > 1
            for own, other in zip(members, [*members[1:], members[0]], strict=True)
        ]


def chance_measures(
    pairs: Sequence[Pair] | None, population: int, seed: int
) -> tuple[Measure, Measure]:
    """The chance level, and by how much the answers are better grounded in their own results."""
    if pairs is None:
        unknown = Metric(value=None, n=0, reason="not computed")
        nothing_seen = Measure(unknown, population, lambda: SampledValue("mean", ((),)))
        return nothing_seen, nothing_seen
    chance = [pair.chance for pair in pairs]
    lift = [pair.own - pair.chance for pair in pairs]
    clusters = _clusters(pairs)
    return (
        _mean_measure(SampledValue("mean", (chance,), clusters), population, seed),
        _mean_measure(SampledValue("mean", (lift,), clusters), population, seed),
    )


def _mean_measure(observed: SampledValue, population: int, seed: int) -> Measure:
    nothing = "no two samples have results of the same tools"
    return Measure(metric_of(observed, nothing, seed), population, lambda: observed)


def _clusters(pairs: Sequence[Pair]) -> list[int] | None:
    if all(pair.cluster is None for pair in pairs):
        return None
    names: dict[str, int] = {}
    return [
        # Negative numbers cannot meet those of named clusters.
        -1 - at if pair.cluster is None else names.setdefault(pair.cluster, len(names))
        for at, pair in enumerate(pairs)
    ]


def _own_f1(result: Result) -> float:
    return 0.0 if result.scores is None else result.scores.lax.f1


def _cluster_of(result: Result) -> str | None:
    cluster = result.metadata.get("cluster")
    return None if cluster is None else str(cluster)
