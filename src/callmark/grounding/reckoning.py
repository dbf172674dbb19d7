"""Days and times that lie so many days, months or minutes from others: deadlines before an end,
ends after a start, and how far two of them lie apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from itertools import combinations, islice
from typing import NamedTuple

from callmark.grounding.dates import Moment
from callmark.grounding.match import Said
from callmark.grounding.numbers import SCALE
from callmark.grounding.reading import convert, dimension_of, read_leaf, unit_of_key
from callmark.grounding.record_tree import (
    Field,
    RecordIndex,
    ResultRecord,
    key_stems,
    key_words,
    stem,
)
from callmark.grounding.text import once
from callmark.grounding.values import Value

MOST_FIELDS = 60  # of the records that are looked through
MOST_BASES = 12
MOST_TIMES = 5  # of one record that are set against each other
MOST_IN_COLUMN = 4  # times under one key; more lie any number of minutes apart
LONGEST_TEXT = 600  # characters of a text of a result in which a term may be named
HOURS_A_DAY = 24
A_DAY = HOURS_A_DAY * 60
LIKELY = 0.1  # days or minutes that may be expected to come out by chance
_TERMS = {
    unit: (kind, factor)
    for words, kind, factor in (
        ("day days tag tage tagen día días dia dias jour jours night nights", "days", 1),
        ("week weeks woche wochen semana semanas semaine semaines", "days", 7),
        ("month months monat monate monaten mes meses mois", "months", 1),
        ("year years jahr jahre jahren año años an ans année années", "months", 12),
    )
    for unit in words.split()
}
_SHORT_TIMES = frozenset("s sec secs second seconds min mins minute minutes".split())
_HOURS = frozenset("hour hours hrs stunde stunden hora horas heure heures".split())
_WORD = re.compile(r"[^\W\d_]{3,}")
_TERM = re.compile(  # also both ends of `5 to 7 days`
    r"(?<![\w.,])(\d{1,3})(?:\s?(?:to|or|and|bis|oder|und|a|o|y|à|ou|et|[–-])\s?(\d{1,3}))?"
    r"[\s\u00a0-](?:(?:business|calendar|working|full)[\s-])?([^\W\d_]{2,8})"
)
WINDOW = 31  # days around one that are looked at
MOST_CLOSE = 1  # of them may be reached where no word says that the day was reckoned
# What is said of days that lie so far from others.
_IS_TERM = re.compile(
    r"\b(?:by|until|till|due|deadline|expir\w+|valid|renew\w*|within|latest|later|earlier|overdue"
    r"|after|before|ends?|ending|runs?\sout|last|next|previous|prior|following|notice|from\snow|ago"
    r"|days?|weeks?|months?|years?|nights?|old|since|start\w*|begin\w*|return\w*|deliver\w*|back|arriv\w*"
    r"|bis|frist|fällig\w*|spätestens|nach|vor|ab|später|früher|verlänger\w*|läuft|tage?n?|wochen?"
    r"|monate?n?|jahre?n?|endet|nächste\w*|ankunft|folgende\w*|gültig"
    r"|hasta|antes|vence\w*|plazo|después|caduca\w*|válid\w*|d[ií]as?|semanas?|mes(?:es)?|años?"
    r"|avant|jusqu\w*|échéance|expire\w*|après|dès|valable|jours?|semaines?|mois|ans?)\b",
    re.IGNORECASE,
)
_NUMBER_KEYS = frozenset("notice term period validity window frist plazo délai delai".split())


class Around(NamedTuple):
    """What stands around a day or time: days and times of its sentence, and those before it; the
    words of its sentence, and of its line; lengths of time near it, in minutes."""

    beside: list[Moment]
    before: list[Moment]
    sentence: str
    text: str
    spans: list[int]


class Term(NamedTuple):
    kind: str
    number: int


def terms_in(text: str) -> Iterator[Term]:
    """`60 days`, `a 12-month term`."""
    for found in _TERM.finditer(text):
        unit = found[3].casefold()
        kind, factor = _TERMS.get(unit, ("", 0))
        for number in map(int, filter(None, (found[1], found[2]))):
            if kind:
                yield Term(kind, factor * number)
            elif unit in _HOURS and number % HOURS_A_DAY == 0:  # `48 hours before`
                yield Term("days", number // HOURS_A_DAY)


def _terms_of(field: Field) -> Iterator[Term]:
    """`notice_days: 60`, and what a short text says."""
    if isinstance(field.value, str):
        yield from islice(terms_in(field.value[:LONGEST_TEXT]), 4)
    elif field.number is not None and field.number % SCALE == 0:
        words = key_words(field.key)
        known = next((_TERMS[word] for word in words if word in _TERMS), None)
        if known is None and not _NUMBER_KEYS.isdisjoint(words):
            known = ("days", 1)
        if known is not None and 0 < field.number <= 999 * SCALE:
            yield Term(known[0], known[1] * (field.number // SCALE))


def _shifted(day: date, term: Term, sign: int) -> date | None:
    try:
        if term.kind == "days":
            return day + timedelta(days=sign * term.number)
        months = day.year * 12 + day.month - 1 + sign * term.number
        first = date(months // 12, months % 12 + 1, 1)
        last = date((months + 1) // 12, (months + 1) % 12 + 1, 1) - timedelta(days=1)
        return first.replace(day=min(day.day, last.day))
    except (ValueError, OverflowError):
        return None


def _dates_of(moments: Iterable[Moment], years: Iterable[int]) -> Iterator[date]:
    for one in moments:
        if not one.has_day:
            continue
        for year in (one.year,) if one.year else tuple(years):
            try:
                yield date(year, one.month or 1, one.day or 1)
            except ValueError:
                continue


def _moments_of(field: Field) -> list[Moment]:
    if not isinstance(field.value, str) or len(field.value) > LONGEST_TEXT:
        return []
    return [one.moments[0] for one in read_leaf(field.value) if one.moments]


class Reckoning:
    """One answer: the days, times and terms that others may be reckoned from."""

    def __init__(self, index: RecordIndex, said: Said) -> None:
        self._index = index
        self._said = said

    def day(self, wanted: Moment, near: Around, records: list[ResultRecord]) -> str | None:
        """First from what is at hand, then from all that there is, if that is little. A term that
        its own sentence names leaves no other; nor does a day, unless a term stands beside it:
        `5 to 7 days, so between December 8 and 10`."""
        own = [field for record in records for field in record.fields[:MOST_FIELDS]]
        named, told = list(_dates_of(near.beside, self._years)), list(terms_in(near.sentence))
        days = named or list(
            _dates_of([*near.before, *(m for one in own for m in _moments_of(one))], self._years)
        )
        terms = told or [*terms_in(near.text), *(term for one in own for term in _terms_of(one))]
        is_told = bool(told) or _IS_TERM.search(near.sentence) is not None
        close = WINDOW if is_told else MOST_CLOSE
        found = self._reach(wanted, days, terms if told else [*terms, *self._terms], close)
        if found is not None or (named and not told):
            return found
        return self._reach(wanted, [*days, *self._days], terms, close)

    def _reach(
        self, wanted: Moment, days: list[date], terms: list[Term], most_close: int
    ) -> str | None:
        """`most_close` days around it may be reached as well: where days lie close together, and
        terms are short, any other is so far from one of them."""
        days, terms = list(dict.fromkeys(days)), list(dict.fromkeys(terms))
        if 4 * len(days) * len(terms) > LIKELY * 366 * 4:
            return None
        reached: set[date] = set()
        found: tuple[date, str] | None = None
        for day in days:
            for term in terms:
                for sign in (-1, 1):
                    other = _shifted(day, term, sign)
                    if other is None:
                        continue
                    reached.add(other)
                    if found is None and _is_day(wanted, other):
                        way = "before" if sign < 0 else "after"
                        found = other, f"{term.number} {term.kind} {way} {day.isoformat()}"
        if found is None:
            return None
        close = sum(abs((other - found[0]).days) <= WINDOW // 2 for other in reached)
        return found[1] if close <= most_close else None

    @once
    def _years(self) -> tuple[int, ...]:
        found = sorted(int(one) for one in self._index.years if one.isdecimal())
        return tuple(found[-3:])

    @once
    def _days(self) -> list[date]:
        moments = [
            moment
            for field in self._index.tree.fields[: 4 * MOST_FIELDS]
            for moment in _moments_of(field)
        ]
        days = list(dict.fromkeys(_dates_of(moments, ())))
        return [*self._days_said, *(days if len(days) <= MOST_BASES else ())]

    @once
    def _days_said(self) -> list[date]:
        _, moments = self._said.known()
        days = _dates_of((one for found in moments.values() for one, _ in found), self._years)
        return list(dict.fromkeys(days))[:MOST_BASES]

    @once
    def _terms(self) -> list[Term]:
        """Those of the results and of what was said, where they are few."""
        self._said.holds_key("", None)  # now its texts are known
        found = [
            term
            for field in self._index.tree.fields[: 4 * MOST_FIELDS]
            for term in _terms_of(field)
        ]
        found += [term for _, text in self._said.texts for term in terms_in(text)]
        found = list(dict.fromkeys(found))
        return found if len(found) <= MOST_BASES else []

    def days_apart(self, number: int, near: Around, records: list[ResultRecord]) -> bool:
        """Does a day of the answer, of the records or of the user lie so many from another?"""
        own = [field for record in records for field in record.fields[:MOST_FIELDS]]
        words = {stem(word) for word in _WORD.findall(near.sentence)}
        told = [one for one in own if not words.isdisjoint(key_stems(one.key)) and _moments_of(one)]
        stated = near.beside or near.before
        first = list(dict.fromkeys(_dates_of(stated, self._years)))[:MOST_BASES]
        told = told if len(told) > 1 or first else own
        held = list(_dates_of((m for one in told or own for m in _moments_of(one)), self._years))
        pool = list(dict.fromkeys([*first, *held, *([] if told else self._days_said)]))
        pool = pool[: 2 * MOST_BASES]
        apart = {abs((one - other).days) for one in first or pool for other in pool}
        close = [one for one in apart if number <= 2 * one <= 4 * number]
        return number in apart and len(close) <= max(2, number // 3)

    def time(self, wanted: Moment, near: Around, records: list[ResultRecord]) -> str | None:
        own = [field for record in records for field in record.fields[:MOST_FIELDS]]
        times = [one for one in near.beside if one.hour is not None]
        if not times:
            times = [one for one in near.before if one.hour is not None]
            times += [one for field in own for one in _moments_of(field) if one.hour is not None]
        bases = {(one.hour or 0) * 60 + (one.minute or 0) for one in times}
        minutes = set(near.spans)
        if not minutes:
            minutes = {one for field in own for one in _minutes_of(field)} | self._minutes
        if 2 * len(bases) * len(minutes) > LIKELY * A_DAY:
            return None
        goal = (wanted.hour or 0) * 60 + (wanted.minute or 0)
        for base in sorted(bases):
            for span in sorted(minutes):
                if goal in ((base + span) % A_DAY, (base - span) % A_DAY):
                    return f"{span} minutes from {base // 60}:{base % 60:02}"
        return None

    @once
    def _minutes(self) -> set[int]:
        found = {
            one
            for field in self._index.tree.fields[: 4 * MOST_FIELDS]
            for one in _minutes_of(field)
        }
        return found if len(found) <= 3 else set()

    def seconds_apart(self, seconds: int) -> bool:
        """Two times with seconds, such as those of a race."""
        times = sorted(self._clock)
        close = 0
        is_found = False
        for at, one in enumerate(times):
            for other in times[at + 1 :]:
                apart = other - one
                close += seconds <= 2 * apart <= 4 * seconds
                is_found = is_found or apart == seconds
        return is_found and close <= LIKELY * 2 * seconds

    def minutes_apart(self, minutes: int, records: list[ResultRecord]) -> bool:
        """From one time of a record to another, over midnight if neither has its day."""
        for record in records[:MOST_BASES]:
            moments = [one for field in record.fields[:MOST_FIELDS] for one in _moments_of(field)]
            times = [one for one in moments if one.hour is not None]
            if len(times) <= MOST_TIMES:
                for one, other in combinations(times, 2):
                    if minutes in _minutes_between(one, other):
                        return True
        return minutes in self._apart_in_columns

    @once
    def _apart_in_columns(self) -> frozenset[int]:
        """Between the times that few records have under one key: `dep` of the old flight and of
        the new one."""
        columns: dict[str, list[Moment]] = {}
        for field in self._index.tree.fields[: 4 * MOST_FIELDS]:
            for one in _moments_of(field):
                if one.hour is not None and one.has_day:
                    columns.setdefault(field.key, []).append(one)
        return frozenset(
            minutes
            for times in columns.values()
            if len(times) <= MOST_IN_COLUMN
            for one, other in combinations(times, 2)
            for minutes in _minutes_between(one, other)
        )

    def years_apart(self, years: int) -> bool:
        """Between two years that the results name, or the birthdays of one in them."""
        known = [int(one) for one in self._index.years if one.isdecimal()][:MOST_TIMES]
        return any(abs(one - other) in (years, years + 1) for one, other in combinations(known, 2))

    def lasts(self, number: int) -> bool:
        """`21:30` of 1290 seconds, `1:45` of 105 minutes."""
        fields = self._index.numbers.get(number * SCALE, ())
        return any(not _SHORT_TIMES.isdisjoint(key_words(field.key)[-1:]) for field in fields)

    @once
    def _clock(self) -> set[int]:
        found = {
            (one.hour or 0) * 3600 + (one.minute or 0) * 60 + one.second
            for field in self._index.tree.fields[: 4 * MOST_FIELDS]
            for one in _moments_of(field)
            if one.second is not None and not one.has_day
        }
        return found if len(found) <= 2 * MOST_BASES else set()


def _minutes_between(one: Moment, other: Moment) -> tuple[int, ...]:
    apart = 60 * ((other.hour or 0) - (one.hour or 0)) + (other.minute or 0) - (one.minute or 0)
    days = [next(_dates_of((moment,), ()), None) for moment in (one, other)]
    if days[0] is not None and days[1] is not None:
        return (abs(apart + A_DAY * (days[1] - days[0]).days),)
    return (apart % A_DAY, -apart % A_DAY)


def _minutes_of(field: Field) -> Iterator[int]:
    number, unit = field.number, unit_of_key(key_words(field.key))
    if number and unit and dimension_of(unit) == "time":
        minutes = convert(number, unit, "min")
        if minutes and minutes % SCALE == 0 and minutes // SCALE < A_DAY:
            yield minutes // SCALE


def minutes_said(value: Value) -> int | None:
    if not value.readings or not value.unit or dimension_of(value.unit) != "time":
        return None
    minutes = convert(abs(value.readings[0]), value.unit, "min")
    return minutes // SCALE if minutes and minutes % SCALE == 0 else None


def _is_day(wanted: Moment, day: date) -> bool:
    return (
        wanted.month == day.month
        and wanted.day == day.day
        and (wanted.year is None or wanted.year == day.year)
    )
