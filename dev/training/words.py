"""Made-up words without end: half of the skill is copying, and no list can be learnt by heart."""

from __future__ import annotations

import hashlib
from random import Random
from typing import Literal

Split = Literal["training", "held_out"]

_ONSETS = "b d f g k l m n p r s t v z".split()
_VOWELS = "a e i o u".split()
_CODAS = ["", "", *"n r l s".split()]
_HELD_OUT_OF = 8  # every eighth word is kept back


def split_of(word: str) -> Split:
    """To which side a word belongs, by its own hash: the two can never share one."""
    digest = hashlib.sha256(word.lower().encode()).digest()
    return "held_out" if digest[0] % _HELD_OUT_OF == 0 else "training"


class Words:
    """Draws words of one side."""

    def __init__(self, random: Random, split: Split) -> None:
        self.random = random
        self._split = split

    def word(self) -> str:
        while True:
            word = "".join(map(self._syllable, range(2)))
            if split_of(word) == self._split:
                return word

    def name(self) -> str:
        return self.word().capitalize()

    def phrase(self) -> str:
        return " ".join(self.word() for _ in range(self.random.choice((1, 2, 2))))

    def number(self) -> int:
        return self.random.randint(11, 9999 if self.random.random() < 0.2 else 999)

    def _syllable(self, _at: int) -> str:
        pick = self.random.choice
        return pick(_ONSETS) + pick(_VOWELS) + pick(_CODAS)
