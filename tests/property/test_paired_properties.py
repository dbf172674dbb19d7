"""Invariants of the paired tests, the probe's decision and the disagreement of arguments."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from callmark.compare.metrics import decide, rulings
from callmark.probe.fidelity import ViewCall, disagreement
from callmark.probe.stats import validity_change
from callmark.stats.estimates import (
    SAME,
    Z_ONE_SIDED,
    Z_TWO_SIDED,
    Pairs,
    holm,
    lower_bound,
    mcnemar,
    p_worse,
    sign_flip,
    tango,
)

counts = st.integers(0, 300)
flags = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)
gains = st.lists(st.sampled_from([-1.0, -0.5, -0.1, 0.0, 0.1, 0.5, 1.0]), min_size=2, max_size=25)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
arguments = st.dictionaries(st.text(max_size=2), json_values, max_size=4)


@given(counts, counts)
def test_more_losses_are_never_less_suspicious(worse, better):
    p = mcnemar(worse, better)
    assert 0 <= p <= 1
    assert mcnemar(worse + 1, better) <= p + 1e-12
    assert mcnemar(worse, better + 1) >= p - 1e-12
    middle = math.exp(
        math.lgamma(worse + better + 1)
        - math.lgamma(worse + 1)
        - math.lgamma(better + 1)
        - (worse + better) * math.log(2)
    )
    assert math.isclose(p + mcnemar(better, worse), 1 + middle, abs_tol=1e-9)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_only_raises_and_keeps_the_order(ps):
    adjusted = holm(ps)
    assert all(before <= after <= 1 for before, after in zip(ps, adjusted, strict=True))
    assert all(
        adjusted[i] <= adjusted[j] for i in range(len(ps)) for j in range(len(ps)) if ps[i] < ps[j]
    )


@given(st.integers(1, 400), st.data())
def test_the_score_interval_holds_the_difference_and_mirrors(n, data):
    worse = data.draw(st.integers(0, n))
    better = data.draw(st.integers(0, n - worse))
    low, high = tango(worse, better, n, Z_TWO_SIDED)
    assert -1 - SAME <= low <= (better - worse) / n + SAME
    assert (better - worse) / n - SAME <= high <= 1 + SAME
    mirrored = tango(better, worse, n, Z_TWO_SIDED)
    assert math.isclose(low, -mirrored[1], abs_tol=1e-9)
    one_sided = tango(worse, better, n, Z_ONE_SIDED)[0]
    assert low - SAME <= one_sided


@settings(max_examples=50)
@given(gains, st.integers(0, 99))
def test_flipping_every_sign_turns_the_test_round(values, seed):
    p = sign_flip(values, seed)
    turned = sign_flip([-value for value in values], seed)
    assert 0 < p <= 1
    assert p + turned >= 1 - 0.05  # ties count on both sides; draws are not exact


@settings(max_examples=50)
@given(gains, st.booleans(), st.integers(0, 99))
def test_a_decision_follows_from_its_numbers(values, yes_no, seed):
    if yes_no:
        values = [float(round(value)) for value in values]
    pairs = Pairs(values, yes_no)
    found = rulings({"m": pairs}, margin=0.03, seed=seed)
    ruling = found["m"]
    assert ruling.p == ruling.p_adjusted == p_worse(pairs, seed)
    assert ruling.bound == lower_bound(pairs)
    assert ruling.bound <= math.fsum(values) / len(values) + SAME
    if ruling.decision == "regression":
        assert ruling.p <= 0.05
        assert sum(values) < 0
    assert decide(found)[0] == ruling.decision
    assert rulings({"m": pairs}, margin=0.03, seed=seed) == found
    assert rulings({"m": pairs}, margin=0.03, seed=seed, open_reason="x")["m"].decision == (
        "inconclusive"
    )


@given(gains, st.sampled_from([1.0, 0.5, 0.01]))
def test_the_bound_of_a_mean_is_never_nearer_to_it_than_n_allows(values, scale):
    values = [scale * value for value in values]
    alike = tango(0, 0, len(values), Z_ONE_SIDED)[0]
    mean = math.fsum(values) / len(values)
    assert -1 <= lower_bound(Pairs(values, False)) <= max(-1, mean + alike) + SAME
    # Yes or no in disguise: never a bolder claim than for rates.
    whole = [float(round(value)) for value in values]
    assert lower_bound(Pairs(whole, False)) <= lower_bound(Pairs(whole, True)) + SAME


@given(flags, st.floats(-1, 1))
def test_the_probe_decides_by_drop_and_test(pairs, floor):
    base, tuned = [before for before, _ in pairs], [now for _, now in pairs]
    change = validity_change(base, tuned, floor)
    assert change.base_rate == sum(base) / len(base)
    assert math.isclose(change.delta, change.tuned_rate - change.base_rate, abs_tol=1e-12)
    if change.decision == "regression":
        assert change.delta < floor
        assert change.p <= 0.05
    if change.decision == "no_regression":
        assert change.delta >= change.lower_bound > floor
    if change.decision == "no_drop_seen":
        assert change.delta >= floor - SAME
        assert change.n >= 20
    # Which case stands where has no say.
    again = validity_change(base[::-1], tuned[::-1], floor)
    assert again == change


@given(flags)
def test_losing_one_more_case_never_helps(pairs):
    base, tuned = [before for before, _ in pairs], [now for _, now in pairs]
    order = {"no_regression": 0, "no_drop_seen": 1, "inconclusive": 2, "regression": 3}
    before = validity_change(base, tuned, -0.05)
    if True in tuned:
        worse = list(tuned)
        worse[worse.index(True)] = False
        after = validity_change(base, worse, -0.05)
        if after.base_valid + after.tuned_valid:
            assert order[after.decision] >= order[before.decision]


@given(arguments, arguments, st.booleans())
def test_disagreement_is_a_share_alike_from_both_sides(one, other, ordered):
    left, right = ViewCall("t", one), ViewCall("t", other)
    rate = disagreement(left, right, ordered_lists=ordered)
    assert 0 <= rate <= 1
    assert rate == disagreement(right, left, ordered_lists=ordered)
    assert disagreement(left, left, ordered_lists=ordered) == 0.0
    assert disagreement(left, right, ordered_lists=False) <= disagreement(
        left, right, ordered_lists=True
    )
