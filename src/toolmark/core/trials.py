"""Scored trials as columns of plain numbers, some 140 bytes each, so that a million fit in memory.

Results may come in any order: the columns are put into the order of the dataset before they are
read, and the trials of one sample become one number each."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, TypeVar, get_args

import msgspec

from toolmark.core.results import Result
from toolmark.core.samples import Expectation, Kind, expectation_of
from toolmark.core.scores import Scores
from toolmark.errors import BadInput

KINDS: tuple[Kind, ...] = get_args(Kind)
KIND_CODE = {kind: code for code, kind in enumerate(KINDS)}
NOT_APPLICABLE = -1
NO_CLUSTER = 0

Number = TypeVar("Number", int, float)
Reduce = Literal["mean", "any", "first"]

# name -> (array type, how the trials of a sample become one number). -1: does not apply.
_COLUMNS: dict[str, tuple[str, Reduce]] = {
    "f1_lax": ("d", "mean"),
    "f1_strict": ("d", "mean"),
    "call_f1": ("d", "mean"),
    "spans_total": ("I", "first"),
    "over_cap": ("I", "mean"),
    "spans": ("I", "mean"),
    "required": ("I", "mean"),
    "grounded_lax": ("I", "mean"),
    "grounded_strict": ("I", "mean"),
    "found_lax": ("I", "mean"),
    "found_strict": ("I", "mean"),
    "unsupported": ("I", "mean"),
    "values": ("I", "mean"),
    "looked_up": ("I", "mean"),
    "hits": ("I", "mean"),
    "has_span": ("b", "mean"),
    "has_grounded": ("b", "mean"),
    "valid_call": ("b", "mean"),
    "args_valid": ("b", "mean"),
    "parity": ("b", "mean"),
    "recovered": ("b", "mean"),
    "gave_up": ("b", "any"),
    "contaminated": ("b", "any"),
    "negative_ok": ("b", "mean"),
    "clarify_ok": ("b", "mean"),
    "locale_ok": ("b", "mean"),
    "privacy_ok": ("b", "mean"),
    "unresolved": ("b", "any"),
    "presence": ("b", "first"),
    "marker": ("b", "first"),
}


class Place(msgspec.Struct, frozen=True):
    """What the dataset says about a sample as far as blocks and populations need it."""

    locale: str | None
    probe: bool
    slices: tuple[str, ...]
    tools: tuple[str, ...]
    calls: int
    retry: bool

    @property
    def language(self) -> str | None:
        return None if self.locale is None else self.locale.replace("-", "_").split("_")[0].lower()


class _Keys:
    """Who the trials are: position, id, trial, kind, place and cluster, one entry per trial."""

    def __init__(self) -> None:
        self.index = array("I")
        self.trial = array("I")
        self.kind = array("b")
        self.place = array("I")
        self.cluster = array("Q")
        self._id_start = array("Q")
        self._id_size = array("I")
        self._ids = bytearray()

    def add(self, result: Result, kind: Kind, place: int, cluster: str | None) -> None:
        self.index.append(result.index)
        self.trial.append(result.trial)
        self.kind.append(KIND_CODE[kind])
        self.place.append(place)
        self.cluster.append(NO_CLUSTER if cluster is None else _label(cluster))
        raw, is_hex = _packed_id(result.sample_id)
        self._id_start.append(len(self._ids))
        self._id_size.append(2 * len(raw) + is_hex)
        self._ids += raw

    def __len__(self) -> int:
        return len(self.index)

    def id_at(self, row: int) -> str:
        start, size = self._id_start[row], self._id_size[row]
        raw = self._ids[start : start + (size >> 1)]
        return raw.hex() if size & 1 else raw.decode("utf-8", "surrogatepass")

    def order(self) -> array[int] | None:
        """The rows by position and trial; None if they already stand so."""
        if all(left < right for left, right in pairwise(self.index)):
            return None
        keys = [
            (index << 64) | (trial << 32) | row
            for row, (index, trial) in enumerate(zip(self.index, self.trial, strict=True))
        ]
        keys.sort()
        return array("I", (key & 0xFFFFFFFF for key in keys))

    def reorder(self, order: array[int]) -> None:
        for name in ("index", "trial", "kind", "place", "cluster", "_id_start", "_id_size"):
            setattr(self, name, taken(getattr(self, name), order))

    def starts(self) -> array[int]:
        """Where each sample begins; the rows must be in order."""
        starts = array("I")
        previous = (-1, -1)
        for row, key in enumerate(zip(self.index, self.trial, strict=True)):
            if key[0] != previous[0]:
                starts.append(row)
            else:
                self._check_same_sample(row, is_twice=key == previous)
            previous = key
        return starts

    def _check_same_sample(self, row: int, *, is_twice: bool) -> None:
        mine, other = self.id_at(row), self.id_at(row - 1)
        if mine != other:
            raise BadInput(
                f"results: index {self.index[row]}: belongs to two samples, {other!r} and "
                f"{mine!r}; results of different datasets cannot be summarised together"
            )
        if is_twice:
            raise BadInput(
                f"results: sample {mine!r}, trial {self.trial[row]}: occurs twice; "
                "each trial must be given once"
            )


class Samples:
    """One row per scored sample, in the order of the dataset, trials averaged."""

    def __init__(
        self, keys: _Keys, starts: array[int], columns: dict[str, array[float]], places: list[Place]
    ) -> None:
        self._keys = keys
        self._starts = starts
        self._columns = columns
        self.places = places
        self.repeated = len(starts) != len(keys)
        self.kind = self._firsts(keys.kind)
        self.place = self._firsts(keys.place)
        self.cluster = self._firsts(keys.cluster)
        self.has_clusters = any(self.cluster)

    def __len__(self) -> int:
        return len(self._starts)

    def column(self, name: str) -> array[float]:
        return self._columns[name]

    def id_at(self, position: int) -> str:
        return self._keys.id_at(self._starts[position])

    def trial_rows(self) -> Iterator[range]:
        """The rows of each sample's trials."""
        ends = [*self._starts[1:], len(self._keys)]
        return map(range, self._starts, ends)

    def _firsts(self, column: array[int]) -> array[int]:
        return taken(column, self._starts) if self.repeated else column


class Trials:
    """All scored trials, and apart from them who could not be scored."""

    def __init__(self) -> None:
        self._keys = _Keys()
        self._lost = _Keys()
        self._columns: dict[str, array[float]] = {
            name: array(code) for name, (code, _) in _COLUMNS.items()
        }
        self._appends = [column.append for column in self._columns.values()]
        self._places: dict[Place, int] = {}

    def add(self, result: Result) -> None:
        try:
            self._add(result)
        except OverflowError:
            raise BadInput(
                f"results: sample {result.sample_id!r}, trial {result.trial}: "
                "an index or a count is negative or too large"
            ) from None

    def _add(self, result: Result) -> None:
        expectation = expectation_of(result.metadata)
        scores = result.scores
        if scores is None or result.status == "error":
            place = self._place_of(expectation, result, expectation.kind)
            self._lost.add(result, expectation.kind, place, expectation.cluster)
            return
        place = self._place_of(expectation, result, scores.kind)
        self._keys.add(result, scores.kind, place, expectation.cluster)
        for append, value in zip(self._appends, _numbers_of(scores), strict=True):
            append(value)

    @property
    def scored(self) -> int:
        return len(self._keys)

    @property
    def lost(self) -> int:
        return len(self._lost)

    def column(self, name: str) -> array[float]:
        """One number per scored trial, for `Samples.trial_rows`."""
        return self._columns[name]

    def kinds(self) -> array[int]:
        return self._keys.kind

    def samples(self) -> Samples:
        self._sort()
        starts = self._keys.starts()
        columns = self._columns
        if len(starts) != len(self._keys):
            ends = [*starts[1:], len(self._keys)]
            columns = {
                name: _reduced(self._columns[name], starts, ends, reduce)
                for name, (_, reduce) in _COLUMNS.items()
            }
        return Samples(self._keys, starts, columns, list(self._places))

    def unscored(self) -> list[tuple[Kind, Place]]:
        """The samples of which no trial has a score."""
        rows = {index: row for row, index in enumerate(self._lost.index)}
        for index in self._keys.index if rows else ():
            rows.pop(index, None)
        places = list(self._places)
        return [
            (KINDS[self._lost.kind[row]], places[self._lost.place[row]]) for row in rows.values()
        ]

    def most_trials(self) -> int:
        """The largest number of trials that any sample has, lost ones included."""
        counts: dict[int, int] = {}
        for index in self._lost.index:
            counts[index] = counts.get(index, 0) + 1
        most, run, previous = max(counts.values(), default=0), 0, -1
        for index in self._keys.index:
            run = run + 1 if index == previous else 1 + counts.get(index, 0)
            most, previous = max(most, run), index
        return most

    def _sort(self) -> None:
        for keys, columns in ((self._keys, self._columns), (self._lost, {})):
            order = keys.order()
            if order is None:
                continue
            keys.reorder(order)
            for name in columns:
                self._columns[name] = taken(self._columns[name], order)
        self._lost.starts()
        self._appends = [column.append for column in self._columns.values()]
        self._check_not_both()

    def _check_not_both(self) -> None:
        lost = set(zip(self._lost.index, self._lost.trial, strict=True))
        if not lost:
            return
        for row, key in enumerate(zip(self._keys.index, self._keys.trial, strict=True)):
            if key in lost:
                raise BadInput(
                    f"results: sample {self._keys.id_at(row)!r}, trial {key[1]}: occurs twice, "
                    "once with an error; each trial must be given once"
                )

    def _place_of(self, expectation: Expectation, result: Result, kind: Kind) -> int:
        tools: tuple[str, ...] = ()
        if kind == "eligible":
            names = {call.name for call in expectation.calls} or {
                entry.name for entry in result.tool_trace if entry.served and entry.name
            }
            tools = tuple(sorted(names))
        place = Place(
            expectation.locale,
            expectation.locale_probe,
            expectation.slices,
            tools,
            len(expectation.calls),
            expectation.retry,
        )
        return self._places.setdefault(place, len(self._places))


def _numbers_of(scores: Scores) -> tuple[int | float, ...]:
    """The numbers of one trial, in the order of `_COLUMNS`."""
    calls, lax, strict = scores.calls, scores.lax, scores.strict
    values = scores.values
    unsupported = values.get("unsupported", 0)
    return (
        lax.f1,
        strict.f1,
        NOT_APPLICABLE if scores.call_f1 is None else scores.call_f1,
        scores.spans_total,
        scores.spans_over_cap,
        scores.spans_counted,
        scores.facts_required,
        lax.grounded,
        strict.grounded,
        lax.found,
        strict.found,
        unsupported,
        unsupported + values.get("supported", 0) + values.get("derived", 0),
        calls.looked_up,
        calls.hits,
        scores.spans_total > 0,
        any(span.lax and span.scored for span in scores.spans),
        calls.attempts > 0 and scores.json_args_valid is True,
        _flag(scores.json_args_valid),
        _flag(scores.multi_call_parity_ok),
        _flag(scores.recovered),
        scores.gave_up_honestly is True,
        bool(scores.controls_with_integration),
        _flag(scores.negative_control_ok),
        _flag(scores.clarify_ok),
        _flag(scores.locale_probe_ok),
        scores.privacy_ok,
        scores.unresolved,
        scores.recall_kind == "presence",
        scores.span_extractor == "marker",
    )


def _flag(value: bool | None) -> int:
    return NOT_APPLICABLE if value is None else int(value)


def _label(text: str) -> int:
    head = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8]
    return int.from_bytes(head, "little") or 1


def _packed_id(sample_id: str) -> tuple[bytes, bool]:
    # Ids that the reader made up are SHA-256 in hexadecimal: half the room as bytes.
    if len(sample_id) == 64 and sample_id.isascii() and sample_id.isalnum():
        try:
            raw = bytes.fromhex(sample_id)
        except ValueError:
            return sample_id.encode(), False
        if raw.hex() == sample_id:
            return raw, True
    return sample_id.encode("utf-8", "surrogatepass"), False


def taken(column: array[Number], order: array[int]) -> array[Number]:
    """The entries at these places, in their order."""
    return array(column.typecode, map(column.__getitem__, order))


def _reduced(
    column: array[float], starts: array[int], ends: list[int], reduce: Reduce
) -> array[float]:
    if reduce == "first":
        return taken(column, starts)
    if reduce == "any":
        return array(column.typecode, (max(column[a:b]) for a, b in zip(starts, ends, strict=True)))
    return array("d", (_mean(column[a:b]) for a, b in zip(starts, ends, strict=True)))


def _mean(values: array[float]) -> float:
    kept = [value for value in values if value != NOT_APPLICABLE]
    return math.fsum(kept) / len(kept) if kept else NOT_APPLICABLE
