"""`<tool: f>`, a text, `</tool>`: a call whose only argument is that text, or whose arguments are
that object."""

from __future__ import annotations

import re

from callmark.calls.formats.reading import Format, TextBlock, TurnReading, WrittenText
from callmark.records.jsontext import Json

_NAME = "cwm"
_CLOSING = "</tool>"
_OPENING = r"<tool:[ \t]*+[\w.-]{1,256}+[ \t]*+>"
_LABEL = re.compile(r"<tool:[ \t]*+([\w.-]{1,256}+)")
# A label that says what follows: the tool's name is the first word of the text.
_KIND = "function"
_WORD = re.compile(r"\s*+([\w.-]{1,256}+)(?=\s)[ \t]*+")
_KEY = "command"


def _read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
    label = _LABEL.match(reading.text, start)
    tool, body = (label[1] if label else ""), mark_end
    stop, end = reading.extent(mark_end, _CLOSING, "<tool:")
    if tool == _KIND and not reading.offers(_KIND):
        word = _WORD.match(reading.text, mark_end, stop)
        if word is None:
            return reading.malformed((start, end), _NAME, "the call names no tool")
        tool, body = word[1], word.end()
    if end == stop:
        return reading.malformed((start, end), _NAME, f"it is not closed by {_CLOSING}", tool)
    element = reading.value_at(reading.skip_blanks(body))
    if element is not None and isinstance(element.value, dict):
        close = reading.skip_blanks(element.end)
        if reading.text.startswith(_CLOSING, close):
            end = close + len(_CLOSING)
            return TextBlock(end, (reading.named(tool, element.value, (start, end), _NAME),))
    text = reading.text[body:stop].strip()
    given = WrittenText(_only_text(reading.schema_of(tool)), text, is_string=True)
    return TextBlock(end, (reading.texts(tool, [given], (start, end), _NAME),))


def _only_text(schema: Json) -> str:
    """The parameter that takes the text: the only one that has to be given."""
    if not isinstance(schema, dict) or not isinstance(known := schema.get("properties"), dict):
        return _KEY
    names = list(known) if len(known) == 1 else schema.get("required")
    if _KEY in known or not isinstance(names, list) or len(names) != 1:
        return _KEY
    return str(names[0])


CWM = Format(_NAME, "<tool:", _OPENING, _read)
