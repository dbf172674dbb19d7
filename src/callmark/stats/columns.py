"""Numbers of a million trials in little room: whole rows are told apart, not single numbers.

Most trials have exactly the numbers of many others. A row of numbers is kept once, and each trial
is four bytes that say which row. Where every row is different this costs those four bytes."""

from __future__ import annotations

import hashlib
import math
import operator
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress, islice, pairwise
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar, overload

import msgspec

from callmark.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REMEMBERED = 1 << 14  # rows that are looked for; one that was forgotten is kept a second time
_WIDER = {"b": "h", "h": "i", "i": "q", "B": "H", "H": "I", "I": "Q"}

Number = TypeVar("Number", int, float)


class Packed(msgspec.Struct, frozen=True, array_like=True):
    """An `array`: how wide its numbers are, and the numbers."""

    typecode: str
    data: bytes

    @classmethod
    def of(cls, numbers: array[int] | array[float]) -> Packed:
        return cls(numbers.typecode, numbers.tobytes())

    def numbers(self) -> array[int]:
        found = array(self.typecode)
        found.frombytes(self.data)
        return found


class Growing:
    """Whole numbers, each as wide as the largest of them needs."""

    __slots__ = ("numbers",)

    def __init__(self, typecode: str = "B") -> None:
        self.numbers: array[int] = array(typecode)

    def append(self, number: int) -> None:
        while True:
            try:
                self.numbers.append(number)
            except OverflowError:
                # Beyond 64 bits, or negative where no sign is kept: the caller's mistake.
                if self.numbers.typecode not in _WIDER:
                    raise
                self.numbers = array(_WIDER[self.numbers.typecode], self.numbers)
            else:
                return

    def extend(self, more: array[int]) -> None:
        if more.itemsize > self.numbers.itemsize:
            self.numbers = array(more.typecode, self.numbers)
        self.numbers.extend(array(self.numbers.typecode, more))

    def reorder(self, order: array[int]) -> None:
        self.numbers = take_at(self.numbers, order)


class Column(Sequence[float]):
    """One number per row, looked up in the table of different rows."""

    __slots__ = ("_numbers", "_rows")

    def __init__(self, rows: Sequence[int], numbers: array[float]) -> None:
        self._rows = rows
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> float: ...
    @overload
    def __getitem__(self, at: slice) -> array[float]: ...
    def __getitem__(self, at: int | slice) -> float | array[float]:
        if isinstance(at, slice):
            return take_at(self._numbers, self._rows[at])
        return self._numbers[self._rows[at]]

    def __iter__(self) -> Iterator[float]:
        return map(self._numbers.__getitem__, self._rows)

    def at(self, places: Iterable[int]) -> Iterator[float]:
        """The numbers at these places, in their order."""
        return map(self._numbers.__getitem__, map(self._rows.__getitem__, places))

    def minus(self, other: Column) -> Column:
        """The difference of two columns of the same rows."""
        return Column(self._rows, array("d", map(float.__sub__, self._numbers, other._numbers)))

    def where(self, fits: Callable[[float], bool], places: Sequence[int]) -> array[int]:
        """Those of the places whose number fits. A number is judged once, however often it is
        there."""
        answers = bytes(map(fits, self._numbers))
        rows = map(self._rows.__getitem__, places)
        return array("I", compress(places, map(answers.__getitem__, rows)))

    def fitting(self, fits: Callable[[float], bool], places: Sequence[int]) -> NDArray[np.bool_]:
        """Of each of the places whether its number fits."""
        import numpy as np

        answers = np.fromiter(map(fits, self._numbers), dtype=np.bool_, count=len(self._numbers))
        return answers.take(np.asarray(self._rows).take(np.asarray(places, dtype=np.intp)))

    def taken(self, places: Sequence[int]) -> array[float]:
        """What `at` gives, at once."""
        import numpy as np

        rows = np.asarray(self._rows).take(np.asarray(places, dtype=np.intp))
        return array("d", np.asarray(self._numbers, dtype=np.float64).take(rows).tobytes())


class Rows:
    """Rows of the same columns. `types`: the column's name and how an `array` keeps it."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self.codes: array[int] = array("I")
        self._numbers: dict[str, array[float]] = {
            name: array(typecode) for name, typecode in types.items()
        }
        self._appends = [column.append for column in self._numbers.values()]
        self._known: dict[tuple[float, ...], int] = {}
        self._kept = 0

    def __len__(self) -> int:
        return len(self.codes)

    def add(self, row: tuple[float, ...]) -> None:
        code = self._known.get(row)
        self.codes.append(self._keep(row) if code is None else code)

    def again(self, code: int) -> None:
        """One more row that is the same as an earlier one."""
        self.codes.append(code)

    def column(self, name: str) -> Column:
        return Column(self.codes, self._numbers[name])

    def columns(self, names: Iterable[str], places: Iterable[int]) -> tuple[Column, ...]:
        """Some columns at these places only. Which row it is, is kept once for all of them."""
        codes = take_at(self.codes, places)
        return tuple(Column(codes, self._numbers[name]) for name in names)

    def extend(self, codes: array[int], rows: Iterable[tuple[float, ...]]) -> None:
        """Many rows, of which `codes` says which of the given `rows` each is."""
        # Another process numbered its rows by itself: its codes are translated into ours.
        ours = array("I")
        for row in rows:
            code = self._known.get(row)
            ours.append(self._keep(row) if code is None else code)
        self.codes.extend(take_at(ours, codes))

    def packed(self) -> dict[str, Packed]:
        """The different rows, column by column."""
        return {name: Packed.of(column) for name, column in self._numbers.items()}

    def kept(self, code: int) -> tuple[float, ...]:
        return tuple(column[code] for column in self._numbers.values())

    def reorder(self, order: array[int]) -> None:
        self.codes = take_at(self.codes, order)

    def taken(self, places: Iterable[int]) -> Rows:
        """The rows at these places, to be read: the table of different rows is the same one."""
        found = Rows({})
        found.codes, found._numbers = take_at(self.codes, places), self._numbers
        return found

    def _keep(self, row: tuple[float, ...]) -> int:
        for append, number in zip(self._appends, row, strict=True):
            append(number)
        if len(self._known) == REMEMBERED:
            self._known.clear()
        code = self._known[row] = self._kept
        self._kept += 1
        return code


def take_at(column: array[Number], order: Iterable[int]) -> array[Number]:
    """The entries at these places, in their order."""
    return array(column.typecode, map(column.__getitem__, order))


# Bytes of a row: digest of the key, line number, value. Two keys never have the same digest.
_DIGEST, _LINE, _VALUE = 16, 5, 6
_NARROW_VALUE = 4
# Sorting and comparing needs memory for one bucket at a time, and small buckets are given back
# piece by piece: what is needed next fits into their place.
_BUCKET_BITS = 10


class MeasureColumns:
    """The measures of plug-ins: a number per trial, NaN where there is none. Nobody knows their
    names before they come, nor what they may be: a number below 0 is one like any other."""

    def __init__(self) -> None:
        self._numbers: dict[str, array[float]] = {}
        self.yes_no: dict[str, bool] = {}  # whether every value so far was True or False

    def add(self, found: Mapping[str, bool | float | None], rows: int) -> None:
        """The measures of one more trial; with it there are `rows`."""
        for name, value in found.items():
            self._column(name, rows - 1).append(math.nan if value is None else value)
            if value is not None and not isinstance(value, bool):
                self.yes_no[name] = False
        self._fill(rows)

    def extend(self, more: Mapping[str, tuple[Packed, bool]], before: int, rows: int) -> None:
        """Those of other trials: there were `before`, and are `rows` now."""
        for name, (numbers, yes_no) in more.items():
            self._column(name, before).extend(numbers.numbers())
            self.yes_no[name] = self.yes_no[name] and yes_no
        self._fill(rows)

    def packed(self) -> dict[str, tuple[Packed, bool]]:
        return {
            name: (Packed.of(numbers), self.yes_no[name]) for name, numbers in self._numbers.items()
        }

    def reorder(self, order: array[int]) -> None:
        for name, numbers in self._numbers.items():
            self._numbers[name] = take_at(numbers, order)

    def taken(self, rows: Sequence[int]) -> MeasureColumns:
        found = MeasureColumns()
        found._numbers = {name: take_at(one, rows) for name, one in self._numbers.items()}
        found.yes_no = self.yes_no
        return found

    def column(self, name: str) -> Column:
        """One number per trial."""
        return Column(range(len(self._numbers[name])), self._numbers[name])

    def averaged(self, spans: Sequence[range] | None) -> dict[str, array[float]]:
        """By sample, in the order of the names; a trial that could not be judged is left out."""
        names = sorted(self._numbers)
        if spans is None:
            return {name: self._numbers[name] for name in names}
        return {
            name: array("d", (_mean(self._numbers[name][span.start : span.stop]) for span in spans))
            for name in names
        }

    def _column(self, name: str, rows: int) -> array[float]:
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = array("d", [math.nan]) * rows
            self.yes_no[name] = True
        return found

    def _fill(self, rows: int) -> None:
        for numbers in self._numbers.values():
            if len(numbers) < rows:
                numbers.extend(array("d", [math.nan]) * (rows - len(numbers)))


def is_there(number: float) -> bool:
    """Whether a trial or a sample has this measure."""
    return not math.isnan(number)


def _mean(numbers: Sequence[float]) -> float:
    kept = [number for number in numbers if is_there(number)]
    return math.fsum(kept) / len(kept) if kept else math.nan


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


class PackedKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Trials as they are stored: their positions, numbers, clusters and ids."""

    index: Packed
    trial: Packed
    cluster: Packed
    ids: bytes
    id_ends: Packed


class TrialKeys:
    """One entry per trial, in the order of arrival until they are put into that of the dataset."""

    def __init__(self) -> None:
        self._index: array[int] = array("I")
        self._trial = Growing()
        self._cluster = Growing()
        self._ids = bytearray()
        self._id_ends = Growing("I")  # twice the end, plus one if the id is hexadecimal
        self.arrival: array[int] | None = None  # which arrival each row is, once they are sorted

    def add(self, index: int, trial: int, sample_id: str, cluster: str | None) -> None:
        if self.arrival is not None:
            self.arrival.append(len(self))
        self._index.append(index)
        self._trial.append(trial)
        self._cluster.append(NO_CLUSTER if cluster is None else _label(cluster))
        raw, is_hex = _packed_id(sample_id)
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

    def ids(self) -> list[str]:
        """All of them, at once."""
        ends = self._id_ends.numbers
        if self.arrival is not None or any(map((1).__and__, ends)) or not self._ids.isascii():
            return [*map(self.id_at, range(len(self)))]
        text, places = self._ids.decode(), [end >> 1 for end in ends]
        return [text[start:end] for start, end in zip([0, *places], places)]  # noqa: B905

    def id_at(self, row: int) -> str:
        at = row if self.arrival is None else self.arrival[row]
        ends = self._id_ends.numbers
        start = ends[at - 1] >> 1 if at else 0
        raw = self._ids[start : ends[at] >> 1]
        return raw.hex() if ends[at] & 1 else raw.decode("utf-8", "surrogatepass")

    def extend(self, keys: PackedKeys) -> None:
        """Trials from elsewhere. Nothing may have been put into order yet."""
        base = 2 * len(self._ids)
        width = "I" if base + 2 * len(keys.ids) + 1 < 1 << 32 else "Q"
        self._index.extend(keys.index.numbers())
        self._trial.extend(keys.trial.numbers())
        self._cluster.extend(keys.cluster.numbers())
        self._ids += keys.ids
        ends = keys.id_ends.numbers()
        self._id_ends.extend(array(width, map(base.__add__, ends)))

    def packed_ids(self) -> tuple[bytes, Packed]:
        """The ids in the order of the rows, and where each ends."""
        if self.arrival is None:
            return bytes(self._ids), Packed.of(self._id_ends.numbers)
        ids, ends = bytearray(), Growing("I")
        for row in range(len(self)):
            raw, is_hex = _packed_id(self.id_at(row))
            ids += raw
            ends.append(2 * len(ids) + is_hex)
        return bytes(ids), Packed.of(ends.numbers)

    def taken(self, rows: Sequence[int]) -> TrialKeys:
        """Those of these rows, in their order."""
        found = TrialKeys()
        found._index = take_at(self._index, rows)
        for name in ("_trial", "_cluster"):
            getattr(found, name).numbers = take_at(getattr(self, name).numbers, rows)
        for row in rows:
            raw, is_hex = _packed_id(self.id_at(row))
            found._ids += raw
            found._id_ends.append(2 * len(found._ids) + is_hex)
        return found

    def rows_of(self, index: int) -> range:
        """The trials of one sample; the rows must be in order."""
        return range(bisect_left(self._index, index), bisect_right(self._index, index))

    def order(self) -> array[int] | None:
        """The rows by position and trial; None if they already stand so."""
        index, trial = self._index, self.trial
        keys = zip(index, trial, strict=True)
        if _is_rising(index) or all(left < right for left, right in pairwise(keys)):
            return None
        blocks: dict[int, array[int]] = {}
        for row, position in enumerate(index):
            blocks.setdefault(position >> _BLOCK, array("I")).append(row)
        order = array("I")
        for block in sorted(blocks):
            order.extend(sorted(blocks.pop(block), key=lambda row: (index[row], trial[row])))
        return order

    def reorder(self, order: array[int]) -> None:
        self._index = take_at(self._index, order)
        self._trial.reorder(order)
        self._cluster.reorder(order)
        self.arrival = order if self.arrival is None else take_at(self.arrival, order)

    def starts(self) -> Sequence[int]:
        """Where each sample begins; the rows must be in order."""
        if _is_rising(self._index):
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


def _is_rising(numbers: array[int]) -> bool:
    return all(map(operator.lt, numbers, islice(numbers, 1, None)))


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
