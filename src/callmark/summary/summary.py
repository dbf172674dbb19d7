"""Results in, report out: a stream of results in any order becomes one report."""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, assert_never

import msgspec

from callmark.errors import BadInput, UsageError
from callmark.records.jsontext import Json, plain_object, want_object
from callmark.records.report import (
    Counts,
    GateOutcome,
    GateRule,
    Metric,
    Number,
    Power,
    PowerAt,
    Quarantined,
    Report,
    ReportHeader,
    Shard,
    Timing,
    Verdict,
    gates_ok_of,
)
from callmark.records.results import Decoding, Fingerprints, Result
from callmark.records.samples import Expectation, Kind, expectation_of, sample_id_of
from callmark.records.trace import entry_of
from callmark.stats.columns import KeyIndex
from callmark.stats.estimates import Z_ONE_SIDED, SampledValue, binomial_tail, wilson
from callmark.summary import metrics
from callmark.summary.failing import PASSING_F1, Shortlists, ShortlistsState, failing_of
from callmark.summary.gates import (
    PERF_BUDGET,
    TOLERANCE,
    JudgeContext,
    VerdictContext,
    allowed_misses,
    is_measure,
    is_satisfied,
    judge,
    kind_of,
    rules_on_answers,
    verdict_of,
)
from callmark.summary.metrics import ChanceSample, CrossScore, Measure, Pair, Subset
from callmark.summary.repeats import pass_counts, repeat_of
from callmark.summary.trials import KIND_CODE, KINDS, Samples, TrialPlace, Trials, TrialsState

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
    # More misses never rescue a gate: the fewest that fail it are found by halving.
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


_UNKNOWN_DECODING = Decoding(
    temperature=None, top_p=None, max_tokens=None, seed=None, max_turns=None, tool_choice=None
)
_NOTHING: dict[str, Json] = {
    "trial": 0,
    "prompt": "",
    "metadata": {},
    "said": (),
    "model_output": "",
    "turns": None,
    "reasoning": "",
    "tool_trace": (),
    "scores": None,
    "item_sha256": "",
    "used_fixtures_sha256": "",
    "offered_tools_sha256": "",
    "fingerprints": Fingerprints(),
    "decoding": _UNKNOWN_DECODING,
}


class ResultReader:
    """Gives results without an `index` one, by the order in which their samples appear."""

    def __init__(self) -> None:
        self._indexes = KeyIndex(numbers_only=True)

    def read(self, given: Mapping[str, Json], number: int) -> Result:
        """`number` is the place in the stream, for messages."""
        if not isinstance(given, Mapping):
            raise BadInput(f"result {number}: must be an object, not {type(given).__name__}")
        if given.get("sample_id") is None and not isinstance(given.get("scores"), Mapping):
            raise BadInput(f"result {number}: holds neither a sample_id nor scores")
        try:
            expectation_of(want_object(given.get("metadata")))
            return msgspec.convert(self._filled(given), Result)
        except msgspec.ValidationError as error:
            raise BadInput(f"result {number}: {error}") from None
        except (KeyError, TypeError, AttributeError) as error:
            raise BadInput(
                f"result {number}: metadata: cannot be read ({error!r}); "
                "see the schema of a dataset item"
            ) from None

    def _filled(self, given: Mapping[str, Json]) -> dict[str, Json]:
        line = _NOTHING | {name: value for name, value in given.items() if value is not None}
        scores = line["scores"]
        has_scores = isinstance(scores, Mapping)
        line.setdefault("status", "ok" if has_scores else "error")
        line.setdefault("stop", "answer" if has_scores else "error")
        extractor = scores.get("span_extractor") if isinstance(scores, Mapping) else None
        line.setdefault("span_extractor", extractor or "claims")
        line["sample_id"] = sample_id = sample_id_of(given)
        if "index" not in line:
            known = self._indexes.setdefault(sample_id, len(self._indexes))
            line["index"] = known.value
        if isinstance(line["tool_trace"], list):
            line["tool_trace"] = [entry_of(entry) for entry in line["tool_trace"]]
        return line


class Inputs:
    """Fills the report's header from the results where the caller left it open."""

    def __init__(
        self, first: tuple[Fingerprints, Decoding] | None = None, conflicts: Iterable[str] = ()
    ) -> None:
        """What somebody else knows of results that are not added."""
        self._fingerprints = None if first is None else first[0]
        self._decoding = None if first is None else first[1]
        self._conflicts = set(conflicts)

    def add(self, result: Result) -> None:
        if self._fingerprints is None or self._decoding is None:
            self._fingerprints, self._decoding = result.fingerprints, result.decoding
            return
        if result.fingerprints is self._fingerprints and result.decoding is self._decoding:
            return
        if result.fingerprints != self._fingerprints:
            for name in Fingerprints.__struct_fields__:
                if getattr(result.fingerprints, name) != getattr(self._fingerprints, name):
                    self._conflicts.add(name)
        if result.decoding != self._decoding:
            self._conflicts.add("decoding")

    @property
    def first(self) -> tuple[Fingerprints, Decoding] | None:
        """What the first result depends on; None: there was no result."""
        if self._fingerprints is None or self._decoding is None:
            return None
        return self._fingerprints, self._decoding

    @property
    def conflicts(self) -> frozenset[str]:
        """What the results do not agree in."""
        return frozenset(self._conflicts)

    def filled(self, header: ReportHeader, most: int, rules: Sequence[GateRule]) -> ReportHeader:
        known = msgspec.structs.asdict(self._fingerprints) if self._fingerprints else {}
        known["decoding"] = self._decoding
        fill = {
            name: value
            for name, value in known.items()
            if getattr(header, name) is None and name not in self._conflicts
        }
        decoding = fill.get("decoding", header.decoding)
        if header.seed is None and decoding is not None:
            fill["seed"] = decoding.seed
        return msgspec.structs.replace(
            header,
            repeat=max(header.repeat, most),
            gates={rule.name: rule for rule in rules},
            **fill,
        )

    def warnings(self, *, own_tools: bool = False) -> list[str]:
        differ = self._conflicts - ({"tool_registry_sha256"} if own_tools else set())
        return [f"the results do not agree in {name}" for name in sorted(differ)]


DEFAULT_SEED = 42

# The harness's old names: name in `summary` -> metric.
_SUMMARY_METRICS = {
    "avg_integration_f1_macro_lax": "integration_f1_macro_lax",
    "avg_integration_f1_macro_strict": "integration_f1_macro_strict",
    "avg_integration_f1_micro_lax": "integration_f1_micro_lax",
    "avg_integration_f1_micro_strict": "integration_f1_micro_strict",
} | {
    name: name
    for name in (
        "integration_coverage",
        "grounded_coverage",
        "multi_call_parity_rate",
        "json_args_valid_rate",
        "privacy_ok_rate",
        "call_f1_macro",
        "valid_call_rate",
        "error_recovery_rate",
        "unsupported_value_rate",
        "flagged_sample_rate",
        "answered_rate",
        "fixture_hit_rate",
        "negative_control_ok_rate",
        "clarify_ok_rate",
        "locale_probe_ok_rate",
        "checks_ok_rate",
        "unchanged_rate",
        "chance_f1",
        "grounding_lift",
    )
}


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the dataset the results are. `partial`: only chosen samples were run.
    `expected_trials`: how many there should be, where known. `errors_allowed`: so many trials may
    be lost to infrastructure before the run counts as incomplete. `own_tools`: each conversation
    brought its tools along, so that these differ is no conflict."""

    partial: bool = False
    own_tools: bool = False
    expected_trials: int | None = None
    errors_allowed: int = 0


class _Setting(NamedTuple):
    header: ReportHeader
    scope: Scope
    timing: Timing | None


class _Judged(NamedTuple):
    outcomes: tuple[GateOutcome, ...]
    timing: Timing
    complete: bool
    verdict: Verdict
    reason: str


class SummaryState(msgspec.Struct, frozen=True, kw_only=True):
    """`answer` is one of the answers; `chance`, the (index, trial) of the results that the level of
    chance is computed from."""

    trials: TrialsState
    listing: ShortlistsState
    answer: str | None
    answers_differ: bool
    chance: tuple[tuple[int, int], ...]


class Summariser:
    """Takes results one by one, in any order, and keeps only their numbers. `cross_score` gives
    the lax F1 of one result's answer against another's trace; without it the chance level is
    not computed. `pairs`: what it was computed from, if no eligible sample was left out."""

    def __init__(self, cross_score: CrossScore | None = None) -> None:
        self._cross_score = cross_score
        self.trials = Trials()
        self._chance = ChanceSample()
        self._listing = Shortlists()
        self.inputs = Inputs()
        self.pairs: tuple[Pair, ...] | None = None
        self._skips_steps = False
        self._answer: str | None = None
        self._answers_differ = False

    def add(self, result: Result, expectation: Expectation | None = None) -> None:
        """`expectation`: what its metadata say, where the caller has read them already."""
        self.trials.add(result, expectation)
        self._listing.add(result)
        self.inputs.add(result)
        scores = result.scores
        if scores is None or result.status == "error":
            return
        if result.scoring.redacted and "[" in result.model_output:
            self._answers_differ = True  # what was replaced may have told them apart
        if self._answer is None:
            self._answer = result.model_output
        elif not self._answers_differ:
            self._answers_differ = result.model_output != self._answer
        is_step = result.metadata.get("max_turns") == 1  # a call alone states nothing
        if scores.kind == "eligible" and self._cross_score is not None:
            if is_step:
                self._skips_steps = True
            else:
                self._chance.add(result)

    def state(self) -> SummaryState | None:
        """What was added so far. None if a trial was lost: of those more is told than is kept."""
        if self.trials.lost:
            return None
        return SummaryState(
            trials=self.trials.state(),
            listing=self._listing.state(),
            answer=self._answer,
            answers_differ=self._answers_differ,
            chance=self._chance.places(),
        )

    def extend(self, state: SummaryState) -> None:
        """All results of another summariser at once, but for those that the level of chance needs:
        these are still to be given to `add_to_chance`."""
        self.trials.extend(state.trials)
        self._listing.extend(state.listing)
        if self._answer is None:
            self._answer = state.answer
        differ = state.answer is not None and state.answer != self._answer
        self._answers_differ = self._answers_differ or state.answers_differ or differ

    def kept_for_chance(self) -> tuple[Result, ...]:
        return self._chance.kept()

    def add_to_chance(self, result: Result) -> None:
        self._chance.add(result)

    def report(
        self,
        header: ReportHeader,
        rules: Sequence[GateRule],
        *,
        scope: Scope | None = None,
        timing: Timing | None = None,
        provenance: Mapping[str, Json] | None = None,
        warnings: Sequence[str] = (),
        shard: Shard | None = None,
    ) -> Report:
        scope = scope or Scope()
        rules = rules_on_answers(rules)
        most = self.trials.most_trials()
        header = self.inputs.filled(header, most, rules)
        left_out = header.in_quarantine
        trials, apart = self.trials.split(left_out) if left_out else (self.trials, Trials())
        samples = trials.samples()
        unscored = trials.unscored()
        seed = DEFAULT_SEED if header.seed is None else header.seed
        whole = Subset(samples, range(len(samples)), seed)
        measures = self._measures(whole, unscored, rules, left_out)
        counts = self._counts(whole, unscored, header.repeat, scope, apart)
        judged = self._judged(whole, measures, counts, rules, _Setting(header, scope, timing))
        in_force = {rule.name: rule for rule in rules}
        f1 = in_force.get("integration_f1_macro_lax")
        f1_bound = PASSING_F1 if f1 is None else f1.bound
        quarantine = self._quarantined(header, f1_bound)
        locales, slices = metrics.blocks(whole)
        found = {name: measure.metric for name, measure in measures.items()}
        return Report(
            header=header,
            verdict=judged.verdict,
            verdict_reason=judged.reason,
            gates_ok=gates_ok_of(judged.verdict),
            complete=judged.complete,
            partial=scope.partial,
            summary=_flat(found, counts),
            metrics=found,
            metrics_miss_free=_miss_free(whole, found),
            counts=counts,
            gates=judged.outcomes,
            failing=failing_of(whole, in_force),
            integration_span_count_histogram=_histogram(samples),
            per_tool_deltas=metrics.tool_deltas(whole),
            locales=locales,
            slices=slices,
            repeat=repeat_of(trials, whole, most, f1_bound) if most > 1 else None,
            quarantine=quarantine,
            misses=self._listing.misses(),
            unparsed=self._listing.unparsed(),
            errors=self._listing.errors(),
            privacy=self._listing.privacy(),
            grounding=self._listing.grounding(),
            statements=self._listing.statements(),
            power=power_of(rules, judged.outcomes),
            warnings=(
                *warnings,
                *self.inputs.warnings(own_tools=scope.own_tools),
                *counted_warnings(rules, counts),
                *quarantine_warnings(quarantine, has_all=is_whole(header, scope.partial)),
            ),
            provenance=dict(provenance or {}),
            shard=shard,
            timing=judged.timing,
        )

    def _judged(
        self,
        whole: Subset,
        measures: Mapping[str, Measure],
        counts: Counts,
        rules: Sequence[GateRule],
        setting: _Setting,
    ) -> _Judged:
        context = _judge_context(setting, whole, measures)
        outcomes = judge(rules, measures, context)
        timing = _judge_timing(setting.timing or Timing(), rules, self.trials.scored, context)
        budget = () if timing.perf_budget is None else (timing.perf_budget,)
        complete = (
            counts.trials_missing == 0 and counts.trials_error <= setting.scope.errors_allowed
        )
        verdict, reason = verdict_of(
            (*outcomes, *budget),
            VerdictContext(
                samples=counts.samples + counts.quarantined,
                complete=complete,
                is_shard=context.is_shard,
                same_answer=len(whole.samples) > 1 and not self._answers_differ,
                is_judged=counts.eligible >= context.min_eligible and not context.partial,
                passed_by_silence=_passed_by_silence(rules, whole, context),
            ),
        )
        return _Judged(outcomes, timing, complete, verdict, reason)

    def _measures(
        self,
        whole: Subset,
        unscored: Mapping[tuple[Kind, TrialPlace], int],
        rules: Sequence[GateRule],
        left_out: Collection[str],
    ) -> dict[str, Measure]:
        populations = metrics.populations_of(whole.samples, unscored)
        found = metrics.measures(whole, populations)
        pairs = None
        if self._cross_score is not None:
            pairs = self._chance.pairs(self._cross_score, left_out)
            if not left_out and not self._skips_steps:
                self.pairs = tuple(pairs)
        chance, lift = metrics.chance_measures(pairs, populations["chance_f1"], whole.seed)
        everyone = len(whole.samples) + sum(unscored.values())
        # A gate on a measure that no line has stays open: it must not vanish.
        gated = [rule.name for rule in rules if is_measure(rule.name) and rule.name not in found]
        missing = {
            name: Measure(Metric(value=None, n=0, reason="no sample has this measure"), everyone,
                          lambda: SampledValue("mean", ((),)))
            for name in gated
        }  # fmt: skip
        return found | missing | {"chance_f1": chance, "grounding_lift": lift}

    def _counts(
        self,
        whole: Subset,
        unscored: Mapping[tuple[Kind, TrialPlace], int],
        repeat: int,
        scope: Scope,
        apart: Trials,
    ) -> Counts:
        samples = whole.samples
        by_kind = Counter(samples.kind)
        marker = sum(samples.column("marker"))
        presence = samples.column("presence")
        everyone = len(samples) + sum(unscored.values())
        trials = self.trials.scored + self.trials.lost
        quarantined = len(apart.samples()) + sum(apart.unscored().values())
        expected = max(scope.expected_trials or 0, repeat * (everyone + quarantined))
        lost_kinds: Counter[Kind] = Counter()
        for (kind, _), n in unscored.items():
            lost_kinds[kind] += n
        return Counts(
            samples=everyone,
            scored=len(samples),
            eligible=by_kind[KIND_CODE["eligible"]],
            controls=by_kind[KIND_CODE["control"]],
            negative_controls=by_kind[KIND_CODE["negative_control"]],
            clarify=by_kind[KIND_CODE["clarify"]],
            unclassified=by_kind[KIND_CODE["unclassified"]],
            unresolved=int(sum(samples.column("unresolved"))),
            unscored={kind: lost_kinds[kind] for kind in KINDS if lost_kinds[kind]},
            trials=trials,
            trials_error=self.trials.lost,
            trials_missing=max(0, expected - trials),
            gave_up_honestly=int(sum(samples.column("gave_up"))),
            recall_by_presence=int(sum(presence.at(whole.over("eligible")))),
            extractors={"claims": len(samples) - int(marker), "marker": int(marker)},
            stops=self._listing.stops(),
            quarantined=quarantined,
        )

    def _quarantined(self, header: ReportHeader, f1_bound: float) -> tuple[Quarantined, ...]:
        """Every sample that the header names, and how it did."""
        if not header.quarantine:
            return ()
        samples = self.trials.samples()
        found = {
            sample_id: counted
            for at, counted in enumerate(pass_counts(self.trials, samples, f1_bound))
            if (sample_id := samples.id_at(at)) in header.quarantine
        }
        return tuple(
            Quarantined(
                sample_id=sample_id,
                passed=found.get(sample_id, (0, 0))[0],
                trials=found.get(sample_id, (0, 0))[1],
                **msgspec.structs.asdict(entry),
            )
            for sample_id, entry in header.quarantine.items()
        )


def summarize_results(
    results: Iterable[Result | Mapping[str, Json]],
    *,
    rules: Sequence[GateRule] = (),
    cross_score: CrossScore | None = None,
    scope: Scope | None = None,
    timing: Timing | None = None,
    header: Mapping[str, Json] = MappingProxyType({}),
) -> dict[str, Json]:
    """The report of a stream of results, as plain JSON values. `header` takes the fields of the
    report's header; what it does not give is taken from the results where they agree."""
    try:
        fields = msgspec.convert(dict(header), ReportHeader)
    except msgspec.ValidationError as error:
        raise UsageError(f"report header: {error}") from None
    summariser = Summariser(cross_score)
    reader = ResultReader()
    for number, given in enumerate(results, start=1):
        summariser.add(given if isinstance(given, Result) else reader.read(given, number))
    return plain_object(summariser.report(fields, rules, scope=scope, timing=timing))


def _judge_context(
    setting: _Setting, whole: Subset, measures: Mapping[str, Measure]
) -> JudgeContext:
    marker, eligible = whole.samples.column("marker"), whole.over("eligible")
    return JudgeContext(
        min_eligible=setting.header.min_eligible_for_gates,
        seed=whole.seed,
        partial=setting.scope.partial,
        is_shard=setting.header.num_shards > 1,
        all_marker=bool(eligible) and all(marker.at(eligible)),
        unchecked_share=measures[metrics.UNCHECKED].metric.value or 0.0,
    )


def _passed_by_silence(
    rules: Sequence[GateRule], whole: Subset, context: JudgeContext
) -> frozenset[str]:
    """A gate on checks proves nothing if it would pass a model that says nothing."""
    rule = [rule for rule in rules if rule.name == metrics.CHECKS]
    outcomes = judge(rule, {metrics.CHECKS: metrics.checks_of_silence(whole)}, context)
    return frozenset(outcome.name for outcome in outcomes if outcome.status == "pass")


def _judge_timing(
    timing: Timing, rules: Sequence[GateRule], trials: int, context: JudgeContext
) -> Timing:
    """The budget is judged whatever part of the dataset was run, and stays below `timing`."""
    seconds = timing.scoring_sec
    per_100 = None if seconds is None or not trials else 100 * seconds / trials
    reason = "not timed" if per_100 is None else None
    metric = Metric(value=per_100, n=trials, reason=reason)
    measure = Measure(metric, trials, lambda: SampledValue("mean", ((),)))
    context = msgspec.structs.replace(context, partial=False, is_shard=False)
    budget = [rule for rule in rules if rule.name == PERF_BUDGET]
    outcomes: Sequence[GateOutcome] = judge(budget, {PERF_BUDGET: measure}, context)
    exceeded = None
    if budget and per_100 is not None:
        exceeded = not is_satisfied(budget[0], per_100)
    return msgspec.structs.replace(
        timing,
        sec_per_100=per_100,
        exceeded=exceeded,
        perf_budget=outcomes[0] if outcomes else None,
    )


def _miss_free(whole: Subset, found: dict[str, Metric]) -> dict[str, Metric]:
    """The same metrics over the samples without a missed call; chance needs all of them."""
    unresolved = whole.samples.column("unresolved")
    if any(unresolved):
        clean = Subset(whole.samples, unresolved.where(operator.not_, whole.positions), whole.seed)
        found = {name: entry.metric for name, entry in metrics.measures(clean, {}).items()}
    return {
        name: metric
        for name, metric in found.items()
        if name not in ("chance_f1", "grounding_lift")
    }


def _flat(found: Mapping[str, Metric], counts: Counts) -> dict[str, Number | None]:
    flat: dict[str, Number | None] = {
        old: found[name].value for old, name in _SUMMARY_METRICS.items()
    }
    # Without a single control none was contaminated: the old name holds a number, always.
    flat["controls_with_integration"] = found["controls_with_integration"].value or 0
    flat["num_samples"] = counts.samples
    flat["num_eligible"] = counts.eligible
    flat["num_controls"] = counts.controls
    flat["num_negative_controls"] = counts.negative_controls
    flat["num_clarify"] = counts.clarify
    flat["num_unclassified"] = counts.unclassified
    flat["num_unresolved"] = counts.unresolved
    flat["num_errors"] = counts.trials_error
    return flat


def _histogram(samples: Samples) -> dict[str, int]:
    """Samples by their number of spans before the cap (of the first trial)."""
    by_count = Counter(samples.column("spans_total"))
    return {str(int(spans)): n for spans, n in sorted(by_count.items())}


def counted_warnings(rules: Iterable[GateRule], counts: Counts) -> list[str]:
    """Those that follow from the numbers; in a report they come last."""
    found = [f"gate {rule.name} is LOOSENED by {rule.source}" for rule in rules if rule.loosened]
    if counts.trials_error:
        found.append(f"{counts.trials_error} {NOT_SCORED}")
    if counts.trials_missing:
        found.append(f"{counts.trials_missing} trials are missing; --resume runs what is left")
    return found


def is_whole(header: ReportHeader, partial: bool) -> bool:
    """Whether every sample of the dataset should be here."""
    return not partial and header.num_shards == 1


def quarantine_warnings(entries: Sequence[Quarantined], *, has_all: bool) -> list[str]:
    """A gate that does not see every sample is never silent about it. `has_all`: a sample that is
    not here is nowhere."""
    active = [one for one in entries if not one.expired and one.trials]
    found = []
    if active:
        many = len(active)
        counts = "sample in quarantine counts" if many == 1 else "samples in quarantine count"
        found.append(f"{many} {counts} for no gate")
    for one in entries:
        if one.expired and one.trials:
            ended = f"the quarantine of {one.sample_id} ended on {one.until}"
            found.append(f"{ended}: it counts again; {one.owner} should look at it: {one.why}")
        if has_all and not one.trials:
            found.append(f"quarantine: {one.sample_id} has no scored trial here: take it out?")
    return found


NOT_SCORED = "trials ended in an error and were not scored"
_SAME = ("dataset_sha256", "fixtures_sha256", "runner_fingerprint", "model_fingerprint")


def differing_fingerprint(header: ReportHeader, fingerprints: Fingerprints) -> str | None:
    """The first one that both know and that is not the same; None: there is none."""
    for name in _SAME:
        theirs, ours = getattr(header, name), getattr(fingerprints, name)
        if theirs is not None and ours is not None and theirs != ours:
            return name
    return None
