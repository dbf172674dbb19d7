"""Model text → clean assistant text, thinking, and the ledger of call attempts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, assert_never

import msgspec

from callmark.calls.attempts import Attempt, MalformedCall, ToolCall, fold_name
from callmark.calls.formats import FORMATS, Format, TextBlock, TurnReading, named_formats
from callmark.calls.registry import tool_names, tool_parameters
from callmark.calls.unparsed import find_unparsed
from callmark.records.jsontext import Json, well_formed
from callmark.records.trace import UNPARSED, RepairedCall

IN_REASONING = "in_reasoning"

_PIPED = (
    # ends and beginnings of turns
    "im_end eot_id eom_id end_of_text begin_of_text endoftext end return eot eos assistant"
    " end_of_turn END_OF_TURN_TOKEN START_OF_TURN_TOKEN CHATBOT_TOKEN end_of_role end_message"
    # marks of call formats that stand around or inside calls
    " python_tag python_start python_end tool_call tool_call_start tool_call_begin"
    " tool_call_argument_begin tool_call_end tool_calls_section_begin tool_calls_section_end"
    " tool_call_section_begin tool_call_section_end START_ACTION END_ACTION START_RESPONSE"
    " END_RESPONSE START_TEXT END_TEXT START_THINKING END_THINKING action_start action_end plugin"
    " interpreter function_call message_sep role_sep call start channel message constrain"
    " tools_prefix tools_suffix eom message_model content_text content_thinking assistant_end"
    " assistant_start tool_calls calls flush begin content stop"
    " content_invoke_tool_json content_model_end_sampling content_tool_error"
).split()
_WIDE = (
    "end▁of▁sentence begin▁of▁sentence Assistant tool▁calls▁begin tool▁calls▁end tool▁call▁begin"
    " tool▁call▁end tool▁sep tool▁outputs▁begin tool▁outputs▁end tool▁output▁begin tool▁output▁end"
    " tool_calls_begin tool_calls_end tool_call_begin tool_call_end tool_sep"
).split()

_ANYWHERE = re.compile(
    r"<\|im_start\|>(?:assistant\b\n?)?"
    r"|<\|start_header_id\|>(?:assistant)?<\|end_header_id\|>\n{0,2}"
    r"|<\|start_of_role\|>(?:assistant)?<\|end_of_role\|>"
    r"|<\|start\|>assistant\s+to=[^\s<>]{1,256}<\|message\|>|\bto=[^\s<>]{1,256}<\|message\|>"
    r"|<\|start\|>(?:assistant\b)?|<\|begin\|>assistant\b"
    r"|<\|from\|>\s*assistant\b\n?|<\|recipient\|>\s*all\b\n?"
    r"|<\|(?:open|close)\|>\s*(?:think|response|tools|message)\s*(?:<\|sep\|>|\Z)"
    r"|\]<\]minimax\[>\[\s*(?:</?tool_call>)?"
    r"|<\|plamo:\w{1,64}:plamo\|>|</?ifm\|tool_calls>"
    # the header of a channel, whole or cut off
    r"|<\|channel\|>[^<]{0,256}(?:<\|constrain\|>[^<]{0,64})?(?:<\|message\|>|\Z)"
    rf"|<\|(?:{'|'.join(_PIPED)})\|>"
    r"|<(?:start_of_turn>model\b\n?|end_of_turn>)"
    rf"|<｜(?:{'|'.join(_WIDE)})｜>"
    r"|</?[|｜]\w{1,32}[|｜] ?(?:function_calls|tool_calls|calls)>"
    r"|</?atem:function_calls>|<bot_end>|✿(?:RESULT|RETURN)✿:?"
)
# Words of other languages too (`<s>` strikes through in HTML): tokens only at the ends of a turn.
_AT_START = re.compile(r"\s*(?:<(?:s|bos|pad)>\s*)+")
_AT_END = ("</s>", "<eos>", "<pad>")

_WRAPPERS = re.compile(
    r"</?(?:tool_calls?(?::[^\s<>]{1,64})?|function_calls|minimax:tool_call|seed:tool_call"
    r"|dots_function_call)>"
    r"|```\w*+\s*+```"
)


def without_tokens(text: str) -> str:
    """The text as a reader would see it, trimmed."""
    if "<" in text:
        text = _ANYWHERE.sub("", text).strip()
        opening = _AT_START.match(text)
        text = text[opening.end() :] if opening else text
        text = text[: _end(text)]
    return text.strip()


def _end(text: str) -> int:
    """Where the last tokens of a turn begin."""
    end = len(text)
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        token = next((token for token in _AT_END if text.endswith(token, 0, end)), "")
        if not token:
            return end
        end -= len(token)


def without_wrappers(text: str) -> str:
    """Without the tags (or the fence) that stood around calls: only where there were calls, for
    they are plain text otherwise."""
    return _WRAPPERS.sub("", text) if "<" in text or "`" in text else text


SchemaOf = Callable[[str], Json]

_THINKING = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("◁think▷", "◁/think▷"),
    ("<longcat_think>", "</longcat_think>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<ifm|think>", "</ifm|think>"),
    ("<ifm|think_fast>", "</ifm|think_fast>"),
    ("<ifm|think_faster>", "</ifm|think_faster>"),
    ("<|channel>thought", "<channel|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
)
# Closed by what closes every message: alone, that says nothing of what stood before it.
_THINKING_MESSAGES = (
    ("<|content_thinking|>", "<|end_message|>"),
    ("<|think|>", "<|end|>"),
)
# Words that texts hold too: thinking only where it is closed.
_THINKING_WORDS = (("<thought>", "</thought>"), ("<reasoning>", "</reasoning>"))
_BETWEEN_CALLS = re.compile(r"[\s,;]*")
# One line of plain words holds no thinking and no token, and no call but in a format whose hint is
# such a word; with brackets and apostrophes, still none in a format that nobody knows.
PLAIN_WORDS = re.compile(r"[\w ,.;!?-]*")
_MAY_HOLD_CALL = re.compile(r"[^\w ,.;!?()'-]|\s'")
# Markdown's escape, which some models put into names of tools and arguments.
_ESCAPED = "\\_"
_ESCAPED_NAME = re.compile(r"[^\W\d][\w.-]*(?:\\_[\w.-]*)+")


class TurnText(msgspec.Struct, frozen=True):
    """One assistant turn: what it says, what it thought, every call that it tried, and the calls
    that it only thought of."""

    text: str
    reasoning: str
    attempts: tuple[Attempt, ...]
    thought_of: tuple[Attempt, ...] = ()


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
    # Byte offsets and hashes of the turn are taken later: half a surrogate pair has neither.
    text = well_formed(text)
    wanted = formats if format == "auto" else named_formats(format, formats)
    tools = _Tools(
        _offer_test(None if offered is None else frozenset(offered)),
        schema_of or _unknown,
        names_known=offered is not None,
        # Who asks for one format gets what that one reads.
        finds_unparsed=format == "auto" and bool(formats),
        format_named=format != "auto",
    )
    turn = _read(text, wanted, tools)
    if _ESCAPED in text and wanted and not _sound(turn):
        names = (match.group().replace(_ESCAPED, "_") for match in _ESCAPED_NAME.finditer(text))
        if any(tools.offers(name) for name in names):
            plain = _read(text.replace(_ESCAPED, "_"), wanted, tools)
            return plain if _sound(plain) else turn
    return turn


class _Tools(NamedTuple):
    """What is known of the tools, whether calls in no known format are looked for, and whether
    somebody said which format it is."""

    offers: Callable[[str], bool]
    schema_of: SchemaOf
    names_known: bool
    finds_unparsed: bool
    format_named: bool


def _sound(turn: TurnText) -> bool:
    return any(isinstance(attempt, ToolCall) for attempt in turn.attempts)


def _read(text: str, wanted: Sequence[Format], tools: _Tools) -> TurnText:
    marks = _marks_in(text)
    active = _active(text, marks, wanted)
    thinking = tuple(
        _thinking_row(opening, closing, active)
        for opening, closing in (*_THINKING, *_THINKING_MESSAGES, *_THINKING_WORDS)
        if opening in marks
    )

    def reading(of: str = text) -> TurnReading:
        return TurnReading(of, tools.offers, tools.schema_of, is_named=tools.format_named)

    begin, thoughts = _thought_before(text, marks, active, reading)
    parts = _Parts(text, tools, begin)
    for start, block in _blocks(reading(), active + thinking, begin) if active + thinking else ():
        if block.thinking is not None:
            thoughts.append(block.thinking)
        parts.cut(start, block)
    said, attempts = parts.finish()
    thought_of = [
        attempt
        for thought in thoughts
        for _, block in (_blocks(reading(thought), active, 0) if active else ())
        for attempt in block.attempts
    ]
    said = without_wrappers(said) if attempts else said
    thought = "\n".join(filter(None, thoughts))
    return TurnText(without_tokens(said), thought, tuple(attempts), tuple(thought_of))


class _Parts:
    """Takes a turn apart from left to right: what is said, and what is called."""

    def __init__(self, text: str, tools: _Tools, begin: int) -> None:
        self._text = text
        self._tools = tools
        self._copied = begin
        self._kept: list[str] = []
        self._attempts: list[Attempt] = []

    def cut(self, start: int, block: TextBlock) -> None:
        between = self._text[self._copied : start]
        # Separators between two calls belong to neither and say nothing.
        if not (self._attempts and block.attempts and _BETWEEN_CALLS.fullmatch(between)):
            self._keep(between)
        self._attempts += block.attempts
        self._copied = block.end

    def finish(self) -> tuple[str, list[Attempt]]:
        self._keep(self._text[self._copied :])
        return "".join(self._kept), self._attempts

    def _keep(self, said: str) -> None:
        position = 0
        tools = self._tools
        if tools.finds_unparsed and _MAY_HOLD_CALL.search(said):
            found = find_unparsed(said, tools.offers, tools.schema_of, named=tools.names_known)
            for start, end, attempt in found:
                self._kept.append(said[position:start])
                self._attempts.append(attempt)
                position = end
        self._kept.append(said[position:])


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
    thought_of = [{**_row(entry), "status": IN_REASONING} for entry in turn.thought_of]
    return [*thought_of, *(_row(entry) for entry in turn.attempts)]


def _row(attempt: Attempt) -> dict[str, Json]:
    shown: ToolCall | RepairedCall | None
    match attempt:
        case ToolCall():
            shown, status, reason = attempt, "ok", None
        case MalformedCall(reason=reason, repaired=shown):
            status = "malformed" if shown is None else "repaired"
            if attempt.format == UNPARSED:
                status = UNPARSED
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
) -> Iterator[tuple[int, TextBlock]]:
    """Everything to be cut out, from left to right, none overlapping."""
    anywhere, each = _openings(tuple(row.opening for row in rows))
    while (match := anywhere.search(reading.text, position)) is not None:
        start = match.start()
        position = start + 1
        for row, opening in zip(rows, each, strict=True):
            mark = opening.match(reading.text, start)
            block = row.read(reading, start, mark.end()) if mark else None
            if mark is None or block is None:
                continue
            if row.is_marked and _is_spoken_of(reading, (start, mark.end()), block):
                continue
            # A block without either is passed over, but stays in the text: it is something that was
            # said.
            if block.attempts or block.thinking is not None:
                yield start, block
            position = max(block.end, position)
            break


def _is_spoken_of(reading: TurnReading, mark: tuple[int, int], block: TextBlock) -> bool:
    """A mark that is shown and not used: alone in backticks, in a program, or as a word of a
    sentence that says nothing of an offered tool."""
    text, (start, end) = reading.text, mark
    if not block.attempts or any(isinstance(a, ToolCall) for a in block.attempts):
        return False
    if text[start - 1 : start] == "`" and text[start - 2 : start] != "``":
        return True
    if any(a.name is not None and reading.offers(a.name) for a in block.attempts):
        return False
    if reading.is_in_program(start):
        return not any(_JSON_BEGINS.search(a.raw[:_SENTENCE_WINDOW]) for a in block.attempts)
    goes_on = _GOES_ON.match(text, end)
    sentence = _SENTENCE_END.split(text[end : end + _SENTENCE_WINDOW], maxsplit=1)[0]
    return (
        goes_on is not None
        and not reading.offers(goes_on[1])
        and _WRITTEN_CALL.search(sentence) is None
        and _WORD_BEFORE.search(text, max(0, start - _SENTENCE_WINDOW), start) is not None
    )


_SENTENCE_WINDOW = 200
_WORD_BEFORE = re.compile(r"[^\W\d_][ \t]+[\"'“(]?\Z")
_GOES_ON = re.compile(r"[\"'”)]?[ ,;.]++([^\W\d_]++)(?:[ ,;.]++[^\W\d_]|[.!?](?:\s|\Z))")
_SENTENCE_END = re.compile(r"\n|(?<=[^\W\d_])[.!?]\s")
_JSON_BEGINS = re.compile(r"\{\s*[\"'}]")
_WRITTEN_CALL = re.compile(r"[{]|</|[|｜]>|\w\(")


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
        blocks = _blocks(reading(), rows, 0) if rows else ()
        # A sound call may quote the mark in an argument.
        if not any(start < end < block.end and _is_sound(block) for start, block in blocks):
            return end + len(closing), [text[:end].strip()]
    return 0, []


def _is_sound(block: TextBlock) -> bool:
    return all(isinstance(attempt, ToolCall) for attempt in block.attempts)


def _thinking_row(opening: str, closing: str, rows: tuple[Format, ...]) -> Format:
    """Thinking that nobody closed ends where a call begins with a mark of its own."""
    marked = tuple(row for row in rows if row.is_marked)
    may_be_text = (opening, closing) in _THINKING_WORDS

    def read(reading: TurnReading, start: int, mark_end: int) -> TextBlock | None:
        stop = reading.find(closing, mark_end)
        end = stop + len(closing)
        if stop < 0 and may_be_text:
            return None
        if stop < 0:
            calls = _blocks(reading, marked, mark_end) if marked else iter(())
            stop = end = next((at for at, block in calls if block.attempts), len(reading.text))
        return TextBlock(end, thinking=reading.text[mark_end:stop].strip())

    return Format("thinking", opening, re.escape(opening), read)


# Looking for each mark by itself would cost more than all the rest for a text that holds none. So
# a character of theirs that prose seldom has is looked for first, then all that begin alike.
KNOWN_MARKS = frozenset(row.hint for row in FORMATS) | {
    mark for pair in (*_THINKING, *_THINKING_MESSAGES, *_THINKING_WORDS) for mark in pair
}
_RARE = '<[`"◁:]={('


def _gates() -> tuple[tuple[str, re.Pattern[str]], ...]:
    groups: dict[tuple[str, str], list[str]] = {}
    for mark in sorted(KNOWN_MARKS, key=lambda mark: (-len(mark), mark)):
        rare = next((character for character in _RARE if character in mark), mark[0])
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
