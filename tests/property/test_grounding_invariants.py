"""Invariants of scoring on answers and results that are made to be difficult."""

import json
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.grounding.asking import call, item, score

import callmark
from callmark.grounding.values import find_values

PIECES = [
    "42", "1,234.56", "1.234,56", "-3", "−3", "50%", "$19.99", "100MB", "5pm", "2nd", "17:30", "2024-01-05",
    "January 5, 2024", "5. Januar 2024", "05.01.2024", "https://example.com/docs", "www.example.com", "joe@example.org",
    "“green door”", '"green door"', "`x_1`", "HAT-023", "HAT 023", "#42", "foo_bar", "Paris", "café", "cafe\u0301", "Straße",
    "東京都は42です。", "दिल्ली", "กรุงเทพ", "القاهرة", "٤٢", "١٬٢٣٤٫٥", "４２", "Integration:", "**Integration:**", "e.g.", "Dr.",
    "failed", "error", "the", "is", "\n", "\r\n", "- ", "1. ", "| a | 5 |\n", "|---|", ". ", "! ", "? ", "。", "…", "{", "}",
    "[", "]", '{"a": 42}', "'", "’", '"', "`", "```", "\\n", "😀", "\u200b", "\u202f", "\u00a0", "%", "1e5", "1'234",
    "12,34,567", "1 234 567", "0042", "a", "I", "-", "_", "*", ",", ":", "/", "\x00", "ß", "İ", "ﬁ", "\u0301", "Ω",
]  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join),
    st.text(st.sampled_from("0123456789.,'’-−:/ \n%$€abIx_#`\"|()e"), max_size=40),
    st.text(max_size=30),
)
ANSWERS = st.one_of(
    TEXTS,
    TEXTS.map("Integration: ".__add__),
    st.lists(TEXTS, max_size=3).map("\nIntegration: ".join),
)
NUMBERS = st.one_of(
    st.integers(),
    st.sampled_from([42, 3, -3, 0, 0.5, 1234.56, 10**22 + 1]),
    st.floats(allow_nan=False, allow_infinity=False),
)
KEYS = st.one_of(
    st.sampled_from(["count", "summary", "hits", "ok", "error", "q", "x", "a/b", "~", "", "42"]),
    TEXTS,
)
JSON = st.recursive(
    st.one_of(TEXTS, NUMBERS, st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
LOCALES = st.sampled_from(
    [None, "de", "fr", "es", "en-US", "en-IN", "hi", "ar", "ja", "pt-BR", "de-CH", "xx"]
)
EXTRACTORS = st.sampled_from(["marker", "claims"])
SOME = settings(max_examples=120, deadline=None, derandomize=True)


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@SOME
@given(ANSWERS, EXTRACTORS)
def test_spans_are_in_order_disjoint_and_cut_between_characters(text, extractor):
    found = callmark.extract_spans(text, extractor)
    data = encoded(text)
    assert all(0 <= start < end <= len(data) for start, end in found)
    assert all(a[1] <= b[0] for a, b in pairwise(found))
    for start, end in found:
        piece = data[start:end].decode("utf-8", "surrogatepass")
        assert piece == piece.strip(" \t\r\n")
        assert "\n" not in piece


@SOME
@given(TEXTS, LOCALES)
def test_values_are_in_order_disjoint_and_inside_the_text(text, locale):
    found = find_values(text, locale)
    assert all(0 <= value.start < value.end <= len(text) for value in found)
    assert all(a.end <= b.start for a, b in pairwise(found))


@SOME
@given(
    ANSWERS, st.lists(JSON, max_size=3), JSON, st.sampled_from([None, "no_tool", "retry", "decline"]), EXTRACTORS, LOCALES,
    st.lists(st.one_of(TEXTS, NUMBERS), max_size=2),
)  # fmt: skip
def test_scoring_never_raises_and_its_numbers_are_sound(
    answer, results, arguments, behaviour, extractor, locale, facts
):
    of = item(
        answer[:40], required_facts=facts, decoy_values=facts, locale=locale, locale_probe=True, expected_behaviour=behaviour,
        negative_control=bool(facts) and not results,
    )  # fmt: skip
    calls = [
        call(result, arguments=arguments if index else {"q": "x"})
        for index, result in enumerate(results)
    ]
    scores = score(answer, *calls, of=of, span_extractor=extractor)
    data = encoded(answer)
    for which in ("lax", "strict"):
        numbers = scores[which]
        assert all(0 <= numbers[name] <= 1 for name in ("precision", "recall", "f1"))
        assert numbers["grounded"] <= scores["spans_counted"]
        assert numbers["found"] <= scores["facts_required"]
    for name in ("precision", "recall", "f1", "grounded", "found"):
        assert scores["strict"][name] <= scores["lax"][name]
    assert scores["spans_counted"] <= scores["spans_total"] - scores["spans_over_cap"]
    for span in scores["spans"]:
        assert span["lax"] or not span["strict"]
        for mark in span["values"]:
            assert (
                span["start"]
                <= mark["start"]
                < mark["end"]
                <= max(span["end"], mark["end"])
                <= len(data) * 3
            )
    json.dumps(scores)


@SOME
@given(ANSWERS, st.lists(JSON, max_size=2))
def test_matches_lie_in_their_span_between_characters(answer, results):
    scores = score(
        answer.encode("utf-8", "replace").decode(), *[call(result) for result in results]
    )
    data = answer.encode("utf-8", "replace")
    for span in scores["spans"]:
        data[span["start"] : span["end"]].decode("utf-8")
        for match in span["matches"]:
            assert span["start"] <= match["start"] < match["end"] <= span["end"]
            data[match["start"] : match["end"]].decode("utf-8")


@SOME
@given(ANSWERS, st.lists(JSON, max_size=2))
def test_strict_grounding_is_never_more_than_lax(answer, results):
    found = callmark.ground(answer, results)
    assert found["lax"] or not found["strict"]
    assert found["lax"] == any(match["cls"] != "derived" for match in found["matches"])


@SOME
@given(ANSWERS, st.lists(JSON, max_size=2), JSON)
def test_another_served_result_never_lowers_lax_grounding(answer, results, another):
    before = callmark.ground(answer, results)["lax"]
    assert not before or callmark.ground(answer, [*results, another])["lax"]


@pytest.mark.parametrize(
    ("span", "result", "another"),
    [
        ("Order 12346 is here", {"n": 12346}, {"id": "order_12345"}),
        ("Order 12346 is here", {"n": 12346}, {"id": "order-12346"}),
        ("Paris has 42", {"n": 42}, {"x": "Paris 43"}),
        ("HAT 023 it is", {"x": "HAT023"}, {"x": "it 5"}),
    ],
)
def test_an_identifier_in_another_result_does_not_hide_a_number(span, result, another):
    assert callmark.ground(span, [result])["lax"]
    assert callmark.ground(span, [result, another])["lax"]
    assert callmark.ground(span, [another, result])["lax"]


@SOME
@given(ANSWERS, st.lists(JSON, max_size=3), EXTRACTORS)
def test_no_results_is_never_better(answer, results, extractor):
    with_results = score(answer, *[call(result) for result in results], span_extractor=extractor)
    without = score(answer, span_extractor=extractor)
    assert without["lax"]["f1"] == without["strict"]["f1"] == 0
    assert without["lax"]["f1"] <= with_results["lax"]["f1"]


def numbers_of(scores):
    spans = [[span[name] for name in ("scored", "lax", "strict")] for span in scores["spans"]]
    same = (
        "lax",
        "strict",
        "values",
        "spans_total",
        "spans_counted",
        "negative_control_ok",
        "locale_probe_ok",
    )
    return spans, {name: scores[name] for name in same}


def reversed_keys(value):
    if isinstance(value, dict):
        return {key: reversed_keys(entry) for key, entry in reversed(value.items())}
    if isinstance(value, list):
        return [reversed_keys(entry) for entry in value]
    return value


@SOME
@given(ANSWERS, JSON, EXTRACTORS)
def test_the_order_of_keys_does_not_matter(answer, result, extractor):
    one = score(answer, call(result), span_extractor=extractor)
    other = score(answer, call(reversed_keys(result)), span_extractor=extractor)
    assert numbers_of(one) == numbers_of(other)


@SOME
@given(ANSWERS, JSON, EXTRACTORS)
def test_composed_and_decomposed_answers_score_alike(answer, result, extractor):
    of = item(text_norm="NFC", line_endings="LF")
    both = [
        score(unicodedata.normalize(form, answer), call(result), of=of, span_extractor=extractor)
        for form in ("NFC", "NFD")
    ]
    assert both[0] == both[1]


@SOME
@given(ANSWERS, JSON, EXTRACTORS)
def test_decomposed_answers_score_alike_without_being_asked(answer, result, extractor):
    both = [
        score(unicodedata.normalize(form, answer), call(result), span_extractor=extractor)
        for form in ("NFC", "NFD")
    ]
    assert numbers_of(both[0]) == numbers_of(both[1])


@SOME
@given(
    st.lists(st.sampled_from([p for p in PIECES if "\r" not in p]), max_size=12).map(" ".join),
    JSON,
    EXTRACTORS,
)
def test_line_endings_do_not_matter(answer, result, extractor):
    answer = f"Integration: {answer}\nIntegration: 42\nend"
    both = [
        score(answer.replace("\n", ending), call(result), span_extractor=extractor)
        for ending in ("\n", "\r\n")
    ]
    assert numbers_of(both[0]) == numbers_of(both[1])


@SOME
@given(st.sampled_from([p for p in PIECES if p.strip()]), st.sampled_from(["count", "x"]))
def test_what_is_quoted_from_a_result_is_never_unsupported(piece, key):
    """A value of the evidence, written exactly as the result writes it, is supported."""
    span = f"so {piece} here"
    assert (
        callmark.ground(span, [{key: piece}, {key: f"it says {piece} there"}])["unsupported_values"]
        == []
    )
