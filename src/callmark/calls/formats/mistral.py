"""`[TOOL_CALLS] [{"name": …, "arguments": {…}}]` and the newer `[TOOL_CALLS]name[ARGS]{…}`."""

from __future__ import annotations

import re

from callmark.calls.attempts import ToolCall
from callmark.calls.formats.marked_json import open_json
from callmark.calls.formats.named_json import named_json
from callmark.calls.formats.reading import Format, TextBlock, TurnReading

_MARK = "[TOOL_CALLS]"
_LIST = open_json("mistral", _MARK)
_NAMED = named_json(
    "mistral",
    _MARK,
    r"\s*+([^\s\[{]{1,256}+)\s*+(?:\[CALL_ID\][^\[\s]{0,64}+)?+\s*+(?:\[ARGS\]|(?=\{))",
    "",
)


# Nothing but a name: a call if its tool takes no arguments; of any other it was cut off.
_ALONE = re.compile(r"\s*+([\w.:/-]{1,256}+)\s*+(?=\[TOOL_CALLS\]|</s>|\Z)")


def _read(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    alone = _ALONE.match(reading.text, mark_end)
    if alone is not None and reading.offers(alone[1]):
        schema = reading.schema_of(alone[1])
        if not (isinstance(schema, dict) and schema.get("properties")):
            raw = reading.text[start : alone.end()].rstrip()
            return TextBlock(alone.end(), (ToolCall(alone[1], {}, raw, "mistral"),))
    is_list = reading.text.startswith(("[", "{"), reading.skip_blanks(mark_end))
    return (_LIST if is_list else _NAMED).read(reading, start, mark_end)


MISTRAL = Format("mistral", _MARK, _LIST.opening, _read)
