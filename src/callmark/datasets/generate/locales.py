"""How a locale writes numbers and dates: CLDR, asked once per locale."""

from __future__ import annotations

import datetime
from functools import cache

import babel
import msgspec
from babel.dates import format_date

_ASCII = "0123456789"
_ARABIC = str.maketrans(_ASCII, "٠١٢٣٤٥٦٧٨٩")


class LocaleForm(msgspec.Struct, frozen=True, gc=False):
    """`months` are twelve patterns with `{y}` and `{d}`. `native`: digits of the locale's own
    script. `stop` ends a sentence."""

    locale: str
    decimal: str
    group: str
    secondary: int
    months: tuple[str, ...]
    native: bool = False
    stop: str = "."

    def number(self, units: int, decimals: int) -> str:
        whole, fraction = divmod(units, 10**decimals)
        text = _group(str(whole), self.group, self.secondary)
        if decimals:
            text += f"{self.decimal}{fraction:0{decimals}}"
        return text.translate(_ARABIC) if self.native else text

    def foreign_number(self, units: int, decimals: int) -> str:
        """The same number as another part of the world writes it: wrong here."""
        return _foreign(self.decimal).number(units, decimals)

    def date(self, year: int, month: int, day: int) -> str:
        text = self.months[month - 1].format(y=year, d=day)
        return text.translate(_ARABIC) if self.native else text


def _group(digits: str, group: str, secondary: int) -> str:
    head, last = digits[:-3], digits[-3:]
    parts = [last]
    while head:
        parts.append(head[-secondary:])
        head = head[:-secondary]
    return group.join(reversed(parts))


_STOPS = {"ja": "。", "hi": "।"}


@cache
def form_of(locale: str) -> LocaleForm:
    """The form of a locale, from Babel's CLDR data."""
    parsed = babel.Locale.parse(locale.replace("-", "_"))
    native = parsed.default_numbering_system == "arab"
    symbols = parsed.number_symbols["arab" if native else "latn"]
    grouping = parsed.decimal_formats[None].grouping
    return LocaleForm(
        locale=locale,
        decimal=symbols["decimal"],
        group=symbols["group"],
        secondary=grouping[1],
        months=tuple(_month_pattern(month, parsed) for month in range(1, 13)),
        native=native,
        stop=_STOPS.get(parsed.language, "."),
    )


@cache
def english() -> LocaleForm:
    """English with the day first, as tools and people of many countries write it."""
    return form_of("en-GB")


def _month_pattern(month: int, locale: babel.Locale) -> str:
    shown = format_date(datetime.date(2001, month, 22), "long", locale=locale)
    return shown.replace("2001", "{y}").replace("22", "{d}")


def _foreign(decimal: str) -> LocaleForm:
    return form_of("en-GB" if decimal == "," else "de")
