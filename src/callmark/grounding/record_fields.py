"""The fields of one record, by what may be asked of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from callmark.grounding.reading import unit_called
from callmark.grounding.record_tree import Field, ResultRecord, key_stems, stem
from callmark.grounding.text import once

MAX_FIELDS = 400  # of the records that a value is said of; larger ones are not searched
_QUANTITY = re.compile(r"[\d.,]+[ -]?(?P<unit>[^\W\d_]{1,12})(?P<what>(?: [^\W\d_]{2,12}){0,2})")


@lru_cache(maxsize=1 << 12)
def name_of_unit(word: str) -> str:
    """`hr` and `hours` are one; of what is no unit, its stem."""
    return unit_called(word) or stem(word)


@lru_cache(maxsize=1 << 12)
def _unit_in(text: str) -> str:
    """That of `8GB` and `1TB SSD`; `6920 Market Street` has none."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return ""
    return unit_called(found["unit"]) if found["what"] else name_of_unit(found["unit"])


class RecordFields:
    """The fields of a record and of all that lies in it, by what may be asked of them."""

    def __init__(self, record: ResultRecord) -> None:
        self._fields = list(islice(_fields_within(record), MAX_FIELDS))

    def all(self) -> Iterator[Field]:
        """Those of one key beside each other."""
        if len({one.key for one in self._fields}) == len(self._fields):  # most records are so
            yield from self._fields
            return
        for fields in self.by_key.values():
            yield from fields

    @once
    def numbers(self) -> list[int]:
        return [one.number for one in self._fields if one.number is not None]

    @once
    def by_key(self) -> dict[str, list[Field]]:
        found: dict[str, list[Field]] = {}
        for field in self._fields:
            found.setdefault(field.key, []).append(field)
        return found

    @once
    def by_stem(self) -> dict[str, list[Field]]:
        found: dict[str, list[Field]] = {}
        for field in self._fields:
            for one in key_stems(field.key):
                found.setdefault(one, []).append(field)
        return found

    @once
    def by_unit(self) -> dict[str, list[Field]]:
        found: dict[str, list[Field]] = {}
        for field in self._fields:
            text = field.value
            if isinstance(text, str) and len(text) <= 24 and (unit := _unit_in(text)):
                found.setdefault(unit, []).append(field)
        return found


def _fields_within(record: ResultRecord) -> Iterator[Field]:
    for inner in record.within():
        yield from inner.fields
