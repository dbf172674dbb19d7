"""What a fault is: to which samples it applies, what it does to an answer, what that moves."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from callmark.datasets.generate.records import Answer, MadeSample
from callmark.datasets.generate.truth import Truth


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
