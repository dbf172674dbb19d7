"""Two sides, paired by sample: who is a pair, what is said about each metric, what is decided."""

import random

import msgspec
import numpy as np
import pytest
from tests.builders import make_error, make_result, numbered, served_call, silent

from callmark.compare.compare import CompareOptions, check_primary, compare_sides
from callmark.compare.metrics import decide, rulings
from callmark.compare.records import Comparison, PointCheck, exit_code
from callmark.compare.sides import Side
from callmark.errors import BadInput, FingerprintMismatch, UsageError
from callmark.records.results import Fingerprints, Scoring
from callmark.stats.estimates import Pairs, mcnemar

SAME = Fingerprints(dataset_sha256="d", tool_registry_sha256="r", fixtures_sha256="f")


def side(results, cross_score=None) -> Side:
    made = Side("run", cross_score)
    for result in results:
        made.add(result)
    return made


def compare(a, b, **options) -> Comparison:
    return compare_sides(side(a), side(b), CompareOptions(**options))


def run(n: int, wrong=(), *, fingerprints=SAME, **more) -> list:
    """n eligible samples; those in `wrong` have no valid call and nothing grounded."""
    return [
        silent(at, fingerprints=fingerprints, **more)
        if at in wrong
        else make_result(at, fingerprints=fingerprints, **more)
        for at in range(n)
    ]


def metric(comparison: Comparison, name: str):
    found = (*comparison.primary, *comparison.exploratory)
    return next(one for one in found if one.metric == name)


def test_the_values_are_those_of_the_pairs():
    found = metric(compare(run(10), run(10, wrong=range(3))), "valid_call_rate")
    assert (found.a, found.b, found.n) == (1.0, 0.7, 10)
    assert found.difference == pytest.approx(-0.3)
    assert (found.worse, found.better) == (3, 0)
    assert found.test == "mcnemar"
    assert found.p == pytest.approx(mcnemar(3, 0)) == 0.125


def test_a_large_drop_is_a_regression_and_names_its_metrics():
    found = compare(run(100), run(100, wrong=range(20)))
    assert found.decision == "regression"
    assert "valid_call_rate" in found.decision_reason
    assert metric(found, "integration_f1_macro_lax").test == "paired_bootstrap"
    assert metric(found, "integration_f1_macro_lax").decision == "regression"
    assert exit_code(found) == 1


def test_better_is_never_a_regression():
    found = compare(run(100, wrong=range(20)), run(100))
    assert found.decision == "non_inferior"
    assert metric(found, "valid_call_rate").p == 1.0
    assert exit_code(found) == 0


def test_a_small_sample_without_a_difference_decides_nothing():
    a, b = run(20), [msgspec.structs.replace(one, model_output="other") for one in run(20)]
    found = compare(a, b)
    assert found.decision == "inconclusive"
    assert "at least 88 are needed" in metric(found, "valid_call_rate").reason
    assert exit_code(found) == 5
    assert compare(a, b, margin=0.2).decision == "non_inferior"


def test_the_very_same_answers_are_not_worse_however_few():
    found = compare(run(5), run(5))
    assert found.decision == "non_inferior"
    assert metric(found, "valid_call_rate").reason == "all answers are the same"


def test_primary_metrics_without_a_pair_have_no_say():
    found = compare(run(100), run(100))
    assert metric(found, "controls_with_integration").decision is None
    assert metric(found, "controls_with_integration").reason == "no pair has a value"
    nothing = compare(run(20), run(20), primary=("controls_with_integration",))
    assert nothing.decision == "inconclusive"
    assert nothing.decision_reason == "no primary metric has a pair"


def test_lower_is_better_for_contaminated_controls():
    clean = [make_result(at, "control", fingerprints=SAME) for at in range(100)]
    dirty = [
        make_result(at, "control", fingerprints=SAME, controls_with_integration=int(at < 12))
        for at in range(100)
    ]
    found = compare(clean, dirty)
    controls = metric(found, "controls_with_integration")
    assert (controls.a, controls.b, controls.worse) == (0.0, 0.12, 12)
    assert controls.decision == found.decision == "regression"
    assert compare(dirty, clean).decision == "non_inferior"


def test_holm_adjusts_over_the_primary_metrics_that_have_pairs():
    a, b = run(60), run(60, wrong=range(5))
    two = compare(a, b, primary=("valid_call_rate", "integration_f1_macro_lax"))
    one = compare(a, b, primary=("valid_call_rate",))
    assert metric(one, "valid_call_rate").p_adjusted == metric(one, "valid_call_rate").p
    p = {name: metric(two, name).p for name in ("valid_call_rate", "integration_f1_macro_lax")}
    assert metric(two, "valid_call_rate").p_adjusted == pytest.approx(
        min(1.0, 2 * p["valid_call_rate"])
        if p["valid_call_rate"] <= p["integration_f1_macro_lax"]
        else max(p["valid_call_rate"], 2 * p["integration_f1_macro_lax"])
    )
    assert one.decision == "regression"


def test_the_others_are_exploratory_and_not_tested():
    found = compare(run(30), run(30, wrong=[1]))
    assert {one.role for one in found.exploratory} == {"exploratory"}
    assert all(one.p is None and one.decision is None for one in found.exploratory)
    coverage = metric(found, "integration_coverage")
    assert coverage.method == "tango"
    assert coverage.ci_95[0] < coverage.difference < coverage.ci_95[1]
    names = [one.metric for one in found.exploratory]
    assert {"integration_f1_micro_lax", "locale_delta_es", "privacy_ok_rate"} <= set(names)


def test_flips_are_listed_in_both_directions():
    flips = compare(run(10, wrong=[7]), run(10, wrong=[2, 3])).flips["valid_call_rate"]
    assert flips.lost.sample_ids == ("s2", "s3")
    assert flips.gained.sample_ids == ("s7",)
    f1 = compare(
        [make_result(0, f1=1.0, fingerprints=SAME)], [make_result(0, f1=0.8, fingerprints=SAME)]
    ).flips["integration_f1_macro_lax"]
    assert f1.lost.count == 1


def test_pairs_with_an_error_are_dropped_and_counted():
    b = run(100)
    b[4] = make_error(4, fingerprints=SAME)
    found = compare(run(100), b)
    assert found.pairs.paired == 99
    assert found.pairs.dropped.sample_ids == ("s4",)
    assert found.decision == "non_inferior"
    assert metric(found, "valid_call_rate").n == 99


def test_over_two_percent_dropped_decides_nothing():
    b = run(100, wrong=range(30))
    for at in (97, 98):
        b[at] = make_error(at, fingerprints=SAME)
    assert compare(run(100), b).decision == "regression"
    b[99] = make_error(99, fingerprints=SAME)
    found = compare(run(100), b)
    assert found.decision == "inconclusive"
    assert "3 of 100 pairs are missing, more than 2%" in found.decision_reason
    assert exit_code(found) == 5


def test_an_error_on_both_sides_is_one_lost_pair():
    lost = [*run(99), make_error(99, fingerprints=SAME)]
    found = compare(lost, lost)
    assert (found.pairs.paired, found.pairs.dropped.count) == (99, 1)
    assert found.a.errors == 1
    assert found.a.samples == 100


def test_a_sample_that_one_side_lacks_is_a_missing_pair():
    found = compare(run(100), run(90))
    assert found.pairs.removed.count == 10
    assert found.decision == "inconclusive"
    assert any("10 samples are only in A: s90" in warning for warning in found.warnings)


def test_the_order_of_the_results_does_not_matter():
    a, b = run(40, wrong=[3, 9]), run(40, wrong=range(8))
    first = compare(a, b)
    rng = random.Random(1)
    rng.shuffle(a)
    rng.shuffle(b)
    assert compare(a, b) == first


def trials(n: int, wrong, k: int = 3) -> list:
    """k trials of each sample; a sample in `wrong` fails in so many of them."""
    found = []
    for at in range(n):
        for trial in range(k):
            make = silent if trial < wrong.get(at, 0) else make_result
            found.append(make(at, trial=trial, fingerprints=SAME))
    return found


def test_trials_are_averaged_within_their_sample():
    found = metric(compare(trials(12, {}), trials(12, {0: 1, 1: 2})), "valid_call_rate")
    assert found.n == 12
    assert found.b == pytest.approx((10 + 2 / 3 + 1 / 3) / 12)
    assert found.test == "sign_flip"
    assert found.method == "cluster_bootstrap"
    assert found.p == 0.25


def test_an_error_in_one_trial_drops_the_sample():
    b = trials(60, {})
    b[4] = make_error(1, trial=1, fingerprints=SAME)
    found = compare(trials(60, {}), b)
    assert found.pairs.dropped.sample_ids == ("s1",)
    assert found.pairs.paired == 59


def test_clusters_are_flipped_whole():
    def clustered(wrong):
        return [
            (silent if at in wrong else make_result)(
                at, metadata={"cluster": f"c{at // 10}"}, fingerprints=SAME
            )
            for at in range(40)
        ]

    found = metric(compare(clustered(()), clustered(range(10))), "valid_call_rate")
    assert (found.worse, found.test, found.p) == (10, "sign_flip", 0.5)


@pytest.mark.parametrize("name", ["dataset_sha256", "tool_registry_sha256", "fixtures_sha256"])
def test_other_data_are_refused_by_name(name):
    other = msgspec.structs.replace(SAME, **{name: "other"})
    with pytest.raises(FingerprintMismatch) as caught:
        compare(run(5), run(5, fingerprints=other))
    assert f"  {name}: A has {getattr(SAME, name)}, B has other\n" in str(caught.value)
    assert "--common" in str(caught.value)


def test_another_cap_or_extractor_is_refused_even_with_common():
    capped = [
        msgspec.structs.replace(one, scoring=Scoring(integration_span_cap=5)) for one in run(5)
    ]
    for common in (False, True):
        with pytest.raises(FingerprintMismatch, match="integration_span_cap"):
            compare(run(5), capped, common=common)
        marked = run(5)
        marked[2] = make_result(2, fingerprints=SAME, extractor="marker")
        with pytest.raises(FingerprintMismatch, match="1 samples differ in span_extractor: s2"):
            compare(run(5), marked, common=common)


def test_results_that_do_not_agree_among_themselves_are_refused():
    mixed = [*run(3), *run(6, fingerprints=msgspec.structs.replace(SAME, fixtures_sha256="g"))[3:]]
    with pytest.raises(FingerprintMismatch, match="fixtures_sha256"):
        compare(run(6), mixed)


def test_what_is_not_known_is_unchecked_and_said():
    unknown = Fingerprints()
    found = compare(run(5, fingerprints=unknown), run(5))
    assert found.comparable["dataset_sha256"] == "unchecked"
    assert any(warning.startswith("dataset_sha256: not known") for warning in found.warnings)


def hashed(results, **hashes) -> list:
    """Results with hashes by sample index: {index: text}."""
    return [
        msgspec.structs.replace(
            one, **{name: values.get(one.index, "same") for name, values in hashes.items()}
        )
        for one in results
    ]


def test_other_samples_are_refused_where_the_dataset_is_not_known():
    a = hashed(run(5, fingerprints=Fingerprints()), item_sha256={})
    b = hashed(run(5, fingerprints=Fingerprints()), item_sha256={3: "edited"})
    with pytest.raises(FingerprintMismatch, match=r"1 samples differ in the sample itself.*: s3"):
        compare(a, b)


def test_common_leaves_out_what_was_edited_and_lists_it():
    other = msgspec.structs.replace(SAME, dataset_sha256="e")
    names = ("item_sha256", "offered_tools_sha256", "used_fixtures_sha256")
    a = hashed(run(8), **{name: {} for name in names})
    b = hashed(run(10, fingerprints=other)[1:], **{name: {} for name in names})
    b = hashed(b, item_sha256={2: "edited"}, offered_tools_sha256={3: "more"})
    found = compare(a, b, common=True)
    assert found.pairs.paired == 5
    assert found.pairs.removed.sample_ids == ("s0",)
    assert found.pairs.added.sample_ids == ("s8", "s9")
    assert found.pairs.changed.sample_ids == ("s2", "s3")
    assert found.pairs.changed_in == {"item": 1, "tools": 1}
    assert found.comparable["dataset_sha256"] == "different"
    assert found.decision == "non_inferior"  # what was left out is not missing


def test_models_that_call_differently_stay_pairs_while_the_fixtures_are_the_same():
    """Which fixtures were served depends on the calls: leaving those samples out would hide
    exactly the ones that got worse."""
    other = msgspec.structs.replace(SAME, dataset_sha256="e")
    a = hashed(run(40), used_fixtures_sha256={})
    b = hashed(run(40, wrong=range(9), fingerprints=other), used_fixtures_sha256={1: "none"})
    assert compare(a, b, common=True).pairs.paired == 40
    edited = msgspec.structs.replace(other, fixtures_sha256="g")
    b = [msgspec.structs.replace(one, fingerprints=edited) for one in b]
    found = compare(a, b, common=True)
    assert found.pairs.changed.sample_ids == ("s1",)
    assert any("favours those that call alike" in warning for warning in found.warnings)


def test_other_tools_are_a_warning():
    a, b = (hashed(run(5), offered_tools_sha256=marks) for marks in ({}, {2: "fewer"}))
    assert any("1 samples were offered other tools: s2" in one for one in compare(a, b).warnings)


def test_a_sample_that_stands_twice_is_refused():
    twice = [*run(3), make_result(3, sample_id="s1", fingerprints=SAME)]
    for a, b in ((twice, run(3)), (run(3), twice)):
        with pytest.raises(BadInput, match="'s1': occurs twice"):
            compare(a, b)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["integration_f1_micro_lax"], "is pooled"),
        (["valid_call_rate", "accuracy"], "accuracy is no metric of a sample; known: "),
        ([], "at least one"),
    ],
)
def test_primary_metrics_must_have_a_value_for_each_sample(names, message):
    with pytest.raises(UsageError, match=message):
        check_primary(names)


def test_groups_by_tool_slice_and_locale():
    def with_places(wrong):
        return [
            (silent if at in wrong else make_result)(
                at,
                metadata={
                    "slices": ["hard"] if at % 2 else [],
                    "locale": "de" if at < 4 else None,
                },
                fingerprints=SAME,
            )
            for at in range(8)
        ]

    found = compare(with_places(()), with_places([1]))
    rows = {
        (group, name): {one.metric: one for one in metrics}["valid_call_rate"]
        for group in ("by_tool", "by_slice", "by_locale")
        for name, metrics in getattr(found, group).items()
    }
    assert rows.keys() == {("by_tool", "web.search"), ("by_slice", "hard"), ("by_locale", "de")}
    assert rows["by_slice", "hard"].b == 0.75
    assert rows["by_locale", "de"].n == 4


@pytest.mark.parametrize(("b", "ok"), [(0.97, True), (0.96, False), (1.03, True), (1.04, False)])
def test_a133_the_point_check_is_a_plain_limit_either_way(b, ok):
    a = [make_result(0, f1=1.0, fingerprints=SAME)]
    found = compare(a, [make_result(0, f1=b, fingerprints=SAME)], max_f1_delta=0.03)
    assert found.point_check.ok is ok
    assert exit_code(found) == (0 if ok else 1)


def test_the_point_check_takes_the_place_of_the_margin():
    b = [msgspec.structs.replace(one, model_output="other") for one in run(20)]
    assert exit_code(compare(run(20), b)) == 5
    assert exit_code(compare(run(20), b, max_f1_delta=0.03)) == 0
    controls = [make_result(0, "control", fingerprints=SAME)]
    unknown = compare(controls, controls, max_f1_delta=0.03)
    assert unknown.point_check == PointCheck(
        metric="integration_f1_macro_lax", delta=None, limit=0.03, ok=None
    )
    assert exit_code(unknown) == 5


def test_the_level_of_chance_is_compared_where_it_can_be_computed():
    def served(results):
        return [msgspec.structs.replace(one, tool_trace=(served_call(),)) for one in results]

    sides = [
        side(served(run(10, wrong=wrong)), lambda own, other: 0.25) for wrong in ((), range(4))
    ]
    found = {one.metric: one for one in compare_sides(*sides, CompareOptions()).exploratory}
    assert found["chance_f1"].difference == 0.0
    assert found["grounding_lift"].a == 0.75
    assert found["grounding_lift"].difference == pytest.approx(-0.4)
    plain = {one.metric for one in compare(run(5), run(5)).exploratory}
    assert "chance_f1" not in plain


def test_the_vectors_that_are_simulated_are_those_of_a_comparison():
    rng = np.random.default_rng(2)
    for _ in range(5):
        lost, gained = (set(map(int, rng.choice(60, 6, replace=False))) for _ in range(2))
        found = compare(run(60, wrong=gained), run(60, wrong=lost), primary=("valid_call_rate",))
        gains = [float(at in gained) - float(at in lost) for at in range(60)]
        ruling = rulings({"valid_call_rate": Pairs(gains, True)}, margin=0.03, seed=42)
        one = metric(found, "valid_call_rate")
        assert (one.p, one.bound, one.decision) == (
            ruling["valid_call_rate"].p,
            ruling["valid_call_rate"].bound,
            ruling["valid_call_rate"].decision,
        )
        assert (found.decision, found.decision_reason) == decide(ruling)


def test_numbered_results_of_every_kind_are_compared():
    kinds = ["eligible", "control", "negative_control", "clarify", "unclassified"]
    results = numbered(make_result(0, kind, fingerprints=SAME) for kind in kinds * 4)
    found = compare(results, results)
    values = {one.metric: one.a for one in (*found.primary, *found.exploratory)}
    assert values["negative_control_ok_rate"] == values["clarify_ok_rate"] == 1.0
    assert values["controls_with_integration"] == 0.0
    assert values["locale_probe_ok_rate"] is None
