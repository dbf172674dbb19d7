"""Samples in quarantine: run, counted, shown, and seen by no gate until their day is over."""

from datetime import date

import msgspec
import pytest
from tests.builders import make_error, make_result, rules_with

from callmark.records.report import Quarantine, Report, ReportHeader, exit_code
from callmark.reports.finished_run import FinishedRun, failed_trials
from callmark.reports.terminal import counts_text
from callmark.store.files import encode_result
from callmark.summary.summary import Scope, Summariser

ENTRY = Quarantine(owner="kim", until=date(2027, 1, 31), why="times out")


def report_of(results, quarantine=None, **more):
    summariser = Summariser(lambda own, other: 0.0)
    for result in results:
        summariser.add(result)
    return summariser.report(ReportHeader(quarantine=quarantine or {}), rules_with(), **more)


def expired(entry):
    return msgspec.structs.replace(entry, expired=True)


def run(*, bad=(3, 9, 11), n=20, **more):
    return [make_result(at, f1=0.0 if at in bad else 1.0, **more) for at in range(n)]


def test_what_is_in_quarantine_counts_for_no_metric_and_no_gate():
    left_out = report_of(run(), {"s3": ENTRY, "s9": ENTRY})
    never_there = report_of([one for one in run() if one.sample_id not in ("s3", "s9")])
    assert left_out.metrics == never_there.metrics
    assert left_out.gates == never_there.gates
    assert (left_out.failing, left_out.summary) == (never_there.failing, never_there.summary)
    assert (left_out.verdict, exit_code(left_out)) == ("pass", 0)
    assert report_of(run()).verdict == "fail"


def test_it_is_counted_and_shown():
    report = report_of(run(), {"s3": ENTRY})
    assert (report.counts.samples, report.counts.quarantined, report.counts.trials) == (19, 1, 20)
    assert report.counts.trials_missing == 0
    [shown] = report.quarantine
    assert (shown.sample_id, shown.owner, shown.passed, shown.trials) == ("s3", "kim", 0, 1)
    assert "1 sample in quarantine counts for no gate" in report.warnings
    text = "\n".join(counts_text(report))
    assert "in quarantine until 2027-01-31: s3 (passed 0/1); kim: times out" in text


def test_an_expired_one_counts_again_and_says_so():
    report = report_of(run(), {"s3": expired(ENTRY), "s9": expired(ENTRY)})
    assert report.gates == report_of(run()).gates
    assert report.verdict == "fail"
    assert report.counts.quarantined == 0
    [first, _] = [text for text in report.warnings if "ended on" in text]
    assert first == (
        "the quarantine of s3 ended on 2027-01-31: it counts again; kim should look at it: times out"
    )


def test_one_that_names_nobody_is_a_warning_unless_only_a_part_was_run():
    whole, part = (
        report_of(run(), {"gone": ENTRY}, scope=Scope(partial=partial)) for partial in (False, True)
    )
    said = "quarantine: gone has no scored trial here: take it out?"
    assert said in whole.warnings
    assert said not in part.warnings


def test_all_in_quarantine_is_no_pass():
    report = report_of(run(bad=(), n=20), {f"s{at}": ENTRY for at in range(20)})
    assert (report.verdict, exit_code(report)) == ("inconclusive", 5)


def test_a_lost_trial_makes_a_run_incomplete_even_in_quarantine():
    results = [*run(bad=()), make_error(20)]
    report = report_of(results, {"s20": ENTRY})
    assert report.verdict == "incomplete"
    assert (report.counts.quarantined, report.counts.unscored) == (1, {})


def test_trials_of_one_sample_stay_together_and_are_counted_as_passes():
    results = [
        make_result(at, trial=trial, f1=0.0 if (at, trial) == (3, 1) else 1.0)
        for at in range(20)
        for trial in range(3)
    ]
    report = report_of(results, {"s3": ENTRY})
    assert (report.repeat.steady, report.repeat.flaky) == (19, 0)
    assert (report.quarantine[0].passed, report.quarantine[0].trials) == (2, 3)
    assert report_of(results).repeat.flaky == 1


@pytest.mark.parametrize("order", [1, -1])
def test_results_in_any_order_give_the_same_bytes(order):
    found = report_of(run()[::order], {"s3": ENTRY, "s9": expired(ENTRY)})
    assert msgspec.json.encode(found) == msgspec.json.encode(
        report_of(run(), {"s3": ENTRY, "s9": expired(ENTRY)})
    )
    assert msgspec.json.decode(msgspec.json.encode(found), type=Report) == found


def test_a_failed_trial_in_quarantine_is_not_listed_as_failed(tmp_path):
    results = run()
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"".join(map(encode_result, results)))
    found = failed_trials(FinishedRun(report=report_of(results, {"s3": ENTRY}), results=path))
    assert [one.sample_id for one in found.first] == ["s9", "s11"]
