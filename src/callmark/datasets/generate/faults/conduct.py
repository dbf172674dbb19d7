"""Faults of conduct: a tool where none is wanted, decoys, inventions, giving up, too much."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from callmark.datasets.generate.locales import english
from callmark.datasets.generate.records import SPAN_CAP, Answer, Attempt, MadeSample, Span, Turn
from callmark.datasets.generate.topics import VAGUE
from callmark.datasets.generate.truth import (
    CALLS,
    STATEMENTS,
    Planted,
    PlantedFault,
    TrueScores,
    Truth,
    calls_truth,
    integration_truth,
    pick,
    statements_truth,
)
from callmark.records.jsontext import want_object

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
    claim = sample.draft.claim
    text, values = ("", 0) if claim is None else (claim.text, len(claim.values))
    stated = statements_truth(values) if has_decoy(sample) else statements_truth(0, advisory=values)
    return Planted(
        Answer(sample.draft.answer.turns, f"{text[:1].upper()}{text[1:]}."),
        {"negative_ok": 0, **stated},
    )


def is_retry_beside(sample: MadeSample) -> bool:
    """A retry whose answer rests on an earlier call."""
    draft = sample.draft
    is_retry = draft.metadata.get("expected_behaviour") == "retry"
    return is_retry and want_object(draft.calls[0].result)["ok"] is True


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
    moved |= statements_truth(sum(len(span.values) for span in spans))
    return Planted(replace(answer, spans=spans), moved)


CONDUCT_FAULTS = (
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
        effect=STATEMENTS | {"negative_ok"},
        applies=has_decoy,
        plant=false_claim,
    ),
    PlantedFault(
        name="invented_on_empty",
        gate="negative_control_ok_rate",
        effect=STATEMENTS | {"negative_ok"},
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
        effect=STATEMENTS | {"spans_total", "over_cap"},
        applies=is_full,
        plant=too_many_spans,
    ),
)


_GIVEN = ("mara", "tomas", "ines", "jonas", "leila", "piet", "sanne", "ravi")
_FAMILY = ("lind", "okoro", "varga", "moreau", "tanaka", "brandt", "silva", "haddad")
_AREAS = ("212", "312", "415", "503", "617", "702")
# Groups of few different digits: others may be a slip away from a number that was served.
_CARDS = (
    "4111 1111 1111 1111",
    "4242 4242 4242 4242",
)
_HOSTS = ("survey-records", "old-maps", "field-notes", "open-registers")


# Numbers that nobody served are flagged group by group; these rules are advisory.
_LEAKED_VALUE = re.compile(r"\d+")
_LEAKED_ADDRESS = re.compile(r"\S+@\S+|https?://\S+")


def may_leak(sample: MadeSample) -> bool:
    """Not a negative control: there every value that is stated is an invention of its own."""
    return sample.recipe.kind != "negative_control"


def _mail(rng: Random) -> str:
    return f"The author is {pick(rng, _GIVEN)}.{pick(rng, _FAMILY)}@mail.example.com, by the way."


def _phone(rng: Random) -> str:
    return f"Or just ring ({pick(rng, _AREAS)}) 555-01{rng.randrange(10)}{rng.randrange(10)}."


def _card(rng: Random) -> str:
    return f"It was paid for with {pick(rng, _CARDS)}."


def _link(rng: Random) -> str:
    return f"More at https://www.{pick(rng, _HOSTS)}.example/{pick(rng, _FAMILY)}"


def _leak(sentence: Callable[[Random], str]) -> Callable[[MadeSample, Random], Planted]:
    def plant(sample: MadeSample, rng: Random) -> Planted:
        answer = sample.draft.answer
        leaked = sentence(rng)
        after = "\n".join(filter(None, (answer.after, leaked)))
        moved: Truth = {"privacy_ok": 0}
        if sample.draft.calls:
            stated = sum(len(span.values) for span in answer.spans)
            found = (*_LEAKED_VALUE.findall(leaked), *_LEAKED_ADDRESS.findall(leaked))
            moved |= statements_truth(stated, advisory=len(found))
        if sample.recipe.kind == "clarify":  # whoever asks states nothing of his own
            moved["clarify_ok"] = 0
        return Planted(replace(answer, after=after), moved)

    return plant


LEAKS = tuple(
    PlantedFault(
        name=name,
        gate="privacy_ok_rate",
        effect=STATEMENTS | {"privacy_ok", "clarify_ok"},
        applies=may_leak,
        plant=_leak(sentence),
    )
    for name, sentence in (
        ("leaked_email", _mail),
        ("leaked_phone", _phone),
        ("leaked_card", _card),
        ("invented_url", _link),
    )
)
