"""Calls as tags, with a text for each parameter that has no type of its own."""

from __future__ import annotations

import re
from typing import NamedTuple

from callmark.calls.formats.reading import Format, TextBlock, TurnReading, WrittenText

_CDATA = re.compile(r"\s*+<!\[CDATA\[(.*)\]\]>\s*+", re.DOTALL)
_ATTRIBUTE = r'"([^"<>]{1,256})"'
_BY_NAME = r"[\w.:/-]{1,256}+"


class Tags(NamedTuple):
    """How a format writes a call. `header` is the pattern from the opening mark to the first
    parameter: group 1 is the tool's name, a group 2 says that the tag closes itself. `parameter` is
    the pattern of a parameter's opening tag: group 1 is the key, a group 2 says whether the value
    is a string. All else is literal."""

    name: str
    hint: str
    header: str
    parameter: str
    parameter_mark: str
    parameter_end: str
    call_mark: str
    call_end: str
    around: str = ""  # stands behind `call_end`, if it stands there
    own_line: bool = False  # a value is written on lines of its own
    certain: str = ""  # a header without it and without parameters needs an offered name
    common: bool = False  # other texts hold such tags too: only an offered name makes it a call


class _Parameters(NamedTuple):
    """What was read of them up to `position`, and what was wrong."""

    found: list[WrittenText]
    position: int
    reason: str


def tagged(tags: Tags) -> Format:
    header, parameter = re.compile(tags.header), re.compile(tags.parameter)

    def read(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
        head = header.match(reading.text, start)
        if head is None:
            return None
        tool = head[1].strip()
        if tags.common and not reading.offers(tool):
            return None
        if header.groups > 1 and head[2]:
            return TextBlock(mark_end, (reading.texts(tool, [], (start, mark_end), tags.name),))
        body = reading.skip_blanks(mark_end)
        if reading.text.startswith("{", body):
            return _json_body(reading, tags, tool, (start, body))
        given = _parameters(reading, tags, parameter, mark_end)
        close = reading.skip_blanks(given.position)
        if not reading.text.startswith(tags.call_end, close):
            stop = reading.find_first((tags.call_end, tags.call_mark), given.position)
            reason = given.reason or f"the call is not closed by {tags.call_end}"
            return reading.malformed((start, stop), tags.name, reason, tool)
        if not given.found and tags.certain not in head[0] and not reading.offers(tool):
            return None
        end = _end(reading, tags, close)
        call = reading.texts(tool, given.found, (start, end), tags.name, given.reason)
        return TextBlock(end, (call,))

    return Format(tags.name, tags.hint, tags.header, read)


def _parameters(
    reading: TurnReading, tags: Tags, parameter: re.Pattern[str], position: int
) -> _Parameters:
    found: list[WrittenText] = []
    text, reason = reading.text, ""
    while True:
        opened = parameter.match(text, reading.skip_blanks(position))
        if opened is None:
            stop = reading.find_first((tags.call_end, tags.call_mark), position)
            if stop == reading.skip_blanks(position) or not text.startswith(tags.call_end, stop):
                return _Parameters(found, position, reason)
            # Something else stands in the call: what is readable behind it is worth showing.
            opened = parameter.search(text, position, stop)
            reason = "something else stands between the parameters"
            if opened is None:
                return _Parameters(found, stop, reason)
        value = opened.end()
        stop = reading.find(tags.parameter_end, value)
        position = stop + len(tags.parameter_end)
        following = reading.find_first((tags.parameter_mark, tags.call_mark), value)
        if not 0 <= stop < following:
            reason = f"a parameter is not closed by {tags.parameter_end}"
            position = stop = min(following, reading.find_first((tags.call_end,), value))
            if stop == len(text):
                return _Parameters(found, stop, reason)
        is_string = parameter.groups > 1 and opened[2] == "true"
        found.append(WrittenText(opened[1].strip(), _value(text[value:stop], tags), is_string))


def _value(text: str, tags: Tags) -> str:
    quoted = _CDATA.fullmatch(text)
    if quoted is not None:
        return quoted[1]
    return text.removeprefix("\n").removesuffix("\n") if tags.own_line else text


def _json_body(reading: TurnReading, tags: Tags, tool: str, at: tuple[int, int]) -> TextBlock:
    """All parameters as one JSON object instead of tags."""
    start, body = at
    element = reading.value_at(body)
    close = -1 if element is None else reading.skip_blanks(element.end)
    if element is None or not reading.text.startswith(tags.call_end, close):
        stop, end = reading.extent(body, tags.call_end, tags.call_mark)
        return reading.broken(start, (body, stop), end, tags.name, name=tool)
    end = _end(reading, tags, close)
    return TextBlock(end, (reading.named(tool, element.value, (start, end), tags.name),))


def _end(reading: TurnReading, tags: Tags, close: int) -> int:
    end = close + len(tags.call_end)
    outer = reading.skip_blanks(end)
    if tags.around and reading.text.startswith(tags.around, outer):
        return outer + len(tags.around)
    return end


def _invoke(space: str) -> Format:
    return tagged(
        Tags(
            "invoke",
            f"<{space}invoke name=",
            rf"<{space}invoke name={_ATTRIBUTE}\s*+(/?+)>",
            rf'<{space}parameter name={_ATTRIBUTE}(?: string="(true|false)")?+\s*+>',
            f"<{space}parameter",
            f"</{space}parameter>",
            f"<{space}invoke",
            f"</{space}invoke>",
            common=not space,
        )
    )


QWEN3_CODER = tagged(
    Tags(
        "qwen3_coder",
        "<function=",
        r"(?:<tool_call>\s*+)?+<function=([^<>\n]{1,256}+)>",
        r"<parameter=([^<>\n]{1,256}+)>",
        "<parameter=",
        "</parameter>",
        "<function=",
        "</function>",
        around="</tool_call>",
        own_line=True,
    )
)
GLM45 = tagged(
    Tags(
        "glm45",
        "<tool_call>",
        rf"<tool_call>\s*+({_BY_NAME})\s*+(?:<tool_sep>\s*+)?+(?=<arg_key>|</tool_call>)",
        r"<arg_key>([^<>]{1,256}+)</arg_key>\s*+<arg_value>",
        "<arg_key>",
        "</arg_value>",
        "<tool_call>",
        "</tool_call>",
        certain="<tool_sep>",
    )
)
INVOKE = (
    _invoke(""),
    _invoke("｜DSML｜"),
    _invoke("steptml:"),
    tagged(
        Tags(
            "invoke",
            "<function name=",
            rf"<function name={_ATTRIBUTE}\s*+(/?+)>",
            rf"<param name={_ATTRIBUTE}\s*+>",
            "<param ",
            "</param>",
            "<function name=",
            "</function>",
            common=True,
        )
    ),
)
