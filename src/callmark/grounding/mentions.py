"""The names of records, and where a text mentions them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from callmark.grounding.text import Frozen, fold, place_words

if TYPE_CHECKING:
    from callmark.grounding.record_tree import ResultRecord

LONGEST_NAME = 8  # words
MOST_NAMED = 40  # records of one name; with more of them it names nothing
SHORT_CODE = 4
_NAME_WORD = re.compile(r"[^\W_]+")


@lru_cache(maxsize=1 << 13)
def _words_of_name(name: str) -> tuple[str, ...]:
    return tuple(_NAME_WORD.findall(fold(name)))


class Names:
    """The names of records, and where a text mentions them."""

    def __init__(
        self,
        records: Iterable[ResultRecord],
        names_of: Callable[[ResultRecord], Iterable[str]] = lambda record: record.names,
    ) -> None:
        self._by_words: dict[tuple[str, ...], list[ResultRecord]] = {}
        self._lengths: dict[str, list[int]] = {}  # of the names that begin with a word
        self._codes: set[str] = set()  # `TIME` is a code; `time` in an answer is a word
        for record in records:
            for name in names_of(record):
                words = _words_of_name(name)
                if words and len(words) <= LONGEST_NAME:
                    named = self._by_words.get(words)
                    if named is None:
                        named = self._by_words[words] = []
                        self._lengths.setdefault(words[0], []).append(len(words))
                    if len(named) <= MOST_NAMED and (not named or named[-1] is not record):
                        named.append(record)
                    if len(name) <= SHORT_CODE and name.isupper() and name.isalpha():
                        self._codes.add(words[0])
        for lengths in self._lengths.values():
            lengths[:] = sorted(set(lengths), reverse=True)

    def mentions(self, text: str) -> list[Mention]:
        """From left to right, the longest name at each place."""
        if not self._lengths:
            return []
        words, starts, ends = place_words(text)
        places = [at for at, word in enumerate(words) if word in self._lengths]
        mentions: list[Mention] = []
        end = 0
        for at in places:
            for length in self._lengths[words[at]] if at >= end else ():
                name = tuple(words[at : at + length])
                records = self._by_words.get(name, ())
                if length == 1 and name[0] in self._codes and text[starts[at] : ends[at]].islower():
                    continue
                if at + length <= len(words) and 0 < len(records) <= MOST_NAMED:
                    end = at + length
                    mentions.append(Mention(starts[at], ends[end - 1], tuple(records)))
                    break
        return mentions


class Mention(Frozen, frozen=True):
    """A place in the answer that names records: more than one where they share the name; `is_part`:
    by a part of their name."""

    start: int
    end: int
    records: tuple[ResultRecord, ...]
    is_day: bool = False
    is_part: bool = False
