"""A cell of a table or a part of a list item beside a leaf: does it state what the leaf has?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache

from callmark.grounding.arithmetic import half_unit
from callmark.grounding.binding import words_of_name
from callmark.grounding.dates import LEAST_EPOCH, Moment, moments_elsewhere, moments_of_epoch
from callmark.grounding.numbers import SCALE, TOLERANCE
from callmark.grounding.reading import read_leaf
from callmark.grounding.record_tree import Field, key_words
from callmark.grounding.text import Frozen
from callmark.grounding.values import Value

LONGEST_TEXT = 80
LEAST = SCALE // 1000  # of a number in another scale
FACTORS = tuple(
    (up, down)
    for one in (100, 1000, 60, 3600, 1440, 10**6, 10**9, 1024, 1024**2, 1024**3)
    for up, down in ((one, 1), (1, one))
)

Words = tuple[str, ...]


class ListedCell(Frozen, frozen=True):
    """`column`: which cells of other rows it is like; `head`: what stands over them."""

    column: str
    start: int
    end: int
    text: str
    values: tuple[Value, ...]
    head: str = ""


class ReadLeaf(Frozen, frozen=True):
    """A field, read; `place`: its path inside the record."""

    field: Field
    place: str
    numbers: tuple[int, ...]
    moments: tuple[Moment, ...]
    words: Words


def read_field(field: Field, place: str) -> ReadLeaf:
    numbers: list[int] = []
    moments: list[Moment] = []
    words: Words = ()
    if field.number is not None:
        numbers.append(field.number)
        if field.number >= LEAST_EPOCH * SCALE:
            moments += moments_of_epoch(field.number // SCALE, key_words(field.key))
    elif isinstance(field.value, str) and len(field.value) <= LONGEST_TEXT:
        for value in read_leaf(field.value) if field.value else ():
            numbers += value.readings
            moments += value.moments
        if ":" in field.value:
            moments += moments_elsewhere(field.value)
        words = words_said(field.value)
    return ReadLeaf(field, place, tuple(numbers), tuple(moments), words)


@lru_cache(maxsize=1 << 12)
def words_said(text: str) -> Words:
    return words_of_name(text.replace("_", " "))


@lru_cache(maxsize=1 << 12)
def find_run(words: Words, part: Words) -> tuple[Words, Words] | None:
    """What stands before and after these words among the others, however they are put together:
    `Contract sent` is `contractsent`."""
    if "".join(words) == "".join(part) and part:
        return (), ()
    for at in range(len(words) - len(part) + 1) if part else ():
        if words[at : at + len(part)] == part:
            return words[:at], words[at + len(part) :]
    return None


def stating(
    leaves: Iterable[ReadLeaf], value: Value, factor: tuple[int, int]
) -> Iterator[ReadLeaf]:
    """Those that state the value, rounded or cut off; a sign may be left out."""
    if value.kind == "moment":
        for leaf in leaves:
            if any(one.agrees(other) for other in leaf.moments for one in value.moments):
                yield leaf
        return
    reaches = _reaches(value, *factor)
    for leaf in leaves if reaches else ():
        if leaf.numbers and _is_within(reaches, leaf.numbers):
            yield leaf


def _reaches(value: Value, up: int, down: int) -> list[tuple[int, int]]:
    """What is stated, in another scale, and how far from it a number may be."""
    half = half_unit(value) * up // down
    found: list[tuple[int, int]] = []
    for at, reading in enumerate(value.readings):
        wanted = abs(reading) * up // down
        if up == down or wanted >= LEAST:
            # The second one of `71%` is 0.71.
            share = 100 if at and value.form.percent else 1
            found.append((wanted, max(half // share, TOLERANCE)))
    return found


def _is_within(reaches: Sequence[tuple[int, int]], numbers: Iterable[int]) -> bool:
    for wanted, half in reaches:
        for number in numbers:
            over = abs(number) - wanted
            if -half <= over <= half or (0 < over < 2 * half and abs(number) % (2 * half)):
                return True
    return False


def is_small(value: Value) -> bool:
    return value.text.isdecimal() and len(value.text) < 2


def words_around(cell: ListedCell, value: Value) -> Words:
    """`16 restarts` is like `1 restart`."""
    text = cell.text[: value.start - cell.start] + " " + cell.text[value.end - cell.start :]
    return tuple(word.rstrip("s") for word in words_said(text) if word.isalpha())


def is_blank(text: str, blank: Collection[Words]) -> bool:
    """`no fix yet`, where another row has `no fix yet (ignored)`."""
    words = words_said(text)
    return words in blank or (len(words) > 1 and any(words == one[: len(words)] for one in blank))
