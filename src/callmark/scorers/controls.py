"""Samples where the right answer uses no tool result: controls, negative controls, clarify."""

from __future__ import annotations

from callmark.core.trace import Trace
from callmark.grounding.facts import fact_of
from callmark.grounding.spans import marker_spans, sentences
from callmark.grounding.value import Value
from callmark.scorers.reading import TrialReading

_QUESTION_MARKS = "?？؟"


def contaminated(trace: Trace) -> bool:
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
