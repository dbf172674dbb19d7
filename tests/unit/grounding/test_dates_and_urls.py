"""Dates and times by value across formats; URLs by host and first path segment."""

import pytest
from tests.unit.grounding.asking import lax


@pytest.mark.parametrize(
    "span",
    [
        "2024-01-05", "January 5, 2024", "Jan 5, 2024", "Jan. 5, 2024", "5 January 2024", "5 Jan 2024", "January 5", "Jan 5",
        "January 5th, 2024", "the 5th of January 2024", "Friday, January 5, 2024", "5. Januar 2024", "05.01.2024", "5.1.2024",
        "5 de enero de 2024", "5 janvier 2024", "2024年1月5日", "2024/01/05", "1月5日", "JANUARY 5, 2024",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "leaf", ["2024-01-05", "2024-01-05T14:30:00Z", "Published on January 5, 2024 by us"]
)
def test_a_date_grounds_across_formats(span, leaf):
    assert lax(f"It was on {span} there", {"when": leaf})


@pytest.mark.parametrize(
    ("span", "leaf", "locale"),
    [
        ("5 जनवरी 2024", "2024-01-05", "hi"), ("5 फ़रवरी 2024", "2024-02-05", "hi"), ("5. Ma\u0308rz 2024", "2024-03-05", "de"),
        ("5. Ma\u0308rz 2024", "2024-03-05", None), ("5 aou\u0302t 2024", "2024-08-05", "fr"),
        ("05\u200f/01\u200f/2024", "2024-01-05", "ar"), ("٥\u200f/١\u200f/٢٠٢٤", "2024-01-05", "ar-EG"),
    ],
)  # fmt: skip
def test_a_date_grounds_as_its_locale_writes_it(span, leaf, locale):
    """Names that end in a vowel sign, decomposed names, marks between the numbers."""
    assert lax(f"x {span} y", {"when": leaf}, locale=locale)
    assert not lax(f"x {span} y", {"when": "2024-07-05"}, locale=locale)


@pytest.mark.parametrize("span", ["5 Aprıl 2024", "Aprıl 5, 2024", "APRİL 5, 2024", "5 APRİL 2024"])
def test_a_month_with_a_foreign_letter_is_no_month_and_no_crash(span):
    assert not lax(f"It was on {span} there", {"when": "2024-04-05"})


@pytest.mark.parametrize(
    "span",
    [
        "2024-01-06", "January 6, 2024", "January 5, 2023", "2023-01-05", "February 5, 2024", "5 May 2024", "January 2024",
        "January", "2024", "5", "Jan 15", "05.02.2024", "15.01.2024", "5 de febrero de 2024", "2024-01", "6 janvier 2024",
    ],
)  # fmt: skip
def test_another_date_or_a_part_does_not_ground(span):
    assert not lax(f"It was {span} there", {"when": "2024-01-05"})


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("14:30", True), ("2:30 pm", True), ("2:30 PM", True), ("2:30 p.m.", True), ("2pm", True), ("2 pm", True),
        ("14:30:00", True), ("14:31", False), ("2:30 am", False), ("3 pm", False), ("14:30:01", False), ("4:30", False),
        ("January 5 at 14:30", True), ("January 5, 2024, 2:30 PM", True),
        ("2024-01-05T14:30:00Z", True), ("2024-01-05 14:30", True),
    ],
)  # fmt: skip
def test_times_ground_by_the_parts_that_are_stated(span, expected):
    assert lax(f"It was {span} there", {"when": "2024-01-05T14:30:00Z"}) is expected


@pytest.mark.parametrize(
    ("span", "leaf", "expected"),
    [
        ("at 9:05", "09:05", True), ("at 09:05", "9:05 am", True), ("at 9:05 pm", "21:05", True), ("at noon 12:00", "12:00", True),
        ("at 12 am", "00:00", True), ("at 12 pm", "12:00", True), ("at 12 am", "12:00", False), ("at 9:05", "19:05", False),
        ("at 9:05", "9:50", False), ("at 23:59:59", "23:59:59", True), ("at 17h30", "17:30", True) ,
    ],
)  # fmt: skip
def test_times_of_day(span, leaf, expected):
    if span == "at 17h30":
        assert lax("à 17h30", {"t": leaf}, locale="fr") is expected
    else:
        assert lax(span, {"t": leaf}) is expected


def test_a_slashed_date_with_a_day_over_twelve_is_unambiguous():
    assert lax("on 25/12/2023", {"d": "2023-12-25"})
    assert lax("on 12/25/2023", {"d": "2023-12-25"})
    assert not lax("on 25/12/2023", {"d": "2023-12-24"})


def test_impossible_dates_do_not_raise():
    for span in (
        "2024-13-45",
        "99/99/9999",
        "31.02.2024",
        "25:99",
        "February 30, 2024",
        "0000-00-00",
        "2024-02-30T99:99:99Z",
    ):
        assert not lax(span, {"d": "2024-01-05"})


PAGE = {"url": "https://www.example.com/docs/page?x=1"}


@pytest.mark.parametrize(
    "span",
    [
        "https://www.example.com/docs/page?x=1", "https://example.com/docs", "http://example.com/docs/", "example.com/docs",
        "https://EXAMPLE.com/Docs/other", "www.example.com/docs/page", "(https://example.com/docs)", "<https://example.com/docs>",
        "[docs](https://example.com/docs)", "https://example.com/docs.", "https://example.com/docs#top", "https://example.com/docs?y=2",
    ],
)  # fmt: skip
def test_urls_ground_by_host_and_first_segment(span):
    assert lax(f"See {span} there", PAGE)


@pytest.mark.parametrize(
    "span",
    [
        "https://notexample.com/docs", "https://example.com.evil.net/docs", "https://evil.net/example.com/docs",
        "https://example.com:8443/docs", "https://sub.example.com/docs", "https://example.org/docs", "https://example.com/other",
        "https://xample.com/docs", "https://example.com/docs2", "https://example.co/docs", "docs", "https://example.com.au/docs",
        "foo@example.com", "https://evil.net/?u=https://example.com/docs",
    ],
)  # fmt: skip
def test_another_host_or_segment_does_not_ground(span):
    assert not lax(f"See {span} there", PAGE)


def test_d27_www_is_cut_as_a_prefix_not_as_letters():
    assert lax("see https://wikipedia.org/wiki", {"u": "https://www.wikipedia.org/wiki"})
    assert not lax("see https://ikipedia.org/wiki", {"u": "https://wikipedia.org/wiki"})
    assert not lax("see ikipedia.org", {"u": "https://wikipedia.org"})
    assert not lax("see eather.com", {"u": "https://weather.com"})
    assert lax("see weather.com", {"u": "https://www.weather.com"})


def test_d28_hosts_are_whole_and_the_segment_belongs_to_its_url():
    for span in ("https://notexample.com", "https://example.com.evil.net", "notexample.com"):
        assert not lax(f"see {span}", {"u": "https://example.com"}), span
    assert not lax("docs are at https://example.com/blog", {"u": "https://example.com/docs"})
    assert lax("at https://example.com/DOCS", {"u": "https://example.com/Docs"})
    assert not lax("at https://example.com:8443", {"u": "https://example.com"})
    assert lax("at https://example.com:8443/a", {"u": "https://example.com:8443/a"})


@pytest.mark.parametrize(
    ("span", "leaf"),
    [
        ("see example.com:8080/x", "https://example.com:8080/x"),
        ("see example.com:8080/x.", "http://www.example.com:8080/X/page?y=1"),
        ("see https://api.example.org:9443/v1/a", "Served at api.example.org:9443/v1, they say."),
        ("it listens at example.com:8080", "https://example.com:8080/x"),
        ("(example.io:3000)", "example.io:3000"),
    ],
)
def test_f39_a_url_without_a_scheme_keeps_its_port(span, leaf):
    assert lax(span, {"u": leaf})


@pytest.mark.parametrize(
    ("span", "leaf"),
    [
        ("see example.com:8080/x", "https://example.com/x"),
        ("see example.com/x", "https://example.com:8080/x"),
        ("see example.com:8081/x", "https://example.com:8080/x"),
        ("see example.com:8080/y", "https://example.com:8080/x"),
        ("see notexample.com:8080/x", "https://example.com:8080/x"),
        ("see example.com:80", "https://example.com:8080"),
        ("there are 8080 of them", "https://example.com:8080/x"),
    ],
)
def test_f39_another_port_is_another_place(span, leaf):
    assert not lax(span, {"u": leaf})


def test_urls_inside_text_leaves_are_evidence():
    assert lax(
        "see https://example.com/docs",
        {"text": "More at https://example.com/docs/start, they say."},
    )
    assert not lax(
        "see https://example.com/blog",
        {"text": "More at https://example.com/docs/start, they say."},
    )


def test_e_mails_ground_whole():
    assert lax("write to Joe@Example.org", {"contact": "joe@example.org"})
    assert not lax("write to joe@example.org", {"contact": "xjoe@example.org"})
    assert not lax("write to joe@example.org", {"contact": "joe@example.org.uk"})


def test_a_month_whose_name_ends_in_a_vowel_sign_is_a_month():
    assert lax("यह 5 जनवरी 2024 को था", {"content": "2024-01-05"}, locale="hi")
    assert not lax("यह 6 जनवरी 2024 को था", {"content": "2024-01-05"}, locale="hi")
