"""The Agent Trajectory Interchange Format, versions 1.0 to 1.8: steps with calls, and what was
observed after them."""

from __future__ import annotations

from collections.abc import Iterator

from callmark.datasets.importing.conversation import (
    Talk,
    Turns,
    content_of,
    imported_session,
    name_by_content,
    object_or_empty,
    objects_of,
    text_of_part,
    text_or_none,
)
from callmark.datasets.importing.desk import Desk, Imported, Object, Record
from callmark.errors import BadInput
from callmark.records.jsontext import Json

_SOURCES = ("system", "user", "agent")
_READ = frozenset({"steps", "agent", "subagent_trajectories", "final_metrics", "session_id"})


def is_atif(entry: Object) -> bool:
    version = entry.get("schema_version")
    is_named = isinstance(version, str) and version.upper().startswith("ATIF")
    return is_named or (isinstance(entry.get("steps"), list) and "agent" in entry)


def read_atif(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    """A trajectory for each record, those of its sub-agents after it."""
    for line, entry in records:
        if not isinstance(entry, dict):
            raise BadInput(f"{desk.place(line)}: must be a JSON object")
        yield from _read_trajectory(entry, line, None, desk)


def _read_trajectory(
    entry: Object, line: int, parent: str | None, desk: Desk
) -> Iterator[Imported]:
    steps = entry.get("steps")
    if not isinstance(steps, list):
        raise BadInput(f"{desk.place(line)}: steps: must be a list")
    trajectory = _Trajectory(line, desk)
    for at, step in enumerate(steps):
        if not isinstance(step, dict) or step.get("source") not in _SOURCES:
            place = f"{desk.place(line)}: steps[{at}].source"
            raise BadInput(f"{place}: must be one of agent, system, user")
        trajectory.take(step)
    trajectory.turns.close()
    agent = object_or_empty(entry.get("agent"))
    messages = trajectory.turns.messages
    name = text_or_none(entry.get("trajectory_id")) or text_or_none(entry.get("session_id"))
    own = name or name_by_content(messages)
    told = object_or_empty(agent.get("extra")).get("parent_session_id")
    above = parent or text_or_none(told)
    if above is not None:
        desk.notes.add("sub_agent", line, own)
    tools = agent.get("tool_definitions")
    talk = Talk(
        line=line,
        sample_id=own,
        messages=messages,
        context=trajectory.context,
        tools=objects_of(tools) if isinstance(tools, list) and tools else None,
        about={
            "format": "atif",
            "agent": {key: value for key, value in agent.items() if key != "tool_definitions"},
            "parent": above,
            "sub_agents": trajectory.sub_agents or None,
            **{key: value for key, value in entry.items() if key not in _READ},
        },
    )
    imported = imported_session(talk, desk)
    if imported is not None:
        yield imported
    for inner in desk.objects_in(entry.get("subagent_trajectories"), line, "a sub-agent"):
        yield from _read_trajectory(inner, line, own, desk)


class _Trajectory:
    """`context`: how many messages the leading copied steps made; `sub_agents`: what is referred to
    elsewhere."""

    def __init__(self, line: int, desk: Desk) -> None:
        self.turns = Turns()
        self.context = 0
        self.sub_agents: list[Json] = []
        self._line = line
        self._desk = desk
        self._is_past_copies = False

    def take(self, step: Object) -> None:
        is_copy = step.get("is_copied_context") is True
        if is_copy and self._is_past_copies:
            self._desk.notes.add("recorded_twice", self._line, f"step {step.get('step_id')}")
            return
        self._is_past_copies = not is_copy
        self.turns.close()
        if step["source"] == "agent":
            self._add_turn(step)
        elif step.get("message") or not step.get("observation"):
            self.turns.tell(str(step["source"]), step.get("message"))
        self._add_observation(step)
        if is_copy:
            self._desk.notes.add("context_step", self._line, f"step {step.get('step_id')}")
            self.turns.close()
            self.context = len(self.turns.messages)

    def _add_turn(self, step: Object) -> None:
        message = step.get("message")
        if message is None and not step.get("tool_calls"):
            self._desk.notes.add("part_left_out", self._line, "an agent's step without a message")
        self.turns.think(text_or_none(step.get("reasoning_content")) or "")
        for part in message if isinstance(message, list) else [message or ""]:
            text = text_of_part(part)
            if text is None:
                self._desk.notes.add("part_left_out", self._line, "a message that is no text")
            else:
                self.turns.speak(text, "\n")
        for call in self._desk.objects_in(step.get("tool_calls"), self._line, "a call"):
            self.turns.call(
                call.get("function_name"), call.get("arguments"), call.get("tool_call_id")
            )

    def _add_observation(self, step: Object) -> None:
        has_calls = bool(objects_of(step.get("tool_calls")))
        observed = object_or_empty(step.get("observation")).get("results")
        for result in self._desk.objects_in(observed, self._line, "a result"):
            for reference in objects_of(result.get("subagent_trajectory_ref")):
                self.sub_agents.append(
                    text_or_none(reference.get("trajectory_id")) or reference.get("session_id")
                )
            content, call_id = result.get("content"), text_or_none(result.get("source_call_id"))
            if content is None and result.get("subagent_trajectory_ref") and call_id is None:
                continue
            if call_id is None and not has_calls and self.turns.is_waiting:
                # Read as a result it would answer a call of an earlier step.
                self.turns.tell("user", content_of(content))
            else:
                failed = object_or_empty(result.get("extra")).get("is_error") is True
                self.turns.answer(content, call_id, failed=failed)
