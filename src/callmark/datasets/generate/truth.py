"""What is true of an answer by construction: the numbers that a right scorer has to give; and what
a fault is: to which samples it applies, what it does to an answer, what that moves.

The names are those of the columns that a report is made of. None: does not apply. Nothing here asks
the scorer: the generator knows which calls and values it put where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import NamedTuple

import msgspec

from callmark.datasets.generate.records import SPAN_CAP, Answer, Draft, MadeSample, Stated

Truth = dict[str, int | float | None]


class TrueScores(NamedTuple):
    """How many values of a span its results support, and how many nothing supports. What the
    user said is neither."""

    supported: int
    unsupported: int = 0


def truth_of(sample: MadeSample) -> Truth:
    """The numbers of the perfect answer."""
    draft, kind = sample.draft, sample.recipe.kind
    calls = len(draft.calls)
    judged = [TrueScores(len(span.values)) for span in draft.answer.spans]
    is_retry = draft.metadata.get("expected_behaviour") == "retry"
    return {
        **integration_truth(draft, judged),
        "answered": 1 if kind == "eligible" else None,
        "call_f1": 1.0 if calls else None,
        "looked_up": calls,
        "hits": calls,
        "valid_call": int(calls > 0),
        "args_valid": 1 if calls else None,
        "parity": 1 if calls > 1 else None,
        "recovered": 1 if is_retry else None,
        "gave_up": 0,
        "contaminated": 0,
        "negative_ok": 1 if kind == "negative_control" else None,
        "clarify_ok": 1 if kind == "clarify" else None,
        "locale_ok": 1 if draft.metadata.get("locale_probe") else None,
        "privacy_ok": 1,
        "checks_ok": None,
        "unresolved": 0,
        "presence": int(not draft.facts),
        "marker": 1,
    }


def integration_truth(
    draft: Draft, judged: Sequence[TrueScores], lost: Collection[Stated] = ()
) -> Truth:
    """What follows from the spans. `lost` are the facts that no span states correctly any more."""
    scored = judged[:SPAN_CAP]
    grounded = sum(span.supported > 0 for span in scored)
    required = len(draft.facts) or 1
    found = sum(fact not in lost for fact in draft.facts) if draft.facts else min(grounded, 1)
    f1 = f1_of(grounded / len(scored) if scored else 0.0, found / required)
    return {
        "f1_lax": f1,
        "f1_strict": f1,
        "spans_total": len(judged),
        "over_cap": len(judged) - len(scored),
        "spans": len(scored),
        "required": required,
        "grounded_lax": grounded,
        "grounded_strict": grounded,
        "found_lax": found,
        "found_strict": found,
        "unsupported": sum(span.unsupported for span in scored),
        "values": sum(span.supported + span.unsupported for span in scored),
        "has_span": int(bool(judged)),
        "has_grounded": int(grounded > 0),
        **statements_truth(
            sum(span.supported for span in judged), sum(span.unsupported for span in judged)
        ),
    }


def statements_truth(
    supported: int, unsupported: int = 0, unchecked: int = 0, advisory: int = 0
) -> Truth:
    """Of what an answer states after the first result, beyond the cap too."""
    checked = supported + unsupported
    return {
        "flagged": int(unsupported > 0) if checked else None,
        "unchecked": unchecked,
        "judged": checked + unchecked + advisory,
    }


def calls_truth(*, expected: int, observed: int, matched: int, valid: int | None = None) -> Truth:
    """`valid`: how many of the observed calls are (None: all); each of these is a hit."""
    valid = observed if valid is None else valid
    return {
        "call_f1": 2 * matched / (expected + observed),
        "looked_up": valid,
        "hits": valid,
    }


def f1_of(precision: float, recall: float) -> float:
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0


class Planted(msgspec.Struct, frozen=True):
    """The flawed answer, and the numbers that it changes."""

    answer: Answer
    moved: Truth


class PlantedFault(msgspec.Struct, frozen=True, kw_only=True):
    """One kind. `gate` is the one that is named for it. `effect` are the columns that it may move;
    `applies` depends on the recipe of a sample only, so that a plan need not make the samples."""

    name: str
    gate: str
    effect: frozenset[str]
    applies: Callable[[MadeSample], bool]
    plant: Callable[[MadeSample, Random], Planted]


def pick(rng: Random, table: tuple[str, ...]) -> str:
    return table[rng.randrange(len(table))]


GROUNDING = frozenset(
    (
        "f1_lax",
        "f1_strict",
        "grounded_lax",
        "grounded_strict",
        "found_lax",
        "found_strict",
        "has_grounded",
        "values",
    )
)
STATEMENTS = frozenset(("flagged", "unchecked", "judged"))
CALLS = frozenset(("call_f1", "looked_up", "hits"))
