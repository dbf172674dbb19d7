"""Numbers by value and sign, as people write them, and never as parts of something else."""

import pytest
from tests.unit.grounding.asking import lax, paths, unsupported


@pytest.mark.parametrize(
    ("span", "number"),
    [
        ("3 files", 3), ("exactly 3.", 3), ("(3)", 3), ("3, 4", 3), ("3,4 and 5", 5), ("3!", 3), ("3 of 4", 4), ("=3", 3),
        ("3.0", 3), ("3", 3.0), ("3.50", 3.5), ("0.5", 0.5), ("03", 3), ("**3**", 3), ("“3”", 3), ("`3`", 3), ("3/4", 4),
        ("-3", -3), ("−3", -3), ("(-3)", -3), ("$-3", -3), ("1,234", 1234), ("1234", 1234), ("1,234.56", 1234.56),
        ("1.234,56", 1234.56), ("1 234,56", 1234.56), ("1\u00a0234,56", 1234.56), ("1\u202f234,56", 1234.56),
        ("1'234.56", 1234.56), ("1’234.56", 1234.56), ("12,34,567", 1234567), ("1,234,567", 1234567),
        ("1.234.567", 1234567), ("1 234 567", 1234567), ("1,5", 1.5), ("1.234", 1.234), ("1.5", 1.5), ("0,25", 0.25),
        ("$1,234.56", 1234.56), ("1.234,56 €", 1234.56), ("EUR 1234.56", 1234.56), ("1234.56 USD", 1234.56),
        ("₹12,34,567", 1234567), ("£3", 3), ("¥3000", 3000), ("CHF 1'234.50", 1234.5), ("100MB", 100), ("5km", 5),
        ("3x", 3), ("20°C", 20), ("50%", 50), ("50 %", 50), ("50 percent", 50), ("50%", 0.5), ("50 %", 0.5),
        ("50 percent", 0.5), ("12.5%", 0.125), ("12,5 %", 0.125), ("0.5%", 0.005), ("-5%", -0.05), ("100%", 1),
        ("10000000000000000000001", 10**22 + 1), ("123456789012345678901234567890", 123456789012345678901234567890),
        ("10,000,000,000,000,000,000,001", 10**22 + 1), ("0", 0), ("0 files", 0), ("1000000", 1e6), ("0.00001", 1e-5),
        ("1,234 items", "1234"), ("1234 items", "1,234"), ("1234.56", "1.234,56"), ("19.99", "19.99"), ("19.990", "19.99"),
        ("$19.99", "19.99 EUR"), ("0.1", 0.1), ("0.3", 0.1 + 0.2), ("42", "There are 42 files"), ("42", "total: 42MB"),
        ("-3", "it was -3 there"), ("50%", "share of 50%"), ("50%", "0.5"),
    ],
)  # fmt: skip
def test_a_number_grounds_its_value_in_every_unambiguous_form(span, number):
    assert lax(span, {"n": number})


@pytest.mark.parametrize(
    ("span", "number"),
    [
        ("13", 3), ("30", 3), ("2023", 3), ("3.5", 3), ("0.3", 3), ("x3", 3), ("v3", 3), ("A3", 3), ("3rd", 3), ("3b2", 3),
        ("2024-03-03", 3), ("3:30", 3), ("10:03", 3), ("March 3, 2024", 2024), ("3 March", 3), ("5pm", 5), ("-3", 3),
        ("3", -3), ("−3", 3), ("(-3)", 3), ("0", 0.5), ("2", 2.9), ("3", 3.14), ("3", 2.9), ("3.14", 3.14159),
        ("314", 3.14), ("13", 1e3), ("2 of 3", 23), ("pages 1 to 2 of 3", 123), ("2024-01-05", 20240105),
        ("1.234", 1234), ("1,234", 1.234), ("50%", 5), ("50%", 5000), ("50", 0.5), ("0.5", 50), ("0.5%", 0.5 + 1),
        ("9007199254740992", 9007199254740993), ("10000000000000000000001", 10**22), ("1 and 2", 12), ("1, 2", 1.2),
        ("1,234,567", 1234), ("1,234,567", 567), ("1.234,56", 56), ("1.234,56", 1.234), ("1234", 234), ("https://a.com/3", 3),
        ("a3@b.com", 3), ("`v3`", 3), ("foo_3", 3), ("#ab3", 3), ("3", True), ("1", True), ("0", False), ("0", None),
        ("3", "three"), ("3", "v3"), ("3", "3rd"), ("3", "13"), ("3", "3.5"), ("3", "2024-03-03"), ("2024", "2024-03-03"),
        ("5", "2024-01-05"), ("10", "10:30"), ("42", "file42"), ("3", "https://example.com/3"), ("3", "-3"),
        ("10.20", 10.0), ("192.168.0.1", 192.168), ("1.2.3", 1.2), ("1.2.3", 3), ("1.2.3", 2.3),
    ],
)  # fmt: skip
def test_a_number_grounds_no_other_value(span, number):
    assert not lax(span, {"n": number})


@pytest.mark.parametrize(
    ("span", "number", "expected"),
    [
        ("1.000001", 1, True),
        ("1.0000011", 1, False),
        ("0.999999", 1, True),
        ("0.9999989", 1, False),
        ("3.141592", 3.1415926, True),
        ("3.14159", 3.1415926, False),
        ("3.1416", 3.14159265, False),
        ("1000000.000001", 1000000, True),
        ("1000000.00001", 1000000, False),
        ("0.000001", 0, True),
        ("0.0000011", 0, False),
        ("100000000000000000000.5", 10**20, False),
    ],
)
def test_numbers_agree_within_a_millionth_and_are_never_rounded(span, number, expected):
    assert lax(span, {"n": number}) is expected


def test_d15_numbers_are_compared_as_numbers():
    assert lax("1,234 files", {"count": 1234})
    assert lax("50 % of it", {"share": 0.5})
    assert lax("three: 3.0", {"count": 3})


@pytest.mark.parametrize(
    "leaf", ["nan", "inf", "Infinity", "-inf", "NaN", "-", "+", ".", "e", "$", "%"]
)
def test_d22_what_is_no_number_grounds_no_other_text(leaf):
    for span in ("anything at all", "it is 5", "", "0", "word"):
        assert not lax(span, {"n": leaf}), span


def test_d22_digits_are_not_joined():
    assert not lax("314", {"n": 3.14})
    assert not lax("3", {"n": -3})
    assert not lax("13", {"n": 1e3})
    assert lax("1000", {"n": 1e3})


def test_d24_no_rounding_and_the_sign_counts():
    assert not lax("0 files", {"n": 0.5})
    assert not lax("2 files", {"n": 2.9})
    assert not lax("3 files", {"n": 3.14})
    assert not lax("-3 degrees", {"n": 3})
    assert lax("-3 degrees", {"n": -3})
    assert not lax("3 degrees", {"n": -3})


def test_d25_the_digits_of_a_span_are_not_joined():
    for span, number in (
        ("2 of 3", 23),
        ("pages 1 to 2 of 3", 123),
        ("on 2024-01-05", 20240105),
        ("v3", 3),
    ):
        assert not lax(span, {"n": number}), span
    assert lax("50% of 80", {"n": 0.5})
    assert lax("50% of 80", {"n": 80})


def test_d26_grouping_and_decimal_marks_are_read():
    for span in ("1,234.56", "1.234,56", "1 234,56", "1\u202f234,56", "1'234.56"):
        assert lax(f"It is {span} now", {"n": 1234.56}), span
    assert lax("It is 12,34,567 now", {"n": 1234567})


def test_a_changed_digit_is_refused_and_named():
    for right, wrong in (
        ("1,234.56", "1,234.57"),
        ("1.234,56", "1.235,56"),
        ("42", "43"),
        ("42", "421"),
        ("42", "4"),
    ):
        value = {"1,234.56": 1234.56, "1.234,56": 1234.56, "42": 42}[right]
        assert lax(f"so {right}", {"n": value})
        assert not lax(f"so {wrong}", {"n": value})
        assert unsupported(f"so {wrong}", {"n": value}) == [wrong]


def test_numbers_inside_text_leaves_carry_that_leafs_path():
    assert paths("it is 42", {"a": {"text": "about 42 files"}}) == [(0, "/a/text")]
    assert paths("it is 42", [{"n": 1}, {"n": 42}]) == [(0, "/1/n")]
    assert paths("it is 42", 42) == [(0, "")]


def test_pointer_paths_are_escaped():
    assert paths("it is 42", {"a/b": {"c~d": 42}}) == [(0, "/a~1b/c~0d")]


def test_integers_of_any_size_are_exact():
    number = int("7" * 500)
    assert lax(f"it is {number}", {"n": number})
    assert not lax(f"it is {number}", {"n": number + 1})
    assert paths(f"it is {10**22 + 1}", {"content": f'{{"n": {10**22 + 1}}}'}) == [
        (0, "/content/n")
    ]


@pytest.mark.parametrize("word", ["mıllion", "MİLLİON", "bıllıon"])
def test_a_factor_with_a_foreign_letter_is_no_factor_and_no_crash(word):
    assert lax(f"it is 5 {word}", {"n": 5})
    assert not lax(f"it is 5 {word}", {"n": 5_000_000})
