"""Names become objects: a built-in table first, then the entry points of installed packages."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from traceback import walk_tb
from typing import Any

from callmark.errors import UsageError

RUNNERS = {
    "openai_http": "callmark.runners.http.runner:open_openai",
    "hf_local": "callmark.runners.hf.local:open_local",
    "replay": "callmark.runners.replay:open_replay",
}
ENGINES = {
    "local": "callmark.shards.run:open_players",
    "ray": "callmark.shards.run:open_players",
}
RUNNER_GROUP = "callmark.runners"
FORMAT_GROUP = "callmark.formats"


def find_runner(name: str) -> Any:
    """The factory of the runner of this name; built-in ones cannot be replaced."""
    return _find(name, RUNNERS, RUNNER_GROUP, "--runner")


def find_players(engine: str) -> Any:
    """Who has the trials of a run played by this engine: what opens them, given its config."""
    return _load_builtin(ENGINES[engine])


def runner_names() -> tuple[str, ...]:
    return _names(RUNNERS, RUNNER_GROUP)


def with_formats(builtin: tuple[Any, ...]) -> tuple[Any, ...]:
    """The rows of the table of call formats: the built-in ones, then those of other packages in
    the order of their names. An entry point is one row or several, all of its own name."""
    points = sorted(entry_points(group=FORMAT_GROUP), key=lambda point: (point.name, _owner(point)))
    rows = list(builtin)
    for point in points:
        if any(row.name == point.name for row in rows):
            raise UsageError(f"{_format(point)}: there is a format of this name already")
        rows += _rows(point, type(builtin[0]))
    return builtin if len(rows) == len(builtin) else tuple(rows)


def plugin_behind(error: BaseException) -> str | None:
    """Which plug-in raised this; None if it was callmark. Of all frames of both the innermost
    decides: a plug-in may call us as well."""
    homes: dict[Path, str | None] = {Path(__file__).parent: None}
    for group, kind in ((RUNNER_GROUP, "the runner"), (FORMAT_GROUP, "the call format")):
        for point in entry_points(group=group):
            home = _home(point)
            if home is not None:
                homes[home] = f"{kind} {point.name!r} of {_owner(point)}"
    for frame, _ in reversed(list(walk_tb(error.__traceback__))):
        file = Path(frame.f_code.co_filename)
        for home, name in homes.items():
            if file == home or home in file.parents:
                return name
    return None


def _home(point: EntryPoint) -> Path | None:
    """The folder of a loaded plug-in's package, or its only file."""
    module = sys.modules.get(point.module.partition(".")[0])
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    return Path(file).parent if Path(file).name == "__init__.py" else Path(file)


def _rows(point: EntryPoint, kind: type[Any]) -> Iterator[Any]:
    loaded = _load(point, _format(point))
    for row in [loaded] if isinstance(loaded, kind) else loaded:
        if not isinstance(row, kind) or row.name != point.name:
            raise UsageError(f"{_format(point)}: {row!r} is no {kind.__name__} of this name")
        try:
            re.compile(row.opening)
        except re.error as error:
            raise UsageError(f"{_format(point)}: opening: {error}") from None
        yield row


def _format(point: EntryPoint) -> str:
    return f"call format {point.name!r} of {_owner(point)}"


def _find(name: str, builtin: Mapping[str, str], group: str, option: str) -> Any:
    # First, so that no installed package can put itself in the place of what ships.
    if name in builtin:
        return _load_builtin(builtin[name])
    found = [point for point in entry_points(group=group) if point.name == name]
    if not found:
        known = ", ".join(_names(builtin, group))
        raise UsageError(f"{option}: there is no {name!r}; there is: {known}")
    # Which of two packages was meant must not depend on the order in which they were installed.
    if len(found) > 1:
        owners = ", ".join(sorted(_owner(point) for point in found))
        raise UsageError(f"{option}: {name!r} is offered by several packages: {owners}")
    return _load(found[0], f"{option}: {name!r} of {_owner(found[0])}")


def _load_builtin(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def _load(point: EntryPoint, what: str) -> Any:
    try:
        return point.load()
    except Exception as error:  # its code is run, and may do anything
        reason = str(error) if isinstance(error, ImportError | AttributeError) else repr(error)
        raise UsageError(f"{what} cannot be loaded: {reason}") from error


def _names(builtin: Mapping[str, str], group: str) -> tuple[str, ...]:
    return tuple(sorted({*builtin, *(point.name for point in entry_points(group=group))}))


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
