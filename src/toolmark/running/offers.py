"""The tools of a run: the registry, which of them are allowed, what each sample is offered."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec

from toolmark.broker.broker import ToolBroker
from toolmark.calls.normalise import normalise
from toolmark.calls.registry import Registry
from toolmark.core.jsontext import Json, digest, parse_json
from toolmark.core.protocols import Hit, Miss
from toolmark.core.samples import Sample
from toolmark.datasets.reader import Dataset
from toolmark.errors import BadInput
from toolmark.resources import allowlist, builtin_tools, load_registry_file

REMEMBERED = 1024  # different offers; most datasets have a handful


class Offer(msgspec.Struct, frozen=True):
    """What one sample is offered: names, the specs that a model is sent, and their hash."""

    registry: Registry
    names: frozenset[str]
    tools: list[dict[str, Json]]
    sha256: str


class Offers:
    """Every sample is offered its own tools or the whole registry, never only the expected ones."""

    def __init__(self, registry: Registry, allowed: frozenset[str]) -> None:
        self.registry = registry
        self.allowed = allowed
        self._offer = lru_cache(REMEMBERED)(self._made)

    def to(self, sample: Sample) -> Offer:
        return self._offer(sample.expectation.tools)

    def _made(self, given: tuple[str, ...] | None) -> Offer:
        wanted = self.registry.names if given is None else given
        resolved = (self.registry.resolve(name) for name in wanted)
        names = sorted({name for name in resolved if name is not None} & self.allowed)
        specs = {spec.name: spec.function for spec in self.registry.specs if spec.name in names}
        tools = self.registry.openai_tools(names)
        return Offer(self.registry, frozenset(names), tools, digest(specs))


def open_registry(path: str | None) -> Registry:
    """The built-in tools, or those of a file or folder."""
    if path is None:
        return Registry.from_specs(builtin_tools(), where="the built-in tools")
    return Registry.from_specs(load_registry_file(Path(path)), where=path)


def open_offers(registry_path: str | None, allowlist_path: str | None) -> Offers:
    """The shipped allowlist is about the built-in tools; another registry needs its own."""
    registry = open_registry(registry_path)
    if registry_path is not None and allowlist_path is None:
        return Offers(registry, frozenset(registry.names))
    names = allowlist(None if allowlist_path is None else Path(allowlist_path))
    unknown = [name for name in names if registry.resolve(name) is None]
    if unknown and allowlist_path is not None:
        raise BadInput(
            f"{allowlist_path}: tools: {', '.join(map(repr, unknown))}: no such tool in the"
            f" registry, which has {', '.join(registry.names)}"
        )
    resolved = (registry.resolve(name) for name in names)
    return Offers(registry, frozenset(name for name in resolved if name is not None))


def check_tools(dataset: Dataset, offers: Offers) -> list[str]:
    """Refuses samples that name tools nobody has, and warns of expected calls that no model could
    make because their tool is not offered."""
    registry = offers.registry
    problems = [
        f"{dataset.name}: metadata.tools: {name!r} (samples: {count}) is no tool of the registry,"
        f" which has {', '.join(registry.names)}; name another one with --registry"
        for name, count in dataset.facts.offered.items()
        if registry.resolve(name) is None
    ]
    if problems:
        raise BadInput(problems[:20])
    return [
        f"calls of {name!r} are expected (samples: {count}), but no sample is ever offered it"
        for name, count in dataset.facts.tools.items()
        if registry.resolve(name) not in offers.allowed
    ]


class NoFixtures:
    """The tools of a run without fixtures: what was not recorded is missed, and counted."""

    fixtures_sha256: str | None = None

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def session(self, sample_id: str | None = None) -> NoFixtures:
        return self

    def answer(self, name: str, arguments: Json) -> Hit | Miss:
        call = normalise(name, arguments, registry=self._registry)
        return Miss(name, arguments, None if call is None else parse_json(call.key_json))


def open_source(fixtures: str | None, registry: Registry) -> ToolBroker | NoFixtures:
    return NoFixtures(registry) if fixtures is None else ToolBroker(fixtures, registry)
