"""The written episodes, which carry figures of docs/agreement.md: whole, and read in one way."""

import pytest
from dev.agree.material import OTHER, TUNED
from dev.agree.written import check_written, measure_written, read_written

ANSWERS = {TUNED: 434, OTHER: 118}
EPISODES = {half: read_written(half) for half in (TUNED, OTHER)}


@pytest.mark.parametrize("half", EPISODES)
def test_every_episode_is_whole(half):
    episodes = EPISODES[half]
    assert len({one.id for one in episodes}) == len(episodes) == ANSWERS[half]
    for one in episodes:
        assert one.messages[-1]["role"] == "tool", one.id
        for variant in one.variants:
            assert variant.wrong in variant.answer, one.id
            assert variant.answer != one.answer, one.id


def test_no_domain_is_seen_and_unseen():
    first, second = ({one.domain for one in EPISODES[half]} for half in EPISODES)
    assert not first & second


def test_the_right_answer_comes_first():
    [(_, right, text, _), *variants] = check_written(EPISODES[TUNED][:1])
    assert right is None
    assert text == EPISODES[TUNED][0].answer.strip()
    assert [variant for _, variant, _, _ in variants] == EPISODES[TUNED][0].variants


@pytest.mark.slow
@pytest.mark.parametrize("half", EPISODES)
def test_the_same_counts_every_time(half):
    counts = measure_written(half)
    assert counts == measure_written(half)
    assert counts.answers == ANSWERS[half]
    assert sum(one.planted for one in counts.variants) == sum(
        len(one.variants) for one in EPISODES[half]
    )
