"""What an answer states: its values with their units, number words among them, without what only
looks like a value. The values of short texts of results are read in the same way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from callmark.grounding.dates import Moment
from callmark.grounding.joining import DOT_GROUP, join_groups, join_laps, with_unit_after
from callmark.grounding.numbers import SCALE, find_number_words, language_of
from callmark.grounding.text import (
    CODES,
    CURRENCIES,
    CURRENCY_NAMES,
    LEADING,
    SIGNS,
    says_less,
)
from callmark.grounding.values import Form, Value, fold_signs, values_of
from callmark.records.trace import json_inside

# By dimension: what one unit is in the first of them, and its names in en, de, es, fr. `_` is a
# blank. What means two things (`pounds`, `degrees`, `in`) names none.
_TABLE = """
length   m 1            m meter meters metre metres metern metro metros mètre mètres
length   km 1000        km kilometer kilometers kilometre kilometres kilometern kilómetro
length   km 1000        kilómetros kilomètre kilomètres kms
length   cm 1/100       cm centimeter centimeters centimetre centimetres zentimeter centímetros
length   cm 1/100       centimètres
length   mm 1/1000      mm millimeter millimeters millimetre millimetres milímetros millimètres
length   mi 201168/125  mi mile miles meile meilen milla millas mille_terrestre
length   ft 381/1250    ft foot feet fuß pies pieds
length   inch 127/5000  inch inches zoll pulgadas pouces
length   yd 1143/1250   yd yard yards
length   nmi 1852       nmi nautical_mile nautical_miles
mass     kg 1           kg kilo kilos kilogram kilograms kilogramm kilogramo kilogramos
mass     kg 1           kilogramme kilogrammes
mass     g 1/1000       g gram grams gramm gramo gramos gramme grammes
mass     mg 1/1000000   mg milligram milligrams milligramm miligramos milligrammes
mass     t 1000         tonne tonnes tonnen toneladas metric_tons
mass     lb 45359237/100000000 lb lbs
mass     oz 45359237/1600000000 oz ounce ounces unze unzen onzas onces
time     min 1          min mins minute minutes minuten minuto minutos
time     h 60           h hr hrs hour hours stunde stunden std hora horas heure heures
time     s 1/60         s sec secs second seconds sekunde sekunden segundo segundos seconde
time     s 1/60         secondes
time     ms 1/60000     ms millisecond milliseconds millisekunden milisegundos millisecondes
time     d 1440         day days tag tage tagen día días jour jours
time     wk 10080       wk wks week weeks woche wochen semana semanas semaine semaines
month    mo 1           mo month months monat monate monaten mes meses mois
month    yr 12          yr yrs year years jahr jahre jahren año años an ans année années
data     B 1            byte bytes octets
data     kB 1000        kb kilobyte kilobytes
data     MB 1000000     mb megabyte megabytes mo_octets
data     GB 1000000000  gb gigabyte gigabytes
data     TB 1000000000000 tb terabyte terabytes
data     KiB 1024       kib
data     MiB 1048576    mib
data     GiB 1073741824 gib
data     TiB 1099511627776 tib
rate     Mbps 1         mbps mbit/s
rate     Gbps 1000      gbps gbit/s
rate     kbps 1/1000    kbps kbit/s
speed    km/h 1         km/h kms/h kmh kph kilometers_per_hour kilometres_per_hour
speed    mph 25146/15625 mph mi/h miles/h miles_per_hour
speed    m/s 18/5       m/s meters_per_second metres_per_second
speed    kn 463/250     kn knots knot
area     m² 1           m² m2 sqm square_meters square_metres quadratmeter metros_cuadrados
area     m² 1           mètres_carrés
area     km² 1000000    km² km2 square_kilometers square_kilometres
area     ft² 145161/1562500 sqft ft² square_feet sq_ft
area     ha 10000       ha hectare hectares hektar hectáreas
area     acre 316160658/78125 acre acres
volume   l 1            l liter liters litre litres litern litro litros
volume   ml 1/1000      ml milliliter milliliters millilitre millilitres mililitros
volume   gal 473176473/125000000 gal gallon gallons galones
volume   m³ 1000        m³ m3 cubic_meters
power    W 1            w watt watts
power    kW 1000        kw kilowatt kilowatts
power    MW 1000000     mw megawatt megawatts
power    GW 1000000000  gw gigawatt gigawatts
energy   kWh 1          kwh kilowatt_hours
energy   Wh 1/1000      wh
energy   MWh 1000       mwh
energy   GWh 1000000    gwh
energy   TWh 1000000000 twh
frequency Hz 1          hz
frequency MHz 1000000   mhz
frequency GHz 1000000000 ghz
pressure hPa 1          hpa mbar millibar
pressure kPa 10         kpa
pressure psi 6894757/100000 psi
pressure mmHg 133322/100000 mmhg
pressure bar 1000       bar bars
heat     °C 1           °c celsius
heat     °F 1           °f fahrenheit
heat     K 1            kelvin
share    % 1            % percent per_cent pct prozent por_ciento pour_cent
"""


class _Unit(NamedTuple):
    dimension: str
    factor: Fraction


def _read_table() -> tuple[dict[str, _Unit], dict[str, str]]:
    units: dict[str, _Unit] = {}
    names: dict[str, str] = {}
    for line in _TABLE.split("\n"):
        if line:
            dimension, unit, factor, *called = line.split()
            units[unit] = _Unit(dimension, Fraction(factor))
            names.update((name.replace("_", " "), unit) for name in called)
    return units, names


_UNITS, _NAMES = _read_table()
_BY_DIMENSION: dict[str, list[str]] = {}
for _unit, (_dimension, _) in _UNITS.items():
    _BY_DIMENSION.setdefault(_dimension, []).append(_unit)

# Of a key these mean a unit only beside a word that says what is measured.
_KEY_CONTEXT = {
    "m": "distance length height altitude elevation depth width radius range visibility",
    "c": "temp temperature feels dew max min high low",
    "f": "temp temperature feels dew max min high low",
    "min": "duration time travel wait delay driving walking flight prep cook cooking runtime",
    "s": "duration time elapsed latency timeout delay uptime",
    "h": "duration time elapsed delay uptime",
    "g": "weight mass protein fat carbs sugar fiber",
    "l": "volume capacity",
    "w": "power",
    "mi": "distance length range",
    "ft": "height altitude elevation length width distance",
    **dict.fromkeys(("mo", "t", "an", "pies", "second"), ""),
    "bar": "pressure",
}
# `price_min` is the least price, `response_min` are minutes.
_NOT_MINUTES = frozenset(
    """
    temp temperature price value amount salary age level score rating size count limit order qty
    quantity max humidity wind speed pressure width height length weight rent area rooms beds budget
    """.split()
)
_KEY_NAMES = {"c": "°C", "f": "°F"}
_MONEY = frozenset(
    """
    price prices cost costs amount total subtotal fare fares fee fees balance tax taxes salary
    revenue budget refund charge paid payment value income premium deposit rent msrp
    preis preise betrag kosten summe gebühr gebuehr gebühren miete gehalt lohn umsatz
    precio precios importe coste costo monto saldo alquiler salario ingreso ingresos gasto gastos
    prix montant coût cout frais tarif tarifa tarifs solde loyer salaire
    """.split()
)
_RATES = frozenset("per pro je por par".split())
_NO_UNIT_AFTER = frozenset("100 this last next current previous".split())
_MEASURED = frozenset(
    """
    value distance weight temperature temp size length height width depth volume speed reading
    measurement mass area duration latency
    """.split()
)
_SCALE_LETTERS = {"k": 10**3, "t": 10**3, "m": 10**6, "mn": 10**6, "mio": 10**6, "bn": 10**9}
_PER_ENERGY = frozenset(
    "g kg co2 gco2 gco kgco2 ct cent eur usd gbp price cost tariff rate".split()
)
_PERIODS = frozenset("week wk weekly day daily month monthly year".split())
_SCALES = {
    "thousand": 10**3, "thousands": 10**3, "k": 10**3, "million": 10**6, "millions": 10**6,
    "mio": 10**6, "mn": 10**6, "billion": 10**9, "billions": 10**9, "bn": 10**9, "mrd": 10**9,
}  # fmt: skip


def dimension_of(unit: str) -> str:
    """`length`, `mass`, …; `money` for a currency."""
    known = _UNITS.get(unit)
    return "money" if known is None else known.dimension


def is_same_unit(one: str, other: str) -> bool:
    """`$` may be USD, and CAD as well."""
    return one == other or bool(_currencies(one) & _currencies(other))


@lru_cache(maxsize=256)
def _currencies(unit: str) -> frozenset[str]:
    return frozenset(CURRENCIES.get(unit, unit if unit in CODES else "").split())


def convert(reading: int, unit: str, into: str) -> int | None:
    """A number in units of 10⁻¹², in another unit. None: there is no such conversion."""
    one, other = _UNITS.get(unit), _UNITS.get(into)
    if one is None or other is None or one.dimension != other.dimension:
        return None
    if one.dimension == "heat":
        return _from_celsius(_to_celsius(reading, unit), into)
    return round(reading * one.factor / other.factor)


def _to_celsius(reading: int, unit: str) -> Fraction:
    if unit == "°F":
        return Fraction(reading - 32 * SCALE) * 5 / 9
    return Fraction(reading) - (Fraction(5463, 20) * SCALE if unit == "K" else 0)


def _from_celsius(celsius: Fraction, unit: str) -> int:
    if unit == "°F":
        return round(celsius * 9 / 5) + 32 * SCALE
    return round(celsius + (Fraction(5463, 20) * SCALE if unit == "K" else 0))


def units_beside(unit: str) -> list[str]:
    """The other units that it can be converted into."""
    known = _UNITS.get(unit)
    if known is None:
        return []
    return [other for other in _BY_DIMENSION[known.dimension] if other != unit]


_AFTER = re.compile(
    rf"[ \u00a0\u202f-]?(?P<unit>°\s?[CFcf](?!\w)|%|[{SIGNS}]"
    r"|[^\W\d_]+(?:/[^\W\d_]+|[²³23](?!\w))?)"
    r"(?:[ \u00a0](?P<next>[^\W\d_]+)(?:[ ](?P<third>[^\W\d_]+))?)?"
)
_BEFORE = re.compile(
    rf"(?:(?P<code>[A-Z]{{2,3}}\$?)[ \u00a0]?|(?P<sign>[{SIGNS}])[ \u00a0]?)[-−]?$"
)


def unit_beside(text: str, start: int, end: int) -> tuple[str, int]:
    """The unit of the number between `start` and `end`, and where its name ends."""
    before = _BEFORE.search(text[max(0, start - 5) : start])
    found = before and _currency_before(before)
    if found:
        return found, end
    after = _AFTER.match(text, end)
    if after is None:
        return "", end
    words = [after["unit"], after["next"], after["third"]]
    for length in (3, 2, 1):
        if all(words[:length]):
            unit = _named(" ".join(word for word in words[:length] if word))
            if unit:
                return unit, after.end(("unit", "next", "third")[length - 1])
    return "", end


_SIGN_BEFORE = re.compile(rf"[{SIGNS}]\s?[-−]?$")
_MONEY_AFTER = re.compile(
    rf"\s?(?:(?:{'|'.join(sorted(CODES) + sorted(CURRENCY_NAMES))})\b|[{SIGNS}])"
)


def is_money(text: str, value: Value) -> bool:
    """Is the number an amount, by its sign or by what stands beside it?"""
    if value.text.startswith("-") or text[value.start : value.end].startswith(("-$", "−$")):
        return True
    before = text[max(0, value.start - 3) : value.start]
    return _SIGN_BEFORE.search(before) is not None or (
        _MONEY_AFTER.match(text, value.end) is not None
    )


def _currency_before(match: re.Match[str]) -> str:
    if match["sign"]:
        return match["sign"]
    code = match["code"].rstrip("$")
    if code in LEADING:
        return code
    return (
        {"US": "USD", "C": "CAD", "CA": "CAD", "AU": "AUD"}.get(code, "") if "$" in match[0] else ""
    )


_DEGREES_OF = re.compile(
    r"(?:degrees?|grad|grados?|degrés?)\s(?P<scale>celsius|fahrenheit|centigrade|[cf])"
)


@lru_cache(maxsize=1 << 12)
def _named(name: str) -> str:
    if name in CURRENCIES or name in CODES:
        return name
    if name in ("C", "F"):
        return f"°{name}"
    if name in ("Ki", "Mi", "Gi", "Ti"):  # `512Mi`, as clusters write it, is no distance
        return f"{name}B"
    if name in ("M", "H", "S", "G", "L", "an", "T"):
        return ""
    folded = re.sub(r"°\s", "°", name.casefold())
    heat = _DEGREES_OF.fullmatch(folded)
    if heat is not None:  # `26 degrees Celsius`
        return f"°{heat['scale'][0].upper()}"
    return CURRENCY_NAMES.get(folded) or _NAMES.get(folded, "")


@lru_cache(maxsize=1 << 14)
def unit_of_key(words: tuple[str, ...]) -> str:
    """`price_usd`, `distance_km`, `minutes`, `open_hours_week`; `words` in lower case."""
    if not words or words[0] == "per" or not _RATES.isdisjoint(words[1:]):  # `price_per_kwh`
        return ""
    last = words[-1]
    is_rate = last in _HOURLY and is_money_key(words[:-1])  # `price_hour`
    if is_rate or (len(words) > 2 and words[-2] in _NO_UNIT_AFTER):  # `l_100km`, `used_this_year`
        return ""
    if last.upper() in CODES and last not in ("all", "try", "php"):
        return last.upper()
    if (scaled := _scaled_code(last)) is not None:
        return scaled[1]
    if (last in _PERIODS or last == "min") and (before := unit_of_key(words[:-1])):
        return before  # `base_eur_year`
    if dimension_of(_NAMES.get(last, "")) == "energy" and not _PER_ENERGY.isdisjoint(words[:-1]):
        return ""  # `intensity_gCO2_kWh` is no energy
    if last == "min" and len(words) > 1 and _NOT_MINUTES.isdisjoint(words):
        return "min"
    if last in _KEY_CONTEXT:
        context = _KEY_CONTEXT[last].split()
        if not any(word in context for word in words[:-1]):
            return ""
        return _KEY_NAMES.get(last) or _NAMES.get(last, "")
    if last in CURRENCY_NAMES and last not in ("pound", "pounds", "mark", "real", "won"):
        return CURRENCY_NAMES[last]
    if last == "ms" and not _MOVING.isdisjoint(words[:-1]):
        return "m/s"  # `wind_ms`
    pair = " ".join(words[-2:])
    return _NAMES.get(pair) or _NAMES.get(last, "")


def ends_in_unit(words: tuple[str, ...], unit: str) -> bool:
    """`flour_g` is in grams, if so many kilograms are stated; by itself it may be anything."""
    return bool(words) and words[-1] in _KEY_CONTEXT and _NAMES.get(words[-1]) == unit


def unit_called(name: str) -> str:
    """What the value of a field `currency` or `unit` names."""
    name = name.strip()
    return name.upper() if name.upper() in CODES else _named(name)


def is_money_key(words: tuple[str, ...]) -> bool:
    return any(word in _MONEY for word in words)


def is_measured_key(words: tuple[str, ...]) -> bool:
    return any(word in _MEASURED for word in words)


def scale_of_key(words: tuple[str, ...]) -> int:
    """`population_millions`: its numbers are millions."""
    for word in reversed(words):
        if word in _SCALES:
            return _SCALES[word]
        if (scaled := _scaled_code(word)) is not None:
            return scaled[0]
    return 1


def _scaled_code(word: str) -> tuple[int, str] | None:
    """`meur`, `kusd`: how many of what."""
    factor, code = _SCALE_LETTERS.get(word[:-3]), word[-3:].upper()
    return None if factor is None or code not in CODES else (factor, code)


LONGEST_LEAF = 20000  # characters of a text of a result whose number words and units are read
_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_IDIOM = re.compile(
    r"(?<![\w/])24/7(?![\w/])|\b24-hour(?= )|(?<![\w/])24\s?h?/24(?![\w/])"
    r"|\b[45]\d\d(?=\([a-z]\))|\b(?:COVID-19|SARS-CoV-2|50/50|9-to-5)\b|(?<!\w)\d-stars?\b",
    re.IGNORECASE,
)
_OF_IDIOMS = (
    "24/7", "24-h", "/24", "(k)", "(c)", "(b)", "-19", "cov-2", "50/50", "9-to-5", "-star"
)  # fmt: skip  # one in each of them
_ROW = re.compile(r"^[ \t]*\|?[ \t]*(\d{1,3})[ \t]*\|", re.MULTILINE)
_OPTION = re.compile(r"\b(?:option|step|choice|row|example|scenario|case|opción|étape)\s$", re.I)
# `4.4 out of 5`: what it is out of is a scale, if the number before it is a rating.
_OUT_OF = re.compile(r"\s?(?:out of|/|von|de|sur)\s?(?=(?:5|10|20|100)(?![\w/]|[.,]\d))", re.I)
_RATING = re.compile(
    r"\b(?:rat(?:ed|ing|es)|scor(?:e|ed|es)|reviews?|stars?|bewert\w+|calific\w+|puntuación|valor\w+|not[ée]\w*)\b",
    re.IGNORECASE,
)
_HOURLY = frozenset("hour hora stunde heure day night tag nacht dia noche jour nuit".split())
_MOVING = frozenset("wind gust gusts speed velocity".split())
_AND = re.compile(r"[,\s]{0,2}(?:(?:and|und|y|et)\s)?")
_MINUTES = re.compile(rf"[0-5]\d(?![\w.,:]\d|\w|\s?[{SIGNS}%])")
_ISO_DURATION = re.compile(r"P(?:(\d{1,4})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,5})M)?(?:(\d{1,6})S)?)?")
_ALL_DAY = re.compile(r"24\s?/\s?7|0?0:00\s?[-–]\s?(?:24:00|23:59|0?0:00)|24\s?h(?:ours|rs)?")
_AMOUNT = re.compile(r"(\d{1,6})[A-Za-z]{2,4}")  # `30MP`, which an answer may write `30 MP`
_LETTER = re.compile(r"[^\W\d_]")


# `minus 3 degrees`, `3 degrees below zero`; `9 minus 3` is a sum.
_MINUS = re.compile(rf"(?<![\d){SIGNS}%] )(?<!\w)(?:minus|moins|menos)\s$", re.IGNORECASE)
_HUNDREDTHS = re.compile(r"\s?(?:pence|cents?|céntimos?|centimes?|Rappen|p)\b")
_DEGREES = re.compile(r"\s?(?:°|degrees?\b|Grad\b|grados?\b|degrés?\b|%)", re.IGNORECASE)
_BELOW_ZERO = re.compile(
    r"\s?(?:°\s?[CF]?|degrees?|Grad|grados?|degrés?)?\s?(?:Celsius\s)?"
    r"(?:below zero|unter Null|bajo cero|sous zéro|au-dessous de zéro)\b",
    re.IGNORECASE,
)


def read_stated(text: str, values: Sequence[Value], locale: str | None) -> list[Value]:
    """The values that the text states, in order; `values` are those of `find_values`."""
    folded = fold_signs(text)
    if json_inside(text) is not text:  # the whole answer is an object or a list
        values = list(_unquote(values))
    left_out = _left_out(folded, values)
    kept = [
        _with_unit(folded, value, locale) for at, value in enumerate(values) if at not in left_out
    ]
    language = language_of(folded) if locale is None and kept else "en"
    if language != "en":
        kept = join_groups(folded, kept, language)
    if len(kept) > 1:
        kept = join_laps(folded, with_unit_after(folded, kept))
    joined = _join_durations(folded, kept)
    return _merge(joined, _words(folded, locale))


def _unquote(values: Iterable[Value]) -> Iterator[Value]:
    """In JSON the quotation marks quote nobody: what a string holds is stated."""
    for value in values:
        if value.kind == "quote":
            yield from _unquote(value.inner)
        else:
            yield value


@lru_cache(maxsize=4096)
def read_leaf(text: str) -> tuple[Value, ...]:
    """The values of a text of a result, each by itself, and what a few are together."""
    values = values_of(text)
    if len(text) > LONGEST_LEAF:
        return values
    may_be_code = text.isalnum() and text[0].isalpha() and text[0] != "P"
    if may_be_code and [(one.kind, one.text) for one in values] == [("identifier", text)]:
        return values  # nothing is measured or counted in it
    duration = _iso_duration(text)
    if duration is not None:
        return (duration,)
    if _ALL_DAY.fullmatch(text):
        whole = Value(0, len(text), "number", text, (24 * SCALE,), unit="h")
        return (*values, whole)
    amount = _AMOUNT.fullmatch(text)
    if amount is not None and all(one.kind == "identifier" for one in values):
        return (*values, Value(0, amount.end(1), "number", amount[1], (int(amount[1]) * SCALE,)))
    folded = fold_signs(text)
    measured = [_with_unit(folded, value, None) for value in values]
    known = frozenset(measured)  # a leaf may hold thousands
    joined = [value for value in _join_durations(folded, measured) if value not in known]
    return (*measured, *joined, *(_words(folded, None) if _LETTER.search(folded) else ()))


def _words(text: str, locale: str | None) -> list[Value]:
    found = []
    for start, end, number in find_number_words(text, locale):
        unit, _ = unit_beside(text, end, end)
        value = Value(start, end, "number", text[start:end], (number * SCALE,), unit=unit)
        found.append(value)
    return found


def _merge(values: list[Value], words: list[Value]) -> list[Value]:
    if not words:
        return values
    merged: list[Value] = []
    # The longer of two that begin alike: `two hours and 46 minutes` holds `two`.
    for value in sorted(values + words, key=lambda one: (one.start, -one.end)):
        if not merged or value.start >= merged[-1].end:
            merged.append(value)
    return merged


def _left_out(text: str, values: Sequence[Value]) -> set[int]:
    """The places of values that claim nothing."""
    lower = text.casefold()
    spans = []
    if any(part in lower for part in _OF_IDIOMS):
        spans = [found.span() for found in _IDIOM.finditer(text)]
    spans += _row_numbers(text)
    spans.sort()
    out = _inside(spans, values)
    fences = (
        [found.span() for found in _FENCE.finditer(text)] if "```" in text or "~~~" in text else []
    )
    fenced = _inside(fences, values)
    if len(fenced) < len(values):  # else the code is the answer
        out |= fenced
    for at, value in enumerate(values):
        if value.kind == "number" and _is_marker(text, values, at):
            out.add(at)
    return out


def _inside(spans: Iterable[tuple[int, int]], values: Sequence[Value]) -> set[int]:
    found: set[int] = set()
    at = 0
    for start, end in spans:
        while at < len(values) and values[at].end <= start:
            at += 1
        while at < len(values) and values[at].start < end:
            found.add(at)
            at += 1
    return found


def _row_numbers(text: str) -> list[tuple[int, int]]:
    """The first cells of table rows, where they count from 1."""
    rows = list(_ROW.finditer(text)) if "|" in text else []
    numbers = [int(row[1]) for row in rows]
    if len(rows) < 2 or numbers != list(range(1, len(rows) + 1)):
        return []
    return [row.span(1) for row in rows]


def _is_marker(text: str, values: Sequence[Value], at: int) -> bool:
    """`Option 2`, and the 5 of `4.4 out of 5`."""
    value = values[at]
    if len(value.text) > 3:
        return False
    before = text[max(0, value.start - 12) : value.start]
    if len(value.text) <= 2 and _OPTION.search(before):
        return True
    if at == 0 or value.text not in ("5", "10", "20", "100"):
        return False
    rated = values[at - 1]
    between = _OUT_OF.match(text, rated.end) if rated.kind == "number" else None
    if between is None or between.end() != value.start:
        return False
    around = text[max(0, rated.start - 60) : value.end + 12].rpartition("\n")[2]
    return "." in rated.text or "," in rated.text or _RATING.search(around) is not None


def _with_unit(text: str, value: Value, locale: str | None) -> Value:
    if value.kind != "number" or not value.readings:
        return value
    if _BELOW_ZERO.match(text, value.end) or (
        _MINUS.search(text, max(0, value.start - 10), value.start)
        and _DEGREES.match(text, value.end)
    ):
        value = value._replace(readings=tuple(-abs(one) for one in value.readings))
    if value.form.percent:
        return value._replace(unit="%")
    inner = text[value.start : value.start + 2].lstrip("-−")[:1]
    if inner and inner in SIGNS:
        unit = inner
    else:
        unit, _ = unit_beside(text, value.start, value.end)
    if not unit:
        if _HUNDREDTHS.match(text, value.end):  # `30 pence` are 0.30 of what prices are in
            return value._replace(readings=(*value.readings, value.readings[0] // 100))
        return value
    readings = value.readings
    if locale is None and dimension_of(unit) == "money" and DOT_GROUP.fullmatch(value.text):
        # Nobody writes tenths of a cent: `1.200 €` is more than a thousand.
        readings = (*readings, readings[0] * 1000)
    return value._replace(unit=unit, readings=readings)


# `an hour and`, `two hours and`: how many, by the words of four languages.
_HOURS_IN_WORDS = {
    word: number
    for number, words in enumerate(
        """
        an one eine una une/two zwei dos deux/three drei tres trois/four vier cuatro quatre
        five fünf cinco cinq/six sechs seis/seven sieben siete sept/eight acht ocho huit
        nine neun nueve neuf/ten zehn diez dix/eleven elf once onze/twelve zwölf doce douze
        """.replace("quatre\n", "quatre/")
        .replace("huit\n", "huit/")
        .split("/"),
        start=1,
    )
    for word in words.split()
}
_AN_HOUR_AND = re.compile(
    rf"\b(?P<hours>{'|'.join(_HOURS_IN_WORDS)})\s"
    r"(?:hours?\sand|stunden?\s(?:und)?|horas?\sy|heures?(?:\set)?)\s$",
    re.IGNORECASE,
)


def _join_durations(text: str, values: list[Value]) -> list[Value]:
    """`1h 24m` and `1 hour and 24 minutes` are one value, in the smaller unit."""
    joined: list[Value] = []
    for value in values:
        is_part = value.unit == "min" and 0 < value.readings[0] < 60 * SCALE
        hour = is_part and _AN_HOUR_AND.search(text, max(0, value.start - 28), value.start)
        if hour:
            # `an hour and 45 minutes`
            whole = 60 * SCALE * _HOURS_IN_WORDS[hour["hours"].casefold()]
            value = value._replace(start=hour.start(), readings=(whole + value.readings[0],))
            value = value._replace(text=text[value.start : value.end])
            joined = [one for one in joined if one.end <= value.start]
        last = joined[-1] if joined else None
        together = None if last is None else _together(text, last, value)
        if together is None:
            joined.append(value)
        else:
            joined[-1] = together
    return joined


def _together(text: str, one: Value, other: Value) -> Value | None:
    if not one.readings or not other.readings or other.start - one.end > 20:
        return None
    larger, end = _time_unit(text, one)
    smaller, stop = _time_unit(text, other, larger)
    if larger == "h" and not smaller and _MINUTES.match(text, other.start):  # `2 h 16`
        smaller, stop = "min", other.end
    if not larger or not smaller or _AND.fullmatch(text, end, other.start) is None:
        return None
    whole = convert(one.readings[0], larger, smaller)
    ratio = convert(SCALE, larger, smaller)
    if whole is None or ratio is None or not 0 <= other.readings[0] < ratio or ratio <= SCALE:
        return None
    return Value(
        one.start,
        stop,
        "number",
        text[one.start : stop],
        (whole + other.readings[0],),
        unit=smaller,
    )


def _time_unit(text: str, value: Value, larger: str = "") -> tuple[str, int]:
    if value.inner or value.kind != "number":
        return "", value.end
    unit, end = unit_beside(text, value.start, value.end)
    if text[value.start : value.end][-1:].isalpha() and value.unit and not unit:
        return value.unit, value.end  # joined before
    if larger == "h" and unit == "m":
        unit = "min"
    return (unit, end) if unit and dimension_of(unit) == "time" else ("", end)


def _iso_duration(text: str) -> Value | None:
    """`PT1H24M`."""
    if not text.startswith("P") or len(text) > 24 or text[-1:] not in "DHMS":
        return None
    match = _ISO_DURATION.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    scaled = ((days * 24 + hours) * 60 + minutes) * SCALE + seconds * SCALE // 60
    return Value(0, len(text), "number", text, (scaled,), form=Form(), unit="min")


_AROUND = 60, 30  # characters around a number whose words may carry its sign


_BRACKET = re.compile(rf"\([{SIGNS}]\s?[\d.,]+\)")  # as accounts write what is less than nothing
_ADDED = re.compile(r"\+\d[\d.,]*\s?[/|,]\s?$")


def read_otherwise(
    text: str, value: Value, *, is_listed: bool, may_be_less: bool = True
) -> Value | None:
    """The other way to read a number that no result has: `you owe 684.12` is -684.12, `19 h` is
    19:00. Amounts in lists, such as those of an account, stand without a sign."""
    if value.kind != "number" or not value.readings:
        return None
    hour, rest = divmod(value.readings[0], SCALE)
    if value.unit == "h" and not rest and 0 <= hour <= 24:
        return value._replace(kind="moment", moments=(Moment(hour=hour, minute=0),), unit="")
    if _ADDED.search(text[max(0, value.start - 24) : value.start]):  # `+312 / −87`
        return value._replace(readings=tuple(map(abs, value.readings)))
    if value.form.sign is not None or value.readings[0] <= 0 or not may_be_less:
        return None
    around = text[max(0, value.start - _AROUND[0]) : value.end + _AROUND[1]]
    is_less = _BRACKET.search(text[max(0, value.start - 3) : value.end + 1]) or says_less(around)
    if is_less or (is_listed and is_money(text, value)):
        return value._replace(readings=tuple(-one for one in value.readings))
    return None
