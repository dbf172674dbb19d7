"""Calls as Python writes them: `[f(x=1), g(y="z")]` with or without marks around them, behind
`<|python_tag|>`, or in a block `tool_code` that is there to be run."""

from __future__ import annotations

import re

from callmark.calls.attempts import Attempt, ToolCall
from callmark.calls.formats.marked_json import block_of, several_values
from callmark.calls.formats.reading import Format, TextBlock, TurnReading

_NAME = "pythonic"
# The built-in tools of Llama are called as methods.
_METHOD = ".call"


def python_block(
    reading: TurnReading, at: tuple[int, int], format_name: str, *, most: int | None = None
) -> TextBlock | str:
    """The calls that stand at `at[1]`, after a mark at `at[0]`; or the reason why there are
    none."""
    start, body = at
    found = reading.python_calls_at(body, most=most)
    if isinstance(found, Exception):
        return f"not a call in Python: {found}"
    calls, end = found
    spans = [(start, end)] if len(calls) == 1 else [(call.start, call.end) for call in calls]
    attempts = tuple(
        ToolCall(
            call.name.removesuffix(_METHOD), call.arguments, reading.text[slice(*span)], format_name
        )
        for call, span in zip(calls, spans, strict=True)
    )
    return TextBlock(end, attempts) if attempts else "there is no call in it"


def _format_marked(opening: str, closing: str, ahead: str = "") -> Format:
    def read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
        position = reading.skip_blanks(mark_end)
        found = reading.elements_at(position)
        written: TextBlock | str
        if found is not None and found[0]:
            written = block_of(reading, found[0], (start, found[1]), _NAME)
        else:
            written = python_block(reading, (start, position), _NAME)
        if isinstance(written, str):
            _, end = reading.extent(mark_end, closing, opening)
            return reading.malformed((start, end), _NAME, written)
        close = reading.skip_blanks(written.end)
        closed = reading.text.startswith(closing, close)
        return written._replace(end=close + len(closing)) if closed else written

    return Format(_NAME, opening, re.escape(opening) + ahead, read)


def _read_unmarked(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    written = python_block(reading, (start, start), _NAME)
    if isinstance(written, str):
        return _unreadable(reading, start, _CALLED.search(reading.text, start), written)
    if reading.text.startswith("(", written.end):  # a link
        return None
    offered = tuple(call for call in written.attempts if reading.offers(call.name or ""))
    return TextBlock(written.end, offered)


def _unreadable(
    reading: TurnReading, start: int, name: re.Match[str] | None, reason: str
) -> TextBlock | None:
    """A turn that is nothing but a call of an offered tool is an attempt, also where its arguments
    cannot be read: `f("x")` names none."""
    if name is None or not reading.offers(name[1]) or not reading.is_only(_ONLY_CALLS):
        return None
    return reading.malformed((start, len(reading.text)), _NAME, reason, name[1])


_ONLY_CALLS = re.compile(
    r"\s*+(?:\[\s*+[^\W\d][\w.-]{0,255}+\((?:(?!\)\s*+\]|\[\s*+[^\W\d][\w.-]{0,255}+\().)*+\)\s*+\]|[^\W\d][\w.-]{0,255}+\([^()\n]*+\))\s*+",
    re.DOTALL,
)


def _read_line(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    """`f(x=1)` without brackets or marks: a call if it is all that stands on its lines. In a fence
    it is an example, unless the fence is the whole turn; so is `f()` outside of one."""
    text = reading.text
    body = _LINE_START.match(text, start)
    name = _CALLED.match(text, body.end()) if body else None
    if body is None or name is None or not reading.offers(name[1].removesuffix(_METHOD)):
        return None
    written = _calls_on_line(reading, start, body.end())
    if isinstance(written, str):
        return _unreadable(reading, start, name, written)
    closed = _LINE_END.match(text, written.end)
    if closed is None:
        return None
    has_arguments = all(isinstance(c, ToolCall) and c.arguments for c in written.attempts)
    may_be_example = body[1] or not (has_arguments or body[2]) or reading.is_fenced(start)
    if may_be_example and not reading.is_only(_ONLY_LINES):
        return None
    return written._replace(end=closed.end())


def _calls_on_line(reading: TurnReading, start: int, position: int) -> TextBlock | str:
    """`f(x=1), g(y=2)`: calls of offered tools, one after the other; or why there are none."""
    attempts: tuple[Attempt, ...] = ()
    while True:
        written = python_block(
            reading, (start if not attempts else position, position), _NAME, most=1
        )
        if isinstance(written, str):
            return written
        attempts += written.attempts
        follows = _NEXT_CALL.match(reading.text, written.end)
        if follows is None or not reading.offers(follows[1].removesuffix(_METHOD)):
            return written._replace(attempts=attempts)
        position = follows.start(1)


_NEXT_CALL = re.compile(r"[ \t]*+[,;][ \t]*+([^\W\d][\w.-]{0,255}+)\(")
# Calls one after the other, with or without a fence around them.
_ONLY_LINES = re.compile(
    r"\s*+(?:<[|｜][^<>\n]{1,60}>\s*+)*+(?:```\w*+[ \t]*+\n|`)?+\s*+[^\W\d][\w.-]{0,255}+\(.*\)"
    r";?\s*+`{0,3}\s*+(?:<[|｜][^<>\n]{1,60}>\s*+|</s>\s*+)*+",
    re.DOTALL,
)
_FENCED = r"```(?:python|py|tool_call)?+[ \t]*+\n|`"
# Agents that think aloud announce what they do.
_ANNOUNCED = r"(?:Action|Call):"
_LINE_START = re.compile(rf"({_FENCED})?+[ \t]*+({_ANNOUNCED}[ \t]*+)?+")
_CALLED = re.compile(r"([^\W\d][\w.-]{0,255}+)\(")
_LINE_END = re.compile(r"[ \t]*+;?+[ \t]*+(?:\n?```|`)?+[ \t]*+(?=\n|\Z|<[|｜]|</s>|<bot_end>)")
# A call may also follow a token or the end of thinking.
_LINE = (
    rf"(?:(?m:^)|(?<=>))(?:{_FENCED})?+[ \t]*+(?:{_ANNOUNCED}[ \t]*+)?+[^\W\d][\w.-]{{0,255}}+\("
)

PYTHONIC_IN_TAGS = _format_marked(
    "<tool_call>", "</tool_call>", ahead=r"(?=\s*+\[?+[^\W\d][\w.-]{0,255}+\()"
)
PYTHONIC = (
    _format_marked("<|python_start|>", "<|python_end|>"),
    _format_marked("<|tool_call_start|>", "<|tool_call_end|>"),
    _format_marked("<function_calls>", "</function_calls>", ahead=r"(?!\s*+<)"),
    Format(_NAME, "[", r"\[\s*+[^\W\d][\w.-]{0,255}+\(", _read_unmarked, is_marked=False),
    *(Format(_NAME, hint, _LINE, _read_line, is_marked=False) for hint in ("=", "()", '("', "('")),
)


# `<|python_tag|>{"name": …, "parameters": {…}}; {…}`, or in Python: `search.call(q="x")`.
_LLAMA = "llama"
_PYTHON_TAG = "<|python_tag|>"
_PYTHON_TAG_ENDS = ("<|eom_id|>", "<|eot_id|>", _PYTHON_TAG)


def _read_python_tag(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
    position = reading.skip_blanks(mark_end)
    elements, end = several_values(reading, position)
    if end is not None:
        return block_of(reading, elements, (start, end), _LLAMA)
    stop = reading.find_first(_PYTHON_TAG_ENDS, mark_end)
    if reading.text.startswith(("{", "["), position):
        return reading.broken(start, (mark_end, stop), stop, _LLAMA)
    written = python_block(reading, (start, position), _LLAMA)
    if isinstance(written, TextBlock):
        return written
    return reading.malformed((start, stop), _LLAMA, written)


PYTHON_TAG = Format(_LLAMA, _PYTHON_TAG, re.escape(_PYTHON_TAG), _read_python_tag)


# A block of Python that is there to be run, in a fence `tool_code` or between `<tool_code>` tags:
# calls stand in it as they are, printed, or assigned.
_TOOL_CODE = "tool_code"
_BEFORE_CALL = re.compile(r"[\s;,]*+(?:[^\W\d]\w{0,63}+\s*+=(?!=)\s*+)?+(print\s*+\(\s*+)?+")
_API = "default_api."


def _run_block(hint: str, opening: str, closing: str) -> Format:
    def read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
        text, position = reading.text, mark_end
        calls: list[ToolCall] = []
        while True:
            before = _BEFORE_CALL.match(text, position)
            body = before.end() if before else position
            if text.startswith(closing, body) or body >= len(text):
                break
            found = reading.python_calls_at(body)
            if isinstance(found, Exception):
                _, end = reading.extent(position, closing, opening)
                return reading.malformed((start, end), _TOOL_CODE, f"not a call in Python: {found}")
            calls += (
                ToolCall(
                    call.name.removeprefix(_API),
                    call.arguments,
                    text[call.start : call.end],
                    _TOOL_CODE,
                )
                for call in found[0]
            )
            position = found[1]
            if before and before[1] and text.startswith(")", reading.skip_blanks(position)):
                position = reading.skip_blanks(position) + 1
        end = min(body + len(closing), len(text))
        if not calls:
            return reading.malformed((start, end), _TOOL_CODE, "there is no call in it")
        return TextBlock(end, tuple(calls))

    return Format(_TOOL_CODE, hint, opening if opening == hint else rf"{opening}\b", read)


TOOL_CODE = (
    _run_block("```", "```tool_code", "```"),
    _run_block("<tool_code>", "<tool_code>", "</tool_code>"),
)
