"""What ships with the package, and files of the same shapes that a user names."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec

from toolmark.core.jsontext import Json, NotJson, parse_json
from toolmark.errors import BadInput


class DemoPaths(msgspec.Struct, frozen=True):
    dataset: Path
    fixtures: Path
    answers: Path


def data_path(*parts: str) -> Path:
    return Path(str(files("toolmark")), "data", *parts)


def demo_paths() -> DemoPaths:
    return DemoPaths(
        dataset=data_path("demo", "dataset.jsonl"),
        fixtures=data_path("fixtures"),
        answers=data_path("demo", "answers.jsonl"),
    )


def default_config() -> dict[str, Json]:
    """The shipped `config/eval.default.yaml`."""
    import yaml

    config: dict[str, Json] = yaml.safe_load(default_config_path().read_text("utf-8"))
    return config


def default_config_path() -> Path:
    return data_path("config", "eval.default.yaml")


def config_template() -> str:
    return data_path("config", "toolmark.template.yaml").read_text("utf-8")


def schema(name: Literal["eval_prompt", "eval_result"]) -> Json:
    return _read_json(data_path("schemas", f"{name}.schema.json"))


def builtin_tools() -> Json:
    """The specs of the built-in tools."""
    return _read_json(data_path("tools", "builtin.json"))


def allowlist(path: Path | None = None) -> tuple[str, ...]:
    """The tools that may be offered: a list of names, or `{"tools": [names]}`."""
    path = path or data_path("config", "tools.allowlist.json")
    value = _read_json(path)
    names = value.get("tools") if isinstance(value, dict) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadInput(f'{path}: must be a list of tool names, or {{"tools": [names]}}')
    return tuple(names)


def load_registry_file(path: Path) -> Json:
    """The specs of a registry: what a JSON file holds, or {name: spec} of a folder of them."""
    if not path.is_dir():
        return _read_json(path)
    found: dict[str, Json] = {}
    origin: dict[str, Path] = {}
    problems: list[str] = []
    for file in sorted(path.glob("*.json")):
        for name, spec in _named_specs(file, problems):
            if name in found:
                problems.append(f"{file}: {name}: the tool is also in {origin[name]}")
            found.setdefault(name, spec)
            origin.setdefault(name, file)
    if not found and not problems:
        problems.append(f"{path}: holds no *.json file with a tool in it")
    if problems:
        raise BadInput(problems)
    return found


def _named_specs(file: Path, problems: list[str]) -> Iterator[tuple[str, Json]]:
    try:
        specs = _read_json(file)
    except BadInput as error:
        problems.extend(error.problems)
        return
    if isinstance(specs, dict) and isinstance(specs.get("tools"), list):
        specs = specs["tools"]
    for at, spec in enumerate(specs if isinstance(specs, list) else [specs], start=1):
        name = _name_of(spec)
        if name is None:
            problems.append(f"{file}: tool {at}: name: is missing")
        else:
            yield name, spec


def _name_of(spec: Json) -> str | None:
    inner = spec.get("function", spec) if isinstance(spec, dict) else None
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) and name else None


def _read_json(path: Path) -> Json:
    try:
        return parse_json(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file or folder") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder, a JSON file is needed") from None
    except (OSError, ValueError) as error:
        if isinstance(error, NotJson):
            raise BadInput(f"{path}: {error}") from None
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{path}: cannot be read: {reason}") from None
