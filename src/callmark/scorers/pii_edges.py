"""What stands around a candidate: whether it is whole, and which words are near."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

Span = tuple[int, int]
Joint = Literal["", "glued", "blank", "hyphen", "dot"]

BLANKS = " \u00a0\u2007\u2009\u202f"
HYPHENS = "-\u2010\u2011\u2012\u2013"
IN_CLASS = rf"{BLANKS}\-{HYPHENS[1:]}"  # both, as the inside of a character class
JOINTS: dict[str, Joint] = {
    **dict.fromkeys(BLANKS, "blank"),
    **dict.fromkeys(HYPHENS, "hyphen"),
    **dict.fromkeys("./", "dot"),
}
CONTEXT_CHARACTERS = 30
_DIGITS = frozenset("0123456789")
_ESCAPES = frozenset({"\\n", "\\r", "\\t"})  # JSON inside a string: this letter is no letter


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
    # Scripts without case (Chinese, Thai, Arabic) put no blank before a number.
    return char.isdigit() or char == "_" or char.lower() != char.upper()
