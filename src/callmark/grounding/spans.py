"""Integration spans: what follows a marker, or the sentences that claim something.

Offsets here are characters; `extract_spans` gives UTF-8 bytes."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from callmark.errors import UsageError
from callmark.grounding.text import ByteOffsets
from callmark.grounding.values import break_literal_newlines, find_values
from callmark.grounding.words import ABBREVIATIONS, BEFORE_DIGITS, BEFORE_LOWER
from callmark.records.samples import Extractor

Span = tuple[int, int]

_MARKER = re.compile(r"(?<![^\W_])Integration(?:\*\*|__|[*_`])?[:：](?:\*\*|__|[*_`])*")
# A mark inside quotation marks or brackets (`.”`, `.)`) ends what they hold, not the sentence that
# they stand in. Emphasis is no text: what follows it counts. East Asian marks need no white space.
_END = re.compile(
    r"(?<![.!?…])[.!?…]++[*_]*+(?=\s|$)|[。！？]++(?![\"'”’»›)\]}`」』）】〉》])[*_]*+"
)
_TRIM_END = " \t\r\n\u00a0\u202f\u3000.!?…。！？*"
_TRIM_START = " \t\r\u00a0\u202f\u3000"
_LAST_WORD = re.compile(r"[^\W\d_]+(?:\.[^\W\d_]+)*$")
_ITEM = re.compile(r"[ \t>]*(?:[-*+•‣–]|\(?\d{1,3}[.)]|#{1,6})[ \t]+")
_INITIAL = re.compile(r"(?:^|[\s(])[^\W\d_]$")


def marker_spans(text: str) -> list[Span]:
    """After `Integration:`, to the first sentence end, the line end, or the next marker."""
    spans: list[Span] = []
    if "Integration" not in text:
        return spans
    text = break_literal_newlines(text)
    markers = list(_MARKER.finditer(text))
    for index, marker in enumerate(markers):
        limit = markers[index + 1].start() if index + 1 < len(markers) else len(text)
        line_end = text.find("\n", marker.end(), limit)
        stop = _sentence_end(text, marker.end(), limit if line_end < 0 else line_end)
        emphasised = text[marker.start() - 1 : marker.start()] == "_"
        span = _trim(text, marker.end(), stop, _TRIM_END + "_" * emphasised)
        if span is not None:
            spans.append(span)
    return spans


def sentences(text: str) -> Iterator[Span]:
    """Every sentence, list item and table cell of the text."""
    plain = break_literal_newlines(text)
    start = 0
    for line in plain.split("\n"):
        yield from _line_sentences(plain, start, start + len(line))
        start += len(line) + 1


def extract_spans(text: str, extractor: Extractor = "marker") -> list[list[int]]:
    """Cut the spans that are scored out of an answer.

    Args:
        text: the answer.
        extractor: `marker` (what follows `Integration:`) or `claims`, which knows no results
            here and so gives the sentences that hold a checkable value.

    Returns:
        `[[start, end], …]` in UTF-8 bytes.

    Raises:
        UsageError: an extractor that there is not.

    >>> import callmark
    >>> callmark.extract_spans("Hello. There are 12 boats.", "claims")
    [[7, 25]]
    """
    if extractor == "marker":
        spans = marker_spans(text)
    elif extractor == "claims":
        starts = [value.start for value in find_values(text)]
        spans = [
            (start, end)
            for start, end in sentences(text)
            if bisect_left(starts, start) < bisect_left(starts, end)
        ]
    else:
        raise UsageError(f"extractor must be 'marker' or 'claims', not {extractor!r}")
    to_bytes = ByteOffsets(text)
    return [[to_bytes(start), to_bytes(end)] for start, end in spans]


def _line_sentences(text: str, start: int, end: int) -> Iterator[Span]:
    line = text[start:end]
    if line.count("|") > 1 and line.lstrip().startswith("|"):
        position = start
        for cell in line.split("|"):
            span = _trim(text, position, position + len(cell))
            if span is not None:
                yield span
            position += len(cell) + 1
        return
    item = _ITEM.match(line)
    if item and _is_ordinal_before_month(item[0].strip().rstrip("."), line[item.end() :]):
        item = None
    position = start + (item.end() if item else 0)
    while position < end:
        stop = _sentence_end(text, position, end)
        span = _trim(text, position, stop)
        if span is not None:
            yield span
        position = stop


def _sentence_end(text: str, start: int, stop: int) -> int:
    for match in _END.finditer(text, start, stop):
        if match[0][0] != "." or not _is_inner_stop(text, start, match.start(), stop):
            return match.end()
    return stop


def _is_inner_stop(text: str, start: int, dot: int, stop: int) -> bool:
    """A full stop that ends no sentence: after an abbreviation or an initial, or an ordinal."""
    head = text[max(start, dot - 20) : dot]
    word = _LAST_WORD.search(head)
    after = text[dot + 1 : min(stop, dot + 40)].lstrip()
    if word is not None:
        folded = word[0].casefold()
        return (
            folded in ABBREVIATIONS
            or (folded in BEFORE_DIGITS and after[:1].isdecimal())
            or (folded in BEFORE_LOWER and after[:1].islower())
            or (word[0].isupper() and _INITIAL.search(head) is not None and bool(after))
        )
    return head[-1:].isdecimal() and _is_ordinal_before_month(head, after)


def _is_ordinal_before_month(head: str, after: str) -> bool:
    digits = re.search(r"(?<![\w.,])\d{1,2}$", head)
    values = find_values(f"{digits[0]}. {after[:20]}") if digits and after[:1].isalpha() else []
    return bool(values) and values[0].kind == "moment" and values[0].start == 0


def _trim(text: str, start: int, end: int, edge: str = _TRIM_END) -> Span | None:
    piece = text[start:end]
    kept = piece.rstrip(edge)
    stripped = kept.lstrip(_TRIM_START)
    if not stripped:
        return None
    begin = start + len(kept) - len(stripped)
    if stripped.startswith("**") and "**" not in stripped[2:]:
        begin += 2
    return begin, start + len(kept)
