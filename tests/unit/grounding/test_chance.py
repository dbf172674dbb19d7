"""Numbers that some arithmetic gives by chance: each way of working one out needs its word."""

import pytest
from tests.unit.grounding.asking import Json, statements

WORKED_OUT = {"derived", "calculated"}

TRIPS = {
    "trips": [
        {"id": "TR-41", "sail_date": "2031-03-14", "cabins": 9, "fare": 491, "deck": 7},
        {"id": "TR-42", "sail_date": "2031-03-15", "cabins": 10, "fare": 366, "deck": 4},
        {"id": "TR-43", "sail_date": "2031-03-23", "cabins": 12, "fare": 728, "deck": 3},
    ],
    "terms": "Free changes within 1 day. Refunds take 7 days.",
}
ALLEY = {
    "name": "Pinfall Alley",
    "stars": 4.0,
    "lanes": 5,
    "tables": 15,
    "reviews": [
        {"author": "Ida", "review_stars": 5.0},
        {"author": "Omar", "review_stars": 4.0},
        {"author": "Lin", "review_stars": 4.0},
    ],
}
CLUBS = {
    "user": {"name": "Tove", "saved_rowers": [{"name": "Ana"}, {"name": "Jo"}, {"name": "Bo"}]},
    "outings": [
        {"id": "OUT-7", "day": "2031-05-03", "rowers": [{"name": "Ana"}, {"name": "Jo"}]},
        {"id": "OUT-8", "day": "2031-05-03", "rowers": [{"name": "Jo"}]},
    ],
}


def label_of(answer: str, number: str, *results: Json, prompt: str = "Please look it up.") -> str:
    told = statements(answer, *results, prompt=prompt)
    found = [label for text, label, _ in told if text == number]
    assert found, f"{number} is no statement of {answer!r}"
    return found[-1]


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        # 5 lanes times 15 tables; `an` is no French year
        ("Pinfall Alley has an easy charm, with room for 75 guests in an old mill.", "75"),
        # 15 tables to 5 lanes
        ("Pinfall Alley has an average rating of 4.0 stars out of 3.0.", "3.0"),
        # the mean of what the reviews give, where it has stars of its own
        ("Pinfall Alley is rated 4.3 stars overall.", "4.3"),
    ],
)
def test_what_any_two_leaves_give_is_not_worked_out(answer, number):
    assert label_of(answer, number, ALLEY) not in WORKED_OUT


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("Trip TR-41 sails on 2031-03-14. Fare: $481.", "481"),  # 491 less 10 cabins
        ("Trip TR-42 sails on 2031-03-15. Fare: $396.", "396"),  # 366 and 30
        ("Trip TR-41 has cabins left. Sailing date: 2031-03-13.", "2031-03-13"),  # a day before it
        ("Trip TR-43 leaves port. Sailing date: 2031-03-16.", "2031-03-16"),  # 7 days before it
    ],
)
def test_a_slip_is_not_worked_out_of_what_stands_around(answer, number):
    prompt = "What do trips cost in 30 days, for a cabin of 2?"
    assert label_of(answer, number, TRIPS, prompt=prompt) not in WORKED_OUT


def test_a_term_that_is_spoken_of_still_gives_a_day():
    answer = "Trip TR-43 sails on 2031-03-23. Pay 7 days before, by 2031-03-16."
    assert label_of(answer, "2031-03-16", TRIPS) == "derived"


@pytest.mark.parametrize("number", ["3", "three"])
def test_the_list_that_is_called_so_is_counted_and_no_saved_one(number):
    answer = f"You have an outing with {number} rowers in the diary."
    assert label_of(answer, number, CLUBS) not in {"supported", "calculated"}
    assert "saved_rowers" not in str(statements(answer, CLUBS))


def test_how_many_there_are_on_a_day_is_no_length_of_one_list():
    spread = {
        "tickets": [
            {"id": "T-1", "rides": [{"no": 61}, {"no": 62}]},
            {"id": "T-2", "rides": [{"no": 63}]},
            {"id": "T-3", "rides": [{"no": 64}, {"no": 65}, {"no": 66}]},
        ]
    }
    assert label_of("You have two rides on May 3.", "two", spread) != "derived"
    assert label_of("Ticket T-1 has two rides.", "two", spread) == "derived"


def test_what_was_worked_out_is_no_evidence_for_something_else():
    guests = {"invited": 180, "answers": 25, "scores": [7, 9, 3, 10, 8, 6, 5, 4]}
    answer = "25 of 180 invited guests answered, a share of 14%. Scores of 9 or more: 14 in all."
    labels = [label for text, label, _ in statements(answer, guests) if text in ("14%", "14")]
    assert labels[0] == "derived"
    assert labels[1] not in WORKED_OUT


def test_a_small_number_is_a_difference_only_where_a_word_says_so():
    ferry = {"ferry": "Otter", "available_seats": {"saver": 19, "plain": 9, "front": 12}}
    assert label_of("**Otter**\n- Available seats: 7", "7", ferry) != "derived"


@pytest.mark.parametrize(
    ("answer", "number", "result"),
    [
        ("You won 63 of your 120 matches.", "120", {"won": 63, "lost": 57, "league": "Gold"}),
        ("Ruiz: 21 in 30 (0.70)", "0.70", {"players": [{"name": "Ruiz", "apps": 30, "goals": 21}]}),
        (
            "| Post | Paid | Counted |\n|---|---|---|\n| Phone | $1,140.00 | $684.00 at 60% |",
            "684.00",
            {"posts": [{"post": "Phone", "paid": 1140.0, "used_pct": 60}]},
        ),
    ],
)
def test_one_step_from_what_stands_beside_it_is_still_worked_out(answer, number, result):
    assert label_of(answer, number, result) == "derived"


def test_what_the_user_can_pay_is_exceeded_by_a_round_number_less():
    hotels = {
        "currency": "JPY",
        "hotels": [{"name": "Heron", "price": 32500}, {"name": "Plover", "price": 6600}],
    }
    answer = "The Plover is ¥6,600. The Heron is finer, but ¥25,500 over."
    prompt = "Hotels under 7,000 yen?"
    assert label_of(answer, "25,500", hotels, prompt=prompt) == "derived"
