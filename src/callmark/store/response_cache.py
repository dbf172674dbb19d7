"""A folder of replies by key, for any number of processes at once. Each of them appends to a
segment file that is its own as long as it holds its lock; what a killed one left torn is passed
over. Nothing is ever changed or moved, so nobody who reads has to wait."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

import msgspec

from callmark.errors import BadInput, CannotWrite
from callmark.records.jsontext import Json, sha256_hex
from callmark.stats.columns import KeyIndex
from callmark.store.files import atomic_writer, make_folder

MARK = "callmark-cache.json"
FORMAT = 2
SEGMENTS = "answers-*.jsonl"
_TEMPORARY = ".callmark-"  # of the mark, while another process writes it
# A cache that a thousand shards filled has a thousand segments; processes may open fewer files.
_OPEN_AT_ONCE = 64

# A line is {"key":"…","sha256":"…","reply":…}, its fields at fixed places.
_HEAD = b'{"key":"%s","sha256":"%s","reply":'
_START, _MIDDLE, _END = b'{"key":"', b'","sha256":"', b'","reply":'
_KEY = slice(len(_START), len(_START) + 64)
_SHA = slice(_KEY.stop + len(_MIDDLE), _KEY.stop + len(_MIDDLE) + 64)
_REPLY = slice(_SHA.stop + len(_END), -2)


class ResponseCache:
    """What was there when it was opened is found; what is added is found by the next one, so that
    what a run finds does not depend on which of its requests came first. `trouble`: why nothing
    more is added."""

    def __init__(self, folder: Path) -> None:
        """Makes the folder if there is none; BadInput or CannotWrite if it cannot be used."""
        self._folder = folder
        _claim(folder)
        self._index = KeyIndex()
        self._segments = sorted(folder.glob(SEGMENTS))
        self._readers: dict[int, BinaryIO] = {}
        self._writer: int | None = None
        self._begun_at = 0
        self.trouble: str | None = None
        self.entries = 0
        self.stored = 0
        # Only keys and offsets are kept: the answers of a million trials stay on disk.
        for number, path in enumerate(self._segments):
            for offset, key in _keys_in(path):
                self._index.add(key, number, offset)
                self.entries += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()
        if self._writer is not None:
            os.close(self._writer)
            self._writer = None

    def get(self, key: str) -> bytes | None:
        """The reply under this key, whole and unchanged, or None."""
        found = self._index.find(key)
        if found is None:
            return None
        number, offset = found
        try:
            reader = self._reader(number)
            reader.seek(offset)
            line = reader.readline()
        except OSError:
            return None
        return _reply_in(line, key)

    def put(self, key: str, reply: bytes) -> None:
        """A place that fails is no reason to lose a run: it is said, and nothing more is added."""
        if self.trouble is not None:
            return
        head = _HEAD % (key.encode(), sha256_hex(reply).encode())
        line = b"%s%s}\n" % (head, reply)
        try:
            if self._writer is None:
                self._writer = self._own_segment()
                self._begun_at = os.fstat(self._writer).st_size
            # One write for one line: whoever reads at the same time sees all of it or a torn end.
            if os.write(self._writer, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self.trouble = error.strerror or str(error)
            return
        self.stored += 1

    def withdraw(self) -> None:
        """Take back all that was added through this object. Whoever has seen it finds it torn."""
        if self._writer is not None:
            os.ftruncate(self._writer, self._begun_at)
        self.stored = 0

    def _reader(self, number: int) -> BinaryIO:
        if number not in self._readers:
            if len(self._readers) >= _OPEN_AT_ONCE:
                for reader in self._readers.values():
                    reader.close()
                self._readers.clear()
            self._readers[number] = self._segments[number].open("rb")
        return self._readers[number]

    def _own_segment(self) -> int:
        """One that nobody writes to, so that there are no more than ever were written at once."""
        for path in self._segments:
            with suppress(OSError):  # held by another process; or there are no locks here
                fd = os.open(path, os.O_RDWR | os.O_APPEND)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _end_torn_line(fd)
                except OSError:
                    os.close(fd)
                    raise
                return fd
        while True:
            path = self._folder / SEGMENTS.replace("*", secrets.token_hex(6))
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o666)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # another process was here first, and writes to it
                os.close(fd)
                continue
            except OSError:  # there are no locks here: nobody takes over what is not theirs
                pass
            return fd


def _claim(folder: Path) -> None:
    """Is it a cache, or can it become one?"""
    try:
        make_folder(folder)
        mark = folder / MARK
        if not mark.exists():
            foreign = sorted(
                path.name for path in folder.iterdir() if not path.name.startswith(_TEMPORARY)
            )
            if foreign and not mark.exists():  # not made in the meantime either
                if any(folder.glob(SEGMENTS)):
                    raise BadInput(
                        f"{folder}: is a cache that an older version of this program wrote under"
                        " another name, and cannot be used any more: name another folder"
                    )
                raise BadInput(
                    f"{folder}: is not a cache: it holds {foreign[0]!r}; name an empty folder, or"
                    " one that does not exist yet"
                )
            with atomic_writer(mark) as stream:
                stream.write(msgspec.json.encode({"callmark_cache": FORMAT}) + b"\n")
        _check_format(mark)
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise CannotWrite(
            f"{folder}: cannot be used as a cache: {error.strerror}. Choose another place, or"
            " change its permissions."
        ) from None


def _check_format(mark: Path) -> None:
    try:
        found: Json = msgspec.json.decode(mark.read_bytes())
    except (msgspec.MsgspecError, UnicodeError):
        found = None
    if found != {"callmark_cache": FORMAT}:
        raise BadInput(
            f"{mark}: is not the mark of a cache of this version of callmark: name another folder"
        )


def _keys_in(path: Path) -> Iterator[tuple[int, str]]:
    """Where whole lines of the right form begin, and their keys."""
    offset = 0
    try:
        with path.open("rb") as lines:
            for line in lines:
                if line.startswith(_START) and line[_KEY.stop : _SHA.start] == _MIDDLE:
                    yield offset, line[_KEY].decode("ascii", "replace")
                offset += len(line)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None


def _reply_in(line: bytes, key: str) -> bytes | None:
    reply = line[_REPLY]
    # A torn or altered line is no answer: asking again costs less than scoring what nobody said.
    whole = line.endswith(b"}\n") and line[_KEY] == key.encode()
    return reply if whole and line[_SHA] == sha256_hex(reply).encode() else None


def _end_torn_line(fd: int) -> None:
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) != b"\n":
        os.write(fd, b"\n")
