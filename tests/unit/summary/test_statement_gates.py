"""Statements in the aggregates: who is counted, what the gates make of it, what n can tell."""

from math import comb

import msgspec
import pytest
from tests.builders import make_error, make_result, rules_with, served_call
from tests.pace import few

from callmark.records.report import Power, ReportHeader, exit_code
from callmark.records.results import ArgumentOrigin, Copying, Grounding, Statement
from callmark.records.statements import RULES, StatementLabel
from callmark.stats.estimates import Z_ONE_SIDED, wilson
from callmark.summary import metrics
from callmark.summary.summary import Scope, Summariser

NO_FACTS = {"recall_kind": "presence"}


def say(label: StatementLabel, *, rule: str = "match", tier=None) -> Statement:
    return Statement(start=0, end=1, label=label, rule=rule, tier=tier, because="says so")


RIGHT = say("supported")
FIRM = say("unsupported", rule="value", tier="firm")
ADVISORY = say("contradicted", rule="polarity", tier="advisory")
UNCHECKED = say("unchecked", rule="small number")


def stating(at: int, *statements: Statement, served: bool = True, **more: object):
    trace = [served_call()] if served else []
    return make_result(at, statements=statements, trace=trace, **more)


def report_of(results, rules=None, **more):
    summariser = Summariser()
    for result in results:
        summariser.add(result)
    return summariser.report(ReportHeader(), rules_with() if rules is None else rules, **more)


def gate(report, name="flagged_sample_rate"):
    return next(one for one in report.gates if one.name == name)


def flags(n: int, wrong: int, **more):
    return [stating(at, FIRM if at < wrong else RIGHT, **more) for at in range(n)]


def test_a_checked_statement_has_a_good_label_or_a_firm_flag():
    results = [
        stating(0, RIGHT, FIRM),
        stating(1, RIGHT, ADVISORY, UNCHECKED),
        stating(2, ADVISORY),  # an advisory rule alone has checked nothing
        stating(3, UNCHECKED),
        stating(4, say("user_said"), say("not_claimed")),
        stating(5),
        stating(6, FIRM, served=False),
        stating(7, say("derived"), kind="negative_control"),
        stating(8, FIRM, kind="unclassified"),
    ]
    rate = report_of(results).metrics["flagged_sample_rate"]
    assert (rate.numerator, rate.denominator, rate.n) == (2, 4, 4)


def test_a_result_that_stood_in_the_prompt_is_served():
    prompt = [{"role": "user", "content": "?"}, {"role": "tool", "content": "{}"}]
    result = msgspec.structs.replace(stating(0, FIRM, served=False), prompt=prompt)
    assert report_of([result]).metrics["flagged_sample_rate"].value == 1.0


def test_trials_are_averaged_within_their_sample():
    trials = [stating(0, FIRM), stating(0, RIGHT, trial=1), stating(0, UNCHECKED, trial=2)]
    rate = report_of([*trials, stating(1, RIGHT), stating(1, RIGHT, trial=1)]).metrics
    assert (rate["flagged_sample_rate"].value, rate["flagged_sample_rate"].n) == (0.25, 2)


def test_every_label_and_rule_is_counted_firm_and_advisory_apart():
    results = [stating(0, RIGHT, FIRM, ADVISORY), stating(1, FIRM, UNCHECKED)]
    counts = report_of(results).statements
    assert counts.labels == {"contradicted": 1, "supported": 1, "unchecked": 1, "unsupported": 2}
    assert (counts.firm, counts.advisory) == ({"value": 2}, {"polarity": 1})


def test_unchecked_share_leaves_out_what_is_not_claimed():
    results = [stating(0, RIGHT, UNCHECKED, say("user_said")), stating(1, ADVISORY, FIRM)]
    share = report_of(results).metrics["unchecked_share"]
    assert (share.numerator, share.denominator, share.n) == (1, 4, 2)


def test_arguments_and_their_origins():
    made = [ArgumentOrigin(call=0, path=f"/{one}", origin=one) for one in ("said", "invented")]
    results = [make_result(0, arguments=tuple(made)), make_result(1, arguments=(made[0],))]
    report = report_of([*results, make_result(2)])
    rate = report.metrics["invented_argument_rate"]
    assert (rate.numerator, rate.denominator, rate.n) == (1, 3, 2)
    assert report.statements.origins == {"invented": 1, "said": 2}
    assert "invented_argument_rate" not in {one.name for one in report.gates}
    asked = rules_with(invented_argument_rate=0.2)
    many = [make_result(at, arguments=tuple(made)) for at in range(20)]
    assert gate(report_of(many, asked), "invented_argument_rate").status == "fail"
    assert report_of(many, asked).failing["invented_argument_rate"].count == 20


@pytest.mark.parametrize(
    ("copying", "facts", "value"),
    [
        (Copying(16, 20), True, 1.0),
        (Copying(17, 20), True, 0.0),
        (Copying(2, 20, 200), True, 0.0),
        (Copying(2, 20, 199), True, 1.0),
        (Copying(19, 19), True, None),
        # Equal leaves are one: of many, so many may be repeated.
        (Copying(19, 19, served=44), True, 0.0),
        (Copying(12, 19, served=44), True, 1.0),
        (Copying(9, 9, served=44), True, None),
        (Copying(20, 20), False, None),
        (None, True, None),
    ],
)
def test_f26_a_dump_of_the_results_is_no_answer(copying, facts, value):
    more = {} if facts else NO_FACTS
    results = [make_result(at, copying=copying, **more) for at in range(20)]
    report = report_of(results)
    assert report.metrics["copy_ratio_ok_rate"].value == value
    status = {1.0: "pass", 0.0: "fail", None: "n/a"}[value]
    assert gate(report, "copy_ratio_ok_rate").status == status
    ratio = None if copying is None else copying.ratio
    assert report.metrics["copy_ratio"].value == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("required", "stated", "value"),
    [(34, 34, 1.0), (30, 34, 1.0), (28, 34, 1.0), (2, 34, 0.0), (2, 29, 0.0), (20, 34, 0.0)],
)
def test_what_is_required_is_no_copy(required, stated, value):
    lax = Grounding(precision=1.0, recall=1.0, f1=1.0, grounded=1, found=required)
    facts = {"facts_required": required, "lax": lax}
    results = [make_result(at, copying=Copying(stated, 34), **facts) for at in range(20)]
    assert report_of(results).metrics["copy_ratio_ok_rate"].value == value


def test_answers_are_asked_for_after_the_last_result():
    results = [make_result(at, answered=at > 5) for at in range(20)]
    report = report_of([*results, make_result(20)])
    rate = report.metrics["answered_rate"]
    assert (rate.numerator, rate.denominator) == (14, 20)
    assert gate(report, "answered_rate").status == "fail"
    assert report.failing["answered_rate"].count == 6


def test_claims_without_facts_are_not_judged_by_their_integration():
    plain = [stating(at, RIGHT, f1=0.0, spans=0, **NO_FACTS) for at in range(20)]
    report = report_of(plain)
    for name, metric in report.metrics.items():
        if name.startswith("integration_") or name == "grounded_coverage":
            assert (metric.value, metric.n) == (None, 0), name
            assert name not in report.failing
    for name in ("integration_f1_macro_lax", "integration_coverage", "grounded_coverage"):
        assert gate(report, name).status == "n/a"
        assert gate(report, name).reason == metrics.NOT_INTEGRATED
    assert report.per_tool_deltas == {}
    assert report.verdict == "pass"
    one = report_of([*plain, make_result(20)]).metrics["integration_f1_macro_lax"]
    assert (one.value, one.n) == (1.0, 1)
    marked = report_of([make_result(at, extractor="marker", **NO_FACTS) for at in range(20)])
    assert marked.metrics["integration_f1_macro_lax"].n == 20


def test_integration_that_was_lost_is_open_and_not_absent():
    lost = report_of([make_error(0)], scope=Scope(errors_allowed=1))
    assert gate(lost, "integration_f1_macro_lax").status == "inconclusive"


@pytest.mark.parametrize(
    ("wrong", "status"), [(0, "pass"), (2, "pass"), (3, "warn"), (13, "warn"), (16, "fail")]
)
def test_flagged_samples_warn_at_a_twentieth_and_fail_clearly_above_a_quarter(wrong, status):
    outcome = gate(report_of(flags(40, wrong)))
    assert (outcome.status, outcome.value, outcome.bound) == (status, wrong / 40, 0.25)
    assert (status == "fail") == (wilson(wrong, 40, Z_ONE_SIDED)[0] > 0.25)
    if wrong == 3:
        assert outcome.reason == "the value is beyond 0.05, where it warns"


def test_fewer_than_fifteen_checked_samples_or_much_unchecked_leave_the_gate_open():
    few = [*flags(14, 14), *(stating(at, UNCHECKED) for at in range(14, 20))]
    outcome = gate(report_of(few))
    assert (outcome.status, outcome.n) == ("inconclusive", 14)
    vague = [stating(at, RIGHT, UNCHECKED, UNCHECKED) for at in range(20)]
    outcome = gate(report_of(vague))
    assert outcome.status == "inconclusive"
    assert "0.67 of the statements could not be checked" in outcome.reason
    half = [stating(at, RIGHT, UNCHECKED) for at in range(20)]
    assert gate(report_of(half)).status == "pass"


def test_with_no_firm_rule_the_gate_is_not_applicable(monkeypatch):
    soft = {name: rule._replace(tier="advisory") for name, rule in RULES.items()}
    monkeypatch.setattr(metrics, "RULES", soft)
    outcome = gate(report_of(flags(20, 0)))
    assert (outcome.status, outcome.reason) == ("n/a", metrics.NO_FIRM_RULE)


def test_f3_recorded_answers_are_judged_by_their_flags():
    """Nothing is expected of them: their statements are all there is."""
    logs = {"kind": "unclassified"}
    good, bad = report_of(flags(20, 0, **logs)), report_of(flags(20, 15, **logs))
    assert (good.verdict, exit_code(good)) == ("pass", 0)
    assert (bad.verdict, exit_code(bad)) == ("fail", 1)
    some = report_of(flags(20, 4, **logs))
    assert (some.verdict, exit_code(some)) == ("inconclusive", 5)
    assert "flagged_sample_rate warned" in some.verdict_reason
    silent = report_of([stating(at, **logs) for at in range(20)])
    assert gate(silent).status == "inconclusive"
    assert silent.verdict == "inconclusive"


def test_a_firm_flag_fails_a_trial_of_several():
    trials = [stating(0, RIGHT, **NO_FACTS), stating(0, FIRM, trial=1, **NO_FACTS)]
    assert report_of(trials).repeat.pass_at_1.value == 0.5
    wrong = [make_result(0, call_f1=0.0, **NO_FACTS), make_result(0, trial=1, **NO_FACTS)]
    assert report_of(wrong).repeat.pass_at_1.value == 0.5


def power(results, rules=None) -> Power | None:
    return report_of(results, rules).power


def test_what_forty_samples_can_tell():
    found = power([make_result(at) for at in range(40)])
    assert (found.gate, found.n) == ("integration_f1_macro_lax", 40)
    shown = {one.rate: round(100 * one.fails, 1) for one in found.at}
    assert shown == {0.8: 92.4, 0.9: 37.1, 0.98: 0.1}


def test_power_is_that_of_the_first_gate_that_could_prove_the_model():
    found = power(flags(40, 0, **NO_FACTS))
    assert found.gate == "flagged_sample_rate"
    assert [one.rate for one in found.at] == [0.35, 0.25, 0.05]
    at_bound = next(one.fails for one in found.at if one.rate == 0.25)
    assert 0 < at_bound < 0.06  # what clear_fail is for
    assert power([make_result(at) for at in range(14)]) is None
    assert power([make_result(at, "control") for at in range(40)]) is None
    off = rules_with(
        integration_f1_macro_lax={"policy": "warning_only"},
        call_f1_macro={"policy": "warning_only"},
    )
    assert power([make_result(at) for at in range(40)], off) is None


@pytest.mark.parametrize("policy", ["hard_fail", "count_based_misses", "clear_fail", "confident"])
@pytest.mark.parametrize("n", few([40, 15, 200]))
def test_power_counts_exactly_what_the_gate_would_say(policy, n):
    """Every number of misses is judged by the gate itself, and weighed by its chance."""
    rules = [
        rule
        for rule in rules_with(checks_ok_rate={"bound": 0.9, "policy": policy})
        if rule.name == "checks_ok_rate"
    ]
    checks = {"checks": [{"contains": "x"}]}

    def fails(misses):
        results = [make_result(at, checks_ok=at >= misses, metadata=checks) for at in range(n)]
        return report_of(results, rules).gates[0].status == "fail"

    fewest = next(misses for misses in range(n + 1) if fails(misses))
    found = power([make_result(at, checks_ok=False, metadata=checks) for at in range(n)], rules)
    for one in found.at:
        miss = 1 - one.rate
        true = sum(comb(n, k) * miss**k * one.rate ** (n - k) for k in range(fewest, n + 1))
        assert one.fails == pytest.approx(true, rel=1e-9)


def test_a_bound_without_room_beyond_it_has_other_rates():
    checks = {"checks": [{"contains": "x"}]}
    rules = [rule for rule in rules_with() if rule.name == "checks_ok_rate"]
    found = power([make_result(at, checks_ok=True, metadata=checks) for at in range(20)], rules)
    assert [(one.rate, round(one.fails, 3)) for one in found.at] == [
        (0.9, 0.878), (0.95, 0.642), (0.99, 0.182),
    ]  # fmt: skip


def test_the_verdict_names_the_number_of_the_gate_that_came_nearest():
    results = [stating(0, RIGHT, **NO_FACTS), *(make_result(at, **NO_FACTS) for at in range(1, 9))]
    reason = report_of(results).verdict_reason
    assert reason.endswith(": 9 samples behind it, 15 are needed (min_eligible_for_gates)")
