"""What an answer states, read as people read it."""

import pytest
from tests.unit.grounding.asking import statements

from callmark.grounding.dates import Moment
from callmark.grounding.numbers import SCALE, find_number_words
from callmark.grounding.reading import read_leaf, read_stated
from callmark.grounding.values import find_values
from callmark.records.statements import FLAGS, GOOD


def stated(text, locale=None):
    return read_stated(text, find_values(text, locale), locale)


def readings(text, locale=None):
    return [value.readings[0] / SCALE for value in stated(text, locale) if value.readings]


def moments(text):
    return [value.moments[0] for value in find_values(text) if value.kind == "moment"]


def day(year, month, day):
    return Moment(year, month, day)


def clock(hour, minute=None):
    return Moment(hour=hour, minute=minute)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 2024\u201105\u201126 it", [day(2024, 5, 26)]),
        ("open 07:00-09:30 daily", [clock(7, 0), clock(9, 30)]),
        ("open 07:00–09:30 daily", [clock(7, 0), clock(9, 30)]),
        ("9:0-14:0", [clock(9, 0), clock(14, 0)]),
        ("5–7pm", [clock(17), clock(19)]),
        ("11-1 pm", [clock(11), clock(13)]),
        ("10:30 to 11:45 pm", [clock(22, 30), clock(23, 45)]),
        ("May 19-20", [day(None, 5, 19), day(None, 5, 20)]),
        ("May 3-4, 2024", [day(2024, 5, 3), day(2024, 5, 4)]),
        ("19-20 May 2024", [day(2024, 5, 19), day(2024, 5, 20)]),
        ("3.–4. Mai 2024", [day(2024, 5, 3), day(2024, 5, 4)]),
        ("2024-05-06/05-13", [day(2024, 5, 6), day(2024, 5, 13)]),
        ("2024-05-06–2024-05-13", [day(2024, 5, 6), day(2024, 5, 13)]),
        ("2024-05-06 10:00-12:00", [Moment(2024, 5, 6, 10, 0), clock(12, 0)]),
        ("2024-05-06T10:00-05:00", [Moment(2024, 5, 6, 10, 0)]),
        ("May 26: $364", [day(None, 5, 26)]),
        ("**May 21:** HAT001", [day(None, 5, 21)]),
        ("x,120,2024-05-01,09:30,4", [day(2024, 5, 1), clock(9, 30)]),
        ("06:00 (+1 day)", [clock(6, 0)]),
        ("May 26-12 seats", [day(None, 5, 26)]),
    ],
)
def test_f84_dates_and_times_are_read_as_people_read_them(text, expected):
    assert moments(text) == expected


def test_f84_the_cells_of_csv_stay_apart():
    assert [value.text for value in find_values("HAT1,120,2024-05-01,3.5")] == [
        "HAT1",
        "120",
        "2024-05-01",
        "3.5",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$400.4B", [400.4e9]),
        ("45k users", [45_000]),
        ("€1.2M", [1.2e6]),
        ("–20 °C", [-20]),
        ("1h 24m", [84]),
        ("1 hour and 24 minutes", [84]),
        ("2 days 3 hours", [51]),
        ("24 minutes, 1 hour", [24, 1]),
        ("rated 4.4 out of 5", [4.4]),
        ("3 out of 5 flights", [3, 5]),
        ("COVID-19 and 24/7 and a 4-star hotel", []),
        ("Option 2 costs $57", [57]),
        ("| 1 | HAT1 | 120 |\n| 2 | HAT2 | 130 |", [120, 130]),
        ("| 3 | HAT1 | 120 |\n| 2 | HAT2 | 130 |", [3, 120, 2, 130]),
        ("three flights, two of them, one more", [3]),
        ("It was one hour", [1]),
        ("It costs 45.\n```\nprint(12)\n```", [45]),
        ("Here:\n```\n12\n```", [12]),
        ('{"HAT001": ["seats 42", "bed 43"]}', [42, 43]),
    ],
)
def test_f84_numbers_are_read_as_people_read_them(text, expected):
    assert readings(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("There are twenty-one bags and two hundred and fifty seats.", [21, 250]),
        ("Es gibt einundzwanzig Koffer und zweihundert Plätze und drei Flüge.", [21, 200, 3]),
        ("Hay treinta y dos maletas y doscientas plazas y tres vuelos.", [32, 200, 3]),
        ("Il y a quatre-vingt-dix-neuf sacs et deux cents places pour vous.", [99, 200]),
        ("This one costs more than the two-hour flight, once more.", []),
    ],
)
def test_f84_number_words_count_right_before_a_noun(text, expected):
    assert [found.number for found in find_number_words(text)] == expected


def test_f84_a_leaf_may_be_a_duration():
    assert {value.readings for value in read_leaf("1h 24m")} >= {(84 * SCALE,)}
    assert read_leaf("PT1H24M")[0].readings == (84 * SCALE,)


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ("It departs on 2024\u201105\u201126.", {"date": "2024-05-26"}),
        ("It was founded in 2024.", {"founded": "2024-03-01"}),
        ("There are three flights.", {"flights": [{"id": 7}, {"id": 8}, {"id": 9}]}),
        ("The flight takes 1h 24m.", {"duration_minutes": 84}),
        ("It costs about €173.", {"price": 172.99}),
        ("It is worth $400.4B.", {"market_cap": 400_400_000_000}),
        ("It is 12 km away.", {"distance_m": 12000}),
        ("It is 80 °F outside.", {"temp_c": 26.7}),
        ("It costs 1.200 €.", {"price": 1200, "currency": "EUR"}),
        ("It costs GH₵1,200.", {"price": 1200, "currency": "GHS"}),
        ("It costs about ₱173.", {"price": 172.99, "currency": "PHP"}),
        ("It needs PHP 8.2.", {"language": "php", "version": 8.2, "currency": "EUR"}),
        ("It is rated 4.4 out of 5.", {"rating": 4.4}),
    ],
)
def test_f84_what_is_so_is_labelled_so(answer, result):
    labels = [label for _, label, _ in statements(answer, result)]
    assert any(label in GOOD for label in labels), labels
    assert not any(label in FLAGS for label in labels), labels


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ("It is 12 miles away.", {"distance_km": 12}),
        ("It costs $120.", {"price": 120, "currency": "EUR"}),
        ("It costs 120 euros.", {"price_usd": 120}),
        ("It costs GH₵120.", {"price": 120, "currency": "NGN"}),
        ("It costs 120 ₱.", {"price": 120, "currency": "VND"}),
        ("It is 80 °F outside.", {"temp_c": 80}),
        ("It takes 84 hours.", {"duration": "84 minutes"}),
        ("4.5 million people live there.", {"population": 4.5}),
        ("The file has 25 GB.", {"size_mb": 25}),
        ("The drive is 3 miles.", {"drive_km": 3}),
    ],
)
def test_the_right_number_in_the_wrong_unit_is_flagged(answer, result):
    found = statements(answer, result)
    assert ("unit_mismatch", "unit") in {(label, rule) for _, label, rule in found}, found


def test_a_scale_that_the_key_names_is_right():
    found = statements("4.5 million people live there.", {"population_millions": 4.5})
    assert [label for _, label, _ in found] == ["supported"]
