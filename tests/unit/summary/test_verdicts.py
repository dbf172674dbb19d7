"""The verdict of a whole report, and the exit code that follows from it."""

import msgspec
import pytest
from tests.builders import make_error, make_result, numbered, rules_with, silent

from callmark.records.report import ReportHeader, exit_code
from callmark.summary.summary import Scope, Summariser


def report_of(results, rules=None, *, scope=None, cross_score=None, **header):
    summariser = Summariser(cross_score)
    for result in results:
        summariser.add(result)
    rules = rules_with() if rules is None else rules
    return summariser.report(ReportHeader(**header), rules, scope=scope)


def good(n, kind="eligible", start=0):
    return [make_result(start + at, kind) for at in range(n)]


def verdict(results, **more):
    report = report_of(results, **more)
    return report.verdict, report.gates_ok, exit_code(report)


def test_pass_fail_and_inconclusive():
    assert verdict(good(20)) == ("pass", True, 0)
    assert verdict([make_result(at, f1=0.0) for at in range(20)]) == ("fail", False, 1)
    assert verdict(good(5)) == ("inconclusive", None, 5)


def test_d48_nothing_is_never_a_pass():
    assert verdict([]) == ("empty", None, 2)
    empty = report_of([])
    assert {outcome.status for outcome in empty.gates} == {"n/a"}
    assert empty.counts.samples == 0


def test_d48_an_empty_shard_is_empty_and_ends_well():
    assert verdict([], num_shards=4, shard_index=2) == ("empty", None, 0)


def test_d32_a_model_that_says_nothing_fails_where_fifteen_are_eligible():
    assert verdict([silent(at) for at in range(15)]) == ("fail", False, 1)
    report = report_of([silent(at) for at in range(30)])
    assert report.summary["num_eligible"] == 30  # nobody leaves the denominator
    assert report.summary["avg_integration_f1_macro_lax"] == 0.0
    assert report.summary["integration_coverage"] == 0.0


@pytest.mark.parametrize("eligible", [0, 1, 14])
@pytest.mark.parametrize("text", ["", "I cannot say."])
def test_d32_saying_nothing_or_always_the_same_never_passes(eligible, text):
    # Controls, privacy and negative controls are all in order: a silent model cannot break them.
    results = numbered(
        [silent() for _ in range(eligible)]
        + good(20, "control")
        + good(20, "negative_control")
        + good(20, "unclassified")
    )
    results = [msgspec.structs.replace(result, model_output=text) for result in results]
    report = report_of(results)
    assert report.verdict == "inconclusive"
    assert exit_code(report) == 5


def test_a_constant_text_that_happens_to_be_grounded_fails_by_its_lift():
    # Every result holds the same value, so a constant answer has a perfect F1, as has any other's.
    results = [make_result(at, output="It is 3.") for at in range(20)]
    report = report_of(results, cross_score=lambda own, other: 1.0)
    assert report.metrics["grounding_lift"].value == 0.0
    assert verdict(results, cross_score=lambda own, other: 1.0) == ("fail", False, 1)
    assert verdict(results) == ("fail", False, 1)  # whatever it is compared with
    assert verdict(results[:14]) == ("inconclusive", None, 5)


@pytest.mark.parametrize("kind", ["control", "negative_control", "clarify", "unclassified"])
def test_f2_without_a_sample_that_expects_a_call_nothing_passes(kind):
    report = report_of(good(40, kind))
    assert (report.verdict, report.gates_ok, exit_code(report)) == ("inconclusive", None, 5)
    assert report.verdict_reason == "nothing to judge the model by: no sample expects a call"
    assert exit_code(report, fail_on_gate_failure=False) == 0


@pytest.mark.parametrize(
    "name", ["integration_f1_macro_lax", "call_f1_macro", "multi_call_parity_rate"]
)
def test_f2_one_gate_on_calls_or_statements_that_passed_is_enough(name):
    """Each of them alone, the others out of force."""
    rules = [rule for rule in rules_with() if rule.name in (name, "privacy_ok_rate")]
    calls = [{"name": "web.search"}, {"name": "web.open"}]
    results = [
        make_result(at, metadata={"call_sequence": calls}, multi_call_parity_ok=True)
        for at in range(20)
    ]
    assert verdict(results, rules=rules) == ("pass", True, 0)
    few = report_of(results[:14], rules)
    assert few.verdict == "inconclusive"
    assert "14 samples behind it, 15 are needed (min_eligible_for_gates)" in few.verdict_reason


@pytest.mark.parametrize(
    "name", ["privacy_ok_rate", "integration_coverage", "json_args_valid_rate"]
)
def test_f2_other_gates_prove_nothing(name):
    rules = [rule for rule in rules_with() if rule.name == name]
    report = report_of(good(20), rules)
    assert [outcome.status for outcome in report.gates] == ["pass"]
    assert (report.verdict, exit_code(report)) == ("inconclusive", 5)
    assert report.verdict_reason == "no gate on right calls or true statements is in force"


def test_f2_a_gate_that_only_warned_has_not_passed():
    rules = [rule for rule in rules_with() if rule.name == "call_f1_macro"]
    results = [make_result(at, call_f1=0.0 if at < 2 else 1.0) for at in range(19)]
    report = report_of(results, rules)
    assert (report.gates[0].status, report.verdict) == ("warn", "inconclusive")
    assert "call_f1_macro warned" in report.verdict_reason


def test_small_numbers_of_eligible_samples_keep_the_verdict_open():
    report = report_of(numbered(good(10) + good(30, "control")))
    assert report.verdict == "inconclusive"
    assert "10 samples behind it" in report.verdict_reason


def test_lost_trials_make_a_run_incomplete_unless_they_are_allowed():
    results = [*good(20), make_error(20)]
    assert verdict(results) == ("incomplete", None, 4)
    assert report_of(results).complete is False
    assert verdict(results, scope=Scope(errors_allowed=1)) == ("pass", True, 0)
    report = report_of(results, scope=Scope(errors_allowed=1))
    assert report.errors.count == 1
    assert report.errors.first[0].sample_id == "s20"
    assert report.counts.unscored == {"eligible": 1}
    assert report.summary["num_eligible"] == 20


def test_missing_trials_make_a_run_incomplete():
    assert verdict(good(20), scope=Scope(expected_trials=21)) == ("incomplete", None, 4)
    assert verdict(good(20), repeat=2) == ("incomplete", None, 4)
    uneven = [*good(20), make_result(3, trial=1)]
    report = report_of(uneven)
    assert (report.verdict, report.counts.trials_missing) == ("incomplete", 19)
    assert verdict([], scope=Scope(expected_trials=5)) == ("incomplete", None, 4)


def test_incomplete_comes_before_a_failed_gate():
    results = [make_result(at, f1=0.0) for at in range(20)]
    assert verdict([*results, make_error(20)])[2] == 4


def test_the_flags_of_the_exit_code():
    failed = report_of([make_result(at, f1=0.0) for at in range(20)])
    assert exit_code(failed, fail_on_gate_failure=False) == 0
    open_ = report_of(good(5))
    assert exit_code(open_, fail_on_gate_failure=False) == 0
    assert exit_code(open_, fail_on_gate_failure=False, fail_on_inconclusive=True) == 5
    passed = report_of(good(20))  # the lift was not computed, so one gate is open
    assert exit_code(passed) == 0
    assert exit_code(passed, fail_on_inconclusive=True) == 5


def test_the_open_gates_of_a_shard_do_not_change_its_exit_code():
    report = report_of(good(20), num_shards=2)
    assert (report.verdict, exit_code(report)) == ("inconclusive", 0)
    assert exit_code(report, fail_on_inconclusive=True) == 0
    breach = report_of([make_result(0, privacy_ok=False)], num_shards=2)
    assert exit_code(breach) == 1
    lost = report_of([make_error(0)], num_shards=2)
    assert exit_code(lost) == 4


def test_a_budget_that_is_made_hard_counts():
    from callmark.records.report import Timing

    summariser = Summariser()
    for result in good(20):
        summariser.add(result)
    rules = rules_with(perf_budget_sec_per_100={"policy": "hard_fail"})
    report = summariser.report(ReportHeader(), rules, timing=Timing(scoring_sec=10.0))
    assert report.verdict == "fail"


def test_without_any_gate_nothing_is_judged():
    assert verdict(good(20), rules=()) == ("inconclusive", None, 5)
