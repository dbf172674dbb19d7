"""What a summariser knows, as plain records: so that the summaries of shards can be put together
without reading their lines again."""

from __future__ import annotations

import msgspec

from callmark.core.columns import Packed
from callmark.core.report import MissedCall


class PlaceState(msgspec.Struct, frozen=True, array_like=True):
    """A `Place`, field by field."""

    locale: str | None
    probe: bool
    slices: tuple[str, ...]
    tools: tuple[str, ...]
    calls: int
    retry: bool


class TrialsState(msgspec.Struct, frozen=True, kw_only=True):
    """Scored trials in the order of the dataset. `codes` says which of the different `rows` each
    trial has; the place in a row is one of `places`."""

    index: Packed
    trial: Packed
    cluster: Packed
    ids: bytes
    id_ends: Packed
    codes: Packed
    rows: dict[str, Packed]
    places: tuple[PlaceState, ...]


class ListedMiss(msgspec.Struct, frozen=True, array_like=True):
    index: int
    trial: int
    position: int
    call: MissedCall


class ListingState(msgspec.Struct, frozen=True, kw_only=True):
    """`counts`: every counter by its name. Errors are no part of it."""

    misses: tuple[ListedMiss, ...]
    counts: dict[str, dict[str, int]]


class SummaryState(msgspec.Struct, frozen=True, kw_only=True):
    """`answer` is one of the answers; `chance`, the (index, trial) of the results that the level of
    chance is computed from."""

    trials: TrialsState
    listing: ListingState
    answer: str | None
    answers_differ: bool
    chance: tuple[tuple[int, int], ...]
