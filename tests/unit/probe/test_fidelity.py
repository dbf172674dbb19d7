"""The promises about the fidelity probe, and how earlier probes of this kind went wrong."""

import json
import math

import numpy as np
import pytest
from tests.unit.probe.asking import GOOD, PROSE, call, case, probe, views

from callmark import tool_use_fidelity
from callmark.errors import BadInput, UsageError
from callmark.probe.fidelity import (
    Nulls,
    error_result,
    fidelity,
    finalise,
    valid_rate,
)
from callmark.probe.records import FidelityResult, exit_code
from callmark.probe.spec import FidelitySpec, ToolUseCase, calibration_spec
from callmark.probe.stats import NullStats, null_stats_of, score_from_z, validity_change


def test_b2_the_delta_is_tuned_minus_base():
    assert probe(20, 20, 16)["evidence"]["validity_delta"] == -0.2
    assert probe(20, 5, 15)["evidence"]["validity_delta"] == 0.5


def test_b3_arguments_are_compared_only_where_both_are_valid():
    found = probe(20, 12, 8)["evidence"]
    assert found["num_arg_pairs_compared"] == 8
    assert found["mean_arg_disagreement"] == 0.0


def test_b6_hallucination_is_counted_over_valid_tuned_calls():
    cases, base, _ = views(4, 4, 4)
    tuned = [GOOD, call("search_the_web", query="x"), PROSE, PROSE]
    found = tool_use_fidelity(cases, base, tuned)
    assert found["evidence"]["hallucination_rate"] == 0.5
    assert found["evidence"]["num_hallucinated_base"] == 0
    assert found["hallucination_ok"] is False


def test_b6_wrong_tools_of_the_base_are_counted_beside_those_of_the_fine_tune():
    cases, _, _ = views(4, 4, 4)
    base = [call("find", query="x")] * 2 + [GOOD, PROSE]
    found = tool_use_fidelity(cases, base, [call("find", query="x")] * 3 + [PROSE])
    assert found["evidence"]["num_hallucinated_base"] == 2
    assert found["evidence"]["num_hallucinated"] == 3
    assert found["hallucination_ok"] is False  # the bound is on what the fine-tune names


@pytest.mark.parametrize(("lost", "verdict"), [(0, "pass"), (1, "pass"), (2, "fail")])
def test_b7_b18_p3_exactly_five_points_lower_passes(lost, verdict):
    """0.95 - 1.0 is -0.050000000000000044 in floating point: 19 of 20 must still pass."""
    assert probe(20, 20, 20 - lost)["verdict"] == verdict


def test_b7_b19_exactly_ten_percent_invented_passes():
    cases, base, tuned = views(10, 10, 10)
    assert tool_use_fidelity(cases, base, [call("x", query="q"), *tuned[1:]])["verdict"] == "pass"
    tuned[:2] = [call("x", query="q")] * 2
    assert tool_use_fidelity(cases, base, tuned)["verdict"] == "fail"


def test_b8_disagreement_alone_never_fails():
    cases, base, _ = views(20, 20, 20)
    found = tool_use_fidelity(cases, base, [call(query="other")] * 20)
    assert found["evidence"]["mean_arg_disagreement"] == 1.0
    assert found["verdict"] == "pass"


def test_b9_b56_z_is_the_distance_from_the_nulls_in_their_spread():
    rates = [0.0, 0.1, 0.2]
    found = probe(20, 20, 20, null_rates=rates)
    assert found["z_score"] == pytest.approx((1.0 - 0.1) / np.std(rates))
    assert probe(20, 20, 20, null_stats={"mean": 0.1, "std": 0.1})["z_score"] == pytest.approx(9.0)


@pytest.mark.parametrize(
    "stats",
    [
        {},
        {"mean": 0.1},
        {"std": 0.1},
        {"mean": 0.1, "std": 0.0},
        {"mean": 0.1, "std": 1e-7},
        {"mean": 0.1, "std": 0.1, "degenerate": True},
        {"mean": 0.1, "std": 0.1, "degenerate": 1.0},
        {"mean": 0.1, "std": 0.1, "n": 1},
        {"mean": math.nan, "std": 0.1},
        {"mean": 0.1, "std": math.inf},
        {"mean": 0.1, "std": math.nan},
        {"mean": None, "std": 0.1},
    ],
)
def test_b56_p11_without_a_spread_there_is_no_z(stats):
    """A spread of 1e-7 is rounding: it once made a z of a million."""
    found = probe(20, 20, 20, null_stats=stats)
    assert found["z_score"] is None
    assert found["verdict"] == "pass"


def test_b10_p2_nulls_that_are_all_zero_give_a_rank_and_not_silence():
    found = probe(20, 20, 20, null_rates=[0.0] * 5)
    assert found["z_score"] is None
    assert found["message"].endswith("5 nulls: p ≥ 1/6")
    assert found["evidence"]["null_rank"] == "5 nulls: p ≥ 1/6"
    assert probe(20, 20, 0, null_rates=[0.0] * 4)["evidence"]["null_rank"] == "4 nulls: p ≥ 5/5"
    stats = {"mean": 0.0, "std": 0.0, "n": 3}
    assert probe(null_stats=stats)["evidence"]["null_rank"] == "3 nulls: p ≥ 1/4"
    assert probe(null_rates=[0.1])["evidence"]["null_rank"] == "1 null: p ≥ 1/2"


def test_b16_without_cases_the_probe_is_skipped():
    found = tool_use_fidelity([], [], [])
    assert found["verdict"] == "skip"
    assert found["score"] is None
    assert found["decision"] is None
    assert found["message"] == "no tool-use cases (inline 'cases' was empty)"


def test_b17_no_surface_and_an_empty_one_are_different():
    assert probe()["evidence"]["hallucination_rate"] == 0.0
    assert probe(spec={"allowed_tools": []})["evidence"]["hallucination_rate"] == 1.0
    assert probe(spec={"allowed_tools": ["search_web"]})["evidence"]["hallucination_rate"] == 0.0


def test_b20_b30_nulls_never_excuse_a_drop_and_z_is_one_gate_of_three():
    far_from_nulls = {"null_stats": {"mean": 0.0, "std": 0.1}}
    assert probe(20, 20, 16, **far_from_nulls)["z_score"] == pytest.approx(8.0)
    assert probe(20, 20, 16, **far_from_nulls)["verdict"] == "fail"
    near = {"null_stats": {"mean": 0.9, "std": 0.5}}
    assert probe(20, 20, 20, **near)["verdict"] == "fail"
    assert probe(20, 20, 20, spec={"assert_z_gte": 0.2}, **near)["verdict"] == "pass"


@pytest.mark.parametrize(
    ("base", "mean", "words"),
    [(20, 0.96, "the base is at its ceiling: 100%, nulls 96%"),
     (10, 0.48, "nulls keep the format: 48% against 50% of the base"),
     (1, 0.0, "the base has too few calls for nulls to lose any: 5%, nulls 0%")],
)  # fmt: skip
def test_nulls_as_good_as_the_base_decide_nothing_and_say_why(base, mean, words):
    found = probe(20, base, base, null_stats={"mean": mean, "std": 0.2})
    assert found["z_score"] is not None
    assert found["verdict"] == "pass"
    assert found["evidence"]["z_gate_applied"] is False
    assert words in found["message"]
    same = probe(20, base, base, null_rates=[mean] * 3)
    assert words in same["message"]


def test_the_gate_on_z_needs_nulls_below_the_base():
    assert probe(20, 20, 20, null_stats={"mean": 0.94, "std": 0.1})["verdict"] == "fail"
    assert probe(20, 20, 20, null_stats={"mean": 0.95, "std": 0.1})["verdict"] == "pass"


def test_b21_the_kind_and_its_category():
    found = tool_use_fidelity([case()], [GOOD], [GOOD], spec={"kind": "tool_use_fidelity"})
    assert (found["kind"], found["category"]) == ("tool_use_fidelity", "attribution")
    assert found["name"] == "tool_use_fidelity"


def test_b22_two_sentinels_calibrate_where_there_are_no_cases():
    spec = calibration_spec()
    assert spec.name == "_calibration"
    assert [one.gold_tool_name for one in spec.cases] == ["search_web", "calculator"]
    good = [call("search_web", query="France"), call("calculator", a=2, b=2)]
    assert valid_rate(spec, good) == 1.0
    assert valid_rate(spec, [PROSE, call("calculator", a="2", b=2)]) == 0.0


def test_b24_every_case_needs_an_output_of_each_view():
    cases, base, tuned = views(3, 3, 3)
    with pytest.raises(UsageError, match="tuned_outputs: holds 2 outputs for 3 cases"):
        tool_use_fidelity(cases, base, tuned[:2])
    with pytest.raises(UsageError, match="base_outputs: holds 4 outputs for 3 cases"):
        tool_use_fidelity(cases, [*base, "x"], tuned)


def test_b26_b27_rates_without_a_denominator_are_null():
    found = probe(20, 20, 0)["evidence"]
    assert found["mean_arg_disagreement"] is None
    assert found["hallucination_rate"] is None


def test_b28_z_for_each_rank():
    by_rank = {
        "0.5": {"mean": 0.0, "std": 0.1},
        "1.0": {"mean": 0.5, "std": 0.25},
        "2.0": {"mean": 0.5, "std": 0.0},
        "4.0": {},
    }
    found = probe(null_stats_by_rank=by_rank)["evidence"]["z_by_rank"]
    assert found == {"0.5": pytest.approx(10.0), "1.0": pytest.approx(2.0)}
    assert probe(null_stats_by_rank={"1": {}})["evidence"]["z_by_rank"] is None
    assert probe()["evidence"]["z_by_rank"] is None


def test_b29_the_interval_is_the_bootstrap_of_the_tuned_flags():
    found = probe(20, 20, 13, seed=7)
    flags = np.array([1.0] * 13 + [0.0] * 7)
    draws = np.random.default_rng(7).integers(0, 20, (1000, 20))
    expected = np.percentile(flags[draws].mean(axis=1), [2.5, 97.5])
    assert found["ci_95"] == list(expected) == found["evidence"]["raw_ci_95"]
    assert probe()["ci_95"] == [1.0, 1.0]


@pytest.mark.parametrize("valid", [0, 1])
def test_f35_one_case_has_the_interval_of_its_value(valid):
    assert (
        probe(1, 1, valid)["ci_95"] == [valid, valid] == probe(1, 1, valid)["evidence"]["raw_ci_95"]
    )


def test_f35_nulls_are_a_population_so_that_three_standard_deviations_are_three():
    """Rates 0.1 and 0.3: the seed's deviation is 0.1, so 0.5 lies at z = 3.0 and passes; with
    n - 1 it were 2.12."""
    found = probe(20, 20, 10, null_rates=[0.1, 0.3], spec={"assert_validity_delta_gte": -1.0})
    assert found["evidence"]["null_std"] == pytest.approx(np.std([0.1, 0.3]))
    assert found["z_score"] == pytest.approx(3.0)
    assert (found["evidence"]["z_gate_applied"], found["verdict"]) == (True, "pass")


def test_f35_nulls_without_spread_give_a_rank_and_no_z():
    found = probe(20, 20, 20, null_rates=[0.0] * 5)
    assert (found["z_score"], found["evidence"]["null_rank"]) == (None, "5 nulls: p ≥ 1/6")
    assert found["evidence"]["z_gate_applied"] is False
    assert found["verdict"] == "pass"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "validity ft=80% (base=100%, Δ=-20%), hallucination=0% (no calibration for tool_use_fidelity)"),
        ({"null_stats": {"mean": 0.0, "std": 0.1}}, "validity ft=80% (base=100%, Δ=-20%), hallucination=0%, z=+8.00σ vs null"),
        ({"null_stats": {"mean": 0.9, "std": 0.1}}, "validity ft=80% (base=100%, Δ=-20%), hallucination=0%, z=-1.00σ vs null"),
    ],
)  # fmt: skip
def test_b31_b32_messages(options, message):
    assert probe(20, 20, 16, **options)["message"] == message


def test_b33_score_of_keeping_losing_and_inventing():
    assert probe()["score"] == 1.0
    assert probe(20, 20, 15)["score"] == pytest.approx(0.75)
    assert probe(20, 5, 20)["score"] == 1.0
    assert probe(spec={"allowed_tools": []})["score"] == 0.0


def test_b33_p9_a_full_collapse_scores_zero_whatever_the_base_was():
    assert probe(20, 20, 0)["score"] == 0.0
    assert probe(20, 2, 0)["score"] == 0.0


def test_b34_z_lifts_the_score():
    found = probe(20, 20, 16, null_stats={"mean": 0.0, "std": 0.1})
    assert found["score"] == pytest.approx(0.7 * 0.8 + 0.3 * score_from_z(8.0))


def test_p9_a_perfect_adapter_scores_one_with_nulls_too():
    assert probe(null_stats={"mean": 0.0, "std": 0.3})["score"] == 1.0
    assert score_from_z(0) == 0.5
    assert 0 <= score_from_z(-1e9) < score_from_z(1e9) <= 1


def test_b35_every_field_of_the_result():
    found = probe(20, 20, 19, spec={"name": "mine", "weight": 2.0})
    assert {"verdict", "decision", "score", "raw", "z_score", "base_value", "ft_value", "ci_95",
            "evidence", "message", "name", "kind"} <= found.keys()  # fmt: skip
    assert {"json_valid_rate_base", "json_valid_rate_ft", "validity_delta", "mean_arg_disagreement",
            "hallucination_rate", "num_cases", "num_arg_pairs_compared", "z_by_rank", "raw_ci_95",
            "weight"} <= found["evidence"].keys()  # fmt: skip
    assert (found["name"], found["raw"], found["base_value"], found["ft_value"]) == (
        "mine", 0.95, 1.0, 0.95)  # fmt: skip
    assert found["evidence"]["weight"] == 2.0
    assert found["evidence"]["num_cases"] == 20
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_b35_numbers_that_are_none_do_not_leave_the_probe(number):
    result = FidelityResult(name="x", verdict="pass", raw=number, score=1.0, message="m")
    found = finalise(result)
    assert (found.verdict, found.raw, found.score) == ("error", None, None)
    other = FidelityResult(
        name="x", verdict="pass", raw=0.5, z_score=number, ci_95=(0.0, number), message="m"
    )
    found = finalise(other)
    assert (found.verdict, found.z_score, found.ci_95) == ("pass", None, None)


def test_b55_p1_without_a_single_call_the_probe_fails_with_its_own_message():
    """Both views at zero was once a perfect score."""
    found = probe(20, 0, 0)
    assert found["verdict"] == "fail"
    assert found["score"] == 0.0
    assert found["decision"] == "inconclusive"
    assert found["message"].startswith("no valid tool call in either view (0 of 20 cases)")
    assert exit_code(as_record(20, 0, 0)) == 1


def as_record(n: int, base_valid: int, tuned_valid: int, **spec) -> FidelityResult:
    cases, base, tuned = views(n, base_valid, tuned_valid)
    made = tuple(ToolUseCase(**one) for one in cases)
    return fidelity(FidelitySpec(cases=made, **spec), base, tuned)


@pytest.mark.parametrize(
    ("n", "base", "tuned", "decision", "code"),
    [
        (1, 1, 1, "inconclusive", 5),
        (3, 3, 3, "inconclusive", 5),
        (19, 19, 19, "inconclusive", 5),
        (20, 20, 20, "no_drop_seen", 0),
        (20, 20, 19, "no_drop_seen", 0),
        (58, 58, 58, "no_drop_seen", 0),
        (59, 59, 59, "no_regression", 0),
        (59, 59, 58, "no_drop_seen", 0),
        (24, 24, 21, "inconclusive", 5),
        (24, 24, 20, "inconclusive", 5),
        (24, 24, 19, "regression", 1),
        (20, 20, 0, "regression", 1),
        (200, 200, 196, "no_regression", 0),
        (200, 200, 190, "no_drop_seen", 0),
        (200, 200, 189, "regression", 1),
        (4, 4, 0, "inconclusive", 5),
    ],
)
def test_f21_the_decision_needs_enough_cases_and_a_drop_that_chance_does_not_explain(
    n, base, tuned, decision, code
):
    result = as_record(n, base, tuned)
    assert result.decision == decision
    assert exit_code(result) == code


def test_f21_no_drop_seen_says_what_is_not_ruled_out_and_is_no_power():
    result = as_record(24, 24, 24)
    assert result.evidence.validity_delta_lower_95 == pytest.approx(-0.1013, abs=1e-4)
    assert "a drop of up to 10.1% is not ruled out" in result.decision_reason
    assert (exit_code(result), exit_code(result, require_power=True)) == (0, 5)
    proved = as_record(100, 100, 100)
    assert "a drop of more than 2.6% is ruled out" in proved.decision_reason
    assert exit_code(proved, require_power=True) == 0
    assert "fewer than 20 cases cannot say" in as_record(3, 3, 3).decision_reason


def test_a_pass_over_cases_that_the_base_cannot_do_says_so():
    weak = as_record(70, 20, 19)
    assert weak.decision == "no_drop_seen"
    assert "in only 20 of the 70 cases and can lose no other" in weak.decision_reason
    unsure = as_record(70, 24, 20)
    assert unsure.decision == "inconclusive"
    assert "in only 24 of the 70 cases and can lose no other" in unsure.decision_reason
    for enough in (as_record(70, 35, 35), as_record(70, 20, 2)):
        assert "can lose no other" not in enough.decision_reason


def test_gains_weigh_against_losses():
    cases = [case()] * 40
    base = [GOOD] * 20 + [PROSE] * 20
    tuned = [PROSE] * 20 + [GOOD] * 16 + [PROSE] * 4
    found = tool_use_fidelity(cases, base, tuned)
    assert (found["evidence"]["num_lost"], found["evidence"]["num_gained"]) == (20, 16)
    assert found["evidence"]["p_value"] == pytest.approx(0.309, abs=0.001)
    assert found["decision"] == "inconclusive"
    assert found["verdict"] == "fail"


@pytest.mark.parametrize(
    ("n", "base_valid", "drop"), [(20, 20, 5 / 20), (24, 24, 5 / 24), (200, 200, 11 / 200), (20, 4, None), (4, 4, None)]
)  # fmt: skip
def test_the_smallest_drop_that_could_have_been_shown(n, base_valid, drop):
    found = probe(n, base_valid, base_valid)
    assert found["evidence"]["smallest_drop"] == drop
    if drop is not None:
        lost = round(drop * n)
        assert probe(n, base_valid, base_valid - lost)["decision"] == "regression"
        assert probe(n, base_valid, base_valid - lost + 1)["decision"] != "regression"
        assert f"{n} cases could have shown a drop of {drop:.0%}" in found["decision_reason"]
    else:
        assert "no drop could be shown" in found["decision_reason"]


def test_inventing_tools_is_a_failure_even_without_a_drop():
    result = as_record(20, 20, 20, allowed_tools=())
    assert (result.verdict, result.decision) == ("fail", "no_drop_seen")
    assert exit_code(result) == 1


def test_what_could_not_be_checked_never_passes():
    """No valid tuned call is left to look for invented tools in."""
    result = as_record(24, 1, 0)
    assert result.evidence.validity_delta > -0.05
    assert result.verdict == "fail"
    assert exit_code(result) == 5
    assert exit_code(FidelityResult(name="x", verdict="skip", message="no cases")) == 5
    assert exit_code(error_result("x", "the adapter is not applied")) == 1


def test_the_vectors_that_are_simulated_are_those_of_the_probe():
    rng = np.random.default_rng(3)
    for _ in range(20):
        before, now = rng.random((2, 30)) < 0.8
        cases = [case()] * 30
        outputs = [[GOOD if flag else PROSE for flag in view] for view in (before, now)]
        found = tool_use_fidelity(cases, *outputs)
        alone = validity_change(before, now, -0.05)
        assert found["decision"] == alone.decision
        assert found["evidence"]["p_value"] == alone.p
        assert found["evidence"]["smallest_drop"] == alone.smallest_drop
        assert found["base_value"] == alone.base_rate


def test_every_case_is_told_with_its_reason():
    cases = [case()] * 3
    outputs = [GOOD, call(query=5), PROSE]
    rows = tool_use_fidelity(cases, outputs, outputs)["evidence"]["cases"]
    assert [row["tuned"]["valid"] for row in rows] == [True, False, False]
    assert rows[0]["tuned"]["call"] == {"name": "search_web", "arguments": {"query": "rope"}}
    assert "/query" in rows[1]["tuned"]["reason"]
    assert rows[2]["tuned"]["reason"] == "there is no call in the text"


def test_a_view_that_answered_with_nothing_is_no_crash():
    found = tool_use_fidelity([case()], [None], [GOOD])
    assert (found["base_value"], found["ft_value"]) == (0.0, 1.0)


def test_nulls_of_one_have_no_spread():
    assert null_stats_of([0.3]).z(1.0) is None
    assert null_stats_of([]) is None
    assert Nulls(rates=(0.0, 0.2)).known.mean == 0.1
    assert NullStats(mean=0.1, std=0.1, n=5).z(0.4) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([{"prompt": "p"}], ["x"], ["x"]), {}, "cases[0].tool_spec: is missing"),
        (([{**case(), "colour": 1}], ["x"], ["x"]), {}, "cases[0].colour: unknown key"),
        (([case(gold="")], ["x"], ["x"]), {}, "cases[0].gold_tool_name: "),
        (([case(max_new_tokens=0)], ["x"], ["x"]), {}, "cases[0].max_new_tokens: must be"),
        ((3, ["x"], ["x"]), {}, "cases: must be a list of cases, not 3"),
        ((["x"], ["x"], ["x"]), {}, "cases[0]: must be an object"),
        (([case()], "x", ["x"]), {}, 'base_outputs: must be a list of texts, not "x"'),
        (([case()], [7], ["x"]), {}, "base_outputs[0]: must be a text, not 7"),
        (([case()], ["x"], ["x"]), {"spec": {"schema": "strict"}}, "spec.schema: must be full or minimal"),
        (([case()], ["x"], ["x"]), {"spec": {"assert_z": 3}}, "spec.assert_z: unknown key; did you mean assert_z_gte?"),
        (([case()], ["x"], ["x"]), {"spec": {"assert_z_gte": math.nan}}, "spec.assert_z_gte: must be a finite number"),
        (([case()], ["x"], ["x"]), {"spec": {"assert_hallucination_lte": 2}}, "spec.assert_hallucination_lte: must be"),
        (([case()], ["x"], ["x"]), {"spec": {"cases": [case()]}}, "spec.cases: give the cases as the first argument"),
        (([case()], ["x"], ["x"]), {"spec": 3}, "spec: must be an object, not 3"),
        (([case()], ["x"], ["x"]), {"null_rates": [0.2, math.nan]}, "null_rates[1]: must be a number from 0 to 1"),
        (([case()], ["x"], ["x"]), {"null_rates": [True]}, "null_rates[0]: "),
        (([case()], ["x"], ["x"]), {"null_stats": {"average": 1}}, "null_stats.average: unknown key"),
        (([case()], ["x"], ["x"]), {"null_stats": {"mean": "x"}}, "null_stats.mean: must be a number"),
        (([case()], ["x"], ["x"]), {"null_stats_by_rank": [1]}, "null_stats_by_rank: must be an object"),
        (([case()], ["x"], ["x"]), {"seed": 1.5}, "seed: must be a whole number"),
        (([case({"name": "t", "parameters": {"type": "objekt"}})], ["x"], ["x"]), {}, "cases[0].tool_spec.parameters: "),
        (([case({"name": "t", "parameters": {"$ref": "https://x.io/s"}})], ["x"], ["x"]), {}, "cases[0].tool_spec.parameters: "),
        (([case({"name": "t", "parameters": [1]})], ["x"], ["x"]), {}, "cases[0].tool_spec.parameters: must be an object"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_field(arguments, options, message):
    with pytest.raises(BadInput) as caught:
        tool_use_fidelity(*arguments, **options)
    assert any(problem.startswith(message) for problem in caught.value.problems), caught.value


def test_b13_a_case_is_frozen_and_has_its_default():
    one = ToolUseCase(**case())
    assert one.max_new_tokens == 256
    with pytest.raises(AttributeError):
        one.prompt = "other"
    assert tool_use_fidelity([one], [GOOD], [GOOD])["verdict"] == "pass"
