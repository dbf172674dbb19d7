"""What is said of one record of a list: its own values, fields, states, kinds, ranks and names."""

import pytest
from tests.unit.grounding.asking import call, claims, item, statements

from callmark.grounding.deeds import DoneCall, find_deeds
from callmark.grounding.spans import Outline

FERRIES = {
    "currency": "EUR",
    "crossings": [
        {
            "vessel": "Nordstern",
            "departure": "08:40",
            "arrival": "11:15",
            "fare": 42.5,
            "cabin_fee": 18.25,
            "deck": "open",
            "bikes_allowed": True,
            "operator": "Hansen Lines",
            "status": "on_time",
            "rating": 4.1,
        },
        {
            "vessel": "Seeadler",
            "departure": "12:05",
            "arrival": "15:30",
            "fare": 36.75,
            "cabin_fee": 21.5,
            "deck": "covered",
            "bikes_allowed": True,
            "operator": "Baltic Wave",
            "status": "delayed",
            "rating": 4.6,
        },
        {
            "vessel": "Möwe",
            "departure": "18:20",
            "arrival": "21:50",
            "fare": 58.0,
            "cabin_fee": 12.75,
            "deck": "covered",
            "bikes_allowed": False,
            "operator": "Hansen Lines",
            "status": "cancelled",
            "rating": 3.8,
        },
    ],
}
DAYS = {
    "forecast": [
        {"date": "2026-06-06", "high_c": 31, "gust_kmh": 44, "wind_kmh": 19},
        {"date": "2026-06-07", "high_c": 24, "gust_kmh": 61, "wind_kmh": 33},
    ]
}
FLAGS = ("misattributed", "wrong_field", "contradicted", "miscounted", "altered", "unsupported")


def flags(answer, *results, **more):
    return [
        (text, rule)
        for text, label, rule in statements(answer, *(results or (FERRIES,)), **more)
        if label in FLAGS
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "The Nordstern leaves at 08:40, arrives at 11:15 and costs €42.50.",
        "Nordstern €42.50, Seeadler €36.75 and Möwe €58.",
        "| Vessel | Departure | Fare |\n|---|---|---|\n| Nordstern | 08:40 | €42.50 |",
        "The Seeadler is delayed; the Möwe is cancelled.",
        "The Nordstern is on time.",
        "The Seeadler, run by Baltic Wave, has a covered deck.",
        "The Seeadler is the cheapest crossing and the best rated of the three.",
        "The Möwe is the most expensive.",
        "Of the two run by Hansen Lines, the Nordstern is the cheapest.",
        "Two of them have bikes allowed.",
        "The cabin fee on the Seeadler is €21.50.",
        "If the Nordstern is delayed, I will tell you.",
        "The Nordstern is not delayed.",
        "Would you rather take the Möwe, which would be the cheapest?",
        "The Seeadler is no longer on time.",
    ],
)
def test_what_is_true_of_its_record_is_not_flagged(answer):
    assert flags(answer) == []


@pytest.mark.parametrize(
    ("answer", "text", "rule"),
    [
        (
            "| Vessel | Fare |\n|---|---|\n| Nordstern | €42.50 |\n| Möwe | €36.75 |",
            "36.75",
            "binding",
        ),
        ("The Nordstern departs at 11:15.", "11:15", "field"),
        ("The Seeadler has a cabin fee of €36.75.", "36.75", "field"),
        ("The Seeadler is on time.", "on time", "state"),
        ("The Möwe is delayed.", "delayed", "state"),
        ("Die Möwe ist verspätet.", "verspätet", "state"),
        ("The operator of the Seeadler is Hansen Lines.", "Hansen Lines", "state"),
        ("The Nordstern has a covered deck.", "covered", "state"),
        ("The Nordstern is the cheapest of the three.", "cheapest", "rank"),
        ("The Möwe is the best rated.", "best rated", "rank"),
        ("The Seeadler is the most expensive.", "most expensive", "rank"),
        ("Three have bikes allowed.", "Three", "count"),
    ],
)
def test_what_another_record_or_field_has_is_flagged(answer, text, rule):
    assert flags(answer) == [(text, rule)]


def test_a_flag_says_where_the_right_value_stands():
    scores = claims("The Nordstern departs at 11:15.", call(FERRIES), of=item())
    (flag,) = [one for one in scores["statements"] if one.get("tier")]
    assert (flag["path"], flag["expected"]) == ("/crossings/0/departure", "08:40")
    assert "08:40" in flag["because"]
    assert "arrival" in flag["because"]


def test_half_a_name_binds_only_under_a_label():
    """In prose, half a name was meant in passing in one right answer of ten: a value of another
    record beside it is flagged where the line says what it is, and nowhere else."""
    assert flags("The Hansen boat costs €36.75.") == []


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("The Nordstern costs €36.75.", ["36.75"]),
        ("Fares: Nordstern €36.75, Seeadler €36.75.", ["36.75"]),
        ("- 12:05–15:30, Baltic Wave, €42.50", ["42.50"]),
        ("- 12:05–15:30, Baltic Wave, €36.75", []),
        ("Nordstern at 08:40 for €36.75 and Seeadler at 12:05 for €42.50.", ["36.75", "42.50"]),
        ("Nordstern at 08:40 for €42.50 and Seeadler at 12:05 for €36.75.", []),
        ("Seeadler is €5.75 cheaper, at €36.75 instead of €42.50.", []),
    ],
)
def test_a_value_is_said_of_the_name_before_it_or_of_what_most_of_its_line_has(answer, flagged):
    assert [text for text, rule in flags(answer) if rule == "binding"] == flagged


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("Two boats are run by Hansen Lines: Nordstern, Seeadler and Möwe.", ["Two"]),
        ("Two boats still go today:\n- Nordstern\n- Seeadler", []),
        ("Two of the three boats go today:\n- Nordstern", []),
        ("Two of the boats have a bar:\n- Nordstern\n- Seeadler\n- Möwe", ["Two"]),
        ("Two of your boats, with a bar: Nordstern, Seeadler and Möwe.", []),
        ("Two of your boats have a bar: Nordstern, Seeadler and Möwe.", ["Two"]),
        ("Two of the boats have a bar:\n- Nordstern and Seeadler\n- Möwe", []),
        ("I found three boats, two of them covered:\n- Seeadler\n- Möwe", []),
        ("For two people I suggest one of these:\n- Nordstern\n- Seeadler\n- Möwe", []),
    ],
)
def test_a_number_that_introduces_a_list_is_counted_in_it(answer, flagged):
    assert [text for text, rule in flags(answer) if rule == "count"] == flagged


def test_a_code_names_the_record_that_alone_has_it():
    flights = {
        "data": [
            {"id": "1", "flights": ["LH1808"], "departure": "07:05", "price": {"total": "189.40"}},
            {"id": "2", "flights": ["LH1794"], "departure": "19:30", "price": {"total": "211.20"}},
        ]
    }
    assert flags("LH1808 leaves at 07:05 and costs €189.40.", flights) == []
    assert ("211.20", "record") in flags("LH1808 (€211.20) is the early one.", flights)


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("Saturday (June 6) will see a high of 31 °C.", []),
        ("From June 6 to June 7 it gets cooler.", []),
        ("On June 7 expect gusts of 61 km/h.", []),
        ("On June 7 expect gusts of 33 km/h.", [("33", "field")]),
    ],
)
def test_a_day_stands_for_the_record_that_has_it(answer, flagged):
    assert flags(answer, DAYS) == flagged


MAP = {"flight": "HT-114", "prices": {"basic_economy": 53, "economy": 136, "business": 410}}


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("HT-114: Economy ($136), Business ($410)", []),
        ("HT-114: Economy ($53), Business ($410)", [("53", "field")]),
        ("HT-114: Economy ($136), Business ($53)", [("53", "field")]),
    ],
)
def test_keys_that_name_kinds_of_one_thing(answer, flagged):
    assert flags(answer, MAP) == flagged


ORDER = {
    "order_id": "R-5512",
    "refund": {"value": 388.0, "currency": "EUR", "state": "PENDING"},
    "amount_paid": {"value": 582.0, "currency": "EUR"},
}


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("The refund of €388 is still pending.", []),
        ("The refund is completed.", [("completed", "state")]),
        ("La reembolso: the refund has already been completed.", [("completed", "state")]),
        ("The refund is €582.", [("582", "field")]),
        ("You paid €582.", []),
        ("Your changes are complete.", []),
        ("Once the refund is completed, you will get a mail.", []),
    ],
)
def test_states_and_amounts_of_objects(answer, flagged):
    assert [one for one in flags(answer, ORDER) if one[1] != "deed"] == flagged


PEOPLE = {
    "passengers": [{"first_name": "Ivan", "last_name": "Smith"}],
    "firm": {"name": "Holden Foods"},
    "client": "Dr Anjali Mehta",
}


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("The booking for Ivan Smith is for Holden Foods and Dr Anjali Mehta.", []),
        ("The booking is for Ivan Talbot.", [("Ivan Talbot", "name")]),
        ("The booking is for Pavel Smith.", [("Pavel Smith", "name")]),
        ("The invoice goes to Holden Motors.", [("Holden Motors", "name")]),
        ("The invoice goes to Holden Foods; Holden Group is its owner.", []),
        ("The client is Dr Anita Mehra.", [("Dr Anita Mehra", "name")]),
        ("## Holden Overview\nIvan Smith travels.", []),
        ("Ivan asked for it.", []),
    ],
)
def test_names_that_nobody_gave(answer, flagged):
    assert flags(answer, PEOPLE) == flagged


def test_a_name_that_the_user_gave_is_none_of_them():
    said = "Please book for Ivan Talbot."
    assert flags("The booking is for Ivan Talbot.", PEOPLE, prompt=said) == []


TICKETS = {"tickets": [{"no": f"T-{n}", "state": s} for n, s in enumerate(["open"] * 4 + ["won"])]}


@pytest.mark.parametrize(
    ("answer", "flagged"),
    [
        ("Four are open.", []),
        ("Of the five tickets, four are open.", []),
        ("Six are open.", [("Six", "count")]),
        ("Of the five tickets, three are open.", [("three", "count")]),
        ("- **Open:** 4\n- **Won:** 1", []),
        ("- **Open:** 3\n- **Won:** 1", [("3", "count")]),
    ],
)
def test_how_many_are_so(answer, flagged):
    assert [one for one in flags(answer, TICKETS) if one[1] == "count"] == flagged


def deeds(text, *calls):
    found = find_deeds(Outline(text), calls, lambda _: None, lambda word, _: False)
    return [(deed.verb, deed.is_served) for deed in found]


REVERSED = DoneCall(
    None, "cancel_stay", "Cancel it.", frozenset(("cancel", "stay", "loyalti", "point", "revers"))
)
LIGHTS = DoneCall(None, "dim_lights", "Dims them.", frozenset(("dim", "light", "room")))


@pytest.mark.parametrize(
    ("text", "done", "is_served"),
    [
        ("I've credited 582 points.", REVERSED, False),
        ("I've reversed 582 points.", REVERSED, None),
        ("I've cancelled the stay.", REVERSED, True),
        ("I've set the lights to 40 %.", LIGHTS, True),
        ("I've submitted the leave request.", LIGHTS, False),
        ("I've armed the alarm.", REVERSED, False),
        ("I've opened a PR.", REVERSED, True),
        ("I've opened a PR.", DoneCall(None, "get_run", "Read a run."), False),
        ("I've opened the page.", DoneCall(None, "get_run", "Read a run."), None),
        ("I've deleted the branch.", DoneCall(None, "merge_pull", "Merge it."), False),
        ("I've deleted the item.", DoneCall(None, "remove_item", "Remove an item."), True),
    ],
)
def test_a_deed_needs_a_call_that_speaks_of_it(text, done, is_served):
    expected = [] if is_served is None else [is_served]
    assert [served for _, served in deeds(text, done)] == expected


APPOINTMENTS = {
    "appointments": [
        {"id": "AP-3301", "start": "2026-09-15T08:00", "with": "Jonas Beck"},
        {"id": "AP-3344", "start": "2026-09-22T08:00", "with": "Mia Roth"},
    ]
}


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("I've cancelled AP-3301.", "supported"),
        ("I've cancelled AP-3344.", "unsupported"),
        ("I've cancelled your session on 22 September.", "unsupported"),
    ],
)
def test_a_deed_done_to_another_record(answer, label):
    cancel = call({"status": "ok"}, "cancel_appointment", {"id": "AP-3301"})
    scores = claims(answer, call(APPOINTMENTS), cancel, of=item())
    assert [one["label"] for one in scores["statements"] if one["rule"] == "deed"] == [label]
