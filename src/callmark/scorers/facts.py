"""Which required facts an answer states: where it says them, and whether it stands by them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from callmark.grounding.checking import StatementFinding
from callmark.grounding.evidence import Evidence, Leaf, states
from callmark.grounding.ground import Fact, FoundFacts
from callmark.grounding.match import Grounder
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import find_at_boundaries, fold, is_boundary, once
from callmark.grounding.values import Value
from callmark.records.statements import FLAGS
from callmark.scorers.asserting import Assertions

# Beside these, an `or` gives the same in other words.
_SAME = frozenset(("supported", "rounded", "converted", "calculated"))
_IN_OTHER_WORDS = frozenset(("rounded", "converted", "calculated"))


Told = tuple[Span, int | None]  # a scored span, and its turn


def count_facts(
    facts: Sequence[Fact], evidence: Evidence, turns_of: Iterable[Iterable[int | None]]
) -> FoundFacts:
    """`turns_of`: for each fact, the turns of the spans that state it."""
    lax = strict = 0
    missing: list[int] = []
    for number, (fact, turns) in enumerate(zip(facts, turns_of, strict=True)):
        leaves: list[Leaf] = []
        for turn in dict.fromkeys(turns):
            leaves += fact.support(evidence, turn)
        lax += bool(leaves)
        strict += any(leaf.strict for leaf in leaves)
        if not leaves:
            missing.append(number)
    return FoundFacts(lax, strict, tuple(missing))


def turns_that_hold(fact: Fact, grounder: Grounder, told: Iterable[Told]) -> Iterator[int | None]:
    """Under `marker`: whatever stands in a marked span is integrated."""
    return (turn for span, turn in told if fact.is_in(grounder, span))


class StatedFacts:
    """Under `claims`: a fact is stated where the answer says that it is so, and no firm flag
    lies on it."""

    def __init__(
        self,
        outline: Outline,
        grounder: Grounder,
        evidence: Evidence,
        findings: Sequence[StatementFinding],
        facts: Sequence[Fact],
        is_firm: Callable[[StatementFinding], bool],
    ) -> None:
        self._grounder, self._evidence = grounder, evidence
        self._facts = facts
        self._assertions = Assertions(outline, grounder.values)
        self._label_at = {one.start: one.label for one in findings}
        # In another unit or scale it is another value, whatever the tier of the rule that says so.
        self._flagged = sorted(
            (one.start, one.end) for one in findings if is_firm(one) or one.label == "unit_mismatch"
        )
        self._given: dict[tuple[str, int | None], bool] = {}
        self._flagged_starts = [start for start, _ in self._flagged]

    @once
    def _longest_flag(self) -> int:
        return max((end - start for start, end in self._flagged), default=0)

    def turns_that_state(self, fact: Fact, told: Sequence[Told]) -> Iterator[int | None]:
        """The turns of the spans where it is stated, and not taken back."""
        is_amount = fact.value is not None and fact.value.kind in ("number", "moment")
        stated: list[tuple[Span, int | None]] = []
        denied: list[Span] = []
        for span, turn in told:
            for place in places_of(fact, self._grounder, span):
                if self._is_stated(fact, place, turn, is_amount):
                    stated.append((place, turn))
                elif self._assertions.denies(place, is_amount):
                    denied.append(place)
        for place, turn in stated:
            if not self._assertions.takes_back(place, denied) and not self._is_corrected(place):
                yield turn

    def _is_stated(self, fact: Fact, place: Span, turn: int | None, is_amount: bool) -> bool:
        if self._is_flagged(place) or not self._assertions.states(place, is_amount):
            return False
        if fact.value is None:
            return not self._is_one_name_of_many(place, turn)
        return not self._is_one_of_many(place)

    def _is_flagged(self, place: Span) -> bool:
        """Does a firm flag lie on it, or is it another value? An advisory rule that calls it
        somebody else's takes nothing away."""
        first = bisect_left(self._flagged_starts, place[0] - self._longest_flag)
        last = bisect_right(self._flagged_starts, place[1] - 1)
        return any(end > place[0] for _, end in self._flagged[first:last])

    def _is_one_of_many(self, place: Span) -> bool:
        """`1219 or 1630 points` states neither, but where the other is a fact or the same."""
        others = list(self._assertions.alternatives(place))
        if not others:
            return False
        same = _IN_OTHER_WORDS if self._assertions.is_one_of(place) else _SAME
        return any(
            self._label_at.get(one.start) not in same and not self._is_fact(one) for one in others
        )

    def _is_fact(self, value: Value) -> bool:
        return any(fact.value is not None and states(value, fact.value) for fact in self._facts)

    def _is_one_name_of_many(self, place: Span, turn: int | None) -> bool:
        """`basic, silver or gold`, where the results do not give them all."""
        required = {fact.text for fact in self._facts}
        return any(
            not any(name in required or self._is_given(name, turn) for name in map(fold, ways))
            for ways in self._assertions.texts_beside(place)
        )

    def _is_given(self, name: str, turn: int | None) -> bool:
        found = self._given.get((name, turn))
        if found is None:
            found = bool(self._evidence.leaves_with(name, None, turn))
            self._given[name, turn] = found
        return found

    def _is_corrected(self, place: Span) -> bool:
        """Another value, which no result gives, is put in its place."""
        return any(
            self._label_at.get(one.start) in FLAGS or self._label_at.get(one.start) == "unchecked"
            for one in self._assertions.corrected_by(place)
        )


def places_of(fact: Fact, grounder: Grounder, span: Span) -> Iterator[Span]:
    """Where a span holds it."""
    if not fact.is_in(grounder, span):
        return
    if fact.value is None:
        yield from places_of_text(grounder.text, fact.text, span)
        return
    for value in grounder.values_in(span):
        place = value.start, value.end
        if fact.is_in(grounder, place):
            yield place


def places_of_text(text: str, folded: str, span: Span) -> Iterator[Span]:
    """Where a folded text stands in a span, between boundaries."""
    piece = text[span[0] : span[1]]
    within = fold(piece)
    if len(within) != len(piece):  # characters or blanks were folded: as a whole
        if find_at_boundaries(folded, within) >= 0:
            yield span
        return
    at = within.find(folded)
    while at >= 0:
        end = at + len(folded)
        if is_boundary(within, at) and is_boundary(within, end):
            yield span[0] + at, span[0] + end
        at = within.find(folded, at + 1)
