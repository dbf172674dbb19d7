"""One number per name, for a million names in 27 MB: their text is not kept."""

from __future__ import annotations

import hashlib
from array import array

_DIGEST = 16  # bytes that stand for a name: two names never have the same
_FIRST_SIZE = 1 << 8
_FILLED = 0.66


class Numbering:
    """A hash table that only grows: slots point to entries, which stand in order of arrival."""

    def __init__(self) -> None:
        self._digests = bytearray()
        self._numbers: array[int] = array("I")
        self._slots: array[int] = array("I", bytes(4 * _FIRST_SIZE))  # 0, or an entry plus 1

    def __len__(self) -> int:
        return len(self._numbers)

    def setdefault(self, name: str, number: int) -> int:
        """The number that the name was given first: this one, if it is new."""
        data = name.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(data, digest_size=_DIGEST).digest()
        slot = self._slot_of(digest)
        entry = self._slots[slot]
        if entry:
            return self._numbers[entry - 1]
        self._numbers.append(number)
        self._digests += digest
        self._slots[slot] = len(self)
        if len(self) > _FILLED * len(self._slots):
            self._grow()
        return number

    def _slot_of(self, digest: bytes) -> int:
        """Where the digest's entry is named, or the free slot where it belongs."""
        slots, last = self._slots, len(self._slots) - 1
        slot = int.from_bytes(digest[:8], "little") & last
        while (entry := slots[slot]) and self._digest_at(entry - 1) != digest:
            slot = (slot + 1) & last
        return slot

    def _digest_at(self, entry: int) -> bytes:
        return bytes(self._digests[entry * _DIGEST : (entry + 1) * _DIGEST])

    def _grow(self) -> None:
        # In place: malloc keeps a large table that is thrown away, and as much of the next ones.
        slots = self._slots
        slots.extend(slots)
        for slot in range(len(slots)):
            slots[slot] = 0
        for entry in range(len(self)):
            slots[self._slot_of(self._digest_at(entry))] = entry + 1
