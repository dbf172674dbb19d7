"""Mutation testing of the call scores: another tool, another argument, another order."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import msgspec

from callmark.records.jsontext import Json, canonical_json
from callmark.records.results import Scores
from callmark.records.trace import Trace, TraceEntry
from dev.campaign.reasons import UNEXPLAINED
from dev.campaign.tally import Tally
from dev.campaign.trials import Trial

TRIES = 20
ACCEPTED = "the sample accepts this, too (`accept`, `optional`, a call given by name only)"
SAME_NAMES = "order is compared by name, and the calls are of one tool"
PARALLEL = "calls of one turn have no order"
ALIKE = "the calls that changed places are equal"
FOLDED = "the altered argument is the same after trimming and folding of white space"
SUPERSET = "the sample allows further calls (`call_match: superset`) or any order (`unordered`)"

Mutate = Callable[[random.Random, Trial], Trace | None]


def another_tool(rng: random.Random, trial: Trial) -> Trace | None:
    at = _any_call(rng, trial.trace)
    if at is None:
        return None
    entry = trial.trace.tool_trace[at]
    return _with(trial.trace, at, msgspec.structs.replace(entry, name=f"{entry.name}_other"))


def another_argument(rng: random.Random, trial: Trial) -> Trace | None:
    at = _any_call(rng, trial.trace)
    entry = None if at is None else trial.trace.tool_trace[at]
    if at is None or entry is None or not isinstance(entry.arguments, dict) or not entry.arguments:
        return None
    name = rng.choice(sorted(entry.arguments))
    arguments = {**entry.arguments, name: _altered(rng, entry.arguments[name])}
    return _with(trial.trace, at, msgspec.structs.replace(entry, arguments=arguments))


def argument_left_out(rng: random.Random, trial: Trial) -> Trace | None:
    at = _any_call(rng, trial.trace)
    entry = None if at is None else trial.trace.tool_trace[at]
    if at is None or entry is None or not isinstance(entry.arguments, dict) or not entry.arguments:
        return None
    name = rng.choice(sorted(entry.arguments))
    arguments = {key: value for key, value in entry.arguments.items() if key != name}
    return _with(trial.trace, at, msgspec.structs.replace(entry, arguments=arguments))


def call_left_out(rng: random.Random, trial: Trial) -> Trace | None:
    at = _any_call(rng, trial.trace)
    if at is None:
        return None
    entries = trial.trace.tool_trace
    return msgspec.structs.replace(trial.trace, tool_trace=entries[:at] + entries[at + 1 :])


def call_made_twice(rng: random.Random, trial: Trial) -> Trace | None:
    at = _any_call(rng, trial.trace)
    if at is None:
        return None
    entries = trial.trace.tool_trace
    return msgspec.structs.replace(trial.trace, tool_trace=(*entries, entries[at]))


def another_order(rng: random.Random, trial: Trial) -> Trace | None:
    entries = list(trial.trace.tool_trace)
    if len(entries) < 2:
        return None
    first = rng.randrange(len(entries) - 1)
    second = rng.randrange(first + 1, len(entries))
    a, b = entries[first], entries[second]
    entries[first] = msgspec.structs.replace(b, turn=a.turn)
    entries[second] = msgspec.structs.replace(a, turn=b.turn)
    return msgspec.structs.replace(trial.trace, tool_trace=tuple(entries))


MUTATIONS: dict[str, Mutate] = {
    "tool": another_tool,
    "argument": another_argument,
    "argument left out": argument_left_out,
    "call left out": call_left_out,
    "call made twice": call_made_twice,
    "order": another_order,
}


def mutate_calls(trials: Sequence[Trial], number: int, seed: str) -> Tally:
    rng = random.Random(f"calls {seed}")
    usable = [trial for trial in trials if trial.scores.call_f1 == 1.0]
    tally = Tally()
    kinds = list(MUTATIONS)
    for turn in range(number):
        kind = kinds[turn % len(kinds)]
        for _ in range(TRIES):
            trial = rng.choice(usable)
            trace = MUTATIONS[kind](rng, trial)
            if trace is not None:
                _judge(tally, kind, trial, trace)
                break
    return tally


def _judge(tally: Tally, kind: str, trial: Trial, trace: Trace) -> None:
    before, after = trial.scores, trial.scored(trace)
    tally.lowered[kind] += (after.call_f1 or 0) < (before.call_f1 or 0)
    if _is_worse(before, after):
        tally.killed[kind] += 1
    else:
        tally.note(kind, _reason(kind, trial, trace), trial.sample.sample_id)


def _is_worse(before: Scores, after: Scores) -> bool:
    if before.call_f1 is not None and after.call_f1 is not None and after.call_f1 < before.call_f1:
        return True
    return bool(before.multi_call_parity_ok) and after.multi_call_parity_ok is False


def _reason(kind: str, trial: Trial, trace: Trace) -> str:
    """Looked up in the sample and the two traces, not asked of the scorer."""
    old, new = trial.trace.tool_trace, trace.tool_trace
    expectation = trial.sample.expectation
    if kind == "order":
        moved = [a for a, b in zip(old, new, strict=True) if _shown(a) != _shown(b)]
        if not moved:
            return ALIKE
        if expectation.call_match != "exact":
            return SUPERSET
        if [entry.name for entry in old] == [entry.name for entry in new]:
            return SAME_NAMES
        turns = [entry.turn for entry in moved]
        return PARALLEL if None in turns or len(set(turns)) == 1 else UNEXPLAINED
    if kind == "call made twice" and expectation.call_match == "superset":
        return SUPERSET
    if kind in ("argument", "argument left out"):
        changed = [(a, b) for a, b in zip(old, new, strict=True) if _shown(a) != _shown(b)]
        if not changed or _folded(changed[0][0]) == _folded(changed[0][1]):
            return FOLDED
        return ACCEPTED if _is_free(trial, changed[0][0]) else UNEXPLAINED
    return UNEXPLAINED


def _is_free(trial: Trial, entry: TraceEntry) -> bool:
    return any(
        call.name == entry.name and (call.arguments is None or call.accept or call.optional)
        for call in trial.sample.expectation.calls
    )


def _shown(entry: TraceEntry) -> str:
    return f"{entry.name} {canonical_json(entry.arguments)}"


def _folded(entry: TraceEntry) -> str:
    return " ".join(_shown(entry).split())


def _any_call(rng: random.Random, trace: Trace) -> int | None:
    return rng.randrange(len(trace.tool_trace)) if trace.tool_trace else None


def _with(trace: Trace, at: int, entry: TraceEntry) -> Trace:
    entries = trace.tool_trace
    return msgspec.structs.replace(trace, tool_trace=(*entries[:at], entry, *entries[at + 1 :]))


def _altered(rng: random.Random, value: Json) -> Json:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + rng.choice((-2, -1, 1, 2))
        case str() if value.strip():
            at = rng.randrange(len(value.rstrip()))
            return f"{value[:at]}x{value[at:]}"
        case str():
            return "x"
        case list():
            return [*value, "x"] if rng.random() < 0.5 or not value else value[:-1]
        case dict():
            return {**value, "x": 1}
        case _:
            return "x"
