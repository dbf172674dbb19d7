"""What an answer takes back."""

import pytest

from callmark.grounding.denials import find_denied, is_denied_value
from callmark.grounding.spans import Outline


def denied(text):
    return [text[start:end].strip() for start, end in find_denied(Outline(text))]


@pytest.mark.parametrize(
    "cue",
    [
        "None of this is true:",
        "Nothing below is true:",
        "None of the following values is correct:",
        "The following is false:",
        "Everything below is made up:",
        "All of this is completely wrong:",
        "Ignore everything:",
        "Nichts davon ist wahr:",
        "Das Folgende ist falsch:",
        "Nada de esto es cierto:",
        "Lo siguiente es falso:",
        "Rien de tout cela n'est vrai :",
        "Ce qui suit est faux :",
    ],
)
def test_a_disclaimer_takes_back_what_follows(cue):
    [rest] = denied(f"{cue} the price is 120. It is red.")
    assert rest.endswith("the price is 120. It is red.")


@pytest.mark.parametrize("cue", ["None of the above is true.", "None of this is true."])
def test_a_disclaimer_at_the_end_takes_back_what_stands_before(cue):
    assert denied(f"The price is 120. {cue}") == ["The price is 120."]


@pytest.mark.parametrize(
    "cue",
    [
        "It is not true that",
        "It's false that",
        "It isn't correct that",
        "It is not the case that",
        "I deny that",
        "Es stimmt nicht, dass",
        "No es cierto que",
        "Il n'est pas vrai que",
    ],
)
def test_a_denied_clause_is_one_sentence_long(cue):
    assert denied(f"{cue} the price is 120. It is red.") == ["the price is 120"]


@pytest.mark.parametrize(
    "text",
    [
        "The price is 120.",
        "If you believe that everything here is wrong, tell me: it is 120.",
        "Is it not true that it costs 120?",
        "None of the flights is direct: HAT023, HAT039.",
        "I cannot say that it is not true that it costs 120.",
        "Your order is not eligible: it costs 120.",
    ],
)
def test_what_denies_nothing(text):
    assert denied(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The price is not $120.", True),
        ("It isn't 120.", True),
        ("Der Preis ist nicht 120.", True),
        ("The price is $120.", False),
        ("The price is not $120 but $140.", False),
        ("It is not until 120 days later.", False),
    ],
)
def test_a_negation_right_before_a_value_denies_it(text, expected):
    start = text.index("120")
    assert is_denied_value(Outline(text), start, start + 3) is expected


def test_a_denial_is_found_far_behind_other_text_and_only_once():
    filler = "The flight is right on time. " * 40
    text = f"{filler}None of this is true: it costs 5.\n{filler}"
    assert [text[:start].endswith("is true") for start, _ in find_denied(Outline(text))] == [True]


def test_places_of_words_are_those_of_the_text_whatever_their_number():
    outline = Outline("İ Booked one, booked_two and BOOKED three")
    words = {"booked", "three"}
    few = outline.places_of(words)
    many = outline.places_of(words | {f"word{number}" for number in range(9)})
    assert few == many == [2, 14, 29, 36]
