"""What a step of arithmetic that an answer tells in words comes to, where that is not what is said:
every way to read it is tried first."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import product
from typing import NamedTuple

from callmark.grounding.arithmetic import half_unit
from callmark.grounding.dates import Moment
from callmark.grounding.numbers import SCALE, decimal_text
from callmark.grounding.phrasing import (
    COUNT_WORDS,
    FEES,
    FRACTION_WORDS,
    GOES_DOWN,
    GOES_UP,
    HEDGES,
    IS_LEFT,
    LESS,
    NO_NOUN,
    NOT_PLAIN,
    NOUN_AFTER,
    NUMBER,
    OFTEN,
    RANKED,
    RATE_NAME,
    RATES,
    THOUSANDS,
    TRAVEL,
)
from callmark.grounding.reading import convert, dimension_of, is_same_unit
from callmark.grounding.values import Value, decimals_of

MOST_OTHERS = 8  # numbers of a sentence that might be meant instead
_POINT = SCALE  # of a hundred: shares that lie so near are not told apart
_HEDGED_BY = 20  # a hedge allows the twentieth part more
_LONG_DAY = 5 * 60  # minutes of work in which there may be a break
_BREAKS = (15, 20, 30, 45, 60, 90)
_DAY = 24 * 60
_CLOCK_UNITS = ("min", "h", "s")


class Shape(NamedTuple):
    """A sentence in lower case, in which a sign stands for every value; `places` of the signs."""

    text: str
    places: list[int]
    values: list[Value]

    def value_at(self, place: int) -> Value:
        return self.values[bisect_left(self.places, place)]

    def others(self, used: Sequence[Value]) -> list[Value]:
        """Numbers before the last of those, which might be meant instead of one of them."""
        until = max(one.start for one in used)
        numbers = [one for one in self.values if one.kind == "number" and one not in used]
        return [one for one in numbers if one.start < until][-MOST_OTHERS:]


class Claim(NamedTuple):
    """Two numbers, and what is said to come of them."""

    shape: Shape
    found: re.Match[str]
    a: Value
    b: Value
    c: Value | None
    words: tuple[str, ...]


# --- numbers as they may be meant


def _alike(values: Sequence[Value]) -> list[tuple[list[int], int]] | None:
    """The readings of each in the unit of the first that has one, and how far it may be off.
    None: they measure different things."""
    unit = next((one.unit for one in values if one.unit), "")
    factor = max(one.form.factor for one in values)
    found = []
    for one in values:
        readings = list(one.readings[:1] if one.form.factor > 1 else one.readings)
        if one.form.percent:
            readings = readings[:1]
        if THOUSANDS.fullmatch(one.text) and len(readings) == 1 and decimals_of(one):
            readings.append(1000 * readings[0])  # `1,204`, in a locale that groups by points
        if dimension_of(one.unit or "%") == "money":
            readings = [max(readings, key=abs)]  # `1.200 €` is more than a thousand
        slack = _slack(one)
        if one.unit and one.unit != unit and not is_same_unit(one.unit, unit):
            converted = [convert(each, one.unit, unit) for each in (*readings, slack)]
            whole = [each for each in converted if each is not None]
            if len(whole) != len(converted) or dimension_of(unit) == "heat":
                return None
            readings, slack = whole[:-1], whole[-1]
        if one.form.factor == 1 and factor > 1:
            readings += [each * factor for each in readings]
        found.append((readings, slack))
    return found


def _slack(value: Value) -> int:
    """Half a unit of the last digit of what is measured; counts and cents are exact."""
    if value.form.percent or value.form.factor > 1:
        return half_unit(value)
    decimals = decimals_of(value)
    if not value.unit:
        return half_unit(value) if decimals else 0
    return 0 if dimension_of(value.unit) == "money" and decimals > 1 else half_unit(value)


def _zeros_of(value: Value) -> int:
    return 0 if decimals_of(value) else len(value.text) - len(value.text.rstrip("0"))


def _slack_of_outcome(claim: Claim, value: Value, slack: int) -> int:
    """Of what may have been rounded, and is hedged."""
    zeros = _zeros_of(value)
    if zeros and value.readings[0] >= 100 * SCALE:
        slack = max(slack, SCALE * value.form.factor * 10**zeros // 2)
    operands = (claim.a, claim.b)
    if not decimals_of(value) and any(decimals_of(one) or one.form.factor > 1 for one in operands):
        slack = max(slack, half_unit(value))
    if _is_hedged(claim, value):
        last = 2 * half_unit(value) * (10**zeros)
        slack = max(slack, last) + abs(value.readings[0]) // _HEDGED_BY
    return slack


def _is_hedged(claim: Claim, value: Value) -> bool:
    at = claim.shape.places[claim.shape.values.index(value)]
    return HEDGES.search(claim.shape.text[max(0, at - 24) : at + 12]) is not None


# --- each kind of step: what it comes to, if not to what is said


def judge_change(claim: Claim) -> str:
    a, b, c = claim.a, claim.b, claim.c
    if a.form.percent is not b.form.percent:
        return ""
    alike = _alike((a, b))
    if alike is None:
        return ""
    (firsts, slack_a), (seconds, slack_b) = alike
    slack = slack_a + slack_b
    first, second = firsts[0], seconds[0]
    if min(first, second) < 0:
        return ""
    way = _way_of(claim)
    at = min(claim.found.start("a"), claim.found.start("b"))
    if OFTEN.search(claim.shape.text, at, claim.found.end()) or _tells_of_two(claim):
        return ""
    if way and not RANKED.search(claim.shape.text):
        goes = [one - other for one, other in product(seconds, firsts)]
        if all(way * each < -slack for each in goes):
            return f"{b.text} is {'less' if way > 0 else 'more'} than {a.text}"
    if c is None or _tells_of_another(claim) or not _measure_alike(c, a, b):
        return ""
    meant = [(a, b), *((one, b) for one in claim.shape.others((a, b, c)))]
    meant += [(a, one) for one in claim.shape.others((a, b, c))]
    if any(_changes_by(claim, c, *pair) for pair in meant):
        return ""
    if c.form.percent and not a.form.percent:
        outcome = f"{_rounded(100 * SCALE * abs(second - first) // max(first, 1))}%"
    else:
        outcome = decimal_text(abs(second - first))
    return f"from {a.text} to {b.text} it is {outcome}"


def _way_of(claim: Claim) -> int:
    ways = {1 for word in claim.words if GOES_UP.match(word)}
    ways |= {-1 for word in claim.words if GOES_DOWN.match(word) and not GOES_UP.match(word)}
    return ways.pop() if len(ways) == 1 else 0


def _tells_of_two(claim: Claim) -> bool:
    """`from 3 people to 2 offices`"""
    nouns = {_noun_after(claim.shape, one) for one in (claim.a, claim.b)} - {""}
    return len(nouns) > 1 and not (claim.a.unit and claim.b.unit)


def _measure_alike(c: Value, a: Value, b: Value) -> bool:
    """`from seat 14 to 17, up $25` tells a price, not a difference of the two."""
    if c.form.percent:
        return True
    units = [dimension_of(one.unit) for one in (a, b) if one.unit]
    if not c.unit:
        return "money" not in units
    return dimension_of(c.unit) in units


def _tells_of_another(claim: Claim) -> bool:
    """`from 14 seats to 20, a gain of 3 rows`: what the difference counts is not what changed."""
    if claim.c is None or claim.c.unit or "v" in claim.found.re.groupindex:
        return False
    nouns = [_noun_after(claim.shape, one) for one in (claim.c, claim.a, claim.b)]
    return bool(nouns[0]) and nouns[0] not in nouns[1:]


def _noun_after(shape: Shape, value: Value) -> str:
    """How the word begins that is counted."""
    noun = NOUN_AFTER.match(shape.text, shape.places[shape.values.index(value)] + 1)
    return noun[1][:4] if noun and noun[1] not in NO_NOUN else ""


def _changes_by(claim: Claim, c: Value, a: Value, b: Value) -> bool:
    """Is this the difference of the two, or its share of either?"""
    if c.form.percent:
        if _is_change_in_percent(claim, c, a, b):
            return True
        if not (a.form.percent and b.form.percent):
            return False
    if a.form.percent and not c.form.percent and c.unit:
        return True
    same = _alike((c, a, b)) if not a.form.percent else _alike_shares(c, a, b)
    if same is None:
        return True
    (saids, slack_c), (firsts, slack_a), (seconds, slack_b) = same
    off = _slack_of_outcome(claim, c, slack_c) + slack_a + slack_b
    for one in (a, b):
        if _is_hedged(claim, one):
            off += abs(one.readings[0]) // _HEDGED_BY
    if min(_zeros_of(a), _zeros_of(b)) > 2:  # both to the thousand
        off += SCALE * 10 ** min(_zeros_of(a), _zeros_of(b))
    return any(
        abs(abs(one - other) - abs(each)) <= off
        for each, one, other in product(saids, firsts, seconds)
    )


def _is_change_in_percent(claim: Claim, c: Value, a: Value, b: Value) -> bool:
    alike = _alike((a, b))
    if alike is None:
        return True
    said, slack = abs(c.readings[0]), _slack_of_outcome(claim, c, half_unit(c))
    for one, other in product(alike[0][0], alike[1][0]):
        gap, off = abs(one - other), alike[0][1] + alike[1][1]
        for whole in (one, other):
            if whole <= 0 or _lies_near(said, slack, gap, off, whole):
                return True
    return False


def _lies_near(said: int, slack: int, part: int, off: int, whole: int) -> bool:
    """Is the share said but for its rounding, or but for less than a point?"""
    low, high = (100 * SCALE * max(part + way * off, 0) // whole for way in (-1, 1))
    exact = 100 * SCALE * part // whole
    return low - slack <= said <= high + slack or abs(exact - said) < _POINT


def _alike_shares(*values: Value) -> list[tuple[list[int], int]]:
    return [([one.readings[0]], half_unit(one)) for one in values]


def _rounded(share: int) -> str:
    return decimal_text((share + SCALE // 200) // (SCALE // 100) * (SCALE // 100))


def judge_share(claim: Claim) -> str:
    a, b, c = claim.a, claim.b, claim.c
    if c is None:
        return ""
    pairs = [(a, b), *((one, b) for one in claim.shape.others((a, b, c)))]
    slack = _slack_of_outcome(claim, c, half_unit(c))
    if any(_is_share(c.readings[0], slack, *pair) for pair in pairs):
        return ""
    return _tell_share(a, b)


def judge_fraction(claim: Claim) -> str:
    share = next(share for share in FRACTION_WORDS if claim.found[f"f{share}"])
    if _is_share(share * SCALE, 5 * _POINT, claim.a, claim.b):
        return ""
    return _tell_share(claim.a, claim.b)


def _tell_share(a: Value, b: Value) -> str:
    alike = _alike((a, b))
    if alike is None or alike[0][0][0] > alike[1][0][0]:
        return ""
    part, whole = alike[0][0][0], alike[1][0][0]
    return f"{a.text} of {b.text} is {_rounded(100 * SCALE * part // whole)}%" if whole else ""


def _is_share(said: int, slack: int, a: Value, b: Value) -> bool:
    """Is it the share of one in the other, or of what is left?"""
    alike = _alike((a, b))
    if alike is None:
        return True
    (parts, slack_a), (wholes, slack_b) = alike
    for part, whole in product(parts, wholes):
        if whole <= 0 or part < 0:
            return True
        off = slack_a + slack_b * part // whole
        if any(_lies_near(one, slack, part, off, whole) for one in (said, 100 * SCALE - said)):
            return True
    return False


_JOINING = re.compile(
    rf"(?P<skip>\([^()]{{0,60}}\))|(?P<sign>[{NUMBER}])"
    rf"|(?P<plus>\+|\bplus\b|\bmás\b)|(?P<less>{LESS})"
)


def judge_sum(claim: Claim) -> str:
    """Also what is left: the terms with their signs."""
    c, found, text = claim.c, claim.found, claim.shape.text
    span = found.span("terms")
    if c is None or RATES.search(text, found.start(), found.end() + 20):
        return ""
    if NOT_PLAIN.search(text, found.start(), found.end() + 20):
        return ""
    is_told_before = found.start("c0") < span[0]
    outside = text[: found.start()] + text[found.end() :]
    if NUMBER in outside and not (is_told_before and "(" in text[found.start("c0") : span[0]]):
        return ""
    terms: list[tuple[int, Value]] = []
    way = 1
    for part in _JOINING.finditer(text, *span):
        if part["sign"]:
            terms.append((way, claim.shape.value_at(part.start())))
        elif not part["skip"]:
            way = 1 if part["plus"] else -1
    nouns = [_noun_after(claim.shape, one) for one in (c, *(one for _, one in terms))]
    if not is_told_before and nouns[0] and nouns[0] not in nouns[1:]:
        return ""
    alike = _alike([c, *(one for _, one in terms)])
    units = {one.unit for one in (c, *(one for _, one in terms))}
    if alike is None or ("" in units and any(dimension_of(one or "%") == "money" for one in units)):
        return ""
    (saids, slack_c), *others = alike
    off = _slack_of_outcome(claim._replace(a=terms[0][1]), c, slack_c)
    off += sum(slack for _, slack in others)
    ways = [way for way, _ in terms]
    for each, *numbers in product(saids, *(readings for readings, _ in others)):
        total = sum(way * number for way, number in zip(ways, numbers, strict=True))
        if abs(total - each) <= off:
            return ""
    total = sum(way * readings[0] for way, (readings, _) in zip(ways, others, strict=True))
    return f"it comes to {decimal_text(total)}"


def judge_rest(claim: Claim) -> str:
    a, b, c = claim.a, claim.b, claim.c
    if claim.found.re.groupindex.get("terms"):
        return judge_sum(claim)
    alike = None if c is None else _alike((c, a, b))
    text = claim.shape.text
    between = text[claim.found.start() : claim.found.start("c0")]
    if (
        c is None
        or alike is None
        or (claim.found.start("c0") > claim.found.start("a") and IS_LEFT.search(between))
    ):
        return ""
    (saids, slack_c), (wholes, slack_a), (parts, slack_b) = alike
    more = [0, *(one.readings[0] for one in claim.shape.others((a, b, c)))]
    off = _slack_of_outcome(claim, c, slack_c) + slack_a + slack_b
    for each, whole, part, other in product(saids, wholes, parts, more):
        rest = whole - part
        if any(abs(one - abs(each)) <= off for one in (rest, rest - other, rest + other)):
            return ""
    if wholes[0] < parts[0]:
        return ""
    return f"{a.text} less {b.text} is {decimal_text(wholes[0] - parts[0])}"


def judge_product(claim: Claim) -> str:
    """So many of one price."""
    count, price, total = claim.a, claim.b, claim.c
    around = claim.shape.text[max(0, claim.found.start() - 20) : claim.found.end() + 40]
    if total is None or NOT_PLAIN.search(around) or FEES.search(around):
        return ""
    rate = RATE_NAME.search(claim.found[0])
    noun = "" if count is price else _noun_after(claim.shape, count)
    if rate and noun and rate["name"] != noun[0]:
        return ""  # `2 rooms at €90 per night`
    alike = _alike((total, price))
    if alike is None or not price.unit or dimension_of(price.unit) != "money" or not total.unit:
        return ""
    if count is not price and count.unit and dimension_of(count.unit) not in ("time", "month"):
        return ""
    (totals, slack_total), (prices, slack_price) = alike
    word = claim.found["n"] if "n" in claim.found.re.groupindex else None
    first = COUNT_WORDS[word] * SCALE if word else count.readings[0]
    times = [first, *(one.readings[0] for one in claim.shape.others((count, price, total)))]
    for said, each, number in product(totals, prices, times):
        off = _slack_of_outcome(claim, total, slack_total) + slack_price * number // SCALE
        if abs(each * number // SCALE - said) <= off:
            return ""
    outcome = decimal_text(prices[0] * times[0] // SCALE)
    return f"{word or count.text} times {price.text} is {outcome}"


def judge_moments(claim: Claim) -> str:
    """Days between two dates, minutes between two times of day."""
    c = claim.c
    if c is None or dimension_of(c.unit or "%") != "time":
        return ""
    if TRAVEL.search(claim.shape.text):
        return ""
    said = convert(c.readings[0], c.unit, "min")
    if said is None or not claim.a.moments or not claim.b.moments:
        return ""
    one, other = claim.a.moments[0], claim.b.moments[0]
    if one.has_day or other.has_day:
        return _judge_days(claim, c, one, other, said)
    if c.unit not in _CLOCK_UNITS and "min" not in c.unit:
        return ""
    gap = _minute_of(other) - _minute_of(one)
    minutes = said // SCALE
    half = convert(half_unit(c), c.unit, "min") or SCALE
    slack = max(1, half // SCALE) + (max(minutes // _HEDGED_BY, 1) if _is_hedged(claim, c) else 0)
    meant = {abs(gap) % _DAY, _DAY - abs(gap) % _DAY, abs(gap) % (_DAY // 2)}
    meant |= {_DAY // 2 - abs(gap) % (_DAY // 2)}
    if abs(gap) >= _LONG_DAY:
        meant |= {abs(gap) - less for less in _BREAKS}
    if any(abs(each - minutes) <= slack for each in meant):
        return ""
    least = min(abs(gap), _DAY - abs(gap))
    return f"between {claim.a.text} and {claim.b.text} there are {least} minutes"


def _minute_of(moment: Moment) -> int:
    return 60 * (moment.hour or 0) + (moment.minute or 0)


def _judge_days(claim: Claim, c: Value, one: Moment, other: Moment, said: int) -> str:
    if c.unit not in ("d", "wk") or not (one.has_day and other.has_day):
        return ""
    meant: set[int] = set()
    gaps: list[int] = []
    for year in (2023, 2024):
        first = _day_of(one, one.year or other.year or year)
        last = _day_of(other, other.year or one.year or year)
        if first is None or last is None:
            return ""
        if last < first and not (one.year and other.year):
            last = _day_of(other, last.year + 1) or last
        gap = abs((last - first).days)
        gaps.append(gap)
        meant.add(gap)
        if not claim.words:  # a span may count its first day as well
            meant.add(gap + 1)
        if gap < 60:
            days = [first + timedelta(days=at) for at in range(1, gap + 1)]
            known = one.year or other.year
            meant |= {sum(day.weekday() < 5 for day in days)} if known else set()
    days_said = said // (_DAY * SCALE)
    slack = 3 if c.unit == "wk" else 0
    slack += max(1, days_said // _HEDGED_BY) if _is_hedged(claim, c) else 0
    if any(abs(each - days_said) <= slack for each in meant):
        return ""
    first_day, last_day = (one.text.rstrip(".") for one in (claim.a, claim.b))
    return f"from {first_day} to {last_day} it is {gaps[0]} days"


def _day_of(moment: Moment, year: int) -> date | None:
    try:
        return date(year, moment.month or 1, moment.day or 1)
    except ValueError:
        return None
