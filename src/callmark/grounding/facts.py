"""A single value or text that is looked for: a required fact, a decoy."""

from __future__ import annotations

from typing import NamedTuple

from callmark.grounding.evidence import Evidence, Leaf, flat, states
from callmark.grounding.match import Grounder
from callmark.grounding.numbers import of_json
from callmark.grounding.spans import Span
from callmark.grounding.text import find_at_boundaries, fold
from callmark.grounding.values import Value, find_values

_TRIM = " .,;:!?…"


class Fact(NamedTuple):
    """`value` None: it is compared as text."""

    text: str
    value: Value | None

    def is_in(self, grounder: Grounder, span: Span) -> bool:
        """Does the span hold it, in whatever form?"""
        if self.value is not None:
            return any(self._is(other, grounder) for other in flat(grounder.values_in(span)))
        return find_at_boundaries(self.text, fold(grounder.text[span[0] : span[1]])) >= 0

    def _is(self, other: Value, grounder: Grounder) -> bool:
        if self.value is None:
            return False
        return states(other, self.value) or (
            self.value.kind == "identifier"
            and other.text.isdecimal()
            and any(key == self.value.key for _, key in grounder.joined_keys(other))
        )

    def support(self, evidence: Evidence, turn: int | None) -> list[Leaf]:
        """The leaves of served results that hold it."""
        return evidence.leaves_with(self.text, self.value, turn)


def fact_of(given: str | int | float) -> Fact:
    if not isinstance(given, str):
        return Fact(str(given), Value(0, 0, "number", str(given), (of_json(given),)))
    text = given.strip(_TRIM)
    values = find_values(text)
    whole = len(values) == 1 and values[0].start == 0 and values[0].end == len(text)
    if whole and values[0].kind not in ("quote", "code"):
        return Fact(fold(text), values[0])
    return Fact(fold(text), None)
