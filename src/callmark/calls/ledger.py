"""Model text → clean assistant text, thinking, and the ledger of call attempts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import assert_never

import msgspec

from callmark.calls.attempts import Attempt, MalformedCall, ToolCall
from callmark.calls.folding import fold_name
from callmark.calls.formats import FORMATS, Format, TextBlock, TurnReading, chosen_formats
from callmark.calls.registry import tool_names, tool_parameters
from callmark.calls.tokens import without_tokens, without_wrappers
from callmark.core.jsontext import Json, well_formed
from callmark.core.trace import RepairedCall

SchemaOf = Callable[[str], Json]

_THINKING = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("◁think▷", "◁/think▷"),
)
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
    schema_of: SchemaOf | None = None,
) -> TurnText:
    """Cut calls, thinking and special tokens out of one turn. `offered` None: every name counts.
    `schema_of` gives the parameters' schema of a tool, which formats without types ask for."""
    text = well_formed(text)
    marks = _marks_in(text)
    active = _active(text, marks, chosen_formats(format, formats))
    thinking = tuple(row for row in _THINKING_ROWS if row.hint in marks)
    offers = _offer_test(None if offered is None else frozenset(offered))

    def reading() -> TurnReading:
        return TurnReading(text, offers, schema_of or _unknown)

    begin, thoughts = _thought_before(text, marks, active, reading)
    if not active and not thinking:
        return TurnText(without_tokens(text[begin:]), "\n".join(thoughts), ())
    kept: list[str] = []
    attempts: list[Attempt] = []
    copied = begin
    for start, block in _blocks(reading(), active + thinking, begin):
        if block.thinking is not None:
            thoughts.append(block.thinking)
        between = text[copied:start]
        # Separators between two calls belong to neither and say nothing.
        if not attempts or not block.attempts or not _BETWEEN_CALLS.fullmatch(between):
            kept.append(between)
        attempts += block.attempts
        copied = block.end
    kept.append(text[copied:])
    rest = without_wrappers("".join(kept)) if attempts else "".join(kept)
    return TurnText(without_tokens(rest), "\n".join(filter(None, thoughts)), tuple(attempts))


def parse_tool_calls(
    text: str | None,
    tools: Json = None,
    format: str = "auto",  # noqa: A002
    *,
    formats: Sequence[Format] = FORMATS,
) -> list[dict[str, Json]]:
    """The ledger of one text as plain objects. `tools` may be names or specs; of specs the types
    are known where a format writes none."""
    offered = None if tools is None else tool_names(tools)
    parameters = {} if tools is None else tool_parameters(tools)
    turn = read_turn(
        text or "",
        offered=offered,
        format=format,
        formats=formats,
        schema_of=lambda name: parameters.get(fold_name(name)),
    )
    return [_row(entry) for entry in turn.attempts]


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


def _blocks(
    reading: TurnReading, rows: tuple[Format, ...], position: int
) -> list[tuple[int, TextBlock]]:
    """Everything to be cut out, from left to right, none overlapping."""
    found: list[tuple[int, TextBlock]] = []
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


@lru_cache(maxsize=256)
def _openings(sources: tuple[str, ...]) -> tuple[re.Pattern[str], tuple[re.Pattern[str], ...]]:
    # Without groups around them, patterns that begin with a character are searched for by it.
    return re.compile("|".join(sources)), tuple(re.compile(source) for source in sources)


@lru_cache(maxsize=256)
def _offer_test(offered: frozenset[str] | None) -> Callable[[str], bool]:
    if offered is None:
        return bool
    folded = frozenset(fold_name(name) for name in offered)
    return lambda name: fold_name(name) in folded


def _unknown(_name: str) -> Json:
    return None


def _thought_before(
    text: str, marks: frozenset[str], rows: tuple[Format, ...], reading: Callable[[], TurnReading]
) -> tuple[int, list[str]]:
    """Where the answer begins and what was thought before: many templates put the opening mark
    into the prompt, so that the turn holds only the closing one."""
    for opening, closing in _THINKING:
        if closing not in marks:
            continue
        end = text.find(closing)
        if opening in text[:end]:
            continue
        blocks = _blocks(reading(), rows, 0) if rows else []
        # A sound call may quote the mark in an argument.
        if not any(start < end < block.end and _is_sound(block) for start, block in blocks):
            return end + len(closing), [text[:end].strip()]
    return 0, []


def _is_sound(block: TextBlock) -> bool:
    return all(isinstance(attempt, ToolCall) for attempt in block.attempts)


def _thinking_row(opening: str, closing: str) -> Format:
    def read(reading: TurnReading, start: int, mark_end: int) -> TextBlock:
        stop = reading.find(closing, mark_end)
        end = len(reading.text) if stop < 0 else stop + len(closing)
        inner = reading.text[mark_end : stop if stop >= 0 else end]
        return TextBlock(end, thinking=inner.strip())

    return Format("thinking", opening, re.escape(opening), read)


_THINKING_ROWS = tuple(_thinking_row(*marks) for marks in _THINKING)

# Looking for each mark by itself would cost more than all the rest for a text that holds none. So
# a character of theirs that prose seldom has is looked for first, then all that begin alike.
KNOWN_MARKS = frozenset(row.hint for row in FORMATS) | {mark for pair in _THINKING for mark in pair}
_RARE = '<[`"◁:'


def _gates() -> tuple[tuple[str, re.Pattern[str]], ...]:
    groups: dict[tuple[str, str], list[str]] = {}
    for mark in sorted(KNOWN_MARKS, key=lambda mark: (-len(mark), mark)):
        rare = next(character for character in _RARE if character in mark)
        groups.setdefault((rare, mark[0]), []).append(re.escape(mark))
    return tuple((rare, re.compile("|".join(marks))) for (rare, _), marks in groups.items())


_GATES = _gates()


def _marks_in(text: str) -> frozenset[str]:
    """Which of the known marks the text holds."""
    found: list[str] = []
    for rare, pattern in _GATES:
        if rare in text:
            found += pattern.findall(text)
    return frozenset(found)


def _active(text: str, marks: frozenset[str], rows: Sequence[Format]) -> tuple[Format, ...]:
    if rows is FORMATS:
        return tuple(row for row in rows if row.hint in marks) if marks else ()
    return tuple(row for row in rows if row.hint in text)
