"""OpenAI-style message lists as recordings: which assistant turns there were, what they called,
what answered them and what the user said in between."""

from __future__ import annotations

from collections.abc import Sequence

from callmark.calls.attempts import entry_for, native_call
from callmark.records.jsontext import Json, well_formed
from callmark.records.seams import Reply
from callmark.records.trace import TraceEntry, answer_entry

Message = dict[str, Json]

# Roles that answer a call; `function` is the legacy form. Every other role but the assistant's
# is somebody who tells the model something.
ANSWERING = frozenset({"tool", "function"})


def split_prompt(messages: Sequence[Message]) -> tuple[list[Message], Sequence[Message]]:
    """What was said before the model spoke first, and the rest."""
    for position, message in enumerate(messages):
        if message.get("role") == "assistant":
            return list(messages[:position]), messages[position:]
    return list(messages), ()


def replies_of(messages: Sequence[Message]) -> tuple[Reply, ...]:
    """The assistant turns of a conversation, from its first assistant message on."""
    turns: list[_Turn] = []
    waiting: list[_Turn] = []  # those with a call that nothing answered; a long talk has few
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            turns.append(_Turn(message))
            waiting += turns[-1:] if turns[-1].waiting else []
        elif not turns:
            continue
        elif role in ANSWERING:
            _answer(turns[-1], waiting, message)
        else:
            turns[-1].said.append(text_of(message.get("content")))
    return tuple(turn.reply(ends=turn is turns[-1]) for turn in turns)


def text_of(content: Json) -> str:
    """The text of a message, whose content may be null, a string or a list of parts."""
    if isinstance(content, str):
        return well_formed(content)
    if not isinstance(content, list):
        return ""
    return "\n".join(filter(None, (_text_of_part(part) for part in content)))


def _text_of_part(part: Json) -> str:
    if isinstance(part, str):
        return well_formed(part)
    if not isinstance(part, dict):
        return ""
    text = part.get("text", part.get("refusal"))
    return well_formed(text) if isinstance(text, str) else ""


class _Turn:
    """One assistant message while the messages after it are read."""

    def __init__(self, message: Message) -> None:
        refusal = message.get("refusal")
        self.text = text_of(message.get("content")) or text_of(refusal)
        self.reasoning = _reasoning_of(message)
        self.calls = [_entry_of(call) for call in _structured_calls(message)]
        self.waiting = list(range(len(self.calls)))
        self.answers: list[Json] = []
        self.said: list[str] = []

    def waits_for(self, field: str, value: Json) -> int | None:
        """The first unanswered call whose `call_id` or `name` is `value`."""
        matching = (k for k in self.waiting if getattr(self.calls[k], field) == value)
        return next(matching, None) if value is not None else None

    def answer(self, position: int, result: Json) -> None:
        self.waiting.remove(position)
        self.calls[position] = answer_entry(self.calls[position], result)

    def reply(self, *, ends: bool) -> Reply:
        return Reply(
            text=self.text,
            calls=tuple(self.calls) or None,
            reasoning=self.reasoning,
            ends=ends,
            then_said=None if ends else tuple(self.said),
            answers=tuple(self.answers),
        )


def _answer(last: _Turn, waiting: list[_Turn], message: Message) -> None:
    """Give a tool message to the call it answers. Ids are missing, doubled and used again in real
    data: the id decides only among calls that still wait, then the name, then the order."""
    result = _result_of(message.get("content"))
    for field, value in (("call_id", message.get("tool_call_id")), ("name", message.get("name"))):
        for turn in waiting:
            position = turn.waits_for(field, value)
            if position is not None:
                turn.answer(position, result)
                waiting[:] = [one for one in waiting if one.waiting]
                return
    if waiting:
        waiting[0].answer(waiting[0].waiting[0], result)
        waiting[:] = [one for one in waiting if one.waiting]
    elif not last.calls:
        last.answers.append(result)


def _result_of(content: Json) -> Json:
    if isinstance(content, str):
        return well_formed(content)
    parts = content if isinstance(content, list) else ()
    if parts and all(isinstance(part, dict) and "type" in part for part in parts):
        return text_of(content)
    return content


def _structured_calls(message: Message) -> list[Json]:
    calls = message.get("tool_calls")
    found = list(calls) if isinstance(calls, list) else []
    legacy = message.get("function_call")
    if legacy and not found:
        found.append({"function": legacy})
    return found


def _entry_of(call: Json) -> TraceEntry:
    holder = call if isinstance(call, dict) else {}
    function = holder.get("function")
    source = function if isinstance(function, dict) else holder
    call_id = holder.get("id")
    attempt = native_call(
        source.get("name"),
        source.get("arguments"),
        call_id=call_id if isinstance(call_id, str) else None,
    )
    return entry_for(attempt, None)


def _reasoning_of(message: Message) -> str:
    for field in ("reasoning_content", "reasoning"):
        text = message.get(field)
        if isinstance(text, str) and text:
            return well_formed(text)
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    thoughts = (part.get("thinking") for part in parts if isinstance(part, dict))
    return "\n".join(well_formed(text) for text in thoughts if isinstance(text, str))
