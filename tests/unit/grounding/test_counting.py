"""How many there are: in digits and words, in one list or several, told, offered or presupposed."""

import pytest
from tests.unit.grounding.asking import statements

from callmark.records.statements import FLAGS

TRIP = {"id": "T77XQ", "passengers": [{"name": "Ana Ruiz"}, {"name": "Bo Lind"}]}
ORDERS = [
    {"order_id": "W111", "items": [{"name": "Lamp"}, {"name": "Desk"}]},
    {"order_id": "W222", "items": [{"name": "Chair"}, {"name": "Rug"}, {"name": "Vase"}]},
]
FILES = [
    {"id": "4", "filename": "a.txt", "size": 1354},
    {"id": "14", "filename": "b.txt", "size": 7},
]
POLICY = "A booking has at most three passengers. Each gets two bags."


@pytest.mark.parametrize(
    ("answer", "results", "flagged"),
    [
        ("Since there are two passengers, you could take four bags.", TRIP, []),
        ("Since there are three passengers, you could take six bags.", TRIP, ["three"]),
        ("It includes two passengers: Ana Ruiz and Bo Lind.", TRIP, []),
        ("It includes three passengers: Ana Ruiz and Bo Lind.", TRIP, ["three"]),
        ("Shall I rebook all three passengers?", TRIP, ["three"]),
        ("Shall I rebook both passengers?", TRIP, []),
        ("Would you like to add three passengers?", TRIP, []),
        ("If there were three passengers, it would cost more.", TRIP, []),
        ("You have five items across the two orders.", ORDERS, []),
        ("You have six items across the two orders.", ORDERS, ["six"]),
        ("I found 4 items.", ORDERS, ["4"]),  # neither one order nor both have four
        ("Four items are in stock.", ORDERS, []),  # four of the five may be
        ("Shall I return the three items in order W111?", ORDERS, ["three"]),
        ("Shall I return the three items in order W222?", ORDERS, []),
        ("You asked about an order with four items.", ORDERS, ["four"]),
        ("There are 14 files.", FILES, ["14"]),
        ("There are 1354 files in the list.", FILES, ["1354"]),
        ("There are 2 files.", FILES, []),
    ],
)
def test_counts_against_lists(answer, results, flagged):
    found = statements(answer, results, prompt=POLICY)
    assert [text for text, label, _ in found if label in FLAGS] == flagged


def test_what_the_user_counted_is_his():
    told = "Shall I rebook all three passengers?"
    found = statements(told, TRIP, prompt="Please rebook us three passengers.")
    assert not [one for one in found if one[1] in FLAGS]


def test_a_number_is_the_users_only_with_what_he_counted():
    lamps = [{"sku": "A1", "memory": "1TB SSD"}, {"sku": "A2", "memory": "2TB SSD"}]
    told = "A1 has a 3TB SSD."
    assert ("3", "unsupported", "value") in statements(told, lamps, prompt="I want 3 of them.")
    found = statements(told, lamps, prompt="Is there one with 3TB?")
    assert not [one for one in found if one[1] in FLAGS]
