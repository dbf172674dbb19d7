"""Conversations out of the spans of one trace: growing prompts are one conversation, a call that
left two spans is one call, a result belongs to the call that asked for it."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from callmark.datasets.importing.conversation import function_call
from callmark.datasets.importing.desk import Notes, Object
from callmark.datasets.importing.span_messages import (
    FAILED,
    OWN_DEEDS,
    WRITTEN_OUT,
    assistant_message,
    key_of_call,
    text_of_result,
)
from callmark.datasets.importing.spans import SpanKind, SpanStep
from callmark.records.jsontext import Json, canonical_json, digest
from callmark.records.trace import is_error_result
from callmark.runners.messages import text_of

_MARK_BYTES = 16
# An agent may give the model's text back with the word at which it had been stopped.
_STOPPED_AT = re.compile(r"(?:\s*<[/|\w]{1,20}>)+\Z")


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation of a trace. `spans`: of each assistant message the span that gave it, None if
    it stands only in a prompt; `heads`: marks of the messages that its first prompt held, by
    which it may continue another one; `end`: the mark of the whole; `parent`: the sample whose
    agent called this one; `deeds`: how often the model's provider ran a tool of its own."""

    line: int
    trace: str
    sample_id: str
    messages: list[Object]
    spans: list[str | None]
    heads: list[bytes]
    end: bytes
    dialect: str
    tools: list[Json] = []
    agent: str | None = None
    parent: str | None = None
    model: str | None = None
    usage: tuple[int, int] = (0, 0)
    errors: list[Object] = []
    row: Object = {}
    scores: Object = {}
    deeds: int = 0


def mark_message(before: bytes, message: Object) -> bytes:
    """The mark of a conversation after one more message. What says the same has the same mark:
    ids, thoughts, instructions and how an answer was cut into messages do not count."""
    for atom in _atoms(message):
        text = f"{before.hex()} {canonical_json(atom)}".encode("utf-8", "surrogatepass")
        before = hashlib.sha256(text).digest()[:_MARK_BYTES]
    return before


def _atoms(message: Object) -> Iterator[Json]:
    role, content = message["role"], message.get("content")
    text = text_of(content).strip() if isinstance(content, str | list | None) else content
    if role == "assistant":
        if isinstance(text, str):
            text = _STOPPED_AT.sub("", text)
        if text:
            yield ["assistant", text]
        yield from (["call", *key_of_call(call)] for call in _calls(message))
    elif role == "user":
        yield ["user", text or content]
    elif role == "tool":
        yield ["result", text]


class _Growing:
    """A thread while its trace is read."""

    def __init__(self, first: SpanStep) -> None:
        self.first = first
        self.messages: list[Object] = []
        self.spans: list[str | None] = []
        self.told: list[Json] = []  # its system messages
        self.heads: list[bytes] = []
        self.end = b""
        self.tools: dict[str, Json] = {}
        self.models: list[str] = []
        self.usage = (0, 0)
        self.errors: list[Object] = []
        self.deeds = 0

    def fork(self, step: SpanStep, messages: int, turns: int) -> _Growing:
        made = _Growing(step)
        made.messages, made.spans = self.messages[:messages], self.spans[:turns]
        made.told = [one.get("content") for one in made.messages if one["role"] == "system"]
        made.tools, made.heads = dict(self.tools), list(self.heads)
        made.deeds = self.deeds
        return made

    def add(self, message: Object, span: str | None, notes: Notes, line: int) -> None:
        if message["role"] == WRITTEN_OUT:
            notes.add("call_written_out", line, text_of(message.get("content")))
            return
        deeds = message.get(OWN_DEEDS)
        if isinstance(deeds, int):
            self.deeds += deeds
            for _ in range(deeds):
                notes.add("provider_tool", line, self.first.span.name)
            message = {name: value for name, value in message.items() if name != OWN_DEEDS}
        if message["role"] == "assistant":
            if span is None and not any(_atoms(message)):
                return  # thoughts alone, of an answer that is there already
            self.spans.append(span)
        elif message["role"] == "system":
            self.told.append(message.get("content"))
        self.messages.append(message)


class _Place(msgspec.Struct, frozen=True):
    """A moment of a thread: so many messages, so many of them the assistant's."""

    thread: _Growing
    messages: int
    turns: int


class TraceThreads:
    """The threads of one trace. Steps are given in the order of their beginning."""

    def __init__(self, steps: Sequence[tuple[str, SpanStep]], notes: Notes) -> None:
        self._notes = notes
        self._dialects = {step.span.id: dialect for dialect, step in steps}
        self._steps = {step.span.id: step for _, step in steps}
        self._ends: dict[bytes, _Place] = {}
        self._made: dict[str, _Place] = {}  # id of a call → where its thread was then
        self._threads: list[_Growing] = []
        self._ran: dict[str, _Growing] = {}  # span of a tool → the thread that called it
        self._owners: dict[str, _Growing] = {}  # span of an agent → its first thread
        self._bare: dict[str, SpanStep] = {}
        self._nearest: dict[tuple[SpanKind, tuple[SpanKind, ...]], dict[str, SpanStep | None]] = {}

    @property
    def unsaid(self) -> list[SpanStep]:
        """Calls of a model of which nothing is known but that they were made."""
        return list(self._bare.values())

    def read(self) -> list[Thread]:
        steps = list(self._steps.values())
        speaking = self._speaking(steps)
        for step in speaking:
            self._take(step)
        ran = [step for step in steps if step.kind == "tool"]
        if not speaking:
            self._take_unsaid(steps)
        else:
            self._give_results(ran)
        for step in steps:
            self._note(step)
        return self._finish()

    def _speaking(self, steps: Iterable[SpanStep]) -> list[SpanStep]:
        """The calls of a model that say what was said. Of one inside another the outer counts; an
        agent's own account counts where no call below it has one."""
        found: list[SpanStep] = []
        covered: set[str] = set()
        for step in steps:
            if step.kind != "model":
                continue
            above = self._above(step, "model", until=("agent", "tool"))
            if above is not None and above.has_content:
                self._notes.add("span_merged", step.span.line, step.span.name)
            elif step.has_content:
                found.append(step)
                self._cover(step, covered)
            else:
                self._bare[step.span.id] = step
        for name in [one for one in self._bare if one in covered]:
            step = self._bare.pop(name)
            self._notes.add("span_merged", step.span.line, step.span.name)
        agents = [
            step
            for step in steps
            if step.kind == "agent" and step.has_content and step.span.id not in covered
        ]
        return sorted([*found, *agents], key=lambda step: step.span.start)

    def _cover(self, step: SpanStep, covered: set[str]) -> None:
        """Everything around it is told by it."""
        parent = step.span.parent
        while parent in self._steps and parent not in covered:
            covered.add(parent)
            parent = self._steps[parent].span.parent

    def _above(
        self, step: SpanStep, kind: SpanKind, until: tuple[SpanKind, ...] = ()
    ) -> SpanStep | None:
        """The nearest span of a kind around it. A circle of parents ends where it began; what was
        found is remembered for all on the way, so that deep trees take no longer than flat ones."""
        known = self._nearest.setdefault((kind, until), {})
        way: list[str] = []
        found, parent = None, step.span.parent
        while parent in self._steps and parent not in known:
            known[parent] = None
            way.append(parent)
            one = self._steps[parent]
            if one.kind == kind or one.kind in until:
                found = one if one.kind == kind else None
                break
            parent = one.span.parent
        else:
            found = known.get(parent)
        known.update(dict.fromkeys(way, found))
        return found if found is not step else None

    # --- prompts that grow -----------------------------------------------------------------------

    def _take(self, step: SpanStep) -> None:
        before = step.before or []
        marks = _marks(before)
        answer = assistant_message(step.output or [])
        end = marks[-1] if marks else b""
        end = end if answer is None else mark_message(end, answer)
        if answer is not None and end in self._ends and end not in marks:
            self._notes.add("span_merged", step.span.line, step.span.name)
            return
        place, rest = self._continues(before, marks)
        if place is None:
            thread = _Growing(step)
            thread.heads = marks
            self._threads.append(thread)
        elif len(place.thread.messages) > place.messages:
            thread = place.thread.fork(step, place.messages, place.turns)
            self._notes.add("branched", step.span.line, step.span.name)
            self._threads.append(thread)
        else:
            thread = place.thread
            self._note_instructions(before, thread, step)
        for message in rest:
            thread.add(message, None, self._notes, step.span.line)
        if answer is not None:
            thread.add(answer, step.span.id, self._notes, step.span.line)
        self._account(step, thread)
        thread.end = end
        here = _Place(thread, len(thread.messages), len(thread.spans))
        if end:
            self._ends[end] = here
        for call in _calls(answer or {}):
            if isinstance(call_id := _id_of(call), str):
                self._made[call_id] = here

    def _continues(
        self, before: list[Object], marks: list[bytes]
    ) -> tuple[_Place | None, list[Object]]:
        """Which thread this prompt continues, and what it adds: the one whose whole it begins with,
        or the one that made a call that it answers."""
        for at in range(len(before) - 1, -1, -1):
            place = self._ends.get(marks[at])
            if place is not None:
                return place, before[marks.index(marks[at]) + 1 :]
        for at in range(len(before) - 1, -1, -1):
            ids = [_id_of(call) for call in _calls(before[at])]
            named = next(
                (self._made[one] for one in ids if isinstance(one, str) and one in self._made), None
            )
            if named is not None:
                return named, before[at + 1 :]
        for message in before:
            call_id = message.get("tool_call_id")
            if isinstance(call_id, str) and call_id in self._made:
                return self._made[call_id], [one for one in before if one["role"] != "system"]
        return None, before

    def _note_instructions(self, before: list[Object], thread: _Growing, step: SpanStep) -> None:
        told = [one.get("content") for one in before if one["role"] == "system"]
        if told and told != thread.told:
            self._notes.add("other_instructions", step.span.line, step.span.name)

    def _account(self, step: SpanStep, thread: _Growing) -> None:
        for tool in step.tools or self._named_tools(step):
            thread.tools.setdefault(digest(tool), tool)
        if step.model is not None:
            thread.models.append(step.model)
        thread.usage = (thread.usage[0] + step.usage[0], thread.usage[1] + step.usage[1])
        if step.span.error is not None:
            thread.errors.append(_failure(step))
        if step.others:
            self._notes.add("other_choice", step.span.line, step.span.name)

    def _named_tools(self, step: SpanStep) -> tuple[Json, ...]:
        """Names without specs, which an agent's span may list."""
        agent = self._above(step, "agent")
        return tuple(one for one in agent.tools if isinstance(one, str)) if agent else ()

    # --- tools -----------------------------------------------------------------------------------

    def _give_results(self, ran: list[SpanStep]) -> None:
        """Each run of a tool to the call with its id, else to the first open one that asks the
        same, else to the first of its name: not every log writes arguments as they were given."""
        by_id: dict[str, list[_Call]] = {}
        by_key: dict[tuple[str, str | None], deque[_Call]] = {}
        for thread in self._threads:
            for at, message in enumerate(thread.messages):
                for call in _calls(message):
                    one = _Call(thread, at, call)
                    if isinstance(call_id := _id_of(call), str):
                        by_id.setdefault(call_id, []).append(one)
                    name, arguments = key_of_call(call)
                    for key in ((name, arguments), (name, None)):
                        by_key.setdefault(key, deque()).append(one)
        results: dict[int, list[tuple[_Call, SpanStep]]] = {}
        used: set[int] = set()
        for step in ran:
            named = _open_in_each(by_id.get(step.call_id or "", []), used)
            found = named or _first_unused(step, by_key, used)
            if not found:
                self._notes.add("tool_span_without_call", step.span.line, step.name)
                continue
            self._ran[step.span.id] = found[0].thread
            for asking in found:
                used.add(id(asking))
                results.setdefault(id(asking.thread), []).append((asking, step))
        for thread in self._threads:
            _insert_results(thread, results.get(id(thread), []))

    def _take_unsaid(self, steps: Sequence[SpanStep]) -> None:
        """Where no span says what was said: turns and calls are all that is known. What runs below
        a tool is another agent's."""
        groups: dict[str, list[SpanStep]] = {}
        for step in steps:
            if step.kind in ("model", "tool"):
                above = self._above(step, "tool")
                groups.setdefault(above.span.id if above else "", []).append(step)
        for group in groups.values():
            ran = [step for step in group if step.kind == "tool"]
            if not ran or len(ran) == len(group):
                for step in ran:
                    self._notes.add("tool_span_without_call", step.span.line, step.name)
                continue
            self._take_bare_turns(group)

    def _take_bare_turns(self, group: list[SpanStep]) -> None:
        models = [step for step in group if step.kind == "model"]
        thread = _Growing(models[0])
        self._threads.append(thread)
        for step in group:
            if step.kind == "model":
                thread.messages.append({"role": "assistant", "content": ""})
                thread.spans.append(step.span.id)
                self._account(step, thread)
                self._bare.pop(step.span.id, None)
                continue
            asked = next(
                (one for one in reversed(thread.messages) if one["role"] == "assistant"), None
            )
            if asked is None:
                asked = {"role": "assistant", "content": ""}
                thread.messages.append(asked)
                thread.spans.append(None)
            call_id = step.call_id or step.span.id
            call = function_call(
                step.name, {} if step.arguments is None else step.arguments, call_id
            )
            asked["tool_calls"] = [*_calls(asked), call]
            self._ran[step.span.id] = thread
            if step.has_result or step.span.error is not None:
                thread.messages.append(_result_of(step, call_id))
        self._notes.add("text_not_recorded", thread.first.span.line, thread.first.span.trace)

    # --- the end ---------------------------------------------------------------------------------

    def _note(self, step: SpanStep) -> None:
        span = step.span
        if span.error is not None:
            self._notes.add("span_error", span.line, f"{span.name}: {span.error}")
        if step.kind == "other":
            self._notes.add("other_span", span.line, span.name)
        elif step.kind in ("structure", "agent"):
            self._notes.add("structure_span", span.line, span.name)
            if span.error is not None and self._threads:
                self._threads[0].errors.append(_failure(step))

    def _finish(self) -> list[Thread]:
        threads: list[Thread] = []
        names: dict[int, str] = {}
        row: Object = {}
        scores: Object = {}
        for step in self._steps.values():
            row |= step.span.row
            scores |= step.scores
        for number, grown in enumerate(self._threads, start=1):
            trace = grown.first.span.trace
            names[id(grown)] = trace if number == 1 else f"{trace}-{number}"
            own = self._above(grown.first, "agent")
            if own is not None:
                self._owners.setdefault(own.span.id, grown)
        for grown in self._threads:
            agent = self._above(grown.first, "agent")
            parent = self._parent(grown, agent)
            threads.append(
                Thread(
                    line=grown.first.span.line,
                    trace=grown.first.span.trace,
                    sample_id=names[id(grown)],
                    messages=[_settle(one) for one in grown.messages],
                    spans=grown.spans,
                    heads=grown.heads,
                    end=grown.end,
                    dialect=self._dialects[grown.first.span.id],
                    tools=list(grown.tools.values()),
                    agent=agent.name if agent else None,
                    parent=names.get(id(parent)),
                    model=grown.models[-1] if grown.models else None,
                    usage=grown.usage,
                    errors=grown.errors,
                    deeds=grown.deeds,
                    row=row,
                    scores=scores if not threads else {},
                )
            )
        return threads

    def _parent(self, grown: _Growing, agent: SpanStep | None) -> _Growing | None:
        """The thread whose call this agent answers, else the one of the agent around it."""
        tool = self._above(grown.first, "tool")
        seen: set[str] = set()
        while tool is not None and tool.span.id not in seen:
            seen.add(tool.span.id)
            caller = self._ran.get(tool.span.id)
            if caller is not None and caller is not grown:
                return caller
            tool = self._above(tool, "tool")
        around = self._above(agent, "agent") if agent else None
        while around is not None and around.span.id not in seen:
            seen.add(around.span.id)
            owner = self._owners.get(around.span.id)
            if owner is not None and owner is not grown:
                return owner
            around = self._above(around, "agent")
        return None


class _Call(msgspec.Struct, frozen=True):
    """One call in a thread, and which message holds it."""

    thread: _Growing
    at: int
    call: Object


def _open_in_each(calls: list[_Call], used: set[int]) -> list[_Call]:
    """Threads that forked share a call; in one thread an id that comes again is another call."""
    found: dict[int, _Call] = {}
    for call in calls:
        if id(call) not in used:
            found.setdefault(id(call.thread), call)
    return list(found.values())


def _first_unused(
    step: SpanStep, calls: Mapping[tuple[str, str | None], deque[_Call]], used: set[int]
) -> list[_Call]:
    for key in ((step.name, _arguments_key(step.arguments)), (step.name, None)):
        waiting = calls.get(key, deque())
        while waiting and id(waiting[0]) in used:
            waiting.popleft()
        if waiting:
            return [waiting[0]]
    return []


def _failure(step: SpanStep) -> Object:
    """Where it failed: such a span may have no turn."""
    return {"span": step.span.id, "name": step.span.name, "error": step.span.error}


def _marks(messages: list[Object]) -> list[bytes]:
    marks: list[bytes] = []
    for message in messages:
        marks.append(mark_message(marks[-1] if marks else b"", message))
    return marks


def _calls(message: Object) -> list[Object]:
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else []


def _id_of(call: Object) -> Json:
    return call.get("id")


def _arguments_key(arguments: Json) -> str:
    if isinstance(arguments, str):
        return arguments
    return canonical_json({} if arguments is None else arguments)


def _result_of(step: SpanStep, call_id: Json) -> Object:
    text = text_of_result(step.result)
    made: Object = {"role": "tool", "content": text}
    if isinstance(call_id, str):
        made["tool_call_id"] = call_id
    if step.span.error is not None:
        made |= {FAILED: True, "content": text or step.span.error}
    return made


def _answers_none(message: Object, known: set[Json]) -> bool:
    call_id = message.get("tool_call_id")
    return call_id is None or call_id not in known


def _insert_results(thread: _Growing, results: list[tuple[_Call, SpanStep]]) -> None:
    """Results that no message has, behind the calls that they answer; those that are there are
    marked as errors if the tool's span is."""
    answered: dict[Json, list[int]] = {}
    for at, message in enumerate(thread.messages):
        if message["role"] == "tool":
            answered.setdefault(message.get("tool_call_id"), []).append(at)
    known = {_id_of(call) for message in thread.messages for call in _calls(message)}
    waiting: dict[int, list[Object]] = {}
    for call, step in results:
        call_id = _id_of(call.call)
        places = answered.get(call_id, []) if isinstance(call_id, str) else []
        behind = bisect(places, call.at)
        following = thread.messages[call.at + 1 : call.at + 2]
        if behind < len(places):
            if step.span.error is not None:
                at = places[behind]
                thread.messages[at] = {**thread.messages[at], FAILED: True}
        elif following and following[0]["role"] == "tool" and _answers_none(following[0], known):
            continue  # it is there: some logs name calls and results by different ids
        elif step.has_result or step.span.error is not None:
            waiting.setdefault(call.at, []).append(_result_of(step, call_id))
    if not waiting:
        return
    made: list[Object] = []
    held: list[Object] = []
    for at, message in enumerate(thread.messages):
        if message["role"] != "tool":
            made += held
            held = []
        made.append(message)
        held += waiting.get(at, [])
    thread.messages = made + held


def _settle(message: Object) -> Object:
    """As it is written: a result that failed says so."""
    if FAILED not in message:
        return message
    made = {name: value for name, value in message.items() if name != FAILED}
    text = text_of(message.get("content"))
    if not is_error_result(text):
        made["content"] = json.dumps({"error": text or "error"}, ensure_ascii=False)
    return made
