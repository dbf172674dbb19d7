"""Folding text for comparison, token boundaries, and character ↔ byte offsets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

# Scripts written without blanks: there is a token boundary between any two of their characters.
UNSPACED = (
    "\u0e00-\u0e7f\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
SHORT = 64  # characters; what is read out of shorter texts is remembered
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_PLAIN_TOKEN = re.compile(r"\w+")


@lru_cache(maxsize=1)
def joining_marks() -> str:
    """Combining marks as a character class: no \\w for Python, but part of the letter before."""
    ranges: list[str] = []
    start = None
    for code in range(0x0300, 0x1_0000):
        is_mark = unicodedata.category(chr(code))[0] == "M" and not _unspaced().match(chr(code))
        if is_mark and start is None:
            start = code
        elif not is_mark and start is not None:
            ranges.append(f"{chr(start)}-{chr(code - 1)}")
            start = None
    return "".join(ranges)


@lru_cache(maxsize=1)
def _unicode_token() -> re.Pattern[str]:
    return re.compile(rf"[{UNSPACED}]|(?:[^\W{UNSPACED}]|[{joining_marks()}])+")


@lru_cache(maxsize=1)
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}]")


def token_pattern(text: str) -> re.Pattern[str]:
    """What a token is in this text; `\\w+` is enough, and fast, where it is plain."""
    return _PLAIN_TOKEN if is_plain(text) else _unicode_token()


def is_plain(text: str) -> bool:
    """No combining marks, and no script without blanks: `’` and `é` are as plain as ASCII."""
    return text.isascii() or all(map(_is_plain, set(_NOT_ASCII.findall(text))))


@lru_cache(maxsize=1 << 10)
def _is_plain(char: str) -> bool:
    return unicodedata.category(char)[0] != "M" and not _unspaced().match(char)


# What a pattern that ignores case takes for `i`, `s` and `k`, and `lower` does not.
_LIKE_ASCII = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"})


def lower(text: str) -> str:
    """In lower case, as a pattern that ignores case sees it. Lengths stay."""
    return text.lower() if text.isascii() else text.translate(_LIKE_ASCII).lower()


def fold(text: str) -> str:
    """NFC, casefolded, white space folded to single blanks and trimmed."""
    # Several questions are asked of every leaf, and one leaf is like another.
    return _fold_short(text) if len(text) <= SHORT else _fold(text)


def _fold(text: str) -> str:
    if text.isascii():
        folded = text.lower()
    else:
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return " ".join(folded.split())


_fold_short = lru_cache(maxsize=1 << 14)(_fold)


class Folded:
    """A folded text that can say where a position lies in the original."""

    __slots__ = ("_origin", "original", "text")

    def __init__(self, original: str) -> None:
        self.original = original
        self.text = fold(original)
        self._origin: Sequence[int] | None = None

    def origin(self, position: int) -> int:
        """The offset in the original of the folded character at `position`."""
        if self._origin is None:
            self._origin = self._origins()
        return self._origin[position]

    def _origins(self) -> Sequence[int]:
        if len(self.text) == len(self.original) and _keeps_lengths(self.original):
            return range(len(self.text) + 1)
        origins: list[int] = []
        previous_blank = True
        for start, end in _clusters(self.original):
            piece = self.original[start:end]
            if not piece.isascii():
                piece = fold(piece)
            if not piece or piece.isspace():
                if not previous_blank:
                    origins.append(start)
                previous_blank = True
                continue
            previous_blank = False
            origins.extend([start] * len(piece))
        # A trailing blank is trimmed; folding across clusters may differ by a character.
        origins = origins[: len(self.text)]
        end = len(self.original.rstrip())
        origins.extend([end] * (len(self.text) + 1 - len(origins)))
        return origins


def _keeps_lengths(text: str) -> bool:
    """Does no character become two? Then none is lost either, if the whole keeps its length."""
    return text.isascii() or all(
        len(fold(char)) <= 1 and not unicodedata.combining(char)
        for char in set(_NOT_ASCII.findall(text))
    )


def _clusters(text: str) -> list[tuple[int, int]]:
    """Base characters with the combining marks that follow them."""
    clusters: list[tuple[int, int]] = []
    for index, char in enumerate(text):
        if clusters and not char.isascii() and unicodedata.combining(char):
            clusters[-1] = (clusters[-1][0], index + 1)
        else:
            clusters.append((index, index + 1))
    return clusters


def is_boundary(text: str, position: int) -> bool:
    """A boundary lies between two characters unless both are letters, marks, digits or `_`;
    between CJK, kana or Thai characters always."""
    if position <= 0 or position >= len(text):
        return True
    before, after = text[position - 1], text[position]
    if not (_is_word(before) and _is_word(after)):
        return True
    if before.isascii() and after.isascii():
        return False
    unspaced = _unspaced()
    return bool(unspaced.match(before) or unspaced.match(after))


def joins(char: str) -> bool:
    """Would this character be one token with a digit beside it?"""
    if char.isascii():
        return char.isalnum() or char == "_"
    return _is_word(char) and not _unspaced().match(char)


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char)[0] == "M"


def find_at_boundaries(needle: str, haystack: str) -> int:
    """The first place where `needle` stands between token boundaries, or -1."""
    position = haystack.find(needle)
    while position >= 0:
        if is_boundary(haystack, position) and is_boundary(haystack, position + len(needle)):
            return position
        position = haystack.find(needle, position + 1)
    return -1


class ByteOffsets:
    """Character offset → UTF-8 byte offset, for many offsets of one text."""

    __slots__ = ("_ascii", "_known", "_marks", "_text")

    _STEP = 64

    def __init__(self, text: str) -> None:
        self._text = text
        self._ascii = text.isascii()
        self._marks: list[int] | None = None  # byte offset of every 64th character
        self._known: dict[int, int] = {}

    def __call__(self, position: int) -> int:
        if self._ascii:
            return position
        known = self._known.get(position)
        if known is None:
            known = self._known[position] = self._measure(position)
        return known

    def _measure(self, position: int) -> int:
        if self._marks is None:
            chunks = range(0, len(self._text), self._STEP)
            sizes = (_size(self._text[at : at + self._STEP]) for at in chunks)
            self._marks = list(accumulate(sizes, initial=0))
        mark = position // self._STEP
        return self._marks[mark] + _size(self._text[mark * self._STEP : position])


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def char_offset(text: str, byte_offset: int) -> int:
    """UTF-8 byte offset → character offset (an offset inside a character: that character's)."""
    if text.isascii():
        return byte_offset
    head = text.encode("utf-8", "surrogatepass")[:byte_offset]
    return len(head.decode("utf-8", "ignore"))
