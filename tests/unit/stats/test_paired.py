"""Our tests and intervals are those of scipy and statsmodels, on random tables and by hand."""

import gc
import math
import warnings

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from callmark.stats.estimates import (
    BOOTSTRAP_LIMIT,
    FLIPS,
    Z_ONE_SIDED,
    Z_TWO_SIDED,
    Pairs,
    SampledValue,
    bootstrap_p,
    fewest_alike,
    fewest_lost,
    holm,
    interval_95,
    lower_bound,
    mcnemar,
    p_worse,
    paired_interval_95,
    procedure_of,
    resample,
    sign_flip,
    tango,
    wilson,
)

TABLES = 500


def tables(seed: int):
    """Random (worse, better) counts, small and large."""
    rng = np.random.default_rng(seed)
    for at in range(TABLES):
        top = (8, 60, 2000)[at % 3]
        yield int(rng.integers(0, top)), int(rng.integers(0, top))


def test_mcnemar_is_the_exact_binomial_test_of_scipy():
    for worse, better in tables(1):
        total = worse + better
        wanted = 1.0
        if total:
            wanted = scipy_stats.binomtest(worse, total, 0.5, alternative="greater").pvalue
        assert mcnemar(worse, better) == pytest.approx(wanted, abs=1e-9), (worse, better)


def test_twice_the_smaller_side_is_the_exact_mcnemar_test_of_statsmodels():
    for worse, better in tables(2):
        wanted = statsmodels_mcnemar([[7, worse], [better, 9]], exact=True).pvalue
        ours = min(1.0, 2 * min(mcnemar(worse, better), mcnemar(better, worse)))
        assert ours == pytest.approx(wanted, abs=1e-9), (worse, better)


def test_mcnemar_by_hand():
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(5, 0) == pytest.approx(1 / 32)
    assert mcnemar(0, 5) == 1.0
    assert mcnemar(1, 1) == pytest.approx(0.75)
    assert mcnemar(400_000, 300_000) == 0.0 or mcnemar(400_000, 300_000) < 1e-300


def test_four_lost_are_not_enough_and_five_are():
    assert fewest_lost() == 5
    assert mcnemar(4, 0) > 0.05 >= mcnemar(5, 0)


@pytest.fixture
def cheap_collections():
    """statsmodels collects garbage in every call: let it find little."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("cheap_collections")
def test_holm_is_that_of_statsmodels():
    rng = np.random.default_rng(3)
    for _ in range(TABLES):
        ps = list(rng.random(int(rng.integers(1, 9))) ** 3)
        wanted = multipletests(ps, alpha=0.05, method="holm")[1]
        assert holm(ps) == pytest.approx(list(wanted), abs=1e-12)
    assert holm([]) == []


def test_wilson_is_that_of_statsmodels():
    rng = np.random.default_rng(4)
    for _ in range(TABLES):
        total = int(rng.integers(1, 3000))
        hits = int(rng.integers(0, total + 1))
        wanted = proportion_confint(hits, total, alpha=0.05, method="wilson")
        assert wilson(hits, total, Z_TWO_SIDED) == pytest.approx(wanted, abs=1e-9)


def exact_flips(gains) -> float:
    """All sign flips, counted by scipy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return scipy_stats.permutation_test(
            (np.asarray(gains, float),),
            lambda x, axis: x.sum(axis=axis),
            permutation_type="samples",
            alternative="less",
            n_resamples=np.inf,
            vectorized=True,
        ).pvalue


def test_few_units_are_flipped_in_all_ways_as_scipy_does():
    rng = np.random.default_rng(5)
    for _ in range(TABLES):
        gains = rng.integers(-4, 4, int(rng.integers(2, 9))) / 4
        assert sign_flip(gains, seed=1) == pytest.approx(exact_flips(gains), abs=1e-9), gains


@pytest.mark.slow
def test_many_units_are_drawn_and_come_near_the_exact_value():
    rng = np.random.default_rng(6)
    for _ in range(10):
        gains = rng.integers(1, 5, 14) * rng.choice([-1, -1, 1], 14) / 4
        exact = exact_flips(gains)
        spread = math.sqrt(exact * (1 - exact) / FLIPS)
        assert abs(sign_flip(gains, seed=2) - exact) <= 5 * spread + 2 / FLIPS


def test_units_without_a_gain_change_nothing():
    gains = [-0.5, -0.25, 0.25, -1.0]
    assert sign_flip(gains, 0) == sign_flip([*gains, *[0.0] * 500], 0)
    assert sign_flip([0.0] * 30, 0) == 1.0
    assert sign_flip([], 0) == 1.0


def test_above_ten_thousand_units_flips_are_normal():
    rng = np.random.default_rng(7)
    gains = rng.normal(-0.01, 1, BOOTSTRAP_LIMIT + 1)
    z = gains.sum() / math.sqrt(np.square(gains).sum())
    assert sign_flip(gains, 0) == pytest.approx(scipy_stats.norm.cdf(z), abs=1e-9)


def test_the_bootstrap_draws_are_those_of_scipy_number_for_number():
    rng = np.random.default_rng(8)
    for at in range(TABLES // 10):
        values = rng.random(int(rng.integers(2, 60)))
        found = interval_95(SampledValue("mean", (values,)), seed=at)
        wanted = scipy_stats.bootstrap(
            (values,), np.mean, n_resamples=1000, method="percentile", rng=np.random.default_rng(at)
        ).confidence_interval
        assert (found.low, found.high) == pytest.approx(tuple(wanted), abs=1e-12)


def test_the_paired_bootstrap_is_the_bootstrap_of_the_differences():
    rng = np.random.default_rng(9)
    for at in range(TABLES // 10):
        a, b = rng.random((2, int(rng.integers(2, 60))))
        found = paired_interval_95(SampledValue("mean", (a,)), SampledValue("mean", (b,)), seed=at)
        wanted = scipy_stats.bootstrap(
            (b - a,), np.mean, n_resamples=1000, method="percentile", rng=np.random.default_rng(at)
        ).confidence_interval
        assert (found.low, found.high) == pytest.approx(tuple(wanted), abs=1e-12)


def test_what_two_sides_have_in_common_cancels():
    """Pooled shares move together: the interval of their difference is narrow."""
    rng = np.random.default_rng(10)
    totals = rng.integers(1, 9, 300)
    hits = rng.binomial(totals, 0.8)
    lost = np.where(np.arange(300) < 6, np.maximum(hits - 1, 0), hits)
    a, b = SampledValue("pooled", (hits, totals)), SampledValue("pooled", (lost, totals))
    found = paired_interval_95(a, b, seed=1)
    own = interval_95(b, seed=1)
    assert found.low < lost.sum() / totals.sum() - hits.sum() / totals.sum() < found.high
    assert found.high - found.low < (own.high - own.low) / 5


def test_the_normal_interval_of_a_difference_is_near_the_bootstrap():
    rng = np.random.default_rng(11)
    n = BOOTSTRAP_LIMIT + 10
    totals = rng.integers(1, 5, n)
    a_hits, b_hits = rng.binomial(totals, 0.8), rng.binomial(totals, 0.78)
    a, b = SampledValue("pooled", (a_hits, totals)), SampledValue("pooled", (b_hits, totals))
    found = paired_interval_95(a, b, seed=0)
    assert found.method == "normal"
    drawn = [
        resample("pooled", [side.astype(float), totals.astype(float)], 3)
        for side in (a_hits, b_hits)
    ]
    wanted = np.percentile(drawn[1] - drawn[0], [2.5, 97.5])
    assert (found.low, found.high) == pytest.approx(tuple(wanted), abs=0.001)


def score_statistic(worse, better, n, delta):
    """Tango's statistic with the nuisance share found by brute force on a fine grid."""
    grid = np.linspace(max(0, -delta) + 1e-9, (1 - abs(delta)) / 2 + max(0, -delta) - 1e-9, 200_001)
    q = grid  # P(worse); P(better) = q + delta
    other = np.clip(1 - 2 * q - delta, 1e-12, None)
    logs = worse * np.log(q) + better * np.log(np.clip(q + delta, 1e-12, None))
    logs = logs + (n - worse - better) * np.log(other)
    best = q[np.argmax(logs)]
    return (better - worse - n * delta) / math.sqrt(n * (2 * best + delta - delta**2))


def test_tango_solves_the_score_equation():
    for worse, better, n in [(3, 1, 40), (10, 2, 50), (1, 7, 30), (12, 12, 100)]:
        low, high = tango(worse, better, n, Z_TWO_SIDED)
        assert score_statistic(worse, better, n, low) == pytest.approx(Z_TWO_SIDED, abs=1e-3)
        assert score_statistic(worse, better, n, high) == pytest.approx(-Z_TWO_SIDED, abs=1e-3)


def test_without_a_difference_the_bound_depends_on_n_alone():
    for n in (5, 20, 88, 1000):
        low, high = tango(0, 0, n, Z_ONE_SIDED)
        assert high == pytest.approx(Z_ONE_SIDED**2 / (n + Z_ONE_SIDED**2))
        assert low == pytest.approx(-high)


def test_so_many_without_a_difference_are_enough_for_the_margin_and_one_less_is_not():
    for margin in (0.01, 0.03, 0.1):
        n = fewest_alike(margin)
        assert tango(0, 0, n, Z_ONE_SIDED)[0] > -margin >= tango(0, 0, n - 1, Z_ONE_SIDED)[0]


def test_the_kind_of_data_chooses_the_test():
    gains = [0.0, -1.0, 1.0]
    assert procedure_of(Pairs(gains, True)) == "mcnemar"
    assert procedure_of(Pairs(gains, False)) == "paired_bootstrap"
    assert procedure_of(Pairs(gains, True, clusters=[1, 1, 2])) == "sign_flip"
    assert procedure_of(Pairs(gains, True, repeated=True)) == "sign_flip"


def test_clusters_count_as_one():
    """Ten samples of one conversation that fail together are one failure."""
    apart = Pairs([-1.0] * 10, True)
    together = Pairs([-1.0] * 10, True, clusters=[7] * 10)
    assert p_worse(apart, 0) < 0.001
    assert p_worse(together, 0) == 0.5


def test_a_mean_has_the_larger_p_of_bootstrap_and_flips():
    gains = list(np.random.default_rng(12).normal(-0.1, 0.3, 25))
    both = bootstrap_p(gains, 3), sign_flip(gains, 3)
    assert p_worse(Pairs(gains, False), 3) == max(both)
    assert all(0 < p < 1 for p in both)


def test_the_bootstrap_p_is_counted_around_the_mean_in_standard_errors():
    gains = np.random.default_rng(13).normal(-0.2, 1, 30)
    draws = gains[np.random.default_rng(5).integers(0, 30, (1000, 30))]
    t = scipy_stats.ttest_1samp(draws, gains.mean(), axis=1).statistic
    wanted = (1 + (t <= scipy_stats.ttest_1samp(gains, 0).statistic).sum()) / 1001
    assert bootstrap_p(gains, 5) == pytest.approx(wanted)


def test_gains_without_spread_are_left_to_the_flips():
    assert bootstrap_p([0.0] * 5, 0) == bootstrap_p([0.2], 0) == 1.0
    assert p_worse(Pairs([-0.2] * 3, False), 0) == 1 / 8


def test_the_bound_of_a_mean_is_that_of_rates_or_that_of_two_more_samples():
    """For the gains −1, 0 and 1 Tango's bound itself, if that of Bonett and Price is not lower;
    for small gains their own spread counts, not that of losses and wins."""
    gains = [-1.0] * 2 + [1.0] * 2 + [0.0] * 196
    score = tango(2, 2, 200, Z_ONE_SIDED)[0]
    imagined = np.array([*gains, -1.0, 1.0])
    wald = imagined.mean() - Z_ONE_SIDED * imagined.std() / math.sqrt(202)
    assert lower_bound(Pairs(gains, False)) == pytest.approx(min(score, wald))
    small = np.random.default_rng(14).normal(0, 0.1, 2000)
    wald = small.mean() - Z_ONE_SIDED * small.std() / math.sqrt(2000)
    assert lower_bound(Pairs(small, False)) == pytest.approx(wald, rel=0.1)


def test_nothing_has_no_p_and_no_bound():
    assert p_worse(Pairs([], True), 0) is None
    assert lower_bound(Pairs([], False)) is None
    assert lower_bound(Pairs([0.1], False)) is None


def test_a_bootstrap_without_spread_does_not_promise_more_than_n_can():
    """Twenty equal answers do not show that B is within 3 points."""
    bound = lower_bound(Pairs([0.0] * 20, False))
    assert bound == pytest.approx(-(Z_ONE_SIDED**2) / (20 + Z_ONE_SIDED**2))
    clustered = lower_bound(Pairs([0.0] * 400, False, clusters=[at // 20 for at in range(400)]))
    assert clustered == pytest.approx(bound)
