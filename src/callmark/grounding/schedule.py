"""Days of the week: opening hours that an answer states against a record that has hours for each
day, and dates that are named with their day."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from callmark.grounding.dates import FoundMoment, Moment, find_moments
from callmark.grounding.match import Said
from callmark.grounding.record_tree import Field, RecordIndex, RecordTree, ResultRecord
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import once
from callmark.grounding.values import Value

DAY = 24 * 60
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEK = range(7)
_NUMBERS: dict[str, int] = {
    name: number for number, day in enumerate(DAYS) for name in (day, f"{day}s", day[:3])
} | {"tues": 1, "weds": 2, "thur": 3, "thurs": 3}
DAY_KEYS = frozenset(_NUMBERS)  # in lower case; no record without one has hours for each day
_NAME = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_TIME = r"(?:(\d{1,2})(?::(\d{1,2}))?(?:\s*([ap])(?:\.?m\b\.?|(?!\w)))?|(noon|midnight))"
_RANGE = re.compile(
    rf"\b(?:from\s+|between\s+)?{_TIME}\s*(?:to|until|till|through|and|-|–|—)\s*{_TIME}"
    r"(?!\s*(?:stars?|%|minutes?|people|\w*\d))",
    re.IGNORECASE,
)
_ONE_TIME = re.compile(
    r"(?:\b(?:(?P<end>until|till|closes?(?:\s+at)?|closing(?:\s+time)?(?:\s+(?:at|of|is))?)"
    r"|(?P<start>opens?(?:\s+at)?|opening(?:\s+at)?|starting(?:\s+(?:at|from))?|beginning\s+at|from)"
    rf"|(?P<more>and|or|at))\s|\()\s*(?:at\s+)?{_TIME}(?!\s*(?:stars?|%|minutes?|people|\w*\d))",
    re.IGNORECASE,
)
_EVERY_DAY = (
    r"every\s*day|daily|(?:seven|7) days (?:a|per|each) week|(?:all|throughout the) week|each day"
    r"|all days"
)
_DAY_SET = re.compile(
    rf"\b(?:({_EVERY_DAY})|(weekdays?|weeknights?)|(weekends?)"
    rf"|({_NAME})\.?\s*(?:to|through|thru|until|till|-|–|—)\s*({_NAME})\b|({_NAME}))\b",
    re.IGNORECASE,
)
_OTHER_DAYS = re.compile(
    r"\b(?:(?P<rest>(?:the )?(?:rest of the week|(?:all )?(?:other|remaining) days))"
    r"|most (?:other )?days)\b",
    re.IGNORECASE,
)
_CLOSED = re.compile(
    r"\bclosed\b|\bclos(?:es|ing)(?= on\b)|(?:\bnot|n['’]t) open(?= on\b)", re.IGNORECASE
)
_OPEN = re.compile(r"\b(?:opens?|opening|operat\w+|hours?|clos(?:es?|ing))\b", re.IGNORECASE)
_OF_SOMETHING_ELSE = re.compile(
    r"happy hour|brunch|breakfast is|lunch is|live music|delivery hours", re.IGNORECASE
)
# `closing times between 9 pm and 10 pm`: no day is open for that hour.
_OF_TIMES = re.compile(
    r"\b(?:clos|open)ing\s(?:times?|hours)\s(?:\w+\s){0,2}(?:between|from)?\s*$", re.IGNORECASE
)
# `hours ranging from 9 am to 9 pm`: the earliest and the latest of several days.
_RANGING = re.compile(r"\b(?:rang|vary|span)(?:e|es|s|ing)?\s(?:\w+\s){0,2}$", re.IGNORECASE)
_EXCEPT = re.compile(
    r"\b(?:except\w*(?:\s(?:for|of|on))?|other than|apart from|aside from|excluding|besides"
    r"|but not(?: on)?)\s(?:on\s|every\s)?$",
    re.IGNORECASE,
)
# `with later closing times on Fridays`: then these days are not meant by what went before.
_APART = re.compile(
    r"\b(?:extended|longer|later|shorter|reduced|limited|earlier|different)\s(?:\w+\s){0,3}"
    r"(?:on|at|during|over|for)\s(?:the\s)?$",
    re.IGNORECASE,
)
_WHEN = re.compile(r"[\s,]*(?:\(|:|(?:when|where|which|with|until|till|it|they)\b)", re.IGNORECASE)
_EXTREME = re.compile(r"\b(?:earliest|latest|early as|late as)\s+(?:\w+\s+)?$", re.IGNORECASE)
_TOGETHER = re.compile(r"[\s,&/()+.]*(?:(?:and|or|on|from|also|plus|as well as)\b[\s,&/]*)*")
_BOTH_ENDS = re.compile(r"[\s,]*(?:and\s+)?(?:(?:it|they)\s+)?(?:then\s+)?", re.IGNORECASE)
_CHOICE = re.compile(r"\s*(?:or|/)\s*\d", re.IGNORECASE)
_HOURS = re.compile(r"\s*(\d{1,2}):(\d{1,2})\s*[-–]\s*(\d{1,2}):(\d{1,2})\s*")
_NOT_ALL = re.compile(r"\b(?:except\w*|but|other than|not|closed|most)\b", re.IGNORECASE)
_HOURS_OF = re.compile(r"\bhours\s(?:\w+\s)?$", re.IGNORECASE)  # `varying hours each day`
_LONGER = re.compile(
    r"\b(?:(?P<longer>(?:extended|longer|later)\s+(?:\w+\s+)?hours?|open\s+(?:longer|later))"
    r"|(?P<shorter>(?:shorter|reduced|limited)\s+hours?))"
    r"\s+(?:on|during|at|over)\s+(?:the\s+)?(?=\w)",
    re.IGNORECASE,
)
_VARIES = re.compile(
    r"\bhours\s+(?:that\s+)?(?:vary|varying|differ)\b|\bvarying\s+(?:opening\s+|operating\s+)?hours",
    re.IGNORECASE,
)
_BESIDE = re.compile(r"\s?[:(–—-]\s?")  # `Mon: closed`
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
    """A set of days, a range of times in each way in which it can be read, or `closed`. Days that
    are `excepted` are taken out of what is said of others; those that are not `known` are some."""

    start: int
    end: int
    kind: str
    days: frozenset[int] = frozenset()
    times: tuple[Times, ...] = ()
    excepted: bool = False
    known: bool = True
    loose: bool = False  # `weekdays`: those on which anybody is there
    left_out: bool = False  # by `except`, so that times beside them are those of the others


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
        self.times = {day: times for day, (_, times) in self.hours.items()}
        self._can_be_closed = any(times != (0, 0) for times in self.times.values())

    def is_closed(self, day: int) -> bool:
        if day not in self.hours:
            return True
        return self._can_be_closed and self.hours[day][1] == (0, 0)

    def are_apart(self, days: Iterable[int], others: Iterable[int], *, is_longer: bool) -> bool:
        """Is any of these days longer than the others mostly are, does it begin earlier or end
        later? Else the other way round."""
        times = Counter(self.times[day] for day in others if not self.is_closed(day))
        if not times:
            return True
        usual = times.most_common(1)[0][0]
        pairs = [((0, 0) if self.is_closed(day) else self.times[day], usual) for day in days]
        if not is_longer:
            pairs = [(second, first) for first, second in pairs]
        return any(_is_longer(*pair) for pair in pairs)

    def keeps(self, day: int, stated: Sequence[Times]) -> bool:
        start, end = self.hours[day][1]
        ends = [end, end + DAY // 2] if _is_doubtful(start, end) else [end]
        return any(_same(start, a) and any(_same(one, b) for one in ends) for a, b in stated)

    def may_close_at(self, value: Value) -> bool:
        """Half a day after what is written."""
        said = {(one.hour or 0) * 60 + (one.minute or 0) for one in value.moments if one.hour}
        return any(
            _is_doubtful(start, end) and end + DAY // 2 in said
            for start, end in self.times.values()
        )


def schedules_of(tree: RecordTree) -> list[Schedule]:
    return [
        schedule
        for record in tree.records
        if any(field.key.casefold() in _NUMBERS for field in record.fields)
        and len((schedule := Schedule(record)).hours) > 1
    ]


def wrong_hours(outline: Outline, schedule: Schedule) -> Iterator[Wrong]:
    for sentence in outline.sentences:
        if not _OF_SOMETHING_ELSE.search(outline.text, *sentence):
            yield from _span_of_hours(outline.text, sentence, schedule)
            yield from _check(outline.text, sentence, schedule)
            yield from _longer_days(outline.text, sentence, schedule)
            yield from _same_hours(outline.text, sentence, schedule)


def _longer_days(text: str, sentence: Span, schedule: Schedule) -> Iterator[Wrong]:
    """`with extended hours on weekends`: than on most other days."""
    for found in _LONGER.finditer(text, *sentence):
        days = _DAY_SET.match(text, found.end(), sentence[1])
        if days is None:
            continue
        following = _DAY_SET.finditer(text, found.end(), min(sentence[1], days.end() + FURTHEST))
        named = frozenset().union(*map(_day_set, following))
        others = [day for day in _WEEK if day not in named]
        if not schedule.are_apart(named, others, is_longer=bool(found["longer"])):
            yield _wrong(found.start(), days.end(), schedule, min(named))


def _span_of_hours(text: str, sentence: Span, schedule: Schedule) -> Iterator[Wrong]:
    """`hours ranging from 9 am to 9 pm`: on some day each of them."""
    for found in _RANGE.finditer(text, *sentence):
        before = text[max(sentence[0], found.start() - FURTHEST) : found.start()]
        if _RANGING.search(before):
            yield from _some_day(_Event(*found.span(), "times", times=_range(found)), schedule)


def _same_hours(text: str, sentence: Span, schedule: Schedule) -> Iterator[Wrong]:
    """`hours vary by day`, where every day has the same."""
    found = _VARIES.search(text, *sentence)
    if found and len(schedule.hours) == len(DAYS) and len(set(schedule.times.values())) == 1:
        yield _wrong(found.start(), found.end(), schedule, 0)


class _Said(NamedTuple):
    """Times, or that it is closed, and the days of which the sentence says so."""

    start: int
    end: int
    days: frozenset[int]
    times: tuple[Times, ...]
    is_closed: bool = False
    loose: bool = False


def _check(text: str, sentence: Span, schedule: Schedule) -> Iterator[Wrong]:
    events = sorted(_events(text, sentence))
    if not events:
        return
    is_of_opening = _OPEN.search(text, *sentence) is not None
    excepted = frozenset().union(*(one.days for one in events if one.excepted))
    closed, events = _closed_days(text, events)
    said, alone = _pairs(_blocks(text, events))
    said += closed
    fewest = [min((len(one.days) for one in said if day in one.days), default=0) for day in _WEEK]
    for one in said:
        wrong = _first_wrong(one, fewest, excepted, schedule)
        if wrong is not None:
            yield _wrong(one.start, one.end, schedule, wrong)
    if not is_of_opening:
        return
    without = excepted.union(*(one.days for one in closed))
    has_days = any(one.kind == "days" for one in events)
    for event in alone:
        if event.kind == "days" and event.known and not event.excepted:
            yield from _open_days(text, sentence, event, without, schedule)
        elif event.kind == "times" and not has_days:
            yield from _some_day(event, schedule)


def _first_wrong(
    one: _Said, fewest: Sequence[int], excepted: frozenset[int], schedule: Schedule
) -> int | None:
    """The first day that is not as stated. What is said of fewer days holds for these: `fewest`
    is how many days are named at least where a day is."""
    for day in sorted(one.days - excepted or one.days):
        if fewest[day] < len(one.days):
            continue
        if one.is_closed != schedule.is_closed(day):
            if one.loose and not all(map(schedule.is_closed, one.days)):
                continue
            return day
        if not one.is_closed and not schedule.keeps(day, one.times):
            return day
    return None


def _closed_days(text: str, events: Sequence[_Event]) -> tuple[list[_Said], list[_Event]]:
    """What is closed: the days right after the word, else those before it."""
    taken: set[int] = set()
    closed: list[_Said] = []
    for at, event in enumerate(events):
        if event.kind != "closed":
            continue
        after = list(range(at + 1, _end_of_run(text, events, at + 1)))
        before = [at - 1] if at and events[at - 1].kind == "days" else []
        while before and before[-1] and _are_one(text, events[before[-1] - 1], events[before[-1]]):
            before.append(before[-1] - 1)
        before.reverse()
        if after and events[after[0]].start - event.end > FURTHEST:
            after = []
        if before and event.start - events[before[-1]].end > FURTHEST:
            before = []
        if (after and events[after[0]].excepted) or (
            before and _BESIDE.fullmatch(text, events[before[-1]].end, event.start)
        ):
            after = []
        run = [place for place in after or before if place not in taken]
        taken.add(at)
        if run and all(events[place].known for place in run):
            taken.update(run)
            named = frozenset().union(*(events[place].days for place in run))
            first, last = min(at, run[0]), max(at, run[-1])
            closed.append(_Said(events[first].start, events[last].end, named, (), True))
    return closed, [event for at, event in enumerate(events) if at not in taken]


def _are_one(text: str, first: _Event, second: _Event) -> bool:
    """`Mondays, Tuesdays and Fridays`."""
    return (
        first.kind == second.kind == "days"
        and first.excepted == second.excepted
        and first.known
        and second.known
        and _stand_together(text, first.end, second.start)
    )


def _stand_together(text: str, start: int, end: int) -> bool:
    return end - start <= FURTHEST and _TOGETHER.fullmatch(text, start, end) is not None


def _end_of_run(text: str, events: Sequence[_Event], at: int) -> int:
    if at >= len(events) or events[at].kind != "days":
        return at
    while at + 1 < len(events) and _are_one(text, events[at], events[at + 1]):
        at += 1
    return at + 1


def _blocks(text: str, events: Sequence[_Event]) -> list[_Event]:
    """Neighbours that belong together: days that are listed, and times without days between."""
    blocks: list[_Event] = []
    for event in events:
        last = blocks[-1] if blocks else None
        if last is not None and _are_one(text, last, event):
            named = last.days | event.days
            blocks[-1] = last._replace(end=event.end, days=named, loose=False)
        elif last is not None and last.kind == event.kind == "times":
            gap = _BOTH_ENDS.fullmatch(text, last.end, event.start)
            blocks[-1] = last._replace(end=event.end, times=_joined(last, event, gap is not None))
        else:
            blocks.append(event)
    # `every day except Monday, from 5 pm on`: the times are those of the other days.
    return [one for one in blocks if not one.left_out or _WHEN.match(text, one.end)]


def _joined(first: _Event, second: _Event, is_near: bool) -> tuple[Times, ...]:
    """`opens at 9 and closes at 5` is one range; of two ranges either may be meant."""
    is_start, is_end = first.times[0][1] is None, second.times[0][0] is None
    if is_start and is_end and is_near:
        return tuple((start, end) for start, _ in first.times for _, end in second.times)
    return (*first.times, *second.times)


def _pairs(blocks: Sequence[_Event]) -> tuple[list[_Said], list[_Event]]:
    """Times and the days beside them, before or after: as many pairs as there can be, and of these
    the nearest. Also what stands alone."""
    best: list[tuple[int, int, bool]] = [(0, 0, False)]  # pairs, minus the gaps, is a pair
    for at, block in enumerate(blocks):
        found = (best[at][0], best[at][1], False)
        if at and {block.kind, blocks[at - 1].kind} == {"days", "times"}:
            gap = block.start - blocks[at - 1].end
            paired = (best[at - 1][0] + 1, best[at - 1][1] - gap, True)
            found = max(found, paired)
        best.append(found)
    said: list[_Said] = []
    alone: list[_Event] = []
    at = len(blocks)
    while at:
        if best[at][2]:
            first, second = blocks[at - 2], blocks[at - 1]
            days, times = (first, second) if first.kind == "days" else (second, first)
            if days.known:
                said.append(
                    _Said(first.start, second.end, days.days, times.times, loose=days.loose)
                )
            at -= 2
        else:
            alone.append(blocks[at - 1])
            at -= 1
    return said[::-1], alone[::-1]


def _open_days(
    text: str, sentence: Span, event: _Event, without: frozenset[int], schedule: Schedule
) -> Iterator[Wrong]:
    """`open seven days a week`."""
    closed = sorted(day for day in event.days - without if schedule.is_closed(day))
    around = text[max(sentence[0], event.start - 40) : min(sentence[1], event.end + 25)]
    is_of_hours = _HOURS_OF.search(text, max(sentence[0], event.start - FURTHEST), event.start)
    if closed and not is_of_hours and not _NOT_ALL.search(around):
        yield _wrong(event.start, event.end, schedule, closed[0])


def _some_day(event: _Event, schedule: Schedule) -> Iterator[Wrong]:
    """Times without a day have to be those of some days."""
    for part in (0, 1):
        stated = {times[part] for times in event.times}
        if None not in stated and not any(
            _same(known[part], one) for known in schedule.times.values() for one in stated
        ):
            yield _wrong(event.start, event.end, schedule, min(schedule.hours))
            return


def _wrong(start: int, end: int, schedule: Schedule, day: int) -> Wrong:
    name = DAYS[day].capitalize()
    if day not in schedule.hours:
        return Wrong(start, end, schedule.record, None, f"there are no hours for {name}")
    field = schedule.hours[day][0]
    return Wrong(start, end, schedule.record, field, f"{name} is {field.value}")


def _events(text: str, sentence: Span) -> Iterator[_Event]:
    days: list[_Event] = []
    named: list[frozenset[int]] = [frozenset()]  # by how many of the sets of days so far
    for found in _DAY_SET.finditer(text, *sentence):
        before = text[max(sentence[0], found.start() - FURTHEST) : found.start()]
        if days and _stand_together(text, days[-1].end, found.start()):
            left_out, excepted = days[-1].left_out, days[-1].excepted
        else:
            left_out = _EXCEPT.search(before) is not None
            excepted = left_out or _APART.search(before) is not None
        is_loose = bool(found[2] or found[3])
        event = _Event(
            *found.span(), "days", _day_set(found), (), excepted, loose=is_loose, left_out=left_out
        )
        days.append(event)
        named.append(named[-1] | days[-1].days)
    yield from days
    for found in _OTHER_DAYS.finditer(text, *sentence):
        so_far = named[bisect_left(days, found.span())]
        rest = frozenset(_WEEK) - so_far
        is_rest = found["rest"] is not None and bool(so_far) and bool(rest)
        yield _Event(*found.span(), "days", rest if is_rest else frozenset(), known=is_rest)
    yield from _times(text, sentence)
    for found in _CLOSED.finditer(text, *sentence):
        yield _Event(*found.span(), "closed")


def _times(text: str, sentence: Span) -> Iterator[_Event]:
    ranges = [found for found in _RANGE.finditer(text, *sentence) if _range(found)]
    starts = [found.start() for found in ranges]
    for found in ranges:
        before = text[max(sentence[0], found.start() - FURTHEST) : found.start()]
        is_of_all = _OF_TIMES.search(before) or _RANGING.search(before)
        if not is_of_all and not _CHOICE.match(text, found.end()):
            yield _Event(*found.span(), "times", times=_range(found))
    last: tuple[int, int] | None = None  # where a single time ended, and which end of the day it is
    for found in _ONE_TIME.finditer(text, *sentence):
        hour, minute, half, word = found.groups()[-4:]
        time = _minutes(hour, minute, half, word)
        at = bisect_left(starts, found.end())
        is_inside = at > 0 and ranges[at - 1].end() > found.start()
        before = text[max(sentence[0], found.start() - FURTHEST) : found.start()]
        if time is None or is_inside or not (minute or half or word) or _EXTREME.search(before):
            continue
        if found["end"] or found["start"]:
            part = 1 if found["end"] else 0
        elif at and (last is None or last[0] < ranges[at - 1].end()):
            part = 1  # `11 am to 9 pm (10 pm on Fridays)`
        elif last is not None:
            part = last[1]
        else:
            continue
        last = (found.end(), part)
        stated: Times = (None, time) if part else (time, None)
        yield _Event(*found.span(), "times", times=(stated,))


def _day_set(found: re.Match[str]) -> frozenset[int]:
    every, week, weekend, first, last, single = found.groups()
    if every:
        return frozenset(_WEEK)
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
    if not (half or last_half or word or last_word) and max(start, end) < DAY // 2:  # `9:30-5`
        return ((start, end), (start, end + DAY // 2), (start + DAY // 2, end + DAY // 2))
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


def _is_longer(times: tuple[int, int], other: tuple[int, int]) -> bool:
    """Or begins earlier, or ends later; midnight is the end of its day."""
    (start, end), (other_start, other_end) = times, other
    if (end - start) % DAY > (other_end - other_start) % DAY:
        return True
    return start != end and (start < other_start or (end or DAY) > (other_end or DAY))


def _is_doubtful(start: int, end: int) -> bool:
    """`7:0-10:30` of a bar may be half past ten at night."""
    return 0 < start < end < DAY // 2


def _same(known: int, stated: int | None) -> bool:
    return stated is None or known % DAY == stated % DAY


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
WEEKDAYS = frozenset(_DAYS)  # one of them is a word of every text that names a day
_ANY = "|".join(sorted(_DAYS, key=len, reverse=True))
_BEFORE = re.compile(
    rf"(?<!\w)(?P<day>{_ANY})\.?\*{{0,2}},?\s\*{{0,2}}(?:(?:the|on|den|der|dem|am|el|le)\s)?$", re.I
)
# `May 17 (Friday)`, `May 17, a Friday`; in `May 17, Friday's menu` the day is another matter.
_AFTER = re.compile(rf"\s?(?:\(|,\s(?:an?\s)?)(?P<day>{_ANY})\.?(?=[),.;:!?]|\s*$)", re.I | re.M)
_BEFORE_TIME = re.compile(rf"(?<!\w)(?P<day>{_ANY}),?\s(?:at|um|a\slas|à)\s\*{{0,2}}$", re.I)
_ENDS_DAY = re.compile(r"[*_]*(?:$|[,.;:)\n]|\s(?:at|um|ab|a\slas|à|from|von|[(–-]))")
_NAMED_DAY = re.compile(rf"(?<!\w)(?:{_ANY})(?!\w)", re.I)
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


class KnownDays:
    """On which day of the week a date falls, by what results and user say of it."""

    def __init__(self, index: RecordIndex, said: Said) -> None:
        self._index, self._said = index, said

    def of(self, moment: Moment) -> set[int]:
        """Of a day without a year: as a result names it, else in the one year that is spoken of."""
        if moment.year is not None:
            years = frozenset((moment.year,))
        else:
            said = self._said.known()[1].get((moment.month, moment.day), ())
            years = self._index.years_of(moment) or frozenset(
                one.year for one, _ in said if one.year is not None
            )
        if not years and (told := self._told.get((moment.month, moment.day))):
            return told
        if not years and len(self._index.years) == 1:
            years = frozenset(map(int, self._index.years))
        days = (_day_of(year, moment.month or 0, moment.day or 0) for year in years)
        return {day for day in days if day is not None}

    def of_part(self, value: Value) -> frozenset[int]:
        return self._index.weekdays_of(value)

    @once
    def _told(self) -> dict[tuple[int | None, ...], set[int]]:
        """Months and days that stand beside their day of the week in a result."""
        found: dict[tuple[int | None, ...], set[int]] = {}
        for field in self._index.tree.fields:
            text = field.value
            if isinstance(text, str) and _NAMED_DAY.search(text):
                for _, _, day, moments in _dates_with_days(text, find_moments(text)):
                    for one in moments[:1]:
                        found.setdefault((one.month, one.day), set()).add(day)
        return found


def find_days(text: str, values: Iterable[Value], known: KnownDays) -> Iterator[DayOfWeek]:
    """Every date of the text that stands beside a day of the week and whose year is known, and
    what is no whole date: `Friday 27`, `on Monday at 18:20`."""
    named_at = _places_of_days(text)
    if not named_at:
        return
    whole = [one for one in values if one.kind == "moment" and _is_whole(one.moments)]
    for start, end, named, moments in _dates_with_days(text, whole):
        possible = known.of(moments[0])
        if len(possible) == 1:
            yield DayOfWeek(start, end, named, min(possible))
    for value in values:
        window = max(0, value.start - LONGEST)
        is_beside = bisect_left(named_at, window) < bisect_left(named_at, value.start)
        if not is_beside or (value.kind == "moment" and _is_whole(value.moments)):
            continue
        is_day = value.kind == "number" and value.text.isdecimal() and len(value.text) < 3
        pattern = _BEFORE if is_day else _BEFORE_TIME
        found = pattern.search(text[window : value.start])
        if found is None or (is_day and not _ENDS_DAY.match(text, value.end)):
            continue  # `on Friday 27 guests arrive`
        actual = known.of_part(value)
        if actual:
            day = _DAYS[found["day"].casefold()]
            yield DayOfWeek(
                window + found.start(), value.end, day, day if day in actual else min(actual)
            )


def _places_of_days(text: str) -> list[int]:
    return [found.start() for found in _NAMED_DAY.finditer(text)]


def _is_whole(moments: Sequence[Moment]) -> bool:
    return bool(moments) and moments[0].has_day


def _dates_with_days(
    text: str, dates: Iterable[Value | FoundMoment]
) -> Iterator[tuple[int, int, int, Sequence[Moment]]]:
    """Start and end of every whole date with the day of the week beside it."""
    named_at = _places_of_days(text)
    for one in dates:
        if not _is_whole(one.moments):
            continue
        window = max(0, one.start - LONGEST)
        is_beside = bisect_left(named_at, window) < bisect_left(named_at, one.start)
        before = _BEFORE.search(text[window : one.start]) if is_beside else None
        found = before or _AFTER.match(text, one.end)
        if found is not None:
            start = window + before.start() if before else one.start
            end = one.end if before else found.end("day")
            yield start, end, _DAYS[found["day"].casefold()], one.moments


def weekdays_in(text: str) -> Iterator[tuple[int, int, int]]:
    """Start, end and day (0 is Monday) of each day of the week that is named."""
    for found in _NAMED_DAY.finditer(text):
        if len(found[0]) < 5 and found[0].islower():
            continue  # the sun, and who sat in it
        yield found.start(), found.end(), _DAYS[found[0].casefold()]


@lru_cache(maxsize=1024)
def _day_of(year: int, month: int, day: int) -> int | None:
    try:
        return date(year, month, day).weekday()
    except ValueError:
        return None
