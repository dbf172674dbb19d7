"""Opening hours, told in the ways in which people tell them: right and wrong."""

import pytest
from tests.unit.grounding.asking import statements

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def record(hours):
    known = {day: one for day, one in zip(DAYS, hours, strict=True) if one}
    return {"name": "Quay House", "hours": known, "city": "Ulm"}


def flags(answer, hours):
    found = statements(answer, record(hours))
    return [(text, rule) for text, label, rule in found if label in ("contradicted", "unsupported")]


ALIKE = ["9:0-17:0"] * 7
WEEKEND = ["9:0-17:0"] * 5 + ["10:0-16:0"] * 2
LATE_FRIDAY = ["11:0-21:0"] * 4 + ["11:0-22:0"] * 2 + ["11:0-21:0"]
NO_MONDAY = [None] + ["17:0-21:30"] * 6
NO_SUNDAY = ["8:0-18:0"] * 6 + [None]
NIGHTS = ["17:0-0:0"] * 4 + ["17:0-2:0"] * 2 + ["17:0-0:0"]
MIXED = ["8:0-15:0"] * 3 + ["8:0-20:0"] * 2 + ["9:0-20:0", "9:0-14:0"]
NO_MONDAY_TUESDAY = [None, None] + ["12:0-21:0"] * 3 + ["11:30-22:0", "11:30-21:0"]
ZEROS = ["0:0-0:0"] + ["11:0-20:0"] * 6

RIGHT = [
    (ALIKE, "It is open from 9 am to 5 pm every day of the week."),
    (ALIKE, "They are open daily from 9:00 AM to 5:00 PM."),
    (ALIKE, "Open seven days a week from 9 to 5 pm."),
    (ALIKE, "Quay House operates from 9:00 to 17:00 all week."),
    (ALIKE, "It is open Monday through Sunday from 9am to 5pm."),
    (ALIKE, "It opens at 9 am and closes at 5 pm, seven days a week."),
    (ALIKE, "Its hours of operation are 9:00 AM - 5:00 PM, Monday to Sunday."),
    (ALIKE, "It is open every day, with consistent hours from 9 am to 5 pm."),
    (ALIKE, "Hours: 9:00-17:00 (Monday-Sunday)."),
    (ALIKE, "The hours are the same throughout the week, from 9 am until 5 pm."),
    (ALIKE, "It's open 7 days a week between 9 a.m. and 5 p.m."),
    (ALIKE, "Open from 9 a.m. to 5 p.m. Monday-Sunday"),
    (ALIKE, "The cafe closes at 5 pm every day."),
    (ALIKE, "It opens at 9am daily."),
    (ALIKE, "It opens every day at 9:00 AM."),
    (ALIKE, "Doors open at 9 am on weekdays and weekends alike."),
    (WEEKEND, "It is open from 9 am to 5 pm on weekdays and 10 am to 4 pm on weekends."),
    (
        WEEKEND,
        "Open Monday to Friday from 9:00 to 17:00, and Saturday and Sunday from 10:00 to 16:00.",
    ),
    (
        WEEKEND,
        "On weekdays it is open from 9am to 5pm, while on weekends it opens at 10am "
        "and closes at 4pm.",
    ),
    (
        WEEKEND,
        "It is open daily, from 9 am to 5 pm Monday through Friday, with shorter "
        "hours on weekends from 10 am to 4 pm.",
    ),
    (WEEKEND, "It opens at 9 am on weekdays and at 10 am on weekends."),
    (WEEKEND, "It closes at 5 pm on weekdays and 4 pm on weekends."),
    (
        WEEKEND,
        "It is open seven days a week, with varying hours from 9 am to 5 pm on "
        "weekdays and 10 am to 4 pm on weekends.",
    ),
    (WEEKEND, "Weekday hours are 9 am to 5 pm; weekend hours are 10 am to 4 pm."),
    (WEEKEND, "It is open Monday-Friday: 9am-5pm, Saturday-Sunday: 10am-4pm."),
    (WEEKEND, "Its weekday hours run from 9 to 5 pm, with reduced hours at the weekend."),
    (WEEKEND, "The hours vary by day, but it opens as early as 9 am and closes as late as 5 pm."),
    (
        WEEKEND,
        "It is open from 9am to 5pm during the week and from 10am to 4pm on Saturdays and Sundays.",
    ),
    (WEEKEND, "Mon-Fri 9:00-17:00, Sat-Sun 10:00-16:00"),
    (WEEKEND, "It is open every day, with reduced hours on Saturday and Sunday (10 am to 4 pm)."),
    (
        WEEKEND,
        "The restaurant is open every day of the week from 9 am, closing at 5 pm on "
        "weekdays and 4 pm on weekends.",
    ),
    (
        LATE_FRIDAY,
        "It is open from 11 am to 9 pm, Sunday through Thursday, and from 11 am to "
        "10 pm on Fridays and Saturdays.",
    ),
    (
        LATE_FRIDAY,
        "Open Sunday to Thursday from 11am to 9pm and until 10pm on Friday and Saturday.",
    ),
    (
        LATE_FRIDAY,
        "It opens at 11 am every day, closing at 9 pm from Sunday to Thursday and at "
        "10 pm on Friday and Saturday.",
    ),
    (
        LATE_FRIDAY,
        "It is open from 11 AM to 9 PM on most days, with extended hours until 10 PM "
        "on Fridays and Saturdays.",
    ),
    (
        LATE_FRIDAY,
        "Hours are 11am-9pm daily, except Fridays and Saturdays when it stays open until 10pm.",
    ),
    (
        LATE_FRIDAY,
        "It is open daily from 11 am, closing at 9 pm except on Fridays and "
        "Saturdays, when it closes at 10 pm.",
    ),
    (
        LATE_FRIDAY,
        "It is open seven days a week from 11:00 AM to 9:00 PM (10:00 PM on Fridays "
        "and Saturdays).",
    ),
    (
        LATE_FRIDAY,
        "Operating hours are 11:00 to 21:00 on Monday to Thursday and Sunday, and "
        "11:00 to 22:00 on Friday and Saturday.",
    ),
    (
        LATE_FRIDAY,
        "It is open from 11 am to 9 pm every day, but closes at 10 pm on Fridays and Saturdays.",
    ),
    (
        LATE_FRIDAY,
        "Quay House is open every day, with hours ranging from 11 am to 9 pm on "
        "weekdays and 11 am to 10 pm on Fridays and Saturdays.",
    ),
    (LATE_FRIDAY, "It stays open an hour later on Fridays and Saturdays, until 10 pm."),
    (
        LATE_FRIDAY,
        "It is open 11am to 9pm Monday through Thursday, 11am to 10pm Friday and "
        "Saturday, and 11am to 9pm Sunday.",
    ),
    (
        LATE_FRIDAY,
        "Monday to Thursday: 11:00 AM to 9:00 PM\nFriday and Saturday: 11:00 AM to "
        "10:00 PM\nSunday: 11:00 AM to 9:00 PM",
    ),
    (
        LATE_FRIDAY,
        "It opens from 11 am to 9 pm from Sunday to Thursday, and opens till 10 pm "
        "on Fridays and Saturdays.",
    ),
    (LATE_FRIDAY, "Open from 11 am to 9 or 10 pm depending on the day."),
    (LATE_FRIDAY, "It is open from Monday to Sunday, with closing times between 9 pm and 10 pm."),
    (
        LATE_FRIDAY,
        "It is open every day from 11 AM to 9 PM, with later closing times on Friday and Saturday.",
    ),
    (NO_MONDAY, "It is open from Tuesday to Sunday, 5:00 PM to 9:30 PM."),
    (NO_MONDAY, "It is closed on Mondays and open from 5 pm to 9:30 pm the rest of the week."),
    (NO_MONDAY, "It is open every day except Monday, from 5 pm to 9:30 pm."),
    (
        NO_MONDAY,
        "The restaurant is open from 17:00 to 21:30 Tuesday through Sunday and closed on Monday.",
    ),
    (NO_MONDAY, "Open six days a week, closed Mondays."),
    (NO_MONDAY, "It operates from 5 PM to 9:30 PM on all days except Mondays."),
    (NO_MONDAY, "It is open Tuesday-Sunday from 5-9:30pm."),
    (NO_MONDAY, "It is open for dinner from 5 pm to 9:30 pm, Tuesday to Sunday."),
    (NO_MONDAY, "It is closed on Monday but open from 5:00 pm to 9:30 pm from Tuesday to Sunday."),
    (NO_MONDAY, "It does not open on Mondays."),
    (NO_MONDAY, "It is not open on Mondays."),
    (NO_MONDAY, "Monday: Closed\nTuesday to Sunday: 5:00 PM - 9:30 PM"),
    (NO_MONDAY, "Apart from Mondays, it is open daily from 5 pm to 9:30 pm."),
    (NO_MONDAY, "With the exception of Monday, it opens at 5 pm every day."),
    (NO_SUNDAY, "It is open Monday through Saturday from 8 am to 6 pm and is closed on Sunday."),
    (NO_SUNDAY, "It is open from 8 am to 6 pm every day except Sunday."),
    (
        NO_SUNDAY,
        "They are open from 8 AM to 6 PM from Monday to Saturday, but are closed on Sundays.",
    ),
    (NO_SUNDAY, "Open Mon-Sat, 8:00am to 6:00pm."),
    (NO_SUNDAY, "It is open on weekdays and Saturdays from 8am to 6pm."),
    (NO_SUNDAY, "Sunday is the only day that it is closed."),
    (NO_SUNDAY, "It's closed Sundays."),
    (NO_SUNDAY, "It is open six days a week from 8 am to 6 pm, closing on Sundays."),
    (NO_SUNDAY, "Open Monday to Saturday, 8:00-18:00; closed on Sunday."),
    (
        NIGHTS,
        "It is open from 5 pm to midnight from Sunday to Thursday and from 5 pm to 2 "
        "am on Fridays and Saturdays.",
    ),
    (
        NIGHTS,
        "It opens at 5 PM every day and closes at midnight, or 2 AM on Fridays and Saturdays.",
    ),
    (
        NIGHTS,
        "It is open from 17:00 until 00:00 Sunday to Thursday, and until 2:00 on "
        "Friday and Saturday.",
    ),
    (
        NIGHTS,
        "Open daily from 5pm to 12am, with extended hours until 2am on Fridays and Saturdays.",
    ),
    (
        NIGHTS,
        "It is open from 5 pm to 12 am on weekdays and Sunday, except Friday, when "
        "it is open until 2 am.",
    ),
    (
        MIXED,
        "It is open from 8 am to 3 pm Monday to Wednesday, 8 am to 8 pm on Thursday "
        "and Friday, 9 am to 8 pm on Saturday, and 9 am to 2 pm on Sunday.",
    ),
    (
        MIXED,
        "It is open from 8:00 AM to 3:00 PM on Monday, Tuesday, and Wednesday, with "
        "extended hours until 8:00 PM on Thursday and Friday.",
    ),
    (MIXED, "It opens at 8 am on weekdays and at 9 am on the weekend."),
    (MIXED, "On Saturdays it is open 9 am-8 pm, and on Sundays 9 am-2 pm."),
    (
        MIXED,
        "The hours vary throughout the week, with the earliest opening at 8 am and "
        "the latest closing at 8 pm.",
    ),
    (MIXED, "It opens at 8 am from Monday to Friday, while on weekends it opens at 9 am."),
    (
        MIXED,
        "It is open Monday-Wednesday 8:00 AM-3:00 PM, Thursday-Friday 8:00 AM-8:00 "
        "PM, Saturday 9:00 AM-8:00 PM, Sunday 9:00 AM-2:00 PM.",
    ),
    (MIXED, "Operating hours range from 8 am to 8 pm."),
    (
        NO_MONDAY_TUESDAY,
        "It is open Wednesday to Friday from noon to 9 pm, on Saturday from 11:30 am "
        "to 10 pm and on Sunday from 11:30 am to 9 pm.",
    ),
    (
        NO_MONDAY_TUESDAY,
        "It operates from 12 PM to 9 PM from Wednesday to Friday, and starts service "
        "from 11:30 AM on weekends.",
    ),
    (NO_MONDAY_TUESDAY, "It is closed on Mondays and Tuesdays."),
    (NO_MONDAY_TUESDAY, "It is open Wednesday through Sunday, with varying hours."),
    (
        NO_MONDAY_TUESDAY,
        "It is closed Monday and Tuesday, and opens at noon from Wednesday to Friday "
        "and at 11:30 am on weekends.",
    ),
    (ZEROS, "It is open Tuesday to Sunday from 11 am to 8 pm and closed on Monday."),
    (ZEROS, "It is closed on Mondays."),
]
WRONG = [
    (ALIKE, "It is open from 9 am to 6 pm every day."),
    (ALIKE, "It is open from 10 am to 5 pm, Monday to Sunday."),
    (ALIKE, "It is closed on Sundays."),
    (ALIKE, "It opens at 8 am every day."),
    (ALIKE, "It closes at 6 pm daily."),
    (ALIKE, "It is open from 9 am to 5 pm on weekdays and 10 am to 5 pm on weekends."),
    (ALIKE, "It is open with extended hours on weekends."),
    (ALIKE, "It has shorter hours on Sunday."),
    (ALIKE, "It is open from 9 am to 5 pm, Monday to Saturday, and closed on Sunday."),
    (ALIKE, "It is open 24 hours a day."),
    (ALIKE, "It stays open later on Fridays."),
    (ALIKE, "The hours vary depending on the day."),
    (WEEKEND, "It is open from 9 am to 5 pm every day."),
    (WEEKEND, "It is open daily from 9 to 5 pm."),
    (WEEKEND, "On weekends it is open from 11 am to 4 pm."),
    (WEEKEND, "It opens at 9 am on weekends."),
    (WEEKEND, "It closes at 5 pm on Saturdays."),
    (WEEKEND, "It is closed at the weekend."),
    (WEEKEND, "It is open longer on weekends."),
    (LATE_FRIDAY, "It is open from 11 am to 9 pm every day."),
    (LATE_FRIDAY, "It is open until 11 pm on Fridays."),
    (LATE_FRIDAY, "It is open from 11 am to 10 pm daily."),
    (LATE_FRIDAY, "It closes at 10 pm on Sundays."),
    (LATE_FRIDAY, "It opens at noon every day."),
    (LATE_FRIDAY, "It is closed on Tuesdays."),
    (NO_MONDAY, "It is open seven days a week."),
    (NO_MONDAY, "It is open every day."),
    (NO_MONDAY, "It is open from Monday to Sunday, with varying hours."),
    (NO_MONDAY, "It is open daily from 5 pm to 9:30 pm."),
    (NO_MONDAY, "It is open Monday through Saturday from 5 pm to 9:30 pm."),
    (NO_MONDAY, "It is open from 5 pm to 10 pm, Tuesday to Sunday."),
    (NO_MONDAY, "It is closed on Sundays."),
    (NO_MONDAY, "It is open on Mondays."),
    (NO_SUNDAY, "It is open seven days a week from 8 am to 6 pm."),
    (NO_SUNDAY, "It is open on weekdays and weekends from 8 am to 6 pm."),
    (NO_SUNDAY, "It is open all week."),
    (NO_SUNDAY, "It is closed on Saturday and Sunday."),
]


@pytest.mark.parametrize(("hours", "answer"), RIGHT)
def test_hours_that_are_right_raise_no_flag(hours, answer):
    assert flags(answer, hours) == []


@pytest.mark.parametrize(("hours", "answer"), WRONG)
def test_hours_that_are_wrong_are_contradicted(hours, answer):
    assert any(rule in ("hours", "value") for _, rule in flags(answer, hours))


def test_the_days_that_are_meant_are_quoted():
    answer = "It is open from 11 am to 9 pm every day, and until 11 pm on Fridays."
    assert ("until 11 pm on Fridays", "hours") in flags(answer, LATE_FRIDAY)


SLOTS = {
    "slots": [
        {"start": "2026-11-25T17:40", "with": "Oscar"},
        {"start": "2026-11-27T16:00", "with": "Nuria"},
    ],
    "desk": {"opens": "08:00", "since": "2026-11-24T08:00"},
}


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("Nuria has time el **{} 27 a las 16:00**.", ("viernes", "jueves")),
        ("Nuria has time on {} at 16:00.", ("Friday", "Monday")),
        ("Oscar has time on {} 25, at 17:40.", ("Wed", "Fri")),
    ],
)
def test_a_weekday_beside_a_day_or_a_time_is_that_of_the_date(answer, wrong):
    right, other = wrong
    known = [
        label for _, label, rule in statements(answer.format(right), SLOTS) if rule == "weekday"
    ]
    assert known == ["derived"]
    found = [
        label for _, label, rule in statements(answer.format(other), SLOTS) if rule == "weekday"
    ]
    assert found == ["contradicted"]


def test_a_time_that_is_no_part_of_a_date_has_no_weekday():
    for answer in ("The desk opens on Monday at 08:00.", "On Friday 25 guests come."):
        assert not [rule for _, _, rule in statements(answer, SLOTS) if rule == "weekday"]


SHUT_MONDAY = ["0:0-0:0"] + ["11:30-21:0"] * 3 + ["11:30-22:0", "10:0-22:0", "10:0-20:0"]
SHORT_MONDAY = ["16:0-21:0"] + ["11:30-21:0"] * 3 + ["11:30-21:30"] * 2 + ["11:30-21:0"]
LATE = ["7:0-10:30"] * 7


@pytest.mark.parametrize(
    ("hours", "answer"),
    [
        # The earliest and the latest of several days.
        (SHUT_MONDAY, "It is open Tuesday to Sunday, with hours ranging from 10 am to 10 pm."),
        (SHUT_MONDAY, "Hours: Mon: closed, Tue-Thu: 11:30am-9pm, Fri: 11:30am-10pm."),
        # Who says `weekdays` means those on which anybody is there.
        (SHUT_MONDAY, "It opens at 11:30 AM on weekdays and 10 AM on weekends."),
        (NO_SUNDAY, "It is open from 8 am to 6 pm on weekends too."),
        (["9:30-17:0"] * 7, "Mon-Sun 9:30-5."),
        (SHORT_MONDAY, "It is open every day, with extended hours on weekends."),
        (NO_MONDAY_TUESDAY, "They don't open on Mondays and Tuesdays."),
        # A bar that closes at half past ten closes at night.
        (LATE, "The bar is open from 7:00 AM to 10:30 PM every day."),
        (LATE, "It is open from 7:00 AM to 10:30 AM every day."),
    ],
)
def test_ways_to_tell_hours_that_are_not_the_same_every_day(hours, answer):
    assert flags(answer, hours) == []


@pytest.mark.parametrize(
    ("hours", "answer", "wrong"),
    [
        (SHUT_MONDAY, "It is open daily, with hours ranging from 9 am to 10 pm.", "9 am"),
        (SHUT_MONDAY, "It opens at 9:30 AM on weekdays.", "opens at 9:30 AM on weekdays"),
        (LATE_FRIDAY, "It is open from 11 am to 10 pm on weekends and 11 am to 8 pm on weekdays.",
         "11 am to 8 pm on weekdays"),
        (ALIKE, "It is open daily, with extended hours on weekends.", "extended hours on weekends"),
        (WEEKEND, "It has longer hours on weekends.", "longer hours on weekends"),
        (LATE, "It is open from 7:00 AM to 9:30 PM every day.", "9:30 PM"),
        (NO_SUNDAY, "They don't open on Saturdays.", "n't open on Saturdays"),
    ],
)  # fmt: skip
def test_hours_of_some_days_that_are_wrong(hours, answer, wrong):
    assert any(wrong in text or text in wrong for text, _ in flags(answer, hours))


def test_a_closing_time_that_may_mean_the_night_is_left_open():
    found = statements("It closes at 10:30 PM every day.", record(LATE))
    assert ("10:30 PM", "unchecked", "doubtful") in found
