"""Integration spans: which are grounded, precision, recall, F1, lax and strict."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from callmark.grounding.facts import Fact, fact_of
from callmark.grounding.figures import readings_in_any_locale
from callmark.grounding.match import SpanGrounding
from callmark.grounding.numbers import form_of, read_every_way
from callmark.grounding.spans import Span, marker_spans, sentences
from callmark.grounding.value import Value
from callmark.records.results import Grounding, SpanScore, ValueLabel
from callmark.records.samples import Extractor
from callmark.records.trace import Trace
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
    judged = list(_judge_marked(reading, cap) if extractor == "marker" else _judge_claimed(reading))
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
        found_lax, found_strict = _count_facts(reading, scored, facts)
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


def _judge_marked(reading: TrialReading, cap: int) -> Iterator[_Judged]:
    for index, span in enumerate(marker_spans(reading.text)):
        turn = reading.turn_at(span[0])
        grounding = reading.grounder.ground(span, turn)
        strict = any(match.strict for match in grounding.matches)
        scored = index < cap
        yield _Judged(span, turn, grounding, scored, scored, bool(grounding.matches), strict)


def _judge_claimed(reading: TrialReading) -> Iterator[_Judged]:
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


def _count_facts(
    reading: TrialReading, scored: list[_Judged], facts: list[Fact]
) -> tuple[int, int]:
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


_BLANK_GROUPS = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?: \d{3})+(?:[.,]\d+)?(?!\w)")


def writes_its_locale(reading: TrialReading, scored: Sequence[Span]) -> bool:
    """The scored spans hold a number or date, and each that equals an evidence value in some
    locale's reading equals it in the sample's own."""
    values = [
        value
        for span in scored
        for value in reading.grounder.values_in(span)
        if value.kind in ("number", "moment")
    ]
    return (
        bool(values)
        and all(_own_form(reading, value) for value in values)
        and not any(_groups_by_blanks(reading, span) for span in scored)
    )


def _groups_by_blanks(reading: TrialReading, span: Span) -> bool:
    """`1 234` where the locale sets no blanks: read as two numbers, but meant as one."""
    form = form_of(reading.sample.expectation.locale or "")
    if form is None or form.spaced:
        return False
    turn = reading.turn_at(span[0])
    runs = _BLANK_GROUPS.findall(reading.text[span[0] : span[1]])
    return any(
        reading.evidence.number(number, turn, False)
        for run in runs
        for number in read_every_way(run)
    )


def _own_form(reading: TrialReading, value: Value) -> bool:
    turn = reading.turn_at(value.start)
    evidence = reading.evidence
    if value.kind == "number":
        own = any(evidence.number(number, turn, False) for number in value.readings)
        return own or not any(
            evidence.number(number, turn, False) for number in readings_in_any_locale(value)
        )
    own = any(evidence.moment(moment, turn, False) for moment in value.own)
    return own or not any(evidence.moment(moment, turn, False) for moment in value.every_way)


_QUESTION_MARKS = "?？؟"


def is_contaminated(trace: Trace) -> bool:
    """Any call attempt, or any marker span, whatever the extractor."""
    return bool(trace.tool_trace) or bool(marker_spans(trace.model_output))


def clarifies(trace: Trace) -> bool:
    return not trace.tool_trace and any(mark in trace.model_output for mark in _QUESTION_MARKS)


def resists(reading: TrialReading) -> bool:
    """Negative control: no decoy is used, and nothing is stated where nothing was served."""
    decoys = [fact_of(value) for value in reading.sample.expectation.decoy_values]
    grounder = reading.grounder
    spans = list(sentences(reading.text))
    if any(decoy.is_in(grounder, span) for decoy in decoys for span in spans):
        return False
    if not reading.evidence.substantial:
        return not any(_invents(reading, value) for value in grounder.values)
    # No decoy is named, and something was served: then all of it is one.
    return bool(decoys) or not any(
        grounder.ground(span, reading.turn_at(span[0])).matches for span in spans
    )


def _invents(reading: TrialReading, value: Value) -> bool:
    if value.readings and not any(value.readings):
        return False
    return not reading.said.holds(value, reading.turn_at(value.start))
