"""The Responses API, stateless: items in, items out. What the model said goes back as it came, so
that reasoning which only the server can read stays whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

import msgspec

from callmark.calls.registry import name_of_tool
from callmark.records.jsontext import Json, NotJson, encode_json, parse_json, want_list, want_object
from callmark.records.seams import Finish, Reply, Usage
from callmark.runners.http.runner import (
    FROM_DATASET,
    FROM_REGISTRY,
    NOT_STREAMED,
    BodyReader,
    Message,
    NeverAnswer,
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

# The output items of a turn. Only between this runner's own turns.
ITEMS = "callmark:items"
STATELESS = "every request holds the whole conversation"
CALLS = frozenset({"function_call", "custom_tool_call"})
FINISH_OF: dict[str, Finish] = {"content_filter": "content_filter"}
# An error inside a good response has a code instead of a status; what is not named may pass.
STATUS_OF = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "data_residency_mismatch": 400,
    "invalid_request_error": 400,
}


@contextmanager
def open_responses(options: RunnerOptions) -> Iterator[ServedRunner]:
    yield ServedRunner(options, ResponsesApi)


class ResponsesApi(WireProtocol):
    """Any endpoint that speaks OpenAI's Responses API."""

    name = "openai_responses"
    address = SERVED[name]
    refused: ClassVar = {
        "input": FROM_DATASET,
        "tools": FROM_REGISTRY,
        "stream": NOT_STREAMED,
        "background": "an answer is waited for",
        "previous_response_id": STATELESS,
        "conversation": STATELESS,
    }
    spoken_in = frozenset({"input"})

    def spoken(self, messages: Sequence[Message]) -> dict[str, Json]:
        ids = SentIds()
        return {"input": [item for one in messages for item in self._items(one, ids)]}

    def framed(self, tools: Sequence[Message], trial: int) -> dict[str, Json]:
        # There is no seed in this protocol.
        decoding = self.options.decoding
        word, named = self.wanted(tools)
        return {
            "model": self.options.model,
            "tools": [self._tool(tool) for tool in tools] or None,
            "tool_choice": {"type": "function", "name": named}
            if named
            else ("required" if word == "any" else word),
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "max_output_tokens": decoding.max_tokens,
            "store": False,
            # Not said, some servers do.
            "stream": False,
            # Without it a stateless conversation loses the model's reasoning at every turn.
            "include": ["reasoning.encrypted_content"],
        }

    def read(self, body: bytes) -> ServerAnswer | Complaint:
        response = response_of(body)
        if response.error:
            return complaint_in(_status_of(response.error), {"error": response.error})
        finish = _finish_of(response)
        if response.output is None:
            raise NoAnswer("the answer has no output")
        items = [item for item in response.output if isinstance(item, dict)]
        calls = [item for item in items if kind_of(item) in CALLS]
        made = tuple(
            self.entry(call.get("name"), call.get("arguments", call.get("input"))) for call in calls
        )
        reply = Reply(
            text="\n".join(filter(None, map(_said_in, items))),
            calls=made or None,
            reasoning="\n".join(filter(None, map(_thought_in, items))),
            finish=finish,
            carried={ITEMS: items} if items else {},
            usage=_usage_of(response.usage),
        )
        ran = tuple(
            kind
            for item in items
            if (kind := kind_of(item)).endswith("_call") and kind not in CALLS
        )
        return ServerAnswer(reply=reply, model=response.model, server_tools=ran)

    def _tool(self, tool: Message) -> Message:
        function = want_object(tool["function"])
        return {
            "type": "function",
            **function,
            "name": self.codec.encode(name_of_tool(tool)),
            "parameters": function.get("parameters") or {"type": "object", "properties": {}},
            # Not said, it is true here: schemas would be changed, or refused.
            "strict": bool(function.get("strict")),
        }

    def _items(self, message: Message, ids: SentIds) -> Iterator[Json]:
        role = message.get("role")
        if role in ("tool", "function"):
            yield {
                "type": "function_call_output",
                "call_id": ids.result(message.get("tool_call_id")),
                "output": _result(message.get("content")),
            }
        elif role == "assistant":
            yield from self._said(message, ids)
        else:
            yield {"role": role, "content": _content(message.get("content"))}

    def _said(self, message: Message, ids: SentIds) -> Iterator[Json]:
        """A turn of the model: its own items as they came. Where calls were found in its text they
        cannot be told apart from it, and only what it thought goes back as it was."""
        calls = past_calls(message)
        items = [want_object(item) for item in want_list(message.get(ITEMS) or ())]
        native = [item for item in items if kind_of(item) in CALLS]
        if items and len(native) == len(calls):
            waiting = iter(calls)
            for item in items:
                yield self._called(item, next(waiting), ids) if kind_of(item) in CALLS else item
            return
        yield from (item for item in items if kind_of(item) not in ("message", *CALLS))
        said = text_of(message.get("content")) or text_of(message.get("refusal"))
        if said:
            yield {"role": "assistant", "content": said}
        for at, call in enumerate(calls):
            theirs = native[at].get("call_id") if at < len(native) else None
            yield self._call(call, ids, theirs)

    def _called(self, item: Message, call: Message, ids: SentIds) -> Json:
        """The item with an id of its own in this conversation. One that cannot be read goes back in
        a form that servers can: some parse the arguments of earlier calls."""
        theirs = item.get("call_id")
        if kind_of(item) == "function_call" and not _is_whole(item):
            return self._call(call, ids, theirs)
        sent = ids.call(call.get("id"), theirs)
        return item if sent == theirs else {**item, "call_id": sent}

    def _call(self, call: Message, ids: SentIds, theirs: Json = None) -> Json:
        function = want_object(call.get("function") or {})
        name, arguments = function.get("name"), function.get("arguments")
        return {
            "type": "function_call",
            "call_id": ids.call(call.get("id"), theirs),
            "name": self.codec.encode(name) if isinstance(name, str) else "",
            "arguments": arguments
            if isinstance(arguments, str)
            else encode_json(arguments or {}).decode(),
        }


def _is_whole(item: Message) -> bool:
    name, arguments = item.get("name"), item.get("arguments")
    if not isinstance(name, str) or not name or not isinstance(arguments, str):
        return False
    try:
        return isinstance(parse_json(arguments), dict)
    except NotJson:
        return False


def _content(content: Json) -> Json:
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return [_part(part) for part in content]


def _result(content: Json) -> Json:
    """What a tool returned: a text, or parts of kinds that an output may have."""
    if are_parts(content):
        return _content(content)
    if content is None or isinstance(content, str):
        return content or ""
    return encode_json(content).decode()


def _part(part: Json) -> Json:
    """A part of a chat message as one of this protocol; others go out as they are."""
    match part:
        case str():
            return {"type": "input_text", "text": part}
        case {"type": "text" | "output_text", "text": text}:
            return {"type": "input_text", "text": text}
        case {"type": "image_url", "image_url": {"url": url, **more}}:
            return {"type": "input_image", "image_url": url, "detail": more.get("detail", "auto")}
        case {"type": "image_url", "image_url": url}:
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case {"type": "file", "file": {**file}}:
            return {"type": "input_file", **file}
        case _:
            return part


class _Response(msgspec.Struct):
    """The body of an answer, as far as it matters here."""

    output: list[Json] | None = None
    status: str | None = None
    error: Json = None
    incomplete_details: Json = None
    usage: Json = None
    model: Json = None


response_of = BodyReader(_Response, "response")


def _finish_of(response: _Response) -> Finish:
    """Servers write `complete` for `completed`, or nothing."""
    match response.status:
        case "incomplete":
            details = response.incomplete_details
            reason = details.get("reason") if isinstance(details, dict) else None
            # Whatever else ended it, it is not whole.
            return FINISH_OF.get(str(reason), "length")
        case "queued" | "in_progress":
            raise NeverAnswer(
                f"the server puts its answer off ({response.status}), which was not asked for"
            )
        case "failed" | "cancelled":
            raise NoAnswer(f"the server says that the answer is {response.status}")
        case _:
            return "stop"


def _status_of(error: Json) -> int:
    if not isinstance(error, dict):
        return 500
    code = error.get("code")
    if isinstance(code, str) and code.isdecimal() and len(code) == 3:
        code = int(code)
    if isinstance(code, int):
        return code if 400 <= code < 600 else 500
    for word in (code, error.get("type")):
        if isinstance(word, str) and word in STATUS_OF:
            return STATUS_OF[word]
    # All other codes but that of the server's own fault are about the request.
    is_ours = isinstance(code, str) and ("image" in code or code.endswith("_policy"))
    return 400 if is_ours else 500


def _usage_of(said: Json) -> Usage | None:
    if not isinstance(said, dict):
        return None
    details = said.get("input_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    return count_tokens(said.get("input_tokens", 0), said.get("output_tokens", 0), cached)


def _said_in(item: Message) -> str:
    content = item.get("content") if kind_of(item) == "message" else None
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else ():
        match part:
            case {"type": "output_text" | "text", "text": str(text)}:
                texts.append(text)
            case {"type": "refusal", "refusal": str(text)}:
                texts.append(text)
            case _:
                pass
    return "".join(texts)


def _thought_in(item: Message) -> str:
    """Reasoning in full where the server shows it, else its summary."""
    if kind_of(item) != "reasoning":
        return ""
    for field in ("content", "summary"):
        parts = item.get(field)
        texts = [
            part["text"]
            for part in (parts if isinstance(parts, list) else ())
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        ]
        if texts:
            return "\n".join(texts)
    return ""
