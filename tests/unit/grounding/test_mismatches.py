"""The right number in another unit or currency, and counts of more than there is."""

import pytest
from tests.unit.grounding.asking import statements

from callmark.records.statements import FLAGS

BOOKINGS = [
    {"room": "North", "price": "€400.00", "nights": 2},
    {"room": "South", "price": "€800.00", "nights": 4},
]
MIXED = [{"room": "North", "price": "€400.00"}, {"room": "South", "price": "$800.00"}]
COSTS = {"total_cost_eur": 1200, "base": 900}
SHELF = {"name": "Alder", "width_cm": 24.8}
ORDERS = {"customer": "Ann", "orders": [{"number": at} for at in (881, 882, 883)]}
BOOTS = [
    {"sku": "A1", "size": "8", "material": "synthetic"},
    {"sku": "A2", "size": "10", "material": "leather"},
    {"sku": "A3", "size": "10", "material": "synthetic"},
]
PULLS = [{"number": 318, "merged": True}, {"number": 322, "merged": False}]


@pytest.mark.parametrize(
    ("answer", "results", "flagged"),
    [
        ("The North room is €400.", BOOKINGS, []),
        ("The North room is $400.", BOOKINGS, ["400"]),
        ("Both come to €1,200 in all.", BOOKINGS, []),
        ("Both come to $1,200 in all.", BOOKINGS, ["1,200"]),
        ("The North room is €400.", MIXED, []),
        ("It costs £1,200.", COSTS, ["1,200"]),
        ("It costs 1,200 EUR.", COSTS, []),
        ("The Alder is just under 25 cm wide.", SHELF, []),
        ("The Alder is just under 25 mm wide.", SHELF, ["25"]),
        ("Ann has 3 orders.", ORDERS, []),
        ("Ann has 30 orders.", ORDERS, ["30"]),
        ("I found the size 8 synthetic boots (A1).", BOOTS, []),
        ("In size 10 these two are left:\n- A2\n- A3", BOOTS, []),
    ],
)
def test_what_is_measured_in_something_else(answer, results, flagged):
    assert [text for text, label, _ in statements(answer, results) if label in FLAGS] == flagged


def test_a_currency_that_the_user_named_is_not_foreign():
    answer = "Both come to $1,200 in all."
    assert ("1,200", "unit_mismatch", "unit") in statements(answer, BOOKINGS)
    found = statements(answer, BOOKINGS, prompt="What is it in $?")
    assert ("1,200", "unit_mismatch", "unit") not in found


def test_another_number_is_not_meant():
    found = statements("#322 could not be merged, #318 was merged.", PULLS)
    assert not [text for text, label, _ in found if label in FLAGS]
