"""`Action: f`, then `Action Input: {…}`, as agents write that were told to think aloud."""

from __future__ import annotations

import re

from callmark.calls.formats.reading import Format, TextBlock, TurnReading

_NAME = "react"
_HINT = "Action Input:"
_BOLD = r"(?:\*\*)?+"
_WORD = r"[`\"']?+([\w.:/-]{1,256}+)[`\"']?+(?:\(\))?+[ \t]*+"
_OPENING = (
    rf"(?m:^[ \t]*+{_BOLD}Action:{_BOLD}[ \t]*+{_WORD}"
    rf"\n\s*+{_BOLD}Action Input:{_BOLD}[ \t]*+)"
)
_HEADER = re.compile(_OPENING)
_FENCE = re.compile(r"\s*+```(?:json)?+\s*+")
_FENCE_END = re.compile(r"\s*+```")
# What the model goes on with where nobody stopped it: the environment's part, or the next step.
_ENDS = ("\nObservation:", "\nThought:", "\nAction:", "\nFinal Answer:")


def _read(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    header = _HEADER.match(reading.text, start)
    if header is None:
        return None
    fence = _FENCE.match(reading.text, mark_end)
    body = reading.skip_blanks(fence.end() if fence else mark_end)
    element = reading.value_at(body)
    if element is None:
        stop = reading.find_first((*_ENDS, "\n\n"), mark_end)
        return reading.broken(start, (mark_end, stop), stop, _NAME, name=header[1])
    closed = _FENCE_END.match(reading.text, element.end) if fence else None
    end = closed.end() if closed else element.end
    return TextBlock(end, (reading.named(header[1], element.value, (start, end), _NAME),))


REACT = Format(_NAME, _HINT, _OPENING, _read)
