"""Where in a real answer a mistake can be planted: statements that were found good."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple, TypeVar

from callmark.grounding.binding import Names
from callmark.grounding.checking import StatementFinding
from callmark.grounding.reading import read_stated
from callmark.grounding.record_tree import Field, RecordTree, number_of
from callmark.grounding.spans import Outline, Span
from callmark.grounding.values import Value
from callmark.records.jsontext import Json
from callmark.records.statements import FLAGS, GOOD
from dev.agree.material import RealTrial
from dev.campaign.altering import Place

_Option = TypeVar("_Option")
_INDEXED = re.compile(r"/[^/]*\d[^/]*")


class Mutation(NamedTuple):
    """Places of one answer with what stands there instead. `statement` tells mutations of one
    statement from those of another."""

    kind: str
    places: tuple[Place, ...]
    statement: int


class GoodValue(NamedTuple):
    """A value that results support, in a clause without a flag; `start` to `end` are its own
    characters, which may be fewer than those of the statement."""

    finding: StatementFinding
    value: Value
    start: int
    end: int

    @property
    def field(self) -> Field | None:
        return self.finding.fields[0] if self.finding.fields else None


def pick(options: Sequence[_Option], *seed: object) -> _Option:
    """One of them, decided by a hash: the same in every run."""
    return options[int(sha256(repr(seed).encode()).hexdigest(), 16) % len(options)]


def kind_of_path(path: str) -> str:
    return _INDEXED.sub("/*", path)


def stated_like(value: Json, text: str) -> str | None:
    """A leaf as the answer would write it, where `text` is how it writes its like."""
    number = number_of(value)
    if number is None:
        return value if isinstance(value, str) and 0 < len(value) <= 60 else None
    grouped = "," in text and abs(float(str(value))) >= 1000
    decimals = len(text.partition(".")[2])
    if isinstance(value, float) and (decimals or not value.is_integer()):
        return f"{value:,.{max(decimals, 2)}f}" if grouped else f"{value:.{max(decimals, 2)}f}"
    return f"{int(float(str(value))):,}" if grouped else str(value)


class Sites:
    """One trial as it is, with everything that the kinds of mutations look for."""

    def __init__(self, trial: RealTrial) -> None:
        self.trial = trial
        self.reading, statements = trial.check()
        self.text = self.reading.text
        self.findings = statements.findings
        self.outline = Outline(self.text)
        flags = [one.start for one in self.findings if one.label in FLAGS]
        self._unclean = {self.outline.clause_at(start) for start in flags}

    @cached_property
    def tree(self) -> RecordTree:
        return RecordTree(self.reading.served)

    @cached_property
    def names(self) -> Names:
        return Names(self.tree.records)

    @cached_property
    def alike(self) -> dict[tuple[str, str], list[Field]]:
        """The leaves of all results by key and kind of path."""
        found: dict[tuple[str, str], list[Field]] = {}
        for field in self.tree.fields:
            found.setdefault((field.key, kind_of_path(field.path)), []).append(field)
        return found

    def is_clean(self, position: int) -> bool:
        return self.outline.clause_at(position) not in self._unclean

    @cached_property
    def good(self) -> list[StatementFinding]:
        return [one for one in self.findings if one.label in GOOD and self.is_clean(one.start)]

    @cached_property
    def good_clauses(self) -> dict[Span, StatementFinding]:
        """The clauses that say something good about the results, with the first of it."""
        found: dict[Span, StatementFinding] = {}
        for one in self.good:
            found.setdefault(self.outline.clause_at(one.start), one)
        return found

    @cached_property
    def values(self) -> list[GoodValue]:
        return list(self._values(self.reading.grounder.values))

    @cached_property
    def counts(self) -> list[GoodValue]:
        """What counts the things of a list, in digits or in words."""
        locale = self.trial.sample.expectation.locale
        stated = read_stated(self.text, self.reading.grounder.values, locale)
        return [one for one in self._values(stated) if one.finding.rule == "count"]

    def _values(self, values: Sequence[Value]) -> Iterator[GoodValue]:
        by_range = {(value.start, value.end): value for value in values}
        for one in self.good:
            value = by_range.get((one.start, one.end))
            at = -1 if value is None else self.text.find(value.text, one.start, one.end)
            if value is not None and at >= 0:
                yield GoodValue(one, value, at, at + len(value.text))
