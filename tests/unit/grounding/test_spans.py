"""Integration spans by marker: where they start, where they end, in bytes."""

import pytest
from tests.unit.grounding.asking import call, item, score, span_texts, spans

import callmark


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Integration: foo", ["foo"]),
        ("Integration: foo.", ["foo"]),
        ("Integration:foo.", ["foo"]),
        ("Integration:\t foo. Bar", ["foo"]),
        ("Integration:\u00a0foo\u00a0", ["foo"]),
        ("Integration: foo! Bar", ["foo"]),
        ("Integration: foo? Bar", ["foo"]),
        ("Integration: foo?! Bar", ["foo"]),
        ("Integration: foo… Bar", ["foo"]),
        ("Integration: foo... Bar", ["foo"]),
        ("Integration: 数は３です。 次", ["数は３です"]),
        ("Integration: すごい！ 次", ["すごい"]),
        ("Integration: 本当？ 次", ["本当"]),
        ("Integration: 数は３です。", ["数は３です"]),
        ("Integration: a\nIntegration: b\nIntegration: c", ["a", "b", "c"]),
        ("Integration: a. Integration: b. c", ["a", "b"]),
        ("Before. Integration: a b c. After.", ["a b c"]),
        ("", []),
        ("no marker here", []),
        ("The Integration was fine", []),
    ],
)
def test_a_span_runs_from_the_marker_to_the_sentence_or_line_end(text, expected):
    assert spans(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "**Integration:** foo bar.",
        "*Integration:* foo bar.",
        "__Integration:__ foo bar",
        "_Integration:_ foo bar",
        "***Integration:*** foo bar. Next",
        "- Integration: foo bar.",
        "* Integration: foo bar",
        "+ **Integration:** foo bar",
        "1. Integration: foo bar. Next",
        "  3) Integration: foo bar",
        "> Integration: foo bar",
        "## Integration: foo bar",
        "**Integration: foo bar.**",
        "*Integration: foo bar.*",
        "**Integration: foo bar**",
        "- **Integration:** foo bar.\r\n- other",
    ],
)
def test_the_marker_may_stand_in_markdown(text):
    assert spans(text) == ["foo bar"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Integration: it costs 3.5 units. Next", ["it costs 3.5 units"]),
        ("Integration: pi is 3.14159. Next 2.5", ["pi is 3.14159"]),
        ("Integration: the count is 3. Next", ["the count is 3"]),
        ("Integration: about 1.234.567,89 € here. Next", ["about 1.234.567,89 € here"]),
        (
            "Integration: see https://example.com/a.b.html?x=1 now. B",
            ["see https://example.com/a.b.html?x=1 now"],
        ),
        ("Integration: see https://example.com. Next", ["see https://example.com"]),
        ("Integration: see example.com/a for it. N", ["see example.com/a for it"]),
        ("Integration: version v1.2.3 is out. N", ["version v1.2.3 is out"]),
        ("Integration: use e.g. the rope. Next", ["use e.g. the rope"]),
        ("Integration: that is, i.e. this one. Next", ["that is, i.e. this one"]),
        ("Integration: Dr. Smith said 5. Next", ["Dr. Smith said 5"]),
        ("Integration: Mr. and Mrs. Jones. Next", ["Mr. and Mrs. Jones"]),
        ("Integration: cats vs. dogs. Next", ["cats vs. dogs"]),
        ("Integration: approx. 5 km. Next", ["approx. 5 km"]),
        ("Integration: see No. 5 there. Next", ["see No. 5 there"]),
        ("Integration: z.B. heute. Morgen", ["z.B. heute"]),
        ("Integration: ca. 5 Meter. Morgen", ["ca. 5 Meter"]),
        ("Integration: file.txt is there. Next", ["file.txt is there"]),
    ],
)
def test_numbers_urls_and_abbreviations_do_not_end_a_sentence(text, expected):
    assert spans(text) == expected


def test_d10_offsets_are_bytes_of_utf8():
    text = "Größe 😀. Integration: naïve 日本語 café. Ende"
    data = text.encode()
    assert [data[a:b].decode() for a, b in callmark.extract_spans(text)] == ["naïve 日本語 café"]
    start = len("Größe 😀. Integration: ".encode())
    assert callmark.extract_spans(text) == [[start, start + len("naïve 日本語 café".encode())]]


def test_d10_scores_hold_bytes_for_spans_matches_and_values():
    answer = "Größe: é. Integration: Für 東京 sind es 42 Stück."
    scores = score(answer, call({"count": 42}))
    data = answer.encode()
    [span] = scores["spans"]
    assert data[span["start"] : span["end"]].decode() == "Für 東京 sind es 42 Stück"
    [match] = span["matches"]
    assert data[match["start"] : match["end"]] == b"42"
    [mark] = span["values"]
    assert data[mark["start"] : mark["end"]] == b"42"


def test_d11_a_line_end_ends_a_span():
    assert spans("Integration: x y\nNext") == ["x y"]
    assert spans("Integration: one\nIntegration: two\nIntegration: three") == [
        "one",
        "two",
        "three",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Integration: foo.", ["foo"]),
        ("Integration: foo. Bar", ["foo"]),
        ("Integration: foo\r\nBar", ["foo"]),
        ("Integration: foo.\r\nBar", ["foo"]),
        ("Integration: foo   \nBar", ["foo"]),
        ("Integration: foo .  ", ["foo"]),
        ("Integration: foo!!!", ["foo"]),
        ("Integration:  ", []),
        ("Integration:", []),
        ("Integration: ...", []),
        ("Integration: . Foo", []),
        ("Integration: !\nfoo", []),
    ],
)
def test_d12_marks_and_blanks_at_the_end_are_no_part_and_empty_spans_are_dropped(text, expected):
    assert spans(text) == expected


def test_d13_values_after_an_abbreviation_stay_in_the_span():
    assert spans("Integration: use e.g. 42 of them. Next") == ["use e.g. 42 of them"]
    assert spans("Integration: Dr. Who has 42. Next") == ["Dr. Who has 42"]
    assert spans("Integration: 値は42です。 次") == ["値は42です"]


def test_d13_an_ideographic_full_stop_needs_no_blank_after_it():
    assert spans("Integration: 値は42です。次は43です。") == ["値は42です"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Integration:\nNext paragraph 5.", []),
        ("Integration: \n\nNext 5.", []),
        ("Integration:\r\nNext 5.", []),
        ("Integration:\nIntegration: b", ["b"]),
    ],
)
def test_d14_an_empty_marker_does_not_take_the_next_line(text, expected):
    assert spans(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Integration: a Integration: b",
        "Integration: Integration: b",
        "Integration: a, **Integration:** b",
    ],
)
def test_d14_no_span_holds_a_second_marker(text):
    assert all("Integration:" not in span for span in spans(text))
    assert spans(text)[-1] == "b"


def test_d34_all_spans_are_counted_and_those_over_the_cap_are_flagged_not_scored():
    answer = "\n".join(f"Integration: value {number}" for number in (91, 92, 93, 42, 94))
    scores = score(answer, call({"count": 42}))
    assert (scores["spans_total"], scores["spans_over_cap"], scores["spans_counted"]) == (5, 2, 3)
    assert [span["scored"] for span in scores["spans"]] == [True, True, True, False, False]
    assert scores["lax"]["grounded"] == 0
    assert scores["values"]["unsupported"] == 3  # what is not scored is not counted
    wide = score(answer, call({"count": 42}), integration_span_cap=5)
    assert (wide["spans_over_cap"], wide["lax"]["grounded"], wide["spans_counted"]) == (0, 1, 5)


@pytest.mark.parametrize("cap", [1, 2, 4, 7])
def test_d34_the_cap_is_the_callers(cap):
    answer = "\n".join("Integration: 42" for _ in range(5))
    scores = score(answer, call({"count": 42}), integration_span_cap=cap)
    assert scores["spans_total"] == 5
    assert scores["spans_over_cap"] == max(0, 5 - cap)
    assert scores["lax"]["grounded"] == min(cap, 5)


def test_offsets_follow_the_normalised_text_where_the_item_asks_for_it():
    answer = "Cafe\u0301.\r\nIntegration: cafe\u0301 42\r\nEnd"
    scores = score(answer, call({"count": 42}), of=item(text_norm="NFC", line_endings="LF"))
    assert span_texts(scores, "Café.\nIntegration: café 42\nEnd") == ["café 42"]
    plain = score(answer, call({"count": 42}))
    assert span_texts(plain, answer) == ["cafe\u0301 42"]


def test_no_text_has_no_span():
    assert score(None, call({"count": 42}))["spans_total"] == 0
    assert score("", call({"count": 42}))["lax"]["f1"] == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"Integration: in C:\new\data are 42 rows. Next", [r"in C:\new\data are 42 rows"]),
        (r"Integration: the pattern `\n+` hits 42. Next", [r"the pattern `\n+` hits 42"]),
    ],
)
def test_a_backslash_and_an_n_are_no_line_end(text, expected):
    assert spans(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Integration: the count is 3. next comes 77.", "the count is 3"),
        ("Integration: it is 42. iPhones are 77.", "it is 42"),
    ],
)
def test_a_full_stop_after_a_number_ends_a_sentence_before_a_small_letter_too(text, expected):
    assert spans(text) == [expected]


def test_emphasis_that_closes_after_the_sentence_is_no_part_of_it():
    assert spans("_Integration: foo bar._") == ["foo bar"]


@pytest.mark.parametrize("date", ["(5. Januar 2024)", "**5. Januar 2024**", "„5. Januar 2024“"])
def test_a_date_in_brackets_or_emphasis_is_not_cut(date):
    assert spans(f"Integration: es war {date} kalt. Danach") == [f"es war {date} kalt"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Integration: it says “42.” and 43. Next", "it says “42.” and 43"),
        ('Integration: it says "42." and 43. Next', 'it says "42." and 43'),
        ("Integration: it says '42!' and 43. Next", "it says '42!' and 43"),
        ("Integration: 42 (all of them.) of 43. Next", "42 (all of them.) of 43"),
        ("Integration: 42 [see above?] of 43! Next", "42 [see above?] of 43"),
        ("Integration: «42…» sur 43. Suite", "«42…» sur 43"),
        ("Integration: run `a.` for 43. Next", "run `a.` for 43"),
        ("Integration: “It is 42.” Then 43", "“It is 42.” Then 43"),
        ("Integration: “It is 42.”\nThen 43", "“It is 42.”"),
        ("Integration: 「42です。」と43です。次", "「42です。」と43です"),
        ("Integration: 「すごい！！」と43です。次", "「すごい！！」と43です"),
    ],
)
def test_f37_a_mark_before_a_closing_quote_or_bracket_ends_no_span(text, expected):
    assert spans(text) == [expected]


def test_f37_sentences_under_claims_end_where_spans_end():
    text = 'It says "42." and 43. The rest is 44.'
    assert spans(text, "claims") == ['It says "42." and 43', "The rest is 44"]


@pytest.mark.parametrize(
    "text",
    [
        "**Integration: foo bar.** Next 5.",
        "*Integration: foo bar!* Next",
        "__Integration: foo bar.__ N",
    ],
)
def test_f37_emphasis_is_no_text_after_the_mark(text):
    assert spans(text) == ["foo bar"]


@pytest.mark.parametrize(
    "text",
    [
        "Integration : 42",
        "Integration\t: 42",
        "**Integration** : 42",
        "- Integration : 42",
        "Integration\u00a0: 42",
    ],
)
def test_f38_a_blank_before_the_colon_is_no_marker(text):
    assert spans(text) == []
    assert score(text, call({"count": 42}))["spans_total"] == 0
