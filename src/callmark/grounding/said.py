"""What the user said: a value that stands there is no invention, but grounds nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from callmark.grounding.dates import Moment
from callmark.grounding.evidence import is_number
from callmark.grounding.numbers import of_json
from callmark.grounding.text import find_at_boundaries, fold
from callmark.grounding.values import Value, ends_in, identifier_key, values_of
from callmark.records.jsontext import Json
from callmark.records.trace import json_inside

K = TypeVar("K", int, str)

# `HAT 023`, `credit card 4421486`: up to three words before digits may be an identifier. Tried
# where a word begins only: a page of Chinese is one word, and would be tried at each character.
_WORDS_AND_DIGITS = re.compile(r"(?<![^\W\d_])(?:[^\W\d_]+ ){0,2}[^\W\d_]+[ #]{1,2}\d[\w-]*")


class Utterance(NamedTuple):
    """A text of the user (or a call's argument), and the turns that came before it: it counts
    for what is said in a later turn."""

    turn: int
    text: str | int | float


class Said:
    """Indexed when the first question is asked: most answers never ask. `names` are the field
    names that the model was shown: no values of the evidence, and no inventions either."""

    def __init__(
        self,
        utterances: Iterable[Utterance],
        locale: str | None,
        names: Iterable[tuple[int, str]] = (),
    ) -> None:
        self._utterances = utterances
        self._names = names
        self._locale = locale
        self._numbers: dict[int, int] = {}
        self._keys: dict[str, int] = {}
        self._moments: list[tuple[Moment, int]] = []
        self._folded: list[tuple[str, int]] = []
        self._indexed = False

    def holds(self, value: Value, turn: int | None) -> bool:
        self._index()
        if value.kind == "number":
            return any(self._number(reading, turn) for reading in value.readings)
        if value.kind == "moment":
            return any(
                _earlier(at, turn) and stated.agrees(moment)
                for stated in value.moments
                for moment, at in self._moments
            )
        if value.kind in ("quote", "code"):
            return self.holds_text(value.key, turn) or self.holds_key(
                identifier_key(value.key), turn
            )
        return self.holds_key(value.key, turn)

    def holds_key(self, key: str, turn: int | None) -> bool:
        self._index()
        at = self._keys.get(key)
        return at is not None and _earlier(at, turn)

    def holds_ending(self, digits: str, turn: int | None) -> bool:
        self._index()
        return any(ends_in(key, digits) and _earlier(at, turn) for key, at in self._keys.items())

    def holds_text(self, folded: str, turn: int | None) -> bool:
        self._index()
        return any(
            _earlier(at, turn) and find_at_boundaries(folded, text) >= 0
            for text, at in self._folded
        )

    def _number(self, scaled: int, turn: int | None) -> bool:
        return any(
            _earlier(self._numbers[near], turn)
            for near in (scaled, scaled - 1, scaled + 1)
            if near in self._numbers
        )

    def _index(self) -> None:
        if self._indexed:
            return
        self._indexed = True
        for turn, text in self._utterances:
            if not isinstance(text, str):
                _note(self._numbers, of_json(text), turn)
                continue
            folded = fold(text)
            self._folded.append((folded, turn))
            for match in _WORDS_AND_DIGITS.finditer(folded):
                for start in _word_starts(match[0]):
                    _note(self._keys, identifier_key(match[0][start:]), turn)
            for locale in {None, self._locale}:
                for value in values_of(text, locale):
                    self._add(value, turn)

        for turn, name in self._names:
            _note(self._keys, identifier_key(name), turn)

    def _add(self, value: Value, turn: int) -> None:
        for reading in value.readings:
            _note(self._numbers, reading, turn)
        for moment in value.moments:
            self._moments.append((moment, turn))
        if value.key:
            _note(self._keys, value.key, turn)
        for inner in value.inner:
            self._add(inner, turn)


def _note(turns: dict[K, int], key: K, turn: int) -> None:
    """Remember when something was said first."""
    turns[key] = min(turn, turns.get(key, turn))


def _word_starts(phrase: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer(" (?=[^\\W\\d_])", phrase))]


def _earlier(at: int, turn: int | None) -> bool:
    return turn is None or at < turn


def names_in(value: Json) -> set[str]:
    """Every key of a JSON value: a word that the model was shown."""
    names: set[str] = set()
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            value = json_inside(value)
        if isinstance(value, dict):
            names.update(value)
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
    return names


def argument_leaves(arguments: Json) -> Iterable[str | int | float]:
    """Texts and numbers of a call's arguments."""
    stack = [arguments]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, str) or is_number(value):
            yield value
