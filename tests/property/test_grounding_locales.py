"""Every number in a locale's own CLDR form grounds its value there, and a changed digit does not."""

from decimal import Decimal

import pytest
from babel.numbers import format_decimal
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import callmark

LOCALES = [
    "de",
    "es",
    "fr",
    "en_US",
    "en_IN",
    "hi",
    "ar",
    "ja",
    "pt_BR",
    "de_CH",
    "it",
    "ru",
    "sv",
    "pl",
    "en_GB",
    "nl",
    "tr",
    "fr_CH",
]
SOME = settings(max_examples=25, deadline=None, derandomize=True)
VALUES = st.one_of(
    st.integers(-10, 20),
    st.integers(-(10**12), 10**12),
    st.decimals(min_value=-(10**9), max_value=10**9, places=2),
    st.decimals(min_value=-100, max_value=100, places=4),
)


def written(value, locale):
    return str(format_decimal(value, locale=locale, decimal_quantization=False))


def is_lax(text, value, locale):
    number = value if isinstance(value, int) else float(value)
    return bool(callmark.ground(f"x {text} y", [{"n": number}], locale=locale)["lax"])


@pytest.mark.parametrize("locale", LOCALES)
@SOME
@given(value=VALUES)
def test_a_number_in_its_locales_form_grounds(locale, value):
    assert is_lax(written(value, locale), value, locale)


@pytest.mark.parametrize("locale", LOCALES)
@SOME
@given(value=VALUES, data=st.data())
def test_a_changed_digit_does_not_ground(locale, value, data):
    text = written(value, locale)
    places = [index for index, char in enumerate(text) if char.isdecimal()]
    place = data.draw(st.sampled_from(places))
    digit = data.draw(st.sampled_from([d for d in "0123456789" if d != text[place]]))
    assert not is_lax(text[:place] + digit + text[place + 1 :], value, locale)


@pytest.mark.parametrize("locale", LOCALES)
@SOME
@given(value=VALUES)
def test_the_other_sign_does_not_ground(locale, value):
    assume(value != 0)
    assert not is_lax(written(value, locale), -value, locale)


@SOME
@given(
    value=st.decimals(min_value=1000, max_value=10**9, places=2),
    locale=st.sampled_from(["de", "fr", "es", "pt_BR"]),
)
def test_the_english_form_does_not_ground_in_another_locale(value, locale):
    assume(value != value.to_integral_value())
    assert not is_lax(written(value, "en_US"), value, locale)
    assert not is_lax(written(value, locale), value, "en_US")


@SOME
@given(
    value=st.decimals(min_value=Decimal(1000), max_value=10**9, places=2),
    locale=st.sampled_from(LOCALES),
)
def test_without_a_locale_every_unambiguous_form_grounds(value, locale):
    assume(value != value.to_integral_value())
    assume(
        value * 10 != (value * 10).to_integral_value()
    )  # two decimals: no doubt which mark is which
    assert is_lax(written(value, locale), value, None)
