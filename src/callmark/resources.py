"""What ships with the package, and files of the same shapes that a user names."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec

from callmark.errors import BadInput
from callmark.records.jsontext import (
    Json,
    Locate,
    NotJson,
    PathInJson,
    line_of,
    parse_json,
    repeated_name,
    want_object,
)
from callmark.records.problems import Problems
from callmark.store.files import read_input


class DemoPaths(msgspec.Struct, frozen=True):
    dataset: Path
    fixtures: Path
    answers: Path
    registry: Path | None = None


class ShippedModel(msgspec.Struct, frozen=True):
    """The model that ships, the held-out dataset that it is evaluated on, its recorded results
    there, and the cases and adapters of the probe."""

    folder: Path
    dataset: Path
    fixtures: Path
    answers: Path
    cases: Path
    adapters: Path


class JsonFile(msgspec.Struct, frozen=True):
    """What one file holds, and the text that says on which line."""

    path: Path
    value: Json
    text: str

    def place(self, inside: PathInJson) -> str:
        return f"{self.path}:{line_of(self.text, inside)}"


class RegistryFile(msgspec.Struct, frozen=True):
    """Tool specs as a registry is made from them, and where each of them stands."""

    specs: Json
    locate: Locate


def data_path(*parts: str) -> Path:
    return Path(str(files("callmark")), "data", *parts)


def demo_paths() -> DemoPaths:
    return DemoPaths(
        dataset=data_path("demo", "dataset.jsonl"),
        fixtures=data_path("fixtures"),
        answers=data_path("demo", "answers.jsonl"),
    )


def starter_paths() -> DemoPaths:
    """A small evaluation to make one's own: what `callmark init` writes."""
    return DemoPaths(
        dataset=data_path("starter", "dataset.jsonl"),
        fixtures=data_path("starter", "fixtures"),
        answers=data_path("starter", "answers.jsonl"),
        registry=data_path("starter", "tools.json"),
    )


def shipped_model() -> ShippedModel:
    return ShippedModel(
        folder=data_path("tiny", "model"),
        dataset=data_path("tiny", "dataset.jsonl"),
        fixtures=data_path("fixtures"),
        answers=data_path("tiny", "answers.jsonl"),
        cases=data_path("tiny", "cases.jsonl"),
        adapters=data_path("tiny", "adapters"),
    )


def default_config() -> dict[str, Json]:
    """The shipped `config/eval.default.yaml`."""
    import yaml

    # Ten times faster, where it was built in; every command that judges starts with this.
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    config: dict[str, Json] = yaml.load(default_config_path().read_bytes(), loader)  # noqa: S506
    return config


def default_gates() -> dict[str, Json]:
    """The shipped gates: {name: {field: value}}."""
    return want_object(default_config()["gates"])


def default_config_path() -> Path:
    return data_path("config", "eval.default.yaml")


def config_template() -> str:
    return data_path("config", "callmark.template.yaml").read_text("utf-8")


def schema(name: Literal["eval_prompt", "eval_result"]) -> dict[str, Json]:
    return want_object(_read_json(data_path("schemas", f"{name}.schema.json")).value)


def builtin_tools() -> Json:
    """The specs of the built-in tools."""
    return _read_json(data_path("tools", "builtin.json")).value


def allowlist(path: Path | None = None) -> tuple[str, ...]:
    """The tools that may be offered: a list of names, or `{"tools": [names]}`."""
    file = _read_json(path or data_path("config", "tools.allowlist.json"))
    above: PathInJson = ("tools",) if isinstance(file.value, dict) else ()
    names = file.value.get("tools") if isinstance(file.value, dict) else file.value
    if not isinstance(names, list):
        what = 'must be a list of tool names, or {"tools": [names]}'
        raise BadInput(f"{file.place(above)}: {what}")
    problems = Problems()
    for at, name in enumerate(names):
        if not isinstance(name, str):
            what = f"entry {at + 1}: must be the name of a tool"
            problems.add(file.place((*above, at)), what)
    problems.raise_if_any()
    return tuple(names)


def load_registry_file(path: Path) -> RegistryFile:
    """The specs of a registry: what a JSON file holds, or {name: spec} of a folder of them."""
    if not path.is_dir():
        file = _read_json(path, " (a file of tools is one JSON value: see `callmark tools`)")
        return RegistryFile(file.value, file.place)
    found: dict[str, Json] = {}
    origin: dict[str, tuple[JsonFile, PathInJson]] = {}
    problems = Problems()

    def locate(inside: PathInJson) -> str:
        file, above = origin[str(inside[0])]
        return file.place((*above, *inside[1:]))

    for name in sorted(path.glob("*.json")):
        for tool, file, inside, spec in _named_specs(name, problems):
            if tool in found:
                problems.add(file.place(inside), f"{tool}: also stands at {locate((tool,))}")
            found.setdefault(tool, spec)
            origin.setdefault(tool, (file, inside))
    if not found and not problems.count:
        problems.add(str(path), "has no *.json file with a tool in it")
    problems.raise_if_any()
    return RegistryFile(found, locate)


def _named_specs(
    path: Path, problems: Problems
) -> Iterator[tuple[str, JsonFile, PathInJson, Json]]:
    """Name, file, place in it and spec of each tool in one file of a folder."""
    try:
        file = _read_json(path)
    except BadInput as error:
        problems.add("", error.problems)
        return
    for inside, spec in _specs_in(file.value):
        name = _name_of(spec)
        if name is None:
            number = f"tool {inside[-1] + 1}: " if inside and isinstance(inside[-1], int) else ""
            problems.add(file.place(inside), f"{number}name: is missing")
        else:
            yield name, file, inside, spec


def _specs_in(value: Json) -> Iterator[tuple[PathInJson, Json]]:
    match value:
        case {"tools": list(specs)}:
            yield from ((("tools", at), spec) for at, spec in enumerate(specs))
        case list(specs):
            yield from (((at,), spec) for at, spec in enumerate(specs))
        case spec:
            yield (), spec


def _name_of(spec: Json) -> str | None:
    inner = spec.get("function", spec) if isinstance(spec, dict) else None
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) and name else None


def _read_json(path: Path, else_what: str = "") -> JsonFile:
    """One JSON value. A name that stands there twice is refused: one of the two would be lost.
    `else_what`: what is said of something else."""
    data = read_input(path).removeprefix(b"\xef\xbb\xbf")
    try:
        file = JsonFile(path, parse_json(data), data.decode())
    except NotJson as error:
        raise BadInput(f"{path}:{error.line}: {error}{else_what}") from None
    repeated = repeated_name(file.text)
    if repeated is not None:
        (*_, name), line, before = repeated
        raise BadInput(f"{path}:{line}: {name!r}: stands on line {before} too")
    return file
