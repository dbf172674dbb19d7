"""What is called the first, the last, the least or the most, and values that are given as such."""

import pytest
from tests.unit.grounding.asking import statements

FILES = [
    {"filename": "plan.docx", "last_modified": "2026-02-26T16:20", "size": 715},
    {"filename": "notes.docx", "last_modified": "2026-02-25T09:45", "size": 1354},
    {"filename": "old.docx", "last_modified": "2025-11-10T13:30", "size": 153},
]
ARRIVALS = [
    {"Name": "Ana Ruiz", "Clock-in": "08:55", "Clock-out": "17:42"},
    {"Name": "Bo Lind", "Clock-in": "09:12", "Clock-out": "17:35"},
    {"Name": "Cy Marsh", "Clock-in": "09:05", "Clock-out": "17:50"},
]
HOTELS = [
    {"name": "Alder Inn", "city": "Bergen", "rating": 4.7, "address": "1 Quay"},
    {"name": "Birch House", "city": "Bergen", "rating": 5.0, "address": "2 Quay"},
    {"name": "Cedar Rooms", "city": "Bergen", "rating": 4.3, "address": "3 Quay"},
]
PRICES = [
    {"date": "2026-05-04", "open": 43.41, "high": 43.98, "low": 43.28, "close": 43.5},
    {"date": "2026-05-05", "open": 42.81, "high": 43.04, "low": 42.2, "close": 42.61},
    {"date": "2026-06-02", "open": 43.3, "high": 44.0, "low": 43.2, "close": 43.89},
]
SHOPS = [
    {"shop": "Alder", "amount": "$512.47", "category": "Travel", "date": "2026-03-02"},
    {"shop": "Birch", "amount": "$278.31", "category": "Food", "date": "2026-03-09"},
    {"shop": "Cedar", "amount": "$98.52", "category": "Food", "date": "2026-04-01"},
]


@pytest.mark.parametrize(
    ("answer", "results", "is_wrong"),
    [
        ("The file plan.docx was changed most recently.", FILES, False),
        ("The file notes.docx was changed most recently.", FILES, True),
        ("The file with the largest file size is notes.docx.", FILES, False),
        ("The file with the largest file size is plan.docx.", FILES, True),
        ("Bo Lind left first.", ARRIVALS, False),
        ("Cy Marsh left first.", ARRIVALS, True),
        ("The hotel with the best rating in Bergen is Birch House.", HOTELS, False),
        ("The hotel with the best rating in Bergen is Alder Inn.", HOTELS, True),
        ("The lowest price in this period was 42.2.", PRICES, False),
        ("The lowest price in this period was 43.2.", PRICES, True),
        ("The highest price in this period was 44.0.", PRICES, False),
        ("The lowest price today is 43.2.", PRICES, False),  # of which day, no leaf need say
        ("My largest purchase was $512.47.", SHOPS, False),
        ("My largest purchase was $98.52.", SHOPS, True),
        ("The largest food purchase was $278.31.", SHOPS, False),
        ("The largest amount is not $98.52.", SHOPS, False),
    ],
)
def test_superlatives_against_the_list(answer, results, is_wrong):
    assert any(rule == "rank" for _, _, rule in statements(answer, results)) is is_wrong


def test_what_the_user_asked_for_narrows_what_is_compared():
    told = "The largest purchase was $278.31."
    for asked, is_wrong in (
        ("What did I buy?", True),
        ("What was my largest food purchase?", False),
    ):
        found = statements(told, SHOPS, prompt=asked)
        assert any(rule == "rank" for _, _, rule in found) is is_wrong


def test_of_another_month():
    told = "The lowest price was 43.2."
    later = [*PRICES, {"date": "2026-06-03", "open": 44.1, "high": 45, "low": 43.9, "close": 44.7}]
    assert not any(rule == "rank" for _, _, rule in statements(told, later, prompt="In June?"))
