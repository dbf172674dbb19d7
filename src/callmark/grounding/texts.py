"""Text leaves, indexed by what a sentence may quote of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from callmark.grounding.leaves import Leaf, best_of, note
from callmark.grounding.spans import sentences
from callmark.grounding.text import fold, token_pattern
from callmark.grounding.value import WHOLE_KINDS
from callmark.grounding.values import find_values
from callmark.grounding.words import STOP_WORDS
from callmark.records.jsontext import want_text

RUN_TOKENS = 5
_SEVERAL_SENTENCES = re.compile(r"[.!?…]\s|[。！？]|\\n")
_PUNCTUATION = " .,;:!?…。！？、，\"'“”‘’«»()[]{}*`-–—|#>"


class Piece(NamedTuple):
    """A folded text that a span may hold: a whole leaf, or one of its lines or sentences."""

    text: str
    whole: bool


class Texts:
    """Every text is split once, when the first question about texts is asked."""

    def __init__(self, leaves: Iterable[Leaf]) -> None:
        self._by_first_token: dict[str, dict[Piece, list[Leaf]]] = {}
        self._by_run: dict[str, list[Leaf]] = {}
        self._tokens: list[tuple[str, Leaf]] = []
        for leaf in leaves:
            tokens = token_pattern(leaf.folded).findall(leaf.folded)
            self._tokens.append((f" {' '.join(tokens)} ", leaf))
            for piece in _pieces_of(want_text(leaf.value), leaf.folded):
                first = token_pattern(piece.text).search(piece.text)
                if first is not None:
                    pieces = self._by_first_token.setdefault(first[0], {})
                    note(pieces.setdefault(piece, []), leaf)
            if len(tokens) > RUN_TOKENS:
                for start in range(len(tokens) - RUN_TOKENS + 1):
                    run = " ".join(tokens[start : start + RUN_TOKENS])
                    note(self._by_run.setdefault(run, []), leaf)

    def starting_with(self, token: str) -> Iterable[tuple[Piece, list[Leaf]]]:
        return self._by_first_token.get(token, {}).items()

    def with_run(self, run: str) -> list[Leaf]:
        """The longer leaves that hold these five tokens in a row."""
        return self._by_run.get(run, [])

    def quoting(self, folded: str, turn: int | None, errors: bool) -> Leaf | None:
        """A leaf that holds this text between token boundaries."""
        tokens = token_pattern(folded).findall(folded)
        if not telling(tokens):
            return None
        quoted = f" {' '.join(tokens)} "
        return best_of((leaf for text, leaf in self._tokens if quoted in text), turn, errors)


def telling(tokens: Iterable[str]) -> bool:
    """At least three letters or digits, and not made of stop words."""
    tokens = list(tokens)
    return sum(map(len, tokens)) >= 3 and any(token not in STOP_WORDS for token in tokens)


def _pieces_of(text: str, folded: str) -> Iterator[Piece]:
    whole = folded.strip(_PUNCTUATION)
    if _is_text(whole):
        yield Piece(whole, True)
    if "\n" not in text and not _SEVERAL_SENTENCES.search(text):
        return
    seen = {whole}
    for start, end in sentences(text):
        piece = fold(text[start:end]).strip(_PUNCTUATION)
        if piece not in seen and _is_text(piece):
            yield Piece(piece, False)
        seen.add(piece)
    for line in text.split("\n"):
        piece = fold(line).strip(_PUNCTUATION)
        if piece not in seen and _is_text(piece):
            yield Piece(piece, False)
        seen.add(piece)


def _is_text(piece: str) -> bool:
    """A text by itself: telling, and not just one value, which is compared by value."""
    tokens = token_pattern(piece).findall(piece)
    if not telling(tokens):
        return False
    if sum(len(token) > 3 and token.isalpha() for token in tokens) >= 2 and " " in piece:
        return True  # two longer words: no number, date or identifier is written so
    values = find_values(piece)
    return not (len(values) == 1 and values[0].text == piece and values[0].kind in WHOLE_KINDS)
