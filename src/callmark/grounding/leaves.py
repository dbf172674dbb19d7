"""The leaves of served results: what each says, where it stands, and when it counts."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple, TypeGuard

from callmark.grounding.mcp_parts import parts_of
from callmark.grounding.numbers import SCALE, of_json
from callmark.grounding.text import fold
from callmark.grounding.value import Value
from callmark.grounding.values import values_of
from callmark.records.jsontext import Json, want_text
from callmark.records.trace import is_mcp_result, json_inside

MAX_DEPTH = 400


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


Scalar = str | int | float


class Leaf:
    """One leaf of one result."""

    __slots__ = ("_folded", "_values", "call", "error", "key", "path", "strict", "turn", "value")

    def __init__(self, served: Served, path: str, key: str, strict: bool, value: Scalar) -> None:
        self.call = served.call
        self.turn = served.turn
        self.error = served.error
        self.path = path
        self.key = key
        self.strict = strict
        self.value = value
        self._values: tuple[Value, ...] | None = None
        self._folded: str | None = None

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
        return turn is None or self.turn is None or self.turn < turn


class ListFacts(NamedTuple):
    """A list in a result: its length, and the sums of its numbers by key."""

    leaf: Leaf
    length: int
    sums: tuple[int, ...]


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
        self.leaves: list[Leaf] = []
        self.lists: list[ListFacts] = []
        self._served = served
        self._echo_texts: set[str] = set()
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
            self._echo_texts.add(fold(value))
        elif is_number(value):
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
            if self._echo_texts and fold(value) in self._echo_texts:
                return
            inside = json_inside(value)
            if inside is not value:
                self._visit(inside, path, key, strict, depth + 1)
            elif value:
                self._leaf(value, path, key, strict)
        elif isinstance(value, dict):
            strict_keys = self._served.strict_keys
            for name, entry in value.items():
                pointer = f"{path}/{_escape(name)}"
                self._visit(entry, pointer, name, strict or name in strict_keys, depth + 1)
        elif isinstance(value, list):
            for index, entry in enumerate(value):
                self._visit(entry, f"{path}/{index}", key, strict, depth + 1)
            if not self._served.error:
                self._note_list(value, path, key, strict)
        elif is_number(value) and (key, of_json(value)) not in self._echo_numbers:
            self._leaf(value, path, key, strict)

    def _leaf(self, value: Scalar, path: str, key: str, strict: bool) -> None:
        self.leaves.append(Leaf(self._served, path, key, strict, value))

    def _note_list(self, values: list[Json], path: str, key: str, strict: bool) -> None:
        sums: dict[str, int] = {}
        for entry in values:
            fields = entry if isinstance(entry, dict) else {"": entry}
            for name, number in fields.items():
                if is_number(number):
                    sums[name] = sums.get(name, 0) + of_json(number)
        leaf = Leaf(self._served, path, key, strict, len(values))
        self.lists.append(ListFacts(leaf, len(values) * SCALE, tuple(sums.values())))


def _escape(name: str) -> str:
    if "~" in name or "/" in name:
        return name.replace("~", "~0").replace("/", "~1")
    return name


def is_number(value: Json) -> TypeGuard[int | float]:
    """Finite, and no boolean."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)
