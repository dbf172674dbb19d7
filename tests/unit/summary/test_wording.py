"""Every name that people meet has a label and one plain sentence."""

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

from callmark.records.report import GateOutcome, Policy, Status, Verdict
from callmark.records.statements import RULES as FLAG_RULES
from callmark.records.statements import StatementLabel, Tier
from callmark.summary import wording
from callmark.summary.gates import GATES, policy_sentence
from callmark.summary.metrics import DEFINITIONS, label_of, sentence_of
from callmark.summary.wording import LONGEST_LABEL, LONGEST_SENTENCE

SOURCE = Path(wording.__file__).parents[1]
EVERY = {
    f"{table}.{name}": words
    for table in ("METRICS", "POLICIES", "STATUSES", "VERDICTS", "LABELS", "TIERS", "RULES")
    for name, words in getattr(wording, table).items()
}
FOREIGN = re.compile(r"\b(rightly|mend\w*|stands? behind|speaks? of|otherwise than)\b", re.I)


def rules_in_the_source() -> set[str]:
    """The names that the rules give to what they find, whatever the label."""
    found = {"sum", "difference", "product", "ratio", "share", "average"}  # `Sum.rule`
    found |= {"gap", "mean", "part", "rest", "pair"}  # `how` of what records come to
    folders = (SOURCE / "grounding", SOURCE / "scorers")
    for path in (path for folder in folders for path in folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Tuple) and len(node.elts) == 2 and path.stem == "claims":
                first, second = (getattr(one, "value", None) for one in node.elts)
                if first in get_args(StatementLabel) and isinstance(second, str):
                    found.add(second)
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                at = {"found": 2, "StatementFinding": 3, "Worked": 0}.get(name)
                if at is not None and len(node.args) > at:
                    found |= {
                        one.value
                        for one in ast.walk(node.args[at])
                        if isinstance(one, ast.Constant) and isinstance(one.value, str)
                    }
    return found


def test_f56_every_gate_metric_policy_label_rule_status_and_verdict_has_its_words():
    names = {entry.name for entry in DEFINITIONS} | set(GATES) | {"chance_f1", "grounding_lift"}
    assert set(wording.METRICS) == names
    assert set(wording.POLICIES) == set(get_args(Policy))
    assert set(wording.STATUSES) == set(get_args(Status))
    assert set(wording.VERDICTS) == set(get_args(Verdict))
    assert set(wording.LABELS) == set(get_args(StatementLabel))
    assert set(wording.TIERS) == set(get_args(Tier))
    assert set(wording.RULES) == set(FLAG_RULES) | rules_in_the_source()


@pytest.mark.parametrize("name", EVERY)
def test_f56_a_label_is_short_and_a_sentence_is_one_plain_sentence(name: str):
    label, sentence = EVERY[name]
    assert 0 < len(label) <= LONGEST_LABEL
    assert not set(label) & set("_,;")  # labels stand in lists
    assert len(sentence.split()) <= LONGEST_SENTENCE
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert not FOREIGN.search(f"{label} {sentence}")


def test_f56_two_metrics_never_share_a_label():
    labels = [words.label for words in wording.METRICS.values()]
    assert len(set(labels)) == len(labels)


def outcome(policy: Policy, **more: object) -> GateOutcome:
    plain = {"op": ">=", "bound": 0.9, "n": 126, "source": "default", "loosened": False}
    return GateOutcome(
        name="g",
        status="fail",
        value=0.5,
        policy=policy,
        **{**plain, **more},  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("policy", "more", "said"),
    [
        ("hard_fail", {}, "fails below 0.9"),
        ("hard_fail", {"op": "=", "bound": 0}, "fails unless it is 0"),
        ("hard_fail", {"op": ">", "bound": 0}, "fails at 0 or below"),
        ("warning_only", {"op": "<="}, "warns above 0.9, never fails"),
        ("clear_fail", {}, "fails when clearly below 0.9, beyond what chance explains"),
        (
            "count_based_misses",
            {"misses": 9, "allowed": 7},
            "fails when more than 7 of 126 fall short and the mean is below 0.9",
        ),
    ],
)
def test_f56_a_policy_is_told_with_its_numbers(policy, more, said):
    assert policy_sentence(outcome(policy, **more)) == said


def test_a_measure_of_a_plugin_is_called_by_its_name():
    assert label_of("tone.polite") == "tone.polite"
    assert "plug-in" in sentence_of("tone.polite")


@pytest.mark.parametrize(
    ("page", "tables"),
    [
        ("metrics.md", ("METRICS",)),
        ("gates.md", ("POLICIES", "STATUSES", "VERDICTS")),
        ("scoring.md", ("LABELS", "RULES")),
    ],
)
def test_f56_the_docs_say_what_the_table_says(page, tables):
    text = (SOURCE.parents[1] / "docs" / page).read_text("utf-8")
    for table in tables:
        rows = [f"| `{key}` | {words.label} | {words.sentence} |" for key, words in
                getattr(wording, table).items()]  # fmt: skip
        assert "\n".join(rows) in text, f"{page}: the rows of {table} are not those of wording.py"
