"""Yes and no in domains that no rule was written for."""

import pytest
from tests.unit.grounding.asking import call, claims, item, statements, turns
from tests.yes_no_statements import SAID

RULES = ("polarity", "unknown", "denial")


def flags(answer, record):
    return [
        (text, rule)
        for text, label, rule in statements(answer, record)
        if rule in RULES and label in ("contradicted", "unsupported")
    ]


@pytest.mark.parametrize("row", range(len(SAID)))
def test_what_a_record_says_is_never_flagged(row):
    record, right, _ = SAID[row]
    assert [(answer, found) for answer in right if (found := flags(answer, record))] == []


@pytest.mark.parametrize("row", range(len(SAID)))
def test_what_says_otherwise_is_flagged(row):
    record, _, wrong = SAID[row]
    assert [answer for answer in wrong if not flags(answer, record)] == []


LINE = {"line_id": "L1001", "phone_number": "555-123-2001", "roaming_enabled": False}


@pytest.mark.parametrize(
    "answer",
    [
        "There is a line L1001 on your account with roaming currently disabled.",
        "Your line L1001 has roaming still off.",
    ],
)
def test_a_thing_that_is_off_now_is_denied(answer):
    assert ("roaming", "supported", "polarity") in statements(answer, LINE)


def test_a_check_of_any_data_does_not_say_that_nothing_is_known():
    line = {"line_id": "L1001", "data_saver_active": True}
    assert not statements("Check if any data limiting features are active.", line)


def report(told: str) -> list[str]:
    """The flags of an answer, after the user told this in his second message."""
    texts = ("", "Please look at your phone.", "Your mobile data is still disabled.")
    answer, ranges = turns(*texts)
    served = call({"customer_id": "C1", "account_status": "Active"}, turn=1)
    scores = claims(answer, served, of={**item(), "user_turns": [told]}, turns=ranges)
    return [one["rule"] for one in scores["statements"] if one["label"] == "contradicted"]


def test_what_the_user_reports_contradicts_no_record():
    assert report("Mobile data is disabled here.") == []
    assert report("I looked, it has two bars.") == ["state"]
    assert report("Is it disabled?") == ["state"]
