"""Integration spans: which are grounded, precision, recall, F1, lax and strict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from callmark.core.samples import Extractor
from callmark.core.scores import Grounding, SpanScore, ValueLabel
from callmark.grounding.facts import Fact, fact_of
from callmark.grounding.match import SpanGrounding
from callmark.grounding.spans import Span, marker_spans, sentences
from callmark.scorers.reading import TrialReading

LABELS: tuple[ValueLabel, ...] = ("supported", "derived", "user_said", "unsupported")


class IntegrationVerdict(NamedTuple):
    spans: tuple[SpanScore, ...]
    total: int
    over_cap: int
    counted: int
    recall_kind: Literal["facts", "presence"]
    required: int
    lax: Grounding
    strict: Grounding
    values: dict[ValueLabel, int]
    scored: tuple[Span, ...]  # in characters, for the scorers that look further


class _Judged(NamedTuple):
    """`lax` and `strict`: the span holds evidence. `good_*`: it counts so in precision, which
    under `claims` asks for more (nothing unsupported beside it) and less (derived is enough), and
    does not count what only repeats the user."""

    span: Span
    turn: int | None
    grounding: SpanGrounding
    scored: bool
    counted: bool
    good_lax: bool
    good_strict: bool

    @property
    def lax(self) -> bool:
        return bool(self.grounding.matches)

    @property
    def strict(self) -> bool:
        return any(match.strict for match in self.grounding.matches)


def score_integration(reading: TrialReading, extractor: Extractor, cap: int) -> IntegrationVerdict:
    judged = list(_marked(reading, cap) if extractor == "marker" else _claimed(reading))
    scored = [one for one in judged if one.scored]
    counted = [one for one in scored if one.counted]
    facts = [fact_of(fact) for fact in reading.sample.expectation.required_facts]
    values = dict.fromkeys(LABELS, 0)
    for one in scored:
        for mark in one.grounding.marks:
            values[mark.label] += 1
    lax = sum(one.good_lax for one in counted)
    strict = sum(one.good_strict for one in counted)
    found_lax, found_strict = min(lax, 1), min(strict, 1)
    if facts:
        found_lax, found_strict = _found(reading, scored, facts)
    return IntegrationVerdict(
        spans=tuple(_span_score(reading, one) for one in judged),
        total=len(judged),
        over_cap=len(judged) - len(scored),
        counted=len(counted),
        recall_kind="facts" if facts else "presence",
        required=len(facts) or 1,
        lax=_grounding(lax, len(counted), found_lax, len(facts) or 1),
        strict=_grounding(strict, len(counted), found_strict, len(facts) or 1),
        values=values,
        scored=tuple(one.span for one in scored),
    )


def _marked(reading: TrialReading, cap: int) -> Iterator[_Judged]:
    for index, span in enumerate(marker_spans(reading.text)):
        turn = reading.turn_at(span[0])
        grounding = reading.grounder.ground(span, turn)
        strict = any(match.strict for match in grounding.matches)
        scored = index < cap
        yield _Judged(span, turn, grounding, scored, scored, bool(grounding.matches), strict)


def _claimed(reading: TrialReading) -> Iterator[_Judged]:
    for span in sentences(reading.text):
        if not reading.is_after_first_result(span):
            continue
        turn = reading.turn_at(span[0])
        grounding = reading.grounder.ground(span, turn)
        support = grounding.matches + grounding.derived
        if not support and not grounding.marks:
            continue
        sound = not grounding.unsupported
        strict = sound and any(match.strict for match in support)
        counted = not grounding.wholly_user_said
        yield _Judged(span, turn, grounding, True, counted, sound and bool(support), strict)


def _found(reading: TrialReading, scored: list[_Judged], facts: list[Fact]) -> tuple[int, int]:
    """How many facts a scored span holds and evidence, or keyed evidence, supports."""
    lax = strict = 0
    for fact in facts:
        turns = [one.turn for one in scored if fact.is_in(reading.grounder, one.span)]
        leaves = [leaf for turn in turns for leaf in fact.support(reading.evidence, turn)]
        lax += bool(leaves)
        strict += any(leaf.strict for leaf in leaves)
    return lax, strict


def _grounding(grounded: int, counted: int, found: int, required: int) -> Grounding:
    precision = grounded / counted if counted else 0.0
    recall = found / required
    total = precision + recall
    return Grounding(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / total if total else 0.0,
        grounded=grounded,
        found=found,
    )


def _span_score(reading: TrialReading, one: _Judged) -> SpanScore:
    to_bytes = reading.grounder.to_bytes
    return SpanScore(
        start=to_bytes(one.span[0]),
        end=to_bytes(one.span[1]),
        scored=one.scored,
        lax=one.lax,
        strict=one.strict,
        counted=one.counted,
        good=one.counted and one.good_lax,
        matches=one.grounding.matches + one.grounding.derived,
        values=one.grounding.marks,
    )
