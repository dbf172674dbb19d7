"""The registry that an import builds: the specs of a source, one tool per name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from callmark.calls.registry import Registry
from callmark.core.jsontext import Json, NotJson, canonical_json, digest, parse_json
from callmark.datasets.importing.notes import Notes
from callmark.errors import BadInput

Spec = dict[str, Json]

REMEMBERED = 1024  # different offers; most sources have a handful
_OTHER_NAMES_OF_PARAMETERS = ("inputSchema", "input_schema")
_ANYTHING: Spec = {"type": "object"}


class SourceOffer(msgspec.Struct, frozen=True):
    """What one sample is offered. `names`: from the source's names to the registry's; `listed`
    None: the source does not say, so the whole registry is offered."""

    names: Mapping[str, str]
    registry: Registry
    listed: tuple[str, ...] | None


class ToolCatalogue:
    """The same name with the same spec is one tool; with another spec it is another tool, and
    gets a name of its own: `area`, `area__2`, `area__3`."""

    def __init__(self, notes: Notes, given: Iterable[Spec] = ()) -> None:
        self._notes = notes
        self._specs: dict[str, Spec] = {}
        self._known: dict[tuple[str, str], str] = {}
        self._offers: dict[str, SourceOffer] = {}
        for spec in given:
            self._named(spec, line=0)
        self._given = bool(self._specs)

    @property
    def specs(self) -> list[Spec]:
        return [self._specs[name] for name in sorted(self._specs)]

    def registry(self) -> Registry:
        return Registry.from_specs(self.specs, where="the tools of the source")

    def offer(self, tools: Sequence[Json], line: int) -> SourceOffer:
        """The tools that one entry of the source lists."""
        key = digest(list(tools))
        found = self._offers.get(key)
        if found is None:
            if len(self._offers) == REMEMBERED:
                self._offers.clear()
            found = self._offers[key] = self._offered(tools, line)
        return found

    def called(self, names: Iterable[str], line: int) -> SourceOffer:
        """Where the source lists no tools: those that are called, with or without a spec."""
        used: dict[str, str] = {}
        for name in names:
            if name not in self._specs:
                self._specs[name] = {"name": name, "description": "", "parameters": _ANYTHING}
                self._notes.add("tool_without_schema", line, name)
            used[name] = name
        specs = self.specs if self._given else [self._specs[name] for name in sorted(used)]
        return SourceOffer(used, Registry.from_specs(specs, where="the tools of the source"), None)

    def _offered(self, tools: Sequence[Json], line: int) -> SourceOffer:
        names: dict[str, str] = {}
        for raw in tools:
            spec = self._usable(raw, line)
            if spec is None:
                continue
            if spec["name"] in names:
                self._notes.add("bad_tool", line, f"{spec['name']}: a second tool of this name")
                continue
            names[spec["name"]] = self._named(spec, line)
        offered = [self._specs[name] for name in names.values()]
        registry = Registry.from_specs(offered, where="the tools of the source")
        return SourceOffer(names, registry, tuple(names.values()))

    def _usable(self, raw: Json, line: int) -> Spec | None:
        """The spec as a registry takes it, or the nearest that it takes."""
        inner = raw.get("function") if isinstance(raw, dict) else None
        function = inner if isinstance(inner, dict) else raw
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(name, str) or not name.strip():
            self._notes.add("bad_tool", line, "a tool without a name")
            return None
        spec = {key: value for key, value in function.items() if value is not None}
        for other in _OTHER_NAMES_OF_PARAMETERS:
            if other in spec:
                spec.setdefault("parameters", spec[other])
                del spec[other]
        try:
            Registry.from_specs([spec], where="tools")
            parse_json(canonical_json([spec]))  # as deep as a file of specs may be
        except (BadInput, NotJson) as error:
            self._notes.add("bad_tool", line, str(error).removeprefix("tools: tool 1: "))
            return {"name": name, "description": "", "parameters": _ANYTHING}
        return spec

    def _named(self, spec: Spec, line: int) -> str:
        name: str = spec["name"]
        key = (name, digest(spec))
        if key in self._known:
            return self._known[key]
        own, number = name, 1
        while own in self._specs:
            number += 1
            own = f"{name}__{number}"
        if own != name:
            self._notes.add("tool_renamed", line, f"{name} is {own}")
        self._known[key] = own
        self._specs[own] = {**spec, "name": own}
        return own
