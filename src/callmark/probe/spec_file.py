"""Spec files and files of cases: YAML, JSON or JSON lines, every mistake with its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import yaml

from callmark.core.jsontext import Json, NotJson
from callmark.errors import BadInput
from callmark.probe.spec import (
    Defaults,
    Models,
    ModelSpec,
    ProbeSpec,
    SchemaMode,
    SuiteEntry,
    ToolUseCase,
)
from callmark.probe.spec_reading import (
    MOST_VALUES,
    SpecProblem,
    SpecProblems,
    Where,
    cases_of,
    check_tools,
    keys_of,
    suite_entry_of,
)
from callmark.store.jsonl import is_blank, lines_of, open_input, parse_line
from callmark.store.problems import MAX_PROBLEMS, shown

VERSION = "1"


class _Document(msgspec.Struct, frozen=True):
    """What a YAML file holds, and the line of everything in it."""

    path: Path
    value: Json
    lines: dict[Where, int]

    def refusal(self, problems: Iterable[SpecProblem]) -> BadInput:
        return BadInput([self._located(problem) for problem in problems][:MAX_PROBLEMS])

    def _located(self, problem: SpecProblem) -> str:
        where = problem.where
        known = (self.lines.get(where[:size]) for size in range(len(where), -1, -1))
        line = next(filter(None, known), 1)
        return f"{self.path}:{line}: {problem}"


def read_spec(path: Path) -> ProbeSpec:
    """A spec for `callmark probe`. BadInput names up to 20 mistakes, each with its line."""
    document = _read_yaml(path)
    problems = SpecProblems()
    value = problems.plain(document.value)
    spec = None if problems.found else _spec_of(value, problems)
    if spec is None or problems.found:
        raise document.refusal(problems.found)
    return spec


def read_cases(path: Path, mode: SchemaMode = "full") -> tuple[ToolUseCase, ...]:
    """Cases in a file of their own: JSON lines, or a YAML or JSON list (also below `cases`)."""
    if path.suffix == ".jsonl":
        return _cases_of_lines(path, mode)
    document = _read_yaml(path)
    problems = SpecProblems()
    value = problems.plain(document.value)
    where: Where = ()
    if isinstance(value, list) and value:
        _refuse_dataset(value[0], path)
    if isinstance(value, dict) and isinstance(value.get("cases"), list):
        value, where = value["cases"], ("cases",)
    cases = () if problems.found else cases_of(value, problems, where)
    check_tools(cases, mode, problems, where)
    if problems.found:
        raise document.refusal(problems.found)
    return _some(cases, path)


def _cases_of_lines(path: Path, mode: SchemaMode) -> tuple[ToolUseCase, ...]:
    found: list[ToolUseCase] = []
    refused: list[str] = []
    with open_input(path) as stream:
        for line in lines_of(stream, str(path)):
            if is_blank(line.json) or len(refused) >= MAX_PROBLEMS:
                continue
            problems = SpecProblems()
            try:
                value = problems.plain(parse_line(line.json))
            except NotJson as error:
                problems.add((), str(error))
            else:
                _refuse_dataset(value, path)
                case = problems.record(value, ToolUseCase, ())
                if case is not None:
                    found.append(case)
                    check_tools([case], mode, problems, ())
            refused += [f"{path}:{line.number}: {_without_place(one)}" for one in problems.found]
    if refused:
        raise BadInput(refused[:MAX_PROBLEMS])
    return _some(tuple(found), path)


def _refuse_dataset(entry: Json, path: Path) -> None:
    if isinstance(entry, dict) and ("__header__" in entry or "metadata" in entry):
        raise BadInput(
            f"{path}: is a dataset, no file of cases: give it with --dataset, and its fixtures with"
            " --fixtures"
        )


def _without_place(problem: SpecProblem) -> SpecProblem:
    """A line holds one case: its number in a list of one says nothing."""
    where = problem.where
    return msgspec.structs.replace(problem, where=where[1:]) if where[:1] == (0,) else problem


def _some(cases: tuple[ToolUseCase, ...], path: Path) -> tuple[ToolUseCase, ...]:
    if not cases:
        raise BadInput(f"{path}:1: holds no case: each has prompt, tool_spec and gold_tool_name")
    return cases


def _spec_of(value: Json, problems: SpecProblems) -> ProbeSpec | None:
    if not isinstance(value, dict):
        problems.add((), "must hold `version`, `models` and `suite`")
        return None
    for field in value:
        if field not in ProbeSpec.__struct_fields__:
            problems.add((field,), keys_of(ProbeSpec).refusal(field, value.keys()))
    version = shown(value.get("version"))
    if version != VERSION:
        problems.add(("version",), f"must be {VERSION}, not {version}")
    models = _models_of(value.get("models"), problems)
    defaults = problems.record(value.get("defaults") or {}, Defaults, ("defaults",))
    suite = _suite_of(value.get("suite"), problems)
    if models is None or defaults is None or problems.found:
        return None
    return ProbeSpec(version=1, models=models, defaults=defaults, suite=suite)


def _models_of(value: Json, problems: SpecProblems) -> Models | None:
    if not isinstance(value, dict) or value.keys() != {"base", "ft"}:
        for field in value if isinstance(value, dict) else ():
            if field not in Models.__struct_fields__:
                problems.add(("models", field), keys_of(Models).refusal(field, value.keys()))
        problems.add(("models",), "must name two models, base and ft, and nothing else")
        return None
    base, tuned = (_model_of(value[view], problems, ("models", view)) for view in ("base", "ft"))
    if base is None or tuned is None:
        return None
    return Models(base=base, ft=tuned)


def _model_of(value: Json, problems: SpecProblems, where: Where) -> ModelSpec | None:
    """A string is a local checkpoint."""
    if isinstance(value, str):
        value = {"base": value}
    model = problems.record(value, ModelSpec, where)
    if model is None:
        return None
    if model.kind == "openai" and model.adapter is not None:
        problems.add((*where, "adapter"), "a served model takes no adapter: name the tuned model")
    if model.kind == "hf" and model.endpoint is not None:
        problems.add((*where, "endpoint"), "only models of kind openai have one")
    return model


def _suite_of(value: Json, problems: SpecProblems) -> tuple[SuiteEntry, ...]:
    if not isinstance(value, list) or not value:
        problems.add(("suite",), "must be a list with at least one probe")
        return ()
    found: list[SuiteEntry] = []
    names: dict[str, int] = {}
    for at, given in enumerate(value):
        entry = suite_entry_of(given, problems, ("suite", at))
        if entry is None:
            continue
        if names.setdefault(entry.name, at) != at:
            what = f"is the name of suite[{names[entry.name]}] too"
            problems.add(("suite", at, "name"), what)
        found.append(entry)
    nulls = [at for at, given in enumerate(value) if _is_null_adapter(given)]
    if len(nulls) > 1:
        problems.add(("suite", nulls[1]), "a second null_adapter: one calibrates all probes")
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
            problem = SpecProblem((*where, name), f"stands on line {seen[name]} too")
            raise BadInput(f"{path}:{line}: {problem}")
        seen[name] = line
        yield (*where, name), value, line
