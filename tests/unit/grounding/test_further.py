"""Numbers in two steps, and days and times that lie so far from others: right ones get a good label,
wrong ones of the same form are flagged."""

import pytest
from tests.unit.grounding.asking import statements

from callmark.records.statements import FLAGS

OFFERS = {
    "days": 5,
    "offers": [
        {"name": "Opel Corsa", "base_total": 148.0, "fee_per_day": 15.0},
        {"name": "VW T-Cross", "base_total": 189.9, "fee_per_day": 5.5},
    ],
}
CONTRACT = {"contract_id": "C-142", "end": "2027-02-28", "notice_days": 60}
COURSES = [
    {"title": "Algebra", "credits": 4, "grade_points": 3.7},
    {"title": "Logic", "credits": 3, "grade_points": 4.0},
    {"title": "Mechanics", "credits": 4, "grade_points": 2.3},
]
CENTS = {"unit": "cents/bu", "settlements": [{"date": "2026-02-23", "settle": 441.25}]}
FUND = {"income": {"individual": 1284310.2, "institutional": 2150000.0, "interest": 18442.71}}
MUSEUM = {"name": "Harbour Museum", "sat": "09:30-18:00", "last_entry_before_close_min": 45}
CASES = [
    (OFFERS, "The VW T-Cross comes to {} in total.", "€217.40", "€228.45"),
    (
        CONTRACT,
        "C-142 ends on February 28, 2027, so tell them by {}.",
        "December 30, 2026",
        "January 9, 2027",
    ),
    ({"courses": COURSES}, "The weighted average is {}.", "3.27", "3.41"),
    (CENTS, "It settled at {}.", "$4.41¼", "$4.47¼"),
    (FUND, "It took in {}.", "$3.45 million", "$3.95 million"),
    (
        MUSEUM,
        "The Harbour Museum closes at 6:00 pm, with last entry at {}.",
        "5:15 pm",
        "5:40 pm",
    ),
]


ROOM = {
    "nights": 3,
    "rate": 245.0,
    "currency": "GBP",
    "distance_km": 17.5,
    "parking": 18.0,
}


def rules(answer, result):
    return [rule for _, label, rule in statements(answer, result) if label in FLAGS]


@pytest.mark.parametrize(("result", "answer", "right", "wrong"), CASES)
def test_what_follows_is_no_flag(result, answer, right, wrong):
    assert rules(answer.format(right), result) == []
    assert rules(answer.format(wrong), result)


def test_kilometres_are_multiplied_but_never_added_to_pounds():
    answer = "3 nights at £245.00 come to {} in total; it is 17.5 km from the centre."
    assert rules(answer.format("£752.50"), {**ROOM, "parking": None})
    assert rules(answer.format("£735.00"), ROOM) == []
    parked = "3 nights at £245.00 with parking come to {} in total."
    assert rules(parked.format("£753.00"), ROOM) == []
    ride = {"base_fare_eur": 3.9, "per_km_eur": 2.3, "distance_km": 18}
    assert rules("The ride of 18 km costs €45.30 in total.", ride) == []


def test_a_slip_of_the_named_leaf_is_misread():
    result = {"invoices": [{"id": "INV-7", "total": 1845.5}, {"id": "INV-8", "total": 912.25}]}
    assert rules("- Invoice: INV-7\n- Total: $1,855.50", result) == ["misread"]
