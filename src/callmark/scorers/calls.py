"""Were the right tools called with the right arguments, and did the model recover from errors?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from callmark.calls.matching import (
    Expected,
    ObservedCall,
    describe_call,
    expected_call,
    match_calls,
    observed_call,
)
from callmark.calls.normalise import canonical_name
from callmark.calls.registry import Registry
from callmark.records.results import CallDifferences, CallScore
from callmark.records.samples import CALL_FREE, CallMatch, Expectation
from callmark.records.trace import RECORDED, Trace, TraceEntry

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
    pairs, steps, rule = match_calls(wanted, seen), steps_of(entries), expectation.call_match
    differences = _differences(wanted, seen, pairs, steps, rule)
    recovered, gave_up = _recovery(expectation, trace, wanted, seen, admits_failure)
    return CallsVerdict(
        calls=_call_score(wanted, entries, problems, len(pairs), differences),
        call_f1=2 * len(pairs) / (len(wanted) + len(seen)) if wanted else None,
        multi_call_parity_ok=parity(wanted, seen, steps, rule),
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
    if not expectation.retry:
        return None, None
    entries = trace.tool_trace
    failed = next((at for at, entry in enumerate(entries) if entry.status == "error"), None)
    if failed is None:
        return any(entry.status == "ok" for entry in entries), False
    served = [
        seen[at].name
        for at in range(failed + 1, len(entries))
        if entries[at].status == "ok" and _is_later(trace, failed, at)
    ]
    following = _next_expected(wanted, seen[: failed + 1])
    recovered = any(name is not None and name in (seen[failed].name, following) for name in served)
    return recovered, not served and admits_failure


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
