"""Numbers that nobody states, and that follow from what the results hold: right ones get a good
label, wrong ones of the same form are flagged."""

import pytest
from tests.unit.grounding.asking import statements

from callmark.grounding.arithmetic import Wanted, share_of, sums, work_out
from callmark.grounding.dates import find_moments
from callmark.grounding.numbers import SCALE
from callmark.grounding.reading import read_stated
from callmark.grounding.values import find_values
from callmark.records.statements import FLAGS, GOOD

ORDERS = {
    "currency": "EUR",
    "orders": [
        {"id": "A-1", "product": "Lamp", "amount": 49.90, "status": "shipped"},
        {"id": "A-2", "product": "Desk", "amount": 338.15, "status": "cancelled"},
        {"id": "A-3", "product": "Lamp", "amount": 1210.40, "status": "shipped"},
        {"id": "A-4", "product": "Chair", "amount": 77.05, "status": "delivered"},
        {"id": "A-5", "product": "Chair", "amount": 918.60, "status": "delivered"},
    ],
}
METERS = {
    "columns": ["device", "kwh"],
    "rows": [["Heat pump", 214.6], ["Boiler", 88.2], ["Fridge", 31.4]],
}
ACCOUNT = {"balance": 2314.77, "available": 2114.77, "card": -684.12, "currency": "EUR"}
DAY = {
    "events": [
        {"title": "Review", "start": "2026-03-17T13:00", "end": "2026-03-17T14:30"},
        {"title": "Call", "start": "2026-03-17T16:00", "end": "2026-03-17T16:45"},
    ]
}

RIGHT = [
    (ORDERS, "In total the orders come to €2,594.10."),
    (ORDERS, "Without the cancelled one, revenue is €2,255.95."),
    (ORDERS, "The Lamp brought in €1,260.30."),
    (ORDERS, "On average that is €518.82 per order."),
    (METERS, "| Device | kWh | Share |\n|---|---|---|\n| Heat pump | 214.6 | 64% |"),
    (METERS, "The heat pump used 126.4 kWh more than the boiler's 88.2."),
    (ACCOUNT, "Of the €2,314.77, €2,114.77 is available (€200 is on hold)."),
    (ACCOUNT, "You owe €684.12 on the card."),
    (DAY, "The review takes 90 minutes, from 13:00 to 14:30."),
    (DAY, "Between the two you have 90 minutes."),
    (DAY, "The reminder comes two hours before 16:00, at 14:00."),
]
WRONG = [
    (ORDERS, "In total the orders come to €2,694.10."),
    (ORDERS, "Without the cancelled one, revenue is €2,355.95."),
    (ORDERS, "On average that is €618.82 per order."),
    (METERS, "| Device | kWh | Share |\n|---|---|---|\n| Heat pump | 214.6 | 46% |"),
    (METERS, "The heat pump used 136.4 kWh more than the boiler's 88.2."),
    (ACCOUNT, "Of the €2,314.77, €2,114.77 is available (€300 is on hold)."),
    (ACCOUNT, "You owe £684.12 on the card."),
    (DAY, "The review lasts 75 minutes, from 13:00 to 14:30."),
    (DAY, "The reminder comes two hours before 16:00, at 15:00."),
]


@pytest.mark.parametrize(("result", "answer"), RIGHT)
def test_what_follows_from_the_results_gets_a_good_label(result, answer):
    labels = [label for _, label, _ in statements(answer, result)]
    assert not FLAGS.intersection(labels)
    assert GOOD.intersection(labels)


@pytest.mark.parametrize(("result", "answer"), WRONG)
def test_what_does_not_follow_is_flagged(result, answer):
    assert FLAGS.intersection(label for _, label, _ in statements(answer, result))


class TestChance:
    def test_two_numbers_give_a_third(self):
        wanted = Wanted(300 * SCALE, 300 * SCALE, SCALE)
        assert work_out(wanted, [100 * SCALE, 200 * SCALE], sums, 0.1) is not None

    def test_among_many_numbers_some_pair_gives_anything(self):
        wanted = Wanted(300 * SCALE, 300 * SCALE, SCALE)
        many = [number * SCALE for number in range(90, 240, 3)]
        assert work_out(wanted, many, sums, 0.1) is None

    def test_a_number_is_no_share_of_itself(self):
        wanted = Wanted(99 * SCALE, 101 * SCALE, SCALE)
        assert share_of(wanted, 5 * SCALE, [5 * SCALE], 1.0) is None


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Friday 15 to Monday 18 May", [(5, 15), (5, 18)]),
        ("15, 16 and 17 May", [(5, 15), (5, 16), (5, 17)]),
        ("vom 15. und 18. Mai", [(5, 15), (5, 18)]),
        ("del viernes 15 al lunes 18 de mayo", [(5, 15), (5, 18)]),
        ("du vendredi 15 au lundi 18 mai", [(5, 15), (5, 18)]),
        ("May 15 and 18.", [(5, 15), (5, 18)]),
        ("am 3.5. um", [(5, 3)]),
        ("Room 10, 15 May", [(5, 15)]),
        ("May 5 and 18 guests", [(5, 5)]),
    ],
)
def test_days_that_share_a_month(text, days):
    found = [one.moments[0] for one in find_moments(text)]
    assert [(one.month, one.day) for one in found] == days


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("16 bis 21 Uhr", [(16, None), (21, None)]),
        ("de 9h à 17h", [(9, None), (17, None)]),
        ("à 14 h 30", [(14, 30)]),
        ("de las 9 a las 17", [(9, None), (17, None)]),
        ("a las 3 de la tarde", [(15, None)]),
        ("between 2 and 4 pm", [(14, None), (16, None)]),
        ("at 7 in the evening", [(19, None)]),
        ("un vol de 9 h", []),
        ("las 9 personas", []),
        ("1.5 to 8 h", []),
    ],
)
def test_times_in_other_words(text, times):
    found = [one.moments[0] for one in find_moments(text)]
    assert [(one.hour, one.minute) for one in found] == times


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1 250 €", [1250]),
        ("10¼ hours", [10.25]),
        ("minus 3 degrees", [-3]),
        ("9 minus 3 is 6", [9, 3, 6]),
        ("11.8 ×10³/µL", [11.8]),
        ("your 401(k) plan", []),
    ],
)
def test_numbers_in_other_forms(text, numbers):
    found = read_stated(text, find_values(text), None)
    assert [one.readings[0] / SCALE for one in found] == numbers


@pytest.mark.parametrize(
    ("answer", "is_flagged"),
    [
        ("Einen Pool gibt es nicht, aber eine Sauna.", False),
        ("Einen Pool gibt es, und das ist schön für Sie und für die Kinder.", True),
        ("Das Haus ist schön und hat keine Sauna für Sie.", True),
    ],
)
def test_yes_and_no_in_german(answer, is_flagged):
    found = statements(answer, {"name": "Haus", "pool": False, "sauna": True})
    assert bool(FLAGS.intersection(label for _, label, _ in found)) is is_flagged


def test_null_says_that_there_is_none_where_others_have_one():
    issues = [
        {"title": "Crash on start", "open": True, "milestone": None},
        {"title": "Slow build", "open": True, "milestone": "4.2"},
    ]
    found = statements("Crash on start has no milestone.", {"issues": issues})
    assert not FLAGS.intersection(label for _, label, _ in found)


def test_a_weekday_is_checked_against_a_year_that_was_said():
    prompt = "Find a room for 15 May 2026."
    found = statements("I looked at Thursday 15 May.", {"rooms": []}, prompt=prompt)
    assert ("contradicted", "weekday") in [(label, rule) for _, label, rule in found]


def test_what_would_be_kept_is_claimed():
    found = statements("NOK 1,440 would be kept as a fee.", {"fee": 1940})
    assert FLAGS.intersection(label for _, label, _ in found)


def test_a_currency_above_a_record_holds_for_it():
    bars = {"currency": "NOK", "bars": [{"date": "2026-04-13", "open": 41.27}]}
    found = statements("It opened at SEK 41.27.", bars)
    assert ("unit_mismatch", "unit") in [(label, rule) for _, label, rule in found]


def test_algebra_is_no_equation_of_numbers():
    record = {"a": 4, "b": -1}
    for answer in ("The roots solve x^2 - 4x + 1 = 0.", "So 3x + 4 = 0 is the line."):
        assert "equation" not in [rule for _, _, rule in statements(answer, record)]
    assert ("9", "miscalculated", "equation") in statements("That is 4 + 4 = 9.", record)


def test_whole_days_may_be_told_in_hours():
    event = {"event": "Workshop", "starts": "2024-10-15T14:00:00Z"}
    answer = "Registration closes 24 hours before it, so register by October 14th."
    assert ("October 14th", "derived") in [one[:2] for one in statements(answer, event)]
    late = answer.replace("14th", "12th")
    assert ("October 12th", "unsupported") in [one[:2] for one in statements(late, event)]


RECKONED = [
    ({"delay_min": 105, "seats": 31}, "The delay is an hour and {} minutes.", "45", "50"),
    ({"delay_min": 105, "seats": 31}, "Das ist eine Stunde und {} Minuten.", "45", "50"),
    ({"position_s": 1290, "episode": 205}, "The read is at {} in the episode.", "21:30", "21:50"),
    (
        {"ship": "2026-12-03", "transit_days": [5, 7]},
        "Transit is 5 to 7 days, so expect it between {}.",
        "December 8 and 10",
        "December 9 and 12",
    ),
    ({"stock": 160, "on_order": {"qty": 500}}, "That will bring you to {}.", "660", "680"),
    (
        {"rows": [{"team": "ml", "cost": 5025.1}, {"team": "ml", "cost": 6826.3}]},
        "- **ml:** in total ${}",
        "11,851",
        "11,951",
    ),
]


@pytest.mark.parametrize(("record", "answer", "right", "wrong"), RECKONED)
def test_what_a_person_reckons_in_the_head_is_followed(record, answer, right, wrong):
    def flagged(text):
        return [row for row in statements(answer.format(text), record) if row[1] in FLAGS]

    assert not flagged(right)
    assert flagged(wrong)


def test_a_price_under_so_many_days_is_no_number_of_days():
    cars = {
        "period_days": 5,
        "fleet": [
            {"model": "Touran", "daily_rate": 71.0, "deposit": 600},
            {"model": "Buzz", "daily_rate": 109.0, "deposit": 900},
        ],
    }
    table = "| Car | Per day | 5 days |\n|---|---|---|\n| Touran | €71.00 | €355.00 |\n"
    assert [row for row in statements(table, cars) if row[1] in FLAGS] == []


def test_the_end_of_an_identifier_names_it():
    rows = {"readings": [{"sensor": "GH-B1", "pct": 83.5}, {"sensor": "GH-B2", "pct": 85.5}]}
    assert [row for row in statements("B1 reads 83.5 and B2 85.5.", rows) if row[1] in FLAGS] == []
    assert ("B3", "unsupported", "value") in statements("B3 reads 83.5.", rows)


FEW = [
    ({"hourly_rate": 45, "hours_logged": 32, "name": "Dee"}, "Her bill should be £{}.", "1,440"),
    ({"size_gb": 500, "used_gb": 410, "mount": "/data"}, "/data is {}% full.", "82"),
    ({"flour_g": 1250, "water_g": 875, "loaves": 2}, "You need {} kg of flour.", "1.25"),
    ({"opened": "2025-02-08T03:12:00Z", "closed": "2025-02-08T04:47:00Z"}, "It took {} minutes.", "95"),
    ({"bedtime": "23:10", "wakeup": "06:40", "score": 81}, "You were in bed {} hours.", "7.5"),
    ({"inicio": "2024-09-10", "clausura": "2024-10-05"}, "Hasta la clausura pasan {} días.", "25"),
    ({"subtotal": 240, "coupon": {"pct_off": 15}}, "You'd pay {} for them.", "204"),
    ({"construit_en": "1934", "inspection": "2022"}, "Le pont avait {} ans.", "88"),
    ({"games": [{"pts": 98}, {"pts": 110}, {"pts": 104}, {"pts": 92}]}, "They score {}.", "101"),
]  # fmt: skip


@pytest.mark.parametrize(("record", "answer", "right"), FEW)
def test_of_few_numbers_one_step_needs_no_word(record, answer, right):
    def flagged(text):
        return [row for row in statements(answer.format(text), record) if row[1] in FLAGS]

    assert not flagged(right)
    number = right.replace(",", "")
    assert flagged(f"{float(number) * 1.37:.{2 if '.' in number else 0}f}")


def test_a_year_may_stand_in_a_key():
    town = {"town": "Altenried", "residents_2023": 7105}
    assert statements("Altenried had 7105 in 2023.", town)[-1][1:] == ("unchecked", "word")
    assert statements("Altenried had 7105 in 2024.", town)[-1][1] == "unsupported"


STOCK = {
    "items": [
        {"item": "Oak desk", "type": "desk", "site": "North", "qty": 4, "unit_price_eur": 310.0},
        {"item": "Pine desk", "type": "desk", "site": "South", "qty": 9, "unit_price_eur": 189.5},
        {
            "item": "Steel shelf",
            "type": "shelf",
            "site": "North",
            "qty": 12,
            "unit_price_eur": 74.2,
        },
        {
            "item": "Glass shelf",
            "type": "shelf",
            "site": "South",
            "qty": 5,
            "unit_price_eur": 131.0,
        },
        {
            "item": "Swivel chair",
            "type": "chair",
            "site": "North",
            "qty": 31,
            "unit_price_eur": 96.8,
        },
    ]
}
GROUPED = [
    ("| Type | Pieces | Value |\n|---|---|---|\n| Desk | 13 | €{} |", "2,945.50", "2,954.50"),
    ("| Type | Mean price |\n|---|---|\n| Shelf | €{} |", "102.60", "106.20"),
    ("- **Desks:** €{} at list price", "2,945.50", "2,495.50"),
    ("Everything in stock is worth €{}.", "7,491.70", "7,941.70"),
    ("The biggest items are the swivel chair (€{}) and the desks.", "3,000.80", "3,080.00"),
    ("The desks in the South come to €{}.", "1,705.50", "1,750.50"),
]


@pytest.mark.parametrize(("answer", "right", "wrong"), GROUPED)
def test_what_the_records_of_one_kind_come_to(answer, right, wrong):
    def flags(text):
        return [rule for _, label, rule in statements(text, STOCK) if label in FLAGS]

    assert flags(answer.format(right)) == []
    assert flags(answer.format(wrong))


def test_changes_days_periods_and_thresholds_are_no_inventions():
    votes = {"lists": [{"name": "Blue", "seats": 8, "seats_before": 10, "votes": 6158},
                       {"name": "Red", "seats": 7, "seats_before": 4, "votes": 4812}]}  # fmt: skip
    calls = {"p95_30d_ms": 410, "calls": [{"id": "c1", "moves": 3117}, {"id": "c2", "moves": 2055}]}
    for answer, result in (
        ("- **Blue:** 8 seats (-2)\n- **Red:** 7 seats (+3)", votes),
        ("The Q1 2026 figure over 30 days is 410 ms.", calls),
        ("On Tue 17 none of them passed 3,500 moves.", calls),
    ):
        assert not [one for one in statements(answer, result) if one[1] in FLAGS], answer
    assert [one for one in statements("- **Blue:** 8 seats (-3)", votes) if one[1] in FLAGS]


TRIAL = {
    "records": [
        {"subject": "104-001", "name": "Jonah Reed", "arm": "A", "day": "2026-09-07", "sbp": 124},
        {"subject": "104-002", "name": "Mia Cole", "arm": "B", "day": "2026-09-13", "sbp": 141},
        {"subject": "104-003", "name": "Ada Voss", "arm": "A", "day": "2026-09-14", "sbp": 129},
        {"subject": "104-004", "name": "Lee Park", "arm": "B", "day": "2026-09-20", "sbp": 148},
    ]
}


def test_arms_weeks_and_parts_of_names():
    table = "| | Arm A | Arm B |\n|---|---|---|\n| Mean SBP | {} | 144.5 |"
    weeks = "| | Sept 7–13 | Sept 14–20 |\n|---|---|---|\n| Mean SBP | {} | 138.5 |"
    for answer, right, wrong in ((table, "126.5", "162.5"), (weeks, "132.5", "123.9")):
        flags = [
            [one for one in statements(answer.format(each), TRIAL) if one[1] in FLAGS]
            for each in (right, wrong)
        ]
        assert not flags[0], answer
        assert flags[1], answer
    for answer in (
        "Two subjects were in arm B: Mia (141) and Lee (148).",
        "Two subjects had an SBP of 140 or higher, that is two quarters.",
    ):
        assert not [one for one in statements(answer, TRIAL) if one[1] in FLAGS], answer


def test_a_number_with_decimals_is_no_slip_of_a_whole_one():
    grades = {"students": [{"name": "Ann", "final": 92}, {"name": "Ben", "final": 81}]}
    [found] = [one for one in statements("Ann comes to 92.6 overall.", grades) if one[1] in FLAGS]
    assert found[2] == "value"


def test_digits_in_groups_of_three_are_one_number_in_french():
    result = {"altitude_m": {"base": 1350, "sommet": 2480}}
    answer = "La station se trouve à 1 350 m en bas, et le sommet est à {} m."
    assert not [one for one in statements(answer.format("2 480"), result) if one[1] in FLAGS]
    assert [one for one in statements(answer.format("2 840"), result) if one[1] in FLAGS]


def test_a_share_of_nothing_is_worked_out_of_nothing():
    result = {"open": 0, "total": 31, "closed": 31}
    labels = [label for _, label, _ in statements("0 (about 17%) of the 31 are open.", result)]
    assert labels[0] in GOOD


def test_scales_of_keys_and_of_columns():
    treaty = {"retention_meur": 10.0, "limit_meur": 50.0, "loss_meur": {"100": 38.9, "250": 71.2}}
    for answer in (
        "The treaty pays €50 million above a retention of €10 million.",
        "A 1-in-100 loss of €38.9 million stays within it.",
    ):
        assert not [one for one in statements(answer, treaty) if one[1] in FLAGS], answer
    assert [one for one in statements("The treaty pays €50 billion.", treaty) if one[1] in FLAGS]
    hours = {"branch": "Lindenau", "area_sqm": 295, "open_hours_week": 18}
    said = statements("Lindenau opens 18 hours a week.", hours)
    assert not [one for one in said if one[1] in FLAGS]


def test_a_column_that_nobody_follows_is_left_open_and_one_cell_that_differs_is_not():
    """The margins are worked out of costs that no rule puts together; the sums are followed."""
    rows = [("Desk", 13, "2,945.50"), ("Shelf", 17, "1,545.40"), ("Chair", 31, "3,000.80")]

    def flags(margins, values):
        lines = ["| Type | Pieces | Value | Margin |", "|---|---|---|---|"]
        for (name, pieces, _), value, margin in zip(rows, values, margins, strict=True):
            lines.append(f"| {name} | {pieces} | €{value} | {margin} |")
        said = statements("\n".join(lines), STOCK)
        return [text for text, label, _ in said if label in FLAGS]

    right = [value for _, _, value in rows]
    assert flags(["€617.13", "€418.77", "€909.01"], right) == []
    assert flags(["–", "–", "–"], ["2,954.50", *right[1:]]) == ["2,954.50"]
