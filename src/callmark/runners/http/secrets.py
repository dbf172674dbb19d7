"""What is secret leaves no trace: a server may echo what it was sent, in whatever spelling."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cached_property
from html.entities import html5
from urllib.parse import unquote, unquote_plus

from callmark.records.jsontext import Json

HIDDEN = "***"
# Local servers are given words such as EMPTY for a key: nothing to hide, and part of any text.
SHORTEST_SECRET = 8

# Without one of these no character is spelt in another way. Most texts have none.
_ESCAPE = re.compile(r"""[\\%&=](?:(?<=\\)[uUxX0-7/"'\\+=]|(?<=&)[#a-zA-Z]|[0-9a-fA-F]{2})""")
_SLASHES = r"\\{0,6}"
_ENTITIES: dict[str, list[str]] = {}
for _name, _text in html5.items():
    if _name.endswith(";"):
        _ENTITIES.setdefault(_text, []).append(_name)


class Secrets:
    """Takes given values out of decoded text: as they are, escaped (JSON, URLs, HTML, character by
    character or only in part), in base64 (also as part of something longer) and in hex."""

    def __init__(self, values: Iterable[str]) -> None:
        long = {one for value in values for one in (value, value.strip())}
        self._values = sorted(one for one in long if len(one) >= SHORTEST_SECRET)
        self._encoded = sorted({form for one in self._values for form in _encodings(one)})
        found = {*self._values, *self._encoded, *filter(None, map(_decode, self._values))}
        self._forms = sorted(found, key=lambda form: (-len(form), form))

    def __bool__(self) -> bool:
        return bool(self._forms)

    def __repr__(self) -> str:
        return f"Secrets({len(self._values)})"

    def clean(self, text: str) -> str:
        """The text without them. Pieces have to be joined before."""
        # Escapes first: what is spelt with them may hold what is not.
        if self._forms and _ESCAPE.search(text):
            text = self._spellings.sub(HIDDEN, text)
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        return text

    def clean_json(self, value: Json) -> Json:
        """The same for every string of a JSON value, keys included."""
        match value:
            case str():
                return self.clean(value)
            case list():
                return [self.clean_json(one) for one in value]
            case dict():
                return {self.clean(key): self.clean_json(one) for key, one in value.items()}
            case int() if value > 10**7:  # a key may be nothing but digits
                return value if self.clean(written := str(value)) == written else HIDDEN
            case _:
                return value

    @cached_property
    def _spellings(self) -> re.Pattern[str]:
        whole = ["".join(map(_spell, value)) for value in self._values]
        # Letters and digits of base64 are never escaped where the rest is not.
        partly = [
            "".join(one if one.isalnum() else _spell(one) for one in form) for form in self._encoded
        ]
        return re.compile("|".join(sorted({*whole, *partly}, key=len, reverse=True)))


def _encodings(value: str) -> Iterator[str]:
    data = value.encode("utf-8", "surrogatepass")
    yield data.hex()
    yield data.hex().upper()
    for before in range(3):
        # What stands before and after shares the first and the last character with the secret.
        whole = b64encode(bytes(before) + data).decode()
        start, end = (8 * before + 5) // 6, 8 * (before + len(data)) // 6
        yield whole[start:end]
        yield whole[start:end].replace("+", "-").replace("/", "_")


def _decode(value: str) -> str | None:
    """As a server sees it that undoes an escaping which was never done."""
    undone = unquote_plus(value)
    return undone if undone != value and len(undone.strip()) >= SHORTEST_SECRET else None


def _spell(character: str) -> str:
    """A pattern of all spellings of one character. Every repetition is bounded."""
    code, same = ord(character), re.escape(character)
    if character in "+ ":  # a URL says the one for the other
        same = r"[+ ]"
    units = character.encode("utf-16-be", "surrogatepass").hex()
    escaped = r"\\{1,6}u" + r"\\{1,6}u".join(re.findall("....", units))
    data = character.encode("utf-8", "surrogatepass")
    ways = [
        rf"(?i:{escaped})",
        rf"(?i:\\{{1,6}}(?:u0{{0,6}}{code:x}|u\{{0{{0,6}}{code:x}\}}|x0{{0,2}}{code:x}))",
        rf"\\{{1,6}}0{{0,2}}{code:o}",
        "".join(rf"(?i:%(?:25){{0,4}}{one:02x})" for one in data),
        "".join(rf"(?i:={one:02x})" for one in data),
        rf"(?i:&(?:amp;){{0,3}}\#(?:0{{0,6}}{code};?|x0{{0,6}}{code:x};?))",
    ]
    if names := _ENTITIES.get(character):
        ways.append(rf"&(?:amp;){{0,3}}(?:{'|'.join(map(re.escape, names))})")
    if character == "+":
        ways.append(r"%(?:25){0,4}20")
    return f"(?:{'|'.join(ways)}|{_SLASHES}{same})"


def secrets_in_query(query: str) -> list[str]:
    """Values of an address's query whose names say that they let somebody in."""
    pairs = (pair.partition("=") for pair in query.split("&"))
    return [
        spelling
        for name, _, value in pairs
        if _LETS_IN.search(name)
        for spelling in (value, unquote(value))
    ]


_LETS_IN = re.compile(r"key|token|secret|sig|auth|pass|code|cred", re.IGNORECASE)
