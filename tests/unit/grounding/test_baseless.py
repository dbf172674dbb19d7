"""Several values that nobody served: a reckoning that no rule follows, or nothing at all."""

import pytest
from tests.unit.grounding.asking import call, claims, statements

RESULT = {
    "trips": [
        {"name": "Ulm", "price": 204.5, "seats": 31},
        {"name": "Bern", "price": 377.25, "seats": 58},
        {"name": "Graz", "price": 519.75, "seats": 76},
    ]
}
RIGHT = "Ulm costs 204.50, Bern 377.25 and Graz 519.75."
FOREIGN = "Geese juggled 6143 umbrellas and 88642 pumpkins."


def rules(answer, **more):
    told = statements(answer, RESULT, **more)
    return [rule for _, label, rule in told if label == "unsupported"]


def test_nonsense_is_found_before_and_after_facts():
    assert rules(f"{FOREIGN} {RIGHT}") == ["baseless"] * 2
    assert rules(f"{RIGHT} {FOREIGN}") == ["baseless"] * 2


@pytest.mark.parametrize("number", ["6143", "88642"])
def test_a_single_value_may_have_been_reckoned(number):
    assert rules(f"Geese juggled {number} umbrellas. {RIGHT}") == ["value"]
    assert rules(f"Geese juggled {number} umbrellas.") == ["value"]


def test_words_of_the_results_are_a_base():
    assert rules(f"{RIGHT} The seats of the trips brought 6143 and 88642.") == ["value"] * 2


def test_the_parts_of_a_telephone_number_are_one_value():
    assert "baseless" not in rules(f"{RIGHT} Geese answer umbrellas on (212) 555-0147 today.")


def test_as_many_values_without_a_base_as_with_one_are_too_many():
    answer = "Ulm costs 204.50. The trips brought 6143 and 88642."
    assert rules(answer) == ["baseless"] * 2


def test_what_the_user_said_is_a_base_of_its_sentence():
    assert rules(f"{RIGHT} {FOREIGN}", prompt="Who juggled 6143 of them?") == ["value"]


def test_an_identifier_has_no_words_of_a_language():
    """`hat` is a common word of German, `HAT023` is a flight."""
    flights = {"flights": [{"number": f"HAT02{at}", "free_wifi": at == 1} for at in (1, 2, 3)]}
    listed = ", ".join(one["number"] for one in flights["flights"] * 3)
    told = statements(f"HAT022 has free wifi. Flights: {listed}.", flights)
    assert ("free wifi", "contradicted", "polarity") in told


def test_the_decimals_of_an_arabic_number_are_read():
    told = statements("٣٤٬٦١٦٫٨", {"yield": 34618.8, "since": 1999})
    assert told == [("٣٤٬٦١٦٫٨", "unsupported", "misread")]


def test_of_records_that_say_the_same_the_named_one_is_told():
    cabins = {
        "cabins": [
            {"cabin_number": f"CB{at}1", "price": at * 211, "ski_storage": False}
            for at in (1, 2, 3)
        ]
    }
    scores = claims("CB21 has a ski storage.", call(cabins))
    [one] = [one for one in scores["statements"] if one["rule"] == "polarity"]
    assert one["path"] == "/cabins/1/ski_storage"


def test_shares_that_nobody_served_were_reckoned_by_somebody():
    told = statements("B leads with 33.5%, against 28.2% for A and 26.9% for C.", RESULT)
    assert {rule for _, _, rule in told} == {"value"}
