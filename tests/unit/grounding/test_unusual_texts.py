"""Nothing that an answer or a result may hold stops the scoring: numbers of thousands of digits,
tables of nothing, texts that no file could hold."""

import json

import pytest
from tests.unit.grounding.asking import call, claims, item

import callmark
from callmark.grounding.numbers import SCALE, decimal_text, find_number_words
from callmark.grounding.tables import records_of_text

NINES = "9" * 4400
WORLD = {
    "p": 17,
    "hours": {"monday": "9:00-17:00"},
    "boxes": [
        {"id": "ORD-1", "price": 3, "open": True, "on": "2024-05-03"},
        {"id": "ORD-2", "price": 14, "open": False, "on": "2024-05-04"},
    ],
}


@pytest.mark.parametrize("digits", [NINES, "٣" * 4400, "４" * 4400], ids=["9", "٣", "４"])
@pytest.mark.parametrize(
    "text",
    [
        "It is {}.", "{} boxes", "the {} boxes are open", "the first {}", "on Monday {}", "le {}", "{} of the 2 orders",
        "between {} and {}", "ending in {}", "{}%", "1.{}", "{}:30", "May {}, 2024", "{} + 1 = 2", "1 + 1 = {}", "2 × {} = 4",
        "one of {} open boxes", "{} hours", "the sum of {} and 3 is 17", "17^{}", "| {} |", "- {}\n- {}", "twenty {}", "in {} days",
    ],
)  # fmt: skip
def test_thousands_of_digits_are_no_number(text, digits):
    stated = text.replace("{}", digits)
    for answer in (stated, f"There are {stated}", f"The price of ORD-1 is {stated}"):
        assert claims(answer, call(WORLD))["statements"] is not None
    assert claims("There are 2 boxes.", call({"x": stated, **WORLD}))["lax"]["f1"] == 1


@pytest.mark.parametrize("digits", [4200, 4300])
def test_a_result_may_hold_numbers_as_long_as_json_has_them(digits):
    whole = int("9" * digits)
    scores = claims(f"The price is 17, {'9' * digits}, 18 and 19.", call({"p": 17, "v": whole}))
    assert scores["statements"]


def test_a_reckoned_number_that_nobody_could_write_is_told_by_its_length():
    assert decimal_text(17 * SCALE // 2) == "8.5"
    assert decimal_text(10**5000 * SCALE).startswith("10^")
    assert decimal_text(-(10**5000) * SCALE).startswith("-10^")


def test_a_ratio_that_no_float_holds_is_no_rate():
    assert claims("17 percent a third " + "9" * 320, call({"v": 3}))["statements"]
    scores = claims("It is 231 € in all, so 77 € a day.", call({"total": 231, "days": 3}))
    assert [one["label"] for one in scores["statements"]] == ["supported", "derived"]


@pytest.mark.parametrize(
    "text", ["||\n||", "|  |  |\n| --- | --- |", "a\n||\n||\nb", "||\n|-|\n|1|"]
)
def test_a_table_of_nothing_has_no_rows(text):
    assert all(any(row.values()) for row in records_of_text(text))
    assert claims("The price is 17.", call({"price": 17, "text": text}))["lax"]["f1"] == 1
    assert claims("The price is 17.", call({"text": f"17 {text} of it"}))["lax"]["f1"] == 1


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("two hundred boats", [200]), ("twelve hundred boats", [1200]), ("three hundred thousand boats", [300_000]),
        ("two thousand five hundred boats", [2500]), ("twenty hundred hundred boats", []),
        ("twenty " + "hundred " * 2500 + "boats", []),
    ],
)  # fmt: skip
def test_hundreds_of_hundreds_are_no_number(text, numbers):
    assert [one.number for one in find_number_words(text)] == numbers
    assert claims(text, call({"boats": 17}))["statements"] is not None


@pytest.mark.parametrize(
    ("answer", "served", "arguments", "of"),
    [
        ("It is 17.", {"v": 17}, {"A\ud83d": 3}, None),
        ("It is 17.", {"v": 17}, {"q": ["A\ud83d"]}, None),
        ("It is 17 \ud83d.", {"v": 17, "x\ud83d": "\ud83d"}, {}, None),
        ("It is 17.", {"v": 17}, {}, item("A\ud83d", required_facts=["\ud83d"])),
        (
            "It is 17.",
            {"v": 17},
            {"\ud83d": "\ud83d"},
            item(call_sequence=[{"name": "web.search", "arguments": {"\ud83d": "q"}}]),
        ),
    ],
)
def test_a_lone_surrogate_is_told_as_a_sign_that_files_can_hold(answer, served, arguments, of):
    scores = claims(answer, call(served, arguments=arguments), of=of)
    told = json.dumps(scores, ensure_ascii=False)
    assert told.encode("utf-8", "replace").decode() == told


def test_a_lone_surrogate_in_a_call_changes_no_score():
    for sign in ("\ud83d", "x"):
        scores = claims("It is 17.", call({"v": 17}, arguments={f"A{sign}": 3}))
        assert scores["lax"]["f1"] == 1


@pytest.mark.parametrize(
    "line", ["{}Price: 54", "- {}Price: 54", "1. {}Price:{} 54", "{}: 54", "  - {}**Price**: 54"]
)
def test_a_label_may_be_dressed_in_many_signs(line):
    for signs in ("", "**", "*" * 12, "*" * 5000):
        answer = line.replace("{}", signs)
        assert claims(answer, call({"price": 54}))["lax"]["f1"] == 1


@pytest.mark.parametrize("blanks", [" ", "  ", "\t\t", "\u00a0 ", " " * 400])
def test_a_run_of_blanks_ends_a_clause_as_one_does(blanks):
    answer = f"Box A is not open{blanks}but box B is open."
    served = [{"name": "box A", "open": False}, {"name": "box B", "open": True}]
    labels = [one["label"] for one in claims(answer, call(served))["statements"]]
    assert "contradicted" not in labels
    assert callmark.extract_spans(answer, "claims") == []


@pytest.mark.parametrize(
    "answer", ["The sea is wide. The Lamp is deep blue", "The sea is deep blue"]
)
def test_a_text_may_end_in_the_beginning_of_a_longer_kind(answer):
    served = [
        {"name": "Lamp", "colour": "deep blue sea"},
        {"name": "Boat", "colour": "deep blue"},
    ]
    assert claims(answer, call(served))["statements"] is not None
