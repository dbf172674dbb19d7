"""The other way to read a value, where the first one finds nothing: a minus sign that stands in
words, and a time of day that is written as a length of time is."""

from __future__ import annotations

from callmark.grounding.dates import Moment
from callmark.grounding.numbers import SCALE
from callmark.grounding.reading import is_money
from callmark.grounding.values import Value
from callmark.grounding.words import says_less

BEFORE, AFTER = 60, 30  # characters around a number whose words may carry its sign


def read_otherwise(text: str, value: Value, *, is_listed: bool) -> Value | None:
    """`you owe 684.12` is -684.12, `19 h` is 19:00. Amounts in lists, such as those of an account,
    stand without a sign."""
    if value.kind != "number" or not value.readings:
        return None
    hour, rest = divmod(value.readings[0], SCALE)
    if value.unit == "h" and not rest and 0 <= hour <= 24:
        return value._replace(kind="moment", moments=(Moment(hour=hour, minute=0),), unit="")
    if value.form.sign is not None or value.readings[0] <= 0:
        return None
    around = text[max(0, value.start - BEFORE) : value.end + AFTER]
    if says_less(around) or (is_listed and is_money(text, value)):
        return value._replace(readings=tuple(-one for one in value.readings))
    return None
