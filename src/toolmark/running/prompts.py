"""What a model is sent first: the sample's prompt, inside a wrapper if one was given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from toolmark.core.jsontext import Json
from toolmark.core.samples import MARKER, Sample
from toolmark.errors import UsageError
from toolmark.play import opening_messages
from toolmark.runners.wrappers import Wrapper, context_of, open_wrapper

Messages = list[dict[str, Json]]


class Prompts:
    """Opening messages for samples. `system` is put before prompts that have none."""

    def __init__(self, wrapper: Wrapper | None, system: str | None) -> None:
        self._wrapper = wrapper
        self._system = system
        self.sha256 = None if wrapper is None else wrapper.sha256
        self.raw = wrapper is not None and wrapper.raw
        self.asks_for_marker = MARKER in (system or "") or (
            wrapper is not None and MARKER in wrapper.source
        )

    def opening(self, sample: Sample, tools: Sequence[Json]) -> Messages:
        messages = opening_messages(sample)
        system, user = context_of(messages)
        if self._wrapper is None:
            if self._system and system is None:
                return [{"role": "system", "content": self._system}, *messages]
            return messages
        others = [message for message in messages if message.get("role") != "system"]
        if system is None:
            system = self._system or ""
        if not isinstance(system, str) or not isinstance(user, str):
            raise UsageError(
                f"--prompt-wrapper: sample {sample.sample_id} has no user text that a wrapper"
                " could hold"
            )
        if others[-1].get("role") != "user" or (self.raw and len(others) > 1):
            raise UsageError(
                f"--prompt-wrapper: sample {sample.sample_id} is a conversation"
                " whose last message alone cannot be wrapped; use a .j2 wrapper, and prompts that"
                " end with the user"
            )
        made = self._wrapper.render(user=user, system=system, tools=tools)
        before = [message for message in made if message["role"] == "system"]
        return [*before, *others[:-1], *(one for one in made if one["role"] == "user")]


def open_prompts(path: str | None, system: str | None) -> Prompts:
    return Prompts(None if path is None else open_wrapper(Path(path)), system)
