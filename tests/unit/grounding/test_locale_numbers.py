"""With a locale only that locale's reading of the answer counts."""

import pytest
from tests.unit.grounding.asking import lax

NB, NNB = "\u00a0", "\u202f"


@pytest.mark.parametrize(
    ("locale", "span", "number"),
    [
        ("de", "1.234,56", 1234.56), ("de", "1.234", 1234), ("de", "1,234", 1.234), ("de", "1,5", 1.5), ("de", "1234,5", 1234.5),
        ("de", "1.234.567", 1234567), ("de", "42", 42), ("de", "-1,5", -1.5), ("de", "50 %", 0.5), ("de", "1.234,56 €", 1234.56),
        ("de-DE", "1.234,56", 1234.56), ("de_DE", "1.234,56", 1234.56), ("de-AT", "1.234,56", 1234.56),
        ("es", "1.234,56", 1234.56), ("es", "12.345,6", 12345.6), ("es", "1234,5", 1234.5), ("es", "1.234", 1234),
        ("es", "1,5", 1.5), ("es-MX", "1,234.56", 1234.56),
        ("fr", f"1{NNB}234,56", 1234.56), ("fr", f"1{NB}234,56", 1234.56), ("fr", "1 234,56", 1234.56), ("fr", "1234,56", 1234.56),
        ("fr", f"12{NNB}345{NNB}678", 12345678), ("fr", "0,5", 0.5), ("fr-CA", f"1{NB}234,56", 1234.56),
        ("en-US", "1,234.56", 1234.56), ("en-US", "1,234", 1234), ("en-US", "1.234", 1.234), ("en-US", "$1,234.50", 1234.5),
        ("en", "1,234.56", 1234.56), ("en-GB", "1,234.56", 1234.56),
        ("en-IN", "12,34,567.5", 1234567.5), ("en-IN", "1,23,456", 123456), ("hi", "12,34,567.5", 1234567.5),
        ("hi", "१२,३४,५६७", 1234567), ("ar", "1,234.56", 1234.56), ("ar-EG", "١٬٢٣٤٫٥٦", 1234.56), ("ar", "٤٢", 42),
        ("ja", "1,234.56", 1234.56), ("ja", "１２３", 123), ("ja", "1,234円", 1234),
        ("pt-BR", "1.234,56", 1234.56), ("pt-BR", "R$ 1.234,56", 1234.56), ("pt-BR", "1,5", 1.5),
        ("de-CH", "1’234.56", 1234.56), ("de-CH", "1'234.56", 1234.56), ("de-CH", "1.5", 1.5),
        ("it", "1.234,56", 1234.56), ("ru", f"1{NB}234,56", 1234.56), ("sv", f"1{NB}234,5", 1234.5), ("nl", "1.234,56", 1234.56),
        ("pl", f"12{NB}345,6", 12345.6), ("zh", "1,234.56", 1234.56),
    ],
)  # fmt: skip
def test_the_locales_own_form_grounds(locale, span, number):
    assert lax(f"x {span} y", {"n": number}, locale=locale)


@pytest.mark.parametrize(
    ("locale", "span", "number"),
    [
        ("de", "1,234.56", 1234.56), ("de", "1.234", 1.234), ("de", "1,234", 1234), ("de", "1.5", 1.5), ("de", "3.14", 3.14),
        ("de", "12,34,567", 1234567), ("de", "1'234.56", 1234.56), ("es", "1,234.56", 1234.56), ("es", "1,234", 1234),
        ("es", "1.5", 1.5), ("fr", "1,234.56", 1234.56), ("fr", "1.234,56", 1234.56), ("fr", "1.5", 1.5), ("fr", "1,234", 1234),
        ("en-US", "1.234,56", 1234.56), ("en-US", "1,5", 1.5), ("en-US", "1.234", 1234), ("en-US", f"1{NNB}234,56", 1234.56),
        ("en-IN", "1.234,56", 1234.56), ("ja", "1.234,56", 1234.56), ("pt-BR", "1,234.56", 1234.56), ("pt-BR", "1.5", 1.5),
        ("de-CH", "1.234,56", 1234.56), ("hi", "1.234,56", 1234.56), ("es-MX", "1.234,56", 1234.56),
    ],
)  # fmt: skip
def test_another_locales_form_does_not_ground(locale, span, number):
    assert not lax(f"x {span} y", {"n": number}, locale=locale)


def test_d26_an_ambiguous_number_is_read_by_the_locale():
    assert lax("1.234", {"n": 1234}, locale="de")
    assert not lax("1.234", {"n": 1234})
    assert lax("1.234", {"n": 1.234})
    assert lax("1,234", {"n": 1234})
    assert not lax("1,234", {"n": 1234}, locale="de")


@pytest.mark.parametrize("locale", ["de", "fr", "en-US", "hi", None])
def test_numbers_inside_result_texts_are_read_without_a_locale(locale):
    own = {"de": "1.234,5", "fr": "1 234,5", "en-US": "1,234.5", "hi": "1,234.5", None: "1,234.5"}[
        locale
    ]
    assert lax(own, {"text": "costs 1,234.50 dollars"}, locale=locale)
    assert lax(own, {"text": "kostet 1.234,50 Euro"}, locale=locale)


@pytest.mark.parametrize(
    "locale", ["xx", "", "not-a-locale", "de_XX", "zz_ZZ", "C", "en_US.UTF-8", "🙂"]
)
def test_an_unknown_locale_never_raises(locale):
    assert lax("42 files", {"n": 42}, locale=locale)


@pytest.mark.parametrize(
    ("locale", "span", "date", "expected"),
    [
        ("de", "05.01.2024", "2024-01-05", True),
        ("de", "5.1.2024", "2024-01-05", True),
        ("de", "5. Januar 2024", "2024-01-05", True),
        ("de", "05.01.2024", "2024-05-01", False),
        ("fr", "05/01/2024", "2024-01-05", True),
        ("fr", "05/01/2024", "2024-05-01", False),
        ("fr", "5 janvier 2024", "2024-01-05", True),
        ("es", "5 de enero de 2024", "2024-01-05", True),
        ("es", "05/01/2024", "2024-01-05", True),
        ("en-US", "01/05/2024", "2024-01-05", True),
        ("en-US", "01/05/2024", "2024-05-01", False),
        ("en-GB", "05/01/2024", "2024-01-05", True),
        ("en-US", "January 5, 2024", "2024-01-05", True),
        ("ja", "2024年1月5日", "2024-01-05", True),
        ("ja", "2024/01/05", "2024-01-05", True),
        ("pt-BR", "5 de janeiro de 2024", "2024-01-05", True),
        ("pt-BR", "05/01/2024", "2024-01-05", True),
        ("de", "2024-01-05", "2024-01-05", True),
        ("fr", "2024-01-05", "2024-01-05", True),
    ],
)
def test_dates_are_read_by_the_locale(locale, span, date, expected):
    assert lax(f"x {span} y", {"when": date}, locale=locale) is expected
