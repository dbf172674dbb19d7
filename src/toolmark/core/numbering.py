"""One number per name, for a million names in 25 MB: their text is not kept."""

from __future__ import annotations

import hashlib
from array import array

_FIRST_SIZE = 1 << 8
_FILLED = 0.66


class Numbering:
    """A table that only grows. What stands for a name are 63 bits of its hash."""

    def __init__(self) -> None:
        self._count = 0
        self._resize(_FIRST_SIZE)

    def __len__(self) -> int:
        return self._count

    def setdefault(self, name: str, number: int) -> int:
        """The number that the name was given first: this one, if it is new."""
        mark = _mark_of(name)
        slot = self._slot_of(mark)
        if self._marks[slot]:
            return self._numbers[slot]
        self._marks[slot], self._numbers[slot] = mark, number
        self._count += 1
        if self._count > _FILLED * len(self._marks):
            self._grow()
        return number

    def _slot_of(self, mark: int) -> int:
        """Where the mark stands, or the free slot where it belongs."""
        marks, last = self._marks, len(self._marks) - 1
        slot = (mark >> 1) & last
        while marks[slot] and marks[slot] != mark:
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        marks, numbers = self._marks, self._numbers
        self._resize(2 * len(marks))
        for mark, number in zip(marks, numbers, strict=True):
            if mark:
                slot = self._slot_of(mark)
                self._marks[slot], self._numbers[slot] = mark, number

    def _resize(self, size: int) -> None:
        self._marks: array[int] = array("Q", bytes(8 * size))
        self._numbers: array[int] = array("I", bytes(4 * size))


def _mark_of(name: str) -> int:
    data = name.encode("utf-8", "surrogatepass")
    # Never 0: that is an empty slot.
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little") | 1
