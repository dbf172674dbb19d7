"""What is taken from another record or field, misquoted, compared the wrong way or miscounted."""

import pytest
from tests.unit.grounding.asking import statements

import callmark
from callmark.records.statements import FLAGS

CLUBS = {
    "clubs": [
        {
            "name": "Harbour Readers",
            "room": "Lantern Room",
            "host": "Ines Carver",
            "price": 14,
            "members": 231,
            "status": "open",
            "starts": "2026-05-04T18:30",
            "ends": "2026-05-04T20:15",
        },
        {
            "name": "Tidal Chess",
            "room": "Auditorium",
            "host": "Jonas Pell",
            "price": 22,
            "members": 118,
            "status": "open",
            "starts": "2026-05-06T19:00",
            "ends": "2026-05-06T21:45",
        },
        {
            "name": "Slow Film Society",
            "room": "Annex Hall",
            "host": "Mara Quist",
            "price": 9,
            "members": 76,
            "status": "full",
            "starts": "2026-05-09T20:00",
            "ends": "2026-05-09T22:30",
        },
    ]
}
LEASE = {
    "clause": "The tenant may end this lease upon not less than ninety days written notice.",
    "rent": {"median": 1240, "p75": 1410},
    "weekly_pass": 34,
    "monthly_pass": 128,
}


def flags(answer, result):
    return [(text, rule) for text, label, rule in statements(answer, result) if label in FLAGS]


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ("Harbour Readers meet on May 4 in the Lantern Room.", CLUBS),
        ("- **Tidal Chess** – €22, Auditorium (Jonas Pell)", CLUBS),
        ("Two clubs are open and one is full: 2 open, 1 full.", CLUBS),
        ("Harbour Readers begin at 18:30 and end at 20:15.", CLUBS),
        ('It says: "The tenant may end this lease upon not less than ninety days".', LEASE),
        ("The monthly pass at $128 beats four weekly passes at $34.", LEASE),
        ("The rent came to $1,410, about $170 over the median of $1,240.", LEASE),
        ("The rent came to $1,240, some $170 below the $1,410 of the upper quarter.", LEASE),
    ],
)
def test_what_the_results_say_is_not_flagged(answer, result):
    assert flags(answer, result) == []


@pytest.mark.parametrize(
    ("answer", "result", "said", "rule"),
    [
        ("Harbour Readers meet on May 4 in the Auditorium.", CLUBS, "Auditorium", "state"),
        ("- **Tidal Chess** – €22 (Mara Quist)", CLUBS, "Mara Quist", "state"),
        ("- Slow Film Society: 231 members", CLUBS, "231", "record"),
        ("The Harbour Readers begin at 20:15.", CLUBS, "20:15", "field"),
        ("There are 3 open, 1 full.", CLUBS, "3", "count"),
        (
            'It says: "The tenant may end this lease upon not less than thirty days".',
            LEASE,
            '"The tenant may end this lease upon not less than thirty days"',
            "name",
        ),
        ("The monthly pass at $34 is cheap.", LEASE, "34", "field"),
        ("The median rent is $1,410.", LEASE, "1,410", "field"),
        (
            "The rent came to $1,240, some $170 above the $1,410 of the upper quarter.",
            LEASE,
            "170 above the $1,410",
            "equation",
        ),
    ],
)
def test_what_they_do_not_say_is_flagged(answer, result, said, rule):
    assert (said, rule) in flags(answer, result)


def test_a_row_of_numbers_is_no_tally():
    leads = {"leads": [{"source": one} for one in ("referral", "referral", "webinar", "webinar")]}
    table = "| Source | Leads | Won |\n|---|---|---|\n| Referral | 39 | 12 |"
    assert ("39", "count") not in flags(table, leads)


def test_the_number_of_all_is_not_the_number_that_is_so():
    shots = {
        "shots": [
            {"name": n, "status": s}
            for n, s in zip("ABCD", ("due", "due", "current", "current"), strict=True)
        ]
    }
    assert flags("Two of his four shots are due.", shots) == []
    assert ("Three", "count") in flags("Three of his four shots are due.", shots)


def _variant(number: str, color: str, price: float, *, available: bool = True) -> dict[str, object]:
    return {"item_id": number, "color": color, "available": available, "price": price}


SPEAKERS = {
    "name": "Bluetooth Speaker",
    "variants": [
        _variant("9440686670", "green", 298.91),
        _variant("2635605237", "blue", 271.89),
        _variant("7751905257", "red", 321.18),
        _variant("3254583681", "red", 250.10, available=False),
    ],
}
CHANGED = {
    "order": "W1",
    "items": [_variant("2635605237", "blue", 271.89), {"item_id": "1", "price": 5}],
}


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("The cheapest available option is item 2635605237 at $271.89.", False),
        ("The most expensive available option is item 2635605237 at $271.89.", True),
        ("- Highest-priced available variant: item 2635605237", True),
        ("- Highest-priced available variant: item 7751905257", False),
        ("The cheapest available variant is item 7751905257.", True),
        ("The cheapest green one is item 9440686670.", False),
        ("The most expensive green one is item 9440686670.", False),
    ],
)
def test_what_is_available_is_ranked(answer, wrong):
    for results in ([SPEAKERS], [SPEAKERS, SPEAKERS]):
        found = statements(answer, *results)
        assert any(rule == "rank" for _, _, rule in found) is wrong


def test_what_stands_in_several_results_deserves_it_in_one():
    told = "The most expensive is item 2635605237."
    assert not [one for one in statements(told, SPEAKERS, CHANGED) if one[2] == "rank"]


PAIRS = [
    {
        "item_id": "8555936349",
        "options": {"color": "blue", "case": "glass", "water": "IPX4"},
        "price": 226.49,
    },
    {
        "item_id": "3694871183",
        "options": {"color": "white", "case": "steel", "water": "IPX4"},
        "price": 256.67,
    },
    {
        "item_id": "6077640618",
        "options": {"color": "black", "case": "glass", "water": "none"},
        "price": 242.92,
    },
]
ORDERED = {"order_id": "#W77", "items": [{**PAIRS[0], "name": "Earbuds"}]}


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("1. Item 8555936349 – blue, glass – $226.49", []),
        ("1. Item 8555936349 – white, glass – $226.49", ["white"]),
        ("Item 8555936349 (blue, steel, not resistant) is here.", ["steel"]),
        ("Item 8555936349 (blue, glass, not resistant) is here.", []),
        ("Item 8555936349 is the blue one, others are white or black.", []),
        ("Is the white, glass one (item 8555936349) fine?", []),
        ("Exchange 3694871183 (white, steel) for 8555936349 (black, glass).", ["black"]),
    ],
)
def test_elements_of_a_description(answer, wrong):
    """Also where the thing stands in an order and in a catalogue, under other names."""
    found = statements(answer, {"variants": PAIRS}, ORDERED)
    assert [text for text, _, rule in found if rule == "state"] == wrong


def test_a_change_of_something_else_changes_nothing_here():
    def flagged(order: str) -> bool:
        calls = [
            {"name": "get_variants", "arguments": {"p": "1"}, "result": {"variants": PAIRS}},
            {
                "name": "modify_order",
                "arguments": {"order_id": order, "item_id": "3694871183"},
                "result": {"ok": True},
            },
        ]
        scores = callmark.score_item(
            {"prompt": "Please do.", "metadata": {"call_sequence": [{"name": "get_variants"}]}},
            "Item 8555936349 – white, glass – $226.49",
            calls,
            span_extractor="claims",
        )
        return any(one["rule"] == "state" for one in scores["statements"])

    assert flagged("#W5")
    assert not flagged("8555936349")
