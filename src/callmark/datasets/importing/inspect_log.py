"""Logs of Inspect: `EvalLog` as one JSON document, or the samples of an `.eval` archive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from callmark.datasets.importing.conversation import Talk, function_call, imported_talk
from callmark.datasets.importing.desk import Desk, Imported, Object, Record
from callmark.errors import BadInput
from callmark.records.jsontext import Json, digest, want_object
from callmark.records.problems import typed_problem
from callmark.records.trace import is_error_result
from callmark.runners.messages import text_of

# A long text stands beside the messages, under its hash.
_ATTACHMENT = "attachment://"
_THOUGHT = "reasoning"
TOOLS = "callmark_tools"  # where an exported log of our own has the specs


class _Message(msgspec.Struct, frozen=True):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[Json] = ""
    tool_calls: list[dict[str, Json]] | None = None
    tool_call_id: str | None = None
    function: str | None = None
    error: dict[str, Json] | None = None


class _Failure(msgspec.Struct, frozen=True):
    message: str = ""


class _Sample(msgspec.Struct, frozen=True):
    id: str | int
    epoch: Annotated[int, msgspec.Meta(ge=1, le=2**32)] = 1
    input: str | list[Json] = ""
    target: Json = None
    messages: list[_Message] = []
    scores: dict[str, Json] | None = None
    metadata: dict[str, Json] = {}
    events: list[Json] = []
    error: _Failure | None = None


def read_inspect(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    """The first record is the log without its samples, each other one a sample of one epoch."""
    line, frame = next(records)
    spec = frame.get("eval") if isinstance(frame, dict) else None
    if not isinstance(spec, dict):
        raise BadInput(f"{desk.place(line)}: eval: is missing: no log of Inspect")
    about = {"format": "inspect", "task": spec.get("task"), "model": spec.get("model")}
    ours = _ours(spec.get("metadata"))
    for line, value in records:
        talk = _talk(value, line, about, desk)
        if talk.tools is None:
            talk = msgspec.structs.replace(talk, tools=_offer(ours, talk.metadata))
        imported = imported_talk(talk, desk)
        if imported is not None:
            yield imported


def _ours(metadata: Json) -> dict[str, Json]:
    """The specs that an exported log brings along, by name."""
    tools = metadata.get(TOOLS) if isinstance(metadata, dict) else None
    named = [tool for tool in tools or () if isinstance(tool, dict)]
    return {tool["name"]: tool for tool in named if isinstance(tool.get("name"), str)}


def _offer(tools: dict[str, Json], metadata: dict[str, Json]) -> list[Json] | None:
    names = metadata.get("tools")
    wanted = names if isinstance(names, list) else list(tools)
    return [tools[name] for name in wanted if isinstance(name, str) and name in tools] or None


def _talk(value: Json, line: int, about: Object, desk: Desk) -> Talk:
    if isinstance(value, dict) and isinstance(value.get("attachments"), dict):
        kept = {name: value[name] for name in ("messages", "input", "events") if name in value}
        value = {**value, **want_object(_attach(kept, value["attachments"]))}
    try:
        sample = msgspec.convert(value, _Sample)
    except msgspec.ValidationError as error:
        raise BadInput(f"{desk.place(line)}: {typed_problem(error)}") from None
    return Talk(
        line=line,
        sample_id=str(sample.id),
        trial=sample.epoch - 1,
        messages=[_message(one) for one in sample.messages] or _ask(sample.input),
        tools=_tools(sample.events),
        metadata=sample.metadata,
        about={**about, "target": sample.target},
        scores=sample.scores or {},
        error=None if sample.error is None else sample.error.message or "no reason is given",
    )


def _ask(given: str | list[Json]) -> list[Object]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    try:
        return [_message(one) for one in msgspec.convert(given, list[_Message])]
    except msgspec.ValidationError:
        return []


def _message(message: _Message) -> Object:
    made: Object = {"role": message.role, "content": message.content}
    if message.role == "assistant":
        made |= _speak(message)
    elif message.role == "tool":
        made |= {"tool_call_id": message.tool_call_id, "name": message.function}
        if message.error is not None and not is_error_result(text_of(message.content)):
            failed = {"error": message.error.get("message") or "error", **message.error}
            made["content"] = json.dumps(
                {name: failed[name] for name in ("error", "type") if name in failed},
                ensure_ascii=False,
            )
    return made


def _speak(message: _Message) -> Object:
    made: Object = {}
    if isinstance(message.content, list):
        thoughts = [
            str(part.get(_THOUGHT) or "")
            for part in message.content
            if isinstance(part, dict) and part.get("type") == _THOUGHT
        ]
        if any(thoughts):
            made["reasoning_content"] = "\n".join(filter(None, thoughts))
            made["content"] = [
                part
                for part in message.content
                if not (isinstance(part, dict) and part.get("type") == _THOUGHT)
            ]
    if message.tool_calls:
        made["tool_calls"] = [_call(one) for one in message.tool_calls]
    return made


def _call(call: Object) -> Object:
    """Inspect keeps no text of arguments that it could not read, only what was wrong."""
    unread = call.get("parse_error")
    arguments = unread if isinstance(unread, str) else call.get("arguments")
    return function_call(call.get("function"), arguments, call.get("id"))


def _tools(events: list[Json]) -> list[Json] | None:
    """Every tool that the model was offered in this sample; None: no request is in the log."""
    found: dict[str, Json] = {}
    asked = False
    for event in events:
        match event:
            case {"event": "model", "tools": list(tools)}:
                asked = True
                found |= {digest(tool): tool for tool in tools}
    return list(found.values()) if asked else None


def _attach(value: Json, attachments: Object) -> Json:
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        found = attachments.get(value.removeprefix(_ATTACHMENT))
        return found if isinstance(found, str) else value
    if isinstance(value, list):
        return [_attach(entry, attachments) for entry in value]
    if isinstance(value, dict):
        return {name: _attach(entry, attachments) for name, entry in value.items()}
    return value
