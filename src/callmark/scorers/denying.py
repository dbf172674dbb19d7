"""What was found right is wrong where the answer itself says that it is not so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from callmark.grounding.checking import StatementFinding
from callmark.grounding.denials import (
    asks_whether,
    find_denied_clauses,
    is_denied_value,
    may_be_untrue,
)
from callmark.grounding.spans import Outline, Span
from callmark.records.statements import FLAGS, GOOD

if TYPE_CHECKING:
    from callmark.scorers.integration import TrialReading

FEWEST_WORDS = 3  # of a text of a result that is denied as a whole
_OF_CLAUSES = frozenset(
    ("polarity", "deed", "hours", "state", "rank")
)  # whose negations are part of them


def deny(
    reading: TrialReading, outline: Outline, findings: Iterable[StatementFinding]
) -> Iterator[StatementFinding]:
    """A sentence that repeats the text of a result without a value is denied as a whole."""
    told = list(findings)
    if not outline.takes_back:
        yield from (_deny_value(outline, one) for one in told)
        return
    clauses = find_denied_clauses(outline)
    explained = [one for one in clauses if _is_explained(reading, told, one)]
    touched: set[Span] = {outline.sentence_at(start) for start, _ in explained}
    for one in told:
        if outline.is_denied(one.start) and one.label in GOOD and _is_taken_as_true(one):
            # What the denied clause is about is not what it denies: `that order #W12 was sent`.
            inside = [span for span in clauses if span[0] <= one.start < span[1]]
            if any(span in explained for span in inside) or (inside and _is_topic(reading, one)):
                touched.add(outline.sentence_at(one.start))
                yield one
                continue
            touched.add(outline.sentence_at(one.start))
            yield _denied(one)
        else:
            yield _deny_value(outline, one)
    yield from _denied_texts(reading, outline, touched, clauses)


def _denied(one: StatementFinding) -> StatementFinding:
    because = "the answer says that this is not so"
    return one._replace(label="contradicted", rule="denial", because=because)


def _is_taken_as_true(one: StatementFinding) -> bool:
    return not any(may_be_untrue(field.path, field.value) for field in one.fields)


def _deny_value(outline: Outline, one: StatementFinding) -> StatementFinding:
    """`It is not $64`."""
    is_denied = (
        one.label in GOOD
        and one.rule not in _OF_CLAUSES
        and is_denied_value(outline, one.start, one.end)
        and _is_taken_as_true(one)
    )
    return _denied(one) if is_denied else one


def _is_explained(
    reading: TrialReading, findings: Sequence[StatementFinding], clause: Span
) -> bool:
    """Is there something in it that is wrong indeed, or that the user just said? Then that is what
    it denies."""
    return any(
        clause[0] <= one.start < clause[1]
        and one.rule not in _OF_CLAUSES
        and (one.rule in ("value", "misread") or one.label == "user_said")
        and (one.label in FLAGS or _was_just_said(reading, one))
        for one in findings
    )


def _is_topic(reading: TrialReading, one: StatementFinding) -> bool:
    """A code that the user just named."""
    said = reading.text[one.start : one.end]
    is_code = said.startswith("#") or (any(map(str.isdecimal, said)) and not said.isdecimal())
    return is_code and any(map(str.isalpha, said)) and _was_just_said(reading, one)


def _was_just_said(reading: TrialReading, one: StatementFinding) -> bool:
    """In the last thing that the user said before this turn, where that asks whether it is so."""
    turn = reading.turn_at(one.start)
    earlier = [text for text, at in reading.asked if turn is None or at < turn]
    return bool(earlier) and asks_whether(earlier[-1], reading.text[one.start : one.end])


def _denied_texts(
    reading: TrialReading, outline: Outline, touched: set[Span], clauses: Sequence[Span]
) -> Iterator[StatementFinding]:
    for span in outline.sentences:
        last = span[1] - 1
        if span in touched or not outline.is_denied(last):
            continue
        # A name alone may stand in what is rightly denied: `that Saturn is the largest`.
        fewest = FEWEST_WORDS if any(start <= last < end for start, end in clauses) else 1
        turn = reading.turn_at(span[0])
        if any(
            len(one.value.split()) >= fewest and not may_be_untrue(one.path, one.value)
            for one in reading.grounder.find_texts(span, turn, [])
            if isinstance(one.value, str)
        ):
            because = "a text of a result, of which the answer says that it is not so"
            yield StatementFinding(*span, "contradicted", "denial", (), because)
