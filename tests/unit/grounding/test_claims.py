"""Spans by claims: sentences, list items and table cells that hold something checkable."""

import pytest
from tests.unit.grounding.asking import call, claims, item, span_texts, spans, turns


def claim_spans(text):
    return spans(text, "claims")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("There are 5 files. I like it. See `x.py`.", ["There are 5 files", "See `x.py`"]),
        ("Nothing to check here. Not here either!", []),
        ("It is 3.5 km away. Ok.", ["It is 3.5 km away"]),
        ("First line 5\nsecond line\nthird 6", ["First line 5", "third 6"]),
        ("It costs $5? Yes! It costs 6 €…", ["It costs $5", "It costs 6 €"]),
        ("値は42です。 次はない。 終わり43。", ["値は42です", "終わり43"]),
        ("Visit https://example.com/a. Thanks.", ["Visit https://example.com/a"]),
        ("Mail joe@example.org. Thanks.", ["Mail joe@example.org"]),
        ("It is called “green door”. Thanks.", ["It is called “green door”"]),
        ("It was on 5 March 2024. Thanks.", ["It was on 5 March 2024"]),
        ("Dr. Smith, e.g. has 5. Done.", ["Dr. Smith, e.g. has 5"]),
        ("", []),
        ("   \n\n ", []),
    ],
)
def test_sentences_with_a_checkable_value_are_claims(text, expected):
    assert claim_spans(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- 5 apples\n- pears\n- 7 plums", ["5 apples", "7 plums"]),
        ("* 5 apples\n* pears\n+ 7 plums", ["5 apples", "7 plums"]),
        ("1. apples\n2. pears\n3. 7 plums", ["7 plums"]),
        ("1) apples\n2) pears", []),
        ("1. apples\r\n2. 6 pears\r\n", ["6 pears"]),
        ("  - nested 5\n    - deeper 6", ["nested 5", "deeper 6"]),
    ],
)
def test_list_items_are_claims_and_their_markers_are_none(text, expected):
    assert [
        span.lstrip("-*+ 123.)") if span[:1] in "-*+" else span for span in claim_spans(text)
    ] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("| city | count |\n|---|---:|\n| Rome | 5 |\n| Oslo | 17 |", ["5", "17"]),
        ("| a 5 | b |\n|:-:|---|\n| c | d 6 |", ["a 5", "d 6"]),
        ("| x | **5** |", ["5"]),
    ],
)
def test_table_cells_are_claims(text, expected):
    assert [span.strip("* ") for span in claim_spans(text)] == expected


def test_a_text_match_makes_a_claim_where_results_are_known():
    answer = "The capital is Paris. I like it."
    scores = claims(answer, call({"summary": "Paris"}))
    assert span_texts(scores, answer) == ["The capital is Paris"]
    assert scores["lax"]["f1"] == 1
    assert claim_spans(answer) == []


def test_claims_before_the_first_served_result_are_not_read():
    answer, ranges = turns("I will open 5 pages.", "Found 42 things.")
    scores = claims(answer, call({"count": 42}, turn=1), turns=ranges)
    assert span_texts(scores, answer) == ["Found 42 things"]


def test_claims_between_results_are_read():
    answer, ranges = turns("Opening 5.", "So far 42.", "Then 43.")
    calls = call({"count": 42}, turn=1), call({"count": 43}, turn=2)
    assert span_texts(claims(answer, *calls, turns=ranges), answer) == ["So far 42", "Then 43"]


def test_a_miss_does_not_open_the_region():
    answer, ranges = turns("Opening 5.", "So far 42.", "Then 43.")
    miss = {
        "ok": False,
        "error": "fixture_miss",
        "name": "web.search",
        "arguments": {},
        "key_normalized": {},
    }
    calls = call(miss, turn=1), call({"count": 43}, turn=2)
    assert span_texts(claims(answer, *calls, turns=ranges), answer) == ["Then 43"]


def test_everything_is_read_if_nothing_was_served():
    answer, ranges = turns("Opening 5.", "Then 43.")
    assert span_texts(claims(answer, turns=ranges), answer) == ["Opening 5", "Then 43"]
    assert span_texts(claims("It is 5. It is 6."), "It is 5. It is 6.") == ["It is 5", "It is 6"]


def test_everything_is_read_if_the_order_is_not_known():
    answer = "Opening 5. Then 43."
    assert span_texts(claims(answer, call({"count": 43})), answer) == ["Opening 5", "Then 43"]


def test_results_in_the_prompt_are_before_every_turn():
    prompt = [
        {"role": "user", "content": "Count them"},
        {"role": "tool", "content": '{"count": 42}'},
    ]
    answer, ranges = turns("There are 42.")
    scores = claims(answer, of=item(prompt), turns=ranges)
    assert (scores["lax"]["f1"], scores["spans"][0]["matches"][0]["call"]) == (1.0, -1)


def test_claims_have_no_cap():
    answer = " ".join("It is 42." for _ in range(9))
    scores = claims(answer, call({"count": 42}))
    assert (scores["spans_total"], scores["spans_over_cap"], scores["spans_counted"]) == (9, 0, 9)


def test_a_date_at_the_start_of_a_line_is_no_list_marker():
    assert claim_spans("5. Januar 2024 war es kalt.") == ["5. Januar 2024 war es kalt"]
    scores = claims("5. Januar 2024 war es kalt.", call({"when": "2024-01-05"}))
    assert scores["lax"]["f1"] == 1
