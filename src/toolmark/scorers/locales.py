"""Locale probes: numbers and dates in the form that the sample's locale writes them."""

from __future__ import annotations

from collections.abc import Sequence

from toolmark.grounding.spans import Span
from toolmark.grounding.values import Value, readings_in_any_locale
from toolmark.scorers.reading import Reading


def writes_its_locale(reading: Reading, scored: Sequence[Span]) -> bool:
    """The scored spans hold a number or date, and each that equals an evidence value in some
    locale's reading equals it in the sample's own."""
    values = [
        value
        for span in scored
        for value in reading.grounder.values_in(span)
        if value.kind in ("number", "moment")
    ]
    return bool(values) and all(_own_form(reading, value) for value in values)


def _own_form(reading: Reading, value: Value) -> bool:
    turn = reading.turn_at(value.start)
    evidence = reading.evidence
    if value.kind == "number":
        own = any(evidence.number(number, turn, False) for number in value.readings)
        return own or not any(
            evidence.number(number, turn, False) for number in readings_in_any_locale(value)
        )
    own = any(evidence.moment(moment, turn, False) for moment in value.moments)
    return own or not any(evidence.moment(moment, turn, False) for moment in value.every_way)
