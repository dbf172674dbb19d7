"""Repeated trials: averaged within a sample, never adding to n."""

import numpy as np
import pytest
from tests.builders import make_error, make_result, rules_with

from callmark.records.report import FAILING_CAP, ReportHeader
from callmark.stats.estimates import Z_TWO_SIDED, estimate, wilson
from callmark.summary.metrics import Subset, defined_parts
from callmark.summary.summary import Scope, Summariser
from callmark.summary.trials import Trials


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


def test_each_sample_has_a_pass_rate_and_its_interval():
    report = report_of(
        [*trials(0, 1.0, 1.0, 1.0), *trials(1, 1.0, 0.2, 1.0), *trials(2, 0.0, 0.0, 0.0)]
    )
    repeat = report.repeat
    assert (repeat.steady, repeat.flaky, repeat.broken) == (1, 1, 1)
    assert [(one.sample_id, one.passed, one.trials) for one in repeat.samples] == [
        ("s1", 2, 3),
        ("s2", 0, 3),
    ]
    assert repeat.samples[0].rate == pytest.approx(2 / 3)
    assert repeat.samples[0].ci_95 == pytest.approx(wilson(2, 3, Z_TWO_SIDED))
    assert repeat.steady_ci_95 == pytest.approx(wilson(3, 3, Z_TWO_SIDED))


def test_the_listed_rates_are_capped_and_the_counts_are_not():
    report = report_of([one for at in range(FAILING_CAP + 5) for one in trials(at, 1.0, 0.0)])
    assert (report.repeat.flaky, len(report.repeat.samples)) == (FAILING_CAP + 5, FAILING_CAP)


def test_trials_that_are_all_alike_have_no_noise():
    noise = report_of([*trials(0, 0.5, 0.5), *trials(1, 1.0, 1.0)]).repeat.noise
    assert (noise["integration_f1_macro_lax"].sd, noise["integration_f1_macro_lax"].floor) == (0, 0)
    assert noise["integration_f1_macro_lax"].samples == 2
    assert "clarify_ok_rate" not in noise  # nothing stands behind it


def test_the_noise_of_a_mean_is_that_within_its_samples():
    # One of two samples moves between 0 and 1: its variance is 1/2, the mean's 1/8.
    noise = report_of([*trials(0, 1.0, 0.0), *trials(1, 0.3, 0.3)]).repeat.noise
    found = noise["integration_f1_macro_lax"]
    assert found.sd == pytest.approx((0.5 / 4) ** 0.5)
    assert found.floor == pytest.approx(Z_TWO_SIDED * 2**0.5 * found.sd)


def test_the_noise_of_a_count_is_in_samples():
    results = [
        make_result(index, "control", trial=at, controls_with_integration=int(at == 1 > index))
        for index in range(4)
        for at in range(2)
    ]
    assert report_of(results).repeat.noise["controls_with_integration"].sd == pytest.approx(
        0.5**0.5
    )


def _drawn_trial(rng, index, trial):
    """A sample whose F1, spans and validity come out otherwise in each trial."""
    spans = int(rng.integers(1, 4))
    return make_result(
        index,
        trial=trial,
        f1=float(rng.random() < (index % 5) / 4),
        spans=spans,
        valid=int(rng.random() < 0.8),
    )


def test_the_noise_floor_holds_in_simulated_runs():
    """What one run of many trials says is what hundreds of runs of one trial do."""
    rng = np.random.default_rng(7)
    names = (
        "integration_f1_macro_lax",
        "json_args_valid_rate",
        "integration_precision_micro_lax",
        "integration_f1_micro_lax",
    )
    one_run = [_drawn_trial(rng, index, trial) for index in range(40) for trial in range(30)]
    noise = report_of(one_run).repeat.noise
    values = {name: [] for name in names}
    for _ in range(200):
        scored = Trials()
        for index in range(40):
            scored.add(_drawn_trial(rng, index, 0))
        parts = defined_parts(Subset(scored.samples(), range(40), 42))
        for name in names:
            part, definition = parts[name]
            values[name].append(estimate(part.observe(definition)))
    for name in names:
        assert noise[name].sd == pytest.approx(np.std(values[name], ddof=1), rel=0.2), name
        apart = np.abs(np.subtract(values[name][::2], values[name][1::2]))
        assert np.mean(apart <= noise[name].floor) > 0.85, name


def test_trials_that_arrive_run_by_run_are_trials_of_their_samples():
    results = [make_result(at, trial=trial) for trial in range(3) for at in range(4)]
    report = report_of(results)
    assert (report.repeat.trials, report.header.repeat, report.repeat.steady) == (3, 3, 4)
