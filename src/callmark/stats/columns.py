"""Numbers of a million trials in little room: whole rows are told apart, not single numbers.

Most trials have exactly the numbers of many others. A row of numbers is kept once, and each trial
is four bytes that say which row. Where every row is different this costs those four bytes."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import TypeVar, overload

import msgspec

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
