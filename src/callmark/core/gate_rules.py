"""The gates as a table, and which rule is in force: shipped, or overridden by whom."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal, TypeVar, get_args

import msgspec

from callmark.core.jsontext import Json
from callmark.core.keys import KeySet, hint
from callmark.core.report import GateRule, Number, Op, Policy, Source
from callmark.errors import UsageError

PERF_BUDGET = "perf_budget_sec_per_100"
FIXTURES = "fixture_hit_rate"
DEFAULT_PCT = 0.05
_FIELD_SYNONYMS = {
    **dict.fromkeys(("threshold", "min", "minimum", "max", "maximum", "value", "limit"), "bound"),
    **dict.fromkeys(("percent", "share", "percentage"), "pct"),
    **dict.fromkeys(("mode", "onfail", "severity"), "policy"),
}
_TOLERANCE = 1e-9  # a mean of thirds that is 0.9 must not fall below 0.9

_POINT: tuple[Policy, ...] = ("hard_fail", "warning_only")
_POOLED: tuple[Policy, ...] = ("hard_fail", "clear_fail", "confident", "warning_only")
_PER_SAMPLE: tuple[Policy, ...] = get_args(Policy)


class GateKind(msgspec.Struct, frozen=True):
    """What does not change from run to run. `quality`: says nothing where fixtures are missing.
    `proof`: it judges the model's calls or statements; a run passes only if one of these does.
    `of_dataset`: about the dataset itself; judged when one is verified, never in a run."""

    better: Literal["higher", "lower"]
    policies: tuple[Policy, ...]
    quality: bool = True
    proof: bool = False
    compared: Literal["value", "ci_95_low"] = "value"
    largest_bound: float = 1.0
    of_dataset: bool = False


GATES: dict[str, GateKind] = {
    "integration_f1_macro_lax": GateKind("higher", _PER_SAMPLE, proof=True),
    "integration_f1_macro_strict": GateKind("higher", _PER_SAMPLE),
    "integration_coverage": GateKind("higher", _PER_SAMPLE),
    "grounded_coverage": GateKind("higher", _PER_SAMPLE),
    "unsupported_value_rate": GateKind("lower", _POOLED),
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
    "dataset_teacher_texts": GateKind("higher", _POINT, quality=False, of_dataset=True),
    "dataset_cells": GateKind(
        "higher", _POINT, quality=False, largest_bound=math.inf, of_dataset=True
    ),
    "dataset_controls": GateKind("higher", _POINT, quality=False, of_dataset=True),
    "dataset_long_contexts": GateKind("higher", _POINT, quality=False, of_dataset=True),
    "dataset_spans": GateKind("higher", _POINT, quality=False, of_dataset=True),
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
    marker_policy: Policy | None = None
    zero_tolerance: bool = False
    any_n: bool = False


class _Override(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    bound: Number | None = None
    policy: Policy | None = None
    pct: float | None = None
    marker_policy: Policy | None = None


_Fields = TypeVar("_Fields", _Shipped, _Override)


def resolve_rules(
    default: Mapping[str, Json],
    header: Mapping[str, Json] | None = None,
    config: Mapping[str, Json] | None = None,
    flags: Mapping[str, Json] | None = None,
) -> tuple[GateRule, ...]:
    """The rules in force: the shipped ones, overridden by the dataset's header, by the config and
    by the flags that were given. An override is a bound, or `{bound, policy, pct}`."""
    shipped = {name: _shipped_rule(name, raw) for name, raw in default.items()}
    rules = dict(shipped)
    places: tuple[tuple[Source, str, Mapping[str, Json] | None], ...] = (
        ("header", "dataset header: gates", header),
        ("config", "config: gates", config),
        ("flag", "flags: gates", flags),
    )
    for source, where, overrides in places:
        for name, raw in (overrides or {}).items():
            if name not in rules:
                raise UsageError(f"{where}.{name}: no such gate{_did_you_mean(name, rules)}")
            rules[name] = _overridden(rules[name], raw, source, f"{where}.{name}")
    return tuple(
        msgspec.structs.replace(rule, loosened=_is_looser(rule, shipped[rule.name]))
        for rule in rules.values()
    )


def rules_on_answers(rules: Iterable[GateRule]) -> tuple[GateRule, ...]:
    return tuple(rule for rule in rules if not GATES[rule.name].of_dataset)


def rules_on_dataset(rules: Iterable[GateRule]) -> tuple[GateRule, ...]:
    return tuple(rule for rule in rules if GATES[rule.name].of_dataset)


def is_satisfied(rule: GateRule, value: Number) -> bool:
    """Whether the value keeps the bound. Zero tolerance means none, not even for rounding."""
    tolerance = 0.0 if rule.zero_tolerance else _TOLERANCE
    if GATES[rule.name].better == "lower":
        return value <= rule.bound + tolerance
    if rule.op == ">":
        return value > rule.bound + tolerance
    return value >= rule.bound - tolerance


def is_below(value: float, bound: float) -> bool:
    return value < bound - _TOLERANCE


def _shipped_rule(name: str, raw: Json) -> GateRule:
    if name not in GATES:
        raise UsageError(f"default gates.{name}: no such gate{_did_you_mean(name, GATES)}")
    shipped = _converted(raw, _Shipped, f"default gates.{name}")
    rule = GateRule(name=name, **msgspec.structs.asdict(shipped))
    return _checked(rule, f"default gates.{name}")


def _overridden(rule: GateRule, raw: Json, source: Source, where: str) -> GateRule:
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        raw = {"bound": raw}
    override = _converted(raw, _Override, where)
    given: dict[str, Json] = {
        field: value
        for field, value in msgspec.structs.asdict(override).items()
        if value is not None
    }
    if not given:
        raise UsageError(f"{where}: says nothing; give a bound, a policy or a pct")
    if override.marker_policy is not None and rule.marker_policy is None:
        raise UsageError(f"{where}.marker_policy: only unsupported_value_rate has one")
    if override.policy is not None and override.marker_policy is None:
        given["marker_policy"] = None  # whoever names a policy means it for every extractor
    policy = override.policy or rule.policy
    if override.pct is not None and policy != "count_based_misses":
        raise UsageError(f"{where}.pct: has a meaning only with policy count_based_misses")
    if policy != "count_based_misses":
        given["pct"] = None
    if override.bound is not None and rule.op == "=" and override.bound != rule.bound:
        given["op"] = "<=" if GATES[rule.name].better == "lower" else ">="
    return _checked(msgspec.structs.replace(rule, source=source, **given), where)


def _converted(raw: Json, kind: type[_Fields], where: str) -> _Fields:
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


def _checked(rule: GateRule, where: str) -> GateRule:
    kind = GATES[rule.name]
    if not 0 <= rule.bound <= kind.largest_bound or math.isinf(rule.bound):
        limit = "at least 0" if math.isinf(kind.largest_bound) else "between 0 and 1"
        raise UsageError(f"{where}.bound: must be {limit}, not {rule.bound}")
    for field, policy in (("policy", rule.policy), ("marker_policy", rule.marker_policy)):
        if policy is not None and policy not in kind.policies:
            allowed = ", ".join(kind.policies)
            raise UsageError(f"{where}.{field}: {policy} does not fit this gate; use {allowed}")
    if rule.policy == "count_based_misses" and rule.pct is None:
        rule = msgspec.structs.replace(rule, pct=DEFAULT_PCT)
    if rule.pct is not None and not 0 <= rule.pct <= 1:
        raise UsageError(f"{where}.pct: must be between 0 and 1, not {rule.pct}")
    return rule


def _is_looser(rule: GateRule, shipped: GateRule) -> bool:
    if GATES[rule.name].better == "higher":
        looser_bound = rule.bound < shipped.bound
    else:
        looser_bound = rule.bound > shipped.bound
    return (
        looser_bound
        or _STRICTNESS[rule.policy] < _STRICTNESS[shipped.policy]
        or _STRICTNESS[marker_policy(rule)] < _STRICTNESS[marker_policy(shipped)]
        or (rule.policy == shipped.policy and (rule.pct or 0) > (shipped.pct or 0))
    )


def marker_policy(rule: GateRule) -> Policy:
    """The policy where every eligible sample was read with the `marker` extractor."""
    return rule.marker_policy or rule.policy


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    names = tuple(known)
    return hint(name, names) or f"; known: {', '.join(names)}"
