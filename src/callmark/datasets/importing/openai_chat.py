"""OpenAI's chat completions: conversations as lists of messages, and exchanges with the API,
streamed or not."""

from __future__ import annotations

from collections.abc import Iterator

from callmark.datasets.importing.anthropic import has_blocks
from callmark.datasets.importing.conversation import (
    Talk,
    imported_talk,
    object_or_empty,
    objects_of,
    rows_about,
)
from callmark.datasets.importing.desk import Desk, Imported, Object
from callmark.datasets.importing.histories import (
    ModelExchange,
    events_of,
    exchanges_of,
    failure_of,
    first_exchange,
)
from callmark.errors import BadInput
from callmark.records.jsontext import Json, want_object
from callmark.store.recorded import BadLine, messages_of

_READ = frozenset({"sample_id", "id", "trial", "messages", "tools", "metadata"})
_FRAME = ("interactions", "request", "response", "status", "messages", "tools")
_OWN_ROLES = ("tool", "function", "developer")
_JOINED = ("content", "refusal", "reasoning_content", "reasoning")  # what a stream brings in pieces


def is_chat(entry: Object) -> bool:
    """An exchange of the chat completions API."""
    request, response = first_exchange(entry)
    return isinstance(request.get("messages"), list) and bool(_choices(_response(response)))


def claims_chat(entry: Object) -> bool:
    """An entry that no other API writes: its answer, or its roles and calls."""
    if exchanges_of(entry) is not None:
        return is_chat(entry)
    messages = objects_of(entry.get("messages"))
    return not has_blocks(entry) and any(
        message.get("role") in _OWN_ROLES or message.get("tool_calls") for message in messages
    )


def read_conversation(whole: Object, line: int, desk: Desk) -> Iterator[Imported]:
    """One without its requests."""
    try:
        found = messages_of(whole, line)
    except BadLine as error:
        raise BadInput([f"{desk.place(line)}: {what}" for what in error.problems]) from None
    talk = Talk(
        line=line,
        sample_id=found.sample_id,
        named=_is_named(whole),
        trial=found.trial,
        messages=found.messages,
        tools=found.tools,
        metadata={**_cluster(whole), **(found.metadata or {})},
        about={name: rest for name, rest in whole.items() if name not in _READ},
    )
    imported = imported_talk(talk, desk)
    if imported is not None:
        yield imported


def chat_exchanges(entry: Object, line: int, desk: Desk) -> Iterator[ModelExchange]:
    sample_id, about = rows_about(entry, _FRAME)
    for exchange in exchanges_of(entry) or ():
        request = object_or_empty(exchange.get("request"))
        response = _response(exchange.get("response"))
        choices = _choices(response)
        error = failure_of(exchange, response) or (None if choices else "no chat completion")
        answer = [object_or_empty(one.get("message")) for one in choices[:1]] if not error else []
        for other in choices[1:]:
            desk.notes.add("other_choice", line, str(other.get("index")))
        try:
            asked = request.get("messages")
            whole = [*(asked if isinstance(asked, list) else ()), *answer]
            found = messages_of({"messages": whole}, line).messages if whole else []
        except BadLine as bad:
            raise BadInput([f"{desk.place(line)}: {what}" for what in bad.problems]) from None
        sent = len(found) - len(answer)
        yield ModelExchange(
            line=line,
            sample_id=sample_id,
            sent=found[:sent],
            answer=found[sent:],
            tools=objects_of(request.get("tools")),
            error=error,
            about={"format": "openai", "model": request.get("model"), **about},
        )


def _choices(response: Object) -> list[Object]:
    return objects_of(response.get("choices"))


def _response(response: Json) -> Object:
    """The whole answer, put together if it was streamed."""
    if isinstance(response, dict):
        return response
    made: dict[Json, Object] = {}
    whole: Object = {}
    for event in events_of(response):
        whole = whole or event
        if event.get("error"):
            whole = {**whole, "error": event["error"]}
        for choice in _choices(event):
            number = choice.get("index") if isinstance(choice.get("index"), int) else 0
            message = made.setdefault(number, {"role": "assistant", "content": None})
            _take_delta(object_or_empty(choice.get("delta")), message)
    choices: list[Json] = [
        {"index": number, "message": _closed(made[number])}
        for number in sorted(made, key=lambda one: one if isinstance(one, int) else 0)
    ]
    return {**whole, "choices": choices} if choices else whole


def _take_delta(delta: Object, message: Object) -> None:
    for name in _JOINED:
        piece, before = delta.get(name), message.get(name)
        if isinstance(piece, str):
            message[name] = (before if isinstance(before, str) else "") + piece
    for part in objects_of(delta.get("tool_calls")):
        calls = message.setdefault("tool_calls", {})
        if not isinstance(calls, dict):
            continue
        call = calls.setdefault(part.get("index", len(calls)), {"type": "function"})
        function = call.setdefault("function", {"name": "", "arguments": ""})
        if isinstance(part.get("id"), str) and part["id"]:
            call["id"] = part["id"]
        for name in ("name", "arguments"):
            piece = object_or_empty(part.get("function")).get(name)
            function[name] += piece if isinstance(piece, str) else ""


def _closed(message: Object) -> Object:
    calls = message.get("tool_calls")
    return {**message, "tool_calls": [*calls.values()]} if isinstance(calls, dict) else message


def _is_named(whole: Object) -> bool:
    given = (
        want_object(whole.get("metadata")).get("sample_id"),
        whole.get("sample_id"),
        whole.get("id"),
    )
    return any(name not in (None, "") for name in given)


def _cluster(whole: Object) -> Object:
    """Trials of one task are not independent."""
    task: Json = whole.get("task_id")
    is_name = isinstance(task, str | int) and not isinstance(task, bool)
    return {"cluster": str(task)} if is_name else {}
