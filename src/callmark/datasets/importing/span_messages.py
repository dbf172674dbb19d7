"""Messages as spans hold them, whoever wrote them (chat completions, Messages, Responses items,
GenAI parts, OpenInference, Converse, Gemini), as messages of the OpenAI style."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from callmark.datasets.importing.conversation import function_call
from callmark.datasets.importing.desk import Object
from callmark.datasets.importing.spans import first_of, json_in
from callmark.records.jsontext import Json, canonical_json, well_formed

# A result that its source marks as an error, until the conversation is written.
FAILED = "failed"
# What the model's own side did (a search of the provider's) and nobody here can answer.
OWN_DEEDS = "own_deeds"
# A call that a program wrote out beside the model's text: smolagents' code agents.
WRITTEN_OUT = "written_out"

_ROLES = {
    "ai": "assistant",
    "aimessagechunk": "assistant",
    "chatbot": "assistant",
    "developer": "system",
    "function": "tool",
    "human": "user",
    "ipython": "tool",
    "model": "assistant",
    "tool-call": WRITTEN_OUT,
    "tool-response": "user",
}
_KNOWN = ("system", "user", "assistant", "tool", WRITTEN_OUT)
_TEXTS = frozenset({"text", "input_text", "output_text", "refusal", "summary_text"})
_THOUGHTS = frozenset({"reasoning", "thinking", "redacted_thinking", "reasoning_content"})
_SERVERS = "srvtoolu_"
_CALLS = frozenset({"tool_call", "tool_use", "function_call", "custom_tool_call", "toolCall"})
_RESULTS = frozenset(
    {
        "tool_call_response",
        "tool_result",
        "function_call_output",
        "custom_tool_call_output",
        "toolResult",
    }
)


def messages_in(value: Json, role: str = "user") -> list[Object]:
    """A prompt or an answer: a text, one message, or a list of them. `role`: whose it is, where a
    message does not say."""
    value = json_in(value)
    if value is None or value in ("", [], {}):
        return []
    if isinstance(value, list):
        return _join_answers(one for raw in value for one in messages_in(raw, role))
    if isinstance(value, dict):
        return list(_of_object(value, role))
    return [{"role": role, "content": _text(value)}]


def _join_answers(messages: Iterable[Object]) -> list[Object]:
    """The items of one answer (thoughts, text, parallel calls) as one message."""
    made: list[Object] = []
    for message in messages:
        last = made[-1] if made else {}
        both = (last, message)
        is_one = all(one.get("role") == "assistant" for one in both)
        if is_one and not all(one.get("content") for one in both):
            made[-1] = assistant_message([last, message]) or message
        else:
            made.append(message)
    return made


def is_message(value: Json) -> bool:
    """Whether this is a message or an item of one, and no other object."""
    if not isinstance(value, dict):
        return False
    return "role" in value or "message" in value or _kind_of(value) in (_CALLS | _RESULTS)


def tools_in(value: Json) -> tuple[Json, ...]:
    """The specs of tools, one or many, as a registry takes them."""
    value = json_in(value)
    if value is None:
        return ()
    if isinstance(value, dict) and isinstance(value.get("tools"), list):
        value = value["tools"]
    found: list[Json] = []
    for raw in value if isinstance(value, list) else [value]:
        spec = json_in(raw)
        if not isinstance(spec, dict):
            found.append({})  # the registry says that it is none
            continue
        if isinstance(spec.get("functionDeclarations"), list):  # Gemini
            found += tools_in(spec["functionDeclarations"])
            continue
        inner = next(
            (
                spec[key]
                for key in ("function", "toolSpec", "tool")
                if isinstance(spec.get(key), dict)
            ),
            spec,
        )
        found.append(_spec(inner))
    return tuple(found)


def _spec(inner: Object) -> Object:
    schema = json_in(
        first_of(inner, "parameters", "input_schema", "inputSchema", "parametersJsonSchema")
    )
    if isinstance(schema, dict) and isinstance(schema.get("json"), dict):
        schema = schema["json"]
    made = {"name": inner.get("name"), "description": inner.get("description") or ""}
    return {**made, "parameters": schema if isinstance(schema, dict) else {"type": "object"}}


def assistant_message(messages: list[Object]) -> Object | None:
    """The messages of one answer as one: its texts, its thoughts and all its calls."""
    texts = [one["content"] for one in messages if isinstance(one.get("content"), str)]
    parts = [one["content"] for one in messages if isinstance(one.get("content"), list)]
    thoughts = [str(one["reasoning_content"]) for one in messages if one.get("reasoning_content")]
    calls = [call for one in messages for call in _list(one.get("tool_calls"))]
    deeds = sum(_count(one.get(OWN_DEEDS)) for one in messages)
    if not messages:
        return None
    made: Object = {"role": "assistant", "content": "\n".join(filter(None, map(str, texts)))}
    if parts:
        made["content"] = [part for one in parts for part in _list(one)]
    if thoughts:
        made["reasoning_content"] = "\n".join(thoughts)
    if calls:
        made["tool_calls"] = calls
    if deeds:
        made[OWN_DEEDS] = deeds
    return made


def text_of_result(value: Json) -> str:
    """What a model was shown of a result."""
    parts = json_in(value) if isinstance(value, str) and value.startswith('[{"') else value
    if isinstance(parts, list) and parts and all(map(_is_text, parts)):
        return "\n".join(_text(first_of(part, "text", "content")) for part in parts)
    return _text(value)


def _is_text(part: Json) -> bool:
    if not isinstance(part, dict) or not part.keys() <= {"type", "text", "content", "annotations"}:
        return False
    return isinstance(first_of(part, "text", "content"), str)


def _of_object(raw: Object, role: str) -> Iterator[Object]:
    for wrapper in ("message", "kwargs", "data"):  # OpenInference, LangChain
        inner = raw.get(wrapper)
        if isinstance(inner, dict) and "role" not in raw:
            yield from _of_object(inner, role)
            return
    kind = _kind_of(raw)
    if kind in _CALLS or kind in _RESULTS or kind in _THOUGHTS:
        yield from _of_parts([raw], "assistant" if kind not in _RESULTS else "tool")
        return
    if kind.endswith(("_call", "_call_output")) and "role" not in raw:
        yield {"role": "assistant", "content": None, OWN_DEEDS: 1}
        return
    said = _role_of(raw, role)
    if said == "tool":
        parts = _parts_of(raw)
        if any(isinstance(one, dict) and _kind_of(one) in _RESULTS for one in parts):
            yield from _of_parts(parts, said)
        else:
            yield _result_message(raw, _content_of(raw))
        return
    messages = list(_of_parts(_parts_of(raw), said))
    made = list(_calls_of(raw))
    calls = [call for call in made if not str(call.get("id")).startswith(_SERVERS)]
    deeds = len(made) - len(calls)
    thoughts = first_of(raw, "reasoning_content", "reasoning", "thinking")
    if made or isinstance(thoughts, str):
        last = next((one for one in messages if one["role"] == said), None)
        if last is None:
            last = {"role": said, "content": None}
            messages.append(last)
        if isinstance(thoughts, str) and thoughts:
            last.setdefault("reasoning_content", well_formed(thoughts))
        if calls and not last.get("tool_calls"):
            last["tool_calls"] = calls
        if deeds:
            last[OWN_DEEDS] = _count(last.get(OWN_DEEDS)) + deeds
    yield from messages or [{"role": said, "content": ""}]


def _role_of(raw: Object, role: str) -> str:
    given = first_of(raw, "role", "type")
    name = given.lower() if isinstance(given, str) else role
    name = _ROLES.get(name, name)
    return name if name in _KNOWN else role


def _content_of(raw: Object) -> Json:
    content = first_of(raw, "content", "contents", "parts", "text", "refusal", "output")
    match content:
        case [{"message_content": dict(part)}]:  # OpenInference
            return first_of(part, "text", "content")
    return content


def _parts_of(raw: Object) -> list[Json]:
    found = first_of(raw, "parts", "content", "contents")
    if found is None or found == "":
        found = first_of(raw, "contents", "text", "refusal")
    if isinstance(found, str):
        inner = json_in(found) if found.startswith('[{"') else found  # blocks, written as text
        is_blocks = isinstance(inner, list) and all(
            isinstance(one, dict) and "type" in one for one in inner
        )
        found = inner if is_blocks else found
    if isinstance(found, list):
        return found
    return [] if found is None else [found]


def _of_parts(parts: list[Json], role: str) -> Iterator[Object]:
    """A user's message may hold results beside texts: each result is a message of its own."""
    open_message: Object | None = None
    for raw in parts:
        part = _part(raw)
        kind = _kind_of(part)
        is_own, is_call = _is_own_deed(part)
        if is_own:
            open_message = open_message or {"role": role, "content": None}
            open_message[OWN_DEEDS] = _count(open_message.get(OWN_DEEDS)) + is_call
            continue
        if kind in _RESULTS or "toolResult" in part or "functionResponse" in part:
            if open_message is not None:
                yield open_message
                open_message = None
            yield _of_result_part(part)
            continue
        if open_message is None:
            open_message = {"role": role, "content": None}
        _take_part(part, open_message)
    if open_message is not None:
        yield open_message


def _kind_of(part: Object) -> str:
    kind = part.get("type")
    return kind if isinstance(kind, str) else ""


def _is_own_deed(part: Object) -> tuple[bool, bool]:
    """Whether a part is of a tool that the provider runs (a search, code, MCP), and whether it is
    the call of it. Anthropic's ids say so where an instrumentation does not."""
    kind = _kind_of(part)
    call = part.get("tool_call")
    ids = [part.get("id"), call.get("id") if isinstance(call, dict) else None]
    if any(isinstance(one, str) and one.startswith(_SERVERS) for one in ids):
        return True, "tool_call" not in part  # OpenInference has it in tool_calls too
    if part.get("builtin") is True or kind.startswith(("server_tool", "mcp_tool")):
        return True, not kind.endswith(("_result", "_response"))
    return kind.endswith("_tool_result"), False


def _part(raw: Json) -> Object:
    if not isinstance(raw, dict):
        return {"type": "text", "text": _text(raw)}
    inner = raw.get("message_content")
    if isinstance(inner, dict):
        return {**raw, **inner}
    return raw


def _take_part(part: Object, message: Object) -> None:
    kind = _kind_of(part)
    text = first_of(part, "text", "content", "refusal")
    if "tool_call" in part and kind == "tool_use":  # OpenInference has it in tool_calls too
        return
    if kind in _THOUGHTS or part.get("thought") is True:
        thought = first_of(part, "content", "text", "thinking", "reasoning", "summary")
        said = "\n".join(_texts(thought))
        if said:
            message["reasoning_content"] = "\n".join(
                filter(None, (_text(message.get("reasoning_content") or ""), said))
            )
    elif kind in _CALLS or "toolUse" in part or "functionCall" in part:
        _add(message, "tool_calls", _call(part))
    elif (kind in _TEXTS or not kind) and isinstance(text, str):
        _add_text(message, text)
    elif part.keys() - {"type"}:
        content = message["content"]
        given = [{"type": "text", "text": content}] if isinstance(content, str) else _list(content)
        message["content"] = [*given, part if "type" in part else {"type": "other", **part}]


def _add_text(message: Object, text: str) -> None:
    content, text = message["content"], well_formed(text)
    if isinstance(content, list):
        message["content"] = [*content, {"type": "text", "text": text}]
    else:
        message["content"] = text if content is None else f"{content}\n{text}"


def _call(part: Object) -> Object:
    """A call, whatever its fields are named."""
    for wrapper in ("toolUse", "functionCall", "tool_call", "function"):
        if isinstance(part.get(wrapper), dict):
            part = {**part, **part[wrapper]}  # type: ignore[dict-item]
    if isinstance(part.get("function"), dict):
        part = {**part, **part["function"]}  # type: ignore[dict-item]
    arguments = first_of(part, "arguments", "args", "input", "arguments_json")
    if isinstance(arguments, str) and part.get("type") == "custom_tool_call":
        arguments = {"input": arguments}
    name = first_of(part, "name", "tool_name")
    call_id = first_of(part, "call_id", "id", "toolUseId", "tool_call_id")
    return function_call(name, {} if arguments in (None, "") else arguments, call_id)


def _calls_of(raw: Object) -> Iterator[Object]:
    given = json_in(raw.get("tool_calls"))
    for one in given if isinstance(given, list) else []:
        yield _call(one if isinstance(one, dict) else {})
    legacy = json_in(raw.get("function_call"))
    name = raw.get("function_call_name")
    if isinstance(legacy, dict) and not given:
        yield _call(legacy)
    elif isinstance(name, str):
        yield _call({"name": name, "arguments": raw.get("function_call_arguments_json")})


def _of_result_part(part: Object) -> Object:
    for wrapper in ("toolResult", "functionResponse"):
        if isinstance(part.get(wrapper), dict):
            part = {**part, **part[wrapper]}  # type: ignore[dict-item]
    return _result_message(part, first_of(part, "response", "result", "content", "output"))


def _result_message(raw: Object, content: Json) -> Object:
    call_id = first_of(raw, "tool_call_id", "call_id", "tool_use_id", "toolUseId", "id")
    made: Object = {"role": "tool", "content": text_of_result(content)}
    if isinstance(call_id, str):
        made["tool_call_id"] = call_id
    if isinstance(raw.get("name"), str):
        made["name"] = raw["name"]
    if (
        raw.get("is_error") is True
        or raw.get("status") == "error"
        or raw.get("outcome") == "failed"
    ):
        made[FAILED] = True
    return made


def key_of_call(call: Json) -> tuple[str, str]:
    """What a call asks for, without its id."""
    match call:
        case {"function": {"name": name, "arguments": str(arguments)}}:
            value = json_in(arguments)
            return str(name), arguments if value is arguments else canonical_json(value)
    return "", canonical_json(call)


def _texts(value: Json) -> list[str]:
    if isinstance(value, list):
        return [text for one in value for text in _texts(one)]
    if isinstance(value, dict):
        return _texts(first_of(value, "text", "content"))
    return [value] if isinstance(value, str) and value else []


def _add(message: Object, name: str, value: Json) -> None:
    message[name] = [*_list(message.get(name)), value]


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _text(value: Json) -> str:
    if value is None:
        return ""
    return well_formed(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
