"""Repeated trials: averaged within a sample, never adding to n."""

import pytest
from tests.builders import make_error, make_result, rules_with

from callmark.records.report import ReportHeader
from callmark.summary.summary import Scope, Summariser


def report_of(results, rules=None, *, scope=None):
    summariser = Summariser()
    for result in results:
        summariser.add(result)
    return summariser.report(ReportHeader(), rules or rules_with(), scope=scope)


def trials(index, *f1s, **more):
    return [make_result(index, trial=at, f1=f1, **more) for at, f1 in enumerate(f1s)]


def test_trials_are_averaged_within_a_sample():
    report = report_of([*trials(0, 1.0, 0.0), *trials(1, 1.0, 1.0)])
    macro = report.metrics["integration_f1_macro_lax"]
    assert (macro.value, macro.n, macro.method) == (0.75, 2, "cluster_bootstrap")
    assert report.metrics["privacy_ok_rate"].n == 2
    assert report.header.repeat == 2
    assert report.counts.samples == 2
    assert report.counts.trials == 4


def test_pooled_counts_are_averaged_too():
    more = [make_result(0, trial=0, spans=3), make_result(0, trial=1, spans=1)]
    report = report_of([*more, *trials(1, 1.0, 1.0)])
    pooled = report.metrics["integration_precision_micro_lax"]
    assert (pooled.numerator, pooled.denominator) == (2.0, 3.0)  # (1+1)/2 + 1 of (3+1)/2 + 1


def test_trials_never_lift_n_over_the_limit_of_the_gates():
    report = report_of([entry for at in range(10) for entry in trials(at, 1.0, 1.0, 1.0)])
    assert report.verdict == "inconclusive"


def test_one_contaminated_trial_contaminates_a_control():
    results = [
        make_result(0, "control", trial=at, controls_with_integration=int(at == 1))
        for at in range(3)
    ]
    report = report_of(results)
    assert report.summary["controls_with_integration"] == 1
    assert report.gates_ok is False


def test_arguments_count_only_the_trials_with_an_attempt():
    results = [
        make_result(0, trial=0, attempts=0, f1=0.0),
        make_result(0, trial=1),
        make_result(1, trial=0, valid=0),
        make_result(1, trial=1),
    ]
    metric = report_of(results).metrics["json_args_valid_rate"]
    assert (metric.numerator, metric.denominator) == (1.5, 2)


def test_pass_at_1_pass_hat_k_and_flips():
    report = report_of([*trials(0, 1.0, 1.0), *trials(1, 1.0, 0.2), *trials(2, 0.0, 0.0)])
    repeat = report.repeat
    assert repeat.trials == 2
    assert repeat.pass_at_1.value == 0.5
    assert repeat.pass_hat_k.value == pytest.approx(1 / 3)
    assert repeat.flip_share.value == pytest.approx(1 / 3)
    assert repeat.flip_share.method == "wilson"


@pytest.mark.parametrize(
    ("kind", "scores", "passes"),
    [
        ("eligible", {"f1": 0.9}, True),
        ("eligible", {"f1": 0.89}, False),
        ("eligible", {"valid": 0}, False),
        ("eligible", {"multi_call_parity_ok": False}, False),
        ("eligible", {"privacy_ok": False}, False),
        ("control", {}, True),
        ("control", {"controls_with_integration": 1}, False),
        ("negative_control", {}, True),
        ("negative_control", {"negative_control_ok": False}, False),
        ("clarify", {"clarify_ok": False}, False),
        ("clarify", {}, True),
        ("unclassified", {}, True),
        ("unclassified", {"attempts": 1, "valid": 0}, False),
        ("unclassified", {"privacy_ok": False}, False),
    ],
)
def test_what_a_passing_trial_is(kind, scores, passes):
    report = report_of([make_result(0, kind, trial=at, **scores) for at in range(2)])
    assert report.repeat.pass_hat_k.value == float(passes)


def test_the_bound_of_the_gate_is_the_bound_of_a_passing_trial():
    rules = rules_with(integration_f1_macro_lax=0.4)
    assert report_of(trials(0, 0.5, 0.5), rules).repeat.pass_hat_k.value == 1.0
    assert report_of(trials(0, 0.5, 0.5)).repeat.pass_hat_k.value == 0.0


def test_a_sample_with_a_lost_trial_is_left_out_of_pass_hat_k():
    results = [*trials(0, 1.0, 1.0), make_result(1), make_error(1, trial=1)]
    report = report_of(results, scope=Scope(errors_allowed=1))
    assert report.complete is True
    assert (report.repeat.pass_at_1.n, report.repeat.pass_hat_k.n) == (2, 1)


def test_one_trial_each_has_no_repeat_block():
    assert report_of([make_result(0), make_result(1)]).repeat is None
