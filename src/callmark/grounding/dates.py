"""Dates and times as people write them. Month names and orders come from CLDR."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize

from callmark.grounding.text import SIGNS, Frozen, joins

_NAMED_LOCALES = ("en", "de", "es", "fr", "pt", "it", "nl")
_ENGLISH_WORDS = ("out", "set")  # short for months too: `3 out of 5`


class Moment(Frozen, frozen=True):
    """The parts that were stated; None: not stated."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    hour: int | None = None
    minute: int | None = None
    second: int | None = None

    @property
    def has_day(self) -> bool:
        return self.day is not None and self.month is not None

    @property
    def groundable(self) -> bool:
        """States enough to be evidence: day and month, or the hour."""
        return self.has_day or self.hour is not None

    @property
    def weekday(self) -> int | None:
        """Of a whole date; 0 is Monday."""
        if self.year is None or self.month is None or self.day is None:
            return None
        try:
            return date(self.year, self.month, self.day).weekday()
        except ValueError:
            return None

    def agrees(self, other: Moment) -> bool:
        """Does `other` state all that this one states, and the same? 9 AM is 9:00 AM."""
        return (
            (self.minute is None or self.minute == (other.minute or 0))
            and (self.hour is None or self.hour == other.hour)
            and (self.day is None or self.day == other.day)
            and (self.month is None or self.month == other.month)
            and (self.year is None or self.year == other.year)
            and (self.second is None or self.second == (other.second or 0))
        )


def moment_keys(moment: Moment) -> list[tuple[int | None, ...]]:
    """Under what a moment is filed, the most telling first: its day, or its time of day."""
    keys: list[tuple[int | None, ...]] = []
    if moment.has_day:
        keys.append((moment.month, moment.day))
    if moment.hour is not None:
        keys.append((moment.hour, None, None))
    return keys or [()]


def minute_key(key: tuple[int | None, ...], moment: Moment) -> tuple[int | None, ...]:
    """Where many have that key: what has this hour and minute besides."""
    return *key, moment.hour, moment.minute or 0


class FoundMoment(Frozen, frozen=True):
    start: int
    end: int
    moments: tuple[Moment, ...]  # how it is read; empty: not in this locale
    own: tuple[Moment, ...]  # the same, unless its words are those of another language
    every_way: tuple[Moment, ...]  # every way to read it in some locale


# All of these are matched at the start of a run of digits that no digit, letter or separator
# precedes; which of them are tried depends on the character after that run.
_DIGITS = re.compile(r"\d\d*")  # not `\d+`: only what begins with one character is found quickly
# A second date may follow a hyphen, and `/05-13` the first of `2024-05-06/05-13`.
_ISO = re.compile(
    r"(?P<y>\d{4})(?P<sep>[-/.])(?P<m>\d{1,2})(?P=sep)(?P<d>\d{1,2})"
    r"(?!\d|[-.]\d(?!\d{3}[-/.]\d)|/\d(?!\d{3}-\d|\d-\d\d(?![\d-])))"
    r"(?:(?P<t>[T ])(?P<h>\d{2}):(?P<mi>\d{2})(?::(?P<s>\d{2})(?:[.,]\d+)?)?"
    r"(?P<off>Z|[+-]\d{2}:?\d{2})?)?(?!\d|:\d)"
)
_LISTED_MAY = re.compile(r"\.\s(?:May|March)\s[a-z]")
_MONTH_DAY = re.compile(r"(?P<m>\d{2})-(?P<d>\d{2})(?!\d|[-/.]\d)")
# Arabic sets a right-to-left mark before each separator.
# `am 15.05.`: German writes day and month so.
_DAY_MONTH = re.compile(r"(?P<d>\d{1,2})\.[^\S\n]?(?P<m>\d{1,2})\.(?![\d.])")
_BEFORE_DAY_MONTH = re.compile(
    r"\b(?:am|vom|bis|zum|ab|den|dem|der|seit|und|(?:mo|di|mi|do|fr|sa|so)[.,]{1,2}"
    r"|(?:mon|diens|donners|frei|sams|sonn)tags?,?|mittwochs?,?|sonnabends?,?)\s$",
    re.IGNORECASE,
)
_NUMERIC = re.compile(
    r"(?P<a>\d{1,2})\u200f?(?P<sep>[-/.])(?P<b>\d{1,2})\u200f?(?P=sep)(?P<y>\d{4}|\d{2})"
    r"(?!\w|[/.]\d|-\d(?!\d?[-/.]\d))"
)
_TIME = re.compile(
    r"(?P<h>\d{1,2}):(?P<mi>\d{2})(?::(?P<s>\d{2})(?:[.,]\d+)?)?(?!\d|:\d)"
    r"(?:\+\d{1,2}(?![\d:]))?(?:\s?(?P<ap>[aApP]\.?[mM]\b\.?)|\s?Uhr\b)?"
    r"(?:\s?\(?\+\d(?![\d:.,])(?:\s?days?\b)?\)?)?"  # arrives on the next day
)
_TIMES = re.compile(
    r"(?P<h>\d{1,2})(?:[:.h](?P<mi>\d{1,2}))?\s?(?P<own>Uhr|h\b)?\s?"
    r"(?:[-–—]|(?:to|bis|until|till|and|und|or|oder|à|a|y|et|ou|o)\b)\s?(?P<las>las\s)?"
    r"(?P<second>(?P<h2>\d{1,2})(?:[:.h](?P<mi2>\d{1,2}))?(?![\d:.,]\d)"
    r"(?:\s?(?:(?P<ap>[aApP]\.?[mM]\b\.?)|(?P<clock>Uhr\b|o['’]clock\b|h\b|heures\b"
    r"|horas\b)))?)(?!\w)"
)
_HOUR = re.compile(
    r"(?P<h>\d{1,2})(?:\s?(?P<ap>[aApP]\.?[mM]\b\.?)"
    r"|(?:\.(?P<mi>\d{2}))?\s?(?:Uhr\b|o['’]clock\b)"
    r"|(?:\sh\s(?=\d\d(?!\w|\s?min))|h(?=\d))(?P<mf>\d{2})(?!\w))"
)
# `à 9 h`, `a las 9`, `9 in the morning`: an hour because of what stands around it.
_AT_HOUR = re.compile(
    r"(?P<h>\d{1,2})(?:[:.h](?P<mi>\d{2}))?(?![\d:.,]\d|\w)(?:\s?(?:h|heures|horas)\b)?"
    r"(?:\s(?:(?P<am>in the morning|de la mañana|du matin|morgens|vormittags)"
    r"|(?P<pm>in the (?:afternoon|evening)|at night|de la (?:tarde|noche)|du soir"
    r"|de l['’]après-midi|nachmittags|abends))\b)?"
)
_HOUR_AFTER = re.compile(
    r"\b(?:(?P<las>(?:a|hasta|desde|sobre) las)|à|dès|vers|avant|après|jusqu['’]à)\s$",
    re.IGNORECASE,
)
_LEAST_HOUR = 6  # `14 h 30` is a time of day, `1 h 30` may be how long something takes
_EAST_ASIAN = re.compile(
    r"(?:(?P<y>\d{4})\s?[年년]\s?)?(?P<m>\d{1,2})\s?[月월]\s?(?P<d>\d{1,2})\s?[日일]"
)
_WEEKDAYS = (
    "mon tue tues wed weds thu thur thurs fri sat sun monday tuesday wednesday thursday friday"
    " saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag mo di"
    " mi do fr sa so lunes martes miércoles jueves viernes sábado domingo lundi mardi mercredi"
    " jeudi vendredi samedi dimanche"
)
_OF_WEEK = rf"(?:(?:{'|'.join(_WEEKDAYS.split())})\b\.?,?\s)?"
_ARTICLE = r"(?:(?:the|den|dem|zum|el|le)\s)?"
# `15 to Monday 18 May`, `15, 16 and 17 May`: the month stands behind the last of them.
_DAYS = re.compile(
    r"(?P<d>\d{1,2})(?:st|nd|rd|th|er|º|\.)?,?(?P<join>\s?(?:[-–—&/]\s?|,\s(?=\d))"
    r"|\s(?:to|and|or|through|until|till|bis|und|oder|al|y|o|au|et|ou)\s)"
    rf"{_ARTICLE}{_OF_WEEK}{_ARTICLE}(?=\d)",
    re.IGNORECASE,
)
_MOST_DAYS = 8
# `May 15 and 18`, before a full stop or a word that no number counts.
_MORE_DAYS = re.compile(
    rf"\s(?:to|and|or|through|until|till|&)\s{_ARTICLE}{_OF_WEEK}{_ARTICLE}"
    r"(?P<d>\d{1,2})(?:st|nd|rd|th)?(?:,\s(?P<y>\d{4})(?!\w))?"
    r"(?=[.;!?)\n*]|,\s|:\s|$|\s(?:at|in|on|from|for|are|is|were|was|if|with|the)\b)",
    re.IGNORECASE,
)
_LAST_DAY = re.compile(
    r"(?:[-–—]|\s[-–—]\s(?=\d{1,2}\w{0,2}(?:,\s\d{4}|[,.;:)!?\n]|$)))"
    r"(?P<d>\d{1,2})(?:st|nd|rd|th)?(?!\w|[.,]\d|:\d|[-/]\d)(?:,?\s(?P<y>\d{4})(?!\w))?"
)
_LONGEST_MONTH = 25


@lru_cache(maxsize=64)
def _month_names(locale: str) -> dict[str, int]:
    import babel  # large, and most answers have no locale of their own

    try:
        parsed = babel.Locale.parse(locale.replace("-", "_"))
    except (ValueError, babel.UnknownLocaleError, TypeError):
        return {}
    names: dict[str, int] = {}
    for context in ("format", "stand-alone"):
        for width in ("wide", "abbreviated"):
            for number, name in parsed.months[context][width].items():
                if not name.isdigit() and any(char.isalpha() for char in name):
                    folded = name.casefold().rstrip(".")
                    # A decomposed answer has the same months.
                    names[normalize("NFC", folded)] = names[normalize("NFD", folded)] = number
    return names


class _NamedForms(NamedTuple):
    months: dict[str, int]
    own: frozenset[str]  # the month names of the locale itself, of all without one
    month_after: re.Pattern[str]  # matched at the day
    month_before: re.Pattern[str]  # searched in the text that ends where the digits begin
    english_before: re.Pattern[str]
    day_and_year: re.Pattern[str]
    ends: frozenset[str]  # of months, and of what may stand between them and a number after them


@lru_cache(maxsize=64)
def _named_forms(locale: str | None) -> _NamedForms:
    months: dict[str, int] = {}
    for name in reversed((*([locale] if locale else []), *_NAMED_LOCALES)):
        months |= _month_names(name)
    months |= {"sept": 9}
    for word in _ENGLISH_WORDS:
        months.pop(word, None)
    if locale:
        months |= _month_names(locale)
    any_month = "|".join(re.escape(n) for n in sorted(months, key=len, reverse=True))
    english = dict(_month_names("en")) | {"sept": 9}
    capital = "|".join(re.escape(n.capitalize()) for n in sorted(english, key=len, reverse=True))
    year = r"(?P<y>\d{4})(?!\w)"
    return _NamedForms(
        months,
        frozenset(_month_names(locale) if locale else months),
        re.compile(
            r"(?P<d>\d{1,2})(?:st|nd|rd|th|er|re|º|\.)?\s?(?:de\s|of\s)?"
            # Not \b: the name may end in a vowel sign, which is no word character.
            rf"(?P<m>{any_month})(?!\w)\.?(?:,?\s(?:de\s|del\s)?{year})?",
            re.IGNORECASE,
        ),
        re.compile(rf"(?<!\w)(?P<m>{any_month})\.?,?\s(?:de\s|of\s)?$", re.IGNORECASE),
        re.compile(rf"(?<!\w)(?=[A-Z])(?P<m>(?i:{capital}))\.?\s$"),
        re.compile(rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?!\w|[.,]\d|:\d)(?:,?\s{year})?"),
        frozenset((*(name[-2:] for name in months), "de", "of")),
    )


_PLAIN_WORD = re.compile(r"[A-Za-z]+(?![^\W\d_])(?=[\x00-\x7f]|$)")
# What else may stand between the days before a month.
_JOINING = frozenset(
    "to and or through until till bis und oder al y o au et ou de of the den dem zum el le".split()
)


@lru_cache(maxsize=12)
def names_of_month(number: int) -> frozenset[str]:
    """In all languages that are read without a locale, folded."""
    return frozenset(name for name, one in _named_forms(None).months.items() if one == number)


@lru_cache(maxsize=1)
def _month_heads() -> frozenset[str]:
    """The first words of all months."""
    words = (_PLAIN_WORD.match(name) for name in _named_forms(None).months)
    return frozenset(found[0] for found in words if found) | _JOINING


def may_go_on_with(after: str) -> bool:
    """Could this go on with a day that ends in a full stop: `3. April`, `3. bis 5. April`? Of a
    word of other letters than these nobody knows."""
    word = _PLAIN_WORD.match(after)
    return word is None or word[0].casefold() in _month_heads()


def find_moments(text: str, locale: str | None = None) -> list[FoundMoment]:
    """Dates and times in the text, not overlapping, in order."""
    found: list[FoundMoment] = []
    position = 0
    for digits in _DIGITS.finditer(text):
        start, end = digits.span()
        if start < position or end - start > 4:
            continue
        # `07:00-09:30`: what a hyphen joins to a moment is one too, if it looks like one.
        is_second = bool(found) and start == position + 1 and text[position] in "-/"
        if not (is_second or _may_begin(text, start) or _is_cell(text, start)):
            continue
        if _is_listed_may(text, start, end):
            continue
        if is_second and text[position] == "/":
            moments = _second_of(found[-1], text, start)
        else:
            moments = _range_at(text, start, end, locale) or _with_last_day(
                text, _moment_at(text, start, end, locale)
            )
        if moments and moments[0].start >= position:
            found += moments
            position = moments[-1].end
    return found


def _is_listed_may(text: str, start: int, end: int) -> bool:
    """`7. May reduce the risk`, the seventh of a list."""
    if _LISTED_MAY.match(text, end) is None:
        return False
    return not text[text.rfind("\n", 0, start) + 1 : start].strip()


def _one(moment: FoundMoment | None) -> tuple[FoundMoment, ...]:
    return () if moment is None else (moment,)


def _may_begin(text: str, start: int) -> bool:
    before = text[start - 1] if start else " "
    return before in " \n\t\u00a0\u202f(" or not (joins(before) or before in ".,:/-" + SIGNS)


def _is_cell(text: str, start: int) -> bool:
    """A date or time between commas, as in CSV."""
    return text[start - 1] == "," and (
        _ISO.match(text, start) is not None or _TIME.match(text, start) is not None
    )


def _second_of(first: FoundMoment, text: str, start: int) -> tuple[FoundMoment, ...]:
    """The `05-13` of `2024-05-06/05-13`, or a whole date."""
    match = _MONTH_DAY.match(text, start)
    if match is None or not first.moments or first.moments[0].year is None:
        return _one(_numeric_date(text, start, None))
    return _one(_found_at(match, _of(str(first.moments[0].year), match["m"], match["d"])))


# What may follow the digits of a moment, and what the blank after them: most numbers are none, and
# one character tells. The first of two times or days; an hour; an hour because of what is around.
_AFTER_FIRST = frozenset(":.hUtbuaoàyesSnNrRTEº,-–—&/ſ"), frozenset("-–—&/,UhtTbBuoOàyYeEaA")
_AFTER_HOUR = frozenset("aApP.Uoh"), frozenset("aApPUoh")
_AFTER_AT_HOUR = frozenset(":.h"), frozenset("idmvanh")
_BEFORE_HOUR = frozenset("sSſàÀtT")  # the last letters of all that `_HOUR_AFTER` finds
_NO_MONTH = frozenset("()[]{}:;-*#=<>/|\"'!?&%+@`~$€£")  # neither before it nor after it


def _goes_on(text: str, end: int, after: frozenset[str], after_blank: frozenset[str]) -> bool:
    following = text[end : end + 1]
    if not following.isspace():
        return following in after
    following = text[end + 1 : end + 2]
    return following in after_blank or following.isspace()


def _range_at(text: str, start: int, end: int, locale: str | None) -> tuple[FoundMoment, ...]:
    """Two times or two days of which one says what both are: `5-7 pm`, `9:0-14:0`, `May 3-4`."""
    if end - start > 2 or not _goes_on(text, end, *_AFTER_FIRST):
        return ()
    times = _TIMES.match(text, start)
    if times is not None:
        found = _times_of(times)
        if found:
            return found
    if _DAYS.match(text, start) is not None:
        return _days_before_month(text, start, _named_forms(locale))
    return ()


def _times_of(match: re.Match[str]) -> tuple[FoundMoment, ...]:
    first, second, half = match["mi"], match["mi2"], match["ap"]
    is_short = first is not None and second is not None and min(len(first), len(second)) == 1
    is_hours = match["clock"] in ("h", "heures", "horas")  # or how long something takes
    is_clock = match["las"] is not None or (
        match["clock"] is not None
        and (not is_hours or match["own"] is not None or int(match["h2"]) > _LEAST_HOUR)
    )
    if not half and not is_short and not is_clock:
        return ()
    has_point = any(
        minute is not None and match.string[match.end(hour)] == "."
        for hour, minute in (("h", first), ("h2", second))
    )
    if has_point and (is_hours or not is_clock):  # `9.5 to 10 pm` has another number
        return ()
    last = _time(match["h2"], second, None, half)
    begin = _time(match["h"], first, None, half)
    if begin is None or last is None:
        return ()
    if half and (begin.hour or 0) > (last.hour or 0):  # `11-1 pm`
        begin = begin._replace(hour=(begin.hour or 0) % 12)
    stop = match.end("mi") if first is not None else match.end("h")
    return (
        FoundMoment(match.start(), stop, (begin,), (begin,), (begin,)),
        FoundMoment(match.start("second"), match.end("second"), (last,), (last,), (last,)),
    )


def _days_before_month(text: str, start: int, forms: _NamedForms) -> tuple[FoundMoment, ...]:
    """`19-20 May 2024`, `15, 16 and 17 May`."""
    days: list[re.Match[str]] = []
    at = start
    while len(days) < _MOST_DAYS and (found := _DAYS.match(text, at)) is not None:
        days.append(found)
        at = found.end()
    match = forms.month_after.match(text, at)
    if match is None or days[-1]["join"].strip() == ",":  # `Room 10, 15 May`
        return ()
    spans = [(one.start("d"), one.end("d"), one["d"]) for one in days]
    moments = [
        _in_words(first, end, match["y"], match["m"], day, forms) for first, end, day in spans
    ]
    moments.append(_in_words(at, match.end(), match["y"], match["m"], match["d"], forms))
    found_all = tuple(one for one in moments if one is not None)
    return found_all if len(found_all) == len(moments) else ()


def _with_last_day(text: str, found: FoundMoment | None) -> tuple[FoundMoment, ...]:
    """`May 19-20`, `May 3-4, 2024`: the month is that of the first, the year that of the last."""
    if found is None or not found.moments:
        return _one(found)
    first = found.moments[0]
    match = None
    if first.has_day and first.year is None:
        match = _LAST_DAY.match(text, found.end)
        if match is None and text[found.end - 1].isalnum() and not _is_day_first(text, found):
            match = _MORE_DAYS.match(text, found.end)
    if match is None or not (first.day or 0) < int(match["d"]) <= 31:
        return (found,)
    year = None if match["y"] is None else int(match["y"])
    last = first._replace(year=year, day=int(match["d"]))
    begin = first._replace(year=year)
    own = bool(found.own)
    return (
        found._replace(moments=(begin,), own=(begin,) * own, every_way=(begin,)),
        FoundMoment(match.start("d"), match.end(), (last,), (last,) * own, (last,)),
    )


def _is_day_first(text: str, found: FoundMoment) -> bool:
    """`18 May and 20` is no list of days."""
    return text[found.start].isdecimal()


def _moment_at(text: str, start: int, end: int, locale: str | None) -> FoundMoment | None:
    after = text[end : end + 1]
    if after in "-/.\u200f" and after:
        found = _numeric_date(text, start, locale) or _day_and_month(text, start)
        if found is not None:
            return found
    elif after == ":":
        match = _TIME.match(text, start)
        if match is not None:
            return _found_at(match, _time(match["h"], match["mi"], match["s"], match["ap"]))
    if end - start <= 2:
        found = _hour_at(text, start, end)
        if found is not None:
            return found
    if after in "年년月월" and after:
        match = _EAST_ASIAN.match(text, start)
        if match is not None:
            return _found_at(match, _of(match["y"], match["m"], match["d"]))
    return _named_date(text, start, end, _named_forms(locale))


def _hour_at(text: str, start: int, end: int) -> FoundMoment | None:
    match = _HOUR.match(text, start) if _goes_on(text, end, *_AFTER_HOUR) else None
    if match is not None:
        minute = match["mi"] or match["mf"]
        is_long = " h " not in match[0] or int(match["h"]) >= _LEAST_HOUR
        if is_long or _HOUR_AFTER.search(text[max(0, start - 12) : start]):
            return _found_at(match, _time(match["h"], minute, None, match["ap"]))
    is_after = start > 1 and text[start - 2] in _BEFORE_HOUR
    if not is_after and not _goes_on(text, end, *_AFTER_AT_HOUR):
        return None
    match = _AT_HOUR.match(text, start)
    if match is None:
        return None
    half = "am" if match["am"] else "pm" if match["pm"] else None
    before = _HOUR_AFTER.search(text[max(0, start - 12) : start])
    says_hour = match.end() > max(match.end("h"), match.end("mi"))
    if half is None and not (before and (says_hour or before["las"])):
        return None
    return _found_at(match, _time(match["h"], match["mi"], None, half))


def _day_and_month(text: str, start: int) -> FoundMoment | None:
    match = _DAY_MONTH.match(text, start)
    if match is None or not _BEFORE_DAY_MONTH.search(text[max(0, start - 14) : start]):
        return None
    return _found_at(match, _of(None, match["m"], match["d"]))


def _numeric_date(text: str, start: int, locale: str | None) -> FoundMoment | None:
    match = _ISO.match(text, start)
    if match is not None:
        moment = _of(match["y"], match["m"], match["d"])
        if moment is not None and match["h"] is not None:
            clock = _time(match["h"], match["mi"], match["s"], None)
            if clock is not None:
                moment = moment._replace(hour=clock.hour, minute=clock.minute, second=clock.second)
        found = _found_at(match, moment)
        if (
            found is not None
            and match["t"] == " "
            and not match["s"]
            and match["off"]
            not in (
                None,
                "Z",
            )
        ):
            return found._replace(end=match.start("off"))  # `10:00-12:00` is a range
        return found
    match = _NUMERIC.match(text, start)
    if match is None or (len(match["y"]) == 2 and match["sep"] != "/"):
        return None
    day_first = _of(match["y"], match["b"], match["a"])
    month_first = _of(match["y"], match["a"], match["b"])
    every_way = tuple(m for m in (day_first, month_first) if m is not None)
    if not every_way:
        return None
    if _is_month_first(match["sep"], locale):
        moment = month_first or (day_first if locale is None else None)
    else:
        moment = day_first
    readings = () if moment is None else (moment,)
    return FoundMoment(start, match.end(), readings, readings, every_way)


@lru_cache(maxsize=64)
def _locale_is_month_first(locale: str) -> bool:
    import babel

    try:
        pattern = str(babel.Locale.parse(locale.replace("-", "_")).date_formats["short"].pattern)
    except (ValueError, babel.UnknownLocaleError, TypeError):
        return True
    return "d" in pattern and pattern.lower().find("m") < pattern.find("d")


def _is_month_first(separator: str, locale: str | None) -> bool:
    if locale is not None:
        return _locale_is_month_first(locale)
    return separator == "/"


def _named_date(text: str, start: int, end: int, forms: _NamedForms) -> FoundMoment | None:
    if end - start <= 2 and end < len(text) and text[end] not in _NO_MONTH:
        match = forms.month_after.match(text, start)
        if match is not None:
            return _in_words(start, match.end(), match["y"], match["m"], match["d"], forms)
    if start < 4 or not text[start - 1].isspace() or text[start - 2].isdecimal():
        return None
    if text[start - 2] in _NO_MONTH:
        return None
    window = max(0, start - _LONGEST_MONTH)
    head = text[window:start]
    if head.isascii() and head.rstrip().rstrip(".,")[-2:].lower() not in forms.ends:
        return None  # most words before a number are no month
    if end - start <= 2:
        match = forms.day_and_year.match(text, start)
        if match is None:
            return None
        # A lower-case `may 5` may be no month; with a year after it it is one.
        pattern = forms.month_before if match["y"] else forms.english_before
        before = pattern.search(head)
        if before is None:
            return None
        begin = window + before.start()
        return _in_words(begin, match.end(), match["y"], before["m"], match["d"], forms)
    before = forms.month_before.search(head) if end - start == 4 else None
    if before is None or text[end : end + 1].isalnum():
        return None
    return _in_words(window + before.start(), end, text[start:end], before["m"], None, forms)


def _in_words(
    start: int, end: int, year: str | None, name: str, day: str | None, forms: _NamedForms
) -> FoundMoment | None:
    month = forms.months.get(name.casefold())
    if month is None:  # `Aprıl` without its dot: alike for a pattern, but no month
        return None
    if day is None:
        moment: Moment | None = Moment(year=None if year is None else int(year), month=month)
    else:
        moment = _of(year, str(month), day)
    if moment is None:
        return None
    own = (moment,) if name.casefold() in forms.own else ()
    return FoundMoment(start, end, (moment,), own, (moment,))


def _found_at(match: re.Match[str], moment: Moment | None) -> FoundMoment | None:
    if moment is None:
        return None
    return FoundMoment(match.start(), match.end(), (moment,), (moment,), (moment,))


def _of(year: str | None, month: str, day: str) -> Moment | None:
    m, d = int(month), int(day)
    if not (1 <= m <= 12 and 1 <= d <= 31):
        return None
    y = None if year is None else int(year)
    if year is not None and len(year) == 2:
        y = 2000 + int(year)
    return Moment(year=y, month=m, day=d)


def _time(hour: str, minute: str | None, second: str | None, half: str | None) -> Moment | None:
    h = int(hour)
    mi = None if minute is None else int(minute)
    s = None if second is None else int(second)
    if h > 24 or (mi or 0) > 59 or (s or 0) > 60:
        return None
    if half:
        if not 1 <= h <= 12:
            return None if h != 0 and h < 13 else Moment(hour=h, minute=mi, second=s)
        h = h % 12 + (12 if half[0] in "pP" else 0)
    return Moment(hour=h, minute=mi, second=s)


_OFFSET_TIME = re.compile(
    r"(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)[T ](?P<h>\d\d):(?P<mi>\d\d)(?::\d\d(?:\.\d+)?)?"
    r"\s?(?P<sign>[+-])(?P<oh>\d\d):?(?P<om>\d\d)(?!\d)"
)
# `Fri Mar 15 18:22:41 2024 +0900`, as commits and certificates have it: the year comes last.
_YEAR_LAST = re.compile(
    r"\b(?P<name>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s{1,2}(?P<d>\d{1,2})\s"
    r"(?P<h>\d\d):(?P<mi>\d\d):\d\d\s(?:[A-Z]{3,4}\s)?(?P<y>\d{4})"
    r"(?:\s(?P<sign>[+-])(?P<oh>\d\d):?(?P<om>\d\d))?"
)
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_MAY_BE_ZONED = re.compile(r"\d\d:\d\d")
_EPOCHS = (1, 1000)  # seconds, milliseconds
LEAST_EPOCH, _LATEST = 10**9, 2 * 10**9  # 2001 to 2033
_FARTHEST = 12 * 3600  # seconds that a place on earth is away, nearly everywhere
START_OF_EPOCHS = datetime(1970, 1, 1)


# Words of keys whose large numbers are seconds, or milliseconds, since 1970.
_OF_TIME = frozenset(
    """
    time timestamp ts date created updated modified at on start end started ended expires expiry due
    until since epoch last next first seen published begin finished completed paid day when
    """.split()
)
_ISO_DURATION = re.compile(r"PT(?:(\d{1,2})H)?(?:(\d{1,2})M)?(?:(\d{1,2})S)?")


def moments_of_epoch(number: int, key: Sequence[str]) -> list[Moment]:
    """What a number of seconds or milliseconds since 1970 is as a date, if its key speaks of time:
    in UTC, and the days that it may be elsewhere."""
    for factor in _EPOCHS if not _OF_TIME.isdisjoint(key) else ():
        seconds = number // factor
        if LEAST_EPOCH <= seconds < _LATEST:
            told = [
                START_OF_EPOCHS + timedelta(seconds=seconds + more)
                for more in (0, -_FARTHEST, _FARTHEST)
            ]
            days = [Moment(one.year, one.month, one.day) for one in told]
            return [_moment_of(told[0]), *days]
    return []


def moments_elsewhere(text: str) -> Iterator[Moment]:
    """Dates whose year comes last, what times of other zones are in UTC, and `3:28:15` for
    `PT3H28M15S`."""
    lasting = _ISO_DURATION.fullmatch(text) if text.startswith("PT") else None
    if lasting is not None:
        hour, minute, second = (int(one or 0) for one in lasting.groups())
        yield Moment(hour=hour, minute=minute, second=second)
    if _MAY_BE_ZONED.search(text) is None:
        return
    for found in _YEAR_LAST.finditer(text):
        month = _MONTHS.index(found["name"]) + 1
        yield from _zoned(found, month, with_local=True)
    for found in _OFFSET_TIME.finditer(text):
        yield from _zoned(found, int(found["m"]), with_local=False)


def _zoned(found: re.Match[str], month: int, *, with_local: bool) -> Iterator[Moment]:
    try:
        day, hour, minute = int(found["d"]), int(found["h"]), int(found["mi"])
        local = datetime(int(found["y"]), month, day, hour, minute)
    except ValueError:
        return
    if with_local:
        yield _moment_of(local)
    if found["sign"]:
        offset = timedelta(hours=int(found["oh"]), minutes=int(found["om"]))
        try:
            yield _moment_of(local - offset if found["sign"] == "+" else local + offset)
        except OverflowError:
            return


def _moment_of(told: datetime) -> Moment:
    return Moment(told.year, told.month, told.day, told.hour, told.minute)
