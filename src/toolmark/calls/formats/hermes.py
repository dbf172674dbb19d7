"""`<tool_call>{"name": …, "arguments": {…}}</tool_call>` (Hermes, Qwen 2.5 and 3)."""

from __future__ import annotations

from toolmark.calls.formats.reading import Block, Format, Reading
from toolmark.calls.scan import Element

_NAME = "hermes"
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"


def _read(reading: Reading, start: int, mark_end: int) -> Block:
    elements: list[Element] = []
    position = reading.skip_blanks(mark_end)
    # The JSON is read before the closing mark is looked for: a string in it may hold that mark.
    while (found := reading.elements_at(position)) is not None:
        elements += found[0]
        position = reading.skip_blanks(found[1])
        if reading.text.startswith(_CLOSE, position):
            return _closed(reading, elements, start, position)
    if elements and _nothing_else_in(reading, position):
        reason = f"the call is not closed by {_CLOSE}"
        return reading.broken(start, (mark_end, position), position, _NAME, reason)
    stop, end = _extent(reading, mark_end)
    return reading.broken(start, (mark_end, stop), end, _NAME)


def _closed(reading: Reading, elements: list[Element], start: int, close: int) -> Block:
    end = close + len(_CLOSE)
    attempts = reading.marked(elements, _NAME, start, end)
    if not attempts:
        return reading.broken(start, (start, start), end, _NAME, "there is no call in it")
    return Block(end, attempts)


def _nothing_else_in(reading: Reading, position: int) -> bool:
    """Whether the block holds no more after its JSON: the next mark, if any, opens another."""
    close, following = reading.find(_CLOSE, position), reading.find(_OPEN, position)
    return close < 0 or 0 <= following < close


def _extent(reading: Reading, body: int) -> tuple[int, int]:
    """(end of the body, end of the block): to the closing mark, the next opening one or the end."""
    close, following = reading.find(_CLOSE, body), reading.find(_OPEN, body)
    if close >= 0 and not 0 <= following < close:
        return close, close + len(_CLOSE)
    stop = following if following >= 0 else len(reading.text)
    return stop, stop


HERMES = Format(_NAME, _OPEN, _OPEN, _read)
