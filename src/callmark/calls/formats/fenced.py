"""A fenced block of JSON: ```json is a call only by what it holds, ```tool_call by its mark."""

from __future__ import annotations

import re

from callmark.calls.formats.pythonic import python_block
from callmark.calls.formats.reading import Format, TextBlock, TurnReading
from callmark.calls.scan import Element

_NAME = "fenced"
_FENCE = "```"
_TAG = re.compile(r"[ \t]*([\w+.#-]*)")
_JSON_TAGS = frozenset({"", "json", "jsonc", "jsonl"})
_CALL_TAGS = frozenset({"tool_call", "tool_calls"})


def _read(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
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
    return TextBlock(end, reading.unmarked(elements, _NAME, start, end))


def _read_marked(reading: TurnReading, start: int, body: int) -> TextBlock:
    elements, end = _body(reading, body)
    if end is not None and elements:
        return TextBlock(end, reading.marked(elements, _NAME, start, end))
    written = python_block(reading, (start, reading.skip_blanks(body)), _NAME)
    if isinstance(written, TextBlock):
        close = reading.skip_blanks(written.end)
        if reading.text.startswith(_FENCE, close):
            return written._replace(end=close + len(_FENCE))
    close = reading.find(_FENCE, body)
    stop = close if close >= 0 else len(reading.text)
    end = stop + len(_FENCE) if close >= 0 else stop
    return reading.broken(start, (body, stop), end, _NAME)


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
FENCED = Format(_NAME, _FENCE, rf"(?:\bAction:\s*+)?+(?<!`){_FENCE}(?!`)", _read, is_marked=False)
