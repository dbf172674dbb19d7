"""Where personal data stands in a text, and how severe it is among its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from callmark.core.scores import Severity
from callmark.scorers.pii_edges import Span, fold_characters, words_near
from callmark.scorers.pii_numbers import (
    SHORTEST_CARD,
    SHORTEST_SSN,
    digit_runs,
    find_cards,
    find_ibans,
    find_ssns,
)
from callmark.scorers.pii_phones import find_phones
from callmark.scorers.pii_tokens import find_emails, find_ipv4, find_ipv6, find_uuids

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
