"""What the numbers of a report are made of."""

import json

import msgspec
import pytest
from tests.builders import (
    grounding,
    make_error,
    make_result,
    make_scores,
    missed_call,
    numbered,
    rules_with,
    served_call,
)

from callmark.errors import BadInput, UsageError
from callmark.records.report import FAILING_CAP, REPORT_VERSION, Report, ReportHeader
from callmark.records.results import Copying, Fingerprints, Statement
from callmark.summary import failing as listing
from callmark.summary import gates as judging
from callmark.summary.metrics import Definition
from callmark.summary.summary import Scope, Summariser, summarize_results

FLAG = Statement(start=0, end=1, label="unsupported", rule="value", tier="firm", because="?")


def report_of(results, rules=None, *, scope=None, **header):
    summariser = Summariser()
    for result in results:
        summariser.add(result)
    rules = rules_with() if rules is None else rules
    return summariser.report(ReportHeader(**header), rules, scope=scope)


def test_a3_d45_micro_pools_counts_and_differs_from_macro():
    one = make_result(0, f1=1.0, spans_counted=1, lax=grounding(1.0), facts_required=1)
    four = make_result(
        1, spans_counted=4, facts_required=3, lax=msgspec.structs.replace(
            grounding(0.0, grounded=1, found=1), precision=0.25, recall=1 / 3, f1=2 / 7
        ),
    )  # fmt: skip
    summary = report_of([one, four]).summary
    precision, recall = 2 / 5, 2 / 4
    assert summary["avg_integration_f1_micro_lax"] == pytest.approx(
        2 * precision * recall / (precision + recall)
    )
    assert summary["avg_integration_f1_macro_lax"] == pytest.approx((1 + 2 / 7) / 2)
    for name in ("avg_integration_f1_macro_strict", "avg_integration_f1_micro_strict"):
        assert summary[name] is not None
    metrics = report_of([one, four]).metrics
    pooled = metrics["integration_precision_micro_lax"]
    assert (pooled.numerator, pooled.denominator, pooled.n) == (2, 5, 2)


def test_a4_a5_coverage_is_over_eligible_samples():
    results = [
        make_result(0),
        make_result(1, f1=0.0, spans=1),
        make_result(2, f1=0.0, spans=0),
        make_result(3, "control"),
    ]
    metrics = report_of(results).metrics
    assert (metrics["integration_coverage"].numerator, metrics["integration_coverage"].n) == (2, 3)
    assert (metrics["grounded_coverage"].numerator, metrics["grounded_coverage"].n) == (1, 3)


def test_d31_d32_an_eligible_sample_without_a_call_or_span_stays_in_the_average():
    kind = {"recall_kind": "presence", "extractor": "marker"}
    results = [make_result(0, **kind), make_result(1, f1=0.0, spans=0, attempts=0, **kind)]
    report = report_of(results)
    assert report.summary["num_eligible"] == 2
    assert report.summary["avg_integration_f1_macro_lax"] == 0.5
    assert report.summary["valid_call_rate"] == 0.5
    assert report.counts.recall_by_presence == 2  # recall without named facts is said so


def test_d46_a55_clean_controls_are_counted_too():
    kinds = ["control"] * 3 + ["negative_control"] * 2 + ["clarify", "unclassified", "eligible"]
    report = report_of([make_result(at, kind) for at, kind in enumerate(kinds)])
    summary = report.summary
    assert (summary["num_controls"], summary["num_negative_controls"]) == (3, 2)
    assert (summary["controls_with_integration"], summary["num_eligible"]) == (0, 1)
    assert (report.counts.clarify, report.counts.unclassified, report.counts.scored) == (1, 1, 8)


def test_d47_a6_parity_is_over_the_samples_that_expect_several_calls():
    results = [make_result(at, multi_call_parity_ok=at != 0) for at in range(4)]
    results += [make_result(4 + at) for at in range(16)]
    parity = report_of(results).metrics["multi_call_parity_rate"]
    assert (parity.value, parity.numerator, parity.denominator) == (0.75, 3, 4)


def test_arguments_are_judged_where_a_call_was_attempted():
    results = [make_result(0), make_result(1, valid=0), make_result(2, attempts=0, f1=0.0)]
    metrics = report_of(results).metrics
    assert metrics["json_args_valid_rate"].denominator == 2
    assert (metrics["valid_call_rate"].numerator, metrics["valid_call_rate"].n) == (1, 3)


def test_unsupported_values_are_pooled_and_leave_out_what_the_user_said():
    results = [
        make_result(0, values={"supported": 3, "derived": 1, "user_said": 50}),
        make_result(1, values={"unsupported": 1}),
        make_result(2, "unclassified", values={"unsupported": 7}),
        make_result(3, values={"user_said": 2}),
    ]
    rate = report_of(results).metrics["unsupported_value_rate"]
    assert (rate.value, rate.numerator, rate.denominator, rate.n) == (0.2, 1, 5, 2)


def test_hits_are_over_well_formed_calls_outside_controls():
    results = [
        make_result(0, attempts=4, misses=1),
        make_result(1, "control", attempts=3, misses=3),
        make_result(2, "negative_control", attempts=1),
    ]
    rate = report_of(results).metrics["fixture_hit_rate"]
    assert (rate.numerator, rate.denominator) == (4, 5)


def test_miss_free_metrics_leave_out_unresolved_samples():
    results = [make_result(0), make_result(1, f1=0.0, misses=1, trace=[missed_call()])]
    report = report_of(results)
    assert report.metrics["integration_f1_macro_lax"].value == 0.5
    assert report.metrics_miss_free["integration_f1_macro_lax"].value == 1.0
    assert report.counts.unresolved == 1
    clean = report_of(results[:1])
    assert clean.metrics_miss_free["privacy_ok_rate"] == clean.metrics["privacy_ok_rate"]


def test_a136_misses_are_counted_by_tool_and_listed_in_order():
    late = make_result(7, misses=2, trace=[missed_call("b"), missed_call("a", {"q": "z"})])
    early = make_result(2, misses=1, trace=[served_call(), missed_call("b")])
    misses = report_of([late, early]).misses
    assert (misses.count, misses.by_tool) == (3, {"a": 1, "b": 2})
    assert [(miss.sample_id, miss.name) for miss in misses.first] == [
        ("s2", "b"), ("s7", "b"), ("s7", "a"),
    ]  # fmt: skip
    assert misses.first[2].key_normalized == {"q": "z"}


def test_a53_per_tool_deltas():
    def of(index, tools, lax, strict):
        meta = {"call_sequence": [{"name": name} for name in tools]}
        return make_result(index, metadata=meta, f1=lax, strict=strict)

    results = [of(0, ["b"], 1.0, 0.5), of(1, ["a", "b", "b"], 0.5, 0.5), make_result(2, "control")]
    deltas = report_of(results).per_tool_deltas
    assert list(deltas) == ["a", "b"]
    assert msgspec.to_builtins(deltas["b"]) == {
        "lax": 0.75, "strict": 0.5, "delta_lax_minus_strict": 0.25, "sample_count": 2,
    }  # fmt: skip


def test_a_sample_that_names_no_tool_counts_for_the_tools_that_answered():
    retry = {"call_sequence": None, "expected_behaviour": "retry"}
    result = make_result(0, metadata=retry, trace=[served_call("read_file"), missed_call("x")])
    assert list(report_of([result]).per_tool_deltas) == ["read_file"]


def test_a54_d34_d62_the_histogram_sums_to_the_total_and_survives_json():
    spans = [0, 1, 1, 12]
    results = [make_result(at, spans=n, spans_total=n) for at, n in enumerate(spans)]
    report = report_of([*results, make_result(4, "control")])
    histogram = report.integration_span_count_histogram
    assert histogram == {"0": 2, "1": 2, "12": 1}
    assert json.loads(msgspec.json.encode(histogram)) == histogram
    assert sum(histogram.values()) == report.counts.scored


def test_error_trials_are_left_out_and_counted():
    report = report_of([make_result(0), make_error(1), make_error(2, "control")])
    assert (report.counts.trials, report.counts.trials_error) == (3, 2)
    assert report.metrics["privacy_ok_rate"].n == 1
    assert report.counts.stops == {"answer": 1, "error": 2}
    assert "2 trials ended in an error and were not scored" in report.warnings


def test_a137_failing_samples_are_listed_in_the_order_of_the_dataset():
    results = numbered([make_result(f1=0.0 if at % 2 else 1.0) for at in range(10)])
    failing = report_of(reversed(results)).failing
    assert failing["integration_f1_macro_lax"].sample_ids == ("s1", "s3", "s5", "s7", "s9")
    assert "privacy_ok_rate" not in failing


def test_a_rate_that_is_better_when_lower_lists_those_that_have_it(monkeypatch):
    """Its direction is said once: a new rate needs no line in what lists the samples."""
    rate = Definition("gave_up_rate", "all", "rate", ("gave_up",), "no sample")
    monkeypatch.setattr(listing, "DEFINITIONS", (*listing.DEFINITIONS, rate))
    results = [make_result(at, gave_up_honestly=at == 1) for at in range(4)]
    assert report_of(results).failing["gave_up_rate"].sample_ids == ("s0", "s2", "s3")
    monkeypatch.setattr(judging, "_LOWER", judging._LOWER | {"gave_up_rate"})
    assert report_of(results).failing["gave_up_rate"].sample_ids == ("s1",)


def test_failing_lists_are_cut_but_their_count_is_complete():
    n = FAILING_CAP + 5
    failing = report_of([make_result(at, privacy_ok=False) for at in range(n)]).failing
    assert failing["privacy_ok_rate"].count == n
    assert len(failing["privacy_ok_rate"].sample_ids) == FAILING_CAP


def test_every_gate_can_name_its_samples():
    meta = {"teacher_heavy": True, "locale": "fr", "locale_probe": True}
    bad = make_result(
        0, metadata=meta, f1=0.5, strict=0.0, valid=0, misses=0, values={"unsupported": 1},
        call_f1=0.0, multi_call_parity_ok=False, recovered=False, locale_probe_ok=False,
        privacy_ok=False, spans_over_cap=2, checks_ok=False, answered=False,
        copying=Copying(20, 20), statements=(FLAG,), trace=[served_call()],
    )  # fmt: skip
    empty = make_result(1, f1=0.0, spans=0, misses=1, trace=[missed_call()])
    others = [
        make_result(2, "control", controls_with_integration=1),
        make_result(3, "negative_control", negative_control_ok=False),
        make_result(4, "clarify", clarify_ok=False),
        make_result(5, "unclassified", metadata={"observed": True}, changes=("says nothing",)),
    ]
    report = report_of([bad, empty, *others])
    failing = report.failing
    gates = set(report.header.gates) - {"grounding_lift", "perf_budget_sec_per_100"}
    assert gates - set(failing) == {"locale_delta_es", "locale_delta_de"}
    assert failing["fixture_hit_rate"].sample_ids == ("s1",)
    assert failing["controls_with_integration"].sample_ids == ("s2",)


def test_slices_have_their_own_numbers():
    results = [
        make_result(0, metadata={"slices": ["x", "y"]}, f1=0.5),
        make_result(1, metadata={"slices": ["x"], "long_context": True}),
        make_result(2, "control", metadata={"slices": ["x"]}),
    ]
    slices = report_of(results).slices
    assert list(slices) == ["long_context", "x", "y"]
    assert (slices["x"].n, slices["x"].num_eligible) == (3, 2)
    assert slices["x"].metrics["integration_f1_macro_lax"].value == 0.75


def test_privacy_findings_are_counted_by_kind():
    from callmark.records.results import PrivacyFinding, PrivacyScore

    privacy = PrivacyScore(
        False,
        (PrivacyFinding("email", "medium", "answer", 0, 3, True),
         PrivacyFinding("card", "high", "answer", 4, 9, False)),
        ("https://evil.test",),
    )  # fmt: skip
    counts = report_of([make_result(0, privacy=privacy)]).privacy
    assert counts.by_kind == {"card": 1, "email": 1}
    assert (counts.by_severity["high"], counts.echoed, counts.invented_urls) == (1, 1, 1)


def test_clusters_change_the_interval_not_the_value():
    def results(cluster):
        meta = {"cluster": "same"} if cluster else {}
        return [make_result(at, f1=float(at % 2), metadata=meta) for at in range(10)] + [
            make_result(10 + at, metadata={"cluster": "other"} if cluster else {})
            for at in range(10)
        ]

    plain, clustered = report_of(results(False)), report_of(results(True))
    name = "integration_f1_macro_lax"
    assert plain.metrics[name].value == clustered.metrics[name].value == 0.75
    assert plain.metrics[name].method == "bootstrap"
    assert clustered.metrics[name].method == "cluster_bootstrap"
    assert clustered.metrics["privacy_ok_rate"].method == "cluster_bootstrap"
    assert clustered.metrics[name].ci_95[0] < plain.metrics[name].ci_95[0]


def test_one_trial_or_index_twice_is_refused():
    with pytest.raises(BadInput, match="sample 's1', trial 0: occurs twice"):
        report_of([make_result(1), make_result(1)])
    with pytest.raises(BadInput, match="occurs twice, once with an error"):
        report_of([make_result(1), make_error(1)])
    with pytest.raises(BadInput, match="sample 's1', trial 0: occurs twice"):
        report_of([make_error(1), make_error(1)])
    with pytest.raises(BadInput, match="index 1: belongs to two samples, 'a' and 'b'"):
        report_of([make_result(1, sample_id="a"), make_result(1, sample_id="b", trial=1)])


def test_numbers_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="sample 's0', trial 0: an index or a count is negative"):
        report_of([make_result(0, spans_total=-1)])
    with pytest.raises(BadInput, match="an index or a count is negative"):
        report_of([make_result(-1)])


def test_ids_of_every_kind_come_back_whole():
    ids = ["a" * 64, "A" * 64, "0" * 63 + "g", "ключ", "x\ud800", "", "f" * 128]
    results = [make_result(at, sample_id=name, privacy_ok=False) for at, name in enumerate(ids)]
    assert report_of(results).failing["privacy_ok_rate"].sample_ids == tuple(ids)


def test_a26_a52_a_results_file_gives_the_same_summary_again():
    prints = Fingerprints(dataset_sha256="d", model_fingerprint="m", runner_fingerprint="r")
    results = [
        make_result(at, f1=at / 7, fingerprints=prints, trace=[served_call()]) for at in range(8)
    ]
    lines = [json.loads(msgspec.json.encode(result)) for result in results]
    again = summarize_results(lines, rules=rules_with())
    assert again == summarize_results(iter(results), rules=rules_with())
    assert again["header"]["dataset_sha256"] == "d"
    assert again["header"]["model_fingerprint"] == "m"
    assert again["header"]["decoding"]["temperature"] == 0.0
    assert json.loads(json.dumps(again)) == again


def test_results_that_disagree_in_a_fingerprint_are_not_taken_as_one():
    results = [
        make_result(at, fingerprints=Fingerprints(dataset_sha256="d", model_fingerprint=str(at)))
        for at in range(2)
    ]
    report = report_of(results)
    assert (report.header.dataset_sha256, report.header.model_fingerprint) == ("d", None)
    assert "the results do not agree in model_fingerprint" in report.warnings


def test_a57_a63_to_a66_a139_the_header_says_what_the_numbers_depend_on():
    report = report_of([make_result(0)], integration_span_cap=5, dataset_version="7.3")
    header = report.header
    assert report.report_version == header.report_version == REPORT_VERSION == "2.0.0"
    assert (header.integration_span_cap, header.dataset_version) == (5, "7.3")
    assert (header.decoding.temperature, header.seed) == (0.0, 42)
    assert (header.min_eligible_for_gates, header.fail_on_fingerprint_mismatch) == (15, True)


def test_wrong_header_fields_and_results_are_named():
    with pytest.raises(UsageError, match=r"report header: .*`colour`"):
        summarize_results([], header={"colour": "blue"})
    with pytest.raises(UsageError, match=r"report header: .*\$.seed"):
        summarize_results([], header={"seed": "x"})
    good = json.loads(msgspec.json.encode(make_result(0)))
    with pytest.raises(BadInput, match=r"result 2: .*\$.trial"):
        summarize_results([good, good | {"trial": "x"}])


def test_results_of_others_need_only_their_scores():
    def line(name, **more):
        return {"sample_id": name, "scores": msgspec.to_builtins(make_scores())} | more

    calls = [{"name": "web.search", "arguments": {"q": "x"}, "result": {"count": 3}}]
    report = summarize_results(
        [
            line("a", metadata={"call_sequence": ["web.search"]}, tool_trace=calls),
            line("b", trial=0),
            line("b", trial=1),
            line("a", trial=1),
        ]
    )
    assert report["summary"]["num_eligible"] == 2
    assert report["header"]["repeat"] == 2
    assert report["header"]["decoding"]["temperature"] is None
    lost = summarize_results([line("a"), {"sample_id": "b"}])
    assert (lost["verdict"], lost["counts"]["trials_error"]) == ("incomplete", 1)


def test_metadata_that_cannot_be_read_is_named():
    with pytest.raises(BadInput, match=r"result 1: metadata: cannot be read \(KeyError"):
        summarize_results([{"sample_id": "a", "metadata": {"call_sequence": [{}]}}])


def test_a_report_can_be_asked_for_more_than_once():
    summariser = Summariser()
    summariser.add(make_result(3))
    summariser.add(make_result(1))
    first = summariser.report(ReportHeader(), rules_with())
    assert summariser.report(ReportHeader(), rules_with()) == first
    summariser.add(make_result(2, f1=0.0))
    assert summariser.report(ReportHeader(), rules_with()).summary["num_eligible"] == 3


def test_a_report_survives_json():
    report = report_of([make_result(at, f1=at / 9, misses=at % 2) for at in range(9)])
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report


def test_nothing_is_rounded():
    results = [make_result(at, f1=value) for at, value in enumerate((1 / 3, 1.0, 1.0))]
    assert report_of(results).summary["avg_integration_f1_macro_lax"] == (1 / 3 + 2) / 3


def test_no_data_is_none_everywhere():
    report = report_of([make_result(0, "control")], scope=Scope())
    for name in ("integration_coverage", "unsupported_value_rate", "clarify_ok_rate"):
        assert report.metrics[name].value is None
        assert report.metrics[name].reason
    assert report.summary["avg_integration_f1_macro_lax"] is None
    assert report.summary["avg_integration_f1_micro_lax"] is None


def test_a_sample_takes_some_20_bytes_and_its_id_whatever_its_texts():
    import tracemalloc

    from callmark.summary.trials import Trials

    trials = Trials()
    results = [make_result(at, output="x" * 1000, f1=at % 7 / 7) for at in range(10_000)]
    sizes = []
    tracemalloc.start()
    for part in (results[:2000], results[2000:]):
        for result in part:
            trials.add(result)
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert (sizes[1] - sizes[0]) / 8000 < 25
