"""What a chat completion says: text, calls, thinking, why it ended, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from callmark.calls.attempts import NameCodec, entry_for, native_call
from callmark.calls.registry import name_of_tool
from callmark.errors import UsageError
from callmark.records.jsontext import MAX_DEPTH, Json, NotJson, parse_json, want_list, want_object
from callmark.records.seams import Conversation, Finish, Reply
from callmark.records.trace import TraceEntry
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
        self.codec = NameCodec(map(name_of_tool, options.tools))
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
        function = want_object(tool["function"])
        return {**tool, "function": {**function, "name": self.codec.encode(name_of_tool(tool))}}

    def _choice(self, word: str | None, tools: Sequence[Message]) -> Json:
        """A word that the server knows, or the name of a tool that must be called."""
        if word is None or word in CHOICES:
            return word
        if word in map(name_of_tool, tools):
            return {"type": "function", "function": {"name": self.codec.encode(word)}}
        return "auto" if word in map(name_of_tool, self._options.tools) else word

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


def encode_json(value: Json) -> bytes:
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError):  # lone surrogates, integers of any size
        return json.dumps(value, separators=(",", ":")).encode()


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
# Bodies beyond this are stripped of what is not read (log probabilities, padding) first; what is
# left has bounds, because values take up to fifty times the room of their text.
LARGE = 256 << 10
MOST_READ = 4 << 20
MOST_BRACKETS = 100_000
TOO_MANY = f"the answer holds more than {MOST_BRACKETS:,} lists and objects"

_Count = Annotated[int, msgspec.Meta(ge=0)]


class NoAnswer(ValueError):
    """The body is not what a chat completion looks like. The message is one clause."""


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


class Usage(msgspec.Struct, frozen=True):
    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0


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


_decode = msgspec.json.Decoder(Completion).decode
_decode_outline = msgspec.json.Decoder(_Outline).decode


def completion_of(body: bytes) -> Completion:
    if len(body) > LARGE:
        body = _strip(body)
    try:
        # So few brackets cannot be nested too deeply to be walked.
        if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
            return _decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass
    try:
        # Slower, and the only one that takes lone surrogates; it also says best what is wrong.
        return msgspec.convert(parse_json(body), Completion)
    except NotJson as error:
        raise NoAnswer(f"the answer is {error}") from None
    except msgspec.ValidationError as error:
        raise NoAnswer(f"the answer is no chat completion: {error}") from None


def _strip(body: bytes) -> bytes:
    """Only the fields that are read, if they are not too much."""
    if body.count(b"{") > 5 * MOST_BRACKETS:
        raise NoAnswer(TOO_MANY)
    try:
        read = msgspec.json.encode(_decode_outline(body))
    except (msgspec.MsgspecError, ValueError) as error:
        raise NoAnswer(f"the answer is no chat completion: {error}") from None
    except RecursionError:
        raise NoAnswer(f"the answer is nested deeper than {MAX_DEPTH} levels") from None
    if len(read) > MOST_READ:
        raise NoAnswer(f"the answer says more than {MOST_READ >> 20} MB")
    if read.count(b"{") + read.count(b"[") > MOST_BRACKETS:
        raise NoAnswer(TOO_MANY)
    return read


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
        return Reply(text="", finish=finish)
    text, thinking = _text_of(message.content)
    calls = _calls_of(message)
    return Reply(
        text=text or message.refusal or "",
        calls=tuple([_entry(call, codec) for call in calls]) if calls else None,
        reasoning=_reasoning_of(message) or thinking,
        finish=finish,
        carried=_carry(message, calls),
    )


def usage_of(completion: Completion) -> Usage | None:
    """None: the server does not say, or not in a form that can be counted."""
    if completion.usage is None:
        return None
    try:
        return msgspec.convert(completion.usage, Usage)
    except msgspec.ValidationError:
        return None


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
