"""Who the trials are, in whatever order they arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark.stats.columns import NO_CLUSTER, ConflictingResults, TrialKeys

HEX = "0123456789abcdef" * 4
IDS = st.sampled_from(["a", "", "é", "\ud800", HEX, HEX.upper(), "x" * 64, "7" * 64])
TRIALS = st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 300)), max_size=30, unique=True)


def keyed(trials, cluster=None):
    keys = TrialKeys()
    for index, trial, sample_id in trials:
        keys.add(index, trial, sample_id, cluster)
    return keys


@given(TRIALS, st.data())
def test_rows_stand_in_the_order_of_the_dataset(trials, data):
    named = {index: data.draw(IDS) for index, _ in trials}
    keys = keyed([(*key, named[key[0]]) for key in trials])
    order = keys.order()
    if order is not None:
        keys.reorder(order)
    expected = sorted(trials)
    assert list(zip(keys.index, keys.trial, strict=True)) == expected
    assert [keys.id_at(row) for row in range(len(keys))] == [named[at] for at, _ in expected]
    starts = list(keys.starts())
    assert [keys.index[row] for row in starts] == sorted(named)
    assert keys.order() is None
    for index in named:
        assert [keys.index[row] for row in keys.rows_of(index)].count(index) == len(
            keys.rows_of(index)
        )


def test_more_can_be_added_after_sorting():
    keys = keyed([(5, 0, "five"), (3, 0, "three")])
    keys.reorder(keys.order())
    keys.add(4, 0, "four", None)
    keys.reorder(keys.order())
    assert [keys.id_at(row) for row in range(3)] == ["three", "four", "five"]


def test_two_samples_at_one_place_and_one_trial_twice_are_conflicts():
    with pytest.raises(ConflictingResults, match="index 1: belongs to two samples") as caught:
        keyed([(1, 0, "a"), (1, 1, "b")]).starts()
    assert (caught.value.sample_ids, caught.value.index) == (("a", "b"), 1)
    with pytest.raises(ConflictingResults, match="'a', trial 2: occurs twice") as caught:
        keyed([(1, 2, "a"), (1, 2, "a")]).starts()
    assert (caught.value.sample_ids, caught.value.trial) == (("a", "a"), 2)


def test_no_position_is_the_label_of_a_cluster():
    assert keyed([(1, 0, "a")]).cluster[0] == NO_CLUSTER
    assert keyed([(1, 0, "a")], cluster="c").cluster[0] >= 1 << 63
