"""Which tools a fixture folder serves, and how each is described to a client."""

from __future__ import annotations

from pathlib import Path

from callmark.broker.broker import ToolBroker
from callmark.calls.registry import Registry
from callmark.core.jsontext import Json
from callmark.recording.folder import REGISTRY
from callmark.recording.wire import spec_to_wire
from callmark.running.offers import open_registry

ANYTHING: dict[str, Json] = {"type": "object"}


def open_served(folder: Path, registry_path: str | None) -> ToolBroker:
    """The folder with all its tools: those of the registry, then those that only fixtures name."""
    registry = _registry_of(folder, registry_path)
    broker = ToolBroker(folder, registry)
    unknown = sorted(broker.index.by_tool.keys() - set(registry.names))
    if not unknown:
        return broker
    more = [{"name": name, "parameters": ANYTHING} for name in unknown]
    specs = [*(spec.function for spec in registry.specs), *more]
    return ToolBroker(folder, Registry.from_specs(specs, where=str(folder)))


def listed(broker: ToolBroker) -> list[dict[str, Json]]:
    """`tools/list`, in the order of the names."""
    registry = broker.registry
    return [] if registry is None else [spec_to_wire(spec) for spec in registry.specs]


def _registry_of(folder: Path, path: str | None) -> Registry:
    """What was recorded with the fixtures; else the built-in tools that they name."""
    own = folder / REGISTRY
    if path is not None or own.exists():
        return open_registry(path or str(own))
    builtin = open_registry(None)
    named = ToolBroker(folder, builtin).index.by_tool
    return Registry(spec for spec in builtin.specs if spec.name in named)
