"""What a model was told and shown before it made a call."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from datetime import date

from callmark.grounding.arithmetic import find_equations
from callmark.grounding.dates import Moment
from callmark.grounding.evidence import flat
from callmark.grounding.numbers import SCALE
from callmark.grounding.record_tree import Field, RecordIndex
from callmark.grounding.text import NUMBER_WORDS, fold, once, tokens_of
from callmark.grounding.values import Value, values_of
from callmark.records.samples import message_text
from callmark.scorers.integration import ToldWords, TrialReading

MANY = 300  # numbers or names that a value is tried to be made of
_PROPER = re.compile(r"[A-Z][\w'’]+(?:[ -][A-Z][\w'’]+)*")
_DAYS_AWAY: tuple[tuple[int, re.Pattern[str]], ...] = tuple(
    (days, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))
    for days, words in (
        (0, r"today|tonight|now|heute|hoy|aujourd['’]hui"),
        (1, r"tomorrow|morgen|mañana|demain|(?:next|following) day|day (?:after|later)|lendemain"),
        (-1, r"yesterday|gestern|ayer|hier|day (?:before|earlier)|previous day"),
        (1, r"by (?:one|a|1) day|um einen Tag"),
        (-1, r"by (?:one|a|1) day|um einen Tag"),
        (2, r"by (?:two|2) days"),
        (-2, r"by (?:two|2) days"),
        (2, r"day after tomorrow|übermorgen|pasado mañana|après-demain|two days (?:after|later)"),
        (7, r"next week|a week (?:later|after|from)|nächste Woche|próxima semana"),
    )
)
_WEEKDAYS = re.compile(
    r"\b(?:(monday|montag|lunes|lundi)|(tuesday|dienstag|martes|mardi)"
    r"|(wednesday|mittwoch|miércoles|mercredi)|(thursday|donnerstag|jueves|jeudi)"
    r"|(friday|freitag|viernes|vendredi)|(saturday|samstag|sábado|samedi)"
    r"|(sunday|sonntag|domingo|dimanche))s?\b",
    re.IGNORECASE,
)
_ANY_DAY = re.compile(r"\b(?:between|any ?(?:day|time|date)|flexible|range)\b", re.IGNORECASE)


class ShownTexts:
    """What the model was told and shown before a call. Each part is read when it is asked for."""

    def __init__(self, reading: TrialReading) -> None:
        self._reading = reading
        self.texts = reading.told
        self.records = reading.records
        # Numbers of earlier arguments that rested on something.
        self.derived: dict[int, int] = {}

    @once
    def of_users(self) -> list[tuple[str, int]]:
        """Without system texts, which say `after` and `next` of everything."""
        prompt = self._reading.sample.prompt
        if isinstance(prompt, str):
            return self.texts
        asked = [(message_text(one), 0) for one in prompt if one.get("role") == "user"]
        return asked + [(said.text, said.turn) for said in self._reading.trace.said]

    @once
    def served(self) -> ToldWords:
        words = ToldWords()
        for field in self.records.tree.fields:
            if isinstance(field.value, str):
                words.add(field.value, field.record.served.turn or 0)
            words.add(field.key, field.record.served.turn or 0)
        for key in sorted(self.records.tree.keys):
            words.add(key, 0)
        return words

    def leaf_saying(self, folded: str) -> Field | None:
        """The first leaf that holds this text, whole."""
        fields = self.records.tree.texts.get(folded, ())
        return min(fields, key=lambda one: (one.call, one.path), default=None)

    @once
    def keys(self) -> dict[str, str]:
        """The names of objects that results hold, `payment_methods: {card_12: {…}}`."""
        keys: dict[str, str] = {}
        for record in self.records.tree.records:
            if record.key:
                keys.setdefault(fold(record.key), place_of(record.served.call, record.path))
        return keys

    @once
    def _values(self) -> list[tuple[Value, int]]:
        locale = self._reading.sample.expectation.locale
        return [(one, turn) for text, turn in self.texts for one in flat(values_of(text, locale))]

    @once
    def said_numbers(self) -> dict[int, int]:
        numbers: dict[int, int] = {}
        for value, turn in self._values:
            for reading in value.readings:
                numbers.setdefault(reading, turn)
        for text, turn in self.texts:
            for word in NUMBER_WORDS.keys() & tokens_of(text):
                numbers.setdefault(NUMBER_WORDS[word] * SCALE, turn)
        return numbers

    @once
    def moments(self) -> dict[tuple[int | None, int | None], list[tuple[Moment, int]]]:
        """What was said, by month and day; times of day apart."""
        first: dict[Moment, int] = {}
        for value, turn in self._values:
            for moment in value.moments:
                first.setdefault(moment, turn)
        found: dict[tuple[int | None, int | None], list[tuple[Moment, int]]] = {}
        for moment, turn in first.items():
            known = found.setdefault((moment.month, moment.day), [])
            if len(known) < MANY:
                known.append((moment, turn))
        return found

    @once
    def days(self) -> dict[int, int]:
        """Dates that were said or served; those without a year in each year that was named."""
        known = [(one, turn) for found in self.moments.values() for one, turn in found]
        for found in self.records.moments.values():
            known += [(one, field.record.served.turn or 0) for one, field in found]
        years = sorted({one.year for one, _ in known if one.year is not None and one.has_day})
        days: dict[int, int] = {}
        for moment, turn in known:
            for year in years[-3:] if moment.year is None else (moment.year,):
                day = ordinal_of(moment._replace(year=year))
                if day is not None:
                    days[day] = min(turn, days.get(day, turn))
        return days

    @once
    def days_away(self) -> dict[int, int]:
        """How far from a day that was named the users said that they meant."""
        found: dict[int, int] = {}
        for text, turn in self.of_users:
            for days, words in _DAYS_AWAY:
                if words.search(text):
                    found.setdefault(days, turn)
        return found

    @once
    def weekdays(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for text, turn in self.of_users:
            for match in _WEEKDAYS.finditer(text):
                found.setdefault((match.lastindex or 1) - 1, turn)
        return found

    @once
    def any_day(self) -> int | None:
        return min((turn for text, turn in self.of_users if _ANY_DAY.search(text)), default=None)

    @once
    def names(self) -> list[tuple[str, int]]:
        """Capitalised words of users, for what is short for them."""
        found: dict[str, int] = {}
        for text, turn in self.of_users:
            for name in _PROPER.findall(text):
                found.setdefault(re.sub(r"\W", "", name).casefold(), turn)
        return list(found.items())[-MANY:]

    @once
    def amounts(self) -> dict[int, int]:
        """Numbers of results with decimals: few others are made of two of them by chance."""
        found: dict[int, int] = {}
        for number, fields in self.records.numbers.items():
            if number % SCALE and len(found) < MANY:
                found[number] = min(field.record.served.turn or 0 for field in fields)
        return found

    @once
    def proposed(self) -> dict[int, int]:
        """Numbers that the model itself named in a turn that the user replied to, or worked out
        in so many words."""
        replied = sorted({said.turn for said in self._reading.trace.said})
        values = self._reading.grounder.values
        right = find_equations(self._reading.text, values)
        found: dict[int, int] = {}
        for place, value in enumerate(values):
            turn = self._reading.turn_at(value.start)
            if turn is None:
                continue
            at = bisect_left(replied, turn)
            if place in right and right[place].holds:
                found.setdefault(value.readings[0], turn)
            elif at < len(replied):
                for reading in value.readings:
                    found.setdefault(reading, replied[at])
        return found


def ordinal_of(moment: Moment) -> int | None:
    if moment.year is None or moment.month is None or moment.day is None:
        return None
    try:
        return date(moment.year, moment.month, moment.day).toordinal()
    except (ValueError, OverflowError):
        return None


def place_of(call: int, path: str) -> str:
    return f"call {call} {path or '/'}" if call >= 0 else f"the prompt {path or '/'}"


_NEIGHBOURS = 8  # numbers on either side that are looked at for the nearest


class NearestLeaf:
    """The leaf whose number or day comes nearest to one that no leaf has."""

    def __init__(self, index: RecordIndex) -> None:
        self._index = index

    def find(self, value: Value, turn: int | None) -> Field | None:
        if value.kind == "number" and value.readings:
            return _closest(value.readings[0], self._numbers, self._index.numbers, turn)
        days = [day for moment in value.moments if (day := ordinal_of(moment)) is not None]
        return _closest(days[0], self._dates, self._days, turn) if days else None

    @once
    def _numbers(self) -> list[int]:
        return sorted(self._index.numbers)

    @once
    def _dates(self) -> list[int]:
        return sorted(self._days)

    @once
    def _days(self) -> dict[int, list[Field]]:
        days: dict[int, list[Field]] = {}
        for moments in self._index.moments.values():
            for moment, field in moments:
                day = ordinal_of(moment)
                if day is not None:
                    days.setdefault(day, []).append(field)
        return days


def _closest(
    wanted: int, ordered: list[int], leaves: Mapping[int, list[Field]], turn: int | None
) -> Field | None:
    at = bisect_left(ordered, wanted)
    around = ordered[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS]
    for place in sorted(around, key=lambda place: abs(place - wanted)):
        for field in leaves[place]:
            if field.counts_for(turn) and not field.echo:
                return field
    return None
