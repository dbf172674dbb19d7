"""What something is rated as a whole, and what single people gave it."""

import pytest
from tests.unit.grounding.asking import statements

LAMP = {
    "product": "Moth desk lamp",
    "rating": 3.5,
    "price": 41,
    "opinions": [
        {"by": "Ida", "rating": 4.0, "text": "Bright enough for a whole desk, and it folds."},
        {"by": "Noor", "rating": 5.0, "text": "We bought three of them for the workshop."},
        {"by": "Per", "rating": 2.0, "text": "The switch broke after a week."},
    ],
}


def flags(answer, result=LAMP):
    found = statements(answer, result)
    return [one for one in found if one[1] in ("misattributed", "unsupported")]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The lamp has an average rating of 4.0 stars.", ("4.0", "misattributed", "binding")),
        ("With an overall rating of 5 out of 5, it sells well.", ("5", "misattributed", "binding")),
        ("It has a rating of 1 out of 5 stars.", ("1", "unsupported", "value")),
    ],
)
def test_the_rating_of_the_whole_is_no_single_one(answer, expected):
    assert flags(answer) == [expected]


@pytest.mark.parametrize(
    "answer",
    [
        "The lamp has an average rating of 3.5 stars.",
        "It has a rating of 4 out of 5 stars.",  # rounded
        "It has an average rating of 3.7 out of 5.",  # of the three
        "One buyer left it with a rating of 2 out of 5 stars.",
        "Noor, one of the customers, has given a rating of 5 out of 5 stars.",
    ],
)
def test_what_is_so_of_the_whole_or_told_of_one(answer):
    assert flags(answer) == []


def test_of_several_things_that_are_rated_any_may_be_meant():
    two = {"products": [LAMP, {**LAMP, "product": "Owl reading lamp", "rating": 4.0}]}
    assert flags("It has an average rating of 5.0 stars.", two) == []


def test_how_many_there_is_room_for_is_no_product():
    hall = {"name": "Gull Hall", "stars": 5.0, "hired": 15, "city": "Ulm"}
    answer = "Gull Hall in Ulm has a cozy bar, with a capacity of 75 people."
    assert flags(answer, hall) == [("75", "unsupported", "value")]
    rows = {"name": "Gull Hall", "rows": 5, "chairs_per_row": 15}
    assert flags("Its 5 rows of 15 chairs have a total capacity of 75 people.", rows) == []
