"""Which prompts are computed together: everything once, nothing beyond its bounds."""

from hypothesis import given
from hypothesis import strategies as st

from callmark.runners.hf.generate import BUDGET, SHORTEST_PREFIX, SMALLEST_FAMILY, WIDEST, plan

beginnings = st.sampled_from([[], [1] * 20, [1] * 9 + [2] * 30, [3] * 12])
tails = st.lists(st.integers(0, 5), min_size=1, max_size=12)
prompt_lists = st.lists(st.builds(list.__add__, beginnings, tails), min_size=1, max_size=40)
batchings = st.sampled_from(["prefix", "padded", "equal"])


@given(prompt_lists, batchings, st.none() | st.integers(1, 9), st.integers(0, 2000))
def test_every_prompt_stands_in_one_batch_that_keeps_its_bounds(prompts, batching, size, growth):
    families = plan(prompts, batching, size, growth)
    rows = [row for family in families for batch in family.batches for row in batch]
    assert sorted(rows) == list(range(len(prompts)))
    for family in families:
        members = [prompts[row] for batch in family.batches for row in batch]
        assert family.prefix == 0 or SHORTEST_PREFIX <= family.prefix < min(map(len, members))
        assert len({tuple(ids[: family.prefix]) for ids in members}) == 1
        for batch in family.batches:
            lengths = [len(prompts[row]) for row in batch]
            assert lengths == sorted(lengths, reverse=True)
            assert len(batch) <= (size or WIDEST)
            assert batching != "equal" or len(set(lengths)) == 1


def test_prompts_with_one_tool_prefix_are_one_family():
    prompts = [[7] * 100 + [number, 1] for number in range(64)]
    (family,) = plan(prompts, "prefix", None, 1024)
    assert family.prefix == 100
    assert [len(batch) for batch in family.batches] == [64]


def test_a_stray_prompt_does_not_cost_the_others_their_prefix():
    prompts = [[7] * 100 + [number] for number in range(20)] + [[7] * 10 + [8] * 50, [9, 9]]
    with_tools, others = plan(prompts, "prefix", None, 64)
    assert with_tools.prefix == 100
    assert sorted(row for batch in others.batches for row in batch) == [20, 21]


def test_small_families_are_joined_rather_than_run_in_narrow_batches():
    prompts = [[7] * 8 + [kind] * 30 + [number] for kind in (1, 2, 3) for number in range(3)]
    assert len(prompts) / 3 < SMALLEST_FAMILY
    (family,) = plan(prompts, "prefix", None, 64)
    assert (family.prefix, len(family.batches)) == (8, 1)


def test_long_prompts_come_in_narrow_batches():
    prompts = [[1] * 10_000 for _ in range(7)]
    (family,) = plan(prompts, "padded", None, 1024)
    assert all(len(batch) * 10_000 <= BUDGET for batch in family.batches)
    assert len(plan([[1] * (2 * BUDGET)], "padded", None, 1024)[0].batches) == 1
