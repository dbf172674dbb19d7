"""Which gate is in force, from where, and whether somebody made it forgive more."""

import pytest
from tests.builders import default_gates, rules_with

from callmark.config import GATES_ON_REQUEST
from callmark.errors import UsageError
from callmark.summary.gates import GATES, resolve_rules


def rule(name, *layers):
    """The rule after header, config and flags were given in turn."""
    rules = resolve_rules(default_gates(), *layers)
    return next(entry for entry in rules if entry.name == name)


def test_a2_every_shipped_gate_has_bound_policy_and_source():
    rules = resolve_rules(default_gates())
    on_request = {name for name, kind in GATES.items() if kind.on_request}
    assert on_request == {"invented_argument_rate"} == set(GATES_ON_REQUEST)
    assert {entry.name for entry in rules} == GATES.keys() - on_request
    assert all(entry.source == "default" and not entry.loosened for entry in rules)
    shipped = {entry.name: (entry.op, entry.bound, entry.policy) for entry in rules}
    assert shipped["integration_f1_macro_lax"] == (">=", 0.90, "count_based_misses")
    assert shipped["json_args_valid_rate"] == (">=", 0.98, "hard_fail")
    assert shipped["privacy_ok_rate"] == ("=", 1.0, "hard_fail")
    assert shipped["grounding_lift"] == (">", 0.0, "hard_fail")
    assert shipped["flagged_sample_rate"] == ("<=", 0.25, "clear_fail")
    for name in ("answered_rate", "copy_ratio_ok_rate", "negative_control_ok_rate"):
        assert shipped[name] == (">=", 0.95, "clear_fail")
    assert shipped["call_f1_macro"] == (">=", 0.90, "clear_fail")
    assert shipped["unsupported_value_rate"] == ("<=", 0.05, "warning_only")


def test_d49_later_places_win_and_are_named():
    name = "integration_coverage"
    header, config, flags = {name: 0.96}, {name: {"bound": 0.97}}, {name: 0.98}
    assert (rule(name, header).bound, rule(name, header).source) == (0.96, "header")
    assert (rule(name, header, config).bound, rule(name, header, config).source) == (
        0.97,
        "config",
    )
    assert rule(name, header, config, flags).source == "flag"
    assert rule(name, None, None, flags).bound == 0.98
    kept = rule(name, {name: {"policy": "warning_only"}}, {name: 0.5})
    assert (kept.policy, kept.bound) == ("warning_only", 0.5)


@pytest.mark.parametrize(
    ("name", "override", "loosened"),
    [
        ("integration_f1_macro_lax", 0.89, True),
        ("integration_f1_macro_lax", 0.91, False),
        ("unsupported_value_rate", 0.06, True),
        ("unsupported_value_rate", 0.04, False),
        ("controls_with_integration", 1, True),
        ("privacy_ok_rate", 0.99, True),
        ("integration_coverage", {"policy": "warning_only"}, True),
        ("integration_coverage", {"policy": "confident"}, True),
        ("integration_coverage", {"policy": "count_based_misses"}, True),
        ("grounded_coverage", {"policy": "hard_fail"}, False),
        ("integration_f1_macro_lax", {"pct": 0.1}, True),
        ("integration_f1_macro_lax", {"pct": 0.01}, False),
        ("unsupported_value_rate", {"policy": "hard_fail"}, False),
        ("unsupported_value_rate", {"policy": "warning_only"}, False),
        ("flagged_sample_rate", 0.3, True),
        ("flagged_sample_rate", {"bound": 0.05, "policy": "hard_fail"}, False),
        ("flagged_sample_rate", {"warn": 0.1}, True),
        ("flagged_sample_rate", {"warn": 0.01}, False),
        ("flagged_sample_rate", {"policy": "warning_only"}, True),
        ("perf_budget_sec_per_100", 3, True),
    ],
)
def test_what_forgives_more_is_loosened(name, override, loosened):
    assert rule(name, None, {name: override}).loosened is loosened


def test_loosened_is_measured_against_the_shipped_rule_not_the_last_one():
    name = "integration_coverage"
    assert rule(name, {name: 0.99}, {name: 0.96}).loosened is False
    assert rule(name, {name: 0.5}, {name: 0.95}).loosened is False


def test_an_exact_bound_that_is_moved_becomes_a_limit():
    assert rule("controls_with_integration", {"controls_with_integration": 2}).op == "<="
    assert rule("privacy_ok_rate", {"privacy_ok_rate": 0.9}).op == ">="
    assert rule("privacy_ok_rate", {"privacy_ok_rate": 1}).op == "="


def test_a_bound_that_is_stricter_than_the_warning_replaces_it():
    name = "flagged_sample_rate"
    assert rule(name).warn == 0.05
    assert rule(name, {name: 0.2}).warn == 0.05
    assert rule(name, {name: 0.05}).warn is None


def test_a_gate_without_a_shipped_bound_is_in_force_where_one_is_given():
    name = "invented_argument_rate"
    given = rule(name, {name: 0.1})
    assert (given.op, given.bound, given.policy, given.source) == ("<=", 0.1, "hard_fail", "header")
    assert not given.loosened
    with pytest.raises(UsageError, match="says no bound"):
        rule(name, {name: {"policy": "confident"}})


def test_count_based_without_a_share_takes_the_shipped_one():
    name = "integration_coverage"
    assert rule(name, {name: {"policy": "count_based_misses"}}).pct == 0.05
    assert (
        rule("integration_f1_macro_lax", {"integration_f1_macro_lax": {"policy": "hard_fail"}}).pct
        is None
    )


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            {"integration_f1_macro_laxx": 0.9},
            "config: gates.integration_f1_macro_laxx: no such gate; "
            "did you mean integration_f1_macro_lax?",
        ),
        (
            {"integration_coverage": {"bond": 0.9}},
            "config: gates.integration_coverage.bond: unknown key; did you mean bound?",
        ),
        (
            {"integration_coverage": {"op": ">"}},
            "config: gates.integration_coverage.op: unknown key",
        ),
        ({"integration_coverage": "0.9"}, "a number or an object is expected, not '0.9'"),
        ({"integration_coverage": True}, "a number or an object is expected, not True"),
        ({"integration_coverage": None}, "a number or an object is expected, not None"),
        ({"integration_coverage": {}}, "says nothing"),
        ({"integration_coverage": {"bound": "high"}}, "integration_coverage.bound: expected"),
        ({"integration_coverage": {"policy": "soft"}}, "integration_coverage.policy: invalid"),
        ({"integration_coverage": 95}, "bound: must be between 0 and 1, not 95"),
        ({"integration_coverage": float("nan")}, "bound: must be between 0 and 1"),
        ({"controls_with_integration": -1}, "bound: must be at least 0, not -1"),
        ({"integration_coverage": {"pct": 0.1}}, "pct: has a meaning only with policy"),
        ({"integration_f1_macro_lax": {"pct": 5}}, "pct: must be between 0 and 1, not 5"),
        ({"integration_coverage": {"warn": 0.9}}, "warn: must be above the bound 0.95, not 0.9"),
        ({"flagged_sample_rate": {"warn": 0.3}}, "warn: must be below the bound 0.25, not 0.3"),
        (
            {"fixture_hit_rate": {"policy": "count_based_misses"}},
            "policy: count_based_misses does not fit this gate; "
            "use hard_fail, clear_fail, confident, warning_only",
        ),
        ({"privacy_ok_rate": {"policy": "confident"}}, "confident does not fit this gate"),
    ],
)
def test_wrong_overrides_are_named_with_their_place(override, message):
    with pytest.raises(UsageError) as caught:
        rules_with(**override)
    assert message in str(caught.value)
    assert str(caught.value).startswith("config: gates.")


def test_the_place_of_a_wrong_gate_is_told():
    with pytest.raises(UsageError, match=r"^dataset header: gates\.x: no such gate; known: "):
        resolve_rules(default_gates(), {"x": 1})
    with pytest.raises(UsageError, match=r"^flags: gates\.x: "):
        resolve_rules(default_gates(), None, None, {"x": 1})
    with pytest.raises(UsageError, match=r"^default gates\.privacy_rate: .*privacy_ok_rate"):
        resolve_rules({"privacy_rate": {"op": "=", "bound": 1, "policy": "hard_fail"}})
