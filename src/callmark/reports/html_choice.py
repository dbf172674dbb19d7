"""Which trials a page of bounded size holds: the failing ones first, then a seeded choice."""

from __future__ import annotations

import hashlib
from array import array

import msgspec

# Together with style, scripts and head they stay below 60 MB.
INDEX_BYTES = 21_000_000
SAMPLE_BYTES = 36_000_000


class TrialChoice(msgspec.Struct, frozen=True):
    """One flag for each candidate, in the order in which they were offered."""

    rows: bytearray
    full: bytearray

    def counts(self) -> tuple[int, int, int]:
        return len(self.rows), sum(self.rows), sum(self.full)


class Candidates:
    """Offered one by one; 17 bytes of each are kept until the choice is made."""

    def __init__(self, seed: int) -> None:
        self._seed = str(seed).encode()
        self._lot: array[int] = array("Q")
        self._row: array[int] = array("I")
        self._size: array[int] = array("I")

    def __len__(self) -> int:
        return len(self._lot)

    def offer(self, sample_id: str, trial: int, *, row: int, size: int) -> None:
        """`row`, `size`: what its row, and all of it, would take."""
        name = f"{sample_id}\0{trial}".encode("utf-8", "surrogatepass")
        lot = hashlib.sha256(self._seed + b"\0" + name).digest()[:8]
        self._lot.append(int.from_bytes(lot, "big"))
        self._row.append(min(row, INDEX_BYTES + 1))
        self._size.append(min(size, SAMPLE_BYTES + 1))

    def chosen(self, tiers: bytes | bytearray) -> TrialChoice:
        """`tiers`: lower ones first, one for each candidate. What does not fit is passed over."""
        count = len(self._lot)
        rows, full = bytearray(count), bytearray(count)
        row_room, room = INDEX_BYTES, SAMPLE_BYTES
        for at in sorted(range(count), key=lambda at: (tiers[at], self._lot[at])):
            if self._row[at] <= row_room:
                rows[at] = 1
                row_room -= self._row[at]
                if self._size[at] <= room:
                    full[at] = 1
                    room -= self._size[at]
        return TrialChoice(rows, full)
