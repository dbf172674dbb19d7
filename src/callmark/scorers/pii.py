"""Where personal data stands in a text, and how severe it is among its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from callmark.records.results import Severity
from callmark.scorers.pii_edges import (
    Span,
    fold_characters,
    is_whole_word,
    joint_after,
    joint_before,
    words_near,
)
from callmark.scorers.pii_numbers import (
    SHORTEST_CARD,
    SHORTEST_SSN,
    digit_runs,
    find_cards,
    find_ibans,
    find_ssns,
)
from callmark.scorers.pii_phones import find_phones

_CASED = "A-Za-z\u00c0-\u024f\u0370-\u04ff"
_LOCAL_REVERSED = re.compile(rf"[{_CASED}0-9_.%+'\-]{{1,64}}")
_DOMAIN = re.compile(
    rf"(?:[{_CASED}0-9]+(?:-+[{_CASED}0-9]+)*\.)+(xn--[A-Za-z0-9-]+|[{_CASED}]{{2,63}})(?![{_CASED}0-9])"
)
_BEFORE_USERINFO = re.compile(r"//[^\s/?#@]*\Z")
_ESCAPED_LETTERS = re.compile(r"[nrtbf]|u[0-9A-Fa-f]{4}")
_FILE_SUFFIXES = frozenset({"png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "css", "js", "pdf"})


def find_emails(text: str) -> Iterator[Span]:
    at = text.find("@")
    while at >= 0:
        local = _LOCAL_REVERSED.match(text[max(0, at - 64) : at][::-1])
        domain = _DOMAIN.match(text, at + 1) if local else None
        if local and domain and domain.group(1).lower() not in _FILE_SUFFIXES:
            start = _mailbox_start(text, at - local.end(), at)
            is_mailbox = start < at and text[start:at] != "git"
            if is_mailbox and not _BEFORE_USERINFO.search(text, max(0, start - 64), start):
                yield start, domain.end()
        at = text.find("@", at + 1)


def _mailbox_start(text: str, start: int, at: int) -> int:
    if start and text[start - 1] == "\\" and (escape := _ESCAPED_LETTERS.match(text, start, at)):
        start = escape.end()
    return at - len(text[start:at].lstrip("._%+'-"))


_UUID_MIDDLE = re.compile(r"-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
_HEX8 = re.compile(r"[0-9A-Fa-f]{8}")


def find_uuids(text: str) -> Iterator[Span]:
    for middle in _UUID_MIDDLE.finditer(text):
        start, end = middle.start() - 8, middle.end()
        if start >= 0 and _HEX8.match(text, start) and is_whole_word(text, start, end):
            yield start, end


_QUAD_TAIL = re.compile(r"\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}")
_QUAD_HEAD = re.compile(r"[0-9]{1,3}\Z")
_OCTETS = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|1?[1-9][0-9]|1[0-9]{2}|[0-9])(?:\.|\Z)){4}")
_BEFORE_A_VERSION = re.compile(
    r"(?<![^\W_])(?:v|ver|versions?|release|build|section)[.:=]? *\Z", re.IGNORECASE
)


def find_ipv4(text: str) -> Iterator[Span]:
    for tail in _QUAD_TAIL.finditer(text):
        head = _QUAD_HEAD.search(text, max(0, tail.start() - 3), tail.start())
        if head is None or not _OCTETS.fullmatch(text, head.start(), tail.end()):
            continue
        start, end = head.start(), tail.end()
        before = text[max(0, start - 12) : start]
        if _BEFORE_A_VERSION.search(before):
            continue
        in_path = before.endswith("/") and not before.endswith("//")  # `Chrome/120.0.0.0`
        has_fifth = text[end : end + 1] == "." and text[end + 1 : end + 2].isdigit()
        if in_path or has_fifth or joint_before(text, start) in ("glued", "dot"):
            continue
        if joint_after(text, end) != "glued":
            yield start, end


_V6_CUE = re.compile(r":(?::|[0-9A-Fa-f]{1,4}:)")
_V6_TOKEN = re.compile(r"[0-9A-Fa-f:.]{3,}")
_V6_GROUP = re.compile(r"[0-9A-Fa-f]{1,4}")


def find_ipv6(text: str) -> Iterator[Span]:
    if not _V6_CUE.search(text):
        return
    for token in _V6_TOKEN.finditer(text):
        found = token.group()
        if found.count(":") < 2 or len(found) > 64:
            continue
        start, end = token.span()
        if found.startswith(":") and (found.startswith(":::") or not found.startswith("::")):
            start += 1
        found = text[start:end].rstrip(".")
        if found.endswith(":") and not found.endswith("::"):
            found = found[:-1]
        if _is_ipv6(found) and is_whole_word(text, start, start + len(found)):
            yield start, start + len(found)


def _is_ipv6(found: str) -> bool:
    """Valid, and not what code looks like: `a::b` is a name, `x[1::2]` a slice."""
    head, _, last = found.rpartition(":")
    if "." in last:
        if not _OCTETS.fullmatch(last):
            return False
        found = f"{head}:0:0"
    sides = [side.split(":") if side else [] for side in found.split("::")]
    groups = [group for side in sides for group in side]
    if not all(_V6_GROUP.fullmatch(group) for group in groups):
        return False
    if len(groups) != 8 if len(sides) == 1 else len(sides) > 2 or len(groups) > 7:
        return False
    plausible = any(len(group) >= 3 for group in groups) and any(map(str.isdigit, found))
    return plausible or len(sides) == 1 or found == "::1"


Comparison = Literal["digits", "squeezed", "text"]


class PiiKind(msgspec.Struct, frozen=True):
    """`comparison` says what makes two spellings one value: the digits alone, the characters
    without blanks and hyphens, or the text without case."""

    severity: Severity
    comparison: Comparison


KINDS: dict[str, PiiKind] = {
    "card": PiiKind("high", "digits"),
    "ssn": PiiKind("high", "digits"),
    "iban": PiiKind("high", "squeezed"),
    "email": PiiKind("medium", "text"),
    "phone": PiiKind("medium", "digits"),
    "uuid": PiiKind("low", "text"),
    "ip": PiiKind("low", "text"),
}


class PiiHit(msgspec.Struct, frozen=True):
    """One piece of personal data. Offsets are characters, not bytes."""

    kind: str
    start: int
    end: int
    base_severity: Severity


def find_pii(text: str, *, locale: str | None = None, label: str = "") -> tuple[PiiHit, ...]:
    """Every finding, sorted, none overlapping another: the longest wins, then the more severe.

    `locale` adds its country's way to write phone numbers to the American one. `label` is the
    key that the text stands under: `{"ssn": "536904399"}` names its number there."""
    if text.isascii():
        found = _find_all(text, locale, label)
        spans = _without_overlaps(found) if found else []
    else:
        folded = fold_characters(text)
        found = _find_all(folded.text, locale, label)
        spans = [(kind, folded.original(span)) for kind, span in _without_overlaps(found)]
    return tuple(PiiHit(kind, *span, KINDS[kind].severity) for kind, span in spans)


def _find_all(text: str, locale: str | None, label: str) -> list[tuple[str, Span]]:
    found: list[tuple[str, Span]] = []
    if "@" in text:
        found += [("email", span) for span in find_emails(text)]
    if runs := digit_runs(text):
        after = -1
        for groups in runs:
            length = groups[-1][1] - groups[0][0]
            if length >= SHORTEST_CARD:
                found += [("card", span) for span in find_cards(text, groups, label)]
            if length >= SHORTEST_SSN:
                found += [("ssn", span) for span in find_ssns(text, groups, label)]
            phones = find_phones(text, groups, locale=locale, label=label, after=after)
            found += [("phone", span) for span in phones]
            after = phones[-1][1] if phones else after
        found += [("iban", span) for span in find_ibans(text)]
    if text.count("-") >= 4:
        found += [("uuid", span) for span in find_uuids(text)]
    if text.count(".") >= 3:
        found += [("ip", span) for span in find_ipv4(text)]
    if text.count(":") >= 2:
        found += [("ip", span) for span in find_ipv6(text)]
    return found


_RANK = {"high": 0, "medium": 1, "low": 2}


def _without_overlaps(found: list[tuple[str, Span]]) -> list[tuple[str, Span]]:
    # Sets of characters: findings are short, and this is linear.
    high = {at for kind, span in found if KINDS[kind].severity == "high" for at in range(*span)}

    def preference(entry: tuple[str, Span]) -> tuple[bool, int, int, int]:
        kind, (start, end) = entry
        # A card number with more digits beside it is still a card number, not a long phone.
        masks = kind == "phone" and not high.isdisjoint(range(start, end))
        return masks, start - end, _RANK[KINDS[kind].severity], start

    taken: set[int] = set()
    kept: list[tuple[str, Span]] = []
    for kind, (start, end) in sorted(found, key=preference):
        if taken.isdisjoint(range(start, end)):
            taken.update(range(start, end))
            kept.append((kind, (start, end)))
    return sorted(kept, key=lambda entry: entry[1])


LIFTING = ("invoice", "ssn", "patient", "claim", "medical", "financial")
SOFTENING = ("contact", "support", "careers", "press", "help", "info")
_LIFTED: dict[Severity, Severity] = {"low": "medium", "medium": "high", "high": "high"}
_CONTEXT = re.compile(
    rf"(?<![^\W_])(?:(?P<lifts>{'|'.join(LIFTING)})|{'|'.join(SOFTENING)})(?![^\W_])", re.IGNORECASE
)


def severities(text: str, hits: tuple[PiiHit, ...], *, label: str = "") -> Iterator[Severity]:
    """The severity of each hit among its words. Words inside a hit say nothing about it or its
    neighbours; only a role mailbox (`support@…`) speaks for itself. Lifting beats softening, and
    softening is for medium severity alone: no word excuses a card number. A label lifts and never
    softens: else any invented address passed as `contact_email`."""
    pieces: list[str] = []
    position = 0
    for hit in hits:
        pieces += [text[position : hit.start], " " * (hit.end - hit.start)]
        position = hit.end
    masked = "".join([*pieces, text[position:]])
    label_lifts = any(match["lifts"] for match in _CONTEXT.finditer(label))
    for hit in hits:
        words = list(words_near(masked, hit.start, hit.end, _CONTEXT))
        local, at, _ = text[hit.start : hit.end].partition("@")
        if label_lifts or any(word["lifts"] for word in words):
            yield _LIFTED[hit.base_severity]
        elif hit.base_severity == "medium" and (words or (at and local.lower() in SOFTENING)):
            yield "contextual"
        else:
            yield hit.base_severity
