"""Driving the loop with and without an event loop, and interrupts that wait their turn."""

import asyncio
import os
import signal
import socket
import threading

import pytest

from toolmark.core.protocols import Runner
from toolmark.running.driving import Interrupts, drive_at_once, driver


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
