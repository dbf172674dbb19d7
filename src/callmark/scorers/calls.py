"""Were the right tools called with the right arguments, and did the model recover from errors?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import msgspec

from callmark.calls.attempts import NotPlainError, fold_spaces, plain_value
from callmark.calls.registry import NormalisedCall, Registry, canonical_name, normalise
from callmark.calls.schema import shorten
from callmark.records.jsontext import Json, canonical_json, want_object
from callmark.records.results import CallDifferences, CallScore
from callmark.records.samples import CALL_FREE, CallMatch, Expectation, ExpectedCall
from callmark.records.trace import RECORDED, Trace, TraceEntry

Path = tuple[str, ...]
Accept = Mapping[Path, tuple[Json, ...]]
_NOTHING: Mapping[Any, Any] = MappingProxyType({})  # to stand for none of whatever kind


class Expected(msgspec.Struct, frozen=True):
    """`key` None: only the name is expected. `accept` holds, by path, the other values that are
    right there (None: it may be absent); `optional` the top-level keys that may be absent, `free`
    those of them that may have any value, as none is expected. `lenient`: texts are compared
    without case, white space, the kind of quotation marks and the punctuation of dates, lists and
    formulas. `unordered` are the top-level keys whose lists have no order."""

    name: str
    key: dict[str, Json] | None
    key_json: str
    accept: Accept
    optional: frozenset[str]
    free: frozenset[str]
    lenient: bool = False
    unordered: frozenset[str] = frozenset()


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
    key, key_json = _fold(normal, registry)
    unordered = frozenset(call.unordered)
    if not call.accept and not call.optional:
        return Expected(
            normal.name, key, key_json, _NOTHING, frozenset(), frozenset(), call.lenient, unordered
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
        unordered,
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
    key, key_json = _fold(normal, registry)
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
    if want.unordered:
        return is_same_call(_order_expected(want, want.key), _order_observed(want, call, call.key))
    if not want.accept and not want.optional:
        return False
    root = want.accept.get(())
    if root is not None and call.key_json in map(canonical_json, root):
        return True
    skipped = want.free.union(key for key in want.optional if call.given.get(key) is None)
    names = (want.key.keys() | call.key.keys()) - skipped
    return all(_member_fits(want.key, call.key, (name,), want.accept) for name in names)


# A point between digits and a sign before a number say how much: they stay. Several points say a
# date or a version.
_PUNCTUATION = re.compile(r"[\s,/_*^]|(?<!\d)\.|\.(?!\d)|(?<=\w)-|-(?!\d)")
_POINTS = re.compile(r"(?<![\d.])\d++(?:\.\d++){2,}+(?!\.?\d)")
_QUOTES = str.maketrans(dict.fromkeys("'`´‘’‚‛“”„‟«»‹›", '"'))


def _loosen(value: Json) -> Json:
    """Keys stay as they are: they are the tool's own words."""
    if isinstance(value, str):
        folded = value.translate(_QUOTES).casefold()
        if folded.count(".") > 1:
            folded = _POINTS.sub(lambda found: found[0].replace(".", ""), folded)
        return _PUNCTUATION.sub("", folded)
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


def _order(key: Mapping[str, Json], unordered: frozenset[str]) -> dict[str, Json]:
    return {name: _sort(value) if name in unordered else value for name, value in key.items()}


def _order_expected(want: Expected, key: dict[str, Json]) -> Expected:
    ordered = _order(key, want.unordered)
    accept = {
        path: tuple(map(_sort, values)) if len(path) == 1 and path[0] in want.unordered else values
        for path, values in want.accept.items()
    }
    return msgspec.structs.replace(
        want,
        key=ordered,
        key_json=canonical_json(ordered),
        accept=accept,
        unordered=frozenset(),
    )


def _order_observed(want: Expected, call: ObservedCall, key: dict[str, Json]) -> ObservedCall:
    ordered = _order(key, want.unordered)
    return msgspec.structs.replace(call, key=ordered, key_json=canonical_json(ordered))


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


def _fold(call: NormalisedCall, registry: Registry) -> tuple[dict[str, Json], str]:
    """The key with white space folded in every string, and in a fixed order what the schema calls
    a set; most keys have neither."""
    sets = registry.sets(call.name)
    folded = {
        key: _sort(_fold_strings(member)) if key in sets else _fold_strings(member)
        for key, member in call.key.items()
    }
    if folded == call.key:
        return call.key, call.key_json
    return folded, canonical_json(folded)


def _sort(value: Json) -> Json:
    return sorted(value, key=canonical_json) if isinstance(value, list) else value


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
            folded, _ = _fold(whole, registry)
            return folded.get(path[0]) if path else folded
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


_REFUSED = {
    "malformed": "the call could not be read",
    "tool_not_offered": "the tool was not offered",
    "tool_not_allowed": "the tool is not allowed",
    "invalid_arguments": "the arguments do not fit the schema",
}
_ANSWERABLE = frozenset({"ok", "error", "miss"})
# A model that calls a thousand times is judged in full, but not listed in full.
_LISTED = 50


class CallsVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the trace says about calls. None: does not apply to this sample, or no data."""

    calls: CallScore
    call_f1: float | None
    multi_call_parity_ok: bool | None
    json_args_valid: bool | None
    recovered: bool | None
    gave_up_honestly: bool | None


def score_calls(
    expectation: Expectation,
    trace: Trace,
    *,
    registry: Registry,
    offered: frozenset[str] | None,
    admits_failure: bool = False,
) -> CallsVerdict:
    """`offered` None: every tool of the registry. `admits_failure`: the answer holds a failure
    word. Every attempt is an observed call, also one that was refused or could not be read."""
    entries = trace.tool_trace
    expected = () if expectation.kind in CALL_FREE else expectation.calls
    wanted = [expected_call(call, registry) for call in expected]
    known = frozenset(call.name for call in wanted) | (offered or frozenset())
    # Refused and unreadable calls count as made: else breaking a call would be cheaper than a wrong
    # one.
    seen = [observed_call(entry, registry, known) for entry in entries]
    problems = [
        attempt_errors(entry, call.name, registry=registry, offered=offered)
        for entry, call in zip(entries, seen, strict=True)
    ]
    recovered, gave_up = _recovery(expectation, trace, wanted, seen, admits_failure)
    # A call that went wrong by our doing and was made again is one call.
    made = _without_retried(trace, wanted, seen)
    told, steps = [seen[at] for at in made], steps_of([entries[at] for at in made])
    pairs, rule = match_calls(wanted, told), expectation.call_match
    differences = _differences(wanted, told, pairs, steps, rule)
    return CallsVerdict(
        calls=_call_score(wanted, entries, problems, len(pairs), differences),
        call_f1=2 * len(pairs) / (len(wanted) + len(told)) if wanted else None,
        multi_call_parity_ok=parity(wanted, told, steps, rule),
        json_args_valid=not any(problems) if entries else None,
        recovered=recovered,
        gave_up_honestly=gave_up,
    )


def _call_score(
    wanted: Sequence[Expected],
    entries: Sequence[TraceEntry],
    problems: Sequence[Sequence[str]],
    matched: int,
    differences: CallDifferences,
) -> CallScore:
    # What was recorded with a call was not looked up: neither a hit nor a miss of the fixtures.
    looked_up = [
        entry.status
        for entry, found in zip(entries, problems, strict=True)
        if not found and entry.status in _ANSWERABLE and entry.served_by != RECORDED
    ]
    misses = looked_up.count("miss")
    errors = [f"call {number}: {error}" for number, found in enumerate(problems) for error in found]
    return CallScore(
        expected=len(wanted),
        observed=len(entries),
        matched=matched,
        attempts=len(entries),
        valid_attempts=sum(not found for found in problems),
        looked_up=len(looked_up),
        hits=len(looked_up) - misses,
        misses=misses,
        wrong_calls=sum(entry.status == "wrong_call" for entry in entries),
        differences=differences,
        errors=_first_lines(errors),
    )


def _first_lines(lines: list[str]) -> tuple[str, ...]:
    if len(lines) <= _LISTED:
        return tuple(lines)
    return (*lines[:_LISTED], f"and {len(lines) - _LISTED} more")


def attempt_errors(
    entry: TraceEntry, name: str | None, *, registry: Registry, offered: frozenset[str] | None
) -> tuple[str, ...]:
    """() if the attempt was parsed strictly, its tool was offered and its arguments fit the
    schema. `name` is the canonical one."""
    refused = _REFUSED.get(entry.status)
    if refused is not None:
        return entry.schema_errors or (entry.reason or refused,)
    if name is None or not isinstance(entry.arguments, dict):
        return ("the call has no name" if name is None else "the arguments are no object",)
    known = registry.spec(name) is not None
    if not (known if offered is None else _is_offered(name, entry, registry, offered)):
        return (f"the tool {name} was not offered" if known else f"unknown tool {name}",)
    if entry.schema_errors is not None:
        return entry.schema_errors
    return registry.validate(name, entry.arguments) if known else ()


def parity(
    wanted: Sequence[Expected], seen: Sequence[ObservedCall], steps: Sequence[int], rule: CallMatch
) -> bool | None:
    """Same names, same number, same order; calls of one turn have no order. `unordered`: the same
    names in any order; `superset`: at least these, in any order. None unless it expects several."""
    # With one expected call there is no order to keep; call F1 judges it.
    if len(wanted) < 2:
        return None
    expected = [call.name for call in wanted]
    observed = [call.name or "" for call in seen]
    if rule == "superset":
        return not Counter(expected) - Counter(observed)
    if len(expected) != len(observed):
        return False
    if rule == "unordered":
        return Counter(expected) == Counter(observed)
    if expected == observed:
        return True
    return _in_steps(steps, expected) == _in_steps(steps, observed)


def _in_steps(steps: Sequence[int], names: Sequence[str]) -> list[tuple[int, str]]:
    return sorted(zip(steps, names, strict=True))


def steps_of(entries: Sequence[TraceEntry]) -> list[int]:
    """The step of each call: those of one turn share it, a call of unknown turn has its own."""
    steps: list[int] = []
    step, last = -1, None
    for entry in entries:
        if entry.turn is None or entry.turn != last:
            step += 1
        last = entry.turn
        steps.append(step)
    return steps


def _is_offered(name: str, entry: TraceEntry, registry: Registry, offered: frozenset[str]) -> bool:
    if name in offered or entry.name in offered:
        return True
    return any(canonical_name(one, registry=registry) == name for one in offered)


def _differences(
    wanted: Sequence[Expected],
    seen: Sequence[ObservedCall],
    pairs: dict[int, int],
    steps: Sequence[int],
    rule: CallMatch,
) -> CallDifferences:
    order = [steps[pairs[at]] for at in sorted(pairs)]
    reordered = rule == "exact" and any(later < earlier for earlier, later in pairwise(order))
    if len(pairs) == len(wanted) == len(seen):
        return _SAME if not reordered else CallDifferences(reordered=True)
    missing = [call for at, call in enumerate(wanted) if at not in pairs]
    taken = set(pairs.values())
    extra = [call for at, call in enumerate(seen) if at not in taken]
    differing: list[str] = []
    for call in list(missing):
        twin = next((other for other in extra if other.name == call.name), None)
        if twin is not None:
            differing.append(f"{describe_call(twin)} instead of {describe_call(call)}")
            missing.remove(call)
            extra.remove(twin)
    return CallDifferences(
        missing=_first_lines([describe_call(call) for call in missing]),
        extra=_first_lines([describe_call(call) for call in extra]),
        differing=_first_lines(differing),
        reordered=reordered,
    )


_SAME = CallDifferences()


def _recovery(
    expectation: Expectation,
    trace: Trace,
    wanted: Sequence[Expected],
    seen: Sequence[ObservedCall],
    admits_failure: bool,
) -> tuple[bool | None, bool | None]:
    """(recovered, gave up honestly). A retry sample on which no error was served has recovered
    if anything was served at all: there was nothing to recover from."""
    if not expectation.retry and not trace.faults:
        return None, None
    planted = not trace.faults or _recovered_from_faults(trace, wanted, seen)
    entries = trace.tool_trace
    failed = next((at for at, one in enumerate(entries) if _went_wrong(one)), None)
    if failed is None:
        return planted and any(entry.status == "ok" for entry in entries), False
    served = [
        seen[at].name for at in range(failed + 1, len(entries)) if _is_good(trace, failed, at)
    ]
    following = _next_expected(wanted, seen[: failed + 1])
    recovered = any(name is not None and name in (seen[failed].name, following) for name in served)
    return planted and recovered, not served and admits_failure


def _went_wrong(entry: TraceEntry) -> bool:
    return entry.status == "error" or entry.is_faulty


def _is_good(trace: Trace, failed: int, at: int) -> bool:
    entry = trace.tool_trace[at]
    return entry.status == "ok" and not entry.is_faulty and _is_later(trace, failed, at)


def _recovered_from_faults(
    trace: Trace, wanted: Sequence[Expected], seen: Sequence[ObservedCall]
) -> bool:
    """Each fault was met and what went wrong was tried again, with success. One that waits for a
    call which the model never made proves nothing: that is no recovery."""
    met = [at for at, entry in enumerate(trace.tool_trace) if entry.is_faulty]
    if len(met) < len(trace.faults):
        return False
    return all(_is_retried(trace, at, wanted, seen) for at in met)


def _is_retried(
    trace: Trace, failed: int, wanted: Sequence[Expected], seen: Sequence[ObservedCall]
) -> bool:
    """Whether a later call of the same tool was served, other than one that is expected anyway."""
    others = [call for call in wanted if not is_same_call(call, seen[failed])]
    return any(
        seen[at].name == seen[failed].name
        and _is_good(trace, failed, at)
        and not any(is_same_call(call, seen[at]) for call in others)
        for at in range(failed + 1, len(seen))
    )


def _without_retried(
    trace: Trace, wanted: Sequence[Expected], seen: Sequence[ObservedCall]
) -> list[int]:
    return [
        at
        for at, entry in enumerate(trace.tool_trace)
        if not (entry.is_faulty and _is_retried(trace, at, wanted, seen))
    ]


def _is_later(trace: Trace, failed: int, at: int) -> bool:
    # A call of the same turn was written before the error could be read.
    turn = trace.tool_trace[at].turn
    return turn is None or turn != trace.tool_trace[failed].turn


def _next_expected(wanted: Sequence[Expected], called: Sequence[ObservedCall]) -> str | None:
    """The first expected call that was not yet tried, in order."""
    at = 0
    for call in called:
        if at < len(wanted) and call.name == wanted[at].name:
            at += 1
    return wanted[at].name if at < len(wanted) else None
