"""What is known of which key, for a million keys in 27 MB: their text is not kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, Self

# Bytes of a row: digest of the key, line number, value. Two keys never have the same digest.
_DIGEST, _LINE, _VALUE = 16, 5, 6
_NARROW_VALUE = 4
# Sorting and comparing needs memory for one bucket at a time, and small buckets are given back
# piece by piece: what is needed next fits into their place.
_BUCKET_BITS = 10


class KeyEntry(NamedTuple):
    line: int
    value: int


class _Row(NamedTuple):
    digest: bytes
    line: int
    value: int


class KeyIndex:
    """Keys go in with their line and a number (a byte offset, a flag). Of what was added under one
    key the latest line wins, of what was set by default the first. `numbers_only`: without lines,
    and with numbers below 2**32, a key takes 20 bytes instead of 27."""

    def __init__(self, *, numbers_only: bool = False) -> None:
        self._line, self._value = (0, _NARROW_VALUE) if numbers_only else (_LINE, _VALUE)
        self._width = _DIGEST + self._line + self._value
        self._buckets = [bytearray() for _ in range(1 << _BUCKET_BITS)]
        self._sorted = bytearray(1 << _BUCKET_BITS)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, key: str, line: int, value: int) -> None:
        digest = _digest(key)
        bucket = _bucket_of(digest)
        self._buckets[bucket] += self._packed_row(digest, line, value)
        self._sorted[bucket] = False
        self._count += 1

    def setdefault(self, key: str, value: int, line: int = 0) -> KeyEntry:
        """What the key came with first: this, if it is new."""
        digest = _digest(key)
        rows = self._rows(_bucket_of(digest))
        after = self._place_after(rows, digest)
        found = self._row_at(rows, after - self._width) if after else None
        if found is not None and found.digest == digest:
            return KeyEntry(found.line, found.value)
        rows[after:after] = self._packed_row(digest, line, value)
        self._count += 1
        return KeyEntry(line, value)

    def packed(self) -> bytes:
        return b"".join(self._buckets)

    @classmethod
    def unpacked(cls, packed: bytes) -> Self:
        """Of one that has lines."""
        index = cls()
        width = index._width
        for at in range(0, len(packed), width):
            index._buckets[_bucket_of(packed[at : at + 2])] += packed[at : at + width]
        index._count = len(packed) // width
        return index

    def find(self, key: str) -> KeyEntry | None:
        """The latest line with this key, and the number that it came with."""
        digest = _digest(key)
        rows = self._rows(_bucket_of(digest))
        after = self._place_after(rows, digest)
        if after == 0:
            return None
        found = self._row_at(rows, after - self._width)
        return KeyEntry(found.line, found.value) if found.digest == digest else None

    def latest(self) -> Iterator[int]:
        """The number of each key's latest line, in no meaningful order."""
        for bucket in range(len(self._buckets)):
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
            for bucket in range(len(self._buckets))
            for earlier, later in pairwise(self._unpacked(bucket))
            if earlier.digest == later.digest
        )

    def _unpacked(self, bucket: int) -> Iterator[_Row]:
        rows = self._rows(bucket)
        return (self._row_at(rows, at) for at in range(0, len(rows), self._width))

    def _rows(self, bucket: int) -> bytearray:
        rows, width = self._buckets[bucket], self._width
        if not self._sorted[bucket]:
            ordered = sorted(rows[at : at + width] for at in range(0, len(rows), width))
            rows[:] = b"".join(ordered)
            self._sorted[bucket] = True
        return rows

    def _place_after(self, rows: bytearray, digest: bytes) -> int:
        """Where the rows of this digest end, or where they would stand."""
        width = self._width
        low, high = 0, len(rows) // width
        while low < high:  # what `bisect` does takes twice as long with a key
            middle = (low + high) >> 1
            at = middle * width
            if rows[at : at + _DIGEST] <= digest:
                low = middle + 1
            else:
                high = middle
        return low * width

    def _packed_row(self, digest: bytes, line: int, value: int) -> bytes:
        # Big-endian: rows sort by key, then by line.
        return digest + line.to_bytes(self._line, "big") + value.to_bytes(self._value, "big")

    def _row_at(self, rows: bytearray, at: int) -> _Row:
        line, end = at + _DIGEST + self._line, at + self._width
        return _Row(
            bytes(rows[at : at + _DIGEST]),
            int.from_bytes(rows[at + _DIGEST : line], "big"),
            int.from_bytes(rows[line:end], "big"),
        )


def trial_key(sample_id: str, trial: int) -> str:
    return f"{trial}:{sample_id}"


def _bucket_of(digest: bytes) -> int:
    return int.from_bytes(digest[:2], "big") >> (16 - _BUCKET_BITS)


def _digest(key: str) -> bytes:
    data = key.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()
