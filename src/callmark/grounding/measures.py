"""The units of leaves, and statements in the same, another or the wrong one."""

from __future__ import annotations

from collections.abc import Sequence

from callmark.grounding.numbers import SCALE, TOLERANCE
from callmark.grounding.reading import read_leaf
from callmark.grounding.record_index import RecordIndex
from callmark.grounding.record_tree import Field, ResultRecord, key_words
from callmark.grounding.units import (
    convert,
    dimension_of,
    is_measured_key,
    is_money_key,
    is_same_unit,
    scale_of_key,
    unit_called,
    unit_of_key,
    units_beside,
)
from callmark.grounding.values import Value

MOST = 20  # leaves with one number, and numbers near a converted one, that are looked at
LONGEST_TEXT = 200  # characters of a leaf that may name the unit of its number
LONGEST_NUMBER = 24  # and of one that is little more than a number
HIGHEST = 4  # records above a leaf in which its currency may stand


class Measures:
    """What each leaf's number is measured in, as far as key, text or a field beside it say."""

    def __init__(self, index: RecordIndex) -> None:
        self._index = index
        self._named: dict[int, dict[str, str]] = {}

    def unit_of(self, field: Field, readings: Sequence[int]) -> str:
        """Empty: not known."""
        if isinstance(field.value, str):
            if len(field.value) > LONGEST_TEXT:
                return ""
            for value in read_leaf(field.value):
                if value.unit and any(reading in value.readings for reading in readings):
                    return value.unit
            if len(field.value) > LONGEST_NUMBER:
                return ""
        words = key_words(field.key)
        return unit_of_key(words) or self._unit_beside(field, words)

    def _unit_beside(self, field: Field, words: tuple[str, ...]) -> str:
        """`currency` of the record or one above it, `unit` of the record."""
        own = self._names(field.record)
        named = own.get(f"{field.key}_unit") or own.get(f"{field.key}_currency")
        if named:
            return named
        if is_money_key(words):
            record: ResultRecord | None = field.record
            for _ in range(HIGHEST):
                if record is None:
                    break
                currency = self._names(record).get("currency")
                if currency:
                    return currency
                record = record.parent
        return own.get("unit", "") if is_measured_key(words) else ""

    def _names(self, record: ResultRecord) -> dict[str, str]:
        names = self._named.get(record.number)
        if names is None:
            names = self._named[record.number] = {}
            for field in record.fields:
                words = key_words(field.key)
                if isinstance(field.value, str) and words and len(field.value) <= 24:
                    unit = unit_called(field.value)
                    if unit and words[-1] in ("unit", "units", "currency", "code"):
                        names[field.key] = unit
                        if words in (("currency", "code"), ("currency",)):
                            names["currency"] = unit
                        elif words in (("unit",), ("units",)):
                            names["unit"] = unit
        return names

    def in_its_unit(self, value: Value, fields: Sequence[Field]) -> tuple[list[Field], list[Field]]:
        """Those that may be meant, and those whose unit or scale is another one."""
        if not value.unit and value.form.factor == 1:
            return list(fields), []
        right: list[Field] = []
        wrong: list[Field] = []
        for field in fields[:MOST]:
            (right if self._agrees(value, field) else wrong).append(field)
        right += fields[MOST:]
        return right, wrong

    def is_of_its_kind(self, value: Value, field: Field) -> bool:
        """Both a length, both an amount of money."""
        unit = self.unit_of(field, value.readings)
        return bool(unit and value.unit) and dimension_of(unit) == dimension_of(value.unit)

    def _agrees(self, value: Value, field: Field) -> bool:
        if value.form.factor > 1 and not self._has_scale(value, field):
            return False
        unit = self.unit_of(field, value.readings) if value.unit else ""
        if not unit or is_same_unit(unit, value.unit):
            return True
        # A share may be kept as a fraction, whatever else its key names.
        return (
            value.unit == "%"
            and dimension_of(unit) != "money"
            and len(value.readings) > 1
            and (isinstance(field.value, float) and abs(field.value) <= 1)
        )

    def _has_scale(self, value: Value, field: Field) -> bool:
        """`4.5 million` is no 4.5, unless key or text say that it is one of millions."""
        if isinstance(field.value, str):
            return len(field.value) > LONGEST_TEXT or any(
                one.form.factor == value.form.factor or value.readings[0] in one.readings[:1]
                for one in read_leaf(field.value)
                if one.readings
            )
        if isinstance(field.value, int | float) and abs(
            field.value * SCALE - value.readings[0]
        ) <= max(TOLERANCE, abs(value.readings[0]) // 10**9):
            return True
        return scale_of_key(key_words(field.key)) == value.form.factor

    def converted(self, value: Value, half: int) -> Field | None:
        """A leaf that states the same in another unit; `half` a unit of the last stated digit."""
        for unit in units_beside(value.unit):
            low = convert(value.readings[0] - half, value.unit, unit)
            high = convert(value.readings[0] + half, value.unit, unit)
            if low is None or high is None:
                continue
            for number in self._index.between(low - 1, high + 1)[:MOST]:
                for field in self._index.numbers[number][:MOST]:
                    if self.unit_of(field, (number,)) == unit:
                        return field
        return None
