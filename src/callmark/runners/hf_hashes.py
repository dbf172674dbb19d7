"""Fingerprints of large files, remembered between runs: gigabytes are read once."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from callmark.core.jsontext import digest
from callmark.errors import OutputFailed, UsageError
from callmark.store.files import atomic_writer

# Smaller files are read again faster than they are looked up.
_WORTH_REMEMBERING = 1 << 20
_KEPT = 1_000
# A file that was changed a moment ago could be changed again without a new time stamp.
_SETTLED_NS = 2_000_000_000

_Stamp = tuple[int, int, int, int]  # inode, size, mtime_ns, ctime_ns


class _Remembered(msgspec.Struct, frozen=True):
    stamp: _Stamp
    sha256: str


def fingerprint(files: Iterable[tuple[str, Path]]) -> str:
    """One hash over the bytes of files, each under the name that it has in its role."""
    return HashCache.of_this_user().fingerprint(files)


class HashCache:
    """Hashes by path; each holds as long as the file's inode, size and times stay the same."""

    def __init__(self, path: Path, *, settled_ns: int = _SETTLED_NS) -> None:
        self._path = path
        self._settled_ns = settled_ns

    @classmethod
    def of_this_user(cls) -> HashCache:
        given = os.environ.get("XDG_CACHE_HOME")
        root = Path(given) if given else Path("~/.cache").expanduser()
        return cls(root / "callmark" / "file-hashes.json")

    def fingerprint(self, files: Iterable[tuple[str, Path]]) -> str:
        known = self._read()
        before = dict(known)
        hashes = {role: self._sha256(path, known) for role, path in files}
        if known != before:
            self._write(known)
        return digest(hashes)

    def _sha256(self, path: Path, known: dict[str, _Remembered]) -> str:
        key = str(path.resolve())
        try:
            stamp = _stamp_of(path)
            found = known.get(key)
            if found is not None and found.stamp == stamp:
                return found.sha256
            made = file_sha256(path)
            unchanged = _stamp_of(path) == stamp
        except OSError as error:
            raise UsageError(f"--model: {path}: cannot be read: {error.strerror}") from None
        settled = time.time_ns() - stamp[3] > self._settled_ns
        if unchanged and settled and stamp[1] >= _WORTH_REMEMBERING:
            known[key] = _Remembered(stamp, made)
        return made

    def _read(self) -> dict[str, _Remembered]:
        """What cannot be read is no more than forgotten."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, _Remembered])
        except (OSError, msgspec.MsgspecError, UnicodeError):
            return {}

    def _write(self, known: dict[str, _Remembered]) -> None:
        newest = dict(list(known.items())[-_KEPT:])
        with suppress(OutputFailed, OSError), atomic_writer(self._path) as stream:
            stream.write(msgspec.json.encode(newest))


def _stamp_of(path: Path) -> _Stamp:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
