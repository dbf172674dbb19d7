"""`[TOOL_CALLS] [{"name": …, "arguments": {…}}]` and the newer `[TOOL_CALLS]name[ARGS]{…}`."""

from __future__ import annotations

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


def _read(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    is_list = reading.text.startswith(("[", "{"), reading.skip_blanks(mark_end))
    return (_LIST if is_list else _NAMED).read(reading, start, mark_end)


MISTRAL = Format("mistral", _MARK, _LIST.opening, _read)
