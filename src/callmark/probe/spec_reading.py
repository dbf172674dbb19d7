"""Plain values → the records of a spec. Everything that is wrong is named with its field."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from callmark.calls.schema import SchemaError, compiled
from callmark.core.jsontext import MAX_DEPTH, Json, well_formed
from callmark.probe.spec import (
    KINDS,
    FidelitySpec,
    NullAdapterSpec,
    SchemaMode,
    SuiteEntry,
    ToolUseCase,
)
from callmark.store.problems import MAX_PROBLEMS, field_path, listed, shown, typed_problem

Where = tuple[str | int, ...]
Record = TypeVar("Record", bound=msgspec.Struct)

MOST_VALUES = 2_000_000  # of one spec; what unfolds to more is no spec


class Problem(msgspec.Struct, frozen=True):
    where: Where
    what: str

    def __str__(self) -> str:
        field = field_path(self.where)
        return f"{field}: {self.what}" if field else self.what


class Problems:
    """Makes records, and collects what stands in the way."""

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self._values = 0

    def add(self, where: Where, what: str) -> None:
        self.found.append(Problem(where, what))

    def plain(self, value: Json, where: Where = ()) -> Json:
        """The value if JSON could hold it, without lone surrogates."""
        self._values += 1
        match value:
            case None | bool() | int():
                return value
            case str():
                return well_formed(value)
            case float() if math.isfinite(value):
                return value
            case float():
                self.add(where, f"must be a finite number, not {value}")
            case _ if len(where) > MAX_DEPTH or self._values > MOST_VALUES:
                if len(self.found) < MAX_PROBLEMS:
                    self.add(where[:4], "is nested too deeply, or into itself")
            case list() | tuple():
                return [self.plain(entry, (*where, at)) for at, entry in enumerate(value)]
            case Mapping():
                return {
                    self._key(key, where): self.plain(entry, (*where, str(key)))
                    for key, entry in value.items()
                }
            case _:
                what = f"a {type(value).__name__} is no value that JSON knows: put it in quotes"
                self.add(where, what)
        return None

    def record(self, value: Json, kind: type[Record], where: Where) -> Record | None:
        """A plain value as a record, or None and what is wrong with it."""
        before = len(self.found)
        if not isinstance(value, dict):
            self.add(where, f"must be an object, not {shown(value)}")
            return None
        for field, given in value.items():
            self._check_field(field, given, kind, where)
        if len(self.found) > before:
            return None
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            field, _, what = typed_problem(error).partition(": ")
            self.add((*where, *_path(field)), what)
            return None

    def _check_field(self, field: str, given: Json, kind: type[Record], where: Where) -> None:
        known = kind.__struct_fields__
        if field not in known:
            near = get_close_matches(field, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            self.add((*where, field), f"unknown field; {hint}")
            return
        options = _options_of(kind, field)
        if options and given not in options:
            self.add((*where, field), f"must be {listed(options)}, not {shown(given)}")

    def _key(self, key: Json, where: Where) -> str:
        if isinstance(key, str):
            return well_formed(key)
        self.add((*where, str(key)), f"the key must be a string: put {shown(key)} in quotes")
        return str(key)


def suite_entry_of(value: Json, problems: Problems, where: Where) -> SuiteEntry | None:
    """One entry of a suite, from a plain value."""
    if not isinstance(value, dict):
        problems.add(where, f"must be an object with a kind, not {shown(value)}")
        return None
    kind = value.get("kind")
    if kind is None:
        problems.add((*where, "kind"), f"is missing: {listed([*KINDS])}")
        return None
    if not isinstance(kind, str) or kind not in KINDS:
        problems.add((*where, "kind"), f"must be {listed([*KINDS])}, not {shown(kind)}")
        return None
    if KINDS[kind] is NullAdapterSpec:
        return problems.record(value, NullAdapterSpec, where)
    return fidelity_spec_of(value, problems, where)


def fidelity_spec_of(
    value: dict[str, Json], problems: Problems, where: Where = ()
) -> FidelitySpec | None:
    """The spec of one fidelity probe, its cases checked one by one."""
    cases = cases_of(value.get("cases"), problems, (*where, "cases"))
    rest = {field: given for field, given in value.items() if field != "cases"}
    spec = problems.record(rest, FidelitySpec, where)
    if spec is None:
        return None
    check_tools(cases, spec.schema, problems, (*where, "cases"))
    return msgspec.structs.replace(spec, cases=cases)


def cases_of(value: Json, problems: Problems, where: Where) -> tuple[ToolUseCase, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        problems.add(where, f"must be a list of cases, not {shown(value)}")
        return ()
    found = (problems.record(given, ToolUseCase, (*where, at)) for at, given in enumerate(value))
    return tuple(case for case in found if case is not None)


def check_tools(
    cases: Sequence[ToolUseCase], mode: SchemaMode, problems: Problems, where: Where
) -> None:
    """Names the tools that no call could be checked against."""
    for at, case in enumerate(cases):
        for path, what in _tool_problems(case, mode):
            problems.add((*where, at, "tool_spec", *path), what)


def _tool_problems(case: ToolUseCase, mode: SchemaMode) -> Iterator[tuple[Where, str]]:
    parameters = case.function.get("parameters")
    if not isinstance(parameters, dict | None):
        yield ("parameters",), f"must be an object, not {shown(parameters)}"
    elif mode == "minimal":
        yield from _minimal_problems(parameters or {})
    else:
        try:
            compiled(parameters or {})
        except SchemaError as error:
            yield ("parameters",), str(error)


def _minimal_problems(parameters: dict[str, Json]) -> Iterator[tuple[Where, str]]:
    properties, required = parameters.get("properties"), parameters.get("required")
    if not isinstance(properties, dict | None):
        what = f"must be an object, not {shown(properties)}"
        yield ("parameters", "properties"), what
    names = [] if required is None else required
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        yield ("parameters", "required"), f"must be a list of names, not {shown(required)}"


def _options_of(kind: type[msgspec.Struct], field: str) -> tuple[str, ...]:
    """The words that a field may hold, where only certain words are allowed."""
    hint = get_type_hints(kind)[field]
    options = get_args(hint) if get_origin(hint) is Literal else ()
    return tuple(option for option in options if isinstance(option, str))


def _path(field: str) -> Where:
    """`cases[0].prompt` as ("cases", 0, "prompt")."""
    parts = field.replace("[", ".").replace("]", "").split(".")
    return tuple(int(part) if part.isdecimal() else part for part in parts if part)
