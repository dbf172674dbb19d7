"""Calls as tags. Mostly a tag for each argument: as text without a type of its own, as nested
elements (MiniMax), or with its type beside it (Kimi); or one tag around the only argument (CWM)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from callmark.calls.attempts import MalformedCall, ToolCall, is_nested_too_deeply
from callmark.calls.formats.reading import Format, TextBlock, TurnReading, WrittenText
from callmark.calls.schema import allows, schema_below, typed_leaf
from callmark.records.jsontext import MAX_DEPTH, Json, NotJson, parse_json
from callmark.records.trace import RepairedCall

_CDATA = re.compile(r"\s*+<!\[CDATA\[(.*)\]\]>\s*+", re.DOTALL)
_ATTRIBUTE = r"""["']([^"'<>]{1,256})["']"""
_UNQUOTED = r"([\w.:-]{1,256}+)"
_MORE = r"[^<>]{0,200}?"
_BY_NAME = r"[\w.:/-]{1,256}+"
# Some models write the two characters of an escaped line end where a line ends.
_GAP = r"(?:\s|\\n)*+"
_GAP_PATTERN = re.compile(_GAP)
_STRING_SAID = frozenset({"true", "string"})


class Tags(NamedTuple):
    """How a format writes a call. `header` is the pattern from the opening mark to the first
    parameter: group 1 is the tool's name, a group 2 says that the tag closes itself. `parameter` is
    the pattern of a parameter's opening tag: group 1 is the key, a group 2 says whether the value
    is a string, or names its type. All else is literal."""

    name: str
    hint: str
    header: str
    parameter: str
    parameter_mark: str
    parameter_end: str
    call_mark: str
    call_end: str
    around: str = ""  # follows `call_end`, where there is one
    own_line: bool = False  # a value is written on lines of its own
    untyped: bool = False  # of a tool that nobody offered nothing says what a text means
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
        is_text = tags.untyped and not reading.offers(tool)
        given = _parameters(reading, tags, parameter, mark_end, is_text=is_text)
        close = _skip_gap(reading, given.position)
        if not reading.text.startswith(tags.call_end, close):
            stop = reading.find_first((tags.call_end, tags.call_mark), given.position)
            reason = given.reason or f"the call is not closed by {tags.call_end}"
            return reading.malformed((start, stop), tags.name, reason, tool)
        end = _end(reading, tags, close)
        call = reading.texts(tool, given.found, (start, end), tags.name, given.reason)
        return TextBlock(end, (call,))

    return Format(tags.name, tags.hint, tags.header, read)


def _parameters(
    reading: TurnReading, tags: Tags, parameter: re.Pattern[str], position: int, *, is_text: bool
) -> _Parameters:
    found: list[WrittenText] = []
    text, reason = reading.text, ""
    while True:
        opened = parameter.match(text, _skip_gap(reading, position))
        if opened is None:
            stop = reading.find_first((tags.call_end, tags.call_mark), position)
            if stop == _skip_gap(reading, position) or not text.startswith(tags.call_end, stop):
                return _Parameters(found, position, reason)
            # Something else stands in the call: what is readable after it is worth showing.
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
        is_string = is_text or (parameter.groups > 1 and opened[2] in _STRING_SAID)
        found.append(WrittenText(opened[1].strip(), _value(text[value:stop], tags), is_string))


def _skip_gap(reading: TurnReading, position: int) -> int:
    gap = _GAP_PATTERN.match(reading.text, position)
    return gap.end() if gap else position


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


@lru_cache(maxsize=64)
def _invoke(space: str, attribute: str) -> Format:
    """`space` is the prefix of every tag, such as `steptml:` or `｜DSML｜`."""
    prefix = re.escape(space)
    return tagged(
        Tags(
            "invoke",
            "invoke name=",
            rf"<{prefix}invoke name={attribute}{_MORE}(/?+)>",
            rf'<{prefix}parameter name={attribute}(?:{_MORE} string="(\w++)")?+{_MORE}>',
            f"<{space}parameter",
            f"</{space}parameter>",
            f"<{space}invoke",
            f"</{space}invoke>",
            common=not space,
        )
    )


def _read_invoke(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    place = reading.find(_INVOKE, start)
    quote = reading.text[place + len(_INVOKE) : place + len(_INVOKE) + 1]
    attribute = _ATTRIBUTE if quote in ("'", '"') else _UNQUOTED
    return _invoke(reading.text[start + 1 : place], attribute).read(reading, start, mark_end)


_INVOKE = "invoke name="


def _param(opening: str) -> Format:
    """`<function name="f"><param name="a">`; some tokenizers lose the blank, or show it as Ġ."""
    return tagged(
        Tags(
            "invoke",
            opening,
            rf"{opening}{_ATTRIBUTE}\s*+(/?+)>",
            rf"<param[ Ġ]?+name={_ATTRIBUTE}{_MORE}>",
            "<param",
            "</param>",
            opening,
            "</function>",
            common=True,
        )
    )


@lru_cache(maxsize=64)
def _key_value(name: str, call: str, suffix: str = "", space: str = "") -> Format:
    """`<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>`. Every tag may end in
    a suffix that the checkpoint chose, or begin with a prefix."""
    opening, closing = f"<{call}{suffix}>", f"</{call}{suffix}>"
    key, kind, value = (f"{space}{tag}{suffix}" for tag in ("arg_key", "arg_type", "arg_value"))
    first = rf"<{re.escape(key)}>"
    return tagged(
        Tags(
            name,
            opening,
            rf"{re.escape(opening)}\s*+({_BY_NAME}){_GAP}(?:<tool_sep{re.escape(suffix)}>{_GAP})?+"
            rf"(?={first}|{re.escape(closing)})",
            rf"{first}([^<>]{{1,256}}+)</{re.escape(key)}>{_GAP}"
            rf"(?:<{re.escape(kind)}>\s*+(\w++)[^<>]{{0,64}}+</{re.escape(kind)}>{_GAP})?+"
            rf"<{re.escape(value)}>",
            f"<{key}>",
            f"</{value}>",
            opening,
            closing,
        )
    )


def _read_suffixed(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    suffix = reading.text[start + len("<tool_call") : mark_end - 1]
    row = _key_value("glm45", "tool_call", suffix)
    head = re.compile(row.opening).match(reading.text, start)
    return None if head is None else row.read(reading, start, head.end())


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
        untyped=True,
    )
)
GLM45 = (
    _key_value("glm45", "tool_call"),
    Format("glm45", "<tool_call:", r"<tool_call:[^\s<>]{1,64}+>", _read_suffixed),
    _key_value("glm45", "iquestcoder_tool_call"),
)
K2_HORIZON = _key_value("k2_horizon", "ifm|tool_call", space="ifm|")
LONGCAT = _key_value("longcat", "longcat_tool_call", space="longcat_")
SOLAR_OPEN2 = tagged(
    Tags(
        "solar_open2",
        "<|tool_call:start|>",
        rf"<\|tool_call:start\|>\s*+({_BY_NAME})\s*+(?=<\|tool_(?:arg:start|call:end)\|>)",
        r"<\|tool_arg:start\|>([^<>]{1,256}+)<\|tool_arg:value\|>",
        "<|tool_arg:start|>",
        "<|tool_arg:end|>",
        "<|tool_call:start|>",
        "<|tool_call:end|>",
    )
)
# The prefix is any name: DSML, GCML, steptml, atem and minimax have been seen.
_SPACE = r"(?:[\w.-]{1,32}+:|[|｜]\w{1,32}+[|｜] ?+)?+"
INVOKE = (
    Format(
        "invoke",
        _INVOKE,
        rf"<{_SPACE}invoke name=(?:{_ATTRIBUTE}|{_UNQUOTED}){_MORE}/?+>",
        _read_invoke,
    ),
    *(_param(f"<function{blank}name=") for blank in (" ", "", "Ġ")),
)


# Every tag behind `]<]minimax[>[`: `<invoke name="f">`, then an element for each argument, with
# elements in it for the members of an object, `<item>` for those of a list.
_MINIMAX = "minimax_m3"
_MINIMAX_MARK = "]<]minimax[>["
_MINIMAX_MARKED = re.escape(_MINIMAX_MARK) + r"\s*+"
_MINIMAX_HEADER = rf"{_MINIMAX_MARKED}<invoke name=\"([^\"<>]{{1,256}})\"\s*+>"
_MINIMAX_OPENING = re.compile(_MINIMAX_HEADER)
_MINIMAX_TAG = re.compile(rf"{_MINIMAX_MARKED}<(/?+)([^<>]{{1,256}}+)>")
_ITEM = "item"


class _Element(NamedTuple):
    """An open element: its tag, its schema, where its text begins, and the elements in it."""

    tag: str
    schema: Json
    start: int
    members: list[tuple[str, Json]]


def _read_minimax(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
    header = _MINIMAX_OPENING.match(reading.text, start)
    if header is None:
        end = reading.find_first(
            (f"{_MINIMAX_MARK}</tool_call>", _MINIMAX_MARK + "<tool_call>"), mark_end
        )
        return reading.malformed((start, end), _MINIMAX, "no call begins in it")
    root = reading.schema_of(header[1])
    stack = [_Element("invoke", root, header.end(), [])]
    position, reason = header.end(), ""
    while stack and not reason:
        place = reading.find(_MINIMAX_MARK, position)
        tag = _MINIMAX_TAG.match(reading.text, place) if place >= 0 else None
        if tag is None or tag[2].startswith(("invoke ", "tool_call")):
            reason = "the call is not closed"
        elif not tag[1]:
            below = schema_below(stack[-1].schema, tag[2].strip(), root)
            stack.append(_Element(tag[2].strip(), below, tag.end(), []))
        elif tag[2].strip() != stack[-1].tag:
            reason = f"{stack[-1].tag} is closed by {tag[2].strip()}"
        else:
            done = stack.pop()
            value = _element_value(reading.text[done.start : place], done, root)
            if stack:
                stack[-1].members.append((done.tag, value))
        if len(stack) > MAX_DEPTH:
            reason = f"the arguments are nested deeper than {MAX_DEPTH} levels"
        position = tag.end() if tag else position
    if reason or not isinstance(value, dict) or is_nested_too_deeply(value):
        end = reading.find_first(
            (f"{_MINIMAX_MARK}<invoke", f"{_MINIMAX_MARK}<tool_call>"), header.end()
        )
        return reading.malformed((start, end), _MINIMAX, reason or "it has no arguments", header[1])
    return TextBlock(
        position, (ToolCall(header[1], value, reading.text[start:position], _MINIMAX),)
    )


def _element_value(text: str, element: _Element, root: Json) -> Json:
    """What a closed element means: an object or a list by its elements, else its text."""
    tags = [tag for tag, _ in element.members]
    is_list = allows(element.schema, "array", root)
    if tags and tags == [_ITEM] * len(tags) and (is_list or element.schema is None):
        return [value for _, value in element.members]
    if tags or element.tag == "invoke" or not (text.strip() or _is_plain(element.schema, root)):
        return [] if is_list and not tags else _object(element.members)
    return typed_leaf(text, element.schema, root)


def _is_plain(schema: Json, root: Json) -> bool:
    return not (allows(schema, "object", root) or allows(schema, "array", root))


def _object(members: list[tuple[str, Json]]) -> dict[str, Json]:
    """A name that comes again makes a list."""
    found: dict[str, list[Json]] = {}
    for tag, value in members:
        found.setdefault(tag, []).append(value)
    return {tag: values[0] if len(values) == 1 else values for tag, values in found.items()}


def _read_wrapper(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
    """Passed over as a whole: the tag in it opens calls of other formats."""
    if _CALL_AHEAD.match(reading.text, mark_end):
        return TextBlock(mark_end)
    return _read_minimax(reading, start, mark_end)


_CALL_AHEAD = re.compile(rf"\s*+{_MINIMAX_MARKED}<invoke")
MINIMAX_M3 = (
    Format(_MINIMAX, _MINIMAX_MARK, rf"{_MINIMAX_MARKED}<invoke", _read_minimax),
    Format(_MINIMAX, _MINIMAX_MARK, rf"{_MINIMAX_MARKED}<tool_call>", _read_wrapper),
)


# `<|open|>call tool="f" index="1"<|sep|><|open|>argument key="a" type="number"<|sep|>1<|close|>…`:
# every value comes with its type.
_KIMI_K3 = "kimi_k3"
_KIMI_OPEN, _KIMI_CLOSE, _KIMI_SEP = "<|open|>", "<|close|>", "<|sep|>"
_KIMI_ATTRIBUTE = re.compile(r'(\w{1,64}+)="([^"]{0,256}+)"\s*+')
_ARGUMENT = re.compile(r"\s*+<\|open\|>\s*+argument\s++")
_ARGUMENT_END = re.compile(r"<\|close\|>\s*+argument\s*+<\|sep\|>")
_CALL_END = re.compile(r"\s*+<\|close\|>\s*+call\s*+<\|sep\|>")


def _read_kimi(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
    given, position = _kimi_attributes(reading, mark_end)
    tool = given.get("tool", "")
    arguments: dict[str, Json] = {}
    while position >= 0 and (opened := _ARGUMENT.match(reading.text, position)) is not None:
        said, value = _kimi_attributes(reading, opened.end())
        stop, position = _argument_end(reading, value) if value >= 0 else (-1, -1)
        if position >= 0:
            written = reading.text[value:stop]
            arguments[said.get("key", "")] = _typed(written, said.get("type", "string"))
    closed = _CALL_END.match(reading.text, position) if position >= 0 else None
    if closed is not None and tool:
        raw = reading.text[start : closed.end()]
        return TextBlock(closed.end(), (ToolCall(tool, arguments, raw, _KIMI_K3),))
    end = closed.end() if closed else reading.find_first(_KIMI_NEXT, mark_end)
    reason = "the call names no tool" if closed else "the call is not closed"
    repaired = RepairedCall(tool, arguments) if tool else None
    raw = reading.text[start:end].rstrip()
    return TextBlock(end, (MalformedCall(tool or None, reason, raw, _KIMI_K3, repaired),))


def _kimi_attributes(reading: TurnReading, position: int) -> tuple[dict[str, str], int]:
    """What precedes the separator, and the place after it; -1: there is no separator."""
    given: dict[str, str] = {}
    while (found := _KIMI_ATTRIBUTE.match(reading.text, position)) is not None:
        given[found[1]] = found[2].replace("&quot;", '"').replace("&amp;", "&")
        position = found.end()
    if not reading.text.startswith(_KIMI_SEP, position):
        return given, -1
    return given, position + len(_KIMI_SEP)


def _argument_end(reading: TurnReading, position: int) -> tuple[int, int]:
    opened = reading.find(_KIMI_OPEN, position)
    while (stop := reading.find(_KIMI_CLOSE, position)) >= 0 and not 0 <= opened < stop:
        closed = _ARGUMENT_END.match(reading.text, stop)
        if closed is not None:
            return stop, closed.end()
        position = stop + 1
    return -1, -1


def _typed(text: str, kind: str) -> Json:
    if kind == "string":
        return text
    try:
        return parse_json(text)
    except NotJson:
        return text  # of another type than it claims: the schema's verdict names it


_KIMI_HINTS = ("<|open|>call ", "<|open|> call ")
_KIMI_NEXT = (*_KIMI_HINTS, "<|close|>tools")
KIMI_K3 = tuple(
    Format(_KIMI_K3, hint, re.escape(hint.strip()) + r"\s++", _read_kimi) for hint in _KIMI_HINTS
)


# `<tool: f>`, a text, `</tool>`: a call whose only argument is that text, or whose arguments are
# that object.
_CWM = "cwm"
_CWM_CLOSING = "</tool>"
_CWM_OPENING = r"<tool:[ \t]*+[\w.-]{1,256}+[ \t]*+>"
_CWM_LABEL = re.compile(r"<tool:[ \t]*+([\w.-]{1,256}+)")
# A label that says what follows: the tool's name is the first word of the text.
_CWM_KIND = "function"
_CWM_WORD = re.compile(r"\s*+([\w.-]{1,256}+)(?=\s)[ \t]*+")
_CWM_KEY = "command"


def _read_cwm(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
    label = _CWM_LABEL.match(reading.text, start)
    tool, body = (label[1] if label else ""), mark_end
    stop, end = reading.extent(mark_end, _CWM_CLOSING, "<tool:")
    if tool == _CWM_KIND and not reading.offers(_CWM_KIND):
        word = _CWM_WORD.match(reading.text, mark_end, stop)
        if word is None:
            return reading.malformed((start, end), _CWM, "the call names no tool")
        tool, body = word[1], word.end()
    if end == stop:
        return reading.malformed((start, end), _CWM, f"it is not closed by {_CWM_CLOSING}", tool)
    element = reading.value_at(reading.skip_blanks(body))
    if element is not None and isinstance(element.value, dict):
        close = reading.skip_blanks(element.end)
        if reading.text.startswith(_CWM_CLOSING, close):
            end = close + len(_CWM_CLOSING)
            return TextBlock(end, (reading.named(tool, element.value, (start, end), _CWM),))
    text = reading.text[body:stop].strip()
    given = WrittenText(_only_text(reading.schema_of(tool)), text, is_string=True)
    return TextBlock(end, (reading.texts(tool, [given], (start, end), _CWM),))


def _only_text(schema: Json) -> str:
    """The parameter that takes the text: the only one that has to be given."""
    if not isinstance(schema, dict) or not isinstance(known := schema.get("properties"), dict):
        return _CWM_KEY
    names = list(known) if len(known) == 1 else schema.get("required")
    if _CWM_KEY in known or not isinstance(names, list) or len(names) != 1:
        return _CWM_KEY
    return str(names[0])


CWM = Format(_CWM, "<tool:", _CWM_OPENING, _read_cwm)
