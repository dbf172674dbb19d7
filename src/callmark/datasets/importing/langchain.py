"""Messages of LangChain as it writes them (`type` human, ai, tool; `lc` constructors; the state of
a graph), and runs of LangSmith with their children or one by one."""

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
from callmark.datasets.importing.desk import Desk, Imported, Object, Record
from callmark.datasets.importing.histories import Histories, ModelExchange
from callmark.errors import BadInput
from callmark.records.jsontext import Json

_CLASSES = {
    "HumanMessage": "human",
    "AIMessage": "ai",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
    "ChatMessage": "chat",
    "RemoveMessage": "remove",
}
_ROLES = {
    "user": "human",
    "assistant": "ai",
    "model": "ai",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_KINDS = frozenset({*_CLASSES.values(), "AIMessageChunk", "HumanMessageChunk", "function"})
_READ = frozenset({"messages", "values", "tools", "lc", "type", "kwargs"})
_MAX_NESTED = 200  # runs below runs


def is_langchain(entry: Object) -> bool:
    if isinstance(entry.get("run_type"), str) and ("inputs" in entry or "outputs" in entry):
        return True
    first = next(iter(objects_of(_messages_in(entry))), None)
    return first is not None and "role" not in first and _kind_of(first)[0] in _CLASSES.values()


def _messages_in(entry: Object) -> Json:
    """Below `messages`, in the values of a graph's state, or one list within a list."""
    found = entry.get("messages", object_or_empty(entry.get("values")).get("messages"))
    if isinstance(found, list) and len(found) == 1 and isinstance(found[0], list):
        return found[0]
    return found


def _kind_of(message: Object) -> tuple[str, Object]:
    """What kind of message it is, and its fields, in any of the ways to write one."""
    if "lc" in message:
        path = message.get("id")
        name = str(path[-1]).removesuffix("Chunk") if isinstance(path, list) and path else ""
        return _CLASSES.get(name, name), object_or_empty(message.get("kwargs"))
    data = message.get("data")
    fields = data if isinstance(data, dict) else message
    kind = message.get("type")
    if isinstance(kind, str) and kind in _KINDS:
        kind = _CLASSES.get(kind.removesuffix("Chunk"), kind)
        return ("tool" if kind == "function" else kind), fields
    return _ROLES.get(str(message.get("role")), str(message.get("role"))), message


def read_langchain(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    running = Histories(desk)
    for line, value in records:
        entry: Json = {"messages": value} if isinstance(value, list) else value
        if not isinstance(entry, dict):
            raise BadInput(f"{desk.place(line)}: must be a JSON object or a list of messages")
        if "run_type" not in entry:
            yield from _read_messages(entry, line, desk)
        elif objects_of(entry.get("child_runs")):
            yield from _read_trace(entry, line, desk)
        elif entry["run_type"] == "llm":
            yield from running.take(_exchange(entry, None, line, desk))
        elif entry.get("parent_run_id") is None and not entry.get("child_run_ids"):
            yield from _read_trace(entry, line, desk)
        else:
            desk.notes.add("line_left_out", line, f"a run of {entry['run_type']}")
    yield from running.finish()


def _read_messages(entry: Object, line: int, desk: Desk) -> Iterator[Imported]:
    messages = _messages_in(entry)
    if not isinstance(messages, list):
        raise BadInput(f"{desk.place(line)}: messages: must be a list")
    turns = Turns()
    _add_all(messages, turns, line, desk)
    sample_id, about = rows_about(entry, _READ)
    talk = Talk(
        line=line,
        sample_id=sample_id or name_by_content(turns.messages),
        named=sample_id is not None,
        messages=turns.messages,
        tools=objects_of(entry["tools"]) if "tools" in entry else None,
        about={"format": "langchain", **about},
    )
    imported = imported_talk(talk, desk)
    if imported is not None:
        yield imported


def _read_trace(root: Object, line: int, desk: Desk) -> Iterator[Imported]:
    """The calls of the model in a trace are its exchanges; what has none is its own messages."""
    runs = sorted(_runs(root, desk, line), key=_order)
    asked = [run for run in runs if run.get("run_type") == "llm"]
    for run in runs:
        if run.get("run_type") not in ("llm", "tool") and run is not root:
            desk.notes.add("line_left_out", line, f"a run of {run.get('run_type')}")
    if asked and runs[-1].get("run_type") == "tool":
        # The others' results stand in the next request to the model.
        desk.notes.add("line_left_out", line, "a tool that ran after the model's last turn")
    name = text_or_none(root.get("id"))
    if not asked:
        outputs, inputs = object_or_empty(root.get("outputs")), object_or_empty(root.get("inputs"))
        found = _messages_in(outputs) or _messages_in(inputs)
        if not isinstance(found, list):
            desk.notes.add("no_prompt", line, str(name))
            return
        yield from _read_messages({"id": name, "messages": found}, line, desk)
        return
    histories = Histories(desk, session=True)
    for run in asked:
        yield from histories.take(_exchange(run, name, line, desk))
    yield from histories.finish()


def _runs(root: Object, desk: Desk, line: int) -> Iterator[Object]:
    waiting = [(root, 0)]
    while waiting:
        run, depth = waiting.pop()
        yield run
        children = desk.objects_in(run.get("child_runs"), line, "a run")
        if depth < _MAX_NESTED:
            waiting += [(child, depth + 1) for child in reversed(children)]
        elif children:
            desk.notes.add("line_left_out", line, "runs that are nested too deep")


def _order(run: Object) -> str:
    return text_or_none(run.get("dotted_order")) or text_or_none(run.get("start_time")) or ""


def _exchange(run: Object, name: str | None, line: int, desk: Desk) -> ModelExchange:
    inputs, outputs = object_or_empty(run.get("inputs")), object_or_empty(run.get("outputs"))
    sent, answered = Turns(), Turns()
    messages = _messages_in(inputs)
    if isinstance(messages, list):
        _add_all(messages, sent, line, desk)
    else:
        sent.tell("user", next((one for one in inputs.values() if isinstance(one, str)), ""))
    error = run.get("error")
    _add_all(_answers(outputs), answered, line, desk)
    parameters = object_or_empty(object_or_empty(run.get("extra")).get("invocation_params"))
    tools = next((one for one in (parameters.get("tools"), inputs.get("tools")) if one), None)
    return ModelExchange(
        line=line,
        sample_id=name,
        sent=sent.messages,
        answer=answered.messages,
        tools=objects_of(tools),
        error=str(error) if error and not answered.messages else None,
        about={
            "format": "langchain",
            "model": parameters.get("model"),
            "trace": run.get("trace_id"),
        },
    )


def _answers(outputs: Object) -> Sequence[Json]:
    """The model's message, wherever this kind of run puts it."""
    generations = outputs.get("generations")
    while isinstance(generations, list) and generations and isinstance(generations[0], list):
        generations = generations[0]
    found = [one.get("message") or {"type": "ai", "content": one.get("text")}
             for one in objects_of(generations)[:1]]  # fmt: skip
    found = found or [one.get("message") for one in objects_of(outputs.get("choices"))[:1]]
    listed = _messages_in(outputs)
    if not found and isinstance(listed, list):
        return listed
    plain = (outputs.get(name) for name in ("output", "message"))
    return found or [one for one in plain if one is not None][:1] or ([outputs] if outputs else [])


def _add_all(messages: Sequence[Json], turns: Turns, line: int, desk: Desk) -> None:
    for message in messages:
        if isinstance(message, str):
            turns.speak(message)
            continue
        kind, fields = _kind_of(message) if isinstance(message, dict) else ("", {})
        if kind == "chat":
            kind = _ROLES.get(str(fields.get("role")), "human")
        if kind == "ai":
            turns.close()
            _add_answer(fields, turns, line, desk)
        elif kind == "tool":
            failed = fields.get("status") == "error"
            turns.answer(
                fields.get("content"), fields.get("tool_call_id"), fields.get("name"), failed=failed
            )
        elif kind in ("human", "system"):
            turns.tell("user" if kind == "human" else "system", fields.get("content"))
        else:
            desk.notes.add("part_left_out", line, f"a message of the kind {kind!r}")
    turns.close()


def _add_answer(fields: Object, turns: Turns, line: int, desk: Desk) -> None:
    more = object_or_empty(fields.get("additional_kwargs"))
    thought = text_or_none(more.get("reasoning_content"))
    turns.think(thought or text_or_none(fields.get("reasoning_content")) or "")
    listed = fields.get("tool_calls") or more.get("tool_calls")
    calls = desk.objects_in(listed, line, "a call")
    unread = desk.objects_in(fields.get("invalid_tool_calls"), line, "a call")
    legacy = fields.get("function_call") or more.get("function_call")
    if isinstance(legacy, dict) and not calls:
        calls = [{"function": legacy}]
    content = fields.get("content")
    for part in content if isinstance(content, list) else [content]:
        _add_part(part, turns, bool(calls), line, desk)
    for call in (*calls, *unread):
        function = object_or_empty(call.get("function")) or call
        given = function.get("args", function.get("arguments"))
        turns.call(function.get("name"), {} if given is None else given, call.get("id"))


def _add_part(part: Json, turns: Turns, has_calls: bool, line: int, desk: Desk) -> None:
    """A part of an answer. Calls stand beside the content once more, in one form for all models."""
    text = text_of_part(part)
    if text is not None:
        turns.speak(text, "")
        return
    fields = object_or_empty(part)
    kind = fields.get("type")
    if kind in ("thinking", "reasoning", "reasoning_content"):
        thought = next(
            (fields[key] for key in ("thinking", "reasoning", "text") if key in fields), ""
        )
        summary = [one for item in objects_of(fields.get("summary")) if (one := text_of_part(item))]
        turns.think(thought if isinstance(thought, str) and thought else "\n".join(summary))
    elif kind in ("tool_use", "tool_call", "function_call") and not has_calls:
        given = next((fields[key] for key in ("input", "args", "arguments") if key in fields), {})
        turns.call(fields.get("name"), given, fields.get("id") or fields.get("call_id"))
    elif part is not None and kind not in ("tool_use", "tool_call", "function_call"):
        desk.notes.add("part_left_out", line, str(kind))
