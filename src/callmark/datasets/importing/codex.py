"""Rollout files of the Codex CLI: `session_meta`, then items of the Responses API, with events that
tell most of it a second time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from callmark.datasets.importing.conversation import (
    Talk,
    imported_session,
    object_or_empty,
    objects_of,
    text_of_part,
    text_or_none,
)
from callmark.datasets.importing.desk import Desk, Imported, Object, Record
from callmark.datasets.importing.responses import Items
from callmark.errors import BadInput
from callmark.records.jsontext import Json
from callmark.records.trace import json_inside

_META, _ITEM, _EVENT = "session_meta", "response_item", "event_msg"
_KINDS = (_META, _ITEM, _EVENT, "turn_context", "compacted")
# Events that repeat an item: which field, and whose words they are.
_REPEATED = {
    "user_message": ("message", "user"),
    "agent_message": ("message", "assistant"),
    "agent_reasoning": ("text", "reasoning"),
    "agent_reasoning_raw_content": ("text", "reasoning"),
}
_COMPLETED = {"UserMessage": "user", "AgentMessage": "assistant", "Reasoning": "reasoning"}
_OLD_META = frozenset(
    {"id", "timestamp", "instructions", "git", "cwd", "originator", "cli_version"}
)
_FAILED = ("error", "stream_error")
_EXIT_CODE = re.compile(r"(?:Process exited with code|Exit code:) (-?\d+)\b")
_HEAD = 400  # an output says how it ended before it says anything else


def is_codex(entry: Object) -> bool:
    if entry.get("type") in _KINDS and isinstance(entry.get("payload"), dict):
        return True
    # Before there were kinds of lines: the first is about the session, the others are items.
    return {"id", "timestamp"} <= entry.keys() <= _OLD_META


def read_codex(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    """A file is a session. Further lines about a session are those of the one it was forked from,
    unless everything before them is told."""
    lines: list[tuple[int, Object]] = []
    for line, entry in records:
        if not isinstance(entry, dict):
            raise BadInput(f"{desk.place(line)}: must be a JSON object")
        if lines and _begins(entry, lines):
            yield from _read_session(lines, desk)
            lines = []
        lines.append((line, entry))
    yield from _read_session(lines, desk)


def _begins(entry: Object, lines: list[tuple[int, Object]]) -> bool:
    """A second session in one stream: its meta line comes after the talk, and names no fork."""
    if entry.get("type") != _META:
        return False
    first = object_or_empty(lines[0][1].get("payload"))
    is_copy = first.get("forked_from_id") is not None or first.get("id") == (
        object_or_empty(entry.get("payload")).get("id")
    )
    return not is_copy and any(one.get("type") == _ITEM for _, one in lines)


def _read_session(lines: list[tuple[int, Object]], desk: Desk) -> Iterator[Imported]:
    session = _Rollout(lines, desk)
    for line, entry in lines:
        session.take(line, entry)
    talk = session.talk()
    imported = imported_session(talk, desk) if talk is not None else None
    if imported is not None:
        yield imported


class _Rollout:
    def __init__(self, lines: list[tuple[int, Object]], desk: Desk) -> None:
        self._desk = desk
        self._items = Items(lines[0][0] if lines else 1, desk)
        self._first = self._items.line
        self._meta: Object | None = None
        self._context = 0  # what a sub-agent has of its parent
        self._about: Object = {}
        self._seen: set[str] = set()
        self._words: Counter[tuple[str, str]] = Counter()
        self._calls: set[str] = set()
        for _, entry in lines:
            self._count(_payload(entry) if entry.get("type") == _ITEM else {})

    def _count(self, item: Object) -> None:
        """What is said in items, before it is known which events repeat them."""
        if text_or_none(item.get("call_id")):
            self._calls.add(str(item["call_id"]))
        whose = "reasoning" if item.get("type") == "reasoning" else str(item.get("role"))
        said = [*objects_of(item.get("content")), *objects_of(item.get("summary"))]
        for part in said:
            text = text_of_part(part)
            if text is not None:
                self._words[whose, text.strip()] += 1

    def take(self, line: int, entry: Object) -> None:
        self._items.line = line
        at, start = entry.get("ordinal"), (self._meta or {}).get("subagent_history_start_ordinal")
        if isinstance(at, int) and isinstance(start, int) and at == start:
            self._items.turns.close()
            self._context = len(self._items.turns.messages)
            self._desk.notes.add("context_step", line, f"what came before line {line}")
        kind, payload = entry.get("type"), _payload(entry)
        if kind == _META or (self._meta is None and is_codex(entry) and "payload" not in entry):
            self._take_meta(payload, line)
        elif kind == _ITEM or (kind not in _KINDS and "payload" not in entry and kind is not None):
            self._take_item(payload, line)
        elif kind == _EVENT:
            self._take_event(payload, line)
        elif kind == "compacted":
            self._desk.notes.add("compacted", line)
            if text_or_none(payload.get("message")):
                self._items.turns.tell("user", payload["message"])
        else:
            self._about.setdefault("model", payload.get("model"))
            self._desk.notes.add("line_left_out", line, str(kind or entry.get("record_type")))

    def _take_meta(self, meta: Object, line: int) -> None:
        if self._meta is not None:
            self._desk.notes.add("line_left_out", line, "the session that this one was forked from")
            return
        self._meta = meta
        base = meta.get("base_instructions")
        told = base.get("text") if isinstance(base, dict) else base
        for instructions in (told, meta.get("instructions")):
            if isinstance(instructions, str) and instructions:
                self._items.turns.tell("system", instructions)

    def _take_item(self, item: Object, line: int) -> None:
        kind, call_id = item.get("type"), text_or_none(item.get("call_id"))
        if call_id is not None:
            mark = f"{kind} {call_id}"
            if mark in self._seen:
                self._desk.notes.add("recorded_twice", line, mark)
                return
            self._seen.add(mark)
        if kind == "ghost_snapshot":
            self._desk.notes.add("line_left_out", line, kind)
        elif kind in ("compaction", "compaction_summary", "context_compaction"):
            self._desk.notes.add("compacted", line)
        else:
            self._items.add(_with_failure(item))

    def _take_event(self, event: Object, line: int) -> None:
        kind = event.get("type")
        field, whose = _REPEATED.get(str(kind), ("", ""))
        text = event.get(field)
        item = object_or_empty(event.get("item"))
        if kind == "item_completed" and str(item.get("type")) in _COMPLETED:
            text, whose = _completed_text(item), _COMPLETED[str(item["type"])]
        if isinstance(text, str):
            self._take_words(text, whose, line, str(kind))
        elif text_or_none(event.get("call_id")) and str(event["call_id"]) in self._calls:
            self._desk.notes.add("recorded_twice", line, f"{kind} {event['call_id']}")
        elif kind in _FAILED:
            self._desk.notes.add("failed_exchange", line, str(event.get("message")))
        else:
            self._desk.notes.add("line_left_out", line, str(kind))

    def _take_words(self, text: str, whose: str, line: int, kind: str) -> None:
        if self._words[whose, text.strip()] > 0:
            self._words[whose, text.strip()] -= 1
            self._desk.notes.add("recorded_twice", line, kind)
        elif whose == "user":
            self._items.turns.tell("user", text)
        elif whose == "assistant":
            self._items.turns.speak(text)
        else:
            self._items.turns.think(text)

    def talk(self) -> Talk | None:
        turns = self._items.turns
        turns.close()
        if not turns.messages:
            self._desk.notes.add("no_prompt", self._first)
            return None
        meta = self._meta or {}
        about: Object = {"format": "codex", "version": meta.get("cli_version"), **self._about}
        parent = _parent_of(meta)
        if parent is not None:
            self._desk.notes.add("sub_agent", self._first, str(meta.get("id")))
            about |= {"parent": parent, "agent": meta.get("source")}
        elif meta.get("forked_from_id") is not None:
            about["parent"] = meta["forked_from_id"]
        return Talk(
            line=self._first,
            sample_id=text_or_none(meta.get("id")) or "session",
            messages=turns.messages,
            context=self._context,
            about=about,
        )


def _payload(entry: Object) -> Object:
    """Older lines are what newer ones have below `payload`."""
    return object_or_empty(entry.get("payload")) if "payload" in entry else entry


def _parent_of(meta: Object) -> str | None:
    """Of a sub-agent; a review does not say whose it is."""
    source = meta.get("source")
    agent = source.get("subagent", source.get("sub_agent")) if isinstance(source, dict) else None
    if agent is None:
        return None
    spawn = object_or_empty(agent.get("thread_spawn")) if isinstance(agent, dict) else {}
    named = (
        spawn.get("parent_thread_id"),
        meta.get("parent_thread_id"),
        meta.get("forked_from_id"),
    )
    return next((one for one in named if isinstance(one, str)), "not named in the source")


def _completed_text(item: Object) -> str:
    parts = objects_of(item.get("content"))
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    for name in ("summary_text", "raw_content"):
        found = item.get(name)
        texts += [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
    return "\n".join(map(str, texts))


def _with_failure(item: Object) -> Object:
    """Codex keeps no mark of a failed command, only its exit code at the head of the output."""
    output = item.get("output")
    if not isinstance(output, str):
        return item
    inside = json_inside(output)
    code: Json = None
    if isinstance(inside, dict):
        code = object_or_empty(inside.get("metadata")).get("exit_code")
    else:
        found = _EXIT_CODE.search(output[:_HEAD].partition("\nOutput:")[0])
        code = int(found[1]) if found else None
    if code in (None, 0):
        return item
    return {**item, "output": {"content": output, "success": False}}
