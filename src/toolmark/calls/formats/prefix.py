"""`TOOL_CALL: {"name": …, "arguments": {…}}`, a mark without a closing one."""

from __future__ import annotations

import re

from toolmark.calls.formats.reading import Block, Format, Reading

_NAME = "tool_call_prefix"
_MARK = "TOOL_CALL:"
_JSON_LINE = re.compile(r"""\s*[]["'{},\d-]""")


def _read(reading: Reading, start: int, mark_end: int) -> Block:
    found = reading.elements_at(reading.skip_blanks(mark_end))
    if found is None:
        end = _broken_extent(reading, mark_end)
        return reading.broken(start, (mark_end, end), end, _NAME)
    elements, end = found
    if not elements:
        return reading.broken(start, (start, start), end, _NAME, "there is no call in it")
    return Block(end, reading.marked(elements, _NAME, start, end))


def _broken_extent(reading: Reading, start: int) -> int:
    """To the line on which as many brackets are closed as were opened; if there is none before
    the next mark, to the last line that looks like JSON, so that the prose after it stays."""
    text, limit = reading.text, reading.find(_MARK, start)
    limit = len(text) if limit < 0 else limit
    depth, position, json_end = 0, start, -1
    while position < limit:
        stop = text.find("\n", position, limit)
        stop = limit if stop < 0 else stop
        line = text[position:stop]
        if json_end < 0 and position > start and not _JSON_LINE.match(line):
            json_end = position
        depth += line.count("{") + line.count("[") - line.count("}") - line.count("]")
        if depth <= 0:
            return stop
        position = stop + 1
    return json_end if json_end >= 0 else limit


TOOL_CALL_PREFIX = Format(_NAME, _MARK, rf"(?<!\w){_MARK}", _read)
