"""The journal of a run, `OUT.journal`: every finished trial is in it before the next one counts.

The first line holds the fingerprint set of the run; a resumed run that was allowed to differ
adds its own set, and the latest set counts. Each run that appends says who answers (a segment).
All other lines are results, in the order in which they were finished, and once they are all in
`--out`, a line that says so. Killed at any moment, at most the last line is torn."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import struct
import time
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

import msgspec

from callmark.errors import BadInput, CannotWrite, FingerprintMismatch, OutputFailed, UsageError
from callmark.records.jsontext import (
    Json,
    NotJson,
    canonical_json,
    plain_object,
    sha256_hex,
    want_number,
    well_formed,
)
from callmark.records.results import Result
from callmark.records.seams import Observed
from callmark.stats.columns import KeyIndex, trial_key
from callmark.store.files import (
    Line,
    atomic_writer,
    decode_result,
    lines_of,
    make_folder,
    output_failed,
    sync_folder,
)
from callmark.store.spending import SpendingFile

VERSION = 2
MAGIC = b'{"journal":'
_STAMP = b',"line_sha256":"%s"}\n'
_STAMP_SIZE = len(_STAMP % (b"0" * 64))


def head_line(fingerprints: Mapping[str, Json]) -> bytes:
    text = canonical_json(dict(fingerprints))
    return b'%s%d,"fingerprints":%s}\n' % (MAGIC, VERSION, text.encode())


def segment_line(number: int, seen: Observed) -> bytes:
    """Who answers from here on; the latest line of one number counts for all of that run."""
    return _stamped_record(
        {"segment": number, "provenance": seen.provenance, "warnings": list(seen.warnings)}
    )


def salvage_line(left_out: Iterable[int]) -> bytes:
    """These lines are garbled, and somebody said that the others are to be kept."""
    return _stamped_record({"salvaged": sorted(left_out)})


def written_line(sha256: str) -> bytes:
    """Everything above is in `--out`, which has this hash."""
    return _stamped_record({"written": sha256})


def stamp(line: bytes) -> bytes:
    """A line that is a JSON object, with a hash of itself as its last field."""
    return line[:-2] + _STAMP % sha256_hex(line).encode()


def strip_stamp(line: bytes) -> bytes:
    """What was stamped, of a line that is known to be whole."""
    return line[:-_STAMP_SIZE] + b"}\n"


def unstamp(line: bytes) -> bytes | None:
    """What was stamped; None if this is something else."""
    # By stamping again: one place decides what a stamped line looks like.
    inner = strip_stamp(line)
    return inner if stamp(inner) == line else None


def _stamped_record(record: Mapping[str, Json]) -> bytes:
    # Not canonical: a report shows the fields in the order in which they stand.
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return stamp(well_formed(text).encode() + b"\n")


def compare_heads(
    where: str,
    before: Mapping[str, Json],
    now: Mapping[str, Json],
    may_differ: Collection[str],
    may_grow: Collection[str],
) -> None:
    differing = [
        f"  {name}: the journal has {canonical_json(before.get(name))},"
        f" this run {canonical_json(now.get(name))}"
        for name in sorted(before.keys() | now.keys())
        if name not in may_differ
        and before.get(name) != now.get(name)
        and not (name in may_grow and _grew(before.get(name), now.get(name)))
    ]
    if differing:
        raise FingerprintMismatch(
            f"{where}: belongs to another run:\n"
            + "\n".join(differing)
            + "\nUse the earlier settings, or throw its results away (--restart)."
        )


# A larger --limit: what is in the journal is still part of such a run.
def _grew(before: Json, now: Json) -> bool:
    return now is None or (before is not None and want_number(now) > want_number(before))


class DoneTrial(msgspec.Struct, frozen=True):
    """Where a finished trial stands in the journal, and where its sample in the dataset."""

    line: int
    index: int


class DoneTrials:
    """The trials that need not be run again; errors are no part of it."""

    def __init__(self, index: KeyIndex) -> None:
        self._index = index
        # The last bit says "ok": of a trial that failed and was then repeated only the latest line
        # counts.
        self._count = sum(mark & 1 for mark in index.latest())

    def packed(self) -> bytes:
        return self._index.packed()

    def find(self, sample_id: str, trial: int) -> DoneTrial | None:
        found = self._index.find(trial_key(sample_id, trial))
        return DoneTrial(found[0], found[1] >> 1) if found and found[1] & 1 else None

    def __contains__(self, key: tuple[str, int]) -> bool:
        return self.find(*key) is not None

    def __len__(self) -> int:
        return self._count


Mode = Literal["new", "resume", "restart"]

# A kill of the process loses nothing either way; this is what a power cut may cost.
_SYNC_SECONDS = 1.0
_Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
_LATEST = (1 << 40) - 1  # later than any line of an earlier run
_BLOCK = 1 << 12  # samples whose places are sorted at once
_PLACE = struct.Struct(">HIQ")  # index in its block, trial, offset: the order of the results file


_SALVAGE = (
    "--resume --salvage keeps the whole lines before and after it and runs the rest;"
    " --restart starts over."
)


class OutputLines(NamedTuple):
    """What became of `--out`; `line_sizes`: bytes of each of its lines."""

    sha256: str
    line_sizes: array[int]


class WrongTrials(BadInput):
    """The journal does not hold the trials of this run; which one is wrong is still to be found."""


class _Record(msgspec.Struct):
    """What is needed of any line: a fingerprint set, who answers, or the name of a result."""

    journal: int | None = None
    fingerprints: Json = None
    segment: int | None = None
    provenance: dict[str, Json] = {}
    warnings: tuple[str, ...] = ()
    salvaged: tuple[int, ...] = ()
    written: str | None = None
    index: _Number = 0
    sample_id: str | None = None
    trial: _Number = 0
    status: Literal["ok", "error"] = "ok"


_decode = msgspec.json.Decoder(_Record).decode


ENDING = ".journal"


def journal_path(out: Path) -> Path:
    return out.with_name(out.name + ENDING)


def finished_trials(journal: Path) -> Iterator[Result]:
    """Those of a run that is not finished, in the order of its results; of two tries the later."""
    with journal.open("rb") as stream:
        left_out = {
            number for _, record in _Found(journal).records(stream) for number in record.salvaged
        }
        stream.seek(0)
        places = _Places()
        for line, record in _Found(journal).records(stream):
            if record.sample_id is not None and line.number not in left_out:
                places.add(record.index, record.trial, line.offset)
        for offset in places.in_order(stream):
            stream.seek(offset)
            yield decode_result(_bare(stream.readline()))


def not_of_this_run(path: Path | str, what: str, line: int | None) -> BadInput:
    if line is None:
        return BadInput(f"{path}: {what}. --restart starts over.")
    return BadInput(f"{path}:{line}: {what}. {_SALVAGE}")


def open_journal(
    out: Path,
    fingerprints: Mapping[str, Json],
    *,
    mode: Mode,
    may_differ: Collection[str] = (),
    may_grow: Collection[str] = (),
    salvage: bool = False,
) -> Journal:
    """Locks the journal of `out` and makes it ready for `append`. With `resume`, the values below
    `may_differ` are free and those below `may_grow` may be larger than before (None: no bound);
    with `salvage`, garbled lines are left out."""
    path = journal_path(out)
    existed, fd = _lock(path, mode)
    try:
        journal = Journal(path, fd, fingerprints)
        if mode == "resume" and existed:
            journal.recover(may_differ, may_grow, salvage=salvage)
        elif mode != "resume":
            journal.start()
    except BaseException:
        os.close(fd)
        raise
    return journal


class Journal:
    """Made by `open_journal`. A context manager: leaving it keeps the file and ends the lock.
    `written`: the hash of `--out`, if an earlier run came as far as that."""

    def __init__(self, path: Path, fd: int, fingerprints: Mapping[str, Json]) -> None:
        self.path = path
        self.written: str | None = None
        self._fd: int | None = fd
        self._fingerprints = fingerprints
        self._size = 0  # 0: not even the first line is there
        self._finished = 0
        self._synced = 0.0
        self._done = KeyIndex()  # of each trial twice its index, plus one if it is finished
        self._left_out: set[int] = set()
        self._segments: dict[int, Observed] = {}
        self._answering: set[int] = set()  # segments with a finished trial
        self._segment: int | None = None  # of this run
        # Where the trials stand, if this run appended all of them and said which they are.
        self._places: _Places | None = None
        self._spending = SpendingFile(path.with_name(path.name.removesuffix(ENDING)))

    @property
    def is_new(self) -> bool:
        """No run has begun to write it."""
        return self._size == 0

    @property
    def left_out(self) -> tuple[int, ...]:
        """The lines that were garbled, and that somebody has given up."""
        return tuple(sorted(self._left_out))

    def answered(self) -> list[Observed]:
        """Who answered the trials that earlier runs finished, one for each of these runs."""
        return [self._segments[number] for number in sorted(self._answering)]

    def note_origin(self, seen: Observed) -> None:
        """Who answers the trials that this run appends, as far as it is known by now."""
        if self._segment is None:
            self._segment = max(self._segments, default=0) + 1
        self._write(segment_line(self._segment, seen))

    def done(self) -> DoneTrials:
        """What earlier runs finished, as this run found it when it opened the journal."""
        return DoneTrials(self._done)

    def results(self) -> Iterator[tuple[int, Result | NotJson]]:
        """Every trial that earlier runs wrote, finished or lost, in the order in which they did,
        each with its line; or what is wrong with that line."""
        with self.path.open("rb") as stream:
            for line, _ in self._trial_lines(stream):
                try:
                    yield line.number, decode_result(line.data)
                except NotJson as problem:
                    yield line.number, problem

    def leave_out(self, lines: Collection[int]) -> None:
        """What stands there counts no more: its trials have to be run again."""
        # Written down before it counts: a second resume must not stumble over the same lines.
        self._write(salvage_line(lines))
        self._left_out.update(lines)
        self._read()

    def note_done(self, result: Result) -> None:
        """A trial that was appended by this run need not be run once more."""
        key = trial_key(result.sample_id, result.trial)
        self._done.add(key, _LATEST, 2 * result.index + 1)

    def read(self, offset: int, size: int) -> bytes:
        """What this run appended there."""
        return os.pread(self._open_fd(), size, offset)

    def append(
        self, lines: bytes, count: int = 1, place: tuple[int, int] | None = None
    ) -> tuple[int, int]:
        """Hands encoded results to the system at once, and to the disk once a second. Where they
        begin, and how many bytes they take. `place`: index and trial of the only one."""
        if place is None:
            stamped = b"".join(map(stamp, lines.splitlines(keepends=True)))
            self._write(stamped)
            self._places = None
        else:
            stamped = stamp(lines)
            self._write(stamped)
            if self._places is not None:
                self._places.add(*place, self._size - len(stamped))
        self._finished += count
        now = time.monotonic()
        if now - self._synced >= _SYNC_SECONDS:
            self._sync()
            self._synced = now
        return self._size - len(stamped), len(stamped)

    def note_spent(self, lines: bytes) -> None:
        """What trials took stands in a file of its own, which stays."""
        self._spending.append(lines)

    def not_ours(self, what: str, line: int | None = None) -> BadInput:
        """It holds something that this run could not have written."""
        return not_of_this_run(self.path, what, line)

    def finish(self, out: Path, *, trials: int | None = None) -> OutputLines:
        """Writes `out` in the order of the dataset, at once and whole. The journal stays until
        `remove`: what is made of the results may still fail. `trials`: so many lines it must be."""
        if self.is_new:
            self.start()
        self._sync()
        advice = (
            f"Every finished trial is in {self.path}. "
            "Free some space, then run the same command with --resume."
        )
        with atomic_writer(out, what_next=advice) as stream, self.path.open("rb") as source:
            sizes: array[int] = array("I")
            written = hashlib.sha256()
            for line in self._lines_in_order(source):
                stream.write(line)
                written.update(line)
                sizes.append(len(line))
            if trials is not None and len(sizes) != trials:
                raise WrongTrials(f"holds {len(sizes)} trials, but this run has {trials}")
        self._done = KeyIndex()  # the report of a million needs the room
        # From here on a killed run has only its report to make: --resume then judges, and asks
        # nobody.
        self._write(written_line(written.hexdigest()))
        return OutputLines(written.hexdigest(), sizes)

    def remove(self) -> None:
        """Everything that was to be made of it is in its place."""
        self.path.unlink(missing_ok=True)
        sync_folder(self.path.parent)

    def remove_if_empty(self) -> None:
        """A run that could not begin leaves nothing that would have to be resumed."""
        # Finished trials cost money; only a journal without any may go unasked.
        if self._finished == 0:
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        self._spending.close()
        if self._fd is None:
            return
        try:
            self._sync()
        finally:
            fd, self._fd = self._fd, None
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        os.ftruncate(self._open_fd(), 0)
        self._places = _Places()
        self._spending.start()
        self._append(head_line(self._fingerprints))
        self._sync()
        sync_folder(self.path.parent)

    def recover(
        self, may_differ: Collection[str], may_grow: Collection[str], *, salvage: bool
    ) -> None:
        """Cuts off a torn last line, learns what is done, and refuses another run's journal."""
        found = self._read()
        if self._left_out:  # said below the lines that it is about
            found = self._read()
        if found.head is None and not found.garbled:
            self._size = 0  # torn before its first line was whole
            self.start()
            return
        if found.head is None:
            raise BadInput(_of_another_kind(self.path, found.garbled[0]))
        now = plain_object(dict(self._fingerprints))
        compare_heads(f"{self.path}:{found.head_line}", found.head, now, may_differ, may_grow)
        garbled = [number for number in found.garbled if number not in self._left_out]
        if garbled and not salvage:
            more = f" ({len(garbled) - 1} more such lines)" if len(garbled) > 1 else ""
            what = f"is garbled: this is not what was written there{more}"
            raise not_of_this_run(self.path, what, garbled[0])
        # Only now: a journal of another run was refused above, and must stay as it was.
        os.ftruncate(self._open_fd(), self._size)
        if now != found.head:
            self._write(head_line(self._fingerprints))
            self._sync()
        if garbled:
            self.leave_out(garbled)

    def _read(self) -> _Found:
        self._done, self._finished = KeyIndex(), 0
        self._answering.clear()
        found = _Found(self.path)
        with self.path.open("rb") as stream:
            for line, record in found.records(stream):
                self._learn(line, record, found)
        return found

    def _learn(self, line: Line, record: _Record, found: _Found) -> None:
        self._size = line.offset + len(line.data)
        if line.number in self._left_out:
            return
        if record.sample_id is not None:
            key = trial_key(record.sample_id, record.trial)
            self._done.add(key, line.number, 2 * record.index + (record.status == "ok"))
            self._finished += 1
            if record.status == "ok" and found.segment is not None:
                self._answering.add(found.segment)
            self.written = None
        elif record.segment is not None:
            found.segment = record.segment
            self._segments[record.segment] = Observed(
                provenance=record.provenance, warnings=record.warnings
            )
        elif record.written is not None:
            self.written = record.written
        elif record.salvaged:
            self._left_out.update(record.salvaged)
        elif record.journal == VERSION and isinstance(record.fingerprints, dict):
            found.head, found.head_line = record.fingerprints, line.number
        else:
            raise BadInput(_of_another_kind(self.path, line.number))

    def _trial_lines(self, stream: io.BufferedReader) -> Iterator[tuple[Line, _Record]]:
        """The trials that count."""
        for line, record in _Found(self.path).records(stream):
            if record.sample_id is not None and line.number not in self._left_out:
                yield line, record

    def _lines_in_order(self, stream: io.BufferedReader) -> Iterator[bytes]:
        """The latest line of each (index, trial), sorted. Runners that answer one sample after the
        other leave them so: then no place has to be kept."""
        places, self._places = self._places, None
        if places is not None:
            for offset in places.in_order(stream):
                stream.seek(offset)
                yield _bare(stream.readline())
            return
        keys = ((record.index, record.trial) for _, record in self._trial_lines(stream))
        in_order = all(left < right for left, right in pairwise(keys))
        stream.seek(0)
        if in_order:
            for line, _ in self._trial_lines(stream):  # which looks at its hash
                yield strip_stamp(line.data)
            return
        for offset in self._offsets_in_order(stream):
            stream.seek(offset)
            yield _bare(stream.readline())

    def _offsets_in_order(self, stream: io.BufferedReader) -> Iterator[int]:
        """Where the latest line of each (index, trial) stands, sorted."""
        places = _Places()
        for line, record in self._trial_lines(stream):
            places.add(record.index, record.trial, line.offset)
        return places.in_order(stream)

    def _write(self, line: bytes) -> None:
        if self.is_new:
            self.start()
        self._append(line)

    def _append(self, line: bytes) -> None:
        fd = self._open_fd()
        try:
            written = os.write(fd, line)
            while written < len(line):
                written += os.write(fd, memoryview(line)[written:])
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(fd, self._size)
            raise self._failed(error) from None
        self._size += len(line)

    def _sync(self) -> None:
        try:
            os.fsync(self._open_fd())
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> OutputFailed:
        trials = (
            "1 finished trial is"
            if self._finished == 1
            else f"{self._finished} finished trials are"
        )
        return output_failed(
            self.path,
            error,
            f"{trials} safe in it. Free some space, then run the same command with --resume.",
        )

    def _open_fd(self) -> int:
        if self._fd is None:
            raise ValueError(f"{self.path}: the journal is closed")
        return self._fd


def _lock(path: Path, mode: Mode) -> tuple[bool, int]:
    """An exclusively locked file, and whether there was something in it."""
    while True:
        try:
            make_folder(path.parent)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise CannotWrite(
                f"{path}: cannot be written: {error.strerror}. Choose another --out."
            ) from None
        try:
            existed = _take(fd, path, mode)
        except BaseException:
            os.close(fd)
            raise
        # The run before may have removed the file between our opening and locking it.
        if _is_still(path, fd):
            return existed, fd
        os.close(fd)


def _take(fd: int, path: Path, mode: Mode) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"{path}: another process is working on this run. Wait for it, or choose another --out."
        ) from None
    except OSError as error:
        raise CannotWrite(f"{path}: cannot be locked: {error.strerror}.") from None
    size = os.fstat(fd).st_size
    head = os.pread(fd, len(MAGIC), 0)
    if not MAGIC.startswith(head):
        raise UsageError(
            f"{path}:1: is not a journal of callmark. Move it away, or choose another --out."
        )
    if size and mode == "new":
        raise UsageError(
            f"{path}: an earlier run was not finished."
            " Go on with it (--resume) or throw its results away (--restart)."
        )
    return size > 0


def _is_still(path: Path, fd: int) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    ours = os.fstat(fd)
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


class _Found:
    """What one reading of a journal finds: its whole lines, and which ones are garbled."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.garbled: list[int] = []
        self.head: dict[str, Json] | None = None
        self.head_line = 1
        self.segment: int | None = None

    def records(self, stream: io.BufferedReader) -> Iterator[tuple[Line, _Record]]:
        """All whole lines. A last line without its end, or that is not what
        was written, was torn: it is left out."""
        broken: Line | None = None
        for line in lines_of(stream, str(self._path)):
            if broken is not None:
                self.garbled.append(broken.number)
                broken = None
            if not line.data.endswith(b"\n"):
                return
            record = _record_in(line)
            if record is None:
                broken = line
            else:
                yield line, record


def _record_in(line: Line) -> _Record | None:
    """None: this is not what was written there."""
    if not line.data.startswith(MAGIC) and unstamp(line.data) is None:
        return None
    try:
        str(line.data, "utf-8")  # the decoder does not look into what it skips
        return _decode(line.data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _of_another_kind(path: Path, number: int) -> str:
    return (
        f"{path}:{number}: not a line of a journal that this version writes. --restart starts over."
    )


def _bare(line: bytes) -> bytes:
    """A line of the journal as it was handed over; it has been read before, and was whole."""
    found = unstamp(line)
    if found is None:
        raise WrongTrials("was changed by somebody else while it was read")
    return found


class _Places:
    """Where the line of each (index, trial) stands; 14 bytes a line."""

    def __init__(self) -> None:
        self._blocks: dict[int, bytearray] = {}

    def add(self, index: int, trial: int, offset: int) -> None:
        block, index = divmod(index, _BLOCK)
        places = self._blocks.get(block)
        if places is None:
            places = self._blocks[block] = bytearray()
        places += _PLACE.pack(index, trial, offset)

    def in_order(self, stream: io.BufferedReader) -> Iterator[int]:
        """The offsets by (index, trial); the latest where there are several. Once."""
        for block in sorted(self._blocks):
            yield from _latest(self._blocks.pop(block), stream)


def _latest(places: bytearray, stream: io.BufferedReader) -> Iterator[int]:
    """The offsets of one block, sorted by (index, trial); of two lines of one trial the later."""
    before = None
    rows = (places[at : at + _PLACE.size] for at in range(0, len(places), _PLACE.size))
    for row in sorted(rows):
        index, trial, offset = _PLACE.unpack(row)
        if before is not None and before[:2] != (index, trial):
            yield before[2]
        elif before is not None and _sample_at(stream, before[2]) != _sample_at(stream, offset):
            raise WrongTrials("two samples claim one place in the dataset")
        before = index, trial, offset
    if before is not None:
        yield before[2]


def _sample_at(stream: io.BufferedReader, offset: int) -> str | None:
    stream.seek(offset)
    return _decode(stream.readline()).sample_id
