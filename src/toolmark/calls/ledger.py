"""Model text → clean assistant text, thinking, and the ledger of call attempts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import assert_never

import msgspec

from toolmark.calls.attempts import Attempt, MalformedCall, ToolCall
from toolmark.calls.folding import fold_name
from toolmark.calls.formats import FORMATS, Block, Format, Reading
from toolmark.calls.registry import tool_names
from toolmark.core.jsontext import Json, well_formed
from toolmark.core.trace import RepairedCall
from toolmark.errors import UsageError

_THINKING = (("<think>", "</think>"), ("<thinking>", "</thinking>"))

_TOKENS_ANYWHERE = re.compile(
    r"<\|im_start\|>(?:assistant\b\n?)?"
    r"|<\|start_header_id\|>(?:assistant)?<\|end_header_id\|>\n{0,2}"
    r"|<\|(?:im_end|eot_id|eom_id|end_of_text|begin_of_text|endoftext|end|return|eot|eos|assistant"
    r"|end_of_turn|END_OF_TURN_TOKEN|end_of_role|python_tag)\|>"
    r"|<(?:start_of_turn>model\b\n?|end_of_turn>)"
    r"|<｜(?:end|begin)▁of▁sentence｜>"
)
# Words of other languages too (`<s>` strikes through in HTML): tokens only at the ends of a turn.
_TOKENS_AT_START = re.compile(r"\s*(?:<(?:s|bos|pad)>\s*)+")
_TOKENS_AT_END = re.compile(r"(?:</s>|<eos>|<pad>)$")
_BETWEEN_CALLS = re.compile(r"[\s,;]*")


class TurnText(msgspec.Struct, frozen=True):
    """One assistant turn: what it says, what it thought, and every call that it tried."""

    text: str
    reasoning: str
    attempts: tuple[Attempt, ...]


def read_turn(
    text: str,
    *,
    offered: Collection[str] | None,
    format: str = "auto",  # noqa: A002 - the public name of the option
    formats: Sequence[Format] = FORMATS,
) -> TurnText:
    """Cut calls, thinking and special tokens out of one turn. `offered` None: every name counts."""
    text = well_formed(text)
    active = tuple(row for row in _chosen(format, formats) if row.hint in text)
    thinking = tuple(row for row in _THINKING_ROWS if row.hint in text)
    offers = _offer_test(None if offered is None else frozenset(offered))
    begin, thoughts = _thought_before(text, active, offers)
    if not active and not thinking:
        return TurnText(_clean(text[begin:]), "\n".join(thoughts), ())
    reading = Reading(text, offers)
    kept: list[str] = []
    attempts: list[Attempt] = []
    copied = begin
    for start, block in _blocks(reading, active + thinking, begin):
        if block.thinking is not None:
            thoughts.append(block.thinking)
        between = text[copied:start]
        # Separators between two calls belong to neither and say nothing.
        if not attempts or not block.attempts or not _BETWEEN_CALLS.fullmatch(between):
            kept.append(between)
        attempts += block.attempts
        copied = block.end
    kept.append(text[copied:])
    return TurnText(_clean("".join(kept)), "\n".join(filter(None, thoughts)), tuple(attempts))


def parse_tool_calls(
    text: str | None,
    tools: Json = None,
    format: str = "auto",  # noqa: A002
) -> list[dict[str, Json]]:
    """The ledger of one text as plain objects. `tools` may be names or specs."""
    offered = None if tools is None else tool_names(tools)
    return [_row(entry) for entry in read_turn(text or "", offered=offered, format=format).attempts]


def _row(attempt: Attempt) -> dict[str, Json]:
    shown: ToolCall | RepairedCall | None
    match attempt:
        case ToolCall():
            shown, status, reason = attempt, "ok", None
        case MalformedCall(reason=reason, repaired=shown):
            status = "malformed" if shown is None else "repaired"
        case _:
            assert_never(attempt)
    return {
        "name": attempt.name if shown is None else shown.name,
        "arguments": None if shown is None else shown.arguments,
        "format": attempt.format,
        "raw": attempt.raw,
        "status": status,
        "reason": reason,
    }


def _blocks(reading: Reading, rows: tuple[Format, ...], position: int) -> list[tuple[int, Block]]:
    """Everything to be cut out, from left to right, none overlapping."""
    found: list[tuple[int, Block]] = []
    anywhere, each = _openings(tuple(row.opening for row in rows))
    while (match := anywhere.search(reading.text, position)) is not None:
        start = match.start()
        position = start + 1
        for row, opening in zip(rows, each, strict=True):
            mark = opening.match(reading.text, start)
            block = row.read(reading, start, mark.end()) if mark else None
            if block is None:
                continue
            if block.attempts or block.thinking is not None:
                found.append((start, block))
            position = max(block.end, position)
            break
    return found


@lru_cache(maxsize=64)
def _openings(sources: tuple[str, ...]) -> tuple[re.Pattern[str], tuple[re.Pattern[str], ...]]:
    return re.compile("|".join(f"(?:{s})" for s in sources)), tuple(re.compile(s) for s in sources)


@lru_cache(maxsize=256)
def _offer_test(offered: frozenset[str] | None) -> Callable[[str], bool]:
    if offered is None:
        return bool
    folded = frozenset(fold_name(name) for name in offered)
    return lambda name: fold_name(name) in folded


def _chosen(name: str, formats: Sequence[Format]) -> Sequence[Format]:
    if name == "auto":
        return formats
    chosen = [row for row in formats if row.name == name]
    if not chosen:
        known = ", ".join(row.name for row in formats)
        raise UsageError(f"unknown call format {name!r}; known: auto, {known}")
    return chosen


def _thought_before(
    text: str, rows: tuple[Format, ...], offers: Callable[[str], bool]
) -> tuple[int, list[str]]:
    """Where the answer begins and what was thought before: many templates put the opening mark
    into the prompt, so that the turn holds only the closing one."""
    for opening, closing in _THINKING:
        end = text.find(closing)
        if end < 0 or opening in text[:end]:
            continue
        blocks = _blocks(Reading(text, offers), rows, 0) if rows else []
        # A sound call may quote the mark in an argument.
        if not any(start < end < block.end and _is_sound(block) for start, block in blocks):
            return end + len(closing), [text[:end].strip()]
    return 0, []


def _is_sound(block: Block) -> bool:
    return all(isinstance(attempt, ToolCall) for attempt in block.attempts)


def _thinking_row(opening: str, closing: str) -> Format:
    def read(reading: Reading, start: int, mark_end: int) -> Block:
        stop = reading.find(closing, mark_end)
        end = len(reading.text) if stop < 0 else stop + len(closing)
        inner = reading.text[mark_end : stop if stop >= 0 else end]
        return Block(end, thinking=inner.strip())

    return Format("thinking", opening, re.escape(opening), read)


_THINKING_ROWS = tuple(_thinking_row(*marks) for marks in _THINKING)


def _clean(text: str) -> str:
    if "<" in text:
        text = _TOKENS_ANYWHERE.sub("", text).strip()
        opening = _TOKENS_AT_START.match(text)
        text = text[opening.end() :] if opening else text
        while (ending := _TOKENS_AT_END.search(text)) is not None:
            text = text[: ending.start()].rstrip()
    return text.strip()
