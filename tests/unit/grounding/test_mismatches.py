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


LAPTOPS = {
    "6017": {"item_id": "6017636844", "options": {"ram": "32GB", "storage": "1TB SSD"}},
    "9844": {"item_id": "9844888101", "options": {"ram": "8GB", "storage": "512GB SSD"}},
}
EARBUDS = {
    "1646": {"item_id": "1646531091", "options": {"battery life": "6 hours"}},
    "8555": {"item_id": "8555936349", "options": {"battery life": "8 hours"}},
}
TRIP = {"reservation_id": "4OG6T3", "total_baggages": 1, "nonfree_baggages": 0}


@pytest.mark.parametrize(
    ("answer", "results", "flagged"),
    [
        ("Item 6017636844 has 32 GB RAM and a 1 TB SSD.", LAPTOPS, []),
        ("Item 6017636844 has 32 GB RAM and a 3 TB SSD.", LAPTOPS, ["3"]),
        ("Item 6017636844 (32GB RAM, 3TB SSD)", LAPTOPS, ["3"]),
        ("Item 1646531091 has a 6 hr battery.", EARBUDS, []),
        ("Item 1646531091 has a 5 hr battery.", EARBUDS, ["5"]),
        ("Item 1646531091 will arrive in 5 hours.", EARBUDS, []),
        ("Your reservation 4OG6T3:\n- **Baggage:** 1 total, 0 non-free", TRIP, []),
        ("Your reservation 4OG6T3:\n- **Baggage:** 1 total, 4 non-free", TRIP, ["4"]),
        ("It is sold at 6920 Market Street.", {"address": "6920 Market Street", "id": "x1"}, []),
    ],
)
def test_small_numbers_with_a_unit_are_those_of_their_record(answer, results, flagged):
    for prompt in ("Please look it up.", "I want 3, 4 or 5 of them."):
        found = statements(answer, results, prompt=prompt)
        assert [text for text, label, _ in found if label in FLAGS] == flagged


def test_a_label_that_names_its_field_is_no_difference():
    seats = {"flight": "HAT175", "available_seats": {"economy": 2, "business": 10}}
    told = "- **Flight:** HAT175\n- **Available seats in economy:** {}"
    assert not [one for one in statements(told.format(2), seats) if one[1] in FLAGS]
    assert ("8", "unsupported", "value") in statements(told.format(8), seats)


def test_what_nothing_of_that_name_has():
    told = "Your trip:\n- **Baggage:** 1 total, 4 non-free"
    assert ("4", "unsupported", "value") in statements(told, TRIP)
    assert ("4", "user_said", "said") in statements(told, TRIP, prompt="I have 4 non-free ones.")
    # Who has 4 bags did not say that 4 of them are to be paid for.
    assert ("4", "unsupported", "value") in statements(told, TRIP, prompt="I have 4 bags.")


def test_a_currency_that_the_user_named_is_not_foreign():
    answer = "Both come to $1,200 in all."
    assert ("1,200", "unit_mismatch", "unit") in statements(answer, BOOKINGS)
    found = statements(answer, BOOKINGS, prompt="What is it in $?")
    assert ("1,200", "unit_mismatch", "unit") not in found


def test_another_number_is_not_meant():
    found = statements("#322 could not be merged, #318 was merged.", PULLS)
    assert not [text for text, label, _ in found if label in FLAGS]


FLIGHTS = [
    {
        "flight_number": "HAT134",
        "available_seats": {"basic": 16, "economy": 10},
        "prices": {"economy": 124, "business": 210},
    },
    {
        "flight_number": "HAT045",
        "available_seats": {"basic": 5, "economy": 3},
        "prices": {"economy": 106, "business": 370},
    },
]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("- **Flight HAT134**\n   - Available seats: 10", ("10", "supported", "bound")),
        ("- **Flight HAT134**\n   - Available seats: 5", ("5", "misattributed", "binding")),
        ("- **Flight HAT134**\n   - Available seats: 8", ("8", "misattributed", "binding")),
        ("- **Flight HAT134**\n   - Price: $124", ("124", "supported", "bound")),
        ("- **Flight HAT134**\n   - Price: $127", ("127", "misattributed", "binding")),
        ("- **Flights HAT134 and HAT045**\n   - Price: $580", ("580", "derived", "sum")),
    ],
)
def test_a_label_may_name_what_the_numbers_lie_in(answer, found):
    assert found in statements(answer, [FLIGHTS, FLIGHTS], prompt="We are 5 or 8.")
