"""Values that are told of what an answer describes by what it is, and not by a name."""

import pytest
from tests.unit.grounding.asking import statements

from callmark.records.statements import FLAGS

ROOMS = [
    {"room": "R101", "bed": "king", "view": "garden", "floor": "ground floor", "rate": 118.5},
    {"room": "R204", "bed": "king", "view": "harbour", "floor": "second floor", "rate": 164.25},
    {"room": "R207", "bed": "twin", "view": "harbour", "floor": "second floor", "rate": 149.75},
    {"room": "R309", "bed": "twin", "view": "garden", "floor": "third floor", "rate": 131.4},
]
PLACES = [
    {"guest": "Ana", "home": {"street": "12 Mill Lane", "town": "Porto", "zip": "40150"}},
    {"guest": "Bo", "home": {"street": "7 Dock Street", "town": "Malmo", "zip": "21119"}},
]
LAPTOPS = {
    "variants": {
        "8471": {"options": {"cpu": "i5", "ram": "16GB", "color": "silver"}, "price": 1291.87},
        "8472": {"options": {"cpu": "i7", "ram": "16GB", "color": "black"}, "price": 1459.74},
        "8473": {"options": {"cpu": "i9", "ram": "32GB", "color": "silver"}, "price": 1701.89},
    }
}


def flagged(answer, results):
    return [text for text, label, _ in statements(answer, results) if label in FLAGS]


@pytest.mark.parametrize(
    ("answer", "results", "wrong"),
    [
        ("- King bed, harbour view: $164.25\n- Twin bed, garden view: $131.40", ROOMS, []),
        ("- King bed, harbour view: $118.50\n- Twin bed, garden view: $131.40", ROOMS, ["118.50"]),
        ("- Second floor, harbour, twin – 149.75", ROOMS, []),
        ("- Second floor, harbour, twin – 164.25", ROOMS, ["164.25"]),
        ("Send it to:\n- 12 Mill Lane, Porto, 40150", PLACES, []),
        ("Send it to:\n- 12 Mill Lane, Porto, 21119", PLACES, ["21119"]),
        ("The order now has the laptop: i7, 16GB, black (item 8472).", LAPTOPS, []),
        ("The order now has the laptop: i9, 16GB, black (item 8472).", LAPTOPS, ["i9"]),
        ("- New item: 8473 (i9, 32GB, silver), $1,701.89", LAPTOPS, []),
        ("- New item: 8473 (i9, 32GB, silver), $1,459.74", LAPTOPS, ["1,459.74"]),
    ],
)
def test_what_is_described_has_its_own_values(answer, results, wrong):
    assert flagged(answer, results) == wrong


@pytest.mark.parametrize(
    ("answer", "results"),
    [
        # Two of a kind are spoken of, or one is set against another.
        ("- King or twin bed, harbour view: from $118.50", ROOMS),
        ("- King bed, harbour view; the garden costs $118.50", ROOMS),
        ("- Twin bed, harbour view, more than the $131.40 before", ROOMS),
        # Too little is said to know which.
        ("The silver one is $1,459.74.", LAPTOPS),
        # Whatever has the price has all the rest as well, in another list.
        (
            "- Twin bed, harbour view: $99.95",
            {"rooms": ROOMS, "offers": [{"bed": "twin", "view": "harbour", "rate": 99.95}, {}]},
        ),
    ],
)
def test_where_another_may_be_meant_nothing_is_said(answer, results):
    assert flagged(answer, results) == []


def test_a_list_that_was_served_twice_is_one_list():
    again = {"first": ROOMS, "second": ROOMS}
    assert flagged("- King bed, harbour view: $164.25", again) == []
    assert flagged("- King bed, harbour view: $118.50", again) == ["118.50"]
