"""`<|open|>call tool="f" index="1"<|sep|><|open|>argument key="a" type="number"<|sep|>1<|close|>…`:
every value comes with its type."""

from __future__ import annotations

import re

from callmark.calls.attempts import MalformedCall, ToolCall
from callmark.calls.formats.reading import Format, TextBlock, TurnReading
from callmark.records.jsontext import Json, NotJson, parse_json
from callmark.records.trace import RepairedCall

_NAME = "kimi_k3"
_OPEN, _CLOSE, _SEP = "<|open|>", "<|close|>", "<|sep|>"
_ATTRIBUTE = re.compile(r'(\w{1,64}+)="([^"]{0,256}+)"\s*+')
_ARGUMENT = re.compile(r"\s*+<\|open\|>\s*+argument\s++")
_ARGUMENT_END = re.compile(r"<\|close\|>\s*+argument\s*+<\|sep\|>")
_CALL_END = re.compile(r"\s*+<\|close\|>\s*+call\s*+<\|sep\|>")


def _read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
    given, position = _attributes(reading, mark_end)
    tool = given.get("tool", "")
    arguments: dict[str, Json] = {}
    while position >= 0 and (opened := _ARGUMENT.match(reading.text, position)) is not None:
        said, value = _attributes(reading, opened.end())
        stop, position = _argument_end(reading, value) if value >= 0 else (-1, -1)
        if position >= 0:
            written = reading.text[value:stop]
            arguments[said.get("key", "")] = _typed(written, said.get("type", "string"))
    closed = _CALL_END.match(reading.text, position) if position >= 0 else None
    if closed is not None and tool:
        raw = reading.text[start : closed.end()]
        return TextBlock(closed.end(), (ToolCall(tool, arguments, raw, _NAME),))
    end = closed.end() if closed else reading.find_first(_NEXT, mark_end)
    reason = "the call names no tool" if closed else "the call is not closed"
    repaired = RepairedCall(tool, arguments) if tool else None
    raw = reading.text[start:end].rstrip()
    return TextBlock(end, (MalformedCall(tool or None, reason, raw, _NAME, repaired),))


def _attributes(reading: TurnReading, position: int) -> tuple[dict[str, str], int]:
    """What stands up to the separator, and the place behind it; -1: there is no separator."""
    given: dict[str, str] = {}
    while (found := _ATTRIBUTE.match(reading.text, position)) is not None:
        given[found[1]] = found[2].replace("&quot;", '"').replace("&amp;", "&")
        position = found.end()
    if not reading.text.startswith(_SEP, position):
        return given, -1
    return given, position + len(_SEP)


def _argument_end(reading: TurnReading, position: int) -> tuple[int, int]:
    opened = reading.find(_OPEN, position)
    while (stop := reading.find(_CLOSE, position)) >= 0 and not 0 <= opened < stop:
        closed = _ARGUMENT_END.match(reading.text, stop)
        if closed is not None:
            return stop, closed.end()
        position = stop + 1
    return -1, -1


def _typed(text: str, kind: str) -> Json:
    if kind == "string":
        return text
    try:
        return parse_json(text)
    except NotJson:
        return text  # of another type than it claims: the schema's verdict names it


_HINTS = ("<|open|>call ", "<|open|> call ")
_NEXT = (*_HINTS, "<|close|>tools")
KIMI_K3 = tuple(Format(_NAME, hint, re.escape(hint.strip()) + r"\s++", _read) for hint in _HINTS)
