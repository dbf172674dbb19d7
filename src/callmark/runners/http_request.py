"""The body of a chat-completions request. All that is the same in many requests is encoded once."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from callmark.calls.codec import NameCodec
from callmark.core.jsontext import Json
from callmark.core.protocols import Conversation
from callmark.errors import UsageError
from callmark.runners.options import RunnerOptions

Message = dict[str, Json]

# What belongs to each call of a reply, and goes back with it. Only between this runner's own turns.
CALL_FIELDS = "callmark:call_fields"
CHOICES = frozenset({"auto", "none", "required", "any"})
REFUSED_EXTRAS = {
    "messages": "they come from the dataset",
    "tools": "they come from the registry",
    "stream": "answers are not streamed",
}
REMEMBERED = 4096  # frames: different offers × trials

_encode = msgspec.json.Encoder().encode


class RequestWriter:
    """Names leave in the endpoint's alphabet; `codec` leads back."""

    def __init__(self, options: RunnerOptions) -> None:
        for field, why in REFUSED_EXTRAS.items():
            if field in options.served.extra_body:
                raise UsageError(f"--extra-body.{field}: cannot be set here: {why}")
        self._options = options
        self.codec = NameCodec(tool["function"]["name"] for tool in options.tools)
        self._tails: dict[tuple[int, int], tuple[Sequence[Message], bytes]] = {}

    @property
    def fields(self) -> frozenset[str]:
        """The names of all fields that a request may have."""
        return frozenset(self._fields(self._options.tools, 0)) | {"messages"}

    def body(self, conversation: Conversation) -> bytes:
        messages = [self._sent(message) for message in conversation.messages]
        tail = self._tail(conversation.tools, conversation.trial)
        return b'{"messages":' + encode_json(messages) + tail

    def _tail(self, tools: Sequence[Message], trial: int) -> bytes:
        # Samples that are offered the same share one list; holding on to it keeps its id its own.
        key = id(tools), trial
        known = self._tails.get(key)
        if known is None:
            if len(self._tails) >= REMEMBERED:
                self._tails.clear()
            tail = b"," + encode_json(self._fields(tools, trial))[1:]
            known = self._tails[key] = (tools, tail)
        return known[1]

    def _fields(self, tools: Sequence[Message], trial: int) -> dict[str, Json]:
        decoding = self._options.decoding
        fields: dict[str, Json] = {
            "model": self._options.model,
            "tools": [self._tool(tool) for tool in tools] or None,
            "tool_choice": self._choice(decoding.tool_choice, tools) if tools else None,
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "max_tokens": decoding.max_tokens,
            # One seed for all trials of a sample would make them one trial.
            "seed": None if decoding.seed is None else decoding.seed + trial,
        }
        given = {name: value for name, value in fields.items() if value is not None}
        return given | self._options.served.extra_body

    def _tool(self, tool: Message) -> Message:
        function = tool["function"]
        return {**tool, "function": {**function, "name": self.codec.encode(function["name"])}}

    def _choice(self, word: str | None, tools: Sequence[Message]) -> Json:
        """A word that the server knows, or the name of a tool that must be called."""
        if word is None or word in CHOICES:
            return word
        if word in (tool["function"]["name"] for tool in tools):
            return {"type": "function", "function": {"name": self.codec.encode(word)}}
        known = any(tool["function"]["name"] == word for tool in self._options.tools)
        return "auto" if known else word

    def _sent(self, message: Message) -> Message:
        """The message with its tool names in the endpoint's alphabet."""
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            message = {**message, "tool_calls": [self._call(call) for call in calls]}
            for call, more in zip(
                message["tool_calls"], message.pop(CALL_FIELDS, ()), strict=False
            ):
                call.update(more)
        elif message.get("role") == "tool" and isinstance(message.get("name"), str):
            message = {**message, "name": self.codec.encode(message["name"])}
        return message

    def _call(self, call: Json) -> Json:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            return call
        return {**call, "function": {**function, "name": self.codec.encode(function["name"])}}


def encode_json(value: Json) -> bytes:
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError):  # lone surrogates, integers of any size
        return json.dumps(value, separators=(",", ":")).encode()
