"""A rule is firm only while its counts carry it. Needs no data: the counts ship."""

from pathlib import Path

import msgspec
import pytest
from dev.agree.counts import Agreement, hash_of_rules
from dev.agree.page import document

from callmark.records.statements import (
    RULES,
    AgreementCounts,
    FlaggedTogether,
    PeoplesAnswers,
    RuleCounts,
    SourceCounts,
    earned_tier,
    unearned_tiers,
)
from callmark.scorers.score import SCORER_VERSION

DOCS = Path(__file__).parents[2] / "docs"
SHIPPED = msgspec.json.decode((DOCS / "agreement.json").read_bytes(), type=Agreement)


def judged(right, total, source="a", tuned=False):
    return SourceCounts(source=source, tuned=tuned, right=right, judged=total)


def planted(caught, total, flagged=0, answers=1000, source="a", tuned=False):
    return SourceCounts(
        source=source, tuned=tuned, caught=caught, planted=total, flagged=flagged, answers=answers
    )


@pytest.mark.parametrize(
    ("sources", "tier"),
    [
        # Judged flags: 40 of them, on two sources, and the lower bound is 0.75.
        ([judged(20, 20), judged(20, 20, "b")], "firm"),
        ([judged(19, 19), judged(20, 20, "b")], "advisory"),
        ([judged(40, 40)], "advisory"),
        ([judged(40, 40), judged(0, 0, "b")], "advisory"),
        ([judged(18, 20), judged(17, 20, "b")], "firm"),  # 35 of 40: 0.763
        ([judged(17, 20), judged(17, 20, "b")], "advisory"),  # 34 of 40: 0.735
        ([judged(40, 40, tuned=True), judged(40, 40, "b", tuned=True)], "advisory"),
        ([judged(40, 40, tuned=True), judged(20, 20, "b"), judged(20, 20, "c")], "firm"),
        # Planted mistakes: 200 on two sources, 0.8 caught, 0.5 % of right answers flagged.
        ([planted(80, 100), planted(80, 100, source="b")], "firm"),
        ([planted(79, 100), planted(80, 100, source="b")], "advisory"),
        ([planted(99, 99), planted(100, 100, source="b")], "advisory"),
        ([planted(200, 200)], "advisory"),
        ([planted(100, 100, 5), planted(100, 100, 5, source="b")], "firm"),
        ([planted(100, 100, 5), planted(100, 100, 6, source="b")], "advisory"),
        ([planted(100, 100, answers=0), planted(100, 100, answers=0, source="b")], "advisory"),
        ([planted(200, 200, tuned=True), planted(200, 200, source="b", tuned=True)], "advisory"),
        ([], "advisory"),
    ],
)
def test_what_earns_a_tier(sources, tier):
    assert earned_tier(sources) == tier


def counts(people=()):
    sources = (judged(20, 20), judged(20, 20, "b"))
    return AgreementCounts(
        scorer_version="1",
        rules_sha256="",
        rules=(RuleCounts(rule="good", label="altered", tier="firm", sources=sources),),
        people=people,
    )


def people(flagged, *, rules=("good",), tuned=False):
    return PeoplesAnswers(
        source="a",
        tuned=tuned,
        answers=100,
        flagged=(FlaggedTogether(rules=rules, answers=flagged),),
    )


def test_all_firm_rules_together_flag_two_per_cent_at_most():
    firm = {"good": "firm"}
    assert unearned_tiers(counts((people(2),)), firm) == []
    [problem] = unearned_tiers(counts((people(3),)), firm)
    assert problem.startswith("the firm rules together flag 3 of 100 answers")
    assert unearned_tiers(counts((people(3, rules=("other",)),)), firm) == []
    assert unearned_tiers(counts((people(3, tuned=True), people(0))), firm) == []
    [problem] = unearned_tiers(counts((people(0, tuned=True),)), firm)
    assert problem == "no answer that people judged right was looked at"


def test_a_rule_that_was_not_measured_is_not_firm():
    known = counts((people(0),))
    assert unearned_tiers(known, {"new": "advisory"}) == []
    assert unearned_tiers(known, {"new": "firm"}) == ["new: is firm, and was never measured"]


def test_the_counts_are_of_these_rules():
    assert SHIPPED.scorer_version == SCORER_VERSION, "the scorer is another one: run make agree"
    assert SHIPPED.rules_sha256 == hash_of_rules(), "the rules are others: run make agree"
    assert [one.rule for one in SHIPPED.rules] == list(RULES)


def test_every_tier_is_earned():
    assert unearned_tiers(SHIPPED, {rule.name: rule.tier for rule in RULES.values()}) == []


def test_the_page_is_that_of_the_counts():
    page = (DOCS / "agreement.md").read_text("utf-8")
    assert page == document(SHIPPED)
    assert page.index("## False alarms") < page.index("## What people marked")
