"""Mutation testing of the score: a false value in a true answer must cost the answer something."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import msgspec

from callmark.records.results import Scores, SpanScore
from callmark.records.trace import Trace
from dev.campaign.altering import ALTERATIONS, Place, Target, targets_of
from dev.campaign.reasons import UNEXPLAINED, reason_for
from dev.campaign.tally import Tally
from dev.campaign.trials import Trial

TRIES = 20


def mutate_answers(trials: Sequence[Trial], number: int, seed: str) -> Tally:
    """`number` altered answers, each alteration as often as the others, as far as it applies."""
    rng = random.Random(f"answers {seed}")
    tally = Tally()
    usable = [(trial, _good_spans(trial)) for trial in trials]
    usable = [(trial, spans) for trial, spans in usable if spans]
    kinds = list(ALTERATIONS)
    for turn in range(number):
        kind = kinds[turn % len(kinds)]
        found = _mutant(rng, usable, kind)
        if found is not None:
            _judge(tally, kind, *found)
    return tally


def _good_spans(trial: Trial) -> list[SpanScore]:
    return [span for span in trial.scores.spans if span.good and span.scored]


def _mutant(
    rng: random.Random, usable: Sequence[tuple[Trial, list[SpanScore]]], kind: str
) -> tuple[Trial, Target, Place] | None:
    alter, kinds = ALTERATIONS[kind]
    for _ in range(TRIES):
        trial, spans = rng.choice(usable)
        answer = trial.trace.model_output
        targets = [one for one in targets_of(answer, rng.choice(spans)) if one.kind in kinds]
        if targets:
            target = rng.choice(targets)
            place = alter(rng, answer, target)
            if place is not None and answer[place.start : place.end] != place.text:
                return trial, target, place
    return None


def _judge(tally: Tally, kind: str, trial: Trial, target: Target, place: Place) -> None:
    original = trial.trace.model_output[place.start : place.end]
    trace = replaced(trial.trace, place)
    after = trial.scored(trace)
    shown = f"{original!r} -> {place.text!r} in {trial.sample.sample_id}"
    if after.lax.f1 > trial.scores.lax.f1 + 1e-12 and not _fewer_counted(trial.scores, after):
        tally.note(kind, f"{UNEXPLAINED}: the score rose", shown)
        return
    spans = list(_spans_around(after, trace, place))
    tally.lowered[kind] += after.lax.f1 < trial.scores.lax.f1 - 1e-12
    if _is_found_out(kind, spans, after, trace, place):
        tally.killed[kind] += 1
    else:
        start, end = _around(trace, place)
        stated = [one for one in after.statements if one.start < end and one.end > start]
        reason = reason_for(kind, original, place, trial, spans[0], stated)
        tally.note(kind, reason, shown)


def _is_found_out(
    kind: str, spans: Sequence[SpanScore], after: Scores, trace: Trace, place: Place
) -> bool:
    """Nothing there counts as good any more, or the altered value is called unsupported or has a
    flag."""
    if not any(span.good for span in spans):
        return True
    if kind == "name":
        return not _still_matched(spans, trace, place)
    start, end = _around(trace, place)
    wrong = [(one.start, one.end) for one in after.statements if one.is_flag]
    for span in spans:
        wrong += ((one.start, one.end) for one in span.values if one.label == "unsupported")
    return any(first < end and last > start for first, last in wrong)


def _fewer_counted(before: Scores, after: Scores) -> bool:
    """A sentence that only repeats the user leaves the denominator: precision may rise."""
    return after.spans_counted < before.spans_counted


def replaced(trace: Trace, place: Place) -> Trace:
    """The trace with another text at this place; the turns after it move."""
    text = trace.model_output
    new = text[: place.start] + place.text + text[place.end :]
    at = _size(text[: place.start])
    by = _size(place.text) - _size(text[place.start : place.end])
    turns = trace.turns
    if turns is not None:
        turns = tuple(
            (start + by if start > at else start, end + by if end > at else end)
            for start, end in turns
        )
    return msgspec.structs.replace(trace, model_output=new, turns=turns)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _around(trace: Trace, place: Place) -> tuple[int, int]:
    start = _size(trace.model_output[: place.start])
    return start, start + _size(place.text)


def _spans_around(after: Scores, trace: Trace, place: Place) -> Iterator[SpanScore]:
    start, end = _around(trace, place)
    for span in after.spans:
        if span.start < end and span.end > start:
            yield span


def _still_matched(spans: Sequence[SpanScore], trace: Trace, place: Place) -> bool:
    """Is the altered name itself still taken for evidence?"""
    start, end = _around(trace, place)
    return any(
        match.start <= start and match.end >= end and match.kind in ("text", "line", "quote")
        for span in spans
        for match in span.matches
    )
