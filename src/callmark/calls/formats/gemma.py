"""`<|tool_call>call:f{city:<|"|>Paris<|"|>,days:3}<tool_call|>`: JSON with marks for quotes and
keys without any."""

from __future__ import annotations

import re

from callmark.calls.formats.reading import Format, TextBlock, TurnReading
from callmark.records.jsontext import NotJson, canonical_json, parse_json

_NAME = "gemma"
_KEY = r'(?<=[{,])(\s*+)([^\s{}\[\],:"<]{1,256}+)(?=\s*+:)'
_HEADER = re.compile(r"\s*+call:([^\s{<]{1,256}+)\s*+(?=\{)")


def _gemma(opening: str, closing: str, quote: str) -> Format:
    pieces = re.compile(rf"{re.escape(quote)}(.*?){re.escape(quote)}|{_KEY}", re.DOTALL)

    def as_json(piece: re.Match[str]) -> str:
        text, blanks, key = piece.groups()
        return canonical_json(text) if key is None else f'{blanks}"{key}"'

    def read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
        header = _HEADER.match(reading.text, mark_end)
        stop, end = reading.extent(mark_end, closing, opening)
        if header is None:
            return reading.malformed((start, end), _NAME, "a call looks like call:name{…}")
        try:
            arguments = parse_json(pieces.sub(as_json, reading.text[header.end() : stop]))
        except NotJson as error:
            return reading.malformed((start, end), _NAME, str(error), header[1])
        return TextBlock(end, (reading.named(header[1], arguments, (start, end), _NAME),))

    return Format(_NAME, opening, re.escape(opening), read)


GEMMA = (
    _gemma("<|tool_call>", "<tool_call|>", '<|"|>'),
    _gemma("<start_function_call>", "<end_function_call>", "<escape>"),
)
