"""The checks of samples, from the dataset to the verdict and into every form of a report."""

import csv
import json
import random

import pytest
from tests.integration.conftest import read_lines, write_lines
from tests.integration.sharded import run_shards, without_timing

import callmark
from callmark.cli import main
from callmark.resources import data_path
from callmark.shards.merge import merge_shards

N = 20
HEADER = {"__header__": True, "dataset_version": "1"}
CHECKS = [{"contains": "city {n}", "max_words": 6}, {"not_called": "web.open"}]


def items(checks=CHECKS, **more):
    return [
        {
            "prompt": f"Which city is number {n}?",
            "teacher_text": f"It is city {n}.",
            "metadata": {
                "sample_id": f"s{n:02}",
                "checks": json.loads(json.dumps(checks).replace("{n}", str(n))),
                **more,
            },
        }
        for n in range(N)
    ]


def answers(said="It is city {n}.", but=None):
    return [
        {"sample_id": f"s{n:02}", "model_output": (but or {}).get(n, said).replace("{n}", str(n))}
        for n in range(N)
    ]


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "data.jsonl", [HEADER, *items()])
    return tmp_path


def settings(**more):
    return {"in": "data.jsonl", "runner": "replay", "model": "answers.jsonl", **more}


def run(folder, given=None, **more):
    write_lines(folder / "answers.jsonl", answers() if given is None else given)
    return callmark.run(settings(**more)).to_dict()


def gate(report):
    return next(one for one in report["gates"] if one["name"] == "checks_ok_rate")


def test_checks_alone_can_prove_a_model(project):
    report = run(project)
    assert (report["verdict"], gate(report)["status"], gate(report)["n"]) == ("pass", "pass", N)
    assert report["metrics"]["checks_ok_rate"]["numerator"] == N
    worse = run(project, answers(but={3: "It is town 3.", 5: "So it is, I am sure, city 5."}))
    assert (worse["verdict"], worse["verdict_reason"]) == ("fail", "failed: checks_ok_rate")
    assert worse["failing"]["checks_ok_rate"]["sample_ids"] == ["s03", "s05"]


def test_silence_fails_and_what_silence_passes_proves_nothing(project):
    assert run(project, answers(""))["verdict"] == "fail"
    write_lines(project / "data.jsonl", [HEADER, *items({"not_contains": "sorry"})])
    report = run(project)
    assert (report["verdict"], gate(report)["status"]) == ("inconclusive", "pass")
    assert report["verdict_reason"].endswith("an empty answer passes checks_ok_rate too")
    # One sample that asks for words is enough for a bound that forgives nothing, not for 0.9.
    asking = [*items({"not_contains": "sorry"})[:-1], items()[-1]]
    write_lines(project / "data.jsonl", [HEADER, *asking])
    assert run(project)["verdict"] == "pass"
    assert run(project, gates={"checks_ok_rate": {"bound": 0.9}})["verdict"] == "inconclusive"


def test_a_lost_trial_is_no_pass(project):
    report = run(project, answers()[1:], max_errors=1)
    assert (gate(report)["n"], report["counts"]["trials_error"]) == (N - 1, 1)
    lost = run(project, answers()[:1], max_errors=N)
    assert (gate(lost)["status"], gate(lost)["n"]) == ("inconclusive", 1)


def test_shards_resume_and_scoring_again_give_the_same_bytes(project):
    given = answers(but={3: "It is town 3."})
    run(project, given, out="whole.jsonl", report="whole.json")
    shards = run_shards(settings(), project / "shards", 3)
    random.Random(1).shuffle(shards)
    merge_shards(shards, out=project / "merged.jsonl", report=project / "merged.json")
    whole = (project / "whole.jsonl").read_bytes()
    assert (project / "merged.jsonl").read_bytes() == whole
    assert without_timing(project / "merged.json") == without_timing(project / "whole.json")
    assert main(["score", "whole.jsonl", "--out", "again.jsonl", "--quiet"]) in (0, 1)
    ours, theirs = read_lines("again.jsonl"), read_lines("whole.jsonl")
    assert [one["scores"] for one in ours] == [one["scores"] for one in theirs]


def test_resumed_lines_have_their_checks(project):
    given = answers(but={3: "It is town 3."})
    run(project, given, out="whole.jsonl", report="whole.json")
    run(project, given, out="cut.jsonl", report="cut.json", limit=7)
    callmark.run(settings(out="cut.jsonl", report="cut.json", resume=True))
    assert (project / "cut.jsonl").read_bytes() == (project / "whole.jsonl").read_bytes()


def test_every_form_tells_each_check(project, capsys):
    run(
        project,
        answers(but={3: "It is town 3.", 4: "x " * 7}),
        out="r/results.jsonl",
        report="r/report.json",
    )
    why = 'check contains "city 3": the answer does not contain it'
    forms = ["junit.xml", "summary.md", "report.html", "t.csv"]
    assert main(["report", "r", *(word for form in forms for word in ("-o", f"r/{form}"))]) == 0
    texts = {form: (project / "r" / form).read_text("utf-8") for form in forms}
    assert why.replace('"', "&quot;") in texts["junit.xml"]
    assert "check max_words 6: the answer has 7 words" in texts["junit.xml"]
    assert "`checks_ok_rate`" in texts["summary.md"]
    assert why in texts["summary.md"]
    assert (
        '"checks_ok":false,"checks":[{"kind":"contains","wanted":"city 3","ok":false'
        in texts["report.html"]
    )
    rows = {row["sample_id"]: row for row in csv.DictReader(texts["t.csv"].splitlines())}
    assert rows["s03"]["checks_ok"] == "false"
    assert (
        rows["s02"]["checks"] == 'contains "city 2": ok; max_words 6: ok; not_called web.open: ok'
    )
    assert why in rows["s03"]["reasons"]
    capsys.readouterr()
    assert main(["show", "r", "s03"]) == 0
    shown = capsys.readouterr().out
    assert "checks: no" in shown
    assert 'contains "city 3": the answer does not contain it' in shown
    assert "max_words 6: ok" in shown


def test_compare_shows_them(project):
    run(project, out="a.jsonl", report="a.json")
    run(project, answers(but=dict.fromkeys(range(6), "No idea.")), out="b.jsonl", report="b.json")
    found = callmark.compare("a.jsonl", "b.jsonl").to_dict()
    row = next(one for one in found["exploratory"] if one["metric"] == "checks_ok_rate")
    assert (row["a"], row["b"], row["worse"], row["n"]) == (1.0, 0.7, 6, N)


def test_results_fit_their_schema(project):
    import jsonschema_rs

    run(project, answers(but={3: "It is town 3."}), out="a.jsonl", report="a.json")
    schema = json.loads(data_path("schemas", "eval_result.schema.json").read_text("utf-8"))
    validator = jsonschema_rs.Draft202012Validator(schema)
    assert all(validator.is_valid(line) for line in read_lines("a.jsonl"))


BAD = [
    ([{"contain": "x"}], "metadata.checks[0].contain: unknown key; did you mean contains?"),
    ({"notContains": "x"}, "metadata.checks.notContains: unknown key; did you mean not_contains?"),
    ({"must_contain": "x"}, "metadata.checks.must_contain: unknown key; did you mean contains?"),
    ({"max_calls": 1}, "metadata.checks.max_calls: unknown key; did you mean calls_at_most?"),
    ({"sentiment": "good"}, "metadata.checks.sentiment: unknown key; known: contains, not_"),
    (
        [{"json_path": [{"path": "a", "equal": 1}]}],
        "metadata.checks[0].json_path[0].equal: unknown key; did you mean equals?",
    ),
    ({"json_path": {"path": "a"}}, "metadata.checks.json_path.equals: is missing"),
    ({"json_path": {"path": "a[", "equals": 1}}, "metadata.checks: json_path a[ = 1: cannot be read"),
    ({"regex": "(?<=x)y"}, 'metadata.checks: regex "(?<=x)y": cannot be used: invalid perl operator'),
    ({"regex": ["ok", "("]}, 'metadata.checks: regex "(": cannot be used: missing ): ('),
    ({"contains": ""}, "metadata.checks.contains: must not be empty"),
    ({"max_words": -1}, "metadata.checks.max_words: must be at least 0, not -1"),
    ({"max_words": True}, "metadata.checks.max_words: must be a whole number, not true"),
    ({"max_turns": 0}, "metadata.checks.max_turns: must be at least 1, not 0"),
    ({"before": ["web.search"]}, "metadata.checks.before: must be a list of two tools"),
    ({"before": ["a", "a"]}, "metadata.checks: before a, a: names one tool twice"),
    ([{}], "metadata.checks[0]: holds no check"),
    ("contains x", "metadata.checks: must be a list or an object, not"),
    ([["x"]], "metadata.checks[0]: must be an object, not"),
    ({"not_called": "web.serch"}, "metadata.checks: 'web.serch' is no tool of the registry"),
]  # fmt: skip


@pytest.mark.parametrize(("checks", "said"), BAD)
def test_a_check_that_cannot_be_made_is_refused_with_its_place(project, capsys, checks, said):
    write_lines(project / "data.jsonl", [HEADER, *items(checks)[:1]])
    write_lines(project / "answers.jsonl", answers())
    assert main(["run", "--in", "data.jsonl", "--model", "answers.jsonl", "--quiet"]) == 2
    assert f"data.jsonl:2: {said}" in capsys.readouterr().err


def test_verify_says_which_answers_fail_their_own_checks(project, capsys):
    spoilt = items()
    spoilt[4]["teacher_text"] = "It is town 4."
    spoilt[5]["metadata"]["checks"].append({"max_turns": 2})
    write_lines(project / "data.jsonl", [HEADER, *spoilt])
    report = callmark.verify_dataset("data.jsonl").to_dict()
    assert gate(report)["status"] == "fail"
    assert report["failing"]["checks_ok_rate"]["sample_ids"] == ["s04"]
    said = 'teacher_text fails a check: s04: contains "city 4": the answer does not contain it'
    assert said in report["warnings"]
    [turns] = [one for one in report["warnings"] if "max_turns" in one]
    assert turns.endswith("was not judged: s05")


def test_stats_diff_add_import_and_export_keep_them(project, capsys):
    changed = items()
    changed[2]["metadata"]["checks"] = {"contains": "2"}
    write_lines(project / "new.jsonl", [HEADER, *changed])
    assert main(["dataset", "stats", "data.jsonl", "--json"]) == 0
    stats = json.loads(capsys.readouterr().out)
    assert stats["with_checks"] == N
    assert stats["checks"] == {"contains": N, "max_words": N, "not_called": N}
    [reach] = [one for one in stats["gates"] if one["name"] == "checks_ok_rate"]
    assert (reach["n"], reach["decided"]) == (N, "yes")
    main(["dataset", "diff", "data.jsonl", "new.jsonl"])
    assert "metadata.checks" in capsys.readouterr().out
    run(project, out="r.jsonl", report="r.json")
    assert main(["dataset", "add", "added.jsonl", "--from-trace", "r.jsonl", "s03"]) == 0
    [added] = read_lines("added.jsonl")
    assert added["metadata"]["checks"] == items()[3]["metadata"]["checks"]
    for form in ("plain.jsonl", "log.json"):
        source = "r.jsonl" if form == "log.json" else "data.jsonl"
        assert main(["dataset", "export", source, "--out", form]) == 0
        assert main(["dataset", "import", form, "--out", f"back-{form}l"]) == 0
        back = [line["metadata"]["checks"] for line in read_lines(f"back-{form}l")[1:]]
        assert back == [one["metadata"]["checks"] for one in items()]
    log = json.loads((project / "log.json").read_text("utf-8"))
    assert log["samples"][0]["scores"]["checks_ok"] == {"value": 1.0}
