"""Scored trials as rows of plain numbers, some 20 bytes and an id each, so that a million fit.

Results may come in any order: the columns are put into the order of the dataset before they are
read, and the trials of one sample become one number each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import Literal, assert_never, get_args

import msgspec

from callmark.core.columns import REMEMBERED, Column, Rows, taken
from callmark.core.results import Result
from callmark.core.samples import Expectation, Kind, expectation_of
from callmark.core.scores import Scores
from callmark.core.summary_state import Packed, PlaceState, TrialsState
from callmark.core.trial_keys import ConflictingResults, TrialKeys
from callmark.errors import BadInput

KINDS: tuple[Kind, ...] = get_args(Kind)
KIND_CODE = {kind: code for code, kind in enumerate(KINDS)}
NOT_APPLICABLE = -1
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
    "keyed": ("b", "any"),
    "presence": ("b", "first"),
    "marker": ("b", "first"),
    "kind": ("b", "first"),
    "place": ("I", "first"),
}
_TYPES = {name: typecode for name, (typecode, _) in _COLUMNS.items()}
_AVERAGED_TYPES = {
    name: "d" if reduce == "mean" else typecode for name, (typecode, reduce) in _COLUMNS.items()
}


class TrialPlace(msgspec.Struct, frozen=True):
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


class Samples:
    """One row per scored sample, in the order of the dataset, trials averaged."""

    def __init__(
        self, keys: TrialKeys, starts: Sequence[int], rows: Rows, places: list[TrialPlace]
    ) -> None:
        self._keys = keys
        self._starts = starts
        self._rows = rows
        self.places = places
        self.repeated = len(starts) != len(keys)
        self.kind = rows.column("kind")
        self.place = rows.column("place")
        self.cluster = taken(keys.cluster, starts) if self.repeated else keys.cluster
        self.has_clusters = any(self.cluster)

    def __len__(self) -> int:
        return len(self._starts)

    def column(self, name: str) -> Column:
        return self._rows.column(name)

    def columns(self, names: Iterable[str], positions: Iterable[int]) -> tuple[Column, ...]:
        return self._rows.columns(names, positions)

    def id_at(self, position: int) -> str:
        return self._keys.id_at(self._starts[position])

    def index_at(self, position: int) -> int:
        """The sample's place in its dataset."""
        return self._keys.index[self._starts[position]]

    def trial_rows(self) -> Iterator[range]:
        """The rows of each sample's trials."""
        return _ranges(self._starts, len(self._keys))


class Trials:
    """All scored trials, and apart from them who could not be scored."""

    def __init__(self) -> None:
        self._keys = TrialKeys()
        self._rows = Rows(_TYPES)
        self._lost = TrialKeys()
        self._lost_rows = Rows({name: _TYPES[name] for name in ("kind", "place")})
        self._places: dict[TrialPlace, int] = {}

    def add(self, result: Result, expectation: Expectation | None = None) -> None:
        try:
            self._add(result, expectation or expectation_of(result.metadata))
        except OverflowError:
            raise _unreadable(result, "an index or a count is negative or too large") from None
        except TypeError:
            # A name or a locale that is none: only a dataset's own reader checks metadata.
            what = "metadata: cannot be read; see the schema of a dataset item"
            raise _unreadable(result, what) from None

    def _add(self, result: Result, expectation: Expectation) -> None:
        scores = result.scores
        if scores is None or result.status == "error":
            place = self._place_of(expectation, result, expectation.kind)
            self._lost.add(result, expectation.cluster)
            self._lost_rows.add((KIND_CODE[expectation.kind], place))
            return
        place = self._place_of(expectation, result, scores.kind)
        self._keys.add(result, expectation.cluster)
        self._rows.add((*_numbers_of(scores), KIND_CODE[scores.kind], place))

    def state(self) -> TrialsState:
        """The scored trials, in the order of the dataset."""
        self._sort()
        ids, id_ends = self._keys.packed_ids()
        return TrialsState(
            index=Packed.of(self._keys.index),
            trial=Packed.of(self._keys.trial),
            cluster=Packed.of(self._keys.cluster),
            ids=ids,
            id_ends=id_ends,
            codes=Packed.of(self._rows.codes),
            rows=self._rows.packed(),
            places=tuple(PlaceState(*msgspec.structs.astuple(place)) for place in self._places),
        )

    def extend(self, state: TrialsState) -> None:
        """The scored trials of another summary, before anything was asked of this one."""
        places = [
            self._places.setdefault(TrialPlace(*msgspec.structs.astuple(place)), len(self._places))
            for place in state.places
        ]
        self._keys.extend(state)
        columns = (state.rows[name].numbers() for name in _COLUMNS)
        rows = zip(*columns, strict=True)
        self._rows.extend(
            state.codes.numbers(), ((*row[:-1], places[int(row[-1])]) for row in rows)
        )

    @property
    def scored(self) -> int:
        return len(self._keys)

    @property
    def lost(self) -> int:
        return len(self._lost)

    def column(self, name: str) -> Column:
        """One number per scored trial, for `Samples.trial_rows`."""
        return self._rows.column(name)

    def kinds(self) -> Column:
        return self._rows.column("kind")

    def samples(self) -> Samples:
        self._sort()
        starts = self._keys.starts()
        rows = self._rows
        if len(starts) != len(self._keys):
            rows = _averaged(rows, starts)
        return Samples(self._keys, starts, rows, list(self._places))

    def unscored(self) -> Counter[tuple[Kind, TrialPlace]]:
        """The samples of which no trial has a score. The rows must be in order."""
        kinds, places = self._lost_rows.column("kind"), self._lost_rows.column("place")
        known = list(self._places)
        found: Counter[tuple[Kind, TrialPlace]] = Counter()
        for index, rows in groupby(range(self.lost), key=self._lost.index.__getitem__):
            if not self._keys.rows_of(index):
                row = next(rows)
                found[KINDS[int(kinds[row])], known[int(places[row])]] += 1
        return found

    def most_trials(self) -> int:
        """The largest number of trials that any sample has, lost ones included."""
        scored = max((len(list(run)) for _, run in groupby(self._keys.index)), default=0)
        lost = (
            len(list(run)) + len(self._keys.rows_of(index))
            for index, run in groupby(self._lost.index)
        )
        return max(scored, max(lost, default=0))

    def _sort(self) -> None:
        for keys, rows in ((self._keys, self._rows), (self._lost, self._lost_rows)):
            order = keys.order()
            if order is not None:
                keys.reorder(order)
                rows.reorder(order)
        self._lost.starts()
        self._check_not_both()

    def _check_not_both(self) -> None:
        for index, trial in zip(self._lost.index, self._lost.trial, strict=True):
            for row in self._keys.rows_of(index):
                if self._keys.trial[row] == trial:
                    name = self._keys.id_at(row)
                    what = (
                        f"sample {name!r}, trial {trial}: occurs twice, once with an error; "
                        "each trial must be given once"
                    )
                    raise ConflictingResults(what, (name, name), index, trial)

    def _place_of(self, expectation: Expectation, result: Result, kind: Kind) -> int:
        tools: tuple[str, ...] = ()
        if kind == "eligible":
            names = {call.name for call in expectation.calls} or {
                entry.name for entry in result.tool_trace if entry.served and entry.name
            }
            tools = tuple(sorted(names))
        place = TrialPlace(
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
        scores.strict_keys,
        scores.recall_kind == "presence",
        scores.span_extractor == "marker",
    )


def _unreadable(result: Result, what: str) -> BadInput:
    return BadInput(f"results: sample {result.sample_id!r}, trial {result.trial}: {what}")


def _flag(value: bool | None) -> int:
    return NOT_APPLICABLE if value is None else int(value)


def _ranges(starts: Sequence[int], end: int) -> Iterator[range]:
    return map(range, starts, chain(islice(starts, 1, None), (end,)))


def _averaged(rows: Rows, starts: Sequence[int]) -> Rows:
    """One row per sample. Samples whose trials have the same rows are averaged once."""
    averaged = Rows(_AVERAGED_TYPES)
    known: dict[tuple[int, ...], int] = {}
    for span in _ranges(starts, len(rows)):
        codes = tuple(rows.codes[span.start : span.stop])
        code = known.get(codes)
        if code is not None:
            averaged.again(code)
            continue
        averaged.add(_average([rows.kept(code) for code in codes]))
        if len(known) == REMEMBERED:
            known.clear()
        known[codes] = averaged.codes[-1]
    return averaged


def _average(trials: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    numbers = zip(*trials, strict=True)
    return tuple(
        _reduced(values, reduce)
        for values, (_, reduce) in zip(numbers, _COLUMNS.values(), strict=True)
    )


def _reduced(values: tuple[float, ...], reduce: Reduce) -> float:
    match reduce:
        case "first":
            return values[0]
        case "any":
            return max(values)
        case "mean":
            kept = [value for value in values if value != NOT_APPLICABLE]
            return math.fsum(kept) / len(kept) if kept else NOT_APPLICABLE
        case _:
            assert_never(reduce)
