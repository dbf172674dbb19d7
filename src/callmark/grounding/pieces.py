"""What a span may hold of a longer text: all of it, one of its lines or one of its sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from callmark.grounding.spans import sentences
from callmark.grounding.text import SHORT, STOP_WORDS, Frozen, fold_once, token_pattern
from callmark.grounding.values import WHOLE_KINDS, values_of

_SEVERAL_SENTENCES = re.compile(r"[.!?…]\s|[。！？]|\\n")
_PUNCTUATION = " .,;:!?…。！？、，\"'“”‘’«»()[]{}*`-–—|#>"


class Piece(Frozen, frozen=True):
    """A folded text that a span may hold: a whole leaf, or one of its lines or sentences."""

    text: str
    whole: bool


def telling(tokens: Iterable[str]) -> bool:
    """At least three letters or digits, and not made of stop words."""
    tokens = list(tokens)
    return sum(map(len, tokens)) >= 3 and any(token not in STOP_WORDS for token in tokens)


def pieces_of(text: str) -> tuple[tuple[str, str, Piece], ...]:
    """Each with its first token and its second, if it has one."""
    return (_pieces_of_short if len(text) <= SHORT else _with_first_tokens)(text)


def _with_first_tokens(text: str) -> tuple[tuple[str, str, Piece], ...]:
    found: list[tuple[str, str, Piece]] = []
    for piece in _split(text):
        pattern = token_pattern(piece.text)
        first = pattern.search(piece.text)
        if first is not None:
            second = pattern.search(piece.text, first.end())
            found.append((first[0], "" if second is None else second[0], piece))
    return tuple(found)


_pieces_of_short = lru_cache(maxsize=1 << 13)(_with_first_tokens)


def _split(text: str) -> Iterator[Piece]:
    whole = fold_once(text).strip(_PUNCTUATION)
    yield Piece(whole, True)
    if "\n" not in text and not _SEVERAL_SENTENCES.search(text):
        return
    seen = {whole}
    for start, end in sentences(text):
        piece = fold_once(text[start:end]).strip(_PUNCTUATION)
        if piece not in seen:
            yield Piece(piece, False)
        seen.add(piece)
    for line in text.split("\n"):
        piece = fold_once(line).strip(_PUNCTUATION)
        if piece not in seen:
            yield Piece(piece, False)
        seen.add(piece)


@lru_cache(maxsize=1 << 12)
def is_text(piece: str) -> bool:
    """A text by itself: telling, and not just one value, which is compared by value."""
    tokens = token_pattern(piece).findall(piece)
    if not telling(tokens):
        return False
    if sum(len(token) > 3 and token.isalpha() for token in tokens) >= 2 and " " in piece:
        return True  # two longer words: no number, date or identifier is written so
    values = values_of(piece)
    return not (len(values) == 1 and values[0].text == piece and values[0].kind in WHOLE_KINDS)
