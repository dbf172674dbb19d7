"""Channels: `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>` calls,
`analysis` is thinking, all else is text."""

from __future__ import annotations

import re

from callmark.calls.formats.reading import Format, TextBlock, TurnReading

_NAME = "harmony"
_MARK = "<|channel|>"
_OPENING = r"(?:<\|start\|>assistant[^<]{0,256}|\bto=[^\s<]{1,256} {0,4})?+<\|channel\|>"
_HEADER = re.compile(rf"({_OPENING}[^<]{{0,256}})(?:<\|constrain\|>[^<]{{0,64}})?+<\|message\|>")
_RECIPIENT = re.compile(r"\bto=(?:functions\.)?([^\s<]{1,256})")
_CALL = "<|call|>"
_ENDS = (_CALL, "<|end|>", "<|return|>", "<|start|>", _MARK)


def _read(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    header = _HEADER.match(reading.text, start)
    if header is None:
        return _cut_off(reading, start, mark_end)
    recipient, body = _RECIPIENT.search(header[1]), header.end()
    if recipient is not None:
        return _call(reading, start, body, recipient[1])
    if "analysis" not in header[1]:
        return None  # the header is cut out like every special token, the text stays
    stop = reading.find_first(_ENDS, body)
    return TextBlock(stop, thinking=reading.text[body:stop].strip())


def _call(reading: TurnReading, start: int, body: int, tool: str) -> TextBlock:
    element = reading.value_at(reading.skip_blanks(body))
    after = body if element is None else element.end
    stop = reading.find_first(_ENDS, after)
    if reading.text[after:stop].strip() or (element is None and stop == len(reading.text)):
        return reading.broken(start, (body, stop), stop, _NAME, name=tool)
    value = None if element is None else element.value
    end = stop + len(_CALL) if reading.text.startswith(_CALL, stop) else stop
    return TextBlock(end, (reading.named(tool, value, (start, end), _NAME),))


def _cut_off(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
    """A header without its message is a call that was begun if it names a recipient."""
    stop = reading.find_first(_ENDS, mark_end)
    recipient = _RECIPIENT.search(reading.text, start, min(stop, start + 1_000))
    if recipient is None:
        return None
    return reading.malformed((start, stop), _NAME, "the call has no message", recipient[1])


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
    return TextBlock(end, (reading.named(header[1], element.value, (start, end), _NAME),))


HARMONY = (
    Format(_NAME, _MARK, _OPENING, _read),
    Format(_NAME, "to=functions.", _LEFT.pattern, _read_left),
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
