"""How far a run is: a bar on a terminal, elsewhere a line now and then. Always on stderr."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from toolmark.core.protocols import Standing
from toolmark.reports.layout import wants_colour

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
        finished, total = standing.finished, standing.total
        if self._silent or (now - self._shown < self._pause and finished < total):
            return
        self._shown = now
        if self._is_bar:
            self._draw(standing)
        elif now - self._started >= self._pause:
            rate = finished / (now - self._started)
            left = f"about {(total - finished) / rate:.0f} s left"
            text = f"{finished} of {total} trials, {rate:.1f}/s, {left}{_troubles(standing)}"
            print(text, file=self._stream, flush=True)

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

    def _draw(self, standing: Standing) -> None:
        if self._bar is None or self._task is None:
            self._bar = _bar_on(self._stream)
            self._task = self._bar.add_task("trials", total=standing.total, rate=0.0, troubles="")
            self._bar.start()
        self._bar.update(
            self._task,
            completed=standing.finished,
            total=standing.total,
            rate=standing.finished / max(time.monotonic() - self._started, 1e-9),
            troubles=_troubles(standing),
        )


def _troubles(standing: Standing) -> str:
    found = {"misses": standing.misses, "errors": standing.errors}
    return "".join(f", {count} {what}" for what, count in found.items() if count)


def _bar_on(stream: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]:.1f}/s"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[troubles]}"),
        console=Console(file=stream, highlight=False),
        transient=True,
    )
