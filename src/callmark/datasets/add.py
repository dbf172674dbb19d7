"""A sample is added to a dataset: a trial of a run, with the results that it was served as fixtures
of its own, or one written from a few words, with the calls and facts that are expected."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from callmark.calls.registry import NormalisedCall, Registry, normalise
from callmark.calls.schema import argument_errors, compile_once
from callmark.datasets.reader import line_of_sample, located_object, open_dataset
from callmark.datasets.schema import item_problems
from callmark.errors import UsageError
from callmark.records.jsontext import Json, NotJson, canonical_json, parse_json, want_object
from callmark.records.problems import hint, refuse_problems
from callmark.records.results import Result
from callmark.records.samples import ExpectedCall, Kind, expectation_of
from callmark.records.trace import TraceEntry
from callmark.store.files import (
    atomic_writer,
    check_writable,
    filled_lines,
    open_input,
)

FIXTURES_FILE = "added.jsonl"
# They speak of the teacher's text, which a run does not know.
_OF_THE_TEACHER = frozenset(
    {"tool_result_fields", "integration_spans_bytes", "json_args_spans_bytes", "spans_target"}
)
_EXPECT_NO_CALL: frozenset[Kind] = frozenset({"control", "clarify"})
_ANSWERABLE = frozenset({"ok", "error", "miss"})
_BLOCK = 1 << 20

Entry = dict[str, Json]


class Added(msgspec.Struct, frozen=True, kw_only=True):
    """`guessed_calls`: the run expected none, so the observed ones stand there to be edited.
    `without_result`: expected calls that the trial did not make, so nothing was recorded."""

    sample_id: str
    dataset: str
    line: int
    fixtures: str | None
    fixtures_added: int
    guessed_calls: int
    without_result: tuple[str, ...]


def add_from_trace(
    dataset: Path,
    result: Result,
    *,
    fixtures: Path | None = None,
    new_id: str | None = None,
    registry: Registry | None = None,
    where: str | None = None,
) -> Added:
    """Appends one sample to the dataset (a new file if there is none) and its fixtures to
    `added.jsonl` in the folder. Nothing that is there changes; the seal has to be made anew.
    `where` the result stands, for messages; by default its id."""
    where = where or result.sample_id
    if result.status == "error":
        raise UsageError(f"{where}: the trial failed ({result.error}): nothing to add")
    sample_id = new_id or result.sample_id
    item = sample_item(result, sample_id)
    refuse_problems(where, item_problems(item))
    lines = fixture_entries(result.tool_trace, sample_id, registry)
    if lines and fixtures is None:
        raise UsageError(
            f"{where}: {len(lines)} results were served in this trial:"
            " name the folder that shall keep them with --fixtures"
        )
    refuse_known_id(dataset, sample_id)
    check_writable(dataset)
    kept = None if fixtures is None or not lines else fixtures / FIXTURES_FILE
    if kept is not None:
        # First the fixtures: a sample without them would fail, they without it are never asked.
        lines = _new_entries(kept, lines, sample_id)
        check_writable(kept)
        append_lines(kept, lines)
    expected = expectation_of(want_object(item["metadata"])).calls
    return Added(
        sample_id=sample_id,
        dataset=str(dataset),
        line=append_lines(dataset, [item]),
        fixtures=None if kept is None else str(kept),
        fixtures_added=0 if kept is None else len(lines),
        guessed_calls=0 if result.metadata.get("call_sequence") else len(expected),
        without_result=tuple(_without_result(expected, result.tool_trace, registry)),
    )


def sample_item(result: Result, sample_id: str) -> Entry:
    """The item that asks the same again."""
    metadata = {
        name: value for name, value in result.metadata.items() if name not in _OF_THE_TEACHER
    }
    metadata["sample_id"] = sample_id
    # Who meets this sample in a year wants to know which failure it stands for.
    metadata["added_from"] = {"sample_id": result.sample_id, "trial": result.trial}
    if not metadata.get("call_sequence"):
        observed = _observed_calls(result)
        if observed:
            metadata["call_sequence"] = observed
    item: Entry = {"prompt": result.prompt, "metadata": metadata}
    if result.said:
        item["user_turns"] = [said.text for said in result.said]
    return item


def fixture_entries(
    trace: Sequence[TraceEntry], sample_id: str, registry: Registry | None
) -> list[Entry]:
    """The served results, seen by this sample only. Different answers to one call are numbered
    in their order; the last repeats by itself."""
    answers: dict[tuple[str, str], list[TraceEntry]] = {}
    for entry in trace:
        call = _normalise(entry.name, entry.arguments, registry) if entry.served else None
        if call is not None:
            answers.setdefault((call.name, call.key_json), []).append(entry)
    entries: list[Entry] = []
    for (name, _), served in answers.items():
        # The broker repeats the last answer by itself: equal ones at the end need no numbers.
        while len(served) > 1 and _same_result(served[-1], served[-2]):
            served.pop()
        for seq, entry in enumerate(served, start=1):
            line = {"name": name, "key": entry.arguments, "result": entry.result}
            line["sample_id"] = sample_id
            entries.append(line if len(served) == 1 else {**line, "seq": seq})
    return entries


def _observed_calls(result: Result) -> list[Entry]:
    """What a person may edit into the expected calls. Where none is right, none is put down."""
    if expectation_of(result.metadata).kind in _EXPECT_NO_CALL:
        return []
    return [
        {"name": entry.name, "arguments": entry.arguments}
        for entry in result.tool_trace
        if entry.status in _ANSWERABLE and entry.name is not None and not entry.schema_errors
    ]


def _without_result(
    expected: Sequence[ExpectedCall], trace: Sequence[TraceEntry], registry: Registry | None
) -> Iterator[str]:
    served = {
        (call.name, call.key_json)
        for entry in trace
        if entry.served and (call := _normalise(entry.name, entry.arguments, registry))
    }
    for wanted in expected:
        call = _normalise(wanted.name, wanted.arguments, registry)
        if call is not None and (call.name, call.key_json) not in served:
            yield f"{call.name} {call.key_json}"


def _normalise(
    name: str | None, arguments: Json, registry: Registry | None
) -> NormalisedCall | None:
    return normalise(name, arguments, registry=registry, known_names=(name,) if name else ())


def _same_result(one: TraceEntry, other: TraceEntry) -> bool:
    return canonical_json(one.result) == canonical_json(other.result)


def refuse_known_id(dataset: Path, sample_id: str) -> None:
    if not dataset.exists():
        return
    if not dataset.is_file():
        raise UsageError(f"{dataset}: must be a file, to which a line can be added")
    # A line added to a broken dataset would be blamed for what was wrong before.
    open_dataset(dataset).close()
    line = line_of_sample(dataset, sample_id)
    if line is not None:
        raise UsageError(
            f"{dataset}:{line}: the sample {sample_id} is there already: give another id with --id"
        )


def _new_entries(file: Path, entries: Sequence[Entry], sample_id: str) -> list[Entry]:
    """Those that the file does not hold yet, from an attempt that was cut short. What it holds
    for this sample beside them would contradict them."""
    if not file.exists():
        return list(entries)
    texts = {canonical_json(entry) for entry in entries}
    known: set[str] = set()
    for line in filled_lines(file):
        entry = located_object(line, str(file))
        if entry.get("sample_id") != sample_id:
            continue
        known.add(canonical_json(entry))
        if not known <= texts:
            raise UsageError(
                f"{file}:{line.number}: holds another answer for {sample_id} already:"
                " give another id with --id, or remove the line"
            )
    return [entry for entry in entries if canonical_json(entry) not in known]


def append_lines(path: Path, values: Sequence[Entry]) -> int:
    """Adds lines to a file, whole or not at all; gives the number of the first of them."""
    number, ending = 1, b"\n"
    with atomic_writer(path) as target:
        if path.exists():
            with open_input(path) as source:
                while block := source.read(_BLOCK):
                    target.write(block)
                    number += block.count(b"\n")
                    ending = block[-1:]
        if ending != b"\n":
            target.write(b"\n")
            number += 1
        for value in values:
            target.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")
    return number


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
