"""Yes and no in domains that no rule was written for."""

import pytest
from tests.unit.grounding.asking import statements
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
