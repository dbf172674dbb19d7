"""How a text is read for personal data: its characters folded, what stands around a candidate,
and which words are near."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import msgspec

Span = tuple[int, int]
Joint = Literal["", "glued", "blank", "hyphen", "dot"]

JOINTS: dict[str, Joint] = {" ": "blank", "-": "hyphen", ".": "dot", "/": "dot"}
CONTEXT_CHARACTERS = 30
_DIGITS = frozenset("0123456789")
_ESCAPES = frozenset({"\\n", "\\r", "\\t"})  # JSON inside a string: this letter is no letter


# --- folding ------------------------------------------------------------------------------------


class SearchText(msgspec.Struct, frozen=True):
    """A text as the finders read it: every digit, blank, hyphen and dot in its plain form, and
    without characters that nobody sees. `origins` are the places of its characters in the text
    that it was, where they differ, and that text's length."""

    text: str
    origins: tuple[int, ...] | None = None

    def original(self, span: Span) -> Span:
        if self.origins is None:
            return span
        return self.origins[span[0]], self.origins[span[1]]


_HYPHENS = frozenset("\u2010\u2011\u2012\u2013\u2043\u2212")
_DOTS = frozenset("\u00b7\u2022\u2024\u2027\u2219\u22c5\u30fb")
_ASCII = bytes(range(128))
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True))
_RAISED_RUN = re.compile(rf"(?<!\d)[{''.join(_RAISED)}]{{3,}}")


def fold_characters(text: str) -> SearchText:
    """`４１１１` and `٤١١١` are 4111, a no-break space is a blank, a zero-width one is nothing."""
    if text.isascii():
        return SearchText(text)
    # By way of bytes: a fifth of the time of `set(text)`.
    rare = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    chars = set(rare.decode("utf-8", "surrogatepass"))
    changes = {char: new for char in chars if (new := _plain(char)) != char}
    if not _RAISED.keys().isdisjoint(chars):
        text = _RAISED_RUN.sub(_lower, text)
    if not changes:
        return SearchText(text)
    folded = text
    if len(changes) <= 8:  # `translate` is slower than this for what people write
        for char, new in changes.items():
            folded = folded.replace(char, new)
    else:
        folded = text.translate({ord(char): new for char, new in changes.items()})
    if len(folded) == len(text):
        return SearchText(folded)
    kept = (at for at, char in enumerate(text) if changes.get(char) != "")
    return SearchText(folded, (*kept, len(text)))


def _lower(raised: re.Match[str]) -> str:
    # After a digit they would be a footnote or an exponent.
    return "".join(map(_RAISED.__getitem__, raised.group()))


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    category = unicodedata.category(char)
    if category in ("Cf", "Me") or "\u0300" <= char <= "\u036f" or "\ufe00" <= char <= "\ufe0f":
        return ""
    if category == "Zs":
        return " "
    if char in _HYPHENS:
        return "-"
    if char in _DOTS:
        return "."
    if unicodedata.decomposition(char).startswith(("<super>", "<sub>")):
        return char
    digit = unicodedata.digit(char, None)
    if digit is not None:
        return str(digit)
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 and plain.isascii() else char


# --- edges --------------------------------------------------------------------------------------


def joint_before(text: str, start: int) -> Joint:
    """How what starts here hangs on what stands before it: not, on a letter, or on digits
    across a separator."""
    if start == 0:
        return ""
    before = text[start - 1]
    if _glues(before):
        return "" if text[max(0, start - 2) : start] in _ESCAPES else "glued"
    joint = JOINTS.get(before, "")
    return joint if joint and text[max(0, start - 2)] in _DIGITS else ""


def joint_after(text: str, end: int) -> Joint:
    if end >= len(text):
        return ""
    after = text[end]
    if _glues(after):
        return "glued"
    joint = JOINTS.get(after, "")
    return joint if joint and text[end + 1 : end + 2] in _DIGITS else ""


def is_free(text: str, start: int, end: int, allowed: tuple[Joint, ...] = ("", "blank")) -> bool:
    return joint_before(text, start) in allowed and joint_after(text, end) in allowed


def is_whole_word(text: str, start: int, end: int) -> bool:
    return joint_before(text, start) != "glued" and joint_after(text, end) != "glued"


def words_near(text: str, start: int, end: int, words: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Whole words that stand wholly within 30 characters before or after the range."""
    stop = end + CONTEXT_CHARACTERS
    for match in words.finditer(text, max(0, start - CONTEXT_CHARACTERS), stop + 1):
        if match.end() <= stop:
            yield match


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _glues(char: str) -> bool:
    # Scripts without case (Chinese, Thai, Arabic) put no blank before a number. A raised digit
    # is a footnote.
    return char.isdecimal() or char == "_" or char.lower() != char.upper()
