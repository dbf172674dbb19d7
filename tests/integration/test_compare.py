"""Comparing files: results of runs, of other programs, and reports."""

import json
import socket
import sys
from pathlib import Path

import pytest

import callmark
from callmark.cli import main
from callmark.compare.compare import (
    CompareOptions,
    SideLines,
    compare_many,
    compare_runs,
    write_comparison,
)
from callmark.errors import BadInput, FingerprintMismatch, UsageError
from callmark.scorers.score import score_trial
from callmark.store.runs import file_of, is_report


def read_lines(path: Path) -> list:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def write_lines(path: Path, lines) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def worse_answers(project, every: int = 4) -> None:
    """Every so-many-th answer makes no call and says nothing that is known."""
    lines = read_lines(project.answers)
    for line in lines[::every]:
        line.update(model_output="I do not know.", tool_trace=[])
    write_lines(project.answers, lines)


@pytest.fixture
def runs(large_project):
    """A good run and a worse one over the same data."""
    project = large_project
    good, worse = project.folder / "good", project.folder / "worse"
    for folder in (good, worse):
        if folder is worse:
            worse_answers(project)
        project.run(
            out=str(folder / "results.jsonl"),
            report=str(folder / "report.json"),
            min_eligible_for_gates=1,
        )
    return good, worse


def test_a_worse_run_is_a_regression_whichever_way_it_is_named(runs):
    good, worse = runs
    by_folder = callmark.compare(good, worse)
    by_file = callmark.compare(str(good / "results.jsonl"), str(worse / "results.jsonl"))
    assert by_folder.decision == "regression"
    assert by_folder == by_file
    assert by_folder.comparable == dict.fromkeys(
        ("dataset_sha256", "tool_registry_sha256", "fixtures_sha256", "integration_span_cap",
         "span_extractor"), "equal")  # fmt: skip
    lost = by_folder.flips["valid_call_rate"].lost
    assert lost.count == 12
    assert "s000" in lost.sample_ids


def test_f58_a_count_of_one_of_many_runs_is_told_as_a_share(runs):
    """Runs may differ in size."""
    options = CompareOptions()
    good, worse = runs
    matrix = compare_many([SideLines(run, options) for run in (good, worse, good)], options)
    assert matrix.decision == "regression"
    for run in matrix.runs:
        controls = run.metrics["controls_with_integration"]
        assert controls.denominator
        assert controls.value == controls.numerator / controls.denominator
        assert controls.ci_95 is not None


def test_a_run_against_itself_is_not_worse(runs):
    good, _ = runs
    found = callmark.compare(good, good)
    assert found.decision == "non_inferior"
    assert all(one.difference in (0, None) for one in found.primary + found.exploratory)


def test_what_another_scorer_scored_is_scored_again_unless_told_otherwise(runs):
    """Scores of an older scorer in the lines do not count."""
    good, worse = runs
    lines = read_lines(worse / "results.jsonl")
    for line in lines:
        line["scores"]["lax"]["f1"] = 0.125
        line["scoring"]["version"] = "3"
    stored = write_lines(worse / "old.jsonl", lines)
    again, kept = (
        callmark.compare(good, stored, as_stored=as_stored).primary[0]
        for as_stored in (False, True)
    )
    assert kept.b == 0.125
    assert again.b == callmark.compare(good, worse).primary[0].b > 0.125


@pytest.fixture
def scored(monkeypatch) -> list[str]:
    """The samples that are scored from now on."""
    seen: list[str] = []

    def note(sample, trace, settings):
        seen.append(sample.sample_id)
        return score_trial(sample, trace, settings)

    monkeypatch.setattr(sys.modules["callmark.run.play"], "score_trial", note)
    return seen


def test_f71_what_this_scorer_scored_is_not_scored_again(runs, scored, capsys):
    good, worse = runs
    assert main(["compare", str(good), str(worse), "-o", str(good / "x.html")]) in (0, 1, 5)
    assert "as they were scored" in capsys.readouterr().out
    assert scored == []


def test_f71_an_older_side_is_scored_once_and_looks_as_if_it_were_new(runs, scored, capsys):
    good, worse = runs
    lines = read_lines(worse / "results.jsonl")
    for line in lines[1:]:  # a file that is mixed is scored as a whole
        del line["scoring"]["version"]
    older = write_lines(worse / "older.jsonl", lines)
    pages = []
    for side in (worse / "results.jsonl", older):
        main(["compare", str(good), str(side), "-o", str(good / "x.html")])
        page = (good / "x.html").read_text("utf-8").replace("older.jsonl", "results.jsonl")
        pages.append(page.replace("→ older", "→ worse").replace("B · older", "B · worse"))
    assert "B scored again" in capsys.readouterr().out
    assert len(scored) == len(lines)
    assert pages[1].replace("B scored again", "as they were scored") == pages[0]


def test_settings_that_do_not_fit_their_hash_are_scored_again(runs, scored):
    good, worse = runs
    lines = read_lines(worse / "results.jsonl")
    for line in lines:
        line["scoring"]["privacy_echo"] = "deny"
    callmark.compare(good, write_lines(worse / "edited.jsonl", lines))
    assert len(scored) == len(lines)


def test_results_of_other_programs_are_compared_too(large_project):
    lines = read_lines(large_project.answers)
    a = write_lines(large_project.folder / "a.jsonl", lines)
    found = callmark.compare(a, a)
    assert found.comparable["dataset_sha256"] == "unchecked"
    assert found.decision == "inconclusive"  # without a dataset nothing is expected


def test_other_data_are_refused_and_common_compares_what_is_left(runs, large_project):
    good, _ = runs
    items = read_lines(large_project.dataset)
    items[2]["prompt"] += " Please."
    new = {"prompt": "Hello.", "metadata": {"sample_id": "new", "expected_behaviour": "no_tool"}}
    large_project.write([*items[1:-1], new])
    answers = read_lines(large_project.answers)
    large_project.write(answers=[*answers, {"sample_id": "new", "model_output": "Hi."}])
    large_project.run(min_eligible_for_gates=1)
    with pytest.raises(FingerprintMismatch, match="dataset_sha256") as caught:
        callmark.compare(good, large_project.out)
    assert caught.value.exit_code == 3
    pairs = callmark.compare(good, large_project.out, common=True).pairs
    assert pairs.paired == 58
    assert pairs.added.sample_ids == ("new",)
    assert pairs.removed.sample_ids == ("s059",)
    assert pairs.changed.sample_ids == ("s001",)


def test_a133_two_reports_give_differences_and_the_parity_check(runs):
    good, worse = runs
    paths = good / "report.json", worse / "report.json"
    found = callmark.compare(*paths, max_f1_delta=0.03)
    assert found.paired is False
    assert found.decision == "inconclusive"
    assert found.point_check.ok is False
    assert found.primary[0].ci_95 is None
    full = callmark.compare(good, worse)
    values = {one.metric: (one.a, one.b) for one in full.primary + full.exploratory}
    for one in found.primary + found.exploratory:
        if one.a is not None and one.metric in values and "micro" not in one.metric:
            assert (one.a, one.b) == pytest.approx(values[one.metric]), one.metric
    assert callmark.compare(paths[0], paths[0], max_f1_delta=0.03).point_check.ok is True
    assert found.by_tool["web.search"][0].difference < 0


@pytest.mark.parametrize(
    ("delta", "ok"), [(0.03, True), (0.04, False), (-0.03, True), (-0.04, False)]
)
def test_a133_reports_that_far_apart(runs, delta, ok):
    good, _ = runs
    report = json.loads((good / "report.json").read_text("utf-8"))
    other = dict(report, metrics={**report["metrics"]})
    base = 0.9
    for name, value in (("a.json", base), ("b.json", base + delta)):
        metric = {**report["metrics"]["integration_f1_macro_lax"], "value": value}
        other["metrics"]["integration_f1_macro_lax"] = metric
        (good / name).write_text(json.dumps(other))
    found = callmark.compare(good / "a.json", good / "b.json", max_f1_delta=0.03)
    assert found.point_check.ok is ok


def test_reports_over_other_data_are_refused(runs):
    good, _ = runs
    report = json.loads((good / "report.json").read_text("utf-8"))
    report["header"]["dataset_sha256"] = "other"
    (good / "other.json").write_text(json.dumps(report))
    with pytest.raises(FingerprintMismatch, match="dataset_sha256"):
        callmark.compare(good / "report.json", good / "other.json")


def test_a_report_and_results_do_not_go_together(runs):
    good, worse = runs
    with pytest.raises(BadInput, match=r"is a report, .* are results"):
        callmark.compare(good / "report.json", worse)
    with pytest.raises(UsageError, match="--common"):
        callmark.compare(good / "report.json", worse / "report.json", common=True)
    (good / "results.jsonl").rename(good / "results.jsonl.journal")
    with pytest.raises(BadInput, match="the run is not finished"):
        callmark.compare(good, worse)


def test_what_is_neither_is_refused_by_name(runs, tmp_path):
    good, _ = runs
    (tmp_path / "empty").mkdir()
    for path, message in [
        (tmp_path / "none.jsonl", "no such file"),
        (tmp_path / "empty", "holds neither results.jsonl nor report.json"),
        (write_lines(tmp_path / "blank.jsonl", []), "has no results to compare"),
        (write_lines(tmp_path / "odd.jsonl", [{"a": 1}]), "odd.jsonl:1: model_output: is missing"),
    ]:
        with pytest.raises(BadInput, match=message):
            callmark.compare(good, path)
    (tmp_path / "odd.json").write_text('{\n "a": 1}')
    with pytest.raises(BadInput, match=r"odd.json: is no report: report_version: is missing"):
        callmark.compare(tmp_path / "odd.json", tmp_path / "odd.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": 0}, "margin"),
        ({"margin": "x"}, "margin"),
        ({"max_f1_delta": 2}, "max_f1_delta"),
        ({"primary_metrics": ["accuracy"]}, "accuracy is no metric"),
    ],
)
def test_options_that_make_no_sense_are_named(runs, options, message):
    good, _ = runs
    with pytest.raises(UsageError, match=message):
        callmark.compare(good, good, **options)


def test_a_run_from_python_does_not_pretend_to_compare(large_project):
    with pytest.raises(UsageError, match="baseline: compare afterwards"):
        callmark.run(large_project.config(baseline="x.jsonl"))


def test_a_report_is_told_by_what_is_in_it(runs):
    good, _ = runs
    assert is_report(good / "report.json")
    assert not is_report(good / "results.jsonl")
    one_line = good / "line.jsonl"
    one_line.write_text(json.dumps(json.loads((good / "report.json").read_text("utf-8"))))
    assert is_report(one_line)
    assert file_of(good) == good / "results.jsonl"


def test_equal_bytes_on_repeat_and_no_socket(runs, tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    written = []
    for name in ("one.json", "two.json"):
        write_comparison(tmp_path / name, compare_runs(*runs, CompareOptions()))
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
