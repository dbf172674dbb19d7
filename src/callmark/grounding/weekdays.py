"""The day of the week of a date, where an answer names both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from callmark.grounding.dates import Moment
from callmark.grounding.values import Value

_NAMES = (
    ("Monday Mon Montag lunes lundi", "Monday"),
    ("Tuesday Tues Tue Dienstag martes mardi", "Tuesday"),
    ("Wednesday Wed Mittwoch miércoles mercredi", "Wednesday"),
    ("Thursday Thurs Thur Thu Donnerstag jueves jeudi", "Thursday"),
    ("Friday Fri Freitag viernes vendredi", "Friday"),
    ("Saturday Sat Samstag Sonnabend sábado samedi", "Saturday"),
    ("Sunday Sun Sonntag domingo dimanche", "Sunday"),
)
_DAYS = {name.casefold(): day for day, (names, _) in enumerate(_NAMES) for name in names.split()}
_ANY = "|".join(sorted(_DAYS, key=len, reverse=True))
_BEFORE = re.compile(
    rf"(?<!\w)(?P<day>{_ANY})\.?\*{{0,2}},?\s\*{{0,2}}(?:(?:the|on|den|der|dem|am|el|le)\s)?$", re.I
)
# `May 17 (Friday)`, `May 17, a Friday`; in `May 17, Friday's menu` the day is another matter.
_AFTER = re.compile(rf"\s?(?:\(|,\s(?:an?\s)?)(?P<day>{_ANY})\.?(?=[),.;:!?]|\s*$)", re.I | re.M)
YearsOf = Callable[[Moment], frozenset[int]]  # in which results know this day and month
LONGEST = 22  # characters before a date that may name its day


class DayOfWeek(NamedTuple):
    """A date with its day: the one that is named, and the one that it is."""

    start: int
    end: int
    named: int
    actual: int

    @property
    def expected(self) -> str:
        return _NAMES[self.actual][1]


def find_days(text: str, values: Iterable[Value], years_of: YearsOf) -> Iterator[DayOfWeek]:
    """Every date of the text that stands beside a day of the week and whose year is known."""
    for value in values:
        if value.kind != "moment" or not value.moments or not value.moments[0].has_day:
            continue
        window = max(0, value.start - LONGEST)
        before = _BEFORE.search(text[window : value.start])
        found = before or _AFTER.match(text, value.end)
        if found is None:
            continue
        actual = _days_of(value.moments[0], years_of)
        if len(actual) != 1:
            continue
        start = window + before.start() if before else value.start
        end = value.end if before else found.end("day")
        yield DayOfWeek(start, end, _DAYS[found["day"].casefold()], actual.pop())


def _days_of(moment: Moment, years_of: YearsOf) -> set[int]:
    known = years_of(moment) if moment.year is None else (moment.year,)
    return {
        day
        for year in known
        if (day := _day_of(year, moment.month or 0, moment.day or 0)) is not None
    }


@lru_cache(maxsize=1024)
def _day_of(year: int, month: int, day: int) -> int | None:
    try:
        return date(year, month, day).weekday()
    except ValueError:
        return None
