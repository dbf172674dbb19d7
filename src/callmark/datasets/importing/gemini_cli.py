"""Recorded chats of the Gemini CLI: one JSON document, or since then lines that are written again
whenever a message changes (`$set`, `$rewindTo`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callmark.datasets.importing.conversation import (
    Talk,
    Turns,
    imported_session,
    object_or_empty,
    objects_of,
    text_of_part,
    text_or_none,
)
from callmark.datasets.importing.desk import Desk, Imported, Object, Record
from callmark.errors import BadInput
from callmark.records.jsontext import Json, canonical_json

_REWIND, _SET = "$rewindTo", "$set"
_UNDONE = ("error", "cancelled")


def is_gemini_cli(entry: Object) -> bool:
    """By the line or document about the session; recordings begin with it."""
    if "sessionId" not in entry or {"uuid", "payload", "parentUuid"} & entry.keys():
        return False
    kinds = [message.get("type") for message in objects_of(entry.get("messages"))]
    return "projectHash" in entry or "gemini" in kinds


def read_gemini_cli(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    session = _Recording(desk)
    for line, entry in records:
        if not isinstance(entry, dict):
            raise BadInput(f"{desk.place(line)}: must be a JSON object")
        if session.is_left(entry):
            yield from session.finish()
            session = _Recording(desk)
        session.take(line, entry)
    yield from session.finish()


class _Recording:
    """One chat. Of a message that is written again the last state counts, at its first place."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._about: Object = {}
        self._messages: dict[str, tuple[int, Object]] = {}
        self._undone: list[tuple[list[Object], list[Object], int]] = []  # before, taken back
        self._line = 0

    def is_left(self, entry: Object) -> bool:
        """A line about another session, after this one's."""
        other, known = entry.get("sessionId"), self._about.get("sessionId")
        return known is not None and other is not None and other != known

    def take(self, line: int, entry: Object) -> None:
        self._line = self._line or line
        if isinstance(entry.get(_REWIND), str):
            self._rewind(str(entry[_REWIND]), line)
        elif isinstance(entry.get("id"), str) and "sessionId" not in entry:
            self._put(entry, line)
        elif _SET in entry or "sessionId" in entry:
            about = object_or_empty(entry.get(_SET)) if _SET in entry else entry
            self._about |= {name: value for name, value in about.items() if name != "messages"}
            if "messages" in about:
                self._replace(about["messages"], line)
        else:
            self._desk.notes.add("line_left_out", line, str(entry.get("type")))

    def _put(self, message: Object, line: int) -> None:
        name = text_or_none(message.get("id")) or f"line {line}, {len(self._messages)}"
        if name in self._messages and self._messages[name][1] == message:
            self._desk.notes.add("recorded_twice", line, name)
        self._messages[name] = (self._messages.get(name, (line, {}))[0], message)

    def _replace(self, messages: Json, line: int) -> None:
        """All messages at once. What is gone from them was summarised, and is kept."""
        if not isinstance(messages, list):
            raise BadInput(f"{self._desk.place(line)}: messages: must be a list")
        given = self._desk.objects_in(messages, line, "a message")
        kept = {str(one.get("id")) for one in given}
        if any(name not in kept for name, (_, known) in self._messages.items() if "id" in known):
            self._desk.notes.add("compacted", line)
        for message in given:
            self._put(message, line)

    def _rewind(self, to: str, line: int) -> None:
        """From that message on, which is taken back too; from one that is not there: everything."""
        names = list(self._messages)
        at = names.index(to) if to in self._messages else 0
        before = [self._messages[name][1] for name in names[:at]]
        taken = [self._messages.pop(name)[1] for name in names[at:]]
        if taken:
            self._undone.append((before, taken, line))

    def finish(self) -> Iterator[Imported]:
        kept = [message for _, message in self._messages.values()]
        name = text_or_none(self._about.get("sessionId")) or "session"
        if kept:
            yield from self._session(name, [], kept, self._line)
        for before, taken, line in self._undone:
            self._desk.notes.add("other_branch", line, name)
            yield from self._session(name, before, taken, line)

    def _session(
        self, name: str, before: Sequence[Object], messages: Sequence[Object], line: int
    ) -> Iterator[Imported]:
        turns = Turns()
        self._add(before, turns)
        context = len(turns.messages)
        self._add(messages, turns)
        about = {"format": "gemini-cli", "kind": self._about.get("kind"), "model": _model(messages)}
        if before:
            about["parent"] = name
        if self._about.get("kind") == "subagent":
            self._desk.notes.add("sub_agent", line, name)
        talk = Talk(
            line=line, sample_id=name, messages=turns.messages, context=context, about=about
        )
        imported = imported_session(talk, self._desk)
        if imported is not None:
            yield imported

    def _add(self, messages: Sequence[Object], turns: Turns) -> None:
        for message in messages:
            kind, content = message.get("type"), message.get("content")
            if kind == "user":
                turns.tell("user", _told(content))
            elif kind == "gemini":
                self._add_answer(message, turns)
            else:
                self._desk.notes.add("line_left_out", self._line, str(kind))
        turns.close()

    def _add_answer(self, message: Object, turns: Turns) -> None:
        turns.close()
        for thought in self._desk.objects_in(message.get("thoughts"), self._line, "a thought"):
            parts = (thought.get("subject"), thought.get("description"))
            turns.think(": ".join(part for part in parts if isinstance(part, str) and part))
        content = message.get("content")
        for part in content if isinstance(content, list) else [content]:
            text = text_of_part(part)
            if isinstance(part, dict) and part.get("thought") is True:
                turns.think(text or "")
            elif text is not None:
                turns.speak(text, "")
            elif part is not None:
                self._desk.notes.add("part_left_out", self._line, "content that is no text")
        turns.speak("")
        calls = self._desk.objects_in(message.get("toolCalls"), self._line, "a call")
        for call in calls:
            turns.call(call.get("name"), call.get("args"), call.get("id"))
        for call in calls:
            if call.get("result") is not None:
                result, failed = _result(call["result"])
                failed = failed or call.get("status") in _UNDONE
                turns.answer(result, call.get("id"), call.get("name"), failed=failed)


def _told(content: Json) -> Json:
    """Parts of the Gemini API: texts stay texts."""
    if isinstance(content, dict):
        return [content]
    return content


def _model(messages: Sequence[Object]) -> Json:
    return next((one["model"] for one in messages if isinstance(one.get("model"), str)), None)


def _result(result: Json) -> tuple[Json, bool]:
    """What the function responses say, and whether that is an error."""
    if isinstance(result, str):
        return result, False
    parts = result if isinstance(result, list) else [result]
    texts: list[str] = []
    failed = False
    for part in parts:
        response = object_or_empty(object_or_empty(part).get("functionResponse")).get("response")
        if not isinstance(response, dict):
            text = text_of_part(part)
            texts.append(text if text is not None else canonical_json(part))
            continue
        failed = failed or bool(response.get("error"))
        only = next(iter(response.values())) if len(response) == 1 else None
        is_text = isinstance(only, str) and response.keys() <= {"output", "error"}
        texts.append(str(only) if is_text else canonical_json(response))
    return "\n".join(texts), failed
