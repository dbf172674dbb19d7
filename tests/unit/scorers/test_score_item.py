"""The scorer's front door: plain JSON in and out, whatever the model did."""

import json

import pytest
from tests.unit.grounding.asking import call, item, score

import callmark
from callmark.errors import UsageError

FIELDS = {
    "kind", "span_extractor", "spans", "spans_total", "spans_over_cap", "spans_counted", "recall_kind", "facts_required",
    "lax", "strict", "values", "calls", "call_f1", "multi_call_parity_ok", "json_args_valid", "recovered",
    "gave_up_honestly", "controls_with_integration", "negative_control_ok", "clarify_ok", "locale_probe_ok", "unresolved", "strict_keys",
    "privacy_ok", "privacy", "checks_ok", "checks", "statements", "copying", "arguments", "answered",
}  # fmt: skip


def test_scores_are_plain_json_with_every_field():
    scores = score("Integration: there are 42.", call({"count": 42}))
    assert set(scores) == FIELDS
    assert json.loads(json.dumps(scores)) == scores


def test_one_input_gives_one_output():
    arguments = ("Integration: 42 and 77 “x y”.", call({"count": 42, "b": [1, 2]}))
    assert score(*arguments) == score(*arguments)


def test_the_inputs_are_not_changed():
    of, trace = item(required_facts=[42]), [call({"count": [42, {"a": None}]})]
    before = json.dumps([of, trace])
    callmark.score_item(of, "Integration: 42.", trace)
    assert json.dumps([of, trace]) == before


@pytest.mark.parametrize(
    "metadata",
    [{}, None, {"call_sequence": None}, {"call_sequence": ["web.search"]}, {"tools": []}],
)
def test_d36_nulls_and_short_forms_do_not_crash(metadata):
    assert (
        callmark.score_item({"prompt": "x", "metadata": metadata}, None, None)["spans_total"] == 0
    )
    assert (
        callmark.score_item({"prompt": "x", "metadata": metadata}, "Integration: 42.", [])[
            "spans_total"
        ]
        == 1
    )


@pytest.mark.parametrize(
    "entry", [None, 5, "x", [], {}, {"name": 5}, {"name": "x", "arguments": "y"}, {"arguments": {}}]
)
def test_a_strange_trace_entry_is_a_malformed_attempt(entry):
    scores = score("Integration: 42.", entry)
    assert scores["calls"]["attempts"] == 1
    assert scores["json_args_valid"] is False
    assert scores["lax"]["f1"] == 0


def test_an_unknown_extractor_is_the_callers_mistake():
    with pytest.raises(UsageError, match="span_extractor"):
        score("x", span_extractor="auto")


def test_lone_surrogates_do_not_crash():
    scores = score("Integration: \ud800 42.", call({"count": 42, "x": "\udfff"}))
    assert scores["lax"]["f1"] == 1


def test_a6_parity_flips_with_order_number_and_name():
    two = item(call_sequence=[{"name": "web.search"}, {"name": "web.open"}])
    search, opened = (
        call({"n": 1}, turn=1),
        call({"n": 1}, name="web.open", arguments={"url": "https://example.com"}, turn=2),
    )
    assert score("", search, opened, of=two)["multi_call_parity_ok"] is True
    swapped = [{**opened, "turn": 1}, {**search, "turn": 2}]
    assert score("", *swapped, of=two)["multi_call_parity_ok"] is False
    assert score("", search, of=two)["multi_call_parity_ok"] is False
    assert score("", search, opened, opened, of=two)["multi_call_parity_ok"] is False
    assert (
        score("", {**search, "turn": 1}, {**opened, "turn": 1}, of=two)["multi_call_parity_ok"]
        is True
    )


def test_a7_arguments_are_checked_against_the_schema():
    assert score("", call({"n": 1}, arguments={"q": "x", "top_k": 3}))["json_args_valid"] is True
    assert (
        score("", call({"n": 1}, arguments={"q": "x", "top_k": True}))["json_args_valid"] is False
    )
    assert score("", call({"n": 1}, arguments={}))["json_args_valid"] is False
    assert score("")["json_args_valid"] is None


def test_a8_recovery_needs_a_later_call_that_was_served():
    of = item(
        expected_behaviour="retry", call_sequence=[{"name": "web.search"}, {"name": "web.search"}]
    )
    bad = call({"ok": False, "error": "bad query"}, arguments={"q": "x"}, turn=1)
    good = call({"ok": True, "n": 1}, arguments={"q": "y"}, turn=2)
    assert score("", bad, good, of=of)["recovered"] is True
    assert score("", bad, of=of)["recovered"] is False
    assert score("It failed.", bad, of=of)["gave_up_honestly"] is True
    assert score("All fine.", bad, of=of)["gave_up_honestly"] is False


def test_d33_call_f1_compares_arguments_and_number():
    of = item(call_sequence=[{"name": "web.search", "arguments": {"q": "rope"}}])
    assert score("", call({}, arguments={"q": " Rope "}), of=of)["call_f1"] in (1.0, 0.0)
    assert score("", call({}, arguments={"q": "rope"}), of=of)["call_f1"] == 1
    assert score("", call({}, arguments={"q": "other"}), of=of)["call_f1"] == 0
    assert 0 < score("", *[call({}, arguments={"q": "rope"})] * 5, of=of)["call_f1"] < 1
    assert score("", of=of)["call_f1"] == 0


def test_lone_surrogates_in_a_matched_leaf_do_not_crash():
    assert score("Integration: it is 42.", call({"count": "\ud800 42"}))["lax"]["f1"] == 1
    assert callmark.ground("it is 42", [{"count": "\ud800 42"}])["lax"]


def test_a_refund_that_was_issued_admits_no_failure():
    of = item(expected_behaviour="retry", call_sequence=[{"name": "web.search"}] * 2)
    bad = call({"ok": False, "error": "bad query"}, turn=1)
    assert score("The refund has been issued.", bad, of=of)["gave_up_honestly"] is False
