"""Quotations that are nearly, but not quite, what a result says: one word is another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import NamedTuple

from callmark.grounding.match import Said
from callmark.grounding.record_tree import Field, RecordTree, stem
from callmark.grounding.text import NUMBER_WORDS, STOP_WORDS, fold, once
from callmark.grounding.values import Value

SHORTEST = 5  # words of a quotation that is looked for
MOST_WORDS = 60
MOST_TEXT = 200_000  # characters of all texts in which quotations are looked for
MOST_PLACES = 400  # where a quotation may begin
WORDS_FOR_EACH = 8  # that many words of a quotation for each that may be another
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
# What is left out or put in by whoever quotes.
_CUT = re.compile(r"\.\.\.|…|\[|\{|<|`")


class AlteredQuote(NamedTuple):
    """From `start` to `end` stands a quotation in which `said` is another word than `given`."""

    start: int
    end: int
    field: Field
    said: str
    given: str


class Quotations:
    """The texts of the results, word by word."""

    def __init__(self, tree: RecordTree, said: Said, written: Iterable[str]) -> None:
        """`written`: what calls were given, which an answer may quote as well."""
        self._tree, self._said, self._written = tree, said, written

    def altered_in(self, values: Iterable[Value]) -> Iterator[AlteredQuote]:
        for value in values:
            if value.kind != "quote" or _CUT.search(value.text) or self._said.holds(value, None):
                continue
            words = _words_of(value.text)
            if SHORTEST <= len(words) <= MOST_WORDS:
                found = self._nearest(words)
                if found is not None:
                    yield AlteredQuote(value.start, value.end, *found)

    @once
    def _texts(self) -> list[tuple[list[str], Field | None]]:
        texts: list[tuple[str, Field | None]] = [
            (field.value, field)
            for field in self._tree.fields
            if isinstance(field.value, str) and field.value.count(" ") >= SHORTEST - 2
        ]
        self._said.known()  # only then are they read
        texts += [(text, None) for _, text in self._said.texts]
        texts += [(text, None) for text in self._written]
        kept = []
        left = MOST_TEXT
        for text, field in texts:
            left -= len(text)
            if left >= 0:
                kept.append((_words_of(text), field))
        return kept

    def _nearest(self, words: list[str]) -> tuple[Field, str, str] | None:
        most = max(1, len(words) // WORDS_FOR_EACH)
        best: tuple[int, Field, str, str] | None = None
        for count, (number, at) in enumerate(self._beginnings(words)):
            if count == MOST_PLACES:
                return None
            text, field = self._texts[number]
            wrong = _other_words(text[at : at + len(words)], words, most)
            if wrong == []:
                return None  # it is what the result says
            if wrong and field is not None and (best is None or len(wrong) < best[0]):
                best = len(wrong), field, *wrong[0]
        if best is None or not _changes_it(*best[2:]):
            return None
        return best[1:]

    @once
    def _places(self) -> dict[str, list[tuple[int, int]]]:
        """Text and place of every word, in order."""
        places: dict[str, list[tuple[int, int]]] = {}
        for number, (text, _) in enumerate(self._texts):
            for at, word in enumerate(text):
                places.setdefault(word, []).append((number, at))
        return places

    def _beginnings(self, words: list[str]) -> Iterator[tuple[int, int]]:
        """Where its first word stands, or its second after any other one; and room for the rest."""
        first = self._places.get(words[0], ())
        second = ((number, at - 1) for number, at in self._places.get(words[1], ()) if at)
        before = None
        for place in merge(first, second):
            number, at = place
            if place != before and at + len(words) <= len(self._texts[number][0]):
                yield place
            before = place


def _words_of(text: str) -> list[str]:
    return [fold(one) for one in _WORD.findall(text)]


def _other_words(given: list[str], said: list[str], most: int) -> list[tuple[str, str]] | None:
    """(said, given) at each place where they are not alike; None: at too many."""
    wrong: list[tuple[str, str]] = []
    for other, word in zip(given, said, strict=True):
        if other != word and stem(other) != stem(word):
            wrong.append((word, other))
            if len(wrong) > most:
                return None
    return wrong


def _changes_it(said: str, given: str) -> bool:
    """`she` for `I` is how one quotes; `thirty` for `ninety` is another thing."""

    def is_telling(word: str) -> bool:
        return word not in STOP_WORDS or word in NUMBER_WORDS or word.isdecimal()

    return is_telling(said) and is_telling(given)
