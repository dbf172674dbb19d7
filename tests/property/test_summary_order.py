"""A report depends on the results, not on the order in which they arrive."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import (
    make_error,
    make_result,
    missed_call,
    rules_with,
    served_call,
)

from callmark.records.report import ReportHeader
from callmark.summary.summary import Scope, Summariser

RULES = rules_with()
kinds = st.sampled_from(["eligible", "eligible", "control", "negative_control", "clarify"])


@st.composite
def one_sample(draw, index):
    kind = draw(kinds)
    metadata = {
        "slices": draw(st.lists(st.sampled_from(["a", "b"]), unique=True)),
        "cluster": draw(st.sampled_from([None, "c", "d"])),
        "locale": draw(st.sampled_from([None, "de", "fr"])),
    }
    results = []
    for trial in range(2):
        if draw(st.integers(0, 9)) == 0:
            results.append(make_error(index, kind, trial=trial, metadata=metadata))
            continue
        misses = draw(st.integers(0, 1))
        entries = [missed_call()] * misses + [served_call(draw(st.sampled_from("xy")))]
        results.append(
            make_result(
                index,
                kind,
                trial=trial,
                metadata=metadata,
                f1=draw(st.floats(0, 1)),
                misses=misses,
                trace=entries,
                privacy_ok=draw(st.booleans()),
                output=draw(st.sampled_from(["", "a", "b"])),
            )
        )
    return results


@st.composite
def runs(draw):
    places = draw(st.lists(st.integers(0, 60), min_size=1, max_size=12, unique=True))
    results = [result for index in places for result in draw(one_sample(index))]
    return results, draw(st.permutations(results))


def report_of(results):
    summariser = Summariser(lambda own, other: own.scores.lax.f1 * other.scores.lax.f1)
    for result in results:
        summariser.add(result)
    return summariser.report(ReportHeader(), RULES, scope=Scope(errors_allowed=99))


@settings(deadline=None, max_examples=30)
@given(runs())
def test_the_order_of_arrival_does_not_change_the_report(run):
    results, shuffled = run
    assert msgspec.json.encode(report_of(results)) == msgspec.json.encode(report_of(shuffled))


@settings(deadline=None, max_examples=30)
@given(runs())
def test_counts_add_up(run):
    results, _ = run
    report = report_of(results)
    counts = report.counts
    kinds = counts.eligible + counts.controls + counts.negative_controls + counts.clarify
    assert kinds + counts.unclassified == counts.scored
    assert counts.scored + sum(counts.unscored.values()) == counts.samples
    assert sum(report.integration_span_count_histogram.values()) == counts.scored
    for metric in report.metrics.values():
        assert metric.value is None or metric.n > 0
        assert (metric.value is None) == (metric.reason is not None)
        if metric.ci_95 is not None and metric.value is not None:
            assert metric.ci_95[0] - 1e-9 <= metric.ci_95[1]
    for gate in report.gates:
        assert gate.value is not None or gate.status in ("inconclusive", "n/a")


@settings(deadline=None, max_examples=30)
@given(runs())
def test_a_pass_never_comes_without_enough_eligible_samples(run):
    results, _ = run
    report = report_of(results)
    assert (
        report.counts.eligible >= 15
        or report.verdict != "pass"
        or not any(result.metadata.get("call_sequence") for result in results)
    )
