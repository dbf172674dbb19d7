"""The trace of a server: one results line per session, beside those of other servers."""

from __future__ import annotations

import fcntl
import os
from collections import Counter
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


class TraceFile:
    """What is in the file already stays. Servers that run side by side, as an agent starts one per
    sample, may share one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._locked():
            check_writable(path)
        self._mine: dict[int, int] = {}  # id of a session -> the trial that it was given
        self._written: set[tuple[str, int]] = set()

    def write(self, sessions: Iterable[Session]) -> None:
        """Write all of them, in the place of what this server had written of them before."""
        with self._locked():
            others = [line for line, place in self._lines() if place not in self._written]
            taken = Counter(place[0] for _, place in self._lines() if place not in self._written)
            mine = [session.as_line(self._trial(session, taken)) for session in sessions]
            self._written = {(line["sample_id"], line["trial"]) for line in mine}
            with atomic_writer(self.path) as stream:
                stream.writelines(others)
                stream.writelines(msgspec.json.encode(line) + b"\n" for line in mine)

    def _trial(self, session: Session, taken: Counter[str]) -> int:
        """The trial that the client named, else the next one of its sample."""
        if session.trial is not None:
            return session.trial
        if id(session) not in self._mine:
            self._mine[id(session)] = taken[session.sample_id or NO_SAMPLE]
        return self._mine[id(session)]

    def _lines(self) -> Iterator[tuple[bytes, tuple[str, int]]]:
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
