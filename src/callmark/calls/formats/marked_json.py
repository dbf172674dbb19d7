"""JSON after a mark: `<tool_call>{"name": …, "arguments": {…}}</tool_call>` and its kin."""

from __future__ import annotations

import re

from callmark.calls.formats.reading import Format, TextBlock, TurnReading
from callmark.calls.scan import Element

_NOTHING_FOLLOWS = re.compile(r"\s*+(?:<\|\w++\|>\s*+)*+\Z")
_BETWEEN_VALUES = re.compile(r"\s*+[;,]?+\s*+")


def closed_json(name: str, opening: str, closing: str, *, ahead: str = "") -> Format:
    """Calls between two marks that both belong to the text. `ahead` is the pattern of what must
    follow the opening mark."""

    def read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
        elements: list[Element] = []
        position = reading.skip_blanks(mark_end)
        # The JSON is read before the closing mark is looked for: a string in it may hold that.
        while (found := reading.elements_at(position)) is not None:
            elements += found[0]
            position = reading.skip_blanks(found[1])
            if reading.text.startswith(closing, position):
                end = position + len(closing)
                return block_of(reading, elements, (start, end), name)
        # A turn that ends with a whole call: servers that stop at the closing mark leave it out.
        if elements and _NOTHING_FOLLOWS.match(reading.text, position):
            return block_of(reading, elements, (start, elements[-1].end), name)
        stop, end = reading.extent(position if elements else mark_end, closing, opening)
        if elements and end == stop:  # the next mark, if any, opens another block
            reason = f"the call is not closed by {closing}"
            return reading.broken(start, (mark_end, position), position, name, reason)
        return reading.broken(start, (mark_end, stop), end, name)

    return Format(name, opening, re.escape(opening) + ahead, read)


def open_json(name: str, opening: str, closing: str = "", *, mark: str = "") -> Format:
    """Calls after a mark, whose closing mark (if there is one) is a token at which a model stops
    and which many servers leave out. `mark` is the pattern of the opening one where it is more
    than its text."""

    def read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
        elements, end = several_values(reading, reading.skip_blanks(mark_end), most=1)
        if end is None:
            stop, end = reading.extent(mark_end, closing, opening)
            return reading.broken(start, (mark_end, stop), end, name)
        close = reading.skip_blanks(end)
        if closing and reading.text.startswith(closing, close):
            end = close + len(closing)
        return block_of(reading, elements, (start, end), name)

    return Format(name, opening, mark or re.escape(opening), read)


def trailing_list(name: str, opening: str) -> Format:
    """A list after a mark that nothing closes, as the last thing of a turn."""

    def read(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
        found = reading.elements_at(mark_end)
        if found is None or not _NOTHING_FOLLOWS.match(reading.text, found[1]):
            return None
        return block_of(reading, found[0], (start, found[1]), name)

    return Format(name, opening, rf"{re.escape(opening)}\s*+(?=\[)", read)


def several_values(
    reading: TurnReading, position: int, *, most: int | None = None
) -> tuple[list[Element], int | None]:
    """The JSON values from here on, and where the last one ends; None: there is none."""
    elements: list[Element] = []
    end: int | None = None
    while (found := reading.elements_at(position)) is not None:
        elements += found[0]
        end = found[1]
        between = _BETWEEN_VALUES.match(reading.text, end)
        position = between.end() if between else end
        if most == 1:
            break
    return elements, end


def block_of(
    reading: TurnReading, elements: list[Element], span: tuple[int, int], name: str
) -> TextBlock:
    """The attempts in what follows a mark; nothing at all is a malformed one."""
    start, end = span
    attempts = reading.marked(elements, name, start, end)
    if not attempts:
        return reading.broken(start, (start, start), end, name, "there is no call in it")
    return TextBlock(end, attempts)


def _read_apertus(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
    """`[{"f": {…}}, {"g": {…}}]`: the only key of each object is the tool's name."""
    found = reading.elements_at(reading.skip_blanks(mark_end))
    if found is None:
        stop, end = reading.extent(mark_end, _APERTUS[1], _APERTUS[0])
        return reading.broken(start, (mark_end, stop), end, "apertus")
    close = reading.skip_blanks(found[1])
    closed = reading.text.startswith(_APERTUS[1], close)
    end = close + len(_APERTUS[1]) if closed else found[1]
    renamed = [
        element._replace(value={"name": next(iter(value)), "arguments": next(iter(value.values()))})
        if isinstance(value := element.value, dict) and len(value) == 1
        else element
        for element in found[0]
    ]
    return block_of(reading, renamed, (start, end), "apertus")


_APERTUS = ("<|tools_prefix|>", "<|tools_suffix|>")
APERTUS = Format("apertus", _APERTUS[0], re.escape(_APERTUS[0]), _read_apertus)
HERMES = closed_json("hermes", "<tool_call>", "</tool_call>")
TOOL_CALL_PREFIX = open_json("tool_call_prefix", "TOOL_CALL:", mark=r"(?<!\w)TOOL_CALL:")
GRANITE = (
    open_json("granite", "<|tool_call|>"),
    open_json("granite", "<function_call>", "</function_call>"),
    trailing_list("granite", "<tool_call>"),
)
FUNCTOOLS = open_json("functools", "functools[", mark=r"(?<!\w)functools(?=\[\s*+(?:[{\]]|\Z))")
COMMAND_R = open_json("command_r", "<|START_ACTION|>", "<|END_ACTION|>")
K2_HORIZON_JSON = closed_json("k2_horizon", "<ifm|tool_call>", "</ifm|tool_call>")
INKLING = open_json(
    "inkling",
    "<|content_invoke_tool_json|>",
    "<|end_message|>",
    mark=r"(?:<\|message_model\|>[^<]{0,256}+)?+<\|content_invoke_tool_json\|>",
)
OTHERS = (
    closed_json("longcat", "<longcat_tool_call>", "</longcat_tool_call>"),
    closed_json("nemotron", "<TOOLCALL>", "</TOOLCALL>"),
    closed_json("jamba", "<tool_calls>", "</tool_calls>", ahead=r"(?=\s*+[\[{])"),
    open_json("internlm", "<|action_start|><|plugin|>", "<|action_end|>"),
    open_json("gigachat", "<|function_call|>"),
    open_json(
        "gigachat",
        "<|role_sep|>",
        mark=r"(?:<\|message_sep\|>\s*+)?+function call<\|role_sep\|>",
    ),
)
