"""Days of the week: opening hours that an answer states against a record that has hours for each
day, and dates that are named with their day."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from callmark.grounding.dates import Moment
from callmark.grounding.record_tree import Field, RecordTree, ResultRecord
from callmark.grounding.spans import Outline, Span
from callmark.grounding.values import Value

DAY = 24 * 60
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS: dict[str, int] = {
    name: number for number, day in enumerate(DAYS) for name in (day, f"{day}s", day[:3])
} | {"tues": 1, "weds": 2, "thur": 3, "thurs": 3}
_NAME = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_TIME = r"(?:(\d{1,2})(?::(\d{1,2}))?\s*([ap])?\.?(?:m\b\.?)?|(noon|midnight))"
_RANGE = re.compile(
    rf"\b(?:from\s+|between\s+)?{_TIME}\s*(?:to|until|till|through|and|-|–|—)\s*{_TIME}"
    r"(?!\s*(?:stars?|%|minutes?|people|\w*\d))",
    re.IGNORECASE,
)
_UNTIL = re.compile(rf"\b(?:until|till|closes? at|closing at)\s+{_TIME}", re.IGNORECASE)
_DAY_SET = re.compile(
    r"\b(?:(every\s*day|daily|(?:seven|7) days a week|all week|each day)|(weekdays?)|(weekends?)"
    rf"|({_NAME})\.?\s*(?:to|through|thru|until|till|-|–|—)\s*({_NAME})\b|({_NAME}))\b",
    re.IGNORECASE,
)
_CLOSED = re.compile(r"\bclosed\b", re.IGNORECASE)
_OPEN = re.compile(r"\b(?:opens?|operat\w+|hours?)\b", re.IGNORECASE)
_OF_SOMETHING_ELSE = re.compile(
    r"happy hour|brunch|breakfast is|lunch is|live music|delivery hours", re.IGNORECASE
)
_EXCEPT = re.compile(
    r"\b(?:except\w*|extend\w*|longer|later|earlier|but|other than|not|closed|var(?:y|ying|ies))\b",
    re.IGNORECASE,
)
_HOURS = re.compile(r"\s*(\d{1,2}):(\d{1,2})\s*[-–]\s*(\d{1,2}):(\d{1,2})\s*")
_NOT_ALL = re.compile(
    r"\b(?:except\w*|but|other than|not|closed|most|var(?:y|ying|ies))\b", re.IGNORECASE
)
_LONGER = re.compile(
    r"\b(?:extended|longer|later)\s+(?:\w+\s+)?hours?\s+(?:on|during|at)\s+(?:the\s+)?(?=\w)",
    re.IGNORECASE,
)
FURTHEST = 30  # characters between `closed` and its days

Times = tuple[int | None, int | None]  # minutes of the day; None: not said


class Wrong(NamedTuple):
    """A statement about hours that the record denies; `field` is the day that shows it, None if the
    record has no such day."""

    start: int
    end: int
    record: ResultRecord
    field: Field | None
    because: str


class _Event(NamedTuple):
    """A set of days, a range of times in each way in which it can be read, or `closed`."""

    start: int
    end: int
    days: frozenset[int] = frozenset()
    times: tuple[Times, ...] = ()

    @property
    def kind(self) -> str:
        return "days" if self.days else "times" if self.times else "closed"


class Schedule:
    """The hours of one record, by day."""

    def __init__(self, record: ResultRecord) -> None:
        self.record = record
        self.hours: dict[int, tuple[Field, tuple[int, int]]] = {}
        for field in record.fields:
            day, found = _NUMBERS.get(field.key.casefold()), _hours_of(field)
            if day is not None and found is not None:
                self.hours[day] = (field, found)
        # `0:0-0:0` is a day on which nobody is there, unless every day is written so.
        known = [times for _, times in self.hours.values()]
        self._can_be_closed = any(times != (0, 0) for times in known)

    def is_closed(self, day: int) -> bool:
        if day not in self.hours:
            return True
        return self._can_be_closed and self.hours[day][1] == (0, 0)

    def length(self, day: int) -> int:
        """Minutes; open until after midnight is longer than until before it."""
        if self.is_closed(day):
            return 0
        start, end = self.hours[day][1]
        return (end - start) % DAY or DAY

    def keeps(self, day: int, stated: Sequence[Times]) -> bool:
        start, end = self.hours[day][1]
        return any(_same(start, a) and _same(end, b) for a, b in stated)


def schedules_of(tree: RecordTree) -> list[Schedule]:
    if _NUMBERS.keys().isdisjoint(map(str.casefold, tree.keys)):
        return []
    return [
        schedule
        for record in tree.records
        if any(field.key.casefold() in _NUMBERS for field in record.fields)
        and len((schedule := Schedule(record)).hours) > 1
    ]


def wrong_hours(outline: Outline, schedule: Schedule) -> Iterator[Wrong]:
    for sentence in outline.sentences:
        if not _OF_SOMETHING_ELSE.search(outline.text, *sentence):
            yield from _check(outline.text, sentence, schedule)
            yield from _longer_days(outline.text, sentence, schedule)


def _longer_days(text: str, sentence: Span, schedule: Schedule) -> Iterator[Wrong]:
    """`with extended hours on weekends`: longer than on the other days."""
    for found in _LONGER.finditer(text, *sentence):
        days = _DAY_SET.match(text, found.end(), sentence[1])
        if days is None:
            continue
        following = _DAY_SET.finditer(text, found.end(), min(sentence[1], days.end() + FURTHEST))
        named = frozenset().union(*map(_day_set, following))
        others = [schedule.length(day) for day in range(7) if day not in named]
        longest = max((schedule.length(day) for day in named), default=0)
        if others and longest <= max(others):
            yield _wrong(found.start(), days.end(), schedule, min(named))


def _check(text: str, sentence: Span, schedule: Schedule) -> Iterator[Wrong]:
    events = sorted(_events(text, sentence))
    if not events:
        return
    if all(event.kind == "days" for event in events):
        if _OPEN.search(text, *sentence):
            yield from _open_days(text, sentence, events, schedule)
        return
    blocks = _blocks(events)
    for at, block in enumerate(blocks):
        if block[0].kind == "days":
            continue
        days = _days_of(blocks, at)
        if days is None:
            if block[0].kind == "times" and _OPEN.search(text, *sentence):
                yield from _some_day(block, schedule)
        else:
            yield from _said_days(text, sentence, events, block, days, schedule)


def _open_days(
    text: str, sentence: Span, events: Sequence[_Event], schedule: Schedule
) -> Iterator[Wrong]:
    """`open seven days a week`."""
    for event in events:
        closed = sorted(day for day in event.days if schedule.is_closed(day))
        around = text[max(sentence[0], event.start - 40) : min(sentence[1], event.end + 25)]
        if closed and not _NOT_ALL.search(around):
            yield _wrong(event.start, event.end, schedule, closed[0])


def _some_day(block: Sequence[_Event], schedule: Schedule) -> Iterator[Wrong]:
    """Times without a day have to be those of some day."""
    for event in block:
        if not any(schedule.keeps(day, event.times) for day in schedule.hours):
            day = min(schedule.hours)
            yield _wrong(event.start, event.end, schedule, day)


def _said_days(
    text: str,
    sentence: Span,
    events: Sequence[_Event],
    block: Sequence[_Event],
    days: Sequence[_Event],
    schedule: Schedule,
) -> Iterator[Wrong]:
    start = min(event.start for event in (*block, *days))
    end = max(event.end for event in (*block, *days))
    named = frozenset().union(*(event.days for event in days))
    if _EXCEPT.search(text, end, sentence[1]):  # `, except on Fridays`
        named = named.difference(*(event.days for event in events if event.start >= end))
    stated = [times for event in block for times in event.times]
    for day in sorted(named):
        if block[0].kind == "closed":
            is_wrong = not schedule.is_closed(day)
        else:
            is_wrong = schedule.is_closed(day) or not schedule.keeps(day, stated)
        if is_wrong:
            yield _wrong(start, end, schedule, day)
            return


def _wrong(start: int, end: int, schedule: Schedule, day: int) -> Wrong:
    name = DAYS[day].capitalize()
    if day not in schedule.hours:
        return Wrong(start, end, schedule.record, None, f"there are no hours for {name}")
    field = schedule.hours[day][0]
    return Wrong(start, end, schedule.record, field, f"{name} is {field.value}")


def _events(text: str, sentence: Span) -> Iterator[_Event]:
    for found in _DAY_SET.finditer(text, *sentence):
        yield _Event(found.start(), found.end(), days=_day_set(found))
    ranges: list[Span] = []
    for found in _RANGE.finditer(text, *sentence):
        times = _range(found)
        if times:
            ranges.append(found.span())
            yield _Event(found.start(), found.end(), times=times)
    for found in _UNTIL.finditer(text, *sentence):
        hour, minute, half, word = found.groups()
        end = _minutes(hour, minute, half, word)
        inside = any(start <= found.start() < stop for start, stop in ranges)
        if end is not None and not inside and (minute or half or word):
            yield _Event(found.start(), found.end(), times=((None, end),))
    for found in _CLOSED.finditer(text, *sentence):
        yield _Event(found.start(), found.end())


def _day_set(found: re.Match[str]) -> frozenset[int]:
    every, week, weekend, first, last, single = found.groups()
    if every:
        return frozenset(range(7))
    if week or weekend:
        return frozenset(range(5)) if week else frozenset((5, 6))
    if single:
        return frozenset((_NUMBERS[single.casefold()],))
    start, stop = _NUMBERS[first.casefold()], _NUMBERS[last.casefold()]
    return frozenset((start + step) % 7 for step in range((stop - start) % 7 + 1))


def _range(found: re.Match[str]) -> tuple[Times, ...]:
    """`9 to 5 pm` may begin in the morning or in the afternoon; `3 to 5` is no time at all."""
    hour, minute, half, word, last_hour, last_minute, last_half, last_word = found.groups()
    if not (minute or half or word or last_minute or last_half or last_word):
        return ()
    start = _minutes(hour, minute, half, word)
    end = _minutes(last_hour, last_minute, last_half, last_word)
    if start is None or end is None:
        return ()
    if hour and not half and last_half and int(hour) <= 12:
        return ((start, end), (_minutes(hour, minute, last_half, None), end))
    return ((start, end),)


def _minutes(
    hour: str | None, minute: str | None, half: str | None, word: str | None
) -> int | None:
    if word:
        return 12 * 60 if word.casefold() == "noon" else DAY
    hours, minutes = int(hour or 0), int(minute or 0)
    if hours > 24 or minutes > 59:
        return None
    if (half or "").casefold() == "p" and hours < 12:
        hours += 12
    elif (half or "").casefold() == "a" and hours == 12:
        hours = 0
    return hours * 60 + minutes


def _hours_of(field: Field) -> tuple[int, int] | None:
    found = _HOURS.fullmatch(field.value) if isinstance(field.value, str) else None
    if found is None:
        return None
    first, first_minute, last, last_minute = map(int, found.groups())
    return first * 60 + first_minute, last * 60 + last_minute


def _same(known: int, stated: int | None) -> bool:
    return stated is None or known % DAY == stated % DAY


def _blocks(events: Sequence[_Event]) -> list[list[_Event]]:
    """Neighbours of one kind belong together: `Mondays, Tuesdays and Fridays`."""
    blocks: list[list[_Event]] = []
    for event in events:
        if blocks and blocks[-1][0].kind == event.kind != "closed":
            blocks[-1].append(event)
        else:
            blocks.append([event])
    return blocks


def _days_of(blocks: Sequence[Sequence[_Event]], at: int) -> Sequence[_Event] | None:
    """The days that times are said of: those before them if the sentence begins with days."""
    before = blocks[at - 1] if at and blocks[at - 1][0].kind == "days" else None
    after = blocks[at + 1] if at + 1 < len(blocks) and blocks[at + 1][0].kind == "days" else None
    if blocks[at][0].kind == "closed":
        days = after or before
        if days is None:
            return None
        gap = (
            days[0].start - blocks[at][0].end
            if days is after
            else blocks[at][0].start - days[-1].end
        )
        return days if gap <= FURTHEST else None
    if blocks[0][0].kind == "days" and before is not None:
        return before
    return after or before


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
        actual = _possible_weekdays(value.moments[0], years_of)
        if len(actual) != 1:
            continue
        start = window + before.start() if before else value.start
        end = value.end if before else found.end("day")
        yield DayOfWeek(start, end, _DAYS[found["day"].casefold()], actual.pop())


def _possible_weekdays(moment: Moment, years_of: YearsOf) -> set[int]:
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
