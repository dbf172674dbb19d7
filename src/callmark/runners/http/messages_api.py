"""The Messages API: content blocks in, content blocks out. Thinking is signed: it goes back as it
came, or the server refuses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

import msgspec

from callmark.calls.registry import name_of_tool
from callmark.errors import UsageError
from callmark.records.jsontext import Json, NotJson, encode_json, parse_json, want_list, want_object
from callmark.records.seams import Finish, Reply, Usage
from callmark.runners.http.runner import (
    FROM_DATASET,
    FROM_REGISTRY,
    NOT_STREAMED,
    BodyReader,
    Message,
    NoAnswer,
    SentIds,
    ServedRunner,
    ServerAnswer,
    WireProtocol,
    are_parts,
    count_tokens,
    kind_of,
    past_calls,
)
from callmark.runners.http.trouble import Complaint, complaint_in
from callmark.runners.messages import text_of
from callmark.runners.options import SERVED, RunnerOptions

# The content blocks of a turn. Only between this runner's own turns.
BLOCKS = "callmark:blocks"
THOUGHT = frozenset({"thinking", "redacted_thinking"})
SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
FINISH_OF: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
PAUSED = "pause_turn"
STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
CHOICE_OF = {"auto": "auto", "none": "none", "required": "any", "any": "any"}


@contextmanager
def open_messages(options: RunnerOptions) -> Iterator[ServedRunner]:
    yield ServedRunner(options, MessagesApi)


class MessagesApi(WireProtocol):
    """Any endpoint that speaks Anthropic's Messages API."""

    name = "anthropic_messages"
    address = SERVED[name]
    refused: ClassVar = {
        "messages": FROM_DATASET,
        "system": FROM_DATASET,
        "tools": FROM_REGISTRY,
        "stream": NOT_STREAMED,
    }
    spoken_in = frozenset({"messages", "system"})

    def __init__(self, options: RunnerOptions) -> None:
        super().__init__(options)
        if options.decoding.max_tokens is None:
            raise UsageError(
                "--max-tokens: anthropic_messages needs it: how long may an answer be?"
            )

    def spoken(self, messages: Sequence[Message]) -> dict[str, Json]:
        ids = SentIds()
        system: list[str] = []
        turns: list[tuple[str, list[Json]]] = []
        for message in messages:
            role = message.get("role")
            if role in ("system", "developer"):
                system += filter(None, (text_of(message.get("content")),))
                continue
            speaker = "assistant" if role == "assistant" else "user"
            blocks = list(self._blocks(message, ids))
            # Roles take turns, and all results of a turn stand in one message.
            if turns and turns[-1][0] == speaker:
                turns[-1][1].extend(blocks)
            elif blocks:
                turns.append((speaker, blocks))
        sent: list[Json] = [{"role": role, "content": _plainly(held)} for role, held in turns]
        return {"messages": sent} | ({"system": "\n\n".join(system)} if system else {})

    def framed(self, tools: Sequence[Message], trial: int) -> dict[str, Json]:
        # There is no seed in this protocol.
        decoding = self.options.decoding
        word, named = self.wanted(tools)
        choice: Json = None if word is None else {"type": CHOICE_OF.get(word, word)}
        # Newer models refuse both, and a top_p of 1 says nothing.
        is_idle = decoding.top_p == 1 and decoding.temperature is not None
        return {
            "model": self.options.model,
            "max_tokens": decoding.max_tokens,
            "tools": [self._tool(tool) for tool in tools] or None,
            "tool_choice": {"type": "tool", "name": named} if named else choice,
            "temperature": decoding.temperature,
            "top_p": None if is_idle else decoding.top_p,
        }

    def read(self, body: bytes) -> ServerAnswer | Complaint:
        message = message_of(body)
        if message.type == "error" or message.error:
            error = message.error
            kind = error.get("type") if isinstance(error, dict) else None
            return complaint_in(STATUS_OF.get(str(kind), 500), {"error": error})
        if message.content is None:
            raise NoAnswer("the answer has no content")
        blocks = [block for block in message.content if isinstance(block, dict)]
        made = tuple(
            self.entry(block.get("name"), block.get("input"))
            for block in blocks
            if kind_of(block) == "tool_use"
        )
        thoughts = (block.get("thinking") for block in blocks if kind_of(block) == "thinking")
        reply = Reply(
            text=_said_in(blocks),
            calls=made or None,
            reasoning="\n".join(one for one in thoughts if isinstance(one, str) and one),
            finish=FINISH_OF.get(message.stop_reason or "", "stop"),
            carried={BLOCKS: blocks} if blocks else {},
            usage=_usage_of(message.usage),
        )
        return ServerAnswer(
            reply=reply,
            model=message.model,
            server_tools=tuple(
                str(block.get("name")) for block in blocks if kind_of(block) in SERVER_CALLS
            ),
            paused=message.stop_reason == PAUSED and not made,
        )

    def _tool(self, tool: Message) -> Message:
        function = want_object(tool["function"])
        schema = function.get("parameters")
        more = {name: function[name] for name in ("description", "strict") if function.get(name)}
        return {
            "name": self.codec.encode(name_of_tool(tool)),
            **more,
            "input_schema": {"type": "object", **(schema if isinstance(schema, dict) else {})},
        }

    def _blocks(self, message: Message, ids: SentIds) -> Iterator[Json]:
        role, content = message.get("role"), message.get("content")
        if role in ("tool", "function"):
            yield {
                "type": "tool_result",
                "tool_use_id": ids.result(message.get("tool_call_id")),
                "content": _result(content),
            }
        elif role == "assistant":
            yield from self._said(message, ids)
        else:
            yield from _parts(content)

    def _said(self, message: Message, ids: SentIds) -> Iterator[Json]:
        """A turn of the model: its own blocks as they came. Where calls were found in its text they
        cannot be told apart from it, and only what it thought goes back as it was."""
        calls = past_calls(message)
        blocks = [want_object(block) for block in want_list(message.get(BLOCKS) or ())]
        native = [block for block in blocks if kind_of(block) == "tool_use"]
        if blocks and len(native) == len(calls):
            waiting = iter(calls)
            for block in blocks:
                if kind_of(block) == "tool_use":
                    yield self._called(block, next(waiting), ids)
                elif not _is_empty(block):
                    yield block
            return
        yield from (block for block in blocks if kind_of(block) in THOUGHT)
        said = text_of(message.get("content")) or text_of(message.get("refusal"))
        if said.strip():
            yield {"type": "text", "text": said}
        for at, call in enumerate(calls):
            yield self._call(call, ids, native[at].get("id") if at < len(native) else None)

    def _called(self, block: Message, call: Message, ids: SentIds) -> Json:
        theirs = block.get("id")
        if not isinstance(block.get("input"), dict) or not block.get("name"):
            return self._call(call, ids, theirs)
        sent = ids.call(call.get("id"), theirs)
        return block if sent == theirs else {**block, "id": sent}

    def _call(self, call: Message, ids: SentIds, theirs: Json = None) -> Json:
        function = want_object(call.get("function") or {})
        name = function.get("name")
        return {
            "type": "tool_use",
            "id": ids.call(call.get("id"), theirs),
            "name": self.codec.encode(name) if isinstance(name, str) else "",
            "input": _object(function.get("arguments")),
        }


def _object(arguments: Json) -> dict[str, Json]:
    """Arguments of an earlier call, which have to be an object here."""
    if isinstance(arguments, str):
        try:
            read = parse_json(arguments or "{}")
        except NotJson:
            read = None
        return read if isinstance(read, dict) else {"malformed": arguments}
    return arguments if isinstance(arguments, dict) else {}


def _is_empty(block: Json) -> bool:
    """A text that the server itself may send and does not take."""
    match block:
        case {"type": "text", "text": str(text)}:
            return not text.strip()
        case _:
            return False


def _plainly(blocks: list[Json]) -> Json:
    """A lone text as such: the form that every server takes."""
    match blocks:
        case [{"type": "text", "text": str(text), **more}] if not more:
            return text
        case _:
            return blocks


def _parts(content: Json) -> Iterator[Json]:
    if isinstance(content, str):
        content = [content]
    for part in content if isinstance(content, list) else ():
        block = _part(part)
        if not _is_empty(block):
            yield block


def _result(content: Json) -> Json:
    if are_parts(content):
        return list(_parts(content))
    if content is None or isinstance(content, str):
        return content or ""
    return encode_json(content).decode()


def _part(part: Json) -> Json:
    """A part of a chat message as a block of this protocol; others go out as they are."""
    match part:
        case str():
            return {"type": "text", "text": part}
        case {"type": "input_text" | "output_text", "text": text}:
            return {"type": "text", "text": text}
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)}:
            return {"type": "image", "source": _source(url)}
        case {"type": "file", "file": {"file_data": str(data)}}:
            return {"type": "document", "source": _source(data)}
        case _:
            return part


def _source(url: str) -> Json:
    """`data:image/png;base64,…`, or an address."""
    kind, comma, data = url.partition(",")
    if not url.startswith("data:") or not comma:
        return {"type": "url", "url": url}
    media = kind.removeprefix("data:").partition(";")[0]
    return {"type": "base64", "media_type": media, "data": data}


class _MessageBody(msgspec.Struct):
    """The body of an answer, as far as it matters here."""

    type: str | None = None
    content: list[Json] | None = None
    stop_reason: str | None = None
    error: Json = None
    usage: Json = None
    model: Json = None


message_of = BodyReader(_MessageBody, "message")


def _said_in(blocks: Sequence[Message]) -> str:
    """Texts side by side are pieces of one (a citation begins a new one); what stands between two
    of them parts them."""
    runs: list[list[str]] = [[]]
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)}:
                runs[-1].append(text)
            case _:
                runs.append([])
    return "\n".join(filter(None, ("".join(run) for run in runs)))


def _usage_of(said: Json) -> Usage | None:
    """What was read from a cache, or written to one, is not among `input_tokens`."""
    if not isinstance(said, dict):
        return None
    stored, cached = said.get("cache_creation_input_tokens"), said.get("cache_read_input_tokens")
    counts = [said.get("input_tokens", 0), stored or 0, cached or 0]
    if not all(isinstance(count, int) for count in counts):
        return count_tokens(said.get("input_tokens"), said.get("output_tokens", 0))
    return count_tokens(sum(map(int, counts)), said.get("output_tokens", 0), cached)
