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
_ATTACHMENTS = ("attachment://", "tc://")
_THOUGHT, _SERVED = "reasoning", "tool_use"
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
    value = _with_attachments(_with_events(value))
    try:
        sample = msgspec.convert(value, _Sample)
    except msgspec.ValidationError as error:
        raise BadInput(f"{desk.place(line)}: {typed_problem(error)}") from None
    return Talk(
        line=line,
        sample_id=str(sample.id),
        trial=sample.epoch - 1,
        messages=_messages(sample, line, desk),
        tools=_tools(sample.events),
        metadata=sample.metadata,
        about={**about, "target": sample.target},
        scores=sample.scores or {},
        error=None if sample.error is None else sample.error.message or "no reason is given",
    )


def _with_events(value: Json) -> Json:
    """Logs of 2024 have events and texts in a transcript of their own."""
    transcript = value.get("transcript") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(transcript, dict):
        return value
    moved = {"events": transcript.get("events"), "attachments": transcript.get("content")}
    return {**{name: one for name, one in moved.items() if one is not None}, **value}


def _with_attachments(value: Json) -> Json:
    if not isinstance(value, dict) or not isinstance(value.get("attachments"), dict):
        return value
    kept = {name: value[name] for name in ("messages", "input", "events") if name in value}
    return {**value, **want_object(_attach(kept, value["attachments"]))}


def _messages(sample: _Sample, line: int, desk: Desk) -> list[Object]:
    made = [made for one in sample.messages for made in _message(one, line, desk)]
    is_asked = any(one["role"] in ("user", "assistant") for one in made)
    return made if is_asked else [*_ask(sample.input, line, desk), *made]


def _ask(given: str | list[Json], line: int, desk: Desk) -> list[Object]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    try:
        told = msgspec.convert(given, list[_Message])
        return [made for one in told for made in _message(one, line, desk)]
    except msgspec.ValidationError:
        return []


def _message(message: _Message, line: int, desk: Desk) -> list[Object]:
    if message.role == "assistant":
        return _speak(message, line, desk)
    made: Object = {"role": message.role, "content": message.content}
    if message.role == "tool":
        made |= {"tool_call_id": message.tool_call_id, "name": message.function}
        if message.error is not None and not is_error_result(text_of(message.content)):
            failed = {"error": message.error.get("message") or "error", **message.error}
            made["content"] = json.dumps(
                {name: failed[name] for name in ("error", "type") if name in failed},
                ensure_ascii=False,
            )
    return [made]


def _speak(message: _Message, line: int, desk: Desk) -> list[Object]:
    """A turn; several, where the provider ran a tool in the middle of it."""
    made: list[Object] = []
    thoughts: list[str] = []
    parts: list[Json] = []
    for part in message.content if isinstance(message.content, list) else ():
        if not isinstance(part, dict) or part.get("type") not in (_THOUGHT, _SERVED):
            parts.append(part)
        elif part["type"] == _THOUGHT:
            thoughts.append(_thought(part, line, desk))
        else:
            made += _served(part, parts, thoughts)
            parts, thoughts = [], []
    is_text = isinstance(message.content, str)
    last: Object = {"role": "assistant", "content": message.content if is_text else parts}
    if any(thoughts):
        last["reasoning_content"] = "\n".join(filter(None, thoughts))
    if message.tool_calls:
        last["tool_calls"] = [_call(one) for one in message.tool_calls]
    return [*made, last]


def _thought(part: Object, line: int, desk: Desk) -> str:
    """What is redacted is no text, but what the provider gives in its place."""
    told = part.get("summary") if part.get("redacted") is True else part.get(_THOUGHT)
    if not told:
        desk.notes.add("hidden_reasoning", line)
    return str(told or "")


def _served(part: Object, parts: list[Json], thoughts: list[str]) -> list[Object]:
    """A call that ran at the provider, with what was said before it, and its result."""
    call = function_call(part.get("name"), part.get("arguments"), part.get("id"))
    turn: Object = {"role": "assistant", "content": parts, "tool_calls": [call]}
    if any(thoughts):
        turn["reasoning_content"] = "\n".join(filter(None, thoughts))
    error = part.get("error")
    came = {"error": error} if error else part.get("result")
    text = came if isinstance(came, str) else json.dumps(came, ensure_ascii=False)
    return [turn, {"role": "tool", "tool_call_id": part.get("id"), "content": text}]


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
    if isinstance(value, str) and value.startswith(_ATTACHMENTS):
        found = attachments.get(value.partition("://")[2])
        return found if isinstance(found, str) else value
    if isinstance(value, list):
        return [_attach(entry, attachments) for entry in value]
    if isinstance(value, dict):
        return {name: _attach(entry, attachments) for name, entry in value.items()}
    return value
