"""Numbers that follow from the evidence of a few short results."""

from __future__ import annotations

from collections import defaultdict

from callmark.grounding.evidence import Evidence, Leaf
from callmark.grounding.numbers import SCALE

MAX_FACTOR = 20
_Derivation = tuple[tuple[Leaf, ...], str]


def explain(evidence: Evidence, wanted: int, turn: int | None) -> _Derivation | None:
    """a + b or a − b of two numbers under one key, a × b with one integer ≤ 20, or the sum,
    count or length of one list; only out of results with few distinct numbers."""
    return (
        _of_a_list(evidence, wanted, turn)
        or _sum_or_difference(evidence, wanted, turn)
        or _product(evidence, wanted, turn)
    )


def _of_a_list(evidence: Evidence, wanted: int, turn: int | None) -> _Derivation | None:
    for facts in evidence.lists:
        if facts.leaf.counts_for(turn) and evidence.is_small((facts.leaf.call,)):
            if facts.length == wanted:
                return (facts.leaf,), "length of a list"
            if wanted in facts.sums:
                return (facts.leaf,), "sum of a list"
    return None


def _sum_or_difference(evidence: Evidence, wanted: int, turn: int | None) -> _Derivation | None:
    by_key: dict[str, dict[int, list[Leaf]]] = defaultdict(lambda: defaultdict(list))
    for key, number, leaf in evidence.countable(turn):
        by_key[key][number].append(leaf)
    for numbers in by_key.values():
        for a, leaves in numbers.items():
            for b, how in ((wanted - a, "a sum"), (a - wanted, "a difference")):
                pair = _two_leaves(evidence, leaves, numbers.get(b, []))
                if pair is not None:
                    return pair, how
    return None


def _product(evidence: Evidence, wanted: int, turn: int | None) -> _Derivation | None:
    numbers: dict[int, list[Leaf]] = defaultdict(list)
    for _, number, leaf in evidence.countable(turn):
        numbers[number].append(leaf)
    for factor in range(2, MAX_FACTOR + 1):
        if factor * SCALE in numbers and wanted % factor == 0 and wanted // factor in numbers:
            pair = _two_leaves(evidence, numbers[factor * SCALE], numbers[wanted // factor])
            if pair is not None:
                return pair, "a product"
    return None


def _two_leaves(
    evidence: Evidence, some: list[Leaf], others: list[Leaf]
) -> tuple[Leaf, Leaf] | None:
    for a in some:
        for b in others:
            if a is not b and evidence.is_small((a.call, b.call)):
                return a, b
    return None
