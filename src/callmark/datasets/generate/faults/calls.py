"""Faults in the calls: too few, too many, in another order, with wrong or broken arguments."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from msgspec.structs import replace

from callmark.datasets.generate.records import Answer, Attempt, MadeCall, MadeSample, Turn
from callmark.datasets.generate.truth import CALLS, Planted, PlantedFault, calls_truth
from callmark.records.jsontext import Json, canonical_json

# tool -> the option that a sample may leave open, and values that its schema refuses
_REFUSED: dict[str, tuple[str, tuple[Json, ...]]] = {
    "web.search": ("top_k", ("all", 0, 500, True, 2.5)),
    "code_exec": ("language", ("ruby", "Python", 3)),
    "file.write": ("mode", ("prepend", True)),
    "repo.read": ("ref", (7, ["main"])),
}
_VALIDITY = frozenset({"args_valid", "valid_call"})


def is_several(sample: MadeSample) -> bool:
    """Several calls, none of which is a second try."""
    draft = sample.draft
    return len(draft.calls) > 1 and draft.metadata.get("expected_behaviour") != "retry"


def has_spare_call(sample: MadeSample) -> bool:
    return is_several(sample) and any(call.spare for call in sample.draft.calls)


def missing_call(sample: MadeSample, rng: Random) -> Planted:
    """A call on which nothing in the answer rests is not made."""
    draft = sample.draft
    expected = len(draft.calls)
    spare = next(call.step for call in draft.calls if call.spare)
    turns = tuple(turn for at, turn in enumerate(draft.answer.turns) if at != spare)
    moved = calls_truth(expected=expected, observed=expected - 1, matched=expected - 1)
    return Planted(replace(draft.answer, turns=turns), {**moved, "parity": 0})


def extra_call(sample: MadeSample, rng: Random) -> Planted:
    """The last call is made once more."""
    answer, expected = sample.draft.answer, len(sample.draft.calls)
    again = Turn("", answer.turns[-1].attempts[-1:])
    moved = calls_truth(expected=expected, observed=expected + 1, matched=expected)
    return Planted(replace(answer, turns=(*answer.turns, again)), {**moved, "parity": 0})


def has_order(sample: MadeSample) -> bool:
    return is_several(sample) and _swappable(sample.draft.answer) is not None


def swapped_calls(sample: MadeSample, rng: Random) -> Planted:
    """Two neighbouring calls of different tools change places."""
    answer = sample.draft.answer
    at = _swappable(answer) or 0
    turns = list(answer.turns)
    first, second = turns[at], turns[at + 1]
    turns[at] = replace(first, attempts=second.attempts)
    turns[at + 1] = replace(second, attempts=first.attempts)
    return Planted(replace(answer, turns=tuple(turns)), {"parity": 0})


def _swappable(answer: Answer) -> int | None:
    for at, (one, other) in enumerate(pairwise(answer.turns)):
        single = len(one.attempts) == len(other.attempts) == 1
        if single and one.attempts[0].name != other.attempts[0].name:
            return at
    return None


def has_other_arguments(sample: MadeSample) -> bool:
    draft = sample.draft
    is_retry = draft.metadata.get("expected_behaviour") == "retry"
    return bool(draft.calls) and draft.calls[0].other is not None and not is_retry


def wrong_argument(sample: MadeSample, rng: Random) -> Planted:
    """Another value, with which the tool finds the same."""
    draft = sample.draft
    expected = len(draft.calls)
    answer = _with_arguments(draft.answer, draft.calls[0], draft.calls[0].other or {})
    moved = calls_truth(expected=expected, observed=expected, matched=expected - 1)
    return Planted(answer, {"call_f1": moved["call_f1"]})


def has_open_option(sample: MadeSample) -> bool:
    is_retry = sample.draft.metadata.get("expected_behaviour") == "retry"
    return _open_call(sample) is not None and not is_retry


def argument_against_schema(sample: MadeSample, rng: Random) -> Planted:
    """An option about which the sample says nothing gets a value that its schema refuses."""
    draft = sample.draft
    call = _open_call(sample) or draft.calls[0]
    option, values = _REFUSED[call.name]
    refused = values[rng.randrange(len(values))]
    answer = _with_arguments(draft.answer, call, {**call.arguments, option: refused})
    valid = len(draft.calls) - 1
    return Planted(answer, {"args_valid": 0, "valid_call": 0, "looked_up": valid, "hits": valid})


def _open_call(sample: MadeSample) -> MadeCall | None:
    for call in sample.draft.calls:
        if call.name in _REFUSED and _REFUSED[call.name][0] in call.optional:
            return call
    return None


def is_single_call(sample: MadeSample) -> bool:
    return sample.recipe.kind == "eligible" and len(sample.draft.calls) == 1


def malformed_call(sample: MadeSample, rng: Random) -> Planted:
    """The first attempt breaks off in its arguments; the second is right."""
    draft = sample.draft
    call = draft.calls[0]
    whole = canonical_json(call.arguments)
    broken = whole[: len(whole) // 2 + rng.randrange(len(whole) // 2 - 1)]
    first = Turn("", (Attempt(call.name, None, broken),))
    moved = calls_truth(expected=1, observed=2, matched=1)
    return Planted(
        replace(draft.answer, turns=(first, *draft.answer.turns)),
        {"call_f1": moved["call_f1"], "args_valid": 0, "valid_call": 0},
    )


def _with_arguments(answer: Answer, call: MadeCall, arguments: dict[str, Json]) -> Answer:
    """The answer with other arguments in the attempt that makes this call."""
    turns = tuple(
        replace(
            turn,
            attempts=tuple(
                replace(attempt, arguments=arguments)
                if (attempt.name, attempt.arguments) == (call.name, call.arguments)
                else attempt
                for attempt in turn.attempts
            ),
        )
        for turn in answer.turns
    )
    return replace(answer, turns=turns)


CALL_FAULTS = (
    PlantedFault(
        name="missing_call",
        gate="multi_call_parity_rate",
        effect=CALLS | {"parity"},
        applies=has_spare_call,
        plant=missing_call,
    ),
    PlantedFault(
        name="extra_call",
        gate="multi_call_parity_rate",
        effect=CALLS | {"parity"},
        applies=is_several,
        plant=extra_call,
    ),
    PlantedFault(
        name="swapped_calls",
        gate="multi_call_parity_rate",
        effect=frozenset({"parity"}),
        applies=has_order,
        plant=swapped_calls,
    ),
    PlantedFault(
        name="wrong_argument",
        gate="call_f1_macro",
        effect=frozenset({"call_f1"}),
        applies=has_other_arguments,
        plant=wrong_argument,
    ),
    PlantedFault(
        name="argument_against_schema",
        gate="json_args_valid_rate",
        effect=_VALIDITY | {"looked_up", "hits"},
        applies=has_open_option,
        plant=argument_against_schema,
    ),
    PlantedFault(
        name="malformed_call",
        gate="json_args_valid_rate",
        effect=_VALIDITY | {"call_f1"},
        applies=is_single_call,
        plant=malformed_call,
    ),
)
