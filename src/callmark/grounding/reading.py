"""What an answer states: its values with their units, number words among them, without what only
looks like a value. The values of short texts of results are read in the same way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from callmark.grounding.number_words import find_number_words
from callmark.grounding.numbers import SCALE
from callmark.grounding.units import convert, dimension_of, unit_beside
from callmark.grounding.values import CURRENCY, Form, Value, fold_signs, values_of
from callmark.records.trace import json_inside

LONGEST_LEAF = 20000  # characters of a text of a result whose number words and units are read
_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_IDIOM = re.compile(
    r"(?<![\w/])24/7(?![\w/])|\b(?:COVID-19|SARS-CoV-2|50/50|9-to-5)\b|(?<!\w)\d-stars?\b",
    re.IGNORECASE,
)
_OF_IDIOMS = ("24/7", "-19", "cov-2", "50/50", "9-to-5", "-star")  # one in each of them
_ROW = re.compile(r"^[ \t]*\|?[ \t]*(\d{1,3})[ \t]*\|", re.MULTILINE)
_OPTION = re.compile(r"\b(?:option|step|choice|row|example|scenario|case|opción|étape)\s$", re.I)
# `4.4 out of 5`: what it is out of is a scale, if the number before it is a rating.
_OUT_OF = re.compile(r"\s?(?:out of|/|von|de|sur)\s?(?=(?:5|10|100)(?![\w/]|[.,]\d))", re.I)
_RATING = re.compile(
    r"\b(?:rat(?:ed|ing|es)|scor(?:e|ed|es)|reviews?|stars?|bewert\w+|calific\w+|puntuación|valor\w+|not[ée]\w*)\b",
    re.IGNORECASE,
)
_AND = re.compile(r"[,\s]{0,2}(?:(?:and|und|y|et)\s)?")
_ISO_DURATION = re.compile(r"P(?:(\d{1,4})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,5})M)?(?:(\d{1,6})S)?)?")
_DOT_GROUP = re.compile(r"[1-9]\d{0,2}\.\d{3}")


def read_stated(text: str, values: Sequence[Value], locale: str | None) -> list[Value]:
    """The values that the text states, in order; `values` are those of `find_values`."""
    folded = fold_signs(text)
    if json_inside(text) is not text:  # the whole answer is an object or a list
        values = list(_unquote(values))
    left_out = _left_out(folded, values)
    kept = [
        _with_unit(folded, value, locale) for at, value in enumerate(values) if at not in left_out
    ]
    joined = _join_durations(folded, kept)
    return _merge(joined, _words(folded, locale))


def _unquote(values: Iterable[Value]) -> Iterator[Value]:
    """In JSON the quotation marks quote nobody: what a string holds is stated."""
    for value in values:
        if value.kind == "quote":
            yield from _unquote(value.inner)
        else:
            yield value


@lru_cache(maxsize=4096)
def read_leaf(text: str) -> tuple[Value, ...]:
    """The values of a text of a result, each by itself, and what a few are together."""
    values = values_of(text)
    if len(text) > LONGEST_LEAF:
        return values
    duration = _iso_duration(text)
    if duration is not None:
        return (duration,)
    folded = fold_signs(text)
    measured = [_with_unit(folded, value, None) for value in values]
    joined = [value for value in _join_durations(folded, measured) if value not in measured]
    return (*measured, *joined, *_words(folded, None))


def _words(text: str, locale: str | None) -> list[Value]:
    found = []
    for start, end, number in find_number_words(text, locale):
        unit, _ = unit_beside(text, end, end)
        value = Value(start, end, "number", text[start:end], (number * SCALE,), unit=unit)
        found.append(value)
    return found


def _merge(values: list[Value], words: list[Value]) -> list[Value]:
    if not words:
        return values
    merged: list[Value] = []
    for value in sorted(values + words, key=lambda one: (one.start, one.end)):
        if not merged or value.start >= merged[-1].end:
            merged.append(value)
    return merged


def _left_out(text: str, values: Sequence[Value]) -> set[int]:
    """The places of values that claim nothing."""
    lower = text.casefold()
    spans = []
    if any(part in lower for part in _OF_IDIOMS):
        spans = [found.span() for found in _IDIOM.finditer(text)]
    spans += _row_numbers(text)
    spans.sort()
    out = _inside(spans, values)
    fences = (
        [found.span() for found in _FENCE.finditer(text)] if "```" in text or "~~~" in text else []
    )
    fenced = _inside(fences, values)
    if len(fenced) < len(values):  # else the code is the answer
        out |= fenced
    for at, value in enumerate(values):
        if value.kind == "number" and _is_marker(text, values, at):
            out.add(at)
    return out


def _inside(spans: Iterable[tuple[int, int]], values: Sequence[Value]) -> set[int]:
    found: set[int] = set()
    at = 0
    for start, end in spans:
        while at < len(values) and values[at].end <= start:
            at += 1
        while at < len(values) and values[at].start < end:
            found.add(at)
            at += 1
    return found


def _row_numbers(text: str) -> list[tuple[int, int]]:
    """The first cells of table rows, where they count from 1."""
    rows = list(_ROW.finditer(text)) if "|" in text else []
    numbers = [int(row[1]) for row in rows]
    if len(rows) < 2 or numbers != list(range(1, len(rows) + 1)):
        return []
    return [row.span(1) for row in rows]


def _is_marker(text: str, values: Sequence[Value], at: int) -> bool:
    """`Option 2`, and the 5 of `4.4 out of 5`."""
    value = values[at]
    before = text[max(0, value.start - 12) : value.start]
    if len(value.text) <= 2 and _OPTION.search(before):
        return True
    if at == 0 or value.text not in ("5", "10", "100"):
        return False
    rated = values[at - 1]
    between = _OUT_OF.match(text, rated.end) if rated.kind == "number" else None
    if between is None or between.end() != value.start:
        return False
    around = text[max(0, rated.start - 60) : value.end + 12].rpartition("\n")[2]
    return "." in rated.text or "," in rated.text or _RATING.search(around) is not None


def _with_unit(text: str, value: Value, locale: str | None) -> Value:
    if value.kind != "number" or not value.readings:
        return value
    if value.form.percent:
        return value._replace(unit="%")
    inner = text[value.start : value.start + 2].lstrip("-−")[:1]
    if inner and inner in CURRENCY:
        unit = inner
    else:
        unit, _ = unit_beside(text, value.start, value.end)
    if not unit:
        return value
    readings = value.readings
    if locale is None and dimension_of(unit) == "money" and _DOT_GROUP.fullmatch(value.text):
        # Nobody writes tenths of a cent: `1.200 €` is more than a thousand.
        readings = (*readings, readings[0] * 1000)
    return value._replace(unit=unit, readings=readings)


def _join_durations(text: str, values: list[Value]) -> list[Value]:
    """`1h 24m` and `1 hour and 24 minutes` are one value, in the smaller unit."""
    joined: list[Value] = []
    for value in values:
        last = joined[-1] if joined else None
        together = None if last is None else _together(text, last, value)
        if together is None:
            joined.append(value)
        else:
            joined[-1] = together
    return joined


def _together(text: str, one: Value, other: Value) -> Value | None:
    if not one.readings or not other.readings or other.start - one.end > 20:
        return None
    larger, end = _time_unit(text, one)
    smaller, stop = _time_unit(text, other, larger)
    if not larger or not smaller or _AND.fullmatch(text, end, other.start) is None:
        return None
    whole = convert(one.readings[0], larger, smaller)
    ratio = convert(SCALE, larger, smaller)
    if whole is None or ratio is None or not 0 <= other.readings[0] < ratio or ratio <= SCALE:
        return None
    return Value(
        one.start,
        stop,
        "number",
        text[one.start : stop],
        (whole + other.readings[0],),
        unit=smaller,
    )


def _time_unit(text: str, value: Value, larger: str = "") -> tuple[str, int]:
    if value.inner or value.kind != "number":
        return "", value.end
    unit, end = unit_beside(text, value.start, value.end)
    if text[value.start : value.end][-1:].isalpha() and value.unit and not unit:
        return value.unit, value.end  # joined before
    if larger == "h" and unit == "m":
        unit = "min"
    return (unit, end) if unit and dimension_of(unit) == "time" else ("", end)


def _iso_duration(text: str) -> Value | None:
    """`PT1H24M`."""
    if not text.startswith("P") or len(text) > 24 or text[-1:] not in "DHMS":
        return None
    match = _ISO_DURATION.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    scaled = ((days * 24 + hours) * 60 + minutes) * SCALE + seconds * SCALE // 60
    return Value(0, len(text), "number", text, (scaled,), form=Form(), unit="min")
