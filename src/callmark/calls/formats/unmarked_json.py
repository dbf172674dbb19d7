"""JSON that names an offered tool itself, without a mark of its own: in a fence (```json is a call
only by what it holds, ```tool_call by its mark), or in running text."""

from __future__ import annotations

import re

from callmark.calls.formats.pythonic import python_block
from callmark.calls.formats.reading import Format, TextBlock, TurnReading
from callmark.calls.scan import Element

_FENCED = "fenced"
_FENCE = "```"
_TAG = re.compile(r"[ \t]*([\w+.#-]*)")
_JSON_TAGS = frozenset({"", "json", "jsonc", "jsonl"})
_CALL_TAGS = frozenset({"tool_call", "tool_calls"})


def _read_fenced(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    match = _TAG.match(reading.text, mark_end)
    tag = match.group(1).lower() if match else ""
    body = match.end() if match else mark_end
    if tag in _CALL_TAGS:
        return _read_marked(reading, start, body)
    if tag not in _JSON_TAGS:
        return None
    elements, end = _body(reading, body)
    if not elements or end is None:
        return None
    if not tag and not reading.text.startswith(_FENCE, end - len(_FENCE)):
        return None  # rather the end of another block, with JSON after it
    return TextBlock(end, reading.unmarked(elements, _FENCED, start, end))


def _read_marked(reading: TurnReading, start: int, body: int) -> TextBlock:
    elements, end = _body(reading, body)
    if end is not None and elements:
        return TextBlock(end, reading.marked(elements, _FENCED, start, end))
    written = python_block(reading, (start, reading.skip_blanks(body)), _FENCED)
    if isinstance(written, TextBlock):
        close = reading.skip_blanks(written.end)
        if reading.text.startswith(_FENCE, close):
            return written._replace(end=close + len(_FENCE))
    close = reading.find(_FENCE, body)
    stop = close if close >= 0 else len(reading.text)
    end = stop + len(_FENCE) if close >= 0 else stop
    return reading.broken(start, (body, stop), end, _FENCED)


def _body(reading: TurnReading, start: int) -> tuple[list[Element], int | None]:
    """The JSON values up to the closing fence or the end of the text; None where something else
    stands between them."""
    elements: list[Element] = []
    position = reading.skip_blanks(start)
    while (found := reading.elements_at(position)) is not None:
        elements += found[0]
        position = reading.skip_blanks(found[1])
    if reading.text.startswith(_FENCE, position):
        return elements, position + len(_FENCE)
    return elements, position if position >= len(reading.text) else None


# Command-R announces its fence.
FENCED = Format(
    _FENCED, _FENCE, rf"(?:\bAction:\s*+)?+(?<!`){_FENCE}(?!`)", _read_fenced, is_marked=False
)


_BARE = "bare"
_QUOTED = re.compile(r"[^\W\d][^\n`]*(?<!`)`\Z")


def _read_bare(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    found = reading.elements_at(start)
    if found is None:
        return None
    elements, end = found
    if _QUOTED.search(reading.text, max(0, start - 200), start) and reading.text[end:].startswith(
        "`"
    ):
        return TextBlock(end)  # shown in a sentence
    return TextBlock(end, reading.unmarked(elements, _BARE, start, end))


# A call has the key "name" or "tool_name": text without it needs no look at its braces.
_OPENING = r'\{\s*"|\[\s*\{'
BARE = (
    Format(_BARE, 'name"', _OPENING, _read_bare, is_marked=False),
    Format(_BARE, '"action_input"', _OPENING, _read_bare, is_marked=False),
)
