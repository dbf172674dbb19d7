"""Units and currencies: how texts and keys name them, and what one is in another."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from callmark.grounding.numbers import SCALE

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
speed    km/h 1         km/h kmh kph kilometers_per_hour kilometres_per_hour
speed    mph 25146/15625 mph miles_per_hour
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
energy   kWh 1          kwh kilowatt_hours
energy   Wh 1/1000      wh
energy   MWh 1000       mwh
frequency Hz 1          hz
frequency MHz 1000000   mhz
frequency GHz 1000000000 ghz
pressure hPa 1          hpa mbar millibar
pressure kPa 10         kpa
pressure bar 1000       bar bars
heat     °C 1           °c celsius
heat     °F 1           °f fahrenheit
heat     K 1            kelvin
share    % 1            % percent per_cent pct prozent por_ciento pour_cent
"""
# A sign may stand for several currencies.
_CURRENCIES = {
    "$": "USD CAD AUD NZD SGD HKD MXN ARS CLP COP", "€": "EUR", "£": "GBP", "¥": "JPY CNY",
    "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY", "₪": "ILS", "₫": "VND", "฿": "THB",
    "₴": "UAH", "₦": "NGN",
}  # fmt: skip
_CURRENCY_NAMES = {
    "dollar": "$", "dollars": "$", "dólar": "$", "dólares": "$", "bucks": "$", "us$": "USD",
    "euro": "EUR", "euros": "EUR", "yen": "JPY", "yuan": "CNY", "rupees": "INR", "rupee": "INR",
    "francs": "CHF", "franken": "CHF", "pesos": "MXN",
}  # fmt: skip
CODES = frozenset(
    """
    USD EUR GBP CHF JPY INR CAD AUD CNY BRL MXN SEK NOK DKK PLN CZK HUF RUB KRW ZAR TRY NZD SGD HKD
    THB ILS AED SAR
    """.split()
)


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
    "mo": "",
    "t": "",
    "an": "",
    "pies": "",
    "bar": "pressure",
}
_KEY_NAMES = {"c": "°C", "f": "°F"}
_MONEY = frozenset(
    """
    price prices cost costs amount total subtotal fare fares fee fees balance tax taxes salary
    revenue budget refund charge paid payment value income premium deposit rent msrp
    """.split()
)
_MEASURED = frozenset(
    """
    value distance weight temperature temp size length height width depth volume speed reading
    measurement mass area duration
    """.split()
)
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
    return frozenset(_CURRENCIES.get(unit, unit if unit in CODES else "").split())


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
    r"[ \u00a0\u202f-]?(?P<unit>°\s?[CFcf](?!\w)|%|[$€£¥₹₽₩₺₪₫฿₴₦]"
    r"|[^\W\d_]+(?:/[^\W\d_]+|[²³23](?!\w))?)"
    r"(?:[ \u00a0](?P<next>[^\W\d_]+)(?:[ ](?P<third>[^\W\d_]+))?)?"
)
_BEFORE = re.compile(
    r"(?:(?P<code>[A-Z]{2,3}\$?)[ \u00a0]?|(?P<sign>[$€£¥₹₽₩₺₪₫฿₴₦])[ \u00a0]?)[-−]?$"
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


def _currency_before(match: re.Match[str]) -> str:
    if match["sign"]:
        return match["sign"]
    code = match["code"].rstrip("$")
    if code in CODES:
        return code
    return (
        {"US": "USD", "C": "CAD", "CA": "CAD", "AU": "AUD"}.get(code, "") if "$" in match[0] else ""
    )


@lru_cache(maxsize=1 << 12)
def _named(name: str) -> str:
    if name in _CURRENCIES or name in CODES:
        return name
    if name in ("C", "F"):
        return f"°{name}"
    if name in ("M", "H", "S", "G", "L", "an", "T"):
        return ""
    folded = re.sub(r"°\s", "°", name.casefold())
    return _CURRENCY_NAMES.get(folded) or _NAMES.get(folded, "")


@lru_cache(maxsize=1 << 14)
def unit_of_key(words: tuple[str, ...]) -> str:
    """`price_usd`, `distance_km`, `duration_minutes`, `minutes`; `words` in lower case."""
    if not words:
        return ""
    last = words[-1]
    if last.upper() in CODES and last not in ("all", "try"):
        return last.upper()
    if last in _KEY_CONTEXT:
        context = _KEY_CONTEXT[last].split()
        if not any(word in context for word in words[:-1]):
            return ""
        return _KEY_NAMES.get(last) or _NAMES.get(last, "")
    if last in ("dollars", "euros", "euro"):
        return _CURRENCY_NAMES[last]
    pair = " ".join(words[-2:])
    return _NAMES.get(pair) or _NAMES.get(last, "")


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
    return next((_SCALES[word] for word in reversed(words) if word in _SCALES), 1)
