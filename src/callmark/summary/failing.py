"""Which samples stand behind each shortfall, so that a person can look at them."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

from callmark.records.checks import explain_check
from callmark.records.report import FAILING_CAP, Failing, GateRule, Number
from callmark.records.results import Result, Scores
from callmark.summary.gates import is_below, is_satisfied
from callmark.summary.metrics import (
    CHECKS,
    DEFINITIONS,
    GATED_LANGUAGES,
    TEACHER_HEAVY,
    Over,
    Subset,
)
from callmark.summary.repeats import PASSING_F1
from callmark.summary.trials import is_there

# gate -> (samples, column): short where the number is below the gate's bound
_BELOW_BOUND: dict[str, tuple[Over, str]] = {
    "integration_f1_macro_lax": ("eligible", "f1_lax"),
    "integration_f1_macro_strict": ("eligible", "f1_strict"),
    "call_f1_macro": ("all", "call_f1"),
}
# metric -> (samples, column): short where there is any
_ANY: dict[str, tuple[Over, str]] = {
    "unsupported_value_rate": ("eligible", "unsupported"),
    "controls_with_integration": ("control", "contaminated"),
}


def failing_of(whole: Subset, rules: Mapping[str, GateRule]) -> dict[str, Failing]:
    """By gate or metric name, in the order of the dataset; only names with a shortfall."""
    found = {name: _name_failing(whole, rows) for name, rows in failing_rows(whole, rules) if rows}
    return dict(sorted(found.items()))


def failing_rows(whole: Subset, rules: Mapping[str, GateRule]) -> Iterator[tuple[str, array[int]]]:
    """Each gate or metric with the rows of all samples that fall short of it."""
    bounds = {name: rule.bound for name, rule in rules.items()}
    for name in whole.samples.measures:
        if name in rules:
            yield name, _short(whole, "all", name, _violates(rules[name]))
    definitions = {definition.name: definition for definition in DEFINITIONS}
    for name, (over, key) in _BELOW_BOUND.items():
        if name in bounds and not whole.lacks_keys(definitions[name]):
            yield name, _short(whole, over, key, _below(bounds[name]))
    for definition in DEFINITIONS:
        if definition.made == "rate":
            key = definition.columns[0]
            yield definition.name, _short(whole, definition.over, key, _below(1))
    for name, (over, key) in _ANY.items():
        yield name, _short(whole, over, key, _is_any)
    yield "fixture_hit_rate", _less(whole, "not_control", "hits", "looked_up")
    heavy = whole.in_slice(TEACHER_HEAVY)
    yield "teacher_heavy_spans_over_cap", _short(heavy, "all", "over_cap", _is_any)
    if "teacher_heavy_f1_lax" in bounds:
        is_short = _below(bounds["teacher_heavy_f1_lax"])
        yield "teacher_heavy_f1_lax", _short(heavy, "eligible", "f1_lax", is_short)
    for language in GATED_LANGUAGES:
        probes = whole.probes(language)
        if probes.lacks_keys(definitions["integration_delta_lax_minus_strict"]):
            continue
        yield f"locale_delta_{language}", _less(probes, "eligible", "f1_strict", "f1_lax")


def _below(bound: Number) -> Callable[[float], bool]:
    # A negative number says that the metric does not apply to the sample.
    return lambda value: value >= 0 and is_below(value, bound)


def _violates(rule: GateRule) -> Callable[[float], bool]:
    return lambda value: is_there(value) and not is_satisfied(rule, value)


def _is_any(value: float) -> bool:
    return value > 0


def _short(subset: Subset, over: Over, key: str, is_short: Callable[[float], bool]) -> array[int]:
    return subset.samples.column(key).where(is_short, subset.over(over))


def _less(subset: Subset, over: Over, key: str, than: str) -> array[int]:
    """The samples whose number of one column is below that of another."""
    left, right = subset.samples.column(key), subset.samples.column(than)
    positions = subset.over(over)
    are_less = map(operator.lt, left.at(positions), right.at(positions))
    return array("I", compress(positions, are_less))


def _name_failing(subset: Subset, positions: array[int]) -> Failing:
    ids = tuple(subset.samples.id_at(at) for at in positions[:FAILING_CAP])
    return Failing(len(positions), ids)


_SHOWN = 3  # of the details of one verdict


def why_failed(
    result: Result, warnings: Collection[str] = (), rules: Mapping[str, GateRule] | None = None
) -> tuple[str, ...]:
    """One sentence for each verdict that went against the trial; none: it did not fail.
    `warnings`: the gates that only warn; what falls short of one of them has not failed. `rules`:
    the gates in force; a plug-in's measure is right or wrong only where one of them is about it."""
    scores = result.scores
    if scores is None or result.status == "error":
        return (f"not scored: {result.error or 'no reason is given'}",)
    echo_denied = result.scoring.privacy_echo == "deny"
    return tuple(
        _sentence(verdict)
        for verdict in (
            *_verdicts(scores, echo_denied=echo_denied),
            *_number_verdicts(scores),
            *_measure_verdicts(scores, rules or {}),
        )
        if verdict.ok is False and verdict.gate not in warnings
    )


class _Verdict(NamedTuple):
    """The gate that it counts for, what it says when it is False, and what more is known then."""

    gate: str
    ok: bool | None
    what: str
    details: Sequence[str] = ()


def _sentence(verdict: _Verdict) -> str:
    details = verdict.details
    cut = " …" if len(details) > _SHOWN else ""
    return f"{verdict.what}: {'; '.join(details[:_SHOWN])}{cut}" if details else verdict.what


def _number_verdicts(scores: Scores) -> Iterator[_Verdict]:
    """What a number decides: the calls (where no stricter verdict names them), then the F1."""
    if scores.call_f1 is not None and scores.multi_call_parity_ok is not False:
        right = not is_below(scores.call_f1, PASSING_F1)
        said = f"call F1 {scores.call_f1:.3f}"
        yield _Verdict("call_f1_macro", right, said, _other_calls(scores))
    lax = scores.lax
    if scores.kind == "eligible":
        unsupported = scores.values.get("unsupported", 0)
        said = f", {unsupported} values that no result supports" if unsupported else ""
        yield _Verdict(
            "integration_f1_macro_lax",
            not is_below(lax.f1, PASSING_F1),
            f"F1 {lax.f1:.3f}: {lax.grounded} of {scores.spans_counted} spans grounded,"
            f" {lax.found} of {scores.facts_required} facts found{said}",
        )


def _measure_verdicts(scores: Scores, rules: Mapping[str, GateRule]) -> Iterator[_Verdict]:
    for name, value in scores.added.items():
        rule = rules.get(name)
        if rule is not None and value is not None:
            said = f"{name} is {show_measure(value)}"
            yield _Verdict(name, is_satisfied(rule, value), said)


def show_measure(value: bool | float | None) -> str:
    """As a person reads it."""
    match value:
        case None:
            return "not judged"
        case bool():
            return "yes" if value else "no"
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.3f}"


def _verdicts(scores: Scores, *, echo_denied: bool) -> Iterator[_Verdict]:
    calls, breaches = scores.calls, _breaches(scores, echo_denied=echo_denied)
    clean = not scores.controls_with_integration
    for verdict in (
        ("json_args_valid_rate", scores.json_args_valid, "invalid arguments", calls.errors),
        (
            "multi_call_parity_rate",
            scores.multi_call_parity_ok,
            "not the expected calls",
            _other_calls(scores),
        ),
        ("error_recovery_rate", scores.recovered, "did not recover from an error"),
        (
            "negative_control_ok_rate",
            scores.negative_control_ok,
            "stated something that no tool had found",
        ),
        ("clarify_ok_rate", scores.clarify_ok, "did not ask back"),
        ("locale_probe_ok_rate", scores.locale_probe_ok, "a number or date read in another locale"),
        ("privacy_ok_rate", scores.privacy_ok, "privacy", breaches),
        ("controls_with_integration", clean, "a control with a call or an integration"),
        ("fixture_hit_rate", not scores.unresolved, "a call without a fixture"),
    ):
        yield _Verdict(*verdict)
    for check in scores.checks:
        yield _Verdict(CHECKS, check.ok, f"check {explain_check(check)}")


def _other_calls(scores: Scores) -> tuple[str, ...]:
    differences = scores.calls.differences
    listed = {
        "missing": differences.missing,
        "extra": differences.extra,
        "differs": differences.differing,
    }
    found = [f"{word} {call}" for word, calls in listed.items() for call in calls]
    return (*found, "in another order") if differences.reordered else tuple(found)


def _breaches(scores: Scores, *, echo_denied: bool) -> tuple[str, ...]:
    """Without what was found: personal data do not belong in one more file."""
    kinds = {
        f"{finding.kind} in {finding.where}"
        for finding in scores.privacy.findings
        if finding.severity in ("high", "medium") and (echo_denied or not finding.echoed)
    }
    return (*sorted(kinds), *(f"invented URL {url}" for url in scores.privacy.invented_urls))
