"""JSON in running text: an object or a list of objects that names an offered tool."""

from __future__ import annotations

import re

from callmark.calls.formats.reading import Format, TextBlock, TurnReading

_NAME = "bare"
_QUOTED = re.compile(r"[^\W\d][^\n`]*(?<!`)`\Z")


def _read(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    found = reading.elements_at(start)
    if found is None:
        return None
    elements, end = found
    if _QUOTED.search(reading.text, max(0, start - 200), start) and reading.text[end:].startswith(
        "`"
    ):
        return TextBlock(end)  # shown in a sentence
    return TextBlock(end, reading.unmarked(elements, _NAME, start, end))


# A call has the key "name" or "tool_name": text without it needs no look at its braces.
_OPENING = r'\{\s*"|\[\s*\{'
BARE = (
    Format(_NAME, 'name"', _OPENING, _read, is_marked=False),
    Format(_NAME, '"action_input"', _OPENING, _read, is_marked=False),
)
