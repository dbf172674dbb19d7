"""SHA-256 over sorted lines that need not fit into memory: sorted in parts, then merged."""

from __future__ import annotations

import hashlib
import heapq
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import IO, Self

from callmark.errors import OutputFailed

PART_BYTES = 16 * 1024 * 1024


class SortedHash:
    """Takes lines in any order. Parts that are too large wait in temporary files."""

    def __init__(self, part_bytes: int = PART_BYTES) -> None:
        self._part_bytes = part_bytes
        self._lines: list[bytes] = []
        self._size = 0
        self._parts: list[IO[bytes]] = []
        self._files = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def add(self, line: bytes) -> None:
        """`line` ends with a line feed and holds no other."""
        self._lines.append(line)
        self._size += len(line)
        if self._size >= self._part_bytes:
            self._spill()

    def hexdigest(self) -> str:
        """Of the lines in order, with a line feed between them and none at the end."""
        self._lines.sort()
        parts: list[Iterable[bytes]] = [*map(_from_start, self._parts), self._lines]
        total = hashlib.sha256()
        ending = b""
        for line in heapq.merge(*parts):
            total.update(ending)
            total.update(line[:-1])
            ending = b"\n"
        return total.hexdigest()

    def _spill(self) -> None:
        self._lines.sort()
        try:
            part: IO[bytes] = tempfile.TemporaryFile(prefix="callmark-")  # noqa: SIM115 - closed in __exit__
            self._files.enter_context(part)
            part.writelines(self._lines)
            part.flush()
        except OSError as error:
            raise OutputFailed(
                f"{tempfile.gettempdir()}: a part of the fixtures could not be sorted there:"
                f" {error.strerror}. Free some space, or let TMPDIR point to another folder."
            ) from None
        self._parts.append(part)
        self._lines.clear()
        self._size = 0


def _from_start(part: IO[bytes]) -> Iterator[bytes]:
    part.seek(0)
    return iter(part)
