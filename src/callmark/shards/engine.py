"""What an engine is: it has shards played somewhere and tells what becomes of them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence, Set
from types import TracebackType
from typing import Protocol, Self

import msgspec

from callmark.config import RunConfig
from callmark.datasets.reader import Checked
from callmark.errors import CallmarkError, Fault, FingerprintMismatch, Incomplete, UsageError
from callmark.records.results import Fingerprints, ScorerMark
from callmark.records.samples import shard_of
from callmark.records.seams import Observed
from callmark.store.files import decode_record, encode_record
from callmark.summary.summary import SummaryState


class PackedPlaces(msgspec.Struct, frozen=True):
    """The samples of one shard: their numbers in the dataset, and the offsets of their lines."""

    index: bytes
    offset: bytes


class SamplePlaces:
    """`add` takes the items of a dataset in order, as its first reading finds them."""

    def __init__(self, num_shards: int) -> None:
        self.num_shards = num_shards
        self._index: list[array[int]] = [array("I") for _ in range(num_shards)]
        self._offset: list[array[int]] = [array("Q") for _ in range(num_shards)]
        self._count = 0

    def add(self, sample_id: str, offset: int) -> None:
        shard = shard_of(sample_id, self.num_shards)
        self._index[shard].append(self._count)
        self._offset[shard].append(offset)
        self._count += 1

    def keep_only(self, chosen: Set[int]) -> None:
        """`chosen`: the numbers of the samples that are run at all."""
        for shard in range(self.num_shards):
            both = zip(self._index[shard], self._offset[shard], strict=True)
            kept = [(index, offset) for index, offset in both if index in chosen]
            self._index[shard] = array("I", (index for index, _ in kept))
            self._offset[shard] = array("Q", (offset for _, offset in kept))

    def size_of(self, shard: int) -> int:
        return len(self._index[shard])

    def packed(self, shard: int) -> PackedPlaces:
        return PackedPlaces(self._index[shard].tobytes(), self._offset[shard].tobytes())


def places_of(packed: PackedPlaces) -> tuple[array[int], array[int]]:
    """Numbers and offsets."""
    index: array[int] = array("I")
    offset: array[int] = array("Q")
    index.frombytes(packed.index)
    offset.frombytes(packed.offset)
    return index, offset


_ERRORS: dict[int, type[CallmarkError]] = {
    error.exit_code: error for error in (UsageError, FingerprintMismatch, Incomplete, Fault)
}


class Plan(msgspec.Struct, frozen=True):
    """What all shards of a run have in common; the driver has checked it all."""

    version: str
    config: RunConfig
    dataset: Checked
    fingerprints: Fingerprints
    journal: str  # for messages
    scorers: tuple[ScorerMark, ...] = ()


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One shard. `done`: the trials that need not be run, as a journal's index has them."""

    plan: bytes
    shard: int
    num_shards: int
    places: PackedPlaces
    done: bytes


class Lines(msgspec.Struct, frozen=True, tag=True):
    """Finished trials, as lines of a journal; how far the shard is with them, and what they
    took."""

    count: int
    data: bytes
    misses: int
    errors: int
    spent: bytes = b""


class Saw(msgspec.Struct, frozen=True, tag=True):
    """Who answers the trials whose lines follow."""

    observed: bytes


class Ended(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """Nothing more will come. `summary` is about all trials whose lines were sent; `chance`, those
    lines that the level of chance needs. Without a summary the lines must be read."""

    finished: int
    misses: int
    errors: int
    scoring_sec: float
    observed: bytes
    summary: bytes | None
    chance: bytes
    incomplete: str | None = None  # why infrastructure ended it early


class Failed(msgspec.Struct, frozen=True, tag=True):
    """Somebody has to mend something: trying again would not help."""

    exit_code: int
    message: str

    def error(self) -> CallmarkError:
        return _ERRORS.get(self.exit_code, UsageError)(self.message)


class LostShard(msgspec.Struct, frozen=True, tag=True):
    """Whoever played the shard is gone without a word; an engine notices it."""

    why: str


Message = Lines | Saw | Ended | Failed
Event = Message | LostShard

_packed = msgspec.msgpack.Encoder().encode
_message = msgspec.msgpack.Decoder(Message).decode
_task = msgspec.msgpack.Decoder(Task).decode


def encode_task(task: Task) -> bytes:
    return _packed(task)


def decode_task(data: bytes) -> Task:
    return _task(data)


def encode_message(message: Message) -> bytes:
    return _packed(message)


def decode_message(data: bytes) -> Message:
    found: Message = _message(data)
    return found


def encode_plan(plan: Plan) -> bytes:
    return encode_record(plan)


def decode_plan(data: bytes) -> Plan:
    return decode_record(data, Plan)


def summary_of(ended: Ended) -> SummaryState | None:
    return None if ended.summary is None else decode_record(ended.summary, SummaryState)


def observed_of(told: Ended | Saw) -> Observed:
    return decode_record(told.observed, Observed)


class Engine(Protocol):
    """A context manager: leaving it ends whatever is still at work, at once."""

    def default_shards(self) -> int:
        """So many shards where nobody says how many."""

    def start(self, task: Task) -> None:
        """Have this shard played. One that was lost may be started again."""

    def events(self, seconds: float) -> Sequence[tuple[int, Event]]:
        """What happened, each with its shard: waits until there is something, but no longer than
        this. After `Ended`, `Failed` or `Lost` nothing more comes from a shard until it is started
        again."""

    def stop(self) -> None:
        """Ask everybody to come to an end soon; they still tell what they have."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
