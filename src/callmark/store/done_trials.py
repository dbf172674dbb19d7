"""The trials of a run that are finished: where each stands in the journal."""

from __future__ import annotations

import msgspec

from callmark.store.key_index import KeyIndex, trial_key


class DoneTrial(msgspec.Struct, frozen=True):
    """Where a finished trial stands in the journal, and where its sample in the dataset."""

    line: int
    index: int


class DoneTrials:
    """The trials that need not be run again; errors are no part of it."""

    def __init__(self, index: KeyIndex) -> None:
        self._index = index
        self._count = sum(mark & 1 for mark in index.latest())

    def packed(self) -> bytes:
        return self._index.packed()

    def find(self, sample_id: str, trial: int) -> DoneTrial | None:
        found = self._index.find(trial_key(sample_id, trial))
        return DoneTrial(found[0], found[1] >> 1) if found and found[1] & 1 else None

    def __contains__(self, key: tuple[str, int]) -> bool:
        return self.find(*key) is not None

    def __len__(self) -> int:
        return self._count
