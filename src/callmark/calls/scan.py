"""Reading JSON and Python calls out of running text, in time that grows with the text and not with
its square. Python, `f(x=1, y=['a'])`, is read without running anything."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from typing import NamedTuple

from callmark.records.jsontext import MAX_DEPTH, Json, NotJson, parse_json, well_formed

_ANY_BLANKS = re.compile(r"\s*+")
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
    match = _ANY_BLANKS.match(text, position)
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


_decode_from = json.JSONDecoder().raw_decode
_FENCE = re.compile("```")
_BLANKS = re.compile(r"[ \t\r\n]*")
_LIST_END = re.compile(r"[ \t\r\n]*([,\]])")

# Work on what turned out broken: this much per character of the text is spent on looking at
# every nested start again; after that what broke is skipped as a whole.
_WORK_PER_CHARACTER = 8
_WORK_AT_LEAST = 100_000
_UNKNOWN_EXTENT = 1_000
_BRACKETS = re.compile(r"[\[{]")
# Python's limit on recursion is 1,000 for everything; so deep are JSON's brackets at most.
_DECODERS_DEPTH = 900
# An error message counts lines from the start of its text: so the text is cut now and then.
_REBASE_AFTER = 8_192


_FENCE_OF = re.compile(r"```[ \t]*([\w+#.-]*)")
# In a block of these somebody shows a program.
_PROGRAMS = frozenset(
    "python py python3 js javascript ts typescript jsx tsx bash sh shell zsh console java kotlin"
    " go rust c cpp c++ cs csharp ruby rb php sql html css swift r scala lua perl diff".split()
)


def program_edges(text: str) -> list[int]:
    """Where the fenced blocks of programming languages begin and end, in turn."""
    edges: list[int] = []
    language: str | None = None
    for fence in _FENCE_OF.finditer(text):
        is_opening = language is None
        if (fence[1].lower() if is_opening else language) in _PROGRAMS:
            edges.append(fence.start())
        language = fence[1].lower() if is_opening else None
    return edges


class Element(NamedTuple):
    """One JSON value and where it stands."""

    value: Json
    start: int
    end: int


class Scanner:
    """The text of one turn while formats read it. It remembers what was looked for in vain."""

    __slots__ = (
        "_base", "_blocked", "_brackets", "_fences", "_found", "_only", "_programs", "_rest",
        "_work_left", "text",
    )  # fmt: skip

    def __init__(self, text: str) -> None:
        self.text = text
        self._base = 0
        self._rest = text
        self._blocked = 0
        self._work_left = max(_WORK_AT_LEAST, _WORK_PER_CHARACTER * len(text))
        self._found: dict[str, tuple[int, int]] = {}
        self._fences: list[int] | None = None
        self._programs: list[int] | None = None
        self._brackets: list[int] | None = None
        self._only: dict[re.Pattern[str], bool] = {}

    def find(self, mark: str, start: int) -> int:
        """Like `str.find`, but a mark that is far away or not there is looked for once only."""
        known = self._found.get(mark)
        if known is not None and known[0] <= start and (start <= known[1] or known[1] < 0):
            return known[1]
        position = self.text.find(mark, start)
        self._found[mark] = (start, position)
        return position

    def find_first(self, marks: tuple[str, ...], start: int) -> int:
        """Where the first of these marks stands; the end of the text if none does."""
        places = [place for mark in marks if (place := self.find(mark, start)) >= 0]
        return min(places, default=len(self.text))

    def is_fenced(self, position: int) -> bool:
        """Whether a fence was opened before this place and not closed."""
        if self._fences is None:
            self._fences = [fence.start() for fence in _FENCE.finditer(self.text)]
        return bisect_left(self._fences, position) % 2 == 1

    def is_in_program(self, position: int) -> bool:
        """Whether this place is in a fenced block of a programming language."""
        if self._programs is None:
            self._programs = program_edges(self.text)
        return bisect_left(self._programs, position) % 2 == 1

    def is_only(self, pattern: re.Pattern[str]) -> bool:
        """Whether the whole text is of this pattern, which is tried once."""
        if pattern not in self._only:
            self._only[pattern] = pattern.fullmatch(self.text) is not None
        return self._only[pattern]

    def skip_blanks(self, start: int) -> int:
        match = _BLANKS.match(self.text, start)
        return match.end() if match else start

    def value_at(self, start: int) -> Element | None:
        """The strict JSON value that begins exactly here, or None."""
        if start < self._blocked or start >= len(self.text):
            return None
        if start - self._base > _REBASE_AFTER:
            self._base, self._rest = start, self.text[start:]
        end = start + _UNKNOWN_EXTENT
        try:
            _, stop = _decode_from(self._rest, start - self._base)
            end = self._base + stop
            value = parse_json(self._rest[start - self._base : stop])
        except json.JSONDecodeError as error:
            self._give_up(start, self._base + error.pos)
            return None
        except RecursionError:
            self._give_up(start, max(end, self._reach(start)))
            return None
        except (NotJson, ValueError):
            self._give_up(start, end)
            return None
        return Element(value, start, end)

    def elements_at(self, start: int) -> tuple[list[Element], int] | None:
        """The members of the list that begins here, or the one value; and where it ends."""
        if not self.text.startswith("[", start):
            single = self.value_at(start)
            return None if single is None else ([single], single.end)
        members: list[Element] = []
        position = self.skip_blanks(start + 1)
        if self.text.startswith("]", position):
            return members, position + 1
        while (member := self.value_at(position)) is not None:
            members.append(member)
            after = _LIST_END.match(self.text, member.end)
            if after is None:
                return None
            if after.group(1) == "]":
                return members, after.end()
            position = self.skip_blanks(after.end())
        return None

    def bracket_end(self, start: int, pieces: re.Pattern[str], limit: int) -> int:
        """Behind the bracket that closes the one at `start`; -1: none does before the limit.
        `pieces` are the curly brackets, and what may hold some that do not count."""
        depth = 0
        if start >= self._blocked:
            for piece in pieces.finditer(self.text, start, limit):
                depth += (piece[0] == "{") - (piece[0] == "}")
                if depth <= 0:
                    return piece.end()
            self._give_up(start, limit)
        return -1

    def python_calls_at(
        self, start: int, *, most: int | None = None
    ) -> tuple[list[PythonCall], int] | NotPython:
        """The Python calls that begin here and where they end, or why there are none."""
        if start < self._blocked:
            return NotPython("too much of the text is broken", start)
        try:
            return calls_at(self.text, start, most=most)
        except NotPython as error:
            self._give_up(start, error.position)
            return error

    def reason_at(self, start: int, end: int) -> str:
        """Why the text between is not JSON."""
        body = self.text[start:end].strip()
        if not body:
            return "there is nothing in it"
        try:
            parse_json(body)
        except NotJson as error:
            return str(error)
        return "more follows the call"

    def _reach(self, start: int) -> int:
        """About how far a decoder got that gave up because of the depth."""
        if self._brackets is None:
            self._brackets = [bracket.start() for bracket in _BRACKETS.finditer(self.text)]
        deepest = bisect_left(self._brackets, start) + _DECODERS_DEPTH
        return self._brackets[deepest] if deepest < len(self._brackets) else len(self.text)

    def _give_up(self, start: int, end: int) -> None:
        self._work_left -= end - start + 1
        if self._work_left < 0:
            self._blocked = max(self._blocked, end)
