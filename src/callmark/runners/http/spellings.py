"""Where an address may hold a secret, and how one can be written: in the encodings of keys, and
character by character. Needed only where there is one."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Collection, Iterator
from html.entities import html5
from urllib.parse import unquote, unquote_plus

# Local servers are given words such as EMPTY for a key: nothing to hide, and part of any text.
SHORTEST_SECRET = 8

_SLASHES = r"\\{0,6}"
_ENTITIES: dict[str, list[str]] = {}
for _name, _text in html5.items():
    if _name.endswith(";"):
        _ENTITIES.setdefault(_text, []).append(_name)


def forms_of(values: Collection[str]) -> list[str]:
    """Without escapes; the longest first."""
    undone = filter(None, map(_undo_escaping, values))
    found = {*values, *undone, *(form for one in values for form in _encodings_of(one))}
    return sorted(found, key=lambda form: (-len(form), form))


def pattern_of(values: Collection[str]) -> re.Pattern[str]:
    """Of all spellings with escapes."""
    whole = {"".join(map(_spell, value)) for value in values}
    # Letters and digits of base64 are never escaped where the rest is not.
    partly = {
        "".join(one if one.isalnum() else _spell(one) for one in form)
        for value in values
        for form in _encodings_of(value)
    }
    return re.compile("|".join(sorted(sorted(whole | partly), key=len, reverse=True)))


def _encodings_of(value: str) -> Iterator[str]:
    data = value.encode("utf-8", "surrogatepass")
    yield data.hex()
    yield data.hex().upper()
    for before in range(3):
        # What stands before and after shares the first and the last character with the secret.
        whole = b64encode(bytes(before) + data).decode()
        start, end = (8 * before + 5) // 6, 8 * (before + len(data)) // 6
        yield whole[start:end]
        yield whole[start:end].replace("+", "-").replace("/", "_")


def _undo_escaping(value: str) -> str | None:
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
