"""The claims of a scored trial, each with its sentence; for what nothing supports, the value of the
evidence that comes nearest."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from difflib import SequenceMatcher

from callmark.grounding.evidence import Leaf, Served, Walk
from callmark.grounding.match import cut_value
from callmark.grounding.numbers import of_json
from callmark.grounding.values import find_values
from callmark.records.claims import Claim, Nearest
from callmark.records.results import Result, SpanScore, ValueMark

ALIKE = 0.6  # less than that much in common is not near
LONGEST = 80  # characters of a text that a value is compared with


def claims_of(result: Result) -> Iterator[Claim]:
    if result.scores is None:
        return
    answer = result.model_output.encode("utf-8", "surrogatepass")
    leaves: list[Leaf] | None = None
    for span in result.scores.spans:
        for mark in span.values if span.scored else ():
            value = _text(answer, mark)
            nearest = None
            if mark.label == "unsupported":
                leaves = _leaves(result) if leaves is None else leaves
                turn = _turn_at(result, span.start)
                earlier = [leaf for leaf in leaves if leaf.counts_for(turn)]
                nearest = _nearest(value, mark.kind, earlier)
            yield Claim(
                sample_id=result.sample_id,
                trial=result.trial,
                value=value,
                kind=mark.kind,
                label=mark.label,
                sentence=_text(answer, span),
                nearest=nearest,
            )


def _text(answer: bytes, part: SpanScore | ValueMark) -> str:
    return answer[part.start : part.end].decode("utf-8", "replace")


def _turn_at(result: Result, place: int) -> int | None:
    if result.turns is None:
        return None
    return bisect_right([turn.end for turn in result.turns], place) + 1


def _leaves(result: Result) -> list[Leaf]:
    leaves: list[Leaf] = []
    for index, entry in enumerate(result.tool_trace):
        if entry.status == "ok":
            turn = None if result.turns is None else entry.turn
            served = Served(index, turn, entry.result, entry.arguments, False, ())
            leaves += Walk(served).leaves
    return leaves


def _nearest(value: str, kind: str, leaves: list[Leaf]) -> Nearest | None:
    if kind == "number":
        return _nearest_number(value, leaves)
    matcher = SequenceMatcher(b=value.casefold(), autojunk=False)
    best, found = ALIKE, None
    for leaf in leaves:
        if isinstance(leaf.value, str) and len(leaf.value) <= LONGEST:
            matcher.set_seq1(leaf.value.casefold())
            if matcher.real_quick_ratio() > best and matcher.ratio() > best:
                best, found = matcher.ratio(), leaf
    return None if found is None else _name_leaf(found)


def _nearest_number(value: str, leaves: list[Leaf]) -> Nearest | None:
    readings = [reading for one in find_values(value) for reading in one.readings]
    known = [
        (min(abs(number - reading) for reading in readings), at)
        for at, leaf in enumerate(leaves)
        for number in _numbers(leaf)
        if readings
    ]
    return _name_leaf(leaves[min(known)[1]]) if known else None


def _numbers(leaf: Leaf) -> Iterator[int]:
    if isinstance(leaf.value, str):
        yield from (reading for value in leaf.values for reading in value.readings)
    else:
        yield of_json(leaf.value)


def _name_leaf(leaf: Leaf) -> Nearest:
    return Nearest(leaf.call, leaf.path, cut_value(leaf.value, LONGEST))
