"""Rates and means keep what they are made of; intervals are the ones that the documents name."""

import math

import numpy as np
import pytest

from callmark.stats.estimates import (
    BOOTSTRAP_LIMIT,
    Rate,
    SampledValue,
    bounds_one_sided,
    deciding_n,
    estimate,
    f1_of,
    interval_95,
    wilson,
)

VALUES = [0.1, 0.9, 0.4, 1.0, 0.0, 0.7, 0.7]


def test_a_rate_without_a_denominator_has_no_value():
    assert Rate(0, 0).value is None
    assert Rate(0, 3).value == 0.0
    assert Rate(1, 3).value == 1 / 3


def test_wilson_by_hand():
    # 8 of 10: the textbook values
    low, high = wilson(8, 10, 1.959963984540054)
    assert (low, high) == (pytest.approx(0.4901625, abs=1e-6), pytest.approx(0.9433178, abs=1e-6))
    assert wilson(0, 10, 1.96)[0] == 0.0
    assert wilson(10, 10, 1.96)[1] == 1.0


def test_a_rate_has_a_wilson_interval():
    found = interval_95(SampledValue("rate", ([1] * 8 + [0] * 2,)), seed=1)
    assert found.method == "wilson"
    assert found.low == pytest.approx(0.4901625, abs=1e-6)


def test_a_mean_has_the_percentile_bootstrap_of_the_whole_draw():
    found = interval_95(SampledValue("mean", (VALUES,)), seed=42)
    n = len(VALUES)
    draws = np.random.default_rng(42).integers(0, n, (1000, n))
    expected = np.percentile(np.array(VALUES)[draws].mean(axis=1), [2.5, 97.5])
    assert found.method == "bootstrap"
    assert [found.low, found.high] == list(expected)


def test_drawing_in_blocks_is_the_same_stream():
    values = np.random.default_rng(3).random(3001)
    found = interval_95(SampledValue("mean", (values,)), seed=7)
    draws = np.random.default_rng(7).integers(0, 3001, (1000, 3001))
    assert [found.low, found.high] == list(np.percentile(values[draws].mean(axis=1), [2.5, 97.5]))


def test_above_ten_thousand_a_mean_is_normal():
    values = [0.0, 1.0, 0.5] * (BOOTSTRAP_LIMIT // 3 + 1)
    found = interval_95(SampledValue("mean", (values,)), seed=0)
    half = 1.96 * np.std(values, ddof=1) / math.sqrt(len(values))
    assert found.method == "normal"
    assert found.low == pytest.approx(0.5 - half, abs=1e-12)
    assert found.high == pytest.approx(0.5 + half, abs=1e-12)


def test_clusters_are_drawn_whole():
    values = [1.0, 1.0, 1.0, 0.0, 0.0, 0.5]
    found = interval_95(SampledValue("rate", (values,), clusters=[7, 7, 7, 9, 9, 4]), seed=5)
    sums, sizes = np.array([3.0, 0.0, 0.5]), np.array([3.0, 2.0, 1.0])
    draws = np.random.default_rng(5).integers(0, 3, (1000, 3))
    means = sums[draws].sum(axis=1) / sizes[draws].sum(axis=1)
    assert found.method == "cluster_bootstrap"
    assert [found.low, found.high] == pytest.approx(list(np.percentile(means, [2.5, 97.5])))


def test_averages_over_trials_are_no_counts_of_yes_and_no():
    found = interval_95(SampledValue("rate", ([0.5, 1.0, 0.0],), repeated=True), seed=5)
    assert found.method == "cluster_bootstrap"


def test_many_clusters_are_normal_too():
    n = BOOTSTRAP_LIMIT + 2
    values = [float(at % 2) for at in range(2 * n)]
    found = interval_95(
        SampledValue("rate", (values,), clusters=[at // 2 for at in range(2 * n)]), 0
    )
    assert found.method == "cluster_normal"
    assert found.low == pytest.approx(0.5)  # every cluster is half right: no spread at all


def test_one_unit_gives_no_interval():
    assert interval_95(SampledValue("mean", ([0.4],)), seed=0) is None
    assert interval_95(SampledValue("rate", ([1.0, 0.0],), clusters=[3, 3]), seed=0) is None
    assert bounds_one_sided(SampledValue("mean", ([0.4],)), seed=0) is None


def test_nothing_has_no_value_and_no_interval():
    for statistic, columns in (("rate", 1), ("mean", 1), ("pooled", 2), ("f1", 4)):
        observed = SampledValue(statistic, ((),) * columns)
        assert estimate(observed) is None
        assert interval_95(observed, seed=0) is None


def test_pooled_values_are_judged_by_their_samples():
    # 90 of 100 values, but of 4 samples: as wide as 3.6 of 4
    observed = SampledValue("pooled", ([25, 25, 25, 15], [25, 25, 25, 25]))
    found = interval_95(observed, seed=0)
    assert estimate(observed) == 0.9
    assert found.method == "wilson_by_sample"
    assert (found.low, found.high) == pytest.approx(wilson(3.6, 4, 1.959963984540054))


def test_the_f1_of_pooled_counts():
    assert f1_of(3, 4, 1, 2) == pytest.approx(2 * 0.75 * 0.5 / 1.25)
    assert f1_of(0, 0, 0, 5) == 0.0
    observed = SampledValue("f1", ([1, 2], [1, 3], [1, 0], [1, 1]))
    assert estimate(observed) == pytest.approx(f1_of(3, 4, 1, 2))
    draws = np.random.default_rng(9).integers(0, 2, (1000, 2))
    columns = [np.array(column, float)[draws].sum(axis=1) for column in observed.columns]
    brute = [f1_of(*sums) for sums in zip(*columns, strict=True)]
    found = interval_95(observed, seed=9)
    assert [found.low, found.high] == pytest.approx(list(np.percentile(brute, [2.5, 97.5])))


def test_the_normal_interval_of_pooled_f1_is_near_the_bootstrap():
    rng = np.random.default_rng(1)
    n = BOOTSTRAP_LIMIT + 500
    spans = rng.integers(1, 4, n)
    grounded = rng.binomial(spans, 0.8)
    required = np.ones(n)
    found = (grounded > 0).astype(float)
    observed = SampledValue("f1", (grounded, spans, found, required))
    interval = interval_95(observed, seed=0)
    assert interval.method == "normal"
    draws = rng.integers(0, n, (300, n))
    columns = [np.asarray(column, float)[draws].sum(axis=1) for column in observed.columns]
    brute = np.percentile([f1_of(*sums) for sums in zip(*columns, strict=True)], [2.5, 97.5])
    assert [interval.low, interval.high] == pytest.approx(list(brute), abs=0.001)


def test_one_sided_bounds():
    rate = SampledValue("rate", ([1] * 8 + [0] * 2,))
    assert bounds_one_sided(rate, 0) == pytest.approx(wilson(8, 10, 1.6448536269514722))
    mean = SampledValue("mean", (VALUES,))
    draws = np.random.default_rng(3).integers(0, 7, (1000, 7))
    expected = np.percentile(np.array(VALUES)[draws].mean(axis=1), [5, 95])
    assert bounds_one_sided(mean, 3) == pytest.approx(tuple(expected))


def test_the_deciding_number_of_samples_decides():
    share, bound = 0.97, 0.95
    observed = SampledValue("rate", ([1] * 97 + [0] * 3,))
    needed = deciding_n(observed, bound, seed=0)
    z = 1.6448536269514722
    assert wilson(share * needed, needed, z)[0] >= bound
    assert wilson(share * (needed - 1), needed - 1, z)[0] < bound
    assert (
        deciding_n(SampledValue("rate", ([1] * 19 + [0],)), bound, seed=0) is None
    )  # exactly on it
    assert deciding_n(observed, 1.0, seed=0) is None  # no number of samples proves certainty


def test_the_deciding_number_for_a_mean_grows_with_the_square():
    observed = SampledValue("mean", ([0.8, 1.0] * 10,))
    low, _ = bounds_one_sided(observed, 0)
    needed = deciding_n(observed, 0.89, seed=0)
    assert needed == math.ceil(20 * ((0.9 - low) / 0.01) ** 2)


def test_a_negative_seed_draws_as_well():
    assert interval_95(SampledValue("mean", (VALUES,)), seed=-1) is not None
