"""What the gates say about the numbers, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeVar, assert_never, get_args

import msgspec

from callmark.errors import UsageError
from callmark.records.jsontext import Json
from callmark.records.problems import KeySet, hint
from callmark.records.report import (
    GateOutcome,
    GateRule,
    Number,
    Op,
    Policy,
    Source,
    Status,
    Verdict,
)
from callmark.records.results import Better
from callmark.stats.estimates import bounds_one_sided, deciding_n
from callmark.summary.metrics import (
    CHECKS,
    FLAGGED,
    INVENTED,
    UNCHANGED,
    UNCHECKED,
    Measure,
    count_of,
)

PERF_BUDGET = "perf_budget_sec_per_100"
FIXTURES = "fixture_hit_rate"
DEFAULT_PCT = 0.05
_FIELD_SYNONYMS = {
    **dict.fromkeys(("threshold", "min", "minimum", "max", "maximum", "value", "limit"), "bound"),
    **dict.fromkeys(("percent", "share", "percentage"), "pct"),
    **dict.fromkeys(("mode", "onfail", "severity"), "policy"),
}
TOLERANCE = 1e-9  # a mean of thirds that is 0.9 must not fall below 0.9

_POINT: tuple[Policy, ...] = ("hard_fail", "warning_only")
_POOLED: tuple[Policy, ...] = ("hard_fail", "clear_fail", "confident", "warning_only")
_PER_SAMPLE: tuple[Policy, ...] = get_args(Policy)


class GateKind(msgspec.Struct, frozen=True):
    """What does not change from run to run. `quality`: says nothing where fixtures are missing.
    `proof`: it judges the model's calls or statements; a run passes only if one of these does.
    `of_dataset`: about the dataset itself; judged when one is verified, never in a run.
    `marker_only`: as shipped it judges what is read with `marker`; flags judge what `claims` reads.
    `on_request`: no bound ships with it; it is in force where somebody gives one."""

    better: Literal["higher", "lower"]
    policies: tuple[Policy, ...]
    quality: bool = True
    proof: bool = False
    compared: Literal["value", "ci_95_low"] = "value"
    smallest_bound: float = 0.0
    largest_bound: float = 1.0
    of_dataset: bool = False
    marker_only: bool = False
    on_request: bool = False


GATES: dict[str, GateKind] = {
    "integration_f1_macro_lax": GateKind("higher", _PER_SAMPLE, proof=True),
    "integration_f1_macro_strict": GateKind("higher", _PER_SAMPLE),
    "integration_coverage": GateKind("higher", _PER_SAMPLE),
    "grounded_coverage": GateKind("higher", _PER_SAMPLE),
    "unsupported_value_rate": GateKind("lower", _POOLED, marker_only=True),
    FLAGGED: GateKind("lower", _POOLED, proof=True),
    "answered_rate": GateKind("higher", _PER_SAMPLE),
    "copy_ratio_ok_rate": GateKind("higher", _PER_SAMPLE),
    INVENTED: GateKind("lower", _POOLED, on_request=True),
    CHECKS: GateKind("higher", _PER_SAMPLE, proof=True),
    UNCHANGED: GateKind("higher", _PER_SAMPLE),
    "grounding_lift": GateKind("higher", _POINT, compared="ci_95_low"),
    "multi_call_parity_rate": GateKind("higher", _PER_SAMPLE, proof=True),
    "call_f1_macro": GateKind("higher", _PER_SAMPLE, proof=True),
    "json_args_valid_rate": GateKind("higher", _PER_SAMPLE),
    "controls_with_integration": GateKind("lower", _POINT, quality=False, largest_bound=math.inf),
    "negative_control_ok_rate": GateKind("higher", _PER_SAMPLE),
    "clarify_ok_rate": GateKind("higher", _PER_SAMPLE),
    "error_recovery_rate": GateKind("higher", _PER_SAMPLE),
    "privacy_ok_rate": GateKind("higher", _POINT, quality=False),
    FIXTURES: GateKind("higher", _POOLED, quality=False),
    "locale_delta_es": GateKind("lower", _POOLED),
    "locale_delta_de": GateKind("lower", _POOLED),
    "locale_delta_fr": GateKind("lower", _POOLED),
    "locale_probe_ok_rate": GateKind("higher", _PER_SAMPLE),
    "teacher_heavy_spans_over_cap": GateKind("lower", _POINT, largest_bound=math.inf),
    "teacher_heavy_f1_lax": GateKind("higher", _PER_SAMPLE),
    PERF_BUDGET: GateKind("lower", _POINT, quality=False, largest_bound=math.inf),
    "dataset_calls": GateKind("higher", _POINT, quality=False, of_dataset=True),
    "dataset_facts": GateKind("higher", _POINT, quality=False, of_dataset=True),
    "dataset_teacher_texts": GateKind("higher", _POINT, quality=False, of_dataset=True),
    "dataset_cells": GateKind(
        "higher", _POINT, quality=False, largest_bound=math.inf, of_dataset=True
    ),
    "dataset_controls": GateKind("higher", _POINT, quality=False, of_dataset=True),
    "dataset_long_contexts": GateKind("higher", _POINT, quality=False, of_dataset=True),
    "dataset_spans": GateKind("higher", _POINT, quality=False, of_dataset=True),
}
# Of metrics that no gate judges; a gate knows its own direction.
_LOWER = frozenset(
    {"chance_f1", "copy_ratio", "integration_delta_lax_minus_strict", "unchecked_share"}
)
# What a plug-in's measure may be asked: it has whatever numbers its scorer gives.
_MEASURES: dict[Better, GateKind] = {
    "higher": GateKind("higher", _PER_SAMPLE, smallest_bound=-math.inf, largest_bound=math.inf),
    "lower": GateKind("lower", _POOLED, smallest_bound=-math.inf, largest_bound=math.inf),
}
# From the one that forgives nothing to the one that forgives all.
_STRICTNESS: dict[Policy, int] = {
    "hard_fail": 4,
    "count_based_misses": 3,
    "confident": 2,
    "clear_fail": 1,
    "warning_only": 0,
}


class _Shipped(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    op: Op
    bound: Number
    policy: Policy
    pct: float | None = None
    warn: Number | None = None
    zero_tolerance: bool = False
    any_n: bool = False


class _Override(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    bound: Number | None = None
    policy: Policy | None = None
    pct: float | None = None
    warn: Number | None = None


_Fields = TypeVar("_Fields", _Shipped, _Override)
_OPS: dict[str, Better] = {">=": "higher", "<=": "lower"}


class AddedGates(msgspec.Struct, frozen=True):
    """What plug-ins add: their measures by name, each with the way in which it is better, and the
    rules that they bring along themselves."""

    measures: Mapping[str, Better] = {}
    gates: Mapping[str, Json] = {}


def better_is(metric: str) -> Better:
    """Which way a metric of ours is better: whatever judges, compares or lists asks here."""
    if metric in GATES:
        return GATES[metric].better
    return "lower" if metric in _LOWER else "higher"


def is_measure(name: str) -> bool:
    """Whether this is a plug-in's measure: `scorer.measure`."""
    return "." in name


def kind_of(rule: GateRule) -> GateKind:
    found = GATES.get(rule.name)
    return found or _MEASURES["lower" if rule.op == "<=" else "higher"]


def resolve_rules(
    default: Mapping[str, Json],
    header: Mapping[str, Json] | None = None,
    config: Mapping[str, Json] | None = None,
    flags: Mapping[str, Json] | None = None,
    added: AddedGates | None = None,
) -> tuple[GateRule, ...]:
    """The rules in force: the shipped ones and those of plug-ins, overridden by the dataset's
    header, by the config and by the flags that were given. An override is a bound, or
    `{bound, policy, pct, warn}`, where `{">=": bound}` says the same. A measure of a plug-in, or a
    gate without a shipped bound, is gated where anybody says so."""
    added = added or AddedGates()
    shipped = {name: _shipped_rule(name, raw) for name, raw in default.items()}
    for name, raw in added.gates.items():
        open_rule = _unruled(name, added.measures[name])
        shipped[name] = _override(open_rule, raw, "default", f"the plug-in's gates.{name}")
    rules = dict(shipped)
    open_gates = {
        **{name: kind.better for name, kind in GATES.items() if kind.on_request},
        **added.measures,
    }
    places: tuple[tuple[Source, str, Mapping[str, Json] | None], ...] = (
        ("header", "dataset header: gates", header),
        ("config", "config: gates", config),
        ("flag", "flags: gates", flags),
    )
    for source, where, overrides in places:
        for name, raw in (overrides or {}).items():
            if name not in rules and name not in open_gates:
                known = _did_you_mean(name, (*rules, *open_gates))
                raise UsageError(f"{where}.{name}: no such gate{known}")
            rule = rules.get(name) or _unruled(name, open_gates[name])
            rules[name] = _override(rule, raw, source, f"{where}.{name}")
    return tuple(
        msgspec.structs.replace(
            rule, loosened=rule.name in shipped and _is_looser(rule, shipped[rule.name])
        )
        for rule in rules.values()
    )


def _unruled(name: str, better: Better) -> GateRule:
    """The gate on a measure of which nothing is asked yet."""
    op: Op = ">=" if better == "higher" else "<="
    return GateRule(name=name, op=op, bound=math.nan, policy="hard_fail")


def is_idle(rule: GateRule, *, all_marker: bool) -> bool:
    """Whether it judges only what is read with `marker`, and here something else is read."""
    return kind_of(rule).marker_only and rule.source == "default" and not all_marker


def rules_on_answers(rules: Iterable[GateRule]) -> tuple[GateRule, ...]:
    return tuple(rule for rule in rules if not kind_of(rule).of_dataset)


def rules_on_dataset(rules: Iterable[GateRule]) -> tuple[GateRule, ...]:
    return tuple(rule for rule in rules if kind_of(rule).of_dataset)


def is_satisfied(rule: GateRule, value: Number) -> bool:
    """Whether the value keeps the bound. Zero tolerance means none, not even for rounding."""
    tolerance = 0.0 if rule.zero_tolerance else TOLERANCE
    if kind_of(rule).better == "lower":
        return value <= rule.bound + tolerance
    if rule.op == ">":
        return value > rule.bound + tolerance
    return value >= rule.bound - tolerance


def is_below(value: float, bound: float) -> bool:
    return value < bound - TOLERANCE


def _shipped_rule(name: str, raw: Json) -> GateRule:
    if name not in GATES:
        raise UsageError(f"default gates.{name}: no such gate{_did_you_mean(name, GATES)}")
    shipped = _convert(raw, _Shipped, f"default gates.{name}")
    rule = GateRule(name=name, **msgspec.structs.asdict(shipped))
    return _check(rule, f"default gates.{name}")


def _override(rule: GateRule, raw: Json, source: Source, where: str) -> GateRule:
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        raw = {"bound": raw}
    raw = _with_bound(rule, raw, where)
    override = _convert(raw, _Override, where)
    given: dict[str, Json] = {
        field: value
        for field, value in msgspec.structs.asdict(override).items()
        if value is not None
    }
    if not given:
        raise UsageError(f"{where}: says nothing; give a bound, a policy or a pct")
    policy = override.policy or rule.policy
    if override.pct is not None and policy != "count_based_misses":
        raise UsageError(f"{where}.pct: has a meaning only with policy count_based_misses")
    if policy != "count_based_misses":
        given["pct"] = None
    if override.bound is not None and rule.op == "=" and override.bound != rule.bound:
        given["op"] = "<=" if kind_of(rule).better == "lower" else ">="
    rule = msgspec.structs.replace(rule, source=source, **given)
    if math.isnan(rule.bound) and override.bound is None:
        raise UsageError(f'{where}: says no bound: write {{"{rule.op}": BOUND}}')
    if override.warn is None and rule.warn is not None and not _is_stricter(rule, rule.warn):
        rule = msgspec.structs.replace(rule, warn=None)  # the new bound says all that it said
    return _check(rule, where)


def _is_stricter(rule: GateRule, bound: Number) -> bool:
    return bound > rule.bound if kind_of(rule).better == "higher" else bound < rule.bound


def _with_bound(rule: GateRule, raw: Json, where: str) -> Json:
    """`{">=": 0.95}` is `{bound: 0.95}`, where that is the way in which the metric is better."""
    given = [op for op in _OPS if isinstance(raw, dict) and op in raw]
    if not isinstance(raw, dict) or not given:
        return raw
    op, better = given[0], kind_of(rule).better
    if len(given) > 1 or "bound" in raw:
        raise UsageError(f"{where}: gives two bounds: give one of them")
    if _OPS[op] != better:
        right = next(one for one, way in _OPS.items() if way == better)
        raise UsageError(f"{where}.{op}: {better} is better here: write {right}")
    return {"bound" if name == op else name: value for name, value in raw.items()}


def _convert(raw: Json, kind: type[_Fields], where: str) -> _Fields:
    if not isinstance(raw, dict):
        raise UsageError(f"{where}: a number or an object is expected, not {raw!r}")
    known = kind.__struct_fields__
    for field in raw:
        if field not in known:
            keys = KeySet(known=known, synonyms=_FIELD_SYNONYMS)
            raise UsageError(f"{where}.{field}: {keys.refusal(str(field), raw.keys())}")
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        what, _, at = str(error).partition(" - at `$.")
        field = f".{at.rstrip('`')}" if at else ""
        raise UsageError(f"{where}{field}: {what[:1].lower()}{what[1:]}") from None


def _check(rule: GateRule, where: str) -> GateRule:
    kind = kind_of(rule)
    if not kind.smallest_bound <= rule.bound <= kind.largest_bound or math.isinf(rule.bound):
        limit = "at least 0" if math.isinf(kind.largest_bound) else "between 0 and 1"
        limit = "a finite number" if math.isinf(kind.smallest_bound) else limit
        raise UsageError(f"{where}.bound: must be {limit}, not {rule.bound}")
    if rule.policy not in kind.policies:
        allowed = ", ".join(kind.policies)
        raise UsageError(f"{where}.policy: {rule.policy} does not fit this gate; use {allowed}")
    if rule.warn is not None and not _is_stricter(rule, rule.warn):
        side = "above" if kind.better == "higher" else "below"
        raise UsageError(f"{where}.warn: must be {side} the bound {rule.bound}, not {rule.warn}")
    if rule.policy == "count_based_misses" and rule.pct is None:
        rule = msgspec.structs.replace(rule, pct=DEFAULT_PCT)
    if rule.pct is not None and not 0 <= rule.pct <= 1:
        raise UsageError(f"{where}.pct: must be between 0 and 1, not {rule.pct}")
    return rule


def _is_looser(rule: GateRule, shipped: GateRule) -> bool:
    if kind_of(rule).better == "higher":
        looser_bound = rule.bound < shipped.bound
    else:
        looser_bound = rule.bound > shipped.bound
    return (
        looser_bound
        or _STRICTNESS[rule.policy] < _STRICTNESS[shipped.policy]
        or (rule.policy == shipped.policy and (rule.pct or 0) > (shipped.pct or 0))
        or _warns_later(rule, shipped)
    )


def _warns_later(rule: GateRule, shipped: GateRule) -> bool:
    if shipped.warn is None:
        return False
    first = rule.bound if rule.warn is None else rule.warn
    return _is_stricter(msgspec.structs.replace(rule, bound=first), shipped.warn)


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    names = tuple(known)
    return hint(name, names) or f"; known: {', '.join(names)}"


_WANTED: dict[Op, str] = {">=": "at least", "<=": "at most", ">": "more than", "=": "exactly"}


def wanted_text(op: Op, bound: Number) -> str:
    """`at least 0.9`."""
    return f"{_WANTED[op]} {bound:g}"


def policy_sentence(outcome: GateOutcome) -> str:
    """When this gate fails, with its numbers."""
    beyond = _beyond(outcome)
    match outcome.policy:
        case "hard_fail":
            return f"fails {beyond}"
        case "warning_only":
            return f"warns {beyond}, never fails"
        case "clear_fail":
            return f"fails when clearly {beyond}, beyond what chance explains"
        case "confident":
            return f"fails when surely {beyond}, passes when surely not, else stays open"
        case "count_based_misses" if outcome.allowed is None:
            return f"fails when the mean is {beyond} and too many samples fall short"
        case "count_based_misses":
            many = f"more than {outcome.allowed} of {outcome.n} fall short"
            return f"fails when {many} and the mean is {beyond}"
        case _:
            assert_never(outcome.policy)


def _beyond(outcome: GateOutcome) -> str:
    bound = f"{outcome.bound:g}"
    match outcome.op:
        case ">=":
            return f"below {bound}"
        case "<=":
            return f"above {bound}"
        case ">":
            return f"at {bound} or below"
        case "=":
            return f"unless it is {bound}"
        case _:
            assert_never(outcome.op)


__all__ = [
    "JudgeContext",
    "VerdictContext",
    "judge",
    "resolve_rules",
    "verdict_of",
]

NO_SUCH_SAMPLE = "the dataset has no such sample"
NOT_MARKER = "answers are read with `claims`: flagged_sample_rate judges their values"
MOST_UNCHECKED = 0.5
TOO_FEW = "(min_eligible_for_gates)"
UNJUDGED = "no gate on right calls or true statements could be judged"
# A shard sees only some samples: what the others cannot make good may change its exit code.
SHARD_GATES = frozenset({FIXTURES, "privacy_ok_rate"})


class JudgeContext(msgspec.Struct, frozen=True, kw_only=True):
    """What beside the numbers decides how they are judged."""

    min_eligible: int = 15
    seed: int = 42
    partial: bool = False
    is_shard: bool = False
    all_marker: bool = False
    unchecked_share: float = 0.0


def judge(
    rules: Iterable[GateRule], measures: Mapping[str, Measure], context: JudgeContext
) -> tuple[GateOutcome, ...]:
    """One outcome per rule, in their order."""
    rules = tuple(rules)
    fixtures = next((rule for rule in rules if rule.name == FIXTURES), None)
    fixtures_fail = (
        fixtures is not None
        and FIXTURES in measures
        and _outcome(fixtures, measures[FIXTURES], context, fixtures_fail=False).status == "fail"
    )
    return tuple(
        _outcome(rule, measures[rule.name], context, fixtures_fail=fixtures_fail)
        for rule in rules
        if rule.name in measures
    )


class _Ruling(msgspec.Struct, frozen=True, kw_only=True):
    status: Status
    reason: str | None = None
    misses: int | None = None
    allowed: int | None = None
    needed_n: int | None = None


def _outcome(
    rule: GateRule, measure: Measure, context: JudgeContext, *, fixtures_fail: bool
) -> GateOutcome:
    kind, metric = kind_of(rule), measure.metric
    value = metric.value
    if kind.compared == "ci_95_low":
        value = None if metric.ci_95 is None else metric.ci_95[0]
    ruling = _open_ruling(rule, measure, value, context, fixtures_fail=fixtures_fail)
    if ruling is None:
        assert value is not None  # noqa: S101 - no value is an open ruling
        ruling = _ruling(rule, value, measure, context)
    # Judged like any other first, so that the report shows what the gate would have said.
    if ruling.status == "fail" and rule.policy == "warning_only":
        ruling = msgspec.structs.replace(ruling, status="warn")
    if ruling.status == "pass" and rule.warn is not None and value is not None:
        ruling = _warned(rule, value) or ruling
    return GateOutcome(
        name=rule.name,
        status=ruling.status,
        value=value,
        op=rule.op,
        bound=rule.bound,
        policy=rule.policy,
        n=metric.n,
        source=rule.source,
        loosened=rule.loosened,
        compared=kind.compared,
        reason=ruling.reason,
        misses=ruling.misses,
        allowed=ruling.allowed,
        needed_n=ruling.needed_n,
    )


def _open_ruling(
    rule: GateRule,
    measure: Measure,
    value: Number | None,
    context: JudgeContext,
    *,
    fixtures_fail: bool,
) -> _Ruling | None:
    """Why this gate cannot be judged, if it cannot. A violation of zero tolerance always can."""
    waits_for_merge = context.is_shard and rule.name not in SHARD_GATES
    # One leaked card is a leak in a partial run, too, and with however few samples.
    is_violated = rule.zero_tolerance and value is not None and not is_satisfied(rule, value)
    if is_violated and not waits_for_merge:
        return None
    metric = measure.metric
    if waits_for_merge:
        return _Ruling(status="inconclusive", reason="judged after merge")
    if context.partial:
        return _Ruling(status="inconclusive", reason="partial run: not all samples were chosen")
    if measure.population == 0:
        return _Ruling(status="n/a", reason=measure.absent or NO_SUCH_SAMPLE)
    if is_idle(rule, all_marker=context.all_marker):
        return _Ruling(status="n/a", reason=NOT_MARKER)
    # Where tools gave no answer, the model had nothing to build on: that is no judgement of it.
    if fixtures_fail and kind_of(rule).quality:
        return _Ruling(status="inconclusive", reason=f"fixtures: {FIXTURES} failed")
    if metric.value is None:
        return _Ruling(status="inconclusive", reason=metric.reason or "no value")
    if metric.n < context.min_eligible and not rule.any_n:
        few = f"{count_of(metric.n, 'sample')} behind it, {context.min_eligible} are needed"
        reason = f"{few} {TOO_FEW}"
        return _Ruling(status="inconclusive", reason=reason)
    if rule.name == FLAGGED and context.unchecked_share > MOST_UNCHECKED:
        share = f"{context.unchecked_share:.2f} of the statements could not be checked"
        reason = f"{share}, at most {MOST_UNCHECKED} may be ({UNCHECKED})"
        return _Ruling(status="inconclusive", reason=reason)
    if value is None:
        return _Ruling(status="inconclusive", reason="no interval could be computed")
    return None


def _ruling(rule: GateRule, value: Number, measure: Measure, context: JudgeContext) -> _Ruling:
    holds = is_satisfied(rule, value)
    match rule.policy:
        case "hard_fail" | "warning_only":
            return _Ruling(status="pass" if holds else "fail")
        case "count_based_misses":
            return _by_misses(rule, measure.observe().columns[0], holds=holds)
        case "clear_fail":
            return _by_clearness(rule, measure, context.seed, holds=holds)
        case "confident":
            return _by_confidence(rule, measure, context.seed)
        case _:
            assert_never(rule.policy)


def _warned(rule: GateRule, value: Number) -> _Ruling | None:
    warning = msgspec.structs.replace(rule, bound=rule.warn)
    if is_satisfied(warning, value):
        return None
    return _Ruling(status="warn", reason=f"the value is beyond {rule.warn:g}, where it warns")


def _by_misses(rule: GateRule, values: Sequence[float], *, holds: bool) -> _Ruling:
    misses = sum(1 for value in values if is_below(value, rule.bound))
    allowed = allowed_misses(rule, len(values))
    fails = not holds and misses > allowed
    reason = None
    if not holds and not fails:
        reason = f"the mean is below the bound, but only {misses} of {allowed} allowed samples are"
    return _Ruling(
        status="fail" if fails else "pass", reason=reason, misses=misses, allowed=allowed
    )


def allowed_misses(rule: GateRule, n: int) -> int:
    # 0.07 * 100 is 7.000000000000001: rounding must not allow an eighth.
    return max(1, math.ceil((rule.pct or 0.0) * n - 1e-9))


def _by_clearness(rule: GateRule, measure: Measure, seed: int, *, holds: bool) -> _Ruling:
    """A shortfall that chance explains is a warning: only a clear one fails."""
    sides = _worst_and_best(rule, measure, seed)
    if sides is None:
        return _NO_BOUND
    if not is_satisfied(rule, sides[1]):
        return _Ruling(status="fail")
    if holds:
        return _Ruling(status="pass")
    return _Ruling(
        status="warn", reason="the value is beyond the bound, its one-sided 95 % bound is not"
    )


def _by_confidence(rule: GateRule, measure: Measure, seed: int) -> _Ruling:
    sides = _worst_and_best(rule, measure, seed)
    if sides is None:
        return _NO_BOUND
    worst, best = sides
    if is_satisfied(rule, worst):
        return _Ruling(status="pass")
    if not is_satisfied(rule, best):
        return _Ruling(status="fail")
    needed = deciding_n(measure.observe(), rule.bound, seed)
    many = "no number of samples" if needed is None else f"about {needed} samples"
    return _Ruling(
        status="inconclusive",
        reason=f"the one-sided 95 % bounds lie on both sides; {many} would decide",
        needed_n=needed,
    )


_NO_BOUND = _Ruling(status="inconclusive", reason="no one-sided bound could be computed")


def _worst_and_best(rule: GateRule, measure: Measure, seed: int) -> tuple[float, float] | None:
    """The one-sided 95 % bounds, the one that is worse for the model first."""
    sides = bounds_one_sided(measure.observe(), seed)
    if sides is None or kind_of(rule).better == "higher":
        return sides
    return sides[1], sides[0]


SAME_ANSWER = "every answer is the same text"


class VerdictContext(msgspec.Struct, frozen=True, kw_only=True):
    """`same_answer`: two or more samples, and every answer is the same text (which may be
    nothing). `is_judged`: enough samples are eligible to fail a model by that.
    `passed_by_silence`: gates that a model which says nothing would pass too."""

    samples: int
    complete: bool
    is_shard: bool = False
    same_answer: bool = False
    is_judged: bool = False
    passed_by_silence: frozenset[str] = frozenset()


def verdict_of(outcomes: Iterable[GateOutcome], context: VerdictContext) -> tuple[Verdict, str]:
    """The verdict and why. It is a pass only if a gate on right calls or true statements passed:
    controls and privacy alone cannot tell a model that says nothing from a good one, and neither
    can checks that an empty answer passes."""
    outcomes = tuple(outcomes)
    binding = [outcome for outcome in outcomes if outcome.policy != "warning_only"]
    failed = [outcome.name for outcome in binding if outcome.status == "fail"]
    passed = [outcome.name for outcome in binding if outcome.status == "pass"]
    proofs = [one for one in outcomes if one.name in GATES and GATES[one.name].proof]
    mute = context.passed_by_silence
    if not context.complete:
        return "incomplete", "trials are missing or ended in an error"
    if context.samples == 0:
        return "empty", "there is no sample"
    if failed:
        return "fail", f"failed: {', '.join(failed)}"
    if context.is_shard:
        return "inconclusive", "a shard: judged after merge"
    if context.same_answer and context.is_judged:
        return "fail", SAME_ANSWER
    if not any(one.status == "pass" and one.n > 0 and one.name not in mute for one in proofs):
        return "inconclusive", _why_unproved(proofs, mute)
    # A model that always says one thing may be right by luck, or because the dataset is too easy.
    if context.same_answer:
        return "inconclusive", SAME_ANSWER
    return "pass", f"passed: {', '.join(passed)}"


def _why_unproved(proofs: Sequence[GateOutcome], mute: Collection[str] = ()) -> str:
    """Why nothing says that the model's calls or statements are right."""
    idle = [one.name for one in proofs if one.status == "pass" and one.name in mute]
    proofs = [one for one in proofs if one.name not in idle]
    if idle and all(outcome.status == "n/a" for outcome in proofs):
        return f"nothing to judge the model by: an empty answer passes {', '.join(idle)} too"
    if not proofs:
        return "no gate on right calls or true statements is in force"
    if all(outcome.status == "n/a" for outcome in proofs):
        return "nothing to judge the model by: no sample expects a call"
    warned = [outcome.name for outcome in proofs if outcome.status == "warn"]
    if warned:
        return f"no gate on right calls or true statements passed: {', '.join(warned)} warned"
    open_gates = [one for one in proofs if one.status == "inconclusive"]
    # Where several have too few samples, the one with the most says how many are missing.
    few = [one for one in open_gates if (one.reason or "").endswith(TOO_FEW)]
    most = max(few, key=lambda one: one.n, default=None)
    told = (one for one in open_gates if one not in few or one is most)
    reasons = dict.fromkeys(one.reason or "" for one in told)
    return f"{UNJUDGED}: {'; '.join(reasons)}"
