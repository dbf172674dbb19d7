"""`<|python_tag|>{"name": …, "parameters": {…}}; {…}`, or in Python: `search.call(q="x")`."""

from __future__ import annotations

import re

from callmark.calls.formats.marked_json import block_of, several_values
from callmark.calls.formats.pythonic import python_block
from callmark.calls.formats.reading import Format, TextBlock, TurnReading

_NAME = "llama"
_MARK = "<|python_tag|>"
_ENDS = ("<|eom_id|>", "<|eot_id|>", _MARK)


def _read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
    position = reading.skip_blanks(mark_end)
    elements, end = several_values(reading, position)
    if end is not None:
        return block_of(reading, elements, (start, end), _NAME)
    stop = reading.find_first(_ENDS, mark_end)
    if reading.text.startswith(("{", "["), position):
        return reading.broken(start, (mark_end, stop), stop, _NAME)
    written = python_block(reading, (start, position), _NAME)
    if isinstance(written, TextBlock):
        return written
    return reading.malformed((start, stop), _NAME, written)


PYTHON_TAG = Format(_NAME, _MARK, re.escape(_MARK), _read)
