"""Playing one shard, wherever that is: trials go out as they finish, their sum at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from traceback import format_exception

from callmark._version import __version__
from callmark.datasets.reader import PartOfDataset
from callmark.errors import (
    BadInput,
    CallmarkError,
    Fault,
    FingerprintMismatch,
    Incomplete,
    UsageError,
)
from callmark.plugins import add_plugins, plugin_behind, plugin_scope
from callmark.records.samples import shard_of
from callmark.records.seams import Observed, Standing
from callmark.run.loop import Here, Interrupts, driver, set_stage
from callmark.run.prepare import Setup, add_cache, prepared_part
from callmark.shards.engine import (
    Ended,
    Failed,
    Lines,
    Message,
    Plan,
    Saw,
    Task,
    decode_plan,
    places_of,
)
from callmark.stats.columns import KeyIndex
from callmark.store.files import encode_record, encode_result
from callmark.store.journal import DoneTrials, not_of_this_run

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
    """Plays what is not done yet. What the user has to mend is raised."""
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
