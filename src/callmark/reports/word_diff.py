"""Two texts side by side: which words of each the other does not have at that place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
# The matcher takes the product of both lengths; longer middles differ as a whole.
_MOST_PAIRS = 250_000


class DiffPiece(NamedTuple):
    """A stretch of a text; `differs`: the other text has something else there, or nothing."""

    text: str
    differs: bool


class WordDiff(NamedTuple):
    left: tuple[DiffPiece, ...]
    right: tuple[DiffPiece, ...]


def diff_words(left: str, right: str) -> WordDiff:
    """The pieces of both texts; each side's, joined, are that text again."""
    a, b = _WORD.findall(left), _WORD.findall(right)
    most = min(len(a), len(b))
    head = next((at for at in range(most) if a[at] != b[at]), most)
    rest = most - head
    tail = next((at for at in range(rest) if a[-1 - at] != b[-1 - at]), rest)
    same = _same(a[head : len(a) - tail], b[head : len(b) - tail])
    blocks = [(0, 0, head), *((i + head, j + head, size) for i, j, size in same)]
    blocks.append((len(a) - tail, len(b) - tail, tail))
    return WordDiff(
        tuple(_pieces(a, [(i, size) for i, _, size in blocks])),
        tuple(_pieces(b, [(j, size) for _, j, size in blocks])),
    )


def _same(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int, int]]:
    if not a or not b or len(a) * len(b) > _MOST_PAIRS:
        return []
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, a, b, autojunk=False)
    return [(one.a, one.b, one.size) for one in matcher.get_matching_blocks() if one.size]


def _pieces(words: Sequence[str], same: Sequence[tuple[int, int]]) -> Iterator[DiffPiece]:
    done = 0
    for start, size in same:
        if start > done:
            yield DiffPiece("".join(words[done:start]), True)
        if size:
            yield DiffPiece("".join(words[start : start + size]), False)
        done = max(done, start + size)
    if done < len(words):
        yield DiffPiece("".join(words[done:]), True)
