"""Where the samples of each shard stand in the dataset: twelve bytes for each."""

from __future__ import annotations

from array import array
from collections.abc import Set

import msgspec

from callmark.core.identity import shard_of


class PackedPlaces(msgspec.Struct, frozen=True):
    """The samples of one shard: their numbers in the dataset, and the offsets of their lines."""

    index: bytes
    offset: bytes


class SamplePlaces:
    """`add` takes the items of a dataset in order, as its first reading finds them."""

    def __init__(self, num_shards: int) -> None:
        self.num_shards = num_shards
        self._index: list[array[int]] = [array("I") for _ in range(num_shards)]
        self._offset: list[array[int]] = [array("Q") for _ in range(num_shards)]
        self._count = 0

    def add(self, sample_id: str, offset: int) -> None:
        shard = shard_of(sample_id, self.num_shards)
        self._index[shard].append(self._count)
        self._offset[shard].append(offset)
        self._count += 1

    def keep_only(self, chosen: Set[int]) -> None:
        """`chosen`: the numbers of the samples that are run at all."""
        for shard in range(self.num_shards):
            both = zip(self._index[shard], self._offset[shard], strict=True)
            kept = [(index, offset) for index, offset in both if index in chosen]
            self._index[shard] = array("I", (index for index, _ in kept))
            self._offset[shard] = array("Q", (offset for _, offset in kept))

    def size_of(self, shard: int) -> int:
        return len(self._index[shard])

    def packed(self, shard: int) -> PackedPlaces:
        return PackedPlaces(self._index[shard].tobytes(), self._offset[shard].tobytes())


def places_of(packed: PackedPlaces) -> tuple[array[int], array[int]]:
    """Numbers and offsets."""
    index: array[int] = array("I")
    offset: array[int] = array("Q")
    index.frombytes(packed.index)
    offset.frombytes(packed.offset)
    return index, offset
