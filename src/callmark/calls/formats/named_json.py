"""A name, then its arguments as JSON, such as `functions.f:0<|tool_call_argument_begin|>{…}`.
Harmony names the tool in the header of a channel; Gemma's JSON has marks for quotes and keys
without any."""

from __future__ import annotations

import re

from callmark.calls.attempts import ToolCall
from callmark.calls.formats.marked_json import open_json
from callmark.calls.formats.reading import Format, TextBlock, TurnReading
from callmark.records.jsontext import Json, NotJson, canonical_json, parse_json

_NAMELESS = "the call names no tool"


def named_json(
    name: str,
    opening: str,
    header: str,
    closing: str,
    *,
    tail: str = "",
    ahead: str = "",
    must_close: bool = False,
) -> Format:
    """`header` is the pattern between the opening mark and the arguments; the group that matched
    is the tool's name. `tail` may stand before the closing mark, `ahead` must follow the
    opening one. Where a call need not be closed, its closing mark is a token at which a model stops
    and which many servers leave out."""
    head_pattern = re.compile(header)
    end_pattern = re.compile(rf"\s*+{tail}{re.escape(closing)}")

    def read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
        head = head_pattern.match(reading.text, mark_end)
        tool = next(filter(None, head.groups()), "") if head else ""
        # A counter alone is a call's place in the list, not the name of a tool.
        if head is None or not tool or tool.isdigit():
            stop, end = reading.extent(mark_end, closing, opening)
            return reading.broken(start, (mark_end, stop), end, name, _NAMELESS)
        position = reading.skip_blanks(head.end())
        element = reading.value_at(position)
        value, after = (None, position) if element is None else (element.value, element.end)
        closed = end_pattern.match(reading.text, after) if closing else None
        if closed is not None:
            return TextBlock(
                closed.end(), (reading.named(tool, value, (start, closed.end()), name),)
            )
        stop, end = reading.extent(after, closing, opening)
        if element is not None and (not closing or end == stop) and not must_close:
            return TextBlock(after, (reading.named(tool, value, (start, after), name),))
        reason = f"the call is not closed by {closing}" if element and end == stop else ""
        return reading.broken(start, (position, stop), end, name, reason, name=tool)

    return Format(name, opening, re.escape(opening) + ahead, read)


def empty_section(name: str, opening: str, first: str, closing: str) -> Format:
    """The mark that opens a list of calls, with no call after it."""

    def read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
        _, end = reading.extent(mark_end, closing, first)
        return reading.malformed((start, end), name, "no call begins in it")

    return Format(name, opening, rf"{re.escape(opening)}(?!\s*+{re.escape(first)})", read)


_FUNCTION = r"([^<>\n]{1,256}+)>"
FUNCTION_TAG = named_json(
    "llama",
    "<function=",
    _FUNCTION,
    "</function>",
    ahead=rf"(?={_FUNCTION}\s*+\{{)",
    must_close=True,
)


def _deepseek(begin: str, separator: str, end: str) -> Format:
    """V3.1 writes the name before the separator; V3 and R1 after it, and the arguments in a
    fence."""
    return named_json(
        "deepseek_v3",
        begin,
        rf"\s*+(?:([^\s<]{{1,256}})\s*+{separator}(?=\s*+\{{)"
        rf"|\w*+{separator}\s*+([^\s<{{`]{{1,256}})\s*+(?:```(?:json)?+)?+)",
        end,
        ahead=r"(?!\w*+<[^<>]{1,20}>\s*+<\w++:)",  # Step-3 has the marks around tags
        tail=r"(?:```)?+\s*+",
    )


_DEEPSEEK_V3 = _deepseek("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>")
DEEPSEEK_V3 = (
    _DEEPSEEK_V3,
    # Distilled models write the marks as they look.
    _deepseek("<｜tool_call_begin｜>", "<｜tool_sep｜>", "<｜tool_call_end｜>"),
    _deepseek("<｜tool▁calls｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"),
    empty_section(
        "deepseek_v3", "<｜tool▁calls▁begin｜>", _DEEPSEEK_V3.hint, "<｜tool▁calls▁end｜>"
    ),
)
_KIMI_K2 = named_json(
    "kimi_k2",
    "<|tool_call_begin|>",
    r"\s*+(?:functions\.)?([^\s<]{1,256}?)(?::\d++)?\s*+<\|tool_call_argument_begin\|>",
    "<|tool_call_end|>",
)
KIMI_K2 = (
    _KIMI_K2,
    *(
        empty_section("kimi_k2", f"<|{section}_begin|>", _KIMI_K2.hint, f"<|{section}_end|>")
        for section in ("tool_calls_section", "tool_call_section")
    ),
)


def _plamo(side: str, part: str) -> str:
    return re.escape(f"<|plamo:{side}_tool_{part}:plamo|>")


PLAMO = named_json(
    "plamo",
    "<|plamo:begin_tool_request:plamo|>",
    rf"\s*+{_plamo('begin', 'name')}([^<>]{{1,256}}+){_plamo('end', 'name')}"
    rf"\s*+{_plamo('begin', 'arguments')}",
    "<|plamo:end_tool_request:plamo|>",
    tail=rf"{_plamo('end', 'arguments')}\s*+",
)
SOLAR_OPEN = named_json(
    "solar_open",
    "<|tool_call:begin|>",
    r"[^<>]{0,256}+<\|tool_call:name\|>\s*+([^\s<]{1,256})\s*+<\|tool_call:args\|>",
    "<|tool_call:end|>",
)
FUNCTIONARY_V2 = named_json(
    "functionary_v2",
    "<|recipient|>",
    r"[ \t]*+([\w.:/-]{1,256}+)\s*+<\|content\|>",
    "",
    ahead=r"(?!\s*+all\b)",
)
QWEN_AGENT = named_json("qwen_agent", "✿FUNCTION✿:", r"\s*+([\w.:/-]{1,256}+)\s*+✿ARGS✿:", "")
MCP_TAGS = named_json(
    "mcp_tags",
    "<use_mcp_tool>",
    r"\s*+(?:<server_name>[^<>]{0,256}+</server_name>\s*+)?+"
    r"<tool_name>\s*+([^\s<>]{1,256}+)\s*+</tool_name>\s*+<arguments>",
    "</use_mcp_tool>",
    tail=r"</arguments>\s*+",
)
_BY_LINE = "name_json"
# GLM-4 and Step write `name`, a line end and the arguments, between the marks of others.
_LINE = (
    r"\s*+(?:function[ \t]*+\n\s*+|(?:assistant[ \t]++)?+to=(?:functions\.)?+)?+"
    r"([\w.:/-]{1,256}+)(?:[ \t]++json)?+[ \t]*+\n"
)
LINES_IN_TAGS = named_json(
    _BY_LINE,
    "<tool_call>",
    _LINE,
    "</tool_call>",
    ahead=rf"(?={_LINE}\s*+\{{)",
    must_close=True,
)
_NAME_LINE = r"(?:>>>|(?m:^)|(?<=>))[ \t]*+(?:-> tool/)?+([\w.:/-]{1,256}+)[ \t]*+\n\s*+(?=\{)"
_NAME_LINE_PATTERN = re.compile(_NAME_LINE)
_ENDS_HERE = re.compile(r"[ \t]*+(?:\n|\Z|<[|｜]|</s>|>>>)")


def _read_name_line(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    """`f`, a line end, `{…}`. Some put `>>>` before the name, which the prompt has already written
    for the first one."""
    header = _NAME_LINE_PATTERN.match(reading.text, start)
    if header is None:
        return None
    if not reading.offers(header[1]) and not reading.text.startswith(">>>", start):
        return None
    element = reading.value_at(mark_end)
    if element is None or not _ENDS_HERE.match(reading.text, element.end):
        return None
    call = reading.named(header[1], element.value, (start, element.end), _BY_LINE)
    return TextBlock(element.end, (call,))


NAME_JSON = tuple(
    Format(_BY_LINE, hint, _NAME_LINE, _read_name_line, is_marked=False) for hint in ("\n{", "\n {")
)


# `[TOOL_CALLS] [{"name": …, "arguments": {…}}]` and the newer `[TOOL_CALLS]name[ARGS]{…}`.
_MISTRAL = "[TOOL_CALLS]"
_MISTRAL_LIST = open_json("mistral", _MISTRAL)
_MISTRAL_NAMED = named_json(
    "mistral",
    _MISTRAL,
    r"\s*+([^\s\[{]{1,256}+)\s*+(?:\[CALL_ID\][^\[\s]{0,64}+)?+\s*+(?:\[ARGS\]|(?=\{))",
    "",
)


# Nothing but a name: a call if its tool takes no arguments; of any other it was cut off.
_NAME_ALONE = re.compile(r"\s*+([\w.:/-]{1,256}+)\s*+(?=\[TOOL_CALLS\]|</s>|\Z)")


def _read_mistral(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    alone = _NAME_ALONE.match(reading.text, mark_end)
    if alone is not None and reading.offers(alone[1]):
        schema = reading.schema_of(alone[1])
        if not (isinstance(schema, dict) and schema.get("properties")):
            raw = reading.text[start : alone.end()].rstrip()
            return TextBlock(alone.end(), (ToolCall(alone[1], {}, raw, "mistral"),))
    is_list = reading.text.startswith(("[", "{"), reading.skip_blanks(mark_end))
    return (_MISTRAL_LIST if is_list else _MISTRAL_NAMED).read(reading, start, mark_end)


MISTRAL = Format("mistral", _MISTRAL, _MISTRAL_LIST.opening, _read_mistral)


# `Action: f`, then `Action Input: {…}`, as agents write that were told to think aloud.
_REACT = "react"
_REACT_HINT = "Action Input:"
_BOLD = r"(?:\*\*)?+"
_WORD = r"[`\"']?+([\w.:/-]{1,256}+)[`\"']?+(?:\(\))?+[ \t]*+"
_REACT_OPENING = (
    rf"(?m:^[ \t]*+{_BOLD}Action:{_BOLD}[ \t]*+{_WORD}"
    rf"\n\s*+{_BOLD}Action Input:{_BOLD}[ \t]*+)"
)
_REACT_HEADER = re.compile(_REACT_OPENING)
_FENCE = re.compile(r"\s*+```(?:json)?+\s*+")
_FENCE_END = re.compile(r"\s*+```")
# What the model goes on with where nobody stopped it: the environment's part, or the next step.
_REACT_ENDS = ("\nObservation:", "\nThought:", "\nAction:", "\nFinal Answer:")


def _read_react(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    header = _REACT_HEADER.match(reading.text, start)
    if header is None:
        return None
    fence = _FENCE.match(reading.text, mark_end)
    body = reading.skip_blanks(fence.end() if fence else mark_end)
    element = reading.value_at(body)
    if element is None:
        stop = reading.find_first((*_REACT_ENDS, "\n\n"), mark_end)
        return reading.broken(start, (mark_end, stop), stop, _REACT, name=header[1])
    closed = _FENCE_END.match(reading.text, element.end) if fence else None
    end = closed.end() if closed else element.end
    return TextBlock(end, (reading.named(header[1], element.value, (start, end), _REACT),))


REACT = Format(_REACT, _REACT_HINT, _REACT_OPENING, _read_react)


# Channels: `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>` calls,
# `analysis` is thinking, all else is text.
_HARMONY = "harmony"
_CHANNEL = "<|channel|>"
_CHANNEL_OPENING = r"(?:<\|start\|>assistant[^<]{0,256}|\bto=[^\s<]{1,256} {0,4})?+<\|channel\|>"
_CHANNEL_HEADER = re.compile(
    rf"({_CHANNEL_OPENING}[^<]{{0,256}})(?:<\|constrain\|>[^<]{{0,64}})?+<\|message\|>"
)
_RECIPIENT = re.compile(r"\bto=(?:functions\.)?([^\s<]{1,256})")
_CALL_MARK = "<|call|>"
_CHANNEL_ENDS = (_CALL_MARK, "<|end|>", "<|return|>", "<|start|>", _CHANNEL)


def _read_channel(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    header = _CHANNEL_HEADER.match(reading.text, start)
    if header is None:
        return _cut_off(reading, start, mark_end)
    recipient, body = _RECIPIENT.search(header[1]), header.end()
    if recipient is not None:
        return _channel_call(reading, start, body, recipient[1])
    if "analysis" not in header[1]:
        return None  # the header is cut out like every special token, the text stays
    stop = reading.find_first(_CHANNEL_ENDS, body)
    return TextBlock(stop, thinking=reading.text[body:stop].strip())


def _channel_call(reading: TurnReading, start: int, body: int, tool: str) -> TextBlock:
    element = reading.value_at(reading.skip_blanks(body))
    after = body if element is None else element.end
    stop = reading.find_first(_CHANNEL_ENDS, after)
    if reading.text[after:stop].strip() or (element is None and stop == len(reading.text)):
        return reading.broken(start, (body, stop), stop, _HARMONY, name=tool)
    value = None if element is None else element.value
    end = stop + len(_CALL_MARK) if reading.text.startswith(_CALL_MARK, stop) else stop
    return TextBlock(end, (reading.named(tool, value, (start, end), _HARMONY),))


def _cut_off(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    """A header without its message is a call that was begun if it names a recipient."""
    stop = reading.find_first(_CHANNEL_ENDS, mark_end)
    recipient = _RECIPIENT.search(reading.text, start, min(stop, start + 1_000))
    if recipient is None:
        return None
    return reading.malformed((start, stop), _HARMONY, "the call has no message", recipient[1])


# What is left of a header where the server leaves special tokens out.
_LEFT = re.compile(
    r"(?:assistant)?+(?:commentary|analysis)?+[ \t]*+\bto=functions\.([\w.:/-]{1,256}+)[ \t]*+"
    r"(?:json|code)?+\s*+(?=\{)"
)


def _read_left(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    header = _LEFT.match(reading.text, start)
    element = reading.value_at(mark_end)
    if header is None or element is None:
        return None
    end = element.end
    return TextBlock(end, (reading.named(header[1], element.value, (start, end), _HARMONY),))


HARMONY = (
    Format(_HARMONY, _CHANNEL, _CHANNEL_OPENING, _read_channel),
    Format(_HARMONY, "to=functions.", _LEFT.pattern, _read_left),
)

_MESSAGE = "invoke"
_MESSAGE_ENDS = ("<|eom|>", "<|eot|>", "<|start|>", "<|call|>", "<|end|>")
_MESSAGE_OPENING = r"(?:<\|start\|>assistant\s++|\b)to=[^\s<>]{1,256}+<\|message\|>"


def _read_message(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    """`<|start|>assistant to=f<|message|>…<|eom|>`: a message to itself is thinking, one to the
    user is the answer, any other a call."""
    place = reading.text.index("to=", start) + len("to=")
    recipient = reading.text[place : mark_end - len("<|message|>")]
    stop = reading.find_first(_MESSAGE_ENDS, mark_end)
    if recipient == "self":
        return TextBlock(stop, thinking=reading.text[mark_end:stop].strip())
    if recipient == "user":
        return None  # the header is cut out like every special token, the text stays
    body = reading.skip_blanks(mark_end)
    if 0 <= reading.find("invoke name=", body) < stop:
        return None  # the row that reads invocations does
    tool = recipient.removeprefix("functions.")
    element = reading.value_at(body)
    if element is None or reading.text[element.end : stop].strip():
        return reading.broken(start, (body, stop), stop, _MESSAGE, name=tool)
    return TextBlock(stop, (reading.named(tool, element.value, (start, stop), _MESSAGE),))


MESSAGES = Format(_MESSAGE, "<|message|>", _MESSAGE_OPENING, _read_message)


# `<|tool_call>call:f{city:<|"|>Paris<|"|>,days:3}<tool_call|>`: JSON with marks for quotes and
# keys without any.
_GEMMA = "gemma"
_GEMMA_KEY = r'(?<=[{,])(\s*+)([^\s{}\[\],:"<]{1,256}+)(?=\s*+:)'
# A text without its marks, where no number and no constant stands.
_GEMMA_BARE = re.compile(
    r'(?<=[:\[,])(\s*+)(?!(?:true|false|null|-?\d[\d.eE+-]*+)\s*+[,}\]])([^\s"{}\[\],:][^"{}\[\],]{0,1000}+)'
)
_GEMMA_HEADER = re.compile(r"\s*+:?+call:([^\s{<]{1,256}+)\s*+(?=\{)")
# Without the mark before it: right after thinking, or on a line of its own.
_GEMMA_UNMARKED = r"(?:(?m:^)[ \t]*+|(?<=>))(?:call:|<call>)([\w.:/-]{1,256}+)(?=\{)"
_GEMMA_UNMARKED_HEADER = re.compile(_GEMMA_UNMARKED)
_TURN_END = re.compile(r"\s*+<(?:turn\||end_of_turn)>")


class _Quotes:
    """How strings are marked, and what follows from it."""

    def __init__(self, mark: str) -> None:
        quoted = rf"{re.escape(mark)}(.*?){re.escape(mark)}"
        self._pieces = re.compile(rf"{quoted}|{_GEMMA_KEY}", re.DOTALL)
        self.brackets = re.compile(rf"{quoted}|[{{}}]", re.DOTALL)

    def parse(self, written: str) -> Json:
        as_json = self._pieces.sub(_piece, written)
        try:
            return parse_json(as_json)
        except NotJson as error:
            bare = _GEMMA_BARE.sub(lambda text: text[1] + canonical_json(text[2].rstrip()), as_json)
            try:
                return parse_json(bare)
            except NotJson:
                raise error from None


def _piece(found: re.Match[str]) -> str:
    text, blanks, key = found.groups()
    return canonical_json(text) if key is None else f'{blanks}"{key}"'


def _gemma(opening: str, closing: str, quotes: _Quotes) -> Format:
    def read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
        header = _GEMMA_HEADER.match(reading.text, mark_end)
        stop, end = reading.extent(mark_end, closing, opening)
        if header is None:
            return reading.malformed((start, end), _GEMMA, "a call looks like call:name{…}")
        body_end = reading.bracket_end(header.end(), quotes.brackets, stop)
        if body_end >= 0 and (turn := _TURN_END.match(reading.text, body_end)):
            stop, end = body_end, turn.end()  # the turn ended instead of the call
        try:
            arguments = quotes.parse(reading.text[header.end() : stop])
        except NotJson as error:
            return reading.malformed((start, end), _GEMMA, str(error), header[1])
        return TextBlock(end, (reading.named(header[1], arguments, (start, end), _GEMMA),))

    return Format(_GEMMA, opening, re.escape(opening), read)


def _read_gemma_unmarked(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    header = _GEMMA_UNMARKED_HEADER.match(reading.text, start)
    if header is None or not reading.offers(header[1]):
        return None
    end = reading.bracket_end(mark_end, _PIPED.brackets, len(reading.text))
    try:
        arguments = _PIPED.parse(reading.text[mark_end:end]) if end >= 0 else None
    except NotJson:
        return None
    if not isinstance(arguments, dict):
        return None
    return TextBlock(end, (reading.named(header[1], arguments, (start, end), _GEMMA),))


_PIPED, _ESCAPED = _Quotes('<|"|>'), _Quotes("<escape>")
GEMMA = (
    _gemma("<|tool_call>", "<tool_call|>", _PIPED),
    _gemma("<start_function_call>", "<end_function_call>", _ESCAPED),
    *(
        Format(_GEMMA, hint, _GEMMA_UNMARKED, _read_gemma_unmarked, is_marked=False)
        for hint in ("call:", "<call>")
    ),
)
