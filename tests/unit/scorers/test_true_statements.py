"""What is true gets a good label and no flag, in whatever form; what is wrong is caught."""

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.result_worlds import make_results
from tests.true_statements import FORMS, Statement, write_true
from tests.unit.grounding.asking import statements
from tests.wrong_statements import WRONG, write_wrong

from callmark.records.statements import FLAGS, GOOD, RULES

RECKONED = Path(__file__).parents[2] / "golden" / "reckoned_statements.jsonl"
EVERYDAY = Path(__file__).parents[2] / "golden" / "everyday_answers.jsonl"
MOST_FLAGGED = 48
MOST_FLAGGED_FIRMLY = 2
PASSED_AT_LEAST = 0.98
CAUGHT_AT_LEAST = 0.90


def labels_of(one: Statement) -> set[str]:
    metadata = {"locale": one.locale} if one.locale else {}
    found = statements(one.text, one.result, prompt=one.prompt, **metadata)
    return {label for _, label, _ in found}


def passes(one: Statement) -> bool:
    """A value that no rule could decide is no pass, whatever else the sentence says."""
    labels = labels_of(one)
    return bool(labels & GOOD) and not labels & (FLAGS | {"unchecked", "not_claimed"})


def test_a_thousand_true_statements_pass_in_every_form():
    made: Counter[str] = Counter()
    failed = []
    for one in write_true(make_results(3, 70), seed=11, per_form=12):
        made[one.form] += 1
        if not passes(one):
            failed.append((one.form, one.text, labels_of(one)))
    assert len(made) == len(FORMS) >= 40
    assert made.total() >= 1000
    assert 1 - len(failed) / made.total() >= PASSED_AT_LEAST, failed
    worst = Counter(form for form, _, _ in failed)
    assert all(made[form] - many >= made[form] / 2 for form, many in worst.items()), failed


@pytest.mark.parametrize("kind", WRONG)
def test_the_same_made_wrong_is_caught(kind):
    written = [one for one in write_wrong(make_results(4, 70), 12, 30) if one.form == kind]
    missed = [one.text for one in written if not labels_of(one) & FLAGS]
    assert len(written) >= 10
    assert 1 - len(missed) / len(written) >= CAUGHT_AT_LEAST, missed


def test_what_follows_in_one_step_is_seldom_flagged_and_never_firmly():
    """By an author who saw no rule, 8 rows of each of 20 kinds. Every second row was looked at when
    rules were mended (3 of 80 right ones flagged), the others were not (12 of 80)."""
    rows = [json.loads(line) for line in RECKONED.read_text("utf-8").splitlines()]
    flags = {
        side: [
            [rule for _, label, rule in statements(row[side], row["result"]) if label in FLAGS]
            for row in rows
        ]
        for side in ("right", "wrong")
    }
    assert len(rows) == 160
    assert sum(map(bool, flags["right"])) <= 12
    assert not any(RULES[rule].tier == "firm" for rules in flags["right"] for rule in rules)
    # A flag on both sides tells nothing apart. One such (`3 parcels on the road`, of five) went from
    # both sides, which made 109 wrong ones with a flag 108.
    both = zip(flags["right"], flags["wrong"], strict=True)
    assert sum(bool(wrong) and not right for right, wrong in both) >= 97
    assert sum(map(bool, flags["wrong"])) >= 108


def test_short_everyday_answers_are_seldom_flagged():
    """200 right answers of one to four sentences by an author who saw no rule, to results as
    services send them. Rules were mended while looking at three of four of them: before, 77 had a
    flag, 9 of them a firm one."""
    flagged = firmly = told = 0
    for line in EVERYDAY.read_text("utf-8").splitlines():
        row = json.loads(line)
        found = statements(row["answer"], *row["results"], prompt=row["prompt"])
        told += len(found)
        rules = [rule for _, label, rule in found if label in FLAGS]
        flagged += bool(rules)
        firmly += any(RULES[rule].tier == "firm" for rule in rules)
    assert told > 1100
    assert flagged <= MOST_FLAGGED
    assert firmly <= MOST_FLAGGED_FIRMLY
