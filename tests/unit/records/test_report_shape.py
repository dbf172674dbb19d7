"""The fields of a report are pinned to its version: whoever changes them has to change it too.

After a change on purpose (and a new `REPORT_VERSION`, unless a field was only added), write a
golden file for the version:
`PYTHONPATH=src:. python tests/unit/records/test_report_shape.py`. Those of old versions stay."""

import json
from pathlib import Path

import msgspec
import pytest
from tests.builders import make_error, make_result, missed_call, rules_with, served_call

from callmark.records.report import REPORT_VERSION, Report, ReportHeader, Shard, Timing
from callmark.records.results import ArgumentOrigin, Copying, Statement
from callmark.summary.summary import Scope, Summariser

GOLDEN = Path(__file__).parents[2] / "golden"
CURRENT = GOLDEN / f"report_{REPORT_VERSION}.json"
SAID = (
    Statement(start=0, end=1, label="supported", rule="match"),
    Statement(start=2, end=3, label="contradicted", rule="polarity", tier="advisory"),
    Statement(start=4, end=5, label="unsupported", rule="value", tier="firm"),
)


def fixed_report() -> Report:
    """A small run in which every part of a report has something to say."""
    summariser = Summariser(lambda own, other: 0.125)
    kinds = ("control", "negative_control", "clarify", "unclassified")
    for index in range(24):
        meta = {"locale": "de", "locale_probe": True} if index % 3 == 0 else {"slices": ["x"]}
        for trial in range(2):
            kind = kinds[index % 8] if index % 8 < 4 else "eligible"
            summariser.add(
                make_result(
                    index,
                    kind,
                    trial=trial,
                    metadata=meta,
                    f1=(index % 4 + trial) / 4,
                    misses=int(index == 7),
                    trace=[missed_call() if index == 7 else served_call()],
                    privacy_ok=index != 11,
                    statements=SAID[: 1 + (index + trial) % 3],
                    arguments=(ArgumentOrigin(call=0, path="/q", origin="said"),),
                    copying=Copying(index, 24),
                    answered=index != 13,
                )
            )
    for trial in range(2):
        summariser.add(make_error(24, trial=trial))
    header = ReportHeader(
        dataset_sha256="d" * 64, integration_span_cap=3, span_extractor="auto", scorer_version="1"
    )
    rules = rules_with(
        integration_coverage={"policy": "confident", "bound": 0.5}, fixture_hit_rate=0.5
    )
    return summariser.report(
        header,
        rules,
        scope=Scope(errors_allowed=2),
        timing=Timing(wall_time_sec=2.0, scoring_sec=1.0, more={"tokens": 5}),
        provenance={"host": "linux"},
        warnings=("a warning of the run",),
        shard=Shard(
            results_lines=50, results_sha256="5" * 64, selected_samples=25, settings={"limit": None}
        ),
    )


def paths_of(value, at=""):
    if isinstance(value, dict):
        return {at}.union(*(paths_of(entry, f"{at}/{key}") for key, entry in value.items()))
    if isinstance(value, list):
        return {at}.union(*(paths_of(entry, f"{at}/[]") for entry in value))
    return {at}


def without_intervals(value):
    """Intervals are drawn by numpy, whose stream may change from version to version."""
    if isinstance(value, dict):
        return {k: without_intervals(v) for k, v in value.items() if k not in ("ci_95", "needed_n")}
    if isinstance(value, list):
        return [without_intervals(entry) for entry in value]
    return pytest.approx(value) if isinstance(value, float) else value


def plain(report: Report):
    return json.loads(msgspec.json.encode(report))


def test_a140_the_fields_belong_to_the_version():
    golden = json.loads(CURRENT.read_text("utf-8"))
    assert golden["report_version"] == REPORT_VERSION
    assert paths_of(plain(fixed_report())) == paths_of(golden), (
        "the fields of the report changed: raise REPORT_VERSION, then see the top of this file"
    )


def test_the_numbers_of_the_golden_report_have_not_moved():
    golden = json.loads(CURRENT.read_text("utf-8"))
    assert without_intervals(golden) == without_intervals(plain(fixed_report()))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("report_*.json")), ids=lambda path: path.stem)
def test_every_golden_report_can_still_be_read(path):
    report = msgspec.json.decode(path.read_bytes(), type=Report)
    assert report.verdict in ("pass", "fail", "inconclusive", "incomplete", "empty")


def test_a56_what_a_clock_measured_stands_below_timing_only():
    report = plain(fixed_report())
    timing = report.pop("timing")
    assert set(timing) == {
        "wall_time_sec", "scoring_sec", "sec_per_100", "exceeded", "perf_budget", "more",
    }  # fmt: skip
    words = ("wall", "sec", "time", "tokens")
    clocked = {
        path
        for path in paths_of(report)
        if path.rsplit("/", 1)[-1].split("_")[0] in words and "perf_budget" not in path
    }
    assert not clocked


def test_a51_a52_the_old_names_are_in_the_summary():
    summary = plain(fixed_report())["summary"]
    for name in (
        "avg_integration_f1_macro_lax", "avg_integration_f1_macro_strict",
        "avg_integration_f1_micro_lax", "avg_integration_f1_micro_strict",
        "privacy_ok_rate", "multi_call_parity_rate", "json_args_valid_rate",
        "num_eligible", "controls_with_integration",
    ):  # fmt: skip
        assert name in summary


if __name__ == "__main__":
    text = msgspec.json.format(msgspec.json.encode(fixed_report()), indent=1)
    CURRENT.write_bytes(text + b"\n")
