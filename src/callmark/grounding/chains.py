"""Numbers that take two steps, or what the user said, to come about: a price with so many daily
fees, a portion of what is given per 100 g, a tenth off.

Asked last, of what nothing else explains. How many others the same operands would give as well is
counted: a number that anything could have given is not explained."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from callmark.grounding import arithmetic
from callmark.grounding.arithmetic import Step, Wanted, is_round, products, sums, work_out
from callmark.grounding.numbers import SCALE, decimal_text
from callmark.grounding.text import SIGNS
from callmark.grounding.values import Value, decimals_of

MOST_NEAR = 14  # operands of two steps
LEAST_DIGITS = 3
SMALL = 13  # of so few, anything is a share
FEW_HELD = 6  # numbers in all results: any of them may have been used
LIKELY, FURTHER, AT_HAND = 0.04, 0.15, 0.4  # how many others may be expected to give it as well
# What one unit of time is in another, where the words around a number speak of both.
_CONSTANTS = (
    (re.compile(r"week|woche|semana|semaine", re.I), (7, 52)),
    (re.compile(r"month|monat|mes\b|meses|mensual|mois|mensuel", re.I), (12, 30)),
    (
        re.compile(
            r"year|annual|jahr|jähr|año|anual|(?:par\s|l['’])an\b|\bans\b|année|annuel", re.I
        ),
        (12, 52, 365),
    ),
    (
        re.compile(r"\bdays?\b|daily|\btage?\b|täglich|\bd[ií]as?\b|diari|jour", re.I),
        (7, 24, 30, 365),
    ),
    (re.compile(r"hour|stunde|hora|heure", re.I), (24, 60)),
    (re.compile(r"minute|minuto", re.I), (60,)),
)


_SHARED = re.compile(
    r"%|\b(?:discount|off|tax|vat|deposit|down|tip|commission|markup|rabatt|mwst|steuer|anzahlung"
    r"|descuento|iva|impuesto|propina|remise|tva|rabais|acompte)\b",
    re.IGNORECASE,
)


_RATE = re.compile(
    r"\b(?:an?|al|am|im|die|le|la|by|times|fold|whole|mal|veces|fois|multipl\w+|scal\w+|doubl\w+)"
    r"\s|\b(?:for|für|para|pour|of)\s(?:two|three|four|five|six|zwei|drei|vier|fünf|dos|tres"
    r"|cuatro|cinco|deux|trois|quatre|cinq)\b|\b(?:both|beide\w*|ambos|les\sdeux)\b",
    re.IGNORECASE,
)
_BRACKETED = re.compile(
    rf"\d[\d.,]*[ \u00a0]?(?:[{SIGNS}]|[^\W\d_]{{1,12}})?\s?\([~≈]?\d[\d.,]*\s?%"
)


_ADDED = re.compile(r"\d\s?\+\s?\d|\bspare\b")


class Chained(NamedTuple):
    """How it came about, in words."""

    rule: str
    because: str


class Operands(NamedTuple):
    """The operands of one number: those stated beside it, those of the records that it is said of,
    those that the user named, and shares in per cent; `cues` are the words around it."""

    stated: Sequence[int]
    recorded: Sequence[int]
    said: Sequence[int]
    percents: Sequence[int]
    cues: str
    has_hundreds: bool  # is anything given per 100 of something?
    held: Sequence[int]  # all numbers of the results, where they are few
    named: Sequence[int]  # the leaves whose keys the sentence names
    counts: Sequence[int]  # how many there are of something
    foreign: frozenset[int] = frozenset()  # of another dimension: factors, but nothing to add


def _addends(numbers: Sequence[int]) -> list[int]:
    """Nobody adds how many there are to what something costs."""
    return [one for one in numbers if one % SCALE or one >= arithmetic.LEAST * SCALE]


def two_steps(foreign: frozenset[int]) -> Callable[[Sequence[int]], Iterator[Step]]:
    """A number more or less so many others; a product of three; a sum of three, or a part of it."""

    def steps(numbers: Sequence[int]) -> Iterator[Step]:
        counts = [one for one in numbers if one % SCALE == 0 and SCALE < one <= 366 * SCALE]
        factors = _addends(numbers)
        addends = [one for one in factors if one not in foreign]
        for count in counts:
            for each in addends:
                whole = count // SCALE * each
                for other in addends:
                    if each < other:
                        yield whole + count // SCALE * other, "sum", (count, each, other)
                    if other != whole and each not in (other, count):
                        yield other + whole, "sum", (other, count, each)
                        if other > whole:  # of which so many are taken
                            yield other - whole, "difference", (other, count, each)
        for one, other, third in combinations(factors, 3):
            yield one * other // SCALE * third // SCALE, "product", (one, other, third)
        for one, other, third in combinations(addends, 3):
            yield one + other + third, "sum", (one, other, third)
            for first, second, last in (
                (one, other, third),
                (one, third, other),
                (other, third, one),
            ):
                yield abs(first + second - last), "difference", (first, second, last)

    return steps


def per_hundred(numbers: Sequence[int]) -> Iterator[Step]:
    for one, other in combinations(numbers, 2):
        for basis in (100, 1000):
            yield one * other // (basis * SCALE), "product", (one, other, basis * SCALE)


def portions(numbers: Sequence[int]) -> Iterator[Step]:
    """So much of what is given for so many."""
    for one, other in combinations(numbers, 2):
        for divisor in numbers:
            if divisor not in (one, other) and divisor % SCALE == 0 and divisor <= 12 * SCALE:
                yield one * other // divisor, "ratio", (one, other, divisor)


def _in_other_units(cues: str) -> Callable[[Sequence[int]], Iterator[Step]]:
    constants = [one for words, found in _CONSTANTS if words.search(cues) for one in found]

    def steps(numbers: Sequence[int]) -> Iterator[Step]:
        for number in numbers:
            for constant in dict.fromkeys(constants):
                yield number * constant, "product", (number, constant * SCALE)
                yield number // constant, "ratio", (number, constant * SCALE)

    return steps


def of_percents(percents: Sequence[int]) -> Callable[[Sequence[int]], Iterator[Step]]:
    """So many per cent of a number, and what is left of it, or comes to with it."""

    def steps(numbers: Sequence[int]) -> Iterator[Step]:
        for share in percents:
            for whole in numbers:
                part = whole * share // (100 * SCALE)
                yield part, "share", (share, whole)
                yield whole - part, "share", (share, whole)
                yield whole + part, "share", (share, whole)

    return steps


def plain_shares(percents: Sequence[int]) -> Callable[[Sequence[int]], Iterator[Step]]:
    """So many per cent of a number, and no more."""

    def steps(numbers: Sequence[int]) -> Iterator[Step]:
        for share in percents:
            for whole in numbers:
                yield whole * share // (100 * SCALE), "share", (share, whole)

    return steps


def is_told_as_rate(cues: str) -> bool:
    return arithmetic.announces_as("product", cues) or _RATE.search(cues) is not None


def work_out_in_two(value: Value, wanted: Wanted, near: Operands, digits: int) -> Chained | None:
    """From what stands beside it, then from what the records have, then from what was said."""
    if value.form.percent:
        return _as_share(wanted, near)
    is_compared = any(arithmetic.announces_as(how, near.cues) for how in ("difference", "sum"))
    is_compared = is_compared or _ADDED.search(near.cues) is not None
    is_rate = not is_compared and is_told_as_rate(near.cues)
    if is_compared:
        near = near._replace(recorded=[*near.named, *near.recorded])
    pools = (
        [*near.stated],
        [*near.stated, *near.recorded],
        [*near.stated, *near.said],
        [*near.stated, *near.recorded, *near.said],
    )
    more = LEAST_DIGITS + 1
    # `a` and `the` stand anywhere: `€5 a day` tells a rate, `75 guests in a mill` none.
    is_plain = bool(value.unit) or decimals_of(value) > 0
    is_plain = is_plain or arithmetic.announces_as("product", near.cues)
    of_rate = 2 if is_plain else LEAST_DIGITS
    is_fine = decimals_of(value) >= arithmetic.CENTS
    in_two = two_steps(near.foreign)
    for steps, least, at_most in (
        (sums, 1 if is_compared else 2, AT_HAND if is_compared else LIKELY),
        (products, of_rate if is_rate else more, 2 * LIKELY if is_rate else LIKELY),
        (of_percents(near.percents), 2 if _SHARED.search(near.cues) else more, LIKELY),
        (_in_other_units(near.cues), 2, LIKELY),
        (per_hundred, 2 if near.has_hundreds else 2 * more, LIKELY),
        (portions, LEAST_DIGITS, LIKELY),
        (in_two, LEAST_DIGITS, LIKELY if is_compared or is_rate else LIKELY / 2),
    ):
        if digits < least:
            continue
        more_of = near.counts if steps is in_two else ()
        tried: list[list[int]] = []
        few = [*near.stated, *near.held] if steps is in_two and len(near.held) <= FEW_HELD else []
        for pool in (*pools, few):
            if steps is sums:
                pool = [one for one in pool if one not in near.foreign]
            pool = [*more_of, *(_addends(pool) if steps is sums and is_fine else pool)]
            pool = pool[: 2 * MOST_NEAR]
            if pool in tried:  # where nothing was said, or no record is meant
                continue
            tried.append(pool)
            limit = at_most
            if steps is sums and len(tried) > 1:  # more than what stands beside it
                if not is_compared and len(tried) > 2:
                    continue  # what was said, without a word that says what for
                limit = at_most if pool == pools[2] else min(at_most, FURTHER)
            found = work_out(wanted, pool, steps, limit)
            is_at_hand = steps is not sums or len(tried) == 1
            if found is not None and (is_at_hand or not _is_far_off(found, near)):
                return _chained(found)
    return None


def _is_far_off(found: arithmetic.Sum, near: Operands) -> bool:
    """Has one of its operands a single digit, so that it would lead to a slip of the other, too?
    Unless its key is named, or what it is taken from stands beside it."""
    slips = [one for one in found.operands if is_round(one) and one not in near.named]
    if found.rule == "difference" and arithmetic.sets_against(near.cues):
        return False
    return bool(slips) and (found.rule == "sum" or set(near.stated).isdisjoint(found.operands))


def _as_share(wanted: Wanted, near: Operands) -> Chained | None:
    """Of what stands right before it; `13 (43%)` leaves no doubt which part it is."""
    is_bracketed = _BRACKETED.search(near.cues) is not None
    wholes: list[int] = []
    for more in (near.stated[1:], near.recorded, [*near.said, *near.held]):
        wholes += more
        for part in near.stated[:1]:
            found = arithmetic.share_of(wanted, part, wholes, 1.0 if is_bracketed else AT_HAND)
            if found is None:
                continue
            # What is missing has a word, of few: 20% are not what 4 of 5 leave.
            is_rest = found.operands[0] > found.operands[1] and all(
                one < SMALL * SCALE and one % SCALE == 0 for one in found.operands
            )
            if is_bracketed or not is_rest or arithmetic.sets_against(near.cues):
                return _chained(found)
    return None


def _chained(found: arithmetic.Sum) -> Chained:
    operands = " and ".join(map(decimal_text, found.operands))
    return Chained(found.rule, f"a {found.rule} of {operands}")


MOST_REACHING = 14  # numbers of results from which two steps are tried
_OFTEN_USED = (7, 8, 12, 24, 52, 60, 100, 365, 1000, 1024, 3600)  # by whoever reckons
LARGEST = 10**15
_UNLIKE = 100  # what is so many times as large is not added: almost any number would be near it
_SAME = 10**6  # two that differ by less than this part of them are one


def is_within_reach(value: Value, held: Sequence[int]) -> bool:
    """Do two steps lead to the number from what short results hold, whatever they mean? Then it is
    too early to say that it comes from nowhere."""
    if not 0 < len(held) <= MOST_REACHING or not value.readings:
        return False
    if max(*held, abs(value.readings[0])) > LARGEST * SCALE:
        return False
    wanted, slack = abs(value.readings[0]) / SCALE, arithmetic.half_unit(value) / SCALE
    slack = max(slack, wanted / _SAME)
    reached = _reached(tuple(held))
    at = bisect_left(reached, wanted - slack)
    return at < len(reached) and reached[at] <= wanted + slack


@lru_cache(maxsize=4)  # all values of one answer ask
def _reached(held: tuple[int, ...]) -> list[float]:
    """All that two steps lead to from these numbers."""
    known = sorted(one / SCALE for one in held)
    first = set(known)
    for one, other in combinations(known, 2):
        first |= {one + other, abs(one - other), one * other, one / other, other / one}
    for one in known:
        first |= {one * other for other in _OFTEN_USED} | {one / other for other in _OFTEN_USED}
    last = (*known, *map(float, _OFTEN_USED))
    reached = {
        one for before in first for other in last for one in (before * other, before / other)
    }
    for before in first:
        for other in known:
            if before < _UNLIKE * other and other < _UNLIKE * before:
                reached |= {before, before + other, abs(before - other)}
    return sorted(reached)
