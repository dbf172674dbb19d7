"""Which samples stand behind each shortfall, so that a person can look at them."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable, Iterator, Mapping
from itertools import compress

from callmark.core.gate_rules import is_below
from callmark.core.metrics import DEFINITIONS, GATED_LANGUAGES, TEACHER_HEAVY, Over, Subset
from callmark.core.report import FAILING_CAP, Failing, Number

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
    found = {name: _named(whole, rows) for name, rows in failing_rows(whole, bounds) if rows}
    return dict(sorted(found.items()))


def failing_rows(whole: Subset, bounds: Mapping[str, Number]) -> Iterator[tuple[str, array[int]]]:
    """Each gate or metric with the rows of all samples that fall short of it."""
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


def _named(subset: Subset, positions: array[int]) -> Failing:
    ids = tuple(subset.samples.id_at(at) for at in positions[:FAILING_CAP])
    return Failing(len(positions), ids)
