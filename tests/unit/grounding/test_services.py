"""Values as services send them and as people write them: cents, seconds, days as keys, clocks."""

import pytest
from tests.unit.grounding.asking import call, claims, item

CHARGES = {
    "object": "list",
    "has_more": False,
    "data": [
        {"id": "ch_71", "amount": 4900, "currency": "usd", "created": 1794819600},
        {"id": "ch_19", "amount": 1250, "currency": "usd", "created": 1792400000},
    ],
}
PRICES = {
    "currency": "USD",
    "items": [{"name": "Lamp", "price": 49.5}, {"name": "Desk", "price": 4900}],
}
ROUTE = {
    "routes": [
        {"summary": "A10", "legs": [{"duration": {"value": 10380}, "distance": {"value": 268900}}]}
    ]
}
RATES = {"rates": {"2026-11-09": 198.42, "2026-11-11": 199.87}}
SLOTS = {"name": "El Faro", "slots": ["18:15", "19:30", "21:45"]}
FORECAST = {
    "location": {"name": "Porto"},
    "daily": [{"date": "2026-11-20", "tmax": 16.2}, {"date": "2026-11-21", "tmax": 17.9}],
}


def labels(answer, result):
    scores = claims(answer, call(result), of=item())
    return {
        answer.encode()[one["start"] : one["end"]].decode(): one["label"]
        for one in scores["statements"]
    }


@pytest.mark.parametrize(
    ("answer", "result", "value", "label"),
    [
        ("The charge was $49.00.", CHARGES, "49.00", "converted"),
        ("The charge was $48.00.", CHARGES, "48.00", "unsupported"),
        ("The desk costs $49.00.", PRICES, "49.00", "unsupported"),  # prices with decimals: dollars
        ("It costs $4,900.", {"price_cents": 4900}, "4,900", "unit_mismatch"),
        ("It costs $49.", {"price_cents": 4900}, "49", "converted"),
        (
            "So far 2.5 of the estimated 4 hours were spent.",
            {"spentSeconds": 9000},
            "2.5",
            "converted",
        ),
        ("It takes 2 h 53 min.", ROUTE, "2 h 53 min", "converted"),
        ("It takes 2 h 35 min.", ROUTE, "2 h 35 min", "unsupported"),
        ("On 11 November the rate was highest.", RATES, "11 November", "supported"),
        ("There are tables at 6:15, 7:30 and 9:45 pm.", SLOTS, "7:30", "supported"),
        ("There are tables at 6:15, 7:40 and 9:45 pm.", SLOTS, "7:40", "unsupported"),
        ("Porto:\n- Fri 20 Nov: 9–16 °C", FORECAST, "16", "rounded"),
        ("At today's rate (1 GBP = 199.87 JPY) it is dear.", RATES, "1", "not_claimed"),
    ],
)
def test_what_services_send_is_read_as_people_write_it(answer, result, value, label):
    assert labels(answer, result)[value] == label


def test_the_amount_of_another_record_is_seen_in_cents_as_well():
    assert labels("ch_19: $49.00", CHARGES)["49.00"] == "misattributed"


def test_that_a_page_is_the_last_says_nothing_of_what_more_there_is_to_say():
    assert "contradicted" not in labels("One more thing: ch_19 is small.", CHARGES).values()


def test_a_wrapped_value_is_a_field_of_what_holds_it():
    issues = {
        "issues": [
            {"key": "SHOP-411", "status": {"name": "In Progress"}, "points": 5},
            {"key": "SHOP-415", "status": {"name": "In Review"}, "points": 8},
        ]
    }
    assert labels("SHOP-415 (In Progress) has 8 points.", issues)["In Progress"] == "contradicted"
    assert "contradicted" not in labels("SHOP-415 (In Review) has 8 points.", issues).values()
