"""What a driver tells those who play its shards, and what they tell it: records as bytes."""

from __future__ import annotations

import msgspec

from callmark.config import RunConfig
from callmark.core.protocols import Observed
from callmark.core.results import Fingerprints
from callmark.core.summary_state import SummaryState
from callmark.datasets.reader import Checked
from callmark.errors import CallmarkError, Fault, FingerprintMismatch, Incomplete, UsageError
from callmark.shards.places import PackedPlaces
from callmark.store.lines import decode_record, encode_record

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


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One shard. `done`: the trials that need not be run, as a journal's index has them."""

    plan: bytes
    shard: int
    num_shards: int
    places: PackedPlaces
    done: bytes


class Lines(msgspec.Struct, frozen=True, tag=True):
    """Finished trials, as lines of a journal; and how far the shard is with them."""

    count: int
    data: bytes
    misses: int
    errors: int


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
