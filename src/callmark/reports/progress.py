"""How far a run is: a bar on a terminal, elsewhere a line now and then. Always on stderr."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

import msgspec

from callmark.records.seams import Standing
from callmark.reports.layout import wants_colour

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

BAR_SECONDS = 0.1
LINE_SECONDS = 10.0


class RunProgress:
    """Called after every trial; it looks at the clock and mostly does nothing more."""

    def __init__(self, stream: TextIO, *, silent: bool = False) -> None:
        self._stream = stream
        self._silent = silent
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._is_bar = wants_colour(stream)
        self._pause = BAR_SECONDS if self._is_bar else LINE_SECONDS
        self._started = time.monotonic()
        self._shown = self._started

    def __call__(self, standing: Standing) -> None:
        now = time.monotonic()
        if standing.finished == standing.resumed:
            self._started = now  # what was done before says nothing about the pace
        if self._silent or now - self._shown < self._pause:
            return
        self._shown = now
        pace = pace_of(standing, now - self._started)
        if self._is_bar:
            self._draw(standing, pace)
        else:
            done = f"{standing.finished} of {standing.total}" if pace.left else standing.finished
            print(f"{done} trials{_say(pace, standing)}", file=self._stream, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _draw(self, standing: Standing, pace: Pace) -> None:
        total = standing.total if pace.left else None
        if self._bar is None or self._task is None:
            self._bar = _bar_on(self._stream)
            self._task = self._bar.add_task("trials", total=total, said="")
            self._bar.start()
        self._bar.update(
            self._task, completed=standing.finished, total=total, said=_say(pace, standing)
        )


class Pace(msgspec.Struct, frozen=True):
    """Trials a second, and how long the rest takes at that; None: not known."""

    rate: float
    left: str | None


def pace_of(standing: Standing, seconds: float) -> Pace:
    rate = (standing.finished - standing.resumed) / max(seconds, 1e-9)
    remaining = standing.total - standing.finished
    if remaining <= 0 or not rate:
        return Pace(rate, None)
    minutes, rest = divmod(round(remaining / rate), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
    return Pace(rate, clock)


def _say(pace: Pace, standing: Standing) -> str:
    parts = [f"{pace.rate:.1f}/s"]
    if pace.left is not None:
        parts.append(f"{pace.left} left")
    found = {"misses": standing.misses, "errors": standing.errors}
    parts += [f"{count} {what}" for what, count in found.items() if count]
    return "".join(f", {part}" for part in parts)


def _bar_on(stream: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
    )

    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("trials{task.fields[said]}"),
        console=Console(file=stream, highlight=False),
        transient=True,
    )
