"""`<|tool_call>call:f{city:<|"|>Paris<|"|>,days:3}<tool_call|>`: JSON with marks for quotes and
keys without any."""

from __future__ import annotations

import re

from callmark.calls.formats.reading import Format, TextBlock, TurnReading
from callmark.records.jsontext import Json, NotJson, canonical_json, parse_json

_NAME = "gemma"
_KEY = r'(?<=[{,])(\s*+)([^\s{}\[\],:"<]{1,256}+)(?=\s*+:)'
# A text without its marks, where no number and no constant stands.
_BARE = re.compile(
    r'(?<=[:\[,])(\s*+)(?!(?:true|false|null|-?\d[\d.eE+-]*+)\s*+[,}\]])([^\s"{}\[\],:][^"{}\[\],]{0,1000}+)'
)
_HEADER = re.compile(r"\s*+:?+call:([^\s{<]{1,256}+)\s*+(?=\{)")
# Without the mark before it: right behind thinking, or on a line of its own.
_UNMARKED = r"(?:(?m:^)[ \t]*+|(?<=>))(?:call:|<call>)([\w.:/-]{1,256}+)(?=\{)"
_UNMARKED_HEADER = re.compile(_UNMARKED)
_TURN_END = re.compile(r"\s*+<(?:turn\||end_of_turn)>")


class _Quotes:
    """How strings are marked, and what follows from it."""

    def __init__(self, mark: str) -> None:
        quoted = rf"{re.escape(mark)}(.*?){re.escape(mark)}"
        self._pieces = re.compile(rf"{quoted}|{_KEY}", re.DOTALL)
        self.brackets = re.compile(rf"{quoted}|[{{}}]", re.DOTALL)

    def parse(self, written: str) -> Json:
        as_json = self._pieces.sub(_piece, written)
        try:
            return parse_json(as_json)
        except NotJson as error:
            bare = _BARE.sub(lambda text: text[1] + canonical_json(text[2].rstrip()), as_json)
            try:
                return parse_json(bare)
            except NotJson:
                raise error from None


def _piece(found: re.Match[str]) -> str:
    text, blanks, key = found.groups()
    return canonical_json(text) if key is None else f'{blanks}"{key}"'


def _gemma(opening: str, closing: str, quotes: _Quotes) -> Format:
    def read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
        header = _HEADER.match(reading.text, mark_end)
        stop, end = reading.extent(mark_end, closing, opening)
        if header is None:
            return reading.malformed((start, end), _NAME, "a call looks like call:name{…}")
        body_end = reading.bracket_end(header.end(), quotes.brackets, stop)
        if body_end >= 0 and (turn := _TURN_END.match(reading.text, body_end)):
            stop, end = body_end, turn.end()  # the turn ended instead of the call
        try:
            arguments = quotes.parse(reading.text[header.end() : stop])
        except NotJson as error:
            return reading.malformed((start, end), _NAME, str(error), header[1])
        return TextBlock(end, (reading.named(header[1], arguments, (start, end), _NAME),))

    return Format(_NAME, opening, re.escape(opening), read)


def _read_unmarked(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    header = _UNMARKED_HEADER.match(reading.text, start)
    if header is None or not reading.offers(header[1]):
        return None
    end = reading.bracket_end(mark_end, _PIPED.brackets, len(reading.text))
    try:
        arguments = _PIPED.parse(reading.text[mark_end:end]) if end >= 0 else None
    except NotJson:
        return None
    if not isinstance(arguments, dict):
        return None
    return TextBlock(end, (reading.named(header[1], arguments, (start, end), _NAME),))


_PIPED, _ESCAPED = _Quotes('<|"|>'), _Quotes("<escape>")
GEMMA = (
    _gemma("<|tool_call>", "<tool_call|>", _PIPED),
    _gemma("<start_function_call>", "<end_function_call>", _ESCAPED),
    *(
        Format(_NAME, hint, _UNMARKED, _read_unmarked, is_marked=False)
        for hint in ("call:", "<call>")
    ),
)
