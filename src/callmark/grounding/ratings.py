"""What something is rated as a whole, where the ratings of which that is made stand beside it: a
number of these is easily taken for the other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from callmark.grounding.checking import StatementFinding
from callmark.grounding.numbers import SCALE
from callmark.grounding.record_tree import Field, RecordTree, ResultRecord, key_words
from callmark.grounding.spans import Outline
from callmark.records.statements import GOOD

RATINGS = frozenset("stars star rating ratings".split())  # a score may be of anything
FEWEST = 2  # ratings of which one is made
MOST_RECORDS = 60
HIGHEST = 5 * SCALE
FAR = 60  # characters before it in which it may be said who gave it
_STATED = re.compile(
    r"\b(?:average|overall|total|combined|with|has|have|holds|boasts|earned|maintains)\s"
    r"(?:an?\s)?(?:\w+\s){0,2}rating\s(?:of|is|at)\s$",
    re.IGNORECASE,
)
_OF_FIVE = re.compile(r"(?:\s?(?:/|out\sof)\s?(?:5|five)\b(?:\.0)?|[\s-]stars?\b)", re.IGNORECASE)
_GIVEN = re.compile(
    r"\b(?:gave|gives?|giving|given|left|leaving|reviewers?|customers?|guests?|users?|one|another"
    r"|some|others|each|lower|higher|lowest|highest|perfect)\b",
    re.IGNORECASE,
)


class _Whole(NamedTuple):
    field: Field
    number: int
    mean: int  # of its parts


def find_misrated(
    outline: Outline, tree: RecordTree, findings: Iterable[StatementFinding]
) -> Iterator[StatementFinding]:
    """All findings; those that say what the whole is rated, and are wrong, as such."""
    whole = _whole_in(tree) if "rating" in outline.words else None
    for one in findings:
        is_told = whole is not None and (one.label in GOOD or one.rule == "small number")
        if whole is None or not is_told or not _is_wrong(outline, one, whole):
            yield one
            continue
        because = f"{whole.field.key} is {whole.field.value}"
        own = (whole.field,)
        if one.fields:
            yield StatementFinding(one.start, one.end, "misattributed", "binding", own, because)
        else:
            yield StatementFinding(one.start, one.end, "unsupported", "value", own, because)


def _is_wrong(outline: Outline, one: StatementFinding, whole: _Whole) -> bool:
    text = outline.text
    start = max(outline.sentence_at(one.start)[0], one.start - FAR)
    stated = _STATED.search(text, start, one.start)
    if stated is None or _OF_FIVE.match(text, one.end) is None:
        return False
    if _GIVEN.search(text, start, one.start):
        return False
    try:
        number = int(float(text[one.start : one.end]) * SCALE)
    except ValueError:  # a word, which may be rounded
        return False
    places = len(text[one.start : one.end].partition(".")[2])
    half = SCALE // (2 * 10**places)
    return all(abs(number - known) > half for known in (whole.number, whole.mean))


def _whole_in(tree: RecordTree) -> _Whole | None:
    """The one record that is rated and has rated parts: of several any may be meant."""
    found: list[_Whole] = []
    for record in tree.records:
        own = _rating_of(record) if record.children else None
        if own is None or own.number is None:
            continue
        parts = [one.number for one in map(_rating_of, _below(record)) if one is not None]
        numbers = [one for one in parts if one is not None]
        if len(numbers) >= FEWEST:
            found.append(_Whole(own, own.number, sum(numbers) // len(numbers)))
        if len(found) > 1:
            return None
    return found[0] if found else None


def _below(record: ResultRecord) -> Iterator[ResultRecord]:
    for one in islice(record.children, MOST_RECORDS):
        yield one
        yield from islice(one.children, MOST_RECORDS)


def _rating_of(record: ResultRecord) -> Field | None:
    rated = [
        one
        for one in record.fields
        if one.number is not None
        and 0 <= one.number <= HIGHEST
        and not RATINGS.isdisjoint(key_words(one.key))
    ]
    return rated[0] if len(rated) == 1 else None
