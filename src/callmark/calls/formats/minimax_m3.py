"""Every tag behind `]<]minimax[>[`: `<invoke name="f">`, then an element for each argument, with
elements in it for the members of an object, `<item>` for those of a list."""

from __future__ import annotations

import re
from typing import NamedTuple

from callmark.calls.attempts import ToolCall, is_nested_too_deeply
from callmark.calls.formats.reading import Format, TextBlock, TurnReading
from callmark.calls.typed_text import allows, schema_below, typed_leaf
from callmark.records.jsontext import MAX_DEPTH, Json

_NAME = "minimax_m3"
_MARK = "]<]minimax[>["
_MARKED = re.escape(_MARK) + r"\s*+"
_HEADER = rf"{_MARKED}<invoke name=\"([^\"<>]{{1,256}})\"\s*+>"
_OPENING = re.compile(_HEADER)
_TAG = re.compile(rf"{_MARKED}<(/?+)([^<>]{{1,256}}+)>")
_ITEM = "item"


class _Element(NamedTuple):
    """An open element: its tag, its schema, where its text begins, and the elements in it."""

    tag: str
    schema: Json
    start: int
    members: list[tuple[str, Json]]


def _read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
    header = _OPENING.match(reading.text, start)
    if header is None:
        end = reading.find_first((f"{_MARK}</tool_call>", _MARK + "<tool_call>"), mark_end)
        return reading.malformed((start, end), _NAME, "no call begins in it")
    root = reading.schema_of(header[1])
    stack = [_Element("invoke", root, header.end(), [])]
    position, reason = header.end(), ""
    while stack and not reason:
        place = reading.find(_MARK, position)
        tag = _TAG.match(reading.text, place) if place >= 0 else None
        if tag is None or tag[2].startswith(("invoke ", "tool_call")):
            reason = "the call is not closed"
        elif not tag[1]:
            below = schema_below(stack[-1].schema, tag[2].strip(), root)
            stack.append(_Element(tag[2].strip(), below, tag.end(), []))
        elif tag[2].strip() != stack[-1].tag:
            reason = f"{stack[-1].tag} is closed by {tag[2].strip()}"
        else:
            done = stack.pop()
            value = _value(reading.text[done.start : place], done, root)
            if stack:
                stack[-1].members.append((done.tag, value))
        if len(stack) > MAX_DEPTH:
            reason = f"the arguments are nested deeper than {MAX_DEPTH} levels"
        position = tag.end() if tag else position
    if reason or not isinstance(value, dict) or is_nested_too_deeply(value):
        end = reading.find_first((f"{_MARK}<invoke", f"{_MARK}<tool_call>"), header.end())
        return reading.malformed((start, end), _NAME, reason or "it has no arguments", header[1])
    return TextBlock(position, (ToolCall(header[1], value, reading.text[start:position], _NAME),))


def _value(text: str, element: _Element, root: Json) -> Json:
    """What a closed element means: an object or a list by its elements, else its text."""
    tags = [tag for tag, _ in element.members]
    is_list = allows(element.schema, "array", root)
    if tags and tags == [_ITEM] * len(tags) and (is_list or element.schema is None):
        return [value for _, value in element.members]
    if tags or element.tag == "invoke" or not (text.strip() or _is_plain(element.schema, root)):
        return [] if is_list and not tags else _object(element.members)
    return typed_leaf(text, element.schema, root)


def _is_plain(schema: Json, root: Json) -> bool:
    return not (allows(schema, "object", root) or allows(schema, "array", root))


def _object(members: list[tuple[str, Json]]) -> dict[str, Json]:
    """A name that comes again makes a list."""
    found: dict[str, list[Json]] = {}
    for tag, value in members:
        found.setdefault(tag, []).append(value)
    return {tag: values[0] if len(values) == 1 else values for tag, values in found.items()}


def _read_wrapper(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
    """Passed over as a whole: the tag in it opens calls of other formats."""
    if _CALL_AHEAD.match(reading.text, mark_end):
        return TextBlock(mark_end)
    return _read(reading, start, mark_end)


_CALL_AHEAD = re.compile(rf"\s*+{_MARKED}<invoke")
MINIMAX_M3 = (
    Format(_NAME, _MARK, rf"{_MARKED}<invoke", _read),
    Format(_NAME, _MARK, rf"{_MARKED}<tool_call>", _read_wrapper),
)
