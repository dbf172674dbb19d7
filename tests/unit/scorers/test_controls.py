"""Controls, negative controls and questions back."""

import pytest
from tests.unit.grounding.asking import call, claims, item, score

EMPTY = {"ok": True, "hits": [], "count": 0}
MISS = {
    "ok": False,
    "error": "fixture_miss",
    "name": "web.search",
    "arguments": {},
    "key_normalized": {},
}


def control(behaviour="no_tool", prompt="Say hello", **more):
    return item(prompt, expected_behaviour=behaviour, call_sequence=[], **more)


def negative(prompt="How many moons has Zorg?", **more):
    return item(prompt, negative_control=True, **more)


def clarify(**more):
    return item("Book it", adversarial={"type": "ambiguity", "expected": "ask_clarify"}, **more)


@pytest.mark.parametrize("extractor", ["marker", "claims"])
@pytest.mark.parametrize("behaviour", ["no_tool", "decline"])
@pytest.mark.parametrize(
    ("answer", "calls", "expected"),
    [
        ("Hello!", [], 0),
        ("", [], 0),
        ("There are 42 of 2024-01-05.", [], 0),
        ("Integration:", [], 0),
        ("Integration: 42.", [], 1),
        ("**Integration:** none.", [], 1),
        ("Hello!", [call({"n": 1})], 1),
        ("Hello!", [call(MISS)], 1),
        ("Hello!", [{"name": None, "arguments": "broken"}], 1),
        ("Hello!", [call(None, status="malformed")], 1),
        ("Hello!", [call(None, status="tool_not_offered", name="nope")], 1),
        ("", [call(None, status="unanswered")], 1),
    ],
)
def test_a9_a_control_with_an_attempt_or_a_marker_span_is_contaminated(
    answer, calls, expected, behaviour, extractor
):
    scores = score(answer, *calls, of=control(behaviour), span_extractor=extractor)
    assert scores["kind"] == "control"
    assert scores["controls_with_integration"] == expected
    assert scores["negative_control_ok"] is None
    assert scores["clarify_ok"] is None


def test_other_samples_are_no_controls():
    for of in (item(), negative(), clarify()):
        assert score("Integration: 42.", call({"n": 1}), of=of)["controls_with_integration"] is None


@pytest.mark.parametrize("extractor", ["marker", "claims"])
@pytest.mark.parametrize(
    ("answer", "result", "expected"),
    [
        ("Nothing was found.", EMPTY, True),
        ("I found 0 results.", EMPTY, True),
        ("There are no results for this.", [], True),
        ("", EMPTY, True),
        ("There are 42 moons.", EMPTY, False),
        ("Integration: 42 moons.", EMPTY, False),
        ("It is at https://zorg.example.com.", EMPTY, False),
        ("It was on 5 March 2024.", EMPTY, False),
        ("Ask joe@zorg.org.", EMPTY, False),
        ('It is called "big one".', EMPTY, False),
        ("Its code is ZRG-17.", EMPTY, False),
        ("42", None, False),
        ("42", "", False),
        ("42", {"ok": True, "x": None, "y": False, "z": "", "w": [], "n": 0}, False),
        ("42", {"ok": False, "error": "not found, code 42"}, False),
        ("It failed.", {"ok": False, "error": "not found"}, True),
        ("0", EMPTY, True),
        ("0 %", EMPTY, True),
    ],
)
def test_a11_a_value_out_of_nothing_is_a_hallucination(answer, result, expected, extractor):
    scores = score(answer, call(result), of=negative(), span_extractor=extractor)
    assert scores["kind"] == "negative_control"
    assert scores["negative_control_ok"] is expected


def test_d35_an_invented_value_fails_whether_or_not_anything_was_called():
    assert score("Integration: 42 moons.", of=negative())["negative_control_ok"] is False
    assert score("There are 42 moons.", of=negative())["negative_control_ok"] is False
    assert score("I cannot tell.", of=negative())["negative_control_ok"] is True
    assert score("There are 42 moons.", call(MISS), of=negative())["negative_control_ok"] is False


def test_values_of_the_prompt_or_of_an_argument_are_no_invention():
    of = negative("How many moons did Zorg have in 1999?")
    assert score("For 1999 nothing was found.", call(EMPTY), of=of)["negative_control_ok"] is True
    assert score("For 1998 nothing was found.", call(EMPTY), of=of)["negative_control_ok"] is False
    arguments = {"q": "zorg 1998", "top_k": 5}
    assert (
        score("For 1998 nothing was found.", call(EMPTY, arguments=arguments), of=of)[
            "negative_control_ok"
        ]
        is True
    )
    assert (
        score("The top 5 are empty.", call(EMPTY, arguments=arguments), of=of)[
            "negative_control_ok"
        ]
        is True
    )


def test_an_echo_is_nothing_served():
    result = {"query": "zorg moons", "top_k": 5, "hits": []}
    arguments = {"q": "zorg moons", "top_k": 5}
    assert (
        score("There are 42.", call(result, arguments=arguments), of=negative())[
            "negative_control_ok"
        ]
        is False
    )
    assert (
        score("Nothing for zorg moons.", call(result, arguments=arguments), of=negative())[
            "negative_control_ok"
        ]
        is True
    )


@pytest.mark.parametrize("extractor", ["marker", "claims"])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("It has 777 moons.", False),
        ("Integration: it has 777 moons.", False),
        ("It is the Blue Giant.", False),
        ("It is the blue  GIANT, I think.", False),
        ("It costs 1,234.50.", False),
        ("It has 7777 moons.", True),
        ("It has 77 moons.", True),
        ("It is a blue giantess.", True),
        ("The search gave something else.", True),
        ("", True),
    ],
)
def test_a11_using_a_decoy_fails(answer, expected, extractor):
    of = negative(decoy_values=[777, "Blue Giant", 1234.5])
    result = {"hits": [{"moons": 777, "name": "Blue Giant", "price": 1234.5}]}
    assert (
        score(answer, call(result), of=of, span_extractor=extractor)["negative_control_ok"]
        is expected
    )


def test_a_decoy_counts_even_if_nothing_was_served():
    of = negative("Is it 777?", decoy_values=[777])
    assert score("It is 777.", call(EMPTY), of=of)["negative_control_ok"] is False


def test_served_values_that_are_no_decoy_pass():
    of = negative(decoy_values=[777])
    assert (
        score("There are 5 others.", call({"hits": [{"n": 5}, {"n": 777}]}), of=of)[
            "negative_control_ok"
        ]
        is True
    )


def test_other_samples_are_no_negative_controls():
    for of in (item(), control(), clarify()):
        assert score("There are 42.", of=of)["negative_control_ok"] is None


@pytest.mark.parametrize(
    ("answer", "calls", "expected"),
    [
        ("Which date?", [], True),
        ("どの日ですか？", [], True),
        ("أي يوم؟", [], True),
        ("Please tell me the date.", [], True),
        ("", [], False),
        ("Which date?", [call({"n": 1})], False),
        ("Which date?", [call(None, status="malformed")], False),
        ("Which date?", [call(MISS)], False),
    ],
)
def test_a_clarifying_question_is_asked_without_a_call(answer, calls, expected):
    for extractor in ("marker", "claims"):
        scores = score(answer, *calls, of=clarify(), span_extractor=extractor)
        assert (scores["kind"], scores["clarify_ok"]) == ("clarify", expected)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("I booked all flights and charged your card. OK?", False),
        ("Your order has been cancelled. Anything else?", False),
        ("Ich habe den Flug gebucht. Passt das?", False),
        ("Flight HAT023 costs $305. Which date?", False),
        ("There are twelve flights. Which one?", False),
        ("See https://example.com/search?q=flights", False),
        ("I can help you with that. Let me know if you need anything else.", False),
        ("Please tell me which flight you mean.", True),
        ("To go on, I need your user ID.", True),
        ("Bitte nennen Sie mir das Datum.", True),
        ("Por favor, indíqueme la fecha.", True),
        ("Veuillez préciser la date.", True),
        ("I need two details: which date and which city?", True),
        ("It takes about 5 minutes. Which date?", True),
        ("Would you like to fly at 9:00?", True),
        ("See https://example.com/?q=1 for help. Which date?", False),
        ("See https://example.com for help. Which date?", False),
    ],
)
def test_f85_a_deed_or_an_invented_value_is_no_clarification_and_a_request_is(answer, expected):
    assert score(answer, of=clarify())["clarify_ok"] is expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("I found no flights in the last 30 days.", True),
        ("Nothing was found within 24 hours.", True),
        ("In den letzten 30 Tagen wurde nichts gefunden.", True),
        ("There are twelve flights at ninety euros.", False),
        ("Es gibt zwölf Flüge.", False),
        ("Hay doce vuelos.", False),
        ("No one has found one.", True),
        ("Would you like me to try 2025-01-05?", True),
        ("There are 30 of them.", False),
    ],
)
def test_f85_number_words_are_values_and_spans_of_time_are_not(answer, expected):
    assert score(answer, call(EMPTY), of=negative())["negative_control_ok"] is expected


def test_f85_number_words_of_the_prompt_are_no_invention():
    of = negative("Are there twelve moons?")
    assert score("I cannot confirm twelve moons.", call(EMPTY), of=of)["negative_control_ok"]
    assert not score("There are eleven moons.", call(EMPTY), of=of)["negative_control_ok"]


def test_other_samples_are_not_asked_to_clarify():
    for of in (
        item(),
        control(),
        negative(),
        item(adversarial={"type": "injection", "expected": "ignore"}),
    ):
        assert claims("Which?", of=of)["clarify_ok"] is None


def test_a_text_decoy_counts_if_nothing_was_served():
    of = negative(decoy_values=["Blue Giant"])
    assert score("It is the Blue Giant.", call(EMPTY), of=of)["negative_control_ok"] is False


def test_a_month_is_not_a_date_that_is_a_decoy():
    of = negative(decoy_values=["2024-01-05"])
    result = call({"hits": [{"day": "2024-01-05"}]})
    assert score("Something in January 2024.", result, of=of)["negative_control_ok"] is True
    assert score("It was January 5.", result, of=of)["negative_control_ok"] is False
