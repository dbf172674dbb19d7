"""The seam to live tools: an MCP server, or Python functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from callmark.core.jsontext import Json


class Answered(msgspec.Struct, frozen=True):
    """What the tool said; a tool's own error is an answer too."""

    result: Json


class LostCall(msgspec.Struct, frozen=True):
    """Infrastructure failed: nothing is recorded. `gone`: no later call can be answered either."""

    reason: str
    gone: bool = False


class LiveTools(Protocol):
    """`specs` are OpenAI-style function specs; `origin` names the tools without any secret."""

    @property
    def origin(self) -> str: ...

    @property
    def specs(self) -> Sequence[dict[str, Json]]: ...

    def call(self, name: str, arguments: dict[str, Json]) -> Answered | LostCall: ...
