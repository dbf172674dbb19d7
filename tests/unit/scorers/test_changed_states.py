"""What a call changed need not be so any more; what a person is asked to check is no claim."""

import pytest
from tests.unit.grounding.asking import call, score

LINE = call({"line": "L1", "roaming_enabled": False, "data_saver": True}, "get_line", {"id": "L1"})
ENABLE = call({"status": "ok"}, "enable_roaming", {"id": "L1"})


def rules(answer: str, *calls: dict) -> set[tuple[str, str]]:
    return {(one["label"], one["rule"]) for one in score(answer, *calls)["statements"]}


def test_a_state_that_a_call_changed_is_not_contradicted():
    assert ("contradicted", "polarity") in rules("Roaming is enabled on your line.", LINE)
    after = rules("Roaming is enabled on your line.", LINE, ENABLE)
    assert ("contradicted", "polarity") not in after
    assert ("unchecked", "changed") in after


def test_another_call_changes_nothing_of_it():
    other = call({"status": "ok"}, "enable_wifi", {"id": "L1"})
    assert ("contradicted", "polarity") in rules("Roaming is enabled on your line.", LINE, other)


@pytest.mark.parametrize(
    "answer",
    ["Please check whether roaming is enabled.", "Make sure that roaming is enabled."],
)
def test_what_a_person_shall_check_is_no_claim(answer):
    assert ("contradicted", "polarity") not in rules(answer, LINE)


@pytest.mark.parametrize(
    "answer",
    ["I can confirm that roaming is enabled.", "To confirm: your line has roaming enabled."],
)
def test_what_is_confirmed_is_a_claim(answer):
    assert ("contradicted", "polarity") in rules(answer, LINE)
