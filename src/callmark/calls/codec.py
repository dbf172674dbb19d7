"""Tool names for endpoints that allow only letters, digits, `_` and `-`, and back again."""

from __future__ import annotations

import re
from collections.abc import Iterable

from callmark.core.jsontext import sha256_hex
from callmark.errors import UsageError

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
