"""Which line holds which key, for a million lines in 27 MB: the keys' text is not kept."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, Self

# Bytes of a row: digest of the key, line number, value. Two keys never have the same digest.
_DIGEST, _LINE, _VALUE = 16, 5, 6
_WIDTH = _DIGEST + _LINE + _VALUE
# Sorting and comparing needs memory for one bucket at a time, and small buckets are given back
# piece by piece: what is needed next fits into their place.
_BUCKETS = 256


class _Row(NamedTuple):
    digest: bytes
    line: int
    value: int


class KeyIndex:
    """Keys go in with their line and a number (a byte offset, a flag); the latest line wins."""

    def __init__(self) -> None:
        self._buckets = [bytearray() for _ in range(_BUCKETS)]
        # Sorted when first asked: whoever only adds never pays for it.
        self._sorted = bytearray(_BUCKETS)

    def add(self, key: str, line: int, value: int) -> None:
        digest = _digest(key)
        # Big-endian: rows sort by key, then by line.
        row = digest + line.to_bytes(_LINE, "big") + value.to_bytes(_VALUE, "big")
        self._buckets[digest[0]] += row
        self._sorted[digest[0]] = False

    def packed(self) -> bytes:
        return b"".join(self._buckets)

    @classmethod
    def unpacked(cls, packed: bytes) -> Self:
        index = cls()
        for at in range(0, len(packed), _WIDTH):
            index._buckets[packed[at]] += packed[at : at + _WIDTH]
        return index

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
        found = _row_at(rows, (after - 1) * _WIDTH)
        return (found.line, found.value) if found.digest == digest else None

    def latest(self) -> Iterator[int]:
        """The number of each key's latest line, in no meaningful order."""
        for bucket in range(_BUCKETS):
            before = None
            for row in self._unpacked(bucket):
                if before is not None and before.digest != row.digest:
                    yield before.value
                before = row
            if before is not None:
                yield before.value

    def clashes(self) -> list[tuple[int, int, int]]:
        """(line, line before with the same key, number of the line), sorted by line."""
        return sorted(
            (later.line, earlier.line, later.value)
            for bucket in range(_BUCKETS)
            for earlier, later in pairwise(self._unpacked(bucket))
            if earlier.digest == later.digest
        )

    def _unpacked(self, bucket: int) -> Iterator[_Row]:
        rows = self._rows(bucket)
        return (_row_at(rows, at) for at in range(0, len(rows), _WIDTH))

    def _rows(self, bucket: int) -> bytearray:
        rows = self._buckets[bucket]
        if not self._sorted[bucket]:
            ordered = sorted(rows[at : at + _WIDTH] for at in range(0, len(rows), _WIDTH))
            rows[:] = b"".join(ordered)
            self._sorted[bucket] = True
        return rows


def trial_key(sample_id: str, trial: int) -> str:
    return f"{trial}:{sample_id}"


def _row_at(rows: bytearray, at: int) -> _Row:
    line, end = at + _DIGEST + _LINE, at + _WIDTH
    return _Row(
        bytes(rows[at : at + _DIGEST]),
        int.from_bytes(rows[at + _DIGEST : line], "big"),
        int.from_bytes(rows[line:end], "big"),
    )


def _digest(key: str) -> bytes:
    data = key.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()
