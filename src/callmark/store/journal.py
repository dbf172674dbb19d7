"""The journal of a run, `OUT.journal`: every finished trial is in it before the next one counts.

The first line holds the fingerprint set of the run; a resumed run that was allowed to differ
adds its own set, and the latest set counts. All other lines are results, in the order in which
they were finished. Killed at any moment, at most the last line is torn."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import struct
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, Self

import msgspec

from callmark.core.jsontext import Json, NotJson, canonical_json, parse_json
from callmark.core.results import Result
from callmark.errors import BadInput, CannotWrite, OutputFailed, UsageError
from callmark.store.done_trials import DoneTrials
from callmark.store.files import atomic_writer, make_folder, output_failed, sync_folder
from callmark.store.journal_head import MAGIC, VERSION, compare_heads, head_line
from callmark.store.jsonl import Line, lines_of
from callmark.store.key_index import KeyIndex, trial_key
from callmark.store.lines import decode_result

Mode = Literal["new", "resume", "restart"]

_SYNC_SECONDS = 1.0
_Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
_LATEST = (1 << 40) - 1  # later than any line of an earlier run
_BLOCK = 1 << 12  # samples whose places are sorted at once
_PLACE = struct.Struct(">HIQ")  # index in its block, trial, offset: the order of the results file


class WrongTrials(BadInput):
    """The journal does not hold the trials of this run; which one is wrong is still to be found."""


class _Record(msgspec.Struct):
    """What is needed of any line: a fingerprint set, or the name of a result."""

    journal: int | None = None
    fingerprints: Json = None
    index: _Number = 0
    sample_id: str | None = None
    trial: _Number = 0
    status: Literal["ok", "error"] = "ok"


_decode = msgspec.json.Decoder(_Record).decode


def journal_path(out: Path) -> Path:
    return out.with_name(out.name + ".journal")


def not_of_this_run(path: Path | str, what: str, line: int | None) -> BadInput:
    place = path if line is None else f"{path}:{line}"
    return BadInput(f"{place}: {what}. --restart begins anew.")


def open_journal(
    out: Path,
    fingerprints: Mapping[str, Json],
    *,
    mode: Mode,
    may_differ: Collection[str] = (),
    may_grow: Collection[str] = (),
) -> Journal:
    """Locks the journal of `out` and makes it ready for `append`. With `resume`, the values below
    `may_differ` are free and those below `may_grow` may be larger than before (None: no bound)."""
    path = journal_path(out)
    existed, fd = _locked(path, mode)
    try:
        journal = Journal(path, fd)
        if mode == "restart" or not existed:
            journal.start(fingerprints)
        else:
            journal.recover(fingerprints, may_differ, may_grow)
    except BaseException:
        os.close(fd)
        raise
    return journal


class Journal:
    """Made by `open_journal`. A context manager: leaving it keeps the file and ends the lock."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd: int | None = fd
        self._size = 0
        self._finished = 0
        self._synced = 0.0
        self._done = KeyIndex()  # of each trial twice its index, plus one if it is finished

    def done(self) -> DoneTrials:
        """What earlier runs finished, as this run found it when it opened the journal."""
        return DoneTrials(self._done)

    def results(self) -> Iterator[tuple[int, Result]]:
        """The results that `done` names, in the order in which they were finished, each with its
        line."""
        done = self.done()
        with self.path.open("rb") as stream:
            for line, record in _records(stream, self.path):
                if record.sample_id is None:
                    continue
                found = done.find(record.sample_id, record.trial)
                if found is None or found.line != line.number:
                    continue
                try:
                    result = decode_result(line.data)
                except NotJson:
                    raise BadInput(_of_another_kind(self.path, line.number)) from None
                yield line.number, result

    def note_done(self, result: Result) -> None:
        """A trial that was appended by this run need not be run once more."""
        key = trial_key(result.sample_id, result.trial)
        self._done.add(key, _LATEST, 2 * result.index + 1)

    def read(self, offset: int, size: int) -> bytes:
        """What this run appended there."""
        return os.pread(self._open_fd(), size, offset)

    def append(self, lines: bytes, count: int = 1) -> int:
        """Hands encoded results to the system at once, and to the disk once a second. Where they
        begin."""
        offset = self._size
        self._write(lines)
        self._finished += count
        now = time.monotonic()
        if now - self._synced >= _SYNC_SECONDS:
            self._sync()
            self._synced = now
        return offset

    def not_ours(self, what: str, line: int | None = None) -> BadInput:
        """It holds something that this run could not have written."""
        return not_of_this_run(self.path, what, line)

    def line_not_asked(self, asked: KeyIndex) -> int | None:
        """The first line of a trial that is not asked for, or whose sample stands elsewhere in the
        dataset. `asked`: every trial of the run with the index of its sample."""
        with self.path.open("rb") as stream:
            for line, record in _records(stream, self.path):
                if record.sample_id is None:
                    continue
                key = trial_key(record.sample_id, record.trial)
                found = asked.find(key)
                if found is None or found[1] != record.index:
                    return line.number
        return None

    def finish(self, out: Path, *, trials: int | None = None, keep: bool = False) -> str:
        """Writes `out` in the order of the dataset, at once and whole; then the journal goes,
        unless it is to be kept for another `--resume`. `trials`: so many lines it must be.
        Returns the SHA-256 of what was written."""
        self._sync()
        advice = (
            f"Every finished trial is in {self.path}. "
            "Free some space, then run the same command with --resume."
        )
        with atomic_writer(out, what_next=advice) as stream, self.path.open("rb") as source:
            lines = 0
            written = hashlib.sha256()
            for line in _lines_in_order(source, self.path):
                stream.write(line)
                written.update(line)
                lines += 1
            if trials is not None and lines != trials:
                raise WrongTrials(f"holds {lines} trials, but this run has {trials}")
        if not keep:
            self.path.unlink(missing_ok=True)
            sync_folder(self.path.parent)
        return written.hexdigest()

    def remove_if_empty(self) -> None:
        """A run that could not begin leaves nothing that would have to be resumed."""
        if self._finished == 0:
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
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

    def start(self, fingerprints: Mapping[str, Json]) -> None:
        os.ftruncate(self._open_fd(), 0)
        self._write(head_line(fingerprints))
        self._sync()
        sync_folder(self.path.parent)

    def recover(
        self,
        fingerprints: Mapping[str, Json],
        may_differ: Collection[str],
        may_grow: Collection[str],
    ) -> None:
        """Cuts off a torn last line, learns what is done, and refuses another run's journal."""
        before: Json = None
        head = 1
        with self.path.open("rb") as stream:
            for line, record in _records(stream, self.path):
                self._size = line.offset + len(line.data)
                if record.sample_id is not None:
                    key = trial_key(record.sample_id, record.trial)
                    mark = 2 * record.index + (record.status == "ok")
                    self._done.add(key, line.number, mark)
                    self._finished += 1
                elif record.journal == VERSION and isinstance(record.fingerprints, dict):
                    before, head = record.fingerprints, line.number
                else:
                    raise BadInput(_of_another_kind(self.path, line.number))
        if before is None:
            self.start(fingerprints)
            return
        now = parse_json(canonical_json(dict(fingerprints)))
        compare_heads(f"{self.path}:{head}", before, now, may_differ, may_grow)
        os.ftruncate(self._open_fd(), self._size)
        if now != before:
            self._write(head_line(fingerprints))
            self._sync()

    def _write(self, line: bytes) -> None:
        fd = self._open_fd()
        view = memoryview(line)
        try:
            while view:
                view = view[os.write(fd, view) :]
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


def _locked(path: Path, mode: Mode) -> tuple[bool, int]:
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


def _records(stream: io.BufferedReader, path: Path) -> Iterator[tuple[Line, _Record]]:
    """All whole lines. A last line without its end or that is no JSON was torn: it is left out."""
    broken: Line | None = None
    for line in lines_of(stream, str(path)):
        if broken is not None:
            raise BadInput(_of_another_kind(path, broken.number))
        try:
            if not line.data.endswith(b"\n"):
                return
            str(line.data, "utf-8")  # the decoder does not look into what it skips
            yield line, _decode(line.data)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            broken = line


def _of_another_kind(path: Path, number: int) -> str:
    return (
        f"{path}:{number}: not a line of a journal that this version writes. --restart begins anew."
    )


def _lines_in_order(stream: io.BufferedReader, path: Path) -> Iterator[bytes]:
    """The latest line of each (index, trial), sorted. Runners that answer one sample after the
    other leave them so: then no place has to be kept."""
    keys = ((record.index, record.trial) for _, record in _trial_lines(stream, path))
    in_order = all(left < right for left, right in pairwise(keys))
    stream.seek(0)
    if in_order:
        for line, _ in _trial_lines(stream, path):
            yield line.data
        return
    for offset in _offsets_in_order(stream, path):
        stream.seek(offset)
        yield stream.readline()


def _trial_lines(stream: io.BufferedReader, path: Path) -> Iterator[tuple[Line, _Record]]:
    return (found for found in _records(stream, path) if found[1].sample_id is not None)


def _offsets_in_order(stream: io.BufferedReader, path: Path) -> Iterator[int]:
    """Where the latest line of each (index, trial) stands, sorted; memory: 14 bytes a line."""
    blocks: dict[int, bytearray] = {}
    for line, record in _trial_lines(stream, path):
        block, index = divmod(record.index, _BLOCK)
        place = _PLACE.pack(index, record.trial, line.offset)
        blocks.setdefault(block, bytearray()).extend(place)
    for block in sorted(blocks):
        yield from _latest(blocks.pop(block), stream)


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
