"""Faults of conduct: a tool where none is wanted, decoys, inventions, giving up, too much."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from callmark.datasets.generate.faults.fault import CALLS, Planted, PlantedFault, pick
from callmark.datasets.generate.forms import english
from callmark.datasets.generate.records import SPAN_CAP, Answer, Attempt, MadeSample, Span, Turn
from callmark.datasets.generate.truth import TrueScores, Truth, calls_truth, integration_truth
from callmark.datasets.generate.words.english import VAGUE

_SPANS = frozenset({"spans_total", "spans", "has_span"})


def is_control(sample: MadeSample) -> bool:
    return sample.recipe.kind == "control"


def contaminated_control(sample: MadeSample, rng: Random) -> Planted:
    """It integrates what nobody asked for, or it calls a tool."""
    draft = sample.draft
    if rng.randrange(2):
        answer = replace(draft.answer, spans=(Span(pick(rng, VAGUE), (), english()),))
        return Planted(answer, {**integration_truth(draft, [TrueScores(0)]), "contaminated": 1})
    call = draft.tempting[0]
    turn = Turn("", (Attempt(call.name, call.arguments),))
    return Planted(
        replace(draft.answer, turns=(turn,)),
        {"contaminated": 1, "args_valid": 1, "valid_call": 1, "looked_up": 1, "hits": 1},
    )


def has_decoy(sample: MadeSample) -> bool:
    return bool(sample.draft.metadata.get("decoy_values"))


def is_empty(sample: MadeSample) -> bool:
    return sample.recipe.kind == "negative_control" and not has_decoy(sample)


def false_claim(sample: MadeSample, rng: Random) -> Planted:
    """The figure that the result holds about something else, or that no result holds at all."""
    text = "" if sample.draft.claim is None else sample.draft.claim.text
    claim = f"{text[:1].upper()}{text[1:]}."
    return Planted(Answer(sample.draft.answer.turns, claim), {"negative_ok": 0})


def is_retry_beside(sample: MadeSample) -> bool:
    """A retry whose answer rests on an earlier call."""
    draft = sample.draft
    is_retry = draft.metadata.get("expected_behaviour") == "retry"
    return is_retry and draft.calls[0].result["ok"] is True


def unrecovered_error(sample: MadeSample, rng: Random) -> Planted:
    """It makes the failing call again where another was needed, or stops where once more was."""
    calls, answer = sample.draft.calls, sample.draft.answer
    expected, earlier = len(calls), answer.turns[:-1]
    if calls[-1].arguments == calls[-2].arguments:
        moved = calls_truth(expected=expected, observed=expected - 1, matched=expected - 1)
        return Planted(replace(answer, turns=earlier), {**moved, "parity": 0, "recovered": 0})
    again = replace(answer.turns[-1], attempts=earlier[-1].attempts)
    moved = calls_truth(expected=expected, observed=expected, matched=expected - 1)
    return Planted(
        replace(answer, turns=(*earlier, again)), {"call_f1": moved["call_f1"], "recovered": 0}
    )


def is_full(sample: MadeSample) -> bool:
    draft = sample.draft
    return draft.spare_span is not None and len(draft.answer.spans) == SPAN_CAP


def too_many_spans(sample: MadeSample, rng: Random) -> Planted:
    """A fourth line, as well grounded as the others."""
    answer, spare = sample.draft.answer, sample.draft.spare_span
    spans = answer.spans if spare is None else (*answer.spans, spare)
    moved: Truth = {"spans_total": len(spans), "over_cap": len(spans) - SPAN_CAP}
    return Planted(replace(answer, spans=spans), moved)


FAULTS = (
    PlantedFault(
        name="contaminated_control",
        gate="controls_with_integration",
        effect=_SPANS | {"contaminated", "args_valid", "valid_call", "looked_up", "hits"},
        applies=is_control,
        plant=contaminated_control,
    ),
    PlantedFault(
        name="swallowed_decoy",
        gate="negative_control_ok_rate",
        effect=frozenset({"negative_ok"}),
        applies=has_decoy,
        plant=false_claim,
    ),
    PlantedFault(
        name="invented_on_empty",
        gate="negative_control_ok_rate",
        effect=frozenset({"negative_ok"}),
        applies=is_empty,
        plant=false_claim,
    ),
    PlantedFault(
        name="unrecovered_error",
        gate="error_recovery_rate",
        effect=CALLS | {"parity", "recovered"},
        applies=is_retry_beside,
        plant=unrecovered_error,
    ),
    PlantedFault(
        name="too_many_spans",
        gate="teacher_heavy_spans_over_cap",
        effect=frozenset({"spans_total", "over_cap"}),
        applies=is_full,
        plant=too_many_spans,
    ),
)
