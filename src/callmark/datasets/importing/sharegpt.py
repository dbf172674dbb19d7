"""ShareGPT conversations (`from`, `value`) with tools: calls as turns of their own
(`function_call`, `observation`) or as Hermes writes them into the text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callmark.datasets.importing.conversation import (
    Talk,
    Turns,
    imported_talk,
    name_by_content,
    object_or_empty,
    objects_of,
    rows_about,
    text_or_none,
)
from callmark.datasets.importing.desk import Desk, Imported, Object, Record
from callmark.errors import BadInput
from callmark.records.jsontext import Json, NotJson, canonical_json, parse_json, want_list

_USER = frozenset({"human", "user"})
_MODEL = frozenset({"gpt", "assistant", "chatgpt", "bing", "bard", "model"})
_SYSTEM = frozenset({"system", "system_prompt"})
_CALL = frozenset({"function_call", "tool_call", "function-call", "tool-call"})
_RESULT = frozenset(
    {
        *("observation", "tool", "tool_response", "function_response", "function", "tool_result"),
        *("function-response", "tool-response", "ipython"),
    }
)
_READ = frozenset({"conversations", "conversation", "tools", "system", "functions"})
_CALLS_IN_TEXT = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_RESULTS_IN_TEXT = re.compile(r"<tool_response>(.*?)</tool_response>", re.DOTALL)
_TOOLS_IN_TEXT = re.compile(r"<tools>(.*?)</tools>", re.DOTALL)
_THOUGHTS = re.compile(r"\s*<think>(.*?)</think>\s*", re.DOTALL)


def is_sharegpt(entry: Object) -> bool:
    """Some name the two fields as chat messages do."""
    return any(
        {"from", "value"} <= turn.keys() or {"role", "content"} <= turn.keys()
        for turn in _turns_of(entry)[:1]
    )


def _turns_of(entry: Object) -> list[Object]:
    found = objects_of(entry.get("conversations", entry.get("conversation")))
    return found or [one for one in objects_of(entry.get("messages")) if "from" in one]


def read_sharegpt(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    for line, value in records:
        entry: Json = {"conversations": value} if isinstance(value, list) else value
        if not isinstance(entry, dict) or not _turns_of(entry):
            raise BadInput(f"{desk.place(line)}: conversations: must be a list of turns")
        talk = _Conversation(line, desk)
        if text_or_none(entry.get("system")):
            talk.turns.tell("system", entry["system"])
        listed = entry.get("conversations", entry.get("conversation", entry.get("messages")))
        for _ in range(len(want_list(listed)) - len(_turns_of(entry))):
            desk.notes.add("part_left_out", line, "a turn that is none")
        for turn in _turns_of(entry):
            who, value = turn.get("from", turn.get("role")), turn.get("value", turn.get("content"))
            talk.take(str(who).lower(), value)
            for call in desk.objects_in(turn.get("tool_calls"), line, "a call"):
                talk.call(canonical_json(call))
        talk.turns.close()
        specs = _specs(entry.get("tools", entry.get("functions")))
        sample_id, about = rows_about(entry, _READ)
        imported = imported_talk(
            Talk(
                line=line,
                sample_id=sample_id or name_by_content(talk.turns.messages),
                named=sample_id is not None,
                messages=talk.turns.messages,
                tools=specs if specs is not None else talk.offered,
                about={"format": "sharegpt", **about},
            ),
            desk,
        )
        if imported is not None:
            yield imported


class _Conversation:
    """`offered`: the tools that the system message lists, if it does."""

    def __init__(self, line: int, desk: Desk) -> None:
        self.turns = Turns()
        self.offered: list[Json] | None = None
        self._line = line
        self._desk = desk

    def take(self, who: str, value: Json) -> None:
        text = value if isinstance(value, str) else "" if value is None else canonical_json(value)
        if who in _SYSTEM:
            self._find_tools(text)
            self.turns.tell("system", text)
        elif who in _USER:
            self.turns.tell("user", text)
        elif who in _MODEL:
            self._hear(text)
        elif who in _CALL:
            self.call(text)
        elif who in _RESULT:
            self._answer(text)
        else:
            self._desk.notes.add("part_left_out", self._line, f"a turn of {who!r}")

    def _find_tools(self, text: str) -> None:
        found = [spec for part in _TOOLS_IN_TEXT.findall(text) for spec in _specs(part) or ()]
        if found:
            self.offered = found

    def _hear(self, text: str) -> None:
        """What the model said: a thought is no part of the answer, a call in the text is a call."""
        thought = _THOUGHTS.match(text)
        if thought is not None:
            self.turns.think(thought[1].strip())
            text = text[thought.end() :]
        calls = _CALLS_IN_TEXT.findall(text)
        said = _CALLS_IN_TEXT.sub("", text).strip() if calls else text
        self.turns.speak(said)
        for call in calls:
            self.call(call)

    def call(self, text: str) -> None:
        """One call, or a list of them. What cannot be read stays a call, and is malformed."""
        value = _read(text)
        calls = value if isinstance(value, list) else [value]
        for call in calls:
            if not isinstance(call, dict):
                self.turns.call(None, text)
                continue
            function = object_or_empty(call.get("function")) or call
            given = next((function[key] for key in ("arguments", "parameters", "args", "input")
                          if key in function), {})  # fmt: skip
            self.turns.call(function.get("name"), given, call.get("id"))

    def _answer(self, text: str) -> None:
        """Each result that is marked as one in the text, or all of it."""
        for result in _RESULTS_IN_TEXT.findall(text) or [text]:
            value = _read(result)
            if isinstance(value, dict) and {"name", "content"} <= value.keys():
                content, name = value["content"], value["name"]
                told = content if isinstance(content, str) else canonical_json(content)
                self.turns.answer(told, value.get("tool_call_id"), name)
            else:
                self.turns.answer(result.strip())


def _read(text: str) -> Json:
    """The JSON that a text is, or the text."""
    try:
        return parse_json(text.strip())
    except NotJson:
        return text


def _specs(tools: Json) -> list[Json] | None:
    """A list, the JSON text of one, or a spec on each line. None: there is none."""
    if isinstance(tools, str):
        value = _read(tools)
        if isinstance(value, str):
            lines = [_read(line) for line in tools.splitlines() if line.strip()]
            value = [line for line in lines if isinstance(line, dict)]
        tools = value
    found = [tools] if isinstance(tools, dict) else objects_of(tools)
    return [*found] or None
