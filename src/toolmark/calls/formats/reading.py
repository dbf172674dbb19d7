"""What a format is, and what it may ask of the turn that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from toolmark.calls.attempts import (
    Attempt,
    ToolCall,
    malformed,
    marked_attempt,
    members_of,
    unmarked_call,
)
from toolmark.calls.scan import Element, Scanner
from toolmark.core.jsontext import Json, canonical_json

# What of a turn may go to the lenient parser, sound calls included.
_REPAIR_PER_TURN = 20_000


class Block(NamedTuple):
    """What was read up to `end`. With attempts (or thinking) it is cut out of the text; with
    neither it is text that needs no second look."""

    end: int
    attempts: tuple[Attempt, ...] = ()
    thinking: str | None = None


class Reading(Scanner):
    """A turn's text together with the question whether a tool is offered."""

    __slots__ = ("_repair_left", "offers")

    def __init__(self, text: str, offers: Callable[[str], bool]) -> None:
        super().__init__(text)
        self.offers = offers
        self._repair_left = _REPAIR_PER_TURN

    def marked(
        self, elements: list[Element], format_name: str, start: int, end: int
    ) -> tuple[Attempt, ...]:
        """Every value behind the mark at `start` is an attempt."""
        return tuple(
            marked_attempt(member, raw, format_name, repair=self._may_repair(raw))
            for member, raw in self._members(elements, start, end)
        )

    def unmarked(
        self, elements: list[Element], format_name: str, start: int, end: int
    ) -> tuple[ToolCall, ...]:
        """Only values that name an offered tool and have arguments are calls."""
        calls = (
            unmarked_call(member, raw, format_name)
            for member, raw in self._members(elements, start, end)
        )
        return tuple(call for call in calls if call is not None and self.offers(call.name))

    def broken(
        self, start: int, body: tuple[int, int], end: int, format_name: str, reason: str = ""
    ) -> Block:
        """A malformed attempt from `start` to `end`, whose JSON should have stood in `body`."""
        raw, inner = self.text[start:end].rstrip(), self.text[slice(*body)].strip()
        why = reason or self.reason_at(*body)
        attempt = malformed(inner, why, raw, format_name, repair=self._may_repair(inner))
        return Block(end, (attempt,))

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


class Format(NamedTuple):
    """`opening` is the regular expression of its mark, `hint` a literal without which no text
    holds this format. `read` gets the place of the mark: (reading, start, end of the mark)."""

    name: str
    hint: str
    opening: str
    read: Callable[[Reading, int, int], Block | None]
