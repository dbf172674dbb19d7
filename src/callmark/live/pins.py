"""Fields that differ from call to call (times, ids) get one value for ever: `--pin`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from callmark.errors import UsageError
from callmark.records.jsontext import Json, NotJson, parse_json, want_list, want_object
from callmark.records.trace import is_mcp_result, json_inside

_PIN = re.compile(r"(?P<tool>[^:]+):(?P<path>[$/][^=]*)=(?P<value>.*)", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\*)\]|\['([^']*)'\]")

Path = tuple[str, ...]


class Pin(msgspec.Struct, frozen=True):
    """`path` leads into what the tool said: the structured content and JSON inside a text of an
    MCP result, the result itself of any other tool. `*` is every element."""

    written: str
    tool: str
    path: Path
    value: Json


def read_pin(text: str) -> Pin:
    """`TOOL:$.a.b[0]=VALUE` or `TOOL:/a/b/0=VALUE`; a value that is no JSON is a text."""
    found = _PIN.fullmatch(text)
    if found is None:
        raise UsageError(f"--pin {text}: write TOOL:PATH=VALUE, such as clock:$.now=2026-01-01")
    value = found["value"]
    try:
        parsed = parse_json(value)
    except NotJson:
        parsed = value
    return Pin(text, found["tool"], _path_of(found["path"], text), parsed)


class Pins:
    """All pins of a recording: those that were given, and of `earlier` recordings those for other
    places. `unused` are the given ones that nothing fitted."""

    def __init__(self, given: Sequence[Pin], earlier: Iterable[Pin] = ()) -> None:
        places = {(pin.tool, pin.path) for pin in given}
        self._given = given
        self._pins = (*(one for one in earlier if (one.tool, one.path) not in places), *given)
        self._used: set[str] = set()

    @property
    def written(self) -> tuple[str, ...]:
        return tuple(pin.written for pin in self._pins)

    @property
    def unused(self) -> tuple[str, ...]:
        return tuple(pin.written for pin in self._given if pin.written not in self._used)

    def apply(self, tool: str, result: Json) -> Json:
        for pin in self._pins:
            if pin.tool == tool:
                result = self._applied(pin, result)
        return result

    def _applied(self, pin: Pin, result: Json) -> Json:
        if not is_mcp_result(result):
            return self._set(pin, result)
        changed = dict(result)
        if "structuredContent" in changed:
            changed["structuredContent"] = self._set(pin, changed["structuredContent"])
        changed["content"] = [
            self._in_block(pin, want_object(block)) for block in want_list(changed["content"])
        ]
        return changed

    def _in_block(self, pin: Pin, block: dict[str, Json]) -> dict[str, Json]:
        text = block.get("text")
        if not isinstance(text, str) or (inside := json_inside(text)) is text:
            return block
        pinned = self._set(pin, inside)
        return block if pinned is inside else {**block, "text": _written_like(text, pinned)}

    def _set(self, pin: Pin, value: Json) -> Json:
        pinned = _with(value, pin.path, pin.value)
        if pinned is not value:
            self._used.add(pin.written)
        return pinned


def _with(value: Json, path: Path, new: Json) -> Json:
    """The value with `new` at the path; the very same value where there is no such place."""
    if not path:
        return new
    if not isinstance(value, dict | list):
        return value
    step, *rest = path
    changed = value
    for place in _places(value, step):
        below = _with(value[place], tuple(rest), new)
        if below is not value[place]:
            changed = value.copy() if changed is value else changed
            changed[place] = below
    return changed


def _places(value: dict[str, Json] | list[Json], step: str) -> Sequence[Any]:
    """Keys of an object, or places in a list."""
    if isinstance(value, dict):
        return list(value) if step == "*" else [step] if step in value else []
    if step == "*":
        return range(len(value))
    return [int(step)] if step.isdecimal() and int(step) < len(value) else []


def _written_like(text: str, value: Json) -> str:
    """JSON with the indentation of the text that it replaces."""
    indent = re.match(r"\s*[\[{]\n( +)", text)
    if indent is None:
        compact = ": " not in text and ", " not in text
        separators = (",", ":") if compact else None
        return json.dumps(value, ensure_ascii=False, separators=separators)
    return json.dumps(value, ensure_ascii=False, indent=len(indent[1]))


def _path_of(written: str, text: str) -> Path:
    if written.startswith("/"):
        parts = written[1:].split("/") if written != "/" else []
        return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)
    steps: list[str] = []
    position = 1
    while position < len(written):
        step = _STEP.match(written, position)
        if step is None:
            raise UsageError(f"--pin {text}: cannot read the path from {written[position:]!r} on")
        steps.append(next(group for group in step.groups() if group is not None))
        position = step.end()
    return tuple(steps)
