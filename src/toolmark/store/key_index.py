"""Which line holds which key, for a million lines in 32 MB: the keys' text is not kept."""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

_ROW = struct.Struct(">16sQQ")  # digest of the key, line number, value: sorts by key, then line
_WIDTH = _ROW.size
_DIGEST = 16
_BUCKETS = 256  # sorting and comparing needs memory for one bucket at a time


class KeyIndex:
    """Keys go in with their line and a number (a byte offset, a flag); the latest line wins."""

    def __init__(self) -> None:
        self._buckets = [bytearray() for _ in range(_BUCKETS)]
        self._sorted = bytearray(_BUCKETS)

    def add(self, key: str, line: int, value: int) -> None:
        digest = _digest(key)
        self._buckets[digest[0]] += _ROW.pack(digest, line, value)
        self._sorted[digest[0]] = False

    def find(self, key: str) -> tuple[int, int] | None:
        """The latest line with this key, and the number that it came with."""
        digest = _digest(key)
        rows = self._rows(digest[0])
        after = bisect_right(
            range(len(rows) // _WIDTH),
            digest,
            key=lambda at: bytes(rows[at * _WIDTH : at * _WIDTH + _DIGEST]),
        )
        if after == 0:
            return None
        found, line, value = _ROW.unpack_from(rows, (after - 1) * _WIDTH)
        return (line, value) if found == digest else None

    def latest(self) -> Iterator[int]:
        """The number of each key's latest line, in no meaningful order."""
        for bucket in range(_BUCKETS):
            before = None
            for row in _ROW.iter_unpack(self._rows(bucket)):
                if before is not None and before[0] != row[0]:
                    yield before[2]
                before = row
            if before is not None:
                yield before[2]

    def clashes(self) -> list[tuple[int, int, int]]:
        """(line, line before with the same key, number of the line), sorted by line."""
        return sorted(
            (later[1], earlier[1], later[2])
            for bucket in range(_BUCKETS)
            for earlier, later in pairwise(_ROW.iter_unpack(self._rows(bucket)))
            if earlier[0] == later[0]
        )

    def _rows(self, bucket: int) -> bytearray:
        rows = self._buckets[bucket]
        if not self._sorted[bucket]:
            ordered = sorted(rows[at : at + _WIDTH] for at in range(0, len(rows), _WIDTH))
            rows[:] = b"".join(ordered)
            self._sorted[bucket] = True
        return rows


def trial_key(sample_id: str, trial: int) -> str:
    return f"{trial}:{sample_id}"


def _digest(key: str) -> bytes:
    data = key.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()
