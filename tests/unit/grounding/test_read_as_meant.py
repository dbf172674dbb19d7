"""What three authors' right answers hold that was once flagged, each beside a wrong twin."""

import pytest
from tests.unit.grounding.asking import statements

from callmark.records.statements import FLAGS

SHOP = {"name": "Le Midi", "stars": 3.5, "reviews": [{"text": "Fine", "stars": 4}]}
STATS = [
    {"van": f"V{at}", "km": 900 + 37 * at, "kwh": 210 + 11 * at, "cost": 80 + 7 * at}
    for at in range(9)
]
PRICES = [{"van": f"V{at}", "cost": 80 + 7 * at} for at in range(9)]
PAYMENTS = [
    {"merchant": "Trattoria Vela", "amount": 42.0},
    {"merchant": "Trattoria Vela", "amount": 42.0},
    {"merchant": "Kaffee Kern", "amount": 7.6},
    {"merchant": "Noodle Bar Ito", "amount": 18.4},
]
ZONES = [{"zone": "E2", "moisture": 18.1}, {"zone": "E3", "moisture": 20.6}]
CLASSES = [
    {"class": "Yoga", "capacity": 15, "booked": 9},
    {"class": "Spinning", "capacity": 20, "booked": 6},
]
HOMES = {
    "pageSize": 5,
    "listings": [{"title": "Canal view", "areaSqFt": 640}, {"title": "City loft", "areaSqFt": 850}],
}
FINDINGS = [{"id": f"CVE-{at}", "severity": "high"} for at in range(1, 5)]
TRAMS = [{"line": str(at), "cancelled": at == 4} for at in range(4, 8)]


@pytest.mark.parametrize(
    ("answer", "results", "flagged"),
    [
        ("Le Midi has a rating of 3.5 stars.", SHOP, []),
        ("Le Midi has a rating of 7.5 stars.", SHOP, ["7.5"]),
        ("All vans together used 3.14 kWh a kilometre.", STATS, []),
        ("All vans together cost €3.14.", PRICES, ["3.14"]),
        ("- Kaffee Kern – €7.60", PAYMENTS, []),
        ("- Kaffee Kern – €18.40", PAYMENTS, ["18.40"]),
        ("E2 (18.1%) is being watered.", ZONES, []),
        ("E2 (20.6%) is being watered.", ZONES, ["20.6%"]),
        ("Yoga: 6 places are left.", CLASSES, []),
        ("Yoga: 9 are booked.", CLASSES, []),
        ("Yoga: 6 are booked.", CLASSES, ["6"]),  # that is what Spinning has
        ("| Home | Size |\n|---|---|\n| Canal view | 640 sq ft |", HOMES, []),
        ("The best lap was 1:23.79.", {"best_ms": 83790}, []),
        ("The best lap was 1:23.97.", {"best_ms": 83790}, ["1:23.97"]),
        ("It measures 54 × 65 cm.", {"h_mm": 540, "w_mm": 650}, []),
        ("It measures 45 × 65 cm.", {"h_mm": 540, "w_mm": 650}, ["45"]),
        ("The wind blows at 27 km/h.", {"wind_ms": 7.5}, []),
        ("The wind blows at 72 km/h.", {"wind_ms": 7.5}, ["72"]),
        ("The M6.1 came first.", {"magnitude": 6.1}, []),
        ("It is €231 in all, so €77 a day.", {"total": 231, "days": 3}, []),
        ("It is €231 in all, so €79 a day.", {"total": 231, "days": 3}, ["79"]),
        ("The one on line 4 is cancelled.", TRAMS, []),
        (
            "There are one critical and three high findings:\n- CVE-1\n- CVE-2\n- CVE-3\n- CVE-4",
            FINDINGS,
            [],
        ),
        ("Three payments were made:\n\n- €42\n- €42\n- €7.60\n- €18.40", PAYMENTS, ["Three"]),
        ("Four payments were made:\n\n- €42\n- €42\n- €7.60\n- €18.40", PAYMENTS, []),
    ],
)
def test_what_is_read_as_it_is_meant(answer, results, flagged):
    found = statements(answer, results)
    assert [text for text, label, _ in found if label in FLAGS] == flagged


ROOMS = [{"sala": "Lorca", "precio_hora": 22}, {"sala": "Buñuel", "precio_hora": 28}]


@pytest.mark.parametrize(("price", "flagged"), [("22", []), ("28", ["28"]), ("24", ["24"])])
def test_prices_by_the_hour_in_other_languages(price, flagged):
    found = statements(f"La sala Lorca cuesta {price} €/h.", ROOMS, locale="es")
    assert [text for text, label, _ in found if label in FLAGS] == flagged


TEXT = (
    "The alert comes on Wednesday, Oct. 4, and is a test. It was bad in Los Angeles in 1979. This"
    " is the 40th anniversary of the war. The average high is 79 degrees, the low only 56. Bake it"
    " at 350 degrees. It may reduce the risk."
)


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("The test is on Wednesday, October 4th.", []),
        ("The test is on Thursday, October 4th.", ["Thursday, October 4th"]),
        ("6. Can help\n7. May reduce the risk", []),
        ("It was on 7. May 1966.", ["7. May 1966"]),
        ("It was bad in the 1970s.", []),
        ("It was bad in the 1990s.", ["1990"]),
        ("The war has lasted 40 years.", []),
        ("The war has lasted 50 years.", ["50"]),
        ("The low is 56 degrees Fahrenheit (13 degrees Celsius).", []),
        ("The low is 56 degrees Fahrenheit (19 degrees Celsius).", ["19"]),
        ("Bake it at 350°F (175°C).", []),
        ("Bake it at 350°F (195°C).", ["195"]),
    ],
)
def test_prose_as_it_is_meant(answer, flagged):
    found = statements(answer, {"passages": TEXT})
    assert [text for text, label, _ in found if label in FLAGS] == flagged


def test_a_decade_that_the_user_named_is_no_invention():
    told = "It was bad in the 1990s."
    found = statements(told, {"passages": TEXT}, prompt="Was it bad in the 1990s?")
    assert ("1990", "user_said", "said") in found


def test_a_day_of_the_month_counts_nothing():
    found = statements("I found 21 orders.", {"text": "It was due on May 21st, said 3 people."})
    assert [one for one in found if one[0] == "21" and one[1] == "supported"] == []
