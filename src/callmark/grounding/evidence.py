"""Evidence: the leaves of the served results, indexed by what an answer may take from them.

Text leaves are scanned for values, and split into lines and sentences, only when the first
question about values or texts is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from callmark.grounding.dates import Moment
from callmark.grounding.leaves import Leaf, ListFacts, Served, Walk, best_of, note
from callmark.grounding.numbers import SCALE, TOLERANCE, of_json
from callmark.grounding.text import find_at_boundaries
from callmark.grounding.texts import Texts
from callmark.grounding.value import LONG_DIGITS, PARTIAL_DIGITS, Value, ends_in, identifier_key

MAX_PARTIAL = 20  # digits of an identifier's end; nobody states more
MAX_DISTINCT = 32  # beyond that many numbers some sum or difference fits anything
_IDENTIFIER_LEAF = re.compile(r"(?=[^\d]*\d)(?=\W*[^\W\d])[\w\-# ]{2,40}")


class Evidence:
    """All leaves of the served results of one trial."""

    def __init__(self, served: Iterable[Served]) -> None:
        self.leaves: list[Leaf] = []
        self.lists: list[ListFacts] = []
        self.has_errors = False
        for one in served:
            self.has_errors = self.has_errors or one.error
            walk = Walk(one)
            self.leaves += walk.leaves
            self.lists += walk.lists

    @property
    def substantial(self) -> bool:
        """Is there any leaf but booleans, null, 0, empty texts, echoes and errors?"""
        return any(not leaf.error and leaf.value not in (0, "") for leaf in self.leaves)

    @cached_property
    def _values(self) -> _ValueIndex:
        return _ValueIndex(self.leaves)

    @cached_property
    def texts(self) -> Texts:
        return Texts(leaf for leaf in self.leaves if isinstance(leaf.value, str))

    def number(self, scaled: int, turn: int | None, errors: bool) -> Leaf | None:
        """A leaf whose number differs by at most 10⁻⁶."""
        return best_of(self._values.near(scaled), turn, errors)

    def identifier(self, key: str, turn: int | None, errors: bool) -> Leaf | None:
        return best_of(self._values.identifiers.get(key, ()), turn, errors)

    def identifier_ending(self, digits: str, turn: int | None, errors: bool) -> Leaf | None:
        """An identifier whose last group these digits are: `7504069` of `certificate_7504069`."""
        return best_of(self._values.endings.get(digits, ()), turn, errors)

    def partial(self, digits: str, turn: int | None, errors: bool) -> Leaf | None:
        """A longer identifier or account number that ends in these digits."""
        if not PARTIAL_DIGITS <= len(digits) <= MAX_PARTIAL:
            return None
        return best_of(self._values.ending_in(digits), turn, errors)

    def moment(self, stated: Moment, turn: int | None, errors: bool) -> Leaf | None:
        return best_of(self._values.at(stated), turn, errors)

    def link(self, key: str, turn: int | None, errors: bool) -> Leaf | None:
        return best_of(self._values.links.get(key, ()), turn, errors)

    def leaves_with(self, folded: str, value: Value | None, turn: int | None) -> list[Leaf]:
        """Every leaf, errors left out, that holds this value, or this text at boundaries."""
        return [
            leaf
            for leaf in self.leaves
            if not leaf.error and leaf.counts_for(turn) and _holds(leaf, folded, value)
        ]

    def countable(self, turn: int | None) -> Iterator[tuple[str, int, Leaf]]:
        """(key, number, leaf) of the results that are small enough to compute with."""
        for (call, key, scaled), leaves in self._values.countable.items():
            if leaves[0].counts_for(turn) and self.is_small((call,)):
                for leaf in leaves:
                    yield key, scaled, leaf

    def is_small(self, calls: Iterable[int]) -> bool:
        distinct = [self._values.distinct.get(call, set()) for call in set(calls)]
        if any(len(numbers) > MAX_DISTINCT for numbers in distinct):
            return False
        return len(set().union(*distinct)) <= MAX_DISTINCT


class _ValueIndex:
    """Numbers, identifiers, moments and links of the leaves."""

    def __init__(self, leaves: Iterable[Leaf]) -> None:
        self.numbers: dict[int, list[Leaf]] = {}
        self.buckets: dict[int, list[int]] = {}
        self.identifiers: dict[str, list[Leaf]] = {}
        self.endings: dict[str, list[Leaf]] = {}
        self.moments: dict[tuple[str, ...], dict[Moment, list[Leaf]]] = {}
        self.links: dict[str, list[Leaf]] = {}
        self.distinct: dict[int, set[int]] = {}
        self.countable: dict[tuple[int, str, int], list[Leaf]] = {}
        for leaf in leaves:
            if not isinstance(leaf.value, str):
                self._add_number(of_json(leaf.value), leaf)
                continue
            for value in leaf.values:
                self._add_value(value, leaf)
            if len(leaf.value) <= 40 and _IDENTIFIER_LEAF.fullmatch(leaf.value):
                self._add_identifier(identifier_key(leaf.value), leaf)

    def near(self, scaled: int) -> Iterator[Leaf]:
        bucket = scaled // TOLERANCE
        for neighbour in (bucket, bucket - 1, bucket + 1):
            for other in self.buckets.get(neighbour, ()):
                if abs(other - scaled) <= TOLERANCE:
                    yield from self.numbers[other]

    def ending_in(self, digits: str) -> Iterator[Leaf]:
        for key, leaves in self.identifiers.items():
            if ends_in(key, digits):
                yield from leaves
        least = 10 ** (max(LONG_DIGITS, len(digits) + 1) - 1)
        for scaled, leaves in self.numbers.items():
            whole, rest = divmod(scaled, SCALE)
            if not rest and whole >= least and whole % 10 ** len(digits) == int(digits):
                yield from leaves

    def at(self, stated: Moment) -> Iterator[Leaf]:
        """Leaves whose moment states all that was stated, and the same."""
        for key in _moment_keys(stated)[:1]:
            for moment, leaves in self.moments.get(key, {}).items():
                if stated.agrees(moment):
                    yield from leaves

    def _add_number(self, scaled: int, leaf: Leaf) -> None:
        leaves = self.numbers.get(scaled)
        if leaves is None:
            leaves = self.numbers[scaled] = []
            self.buckets.setdefault(scaled // TOLERANCE, []).append(scaled)
        note(leaves, leaf)
        if not leaf.error:
            self.distinct.setdefault(leaf.call, set()).add(scaled)
            same = self.countable.setdefault((leaf.call, leaf.key, scaled), [])
            if len(same) < 2:  # a + a needs two of them, nothing needs three
                same.append(leaf)

    def _add_value(self, value: Value, leaf: Leaf) -> None:
        for scaled in value.readings:
            self._add_number(scaled, leaf)
        for moment in value.moments:
            for key in _moment_keys(moment):
                note(self.moments.setdefault(key, {}).setdefault(moment, []), leaf)
        if value.kind == "identifier":
            self._add_identifier(value.key, leaf)
        elif value.kind in ("url", "email"):
            note(self.links.setdefault(value.key, []), leaf)
            if value.kind == "url":
                host = value.key.partition("/")[0] + "/"
                note(self.links.setdefault(host, []), leaf)
        for inner in value.inner:
            self._add_value(inner, leaf)

    def _add_identifier(self, key: str, leaf: Leaf) -> None:
        note(self.identifiers.setdefault(key, []), leaf)
        letters = key.rstrip("0123456789")
        if len(key) - len(letters) >= LONG_DIGITS and letters:
            note(self.endings.setdefault(key[len(letters) :], []), leaf)


_MOMENT_KEYS = (
    ("year", "month", "day"),
    ("month", "day"),
    ("year", "month"),
    ("hour", "minute"),
    ("hour",),
)


def _moment_keys(moment: Moment) -> list[tuple[str, ...]]:
    """Where a moment is filed, the most telling key first: that is where a question looks."""
    parts = moment._asdict()
    return [
        (*names, *(str(parts[name]) for name in names))
        for names in _MOMENT_KEYS
        if all(parts[name] is not None for name in names)
    ]


def _holds(leaf: Leaf, folded: str, value: Value | None) -> bool:
    if value is None:
        return isinstance(leaf.value, str) and find_at_boundaries(folded, leaf.folded) >= 0
    if isinstance(leaf.value, str):
        return any(states(value, other) for other in flat(leaf.values)) or (
            value.kind == "identifier" and identifier_key(leaf.value) == value.key
        )
    number = of_json(leaf.value)
    return any(abs(reading - number) <= TOLERANCE for reading in value.readings)


def flat(values: Iterable[Value]) -> Iterator[Value]:
    """The values, and those that stand inside them."""
    for value in values:
        yield value
        yield from flat(value.inner)


def states(value: Value, known: Value) -> bool:
    """Does the value state what is known, as far as it goes?"""
    if any(abs(a - b) <= TOLERANCE for a in value.readings for b in known.readings):
        return True
    if any(a.groundable and a.agrees(b) for a in value.moments for b in known.moments):
        return True
    return bool(value.key) and value.kind != "number" and value.key == known.key
