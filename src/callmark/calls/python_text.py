"""Calls and literals in Python's own writing, `f(x=1, y=['a'])`, read without running anything."""

from __future__ import annotations

import re
from typing import NamedTuple

from callmark.records.jsontext import MAX_DEPTH, Json, well_formed

_BLANKS = re.compile(r"\s*+")
_NAME = re.compile(r"[^\W\d][\w.-]{0,255}+")
_CALL = re.compile(rf"({_NAME.pattern})\(\s*+")
_KEYWORD = re.compile(r"([^\W\d]\w{0,255}+)\s*+=(?!=)\s*+")
_NUMBER = re.compile(r"[+-]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d++)?+(?![\w.])")
_WORD = re.compile(r"[A-Za-z]{4,5}(?!\w)")
_STRING = re.compile(
    r'"""((?:[^"\\]|\\.|"(?!""))*+)"""'
    r"|'''((?:[^'\\]|\\.|'(?!''))*+)'''"
    r'|"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"'
    r"|'([^'\\\n]*+(?:\\.[^'\\\n]*+)*+)'",
    re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:([\n\\'\"abfnrtv])|([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))"
)
_SIMPLE_ESCAPES: dict[str, str] = dict(
    zip("\n\\'\"abfnrtv", ("", *"\\'\"\a\b\f\n\r\t\v"), strict=True)
)

# Models mix the spellings of both languages.
CONSTANTS: dict[str, Json] = {
    "True": True,
    "False": False,
    "None": None,
    "true": True,
    "false": False,
    "null": None,
}


class NotPython(ValueError):
    """The text is no call or literal of Python; `position` is where that became clear."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.position = position


class PythonCall(NamedTuple):
    """One call with named arguments, and where it stands."""

    name: str
    arguments: dict[str, Json]
    start: int
    end: int


def calls_at(text: str, start: int, *, most: int | None = None) -> tuple[list[PythonCall], int]:
    """The calls that begin here, `[f(), g(x=1)]` or one after the other without brackets (at
    `most` so many), and where they end. Raises NotPython."""
    bracket = text.startswith("[", start)
    calls: list[PythonCall] = []
    position = _skip(text, start + bracket)
    while not (bracket and text.startswith("]", position)):
        call = _call(text, position)
        calls.append(call)
        position = _skip(text, call.end)
        if not bracket and len(calls) == most:
            return calls, call.end
        if text.startswith(",", position):
            position = _skip(text, position + 1)
        elif bracket and not text.startswith("]", position):
            raise NotPython("the list of calls is not closed", position)
        elif not bracket and not _CALL.match(text, position):
            return calls, call.end
    return calls, position + 1


def literal(text: str) -> Json:
    """The value of a text that is one Python literal and nothing else. Raises NotPython."""
    value, end = _value(text, _skip(text, 0), 0)
    if _skip(text, end) < len(text):
        raise NotPython("more follows the value", end)
    return value


def _call(text: str, start: int) -> PythonCall:
    opened = _CALL.match(text, start)
    if opened is None:
        raise NotPython("a call looks like name(key=value)", start)
    arguments: dict[str, Json] = {}
    position = opened.end()
    while not text.startswith(")", position):
        keyword = _KEYWORD.match(text, position)
        if keyword is None:
            raise NotPython("an argument has no name", position)
        if keyword[1] in arguments:
            raise NotPython(f"the argument {keyword[1]} is given twice", position)
        arguments[keyword[1]], position = _value(text, keyword.end(), 1)
        position = _next(text, position, ")")
    return PythonCall(opened[1], arguments, start, position + 1)


def _value(text: str, start: int, depth: int) -> tuple[Json, int]:
    if depth > MAX_DEPTH:
        raise NotPython(f"nested deeper than {MAX_DEPTH} levels", start)
    first = text[start : start + 1]
    if first == "{":
        return _dict(text, start, depth)
    if first and first in "[(":
        return _list(text, start, depth)
    if first and first in "\"'":
        return _string(text, start)
    word = _WORD.match(text, start)
    if word is not None and word[0] in CONSTANTS:
        return CONSTANTS[word[0]], word.end()
    return _number(text, start)


def _list(text: str, start: int, depth: int) -> tuple[Json, int]:
    closing = "]" if text[start] == "[" else ")"
    entries: list[Json] = []
    position = _skip(text, start + 1)
    while not text.startswith(closing, position):
        entry, position = _value(text, position, depth + 1)
        entries.append(entry)
        position = _next(text, position, closing)
    return entries, position + 1


def _dict(text: str, start: int, depth: int) -> tuple[Json, int]:
    members: dict[str, Json] = {}
    position = _skip(text, start + 1)
    while not text.startswith("}", position):
        if text[position : position + 1] not in ("'", '"'):
            raise NotPython("a key is not a string", position)
        key, position = _string(text, position)
        position = _skip(text, position)
        if not text.startswith(":", position):
            raise NotPython("a key has no value", position)
        members[key], position = _value(text, _skip(text, position + 1), depth + 1)
        position = _next(text, position, "}")
    return members, position + 1


def _string(text: str, start: int) -> tuple[str, int]:
    match = _STRING.match(text, start)
    if match is None:
        line_end = text.find("\n", start)
        raise NotPython("a string is not closed", len(text) if line_end < 0 else line_end)
    inner: str = match[match.lastindex or 0]
    return (_unescape(inner) if "\\" in inner else inner), match.end()


def _number(text: str, start: int) -> tuple[Json, int]:
    match = _NUMBER.match(text, start)
    if match is None:
        raise NotPython("a value is no literal", start)
    try:
        value = float(match[0]) if set(match[0]) & set(".eE") else int(match[0])
    except ValueError:  # more digits than Python converts
        raise NotPython("a number is out of range", match.end()) from None
    if value in (float("inf"), float("-inf")):
        raise NotPython("a number is out of range", match.end())
    return value, match.end()


def _next(text: str, position: int, closing: str) -> int:
    """Behind the comma, or at the closing bracket."""
    position = _skip(text, position)
    if text.startswith(",", position):
        return _skip(text, position + 1)
    if not text.startswith(closing, position):
        raise NotPython(f"a comma or {closing} is missing", position)
    return position


def _skip(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    return match.end() if match else position


def _unescape(text: str) -> str:
    """What Python does: an escape that it does not know stays as it is written."""
    return well_formed(_ESCAPE.sub(_escape, text))


def _escape(match: re.Match[str]) -> str:
    simple, octal, *hexadecimal = match.groups(default="")
    if simple:
        return _SIMPLE_ESCAPES[simple]
    code = int(octal, 8) if octal else int("".join(hexadecimal), 16)
    return chr(code) if code <= 0x10FFFF else match.group()
