"""What one view wrote, read as an answer: its call, whether that fits, in which format, and if it
does not fit, why. And how its turns end: does it stop after a call, does it say something once the
result is there, and does the tokenizer that was saved with it still show the tools?

That is looked at before the statistics: a model that never ends its turn is broken, however valid
its calls are."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple, assert_never

import msgspec

from callmark.calls.attempts import Attempt, MalformedCall, ToolCall
from callmark.calls.ledger import read_turn, without_tokens, without_wrappers
from callmark.calls.scan import Scanner
from callmark.calls.schema import compile_once, pointer, schema_errors
from callmark.probe.records import (
    ArgumentChange,
    CaseOutcome,
    FailureGroup,
    Likeness,
    Rendering,
    TurnCheck,
    ViewAnswer,
    ViewCall,
    WrittenAnswer,
)
from callmark.probe.spec import FidelitySpec, SchemaMode, ToolUseCase, family_of
from callmark.probe.views import Question
from callmark.records.jsontext import Json, canonical_json, plain, want_list, want_object
from callmark.run.offers import installed_formats

Check = Callable[[dict[str, Json]], tuple[str, ...]]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


class _ReadCall(NamedTuple):
    """One attempt of a text: the call, or why there is none; `raw` is how it was written."""

    call: ViewCall | None
    reason: str | None
    format: str
    raw: str


NO_CALL = "there is no call in the text"


def read_answer(written: WrittenAnswer, case: ToolUseCase, mode: SchemaMode = "full") -> ViewAnswer:
    """Every call in the text is tried: in whatever format it is written, or with `minimal` as a
    JSON object with a name and an object of arguments (alone, in a fence, or amid other text)."""
    answer = _read_call(written, case, mode)
    runs_on, repeats = _after_calls(written, case)
    return msgspec.structs.replace(
        answer, runs_on=runs_on, repeats=repeats, structured=written.structured
    )


def likeness_of(base: ViewAnswer, tuned: ViewAnswer) -> Likeness:
    """Whether two views say the same: in the same words, by the same call, or not."""
    if base.text == tuned.text and not base.structured and not tuned.structured:
        return "same_text"
    calls = [(one.valid, canonical_json(plain(one.call))) for one in (base, tuned)]
    return "same_call" if calls[0] == calls[1] else "other_call"


def _after_calls(written: WrittenAnswer, case: ToolUseCase) -> tuple[bool, int]:
    """Whether text follows the last call, and how many calls only say again what one before them
    said."""
    attempts = _attempts(written.text, case)
    if not attempts:
        return False, 0
    calls = [
        canonical_json([one.name, one.arguments]) for one in attempts if isinstance(one, ToolCall)
    ]
    last = attempts[-1].raw
    begin = written.text.rfind(last) if last else -1
    rest = "" if begin < 0 else written.text[begin + len(last) :]
    left = without_wrappers(without_tokens(rest))
    return any(map(str.isalnum, left)), len(calls) - len(set(calls))


def _read_call(written: WrittenAnswer, case: ToolUseCase, mode: SchemaMode) -> ViewAnswer:
    text = written.text
    if case.gold_tool_name is None:
        return _read_silence(written, case)
    check = _check_of(case, mode)
    unfit: _ReadCall | None = None
    reason: str | None = None
    for found in _minimal_calls(text) if mode == "minimal" else _calls(text, case):
        errors = () if found.call is None else check(found.call.arguments)
        if found.call is not None and not errors:
            style = None if written.structured else _format_of(found, text, case, mode)
            return ViewAnswer(True, found.call, text=text, format=style, ended=written.ended)
        if unfit is None or (unfit.call is None and found.call is not None):
            unfit, reason = found, errors[0] if errors else found.reason
    return ViewAnswer(
        False,
        None if unfit is None else unfit.call,
        reason or NO_CALL,
        text=text,
        format=None if unfit is None or written.structured else family_of(unfit.format),
        ended=written.ended,
        cause=_cause(written, unfit, reason or NO_CALL, case, mode),
    )


def _read_silence(written: WrittenAnswer, case: ToolUseCase) -> ViewAnswer:
    """Where no call is asked for, every attempt is one too many."""
    found = next(_calls(written.text, case), None)
    return ViewAnswer(
        found is None,
        None if found is None else found.call,
        None if found is None else "no call was asked for",
        text=written.text,
        ended=written.ended,
        cause=None if found is None else "a call where none was asked for",
    )


def _calls(text: str, case: ToolUseCase) -> Iterator[_ReadCall]:
    """The calls of every known format; of one that cannot be read, why."""
    for attempt in _attempts(text, case):
        match attempt:
            case ToolCall(name=name, arguments=arguments):
                yield _ReadCall(ViewCall(name, arguments), None, attempt.format, attempt.raw)
            case MalformedCall(reason=reason):
                yield _ReadCall(None, reason, attempt.format, attempt.raw)
            case _:
                assert_never(attempt)


def _attempts(text: str, case: ToolUseCase) -> tuple[Attempt, ...]:
    # Formats without types of their own ask the schema: `5` may be a number or a text.
    turn = read_turn(
        text, offered=None, formats=installed_formats(), schema_of=lambda _: case.parameters
    )
    return turn.attempts


def _minimal_calls(text: str) -> Iterator[_ReadCall]:
    """The outermost JSON objects of what the model said, thoughts left out."""
    scanner = Scanner(read_turn(text, offered=None, formats=()).text)
    position, is_broken = scanner.find("{", 0), False
    while position >= 0:
        element = scanner.value_at(position)
        if element is None:
            if not is_broken:  # once: a long text of braces must not be read for each of them
                why = scanner.reason_at(position, len(scanner.text))
                yield _ReadCall(None, why, "bare", scanner.text[position:])
            is_broken, end = True, position + 1
        else:
            end = element.end
            match element.value:
                case {"name": str(name), "arguments": dict(arguments)}:
                    yield _ReadCall(ViewCall(name, arguments), None, "bare", "")
                case {"name": str()}:
                    yield _ReadCall(None, "the call has no object of arguments", "bare", "")
                case _:
                    yield _ReadCall(None, "the JSON object names no tool", "bare", "")
        position = scanner.find("{", end)


def _format_of(found: _ReadCall, text: str, case: ToolUseCase, mode: SchemaMode) -> str:
    """`minimal` sees JSON and nothing else; what stands around it tells the format."""
    if mode == "minimal":
        calls = (one for one in _calls(text, case) if one.call == found.call)
        return family_of(next((one.format for one in calls), found.format))
    return family_of(found.format)


def _cause(
    written: WrittenAnswer,
    unfit: _ReadCall | None,
    reason: str,
    case: ToolUseCase,
    mode: SchemaMode,
) -> str:
    """Why there is no valid call, in words that are the same for every case of the kind."""
    if unfit is None or (mode == "minimal" and unfit.call is None):
        other = next((one for one in _calls(written.text, case) if one.call is not None), None)
        if mode == "minimal" and other is not None and family_of(other.format) != "json":
            return f"a call in another format ({family_of(other.format)})"
    if unfit is None:
        return _cause_of_silence(written, case)
    if unfit.call is not None:
        path, _, said = reason.partition(": ")
        return f"arguments do not fit: {said}" if path == "/" else f"argument {path} does not fit"
    if _is_unclosed(unfit.raw):
        return "JSON not closed" if written.ended is not False else "JSON cut off by max_new_tokens"
    return reason.partition(" (")[0]


def _cause_of_silence(written: WrittenAnswer, case: ToolUseCase) -> str:
    turn = read_turn(written.text, offered=None, formats=())
    if turn.reasoning and _attempts(turn.reasoning, case):
        return "the call stands in the thinking only"
    if not turn.text:
        return "nothing but thinking" if turn.reasoning else "no call, and no text either"
    return "no call, prose instead"


def _is_unclosed(raw: str) -> bool:
    """Whether the first object in a text is still open at its end, or at the tag that ends the
    call."""
    start = min((at for mark in "{[" if (at := raw.find(mark)) >= 0), default=-1)
    if start < 0:
        return False
    depth, position = 0, start
    while position < len(raw):
        found = _JSON_MARK.search(raw, position)
        if found is None:
            return depth > 0
        mark, position = found[0], found.end()
        if mark == '"':
            closing = _STRING_END.match(raw, position)
            if closing is None:
                return True
            position = closing.end()
        elif mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth == 0:
                return False
        else:
            return depth > 0
    return depth > 0


_JSON_MARK = re.compile(r'["{}\[\]]|</')
_STRING_END = re.compile(r'(?:[^"\\]|\\.)*+"', re.DOTALL)


def is_invented(name: str, case: ToolUseCase, allowed: tuple[str, ...] | None) -> bool:
    """Whether a call names a tool that it may not: exact, case and all."""
    return name != case.gold_tool_name if allowed is None else name not in allowed


def group_failures(spec: FidelitySpec, outcomes: Sequence[CaseOutcome]) -> tuple[FailureGroup, ...]:
    """What is wrong with the answers of the tuned view, most frequent first."""
    asked_for = {case.gold_tool_name for case in spec.cases}
    known = asked_for.union(*(case.offered for case in spec.cases))
    groups: dict[str, list[int]] = {}
    for at, (case, one) in enumerate(zip(spec.cases, outcomes, strict=True)):
        cause = _failure(case, one, spec.allowed_tools, known)
        if cause is not None:
            groups.setdefault(cause, []).append(at)
    made = [
        FailureGroup(
            cause=cause,
            count=len(found),
            num_lost=sum(1 for at in found if outcomes[at].standing == "lost"),
            num_both_fail=sum(1 for at in found if outcomes[at].standing == "both_fail"),
            cases=tuple(at + 1 for at in found),
        )
        for cause, found in groups.items()
    ]
    return tuple(sorted(made, key=lambda group: (-group.count, group.cause)))


def _failure(
    case: ToolUseCase,
    one: CaseOutcome,
    allowed: tuple[str, ...] | None,
    known: Collection[str | None],
) -> str | None:
    """A call of a wrong tool is that first: its arguments cannot fit another tool's schema."""
    call = one.tuned.call
    if call is None or case.gold_tool_name is None or not is_invented(call.name, case, allowed):
        return one.tuned.cause
    if call.name in case.offered:
        return f"another tool that was offered ({call.name})"
    where = "of another case" if call.name in known else "that no case offers"
    return f"tool {where} ({call.name})"


def disagreement(one: ViewCall, other: ViewCall, *, ordered_lists: bool) -> float:
    """The share of leaves in which two sets of arguments differ; one that only one of them has
    differs. Two empty sets agree."""
    left, right = (_leaf_values(call, ordered_lists) for call in (one, other))
    paths = left.keys() | right.keys()
    if not paths:
        return 0.0
    return len(argument_changes(one, other, ordered_lists=ordered_lists)) / len(paths)


def argument_changes(
    base: ViewCall, tuned: ViewCall, *, ordered_lists: bool
) -> tuple[ArgumentChange, ...]:
    """The leaves in which two sets of arguments differ, with both values, by their path."""
    left, right = (_leaf_values(call, ordered_lists) for call in (base, tuned))
    return tuple(
        ArgumentChange(
            path=pointer(list(path)),
            base=left[path].value if path in left else msgspec.UNSET,
            tuned=right[path].value if path in right else msgspec.UNSET,
        )
        for path in sorted(left.keys() | right.keys())
        if path not in left or path not in right or left[path].text != right[path].text
    )


class _Leaf(NamedTuple):
    value: Json
    text: str  # 2 and 2.0, true and 1 are equal in Python, but not the same argument


def _leaf_values(call: ViewCall, ordered: bool) -> dict[tuple[str, ...], _Leaf]:
    return dict(_leaves(call.arguments, ordered))


def _leaves(
    value: Json, ordered: bool, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], _Leaf]]:
    if isinstance(value, dict) and (value or not path):
        for key, inner in value.items():
            yield from _leaves(inner, ordered, (*path, key))
    else:
        yield path, _Leaf(value, canonical_json(value if ordered else _without_order(value)))


def _without_order(value: Json) -> Json:
    if isinstance(value, list):
        return sorted((_without_order(entry) for entry in value), key=canonical_json)
    if isinstance(value, dict):
        return {key: _without_order(entry) for key, entry in value.items()}
    return value


def _check_of(case: ToolUseCase, mode: SchemaMode) -> Check:
    if mode == "minimal":
        return lambda arguments: tuple(_minimal_errors(case.parameters, arguments))
    validator = compile_once(case.parameters)
    return lambda arguments: schema_errors(validator, arguments)


def _minimal_errors(parameters: dict[str, Json], arguments: dict[str, Json]) -> Iterator[str]:
    """Required keys and plain type tags; every other rule, and every other key, is let be."""
    for name in want_list(parameters.get("required")):
        if name not in arguments:
            yield f"/: {name} is missing"
    properties = want_object(parameters.get("properties"))
    for name, value in arguments.items():
        schema = properties.get(name)
        tag = schema.get("type") if isinstance(schema, dict) else None
        types = _TYPES.get(tag) if isinstance(tag, str) else None
        if types is not None and not _is_of(value, types):
            yield f"/{name}: is no {tag}"


def _is_of(value: Json, types: tuple[type, ...]) -> bool:
    # To Python true is an integer, to JSON it is not.
    return type(value) is bool if types == (bool,) else type(value) in types


MOST_FOLLOW_UPS = 8  # each is one more answer of each view
_CALL_ID = "call00001"
_RESULT = {"ok": True, "result": "done, 3 entries, the newest is of 2 May 2024"}


def check_ends(outcomes: Sequence[CaseOutcome]) -> tuple[TurnCheck, ...]:
    """Over the answers that hold a call; whether a turn was ended is asked of all."""
    called = [one for one in outcomes if one.gold_tool_name is not None]
    known = [one for one in outcomes if one.base.ended is not None and one.tuned.ended is not None]
    found = [
        TurnCheck(
            name="runs_on",
            base=sum(one.base.runs_on for one in called),
            tuned=sum(one.tuned.runs_on for one in called),
            n=len(called),
        ),
        TurnCheck(
            name="repeats",
            base=sum(one.base.repeats > 0 for one in called),
            tuned=sum(one.tuned.repeats > 0 for one in called),
            n=len(called),
        ),
    ]
    if known:
        ends = TurnCheck(
            name="never_ends",
            base=sum(one.base.ended is False for one in known),
            tuned=sum(one.tuned.ended is False for one in known),
            n=len(known),
        )
        found.insert(0, ends)
    return tuple(found)


def follow_ups(
    questions: Sequence[Question], outcomes: Sequence[CaseOutcome], most: int = MOST_FOLLOW_UPS
) -> tuple[list[ViewCall], list[Question]]:
    """The first cases that both views got right, asked again with the call and a result."""
    calls: list[ViewCall] = []
    asked: list[Question] = []
    for question, one in zip(questions, outcomes, strict=True):
        call = one.tuned.call
        if one.standing != "kept" or call is None or one.hallucinated or len(asked) >= most:
            continue
        calls.append(call)
        asked.append(_with_result(question, call))
    return calls, asked


def check_results(
    calls: Sequence[ViewCall],
    base: Sequence[WrittenAnswer],
    tuned: Sequence[WrittenAnswer],
) -> TurnCheck:
    """How many say nothing to the result of a call, or make the same call again."""
    return TurnCheck(
        name="ignores_results",
        base=sum(not _answers(one, call) for one, call in zip(base, calls, strict=True)),
        tuned=sum(not _answers(one, call) for one, call in zip(tuned, calls, strict=True)),
        n=len(calls),
    )


def check_rendering(found: Rendering) -> TurnCheck:
    return TurnCheck(
        name="renders_otherwise", base=0, tuned=found.different, n=found.prompts, note=found.note
    )


def _answers(written: WrittenAnswer, call: ViewCall) -> bool:
    turn = read_turn(written.text, offered=None, formats=installed_formats())
    again = any(
        attempt.name == call.name and getattr(attempt, "arguments", None) == call.arguments
        for attempt in turn.attempts
    )
    return bool(turn.text or turn.attempts) and not again


def _with_result(question: Question, call: ViewCall) -> Question:
    made: dict[str, Json] = {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": _CALL_ID,
                "type": "function",
                "function": {"name": call.name, "arguments": canonical_json(call.arguments)},
            }
        ],
    }
    result: dict[str, Json] = {
        "role": "tool",
        "tool_call_id": _CALL_ID,
        "name": call.name,
        "content": canonical_json(_RESULT),
    }
    return Question(
        name=question.name,
        messages=[*question.messages, made, result],
        tools=question.tools,
        max_new_tokens=question.max_new_tokens,
    )
