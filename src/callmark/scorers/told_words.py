"""What the model was told, by its words and by which of them stand beside each other."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise, takewhile

from callmark.grounding.text import blank_signs, fold, words_in

_TOLD_TOKEN = re.compile(r"[^\W_]+")
LONG = 1000  # characters


def tokens_of(text: str) -> list[str]:
    return list(_long_tokens(text)) if len(text) > LONG else _TOLD_TOKEN.findall(fold(text))


@lru_cache(maxsize=1 << 7)
def _long_tokens(text: str) -> tuple[str, ...]:
    """Remembered: a system prompt comes back with every sample."""
    plain = blank_signs(text)
    return tuple(_TOLD_TOKEN.findall(fold(text)) if plain is None else words_in(plain))


class ToldWords:
    """Texts as words and pairs of neighbours, each with the turns before it was first shown: a
    text whose words and pairs are all known stands there, or as good as."""

    def __init__(self) -> None:
        # The first text as words between blanks: most are one text, which is asked for few words.
        self._opening = ""
        self._opened = 0
        self._words: dict[str, int] = {}
        self._pairs: dict[tuple[str, str], int] = {}
        self._first: list[str] = []  # folded, of the first turn: read when that is not enough
        self._unread: list[tuple[str, int]] = []

    def add(self, text: str, turn: int) -> None:
        self._unread.append((text, turn))

    def _stand(self, tokens: list[str], turn: int | None) -> bool:
        """Does a text of the first turn hold them as they stand? Then nothing came before it."""
        if self._opening or not self._unread or not tokens:
            return False
        if not is_before(self._unread[0][1], turn):
            return False
        if not self._first:
            first = self._unread[0][1]
            texts = takewhile(lambda one: one[1] == first, self._unread)
            self._first = [fold(text) for text, _ in texts]
        told = " ".join(tokens)
        return any(_stands_in(told, text) for text in self._first)

    def _read(self) -> None:
        for text, turn in self._unread:
            self._take(text, turn)
        self._unread, self._first = [], []

    def _take(self, text: str, turn: int) -> None:
        tokens = tokens_of(text)
        if not self._opening:
            self._opening, self._opened = f" {' '.join(tokens)} ", turn
            return
        self._words.update(dict.fromkeys(set(tokens).difference(self._words), turn))
        self._pairs.update(dict.fromkeys(set(pairwise(tokens)).difference(self._pairs), turn))

    def holds(self, tokens: list[str], turn: int | None) -> bool:
        return self._stand(tokens, turn) or self._hold(tokens, turn)

    def _hold(self, tokens: list[str], turn: int | None) -> bool:
        if not tokens or self.missing(tokens, turn):
            return False
        return all(
            is_before(self._told(f" {one} {other} ", self._pairs.get((one, other))), turn)
            for one, other in pairwise(tokens)
        )

    def missing(self, tokens: list[str], turn: int | None) -> list[str]:
        self._read()
        return [
            word
            for word in tokens
            if not is_before(self._told(f" {word} ", self._words.get(word)), turn)
        ]

    def _told(self, words: str, later: int | None) -> int | None:
        return self._opened if words in self._opening else later


def _stands_in(told: str, text: str) -> bool:
    """Between characters that are no letters and no digits, at the first place where it does."""
    at = text.find(told)
    end = at + len(told)
    return at >= 0 and not text[at - 1 : at].isalnum() and not text[end : end + 1].isalnum()


def is_before(at: int | None, turn: int | None) -> bool:
    return at is not None and (turn is None or at < turn)
