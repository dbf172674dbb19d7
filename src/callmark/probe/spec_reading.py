"""Plain values → the records of a spec. Everything that is wrong is named with its field."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TypeVar, get_type_hints

import msgspec

from callmark.calls.registry import spec_slips
from callmark.calls.schema import SchemaError, compiled
from callmark.core.jsontext import MAX_DEPTH, Json, well_formed
from callmark.core.keys import KeySet
from callmark.probe.spec import (
    KINDS,
    Defaults,
    FidelitySpec,
    Models,
    ModelSpec,
    NullAdapterSpec,
    ProbeSpec,
    SchemaMode,
    SuiteEntry,
    ToolUseCase,
)
from callmark.store.problems import (
    MAX_PROBLEMS,
    field_path,
    listed,
    shown,
    typed_problem,
    word_problem,
    words_of,
)

Where = tuple[str | int, ...]
Record = TypeVar("Record", bound=msgspec.Struct)

MOST_VALUES = 2_000_000  # of one spec; what unfolds to more is no spec


class SpecProblem(msgspec.Struct, frozen=True):
    where: Where
    what: str

    def __str__(self) -> str:
        field = field_path(self.where)
        return f"{field}: {self.what}" if field else self.what


_ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(ToolUseCase.__struct_fields__, "a case"),
    **dict.fromkeys(NullAdapterSpec.__struct_fields__, "the entry of kind null_adapter"),
    **dict.fromkeys(FidelitySpec.__struct_fields__, "an entry of suite"),
    **dict.fromkeys(ModelSpec.__struct_fields__, "models.base or models.ft"),
    **dict.fromkeys(Defaults.__struct_fields__, "defaults"),
    **dict.fromkeys(ProbeSpec.__struct_fields__, "the top level of the spec"),
}
# `base` is a view and the model of one; `kind` and `name` say nothing of where they belong.
_ANYWHERE = ("base", "kind", "name", "version")
_SYNONYMS: dict[type[msgspec.Struct], dict[str, str]] = {
    ToolUseCase: {
        **dict.fromkeys(("tool", "tools", "function", "spec", "schema"), "tool_spec"),
        **dict.fromkeys(
            ("expectedtool", "goldtool", "toolname", "gold", "expected", "name"), "gold_tool_name"
        ),
        **dict.fromkeys(("question", "input", "messages", "text", "query"), "prompt"),
        **dict.fromkeys(("maxtokens",), "max_new_tokens"),
    },
    FidelitySpec: {
        **dict.fromkeys(("tools", "allowed"), "allowed_tools"),
        **dict.fromkeys(("samples", "items", "prompts"), "cases"),
    },
    NullAdapterSpec: {**dict.fromkeys(("k", "n", "count", "numruns", "nulls"), "runs")},
    ModelSpec: {
        **dict.fromkeys(("model", "path", "checkpoint", "name"), "base"),
        **dict.fromkeys(("baseurl", "url", "apibase"), "endpoint"),
        **dict.fromkeys(("lora", "peft"), "adapter"),
        **dict.fromkeys(("type", "runner"), "kind"),
    },
    Models: dict.fromkeys(("tuned", "finetuned", "finetune", "adapter", "tunedmodel"), "ft"),
    ProbeSpec: {**dict.fromkeys(("probes", "tests", "suites"), "suite"), "model": "models"},
}


@cache
def keys_of(kind: type[msgspec.Struct]) -> KeySet:
    """The fields of a record of a spec, and where those of the others belong."""
    known = kind.__struct_fields__
    return KeySet(
        known=known,
        synonyms=_SYNONYMS.get(kind, {}),
        elsewhere={
            field: place
            for field, place in _ELSEWHERE.items()
            if field not in known and field not in _ANYWHERE
        },
    )


class SpecProblems:
    """Makes records, and collects what stands in the way."""

    def __init__(self) -> None:
        self.found: list[SpecProblem] = []
        self._values = 0

    def add(self, where: Where, what: str) -> None:
        self.found.append(SpecProblem(where, what))

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
        if field not in kind.__struct_fields__:
            self.add((*where, field), keys_of(kind).refusal(field))
            return
        if problem := word_problem(words_of(get_type_hints(kind)[field]), given):
            self.add((*where, field), problem)

    def _key(self, key: Json, where: Where) -> str:
        if isinstance(key, str):
            return well_formed(key)
        self.add((*where, str(key)), f"the key must be a string: put {shown(key)} in quotes")
        return str(key)


def suite_entry_of(value: Json, problems: SpecProblems, where: Where) -> SuiteEntry | None:
    """One entry of a suite, from a plain value."""
    if not isinstance(value, dict):
        problems.add(where, f"must be an object with a kind, not {shown(value)}")
        return None
    kind = value.get("kind")
    if kind is None:
        problems.add((*where, "kind"), f"is missing: {listed([*KINDS])}")
        return None
    if not isinstance(kind, str) or kind not in KINDS:
        problems.add((*where, "kind"), word_problem([*KINDS], kind))
        return None
    if KINDS[kind] is NullAdapterSpec:
        return problems.record(value, NullAdapterSpec, where)
    return fidelity_spec_of(value, problems, where)


def fidelity_spec_of(
    value: dict[str, Json], problems: SpecProblems, where: Where = ()
) -> FidelitySpec | None:
    """The spec of one fidelity probe, its cases checked one by one."""
    cases = cases_of(value.get("cases"), problems, (*where, "cases"))
    rest = {field: given for field, given in value.items() if field != "cases"}
    spec = problems.record(rest, FidelitySpec, where)
    if spec is None:
        return None
    check_tools(cases, spec.schema, problems, (*where, "cases"))
    return msgspec.structs.replace(spec, cases=cases)


def cases_of(value: Json, problems: SpecProblems, where: Where) -> tuple[ToolUseCase, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        problems.add(where, f"must be a list of cases, not {shown(value)}")
        return ()
    found = (problems.record(given, ToolUseCase, (*where, at)) for at, given in enumerate(value))
    return tuple(case for case in found if case is not None)


def check_tools(
    cases: Sequence[ToolUseCase], mode: SchemaMode, problems: SpecProblems, where: Where
) -> None:
    """Names the tools that no call could be checked against."""
    for at, case in enumerate(cases):
        for path, what in _tool_problems(case, mode):
            problems.add((*where, at, "tool_spec", *path), what)


def _tool_problems(case: ToolUseCase, mode: SchemaMode) -> Iterator[tuple[Where, str]]:
    for slip in spec_slips(case.tool_spec):
        yield (), slip
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


def _path(field: str) -> Where:
    """`cases[0].prompt` as ("cases", 0, "prompt")."""
    parts = field.replace("[", ".").replace("]", "").split(".")
    return tuple(int(part) if part.isdecimal() else part for part in parts if part)
