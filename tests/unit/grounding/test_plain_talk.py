"""Right answers as agents write them, in forms that were once flagged, and wrong ones beside them."""

import pytest
from tests.unit.grounding.asking import statements

from callmark.records.statements import FLAGS

CAMERA = {
    "items": [
        {"item_id": "7195021808", "name": "Camera", "options": {"resolution": "30MP"}},
        {"item_id": "7195021809", "name": "Webcam", "options": {"resolution": "20MP"}},
    ]
}
TREES = [
    {
        "order_id": "#W93",
        "status": "cancelled",
        "items": [{"name": "Indoor Tree", "options": {"size": "6 ft"}}],
    },
    {"variants": {"311": {"options": {"size": "7 ft"}}, "312": {"options": {"size": "6 ft"}}}},
]
BOOTS = {
    "variants": {
        "361": {"item_id": "361", "available": True, "options": {"waterproof": "no"}},
        "362": {"item_id": "362", "available": False, "options": {"waterproof": "yes"}},
    }
}
HOMES = [
    {"order_id": "#W1", "items": [{"name": "Luggage Set"}], "address": {"zip": "77242"}},
    {"order_id": "#W2", "items": [{"name": "Lamp"}], "address": {"zip": "77034"}},
]
MACHINES = [
    {"items": [{"name": "Espresso Machine", "item_id": "744", "options": {"pressure": "15 bar"}}]},
    {"variants": {"381": {"item_id": "381", "options": {"pressure": "9 bar"}}}},
]
LINE = {"line_id": "L1", "roaming_enabled": True, "data_limit_gb": 15}
OFFERS = [
    [{"flight": "HAT057", "price": 141}, {"flight": "HAT039", "price": 103}],
    [{"flight": "HAT136", "price": 152}, {"flight": "HAT039", "price": 103}],
    [{"flight": "HAT218", "price": 158}, {"flight": "HAT039", "price": 103}],
]


def flagged(answer, *results, prompt="Please look it up."):
    return [
        text for text, label, _ in statements(answer, *results, prompt=prompt) if label in FLAGS
    ]


@pytest.mark.parametrize(
    ("results", "right", "wrong"),
    [
        ([CAMERA], "Item 7195021808 has a resolution of 30 MP.", "Item 7195021808 has a resolution of 20 MP."),
        ([BOOTS], "- waterproof no is available (item_id 361)", "- waterproof yes is available (item_id 361)"),
        ([{"opens": "9 AM"}], "It opens at 9:00 AM.", "It opens at 9:30 AM."),
        ([{"time": "14:00"}], "It starts at 2 o'clock in the afternoon.", "It starts at 3 o'clock in the afternoon."),
        ([{"departs": "2026-03-04T21:05:00"}], "It leaves at 9:05 in the evening.", "It leaves at 8:05 in the evening."),
        ([{"share": 0.4237}], "It has a 42.4% share.", "It has a 43.4% share."),
        ([{"temp": 21.4}], "It's 21 degrees.", "It's 24 degrees."),
        ([{"phone": "+15550134"}], "Call +1 555-0134.", "Call +1 555-0143."),
        ([{"iban": "DE89370400440532013000"}], "IBAN DE89 3704 0044 0532 0130 00.", "IBAN DE89 3704 0044 0532 0130 77."),
        ([{"balance": -120.5}], "Your balance is ($120.50).", "Your balance is ($125.50)."),
        ([OFFERS], "1. **HAT136 & HAT039**\n   - Total Price: $255", "1. **HAT136 & HAT039**\n   - Total Price: $275"),
    ],
)  # fmt: skip
def test_what_is_right_has_no_flag_and_what_is_wrong_has_one(results, right, wrong):
    assert flagged(right, *results) == []
    assert flagged(wrong, *results) != []


@pytest.mark.parametrize(
    ("results", "answer"),
    [
        (TREES, "Order #W93 is cancelled. You will be refunded within 5 to 7 business days."),
        (HOMES, "- New home (the luggage set order): Houston, TX 77242\n- Old address: Houston, TX 77034"),
        (MACHINES, "- Espresso Machine (item 744, now 15 bar)\n  - 8 bar is not available.\n  - 9 bar is (item 381)."),
        ([LINE], "Since your signal is excellent, the roaming setting and the limit do not seem to be issues."),
        ([{"booking": "ABC123", "insurance": "no"}], "I recommend securing travel insurance separately from your booking."),
    ],
)  # fmt: skip
def test_what_is_said_of_something_else_has_no_flag(results, answer):
    assert flagged(answer, *results) == []


def test_a_time_that_the_user_gave_without_minutes_is_his():
    told = statements("After 11:00 AM there is one.", {"at": "19:00"}, prompt="Not before 11am.")
    assert [label for text, label, _ in told if text == "11:00 AM"] == ["user_said"]


SHOPS = [
    {"customer": "Orchid", "orders": 31, "revenue": 9300},
    {"customer": "Pelican", "orders": 4, "revenue": 9980},
    {"customer": "Bruno", "orders": 9, "revenue": 4500},
]
ROOMS = [{"name": "Oak Room", "hourlyRate": 2}, {"name": "Linden Room", "hourlyRate": 12}]
FLIGHTS = {
    "old": {"flight": "AB12", "dep": "2026-05-01T09:10"},
    "new": {"flight": "AB14", "dep": "2026-05-01T10:00"},
}
KITCHENS = [
    {"kitchen": "North", "orders": 800, "cancelled": 12},
    {"kitchen": "South", "orders": 640, "cancelled": 32},
]
BILLS = [
    {"month": "May", "kwh": 612, "rate_cents": 15.5},
    {"month": "June", "kwh": 588, "rate_cents": 16.0},
]
TRAINS = [
    {"train": "ICE 71", "fares": {"first": 99, "second": 58}},
    {"train": "IC 2033", "fares": {"first": 61, "second": 29}},
]


@pytest.mark.parametrize(
    ("answer", "results", "flagged"),
    [
        ("Orchid orders most often, but has the lowest order value.", SHOPS, []),
        ("Orchid has the lowest orders.", SHOPS, ["lowest"]),
        ("In total it is £72 for you plus £36 per child = £144.", {"adult": 72, "child": 36}, []),
        ("In total it is £72 plus £36 = £144.", {"adult": 72, "child": 36}, ["144"]),
        (
            "Order 7 was cancelled.",
            {"order": "7", "cancelled": True, "payment": {"status": "COMPLETED"}},
            [],
        ),
        ("Order 7 was cancelled.", {"order": "7", "status": "COMPLETED"}, ["cancelled"]),
        ("The Linden Room costs €12 an hour, so €24 for two hours.", ROOMS, []),
        ("The Linden Room costs €2 an hour.", ROOMS, ["2"]),
        ("The new flight leaves 50 minutes later.", FLIGHTS, []),
        ("The new flight leaves 55 minutes later.", FLIGHTS, ["55"]),
        ("North: 800 orders, 1.5% cancelled. South: 640 orders, 5.0% cancelled.", KITCHENS, []),
        ("North: 800 orders, 32 cancelled.", KITCHENS, ["32"]),
        ("| June | 588 kWh | 16.0¢/kWh |", BILLS, []),
        ("ICE 71 costs €58 in second class, IC 2033 €29.", TRAINS, []),
        ("The licence costs €240 a year.", {"plan": {"base_eur_year": 240}}, []),
        ("The licence costs $240 a year.", {"plan": {"base_eur_year": 240}}, ["240"]),
    ],
)
def test_rates_shares_and_spans_of_time_are_not_taken_for_what_stands_beside_them(
    answer, results, flagged
):
    found = statements(answer, results)
    assert [text for text, label, _ in found if label in FLAGS] == flagged
