"""What happened in one trial: turns, call attempts with their answers, and why it stopped."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Literal, TypeGuard, get_args
from unicodedata import normalize

import msgspec

from callmark.records.jsontext import (
    Json,
    NotJson,
    canonical_json,
    parse_json,
    want_list,
    want_object,
)

EntryStatus = Literal[
    "ok",  # served, and the result is no error
    "error",  # served, and the result reports an error
    "miss",  # well formed, but there is no fixture for it
    "wrong_call",  # the same, and it is none of the expected calls, which all have fixtures
    "malformed",  # could not be parsed strictly; `reason` says why
    "tool_not_offered",
    "tool_not_allowed",
    "invalid_arguments",  # against the tool's schema, and no fixture for it either
    "unanswered",  # the trial ended before anything answered it
]
STATUSES = frozenset(get_args(EntryStatus))
SERVED = frozenset({"ok", "error"})
# The answer, also that there was none, came with the call: it says nothing about the fixtures.
RECORDED = "recorded"
# Of a call that a planted fault answered; the kind of fault follows.
FAULT = "fault:"
FaultKind = Literal["fail", "timeout", "error", "empty", "truncated"]

Stop = Literal["answer", "max_turns", "truncated", "filtered", "context_exceeded", "error"]


UNPARSED = "unparsed"  # the format of an attempt that no known one reads


class RepairedCall(msgspec.Struct, frozen=True):
    """What a lenient parser made of a malformed attempt. Shown, never scored."""

    name: str
    arguments: dict[str, Json]


class TraceEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call attempt: what the model wrote, what we made of it, and what it was answered.

    `turn` counts assistant turns from 1 (None: not recorded). `raw` is the attempt as written.
    `served_by` is `fixture:exact`, `fixture:pattern`, `fixture:any`, `recorded` (a miss can be
    recorded too), `live`, `fault:KIND`, or None where nothing was served. `schema_errors` None: not
    checked."""

    name: str | None
    arguments: Json
    result: Json
    turn: int | None
    raw: str | None
    status: EntryStatus
    served_by: str | None
    format: str = "native"
    reason: str | None = None
    repaired: RepairedCall | None = None
    schema_errors: tuple[str, ...] | None = None
    key_normalized: Json = None
    call_id: str | None = None

    @property
    def served(self) -> bool:
        return self.status in SERVED

    @property
    def is_faulty(self) -> bool:
        """Whether a planted fault took the place of the tool's answer."""
        return self.served_by is not None and self.served_by.startswith(FAULT)


class FaultyCall(msgspec.Struct, frozen=True):
    """A planted fault of a trial: the `call`-th answered call of the tool, from 1, goes wrong. It
    was met, or it lies in wait for a call that the sample expects."""

    tool: str
    call: int
    kind: FaultKind


class ThoughtCall(msgspec.Struct, frozen=True):
    """A call that stands in closed reasoning: the model thought of it and did not make it.
    `arguments` None: it could not be read."""

    turn: int | None
    name: str | None
    arguments: dict[str, Json] | None
    raw: str
    format: str


class UserTurn(msgspec.Struct, frozen=True):
    """A user message after the prompt, and the number of assistant turns before it."""

    turn: int
    text: str


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """`turns` holds the UTF-8 byte range of every assistant turn in `model_output`, so that
    `turns[k]` is turn k + 1 (an empty turn has start = end). None: the order of text and calls
    is not known, or there was only one shot; then every served result counts for every span."""

    model_output: str
    tool_trace: tuple[TraceEntry, ...] = ()
    turns: tuple[tuple[int, int], ...] | None = None
    said: tuple[UserTurn, ...] = ()
    reasoning: str = ""
    stop: Stop = "answer"
    thought_calls: tuple[ThoughtCall, ...] = ()
    faults: tuple[FaultyCall, ...] = ()


def compose_text(text: str) -> str:
    """NFC, and LF for every line end."""
    return normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n")


def is_error_result(result: Json) -> bool:
    """A tool's own word that it failed: `ok: false`, a non-empty `error`, or `isError`."""
    if isinstance(result, str):
        result = json_inside(result)
    if not isinstance(result, dict):
        return False
    return (
        result.get("ok") is False
        or bool(result.get("error"))
        or result.get("isError") is True
        or result.get("is_error") is True
    )


def is_miss_result(result: Json) -> bool:
    return (
        isinstance(result, dict)
        and result.get("ok") is False
        and result.get("error") == "fixture_miss"
    )


def json_inside(text: str) -> Json:
    """The object or array that a string spells out as JSON, else the string itself."""
    stripped = text.strip()
    if stripped[:1] not in ("{", "["):
        return text
    try:
        return parse_json(stripped)
    except NotJson:
        return text


def read_inside(text: str) -> Json:
    """The same for whoever only reads it, also as Python writes it: several walk through one
    result."""
    inside = _read_once(text) if text.lstrip()[:1] in ("{", "[") else text
    return text if isinstance(inside, str) else inside  # this text, and no equal one


@lru_cache(maxsize=16)
def _read_once(text: str) -> Json:
    inside = json_inside(text)
    if isinstance(inside, str) and (meant := json_of_literal(text.strip())) is not None:
        inside = json_inside(meant)
        return text if isinstance(inside, str) else inside
    return inside


# Objects and lists as Python writes them, `{'pool': True, 'owner': None}`, handed on as texts.
LONGEST_LITERAL = 1 << 20  # characters
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<mark>[\[\]{},:])"
    r"|u?(?P<text>'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"
    r"|(?P<number>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])"
    r"|(?P<key>[A-Za-z_]\w*)(?=\s*:)"
    r"|(?P<word>True|False|None|true|false|null)\b"
)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_ESCAPED = re.compile(r"\\(.)")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"', "\\": "\\"}


def json_of_literal(text: str) -> str | None:
    """The same as JSON, token by token; None if anything stands there that has no such token."""
    if len(text) > LONGEST_LITERAL or text[:1] not in ("{", "["):
        return None
    parts: list[str] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return None
        kind, said = found.lastgroup or "", found[found.lastgroup or 0]
        if kind == "text":
            inner = _unescaped(said[1:-1])
            if inner is None:
                return None
            said = json.dumps(inner)
        elif kind == "key":
            said = json.dumps(said)
        elif kind == "word":
            said = _WORDS.get(said, said)
        parts.append(said)
        at = found.end()
    return "".join(parts)


def _unescaped(text: str) -> str | None:
    if "\\" not in text:
        return text
    if any(one[1] not in _PLAIN for one in _ESCAPED.finditer(text)):
        return None
    return _ESCAPED.sub(lambda one: _PLAIN[one[1]], text)


def entry_of(raw: Json) -> TraceEntry:
    """One element of anybody's `tool_trace`: only `name` and `arguments` need to be there."""
    if not isinstance(raw, dict):
        return _malformed(None, None, repr(raw)[:200], "the trace entry is not an object")
    name, arguments = raw.get("name"), raw.get("arguments")
    status = _told_status(raw.get("status"))
    result, served_by = raw.get("result"), raw.get("served_by")
    if isinstance(arguments, str):
        arguments = json_inside(arguments)
    if status is None:
        if not isinstance(name, str) or not isinstance(arguments, dict):
            what = "no tool name" if not isinstance(name, str) else "arguments are not an object"
            entry = _malformed(name if isinstance(name, str) else None, arguments, None, what)
            return msgspec.structs.replace(entry, result=result, turn=_turn(raw))
        status = _status_of("result" in raw, result)
        if status == "miss":
            served_by = RECORDED
    schema_errors = raw.get("schema_errors")
    return TraceEntry(
        name=name if isinstance(name, str) else None,
        arguments=arguments,
        result=result,
        turn=_turn(raw),
        raw=raw.get("raw"),
        status=status,
        served_by=served_by or (RECORDED if status in SERVED else None),
        format=raw.get("format") or "native",
        reason=raw.get("reason"),
        repaired=_repair(raw.get("repaired")),
        schema_errors=None if schema_errors is None else tuple(schema_errors),
        key_normalized=raw.get("key_normalized"),
        call_id=raw.get("call_id"),
    )


def answer_entry(entry: TraceEntry, result: Json, served_by: str = RECORDED) -> TraceEntry:
    """The entry with the answer it got. A malformed or refused call stays what it is."""
    if entry.status != "unanswered":
        return msgspec.structs.replace(entry, result=result)
    status = _status_of(True, json_inside(result) if isinstance(result, str) else result)
    served = served_by if status in SERVED or served_by == RECORDED else None
    return msgspec.structs.replace(entry, result=result, status=status, served_by=served)


def _told_status(told: Json) -> EntryStatus | None:
    return next((status for status in STATUSES if status == told), None)


def _status_of(has_result: bool, result: Json) -> EntryStatus:
    if not has_result:
        return "unanswered"
    if is_miss_result(result):
        return "miss"
    return "error" if is_error_result(result) else "ok"


def _repair(raw: Json) -> RepairedCall | None:
    match raw:
        case {"name": str(name), "arguments": dict(arguments)}:
            return RepairedCall(name, arguments)
        case _:
            return None


def _turn(raw: dict[str, Json]) -> int | None:
    turn = raw.get("turn")
    return turn if isinstance(turn, int) and not isinstance(turn, bool) else None


def _malformed(name: str | None, arguments: Json, raw: str | None, reason: str) -> TraceEntry:
    return TraceEntry(
        name=name,
        arguments=arguments,
        result=None,
        turn=None,
        raw=raw,
        status="malformed",
        served_by=None,
        reason=reason,
    )


# What each kind of block must hold.
BLOCKS: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "image": {"data": str, "mimeType": str},
    "audio": {"data": str, "mimeType": str},
    "resource": {"resource": dict},
    "resource_link": {"name": str, "uri": str},
}
FIELDS = frozenset({"content", "structuredContent", "isError", "resultType", "_meta"})


def is_mcp_result(result: Json) -> TypeGuard[dict[str, Json]]:
    """Whether this is a whole MCP result, and not an object that happens to have `content`."""
    if not isinstance(result, dict) or not result.keys() <= FIELDS:
        return False
    content = result.get("content")
    if not isinstance(content, list):
        return False
    return all(map(_is_block, content)) and (bool(content) or len(result) > 1)


def _is_block(block: Json) -> bool:
    if not isinstance(block, dict):
        return False
    kind = block.get("type")
    needed = BLOCKS.get(kind) if isinstance(kind, str) else None
    return needed is not None and all(
        isinstance(block.get(name), wanted) for name, wanted in needed.items()
    )


def text_of(result: dict[str, Json]) -> str:
    """What a model is shown of an MCP result: its texts, one after the other. Pictures and sounds
    are named, not written out; structured content stands in where there is no block at all."""
    texts = [_text_of_block(want_object(block)) for block in want_list(result["content"])]
    if not texts and "structuredContent" in result:
        return canonical_json(result["structuredContent"])
    return "\n".join(texts)


def _text_of_block(block: dict[str, Json]) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource", "resource": {"uri": uri}}:
            return f"[resource {uri}]"
        case {"type": "resource_link", "uri": uri}:
            return f"[{block.get('name') or 'resource'}]({uri})"
    return f"[{block['type']} {block.get('mimeType', '')}]".replace(" ]", "]")
