"""The OpenAI Responses API: lists of items, exchanges (one by one, a conversation at a time, or
chained by `previous_response_id`), and rollouts that hold a request and all that followed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callmark.datasets.importing.conversation import (
    Talk,
    Turns,
    imported_talk,
    name_by_content,
    object_or_empty,
    objects_of,
    rows_about,
    text_of_part,
    text_or_none,
)
from callmark.datasets.importing.desk import Desk, Imported, Object
from callmark.datasets.importing.histories import (
    ROLLOUT,
    ModelExchange,
    events_of,
    exchanges_of,
    failure_of,
    first_exchange,
)
from callmark.errors import BadInput
from callmark.records.jsontext import Json, canonical_json

_CALL, _OUTPUT = "_call", "_output"
# Calls that the provider runs itself, with what they were asked and what came of it.
_ASKED = ("arguments", "action", "actions", "operation", "queries", "code", "input", "prompt")
_CAME = ("output", "outputs", "results", "result")
_OWN_ITEMS = ("function_call", "function_call_output", "custom_tool_call", "reasoning")
_READ = frozenset(
    {
        *("interactions", "request", "response", "status", ROLLOUT, "reward", "items", "tools"),
        *("input", "output", "instructions", "previous_response_id", "conversation", "data"),
    }
)


def is_responses(entry: Object) -> bool:
    if ROLLOUT in entry:
        return True
    request, response = first_exchange(entry)
    if response is not None:
        return "input" in request or _is_answer(response)
    return any(map(_is_own_item, _bare_items(entry)))


def _is_own_item(item: Json) -> bool:
    kind = item.get("type") if isinstance(item, dict) else None
    return kind in _OWN_ITEMS or (isinstance(kind, str) and kind.endswith((_CALL, _CALL + _OUTPUT)))


def _is_answer(response: Json) -> bool:
    if isinstance(response, str | list):
        first = events_of(response)[:1]
        return any(str(event.get("type")).startswith("response.") for event in first)
    return isinstance(response, dict) and isinstance(response.get("output"), list)


def _bare_items(entry: Object) -> list[Json]:
    """The items of an entry that is no exchange, wherever it has them."""
    if isinstance(entry.get("output"), list) or isinstance(entry.get("input"), list):
        sides = (entry.get("input"), entry.get("output"))
        return [item for side in sides if isinstance(side, list) for item in side]
    found = next((entry[key] for key in ("items", "messages", "data") if key in entry), None)
    return found if isinstance(found, list) else []


def read_items_of(entry: Object, line: int, desk: Desk) -> Iterator[Imported]:
    items = Items(line, desk)
    items.instruct(entry)
    if isinstance(entry.get("input"), str):
        items.turns.tell("user", entry["input"])
    items.add_all(_bare_items(entry))
    sample_id, about = rows_about(entry, {*_READ, "messages"})
    talk = Talk(
        line=line,
        sample_id=sample_id or name_by_content(items.turns.messages),
        named=sample_id is not None,
        messages=items.turns.messages,
        tools=items.specs(entry.get("tools")) if "tools" in entry else None,
        about={"format": "responses", **about},
    )
    imported = imported_talk(talk, desk)
    if imported is not None:
        yield imported


def responses_exchanges(entry: Object, line: int, desk: Desk) -> Iterator[ModelExchange]:
    sample_id, about = rows_about(entry, _READ)
    task, reward = entry.get("_ng_task_index"), entry.get("reward")
    for exchange in exchanges_of(entry) or ():
        request = object_or_empty(exchange.get("request"))
        response = _response(exchange.get("response"))
        error = failure_of(exchange, response)
        sent, answered = Items(line, desk), Items(line, desk)
        sent.instruct(request)
        sent.add_input(request.get("input"))
        if error is None:
            answered.add_all(_entries(response.get("output"), "response.output", line, desk))
            if not answered.turns.messages:
                answered.turns.messages.append({"role": "assistant", "content": ""})
        thread = request.get("conversation")
        yield ModelExchange(
            line=line,
            sample_id=sample_id,
            sent=sent.turns.messages,
            answer=answered.turns.messages,
            tools=[*sent.specs(request.get("tools")), *answered.specs(None)],
            answer_id=text_or_none(response.get("id")),
            after=text_or_none(request.get("previous_response_id")),
            thread=text_or_none(thread.get("id") if isinstance(thread, dict) else thread),
            error=error,
            about={"format": "responses", "model": request.get("model"), **about},
            scores={} if reward is None else {"reward": reward},
            metadata={"cluster": f"task-{task}"} if isinstance(task, int) else {},
        )


def _entries(value: Json, where: str, line: int, desk: Desk) -> list[Json]:
    if not isinstance(value, list):
        raise BadInput(f"{desk.place(line)}: {where}: must be a list of items")
    return value


def _response(response: Json) -> Object:
    """The whole response; of a stream its last state, or the items that were finished."""
    if isinstance(response, dict):
        return response
    made: Object = {}
    done: list[Json] = []
    for event in events_of(response):
        match event:
            case {"type": "response.output_item.done", "item": dict(item)}:
                done.append(item)
            case {"type": "error"}:
                made["error"] = event.get("error") or event
            case {"response": dict(state)}:
                made |= state
    if not made and not done:
        return {"error": "the response is none of the Responses API"}
    return {**made, "output": made.get("output") or done}


class Items:
    """Turns out of items. `offered`: tools that came along with them."""

    def __init__(self, line: int, desk: Desk) -> None:
        self.turns = Turns()
        self.line = line
        self.offered: list[Object] = []
        self._desk = desk
        self._unnamed: list[str] = []  # calls without an id wait for the next output without one

    def instruct(self, request: Object) -> None:
        instructions = request.get("instructions")
        if isinstance(instructions, str) and instructions:
            self.turns.tell("system", instructions)
        elif isinstance(instructions, list):
            self.add_all(instructions)

    def add_input(self, given: Json) -> None:
        if isinstance(given, str):
            self.turns.tell("user", given)
        elif given is not None:
            self.add_all(_entries(given, "request.input", self.line, self._desk))

    def add_all(self, items: Sequence[Json]) -> None:
        for item in items:
            if isinstance(item, dict):
                self.add(item)
            else:
                self._desk.notes.add("part_left_out", self.line, "an item that is no object")
        self.turns.close()

    def add(self, item: Object) -> None:
        kind = item.get("type", "message")
        if kind == "message":
            self._add_message(item)
        elif kind == "reasoning":
            self._add_reasoning(item)
        elif not isinstance(kind, str):
            self._leave_out(item)
        elif kind.endswith(_CALL):
            self._add_call(item, kind.removesuffix(_CALL))
        elif kind.endswith(_OUTPUT):
            self._add_output(item, kind)
        elif kind == "agent_message":  # from another agent to this one
            self.turns.tell(
                "user", [one for one in objects_of(item.get("content")) if "text" in one]
            )
        elif kind in ("additional_tools", "mcp_list_tools"):
            self.offered += objects_of(item.get("tools"))
        else:
            self._leave_out(item)

    def _leave_out(self, item: Object) -> None:
        self._desk.notes.add("part_left_out", self.line, str(item.get("type")))

    def _add_message(self, item: Object) -> None:
        role, content = item.get("role"), item.get("content")
        if role in ("user", "system", "developer"):
            self.turns.tell(str(role), content)
        elif role != "assistant":
            self._desk.notes.add("part_left_out", self.line, f"a message of {role!r}")
        elif isinstance(content, str):
            self.turns.speak(content)
        else:
            for part in content if isinstance(content, list) else (content,):
                refusal = part.get("refusal") if isinstance(part, dict) else None
                text = refusal if isinstance(refusal, str) else text_of_part(part)
                if text is None:
                    self._desk.notes.add("part_left_out", self.line, "output that is no text")
                else:
                    self.turns.speak(text)

    def _add_reasoning(self, item: Object) -> None:
        content = item.get("content")
        said = objects_of(content) or self._desk.objects_in(
            item.get("summary"), self.line, "a thought"
        )
        texts = [text for part in said if (text := text_of_part(part))]
        texts += [content] if isinstance(content, str) and content else []
        self.turns.think("\n".join(texts))
        if not texts and item.get("encrypted_content"):
            self._desk.notes.add("hidden_reasoning", self.line)
        elif not texts and (content or item.get("summary")):
            self._desk.notes.add("part_left_out", self.line, "a thought that is no text")

    def _add_call(self, item: Object, kind: str) -> None:
        """Functions and custom tools have a name; the provider's own are called after the kind."""
        name = item.get("name") if kind in ("function", "custom_tool", "mcp") else kind
        given = next((item[key] for key in _ASKED if item.get(key) is not None), None)
        call_id = text_or_none(item.get("call_id")) or text_or_none(item.get("id"))
        if kind == "function":
            self.turns.call(name, "" if given is None else given, call_id)
            return
        self.turns.call(name, _arguments(given, kind), call_id)
        came = next((item[key] for key in _CAME if item.get(key) is not None), None)
        error = item.get("error")
        if error:
            self.turns.answer(error if isinstance(error, str) else canonical_json(error), call_id,
                              failed=True)  # fmt: skip
        elif came is not None:
            self.turns.answer(came if isinstance(came, str) else canonical_json(came), call_id)
        elif call_id is not None and item.get("call_id") is None:
            self._unnamed.append(call_id)

    def _add_output(self, item: Object, kind: str) -> None:
        output, failed = item.get("output"), item.get("status") == "failed"
        if kind == "tool_search_output":
            self.offered += objects_of(item.get("tools"))
            output = canonical_json([tool.get("name") for tool in objects_of(item.get("tools"))])
        elif isinstance(output, dict) and "content" in output:  # older rollouts of Codex
            failed, output = failed or output.get("success") is False, output["content"]
        call_id = text_or_none(item.get("call_id"))
        if call_id is None and self._unnamed:
            call_id = self._unnamed.pop(0)
        self.turns.answer(output, call_id, failed=failed)

    def specs(self, tools: Json) -> list[Json]:
        """The tools of a request and those that came later; the provider's own have no schema."""
        specs: dict[str, Json] = {}
        for tool in _flat([*objects_of(tools), *self.offered]):
            name = text_or_none(tool.get("name")) or text_or_none(tool.get("type"))
            if name is None or tool.get("type") == "mcp":
                continue  # a server of tools, which it lists in an item of its own
            spec: Object = {"name": name}
            given = object_or_empty(tool.get("function")) or tool
            for key in ("description", "parameters", "input_schema"):
                if given.get(key) is not None:
                    spec[key] = given[key]
            spec["name"] = text_or_none(given.get("name")) or name
            if "parameters" not in spec and "input_schema" not in spec:
                self._desk.notes.add("tool_without_schema", self.line, name)
                spec["parameters"] = {"type": "object"}
            specs.setdefault(str(spec["name"]), spec)
        return list(specs.values())


def _arguments(given: Json, kind: str) -> Json:
    """Arguments are an object: a text without a form becomes the one argument `input`."""
    if isinstance(given, dict) or (isinstance(given, str) and kind == "mcp"):
        return given
    return {} if given is None else {"input": given}


def _flat(tools: Sequence[Object]) -> Iterator[Object]:
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _flat(objects_of(tool.get("tools")))
        else:
            yield tool
