"""Scored trials as rows of plain numbers, some 20 bytes and an id each, so that a million fit.

Results may come in any order: the columns are put into the order of the dataset before they are
read, and the trials of one sample become one number each."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import Literal, assert_never, get_args

import msgspec
from msgspec import UNSET

from callmark.errors import BadInput
from callmark.records.results import FEWEST_LEAVES, Result, Scores, Statement
from callmark.records.samples import Demand, Expectation, Kind, demand_of, expectation_of
from callmark.records.statements import GOOD, NEUTRAL
from callmark.stats.columns import (
    REMEMBERED,
    Column,
    ConflictingResults,
    MeasureColumns,
    Packed,
    PackedKeys,
    Rows,
    TrialKeys,
    take_at,
)

NOT_APPLICABLE = -1
# A dump of the results is no answer: above this share of at least so many leaves, or with so many
# characters of JSON word for word.
MOST_COPIED, MOST_VERBATIM = 0.8, 200
# Where leaves are equal, so many of them have to differ; and so many have to be stated that nobody
# required, where most are.
FEWEST_DIFFERENT = FEWEST_UNASKED = 10
_NOT_CHECKED = frozenset(("user_said", "not_claimed", "unchecked"))
Reduce = Literal["mean", "any", "first"]

# name -> (array type, how the trials of a sample become one number). -1: does not apply.
COLUMNS: dict[str, tuple[str, Reduce]] = {
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
    "checks_ok": ("b", "mean"),
    "answered": ("b", "mean"),
    "flagged": ("b", "mean"),
    "unchecked": ("I", "mean"),
    "judged": ("I", "mean"),
    "copy_ok": ("b", "mean"),
    "copy_ratio": ("d", "mean"),
    "invented": ("I", "mean"),
    "arguments": ("I", "mean"),
    "served": ("b", "any"),
    "unresolved": ("b", "any"),
    "keyed": ("b", "any"),
    "presence": ("b", "first"),
    "marker": ("b", "first"),
    "unchanged": ("b", "mean"),
    "kind": ("b", "first"),
    "place": ("I", "first"),
}


def numbers_of(scores: Scores, *, served: bool) -> tuple[int | float, ...]:
    """The numbers of one trial, in the order of `COLUMNS`."""
    calls, lax, strict = scores.calls, scores.lax, scores.strict
    values = scores.values
    checked = sum(count for label, count in values.items() if label not in _NOT_CHECKED)
    copying, arguments = scores.copying, scores.arguments or ()
    ratio = None if copying is None else copying.ratio
    stated = [one for one in scores.statements if one.label not in NEUTRAL] if served else []
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
        values.get("unsupported", 0),
        checked,
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
        _flag(scores.checks_ok),
        _flag(scores.answered),
        _flag(is_flagged(stated)),
        sum(one.label == "unchecked" for one in stated),
        len(stated),
        _flag(is_no_copy(scores)),
        NOT_APPLICABLE if ratio is None else ratio,
        sum(one.origin == "invented" for one in arguments),
        len(arguments),
        served,
        scores.unresolved,
        scores.strict_keys,
        scores.recall_kind == "presence",
        scores.span_extractor == "marker",
        NOT_APPLICABLE if scores.changes is UNSET else not scores.changes,
    )


def is_integrating(scores: Scores) -> bool:
    """Whether the answer is judged by its integration. "Your order is cancelled" is a right answer
    without a value: under `claims` only required facts say that there should be one."""
    return scores.span_extractor == "marker" or scores.recall_kind == "facts"


def has_served(result: Result) -> bool:
    """Whether a tool gave the model anything, in the trial or in its prompt."""
    if any(entry.served for entry in result.tool_trace):
        return True
    prompt = result.prompt
    return not isinstance(prompt, str) and any(one.get("role") == "tool" for one in prompt)


def is_flagged(statements: Iterable[Statement]) -> bool | None:
    """Whether one of them has a firm flag; None: none is checked. A good label or a firm flag
    makes a statement checked: what only an advisory rule flags counts neither for nor against."""
    checked = [one.is_firm for one in statements if one.is_firm or one.label in GOOD]
    return any(checked) if checked else None


def is_no_copy(scores: Scores) -> bool | None:
    """Whether the answer selects; None: too little was served to tell, or nobody says which facts
    are needed."""
    copying = scores.copying
    if copying is None or copying.ratio is None or scores.recall_kind != "facts":
        return None
    if scores.changes is not UNSET:
        return None  # the facts are those that somebody stated, needed or not
    if copying.leaves < (FEWEST_LEAVES if copying.served is UNSET else FEWEST_DIFFERENT):
        return None
    # What was asked for is no copy.
    asked = scores.lax.found
    unasked = copying.stated - asked
    is_copied = unasked > MOST_COPIED * (copying.leaves - asked) and unasked >= FEWEST_UNASKED
    return not is_copied and copying.verbatim < MOST_VERBATIM


_FLAGS = {None: NOT_APPLICABLE, False: 0, True: 1}
_flag = _FLAGS.__getitem__


class TrialPlace(msgspec.Struct, frozen=True, array_like=True):
    """What the dataset says about a sample as far as blocks and populations need it. `marker`: so
    are its answers read; `facts`: some are required; `observed`: nobody has accepted what is
    expected, so that it counts for no other metric; `step`: it is over after a call."""

    locale: str | None
    probe: bool
    slices: tuple[str, ...]
    tools: tuple[str, ...]
    calls: int
    retry: bool
    checks: Demand = "nothing"
    marker: bool = False
    facts: bool = False
    observed: bool = False
    step: bool = False

    @property
    def integrates(self) -> bool:
        """Whether its answer is judged by its integration."""
        return self.marker or self.facts

    @property
    def language(self) -> str | None:
        return None if self.locale is None else self.locale.replace("-", "_").split("_")[0].lower()


class TrialsState(PackedKeys, frozen=True, kw_only=True):
    """Scored trials in the order of the dataset. `codes` says which of the different `rows` each
    trial has; the place in a row is one of `places`. `more`: the measures of plug-ins, and whether
    all of a kind are yes or no."""

    codes: Packed
    rows: dict[str, Packed]
    places: tuple[TrialPlace, ...]
    more: dict[str, tuple[Packed, bool]] = msgspec.field(default_factory=dict)


KINDS: tuple[Kind, ...] = get_args(Kind)
KIND_CODE = {kind: code for code, kind in enumerate(KINDS)}
TYPES = {name: typecode for name, (typecode, _) in COLUMNS.items()}
_AVERAGED_TYPES = {
    name: "d" if reduce == "mean" else typecode for name, (typecode, reduce) in COLUMNS.items()
}


class Samples:
    """One row per scored sample, in the order of the dataset, trials averaged. `measures`: those of
    plug-ins by name, and whether each is a matter of yes or no."""

    def __init__(
        self,
        keys: TrialKeys,
        starts: Sequence[int],
        rows: Rows,
        places: list[TrialPlace],
        more: MeasureColumns,
    ) -> None:
        self._keys = keys
        self._starts = starts
        self._rows = rows
        self.places = places
        self.repeated = len(starts) != len(keys)
        self.kind = rows.column("kind")
        self.place = rows.column("place")
        self.cluster = take_at(keys.cluster, starts) if self.repeated else keys.cluster
        self.has_clusters = any(self.cluster)
        self._more = more.averaged(list(self.trial_rows()) if self.repeated else None)
        self.measures = {name: more.yes_no[name] for name in self._more}

    def __len__(self) -> int:
        return len(self._starts)

    def column(self, name: str) -> Column:
        if name in self._more:
            return Column(range(len(self)), self._more[name])
        return self._rows.column(name)

    def measure(self, name: str) -> Column:
        """A plug-in's measure, also where no trial has it."""
        if name in self._more:
            return self.column(name)
        return Column(bytes(len(self)), array("d", [math.nan]))

    def columns(self, names: Sequence[str], positions: Sequence[int]) -> tuple[Column, ...]:
        if names[0] in self._more:
            return tuple(Column(positions, self._more[name]) for name in names)
        return self._rows.columns(names, positions)

    def id_at(self, position: int) -> str:
        return self._keys.id_at(self._starts[position])

    def ids(self) -> list[str]:
        return [*map(self.id_at, range(len(self)))] if self.repeated else self._keys.ids()

    def indexes(self) -> array[int]:
        """The place of each sample in its dataset."""
        return take_at(self._keys.index, self._starts) if self.repeated else self._keys.index

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
        self._rows = Rows(TYPES)
        self._lost = TrialKeys()
        self._lost_rows = Rows({name: TYPES[name] for name in ("kind", "place")})
        self._places: dict[TrialPlace, int] = {}
        self._more = MeasureColumns()

    def add(self, result: Result, expectation: Expectation | None = None) -> Expectation:
        """What is expected of it, which has been read now."""
        try:
            expectation = expectation or expectation_of(result.metadata)
            self._add(result, expectation)
        except OverflowError:
            raise _unreadable(result, "an index or a count is negative or too large") from None
        except TypeError:
            # A name or a locale that is none: only a dataset's own reader checks metadata.
            what = "metadata: cannot be read; see the schema of a dataset item"
            raise _unreadable(result, what) from None
        return expectation

    def _add(self, result: Result, expectation: Expectation) -> None:
        scores = result.scores
        if scores is None or result.status == "error":
            place = self._place_of(expectation, result, expectation.kind)
            self._lost.add(result.index, result.trial, result.sample_id, expectation.cluster)
            self._lost_rows.add((KIND_CODE[expectation.kind], place))
            return
        place = self._place_of(expectation, result, scores.kind)
        self._keys.add(result.index, result.trial, result.sample_id, expectation.cluster)
        numbers = numbers_of(scores, served=has_served(result))
        self._rows.add((*numbers, KIND_CODE[scores.kind], place))
        self._more.add(scores.added, len(self._keys))

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
            places=tuple(self._places),
            more=self._more.packed(),
        )

    def extend(self, state: TrialsState) -> None:
        """The scored trials of another summary, before anything was asked of this one."""
        places = [self._places.setdefault(place, len(self._places)) for place in state.places]
        before = len(self._keys)
        self._keys.extend(state)
        self._more.extend(state.more, before, len(self._keys))
        columns = (state.rows[name].numbers() for name in COLUMNS)
        rows = zip(*columns, strict=True)
        self._rows.extend(
            state.codes.numbers(), ((*row[:-1], places[int(row[-1])]) for row in rows)
        )

    @property
    def arrival(self) -> array[int] | None:
        """Which arrival each trial of `state` is; None: they came in the order of the dataset."""
        return self._keys.arrival

    @property
    def scored(self) -> int:
        return len(self._keys)

    @property
    def lost(self) -> int:
        return len(self._lost)

    def column(self, name: str) -> Column:
        """One number per scored trial, for `Samples.trial_rows`."""
        if name in self._more.yes_no:
            return self._more.column(name)
        return self._rows.column(name)

    def codes_of(self, rows: range) -> tuple[int, ...]:
        """Equal for trials with equal numbers, those of plug-ins aside."""
        return tuple(self._rows.codes[rows.start : rows.stop])

    def kinds(self) -> Column:
        return self._rows.column("kind")

    def samples(self) -> Samples:
        self._sort()
        starts = self._keys.starts()
        rows = self._rows
        if len(starts) != len(self._keys):
            rows = _average_rows(rows, starts)
        return Samples(self._keys, starts, rows, list(self._places), self._more)

    def split(self, sample_ids: Collection[str]) -> tuple[Trials, Trials]:
        """The trials of all other samples, and those of these."""
        self._sort()
        parts = Trials(), Trials()
        for part, chosen in zip(parts, (False, True), strict=True):
            rows, lost = (
                [row for row in range(len(keys)) if (keys.id_at(row) in sample_ids) == chosen]
                for keys in (self._keys, self._lost)
            )
            part._keys, part._rows = self._keys.taken(rows), self._rows.taken(rows)
            part._lost, part._lost_rows = self._lost.taken(lost), self._lost_rows.taken(lost)
            part._more, part._places = self._more.taken(rows), self._places
        return parts

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
        self._sort()
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
                if keys is self._keys:
                    self._more.reorder(order)
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
            0 if expectation.observed else len(expectation.calls),
            expectation.retry or result.faults is not UNSET,
            demand_of(expectation.checks),
            *_reading_of(result, expectation),
            expectation.observed,
            expectation.is_step and bool(expectation.calls),
        )
        return self._places.setdefault(place, len(self._places))


def _reading_of(result: Result, expectation: Expectation) -> tuple[bool, bool]:
    """Whether it is read with `marker`, and whether facts are required."""
    scores = result.scores
    if scores is None:
        return result.span_extractor == "marker", bool(expectation.required_facts)
    return scores.span_extractor == "marker", scores.recall_kind == "facts"


def _unreadable(result: Result, what: str) -> BadInput:
    return BadInput(f"results: sample {result.sample_id!r}, trial {result.trial}: {what}")


def _ranges(starts: Sequence[int], end: int) -> Iterator[range]:
    return map(range, starts, chain(islice(starts, 1, None), (end,)))


def _average_rows(rows: Rows, starts: Sequence[int]) -> Rows:
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
        _reduce(values, reduce)
        for values, (_, reduce) in zip(numbers, COLUMNS.values(), strict=True)
    )


def _reduce(values: tuple[float, ...], reduce: Reduce) -> float:
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
