"""How many requests at once, and when to try again."""

import asyncio
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark.runners.http.client import AdaptiveLimit
from callmark.runners.http.trouble import RetryPolicy, asked_wait, wait_before

POLICY = RetryPolicy()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def limit(start=4, most=64, patience=30.0, least=1):
    clock = Clock()
    made = AdaptiveLimit(start=start, least=least, most=most, patience=patience, clock=clock)
    return made, clock


def enter(one, times):
    async def entered():
        return [await one.enter() for _ in range(times)]

    return asyncio.run(entered())


def test_every_answer_makes_room_for_one_more_until_the_first_sign_of_too_much():
    one, clock = limit()
    for _ in range(10):
        one.answered(clock())
    assert one.now == 14
    for _ in range(100):
        one.answered(clock())
    assert one.now == 64


def test_too_much_halves_and_then_it_grows_by_one_per_round_trip():
    one, clock = limit(start=32)
    enter(one, 32)
    clock.now = 1.0
    one.too_much(since=0.5)
    assert one.now == 16
    for _ in range(17):
        one.answered(clock())
    assert one.now == 17


def test_one_round_trip_halves_once():
    one, clock = limit(start=32)
    enter(one, 32)
    clock.now = 1.0
    for _ in range(32):
        one.too_much(since=0.5)
    assert one.now == 16
    clock.now = 2.0
    one.too_much(since=1.5)
    assert one.now == 8


def test_never_below_one_never_above_the_bound():
    one, clock = limit(start=2, most=2)
    enter(one, 2)
    for step in range(5):
        clock.now += 1.0
        one.too_much(since=clock.now)
        assert one.now == 1, step
    for _ in range(20):
        one.answered(clock())
    assert one.now == 2


def test_a_number_that_somebody_chose_stays():
    one, clock = limit(start=8, least=8, most=8)
    enter(one, 8)
    one.too_much(since=0.0)
    one.answered(clock())
    assert one.now == 8


def test_slow_answers_are_no_reason_for_more():
    one, clock = limit(patience=30.0)
    clock.now = 31.0
    one.answered(since=0.0)
    assert one.now == 4


def test_who_waits_is_let_in_when_somebody_leaves():
    async def scene():
        one, _ = limit(start=2, most=2)
        await one.enter()
        await one.enter()
        waiting = [asyncio.create_task(one.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        waiting[0].cancel()
        await asyncio.sleep(0)
        one.leave()
        await asyncio.sleep(0)
        assert [task.done() for task in waiting] == [True, True, False]
        assert one.highest == 2
        # One that is cancelled in the moment in which it is let in hands its room on.
        one.leave()
        waiting[2].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.wait_for(one.enter(), 1)

    asyncio.run(scene())


def test_waits_double_up_to_a_cap_and_are_never_longer_than_that():
    longest = [wait_before(POLICY, retry, None, 1.0) for retry in (1, 2, 3, 4, 7, 2000)]
    assert longest == [0.5, 1.0, 2.0, 4.0, 30.0, 30.0]
    assert wait_before(POLICY, 3, None, 0.0) == 1.0


@given(st.integers(1, 50), st.floats(0, 1, exclude_max=True))
def test_chance_only_shortens_a_wait_by_up_to_half(retry, chance):
    whole = wait_before(POLICY, retry, None, 1.0)
    assert whole / 2 <= wait_before(POLICY, retry, None, chance) <= whole


def test_what_the_server_asks_for_is_kept_to_within_reason():
    assert wait_before(POLICY, 1, 7.0, 0.0) == 7.0
    assert wait_before(POLICY, 1, 0.0, 0.9) == 0.0
    assert wait_before(POLICY, 1, 86400.0, 0.0) == POLICY.longest_asked


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("1.5", 1.5),
        ("-3", 0.0),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("inf", None),
        (None, None),
    ],
)
def test_retry_after_in_seconds(header, seconds):
    assert asked_wait(header, None, 1000.0) == seconds


def test_retry_after_as_a_date_counts_from_the_servers_clock():
    now = 1_700_000_000.0
    later = formatdate(now + 30, usegmt=True)
    assert asked_wait(later, None, now) == 30.0
    assert asked_wait(later, formatdate(now + 20, usegmt=True), now) == 10.0
    assert asked_wait(formatdate(now - 30, usegmt=True), None, now) == 0.0
    assert asked_wait(later, "yesterday", now) == 30.0


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_header_whatever_raises(header, date):
    wait = asked_wait(header, date, 0.0)
    assert wait is None or wait >= 0
