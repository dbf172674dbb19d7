"""Values as services send them and as people write them: cents, seconds, days as keys, clocks."""

import pytest
from tests.unit.grounding.asking import call, claims, item, statements

from callmark.records.statements import FLAGS

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


BOOKED = {
    "transactions": [
        {"merchant": "Corner Bakery", "amount": -64.12, "currency": "EUR"},
        {"merchant": "Streamly", "amount": -17.99, "currency": "EUR"},
    ],
    "balance": -120.55,
}


@pytest.mark.parametrize(
    ("answer", "result", "flagged"),
    [
        # What was paid stands in an account with a minus; what is left in it is told with one.
        ("Corner Bakery: 64.12 €, Streamly: 17.99 €", BOOKED, []),
        ("You moved €300 to savings.", {"amount_eur": -300.0}, []),
        ("Your balance is €120.55.", BOOKED, ["120.55"]),
        # Thousands and millions of keys, and of answers.
        ("The largest claim is $3.42 million.", {"claim_kusd": 3420}, []),
        ("€3.2 billion are insured.", {"tiv_meur": 3155.0}, []),
        ("The largest claim is $3.52 million.", {"claim_kusd": 3420}, ["3.52 million"]),
        ("It is €54.", {"premium_ct": 5400}, []),
        ("It uses 512 MiB.", {"memory": "512Mi"}, []),
        ("It uses 512 miles.", {"memory": "512Mi"}, ["512"]),
        ("The p95 is 1.2 s.", {"latency": {"p50": 340, "p95": 1200, "unit": "ms"}}, []),
        ("At 1,350 m there are 35 cm.", {"snow_cm": {"base_1350m": 35}}, []),
        ("The error rate is 0.2%.", {"errors": 20, "requests": 10000}, []),
        ("The error rate is 0.4%.", {"errors": 20, "requests": 10000}, ["0.4%"]),
        ("EBITDA is down 15.5.", {"ebitda_delta": -15.5}, []),
        ("It scored 71 out of 100.", {"score": 71}, []),
        ("Se cargó el día 30.", {"fecha": "2026-10-30"}, []),
    ],
)
def test_results_as_they_are_kept_and_answers_as_they_are_told(answer, result, flagged):
    found = statements(answer, result)
    assert [text for text, label, _ in found if label in FLAGS] == flagged


def test_two_amounts_with_the_digits_of_leaves_are_not_called_baseless():
    found = statements("It is 3420 or 4711.", {"a": "x3,420y", "b": -4711})
    assert "baseless" not in [rule for _, _, rule in found]
