"""What is probed: the records of a spec. `spec_reading` makes them from plain values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_type_hints

import msgspec
import yaml

from callmark.calls.formats import named_formats
from callmark.calls.registry import spec_slips
from callmark.calls.schema import SchemaError, compile_once
from callmark.errors import BadInput, UsageError
from callmark.records.jsontext import MAX_DEPTH, Json, NotJson, want_object, well_formed
from callmark.records.problems import (
    KeySet,
    Problems,
    field_path,
    join_or,
    show_value,
    typed_problem,
    word_problem,
    words_of,
)
from callmark.run.offers import installed_formats
from callmark.store.files import is_blank, lines_of, open_input, parse_line

SchemaMode = Literal["full", "minimal"]

_Positive = Annotated[int, msgspec.Meta(ge=1)]
_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Seed = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
MAX_NULLS = 1000


class ToolUseCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One prompt, the tool that its call is checked against (an OpenAI-style function, plain or
    wrapped), and the tool that should be called; None: no call should be made. `other_tools` are
    offered beside it."""

    prompt: str
    tool_spec: dict[str, Json]
    gold_tool_name: _Name | None
    max_new_tokens: _Positive = 256
    other_tools: tuple[dict[str, Json], ...] = ()

    @property
    def function(self) -> dict[str, Json]:
        inner = self.tool_spec.get("function")
        return inner if isinstance(inner, dict) else self.tool_spec

    @property
    def offered(self) -> frozenset[str]:
        """The names of all tools that the prompt shows."""
        others = (want_object(one.get("function", one)).get("name") for one in self.other_tools)
        named = (self.function.get("name", self.gold_tool_name), *others)
        return frozenset(name for name in named if isinstance(name, str))

    @property
    def parameters(self) -> dict[str, Json]:
        return want_object(self.function.get("parameters"))


class FidelitySpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`kind: tool_use_fidelity`. `allowed_tools` None: each call must name its case's own tool;
    a list (also an empty one) is the whole surface. `schema`: `full` is JSON Schema and any call
    format, `minimal` required keys and plain type tags of a JSON object with a name and an object
    of `arguments`. `ordered_lists`: lists with another order disagree. `expect_format`: the
    format that the tuned model's calls should have; None: that of the base's."""

    kind: Literal["tool_use_fidelity"] = "tool_use_fidelity"
    name: _Name = "tool_use_fidelity"
    cases: tuple[ToolUseCase, ...] = ()
    allowed_tools: tuple[str, ...] | None = None
    assert_validity_delta_gte: Annotated[float, msgspec.Meta(ge=-1, le=1)] = -0.05
    assert_hallucination_lte: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.10
    assert_z_gte: float = 3.0
    weight: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    assert_format_kept_gte: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.95
    expect_format: _Name | None = None
    schema: SchemaMode = "full"
    ordered_lists: bool = False


class NullAdapterSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`kind: null_adapter`. How many random adapters of the trained one's shape are made, for
    each multiple of its rank, and how: `matched` keeps the singular values of each update with
    random directions, `init_scale` draws both factors from N(0, init_scale)."""

    kind: Literal["null_adapter"] = "null_adapter"
    name: _Name = "null_adapter"
    runs: Annotated[int, msgspec.Meta(ge=1, le=MAX_NULLS)] = 5
    method: Literal["matched", "init_scale"] = "matched"
    init_scale: Annotated[float, msgspec.Meta(gt=0)] = 0.02
    rank_multipliers: tuple[Annotated[float, msgspec.Meta(gt=0)], ...] = (1.0,)


SuiteEntry = FidelitySpec | NullAdapterSpec
KINDS: dict[str, type[SuiteEntry]] = {
    "null_adapter": NullAdapterSpec,
    "tool_use_fidelity": FidelitySpec,
}


ModelKind = Literal["hf", "openai", "openai_responses", "anthropic_messages"]


class ModelSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One view's model. `hf`: a local checkpoint, `adapter` on top of it if there is one;
    `openai` (chat completions) or the name of another runner: the model of that name behind
    `endpoint`. `dtype`: of a local one's weights; None: as the settings say."""

    kind: ModelKind = "hf"
    base: _Name
    adapter: _Name | None = None
    endpoint: _Name | None = None
    dtype: Literal["float32", "bfloat16", "float16"] | None = None


class Models(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    base: ModelSpec
    ft: ModelSpec


class Defaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    seed: _Seed = 0


class ProbeSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole spec file."""

    version: Literal[1]
    models: Models
    defaults: Defaults = Defaults()
    suite: tuple[SuiteEntry, ...] = ()


def calibration_spec() -> FidelitySpec:
    """Two trivial cases, for nulls where the user has no cases of his own."""
    query = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    number = {"type": "number"}
    sum_of = {
        "type": "object",
        "properties": {"a": number, "b": number},
        "required": ["a", "b"],
    }
    return FidelitySpec(
        name="_calibration",
        cases=(
            ToolUseCase(
                prompt="Search the web for the capital of France.",
                tool_spec={"name": "search_web", "parameters": query},
                gold_tool_name="search_web",
            ),
            ToolUseCase(
                prompt="Add 2 and 2.",
                tool_spec={"name": "calculator", "parameters": sum_of},
                gold_tool_name="calculator",
            ),
        ),
    )


Where = tuple[str | int, ...]
Record = TypeVar("Record", bound=msgspec.Struct)

MOST_VALUES = 2_000_000  # of one spec; what unfolds to more is no spec


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
        **dict.fromkeys(("distractors", "others"), "other_tools"),
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


class SpecReader:
    """Makes records, and collects what stands in the way. `place`: of a path, for messages."""

    def __init__(self, place: Callable[[Where], str] = field_path) -> None:
        self.problems = Problems()
        self._place = place
        self._values = 0

    def add(self, where: Where, what: str) -> None:
        self.problems.add(self._place(where), what)

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
                if not self.problems.is_enough:
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
        before = self.problems.count
        if not isinstance(value, dict):
            self.add(where, f"must be an object, not {show_value(value)}")
            return None
        for field, given in value.items():
            self._check_field(field, given, kind, where)
        if self.problems.count > before:
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
        self.add((*where, str(key)), f"the key must be a string: put {show_value(key)} in quotes")
        return str(key)


def suite_entry_of(value: Json, reader: SpecReader, where: Where) -> SuiteEntry | None:
    """One entry of a suite, from a plain value."""
    if not isinstance(value, dict):
        reader.add(where, f"must be an object with a kind, not {show_value(value)}")
        return None
    kind = value.get("kind")
    if kind is None:
        reader.add((*where, "kind"), f"is missing: {join_or([*KINDS])}")
        return None
    if not isinstance(kind, str) or kind not in KINDS:
        reader.add((*where, "kind"), word_problem([*KINDS], kind))
        return None
    if KINDS[kind] is NullAdapterSpec:
        return reader.record(value, NullAdapterSpec, where)
    return fidelity_spec_of(value, reader, where)


def fidelity_spec_of(
    value: dict[str, Json], reader: SpecReader, where: Where = ()
) -> FidelitySpec | None:
    """The spec of one fidelity probe, its cases checked one by one."""
    cases = cases_of(value.get("cases"), reader, (*where, "cases"))
    rest = {field: given for field, given in value.items() if field != "cases"}
    spec = reader.record(rest, FidelitySpec, where)
    if spec is None:
        return None
    check_tools(cases, spec.schema, reader, (*where, "cases"))
    check_format(spec, reader, where)
    return msgspec.structs.replace(spec, cases=cases)


def cases_of(value: Json, reader: SpecReader, where: Where) -> tuple[ToolUseCase, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        reader.add(where, f"must be a list of cases, not {show_value(value)}")
        return ()
    found = (reader.record(given, ToolUseCase, (*where, at)) for at, given in enumerate(value))
    return tuple(case for case in found if case is not None)


def check_tools(
    cases: Sequence[ToolUseCase], mode: SchemaMode, reader: SpecReader, where: Where
) -> None:
    """Names the tools that no call could be checked against."""
    for at, case in enumerate(cases):
        for path, what in _tool_problems(case, mode):
            reader.add((*where, at, "tool_spec", *path), what)
        for number, what in _other_problems(case):
            reader.add((*where, at, "other_tools", number), what)


def check_format(spec: FidelitySpec, reader: SpecReader, where: Where) -> None:
    if spec.expect_format is not None:
        try:
            expected_formats(spec.expect_format)
        except UsageError as error:
            reader.add((*where, "expect_format"), str(error))


# A fence around JSON is no other format than JSON without one.
_FAMILIES = {"bare": "json", "fenced": "json"}


def family_of(format_name: str) -> str:
    """Formats that a reader would call the same have one name."""
    return _FAMILIES.get(format_name, format_name)


def expected_formats(name: str, option: str | None = None) -> frozenset[str]:
    """The families that a format's name stands for, a model family's too; raises UsageError."""
    formats = installed_formats()
    try:
        return frozenset(family_of(row.name) for row in named_formats(name, formats))
    except UsageError:
        known = ", ".join(dict.fromkeys(family_of(row.name) for row in formats))
        what = f"{name!r} is no call format; known: {known}"
        raise UsageError(what if option is None else f"{option}: {what}") from None


def _tool_problems(case: ToolUseCase, mode: SchemaMode) -> Iterator[tuple[Where, str]]:
    for slip in spec_slips(case.tool_spec):
        yield (), slip
    parameters = case.function.get("parameters")
    if not isinstance(parameters, dict | None):
        yield ("parameters",), f"must be an object, not {show_value(parameters)}"
    elif mode == "minimal":
        yield from _minimal_problems(parameters or {})
    else:
        try:
            compile_once(parameters or {})
        except SchemaError as error:
            yield ("parameters",), str(error)


def _other_problems(case: ToolUseCase) -> Iterator[tuple[int, str]]:
    """Tools beside the right one are offered, never checked against: a name is all they need."""
    own = case.function.get("name")
    names = {own if isinstance(own, str) else case.gold_tool_name}
    for number, other in enumerate(case.other_tools):
        inner = other.get("function", other)
        name = inner.get("name") if isinstance(inner, dict) else None
        if not isinstance(name, str) or not name:
            yield number, "must be a tool with a name"
        elif name in names:
            yield number, f"{name} is offered already"
        else:
            names.add(name)
            yield from ((number, slip) for slip in spec_slips(other))


def _minimal_problems(parameters: dict[str, Json]) -> Iterator[tuple[Where, str]]:
    properties, required = parameters.get("properties"), parameters.get("required")
    if not isinstance(properties, dict | None):
        what = f"must be an object, not {show_value(properties)}"
        yield ("parameters", "properties"), what
    names = [] if required is None else required
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        yield ("parameters", "required"), f"must be a list of names, not {show_value(required)}"


def _path(field: str) -> Where:
    """`cases[0].prompt` as ("cases", 0, "prompt")."""
    parts = field.replace("[", ".").replace("]", "").split(".")
    return tuple(int(part) if part.isdecimal() else part for part in parts if part)


VERSION = "1"


class _Document(msgspec.Struct, frozen=True):
    """What a YAML file holds, and the line of everything in it."""

    path: Path
    value: Json
    lines: dict[Where, int]

    def place(self, where: Where) -> str:
        known = (self.lines.get(where[:size]) for size in range(len(where), -1, -1))
        return _place(self.path, next(filter(None, known), 1), where)


def read_spec(path: Path) -> ProbeSpec:
    """A spec for `callmark probe`. BadInput names up to 20 mistakes, each with its line."""
    document = _read_yaml(path)
    reader = SpecReader(document.place)
    value = reader.plain(document.value)
    spec = None if reader.problems.count else _spec_of(value, reader)
    if spec is None or reader.problems.count:
        raise BadInput(reader.problems.found)
    return spec


def read_cases(path: Path, mode: SchemaMode = "full") -> tuple[ToolUseCase, ...]:
    """Cases in a file of their own: JSON lines, or a YAML or JSON list (also below `cases`)."""
    if path.suffix == ".jsonl":
        return _cases_of_lines(path, mode)
    document = _read_yaml(path)
    reader = SpecReader(document.place)
    value = reader.plain(document.value)
    where: Where = ()
    if isinstance(value, list) and value:
        _refuse_dataset(value[0], path)
    if isinstance(value, dict) and isinstance(value.get("cases"), list):
        value, where = value["cases"], ("cases",)
    cases = () if reader.problems.count else cases_of(value, reader, where)
    check_tools(cases, mode, reader, where)
    reader.problems.raise_if_any()
    return _some(cases, path)


def _cases_of_lines(path: Path, mode: SchemaMode) -> tuple[ToolUseCase, ...]:
    found: list[ToolUseCase] = []
    problems = Problems()
    with open_input(path) as stream:
        for line in lines_of(stream, str(path)):
            if is_blank(line.json) or problems.is_enough:
                continue
            reader = SpecReader(partial(_place_of_case, path, line.number))
            try:
                value = reader.plain(parse_line(line.json))
            except NotJson as error:
                reader.add((), str(error))
            else:
                _refuse_dataset(value, path)
                case = reader.record(value, ToolUseCase, ())
                if case is not None:
                    found.append(case)
                    check_tools([case], mode, reader, ())
            problems.add("", reader.problems.found)
    problems.raise_if_any()
    return _some(tuple(found), path)


def _refuse_dataset(entry: Json, path: Path) -> None:
    if isinstance(entry, dict) and ("__header__" in entry or "metadata" in entry):
        raise BadInput(
            f"{path}: is a dataset, no file of cases: give it with --dataset, and its fixtures with"
            " --fixtures"
        )


def _place(path: Path, line: int, where: Where) -> str:
    field = field_path(where)
    return f"{path}:{line}: {field}" if field else f"{path}:{line}"


def _place_of_case(path: Path, line: int, where: Where) -> str:
    """A line holds one case: its number in a list of one says nothing."""
    return _place(path, line, where[1:] if where[:1] == (0,) else where)


def _some(cases: tuple[ToolUseCase, ...], path: Path) -> tuple[ToolUseCase, ...]:
    if not cases:
        raise BadInput(f"{path}:1: has no cases: each needs prompt, tool_spec and gold_tool_name")
    return cases


def _spec_of(value: Json, reader: SpecReader) -> ProbeSpec | None:
    if not isinstance(value, dict):
        reader.add((), "must hold `version`, `models` and `suite`")
        return None
    for field in value:
        if field not in ProbeSpec.__struct_fields__:
            reader.add((field,), keys_of(ProbeSpec).refusal(field, value.keys()))
    version = show_value(value.get("version"))
    if version != VERSION:
        reader.add(("version",), f"must be {VERSION}, not {version}")
    models = _models_of(value.get("models"), reader)
    defaults = reader.record(value.get("defaults") or {}, Defaults, ("defaults",))
    suite = _suite_of(value.get("suite"), reader)
    if models is None or defaults is None or reader.problems.count:
        return None
    return ProbeSpec(version=1, models=models, defaults=defaults, suite=suite)


def _models_of(value: Json, reader: SpecReader) -> Models | None:
    if not isinstance(value, dict) or value.keys() != {"base", "ft"}:
        fields = value.keys() if isinstance(value, dict) else ()
        for field in fields:
            if field not in Models.__struct_fields__:
                reader.add(("models", field), keys_of(Models).refusal(field, fields))
        reader.add(("models",), "must name two models, base and ft, and nothing else")
        return None
    base, tuned = (_model_of(value[view], reader, ("models", view)) for view in ("base", "ft"))
    if base is None or tuned is None:
        return None
    return Models(base=base, ft=tuned)


def _model_of(value: Json, reader: SpecReader, where: Where) -> ModelSpec | None:
    """A string is a local checkpoint."""
    if isinstance(value, str):
        value = {"base": value}
    model = reader.record(value, ModelSpec, where)
    if model is None:
        return None
    if model.kind != "hf" and model.adapter is not None:
        reader.add((*where, "adapter"), "a served model takes no adapter: name the tuned model")
    if model.kind == "hf" and model.endpoint is not None:
        reader.add((*where, "endpoint"), "only served models (kind openai, …) have one")
    if model.kind != "hf" and model.dtype is not None:
        reader.add((*where, "dtype"), "a server chooses it: only local models have one here")
    return model


def _suite_of(value: Json, reader: SpecReader) -> tuple[SuiteEntry, ...]:
    if not isinstance(value, list) or not value:
        reader.add(("suite",), "must be a list with at least one probe")
        return ()
    found: list[SuiteEntry] = []
    names: dict[str, int] = {}
    for at, given in enumerate(value):
        entry = suite_entry_of(given, reader, ("suite", at))
        if entry is None:
            continue
        if names.setdefault(entry.name, at) != at:
            what = f"is the name of suite[{names[entry.name]}] too"
            reader.add(("suite", at, "name"), what)
        found.append(entry)
    nulls = [at for at, given in enumerate(value) if _is_null_adapter(given)]
    if len(nulls) > 1:
        reader.add(("suite", nulls[1]), "a second null_adapter: one calibrates all probes")
    return tuple(found)


def _is_null_adapter(given: Json) -> bool:
    return isinstance(given, dict) and given.get("kind") == "null_adapter"


def _read_yaml(path: Path) -> _Document:
    with open_input(path) as stream:
        data = stream.read()
    try:
        loader = yaml.SafeLoader(data)
        try:
            node = loader.get_single_node()
            lines = dict(_lines(path, node))
            value = None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise BadInput(f"{path}:{line}: not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(f"{path}:1: not YAML: {first}") from None
    return _Document(path, value, lines)


def _lines(path: Path, node: yaml.Node | None) -> Iterator[tuple[Where, int]]:
    """Where everything stands. YAML would let a second key win without a word, and aliases grow
    into more than fits into any memory: both are refused."""
    if node is None:
        return
    stack: list[tuple[Where, yaml.Node, int]] = [((), node, node.start_mark.line + 1)]
    visited = 0
    while stack:
        where, at, line = stack.pop()
        yield where, line
        visited += 1
        if visited > MOST_VALUES // 10 or len(where) > 200:
            raise BadInput(f"{path}:{line}: aliases unfold to too much, or into themselves")
        if isinstance(at, yaml.MappingNode):
            stack.extend(_members(path, where, at))
        elif isinstance(at, yaml.SequenceNode):
            stack.extend(
                ((*where, number), entry, entry.start_mark.line + 1)
                for number, entry in enumerate(at.value)
            )


def _members(
    path: Path, where: Where, node: yaml.MappingNode
) -> Iterator[tuple[Where, yaml.Node, int]]:
    seen: dict[str, int] = {}
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name in seen:
            place = _place(path, line, (*where, name))
            raise BadInput(f"{place}: stands on line {seen[name]} too")
        seen[name] = line
        yield (*where, name), value, line
