"""Comparisons as people read them: nothing of a sample's name steers a terminal or a page."""

import re

import msgspec
import pytest

from callmark.compare.records import (
    Compared,
    Comparison,
    Flips,
    Listed,
    PairCounts,
    PointCheck,
    SideFacts,
)
from callmark.reports.compare import comparison_blocks, comparison_markdown
from callmark.reports.layout import plain_text

HOSTILE = "\x1b[31m<script>`|**@me\n# x\u202e"
ONE = Compared(
    metric="valid_call_rate",
    role="primary",
    better_is="higher",
    a=1.0,
    b=0.9,
    difference=-0.1,
    ci_95=(-0.2, 0.0),
    n=30,
    worse=3,
    better=0,
    p=0.0004,
    p_adjusted=0.0004,
    decision="regression",
)
COMPARISON = Comparison(
    decision="regression",
    decision_reason="worse: valid_call_rate",
    paired=True,
    a=SideFacts(path="a.jsonl"),
    b=SideFacts(path=HOSTILE),
    comparable={},
    common=True,
    pairs=PairCounts(
        paired=30,
        changed=Listed(1, (HOSTILE,)),
        changed_in={"item": 1},
        added=Listed(2000, tuple(f"n{at}" for at in range(1000))),
    ),
    primary=(ONE,),
    exploratory=(msgspec.structs.replace(ONE, metric="call_f1_macro", role="exploratory", p=None),),
    by_tool={HOSTILE: (ONE,)},
    flips={"valid_call_rate": Flips(Listed(1, (HOSTILE,)), Listed())},
    point_check=PointCheck(
        metric="integration_f1_macro_lax", delta=0.0300004, limit=0.03, ok=False
    ),
    warnings=(f"1 samples are only in A: {HOSTILE}",),
)


def test_the_terminal_shows_all_of_it_and_no_control_character():
    text = plain_text(comparison_blocks(COMPARISON))
    assert text.startswith("REGRESSION  worse: samples with only valid calls\n")
    assert "\x1b" not in text
    assert "\u202e" not in text
    for part in (
        "samples with only valid calls  1.000  0.900  -0.100  30  WORSE",
        "95 % interval -0.200 to +0.000; 3 worse, 0 better; p < 0.001 (Holm)",
        "left out: 2000 added, 0 removed, 1 changed samples",
        "n5 and 1994 more",
        "point check exceeded: answers built on results differs by 0.0300004",
    ):
        assert part in text, text
    assert "not tested" in plain_text(comparison_blocks(COMPARISON, verbose=True))


@pytest.mark.parametrize(
    ("ok", "word", "sign"), [(True, "OK", "✅"), (False, "EXCEEDED", "❌"), (None, "NOT COMPUTABLE", "⚠️")]
)  # fmt: skip
def test_a_point_check_leads_unless_the_tests_found_a_regression(ok, word, sign):
    check = PointCheck(metric="f1", delta=0.01, limit=0.03, ok=ok)
    asked = msgspec.structs.replace(
        COMPARISON, decision="inconclusive", decision_reason="open: f1", point_check=check
    )
    text = plain_text(comparison_blocks(asked))
    assert text.startswith(f"POINT CHECK {word}  f1 differs by 0.010, 0.03 is allowed")
    assert "\n  the tests: inconclusive; open: f1\n" in text
    assert "INCONCLUSIVE" not in text
    assert comparison_markdown(asked).startswith(
        f"### {sign} Point check {word.lower()}: f1 differs"
    )


def test_markdown_is_a_table_that_no_name_breaks():
    text = comparison_markdown(COMPARISON)
    assert text.startswith("### ❌ Regression: worse: samples with only valid calls\n")
    assert "<script>" not in re.sub("`[^`]*`", "", text)
    assert "\x1b" not in text
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) == 3
    for rows in tables:
        assert len({row.count("|") for row in rows}) == 1, rows
    assert "- and 1950 more" in text


@pytest.mark.parametrize("field", ["primary", "exploratory"])
def test_nothing_to_show_is_no_table(field):
    bare = msgspec.structs.replace(
        COMPARISON, primary=(), exploratory=(), by_tool={}, flips={}, common=False, point_check=None
    )
    text = plain_text(comparison_blocks(bare))
    assert field not in text
    assert "|" not in comparison_markdown(msgspec.structs.replace(bare, b=bare.a, warnings=()))


def test_reports_that_are_not_paired_say_so():
    alone = msgspec.structs.replace(COMPARISON, paired=False, decision="inconclusive")
    assert "not paired: these are differences of two reports" in plain_text(
        comparison_blocks(alone)
    )


def test_a_headline_does_not_say_it_twice():
    fine = msgspec.structs.replace(
        COMPARISON,
        decision="non_inferior",
        decision_reason="not worse: valid_call_rate",
        point_check=None,
    )
    assert comparison_markdown(fine).startswith("### ✅ Not worse: samples with only valid calls\n")
