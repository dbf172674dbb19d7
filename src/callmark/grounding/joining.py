"""Numbers that are written in several parts, and units that stand with the last of several."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from callmark.grounding.numbers import SCALE
from callmark.grounding.values import Value

DOT_GROUP = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_SPACE_GROUP = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?: \d{3})+(?:,\d+)?(?!\d)")
_LAP = re.compile(r"(\d{1,2}):([0-5]\d)\.(\d{1,3})")
_BY = ("×", "x")


def join_groups(text: str, values: list[Value], language: str) -> list[Value]:
    """What groups digits in other languages than English."""
    if DOT_GROUP.search(text):
        values = list(map(_with_groups, values))
    if language == "fr" and _SPACE_GROUP.search(text):
        values = list(_join_groups(text, values))
    return values


def with_unit_after(text: str, values: list[Value]) -> list[Value]:
    """`54 × 65 cm`: both are in centimetres."""
    for at in range(len(values) - 2, -1, -1):
        one, other = values[at], values[at + 1]
        if (
            other.unit
            and not one.unit
            and one.kind == other.kind == "number"
            and one.end < other.start <= one.end + 3
            and text[one.end : other.start].strip() in _BY
        ):
            values[at] = one._replace(unit=other.unit)
    return values


def join_laps(text: str, values: Sequence[Value]) -> list[Value]:
    """`1:23.79`: minutes, seconds and their parts."""
    joined: list[Value] = []
    for value in values:
        last = joined[-1] if joined else None
        lap: re.Match[str] | None = None
        if last is not None and value.start == last.end + 1 and value.text.isdecimal():
            lap = _LAP.fullmatch(text, last.start, value.end)
        if last is None or lap is None:
            joined.append(value)
            continue
        whole = 60 * int(lap[1]) + int(lap[2])
        seconds = whole * SCALE + SCALE * int(lap[3]) // 10 ** len(lap[3])
        joined[-1] = Value(
            last.start, value.end, "number", f"{whole}.{lap[3]}", (seconds,), unit="s"
        )
    return joined


def _join_groups(text: str, values: Sequence[Value]) -> Iterator[Value]:
    """`1 350 m` in French, typed with a plain space."""
    last: Value | None = None
    for value in values:
        is_group = (
            last is not None
            and value.start == last.end + 1
            and _SPACE_GROUP.fullmatch(text, last.start, value.end)
            and last.readings
            and value.readings
            and not last.unit
        )
        if last is not None and is_group:
            whole = tuple(1000 * last.readings[0] + one for one in value.readings[:1])
            last = value._replace(
                start=last.start, text=text[last.start : value.end], readings=whole
            )
            continue
        if last is not None:
            yield last
        last = value
    if last is not None:
        yield last


def _with_groups(value: Value) -> Value:
    """`47.903 kWh` in a text that is not English: a point groups digits there, first of all."""
    if value.kind != "number" or not value.readings or not DOT_GROUP.fullmatch(value.text):
        return value
    small = min(value.readings, key=abs)
    return value._replace(readings=(small * 1000, small))
