"""`callmark compare`, `run --baseline` and `baseline set` as a stranger types them."""

import json
from typing import NamedTuple

import pytest

from callmark.cli import main


class Finished(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def callmark(tmp_path, monkeypatch, capsys):
    """In this process: what a shell adds is tried elsewhere, and a child takes a second each."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> Finished:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Finished(code, *capsys.readouterr())

    return call


def spoil(world, count: int, **changes) -> None:
    """The first so many recorded answers become others."""
    lines = [json.loads(line) for line in world.answers.read_text("utf-8").splitlines()]
    changed = [{**line, **changes} for line in lines[:count]]
    world.write(world.answers, changed + lines[count:])


@pytest.fixture
def good(callmark, world):
    assert callmark(*world.arguments("--out", "good/results.jsonl", "--quiet")).returncode == 0
    return world.folder / "good"


def test_the_same_answers_are_not_worse(callmark, world, good):
    finished = callmark("compare", good, good)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("NON_INFERIOR  not worse: answers built on results")
    assert "20 pairs, 0 dropped with an error; as they were scored" in finished.stdout


def test_a_regression_is_exit_1_with_the_samples_that_flipped(callmark, world, good):
    spoil(world, 8, model_output="I do not know.", tool_trace=[])
    callmark(*world.arguments("--out", "new/results.jsonl", "--quiet"))
    finished = callmark("compare", good, "new", "--json", "out/c.json", "--markdown", "out/c.md")
    assert finished.returncode == 1, finished.stdout
    assert finished.stdout.startswith("REGRESSION  worse: ")
    assert "samples with only valid calls, lost (8): issues-00, issues-01" in (
        " ".join(finished.stdout.split())
    )
    written = json.loads((world.folder / "out" / "c.json").read_bytes())
    assert written["decision"] == "regression"
    assert written["pairs"]["paired"] == 20
    markdown = (world.folder / "out" / "c.md").read_text("utf-8")
    assert markdown.startswith("### ❌ Regression: worse: ")
    assert "(`valid_call_rate`) | 1.000 | 0.600 | -0.400 |" in markdown
    quiet = callmark("compare", good, "new", "--quiet")
    assert quiet.stdout.count("\n") == 1


def test_few_samples_are_inconclusive_unless_a_point_check_is_asked_for(callmark, world, good):
    spoil(world, 1, model_output="It has 1003 open issues, I think.")
    callmark(*world.arguments("--out", "new/results.jsonl", "--quiet"))
    finished = callmark("compare", good, "new")
    assert finished.returncode == 5, finished.stdout
    assert "INCONCLUSIVE" in finished.stdout
    assert "20 samples, at least 88 are needed" in finished.stdout
    assert callmark("compare", good, "new", "--margin", "0.3").returncode == 0
    point = callmark("compare", good, "new", "--max-f1-delta", "0.03")
    assert point.returncode == 0, point.stdout
    assert point.stdout.startswith("POINT CHECK OK  answers built on results differs by 0.000")
    assert "a plain limit, no test" in " ".join(point.stdout.split())


def test_other_data_is_exit_3_and_common_goes_on(callmark, world, good):
    world.items[0]["prompt"] += " Now."
    world.write_dataset({})
    callmark(*world.arguments("--out", "new/results.jsonl", "--quiet"))
    finished = callmark("compare", good, "new")
    assert finished.returncode == 3
    assert "the runs are not comparable:\n  dataset_sha256: A has " in finished.stderr
    common = callmark("compare", good, "new", "--common")
    assert common.returncode == 0, common.stdout + common.stderr
    assert "changed (item 1): issues-00" in common.stdout


def test_the_config_names_the_primary_metrics(callmark, world, good):
    (world.folder / "callmark.yaml").write_text("primary_metrics: [privacy_ok_rate]\nmargin: 0.5\n")
    finished = callmark("compare", good, good)
    assert finished.stdout.startswith("NON_INFERIOR  not worse: privacy\n")
    flag = callmark("compare", good, good, "--primary-metrics", "call_f1_macro")
    assert flag.stdout.startswith("NON_INFERIOR  not worse: right calls\n")
    wrong = callmark("compare", good, good, "--primary-metrics", "f1")
    assert wrong.returncode == 2
    assert "f1 is no metric of a sample; known: " in wrong.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--margin", "0"), "--margin: "),
        (("--margin", "x"), "invalid float value"),
        (("--max-f1-delta", "3"), "--max-f1-delta: must be a number from 0 to 1, not 3"),
    ],
)
def test_usage_errors_are_one_sentence(callmark, good, words, message):
    finished = callmark("compare", good, good, *words)
    assert finished.returncode == 2
    assert message in finished.stderr
    assert "Traceback" not in finished.stderr


@pytest.fixture
def three(callmark, world, good):
    """The good run, one that gives up on eight samples, and one like the first."""
    callmark(*world.arguments("--out", "same/results.jsonl", "--quiet"))
    spoil(world, 8, model_output="I do not know.", tool_trace=[])
    callmark(*world.arguments("--out", "new/results.jsonl", "--quiet"))
    return good, "new", "same"


def test_f58_of_many_runs_each_is_compared_with_the_first(callmark, world, three):
    finished = callmark("compare", *three, "-o", "m.json", "-o", "m.md", "-o", "m.html")
    assert finished.returncode == 1, finished.stderr
    assert finished.stdout.startswith("REGRESSION  worse than good: new\n")
    assert "\n  same  NON_INFERIOR  not worse: " in finished.stdout
    assert max(map(len, finished.stdout.splitlines())) <= 80
    written = json.loads((world.folder / "m.json").read_bytes())
    assert [one["decision"] for one in written["comparisons"]] == ["regression", "non_inferior"]
    # What the comparison of two says, and what the run says of itself.
    assert callmark("compare", *three[:2], "-o", "two.json").returncode == 1
    two = json.loads((world.folder / "two.json").read_bytes())
    assert written["comparisons"][0] == two
    report = json.loads((world.folder / "new" / "report.json").read_bytes())
    measured = written["runs"][1]["metrics"]["integration_f1_macro_lax"]
    assert measured == report["metrics"]["integration_f1_macro_lax"]
    markdown = (world.folder / "m.md").read_text("utf-8")
    assert markdown.startswith("### ❌ Regression: worse than good: new")
    assert "| `new` | 0.600 (" in markdown
    page = (world.folder / "m.html").read_text("utf-8")
    assert '"kind":"runs"' in page
    assert '"points":true' in page


def test_f58_the_exit_code_of_many_runs_is_that_of_the_worst(callmark, world, three):
    good, new, same = three
    assert callmark("compare", good, same, good, "--quiet").returncode == 0
    # One sample more or less: nobody can tell.
    lines = (world.folder / "new" / "results.jsonl").read_text("utf-8").splitlines(keepends=True)
    fine = (world.folder / "same" / "results.jsonl").read_text("utf-8").splitlines(keepends=True)
    (world.folder / "one.jsonl").write_text("".join(lines[:1] + fine[1:]), "utf-8")
    open_ = callmark("compare", good, same, "one.jsonl")
    assert open_.returncode == 5, open_.stdout
    told = "INCONCLUSIVE  nobody can tell whether worse than good: one\n"
    assert open_.stdout.startswith(told)
    assert "unnecessary calls: no data in any run\n" in open_.stdout
    limit = callmark("compare", new, good, same, "--max-f1-delta", "0.03", "--quiet")
    assert limit.returncode == 1
    assert limit.stdout == "LIMIT EXCEEDED  beyond a limit against new: good, same\n"


def test_f58_many_reports_hold_no_samples_to_pair(callmark, world, three):
    report = world.folder / "good" / "report.json"
    finished = callmark("compare", report, "new", "same")
    assert finished.returncode == 2
    assert "is a report, and only two of those can be compared" in finished.stderr


def test_f58_runs_of_one_name_are_told_apart_by_their_paths(callmark, world, three):
    (world.folder / "deep").mkdir()
    (world.folder / "new").rename(world.folder / "deep" / "good")
    finished = callmark("compare", "good", "deep/good", "same", "--quiet")
    told = "worse than good/results.jsonl: deep/good/results.jsonl"
    assert finished.stdout == f"REGRESSION  {told}\n"


def test_a_baseline_is_kept_and_run_compares_with_it(callmark, world, good):
    kept = callmark("baseline", "set", "good")
    assert kept.returncode == 0, kept.stderr
    assert kept.stdout == (
        "baseline.jsonl: 20 trials, 0 of them errors\n"
        "next: callmark run --baseline baseline.jsonl, with the other options of that run\n"
    )
    assert (world.folder / "baseline.jsonl").read_bytes() == (good / "results.jsonl").read_bytes()
    same = callmark(*world.arguments("--out", "a/results.jsonl", "--baseline", "baseline.jsonl"))
    assert same.returncode == 0, same.stdout
    assert "\nNON_INFERIOR  " in same.stdout
    assert json.loads((world.folder / "a" / "comparison.json").read_bytes())["paired"] is True
    spoil(world, 8, model_output="I do not know.", tool_trace=[])
    worse = callmark(
        *world.arguments("--out", "b/results.jsonl", "--baseline", "baseline.jsonl", "--quiet"),
        "--no-fail-on-gate-failure",
    )
    assert worse.returncode == 1
    assert [line.split()[0] for line in worse.stdout.splitlines()] == ["FAIL", "REGRESSION"]


def test_a_baseline_that_is_not_there_is_said_before_anything_is_run(callmark, world):
    finished = callmark(*world.arguments("--baseline", "none.jsonl"))
    assert finished.returncode == 2
    assert "none.jsonl: no such file" in finished.stderr
    assert not (world.folder / "results.jsonl").exists()


def test_the_results_of_a_run_never_replace_its_baseline(callmark, world, good):
    finished = callmark(
        *world.arguments("--out", "good/results.jsonl", "--baseline", "good/results.jsonl")
    )
    assert finished.returncode == 2
    assert "is the file of --baseline" in finished.stderr


def test_baseline_set_refuses_what_is_no_run(callmark, world, good):
    for word, message in [
        ("good/report.json", "is a report; results are needed"),
        ("none", "no such file"),
    ]:
        finished = callmark("baseline", "set", word)
        assert finished.returncode == 2
        assert message in finished.stderr
    itself = callmark("baseline", "set", "good", "--out", "good/results.jsonl")
    assert itself.returncode == 2
    assert callmark("baseline").returncode == 2


def test_a_baseline_with_errors_says_so(callmark, world):
    lines = world.answers.read_text("utf-8").splitlines(keepends=True)
    world.answers.write_text("".join(lines[1:]), "utf-8")
    callmark(*world.arguments("--max-errors", "1", "--quiet"))
    finished = callmark("baseline", "set", "results.jsonl")
    assert "20 trials, 1 of them errors" in finished.stdout
    compared = callmark("compare", "baseline.jsonl", "results.jsonl", "--quiet")
    assert compared.returncode == 5
    assert "1 of 20 pairs are missing, more than 2%" in compared.stdout


@pytest.mark.slow
def test_several_runs_are_kept_as_one_longer_past(callmark, world, good):
    for name in ("b", "c"):
        callmark(*world.arguments("--out", f"{name}/results.jsonl", "--repeat", "1", "--quiet"))
    kept = callmark("baseline", "set", "good", "b", "c")
    assert kept.returncode == 0, kept.stderr
    assert kept.stdout.startswith("baseline.jsonl: 60 trials, 0 of them errors")
    text = (world.folder / "baseline.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    numbers = {}
    for one in lines:
        numbers.setdefault(one["sample_id"], []).append(one["trial"])
    assert len(numbers) == 20
    assert all(found == [0, 1, 2] for found in numbers.values())
    scored = callmark("score", "baseline.jsonl", "--report", "all.json", "--quiet")
    assert scored.returncode == 0, scored.stderr
    repeat = json.loads((world.folder / "all.json").read_bytes())["repeat"]
    assert (repeat["trials"], repeat["steady"], repeat["flaky"]) == (3, 20, 0)
    assert repeat["noise"]["call_f1_macro"]["floor"] == 0.0
    compared = callmark("compare", "baseline.jsonl", "good")
    assert "no sample fell below its own past" in compared.stdout


def test_one_run_is_no_longer_past_because_it_is_named_twice(callmark, world, good):
    finished = callmark("baseline", "set", "good", "good/results.jsonl")
    assert finished.returncode == 2
    assert "is named twice" in finished.stderr


def test_trials_of_another_model_are_nobodys_past(callmark, world, good):
    spoil(world, 2, model_output="I do not know.", tool_trace=[])
    callmark(*world.arguments("--out", "other/results.jsonl", "--quiet"))
    finished = callmark("baseline", "set", "good", "other")
    assert finished.returncode == 3
    assert "model_fingerprint" in finished.stderr
    assert not (world.folder / "baseline.jsonl").exists()


@pytest.mark.slow
def test_a_sample_in_quarantine_is_left_out_of_gates_and_comparison(callmark, world, good):
    entry = "issues-00: {owner: kim, until: 2027-01-31, why: flaky}"
    (world.folder / "callmark.yaml").write_text(f"quarantine:\n  {entry}\n", "utf-8")
    for day, left_out in (("2027-01-31", 1), ("2027-02-01", 0)):
        out = f"{day}/results.jsonl"
        words = world.arguments("--out", out, "--baseline", "good", "--today", day)
        finished = callmark(*words)
        assert finished.returncode == 0, finished.stdout
        report = json.loads((world.folder / day / "report.json").read_bytes())
        assert report["counts"]["quarantined"] == left_out
        assert report["header"]["quarantine"]["issues-00"]["expired"] is not bool(left_out)
        compared = json.loads((world.folder / day / "comparison.json").read_bytes())
        assert compared["pairs"]["quarantined"]["count"] == left_out
        assert compared["pairs"]["paired"] == 20 - left_out
        assert ("in quarantine until 2027-01-31" in finished.stdout) == bool(left_out)
