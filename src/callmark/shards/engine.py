"""What an engine is: it has shards played somewhere and tells what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from callmark.shards.messages import Event, Task


class Engine(Protocol):
    """A context manager: leaving it ends whatever is still at work, at once."""

    def default_shards(self) -> int:
        """So many shards where nobody says how many."""

    def start(self, task: Task) -> None:
        """Have this shard played. One that was lost may be started again."""

    def events(self, seconds: float) -> Sequence[tuple[int, Event]]:
        """What happened, each with its shard: waits until there is something, but no longer than
        this. After `Ended`, `Failed` or `Lost` nothing more comes from a shard until it is started
        again."""

    def stop(self) -> None:
        """Ask everybody to come to an end soon; they still tell what they have."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
