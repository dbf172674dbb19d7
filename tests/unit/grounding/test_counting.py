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


PARCELS = {
    "shipments": [
        {"shipment_id": "SH501", "parcels": [{"tracking": "P91"}, {"tracking": "P92"}]},
        {
            "shipment_id": "SH502",
            "parcels": [{"tracking": "P93"}, {"tracking": "P94"}, {"tracking": "P95"}],
        },
    ]
}
EVENTS = {
    "events": [
        {"event_id": "EV-11", "title": "Budget review", "attendees": ["Ana", "Bo", "Cy"]},
        {"event_id": "EV-12", "title": "Design sync", "attendees": ["Ana", "Dee"]},
        {"event_id": "EV-13", "title": "Town hall", "attendees": ["Ana", "Bo", "Cy", "Dee"]},
    ]
}
LOANS = {
    "loans": [{"title": "Silent Harbor"}, {"title": "Glass Orchard"}],
    "holds": [{"title": "Night Ferry"}, {"title": "Salt Road"}, {"title": "Tin Sky"}],
}
CLINIC = {
    "patient": "R. Moss",
    "medications": [{"name": "Lisinopril"}, {"name": "Metformin"}, {"name": "Atorvastatin"}],
}
MAIL = {"messages": [{"id": "M-1", "from": "Lea"}, {"id": "M-2", "from": "Tom"}]}


@pytest.mark.parametrize(
    ("answer", "results", "flagged"),
    [
        # What a named record holds, and all of it.
        ("SH502 has three parcels.", PARCELS, []),
        ("SH502 has two parcels.", PARCELS, ["two"]),
        ("SH502 (three parcels) is on its way.", PARCELS, []),
        ("SH502 (two parcels) is on its way.", PARCELS, ["two"]),
        ("The shipment with three parcels (SH502) is late.", PARCELS, []),
        ("The shipment with two parcels (SH502) is late.", PARCELS, ["two"]),
        ("SH502 has two parcels that are late.", PARCELS, []),
        ("SH502 has two parcels more than it had.", PARCELS, []),
        ("You have a shipment with three parcels.", PARCELS, []),
        ("You have a shipment with one parcel.", PARCELS, []),  # `one` is no count
        ("Town hall has four attendees.", EVENTS, []),
        ("Town hall has two attendees.", EVENTS, ["two"]),
        # All of them.
        ("All three medications are current.", CLINIC, []),
        ("All two medications are current.", CLINIC, ["two"]),
        # What follows says which of them are meant.
        ("There are two events with Bo.", EVENTS, []),
        ("There are two medications without a known interaction.", CLINIC, []),
        ("There are two events.", EVENTS, ["two"]),
        # What the answer names beside the number.
        ("Three holds: Night Ferry, Salt Road and Tin Sky.", LOANS, []),
        ("Two holds: Night Ferry, Salt Road and Tin Sky.", LOANS, ["Two"]),
        ("You have two loans (Silent Harbor and Glass Orchard).", LOANS, []),
        ("You have three loans (Silent Harbor and Glass Orchard).", LOANS, ["three"]),
        ("Your two loans are Silent Harbor and Glass Orchard.", LOANS, []),
        ("Your three loans are Silent Harbor and Glass Orchard.", LOANS, ["three"]),
        ("Two of the three holds (Night Ferry and Salt Road) can be moved.", LOANS, []),
        ("I see three holds, such as Night Ferry and Salt Road.", LOANS, []),
        ("You have two events on the same day, with event IDs EV-11 and EV-12.", EVENTS, []),
        ("You have four events on the same day, with event IDs EV-11 and EV-12.", EVENTS, ["four"]),
        ("There is 1 loan to renew: Silent Harbor.", LOANS, []),
        ("There are 2 loans to renew: Silent Harbor.", LOANS, ["2"]),
        # In another word.
        ("There are three meetings on your calendar.", EVENTS, []),
        ("There are five meetings on your calendar.", EVENTS, ["five"]),
        ("There are two meetings on your calendar.", EVENTS, []),  # events need be no meetings
        ("You have two emails.", MAIL, []),
        ("You have four emails.", MAIL, ["four"]),
        ("The other two events are short.", EVENTS, []),
        ("The other three events are short.", EVENTS, ["three"]),
    ],
)
def test_counts_that_a_list_or_the_answer_itself_contradicts(answer, results, flagged):
    assert [text for text, label, _ in statements(answer, results) if label in FLAGS] == flagged


def test_a_list_that_is_served_again_is_one_list():
    items = [{"sku": "L1", "name": "Lamp"}, {"sku": "D1", "name": "Desk"}]
    before = {"order_id": "W111", "user_id": "ann_9", "items": items}
    after = {"order_id": "W111", "refund_id": "RF77", "user_id": "ann_9", "items": items}
    found = statements("Your order has four items.", before, after)
    assert [text for text, label, _ in found if label in FLAGS] == ["four"]
    found = statements("Your order has two items.", before, after)
    assert ("two", "derived", "count") in found


def test_a_text_that_measures_counts_nothing():
    sets = [
        {"order_id": "W111", "items": [{"name": "Luggage", "pieces": "2-piece"}]},
        {"order_id": "W222", "items": [{"name": "Rug"}, {"name": "Vase"}, {"name": "Cup"}]},
    ]
    found = statements("You asked for an order with two items.", sets)
    assert [text for text, label, _ in found if label in FLAGS] == ["two"]


ROOMS = {
    "rooms": [
        {"number": "101", "rate": 120, "smoking": True, "phase": "in_service", "cleaner": None},
        {"number": "102", "rate": 95, "smoking": False, "phase": "closed", "cleaner": "Mia"},
        {"number": "201", "rate": 180, "smoking": True, "phase": "in_service", "cleaner": None},
        {"number": "202", "rate": 125, "smoking": False, "phase": "in_service", "cleaner": "Raj"},
    ]
}


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("Three of the four rooms cost more than 110.", []),
        ("Two of the four rooms cost more than 110.", ["Two"]),
        ("Two rooms are under 125.", []),
        ("There are two rooms over 120 with a window.", []),
        ("Three rooms cost more than 110 euros and have a view.", []),
        ("Another two rooms cost more than 110.", []),
        ("Two of the four rooms have no cleaner.", []),
        ("Two of the four rooms have a cleaner.", []),
        ("Three rooms are in service.", []),
        ("Four rooms are in service.", ["Four"]),
        ("You have two smoking rooms.", []),
        ("You have three smoking rooms.", ["three"]),
        ("There are three rooms in service.", []),
    ],
)
def test_counts_of_what_is_so(answer, flagged):
    assert [text for text, label, _ in statements(answer, ROOMS) if label in FLAGS] == flagged


ACCOUNT = {
    "member": "m1",
    "reading_lists": [{"title": "Winter"}, {"title": "Spring"}],
    "library_cards": {"card_71": {"branch": "North"}, "card_72": {"branch": "South"}},
    "loans": [{"loan_id": "#L1", "book": "Dune"}, {"loan_id": "#L2", "book": "Emma"}],
}


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("You have 2 reading lists.", []),
        ("You have 3 reading lists.", ["3"]),  # the whole key is said, in two words
        ("There are 2 library cards on your account.", []),
        ("There are 4 library cards on your account.", ["4"]),  # an object of objects is a list
        ("All 2 of your loans are due.", []),
        ("All 4 of your loans are due.", ["4"]),
        ("I see 2 loans with a late fee.", []),  # and no `loan_id: "#L1"`
    ],
)
def test_lists_are_counted_by_all_words_of_their_key(answer, wrong):
    found = statements(answer, ACCOUNT)
    assert [text for text, label, _ in found if label in FLAGS] == wrong
