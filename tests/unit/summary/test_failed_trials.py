"""Why a trial failed, in words: every verdict that can go against it has its own."""

import msgspec
import pytest
from tests.builders import make_error, make_result, rules_with, served_call

from callmark.records.results import (
    ArgumentOrigin,
    CallDifferences,
    Copying,
    PrivacyFinding,
    PrivacyScore,
    Scores,
    Scoring,
    Statement,
)
from callmark.records.statements import RULES
from callmark.run.prepare import has_failed
from callmark.summary.failing import failure_kinds
from callmark.summary.reasons import why_failed

CARD = PrivacyFinding("card", "high", "answer", 0, 4, echoed=False)
MAIL = PrivacyFinding("email", "medium", "call 1", 0, 4, echoed=True)
NOTE = PrivacyFinding("uuid", "low", "answer", 0, 4, echoed=False)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"json_args_valid": False}, "invalid arguments"),
        ({"multi_call_parity_ok": False}, "not the expected calls"),
        ({"recovered": False}, "did not recover from an error"),
        ({"negative_control_ok": False}, "stated something that no tool had found"),
        ({"clarify_ok": False}, "did not ask back"),
        ({"locale_probe_ok": False}, "a number or date read in another locale"),
        ({"privacy_ok": False}, "privacy"),
        ({"controls_with_integration": 1}, "a control with a call or an integration"),
        ({"unresolved": True}, "a call without a fixture"),
        ({"call_f1": 0.5}, "call F1 0.500"),
        ({"answered": False}, "no answer after the last result"),
        (
            {"copying": Copying(18, 20, 12)},
            "the results are repeated: 18 of 20 leaves, 12 characters of JSON word for word",
        ),
        (
            {"f1": 0.5, "values": {"unsupported": 2}},
            "F1 0.500: 1 of 1 spans grounded, 1 of 1 facts found, 2 values that no result supports",
        ),
        (
            {"f1": 0.5, "values": {"unsupported": 1}},
            "F1 0.500: 1 of 1 spans grounded, 1 of 1 facts found, 1 value that no result supports",
        ),
    ],
)
def test_each_verdict_has_its_sentence(changes, reason):
    result = make_result(**changes)
    assert why_failed(result) == (reason,)
    assert has_failed(result)


@pytest.mark.parametrize(
    ("changes", "gate"),
    [
        ({"clarify_ok": False}, "clarify_ok_rate"),
        ({"recovered": False}, "error_recovery_rate"),
        ({"locale_probe_ok": False}, "locale_probe_ok_rate"),
        ({"call_f1": 0.0}, "call_f1_macro"),
    ],
)
def test_f24_what_only_warns_is_no_failure(changes, gate):
    result = make_result(**changes)
    assert why_failed(result)
    assert why_failed(result, {gate}) == ()
    assert not has_failed(result, {gate})


@pytest.mark.parametrize(
    "changes", [{}, {"f1": 0.9}, {"kind": "control"}, {"kind": "control", "f1": 0.0}]
)
def test_what_went_well_has_none(changes):
    assert why_failed(make_result(**changes)) == ()
    assert not has_failed(make_result(**changes))


def test_every_verdict_of_the_scores_is_asked():
    """A new yes or no of a trial belongs here too."""
    asked = {
        "json_args_valid", "multi_call_parity_ok", "recovered", "negative_control_ok", "clarify_ok",
        "locale_probe_ok", "privacy_ok", "unresolved", "checks_ok", "answered",
    }  # fmt: skip
    told = {"gave_up_honestly", "strict_keys"}  # reported apart, no fault
    hints = {name for name, kind in Scores.__annotations__.items() if str(kind).startswith("bool")}
    assert hints == asked | told


def flag(rule="value", tier="firm", because="says “57”; nothing served that"):
    label = RULES[rule].label
    return Statement(start=0, end=2, label=label, rule=rule, tier=tier, because=because)


def test_a_firm_flag_is_the_reason_in_its_own_words():
    result = make_result(statements=(flag(), flag(tier="advisory")), trace=[served_call()])
    assert why_failed(result) == ("unsupported: says “57”; nothing served that",)
    assert why_failed(result, {"flagged_sample_rate"}) == ()
    many = make_result(statements=(flag(),) * 5, trace=[served_call()])
    assert [one.endswith(" …") for one in why_failed(many)] == [False, False, True]


@pytest.mark.parametrize(
    "changes",
    [
        {"statements": (flag(tier="advisory"),), "trace": [served_call()]},
        {"statements": (flag(),)},  # nothing was served: other gates judge that
        {"f1": 0.0, "recall_kind": "presence"},  # claims without facts: no F1 is asked for
        {"copying": Copying(16, 20, 199)},
        {"copying": Copying(19, 19, 500)},  # too little was served to tell
        {"copying": Copying(20, 20), "recall_kind": "presence"},
        {"answered": True},
        {"arguments": (ArgumentOrigin(call=0, path="/q", origin="invented"),)},
    ],
)
def test_what_is_no_fault_of_statements(changes):
    assert why_failed(make_result(**changes)) == ()


def test_invented_arguments_are_a_fault_where_a_gate_asks_for_them():
    made_up = (ArgumentOrigin(call=0, path="/q", origin="invented"),)
    rules = {rule.name: rule for rule in rules_with(invented_argument_rate=0.1)}
    [reason] = why_failed(make_result(arguments=made_up), (), rules)
    assert reason == "arguments that nobody said and no result served: call 0 /q"


def test_a_lost_trial_says_what_was_lost():
    assert why_failed(make_error()) == ("not scored: timeout",)


def test_calls_and_schema_errors_are_named_the_first_of_them():
    result = make_result(multi_call_parity_ok=False, json_args_valid=False)
    calls = msgspec.structs.replace(
        result.scores.calls,
        errors=("call 0: /q: missing", "call 1: /q: missing"),
        differences=CallDifferences(("a {}",), ("b {}",), ("c {} instead of d {}",), True),
    )
    scores = msgspec.structs.replace(result.scores, calls=calls)
    assert why_failed(msgspec.structs.replace(result, scores=scores)) == (
        "invalid arguments: call 0: /q: missing; call 1: /q: missing",
        "not the expected calls: missing a {}; extra b {}; differs c {} instead of d {} …",
    )


@pytest.mark.parametrize(
    ("echo", "reason"),
    [
        ("allow", "privacy: card in answer; invented URL http://x"),
        ("deny", "privacy: card in answer; email in call 1; invented URL http://x"),
    ],
)
def test_a_breach_is_named_by_kind_and_never_quoted(echo, reason):
    found = PrivacyScore(False, (CARD, MAIL, NOTE), ("http://x",))
    result = make_result(privacy_ok=False, privacy=found)
    scoring = Scoring(privacy_echo=echo)
    assert why_failed(msgspec.structs.replace(result, scoring=scoring)) == (reason,)


def test_f56_missing_facts_are_named():
    said = {"metadata": {"required_facts": ["gate B12", 45]}, "f1": 0.5}
    (reason,) = why_failed(make_result(**said, missing_facts=(0,)))
    assert reason.endswith('facts found; missing: "gate B12"')
    (reason,) = why_failed(make_result(**said, missing_facts=(0, 1), values={"unsupported": 1}))
    assert '; missing: "gate B12", 45; 1 value that' in reason
    # A line that somebody edited names no fact that is not there.
    (reason,) = why_failed(make_result(**said, missing_facts=(7,)))
    assert "missing" not in reason


def test_calls_and_arguments_that_are_wrong_have_a_kind_by_their_tool():
    fine = msgspec.structs.replace(served_call(), schema_errors=())
    broken = msgspec.structs.replace(served_call("book"), schema_errors=("/days: is missing",))
    refused = msgspec.structs.replace(served_call("fly"), status="tool_not_offered")
    result = make_result(
        trace=(fine, broken, served_call("bar"), refused),
        json_args_valid=False,
        arguments=(
            ArgumentOrigin(call=0, path="/q", origin="invented"),
            ArgumentOrigin(call=1, path="/days", origin="said"),
        ),
    )
    assert failure_kinds(result, ()) == (
        "invalid call of `book`",
        "invalid call of `bar`",
        "invalid call of `fly`",
        "argument from nowhere for `web.search`",
    )
    assert failure_kinds(make_result(trace=(fine, served_call("bar"))), ()) == ()
