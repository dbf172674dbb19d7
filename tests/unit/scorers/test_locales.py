"""Locale probes: the sample's own locale must read the answer's numbers and dates as the results have them."""

import pytest
from tests.unit.grounding.asking import call, claims, item, score


def probe(locale, **more):
    return item(locale_probe=True, locale=locale, **more)


def ok(locale, answer, result, **more):
    return score(f"Integration: {answer}.", call(result), of=probe(locale), **more)[
        "locale_probe_ok"
    ]


@pytest.mark.parametrize(
    ("locale", "answer", "result", "expected"),
    [
        ("de", "es sind 1.234,56 Euro", {"n": 1234.56}, True),
        ("de", "es sind 1,234.56 Euro", {"n": 1234.56}, False),
        ("de", "es sind 1.234 Leute", {"n": 1234}, True),
        ("de", "es sind 1,234 Leute", {"n": 1234}, False),
        ("de", "am 05.01.2024 war es", {"d": "2024-01-05"}, True),
        ("fr", "il y en a 1 234,56", {"n": 1234.56}, True),
        ("fr", "il y en a 1,234.56", {"n": 1234.56}, False),
        ("fr", "le 05/01/2024", {"d": "2024-01-05"}, True),
        ("fr", "le 01/05/2024", {"d": "2024-01-05"}, False),
        ("es", "son 1.234,5 euros", {"n": 1234.5}, True),
        ("es", "son 1,234.5 euros", {"n": 1234.5}, False),
        ("en-US", "it is 1,234.5", {"n": 1234.5}, True),
        ("en-US", "it is 1.234,5", {"n": 1234.5}, False),
        ("en-US", "on 01/05/2024", {"d": "2024-01-05"}, True),
        ("en-IN", "it is 12,34,567", {"n": 1234567}, True),
        ("hi", "यह 12,34,567 है", {"n": 1234567}, True),
        ("de", "es sind 42", {"n": 42}, True),
    ],
)
def test_a10_numbers_and_dates_stand_in_the_samples_locale(locale, answer, result, expected):
    assert ok(locale, answer, result) is expected


def test_a10_grounding_uses_the_same_reading():
    assert (
        score("Integration: es sind 1.234,56 Euro.", call({"count": 1234.56}), of=probe("de"))[
            "lax"
        ]["f1"]
        == 1
    )
    assert (
        score("Integration: am 05.01.2024.", call({"count": "2024-01-05"}), of=probe("de"))["lax"][
            "f1"
        ]
        == 1
    )
    assert (
        score("Integration: es sind 1,234.56 Euro.", call({"count": 1234.56}), of=probe("de"))[
            "lax"
        ]["f1"]
        == 0
    )


def test_d40_the_probe_is_scored_and_only_where_the_item_asks():
    assert ok("de", "es sind 1.234,56 Euro", {"n": 1234.56}) is True
    assert (
        score("Integration: 42.", call({"n": 42}), of=item(locale="de"))["locale_probe_ok"] is None
    )
    assert score("Integration: 42.", call({"n": 42}))["locale_probe_ok"] is None


def test_an_answer_without_number_or_date_fails_the_probe():
    assert ok("de", "es ist die grüne Tür", {"x": "grüne Tür", "n": 5}) is False
    assert score("", call({"n": 42}), of=probe("de"))["locale_probe_ok"] is False
    assert (
        score("Es sind 42.", call({"n": 42}), of=probe("de"))["locale_probe_ok"] is False
    )  # no scored span


def test_a_number_that_no_reading_finds_in_the_results_is_left_to_grounding():
    assert ok("de", "es sind 42 von 77", {"n": 42}) is True


def test_every_number_has_to_be_in_the_locale():
    result = {"a": 1234.5, "b": 2345.5}
    assert ok("de", "von 1.234,5 bis 2.345,5", result) is True
    assert ok("de", "von 1.234,5 bis 2,345.5", result) is False


def test_only_scored_spans_are_probed():
    answer = "Integration: 42.\nIntegration: 1,234.5 hier."
    result = call({"n": 42, "m": 1234.5})
    assert score(answer, result, of=probe("de"))["locale_probe_ok"] is False
    assert score(answer, result, of=probe("de"), integration_span_cap=1)["locale_probe_ok"] is True


def test_claims_are_probed_too():
    assert (
        claims("Es sind 1.234,5 Meter.", call({"m": 1234.5}), of=probe("de"))["locale_probe_ok"]
        is True
    )
    assert (
        claims("Es sind 1,234.5 Meter.", call({"m": 1234.5}), of=probe("de"))["locale_probe_ok"]
        is False
    )


@pytest.mark.parametrize(
    ("locale", "answer", "result", "expected"),
    [
        ("en-US", "it is 1\u202f234 m", {"n": 1234}, False),
        ("en-US", "it is 1 234 m", {"n": 1234}, False),
        ("de", "am 5. Januar 2024", {"d": "2024-01-05"}, True),
        ("de", "am 5 janvier 2024", {"d": "2024-01-05"}, False),
        ("de", "am January 5, 2024", {"d": "2024-01-05"}, False),
    ],
)
def test_a_form_of_another_locale_fails_the_probe(locale, answer, result, expected):
    assert ok(locale, answer, result) is expected
