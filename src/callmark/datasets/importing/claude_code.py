"""Session files of Claude Code, and what it prints as `stream-json`: a line for each block of a
message, linked by `parentUuid`. Sub-agents stand in between or in files of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from callmark.datasets.importing.anthropic import add_message
from callmark.datasets.importing.conversation import (
    Talk,
    Turns,
    imported_session,
    object_or_empty,
    objects_of,
    text_or_none,
)
from callmark.datasets.importing.desk import Desk, Imported, Object, Record
from callmark.errors import BadInput
from callmark.records.jsontext import Json, digest

_SPOKEN = ("user", "assistant")
# Lines with which a session file may begin and that nobody else writes.
_OWN_LINES = ("file-history-snapshot", "queue-operation", "summary")
_NOT_THE_MODEL = "<synthetic>"  # what the program says in the model's place
_QUEUED = "queued_command"
_UNNAMED = "session"


def is_claude_code(entry: Object) -> bool:
    kind = entry.get("type")
    if not isinstance(kind, str) or {"projectHash", "payload", "run_type"} & entry.keys():
        return False
    if kind in _SPOKEN:
        return _session_of(entry) is not None and isinstance(entry.get("message"), dict)
    return kind in _OWN_LINES or (
        _session_of(entry) is not None and not {"role", "messages"} & entry.keys()
    )


def _session_of(entry: Object) -> str | None:
    return text_or_none(entry.get("sessionId")) or text_or_none(entry.get("session_id"))


def read_claude_code(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    """The lines of one session stand together; another begins where nothing leads back."""
    session = _Session(desk)
    for line, entry in records:
        if not isinstance(entry, dict):
            raise BadInput(f"{desk.place(line)}: must be a JSON object")
        if session.is_left(entry):
            yield from session.finish()
            session = _Session(desk)
        session.take(line, entry)
    yield from session.finish()


class _Said(NamedTuple):
    """One message. The blocks of an answer come line by line, results of its first calls may come
    in between."""

    line: int
    message: Object
    blocks: list[Json]


class _Thread:
    """One line of talk: the session's own, a branch of it, or a sub-agent's. `context`: how much of
    it is another thread's."""

    def __init__(self, name: str, said: Sequence[_Said] = ()) -> None:
        self.name = name
        self.said = list(said)
        self.context = len(self.said)
        self.about: Object = {}
        self.agent: str | None = None
        self._answers: dict[str, _Said] = {}

    def add(self, line: int, message: Object, blocks: list[Json]) -> None:
        name = text_or_none(message.get("id"))
        known = self._answers.get(name) if name is not None else None
        if known is not None:
            known.blocks.extend(blocks)
            return
        said = _Said(line, message, blocks)
        self.said.append(said)
        if name is not None:
            self._answers[name] = said

    def goes_on_from(self, length: int) -> bool:
        """Whether nothing but results came after that many messages."""
        return all(_only_results(one) for one in self.said[length:])

    def talk(self, desk: Desk) -> Talk:
        turns, context = Turns(), 0
        for at, (line, message, blocks) in enumerate(self.said):
            add_message({**message, "content": blocks}, turns, line, desk)
            if at + 1 == self.context:
                context = len(turns.messages)
        return Talk(
            line=self.said[min(self.context, len(self.said) - 1)].line,
            sample_id=self.name,
            messages=turns.messages,
            context=context,
            about={"format": "claude-code", **self.about},
        )


def _only_results(said: _Said) -> bool:
    kinds = [block.get("type") if isinstance(block, dict) else None for block in said.blocks]
    return said.message["role"] == "user" and all(kind == "tool_result" for kind in kinds)


class _Session:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._id: str | None = None
        self._threads: list[_Thread] = []
        self._latest: dict[str | None, _Thread] = {}  # of a sub-agent, or of none, the last thread
        self._places: dict[str, tuple[_Thread, int]] = {}  # a line → where it stands
        self._callers: dict[str, _Thread] = {}  # a call → who made it
        self._seen: set[str] = set()
        self._tasks: dict[str, str] = {}  # what a sub-agent was asked, or its id → the call
        self._about: Object = {}

    def is_left(self, entry: Object) -> bool:
        """Whether the line is of another session, and does not go on from this one."""
        other = _session_of(entry)
        if other is None or self._id is None or other == self._id:
            return False
        return str(entry.get("parentUuid")) not in self._places

    def take(self, line: int, entry: Object) -> None:
        self._id = self._id or _session_of(entry)
        kind, attachment = entry.get("type"), object_or_empty(entry.get("attachment"))
        if kind == "attachment" and attachment.get("type") == _QUEUED:
            kind, entry = "user", {**entry, "message": {"content": attachment.get("prompt")}}
        if kind in _SPOKEN:
            self._hear(line, str(kind), entry)
        elif kind == "system" and entry.get("subtype") == "compact_boundary":
            self._desk.notes.add("compacted", line)
            before = self._places.get(str(entry.get("logicalParentUuid")))
            self._link(entry, before[0] if before else self._latest.get(_agent_of(entry)))
        else:
            what = entry.get("subtype") or attachment.get("type") or ""
            self._desk.notes.add("line_left_out", line, f"{kind} {what}")
            self._link(entry, self._latest.get(_agent_of(entry)))

    def _link(self, entry: Object, thread: _Thread | None) -> None:
        """Where the line stands, for those that go on from it, even if it says nothing itself."""
        uuid = text_or_none(entry.get("uuid"))
        if uuid is not None and thread is not None:
            self._places.setdefault(uuid, (thread, len(thread.said)))

    def _hear(self, line: int, kind: str, entry: Object) -> None:
        message = entry.get("message")
        if not isinstance(message, dict):
            raise BadInput(f"{self._desk.place(line)}: message: must be an object")
        if entry.get("uuid") is not None and str(entry["uuid"]) in self._places:
            self._desk.notes.add("recorded_twice", line, str(entry["uuid"]))
            return
        thread = self._thread(line, kind, message, entry)
        if entry.get("isApiErrorMessage") is True or message.get("model") == _NOT_THE_MODEL:
            self._desk.notes.add("failed_exchange", line, str(message.get("content")))
        else:
            content = message.get("content")
            blocks = list(content) if isinstance(content, list) else [content or ""]
            fresh = [one for one in blocks if self._is_new(one, message, thread, line)]
            if fresh:
                # One request, one answer: some files name only the request.
                name = message.get("id") or (kind == "assistant" and entry.get("requestId"))
                thread.add(line, {"role": kind, "id": name or None}, fresh)
            self._note_task(fresh, entry)
        for name, value in (("model", message.get("model")), ("version", entry.get("version"))):
            if isinstance(value, str) and value != _NOT_THE_MODEL:
                self._about.setdefault(name, value)
        self._link(entry, thread)

    def _is_new(self, block: Json, message: Object, thread: _Thread, line: int) -> bool:
        if not isinstance(block, dict):
            return True
        kind, answer = block.get("type"), text_or_none(message.get("id"))
        key: str | None = None
        if kind == "tool_use":
            key = text_or_none(block.get("id"))
        elif kind == "tool_result":
            key = text_or_none(block.get("tool_use_id"))
        elif answer is not None:
            key = f"{answer} {digest(block)}"
        if key is None:
            return True
        if kind == "tool_use":
            self._callers.setdefault(key, thread)
        mark = f"{kind} {key}"
        if mark in self._seen:
            self._desk.notes.add("recorded_twice", line, mark)
            return False
        self._seen.add(mark)
        return True

    def _note_task(self, blocks: list[Json], entry: Object) -> None:
        """Which call sent a sub-agent: by what it was asked, or as the result says."""
        for block in objects_of(blocks):
            prompt = object_or_empty(block.get("input")).get("prompt")
            if isinstance(prompt, str) and isinstance(block.get("id"), str):
                self._tasks.setdefault(f"asked {prompt}", str(block["id"]))
                self._tasks[f"prompt {block['id']}"] = prompt
            told = object_or_empty(entry.get("toolUseResult")).get("agentId")
            agent = told or (entry.get("agentId") if entry.get("isSidechain") is False else None)
            if isinstance(agent, str) and isinstance(block.get("tool_use_id"), str):
                self._tasks[f"agent {agent}"] = str(block["tool_use_id"])

    def _thread(self, line: int, kind: str, message: Object, entry: Object) -> _Thread:
        place = self._places.get(str(entry.get("parentUuid")))
        agent = _agent_of(entry)
        if agent == "" and place is not None and place[0].agent is not None:
            agent = place[0].agent  # older files do not name their sub-agents
        if agent == "" and kind == "user":
            agent = text_or_none(entry.get("uuid")) or f"line-{line}"
        elif agent == "":
            agent = next((one for one in reversed(self._latest) if one is not None), "1")
        answered = [
            self._callers[str(block["tool_use_id"])]
            for block in objects_of(message.get("content"))
            if str(block.get("tool_use_id")) in self._callers
        ]
        thread = answered[0] if answered else place[0] if place else self._latest.get(agent)
        if thread is None or thread.agent != agent:
            thread = self._latest.get(agent) or self._begin(agent, line)
        elif place and place[0] is thread and kind == "user" and not answered:
            length = place[1]
            thread = thread if thread.goes_on_from(length) else self._branch(thread, length, line)
        self._latest[agent] = thread
        return thread

    def _begin(self, agent: str | None, line: int) -> _Thread:
        name = self._id or _UNNAMED
        thread = _Thread(name if agent is None else f"{name}/agent-{agent}")
        thread.agent = agent
        if agent is not None:
            self._desk.notes.add("sub_agent", line, thread.name)
            thread.about = {"parent": name, "agent": agent}
        self._threads.append(thread)
        return thread

    def _branch(self, thread: _Thread, length: int, line: int) -> _Thread:
        self._desk.notes.add("other_branch", line, thread.name)
        made = _Thread(thread.name, thread.said[:length])
        made.agent, made.about = thread.agent, {**thread.about, "parent": thread.name}
        self._threads.append(made)
        return made

    def finish(self) -> Iterator[Imported]:
        for thread in self._threads:
            if not thread.said:
                continue
            thread.about = {**self._about, **thread.about}
            if thread.agent is not None:
                asked = str(thread.said[0].blocks[0])
                call = self._tasks.get(f"agent {thread.agent}") or self._tasks.get(f"asked {asked}")
                own = thread.agent if thread.agent in self._callers else None
                thread.about["parent_call"] = call or own
                task = self._tasks.get(f"prompt {call or own}")
                if task is not None and thread.said[0].message["role"] == "assistant":
                    thread.said.insert(0, _Said(thread.said[0].line, {"role": "user"}, [task]))
            imported = imported_session(thread.talk(self._desk), self._desk)
            if imported is not None:
                yield imported


def _agent_of(entry: Object) -> str | None:
    """None: the session itself; empty: a sub-agent whose name the line does not give."""
    named = text_or_none(entry.get("agentId")) or text_or_none(entry.get("parent_tool_use_id"))
    if named is not None and (entry.get("isSidechain") is not False):
        return named
    return "" if entry.get("isSidechain") is True else None
