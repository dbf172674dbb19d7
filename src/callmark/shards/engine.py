"""What an engine is: it has shards played somewhere and tells what becomes of them. And how one
shard is played, wherever that is: trials go out as they finish, their sum at the end."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Sequence, Set
from traceback import format_exception
from types import TracebackType
from typing import Protocol, Self

import msgspec

from callmark._version import __version__
from callmark.config import RunConfig
from callmark.datasets.reader import Checked, PartOfDataset
from callmark.errors import (
    BadInput,
    CallmarkError,
    Fault,
    FingerprintMismatch,
    Incomplete,
    UsageError,
)
from callmark.plugins import add_plugins, plugin_behind, plugin_scope
from callmark.records.results import Fingerprints, ScorerMark
from callmark.records.samples import shard_of
from callmark.records.seams import Observed, Standing
from callmark.run.loop import Here, Interrupts, driver, set_stage
from callmark.run.prepare import Setup, add_cache, prepared_part
from callmark.stats.columns import KeyIndex
from callmark.store.files import decode_record, encode_record, encode_result
from callmark.store.journal import DoneTrials, not_of_this_run
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
    """Somebody has to fix something: trying again would not help."""

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


HELD_BYTES = 1 << 20
HELD_SECONDS = 0.1

Send = Callable[[Message], None]


class Outbox:
    """Finished trials on their way to the driver: many at once, but none waits for long, however
    long the next one takes."""

    def __init__(self, task: Task, journal: str, send: Send) -> None:
        self._task = task
        self._journal = journal
        self._send = send
        self._lines: list[bytes] = []
        self._spent: list[bytes] = []
        self._size = 0
        self.standing = Standing(0, 0)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._send_now_and_then, daemon=True)
        self._clock.start()

    def done(self) -> DoneTrials:
        return DoneTrials(KeyIndex.unpacked(self._task.done))

    def not_ours(self, what: str, line: int | None = None) -> BadInput:
        return not_of_this_run(self._journal, what, line or None)

    def append(self, lines: bytes, count: int = 1, place: tuple[int, int] | None = None) -> None:
        with self._lock:
            self._lines.append(lines)
            self._size += len(lines)
            if self._size >= HELD_BYTES:
                self._flush()

    def note_spent(self, lines: bytes) -> None:
        with self._lock:
            self._spent.append(lines)

    def note_origin(self, seen: Observed) -> None:
        with self._lock:
            self._flush()
            self._send(Saw(encode_record(seen)))

    def stands(self, standing: Standing) -> None:
        self.standing = standing

    def end(self, message: Message) -> None:
        self.close()
        with self._lock:
            self._flush()
            self._send(message)

    def close(self) -> None:
        self._over.set()
        self._clock.join()

    def _send_now_and_then(self) -> None:
        while not self._over.wait(HELD_SECONDS):
            with self._lock:
                self._flush()

    def _flush(self) -> None:
        if self._lines or self._spent:
            standing = self.standing
            data = b"".join(self._lines)
            count = len(self._lines)
            spent = b"".join(self._spent)
            self._lines, self._spent, self._size = [], [], 0
            self._send(Lines(count, data, standing.misses, standing.errors, spent))


def play_or_fail(task: Task, send: Send) -> None:
    """`play_shard`, whose failures become messages. What this machine lacks is raised: elsewhere,
    or later, it may go better."""
    try:
        play_shard(task, send)
    except CallmarkError as error:
        send(Failed(error.exit_code, str(error)))
    except (MemoryError, OSError):
        raise
    except Exception as error:
        plugin = plugin_behind(error)
        if plugin is not None:
            what = f"{plugin} failed: {type(error).__name__}: {error}"
            send(Failed(UsageError.exit_code, what))
        else:
            send(Failed(Fault.exit_code, "".join(format_exception(error))))


def play_shard(task: Task, send: Send) -> None:
    """Plays what is not done yet. What the user has to fix is raised."""
    plan = decode_plan(task.plan)
    _refuse_other_version(plan)
    outbox = Outbox(task, plan.journal, send)
    try:
        with plugin_scope(), Interrupts() as interrupts:
            add_plugins(plan.config.plugins)
            outbox.end(_play(task, plan, outbox, interrupts))
    finally:
        outbox.close()


def _play(task: Task, plan: Plan, outbox: Outbox, interrupts: Interrupts) -> Ended:
    incomplete: str | None = None
    dataset = PartOfDataset(plan.dataset, *places_of(task.places))

    def is_here(sample_id: str) -> bool:
        return shard_of(sample_id, task.num_shards) == task.shard

    with prepared_part(plan.config, dataset, is_here) as opened, add_cache(opened) as setup:
        _refuse_other_inputs(plan, setup)
        stage = set_stage(setup, interrupts, outbox.stands)
        with driver(setup.runner) as drive:
            here = Here(stage, drive)
            here.get_ready()
            try:
                here.play_into(outbox)
            except KeyboardInterrupt:
                incomplete = "interrupted"
            except Incomplete as error:
                incomplete = str(error)
        observed = setup.runner.observed()
    interrupts.silence()
    standing, summariser = outbox.standing, stage.tally.summariser
    state = summariser.state()
    return Ended(
        finished=standing.finished,
        misses=standing.misses,
        errors=standing.errors,
        scoring_sec=here.scoring_sec,
        observed=encode_record(observed),
        summary=None if state is None else encode_record(state),
        chance=b"".join(map(encode_result, summariser.kept_for_chance())),
        incomplete=incomplete,
    )


def _refuse_other_version(plan: Plan) -> None:
    if plan.version != __version__:
        raise FingerprintMismatch(
            f"callmark: this node has {__version__}, the run was started by {plan.version};"
            " install one version everywhere"
        )


def _refuse_other_inputs(plan: Plan, setup: Setup) -> None:
    """Everything was checked by the driver; nobody may have changed it since."""
    if setup.fingerprints != plan.fingerprints:
        names = [
            name
            for name in plan.fingerprints.__struct_fields__
            if getattr(plan.fingerprints, name) != getattr(setup.fingerprints, name)
        ]
        raise FingerprintMismatch(
            f"{', '.join(names)}: changed while the run was starting:"
            " run it again when nothing writes to its inputs"
        )
    if setup.scorers != plan.scorers:
        raise FingerprintMismatch(
            "plugins: the scorers here are not those of the run: a file changed while it was"
            " starting, or a package is not installed everywhere"
        )
