"""Trajectories of mini-SWE-agent. Commands in a text stay text; those that were called as a tool
are calls."""

from __future__ import annotations

from collections.abc import Iterator

from callmark.datasets.importing.conversation import (
    Talk,
    imported_session,
    name_by_content,
    object_or_empty,
    text_of_part,
    text_or_none,
)
from callmark.datasets.importing.desk import Desk, Imported, Object, Record
from callmark.datasets.importing.responses import Items
from callmark.errors import BadInput
from callmark.records.jsontext import Json
from callmark.records.problems import show_value

_READ = frozenset({"messages", "info", "trajectory_format", "instance_id"})
_TOLD = ("exit_status", "submission", "mini_version", "model_stats")


def is_mini_swe_agent(entry: Object) -> bool:
    named = entry.get("trajectory_format")
    if isinstance(named, str) and named.startswith("mini-swe-agent"):
        return True
    info = object_or_empty(entry.get("info"))
    return isinstance(entry.get("messages"), list) and {"exit_status", "model_stats"} <= info.keys()


def read_mini_swe_agent(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    for line, entry in records:
        if not isinstance(entry, dict) or not isinstance(entry.get("messages"), list):
            raise BadInput(f"{desk.place(line)}: messages: must be a list")
        items = Items(line, desk)
        for message in desk.objects_in(entry["messages"], line, "a message"):
            _add(message, items, line, desk)
        items.turns.close()
        messages = items.turns.messages
        info = object_or_empty(entry.get("info"))
        config = object_or_empty(info.get("config"))
        talk = Talk(
            line=line,
            sample_id=text_or_none(entry.get("instance_id")) or name_by_content(messages),
            messages=messages,
            about={
                "format": "mini-swe-agent",
                "model": object_or_empty(config.get("model")).get("model_name"),
                **{name: info.get(name) for name in _TOLD},
                **{name: value for name, value in entry.items() if name not in _READ},
            },
        )
        imported = imported_session(talk, desk)
        if imported is not None:
            yield imported


def _add(message: Object, items: Items, line: int, desk: Desk) -> None:
    """Chat messages, or (where the model was asked that way) responses and their outputs."""
    role, turns = message.get("role"), items.turns
    if message.get("object") == "response" or isinstance(message.get("output"), list):
        turns.close()
        items.add_all(_items_of(message))
    elif "type" in message and role is None:
        items.add({**message, "status": "failed"} if _has_failed(message) else message)
    elif role == "assistant":
        turns.close()
        _add_answer(message, items, desk)
    elif role == "tool":
        failed = _has_failed(message)
        turns.answer(message.get("content"), message.get("tool_call_id"), failed=failed)
    elif role in ("user", "system", "developer"):
        turns.tell(str(role), message.get("content"))
    else:
        desk.notes.add("line_left_out", line, f"a message of {role!r}")


def _items_of(message: Object) -> list[Json]:
    output = message.get("output")
    return output if isinstance(output, list) else []


def _add_answer(message: Object, items: Items, desk: Desk) -> None:
    turns, content = items.turns, message.get("content")
    for name in ("reasoning_content", "reasoning"):
        if text_or_none(message.get(name)):
            turns.think(str(message[name]))
            break
    for part in content if isinstance(content, list) else [content or ""]:
        text = text_of_part(part)
        if text is None:
            desk.notes.add("part_left_out", items.line, show_value(part))
        turns.speak(text or "")
    for call in desk.objects_in(message.get("tool_calls"), items.line, "a call"):
        function = object_or_empty(call.get("function"))
        turns.call(function.get("name"), function.get("arguments"), call.get("id"))


def _has_failed(message: Object) -> bool:
    """The program keeps how a command ended beside what it said."""
    extra = object_or_empty(message.get("extra"))
    code = extra.get("returncode", object_or_empty(extra.get("raw_output")).get("returncode"))
    return bool(extra.get("exception_info")) or (isinstance(code, int) and code != 0)
