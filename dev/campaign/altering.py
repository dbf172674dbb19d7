"""Ways to make a true answer false: one value of it, altered where it stands."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import NamedTuple

from callmark.records.results import Match, SpanScore, ValueMark

MONTHS = (
    "January February March April May June July August September October November December"
).split()
_DIGITS = re.compile(r"\d+")
_CENTS = re.compile(r"[1-9]\d*\.\d{1,2}")
_UNIT_AFTER = re.compile(r"[ -]?(GB|TB|MB|ml|L|kg|km|inch|ft|W|mAh|hours|USD|EUR|%)(?!\w)")
_CURRENCY = "$€£"
_OTHER_UNITS = ("TB", "kg", "km", "W", "miles", "GBP")


class Place(NamedTuple):
    """Characters of the answer, and what stands there instead."""

    start: int
    end: int
    text: str


class Target(NamedTuple):
    """A supported value or a text match of a span that counts as good, in characters."""

    span: SpanScore
    start: int
    end: int
    kind: str


Alter = Callable[[random.Random, str, Target], Place | None]


def targets_of(answer: str, span: SpanScore) -> list[Target]:
    """What of this span can be altered: each value that evidence supports, each text match."""
    encoded = answer.encode("utf-8", "surrogatepass")

    def characters(part: ValueMark | Match) -> tuple[int, int]:
        head = encoded[: part.start].decode("utf-8", "surrogatepass")
        body = encoded[part.start : part.end].decode("utf-8", "surrogatepass")
        return len(head), len(head) + len(body)

    marks = [mark for mark in span.values if mark.label == "supported"]
    texts = [match for match in span.matches if match.kind in ("text", "line")]
    return [Target(span, *characters(mark), mark.kind) for mark in marks] + [
        Target(span, *characters(match), "text") for match in texts
    ]


def alter_value(rng: random.Random, answer: str, target: Target) -> Place | None:
    """A digit changed, added or dropped, or the decimal point moved."""
    text = answer[target.start : target.end]
    places = [at for at, char in enumerate(text) if char.isascii() and char.isdigit()]
    if not places:
        return None
    at, how = rng.choice(places), rng.choice(("changed", "added", "dropped", "scaled"))
    digit = rng.choice([digit for digit in "123456789" if digit != text[at]])
    match how:
        case "changed":
            new = text[:at] + digit + text[at + 1 :]
        case "added":
            new = text[:at] + digit + text[at:]
        case "dropped" if len(places) > 1:
            new = text[:at] + text[at + 1 :]
        case "scaled" if text.isdecimal():
            new = text + "000"
        case "scaled" if _CENTS.fullmatch(text):  # `1.234` may be a group of thousands
            new = text.replace(".", "")
        case _:
            return None
    return Place(target.start, target.end, new)


def alter_unit(rng: random.Random, answer: str, target: Target) -> Place | None:
    if answer[max(0, target.start - 1) : target.start] in tuple(_CURRENCY):
        other = rng.choice([sign for sign in _CURRENCY if sign != answer[target.start - 1]])
        number = answer[target.start : target.end]
        return Place(target.start - 1, target.end, other + number)
    unit = _UNIT_AFTER.match(answer, target.end)
    if unit is None:
        return None
    other = rng.choice([name for name in _OTHER_UNITS if name != unit[1]])
    return Place(target.start, unit.end(), answer[target.start : unit.start(1)] + other)


def alter_sign(rng: random.Random, answer: str, target: Target) -> Place | None:
    text = answer[target.start : target.end]
    if text[:1] in "-−":
        return Place(target.start, target.end, text[1:])
    before = answer[max(0, target.start - 1) : target.start]
    start = target.start - (before in tuple(_CURRENCY))
    if start and answer[start - 1] not in " (":
        return None
    return Place(start, target.end, "-" + answer[start : target.end])


def alter_date(rng: random.Random, answer: str, target: Target) -> Place | None:
    """Another month, or one of its numbers moved a little."""
    text = answer[target.start : target.end]
    month = next((name for name in MONTHS if name in text), None)
    if month is not None and rng.random() < 0.5:
        other = rng.choice([name for name in MONTHS if name != month])
        return Place(target.start, target.end, text.replace(month, other))
    found = rng.choice(list(_DIGITS.finditer(text)) or [None])
    if found is None:
        return None
    moved = int(found[0]) + rng.choice((-3, -2, -1, 1, 2, 3))
    if moved < 1:
        return None
    new = str(moved).rjust(len(found[0]), "0")
    return Place(target.start, target.end, text[: found.start()] + new + text[found.end() :])


def alter_name(rng: random.Random, answer: str, target: Target) -> Place | None:
    """One word of a text turned round: `Boston` is `Notsob`."""
    words = list(re.finditer(r"[^\W\d_]{3,}", answer[target.start : target.end]))
    words = [word for word in words if word[0].casefold() != word[0][::-1].casefold()]
    if not words:
        return None
    word = rng.choice(words)
    text = answer[target.start : target.end]
    new = word[0][::-1].capitalize()
    return Place(target.start, target.end, text[: word.start()] + new + text[word.end() :])


# What is altered -> how, and the kinds of value that have it.
ALTERATIONS: dict[str, tuple[Alter, frozenset[str]]] = {
    "value": (alter_value, frozenset(("number",))),
    "unit": (alter_unit, frozenset(("number",))),
    "sign": (alter_sign, frozenset(("number",))),
    "date": (alter_date, frozenset(("moment",))),
    "identifier": (alter_value, frozenset(("identifier", "email", "url"))),
    "name": (alter_name, frozenset(("text", "quote"))),
}
