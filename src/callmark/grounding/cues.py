"""Cues: patterns that are only searched for where an answer has a word that they begin with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

SHORTEST_HEAD = 3  # letters of what words of a cue may begin with


class Cue:
    """A pattern that many parts of one answer are searched for. All that it finds begins with one
    of these words (`chang*`: or with one that begins so) or signs: where an answer has none of
    them, which one look at its words tells for all cues, nobody has to search."""

    def __init__(self, pattern: str, words: str, signs: str = "") -> None:
        self.pattern = re.compile(pattern, re.IGNORECASE)
        self.bit = 1 << len(_CUES)
        _CUES.append(self)
        for word in words.split():
            head = word.rstrip("*")
            known = _WORDS if word == head else _HEADS
            known[head] = known.get(head, 0) | self.bit
            if word != head:
                _BEGINNINGS.add(head[:SHORTEST_HEAD])
        for sign in signs.split():
            CUE_SIGNS[sign] = CUE_SIGNS.get(sign, 0) | self.bit


CUE_SIGNS: dict[str, int] = {}
_CUES: list[Cue] = []
_WORDS: dict[str, int] = {}
_HEADS: dict[str, int] = {}
_BEGINNINGS: set[str] = set()


def cued_by(words: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Those of the words that cues may begin with, and which cues: one bit for each."""
    for word in words:
        if word in _WORDS or word[:SHORTEST_HEAD] in _BEGINNINGS:
            bits = _bits_of(word)
            if bits:
                yield word, bits


@lru_cache(maxsize=1 << 14)
def _bits_of(word: str) -> int:
    bits = _WORDS.get(word, 0)
    for head, bit in _HEADS.items():
        bits |= bit if word.startswith(head) else 0
    return bits
