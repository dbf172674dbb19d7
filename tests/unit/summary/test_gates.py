"""What a gate says about numbers: pass, fail, warn, inconclusive, n/a."""

import msgspec
import numpy as np
import pytest
from scipy.stats import binomtest
from tests.builders import (
    call_score,
    make_error,
    make_result,
    make_scores,
    missed_call,
    numbered,
    rules_with,
    silent,
)

from callmark.records.report import ReportHeader, Timing
from callmark.summary.summary import Scope, Summariser


def report_of(results, rules=None, *, scope=None, timing=None, cross_score=None, **header):
    summariser = Summariser(cross_score)
    for result in results:
        summariser.add(result)
    rules = rules_with() if rules is None else rules
    return summariser.report(ReportHeader(**header), rules, scope=scope, timing=timing)


def gate(report, name):
    return next(outcome for outcome in report.gates if outcome.name == name)


def status_of(results, name, rules=None, **more):
    return gate(report_of(results, rules, **more), name).status


def good(n):
    return [make_result(at) for at in range(n)]


def test_a2_each_gate_is_listed_with_bound_policy_value_and_outcome():
    report = report_of(good(20))
    names = [outcome.name for outcome in report.gates]
    for name in (
        "integration_f1_macro_lax", "integration_f1_macro_strict", "integration_coverage",
        "grounded_coverage", "multi_call_parity_rate", "json_args_valid_rate",
        "controls_with_integration", "privacy_ok_rate", "locale_delta_de",
    ):  # fmt: skip
        assert name in names
    coverage = gate(report, "integration_coverage")
    assert (coverage.value, coverage.op, coverage.bound) == (1.0, ">=", 0.95)
    assert (coverage.policy, coverage.n, coverage.status) == ("hard_fail", 20, "pass")


def test_a43_fourteen_bad_samples_are_inconclusive_fifteen_fail():
    rules = rules_with()
    for n, status, verdict in ((14, "inconclusive", "inconclusive"), (15, "fail", "fail")):
        report = report_of([make_result(at, f1=0.0) for at in range(n)], rules)
        outcome = gate(report, "integration_f1_macro_lax")
        assert (outcome.status, report.verdict) == (status, verdict)
    assert "15 are needed" in gate(report_of(good(14)), "integration_f1_macro_lax").reason


def test_a43_the_number_can_be_chosen():
    bad = [make_result(at, f1=0.0) for at in range(5)]
    assert status_of(bad, "integration_f1_macro_lax", min_eligible_for_gates=5) == "fail"
    assert status_of(bad, "integration_f1_macro_lax", min_eligible_for_gates=6) == "inconclusive"


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("integration_f1_macro_lax", {"f1": 0.0}),
        ("integration_coverage", {"spans": 0, "f1": 0.0}),
        ("multi_call_parity_rate", {"multi_call_parity_ok": False}),
        ("privacy_ok_rate", {"privacy_ok": False}),
        ("json_args_valid_rate", {"valid": 0}),
    ],
)
def test_d42_d43_exactly_zero_is_a_value_and_fails(name, bad):
    report = report_of([make_result(at, **bad) for at in range(20)])
    outcome = gate(report, name)
    assert (outcome.value, outcome.status) == (0.0, "fail")
    assert report.gates_ok is False


def test_d43_a7_arguments_below_the_bound_fail():
    results = [*good(48), make_result(48, valid=0), make_result(49, valid=0)]
    outcome = gate(report_of(results), "json_args_valid_rate")
    assert (outcome.value, outcome.status) == (0.96, "fail")


def test_d44_one_breach_in_two_thousand_and_one_fails():
    results = [*good(2000), make_result(2000, privacy_ok=False)]
    outcome = gate(report_of(results), "privacy_ok_rate")
    assert (outcome.value, outcome.status) == (2000 / 2001, "fail")


@pytest.mark.parametrize("name", ["privacy_ok_rate", "controls_with_integration"])
def test_zero_tolerance_fails_at_any_n_and_passes_at_none_too_few(name):
    breach = {
        "privacy_ok_rate": make_result(1, privacy_ok=False),
        "controls_with_integration": make_result(1, "control", controls_with_integration=1),
    }[name]
    assert status_of([make_result(0), breach], name) == "fail"
    clean = [make_result(0), make_result(1, "control")]
    assert status_of(clean, name) == "inconclusive"


def test_fixture_hit_rate_is_judged_at_any_n_and_silences_model_quality():
    missed = [make_result(at, misses=1, trace=[missed_call()], f1=0.0) for at in range(20)]
    assert status_of(missed[:1], "fixture_hit_rate") == "fail"
    assert status_of(good(1), "fixture_hit_rate") == "pass"
    report = report_of(missed)
    outcome = gate(report, "integration_f1_macro_lax")
    assert (outcome.status, outcome.reason) == ("inconclusive", "fixtures: fixture_hit_rate failed")
    assert report.verdict == "fail"
    assert gate(report, "privacy_ok_rate").status == "pass"


def test_d6_twenty_of_twenty_misses_fail():
    missed = [make_result(at, misses=1, trace=[missed_call()]) for at in range(20)]
    report = report_of(missed)
    assert (report.gates_ok, report.misses.count) == (False, 20)


def test_a_fixture_gate_that_only_warns_lets_the_others_speak():
    missed = [make_result(at, misses=1, trace=[missed_call()], f1=0.0) for at in range(20)]
    report = report_of(missed, rules_with(fixture_hit_rate={"policy": "warning_only"}))
    assert gate(report, "fixture_hit_rate").status == "warn"
    assert gate(report, "integration_f1_macro_lax").status == "fail"


def f1_samples(low, n, f1=0.0):
    return [make_result(at, f1=f1 if at < low else 1.0) for at in range(n)]


def test_d50_count_based_misses_fail_only_below_the_mean_and_beyond_the_allowance():
    # 20 samples: allowed max(1, ceil(0.05 * 20)) = 1
    one = gate(report_of(f1_samples(1, 20)), "integration_f1_macro_lax")
    assert (one.status, one.misses, one.allowed) == ("pass", 1, 1)
    three = gate(report_of(f1_samples(3, 20)), "integration_f1_macro_lax")
    assert (three.value, three.status, three.misses) == (0.85, "fail", 3)
    many_small = gate(report_of(f1_samples(15, 20, f1=0.89)), "integration_f1_macro_lax")
    assert (many_small.status, many_small.misses) == ("pass", 15)  # the mean holds


def test_d50_a_low_mean_with_few_misses_passes_and_says_so():
    rules = rules_with(integration_f1_macro_lax={"bound": 0.97})
    outcome = gate(report_of(f1_samples(1, 20), rules), "integration_f1_macro_lax")
    assert outcome.status == "pass"
    assert "only 1 of 1 allowed" in outcome.reason


def test_d50_the_edges_of_floating_point():
    # 0.07 * 100 is 7.000000000000001: still seven, not eight
    rules = rules_with(integration_f1_macro_lax={"bound": 0.99, "pct": 0.07})
    outcome = gate(report_of(f1_samples(8, 100), rules), "integration_f1_macro_lax")
    assert (outcome.allowed, outcome.status) == (7, "fail")
    # a sum of tenths whose mean is 0.8999999999999999
    rules = rules_with(integration_f1_macro_lax={"policy": "hard_fail"})
    third = report_of([make_result(at, f1=0.3 + 0.6 - 1e-16) for at in range(15)], rules)
    assert gate(third, "integration_f1_macro_lax").value < 0.9
    assert gate(third, "integration_f1_macro_lax").status == "pass"


def test_warning_only_never_fails():
    report = report_of([make_result(at, strict=0.0) for at in range(20)])
    outcome = gate(report, "integration_f1_macro_strict")
    assert (outcome.status, report.verdict) == ("warn", "pass")


def confident(values, bound=0.9):
    rules = rules_with(integration_coverage={"policy": "confident", "bound": bound})
    results = [make_result(at, spans=value, f1=float(value)) for at, value in enumerate(values)]
    return gate(report_of(results, rules), "integration_coverage")


def test_confident_passes_fails_or_says_how_many_samples_would_decide():
    assert confident([1] * 60).status == "pass"
    assert confident([0] * 20 + [1] * 40).status == "fail"
    unsure = confident([0] * 1 + [1] * 19)
    assert unsure.status == "inconclusive"
    assert unsure.needed_n > 20
    assert str(unsure.needed_n) in unsure.reason


def test_f25_call_f1_fails_where_the_shortfall_is_clear_and_warns_where_it_is_not():
    def call_f1(low, n):
        results = [make_result(at, call_f1=0.0 if at < low else 1.0) for at in range(n)]
        return gate(report_of(results), "call_f1_macro")

    assert call_f1(0, 20).status == "pass"
    assert call_f1(2, 20).status == "pass"  # 0.9 is the bound
    warned = call_f1(3, 20)
    assert (warned.policy, warned.status) == ("clear_fail", "warn")
    assert "one-sided 95 % bound" in warned.reason
    assert call_f1(8, 20).status == "fail"
    assert call_f1(14, 14).status == "inconclusive"


def test_f25_a_rate_fails_by_wilsons_one_sided_bound():
    """The upper end of a two-sided 90 % interval is the one-sided 95 % bound."""
    for right in range(30, 41):
        results = numbered(
            [make_result(0, "negative_control", negative_control_ok=at < right) for at in range(40)]
        )
        outcome = gate(report_of(results), "negative_control_ok_rate")
        high = binomtest(right, 40).proportion_ci(0.90, method="wilson").high
        wanted = "fail" if high < 0.95 else "warn" if right / 40 < 0.95 else "pass"
        assert (outcome.policy, outcome.status) == ("clear_fail", wanted), right


def test_f25_a_mean_fails_by_the_bootstrap_bound():
    values = [0.5] * 9 + [1.0] * 31
    results = [make_result(at, call_f1=value) for at, value in enumerate(values)]
    draws = np.random.default_rng(42).integers(0, 40, (1000, 40))
    high = np.percentile(np.array(values)[draws].mean(axis=1), 95)
    for bound in (high - 1e-6, high + 1e-6):
        rules = rules_with(call_f1_macro={"bound": float(bound)})
        outcome = gate(report_of(results, rules), "call_f1_macro")
        assert outcome.status == ("fail" if high < bound else "warn")


def test_clear_fail_with_a_lower_is_better_gate():
    rules = rules_with(unsupported_value_rate={"policy": "clear_fail", "bound": 0.5})
    clean = [make_result(at, values={"supported": 3}) for at in range(20)]
    bad = [make_result(at, values={"unsupported": 3}) for at in range(20)]
    assert status_of(clean, "unsupported_value_rate", rules) == "pass"
    assert status_of([*clean[:9], *bad[9:]], "unsupported_value_rate", rules) == "warn"
    assert status_of(bad, "unsupported_value_rate", rules) == "fail"


def test_clear_fail_forgives_more_than_confident_and_less_than_a_warning():
    rules = {rule.name: rule for rule in rules_with(call_f1_macro={"policy": "warning_only"})}
    assert rules["call_f1_macro"].loosened
    rules = {rule.name: rule for rule in rules_with(call_f1_macro={"policy": "confident"})}
    assert not rules["call_f1_macro"].loosened


def test_f25_a_wrong_call_is_no_miss_and_leaves_the_hit_rate_alone():
    wrong = [
        make_result(
            at,
            call_f1=0.0,
            calls=msgspec.structs.replace(call_score(), looked_up=0, hits=0, wrong_calls=1),
            trace=[msgspec.structs.replace(missed_call(), status="wrong_call")],
        )
        for at in range(20)
    ]
    report = report_of(wrong)
    assert gate(report, "fixture_hit_rate").status == "n/a"
    assert "looked up" in gate(report, "fixture_hit_rate").reason
    assert gate(report, "call_f1_macro").status == "fail"
    assert (report.counts.unresolved, report.misses.count) == (0, 0)
    assert report.misses.wrong_calls == {"web.search": 20}


def test_f24_strict_is_not_applicable_without_a_strict_key():
    own_keys = [make_result(at, strict=0.0, strict_keys=False) for at in range(20)]
    report = report_of(own_keys)
    outcome = gate(report, "integration_f1_macro_strict")
    assert (outcome.status, outcome.value, outcome.n) == ("n/a", None, 0)
    assert outcome.reason == "no strict key is set, and none occurs in a result"
    strict = {name: one for name, one in report.metrics.items() if name.endswith("strict")}
    assert {one.value for one in strict.values()} == {None}
    assert "integration_f1_macro_strict" not in report.failing
    assert report.summary["avg_integration_f1_macro_strict"] is None
    [delta] = report.per_tool_deltas.values()
    assert (delta.lax, delta.strict, delta.delta_lax_minus_strict) == (1.0, None, None)
    assert report.verdict == "pass"
    # One key that occurs, and every eligible sample counts: silence leaves no denominator.
    report = report_of([*own_keys, make_result(20)])
    assert report.metrics["integration_f1_macro_strict"].value == pytest.approx(1 / 21)


def test_f24_locale_gates_need_a_strict_key_too():
    probe = {"locale_probe": True, "locale": "de"}
    own_keys = [make_result(at, metadata=probe, strict=0.0, strict_keys=False) for at in range(20)]
    report = report_of(own_keys)
    assert gate(report, "locale_delta_de").status == "n/a"
    assert "locale_delta_de" not in report.failing
    keyed = [msgspec.structs.replace(one, scores=make_scores(strict=0.0)) for one in own_keys]
    assert gate(report_of(keyed), "locale_delta_de").status == "fail"


def test_confident_with_a_lower_is_better_gate():
    rules = rules_with(unsupported_value_rate={"policy": "confident", "bound": 0.5})
    clean = [make_result(at, values={"supported": 3}) for at in range(20)]
    bad = [make_result(at, values={"unsupported": 3}) for at in range(20)]
    assert status_of(clean, "unsupported_value_rate", rules) == "pass"
    assert status_of(bad, "unsupported_value_rate", rules) == "fail"
    assert status_of([*clean[:10], *bad[10:]], "unsupported_value_rate", rules) == "inconclusive"


def test_unsupported_values_are_gated_where_all_is_read_with_the_marker_or_somebody_asks():
    values = {"supported": 1, "unsupported": 1}
    claims = [make_result(at, values=values) for at in range(20)]
    marker = [make_result(at, values=values, extractor="marker") for at in range(20)]
    assert status_of(claims, "unsupported_value_rate") == "n/a"
    assert status_of(marker, "unsupported_value_rate") == "warn"
    assert status_of([*marker[:19], claims[19]], "unsupported_value_rate") == "n/a"
    strict = rules_with(unsupported_value_rate={"policy": "hard_fail"})
    assert status_of(marker, "unsupported_value_rate", strict) == "fail"
    assert status_of(claims, "unsupported_value_rate", strict) == "fail"


def test_not_applicable_is_decided_by_the_dataset():
    report = report_of(good(20))
    for name in (
        "controls_with_integration", "clarify_ok_rate", "locale_delta_es",
        "error_recovery_rate", "multi_call_parity_rate", "teacher_heavy_f1_lax",
    ):  # fmt: skip
        assert gate(report, name).status == "n/a"
    assert gate(report, "json_args_valid_rate").status == "pass"


def test_a_control_that_was_lost_is_not_the_same_as_no_control():
    report = report_of([*good(20), make_error(20, "control")], scope=Scope(errors_allowed=1))
    outcome = gate(report, "controls_with_integration")
    assert (outcome.status, outcome.reason) == ("inconclusive", "no control has a score")


def test_no_data_is_inconclusive_with_its_reason():
    report = report_of([silent(at) for at in range(20)])
    outcome = gate(report, "json_args_valid_rate")
    assert (outcome.status, outcome.value) == ("inconclusive", None)
    assert outcome.reason == "no call was attempted"
    assert gate(report, "flagged_sample_rate").status == "inconclusive"
    assert gate(report, "grounding_lift").reason == "not computed"


def test_partial_runs_judge_only_violations_of_zero_tolerance():
    scope = Scope(partial=True)
    report = report_of([make_result(at, f1=0.0, valid=0) for at in range(20)], scope=scope)
    assert {outcome.status for outcome in report.gates} == {"inconclusive"}
    assert (report.verdict, report.gates_ok, report.partial) == ("inconclusive", None, True)
    breach = [*good(20), make_result(20, privacy_ok=False)]
    assert report_of(breach, scope=scope).verdict == "fail"


def shard(results, **more):
    return report_of(results, num_shards=4, shard_index=1, **more)


def test_shards_judge_only_fixtures_and_privacy():
    bad = [make_result(at, f1=0.0) for at in range(20)]
    bad.append(make_result(20, "control", controls_with_integration=1))
    report = shard(bad)
    assert report.verdict == "inconclusive"
    assert gate(report, "controls_with_integration").reason == "judged after merge"
    assert gate(report, "fixture_hit_rate").status == "pass"
    breach = shard([*bad, make_result(21, privacy_ok=False)])
    assert (breach.verdict, breach.gates_ok) == ("fail", False)
    missed = [make_result(at, misses=1, trace=[missed_call()]) for at in range(20)]
    assert shard(missed).gates_ok is False


def test_a134_locale_delta_of_each_language():
    def probes(locale, delta, start):
        meta = {"locale_probe": True, "locale": locale}
        return [
            make_result(start + at, metadata=meta, f1=0.95, strict=0.95 - delta) for at in range(15)
        ]

    report = report_of([*probes("de", 0.05, 0), *probes("es-MX", 0.06, 15)])
    assert gate(report, "locale_delta_de").status == "pass"
    spanish = gate(report, "locale_delta_es")
    assert (spanish.status, spanish.value) == ("fail", pytest.approx(0.06))
    assert gate(report, "locale_delta_fr").status == "n/a"
    assert set(report.locales) == {"de", "es-MX"}
    delta = report.locales["de"].metrics["integration_delta_lax_minus_strict"]
    assert (delta.n, delta.value) == (15, pytest.approx(0.05))
    assert report.failing["locale_delta_es"].count == 15


def test_a135_teacher_heavy_warns_on_the_cap_and_fails_on_f1():
    meta = {"teacher_heavy": True}
    over = [make_result(at, metadata=meta, spans_over_cap=int(at == 3)) for at in range(20)]
    report = report_of(over)
    outcome = gate(report, "teacher_heavy_spans_over_cap")
    assert (outcome.status, outcome.value) == ("warn", 1)
    assert report.failing["teacher_heavy_spans_over_cap"].sample_ids == ("s3",)
    assert gate(report, "teacher_heavy_f1_lax").status == "pass"
    low = [*good(80), *(make_result(80 + at, metadata=meta, f1=0.5) for at in range(15))]
    report = report_of(low)
    assert gate(report, "teacher_heavy_f1_lax").status == "fail"
    assert report.slices["teacher_heavy"].num_eligible == 15


def test_a12_the_budget_is_judged_below_timing_only():
    rules = rules_with()
    slow = report_of(good(20), rules, timing=Timing(wall_time_sec=9.0, scoring_sec=0.5))
    assert slow.timing.sec_per_100 == 2.5
    assert (slow.timing.exceeded, slow.timing.perf_budget.status) == (True, "warn")
    assert slow.timing.perf_budget.bound == 2.0
    fast = report_of(good(20), rules, timing=Timing(scoring_sec=0.1))
    assert (fast.timing.exceeded, fast.timing.perf_budget.status) == (False, "pass")
    untimed = report_of(good(20), rules)
    assert untimed.timing.perf_budget.reason == "not timed"
    without = [msgspec.structs.replace(report, timing=Timing()) for report in (slow, fast, untimed)]
    assert without[0] == without[1] == without[2]
    assert all(outcome.name != "perf_budget_sec_per_100" for outcome in slow.gates)


def test_loosened_gates_are_marked_and_warned_about():
    report = report_of(good(20), rules_with(integration_f1_macro_lax=0.5))
    assert gate(report, "integration_f1_macro_lax").loosened is True
    assert "gate integration_f1_macro_lax is LOOSENED by config" in report.warnings
    assert report.header.gates["integration_f1_macro_lax"].bound == 0.5


def test_a131_a_single_contaminated_control_fails():
    results = numbered([*good(30), *(make_result(0, "control") for _ in range(29)),
                        make_result(0, "control", controls_with_integration=1)])  # fmt: skip
    report = report_of(results)
    assert (report.verdict, report.summary["controls_with_integration"]) == ("fail", 1)
    assert report.failing["controls_with_integration"].sample_ids == ("s59",)
