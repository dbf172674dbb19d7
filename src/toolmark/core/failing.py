"""Which samples stand behind each shortfall, so that a person can look at them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping

from toolmark.core.gate_rules import is_below
from toolmark.core.metrics import DEFINITIONS, GATED_LANGUAGES, TEACHER_HEAVY, Over, Subset
from toolmark.core.report import FAILING_CAP, Failing, Number

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


def failing_of(whole: Subset, bounds: Mapping[str, Number]) -> dict[str, Failing]:
    """By gate or metric name, in the order of the dataset; only names with a shortfall."""
    found: dict[str, Failing] = {}
    column = whole.samples.column
    for name, (over, key) in _BELOW_BOUND.items():
        if name in bounds:
            found[name] = _listed(whole, over, _below(column(key), bounds[name]))
    for definition in DEFINITIONS:
        if definition.made == "rate":
            is_short = _below(column(definition.columns[0]), 1)
            found[definition.name] = _listed(whole, definition.over, is_short)
    for name, (over, key) in _ANY.items():
        found[name] = _listed(whole, over, _above(column(key), 0))
    hits, looked_up = column("hits"), column("looked_up")
    found["fixture_hit_rate"] = _listed(whole, "not_control", lambda at: hits[at] < looked_up[at])
    heavy = whole.in_slice(TEACHER_HEAVY)
    found["teacher_heavy_spans_over_cap"] = _listed(heavy, "all", _above(column("over_cap"), 0))
    lax, strict = column("f1_lax"), column("f1_strict")
    if "teacher_heavy_f1_lax" in bounds:
        is_short = _below(lax, bounds["teacher_heavy_f1_lax"])
        found["teacher_heavy_f1_lax"] = _listed(heavy, "eligible", is_short)
    for language in GATED_LANGUAGES:
        found[f"locale_delta_{language}"] = _listed(
            whole.probes(language), "eligible", lambda at: lax[at] > strict[at]
        )
    return {name: failing for name, failing in sorted(found.items()) if failing.count}


def _below(values: array[float], bound: Number) -> Callable[[int], bool]:
    # A negative number says that the metric does not apply to the sample.
    return lambda at: values[at] >= 0 and is_below(values[at], bound)


def _above(values: array[float], bound: Number) -> Callable[[int], bool]:
    return lambda at: values[at] > bound


def _listed(subset: Subset, over: Over, is_short: Callable[[int], bool]) -> Failing:
    positions = array("I", (at for at in subset.over(over) if is_short(at)))
    ids = tuple(subset.samples.id_at(at) for at in positions[:FAILING_CAP])
    return Failing(len(positions), ids)
