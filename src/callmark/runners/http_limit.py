"""How many requests may be under way: more while the server bears it, half when it does not."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable


class AdaptiveLimit:
    """Between `least` and `most`. Starts quickly (one more for every answer), and after the first
    sign of too much goes up by one per round trip. `patience`: answers that took longer than this
    many seconds are no reason for more requests."""

    def __init__(
        self,
        *,
        start: int,
        least: int,
        most: int,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = float(start)
        self._least = least
        self._most = most
        self._patience = patience
        self._clock = clock
        self._cut_at: float | None = None
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.highest = 0

    @property
    def now(self) -> int:
        return int(self._limit)

    async def enter(self) -> float:
        """Waits for room; the time at which it was there."""
        if self._under_way < self.now and not self._waiting:
            self._take()
        else:
            await self._queue()
        return self._clock()

    def leave(self) -> None:
        self._under_way -= 1
        self._admit()

    def answered(self, since: float) -> None:
        if self._limit < self._most and self._clock() - since <= self._patience:
            step = 1.0 if self._cut_at is None else 1.0 / self._limit
            self._limit = min(float(self._most), self._limit + step)
            self._admit()

    def too_much(self, since: float) -> None:
        """Half as many. What was sent before the last cut says nothing about what holds now."""
        if self._cut_at is None or since >= self._cut_at:
            self._limit = max(float(self._least), min(self._limit, self._under_way) / 2)
            self._cut_at = self._clock()

    async def _queue(self) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave()  # the room had been given just before
            raise

    def _admit(self) -> None:
        while self._waiting and self._under_way < self.now:
            place = self._waiting.popleft()
            if not place.done():
                self._take()
                place.set_result(None)

    def _take(self) -> None:
        self._under_way += 1
        self.highest = max(self.highest, self._under_way)
