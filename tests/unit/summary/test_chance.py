"""The chance level: the same answers against the results of other samples."""

import hashlib

import pytest
from tests.builders import make_result, rules_with, served_call, silent

from callmark.records.report import ReportHeader
from callmark.summary.metrics import MAX_SAMPLES
from callmark.summary.summary import Summariser


def hashed(sample_id):
    return hashlib.sha256(sample_id.encode()).digest()


def report_of(results, cross_score, **header):
    summariser = Summariser(cross_score)
    for result in results:
        summariser.add(result)
    return summariser.report(ReportHeader(**header), rules_with())


class Recorder:
    """A cross score that remembers whom it was asked about."""

    def __init__(self, value=0.25):
        self.value = value
        self.pairs = []

    def __call__(self, own, other):
        self.pairs.append((own.sample_id, other.sample_id))
        return self.value


def test_each_answer_meets_the_next_of_its_group_by_hash():
    results = [make_result(at, trace=[served_call("a")]) for at in range(5)]
    results += [make_result(5 + at, trace=[served_call("b"), served_call("a")]) for at in range(3)]
    results += [make_result(8, trace=[served_call("lonely")])]
    recorder = Recorder()
    report = report_of(results, recorder)
    expected = set()
    for ids in ([f"s{at}" for at in range(5)], [f"s{at}" for at in range(5, 8)]):
        ids.sort(key=hashed)
        expected |= set(zip(ids, [*ids[1:], ids[0]], strict=True))
    assert set(recorder.pairs) == expected  # the group of one is left out
    assert report.metrics["chance_f1"].value == 0.25
    assert (report.metrics["grounding_lift"].value, report.metrics["grounding_lift"].n) == (0.75, 8)


def test_only_eligible_samples_and_their_first_trial_take_part():
    results = [make_result(at, trial=1, f1=0.0) for at in range(3)]
    results += [make_result(at, trial=0) for at in range(3)]
    results += [make_result(3 + at, "control", trial=trial) for at in (0, 1) for trial in (0, 1)]
    recorder = Recorder()
    report = report_of(results, recorder)
    assert len(recorder.pairs) == 3
    assert report.metrics["grounding_lift"].value == 0.75


def test_at_most_500_samples_with_the_smallest_hashes_are_kept():
    n = MAX_SAMPLES + 80
    recorder = Recorder()
    report_of([make_result(at) for at in range(n)], recorder)
    chosen = sorted((f"s{at}" for at in range(n)), key=hashed)[:MAX_SAMPLES]
    assert [own for own, _ in recorder.pairs] == chosen


def lift_gate(results, value, **header):
    report = report_of(results, Recorder(value), **header)
    return next(gate for gate in report.gates if gate.name == "grounding_lift")


def test_the_gate_compares_the_lower_end_of_the_interval():
    good = [make_result(at) for at in range(20)]
    outcome = lift_gate(good, 0.1)
    assert (outcome.status, outcome.value, outcome.compared) == (
        "pass",
        pytest.approx(0.9),
        "ci_95_low",
    )
    mixed = [make_result(at, f1=float(at == 0)) for at in range(20)]
    assert lift_gate(mixed, 0.0).status == "fail"  # one of twenty: the interval touches 0
    assert lift_gate([silent(at) for at in range(20)], 0.0).status == "fail"


def test_too_few_pairs_are_inconclusive():
    outcome = lift_gate([make_result(at) for at in range(14)], 0.0)
    assert (outcome.status, outcome.n) == ("inconclusive", 14)
    alone = [make_result(at, trace=[served_call(f"t{at}")]) for at in range(20)]
    outcome = lift_gate(alone, 0.0)
    assert outcome.reason == "no two samples have results of the same tools"


def test_clusters_widen_the_interval_of_the_lift():
    results = [make_result(at, f1=float(at % 2), metadata={"cluster": at % 2}) for at in range(30)]
    report = report_of(results, Recorder(0.0))
    assert report.metrics["grounding_lift"].method == "cluster_bootstrap"
    assert report.metrics["grounding_lift"].ci_95 == (0.0, 1.0)


def test_without_a_cross_score_nothing_is_kept_and_the_metric_says_so():
    summariser = Summariser()
    summariser.add(make_result(0))
    report = summariser.report(ReportHeader(), rules_with())
    assert report.metrics["chance_f1"].reason == "not computed"
    assert report.summary["grounding_lift"] is None
