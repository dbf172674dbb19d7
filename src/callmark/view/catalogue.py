"""Which runs a folder holds. Whoever asks names a run by its number, never by a path."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from callmark.core.jsontext import NotJson
from callmark.core.results import Fingerprints
from callmark.errors import BadInput
from callmark.store.journal_head import MAGIC
from callmark.store.lines import decode_result

RESULTS = "results.jsonl"
REPORT = "report.json"
JOURNAL = ".journal"
MAX_DEPTH = 8
MAX_ENTRIES = 50_000
MAX_RUNS = 1000
FIRST_LINE_BYTES = 8 << 20


class Stamp(msgspec.Struct, frozen=True):
    """A file that has the same is taken for the same."""

    inode: int
    size: int
    mtime_ns: int


def stamp_of(path: Path) -> Stamp | None:
    """None: it is not there, or cannot be looked at."""
    try:
        status = path.stat()
    except OSError:
        return None
    return Stamp(status.st_ino, status.st_size, status.st_mtime_ns)


def report_paths(results: Path) -> tuple[Path, ...]:
    """Where the report of a results file may stand: under its own name, or as report.json."""
    return results.with_suffix(".json"), results.with_name(REPORT)


class FoundRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `path` is its results file, or its journal while it is not finished; `first` is
    what its first line depends on, None in a journal and in a file without a line."""

    id: str
    name: str
    path: Path
    finished: bool
    stamp: Stamp
    first: Fingerprints | None = None


class Folder(msgspec.Struct, frozen=True):
    """`left_out`: what a person should know about runs that are not here."""

    runs: tuple[FoundRun, ...]
    left_out: str = ""


class NoSuchRun(LookupError):
    """Nobody has a run of this name, or it is no longer where it was."""


class RunCatalogue:
    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._lock = threading.Lock()
        self._known: dict[str, FoundRun] = {}
        self._peeks: dict[Path, tuple[Stamp, FoundRun | None]] = {}

    def scan(self) -> Folder:
        """All runs, the latest first. Files that have not changed are not opened again."""
        with self._lock:
            return self._scan()

    def _scan(self) -> Folder:
        walk = _Walk(self.root)
        peeks: dict[Path, tuple[Stamp, FoundRun | None]] = {}
        for path in walk.files():
            stamp = stamp_of(path)
            if stamp is None or not self._is_inside(path):
                continue
            before = self._peeks.get(path)
            same = before is not None and before[0] == stamp
            peeks[path] = before if before and same else (stamp, self._peek(path, stamp))
        self._peeks = peeks
        runs = sorted(
            (found for _, found in peeks.values() if found is not None),
            key=lambda run: (-run.stamp.mtime_ns, run.name),
        )
        self._known |= {run.id: run for run in runs}
        left_out = walk.left_out
        if len(runs) > MAX_RUNS:
            left_out = f"{len(runs)} runs were found; the latest {MAX_RUNS} are listed."
        return Folder(tuple(runs[:MAX_RUNS]), left_out)

    def find(self, number: str) -> FoundRun:
        """A run that a scan has found, as it is now."""
        known = self._known.get(number)
        stamp = None if known is None else stamp_of(known.path)
        if known is None or stamp is None or not self._is_inside(known.path):
            raise NoSuchRun
        return msgspec.structs.replace(known, stamp=stamp)

    def successor(self, number: str) -> FoundRun:
        """The results that a journal has become."""
        known = self._known.get(number)
        if known is None or known.finished:
            raise NoSuchRun
        results = known.path.with_name(known.path.name.removesuffix(JOURNAL))
        self.scan()
        return self.find(self._number(results))

    def _is_inside(self, path: Path) -> bool:
        """Wherever links lead: the file itself is below the folder."""
        try:
            return path.resolve(strict=True).is_relative_to(self.root)
        except (OSError, RuntimeError):
            return False

    def _peek(self, path: Path, stamp: Stamp) -> FoundRun | None:
        name = self._name(path)
        number = self._number(path)
        try:
            with path.open("rb") as stream:
                line = stream.readline(FIRST_LINE_BYTES)
        except OSError:
            return None
        if path.name.endswith(JOURNAL):
            if not line.startswith(MAGIC):
                return None
            return FoundRun(id=number, name=name, path=path, finished=False, stamp=stamp)
        first = _first_fingerprints(line)
        if first is None and (path.name != RESULTS or line.strip()):
            return None
        return FoundRun(id=number, name=name, path=path, finished=True, stamp=stamp, first=first)

    def _name(self, path: Path) -> str:
        """A folder stands for the results in it."""
        name = str(path.relative_to(self.root)).removesuffix(JOURNAL)
        return name.removesuffix(f"/{RESULTS}")

    def _number(self, path: Path) -> str:
        name = os.fsencode(path.relative_to(self.root))
        return hashlib.sha256(name).hexdigest()[:16]


def _first_fingerprints(line: bytes) -> Fingerprints | None:
    try:
        return decode_result(line.removeprefix(b"\xef\xbb\xbf")).fingerprints
    except (NotJson, BadInput):
        return None


class _Walk:
    """The files that may be runs, with bounds: a home folder must not keep anybody waiting."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._entries = 0
        self.left_out = ""

    def files(self) -> Iterator[Path]:
        return self._below(self._root, 0)

    def _below(self, folder: Path, depth: int) -> Iterator[Path]:
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            return
        for entry in found:
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                self.left_out = f"Only the first {MAX_ENTRIES} files and folders were looked at."
                return
            if entry.is_dir(follow_symlinks=False):
                if entry.name.startswith("."):
                    continue
                if depth < MAX_DEPTH:
                    yield from self._below(Path(entry.path), depth + 1)
                else:
                    self.left_out = f"Folders more than {MAX_DEPTH} deep were not looked at."
            elif entry.name.endswith((".jsonl", JOURNAL)) and entry.is_file():
                yield Path(entry.path)
