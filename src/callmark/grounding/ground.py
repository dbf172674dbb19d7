"""A single value, text or span that is looked for in served results: a required fact, a decoy, and
what callers outside the pipeline ask."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from callmark.grounding.evidence import Evidence, Leaf, Served, flat, states
from callmark.grounding.match import Grounder, Said, Utterance
from callmark.grounding.numbers import of_json
from callmark.grounding.spans import Span
from callmark.grounding.text import find_at_boundaries, fold
from callmark.grounding.values import Value, find_values
from callmark.records.jsontext import Json, plain
from callmark.records.samples import DEFAULT_STRICT_KEYS
from callmark.records.trace import is_error_result, is_miss_result

_TRIM = " .,;:!?…"


class FoundFacts(NamedTuple):
    """How many facts are stated and supported by evidence, by keyed evidence; `missing`: the
    numbers of those that are not."""

    lax: int
    strict: int
    missing: tuple[int, ...]


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


def ground(
    span: str,
    results: Sequence[Json],
    *,
    said: Iterable[str] = (),
    strict_keys: Collection[str] | None = None,
    locale: str | None = None,
) -> dict[str, Any]:
    """Look for what a text says in the results that tools gave.

    Args:
        span: the text, such as a sentence of an answer.
        results: what the tools returned, each any JSON value.
        said: what the user said: repeating it invents nothing.
        strict_keys: the fields in which a value counts as `strict`; None: the shipped ones.
        locale: how numbers and dates are written, such as `de`; None: any way.

    Returns:
        `lax` and `strict` (is it grounded?), `matches` (in what: byte ranges of the span, `call`
        = index of the result, JSON path) and `unsupported_values` (what it invents).

    Raises:
        TypeError: the span is no text.

    >>> import callmark
    >>> found = callmark.ground("There are 12 boats.", [{"count": 12}])
    >>> found["lax"], found["matches"][0]["path"]
    (True, '/count')
    >>> callmark.ground("There are 13 boats.", [{"count": 12}])["unsupported_values"]
    ['13']
    """
    keys = frozenset(DEFAULT_STRICT_KEYS if strict_keys is None else strict_keys)
    evidence = Evidence(
        Served(index, None, result, None, is_error_result(result), keys)
        for index, result in enumerate(results)
        if not is_miss_result(result)
    )
    utterances = Said((Utterance(0, text) for text in said), locale)
    grounder = Grounder(span, find_values(span, locale), evidence, utterances)
    grounding = grounder.ground((0, len(span)), None)
    encoded = span.encode("utf-8", "surrogatepass")
    return {
        "lax": bool(grounding.matches),
        "strict": any(match.strict for match in grounding.matches),
        "matches": plain(grounding.matches + grounding.derived),
        "unsupported_values": [
            encoded[mark.start : mark.end].decode("utf-8", "replace")
            for mark in grounding.marks
            if mark.label == "unsupported"
        ],
    }
