"""Evidence: the leaves of the served results, indexed by what an answer may take from them.

Text leaves are scanned for values, and split into lines and sentences, only when the first
question about values or texts is asked."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple, TypeGuard

import msgspec
from msgspec.structs import asdict

from callmark.calls.scan import NotPython, literal
from callmark.grounding.dates import Moment
from callmark.grounding.numbers import SCALE, TOLERANCE, of_json
from callmark.grounding.pieces import Piece, pieces_of, telling
from callmark.grounding.text import (
    Frozen,
    find_at_boundaries,
    fold,
    fold_once,
    once,
    token_pattern,
)
from callmark.grounding.values import (
    LONG_DIGITS,
    PARTIAL_DIGITS,
    Value,
    ends_in,
    identifier_key,
    values_of,
)
from callmark.records.jsontext import Json, canonical_json, want_list, want_object, want_text
from callmark.records.trace import is_mcp_result, read_inside


class Part(NamedTuple):
    """`path` is a JSON pointer into the result."""

    path: str
    key: str
    value: Json


def parts_of(result: dict[str, Json]) -> Iterator[Part]:
    """The parts of a result that `is_mcp_result` knows as one."""
    structured = result.get("structuredContent")
    if structured is not None:
        yield Part("/structuredContent", "structuredContent", structured)
    for at, block in enumerate(want_list(result["content"])):
        for part in _parts_of_block(want_object(block), f"/content/{at}"):
            if not _repeats(part.value, structured):
                yield part


def _parts_of_block(block: dict[str, Json], path: str) -> Iterator[Part]:
    match block:
        case {"type": "text", "text": str(text)}:
            yield Part(f"{path}/text", "text", _value_of(text))
        case {"type": "resource", "resource": dict(resource)}:
            for name in ("uri", "text"):
                if isinstance(resource.get(name), str):
                    yield Part(f"{path}/resource/{name}", name, _value_of(resource[name]))
        case {"type": "resource_link"}:
            for name in ("name", "title", "uri", "description"):
                if isinstance(block.get(name), str):
                    yield Part(f"{path}/{name}", name, block[name])


def _value_of(text: str) -> Json:
    """JSON inside a text, and what Python prints for its lists and dicts: some servers do that."""
    inside = read_inside(text)
    if inside is not text or text.strip()[:1] not in ("[", "{", "("):
        return inside
    try:
        return literal(text.strip())
    except NotPython:
        return text


def _repeats(value: Json, structured: Json) -> bool:
    if structured is None:
        return False
    values = structured.values() if isinstance(structured, dict) else ()
    said = canonical_json(value)
    return any(
        said == canonical_json(read_inside(one) if isinstance(one, str) else one)
        for one in (structured, *values)
    )


MAX_DEPTH = 400
_BRACKETS = ("{", "[")
_OPENING = ("", *_BRACKETS)


class Served(Frozen, frozen=True):
    """One answered call. `turn` None: its place among the turns is not known. `root` is where
    the result lies, for one that stood in the prompt."""

    call: int
    turn: int | None
    result: Json
    arguments: Json
    error: bool
    strict_keys: Collection[str]
    root: str = ""


Scalar = str | int | float


class Leaf(msgspec.Struct, eq=False, gc=False):
    """One leaf of one result."""

    served: Served
    path: str
    key: str
    strict: bool
    value: Scalar
    call: int
    error: bool
    _values: tuple[Value, ...] | None = None
    _folded: str | None = None

    @property
    def values(self) -> tuple[Value, ...]:
        """The values that a text leaf holds."""
        if self._values is None:
            self._values = values_of(want_text(self.value))
        return self._values

    @property
    def folded(self) -> str:
        if self._folded is None:
            self._folded = fold(want_text(self.value))
        return self._folded

    def counts_for(self, turn: int | None) -> bool:
        """The causal rule: a result counts for what was said in a later turn."""
        return turn is None or self.served.turn is None or self.served.turn < turn


class LeafPlace(Frozen, frozen=True):
    """Where a leaf lies and what it says. Most are never asked for more."""

    served: Served
    path: str
    key: str
    strict: bool
    value: Scalar

    def leaf(self) -> Leaf:
        served = self.served
        return Leaf(served, self.path, self.key, self.strict, self.value, served.call, served.error)


class ListFacts:
    """A list in a result: its length, and the sums of its numbers by key."""

    def __init__(self, leaf: Leaf, values: list[Json]) -> None:
        self.leaf = leaf
        self.length = len(values) * SCALE
        self._values = values

    @once
    def sums(self) -> frozenset[int]:
        sums: dict[str, int] = {}
        for entry in self._values:
            fields = entry if isinstance(entry, dict) else {"": entry}
            for name, number in fields.items():
                if is_number(number):
                    sums[name] = sums.get(name, 0) + of_json(number)
        return frozenset(sums.values())


def best_of(leaves: Iterable[Leaf], turn: int | None, errors: bool) -> Leaf | None:
    """The first keyed leaf that counts, else the first that counts."""
    first: Leaf | None = None
    for leaf in leaves:
        if leaf.counts_for(turn) and (errors or not leaf.error):
            if leaf.strict:
                return leaf
            first = first or leaf
    return first


def note(leaves: list[Leaf], leaf: Leaf) -> None:
    """Keep one keyed and one other leaf of each call: no question can tell more apart. Leaves
    come call by call, so only the last two need a look."""
    for known in leaves[-2:]:
        if known.call == leaf.call and known.strict == leaf.strict and known.error == leaf.error:
            return
    leaves.append(leaf)


class Walk:
    """Walks one result, leaving out booleans, nulls and echoes of the call's own arguments."""

    def __init__(self, served: Served) -> None:
        self.places: list[LeafPlace] = []
        self.lists: list[tuple[LeafPlace, list[Json]]] = []
        self._served = served
        self._echo_texts: set[str] = set()
        self._echo_lengths: set[int] = set()
        self._echo_heads: set[str] = set()
        self._echo_numbers: set[tuple[str, int]] = set()
        self._note_arguments(served.arguments, "", 0)
        if is_mcp_result(served.result):
            self._visit_mcp(served.result)
        else:
            self._visit(served.result, served.root, "", False, 0)

    def _visit_mcp(self, result: dict[str, Json]) -> None:
        """All that an MCP tool says is its content, structured or not."""
        strict = "content" in self._served.strict_keys
        for path, key, value in parts_of(result):
            self._visit(value, f"{self._served.root}{path}", key, strict, 0)

    def _note_arguments(self, value: Json, key: str, depth: int) -> None:
        if depth > MAX_DEPTH or value is None or isinstance(value, bool):
            return
        if isinstance(value, str):
            folded = fold(value)
            self._echo_texts.add(folded)
            self._echo_lengths.add(len(folded))
            self._echo_heads.add(folded[:1])
        elif is_number(value):
            self._echo_numbers.add((key, of_json(value)))
        elif isinstance(value, dict):
            for name, entry in value.items():
                self._note_arguments(entry, name, depth + 1)
        elif isinstance(value, list):
            for entry in value:
                self._note_arguments(entry, key, depth + 1)

    def _visit(self, value: Json, path: str, key: str, strict: bool, depth: int) -> None:
        if depth > MAX_DEPTH:
            return
        if isinstance(value, str):
            self._visit_text(value, path, key, strict, depth)
        elif isinstance(value, dict):
            self._visit_object(value, path, strict, depth)
        elif isinstance(value, list):
            for index, entry in enumerate(value):
                self._visit(entry, f"{path}/{index}", key, strict, depth + 1)
            if not self._served.error:
                place = LeafPlace(self._served, path, key, strict, len(value))
                self.lists.append((place, value))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            self._add_number(value, path, key, strict)

    def _add_number(self, value: float, path: str, key: str, strict: bool) -> None:
        if isinstance(value, float) and not math.isfinite(value):
            return
        if not (self._echo_numbers and (key, of_json(value)) in self._echo_numbers):
            self.places.append(LeafPlace(self._served, path, key, strict, value))

    def _visit_object(self, value: dict[str, Json], path: str, strict: bool, depth: int) -> None:
        served, places, echoes = self._served, self.places, self._echo_texts
        for name, entry in value.items() if depth < MAX_DEPTH else ():
            if entry is None or entry is True or entry is False:
                continue
            is_strict = strict or name in served.strict_keys
            pointer = f"{path}/{escape(name)}"
            # A plain text, and no JSON.
            if isinstance(entry, str) and entry[:1] not in _OPENING and not entry[:1].isspace():
                # A plain word is as long as it is folded, and most are as long as no argument.
                may_be_echo = echoes and (
                    len(entry) in self._echo_lengths
                    or not (entry.isascii() and " " not in entry and entry.isprintable())
                )
                if not (may_be_echo and fold(entry) in echoes):
                    places.append(LeafPlace(served, pointer, name, is_strict, entry))
                continue
            if type(entry) is int or type(entry) is float:
                self._add_number(entry, pointer, name, is_strict)
                continue
            self._visit(entry, pointer, name, is_strict, depth + 1)

    def _visit_text(self, value: str, path: str, key: str, strict: bool, depth: int) -> None:
        # Texts of JSON are long, and hardly any argument is one.
        may_be_echo = self._echo_texts and not (
            value[:1] in _BRACKETS and value[:1] not in self._echo_heads
        )
        if may_be_echo and fold(value) in self._echo_texts:
            return
        inside = read_inside(value)
        if inside is not value:
            self._visit(inside, path, key, strict, depth + 1)
        elif value:
            self.places.append(LeafPlace(self._served, path, key, strict, value))


@lru_cache(maxsize=1 << 13)
def escape(name: str) -> str:
    if "~" in name or "/" in name:
        return name.replace("~", "~0").replace("/", "~1")
    return name


def is_number(value: Json) -> TypeGuard[int | float]:
    """Finite, and no boolean."""
    if isinstance(value, str):
        return False
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


RUN_TOKENS = 5
FEW_PIECES = 8  # with one first token: not worth a table
HEAD_LENGTH = 160  # characters by which many of them are told apart


_Begun = tuple[int, Piece, list[Leaf]]  # which of all pieces it is, and whose


class Texts:
    """Every text is split once, when the first question about texts is asked. `words`: those of the
    answer, where it is asked for its own spans only; what they do not begin is left out."""

    def __init__(self, places: Iterable[LeafPlace], words: frozenset[str] | None = None) -> None:
        self._places = [(one.value, one) for one in places if isinstance(one.value, str)]
        self._words = words
        # By their first token, and by the second; empty: there is none. Whoever finds one in a
        # span has to ask whether it `is_text`.
        self.pieces: dict[str, dict[str, list[_Begun]]] = {}
        self._leaves_of: dict[Piece, list[Leaf]] = {}
        self._begun: dict[tuple[str, str], dict[int, dict[str, list[_Begun]]]] = {}
        seen: set[tuple[str, bool, int]] = set()
        for text, place in self._places:
            kept = [
                one
                for one in pieces_of(text)
                if words is None or (one[0] in words and (not one[1] or one[1] in words))
            ]
            if not kept or (said := (text, place.strict, id(place.served))) in seen:
                continue  # no question can tell them apart
            seen.add(said)
            leaf = place.leaf()
            for first, second, piece in kept:
                leaves = self._leaves_of.get(piece)
                if leaves is None:
                    leaves = self._leaves_of[piece] = []
                    begun = self.pieces.setdefault(first, {}).setdefault(second, [])
                    begun.append((len(self._leaves_of), piece, leaves))
                note(leaves, leaf)

    @once
    def _leaves(self) -> list[Leaf]:
        return [place.leaf() for _, place in self._places]

    def begun_by(
        self, tokens: Sequence[str], token: int, text: str, at: int
    ) -> list[tuple[Piece, list[Leaf]]]:
        """The pieces that begin with this token, as it is followed, and may stand at this place of
        the text: all of a few; of many, those that begin as the text goes on."""
        first, second = tokens[token], "".join(tokens[token + 1 : token + 2])
        found = list(self._going_on(first, "", text, at))
        if second:
            found += self._going_on(first, second, text, at)
        if len(found) > 1:
            found.sort(key=_place_of)
        return [(piece, leaves) for _, piece, leaves in found]

    def _going_on(self, first: str, second: str, text: str, at: int) -> Iterable[_Begun]:
        begun = self.pieces[first].get(second, [])
        if len(begun) <= FEW_PIECES:
            return begun
        known = self._begun.get((first, second))
        if known is None:
            known = self._begun[first, second] = {}
            for entry in begun:
                start = entry[1].text[:HEAD_LENGTH]
                known.setdefault(len(start), {}).setdefault(start, []).append(entry)
        return [
            entry
            for length, heads in known.items()
            for entry in heads.get(text[at : at + length], ())
        ]

    def begins_at(self, tokens: Sequence[str], at: int) -> bool:
        """Could a piece begin with this token, as it is followed?"""
        seconds = self.pieces.get(tokens[at])
        if seconds is None:
            return False
        return "" in seconds or (at + 1 < len(tokens) and tokens[at + 1] in seconds)

    @once
    def runs(self) -> dict[tuple[str, ...], list[Leaf]]:
        """The longer leaves by the five tokens in a row that they hold."""
        runs: dict[tuple[str, ...], list[Leaf]] = {}
        words = self._words
        for text, place in self._places:
            if len(text) <= RUN_TOKENS or (text.isascii() and len(text) <= 2 * RUN_TOKENS):
                continue  # too short for more tokens than that
            text = fold_once(text)
            tokens = token_pattern(text).findall(text)
            if len(tokens) > RUN_TOKENS and (words is None or not words.isdisjoint(tokens)):
                leaf = place.leaf()
                for run in zip(*(tokens[at:] for at in range(RUN_TOKENS)), strict=False):
                    if words is None or (run[0] in words and run[-1] in words):
                        note(runs.setdefault(run, []), leaf)
        return runs

    @once
    def _quotable(self) -> tuple[list[tuple[str, Leaf]], dict[str, list[int]]]:
        """The leaves as quotations are looked for in them, and by each of their tokens."""
        texts: list[tuple[str, Leaf]] = []
        holding: dict[str, list[int]] = {}
        for at, leaf in enumerate(self._leaves):
            tokens = token_pattern(leaf.folded).findall(leaf.folded)
            texts.append((f" {' '.join(tokens)} ", leaf))
            for token in set(tokens):
                holding.setdefault(token, []).append(at)
        return texts, holding

    def quoting(self, folded: str, turn: int | None, errors: bool) -> Leaf | None:
        """A leaf that holds this text between token boundaries."""
        tokens = token_pattern(folded).findall(folded)
        if not telling(tokens):
            return None
        quoted = f" {' '.join(tokens)} "
        texts, holding = self._quotable
        # Those with its rarest token: no other can hold it.
        places = min((holding.get(token, ()) for token in tokens), key=len)
        holders = (texts[at] for at in places)
        return best_of((leaf for text, leaf in holders if quoted in text), turn, errors)


def _place_of(entry: _Begun) -> int:
    return entry[0]


MAX_PARTIAL = 20  # digits of an identifier's end; nobody states more
MAX_DISTINCT = 32  # beyond that many numbers some sum or difference fits anything
_IDENTIFIER_LEAF = re.compile(r"(?=[^\d]*\d)(?=\W*[^\W\d])[\w\-# ]{2,40}")


class Evidence:
    """All leaves of the served results of one trial."""

    def __init__(self, served: Iterable[Served]) -> None:
        self._places: list[LeafPlace] = []
        self._lists: list[tuple[LeafPlace, list[Json]]] = []
        self.has_errors = False
        for one in served:
            self.has_errors = self.has_errors or one.error
            walk = Walk(one)
            self._places += walk.places
            self._lists += walk.lists

    @once
    def has_keyed(self) -> bool:
        """Is any leaf strict?"""
        return any(map(attrgetter("strict"), self._places))

    @once
    def leaves(self) -> list[Leaf]:
        return [place.leaf() for place in self._places]

    @once
    def lists(self) -> list[ListFacts]:
        return [ListFacts(place.leaf(), values) for place, values in self._lists]

    @property
    def substantial(self) -> bool:
        """Is there any leaf but booleans, null, 0, empty texts, echoes and errors?"""
        return any(not leaf.error and leaf.value not in (0, "") for leaf in self.leaves)

    @once
    def _values(self) -> _ValueIndex:
        return _ValueIndex(self.leaves)

    @once
    def texts(self) -> Texts:
        return Texts(self._places)

    def texts_with(self, words: frozenset[str]) -> Texts:
        """As far as an answer of these words may repeat them."""
        return Texts(self._places, words)

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
    parts = asdict(moment)
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
