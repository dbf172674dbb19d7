"""Equal, as far as it matters: calls as the broker reads them, counts exactly, other numbers within
a tolerance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from callmark.calls.normalise import normalise
from callmark.calls.registry import Registry
from callmark.core.jsontext import Json, canonical_json, plain
from callmark.core.results import Result

_MOST_SHOWN = 120
_ABSENT = object()


class Tolerance(NamedTuple):
    """For numbers with a fraction; whole numbers are counts."""

    atol: float
    rtol: float

    def holds(self, ours: Json, theirs: Json) -> bool:
        if isinstance(ours, float) and isinstance(theirs, float):
            allowed = max(self.atol, self.rtol * max(abs(ours), abs(theirs)))
            return abs(ours - theirs) <= allowed
        return type(ours) is type(theirs) and bool(ours == theirs)


def differences(
    ours: Json, theirs: Json, tolerance: Tolerance, path: str = ""
) -> Iterator[tuple[str, Json]]:
    """(path, both values) of everything that differs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in {**ours, **theirs}:
            inner = f"{path}.{name}" if path else str(name)
            pair = ours.get(name, _ABSENT), theirs.get(name, _ABSENT)
            yield from differences(*pair, tolerance, inner)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for at, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(*pair, tolerance, f"{path}[{at}]")
    elif not tolerance.holds(ours, theirs):
        yield path, {"baseline": _there(ours), "sharded": _there(theirs)}


def examples(ours: Result, theirs: Result, tolerance: Tolerance, registry: Registry) -> str | None:
    """The first thing in which two results of one trial differ."""
    for path, values in differences(_view(ours, registry), _view(theirs, registry), tolerance):
        shown = [canonical_json(values[side])[:_MOST_SHOWN] for side in ("baseline", "sharded")]
        return f"{path} is {shown[0]} without shards, {shown[1]} with them"
    return None


def _view(result: Result, registry: Registry) -> dict[str, Json]:
    """A result without its fingerprints, which have a check of their own, and with every call in
    the words of the broker, which knows the tools of the run."""
    view: dict[str, Json] = plain(result)
    del view["fingerprints"]
    for entry, call in zip(view["tool_trace"], result.tool_trace, strict=True):
        normalised = normalise(call.name, call.arguments, registry=registry)
        if normalised is not None:
            entry["name"], entry["arguments"] = normalised.name, normalised.key
            entry.pop("raw", None)
    return view


def _there(value: Json) -> Json:
    return None if value is _ABSENT else value
