"""Locale probes: numbers and dates in the form that the sample's locale writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from callmark.grounding.figures import readings_in_any_locale
from callmark.grounding.numbers import form_of, read_every_way
from callmark.grounding.spans import Span
from callmark.grounding.value import Value
from callmark.scorers.reading import TrialReading

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
