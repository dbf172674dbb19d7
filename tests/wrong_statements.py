"""Statements about a result that are wrong in one known way."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tests.scenes import MONEY, Json, Scene, date_of, grouped, plain
from tests.true_statements import (
    COUNTS,
    DAYS,
    Form,
    Statement,
    is_plural,
    month_of,
    pick,
    weekday_in,
)

WRONG: dict[str, Form] = {}


def wrong(kind: str) -> Callable[[Form], Form]:
    def add(written: Form) -> Form:
        WRONG[kind] = written
        return written

    return add


@wrong("unit")
def _wrong_unit(scene: Scene, rng: random.Random) -> str | None:
    other = {"km": "miles", "kg": "lbs", "minutes": "hours", "mb": "GB", "kmh": "mph", "m": "feet"}
    place = pick(scene.numbers, rng, lambda o: o.key.split()[-1] in other and o.value)
    if place is None:
        return None
    *head, unit = place.key.split()
    return f"The {' '.join(head) or 'value'} is {plain(place.value)} {other[unit]}."


@wrong("currency")
def _wrong_currency(scene: Scene, rng: random.Random) -> str | None:
    place = pick(
        scene.numbers,
        rng,
        lambda o: (
            o.siblings.get("currency") in ("EUR", "USD", "GBP")
            and any(part in MONEY for part in o.key.split())
            and o.value
        ),
    )
    if place is None:
        return None
    sign = rng.choice(
        [
            s
            for s, c in (("$", "USD"), ("€", "EUR"), ("£", "GBP"))
            if c != place.siblings["currency"]
        ]
    )
    return f"The {place.key} is {sign}{grouped(place.value)}."


@wrong("weekday")
def _wrong_weekday(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.dates, rng, lambda one: True)
    day = place and date_of(place.value)
    if not day:
        return None
    named = rng.choice([one for one in DAYS["en"].split() if one != weekday_in(day)])
    return f"It is on {named}, {month_of(day)} {day.day}" + rng.choice([".", f", {day.year}."])


@wrong("count")
def _wrong_count(scene: Scene, rng: random.Random) -> str | None:
    fitting = [one for one in scene.lists if one[1] <= 10 and is_plural(one[0])]
    if not fitting:
        return None
    noun, length = rng.choice(fitting)
    more = length + rng.randrange(1, 3)
    if any(other == more and noun.split()[-1] == name.split()[-1] for name, other in scene.lists):
        return None
    return f"There are {rng.choice([str(more), COUNTS['en'].split()[more]])} {noun}."


@wrong("scale")
def _wrong_scale(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.numbers, rng, lambda o: 13 <= o.value < 10**6)
    if place is None:
        return None
    return f"The {place.key} is {plain(place.value)}{rng.choice([' million', ' thousand', ' billion', 'k'])}."


def write_wrong(results: list[Json], seed: int, per_kind: int) -> Iterator[Statement]:
    rng = random.Random(seed)
    scenes = [Scene(result) for result in results]
    for kind, written in WRONG.items():
        found: set[tuple[int, str]] = set()
        for at in rng.sample(range(len(scenes)), len(scenes)) * 3:
            text = written(scenes[at], rng)
            if text is not None and (at, text) not in found:
                found.add((at, text))
                yield Statement(kind, text, scenes[at].result)
            if len(found) >= per_kind:
                break
