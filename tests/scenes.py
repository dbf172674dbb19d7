"""What there is to speak of in one JSON result, whatever its shape: numbers, dates, lists of like
records."""

from __future__ import annotations

import re
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, NamedTuple

Json = Any
_IDENTIFYING = ("id", "ids", "name", "title", "number", "code", "zip", "year", "phone", "sku")
MONEY = ("price", "cost", "amount", "total", "fare", "fee", "balance", "subtotal", "tax")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class Place(NamedTuple):
    """One leaf: its key in words, its value, and what names its record."""

    key: str
    value: Json
    name: str | None
    siblings: dict[str, Json]


class Column(NamedTuple):
    """The numbers under one key of one list of records, each with the record's name."""

    noun: str
    key: str
    values: list[int | float]
    names: list[str | None]
    records: list[dict[str, Json]]

    @property
    def length(self) -> int:
        return len(self.values)


class Scene:
    """What there is to speak of in one result."""

    def __init__(self, result: Json) -> None:
        self.result = result
        self.places: list[Place] = []
        self.columns: list[Column] = []
        self.lists: list[tuple[str, int]] = []
        self._visit(result, "")
        self.numbers = [one for one in self.places if is_number(one.value) and is_measure(one)]
        self.dates = [one for one in self.places if date_of(one.value) is not None]
        self.times = [one for one in self.places if time_of(one.value) is not None]
        self.yes_or_no = [one for one in self.places if isinstance(one.value, bool)]
        self.ids = [
            one
            for one in self.places
            if isinstance(one.value, str) and re.fullmatch(r"#?[A-Za-z]+_?\d{3,8}", one.value)
        ]

    def _visit(self, value: Json, noun: str) -> None:
        if isinstance(value, dict):
            name = name_of(value)
            for key, entry in value.items():
                if isinstance(entry, dict | list):
                    self._visit(entry, key)
                else:
                    self.places.append(Place(words(key), entry, name, value))
        elif isinstance(value, list):
            self._list(value, words(noun))
            for entry in value:
                self._visit(entry, noun)

    def _list(self, items: list[Json], noun: str) -> None:
        if not noun or len(items) < 2:
            return
        self.lists.append((noun, len(items)))
        if not all(isinstance(entry, dict) for entry in items):
            return
        for key in items[0]:
            column = [entry.get(key) for entry in items]
            if all(map(is_number, column)) and is_measure(Place(words(key), 0, None, {})):
                names = [name_of(entry) for entry in items]
                self.columns.append(Column(noun, words(key), column, names, items))


def words(key: str) -> str:
    return " ".join(_CAMEL.findall(key)).lower()


def name_of(record: dict[str, Json]) -> str | None:
    for key, value in record.items():
        last = words(key).split()[-1:]
        naming = last and last[0] in ("id", "name", "title", "number", "code")
        if naming and isinstance(value, str) and len(value) >= 3:
            return value
    return None


def is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_measure(place: Place) -> bool:
    parts = place.key.split()
    return bool(parts) and not any(part in _IDENTIFYING for part in parts) and len(parts) <= 4


def date_of(value: Json) -> date | None:
    found = re.match(r"(\d{4})-(\d\d)-(\d\d)(?:$|T)", value) if isinstance(value, str) else None
    try:
        return date(*map(int, found.groups())) if found else None
    except ValueError:
        return None


def time_of(value: Json) -> tuple[int, int] | None:
    found = re.fullmatch(r"(\d\d):(\d\d)(?::00)?", value) if isinstance(value, str) else None
    return (int(found[1]), int(found[2])) if found and int(found[1]) < 24 else None


def plain(number: int | float) -> str:
    return repr(number) if isinstance(number, int) else format(Decimal(repr(number)), "f")


def grouped(number: int | float, locale: str = "en") -> str:
    whole, _, rest = plain(number).partition(".")
    sign, whole = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    group, point = {"en": (",", "."), "de": (".", ","), "es": (".", ","), "fr": ("\u202f", ",")}[
        locale
    ]
    parts: list[str] = []
    while len(whole) > 3:
        whole, tail = whole[:-3], whole[-3:]
        parts.insert(0, tail)
    return sign + group.join([whole, *parts]) + (point + rest if rest else "")


def rounded(number: int | float, digits: int) -> Decimal:
    step = Decimal(1).scaleb(-digits)
    return Decimal(repr(number)).quantize(step, rounding=ROUND_HALF_EVEN)


def exact(values: list[int | float]) -> list[Decimal]:
    return [Decimal(repr(value)) for value in values]
