"""One case, one answer: is there a valid call in it, whose tool is it, and what do the arguments
of two answers disagree in?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import assert_never

from callmark.calls.attempts import MalformedCall, ToolCall
from callmark.calls.ledger import read_turn
from callmark.calls.scan import Scanner
from callmark.calls.schema import compiled, schema_errors
from callmark.core.fidelity_records import ViewAnswer, ViewCall
from callmark.core.jsontext import Json, canonical_json
from callmark.probe.spec import SchemaMode, ToolUseCase
from callmark.running.formats import installed_formats

Check = Callable[[dict[str, Json]], tuple[str, ...]]
Leaves = dict[tuple[str, ...], str]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


def read_answer(text: str, case: ToolUseCase, mode: SchemaMode) -> ViewAnswer:
    """Every call in the text is tried: in whatever format it is written, or with `minimal` as a
    JSON object with a name and an object of arguments (alone, in a fence, or amid other text)."""
    check = _check_of(case, mode)
    unfit: ViewAnswer | None = None
    for found in _minimal_calls(text) if mode == "minimal" else _calls(text):
        answer = ViewAnswer(False, None, found) if isinstance(found, str) else _fit(found, check)
        if answer.valid:
            return answer
        if unfit is None or (unfit.call is None and answer.call is not None):
            unfit = answer
    return unfit or ViewAnswer(False, None, "there is no call in the text")


def _fit(call: ViewCall, check: Check) -> ViewAnswer:
    errors = check(call.arguments)
    return ViewAnswer(False, call, errors[0]) if errors else ViewAnswer(True, call)


def _calls(text: str) -> Iterator[ViewCall | str]:
    """The calls of every known format; of one that cannot be read, why."""
    for attempt in read_turn(text, offered=None, formats=installed_formats()).attempts:
        match attempt:
            case ToolCall(name=name, arguments=arguments):
                yield ViewCall(name, arguments)
            case MalformedCall(reason=reason):
                yield reason
            case _:
                assert_never(attempt)


def _minimal_calls(text: str) -> Iterator[ViewCall | str]:
    """The outermost JSON objects of what the model said, thoughts left out."""
    scanner = Scanner(read_turn(text, offered=None, formats=()).text)
    position, is_broken = scanner.find("{", 0), False
    while position >= 0:
        element = scanner.value_at(position)
        if element is None:
            if not is_broken:  # once: a long text of braces must not be read for each of them
                yield scanner.reason_at(position, len(scanner.text))
            is_broken, end = True, position + 1
        else:
            end = element.end
            match element.value:
                case {"name": str(name), "arguments": dict(arguments)}:
                    yield ViewCall(name, arguments)
                case {"name": str()}:
                    yield "the call has no object of arguments"
                case _:
                    yield "the JSON object names no tool"
        position = scanner.find("{", end)


def is_invented(name: str, case: ToolUseCase, allowed: tuple[str, ...] | None) -> bool:
    """Whether a call names a tool that it may not: exact, case and all."""
    return name != case.gold_tool_name if allowed is None else name not in allowed


def disagreement(one: ViewCall, other: ViewCall, *, ordered_lists: bool) -> float:
    """The share of leaves in which two sets of arguments differ; one that only one of them has
    differs. Two empty sets agree."""
    left = dict(_leaves(one.arguments, ordered_lists))
    right = dict(_leaves(other.arguments, ordered_lists))
    paths = left.keys() | right.keys()
    if not paths:
        return 0.0
    return sum(1 for path in paths if left.get(path) != right.get(path)) / len(paths)


def _leaves(
    value: Json, ordered: bool, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict) and (value or not path):
        for key, inner in value.items():
            yield from _leaves(inner, ordered, (*path, key))
    else:
        # As text: 2 and 2.0, true and 1 are equal in Python, but not the same argument.
        yield path, canonical_json(value if ordered else _without_order(value))


def _without_order(value: Json) -> Json:
    if isinstance(value, list):
        return sorted((_without_order(entry) for entry in value), key=canonical_json)
    if isinstance(value, dict):
        return {key: _without_order(entry) for key, entry in value.items()}
    return value


def _check_of(case: ToolUseCase, mode: SchemaMode) -> Check:
    if mode == "minimal":
        return lambda arguments: tuple(_minimal_errors(case.parameters, arguments))
    validator = compiled(case.parameters)
    return lambda arguments: schema_errors(validator, arguments)


def _minimal_errors(parameters: dict[str, Json], arguments: dict[str, Json]) -> Iterator[str]:
    """Required keys and plain type tags; every other rule, and every other key, is let be."""
    for name in parameters.get("required") or ():
        if name not in arguments:
            yield f"/: {name} is missing"
    properties = parameters.get("properties") or {}
    for name, value in arguments.items():
        schema = properties.get(name)
        tag = schema.get("type") if isinstance(schema, dict) else None
        types = _TYPES.get(tag) if isinstance(tag, str) else None
        if types is not None and not _is_of(value, types):
            yield f"/{name}: is no {tag}"


def _is_of(value: Json, types: tuple[type, ...]) -> bool:
    # To Python true is an integer, to JSON it is not.
    return type(value) is bool if types == (bool,) else type(value) in types
