"""Evidence: the leaves of the served results, indexed by what an answer may take from them.

Text leaves are scanned for values, and split into lines and sentences, only when the first
question about values or texts is asked."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from toolmark.core.jsontext import Json
from toolmark.core.trace import json_inside
from toolmark.grounding.dates import Moment
from toolmark.grounding.numbers import SCALE, TOLERANCE, of_json
from toolmark.grounding.spans import sentences
from toolmark.grounding.text import find_at_boundaries, fold, token_pattern
from toolmark.grounding.values import Value, find_values, identifier_key
from toolmark.grounding.words import STOP_WORDS

MAX_DEPTH = 400
RUN_TOKENS = 5
LONG_DIGITS = 5  # that many digits of an identifier stand for it by themselves
MAX_DISTINCT = 32  # beyond that many numbers some sum or difference fits anything
_IDENTIFIER_LEAF = re.compile(r"(?=[^\d]*\d)(?=\W*[^\W\d])[\w\-# ]{2,40}")
_SEVERAL_SENTENCES = re.compile(r"[.!?…]\s|[。！？]|\\n")
_PUNCTUATION = " .,;:!?…。！？、，\"'“”‘’«»()[]{}*`-–—|#>"
_WHOLE_KINDS = frozenset(("number", "moment", "url", "email", "identifier"))


class Served(NamedTuple):
    """One answered call. `turn` None: its place among the turns is not known. `root` is where
    the result lies, for one that stood in the prompt."""

    call: int
    turn: int | None
    result: Json
    arguments: Json
    error: bool
    strict_keys: Collection[str]
    root: str = ""


class Leaf:
    """One leaf of one result."""

    __slots__ = ("_values", "call", "error", "key", "path", "strict", "turn", "value")

    def __init__(self, served: Served, path: str, key: str, strict: bool, value: Json) -> None:
        self.call = served.call
        self.turn = served.turn
        self.error = served.error
        self.path = path
        self.key = key
        self.strict = strict
        self.value = value
        self._values: tuple[Value, ...] | None = None

    @property
    def values(self) -> tuple[Value, ...]:
        """The values that a text leaf holds."""
        if self._values is None:
            self._values = values_of(self.value)
        return self._values

    def counts_for(self, turn: int | None) -> bool:
        """The causal rule: a result counts for what was said in a later turn."""
        return turn is None or self.turn is None or self.turn < turn


class Piece(NamedTuple):
    """A folded text that a span may hold: a whole leaf, or one of its lines or sentences."""

    text: str
    leaf: Leaf
    whole: bool


class ListFacts(NamedTuple):
    """A list in a result: its length, and the sums of its numbers by key."""

    leaf: Leaf
    length: int
    sums: tuple[int, ...]


class Evidence:
    """All leaves of the served results of one trial."""

    def __init__(self, served: Iterable[Served]) -> None:
        self.leaves: list[Leaf] = []
        self.lists: list[ListFacts] = []
        self._texts: list[Leaf] = []
        self._numbers: dict[int, list[tuple[int, Leaf]]] = {}
        self._identifiers: dict[str, list[Leaf]] = {}
        self._suffixes: dict[str, list[Leaf]] = {}
        self._prefixes: dict[str, set[int]] = {}
        self._moments: list[tuple[Moment, Leaf]] = []
        self._links: dict[str, list[Leaf]] = {}
        self._pieces: dict[str, list[Piece]] | None = None
        self._runs: list[tuple[str, Leaf]] = []
        self._scanned = False
        self.has_errors = False
        self._distinct: dict[int, set[int]] = {}
        for one in served:
            self.has_errors = self.has_errors or one.error
            _Walk(self, one).result()

    @property
    def substantial(self) -> bool:
        """Is there any leaf but booleans, null, 0, empty texts, echoes and errors?"""
        return any(not leaf.error and leaf.value not in (0, "") for leaf in self.leaves)

    # --- filling

    def add(self, leaf: Leaf) -> None:
        self.leaves.append(leaf)
        if isinstance(leaf.value, str):
            self._texts.append(leaf)
        else:
            self._add_number(of_json(leaf.value), leaf)

    def _add_number(self, scaled: int, leaf: Leaf) -> None:
        self._numbers.setdefault(scaled // TOLERANCE, []).append((scaled, leaf))
        if not leaf.error:
            self._distinct.setdefault(leaf.call, set()).add(scaled)

    def _scan(self) -> None:
        if self._scanned:
            return
        self._scanned = True
        for leaf in self._texts:
            for value in leaf.values:
                self._add_value(value, leaf)
            if len(leaf.value) <= 40 and _IDENTIFIER_LEAF.fullmatch(leaf.value):
                self._add_identifier(identifier_key(leaf.value), leaf)

    def _add_value(self, value: Value, leaf: Leaf) -> None:
        for scaled in value.readings:
            self._add_number(scaled, leaf)
        for moment in value.moments:
            self._moments.append((moment, leaf))
        if value.kind == "identifier":
            self._add_identifier(value.key, leaf)
        elif value.kind in ("url", "email"):
            self._links.setdefault(value.key, []).append(leaf)
            if value.kind == "url":
                host = value.key.partition("/")[0] + "/"
                self._links.setdefault(host, []).append(leaf)
        for inner in value.inner:
            self._add_value(inner, leaf)

    def _add_identifier(self, key: str, leaf: Leaf) -> None:
        self._identifiers.setdefault(key, []).append(leaf)
        words = key.rstrip("0123456789")
        if len(words) < len(key):
            self._prefixes.setdefault(words, set()).add(len(key) - len(words))
            if len(key) - len(words) >= LONG_DIGITS:
                self._suffixes.setdefault(key[len(words) :], []).append(leaf)

    def _split_texts(self) -> dict[str, list[Piece]]:
        pieces: dict[str, list[Piece]] = {}
        for leaf in self._texts:
            text = leaf.value
            folded = fold(text)
            tokens = token_pattern(folded).findall(folded)
            if len(tokens) > RUN_TOKENS:
                self._runs.append((f" {' '.join(tokens)} ", leaf))
            for piece in _pieces_of(text, folded, leaf):
                first = token_pattern(piece.text).search(piece.text)
                if first is not None:
                    pieces.setdefault(first[0], []).append(piece)
        return pieces

    # --- asking

    def number(self, scaled: int, turn: int | None, errors: bool) -> Leaf | None:
        """A leaf whose number differs by at most 10⁻⁶."""
        self._scan()
        bucket = scaled // TOLERANCE
        near = [
            leaf
            for neighbour in (bucket, bucket - 1, bucket + 1)
            for other, leaf in self._numbers.get(neighbour, ())
            if abs(other - scaled) <= TOLERANCE
        ]
        return _best(near, turn, errors)

    def identifier(self, key: str, turn: int | None, errors: bool) -> Leaf | None:
        self._scan()
        return _best(self._identifiers.get(key, ()), turn, errors)

    def identifier_ending(self, digits: str, turn: int | None, errors: bool) -> Leaf | None:
        """An identifier whose last group these digits are: `7504069` of `certificate_7504069`."""
        self._scan()
        return _best(self._suffixes.get(digits, ()), turn, errors)

    def has_identifiers_like(self, words: str, digits: int) -> bool:
        """Is there an identifier of these letters and about so many digits after them?"""
        self._scan()
        return any(abs(digits - known) <= 1 for known in self._prefixes.get(words, ()))

    def moment(self, stated: Moment, turn: int | None, errors: bool) -> Leaf | None:
        self._scan()
        return _best([leaf for other, leaf in self._moments if stated.agrees(other)], turn, errors)

    def link(self, key: str, turn: int | None, errors: bool) -> Leaf | None:
        self._scan()
        return _best(self._links.get(key, ()), turn, errors)

    def pieces(self) -> dict[str, list[Piece]]:
        """Texts by their first token."""
        if self._pieces is None:
            self._pieces = self._split_texts()
        return self._pieces

    def runs(self) -> list[tuple[str, Leaf]]:
        """The tokens of each longer text, set apart and enclosed by blanks."""
        self.pieces()
        return self._runs

    def quoted(self, folded: str, turn: int | None, errors: bool) -> Leaf | None:
        """A leaf that holds this text between token boundaries."""
        tokens = token_pattern(folded).findall(folded)
        if not telling(tokens):
            return None
        run = f" {' '.join(tokens)} "
        holders = [leaf for text, leaf in self.runs() if run in text]
        holders += [leaf for leaf in self._texts if run in f" {' '.join(tokens_of(leaf.value))} "]
        return _best(holders, turn, errors)

    def leaves_with(self, folded: str, value: Value | None, turn: int | None) -> list[Leaf]:
        """Every leaf, errors left out, that holds this value, or this text at boundaries."""
        return [
            leaf
            for leaf in self.leaves
            if not leaf.error and leaf.counts_for(turn) and _holds(leaf, folded, value)
        ]

    def countable(self, turn: int | None) -> Iterator[tuple[str, int, Leaf]]:
        """(key, number, leaf) of the results that are small enough to compute with."""
        self._scan()
        for entries in self._numbers.values():
            for scaled, leaf in entries:
                if not leaf.error and leaf.counts_for(turn) and self.is_small((leaf.call,)):
                    yield leaf.key, scaled, leaf

    def is_small(self, calls: Iterable[int]) -> bool:
        numbers: set[int] = set()
        for call in set(calls):
            numbers |= self._distinct.get(call, set())
        return len(numbers) <= MAX_DISTINCT


def _holds(leaf: Leaf, folded: str, value: Value | None) -> bool:
    if value is None:
        return isinstance(leaf.value, str) and find_at_boundaries(folded, fold(leaf.value)) >= 0
    if isinstance(leaf.value, str):
        return any(same_value(value, other) for other in leaf.values) or (
            value.kind == "identifier" and identifier_key(leaf.value) == value.key
        )
    number = of_json(leaf.value)
    return any(abs(reading - number) <= TOLERANCE for reading in value.readings)


def same_value(stated: Value, other: Value) -> bool:
    """Is `other` what was `stated`, or does it hold it?"""
    if any(abs(a - b) <= TOLERANCE for a in stated.readings for b in other.readings):
        return True
    if any(a.agrees(b) or b.agrees(a) for a in stated.moments for b in other.moments):
        return True
    if stated.key and stated.kind != "number" and stated.key == other.key:
        return True
    return any(same_value(stated, inner) for inner in other.inner)


def _best(leaves: Iterable[Leaf], turn: int | None, errors: bool) -> Leaf | None:
    """The first keyed leaf that counts, else the first that counts."""
    first: Leaf | None = None
    for leaf in leaves:
        if leaf.counts_for(turn) and (errors or not leaf.error):
            if leaf.strict:
                return leaf
            first = first or leaf
    return first


@lru_cache(maxsize=4096)
def _remembered_values(text: str, locale: str | None) -> tuple[Value, ...]:
    return tuple(find_values(text, locale))


def values_of(text: str, locale: str | None = None) -> tuple[Value, ...]:
    """`find_values`, remembered for the longer texts that come back sample after sample."""
    if len(text) < 200:
        return tuple(find_values(text, locale))
    return _remembered_values(text, locale)


def tokens_of(text: str) -> list[str]:
    folded = fold(text)
    return token_pattern(folded).findall(folded)


def telling(tokens: Iterable[str]) -> bool:
    """At least three letters or digits, and not made of stop words."""
    kept = [token for token in tokens if token not in STOP_WORDS]
    return bool(kept) and sum(map(len, kept)) >= 3


def _pieces_of(text: str, folded: str, leaf: Leaf) -> Iterator[Piece]:
    whole = folded.strip(_PUNCTUATION)
    if _is_text(whole):
        yield Piece(whole, leaf, True)
    if "\n" not in text and not _SEVERAL_SENTENCES.search(text):
        return
    seen = {whole}
    for start, end in sentences(text):
        piece = fold(text[start:end]).strip(_PUNCTUATION)
        if piece not in seen and _is_text(piece):
            yield Piece(piece, leaf, False)
        seen.add(piece)
    for line in text.split("\n"):
        piece = fold(line).strip(_PUNCTUATION)
        if piece not in seen and _is_text(piece):
            yield Piece(piece, leaf, False)
        seen.add(piece)


def _is_text(piece: str) -> bool:
    """A text by itself: telling, and not just one value, which is compared by value."""
    tokens = token_pattern(piece).findall(piece)
    if not telling(tokens):
        return False
    if sum(len(token) > 3 and token.isalpha() for token in tokens) >= 2 and " " in piece:
        return True  # two longer words: no number, date or identifier is written so
    values = find_values(piece)
    return not (len(values) == 1 and values[0].text == piece and values[0].kind in _WHOLE_KINDS)


class _Walk:
    """Walks one result, leaving out booleans, nulls and echoes of the call's own arguments."""

    def __init__(self, evidence: Evidence, served: Served) -> None:
        self._evidence = evidence
        self._served = served
        self._echo_texts: set[str] = set()
        self._echo_numbers: set[tuple[str, int]] = set()
        self._note_arguments(served.arguments, "", 0)

    def result(self) -> None:
        self._visit(self._served.result, self._served.root, "", False, 0)

    def _note_arguments(self, value: Json, key: str, depth: int) -> None:
        if depth > MAX_DEPTH or value is None or isinstance(value, bool):
            return
        if isinstance(value, str):
            self._echo_texts.add(fold(value))
        elif isinstance(value, int | float):
            self._echo_numbers.add((key, of_json(value)))
        elif isinstance(value, dict):
            for name, entry in value.items():
                self._note_arguments(entry, name, depth + 1)
        elif isinstance(value, list):
            for entry in value:
                self._note_arguments(entry, key, depth + 1)

    def _visit(self, value: Json, path: str, key: str, strict: bool, depth: int) -> None:
        if value is None or value is True or value is False or depth > MAX_DEPTH:
            return
        if isinstance(value, str):
            inside = json_inside(value)
            if inside is not value:
                self._visit(inside, path, key, strict, depth + 1)
            elif value and not (self._echo_texts and fold(value) in self._echo_texts):
                self._leaf(value, path, key, strict)
        elif isinstance(value, dict):
            strict_keys = self._served.strict_keys
            for name, entry in value.items():
                pointer = f"{path}/{_escaped(name)}"
                self._visit(entry, pointer, name, strict or name in strict_keys, depth + 1)
        elif isinstance(value, list):
            for index, entry in enumerate(value):
                self._visit(entry, f"{path}/{index}", key, strict, depth + 1)
            if not self._served.error:
                self._note_list(value, path, key, strict)
        elif (key, of_json(value)) not in self._echo_numbers:
            self._leaf(value, path, key, strict)

    def _leaf(self, value: Json, path: str, key: str, strict: bool) -> None:
        self._evidence.add(Leaf(self._served, path, key, strict, value))

    def _note_list(self, values: list[Json], path: str, key: str, strict: bool) -> None:
        sums: dict[str, int] = {}
        for entry in values:
            fields = entry if isinstance(entry, dict) else {"": entry}
            for name, number in fields.items():
                if isinstance(number, int | float) and not isinstance(number, bool):
                    sums[name] = sums.get(name, 0) + of_json(number)
        leaf = Leaf(self._served, path, key, strict, len(values))
        self._evidence.lists.append(ListFacts(leaf, len(values) * SCALE, tuple(sums.values())))


def _escaped(name: str) -> str:
    if "~" in name or "/" in name:
        return name.replace("~", "~0").replace("/", "~1")
    return name
