"""The trace of a server: one results line per session, beside those of other servers."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from callmark.errors import BadInput
from callmark.serving.sessions import NO_SAMPLE, Session
from callmark.store.files import atomic_writer, check_writable, make_folder, output_failed
from callmark.store.jsonl import is_blank, lines_of, open_input
from callmark.store.recorded import recorded_of

_NEXT = "Free some space or choose another place."
Place = tuple[str, int]  # sample and trial


class TraceFile:
    """What is in the file already stays, whoever wrote it. Servers that run side by side, as an
    agent starts one per sample, may share one file: no two lines of it are about one trial."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._locked():
            check_writable(path)
        self._mine: dict[int, Place] = {}  # by the id of a session

    def write(self, sessions: Iterable[Session]) -> None:
        """Write all of them, in the place of what this server had written of them before."""
        with self._locked():
            mine = set(self._mine.values())
            others = [(line, place) for line, place in self._lines() if place not in mine]
            taken = mine.union(place for _, place in others)
            placed = [(session, self._place(session, taken)) for session in sessions]
            with atomic_writer(self.path) as stream:
                stream.writelines(line for line, _ in others)
                for session, (_, trial) in placed:
                    stream.write(msgspec.json.encode(session.as_line(trial)) + b"\n")

    def _place(self, session: Session, taken: set[Place]) -> Place:
        """The trial that the client named, or the first one; if the file has that of another server
        or an earlier one, the next that is free. It stays what it was when it was first written."""
        found = self._mine.get(id(session))
        if found is None:
            sample_id, trial = session.sample_id or NO_SAMPLE, session.trial or 0
            while (sample_id, trial) in taken:
                trial += 1
            found = self._mine[id(session)] = (sample_id, trial)
            taken.add(found)
        return found

    def _lines(self) -> Iterator[tuple[bytes, Place]]:
        if not self.path.exists():
            return
        with open_input(self.path) as stream:
            for line in lines_of(stream, str(self.path)):
                if not is_blank(line.json):
                    try:
                        found = recorded_of(line)
                    except BadInput as error:
                        raise BadInput(f"{self.path}:{line.number}: {error}") from None
                    end = b"" if line.data.endswith(b"\n") else b"\n"
                    yield line.data + end, (found.sample_id, found.trial)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_name(f".{self.path.name}.lock")
        try:
            make_folder(lock.parent)
            fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise output_failed(self.path, error, _NEXT) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
