"""Statements that are true of a result, in many forms, and the same made wrong on purpose.

A scene is one JSON result, whatever its shape: the forms look for what they can speak of (a
number, a date, a list of like records) and say it as people do. Nothing here asks the scorer."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from tests.scenes import (
    MONEY,
    Column,
    Json,
    Place,
    Scene,
    date_of,
    exact,
    grouped,
    plain,
    rounded,
    time_of,
)

LOCALES = ("de", "es", "fr")
MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
}
DAYS = {
    "en": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "de": "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
    "es": "lunes martes miércoles jueves viernes sábado domingo",
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche",
}
COUNTS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve",
    "de": "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze",
}
IS = {"en": "The {} is {}.", "de": "Der Wert von {} ist {}.", "es": "El valor de {} es {}.",
      "fr": "La valeur de {} est {}."}  # fmt: skip


class Statement(NamedTuple):
    form: str
    text: str
    result: Json
    locale: str | None = None
    prompt: str = "Please look it up."


Form = Callable[[Scene, random.Random], str | None]
FORMS: dict[str, tuple[Form, str | None]] = {}


def form(name: str, locale: str | None = None) -> Callable[[Form], Form]:
    def add(written: Form) -> Form:
        FORMS[name] = (written, locale)
        return written

    return add


def pick(places: list[Place], rng: random.Random, fits: Callable[[Place], bool]) -> Place | None:
    fitting = [one for one in places if fits(one)]
    return rng.choice(fitting) if fitting else None


def _telling(place: Place) -> bool:
    """A number that its own digits or its key make out."""
    return abs(place.value) < 10**15


def _is_money(place: Place) -> bool:
    named = any(part in MONEY for part in place.key.split())
    currency = str(place.siblings.get("currency", "USD"))
    return named and currency == "USD" and place.value > 0 and "unit" not in place.siblings


def _number_form(name: str, text: str, fits: Callable[[Place], bool]) -> None:
    @form(name)
    def written(scene: Scene, rng: random.Random) -> str | None:
        place = pick(scene.numbers, rng, lambda one: _telling(one) and fits(one))
        if place is None:
            return None
        return text.format(
            key=place.key, v=plain(place.value), g=grouped(place.value), name=place.name
        )


_number_form("plain", "The {key} is {v}.", lambda one: True)
_number_form("plain of a record", "The {key} of {name} is {v}.", lambda one: bool(one.name))
_number_form("possessive", "{name} has a {key} of {g}.", lambda one: bool(one.name))
_number_form("label and colon", "{key}: {v}", lambda one: True)
_number_form("bold", "The {key} is **{g}**.", lambda one: True)
_number_form("thousands", "The {key} is {g}.", lambda one: abs(one.value) >= 1000)
_number_form("currency before", "The {key} is ${g}.", _is_money)
_number_form("currency after", "The {key} is {g} USD.", _is_money)
_number_form("currency in words", "The {key} is {v} dollars.", _is_money)
_number_form("in backticks", "The {key} is `{v}`.", lambda one: True)
_number_form("heading and item", "**{name}**\n- {key}: {v}", lambda one: bool(one.name))
_number_form("dash", "{name} - {key} {g}", lambda one: bool(one.name))
_number_form("in brackets", "{name} ({key}: {v}) fits.", lambda one: bool(one.name))


@form("rounded to one decimal")
def _one_decimal(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.numbers, rng, lambda one: _decimals(one.value) >= 2 and abs(one.value) >= 1)
    return place and f"The {place.key} is about {rounded(place.value, 1)}."


@form("rounded to a whole")
def _whole(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.numbers, rng, lambda one: _decimals(one.value) >= 1 and one.value >= 13)
    return place and f"The {place.key} is about {rounded(place.value, 0)}."


@form("rounded money")
def _rounded_money(scene: Scene, rng: random.Random) -> str | None:
    place = pick(
        scene.numbers, rng, lambda o: _is_money(o) and _decimals(o.value) >= 1 and o.value >= 1
    )
    return place and f"It costs roughly ${rounded(place.value, 0)} ({place.key})."


@form("rounded to tens")
def _tens(scene: Scene, rng: random.Random) -> str | None:
    place = pick(
        scene.numbers, rng, lambda o: isinstance(o.value, int) and o.value >= 100 and o.value % 10
    )
    return place and f"The {place.key} is around {round(place.value, -1)}."


@form("more than")
def _more(scene: Scene, rng: random.Random) -> str | None:
    place = pick(
        scene.numbers, rng, lambda o: isinstance(o.value, int) and o.value >= 100 and o.value % 10
    )
    return place and f"The {place.key} is more than {place.value // 10 * 10}."


@form("millions")
def _millions(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.numbers, rng, lambda one: 10**6 <= one.value < 10**9)
    return place and f"The {place.key} is about {rounded(place.value / 10**6, 1)} million."


@form("thousands by k")
def _by_k(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.numbers, rng, lambda one: one.value >= 1000 and one.value % 1000 == 0)
    return place and f"The {place.key} is {int(place.value) // 1000}k."


def _decimals(value: int | float) -> int:
    return len(plain(value).partition(".")[2]) if isinstance(value, float) else 0


CONVERSIONS = {
    "km": ("miles", Decimal("0.621371192"), 1), "kg": ("lbs", Decimal("2.204622622"), 1),
    "minutes": ("hours", 1 / Decimal(60), 2), "mb": ("GB", Decimal("0.001"), 3),
    "meters": ("km", Decimal("0.001"), 3), "kmh": ("mph", Decimal("0.621371192"), 1),
    "seconds": ("minutes", 1 / Decimal(60), 2), "m": ("feet", Decimal("3.280839895"), 0),
}  # fmt: skip


@form("converted")
def _converted(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.numbers, rng, lambda o: o.key.split()[-1] in CONVERSIONS and o.value > 0)
    if place is None:
        return None
    *head, unit = place.key.split()
    into, factor, digits = CONVERSIONS[unit]
    return f"The {' '.join(head) or 'value'} is {rounded_of(place.value, factor, digits)} {into}."


def rounded_of(value: int | float, factor: Decimal, digits: int) -> Decimal:
    return (Decimal(repr(value)) * factor).quantize(Decimal(1).scaleb(-digits))


@form("temperature")
def _temperature(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.numbers, rng, lambda one: one.key.endswith(("temp c", "temperature c")))
    return place and f"It is {rounded(place.value * 9 / 5 + 32, 0)} °F."


@form("its unit")
def _its_unit(scene: Scene, rng: random.Random) -> str | None:
    units = {"km": "km", "kg": "kg", "minutes": "minutes", "mb": "MB", "kmh": "km/h", "m": "m"}
    place = pick(scene.numbers, rng, lambda one: one.key.split()[-1] in units)
    if place is None:
        return None
    *head, unit = place.key.split()
    return f"The {' '.join(head) or 'value'} is {grouped(place.value)} {units[unit]}."


@form("duration")
def _duration(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.numbers, rng, lambda o: "minutes" in o.key and o.value > 60)
    if place is None:
        return None
    hours, minutes = divmod(int(place.value), 60)
    written = rng.choice(
        ["{}h {}m", "{} hours {} minutes", "{} hours and {} minutes", "{} h {} min"]
    )
    return f"It takes {written.format(hours, minutes)}."


@form("percent of a fraction")
def _percent(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.numbers, rng, lambda o: isinstance(o.value, float) and 0 < o.value < 1)
    return place and f"The {place.key} is {(Decimal(repr(place.value)) * 100).normalize():f}%."


@form("percent")
def _plain_percent(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.numbers, rng, lambda o: o.key.endswith(("percent", "pct", "humidity")))
    return place and f"The {place.key.removesuffix(' percent')} is {plain(place.value)} %."


@form("out of five")
def _out_of(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.numbers, rng, lambda o: o.key in ("rating", "stars") and o.value <= 5)
    return place and f"It is rated {plain(place.value)} out of 5."


def _column(
    scene: Scene, rng: random.Random, fits: Callable[[Column], bool] = lambda one: True
) -> Column | None:
    fitting = [one for one in scene.columns if fits(one)]
    return rng.choice(fitting) if fitting else None


def _in_dollars(column: Column) -> bool:
    return _few(column) and all(
        _is_money(Place(column.key, value, None, record))
        for value, record in zip(column.values, column.records, strict=True)
    )


def _few(column: Column) -> bool:
    """Few enough to be named, and with no more decimals than people write."""
    return 2 <= len(column.values) <= 6 and all(
        value > 0 and _decimals(value) <= 6 for value in column.values
    )


@form("sum of a column")
def _sum(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng, _few)
    return column and (
        f"The total {column.key} of all {column.noun} is {sum(exact(column.values))}."
    )


@form("sum written out")
def _written_sum(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng, _few)
    if column is None:
        return None
    terms = " + ".join(map(plain, column.values))
    return f"The {column.key} comes to {terms} = {sum(exact(column.values))}."


@form("sum after its terms")
def _sum_after(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng, _in_dollars)
    if column is None:
        return None
    terms = ", ".join(f"${plain(value)}" for value in column.values)
    return f"The {column.key} values are {terms}, ${sum(exact(column.values))} in total."


@form("difference")
def _difference(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng, lambda o: len(set(o.values)) > 1 and _few(o))
    if column is None:
        return None
    low, high = min(exact(column.values)), max(exact(column.values))
    return f"The {column.key} goes from {low} to {high}, a difference of {high - low}."


@form("difference written out")
def _written_difference(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng, lambda o: len(set(o.values)) > 1 and _in_dollars(o))
    if column is None:
        return None
    low, high = min(exact(column.values)), max(exact(column.values))
    return f"You save ${high} - ${low} = ${high - low}."


@form("average")
def _average(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng, _few)
    if column is None:
        return None
    mean = sum(exact(column.values)) / len(column.values)
    return f"The average {column.key} of the {column.noun} is {mean.quantize(Decimal('0.01'))}."


@form("range")
def _range(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng, lambda o: len(set(o.values)) > 1)
    return column and (
        f"The {column.key} ranges from {plain(min(column.values))} to {plain(max(column.values))}."
    )


@form("range by a dash")
def _dashed(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng, lambda o: len(set(o.values)) > 1 and _in_dollars(o))
    return column and (
        f"The {column.key} is ${plain(min(column.values))}–${plain(max(column.values))}."
    )


@form("listed")
def _listed(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng, _few)
    if column is None:
        return None
    *head, last = map(plain, column.values)
    return f"The {column.key} values are {', '.join(head)} and {last}."


@form("lowest")
def _lowest(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng)
    return column and f"The lowest {column.key} is {plain(min(column.values))}."


@form("highest")
def _highest(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng)
    return column and f"The highest {column.key} is {plain(max(column.values))}."


def _named(column: Column) -> bool:
    return all(column.names) and len(set(column.names)) == len(column.names)


@form("lowest, named")
def _lowest_named(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng, lambda o: _named(o) and len(set(o.values)) == len(o.values))
    if column is None:
        return None
    low = min(column.values)
    name = column.names[column.values.index(low)]
    return f"{name} has the lowest {column.key}, {plain(low)}."


@form("table rows")
def _table(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng, lambda o: _named(o) and o.length <= 8)
    if column is None:
        return None
    rows = zip(column.names, column.values, strict=True)
    body = "\n".join(f"| {name} | {grouped(value)} |" for name, value in rows)
    return f"| {column.noun} | {column.key} |\n|---|---|\n{body}"


@form("numbered rows")
def _numbered(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng, lambda o: _named(o) and o.length <= 8)
    if column is None:
        return None
    rows = zip(column.names, column.values, strict=True)
    body = "\n".join(
        f"| {at} | {name} | {plain(value)} |" for at, (name, value) in enumerate(rows, start=1)
    )
    return f"| # | {column.noun} | {column.key} |\n|---|---|---|\n{body}"


@form("items")
def _items(scene: Scene, rng: random.Random) -> str | None:
    column = _column(scene, rng, lambda o: _named(o) and o.length <= 8)
    if column is None:
        return None
    rows = zip(column.names, column.values, strict=True)
    return "\n".join(
        f"{at}. {name}: {column.key} {grouped(value)}" for at, (name, value) in enumerate(rows, 1)
    )


@form("as JSON")
def _json(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.numbers, rng, lambda one: one.value >= 13)
    return place and json.dumps({place.key: place.value, "of": place.name}, ensure_ascii=False)


@form("product")
def _product(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.numbers, rng, _is_money)
    if place is None:
        return None
    many = rng.randrange(2, 5)
    return f"{many} × ${plain(place.value)} = ${Decimal(repr(place.value)) * many}."


@form("product in words")
def _product_words(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.numbers, rng, _is_money)
    if place is None:
        return None
    many = rng.randrange(2, 5)
    total = Decimal(repr(place.value)) * many
    return f"At ${plain(place.value)} each, the total for {many} nights is ${total}."


@form("count")
def _count(scene: Scene, rng: random.Random) -> str | None:
    fitting = [one for one in scene.lists if is_plural(one[0])]
    if not fitting:
        return None
    noun, length = rng.choice(fitting)
    return f"There are {length} {noun}."


@form("count in words")
def _count_words(scene: Scene, rng: random.Random) -> str | None:
    fitting = [one for one in scene.lists if one[1] <= 12 and is_plural(one[0])]
    if not fitting:
        return None
    noun, length = rng.choice(fitting)
    return f"I found {COUNTS['en'].split()[length]} {noun}."


def is_plural(noun: str) -> bool:
    return noun.endswith("s") and len(noun.split()) <= 2


@form("yes")
def _yes(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.yes_or_no, rng, lambda one: one.value and _is_clear(one))
    return place and f"{place.name} has {_bare(place.key)}."


@form("no")
def _no(scene: Scene, rng: random.Random) -> str | None:
    place = pick(scene.yes_or_no, rng, lambda one: not one.value and _is_clear(one))
    return place and f"{place.name} does not have {_bare(place.key)}."


def _bare(key: str) -> str:
    return re.sub(r"^(?:is|has|have|can) ", "", key)


def _is_clear(place: Place) -> bool:
    return bool(place.name) and len(_bare(place.key).split()) > 1


def _date_form(name: str, locale: str | None, write: Callable[[date], str]) -> None:
    @form(name, locale)
    def written(scene: Scene, rng: random.Random) -> str | None:
        place = pick(scene.dates, rng, lambda one: True)
        day = place and date_of(place.value)
        return day and write(day)


def month_of(day: date, locale: str = "en") -> str:
    return MONTHS[locale].split()[day.month - 1]


def weekday_in(day: date, locale: str = "en") -> str:
    return DAYS[locale].split()[day.weekday()]


_date_form("date, ISO", None, lambda d: f"The date is {d.isoformat()}.")
_date_form("date, odd hyphens", None, lambda d: f"It is {d.isoformat()}.".replace("-", "\u2011"))
_date_form("date, month first", None, lambda d: f"It is on {month_of(d)} {d.day}, {d.year}.")
_date_form("date, day first", None, lambda d: f"It is on {d.day} {month_of(d)} {d.year}.")
_date_form("date, no year", None, lambda d: f"It is on {month_of(d)} {d.day}.")
_date_form("date, ordinal", None, lambda d: f"It is on {month_of(d)[:3]} {d.day}{_ordinal(d.day)}.")
_date_form("date, slashes", None, lambda d: f"It is on {d.month:02}/{d.day:02}/{d.year}.")
_date_form("date, label", None, lambda d: f"- {month_of(d)} {d.day}: it is planned")
_date_form("year", None, lambda d: f"It was in {d.year}.")
_date_form("weekday", None, lambda d: f"It is on {weekday_in(d)}, {month_of(d)} {d.day}, {d.year}.")
_date_form("weekday, no year", None, lambda d: f"It is on {weekday_in(d)}, {month_of(d)} {d.day}.")
_date_form("date, de", "de", lambda d: f"Der Termin ist am {d.day}. {month_of(d, 'de')} {d.year}.")
_date_form("date in digits, de", "de", lambda d: f"Der Termin ist am {d.day}.{d.month}.{d.year}.")
_date_form("date, es", "es", lambda d: f"Es el {d.day} de {month_of(d, 'es')} de {d.year}.")
_date_form("date, fr", "fr", lambda d: f"C'est le {d.day} {month_of(d, 'fr')} {d.year}.")
_date_form(
    "weekday, de",
    "de",
    lambda d: f"Es ist {weekday_in(d, 'de')}, der {d.day}. {month_of(d, 'de')} {d.year}.",
)
_date_form(
    "weekday, es",
    "es",
    lambda d: f"Es el {weekday_in(d, 'es')} {d.day} de {month_of(d, 'es')} de {d.year}.",
)
_date_form(
    "weekday, fr",
    "fr",
    lambda d: f"C'est le {weekday_in(d, 'fr')} {d.day} {month_of(d, 'fr')} {d.year}.",
)


def _ordinal(day: int) -> str:
    return {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}.get(day, "th")


@form("date range")
def _date_range(scene: Scene, rng: random.Random) -> str | None:
    days = sorted({day for one in scene.dates if (day := date_of(one.value))})
    pairs = [(a, b) for a in days for b in days if a < b and (a.year, a.month) == (b.year, b.month)]
    if not pairs:
        return None
    first, last = rng.choice(pairs)
    return f"The dates are {month_of(first)} {first.day}-{last.day}, {first.year}."


def _time_form(name: str, locale: str | None, write: Callable[[int, int], str]) -> None:
    @form(name, locale)
    def written(scene: Scene, rng: random.Random) -> str | None:
        place = pick(scene.times, rng, lambda one: True)
        clock = place and time_of(place.value)
        return clock and write(*clock)


def _half(hour: int) -> str:
    return "AM" if hour < 12 else "PM"


_time_form("time, 24 h", None, lambda h, m: f"It leaves at {h:02}:{m:02}.")
_time_form("time, 12 h", None, lambda h, m: f"It leaves at {h % 12 or 12}:{m:02} {_half(h)}.")
_time_form(
    "time, p.m.", None, lambda h, m: f"At {h % 12 or 12}:{m:02} {_half(h)[0].lower()}.m. it is"
)
_time_form("time, de", "de", lambda h, m: f"Der Flug geht um {h}:{m:02} Uhr.")
_time_form("time, fr", "fr", lambda h, m: f"Le vol part à {h}h{m:02}.")


@form("time range")
def _time_range(scene: Scene, rng: random.Random) -> str | None:
    if len(scene.times) < 2:
        return None
    first, last = (str(one.value)[:5] for one in rng.sample(scene.times, 2))
    return f"The times are {first}-{last}."


def _id_form(name: str, write: Callable[[str, str], str | None]) -> None:
    @form(name)
    def written(scene: Scene, rng: random.Random) -> str | None:
        place = pick(scene.ids, rng, lambda one: True)
        return place and write(place.key, str(place.value))


def _spaced(identifier: str) -> str | None:
    found = re.fullmatch(r"#?([A-Za-z]+)_?(\d+)", identifier)
    return f"{found[1]} {found[2]}" if found else None


_id_form("id", lambda key, one: f"The {key} is {one}.")
_id_form("id with a blank", lambda key, one: f"The {key} is {_spaced(one)}.")
_id_form("id, quoted", lambda key, one: f'The {key} is "{one}".')
_id_form("id, as code", lambda key, one: f"The {key} is `{one}`.")
_id_form(
    "id, its end", lambda k, one: f"The {k} ending in {one[-4:]}." if one[-5:].isdigit() else None
)


def _local_form(locale: str) -> None:
    @form(f"number, {locale}", locale)
    def number(scene: Scene, rng: random.Random) -> str | None:
        place = pick(scene.numbers, rng, _telling)
        return place and IS[locale].format(place.key, grouped(place.value, locale))

    @form(f"money, {locale}", locale)
    def money(scene: Scene, rng: random.Random) -> str | None:
        place = pick(
            scene.numbers, rng, lambda one: _is_money(one) and "currency" not in one.siblings
        )
        return place and IS[locale].format(place.key, f"{grouped(place.value, locale)} €")

    @form(f"count in words, {locale}", locale)
    def count(scene: Scene, rng: random.Random) -> str | None:
        fitting = [one for one in scene.lists if one[1] <= 12 and is_plural(one[0])]
        if not fitting:
            return None
        noun, length = rng.choice(fitting)
        there = {"de": "Es gibt", "es": "Hay", "fr": "Il y a"}[locale]
        return f"{there} {COUNTS[locale].split()[length]} {noun}."

    @form(f"rounded, {locale}", locale)
    def about(scene: Scene, rng: random.Random) -> str | None:
        place = pick(scene.numbers, rng, lambda o: _decimals(o.value) >= 1 and o.value >= 13)
        hedge = {"de": "etwa", "es": "aproximadamente", "fr": "environ"}[locale]
        value = place and int(rounded(place.value, 0))
        return place and IS[locale].format(place.key, f"{hedge} {grouped(value or 0, locale)}")


for _locale in LOCALES:
    _local_form(_locale)


MANY = re.compile(r"^(\d) ×|for (\d) nights")


def _prompt(text: str) -> str:
    """How many of it are wanted is what the user says, not the result."""
    many = MANY.search(text)
    return f"I need it for {many[1] or many[2]} nights." if many else "Please look it up."


def write_true(results: list[Json], seed: int, per_form: int) -> Iterator[Statement]:
    """Up to so many statements a form, spread over the results."""
    rng = random.Random(seed)
    scenes = [Scene(result) for result in results]
    for name, (written, locale) in FORMS.items():
        order = rng.sample(range(len(scenes)), len(scenes))
        found: set[tuple[int, str]] = set()
        for at in order * 3:
            text = written(scenes[at], rng)
            if text is not None and (at, text) not in found:
                found.add((at, text))
                yield Statement(name, text, scenes[at].result, locale, _prompt(text))
            if len(found) >= per_form:
                break
