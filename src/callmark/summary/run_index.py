"""What an index of a run holds: the numbers of its trials, and a row of each for the lists."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from heapq import nsmallest
from itertools import accumulate
from operator import eq, le, lt
from typing import Annotated, Protocol

import msgspec

from callmark.errors import BadInput
from callmark.records.results import (
    MARKED,
    Decoding,
    Fingerprints,
    ListedTrial,
    Result,
    Scoring,
    TrialMarks,
    TrialTraits,
    marks_of,
)
from callmark.records.samples import Expectation
from callmark.stats.columns import Packed
from callmark.summary.failing import list_trial
from callmark.summary.metrics import MAX_SAMPLES, Pair, chance_key
from callmark.summary.trials import COLUMNS, KIND_CODE, KINDS, TYPES, Trials, TrialsState

AUDITED = 16  # lines that are read and held against the index
_encode = msgspec.json.Encoder().encode


class IndexNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """`order`: which row of the index each trial has, in the order of the results; None: the rows
    stand so. `line_sizes`: bytes of each line. `chance`: the pairs that the level of chance was
    computed from; None: not computed from all samples."""

    trials: TrialsState
    order: Packed | None
    line_sizes: Packed
    fingerprints: Fingerprints
    decoding: Decoding
    conflicts: tuple[str, ...]
    scorings: tuple[Scoring, ...]
    chance: tuple[Pair, ...] | None


class _Row(msgspec.Struct, frozen=True, array_like=True):
    listed: ListedTrial
    marks: TrialMarks


class _ReadTrial(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A `ListedTrial` whose traits are decoded once for all rows that have the same."""

    index: int
    trial: int
    sample_id: str
    asked: str
    answered: str
    f1: Annotated[float, msgspec.Meta(ge=0, le=1)] | None
    f1_strict: Annotated[float, msgspec.Meta(ge=0, le=1)] | None
    traits: msgspec.Raw


class _ReadRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    listed: _ReadTrial
    marks: TrialMarks


def index_row(result: Result, expectation: Expectation | None) -> bytes:
    """One line."""
    row = _Row(list_trial(result, expectation), marks_of(result))
    return _encode(row) + b"\n"


class _Rows:
    """One line for each trial, decoded when it is asked for: all of them, as records, take more
    than the rest of a run."""

    def __init__(self, lines: bytes, order: Sequence[int] | None) -> None:
        """`order`: which line each trial has, in the order of the results."""
        self._lines = lines
        ends = array("Q", (found.end() for found in _LINE_END.finditer(lines)))
        starts = array("Q", (0, *ends[:-1])) if ends else ends
        if (ends[-1] if ends else 0) != len(lines):
            raise ValueError("lines")
        if order is not None:
            if sorted(order) != list(range(len(ends))):
                raise ValueError("order")
            starts, ends = (array("Q", map(one.__getitem__, order)) for one in (starts, ends))
        self._starts, self._ends = starts, ends

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, at: int) -> _ReadRow:
        return _decode_row(self._lines[self._starts[at] : self._ends[at]])

    def __iter__(self) -> Iterator[_ReadRow]:
        return map(self.__getitem__, range(len(self)))

    def columns(self) -> tuple[list[array[int]], dict[str, array[int]]]:
        """The places of all trials, index and number, and their marks."""
        columns = [array("Q") for _ in (*_ReadTrial.__struct_fields__[:2], *MARKED)]
        for row in self:
            for column, number in zip(
                columns, (row.listed.index, row.listed.trial, *row.marks), strict=True
            ):
                column.append(number)
        return columns[:2], dict(zip(MARKED, columns[2:], strict=True))


class RunIndex:
    """In the order of the results: the trials as they are listed, and where their lines begin."""

    def __init__(self, numbers: IndexNumbers, rows: bytes, size: int) -> None:
        """Raises ValueError where the parts do not fit together."""
        self.numbers = numbers
        self._rows = _Rows(rows, None if numbers.order is None else numbers.order.numbers())
        sizes = numbers.line_sizes.numbers()
        self.offsets = array("Q", accumulate(sizes, initial=0))
        self._traits: dict[bytes, TrialTraits] = {}
        if len(sizes) != len(self._rows) or self.offsets.pop() != size:
            raise ValueError("lines")
        places, self.marks = self._rows.columns()
        _check_state(numbers.trials, places)

    def __len__(self) -> int:
        return len(self._rows)

    @cached_property
    def trials(self) -> Trials:
        found = Trials()
        found.extend(self.numbers.trials)
        return found

    def listed(self) -> Iterable[ListedTrial]:
        return map(self._listed, self._rows)

    def chance_offsets(self) -> Iterable[int]:
        """Where the lines begin of all trials that `ChanceSample` would keep."""
        first: dict[str, int] = {}
        is_eligible = self.trials.kinds().where(
            partial(eq, KIND_CODE["eligible"]), range(len(self))
        )
        for at in is_eligible:
            first.setdefault(self._rows[at].listed.sample_id, self.offsets[at])
        return (first[name] for name in nsmallest(MAX_SAMPLES, first, key=chance_key))

    def _listed(self, row: _ReadRow) -> ListedTrial:
        one = row.listed
        raw = bytes(one.traits)
        traits = self._traits.get(raw)
        if traits is None:
            traits = self._traits[raw] = _decode_traits(raw)
        return ListedTrial(
            one.index,
            one.trial,
            one.sample_id,
            one.asked,
            one.answered,
            one.f1,
            one.f1_strict,
            traits,
        )

    def audit(self, line_at: Callable[[int], Result]) -> None:
        """Raises ValueError where one of some lines does not say what the index says of it."""
        self.trials.samples()  # refuses a trial that is there twice
        step = max(1, len(self) // AUDITED)
        chosen = sorted({*range(0, len(self), step), len(self) - 1})
        alone = Trials()
        for at in chosen:
            result, row = line_at(self.offsets[at]), self._rows[at]
            alone.add(result)
            if (
                result.scoring not in self.numbers.scorings
                or result.fingerprints != self.numbers.fingerprints
                or self._listed(row) != list_trial(result)
                or row.marks != marks_of(result)
            ):
                raise ValueError("rows")
        if _told(alone, range(len(chosen))) != _told(self.trials, chosen):
            raise ValueError("numbers")


def _told(trials: Trials, chosen: Sequence[int]) -> list[object]:
    """All that is kept of these trials."""
    state = trials.state()
    clusters, ends = state.cluster.numbers(), state.id_ends.numbers()
    starts = [0, *ends]
    ids = [(state.ids[starts[at] >> 1 : ends[at] >> 1], ends[at] & 1) for at in chosen]
    columns = {name: [*trials.column(name).at(chosen)] for name in (*COLUMNS, *state.more)}
    places = [state.places[int(place)] for place in columns.pop("place")]
    # As text: what is not there is NaN, which is not even equal to itself.
    return [ids, [clusters[at] for at in chosen], places, repr(columns)]


_decode_numbers = msgspec.msgpack.Decoder(IndexNumbers).decode
_decode_row = msgspec.json.Decoder(_ReadRow).decode
_LINE_END = re.compile(rb"\n")
_decode_traits = msgspec.json.Decoder(TrialTraits).decode


class Parts(Protocol):
    """What a file of it holds; `results_bytes`: how large the results are."""

    @property
    def numbers(self) -> bytes: ...
    @property
    def rows(self) -> bytes: ...
    @property
    def results_bytes(self) -> int: ...


def unpack_index(parts: Parts, line_at: Callable[[int], Result]) -> RunIndex | None:
    """None: it does not hold what an index has to. `line_at`: the result that begins at a byte."""
    try:
        index = RunIndex(_decode_numbers(parts.numbers), parts.rows, parts.results_bytes)
        index.audit(line_at)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, LookupError, BadInput):
        return None
    return index


def _check_state(state: TrialsState, rows: Sequence[array[int]]) -> None:
    """That nobody who reads the numbers meets one that no scorer gives."""
    index, trial = state.index.numbers(), state.trial.numbers()
    places = list(zip(index, trial, strict=True))
    codes, ends = state.codes.numbers(), state.id_ends.numbers()
    columns = {name: state.rows[name].numbers() for name in COLUMNS}
    sizes = {len(index), len(codes), len(ends), len(state.cluster.numbers()), len(rows[0])}
    kept = {len(column) for column in columns.values()}
    if (
        len(sizes) != 1
        or len(kept) != 1
        or {name: one.typecode for name, one in state.rows.items()} != TYPES
        or max(codes, default=0) >= min(kept)
        or any(len(numbers.numbers()) != len(index) for numbers, _ in state.more.values())
        or places != list(zip(*rows, strict=True))
        or not all(map(lt, places, places[1:]))
        or not all(map(le, ends, ends[1:]))
        or (ends and ends[-1] >> 1 != len(state.ids))
        or not all(map(math.isfinite, (number for column in columns.values() for number in column)))
        or not all(0 <= number < len(state.places) for number in columns["place"])
        or not all(0 <= number < len(KINDS) for number in columns["kind"])
    ):
        raise ValueError("numbers")
