"""Invariants of rates, means and their intervals."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from callmark.stats.estimates import (
    SampledValue,
    bounds_one_sided,
    deciding_n,
    estimate,
    interval_95,
    wilson,
)

shares = st.floats(0, 1)
samples = st.lists(shares, min_size=2, max_size=40)


@given(st.integers(1, 5000), st.data())
def test_wilson_holds_the_share_and_stays_between_0_and_1(total, data):
    hits = data.draw(st.integers(0, total))
    low, high = wilson(hits, total, 1.96)
    assert 0 <= low <= high <= 1
    assert low - 1e-12 <= hits / total <= high + 1e-12


@given(st.integers(2, 500), st.data())
def test_more_samples_at_the_same_share_narrow_the_interval(total, data):
    hits = data.draw(st.integers(0, total))
    few, many = wilson(hits, total, 1.96), wilson(10 * hits, 10 * total, 1.96)
    assert many[1] - many[0] <= few[1] - few[0]


@settings(deadline=None, max_examples=40)
@given(samples, st.integers(0, 2**32))
def test_a_bootstrap_stays_within_the_values_and_is_deterministic(values, seed):
    observed = SampledValue("mean", (values,))
    found = interval_95(observed, seed)
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found == interval_95(observed, seed)
    low, high = bounds_one_sided(observed, seed)
    assert found.low <= low + 1e-12
    assert high <= found.high + 1e-12


@settings(deadline=None, max_examples=40)
@given(samples, st.integers(0, 99))
def test_clusters_of_one_are_no_clusters(values, seed):
    plain = interval_95(SampledValue("mean", (values,)), seed)
    single = interval_95(SampledValue("mean", (values,), clusters=range(len(values))), seed)
    assert math.isclose(plain.low, single.low, abs_tol=1e-12)
    assert math.isclose(plain.high, single.high, abs_tol=1e-12)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=30))
def test_a_pooled_share_is_the_share_of_the_sums(pairs):
    hits = [min(hit, total) for hit, total in pairs]
    totals = [total for _, total in pairs]
    value = estimate(SampledValue("pooled", (hits, totals)))
    assert value == sum(hits) / sum(totals)


@given(st.integers(20, 200), st.floats(0.05, 0.95), st.data())
def test_the_deciding_n_decides_and_one_less_does_not(n, bound, data):
    hits = data.draw(st.integers(0, n))
    observed = SampledValue("rate", ([1] * hits + [0] * (n - hits),))
    share = hits / n
    needed = deciding_n(observed, bound, seed=0)
    if abs(share - bound) < 1e-6:
        return
    low, high = wilson(share * needed, needed, 1.6448536269514722)
    assert low >= bound - 1e-9 if share > bound else high <= bound + 1e-9
