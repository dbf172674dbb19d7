"""The calls that are to be recorded: those that a dataset expects, or those of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from callmark.core.jsontext import Json, NotJson
from callmark.datasets.reader import open_dataset
from callmark.errors import BadInput
from callmark.store.jsonl import is_blank, lines_of, object_of, open_input

_FIELDS = frozenset({"name", "arguments", "sample_id"})


class PlannedCall(msgspec.Struct, frozen=True):
    """`sample_id` None: a call of nobody in particular."""

    name: str
    arguments: dict[str, Json]
    sample_id: str | None
    where: str


def calls_of_dataset(path: Path) -> Iterator[PlannedCall]:
    """In the order of the samples and of their calls."""
    with open_dataset(path) as opened:
        for sample in opened.samples():
            for call in sample.expectation.calls:
                if call.arguments is not None:
                    where = f"{path}: sample {sample.sample_id}"
                    yield PlannedCall(call.name, call.arguments, sample.sample_id, where)


def calls_of_file(path: Path) -> Iterator[PlannedCall]:
    """JSONL of {name, arguments}, with `sample_id` where calls belong to one."""
    problems: list[str] = []
    with open_input(path) as stream:
        for line in lines_of(stream, str(path)):
            if is_blank(line.json):
                continue
            where = f"{path}:{line.number}"
            try:
                yield _call_of(object_of(line.json), where)
            except NotJson as error:
                problems.append(f"{where}: {error}")
    if problems:
        raise BadInput(problems[:20])


def _call_of(value: dict[str, Json], where: str) -> PlannedCall:
    unknown = sorted(value.keys() - _FIELDS)
    if unknown:
        raise NotJson(f"{unknown[0]}: unknown field; a call is {{name, arguments, sample_id}}")
    name, arguments, sample = value.get("name"), value.get("arguments", {}), value.get("sample_id")
    if not isinstance(name, str) or not name:
        raise NotJson("name: must be the name of a tool")
    if not isinstance(arguments, dict):
        raise NotJson("arguments: must be an object")
    if not isinstance(sample, str | None):
        raise NotJson("sample_id: must be a text")
    return PlannedCall(name, arguments, sample, where)
