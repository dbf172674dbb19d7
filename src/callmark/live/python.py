"""Live tools that are Python functions: `module:function`."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import msgspec

from callmark.datasets.reader import open_dataset
from callmark.errors import UsageError
from callmark.live.recorder import Answered, LostCall
from callmark.records.jsontext import Json, NotJson, parse_json
from callmark.records.problems import Problems
from callmark.store.files import filled_lines, object_of

Function = Callable[..., Any]


class PythonTools:
    """Functions by their own names. What a function raises is its answer: an error result."""

    def __init__(self, names: Sequence[str], *, timeout: float = 30.0) -> None:
        found = [_function(name) for name in names]
        self._functions = {function.__name__: function for function in found}
        if len(self._functions) < len(names):
            raise UsageError("--python: two functions of one name; a tool needs its own")
        self._hints = {name: _hints(one) for name, one in self._functions.items()}
        self.specs = tuple(
            _spec(name, function, self._hints[name]) for name, function in self._functions.items()
        )
        self.origin = f"python {', '.join(names)}"
        self._timeout = timeout

    def call(self, name: str, arguments: dict[str, Json]) -> Answered | LostCall:
        function = self._functions.get(name)
        if function is None:
            return LostCall(f"{name}: no function of this name was given with --python")
        try:
            given = _convert(arguments, self._hints[name])
        except msgspec.ValidationError as error:
            return Answered(_failure(f"invalid arguments: {error}"))
        answers: list[Answered | LostCall] = []
        # A daemon: a function that never returns must not keep the process alive.
        worker = threading.Thread(
            target=lambda: answers.append(_call(name, function, given)), daemon=True
        )
        worker.start()
        worker.join(self._timeout)
        return answers[0] if answers else LostCall(f"{name}: no answer within {self._timeout:g} s")


def _function(name: str) -> Function:
    module, colon, attribute = name.partition(":")
    if not module:
        raise UsageError(f"--python {name}: write module:function")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` finds a module of this folder
    try:
        loaded = import_module(module.removesuffix(".py"))
    except (ImportError, ValueError) as error:
        raise UsageError(f"--python {name}: cannot be loaded: {error}") from None
    if not (colon and attribute) or module.endswith(".py"):
        raise UsageError(f"--python {name}: write module:function{_functions_of(loaded)}")
    if not hasattr(loaded, attribute):
        raise UsageError(f"--python {name}: there is no {attribute}{_functions_of(loaded)}")
    found = getattr(loaded, attribute)
    if not inspect.isfunction(found):
        raise UsageError(f"--python {name}: is {type(found).__name__}, a function is needed")
    return found


def _functions_of(module: ModuleType) -> str:
    """Those that it defines itself, as they are given."""
    found = [
        f"--python {module.__name__}:{name}"
        for name, one in vars(module).items()
        if inspect.isfunction(one) and one.__module__ == module.__name__ and name[0] != "_"
    ]
    return f"; there is: {' '.join(found)}" if found else ""


def _hints(function: Function) -> dict[str, Any]:
    """The type of each parameter; one that has none takes any value."""
    hints = get_type_hints(function)
    return {name: hints.get(name, Any) for name in inspect.signature(function).parameters}


def _spec(name: str, function: Function, hints: Mapping[str, Any]) -> dict[str, Json]:
    signature = inspect.signature(function)
    schemas, shared = msgspec.json.schema_components(hints.values(), ref_template="#/$defs/{name}")
    properties: dict[str, Json] = {}
    for parameter, schema in zip(hints, schemas, strict=True):
        default = signature.parameters[parameter].default
        properties[parameter] = wanted = dict(schema)
        if default is not inspect.Parameter.empty and default is not None:
            wanted["default"] = msgspec.to_builtins(default)
    parameters: dict[str, Json] = {"type": "object", "properties": properties}
    required = [
        parameter
        for parameter in hints
        if signature.parameters[parameter].default is inspect.Parameter.empty
    ]
    if required:
        parameters["required"] = required
    if shared:
        parameters["$defs"] = shared
    parameters["additionalProperties"] = False
    description = inspect.getdoc(function) or ""
    return {"name": name, "description": description, "parameters": parameters}


def _convert(arguments: dict[str, Json], hints: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(arguments.keys() - hints.keys())
    if unknown:
        raise msgspec.ValidationError(f"no such argument: {', '.join(unknown)}")
    return {name: msgspec.convert(value, hints[name]) for name, value in arguments.items()}


def _call(name: str, function: Function, given: Mapping[str, Any]) -> Answered | LostCall:
    try:
        value = function(**given)
        if inspect.iscoroutine(value):
            import asyncio

            value = asyncio.run(value)
    except Exception as error:
        # Whatever a tool raises is what it answers: a model would be told the same.
        return Answered(_failure(f"{type(error).__name__}: {error}"))
    try:
        return Answered(parse_json(msgspec.json.encode(value)))
    except (TypeError, ValueError, NotJson) as error:
        return LostCall(f"{name}: returned what JSON cannot hold: {error}")


def _failure(what: str) -> dict[str, Json]:
    return {"ok": False, "error": what}


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
    problems = Problems()
    for line in filled_lines(path):
        where = f"{path}:{line.number}"
        try:
            yield _call_of(object_of(line.json), where)
        except NotJson as error:
            problems.add(where, str(error))
    problems.raise_if_any()


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
