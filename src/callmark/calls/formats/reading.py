"""What a format is, and what it may ask of the turn that it reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from callmark.calls.attempts import (
    Attempt,
    MalformedCall,
    ToolCall,
    is_shallow_object,
    malformed,
    marked_attempt,
    members_of,
    unmarked_call,
)
from callmark.calls.scan import Element, Scanner
from callmark.calls.schema import typed_value
from callmark.records.jsontext import Json, canonical_json
from callmark.records.trace import RepairedCall

_JSON_LINE = re.compile(r"""\s*[]["'{},\d-]""")

# What of a turn may go to the lenient parser, sound calls included.
_REPAIR_PER_TURN = 20_000


class TextBlock(NamedTuple):
    """What was read up to `end`. With attempts (or thinking) it is cut out of the text; with
    neither it is text that needs no second look."""

    end: int
    attempts: tuple[Attempt, ...] = ()
    thinking: str | None = None


class WrittenText(NamedTuple):
    """A parameter as a format without types writes it; `is_string`: the format says so."""

    key: str
    text: str
    is_string: bool = False


class TurnReading(Scanner):
    """A turn's text together with what is known of the tools: which are offered, and the schema
    of a tool's parameters (None: not known). `is_named`: somebody said which format it is in."""

    __slots__ = ("_repair_left", "is_named", "offers", "schema_of")

    def __init__(
        self,
        text: str,
        offers: Callable[[str], bool],
        schema_of: Callable[[str], Json],
        *,
        is_named: bool = False,
    ) -> None:
        super().__init__(text)
        self.offers = offers
        self.schema_of = schema_of
        self.is_named = is_named
        self._repair_left = _REPAIR_PER_TURN

    def marked(
        self, elements: list[Element], format_name: str, start: int, end: int
    ) -> tuple[Attempt, ...]:
        """Every value after the mark at `start` is an attempt."""
        return tuple(
            marked_attempt(member, raw, format_name, repair=self._may_repair(raw))
            for member, raw in self._members(elements, start, end)
        )

    def unmarked(
        self, elements: list[Element], format_name: str, start: int, end: int
    ) -> tuple[ToolCall, ...]:
        """Only values that name an offered tool and have arguments are calls, and what stands in
        one list with such a call; and a turn that is nothing else, where calls are known to be
        written so."""
        found = [
            call
            for member, raw in self._members(elements, start, end)
            if (call := unmarked_call(member, raw, format_name)) is not None
        ]
        if any(self.offers(call.name) for call in found):
            return tuple(found)
        is_all = self.skip_blanks(end) == len(self.text) and self.skip_blanks(0) == start
        return tuple(found) if self.is_named and is_all else ()

    def named(self, name: str, arguments: Json, span: tuple[int, int], format_name: str) -> Attempt:
        """One call whose name stands apart from its arguments."""
        raw = self.text[slice(*span)].rstrip()
        call = {"name": name, "arguments": arguments}
        return marked_attempt(call, raw, format_name, repair=self._may_repair(raw))

    def texts(
        self,
        name: str,
        written: list[WrittenText],
        span: tuple[int, int],
        format_name: str,
        reason: str = "",
    ) -> Attempt:
        """One call whose values are plain text, typed by the tool's schema. With a `reason` it is
        malformed, and this is what can be made of it."""
        schema, raw = self.schema_of(name), self.text[slice(*span)]
        arguments = {
            one.key: typed_value(one.text, one.key, schema, is_string=one.is_string)
            for one in written
        }
        if len(written) == 1:
            arguments = _unwrap_all(written[0], arguments, schema)
        if reason:
            repaired = RepairedCall(name, arguments)
            return MalformedCall(name, reason, raw, format_name, repaired)
        return ToolCall(name, arguments, raw, format_name)

    def malformed(
        self, span: tuple[int, int], format_name: str, reason: str, name: str | None = None
    ) -> TextBlock:
        """An attempt of which nothing can be made."""
        raw = self.text[slice(*span)].rstrip()
        return TextBlock(span[1], (MalformedCall(name, reason, raw, format_name),))

    def broken(
        self,
        start: int,
        body: tuple[int, int],
        end: int,
        format_name: str,
        reason: str = "",
        *,
        name: str | None = None,
    ) -> TextBlock:
        """A malformed attempt from `start` to `end`, whose JSON should have stood in `body`: a
        call, or with a `name` the arguments of that tool."""
        raw, inner = self.text[start:end].rstrip(), self.text[slice(*body)].strip()
        why = reason or self.reason_at(*body)
        repair = self._may_repair(inner)
        return TextBlock(end, (malformed(inner, why, raw, format_name, name=name, repair=repair),))

    def extent(self, body: int, closing: str, opening: str) -> tuple[int, int]:
        """(end of the body, end of the block): to the closing mark, the next opening one or the
        end of the text; by lines where a format has no closing mark."""
        if not closing:
            stop = self.extent_by_lines(body, opening)
            return stop, stop
        close, following = self.find(closing, body), self.find(opening, body)
        if close >= 0 and not 0 <= following < close:
            return close, close + len(closing)
        stop = following if following >= 0 else len(self.text)
        return stop, stop

    def extent_by_lines(self, start: int, opening: str) -> int:
        """The end of something broken that no mark closes: the line on which as many brackets are
        closed as were opened; if there is none before the next opening mark, the last line that
        looks like JSON, so that the prose after it stays."""
        text, limit = self.text, self.find_first((opening,), start)
        body = self.skip_blanks(start)
        start = body if text.startswith(("{", "["), body) else start
        depth, position, json_end = 0, start, -1
        while position < limit:
            stop = text.find("\n", position, limit)
            stop = limit if stop < 0 else stop
            line = text[position:stop]
            if json_end < 0 and position > start and not _JSON_LINE.match(line):
                json_end = position
            depth += line.count("{") + line.count("[") - line.count("}") - line.count("]")
            if depth <= 0:
                return stop
            position = stop + 1
        return json_end if json_end >= 0 else limit

    def _may_repair(self, text: str) -> bool:
        self._repair_left -= len(text)
        return self._repair_left >= 0

    def _members(self, elements: list[Element], start: int, end: int) -> Iterator[tuple[Json, str]]:
        """Each call object with its text: the only one has its marks, of several each its JSON."""
        for element in elements:
            span = (start, end) if len(elements) == 1 else (element.start, element.end)
            members = members_of(element.value)
            if len(members) == 1:
                yield members[0], self.text[slice(*span)]
            else:
                yield from ((member, canonical_json(member)) for member in members)


# The names under which models put all arguments into one parameter.
_ALL_IN_ONE = frozenset({"arguments", "input", "properties"})


def _unwrap_all(only: WrittenText, arguments: dict[str, Json], schema: Json) -> dict[str, Json]:
    """All arguments as an object in a parameter that the tool does not have: servers pass the
    object on, so that the same answer is the same call over the wire and as text."""
    known = schema.get("properties") if isinstance(schema, dict) else None
    if only.key not in _ALL_IN_ONE or not isinstance(known, dict) or only.key in known:
        return arguments
    inner = typed_value(only.text, only.key, None)
    return inner if is_shallow_object(inner) and inner.keys() <= known.keys() else arguments


class Format(NamedTuple):
    """`opening` is the regular expression of its mark, `hint` a literal without which no text
    holds this format. `read` gets the place of the mark: (reading, start, end of the mark); None
    leaves the place to the next row. Rows of one name are one format. What has no mark of its own
    (`is_marked` false) is a call by what it says only."""

    name: str
    hint: str
    opening: str
    read: Callable[[TurnReading, int, int], TextBlock | None]
    is_marked: bool = True
