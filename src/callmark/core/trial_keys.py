"""Who the trials are: position in the dataset, trial, id and cluster, a few bytes each."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

from callmark.core.columns import Growing, taken
from callmark.core.results import Result
from callmark.core.summary_state import Packed, TrialsState
from callmark.errors import BadInput

NO_CLUSTER = 0
_A_CLUSTER = 1 << 63  # set in the label of every cluster, so that no position is taken for one
_BLOCK = 12  # positions that are sorted at once, as a power of two


class ConflictingResults(BadInput):
    """Two results that cannot both be there. Says which; the reader of a file knows their lines."""

    def __init__(self, what: str, sample_ids: tuple[str, str], index: int, trial: int) -> None:
        super().__init__(f"results: {what}")
        self.sample_ids = sample_ids
        self.index = index
        self.trial = trial


class TrialKeys:
    """One entry per trial, in the order of arrival until they are put into that of the dataset."""

    def __init__(self) -> None:
        self._index: array[int] = array("I")
        self._trial = Growing()
        self._cluster = Growing()
        self._ids = bytearray()
        self._id_ends = Growing("I")  # twice the end, plus one if the id is hexadecimal
        self._arrival: array[int] | None = None  # which arrival each row is, once they are sorted

    def add(self, result: Result, cluster: str | None) -> None:
        if self._arrival is not None:
            self._arrival.append(len(self))
        self._index.append(result.index)
        self._trial.append(result.trial)
        self._cluster.append(NO_CLUSTER if cluster is None else _label(cluster))
        raw, is_hex = _packed_id(result.sample_id)
        self._ids += raw
        self._id_ends.append(2 * len(self._ids) + is_hex)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def index(self) -> array[int]:
        return self._index

    @property
    def trial(self) -> array[int]:
        return self._trial.numbers

    @property
    def cluster(self) -> array[int]:
        """The label of each trial's cluster, or NO_CLUSTER."""
        return self._cluster.numbers

    def id_at(self, row: int) -> str:
        at = row if self._arrival is None else self._arrival[row]
        ends = self._id_ends.numbers
        start = ends[at - 1] >> 1 if at else 0
        raw = self._ids[start : ends[at] >> 1]
        return raw.hex() if ends[at] & 1 else raw.decode("utf-8", "surrogatepass")

    def extend(self, state: TrialsState) -> None:
        """The trials of another summary. Nothing may have been put into order yet."""
        base = 2 * len(self._ids)
        width = "I" if base + 2 * len(state.ids) + 1 < 1 << 32 else "Q"
        self._index.extend(state.index.numbers())
        self._trial.extend(state.trial.numbers())
        self._cluster.extend(state.cluster.numbers())
        self._ids += state.ids
        ends = state.id_ends.numbers()
        self._id_ends.extend(array(width, map(base.__add__, ends)))

    def packed_ids(self) -> tuple[bytes, Packed]:
        """The ids in the order of the rows, and where each ends."""
        if self._arrival is None:
            return bytes(self._ids), Packed.of(self._id_ends.numbers)
        ids, ends = bytearray(), Growing("I")
        for row in range(len(self)):
            raw, is_hex = _packed_id(self.id_at(row))
            ids += raw
            ends.append(2 * len(ids) + is_hex)
        return bytes(ids), Packed.of(ends.numbers)

    def rows_of(self, index: int) -> range:
        """The trials of one sample; the rows must be in order."""
        return range(bisect_left(self._index, index), bisect_right(self._index, index))

    def order(self) -> array[int] | None:
        """The rows by position and trial; None if they already stand so."""
        index, trial = self._index, self.trial
        if all(left < right for left, right in pairwise(zip(index, trial, strict=True))):
            return None
        blocks: dict[int, array[int]] = {}
        for row, position in enumerate(index):
            blocks.setdefault(position >> _BLOCK, array("I")).append(row)
        order = array("I")
        for block in sorted(blocks):
            order.extend(sorted(blocks.pop(block), key=lambda row: (index[row], trial[row])))
        return order

    def reorder(self, order: array[int]) -> None:
        self._index = taken(self._index, order)
        self._trial.reorder(order)
        self._cluster.reorder(order)
        self._arrival = order if self._arrival is None else taken(self._arrival, order)

    def starts(self) -> Sequence[int]:
        """Where each sample begins; the rows must be in order."""
        if all(left < right for left, right in pairwise(self._index)):
            return range(len(self))
        starts = array("I")
        previous = (-1, -1)
        for row, key in enumerate(zip(self._index, self.trial, strict=True)):
            if key[0] != previous[0]:
                starts.append(row)
            else:
                self._check_same_sample(row, is_twice=key == previous)
            previous = key
        return starts

    def _check_same_sample(self, row: int, *, is_twice: bool) -> None:
        mine, other = self.id_at(row), self.id_at(row - 1)
        index, trial = self._index[row], self.trial[row]
        if mine != other:
            what = (
                f"index {index}: belongs to two samples, {other!r} and {mine!r}; "
                "results of different datasets cannot be summarised together"
            )
            raise ConflictingResults(what, (other, mine), index, trial)
        if is_twice:
            what = f"sample {mine!r}, trial {trial}: occurs twice; each trial must be given once"
            raise ConflictingResults(what, (mine, mine), index, trial)


def _label(text: str) -> int:
    head = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8]
    return int.from_bytes(head, "little") | _A_CLUSTER


def _packed_id(sample_id: str) -> tuple[bytes, bool]:
    # Ids that the reader made up are SHA-256 in hexadecimal: half the room as bytes.
    if len(sample_id) == 64 and sample_id.isascii() and sample_id.isalnum():
        try:
            raw = bytes.fromhex(sample_id)
        except ValueError:
            return sample_id.encode(), False
        if raw.hex() == sample_id:
            return raw, True
    return sample_id.encode("utf-8", "surrogatepass"), False
