"""What every runner is made from."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from toolmark.core.protocols import Runner
from toolmark.core.results import Decoding


class RunnerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`model` is a name or a path, as the runner understands it."""

    model: str | None
    decoding: Decoding
    tool_registry_sha256: str


# A runner's entry point: a context manager, so that files and connections are closed at the end.
RunnerFactory = Callable[[RunnerOptions], AbstractContextManager[Runner]]
