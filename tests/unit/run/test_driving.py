"""Driving the loop with and without an event loop, and interrupts that wait their turn."""

import asyncio
import gc
import os
import signal
import socket
import threading

import pytest

from callmark.records.seams import Runner
from callmark.run.loop import (
    ALLOCATIONS,
    Interrupts,
    drive_at_once,
    driver,
    rare_collections,
    side_by_side,
)


class Waiting(Runner):
    suspends = True

    async def answer(self, batch):
        raise NotImplementedError


class AtOnce(Waiting):
    suspends = False


async def forty_two():
    return 42


async def waits():
    await asyncio.sleep(0)
    return 43


def test_what_never_waits_needs_no_event_loop(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socketpair", refuse)
    with driver(AtOnce()) as drive:
        assert drive(forty_two()) == 42


def test_what_waits_gets_one_event_loop_for_the_whole_run():
    async def this_loop():
        return asyncio.get_running_loop()

    with driver(Waiting()) as drive:
        assert drive(waits()) == 43
        assert drive(this_loop()) is drive(this_loop())


def test_a_runner_that_says_it_never_waits_and_does_is_found_out():
    with pytest.raises(RuntimeError, match="never waits"):
        drive_at_once(waits())


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_waits_for_the_end_of_a_step():
    done = []

    def work():
        with Interrupts() as interrupts:
            with interrupts.deferred():
                press_ctrl_c()
                done.append("the step")
            done.append("more")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["the step"]


def test_an_interrupt_between_steps_comes_at_once():
    with pytest.raises(KeyboardInterrupt), Interrupts():
        press_ctrl_c()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_threads_have_no_signals_and_need_none():
    results = []

    def work():
        with Interrupts() as interrupts, interrupts.deferred():
            results.append("ran")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == ["ran"]


def test_so_many_at_once_as_the_width_says_at_that_moment():
    """The width grows and shrinks while the work goes on; every step is done once."""
    waiting = iter(range(60))
    seen: list[tuple[int, int]] = []
    width = 2
    at_once = 0

    async def step():
        nonlocal at_once, width
        number = next(waiting, None)
        if number is None:
            return False
        at_once += 1
        seen.append((number, at_once))
        await asyncio.sleep(0)
        at_once -= 1
        width = 8 if 20 <= number < 40 else 2
        return True

    asyncio.run(side_by_side(step, lambda: width))
    assert [number for number, _ in seen] == list(range(60))
    assert max(most for number, most in seen if number < 20) == 2
    assert max(most for _, most in seen) == 8
    assert max(most for number, most in seen if number > 55) == 2


def test_the_first_failure_ends_all_steps():
    ended = []

    async def step():
        try:
            await asyncio.sleep(0 if len(ended) else 0.01)
            raise LookupError("the first")
        finally:
            ended.append(1)

    with pytest.raises(LookupError, match="the first"):
        asyncio.run(side_by_side(step, lambda: 5))
    assert len(ended) == 5


def test_ctrl_c_ends_all_tasks_before_the_runner_is_closed():
    order = []

    class Closing(Waiting):
        async def close(self):
            order.append("closed")
            await asyncio.sleep(0)

    async def one(number):
        try:
            if number == 0:
                await asyncio.sleep(0.01)
                press_ctrl_c()
            await asyncio.sleep(60)
        finally:
            order.append(number)

    async def work():
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(one(number))

    with pytest.raises(KeyboardInterrupt), Interrupts(), driver(Closing()) as drive:
        drive(work())
    assert sorted(order[:3]) == [0, 1, 2]
    assert order[3:] == ["closed"]


@pytest.mark.parametrize("first", [700, 0, 50_000])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_run_gives_the_collector_back_as_it_was(first, frozen):
    kept = gc.get_threshold(), gc.get_freeze_count()
    gc.unfreeze()
    gc.set_threshold(first, 10, 10)
    if frozen:
        gc.freeze()
    with rare_collections(), rare_collections():  # the second one of an engine's process
        assert gc.get_threshold() == (first and max(first, ALLOCATIONS), 10, 10)
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == (first, 10, 10)
    assert (gc.get_freeze_count() > 0) == frozen
    gc.set_threshold(*kept[0])
    if kept[1]:
        gc.freeze()
