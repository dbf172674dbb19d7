"""Checkable values in a text: numbers, dates, times, URLs, e-mails, quotations, code, identifiers.

One pass of one regular expression finds the tokens, another one (only where there are digits)
the dates. Offsets here are characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from callmark.grounding.dates import FoundMoment, find_moments
from callmark.grounding.enumerations import is_label, labels_in
from callmark.grounding.figures import NEARBY, line_start, number, number_values
from callmark.grounding.text import fold
from callmark.grounding.tokens import patterns_for
from callmark.grounding.value import WHOLE_KINDS, Form, Value, identifier_key, url_key

_CODES = "USD|EUR|GBP|CHF|JPY|INR|CAD|AUD|CNY|BRL|MXN|SEK|NOK|DKK|PLN|CZK|HUF|RUB|KRW|ZAR|TRY"
_NUMERIC_PREFIXES = frozenset("mid pre post early late sub non top under over anti".split())
_DIGIT = re.compile(r"\d")
_ESCAPED_LINE = re.compile(r'^\s*[\[{"]|\\n\\n|\\n[-*\d]')
_JSON_BEFORE = re.compile(r'":\s*[\[{"]')
_BEFORE_JSON_STRING = re.compile(r'":\s*\[?\s*$')
_AFTER_JSON_STRING = re.compile(r",?[ \t]*(?:\n|$)")
_EMPHASIS_START = re.compile(r"(?<!\w)_+\w")
_EMPHASIS_END = re.compile(r"\w_+(?!\w)")
_CODE_AMOUNT = re.compile(rf"(?:{_CODES})(\d+)")
_URL_TAIL = ".,;:!?…。，！？)]}>'\"’”»*_"
_QUOTE_EDGE = ' .,;:!?…\\"'


def find_values(text: str, locale: str | None = None) -> list[Value]:
    """The checkable values of a text, in order; nested ones only inside their outer one."""
    text = break_literal_newlines(text)
    token, hot = patterns_for(text)
    if not hot.search(text):
        return []
    moments = find_moments(text, locale) if _DIGIT.search(text) else []
    values = list(_scan(text, locale, moments, token, hot))
    labels = labels_in(text)
    if not labels:
        return values
    return [value for value in values if not is_label(text, value.start, value.text, labels)]


@lru_cache(maxsize=4096)
def _remembered_values(text: str, locale: str | None) -> tuple[Value, ...]:
    return tuple(find_values(text, locale))


def values_of(text: str, locale: str | None = None) -> tuple[Value, ...]:
    """`find_values`, remembered for the longer texts that come back sample after sample."""
    if len(text) < 200:
        return tuple(find_values(text, locale))
    return _remembered_values(text, locale)


def break_literal_newlines(text: str) -> str:
    """A two-character backslash-n, which answers written as JSON hold, is a line break there.
    Lengths stay. In `C:\\new` it is none."""
    if "\\n" not in text:
        return text
    return "\n".join(
        line.replace("\\n", "\n\n") if _ESCAPED_LINE.search(line) else line
        for line in text.split("\n")
    )


def _scan(
    text: str,
    locale: str | None,
    moments: list[FoundMoment],
    token: re.Pattern[str],
    hot: re.Pattern[str],
) -> Iterator[Value]:
    position, upcoming = 0, 0
    while True:
        spot = hot.search(text, position)
        match = token.search(text, _word_start(text, position, spot.start())) if spot else None
        start = match.start() if match else len(text)
        if upcoming < len(moments) and moments[upcoming].start <= start:
            moment = moments[upcoming]
            upcoming += 1
            if moment.start >= position:
                yield _moment_value(text, moment)
                position = moment.end
            continue
        if match is None:
            return
        position = max(match.end(), start + 1)
        if match.lastgroup == "more":
            for value in number_values(match, text, locale):
                yield value
                position = max(position, value.end)
        elif match.lastgroup == "word":
            yield from _word_values(start, match[0], text, locale)
        else:
            yield from _plain_value(match, text, locale)


def _word_start(text: str, low: int, position: int) -> int:
    return max(low, text.rfind(" ", low, position) + 1, text.rfind("\n", low, position) + 1)


def _moment_value(text: str, found: FoundMoment) -> Value:
    return Value(
        found.start,
        found.end,
        "moment",
        text[found.start : found.end],
        moments=found.moments,
        own=found.own,
        every_way=found.every_way,
    )


def _plain_value(match: re.Match[str], text: str, locale: str | None) -> Iterator[Value]:
    start, end, found = match.start(), match.end(), match[0]
    match match.lastgroup:
        case "key":  # of a JSON object: a name, no claim
            return
        case "hash":
            yield Value(start, end, "identifier", found, key=identifier_key(found))
        case "email":
            yield Value(start, end, "email", found, key=found.casefold())
        case "code" | "quote" as kind:
            yield from _quote(start, end, text, locale, "code" if kind == "code" else "quote")
        case _:
            trimmed = found.rstrip(_URL_TAIL)
            yield Value(start, start + len(trimmed), "url", trimmed, key=url_key(trimmed))


def _quote(
    start: int, end: int, text: str, locale: str | None, kind: Literal["quote", "code"]
) -> Iterator[Value]:
    content = text[start + 1 : end - 1]
    if not any(map(str.isalnum, content)):
        return
    if text[start] == '"' and _is_json_string(text, start, end):
        for value in find_values(content, locale):
            yield value.shifted(start + 1)
        return
    inner = tuple(value.shifted(start + 1) for value in find_values(content, locale))
    bare = content.strip().rstrip(".,;:!?")
    if len(inner) == 1 and inner[0].kind in WHOLE_KINDS and inner[0].text == bare:
        yield inner[0]
    else:
        key = fold(content).strip(_QUOTE_EDGE)
        if len(key) > 1 or kind == "code":
            yield Value(start, end, kind, content, key=key, inner=inner)


def _is_json_string(text: str, start: int, end: int) -> bool:
    """In an answer written as JSON the quotation marks quote nobody."""
    line = line_start(text, start)
    if _BEFORE_JSON_STRING.search(text, line, start):
        return True
    return (
        not text[line:start].strip()
        and _AFTER_JSON_STRING.match(text, end) is not None
        and _JSON_BEFORE.search(text, max(0, start - 10 * NEARBY), start) is not None
    )


def _word_values(start: int, found: str, text: str, locale: str | None) -> Iterator[Value]:
    bare = found
    if found[0] == "_" or found[-1] == "_":
        bare = _without_emphasis(start, found, text)
        start += found.index(bare)
    if not (_DIGIT.search(bare) or "_" in bare):
        return
    head, _, rest = bare.partition("-")
    if head.casefold() in _NUMERIC_PREFIXES and rest[:1].isdecimal():
        for value in find_values(rest, locale):
            yield value.shifted(start + len(head) + 1)
        return
    amount = _CODE_AMOUNT.fullmatch(bare)
    if amount:
        end = start + len(bare)
        yield number(start + amount.start(1), end, amount[1], locale, Form())
    else:
        end = start + len(bare)
        yield Value(start, end, "identifier", bare, key=identifier_key(bare))


def _without_emphasis(start: int, found: str, text: str) -> str:
    """`_word_` and `_two words_` are Markdown; `_private` and `tail_` are names."""
    before = text[line_start(text, start) : start]
    after = text[start + len(found) : start + len(found) + NEARBY].partition("\n")[0]
    opens = found[0] == "_" and (found[-1] == "_" or _EMPHASIS_END.search(after))
    closes = found[-1] == "_" and (found[0] == "_" or _EMPHASIS_START.search(before))
    bare = found.lstrip("_") if opens else found
    return bare.rstrip("_") if closes else bare
