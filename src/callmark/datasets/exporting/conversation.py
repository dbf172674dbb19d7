"""A result as the conversation that it was, in the messages of Inspect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callmark.calls.attempts import ToolCall, native_call
from callmark.core.jsontext import Json, canonical_json
from callmark.core.results import Result
from callmark.core.trace import TraceEntry

Message = dict[str, Json]

NAMELESS_CALL = "malformed_call"
_ROLES = frozenset({"system", "user", "assistant", "tool"})


def conversation_of(result: Result) -> list[Message]:
    """Prompt, turns, calls with their answers, what the user said. Where the order of text and
    calls is not known, all calls come first."""
    prompt = list(prompt_of(result.prompt))
    return [*prompt, *_with_reasoning(_answered(result), result.reasoning)]


def _answered(result: Result) -> list[Message]:
    messages: list[Message] = []
    entries = list(enumerate(result.tool_trace, start=1))
    if result.turns is None:
        if entries:
            messages += _turn("", entries)
        messages += _turn(result.model_output, [])
        messages += [{"role": "user", "content": said.text} for said in result.said]
        return messages
    output = result.model_output.encode()
    for number, turn in enumerate(result.turns, start=1):
        text = output[turn.start : turn.end].decode("utf-8", "replace")
        messages += _turn(text, [one for one in entries if one[1].turn == number])
        messages += [
            {"role": "user", "content": said.text} for said in result.said if said.turn == number
        ]
    return messages


def _with_reasoning(messages: list[Message], reasoning: str) -> list[Message]:
    """A result keeps the thoughts of all turns together: they stand before the first."""
    if not reasoning or not messages:
        return messages
    thought = {"type": "reasoning", "reasoning": reasoning}
    spoken = {"type": "text", "text": messages[0]["content"]}
    return [{**messages[0], "content": [thought, spoken]}, *messages[1:]]


def prompt_of(prompt: str | list[Message]) -> Iterator[Message]:
    if isinstance(prompt, str):
        yield {"role": "user", "content": prompt}
        return
    names: dict[str, str] = {}
    for message in prompt:
        role, content = message.get("role"), message.get("content")
        made: Message = {"role": role if role in _ROLES else "user", "content": _content(content)}
        calls = [_past_call(call) for call in message.get("tool_calls") or ()]
        if role == "assistant" and calls:
            made["tool_calls"] = calls
            names |= {call["id"]: call["function"] for call in calls}
        if role == "tool" and isinstance(message.get("tool_call_id"), str):
            made["tool_call_id"] = message["tool_call_id"]
            made["function"] = message.get("name") or names.get(message["tool_call_id"])
        yield made


def _turn(text: str, entries: Sequence[tuple[int, TraceEntry]]) -> Iterator[Message]:
    spoken: Message = {"role": "assistant", "content": text, "source": "generate"}
    if entries:
        spoken["tool_calls"] = [_call(number, entry) for number, entry in entries]
    yield spoken
    for number, entry in entries:
        if entry.status == "unanswered":
            continue
        shown = entry.result if isinstance(entry.result, str) else canonical_json(entry.result)
        answer: Message = {
            "role": "tool",
            "content": shown,
            "tool_call_id": f"call_{number}",
            "function": entry.name or NAMELESS_CALL,
        }
        if entry.status != "ok":
            kind = "unknown" if entry.status == "error" else "parsing"
            answer["error"] = {"type": kind, "message": entry.reason or shown}
        yield answer


def _call(number: int, entry: TraceEntry) -> Message:
    is_read = isinstance(entry.arguments, dict)
    call: Message = {
        "id": f"call_{number}",
        "function": entry.name or NAMELESS_CALL,
        "arguments": entry.arguments if is_read else {},
        "type": "function",
    }
    return call if is_read else {**call, "parse_error": entry.raw or entry.reason or "malformed"}


def _past_call(call: Json) -> Message:
    """A call that the prompt itself holds."""
    holder = call if isinstance(call, dict) else {}
    inner = holder.get("function")
    source = inner if isinstance(inner, dict) else holder
    attempt = native_call(source.get("name"), source.get("arguments"))
    given = holder.get("id")
    made: Message = {
        "id": given if isinstance(given, str) else "",
        "function": attempt.name or NAMELESS_CALL,
        "arguments": attempt.arguments if isinstance(attempt, ToolCall) else {},
        "type": "function",
    }
    return made if isinstance(attempt, ToolCall) else {**made, "parse_error": attempt.raw}


def _content(content: Json) -> str:
    """Parts that are not text have no place in a log that nobody runs again: their kind stays."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (
        part["text"] if isinstance(part.get("text"), str) else f"[{part.get('type', 'part')}]"
        for part in parts
        if isinstance(part, dict)
    )
    return "\n".join(texts)
