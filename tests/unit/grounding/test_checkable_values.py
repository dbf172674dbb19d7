"""What in a text can be checked against a result, and what only looks like it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.grounding.asking import kinds, lax, spans, unsupported, values

from callmark.grounding.values import find_values, values_of

NUMBER = [
    ("There are 5 files", "5"),
    ("5", "5"),
    ("It is 3.14", "3.14"),
    ("It is 3.14.", "3.14"),
    ("1,234,567 people", "1,234,567"),
    ("12,34,567 people", "12,34,567"),
    ("1.234,56 Meter", "1.234,56"),
    ("1 234,56 mètres", "1 234,56"),
    ("1\u202f234,56 mètres", "1\u202f234,56"),
    ("1'234.56 Franken", "1'234.56"),
    ("exactly 1,5 Liter", "1,5"),
    ("(7)", "7"),
    ("count=7", "7"),
    ("x: 7,", "7"),
    ("**7** files", "7"),
    ("- 5 apples", "5"),
    ("* 5 apples", "5"),
]


@pytest.mark.parametrize(("text", "number"), NUMBER)
def test_numbers_are_values(text, number):
    [(kind, found)] = values(text)
    assert kind == "number"
    assert number in found or found in number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("100MB free", 100), ("5km away", 5), ("3x faster", 3), ("12GB", 12), ("2.5GHz", 2.5), ("80kg", 80),
        ("250ms", 250), ("1.5h", 1.5), ("20°C", 20), ("20 °C", 20), ("50%", 50), ("7€", 7), ("$7", 7),
        ("€7.50", 7.5), ("7 USD", 7), ("USD 7", 7), ("£7", 7), ("5mm", 5), ("60fps", 60),
    ],
)  # fmt: skip
def test_a_number_with_a_glued_unit_or_currency_is_that_number(text, number):
    assert kinds(text) == ["number"]
    assert lax(text, {"n": number})
    assert not lax(text, {"n": number + 1})


@pytest.mark.parametrize(
    "text",
    [
        "2nd",
        "1st place",
        "the 3rd one",
        "4th",
        "21st",
        "the first one",
        "second",
        "third",
        "a 112th time",
    ],
)
def test_ordinals_are_no_values(text):
    assert values(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "1. First\n2. Second",
        "1) First",
        "  12. Item",
        "(1) First\n(2) Second",
        "1. Alpha\r\n2. Beta",
        "- 1. Alpha",
    ],
)
def test_list_markers_are_no_values(text):
    assert values(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-5 degrees", [-5]),
        ("−5 degrees", [-5]),
        ("it is -5", [-5]),
        ("it is (-5)", [-5]),
        ("[-5]", [-5]),
        ("$-5", [-5]),
        ("€−5", [-5]),
        ("pages 3-5", [3, 5]),
        ("10–20", [10, 20]),
        ("10-20", [10, 20]),
        ("3 - 5", [3, 5]),
        ("- 5", [5]),
    ],
)
def test_a_minus_is_a_sign_only_at_the_start_or_after_a_blank_bracket_or_currency(text, expected):
    assert kinds(text) == ["number"] * len(expected)
    for number in expected:
        assert lax(text, {"n": number}), number
        assert not lax(text, {"n": -number}), -number


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-05", "5 January 2024", "January 5, 2024", "Jan 5", "5. Januar 2024", "5 de enero de 2024",
        "5 janvier 2024", "05.01.2024", "2024年1月5日", "2024/01/05", "17:30", "5pm", "5 pm", "5:30 PM",
        "10:30:15", "2024-01-05T10:30:00Z", "2024-01-05 10:30", "January 2nd, 2024",
    ],
)  # fmt: skip
def test_dates_and_times_are_one_value_and_no_numbers(text):
    assert set(kinds(f"It was {text} then")) == {"moment"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("https://example.com/a5/b-7?x=3", "url"),
        ("http://example.com:8080", "url"),
        ("www.example.com", "url"),
        ("joe5@example.com", "email"),
        ("first.last+tag@sub.example.co.uk", "email"),
        ('"green door"', "quote"),
        ("“ab”", "quote"),
        ("„grüne Tür“", "quote"),
        ("«la porte»", "quote"),
        ("「緑の扉」", "quote"),
        ("`x`", "code"),
        ("`foo(1, 2)`", "code"),
        ('"5 files and 7 dirs"', "quote"),
        ("`a_b` ", "identifier"),
        ("ABC123", "identifier"),
        ("HAT-023", "identifier"),
        ("foo_bar", "identifier"),
        ("_private", "identifier"),
        ("#42", "identifier"),
        ("#abc", "identifier"),
        ("v3", "identifier"),
        ("x86", "identifier"),
        ("a1b2c3d4", "identifier"),
        ("1a2b3c4d", "identifier"),
    ],
)
def test_each_kind_is_found_once(text, kind):
    assert kinds(f"It is {text} there") == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "plain words only", "well-known self-made", "don't can't won't", "it's the dog's bone", '"x"', "''", '""',
        "``", "a/b", "e.g. this", "...", "—", "# Heading", "## Heading two", "and/or", "I", "", "C", "O'Brien's",
        "rock 'n roll", "TODO: this", "a - b", "|---|---|",
    ],
)  # fmt: skip
def test_plain_words_hold_no_value(text):
    assert values(text) == []


@pytest.mark.parametrize(
    "text",
    [
        'See "https://example.com/a5"', "`https://example.com/5`", '"mail joe5@example.com"', '"on 2024-01-05"',
        "https://example.com/2024/01/05/id_7", "joe_7@example5.com", "`ABC-123`",
    ],
)  # fmt: skip
def test_nested_values_are_not_counted_twice(text):
    assert len(values(text)) == 1


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1, 2, 3", 3), ("5 files and 7 dirs", 2), ("`a` and `b`", 2), ('"aa" and "bb"', 2), ("2 of 3", 2),
        ("pages 1 to 2 of 3", 3), ("ABC123, DEF456", 2), ("10:30 and 11:30", 2), ("5% of 80", 2),
        ("a@b.com, c@d.org", 2), ("`x` 5 “ab” foo_bar", 4),
    ],
)  # fmt: skip
def test_separate_values_are_counted_apart(text, count):
    assert len(values(text)) == count


def test_the_values_of_a_span_that_no_result_holds_are_named():
    assert unsupported("Found 42 of 50 in `main`", {"count": 42}) == ["50", "`main`"]
    assert unsupported("Found 42", {"count": 42}) == []
    assert unsupported("Found 42", {"count": 42}, said=["50"]) == []
    assert unsupported("Found 50", {"count": 42}, said=["I have 50"]) == []


def test_values_are_in_order_and_within_the_text():
    text = "Am 05.01.2024 um 17:30 kostete „Brot“ 1.234,56 € (`x_1`, #7, a@b.org)."
    found = find_values(text, "de")
    assert all(0 <= value.start < value.end <= len(text) for value in found)
    assert all(a.end <= b.start for a, b in pairwise(found))


def test_a_quotation_on_a_line_of_its_own_is_a_value():
    assert kinds('"the green door is open"') == ["quote"]
    assert kinds('They wrote:\n"the green door is open"\nThat is all') == ["quote"]
    assert spans('They wrote:\n"the green door is open"', "claims") == ['"the green door is open"']


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("値は42です", 42), ("42件あります", 42), ("全部で42個のファイル", 42), ("共有42个文件", 42), ("合計1,234円です", 1234),
        ("มี42ไฟล์", 42), ("約3.5メートル", 3.5),
    ],
)  # fmt: skip
def test_a_number_between_characters_of_an_unspaced_script_is_a_number(text, number):
    assert kinds(text) == ["number"]
    assert lax(text, {"count": number})
    assert not lax(text, {"count": number + 1})


@pytest.mark.parametrize("text", ["cafe\u03011", "हिंदी2", "café1", "naïve_1"])
def test_a_digit_after_a_letter_with_marks_belongs_to_the_word(text):
    assert kinds(text) == ["identifier"]
    assert not lax(text, {"n": 1})
    assert not lax(text, {"n": 2})


@pytest.mark.parametrize(
    "text",
    [
        "1,234.561e5", "1,5e3", "1.2.3e4", "1'234e5", "1e99999", "1e-99999", "9" * 5000, "1e400", "٣,٤e5", "²", "1²", "①",
    ],
)  # fmt: skip
def test_strange_numbers_never_raise(text):
    for locale in (None, "de"):
        assert all(value.text for value in find_values(text, locale))
    assert lax(f"it is {text} there", {"n": 5, "x": text}) in (True, False)


SHORT_CUTS = st.one_of(
    st.text("aT10_#-", max_size=8),
    st.text("ab .,–‑'é０．/@", max_size=8),
    st.integers(0, 10**32).map(str),
    st.sampled_from(["USD100", "PT1H24M", "top_5", "mid_2", "#W12", "12345e", "10:00", "May 5"]),
)


@given(SHORT_CUTS, st.sampled_from([None, "de"]))
def test_what_most_leaves_are_is_read_as_any_text_is(text, locale):
    assert values_of(text, locale) == tuple(find_values(text, locale))


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("I don't and won't say 'this here' now", ["this here"]),
        ("'first words' of it", ["first words"]),
        ("日'some words' 日", ["some words"]),
    ],
)
def test_an_apostrophe_inside_a_word_begins_no_quotation(text, quoted):
    assert [one.text for one in find_values(text) if one.kind == "quote"] == quoted
