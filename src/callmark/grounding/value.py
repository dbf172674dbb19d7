"""One checkable value of a text, and what of it is compared."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, NamedTuple

from callmark.grounding.dates import Moment

ValueKind = Literal["number", "moment", "url", "email", "quote", "code", "identifier"]
LONG_DIGITS = 5  # that many digits of an identifier stand for it by themselves
PARTIAL_DIGITS = 3  # that many stand for its end, where the text says `ending in`
WHOLE_KINDS = frozenset(("number", "moment", "url", "email", "identifier"))
_JOINTS = re.compile(r"[-_#\s]+")
_LETTER_DIGIT = re.compile(r"(?<=[^\W\d_])-(?=\d)|(?<=\d)-(?=[^\W\d_])")


class Form(NamedTuple):
    """What stands around the digits: where a minus sign is, a per cent sign, `million`."""

    sign: int | None = None
    percent: bool = False
    factor: int = 1

    def readings(self, reading: int) -> tuple[int, ...]:
        """`50 %` is 50 and 0.5; `18.4 million` is 18400000, and 18.4 of a unit of millions."""
        signed = reading if self.sign is None else -reading
        if self.percent:
            return (signed, signed // 100)
        return (signed,) if self.factor == 1 else (signed * self.factor, signed)


class Value(NamedTuple):
    """What is compared: `readings` of a number (in 10⁻¹² units), `moments`, or the `key`."""

    start: int
    end: int
    kind: ValueKind
    text: str
    readings: tuple[int, ...] = ()
    moments: tuple[Moment, ...] = ()
    key: str = ""
    inner: tuple[Value, ...] = ()
    form: Form = Form()
    own: tuple[Moment, ...] = ()
    every_way: tuple[Moment, ...] = ()

    def shifted(self, by: int) -> Value:
        inner = tuple(value.shifted(by) for value in self.inner)
        return self._replace(start=self.start + by, end=self.end + by, inner=inner)


def identifier_key(text: str) -> str:
    """Without case, and without `-`, `_`, `#` and blanks between letters and digits, so that
    `HAT 023` is `HAT023`; other such runs are all alike."""
    folded = text.casefold() if text.isascii() else unicodedata.normalize("NFC", text).casefold()
    if folded.isalnum():
        return folded
    joined = _JOINTS.sub("-", folded).strip("-")
    return _LETTER_DIGIT.sub("", joined)


def ends_in(key: str, digits: str) -> bool:
    """Is this the end of a longer identifier's digits: `7880` of `card4421487880`?"""
    if len(digits) < PARTIAL_DIGITS or not key.endswith(digits):
        return False
    last = len(key) - len(key.rstrip("0123456789"))
    return last > len(digits) and last >= LONG_DIGITS


def url_key(text: str) -> str:
    """`host/first-segment`, folded, `www.` off, port kept."""
    rest = re.sub(r"^[a-zA-Z]+://", "", text)
    host, _, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    host = host.rpartition("@")[2].casefold().removeprefix("www.").rstrip(".")
    return f"{host}/{path.split('/', 1)[0].casefold()}"
