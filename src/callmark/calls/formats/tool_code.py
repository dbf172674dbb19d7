"""A block of Python that is there to be run, in a fence `tool_code` or between `<tool_code>` tags:
calls stand in it as they are, printed, or assigned."""

from __future__ import annotations

import re

from callmark.calls.attempts import ToolCall
from callmark.calls.formats.reading import Format, TextBlock, TurnReading

_NAME = "tool_code"
_BEFORE = re.compile(r"[\s;,]*+(?:[^\W\d]\w{0,63}+\s*+=(?!=)\s*+)?+(print\s*+\(\s*+)?+")
_API = "default_api."


def _block(hint: str, opening: str, closing: str) -> Format:
    def read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
        text, position = reading.text, mark_end
        calls: list[ToolCall] = []
        while True:
            before = _BEFORE.match(text, position)
            body = before.end() if before else position
            if text.startswith(closing, body) or body >= len(text):
                break
            found = reading.python_calls_at(body)
            if isinstance(found, Exception):
                _, end = reading.extent(position, closing, opening)
                return reading.malformed((start, end), _NAME, f"not a call in Python: {found}")
            calls += (
                ToolCall(
                    call.name.removeprefix(_API),
                    call.arguments,
                    text[call.start : call.end],
                    _NAME,
                )
                for call in found[0]
            )
            position = found[1]
            if before and before[1] and text.startswith(")", reading.skip_blanks(position)):
                position = reading.skip_blanks(position) + 1
        end = min(body + len(closing), len(text))
        if not calls:
            return reading.malformed((start, end), _NAME, "there is no call in it")
        return TextBlock(end, tuple(calls))

    return Format(_NAME, hint, opening if opening == hint else rf"{opening}\b", read)


TOOL_CODE = (
    _block("```", "```tool_code", "```"),
    _block("<tool_code>", "<tool_code>", "</tool_code>"),
)
