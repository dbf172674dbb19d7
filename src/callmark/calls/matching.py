"""Which observed call is which expected one: by name and normalised arguments, one to one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from callmark.calls.names import NotPlainError, fold_spaces, plain_value
from callmark.calls.normalise import NormalisedCall, canonical_name, normalise
from callmark.calls.registry import Registry
from callmark.calls.schema import shorten
from callmark.records.jsontext import Json, canonical_json, want_object
from callmark.records.samples import ExpectedCall
from callmark.records.trace import TraceEntry

Path = tuple[str, ...]
Accept = Mapping[Path, tuple[Json, ...]]
_NOTHING: Mapping[Any, Any] = MappingProxyType({})  # to stand for none of whatever kind


class Expected(msgspec.Struct, frozen=True):
    """`key` None: only the name is expected. `accept` holds, by path, the other values that are
    right there (None: it may be absent); `optional` the top-level keys that may be absent, `free`
    those of them that may have any value, as none is expected. `lenient`: texts are compared
    without case, white space and the kind of quotation marks."""

    name: str
    key: dict[str, Json] | None
    key_json: str
    accept: Accept
    optional: frozenset[str]
    free: frozenset[str]
    lenient: bool = False


class ObservedCall(msgspec.Struct, frozen=True):
    """`key` None: the call was malformed, so that no expected call matches it. `given` are the
    arguments that the model itself wrote."""

    name: str | None
    key: dict[str, Json] | None
    key_json: str
    given: Mapping[str, Json]


def expected_call(call: ExpectedCall, registry: Registry) -> Expected:
    normal = None
    if call.arguments is not None:
        normal = normalise(call.name, call.arguments, registry=registry)
    if normal is None:
        name = canonical_name(call.name, registry=registry)
        return Expected(name, None, "", _NOTHING, frozenset(), frozenset())
    key, key_json = _fold(normal)
    if not call.accept and not call.optional:
        return Expected(
            normal.name, key, key_json, _NOTHING, frozenset(), frozenset(), call.lenient
        )
    accept: dict[Path, tuple[Json, ...]] = {}
    for pointer, values in call.accept.items():
        path = _path(pointer)
        accept[path] = tuple(_accept(normal.name, path, value, registry) for value in values)
    optional = frozenset(call.optional)
    return Expected(
        normal.name,
        key,
        key_json,
        accept,
        optional,
        optional.difference(call.arguments or ()),
        call.lenient,
    )


def observed_call(entry: TraceEntry, registry: Registry, known: Collection[str]) -> ObservedCall:
    if entry.name is None:
        return ObservedCall(None, None, "", _NOTHING)
    normal = None
    if entry.status != "malformed":
        normal = normalise(entry.name, entry.arguments, registry=registry, known_names=known)
    if normal is None:
        name = canonical_name(entry.name, registry=registry, known_names=known)
        return ObservedCall(name, None, "", _NOTHING)
    key, key_json = _fold(normal)
    return ObservedCall(normal.name, key, key_json, want_object(entry.arguments))


def match_calls(wanted: Sequence[Expected], seen: Sequence[ObservedCall]) -> dict[int, int]:
    """A largest one-to-one matching: index of the expected call → index of the observed one. Each
    in order takes the first free one; where that blocks another, calls are exchanged."""
    # A call with accepted variants may fit several: greedy alone would lose a match that there is.
    fits = [[at for at, call in enumerate(seen) if is_same_call(want, call)] for want in wanted]
    owner: dict[int, int] = {}
    for want in range(len(wanted)):
        free = next((at for at in fits[want] if at not in owner), None)
        if free is not None:
            owner[free] = want
        elif fits[want]:
            _augment(want, fits, owner)
    return {want: at for at, want in owner.items()}


def describe_call(call: Expected | ObservedCall) -> str:
    """`name {arguments}` for people."""
    arguments = call.key_json or (
        "(any arguments)" if isinstance(call, Expected) else "(malformed)"
    )
    return shorten(f"{call.name or '(no name)'} {arguments}")


def _augment(start: int, fits: Sequence[Sequence[int]], owner: dict[int, int]) -> None:
    """Find a chain of exchanges that gives `start` a call and takes none away, if there is one."""
    came_from: dict[int, int] = {}
    queue = [start]
    for want in queue:
        for at in fits[want]:
            if at in came_from:
                continue
            came_from[at] = want
            if at in owner:
                queue.append(owner[at])
                continue
            _exchange(at, start, came_from, owner)
            return


def _exchange(at: int, start: int, came_from: dict[int, int], owner: dict[int, int]) -> None:
    while True:
        want = came_from[at]
        given_up = next((seen for seen, holder in owner.items() if holder == want), None)
        owner[at] = want
        if want == start or given_up is None:
            return
        at = given_up


def is_same_call(want: Expected, call: ObservedCall) -> bool:
    """Whether the call is the expected one, in one of the ways in which it may be written."""
    if call.key is None or want.name != call.name:
        return False
    if want.key is None or want.key_json == call.key_json:
        return True
    if want.lenient:
        return is_same_call(_loosen_expected(want, want.key), _loosen_observed(call, call.key))
    if not want.accept and not want.optional:
        return False
    root = want.accept.get(())
    if root is not None and call.key_json in map(canonical_json, root):
        return True
    skipped = want.free.union(key for key in want.optional if call.given.get(key) is None)
    names = (want.key.keys() | call.key.keys()) - skipped
    return all(_member_fits(want.key, call.key, (name,), want.accept) for name in names)


_QUOTES = str.maketrans(dict.fromkeys("'`´‘’‚‛“”„‟«»‹›", '"'))


def _loosen(value: Json) -> Json:
    """Keys stay as they are: they are the tool's own words."""
    if isinstance(value, str):
        return "".join(value.translate(_QUOTES).casefold().split())
    if isinstance(value, dict):
        return {key: _loosen(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_loosen(entry) for entry in value]
    return value


def _loosen_expected(want: Expected, key: dict[str, Json]) -> Expected:
    loose = _loosen(key)
    accept = {path: tuple(map(_loosen, values)) for path, values in want.accept.items()}
    return msgspec.structs.replace(
        want, key=loose, key_json=canonical_json(loose), accept=accept, lenient=False
    )


def _loosen_observed(call: ObservedCall, key: dict[str, Json]) -> ObservedCall:
    loose = _loosen(key)
    return msgspec.structs.replace(call, key=loose, key_json=canonical_json(loose))


def _member_fits(
    want: Mapping[str, Json], found: Mapping[str, Json], path: Path, accept: Accept
) -> bool:
    """Whether the member that the path ends in is the expected or an accepted one."""
    name, accepted = path[-1], accept.get(path, ())
    if name not in found:
        return None in accepted
    if any(_same(value, found[name]) for value in accepted):
        return True
    return name in want and _value_fits(want[name], found[name], path, accept)


def _value_fits(want: Json, found: Json, path: Path, accept: Accept) -> bool:
    if isinstance(want, list) and isinstance(found, list):
        want, found = _number(want), _number(found)
    if isinstance(want, dict) and isinstance(found, dict):
        names = want.keys() | found.keys()
        return all(_member_fits(want, found, (*path, name), accept) for name in names)
    return _same(want, found)


def _number(values: list[Json]) -> dict[str, Json]:
    return {str(at): value for at, value in enumerate(values)}


def _same(one: Json, other: Json) -> bool:
    # Not `==`: true is not 1.
    return canonical_json(one) == canonical_json(other)


def _fold(call: NormalisedCall) -> tuple[dict[str, Json], str]:
    """The key with white space folded in every string; most keys have none to fold."""
    folded = {key: _fold_strings(member) for key, member in call.key.items()}
    if folded == call.key:
        return call.key, call.key_json
    return folded, canonical_json(folded)


def _fold_strings(value: Json) -> Json:
    if isinstance(value, str):
        return fold_spaces(value)
    if isinstance(value, dict):
        return {key: _fold_strings(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_fold_strings(entry) for entry in value]
    return value


def _accept(name: str, path: Path, value: Json, registry: Registry) -> Json:
    """An accepted value in the form that observed values have after the normaliser."""
    if value is None:
        return None
    if len(path) <= 1:
        whole = normalise(name, {path[0]: value} if path else value, registry=registry)
        if whole is not None:
            return _fold_strings(whole.key.get(path[0]) if path else whole.key)
    try:
        return _fold_strings(plain_value(value))
    except (NotPlainError, RecursionError):
        return value


def _path(pointer: str) -> Path:
    """A JSON pointer as its parts. A pointer without its first slash is a top-level key."""
    if not pointer:
        return ()
    parts = pointer.removeprefix("/").split("/")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)
