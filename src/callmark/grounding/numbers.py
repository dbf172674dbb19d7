"""Numbers as people write them, by locale. Values are integers in units of 10⁻¹², so that
integers of any size stay exact and equality is cheap."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import babel

SCALE_DIGITS = 12
SCALE: int = 10**SCALE_DIGITS
TOLERANCE: int = SCALE // 10**6
MAX_DIGITS = 4000  # longer runs are no numbers that anybody states; int() of them is slow

SPACES = "\u00a0\u202f\u2009"
APOSTROPHES = "'’"
_ENGLISH = re.compile(r"(?:\d+|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d+)?")
_INDIAN = re.compile(r"[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d+)?")
_DOT_GROUPS = re.compile(r"[1-9]\d{0,2}(?:(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})")
_COMMA_DECIMAL = re.compile(r"\d+,\d+")
_SPACE_GROUPS = re.compile(rf"[1-9]\d{{0,2}}(?:[ {SPACES}]\d{{3}})+(?:[.,]\d+)?")
_APOSTROPHE_GROUPS = re.compile(rf"[1-9]\d{{0,2}}(?:[{APOSTROPHES}]\d{{3}})+(?:[.,]\d+)?")
_DOT_GROUP_ONCE = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_EXPONENT = re.compile(r"\d+(?:\.\d+)?[eE][+-]?\d+")
_NOT_DIGIT = re.compile(r"\D")
_ARABIC = str.maketrans({"٫": ".", "٬": ","})


def ascii_digits(text: str) -> str:
    """Digits of every script as ASCII digits."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in text)


def of_json(value: int | float) -> int:
    if isinstance(value, int):
        return value * SCALE
    return _of_float(value)


@lru_cache(maxsize=1 << 12)
def _of_float(value: float) -> int:
    return _of_decimal(Decimal(repr(value)))


def _of_decimal(value: Decimal) -> int:
    sign, digits, exponent = value.as_tuple()
    whole = int("".join(map(str, digits)) or "0")
    shift = int(exponent) + SCALE_DIGITS
    if abs(shift) > MAX_DIGITS:
        return 0 if shift < 0 else whole * 10**MAX_DIGITS
    scaled: int = whole * 10**shift if shift >= 0 else whole // 10**-shift
    return -scaled if sign else scaled


def _of_parts(whole: str, fraction: str) -> int:
    padded = fraction[:SCALE_DIGITS].ljust(SCALE_DIGITS, "0")
    return int(_NOT_DIGIT.sub("", whole)) * SCALE + int(padded)


def _split_decimal(run: str, decimal: str) -> int:
    whole, _, fraction = run.rpartition(decimal) if decimal in run else (run, "", "")
    return _of_parts(whole, fraction)


def read_unlocalised(run: str) -> int | None:
    """The one unambiguous reading of a run of digits and separators; `1.234` and `1,234` are
    read as English. None: it has none."""
    if run.isdigit() and run.isascii():
        return int(run) * SCALE if len(run) <= MAX_DIGITS else None
    run = ascii_digits(run).translate(_ARABIC)
    if len(run) > MAX_DIGITS:
        return None
    if _ENGLISH.fullmatch(run) or _INDIAN.fullmatch(run):
        return _split_decimal(run, ".")
    if _DOT_GROUPS.fullmatch(run) or _COMMA_DECIMAL.fullmatch(run):
        return _split_decimal(run, ",")
    if _SPACE_GROUPS.fullmatch(run) or _APOSTROPHE_GROUPS.fullmatch(run):
        return _split_decimal(run, "," if "," in run else ".")
    return None


def read_exponent(text: str) -> int | None:
    """`1e5`, `1.5E-3`."""
    if len(text) > 40 or not _EXPONENT.fullmatch(text):
        return None
    return _of_decimal(Decimal(text))


class NumberForm(NamedTuple):
    """How one locale writes numbers."""

    pattern: re.Pattern[str]
    decimal: str
    native: re.Pattern[str] | None
    native_decimal: str
    spaced: bool  # groups are set apart by blanks


@lru_cache(maxsize=64)
def form_of(locale: str) -> NumberForm | None:
    """None: CLDR knows no such locale."""
    import babel  # large, and most answers have no locale of their own

    try:
        parsed = babel.Locale.parse(locale.replace("-", "_"))
    except (ValueError, babel.UnknownLocaleError, TypeError):
        return None
    symbols = parsed.number_symbols
    pattern, decimal = _form(parsed, symbols.get("latn") or {})
    native, native_decimal = (None, "")
    system = parsed.other_numbering_systems.get("native", "latn")
    if system != "latn" and system in symbols:
        native, native_decimal = _form(parsed, symbols[system])
    return NumberForm(pattern, decimal, native, native_decimal, " " in pattern.pattern)


def _form(locale: babel.Locale, symbols: dict[str, str]) -> tuple[re.Pattern[str], str]:
    decimal, group = symbols.get("decimal", "."), symbols.get("group", ",")
    groups = group
    if group in SPACES + " ":
        groups = " " + SPACES  # people type any of them
    elif group in APOSTROPHES:
        groups = APOSTROPHES
    secondary = 3
    standard = locale.decimal_formats.get(None)
    if standard is not None and len(set(standard.grouping)) > 1:
        secondary = standard.grouping[1]
    g, d = re.escape(groups), re.escape(decimal)
    grouped = rf"[1-9]\d{{0,{secondary - 1}}}(?:[{g}]\d{{{secondary}}})*[{g}]\d{{3}}"
    return re.compile(rf"(?:\d+|{grouped})(?:[{d}]\d+)?"), decimal


def read_in_locale(run: str, locale: str) -> int | None:
    form = form_of(locale)
    if form is None:
        return read_unlocalised(run)
    if len(run) > MAX_DIGITS:
        return None
    plain = ascii_digits(run)
    if form.pattern.fullmatch(plain):
        return _split_decimal(plain, form.decimal)
    if form.native is not None and form.native.fullmatch(plain):
        return _split_decimal(plain, form.native_decimal)
    return None


def read_every_way(run: str) -> set[int]:
    """Every value that some locale would read: for telling a wrong form from a wrong value."""
    readings = {read_unlocalised(run)}
    plain = ascii_digits(run).translate(_ARABIC)
    if len(plain) <= MAX_DIGITS and (_DOT_GROUP_ONCE.fullmatch(plain)):
        readings.add(int(plain.replace(".", "")) * SCALE)
    if len(plain) <= MAX_DIGITS and _COMMA_DECIMAL.fullmatch(plain):
        readings.add(_split_decimal(plain, ","))
    readings.discard(None)
    return {reading for reading in readings if reading is not None}
