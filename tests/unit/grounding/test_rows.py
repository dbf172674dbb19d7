"""Tables and lists that show records of one list: a cell that shows what another one has is wrong."""

import pytest
from tests.lines import lines_run
from tests.unit.grounding.asking import statements

from callmark.records.statements import FLAGS

SHELVES = {
    "shelves": [
        {
            "place": "Alder Quay",
            "stage": "IN_TRANSIT",
            "cents": 120450,
            "due": "2026-05-04",
            "seal": "S1",
        },
        {"place": "Birch Lane", "stage": "held", "cents": 96010, "due": "2026-06-19", "seal": None},
        {
            "place": "Cedar Hill",
            "stage": "IN_TRANSIT",
            "cents": 45215,
            "due": "2026-07-23",
            "seal": "S3",
        },
        {"place": "Damson Row", "stage": "held", "cents": 78000, "due": "2026-08-11", "seal": None},
        {
            "place": "Elder Gate",
            "stage": "IN_TRANSIT",
            "cents": 31999,
            "due": "2026-09-30",
            "seal": "S5",
        },
    ]
}
TABLE = """
| Shelf | Stage | Price | Due | Seal |
|---|---|---|---|---|
| Alder Quay | In transit | $1,204.50 | 4 May | S1 |
| Birch Lane | Held | $960.10 | 19 June | not sealed |
| Cedar Hill | In transit | $452.15 | 23 July | S3 |
| Damson Row | Held | $780.00 | 11 August | not sealed |
| Elder Gate | In transit | $319.99 | 30 September | S5 |
"""
TURNED = """
| | Alder Quay | Birch Lane | Cedar Hill |
|---|---|---|---|
| Stage | In transit | Held | In transit |
| Price | $1,204.50 | $960.10 | $452.15 |
| Due | 4 May | 19 June | 23 July |
"""
ITEMS = """They are:

- **Alder Quay** – in transit, $1,204.50 (due 4 May)
- **Birch Lane** – held, $960.10 (due 19 June)
- **Cedar Hill** – in transit, $452.15 (due 23 July)
- **Damson Row** – held, $780.00 (due 11 August)
"""
UNDER = """They are:

1. **Alder Quay**
   - Stage: in transit
   - Price: $1,204.50
   - Due: 4 May
2. **Birch Lane**
   - Stage: held
   - Price: $960.10
   - Due: 19 June
3. **Cedar Hill**
   - Stage: in transit
   - Price: $452.15
   - Due: 23 July
"""
FORMS = {"a table": TABLE, "columns": TURNED, "items": ITEMS, "items of lines": UNDER}
FLATS = [
    {"name": "Ash House", "pets_ok": True},
    {"name": "Elm Court", "pets_ok": False},
    {"name": "Oak Lodge", "pets_ok": True},
    {"name": "Fir Place", "pets_ok": False},
    {"name": "Yew Manor", "pets_ok": True},
]
PETS = """
| Flat | Tiere pets |
|---|---|
| Ash House | gern |
| Elm Court | ungern |
| Oak Lodge | gern |
| Fir Place | ungern |
| Yew Manor | gern |
"""


def flagged(answer, *results, prompt="Please look it up."):
    return [
        (text, rule)
        for text, label, rule in statements(answer, *results, prompt=prompt)
        if label in FLAGS
    ]


@pytest.mark.parametrize("form", FORMS)
def test_right_rows_have_no_flag(form):
    assert flagged(FORMS[form], SHELVES) == []


@pytest.mark.parametrize(
    ("form", "right", "wrong", "rule"),
    [
        ("a table", "| Birch Lane | Held | $960.10", "| Birch Lane | Held | $452.15", "binding"),
        ("a table", "$780.00 | 11 August", "$780.00 | 19 June", "binding"),
        ("a table", "Cedar Hill | In transit", "Cedar Hill | Held", "state"),
        ("a table", "30 September | S5", "30 September | S3", "state"),
        ("a table", "23 July | S3", "23 July | not sealed", "state"),
        ("columns", "$960.10 | $452.15", "$1,204.50 | $452.15", "binding"),
        ("columns", "19 June | 23 July", "4 May | 23 July", "binding"),
        ("items", "held, $960.10", "held, $780.00", "binding"),
        ("items", "due 19 June", "due 23 July", "binding"),
        ("items", "**Damson Row** – held", "**Damson Row** – in transit", "state"),
        ("items of lines", "$960.10", "$1,204.50", "binding"),
        ("items of lines", "Due: 19 June", "Due: 23 July", "binding"),
    ],
)
def test_a_cell_of_another_row_is_found(form, right, wrong, rule):
    assert FORMS[form].count(right) == 1
    found = flagged(FORMS[form].replace(right, wrong), SHELVES)
    assert [one[1] for one in found] == [rule]
    assert found[0][0] in wrong


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("", ""),
        ("| Elder Gate |", "| **Total** |"),  # no row of a record
        ("$780.00 | 11 August", "about $1,200 | 11 August"),  # guessed
    ],
)
def test_what_is_no_plain_mistake_of_one_cell_is_left_alone(right, wrong):
    found = flagged(TABLE.replace(right, wrong), SHELVES)
    assert [one for one in found if one[1] in ("binding", "state")] == []


def test_what_the_user_said_is_left_alone():
    answer = TABLE.replace("| $960.10", "| $452.15")
    assert flagged(answer, SHELVES, prompt="I paid $452.15 for one of them.") == []


def test_what_another_result_says_of_the_record_is_left_alone():
    named = [{**one, "title": one["place"]} for one in SHELVES["shelves"]]
    later = {"title": "Birch Lane", "cents": 45215}
    assert flagged(TABLE.replace("| $960.10", "| $452.15"), named, later) == []


def test_words_of_its_own_for_yes_and_no_are_learnt():
    assert flagged(PETS, FLATS) == []


def make(size):
    rows = [
        {"code": f"SH-{1000 + at}", "stage": "held", "euros": 3 * at + 500, "kilos": 7 * at + 9000}
        for at in range(size)
    ]
    lines = [
        f"| {one['code']} | {one['stage']} | €{one['euros']} | {one['kilos']} |" for one in rows
    ]
    lines[3] = lines[3].replace("€509", "€512")
    return "\n".join(["| Shelf | Stage | Price | Kilos |", "|---|---|---|---|", *lines]), rows


def test_four_times_the_rows_is_four_times_the_work():
    small, large = make(40), make(160)
    ratio = lines_run(lambda: flagged(*large)) / lines_run(lambda: flagged(*small))
    assert ratio <= 4.5
