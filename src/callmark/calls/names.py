"""How names, queries and values are brought to one form before they are compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from unicodedata import normalize

from callmark.errors import UsageError
from callmark.records.jsontext import Json, sha256_hex, well_formed

_SEPARATORS = str.maketrans(".-", "__")

# They show nothing and mean nothing in a query. Joiners (U+200C, U+200D) stay: in Persian, Hindi
# or an emoji they change what is written.
_INVISIBLE = dict.fromkeys((0x200B, 0x2060, 0xFEFF))


class NotPlainError(ValueError):
    """A value that no JSON text can hold: another type, or a key that is no string."""


def fold_name(name: str) -> str:
    """Tool names that differ only in `.`, `_` and `-` fold to one text."""
    return name.translate(_SEPARATORS)


def fold_query(text: str) -> str:
    """NFC, without case, every Unicode space collapsed to one blank, trimmed; the zero-width
    characters U+200B, U+2060 and U+FEFF removed."""
    if text.isascii():
        return " ".join(text.lower().split())
    # Folded on the decomposed form, as Unicode defines caseless matching: folding once is enough.
    folded = normalize("NFD", well_formed(text).translate(_INVISIBLE)).casefold()
    return " ".join(normalize("NFC", folded).split())


def fold_spaces(text: str) -> str:
    """Every run of Unicode white space is one blank; none at the ends."""
    return " ".join(text.split())


def compose(text: str) -> str:
    """NFC; lone surrogates become U+FFFD as in every text that was read from a file."""
    return text if text.isascii() else normalize("NFC", well_formed(text))


def plain_value(value: Json) -> Json:
    """Null members removed at every depth, strings NFC, 3.0 and 3 one number (3)."""
    if type(value) is str:
        return value if value.isascii() else compose(value)
    if type(value) is int or type(value) is bool or value is None:
        return value
    if type(value) is float:
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {
            compose_key(key): plain_value(member)
            for key, member in value.items()
            if member is not None
        }
    if isinstance(value, list | tuple):
        return [plain_value(entry) for entry in value]
    raise NotPlainError(f"{type(value).__name__} is no JSON value")


def compose_key(key: Json) -> str:
    if not isinstance(key, str):
        raise NotPlainError("an object key is not a string")
    return key if key.isascii() else compose(key)


LONGEST_NAME = 64
_ALLOWED = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST_NAME}}}")
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST_CHARS = 8


class NameCodec:
    """A two-way table for the names that are offered. A name that the endpoint allows stays as it
    is; another gets `_` for what is refused (`web.search` → `web_search`), which reads naturally
    to a model; a name that is too long ends in a digest of the whole."""

    __slots__ = ("_decoded", "_encoded")

    def __init__(self, names: Iterable[str]) -> None:
        self._encoded: dict[str, str] = {}
        self._decoded: dict[str, str] = {}
        for name in dict.fromkeys(names):
            encoded = endpoint_name(name)
            other = self._decoded.setdefault(encoded, name)
            if other != name:
                raise UsageError(
                    f"the tools {other!r} and {name!r} would both be sent as {encoded!r}: "
                    "rename one, or offer only one of them (metadata.tools)"
                )
            self._encoded[name] = encoded

    def encode(self, name: str) -> str:
        """The name to send. A name outside the table (an old call in a prompt) is encoded too."""
        return self._encoded.get(name) or endpoint_name(name)

    def decode(self, name: str) -> str:
        """The dataset's name. What the model made up stays as it wrote it."""
        return self._decoded.get(name, name)


def endpoint_name(name: str) -> str:
    """One name in the endpoint's alphabet, by itself: only a table can lead back."""
    if _ALLOWED.fullmatch(name):
        return name
    safe = _REFUSED.sub("_", name)
    if len(safe) <= LONGEST_NAME and safe:
        return safe
    mark = sha256_hex(name.encode("utf-8", "surrogatepass"))[:_DIGEST_CHARS]
    return f"{safe[: LONGEST_NAME - _DIGEST_CHARS - 1]}_{mark}"
