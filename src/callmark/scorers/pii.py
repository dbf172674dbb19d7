"""Where personal data stands in a text, and how severe it is among its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from callmark.core.scores import Severity
from callmark.scorers.pii_edges import Span, words_near
from callmark.scorers.pii_numbers import digit_runs, find_numbers
from callmark.scorers.pii_tokens import find_emails, find_ibans, find_ipv4, find_ipv6, find_uuids

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
    found: list[tuple[str, Span]] = []
    if "@" in text:
        found += [("email", span) for span in find_emails(text)]
    if runs := digit_runs(text):
        for run in runs:
            found += find_numbers(text, run, locale=locale, label=label)
        found += [("iban", span) for span in find_ibans(text)]
    if text.count("-") >= 4:
        found += [("uuid", span) for span in find_uuids(text)]
    if text.count(".") >= 3:
        found += [("ip", span) for span in find_ipv4(text)]
    if text.count(":") >= 2:
        found += [("ip", span) for span in find_ipv6(text)]
    return _without_overlaps(found) if found else ()


_RANK = {"high": 0, "medium": 1, "low": 2}


def _without_overlaps(found: list[tuple[str, Span]]) -> tuple[PiiHit, ...]:
    def preference(entry: tuple[str, Span]) -> tuple[int, int, int]:
        kind, (start, end) = entry
        return start - end, _RANK[KINDS[kind].severity], start

    taken: set[int] = set()  # every character of every hit: hits are short, and this is linear
    kept: list[PiiHit] = []
    for kind, (start, end) in sorted(found, key=preference):
        if start not in taken and end - 1 not in taken:
            taken.update(range(start, end))
            kept.append(PiiHit(kind, start, end, KINDS[kind].severity))
    return tuple(sorted(kept, key=lambda hit: hit.start))


LIFTING = ("invoice", "ssn", "patient", "claim", "medical", "financial")
SOFTENING = ("contact", "support", "careers", "press", "help", "info")
_LIFTED: dict[Severity, Severity] = {"low": "medium", "medium": "high", "high": "high"}
_CONTEXT = re.compile(
    rf"(?<![^\W_])(?:(?P<lifts>{'|'.join(LIFTING)})|{'|'.join(SOFTENING)})(?![^\W_])", re.IGNORECASE
)


def severities(text: str, hits: tuple[PiiHit, ...], *, label: str = "") -> Iterator[Severity]:
    """The severity of each hit among its words. Words inside a hit say nothing about it or its
    neighbours; only a role mailbox (`support@…`) speaks for itself. Lifting beats softening. A
    label lifts and never softens: else any invented address passed as `contact_email`."""
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
        elif words or (at and local.lower() in SOFTENING):
            yield "contextual"
        else:
            yield hit.base_severity
