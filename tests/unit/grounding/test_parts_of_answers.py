"""Numbers of an answer's own list, ends of identifiers, and replies that an answer suggests."""

import pytest

import callmark
from callmark.grounding.values import find_values

CARD = {"payment": {"id": "credit_card_4421487880", "amount": 12.5}}


def texts(text):
    return [value.text for value in find_values(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Option 1: by train\nOption 2: by bus",
        "1. **Option 1:**\n   - by train\n2. **Option 2:**\n   - by bus",
        "### Flight 1\nto Rome\n### Flight 2\nto Bern",
        "- **Certificate 1**: old\n- **Certificate 2**: new",
        "Option 1: a\nOption 2: b\nShall I take Option 2, then?",
        "Étape 1: a\nÉtape 2: b",
    ],
)
def test_numbers_that_count_the_answers_own_list_are_no_values(text):
    assert texts(text) == []


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Gate 12: boarding", ["12"]),
        ("Room 1: free", ["1"]),
        ("Option 1: 5 EUR\nOption 2: 7 EUR", ["5", "7"]),
        ("Option 1: a\nOption 2: b\nOption 4 does not exist", ["4"]),
        ("Option 1: a\nOption 2: b\nThere are 2 of them", ["2"]),
        ("Platform 3: Rome\nPlatform 4: Bern", ["3", "4"]),
    ],
)
def test_other_numbers_before_a_colon_are(text, values):
    assert texts(text) == values


@pytest.mark.parametrize(
    "sentence",
    [
        "It went to the card ending in 7880",
        "It went to the card ending **7880**",
        "The last four digits: 7880",
        "Die Karte endet auf 7880",
        "La tarjeta terminada en 7880",
        "La carte se terminant par 7880",
    ],
)
def test_the_end_of_an_identifier_is_found_where_the_words_say_so(sentence):
    assert callmark.ground(sentence, [CARD])["lax"]
    assert not callmark.ground(sentence.replace("7880", "7881"), [CARD])["lax"]


@pytest.mark.parametrize(
    "sentence", ["It cost 7880", "The card 7880", "ending in 80", "ending in 12"]
)
def test_without_those_words_or_with_few_digits_it_is_not(sentence):
    assert not callmark.ground(sentence, [CARD])["lax"]


def test_the_end_of_an_account_number_is_found_too():
    assert callmark.ground("the account ending in 7880", [{"account": 4421487880}])["lax"]
    assert callmark.ground("the account ending in 7880", [{"account": "4421487880"}])["lax"]
    assert not callmark.ground("the account ending in 7880", [{"price": 0.7880}])["lax"]


def test_an_end_that_the_user_said_is_no_invention():
    found = callmark.ground("card ending in 7880", [], said=["I have credit_card_4421487880"])
    assert found["unsupported_values"] == []
    assert not found["lax"]


def test_a_suggested_reply_is_supported_if_all_its_values_are():
    results = [{"order": "#W5166363", "item_id": "3265035808"}]
    said = ["Please change the item_id of my order."]
    reply = "Say “Yes, change #W5166363 to item_id {}”"
    assert (
        callmark.ground(reply.format("3265035808"), results, said=said)["unsupported_values"] == []
    )
    assert callmark.ground(reply.format("3265035809"), results, said=said)["unsupported_values"]


def test_a_long_chain_of_hyphens_is_read_in_linear_time():
    assert len(find_values("2024-" * 20_000)) > 1000
