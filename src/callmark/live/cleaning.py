"""What recordings and imported logs are freed of: secrets, which are taken out, and personal data.

Personal data becomes other data of the same shape: an address stays an address, a card number
passes its checksum. One value has one surrogate, in prompts, keys and results, so that calls still
find their fixtures."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import msgspec

from callmark.datasets.importing.desk import Imported, Object
from callmark.records.jsontext import Json, want_list, want_object
from callmark.records.trace import json_inside
from callmark.scorers.pii import KINDS, find_pii
from callmark.scorers.pii_phones import fold_characters
from callmark.scorers.privacy import number_text

# (text, the key it stands under) -> the text that takes its place
ChangeText = Callable[[str, str], str]
ChangeNumber = Callable[[int | float, str], Json]


def labelled_leaves(value: Json, label: str = "") -> Iterator[tuple[str, Json]]:
    """(key above, leaf) of texts and numbers; also what a text spells out as JSON, and keys."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield "", name
            if not _is_binary(value, name):
                yield from labelled_leaves(entry, name)
    elif isinstance(value, list):
        for entry in value:
            yield from labelled_leaves(entry, label)
    elif isinstance(value, str):
        yield label, value
        inside = json_inside(value)
        if inside is not value:
            yield from labelled_leaves(inside, label)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield label, value


def with_changes(value: Json, text: ChangeText, number: ChangeNumber, label: str = "") -> Json:
    """The value with every text, key and number changed; bytes in base64 stay as they are."""
    if isinstance(value, dict):
        return {
            text(name, ""): entry
            if _is_binary(value, name)
            else with_changes(entry, text, number, name)
            for name, entry in value.items()
        }
    if isinstance(value, list):
        return [with_changes(entry, text, number, label) for entry in value]
    if isinstance(value, str):
        return text(value, label)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(value, label)
    return value


def _is_binary(holder: dict[str, Json], name: str) -> bool:
    """`data` of a picture or sound, `blob` of a resource."""
    if name == "data":
        return holder.get("type") in ("image", "audio")
    return name == "blob" and "uri" in holder


TRIES = 64  # for a surrogate that is recognised as the same kind of data
KEPT_IPS = frozenset({"127.0.0.1", "0.0.0.0", "::1", "::"})  # noqa: S104

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SEPARATORS = re.compile(r"[\W_]")

Draw = Callable[[int], int]  # a number below the one given


class Surrogates:
    """Learns all values first, then replaces them everywhere, also where the words around a value
    do not give it away. `made` are surrogates of earlier recordings: they stay as they are."""

    def __init__(self, *, key: str = "", made: Iterable[str] = ()) -> None:
        """`key` makes the surrogates another's: who does not know it cannot try values out."""
        self._key = key.encode()
        self.made = set(made)
        self._known: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    @property
    def replaced(self) -> int:
        """How many different values have a surrogate."""
        return len(self._known)

    def learn(self, value: Json) -> None:
        """Remember the personal data of a JSON value, at every depth."""
        for label, leaf in labelled_leaves(value):
            text = leaf if isinstance(leaf, str) else number_text(leaf)
            for hit in find_pii(text, label=label) if text else ():
                self._add(hit.kind, text[hit.start : hit.end] if text else "", label)

    def json(self, value: Json) -> Json:
        """The value with everything replaced that was learnt."""
        return with_changes(value, self._text, self._number)

    def _text(self, text: str, label: str) -> str:
        pattern = self._compiled()
        return text if pattern is None else pattern.sub(lambda found: self._known[found[0]], text)

    def _number(self, number: int | float, label: str) -> Json:
        surrogate = self._known.get(number_text(number) or "")
        if surrogate is None or not surrogate.isdecimal():
            return number
        return type(number)(int(surrogate) * (-1 if number < 0 else 1))

    def _compiled(self) -> re.Pattern[str] | None:
        if self._pattern is None and self._known:
            longest_first = sorted(self._known, key=lambda value: (-len(value), value))
            values = "|".join(map(re.escape, longest_first))
            self._pattern = re.compile(rf"(?<![^\W_])(?:{values})(?![^\W_])")
        return self._pattern

    def _add(self, kind: str, spelling: str, label: str) -> None:
        if spelling in self._known or spelling in self.made or spelling in KEPT_IPS:
            return
        surrogate = self._surrogate(kind, spelling, label)
        self._known[spelling] = surrogate
        self.made.add(surrogate)
        self._pattern = None

    def _surrogate(self, kind: str, spelling: str, label: str) -> str:
        first = None
        plain = fold_characters(spelling).text  # `４１１１` is the same value as 4111
        for attempt in range(TRIES):
            candidate = _MAKERS[kind](plain, self._draw(kind, plain, attempt))
            if candidate == plain or (candidate[:1] == "0" and plain[:1] != "0"):
                continue
            first = first or candidate
            hits = find_pii(candidate, label=label or kind)
            if [(hit.kind, hit.start, hit.end) for hit in hits] == [(kind, 0, len(candidate))]:
                return candidate
        return first or f"[{kind}]"

    def _draw(self, kind: str, spelling: str, attempt: int) -> Draw:
        """The same for every spelling of one value."""
        match KINDS[kind].comparison:
            case "digits":
                value = "".join(char for char in spelling if char.isdecimal())
            case "squeezed":
                value = _SEPARATORS.sub("", spelling.casefold())
            case "text":
                value = spelling.casefold()
        stream = _stream(self._key, f"{kind}\0{value}\0{attempt}".encode())
        return lambda below: next(stream) % below


def _stream(key: bytes, seed: bytes) -> Iterator[int]:
    block = 0
    while True:
        made = hmac.digest(key or b"callmark", seed + block.to_bytes(4, "big"), hashlib.sha256)
        for at in range(0, len(made), 4):
            yield int.from_bytes(made[at : at + 4], "big")
        block += 1


def _email(spelling: str, draw: Draw) -> str:
    return f"user.{''.join(_LETTERS[draw(26)] for _ in range(8))}@example.org"


def _phone(spelling: str, draw: Draw) -> str:
    """Country and area stay: the shape of a number depends on them."""
    digits = sum(char.isdecimal() for char in spelling)
    return _with_digits(spelling, draw, keep=max(0, digits - 7))


def _card(spelling: str, draw: Draw) -> str:
    filled = _with_digits(spelling, draw, keep=1)
    digits = [int(char) for char in filled if char.isdecimal()]
    doubled = (
        sum(divmod(digit * 2, 10)) if at % 2 == 0 else digit
        for at, digit in enumerate(reversed(digits[:-1]))
    )
    check = -sum(doubled) % 10
    last = max(at for at, char in enumerate(filled) if char.isdecimal())
    return f"{filled[:last]}{check}{filled[last + 1 :]}"


def _ssn(spelling: str, draw: Draw) -> str:
    return _with_digits(spelling, draw, keep=0)


def _iban(spelling: str, draw: Draw) -> str:
    """The country stays, the checksum is made anew."""
    places = [at for at, char in enumerate(spelling) if char.isalnum()]
    chars = list(spelling)
    for at in places[4:]:
        chars[at] = _like(chars[at], draw)
    account = "".join(chars[at] for at in places[4:]) + "".join(chars[at] for at in places[:2])
    number = int("".join(str(int(char, 36)) for char in account) + "00")
    for at, digit in zip(places[2:4], f"{98 - number % 97:02}", strict=True):
        chars[at] = digit
    return "".join(chars)


def _uuid(spelling: str, draw: Draw) -> str:
    """Version and variant stay."""
    chars = [char if char == "-" else _hex(char, draw) for char in spelling]
    chars[14], chars[19] = spelling[14], spelling[19]
    return "".join(chars)


def _ip(spelling: str, draw: Draw) -> str:
    if ":" in spelling:
        return f"2001:db8:{draw(65536):x}:{draw(65536):x}::{1 + draw(65535):x}"
    return f"10.{draw(256)}.{draw(256)}.{1 + draw(254)}"


_MAKERS: dict[str, Callable[[str, Draw], str]] = {
    "email": _email,
    "phone": _phone,
    "card": _card,
    "ssn": _ssn,
    "iban": _iban,
    "uuid": _uuid,
    "ip": _ip,
}


def _with_digits(spelling: str, draw: Draw, *, keep: int) -> str:
    """All digits but the first `keep` drawn anew, everything between them as it was."""
    chars: list[str] = []
    seen = 0
    for char in spelling:
        if char.isdecimal():
            seen += 1
            char = char if seen <= keep else str(draw(10))
        chars.append(char)
    return "".join(chars)


def _like(char: str, draw: Draw) -> str:
    if char.isdecimal():
        return str(draw(10))
    letter = _LETTERS[draw(26)]
    return letter.upper() if char.isupper() else letter


def _hex(char: str, draw: Draw) -> str:
    drawn = f"{draw(16):x}"
    return drawn.upper() if char.isupper() else drawn


SECRET = "[secret]"  # noqa: S105
SHORTEST = 4  # a shorter value of the environment would be found in half of all words
SHORTEST_LEARNT = 6  # of a value that only its key makes secret

_NAMES = (
    r"(?:password|passwd|secret|api[_-]?key|(?:access|refresh|auth)[_-]?token|client[_-]?secret"
    r"|private[_-]?key)"
)
# `Basic Connectivity` is no credential: one has a digit, or a capital behind a small letter.
_NO_WORD = r"(?=[A-Za-z._~+/-]{0,40}(?:[0-9=]|[a-z][A-Z]))"
# How each kind of secret looks. A form is tried where the folded text has one of its marks: most
# texts have none, and to look for a mark costs next to nothing. The group is the secret, where
# there is one; else the whole match.
_FORMS = {
    mark: re.compile(pattern)
    for marks, pattern in (
        (
            "-----begin",
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
        ),
        (
            "authorization",
            r"(?i:\bauthorization)\\?[\"']?\s*[:=]\s*\\?[\"']?(?i:bearer|basic)\s+"
            r"([^\s\"',;}\\]{4,})",
        ),
        (
            "bearer",
            rf"(?i:\bbearer)\s+({_NO_WORD}[A-Za-z0-9._~+/=-]{{8,}}|[A-Za-z0-9._~+/=-]{{20,}})",
        ),
        (
            "basic",
            rf"(?i:\bbasic)\s+({_NO_WORD}[A-Za-z0-9+/]{{12,}}={{0,2}})(?![A-Za-z0-9])",
        ),
        (
            "sk- sk_ pk- pk_ rk- rk_",
            r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]{1,20}[-_]){0,4}[A-Za-z0-9]{16,}\b",
        ),
        ("gho_ ghp_ ghs_ ghr_ ghu_", r"\bgh[opsru]_[A-Za-z0-9]{20,}\b"),
        ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{20,}\b"),
        ("glpat-", r"\bglpat-[A-Za-z0-9_-]{16,}"),
        ("hf_", r"\bhf_[A-Za-z0-9]{20,}\b"),
        ("npm_", r"\bnpm_[A-Za-z0-9]{30,}\b"),
        ("xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("akia asia", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
        ("aiza", r"\bAIza[A-Za-z0-9_-]{30,}"),
        ("eyj", r"\beyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]*"),
        ("://", r"\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{0,64}:([^\s/@]{1,128})@"),
        (
            "passw secret key token",
            rf"(?i:{_NAMES})\\?[\"']?\s*[:=]\s*\\?[\"']?([^\s\"',;&}}\\]{{4,}})",
        ),
    )
    for mark in marks.split()
}
_SHORTEST_FORM = 7  # `a://:b@`
_KEY = re.compile(rf"(?:\w*[_-])?(?:{_NAMES}|authorization)", re.IGNORECASE)


class SecretFilter:
    """`known`: values that are secret because somebody said so, such as those of `--env`."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = sorted({value for value in known if len(value) >= SHORTEST}, reverse=True)
        self.removed = 0

    def learn(self, value: Json) -> None:
        """What stands under the key of a secret is one wherever it stands: a password that a call
        hands on is in the prompt, too, and whoever is asked again must find the same in both."""
        found = {
            leaf
            for label, leaf in labelled_leaves(value)
            if isinstance(leaf, str) and _is_key(label) and _is_telling(leaf)
        }
        self._known = sorted(found.union(self._known), reverse=True)

    def text(self, text: str, label: str = "") -> str:
        """The text without secrets. `label` is the key that it stands under."""
        # By its key, whatever it looks like: a password has no form of its own.
        if text and text != SECRET and _is_key(label):
            self.removed += 1
            return SECRET
        for value in self._known:
            if value in text:
                self.removed += text.count(value)
                text = text.replace(value, SECRET)
        if len(text) < _SHORTEST_FORM:
            return text
        folded = text.casefold()
        for form in dict.fromkeys([form for mark, form in _FORMS.items() if mark in folded]):
            text = form.sub(self._replaced, text)
        return text

    def json(self, value: Json) -> Json:
        return with_changes(value, self.text, lambda number, _: number)

    def _replaced(self, match: re.Match[str]) -> str:
        whole: str = match[0]
        secret = match[1] if match.re.groups else whole
        if secret == SECRET:
            return whole
        self.removed += 1
        return whole.replace(secret, SECRET)


@lru_cache
def _is_key(label: str) -> bool:
    """Whether this is the key of a secret."""
    return _KEY.fullmatch(label) is not None


def _is_telling(value: str) -> bool:
    """Whether it is itself where it stands again: `none` or `required` are words like others."""
    return len(value) >= SHORTEST_LEARNT and not value.isalpha() and value != SECRET


class LogCleaner:
    """One conversation at a time: what stands for a value depends on nothing but the value and the
    key, so it is the same in all of them. `removed`: secrets that are gone; `replaced`: personal
    values that others stand for."""

    def __init__(self, *, pii: bool, key: str = "") -> None:
        self._pii = pii
        self._key = key
        self.removed = 0
        self.replaced = 0

    def clean(self, entry: Imported) -> Imported:
        parts: list[Json] = [entry.item, entry.answer, [one for _, one in entry.fixtures]]
        secrets = SecretFilter()
        for part in parts:
            secrets.learn(part)
        parts = [secrets.json(part) for part in parts]
        self.removed += secrets.removed
        if self._pii:
            surrogates = Surrogates(key=self._key)
            for part in parts:
                surrogates.learn(part)
            parts = [surrogates.json(part) for part in parts]
            self.replaced += surrogates.replaced
        item, answer, fixtures = parts
        return msgspec.structs.replace(
            entry,
            item=_with_its_id(want_object(item), entry),
            answer=None
            if answer is None
            else {**want_object(answer), "sample_id": entry.sample_id},
            fixtures=tuple(
                (call, {**want_object(one), "sample_id": entry.sample_id})
                for (call, _), one in zip(entry.fixtures, want_list(fixtures), strict=True)
            ),
        )


def clean_detail(detail: str) -> str:
    """What the report of an import quotes."""
    return SecretFilter().text(detail)


def _with_its_id(item: Object, entry: Imported) -> Object:
    """An id that looks like personal data joins the files all the same; tools keep their names."""
    own = want_object(entry.item.get("metadata"))
    kept: Object = {name: own[name] for name in ("sample_id", "tools", "cluster") if name in own}
    return {**item, "metadata": {**want_object(item.get("metadata")), **kept}}
