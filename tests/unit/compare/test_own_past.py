"""Each sample against its own past: what fell, what is noise, and what nobody can tell."""

import numpy as np
import pytest
from scipy import stats
from tests.builders import make_error, make_result
from tests.unit.compare.test_compare import SAME, side

from callmark.compare.compare import CompareOptions, compare_sides
from callmark.compare.metrics import judge_samples
from callmark.compare.records import exit_code
from callmark.compare.sides import match
from callmark.reports.compare import facts
from callmark.stats.estimates import false_discovery, fisher

STEADY = {f"s{at}": (10, 10) for at in range(30)}


def trials_of(passes):
    """{id: (passed, trials)} as the results of a run."""
    return [
        make_result(
            index,
            trial=trial,
            sample_id=name,
            f1=1.0 if trial < passed else 0.0,
            fingerprints=SAME,
            output=f"answer {index} {trial < passed}",
        )
        for index, (name, (passed, total)) in enumerate(passes.items())
        for trial in range(total)
    ]


def compare(a, b, **options):
    return compare_sides(side(trials_of(a)), side(trials_of(b)), CompareOptions(**options))


def now(passes, trials=5):
    """All steady samples pass `trials` times, but for those that are named."""
    return {name: (passes.get(name, trials), trials) for name in STEADY}


def test_a_sample_that_always_passed_and_never_does_has_fallen():
    found = compare(STEADY, now({"s3": 0}))
    [fallen] = found.own_past.fallen
    assert (fallen.sample_id, fallen.passed_a, fallen.trials_a) == ("s3", 10, 10)
    assert (fallen.passed_b, fallen.trials_b) == (0, 5)
    assert fallen.p == pytest.approx(1 / 3003)
    assert found.own_past.status == "fail"
    assert (found.decision, exit_code(found)) == ("regression", 1)
    assert found.decision_reason == "1 sample fell below its own past"
    assert "fell below their own past: s3 (10/10 → 0/5, p < 0.001)" in list(facts(found))


def test_a_flaky_sample_that_stays_flaky_is_within_its_noise():
    past = {**STEADY, "s3": (6, 10)}
    found = compare(past, now({"s3": 2}))
    assert found.own_past.status == "pass"
    assert found.own_past.within.sample_ids == ("s3",)
    assert found.decision != "regression"


def test_with_too_few_trials_it_is_open_and_no_pass():
    found = compare(STEADY, now({"s3": 0}, trials=1))
    assert found.own_past.status == "inconclusive"
    assert found.own_past.open.sample_ids == ("s3",)
    assert any("OPEN" in text for text in facts(found))


def test_a_long_past_makes_one_failure_clear():
    past = dict.fromkeys(STEADY, (20, 20))
    assert compare(past, now({"s3": 0}, trials=1)).own_past.status == "fail"


def test_one_trial_on_each_side_has_no_past():
    one = dict.fromkeys(STEADY, (1, 1))
    found = compare(one, now({"s3": 0}, trials=1))
    assert found.own_past.status == "n/a"
    assert not any("past" in text for text in facts(found))


def test_where_all_fall_all_are_named():
    past = dict.fromkeys(STEADY, (5, 5))
    found = compare(past, now(dict.fromkeys(STEADY, 0)))
    assert found.own_past.fallen_count == 30
    assert found.decision_reason.endswith("; 30 samples fell below their own past")


def test_better_is_never_below():
    found = compare({**STEADY, "s3": (0, 10)}, now({}))
    assert (found.own_past.status, found.own_past.tested) == ("pass", 0)


def test_a_sample_in_quarantine_is_no_pair_and_nobody_misses_it():
    past = {**STEADY, "gone": (10, 10)}
    found = compare(past, now({"s3": 0}), quarantined=("s3", "gone"))
    assert found.own_past.status == "pass"
    assert (found.pairs.paired, found.pairs.removed.count) == (29, 0)
    assert found.pairs.quarantined.sample_ids == ("s3", "gone")
    assert not any("only in A" in text for text in found.warnings)
    assert "in quarantine, left out: s3, gone" in list(facts(found))


def test_a_pair_with_a_lost_trial_is_not_judged():
    b = trials_of(now({"s3": 0}))
    b = [one for one in b if (one.sample_id, one.trial) != ("s3", 4)]
    b.append(make_error(3, trial=4, sample_id="s3", fingerprints=SAME))
    found = compare_sides(side(trials_of(STEADY)), side(b), CompareOptions())
    assert (found.own_past.status, found.pairs.dropped.sample_ids) == ("pass", ("s3",))


@pytest.mark.slow
def test_nothing_changed_is_seldom_called_a_fall():
    rng = np.random.default_rng(11)
    rates = [1.0, 0.95, 0.9, 0.8, 0.5] * 6
    alarms = 0
    for _ in range(60):
        a, b = (
            side(
                trials_of(
                    {
                        f"s{at}": (int(rng.binomial(total, rate)), total)
                        for at, rate in enumerate(rates)
                    }
                )
            )
            for total in (10, 5)
        )
        alarms += judge_samples(a, b, match(a, b)).status == "fail"
    assert alarms <= 6


def test_fisher_and_the_false_discovery_rate_are_those_of_scipy():
    rng = np.random.default_rng(3)
    ps = []
    for _ in range(200):
        total_a, total_b = (int(rng.integers(1, 25)) for _ in range(2))
        hits_a, hits_b = (int(rng.integers(0, total + 1)) for total in (total_a, total_b))
        table = [[hits_a, total_a - hits_a], [hits_b, total_b - hits_b]]
        expected = stats.fisher_exact(table, alternative="greater").pvalue
        ps.append(fisher(hits_a, total_a, hits_b, total_b))
        assert ps[-1] == pytest.approx(expected)
    assert false_discovery(ps) == pytest.approx(stats.false_discovery_control(ps))
    assert false_discovery([]) == []
