"""Anthropic Messages: exchanges, recorded one by one or a conversation at a time, and bare
conversations in blocks (`tool_use`, `tool_result`, `thinking`)."""

from __future__ import annotations

from collections.abc import Iterator

from callmark.datasets.importing.conversation import (
    PARAGRAPH,
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
    ModelExchange,
    events_of,
    exchanges_of,
    failure_of,
    first_exchange,
)
from callmark.errors import BadInput
from callmark.records.jsontext import Json, NotJson, canonical_json, parse_json
from callmark.records.problems import show_value

# Blocks that no other provider's messages hold.
_OWN_BLOCKS = (
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "server_tool_use",
    "mcp_tool_use",
)
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_RESULT = "tool_result"
_ROLES = ("user", "assistant", "system")
_READ = frozenset({"messages", "system", "tools", "interactions", "request", "response", "status"})


def is_anthropic(entry: Object) -> bool:
    """By the blocks and by where the instructions stand, never by the name of a model."""
    request, response = first_exchange(entry)
    if response is not None:
        return isinstance(request.get("messages"), list) and (
            _is_answer(response) or has_blocks(request)
        )
    return has_blocks(entry) or (
        isinstance(entry.get("messages"), list) and _is_system(entry.get("system"))
    )


def has_blocks(entry: Object) -> bool:
    """Whether messages hold blocks that no other provider has."""
    return any(
        block.get("type") in _OWN_BLOCKS
        for message in objects_of(entry.get("messages"))
        if message.get("role") in _ROLES
        for block in objects_of(message.get("content"))
    )


def _is_system(value: Json) -> bool:
    return isinstance(value, str) or bool(objects_of(value))


def _is_answer(response: Json) -> bool:
    if isinstance(response, str | list):
        return any(event.get("type") == "message_start" for event in events_of(response)[:3])
    match response:
        case {"type": "message", "content": list()} | {"type": "error", "error": dict()}:
            return True
    return False


def read_blocks(entry: Object, line: int, desk: Desk) -> Iterator[Imported]:
    """A conversation without its requests."""
    turns = Turns()
    _add_history(entry, turns, line, desk)
    sample_id, about = rows_about(entry, _READ)
    talk = Talk(
        line=line,
        sample_id=sample_id or name_by_content(turns.messages),
        named=sample_id is not None,
        messages=turns.messages,
        tools=specs_of(entry["tools"], line, desk) if "tools" in entry else None,
        about={"format": "anthropic", **about},
    )
    imported = imported_talk(talk, desk)
    if imported is not None:
        yield imported


def anthropic_exchanges(entry: Object, line: int, desk: Desk) -> Iterator[ModelExchange]:
    sample_id, about = rows_about(entry, _READ)
    for exchange in exchanges_of(entry) or ():
        request = object_or_empty(exchange.get("request"))
        sent, answered = Turns(), Turns()
        if exchange.get("request") is not None:
            _add_history(request, sent, line, desk)
        response = _response(exchange.get("response"))
        error = failure_of(exchange, response)
        if error is None:
            _AssistantBlocks(answered, line, desk).add(response.get("content"))
            if not answered.messages:
                answered.messages.append({"role": "assistant", "content": ""})
        yield ModelExchange(
            line=line,
            sample_id=sample_id,
            sent=sent.messages,
            answer=answered.messages,
            tools=specs_of(request.get("tools"), line, desk),
            error=error,
            about={"format": "anthropic", "model": request.get("model"), **about},
        )


def _add_history(request: Object, turns: Turns, line: int, desk: Desk) -> None:
    system = request.get("system")
    if _is_system(system) and system:
        turns.tell("system", system)
    messages = request.get("messages")
    if not isinstance(messages, list):
        raise BadInput(f"{desk.place(line)}: messages: must be a list")
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(message, dict) or role not in _ROLES:
            raise BadInput(
                f"{desk.place(line)}: messages[{at}].role: must be one of assistant, system, user"
            )
        add_message(message, turns, line, desk)


def add_message(message: Object, turns: Turns, line: int, desk: Desk) -> None:
    """One message of the Messages API: texts, calls, results and thoughts each in its place."""
    content = message.get("content")
    if message.get("role") == "assistant":
        _AssistantBlocks(turns, line, desk).add(content)
        return
    role = "system" if message.get("role") == "system" else "user"
    if not isinstance(content, list):
        turns.tell(role, content)
        return
    said: list[Json] = []
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        if isinstance(block, dict) and kind == _RESULT:
            add_result(block, turns)
        elif text_of_part(block) is not None or kind in ("image", "document"):
            said.append(_without_cache(block))
        else:
            desk.notes.add("part_left_out", line, str(kind))
    if said:
        turns.tell(role, said)


def _without_cache(block: Json) -> Json:
    if not isinstance(block, dict):
        return block
    return {name: value for name, value in block.items() if name != "cache_control"}


def add_result(block: Object, turns: Turns) -> None:
    """A result of any tool. Those that ran at the provider say what failed inside the content."""
    content = block.get("content")
    kind = content.get("type") if isinstance(content, dict) else None
    failed = block.get("is_error") is True
    if isinstance(content, dict) and isinstance(kind, str) and kind.endswith("_error"):
        failed, content = True, text_or_none(content.get("error_code")) or canonical_json(content)
    turns.answer(content, block.get("tool_use_id"), failed=failed)


class _AssistantBlocks:
    """What the model said, in blocks. Texts that stand side by side are one text with citations."""

    def __init__(self, turns: Turns, line: int, desk: Desk) -> None:
        self._turns = turns
        self._line = line
        self._desk = desk
        self._after_text = False

    def add(self, content: Json) -> None:
        """One whole message."""
        for block in content if isinstance(content, list) else [content or ""]:
            text = text_of_part(block)
            if text is not None:
                self._turns.speak(text, "" if self._after_text else PARAGRAPH)
            elif isinstance(block, dict):
                self._add_block(block)
            else:
                self._desk.notes.add("part_left_out", self._line, show_value(block))
            self._after_text = text is not None
        self._turns.close()

    def _add_block(self, block: Object) -> None:
        kind, turns = block.get("type"), self._turns
        if kind in _CALLS:
            turns.call(block.get("name"), block.get("input"), block.get("id"))
        elif isinstance(kind, str) and kind.endswith(_RESULT):
            add_result(block, turns)
        elif kind == "thinking" and text_or_none(block.get("thinking")):
            turns.think(str(block["thinking"]))
        elif kind in ("thinking", "redacted_thinking"):
            turns.think("")
            self._desk.notes.add("hidden_reasoning", self._line)
        else:
            self._desk.notes.add("part_left_out", self._line, str(kind))


def specs_of(tools: Json, line: int, desk: Desk) -> list[Json]:
    """The tools of a request. Those of the provider have a type and no schema."""
    specs: list[Json] = []
    for tool in objects_of(tools):
        kept = {
            name: tool[name] for name in ("name", "description", "input_schema") if name in tool
        }
        if "input_schema" not in kept and isinstance(tool.get("name"), str):
            desk.notes.add("tool_without_schema", line, str(tool["name"]))
            kept["input_schema"] = {"type": "object"}
        specs.append(kept)
    return specs


def _response(response: Json) -> Object:
    """The message, put together if it was streamed."""
    if isinstance(response, dict):
        return response
    made: Object = {}
    blocks: dict[Json, Object] = {}
    for event in events_of(response):
        match event:
            case {"type": "message_start", "message": dict(message)}:
                made = dict(message)
            case {"type": "content_block_start", "index": int(at), "content_block": dict(block)}:
                blocks[at] = dict(block)
            case {"type": "content_block_delta", "index": int(at), "delta": dict(delta)}:
                _apply(blocks.setdefault(at, {"type": "text"}), delta)
            case {"type": "error"}:
                made["error"] = event.get("error") or "no reason is given"
    if not made:
        return {"error": "the response is no message"}
    return {**made, "content": [_finish(block) for block in blocks.values()]}


def _apply(block: Object, delta: Object) -> None:
    for name in ("text", "thinking", "partial_json"):
        piece = delta.get(name)
        if isinstance(piece, str):
            before = block.get(name)
            block[name] = (before if isinstance(before, str) else "") + piece


def _finish(block: Object) -> Object:
    written = block.pop("partial_json", None)
    if not isinstance(written, str) or not written.strip():
        return block
    try:
        return {**block, "input": parse_json(written)}
    except NotJson:
        return {**block, "input": written}
