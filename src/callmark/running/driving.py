"""Driving the loop: without an event loop where nothing ever waits, and without losing a trial
when somebody presses Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from callmark.core.protocols import Runner

if TYPE_CHECKING:
    import asyncio

Value = TypeVar("Value")
Drive = Callable[[Coroutine[Any, Any, Value]], Value]


def drive_at_once(coroutine: Coroutine[Any, Any, Value]) -> Value:
    """Run a coroutine that never waits. No event loop, so no socket either."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        value: Value = finished.value
        return value
    coroutine.close()
    raise RuntimeError("the runner says that it never waits (suspends = False), but it did")


@contextmanager
def driver(runner: Runner) -> Iterator[Drive[Any]]:
    """What runs the loop for this runner; one event loop for the whole run if it needs one."""
    if not runner.suspends:
        with _closing(runner, drive_at_once):
            yield drive_at_once
        return
    import asyncio  # opens a socket pair, so only where it is needed

    with asyncio.Runner() as loop:
        drive = _interruptible(loop)
        with _closing(runner, drive):
            yield drive


@contextmanager
def _closing(runner: Runner, drive: Drive[Any]) -> Iterator[None]:
    try:
        yield
    finally:
        drive(runner.close())


def _interruptible(loop: asyncio.Runner) -> Drive[Any]:
    """Ctrl-C breaks out of the event loop and leaves its tasks as they are: they are ended before
    anything that they use is closed."""

    def drive(coroutine: Coroutine[Any, Any, Value]) -> Value:
        try:
            return loop.run(coroutine)
        except KeyboardInterrupt:
            _end_tasks(loop.get_loop())
            raise

    return drive


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    while tasks := asyncio.all_tasks(loop):
        for task in tasks:
            task.cancel()
        with suppress(KeyboardInterrupt):  # that of the task which was interrupted
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


async def side_by_side(step: Callable[[], Awaitable[bool]], width: Callable[[], int]) -> None:
    """`step` again and again, so many at once as `width` says at that moment, until one returns
    False and all others have ended; the first failure ends them all."""
    import asyncio

    workers = 0
    is_over = False

    async def work() -> None:
        nonlocal workers, is_over
        while not is_over and workers <= (wanted := width()):
            if workers < wanted:
                fill()
            is_over = not await step() or is_over
        workers -= 1

    def fill() -> None:
        nonlocal workers
        while workers < width() and not is_over:
            workers += 1
            group.create_task(work())

    try:
        async with asyncio.TaskGroup() as group:
            fill()
    except BaseExceptionGroup as failures:
        raise _first(failures) from None


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    first = failures.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


class Interrupts:
    """Ctrl-C ends a run between two steps, never inside one that must be whole: a trial is
    scored, written and counted, or it is none of these."""

    def __init__(self) -> None:
        self.is_deferred = False
        self.is_due = False
        self._before: Any = None

    def __enter__(self) -> Self:
        # Only the main thread can have signal handlers, and only there Ctrl-C is heard.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def deferred(self) -> _Deferred:
        return _Deferred(self)

    def silence(self) -> None:
        """From here on nothing may be left half done: Ctrl-C is heard no more."""
        self.is_deferred = True

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self.is_due = True
        if not self.is_deferred:
            raise KeyboardInterrupt


class _Deferred:
    """Entered once a trial, so no generator."""

    __slots__ = ("_interrupts",)

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    def __enter__(self) -> None:
        self._interrupts.is_deferred = True

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._interrupts.is_deferred = False
        if kind is None and self._interrupts.is_due:
            raise KeyboardInterrupt
