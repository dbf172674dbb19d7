"""A sample written from a few words: a prompt, the calls that are expected, the facts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from callmark.calls.registry import Registry
from callmark.calls.schema import argument_errors, compile_once
from callmark.datasets.add import append_lines, refuse_known_id
from callmark.datasets.reader import open_dataset
from callmark.datasets.schema import item_problems
from callmark.errors import UsageError
from callmark.records.jsontext import Json, NotJson, parse_json
from callmark.records.problems import hint, refuse_problems
from callmark.store.files import check_writable


class WrittenCall(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, Json]


def read_value(text: str) -> Json:
    """JSON where it is some (17, true, "17", {…}), else the text itself."""
    try:
        return parse_json(text)
    except NotJson:
        return text


def read_call(words: Sequence[str]) -> WrittenCall:
    """`find_order order_id=W100 verbose=true`, or `find_order '{"order_id": "W100"}'`."""
    name, *given = words
    if len(given) == 1 and isinstance(value := read_value(given[0]), dict):
        return WrittenCall(name, value)
    arguments: dict[str, Json] = {}
    for word in given:
        argument, equals, text = word.partition("=")
        if not equals or not argument:
            raise UsageError(f"--call {name}: {word}: write NAME=VALUE, or one JSON object")
        arguments[argument] = read_value(text)
    return WrittenCall(name, arguments)


def add_sample(
    dataset: Path,
    *,
    prompt: str,
    calls: Sequence[WrittenCall],
    facts: Sequence[Json],
    sample_id: str | None,
    registry: Registry,
) -> tuple[int, str]:
    """Appends it; gives its line and its id. A call that breaks its schema is refused."""
    expected = [_checked(call, registry) for call in calls]
    if facts and not calls:
        raise UsageError(
            "--fact: a fact comes from a tool's result: give the --call that returns it"
        )
    sample_id = sample_id or _free_id(dataset)
    metadata: dict[str, Json] = {"sample_id": sample_id}
    if expected:
        metadata["call_sequence"] = expected
    else:
        metadata["expected_behaviour"] = "no_tool"
    if facts:
        metadata["required_facts"] = list(facts)
    item: dict[str, Json] = {"prompt": prompt, "metadata": metadata}
    refuse_problems(sample_id, item_problems(item))
    refuse_known_id(dataset, sample_id)
    check_writable(dataset)
    is_new = not dataset.exists()
    header: dict[str, Json] = {"__header__": True, "dataset_version": "1"}
    line = append_lines(dataset, [header, item] if is_new else [item])
    return line + is_new, sample_id


def _checked(call: WrittenCall, registry: Registry) -> Json:
    name = registry.resolve(call.name)
    spec = None if name is None else registry.spec(name)
    if name is None or spec is None:
        known = hint(call.name, registry.names) or f"; there is: {', '.join(registry.names)}"
        raise UsageError(f"--call {call.name}: no such tool in the registry{known}")
    return {"name": name, "arguments": _valid(name, call.arguments, registry)}


def _valid(name: str, arguments: dict[str, Json], registry: Registry) -> dict[str, Json]:
    """A value that was meant as text is text: `order_id=100` where the schema asks for a string."""
    parameters = registry.parameters(name)
    if parameters is None:
        return arguments
    schema = compile_once(parameters)
    mixed = dict(arguments)
    for argument, value in arguments.items():
        changed = {**mixed, argument: msgspec.json.encode(value).decode()}
        before = len(argument_errors(schema, mixed))
        if (
            before
            and len(argument_errors(schema, changed)) <= before
            and not isinstance(value, str)
        ):
            mixed = changed
    errors = argument_errors(schema, mixed)
    if errors:
        raise UsageError(f"--call {name}: {'; '.join(errors)}")
    return mixed


def _free_id(dataset: Path) -> str:
    if not dataset.exists():
        return "sample-1"
    with open_dataset(dataset) as opened:
        known = set(opened.ids())
    number = len(known) + 1
    while f"sample-{number}" in known:
        number += 1
    return f"sample-{number}"
