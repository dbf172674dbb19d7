"""Names become objects: a built-in table first, then the entry points of installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from toolmark.errors import UsageError

RUNNERS = {
    "hf_local": "toolmark.runners.hf_local:open_local",
    "replay": "toolmark.runners.replay:open_replay",
}
RUNNER_GROUP = "toolmark.runners"


def find_runner(name: str) -> Any:
    """The factory of the runner of this name; built-in ones cannot be replaced."""
    return _find(name, RUNNERS, RUNNER_GROUP, "--runner")


def runner_names() -> tuple[str, ...]:
    return _names(RUNNERS, RUNNER_GROUP)


def _find(name: str, builtin: Mapping[str, str], group: str, option: str) -> Any:
    if name in builtin:
        module, _, attribute = builtin[name].partition(":")
        return getattr(import_module(module), attribute)
    found = [point for point in entry_points(group=group) if point.name == name]
    if not found:
        known = ", ".join(_names(builtin, group))
        raise UsageError(f"{option}: there is no {name!r}; there is: {known}")
    if len(found) > 1:
        owners = ", ".join(sorted(_owner(point) for point in found))
        raise UsageError(f"{option}: {name!r} is offered by several packages: {owners}")
    try:
        return found[0].load()
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"{option}: {name!r} of {_owner(found[0])} cannot be loaded: {error}"
        ) from None


def _names(builtin: Mapping[str, str], group: str) -> tuple[str, ...]:
    return tuple(sorted({*builtin, *(point.name for point in entry_points(group=group))}))


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
