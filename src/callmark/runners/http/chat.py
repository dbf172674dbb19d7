"""Chat completions: text, calls, thinking, why it ended, and what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

import msgspec

from callmark.calls.attempts import NameCodec, entry_for, native_call
from callmark.calls.registry import name_of_tool
from callmark.records.jsontext import Json, want_list, want_object
from callmark.records.seams import Finish, Reply, Usage
from callmark.records.trace import TraceEntry
from callmark.runners.http.runner import (
    FROM_DATASET,
    FROM_REGISTRY,
    NOT_STREAMED,
    BodyReader,
    Message,
    NoAnswer,
    ServedRunner,
    ServerAnswer,
    WireProtocol,
    count_tokens,
)
from callmark.runners.http.trouble import Complaint, complaint_in
from callmark.runners.options import SERVED, RunnerOptions

# What belongs to each call of a reply, and goes back with it. Only between this runner's own turns.
CALL_FIELDS = "callmark:call_fields"


@contextmanager
def open_chat(options: RunnerOptions) -> Iterator[ServedRunner]:
    yield ServedRunner(options, ChatCompletions)


class ChatCompletions(WireProtocol):
    """Any endpoint that speaks OpenAI's chat completions."""

    name = "openai_http"
    address = SERVED[name]
    refused: ClassVar = {"messages": FROM_DATASET, "tools": FROM_REGISTRY, "stream": NOT_STREAMED}
    spoken_in = frozenset({"messages"})

    def spoken(self, messages: Sequence[Message]) -> dict[str, Json]:
        return {"messages": [self._sent(message) for message in messages]}

    def framed(self, tools: Sequence[Message], trial: int) -> dict[str, Json]:
        decoding = self.options.decoding
        word, named = self.wanted(tools)
        return {
            "model": self.options.model,
            "tools": [self._tool(tool) for tool in tools] or None,
            "tool_choice": {"type": "function", "function": {"name": named}} if named else word,
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "max_tokens": decoding.max_tokens,
            # One seed for all trials of a sample would make them one trial.
            "seed": None if decoding.seed is None else decoding.seed + trial,
        }

    def read(self, body: bytes) -> ServerAnswer | Complaint:
        completion = completion_of(body)
        error = error_in(completion)
        if error is not None:
            return complaint_in(_status_in(error), error)
        return ServerAnswer(
            reply=reply_of(completion, self.codec),
            model=completion.model,
            system_fingerprint=completion.system_fingerprint,
        )

    def _tool(self, tool: Message) -> Message:
        function = want_object(tool["function"])
        return {**tool, "function": {**function, "name": self.codec.encode(name_of_tool(tool))}}

    def _sent(self, message: Message) -> Message:
        """The message with its tool names in the endpoint's alphabet."""
        calls, name = message.get("tool_calls"), message.get("name")
        if isinstance(calls, list):
            sent = [self._call(call) for call in calls]
            message = {**message, "tool_calls": sent}
            for call, more in zip(sent, want_list(message.pop(CALL_FIELDS, ())), strict=False):
                want_object(call).update(want_object(more))
        elif message.get("role") == "tool" and isinstance(name, str):
            message = {**message, "name": self.codec.encode(name)}
        return message

    def _call(self, call: Json) -> Json:
        if not isinstance(call, dict):
            return call
        function = call.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            return call
        return {**call, "function": {**function, "name": self.codec.encode(function["name"])}}


FINISH_OF: dict[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
    "sensitive": "content_filter",
}
# The server's own words for "this is no answer".
BROKEN_OFF = frozenset({"error", "network_error", "abort", "insufficient_system_resource"})
# Servers that send these want them back in the next request of the conversation.
CARRIED = ("reasoning_content", "reasoning_details", "extra_content")
TEXT_PARTS = frozenset({"text", "output_text"})


class _Message(msgspec.Struct):
    content: str | list[Json] | None = None
    tool_calls: list[Json] | None = None
    function_call: dict[str, Json] | None = None
    refusal: str | None = None
    reasoning_content: Json = None
    reasoning: Json = None
    thinking: Json = None
    reasoning_details: Json = None
    extra_content: Json = None


class _Choice(msgspec.Struct):
    message: _Message | None = None
    finish_reason: str | None = None
    error: Json = None


class Completion(msgspec.Struct):
    """The body of an answer, as far as it matters here. `error`: it is none."""

    choices: list[_Choice] | None = None
    error: Json = None
    usage: Json = None
    model: Json = None
    system_fingerprint: Json = None


class _ChoiceOutline(msgspec.Struct, omit_defaults=True):
    message: msgspec.Raw = msgspec.Raw()
    finish_reason: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class _Outline(msgspec.Struct, omit_defaults=True):
    """Where the fields of a Completion stand, none of them read."""

    choices: list[_ChoiceOutline] | None = None
    error: msgspec.Raw = msgspec.Raw()
    usage: msgspec.Raw = msgspec.Raw()
    model: msgspec.Raw = msgspec.Raw()
    system_fingerprint: msgspec.Raw = msgspec.Raw()


completion_of = BodyReader(Completion, "chat completion", _Outline)


def error_in(completion: Completion) -> Json:
    """An error that came with status 200, or None."""
    first = completion.choices[0] if completion.choices else None
    return completion.error or (None if first is None else first.error)


def reply_of(completion: Completion, codec: NameCodec) -> Reply:
    if not completion.choices:
        raise NoAnswer("the answer has no choices")
    choice = completion.choices[0]
    reason = (choice.finish_reason or "").partition(":")[0].strip().lower()
    if reason in BROKEN_OFF:
        raise NoAnswer(f"the server broke off with finish_reason {reason}")
    finish = FINISH_OF.get(reason, "stop")
    message = choice.message
    if message is None:
        if finish == "stop":
            raise NoAnswer("the answer has no message")
        return Reply(text="", finish=finish, usage=usage_of(completion))
    text, thinking = _text_of(message.content)
    calls = _calls_of(message)
    return Reply(
        text=text or message.refusal or "",
        calls=tuple([_entry(call, codec) for call in calls]) if calls else None,
        reasoning=_reasoning_of(message) or thinking,
        finish=finish,
        carried=_carry(message, calls),
        usage=usage_of(completion),
    )


def usage_of(completion: Completion) -> Usage | None:
    """None: the server does not say, or not in a form that can be counted."""
    said = completion.usage
    if not isinstance(said, dict):
        return None
    details = said.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    return count_tokens(said.get("prompt_tokens", 0), said.get("completion_tokens", 0), cached)


def _status_in(error: Json) -> int:
    """The status that an error in a good response gives itself; without one it may pass."""
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and len(code) == 3 and code.isdecimal():
        code = int(code)
    return code if isinstance(code, int) and 400 <= code < 600 else 500


def _text_of(content: str | list[Json] | None) -> tuple[str, str]:
    """Text and thinking. Parts that are neither are not scored."""
    if not isinstance(content, list):
        return content or "", ""
    text: list[str] = []
    thinking: list[str] = []
    for part in content:
        match part:
            case str():
                text.append(part)
            case {"type": str(kind), "text": str(written)} if kind in TEXT_PARTS:
                text.append(written)
            case {"type": "refusal", "refusal": str(written)}:
                text.append(written)
            case {"type": "thinking", "thinking": inner}:
                thinking += _texts_in(inner)
            case _:
                pass
    return "".join(text), "".join(thinking)


def _texts_in(parts: Json) -> Iterable[str]:
    if isinstance(parts, str):
        return (parts,)
    found = parts if isinstance(parts, list) else ()
    return [part["text"] for part in found if isinstance(part, dict) and _is_text(part.get("text"))]


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _reasoning_of(message: _Message) -> str:
    for field in (message.reasoning_content, message.reasoning, message.thinking):
        if field and isinstance(field, str):
            return field
    details = message.reasoning_details
    return "".join(_texts_in(details)) if details else ""


def _calls_of(message: _Message) -> list[Json]:
    if message.tool_calls:
        return message.tool_calls
    legacy = message.function_call
    # Some servers fill in every field they know: one without a name is no call.
    return [{"function": legacy}] if legacy and legacy.get("name") else []


def _entry(call: Json, codec: NameCodec) -> TraceEntry:
    if not isinstance(call, dict):
        return entry_for(native_call(None, call), None)
    inner = call.get("function")
    function = inner if isinstance(inner, dict) else call
    name = function.get("name")
    decoded = codec.decode(name) if isinstance(name, str) else name
    return entry_for(native_call(decoded, function.get("arguments")), None)


def _carry(message: _Message, calls: list[Json]) -> dict[str, Json]:
    carried = {name: value for name in CARRIED if (value := getattr(message, name))}
    if any(isinstance(call, dict) and "extra_content" in call for call in calls):
        carried[CALL_FIELDS] = [
            {"extra_content": call["extra_content"]}
            if isinstance(call, dict) and call.get("extra_content")
            else {}
            for call in calls
        ]
    return carried
