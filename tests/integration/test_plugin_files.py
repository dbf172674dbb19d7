"""What a file of one's own adds: the examples of docs/extending.md through the command line, what
they leave behind, and what becomes of them when they are wrong, changed or missing."""

import csv
import json
import os
import re
import tempfile
from pathlib import Path

import pytest

import callmark
from callmark.cli import main
from callmark.config import load_config
from callmark.datasets.reader import open_dataset
from callmark.errors import PluginError, UsageError
from callmark.plugins import add_plugins, plugin_scope, rows_of
from callmark.records.results import Fingerprints
from callmark.records.seams import Conversation, Failure, Reply, Runner
from callmark.shards.engine import Plan
from callmark.shards.ray import ship, unpack

DOC = (Path(__file__).parents[2] / "docs" / "extending.md").read_text("utf-8")
EXAMPLES = dict(re.findall(r"^```(?:python|json|yaml) (\S+)\n(.*?)^```$", DOC, re.M | re.S))
SEAMS = {
    "ask.py": "call_format",
    "asker.py": "runner",
    "brevity.py": "scorer",
    "frugal.py": "scorer",
    "brief.py": "report",
    "quiz.py": "importer",
}
ASKED = ["--plugin", "ask.py", "--plugin", "asker.py", "--runner", "asker"]
FIRST = ["--in", "dataset.jsonl", "--fixtures", "fixtures"]
FEW = ["--min-eligible-for-gates", "2"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The files of the page, without its settings file."""
    monkeypatch.chdir(tmp_path)
    for name, text in EXAMPLES.items():
        if name != "callmark.yaml":
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_text(text, "utf-8")
    yield tmp_path
    assert all(row.home == "" or "callmark_plugin" not in row.home for row in rows_of("scorer"))
    assert rows_of("scorer") == (), "what a command loaded ends with it"


def run(*words, code=0):
    assert main([str(word) for word in words]) == code, words


def run_asker(*words, out="run", code=5):
    run("run", *FIRST, *ASKED, "--out", f"{out}/results.jsonl", "--quiet", *words, code=code)


def lines(path="run/results.jsonl"):
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def report(path="run/report.json"):
    return json.loads(Path(path).read_text("utf-8"))


def gate(name, path="run/report.json"):
    return next(one for one in report(path)["gates"] if one["name"] == name)


def write(name, body, **decorator):
    """A file with one scorer, whose function has this body."""
    given = ", ".join(f"{key}={value!r}" for key, value in decorator.items())
    Path(name).write_text(
        f"import callmark\n\n\n@callmark.scorer({given})\ndef {Path(name).stem}(sample, trace):\n"
        f"    {body}\n",
        "utf-8",
    )


def change(name):
    """The same code in other bytes."""
    Path(name).write_text(Path(name).read_text("utf-8") + "\n# changed\n", "utf-8")


# Twenty lines for a row


@pytest.mark.parametrize("name", SEAMS)
def test_an_example_has_twenty_lines_or_fewer_and_one_row(name):
    assert len(EXAMPLES[name].splitlines()) <= 20
    assert f"@callmark.{SEAMS[name]}" in EXAMPLES[name]


def test_a_call_format_and_a_runner_answer_through_the_command_line():
    run_asker()
    boats, bridges = lines()
    assert boats["model_output"] == "I found 120."
    [call] = bridges["tool_trace"]
    assert (call["name"], call["arguments"], call["status"]) == (
        "web.search",
        {"q": "bridges"},
        "ok",
    )
    assert report()["header"]["runner"] == "asker"
    assert [mark["name"] for mark in report()["provenance"]["plugins"]] == ["ask", "asker"]


def test_a_format_of_a_file_is_one_of_auto_and_has_its_name():
    run("run", *FIRST, "--plugin", "ask.py", "--runner", "replay", "--model", "none.jsonl", code=2)
    text = 'ASK web.search {"q": "boats"}'
    assert callmark.parse_tool_calls(text) == []
    with plugin_scope():
        add_plugins(["ask.py"])
        for name in ("auto", "ask"):
            [call] = callmark.parse_tool_calls(text, format=name)
            assert (call["name"], call["format"], call["status"]) == ("web.search", "ask", "ok")


def test_a_scorer_stands_wherever_the_built_in_ones_do(capsys):
    words = ["--plugin", "brevity.py", "--gate", "brevity.words<=2", *FEW]
    forms = ["-o", "trials.csv", "-o", "junit.xml", "-o", "summary.md"]
    run_asker(*words, *forms, code=1)
    boats = lines()[0]
    assert boats["scores"]["more"] == {"brevity.short_enough": True, "brevity.words": 3.0}
    [mark] = boats["scoring"]["scorers"]
    assert (mark["name"], mark["measures"], mark["lower"]) == (
        "brevity", ["short_enough", "words"], ["words"],
    )  # fmt: skip
    found = report()["metrics"]
    short, words = found["brevity.short_enough"], found["brevity.words"]
    assert (short["numerator"], short["denominator"], short["n"], short["method"]) == (
        2, 2, 2, "wilson",
    )  # fmt: skip
    assert (words["value"], words["method"], words["ci_95"]) == (3.0, "bootstrap", [3.0, 3.0])
    assert gate("brevity.words")["status"] == "fail"
    assert report()["failing"]["brevity.words"]["sample_ids"] == ["boats", "bridges"]
    assert "brevity.words is 3" in Path("junit.xml").read_text("utf-8")
    assert "`brevity.words`" in Path("summary.md").read_text("utf-8")
    rows = list(csv.DictReader(Path("trials.csv").read_text("utf-8").splitlines()))
    assert (rows[0]["brevity.short_enough"], rows[0]["brevity.words"]) == ("true", "3.0")
    assert (rows[0]["failed"], rows[0]["reasons"]) == ("true", "brevity.words is 3")
    page = Path("run/report.html").read_text("utf-8")
    assert "scores.more" in page  # what the page's script shows of plug-ins
    assert '"brevity.words":3.0' in page
    capsys.readouterr()
    run("show", "run", "boats")
    assert "brevity.short_enough: yes\nbrevity.words: 3" in capsys.readouterr().out


def test_a_metric_brings_its_gate_and_the_settings_win_over_it():
    run_asker("--plugin", "frugal.py", *FEW, code=0)
    assert gate("frugal.calls")["policy"] == "clear_fail"
    assert (gate("frugal.calls")["status"], gate("frugal.calls")["source"]) == ("pass", "default")
    run_asker("--plugin", "frugal.py", "--gate", "frugal.calls=3", *FEW, out="two", code=0)
    loosened = gate("frugal.calls", "two/report.json")
    assert (loosened["bound"], loosened["source"], loosened["loosened"]) == (3.0, "flag", True)


def test_a_report_is_chosen_by_its_ending_or_by_its_name():
    run_asker("--plugin", "brief.py", "-o", "run.brief", "-o", "brief:run.txt")
    assert Path("run.brief").read_text("utf-8") == Path("run.txt").read_text("utf-8")
    assert "boats: I found 120.\n" in Path("run.brief").read_text("utf-8")
    run("report", "run", "--plugin", "brief.py", "-o", "again.brief")
    assert Path("again.brief").read_bytes() == Path("run.brief").read_bytes()
    run("report", "run", "-o", "again.brief", code=2)


def test_an_importer_is_recognised_or_named():
    imported = ["dataset", "import", "quiz.jsonl", "--plugin", "quiz.py", "--report", "import.json"]
    run(*imported, "--out", "auto.jsonl")
    run(*imported, "--out", "named.jsonl", "--format", "quiz")
    assert Path("auto.jsonl").read_bytes() == Path("named.jsonl").read_bytes()
    first = lines("auto.jsonl")[1]
    assert (first["prompt"], first["metadata"]["sample_id"]) == ("How many boats?", "q1")
    told = report("import.json")
    [mark] = told["provenance"]["plugins"]
    assert (told["format"], mark["seam"], mark["name"]) == ("quiz", "importer", "quiz")
    run("dataset", "import", "quiz.jsonl", "--out", "x.jsonl", "--format", "quiz", code=2)


def test_an_importer_may_give_conversations_lists_and_nothing():
    Path("talk.py").write_text(
        "import callmark\n\n\n@callmark.importer\ndef talk(entry):\n"
        "    if entry['no'] == 'q2':\n        return None\n"
        "    said = {'role': 'assistant', 'content': '12.'}\n"
        "    asked = {'role': 'user', 'content': entry['question']}\n"
        "    return [{'sample_id': 'one', 'messages': [asked, said]},"
        " {'prompt': 'And bridges?', 'metadata': {'sample_id': 'two'}}]\n"
    )
    words = ["--out", "d.jsonl", "--plugin", "talk.py", "--format", "talk", "--report", "r.json"]
    run("dataset", "import", "quiz.jsonl", *words)
    assert [line["metadata"]["sample_id"] for line in lines("d.jsonl")[1:]] == ["one", "two"]
    assert lines("d.answers.jsonl")[0]["sample_id"] == "one"
    assert [(kind["kind"], kind["count"]) for kind in report("r.json")["unmapped"]] == [
        ("left_out", 1)
    ]


# Fingerprints


@pytest.mark.parametrize("name", ["ask.py", "asker.py"])
def test_a_changed_runner_or_format_is_another_runner_fingerprint(name):
    run_asker()
    before = lines()[0]["fingerprints"]["runner_fingerprint"]
    run_asker(out="same")
    assert lines("same/results.jsonl")[0]["fingerprints"]["runner_fingerprint"] == before
    change(name)
    run_asker(out="changed")
    assert lines("changed/results.jsonl")[0]["fingerprints"]["runner_fingerprint"] != before


@pytest.mark.parametrize(
    ("old", "new"), [("words <= 40", "words <= 39"), ("measures=", 'version="2", measures=')]
)
def test_a_changed_scorer_is_another_scoring(old, new):
    run_asker("--plugin", "brevity.py")
    text = Path("brevity.py").read_text("utf-8")
    Path("brevity.py").write_text(text.replace(old, new, 1), "utf-8")
    run_asker("--plugin", "brevity.py", out="two")
    one, other = lines()[0], lines("two/results.jsonl")[0]
    assert one["scoring"]["scorers"] != other["scoring"]["scorers"]
    assert one["fingerprints"] == other["fingerprints"]


@pytest.mark.parametrize("name", ["brief.py", "brevity.py"])
def test_reports_and_scorers_are_in_the_provenance(name):
    run_asker("--plugin", name)
    change(name)
    run_asker("--plugin", name, out="two")
    one, two = (
        report(path)["provenance"]["plugins"] for path in ("run/report.json", "two/report.json")
    )
    assert [mark["name"] for mark in one] == [mark["name"] for mark in two]
    assert one != two
    assert [mark["sha256"] for mark in one if mark["name"] == Path(name).stem] != [
        mark["sha256"] for mark in two if mark["name"] == Path(name).stem
    ]


def test_a_changed_importer_is_in_the_report_of_the_import():
    words = [
        "dataset",
        "import",
        "quiz.jsonl",
        "--plugin",
        "quiz.py",
        "--out",
        "d.jsonl",
        "--report",
    ]
    run(*words, "one.json")
    change("quiz.py")
    run(*words, "two.json")
    assert report("one.json")["provenance"] != report("two.json")["provenance"]


def test_without_a_plug_in_nothing_speaks_of_one():
    run("run", *FIRST, *ASKED[:-2], "--runner", "asker", "--out", "run/results.jsonl", code=5)
    line = lines()[0]
    assert "more" not in line["scores"]
    assert "scorers" not in line["scoring"]


# Resuming, shards, engines


def test_a_finished_run_is_judged_again_only_with_its_scorer():
    run_asker("--plugin", "brevity.py")
    whole = Path("run/results.jsonl").read_bytes()
    run_asker("--plugin", "brevity.py", "--resume", "--gate", "brevity.words=2", *FEW, code=1)
    assert Path("run/results.jsonl").read_bytes() == whole


@pytest.mark.parametrize("raised", ["SystemExit(0)", "OSError('gone')", "ValueError('no')"])
def test_a_runner_that_raises_is_its_author_s_affair(raised, capfd):
    Path("stop.py").write_text(
        f"import callmark\n\n\n@callmark.runner\ndef stop(conversation):\n    raise {raised}\n"
    )
    words = ["--plugin", "stop.py", "--runner", "stop", "--out", "cut/results.jsonl", "--quiet"]
    run("run", *FIRST, *words, code=2)
    error = capfd.readouterr().err
    assert ("stop.py" in error and "plug-in" in error) or "the runner stop ended" in error
    assert "a fault of callmark" not in error


def test_a_journal_of_another_scorer_is_refused_by_name(capsys):
    Path("later.py").write_text(
        EXAMPLES["asker.py"].replace("def asker", "def later").replace(
            "    last =", "    import os\n\n    if os.path.exists('stop') and conversation.sample_id"
            " == 'bridges':\n        raise OSError('gone')\n    last =",
        )
    )  # fmt: skip
    words = [*FIRST, "--plugin", "ask.py", "--plugin", "later.py", "--runner", "later"]
    words += ["--plugin", "brevity.py", "--out", "run/results.jsonl", "--quiet"]
    Path("stop").touch()
    assert main(["run", *words]) != 0
    assert Path("run/results.jsonl.journal").is_file()
    Path("stop").unlink()
    text = Path("brevity.py").read_text("utf-8")
    change("brevity.py")
    capsys.readouterr()
    run("run", *words, "--resume", code=3)
    assert "scorers: the journal has" in capsys.readouterr().err
    Path("brevity.py").write_text(text, "utf-8")
    run("run", *words, "--resume", code=5)
    assert [line["scores"]["more"]["brevity.words"] for line in lines()] == [3.0, 3.0]


def test_shards_and_the_local_engine_give_the_same_bytes(capsys):
    words = ["--plugin", "brevity.py", "--gate", "brevity.words=5", *FEW]
    run_asker(*words, code=0)
    for index in (0, 1):
        run_asker(*words, "--num-shards", "2", "--shard-index", index, out=f"shard{index}",
                  code=0)  # fmt: skip
    run(
        "merge",
        "shard0",
        "shard1",
        "--out",
        "merged/results.jsonl",
        "--report",
        "merged/report.json",
    )
    assert Path("merged/results.jsonl").read_bytes() == Path("run/results.jsonl").read_bytes()
    assert gate("brevity.words", "merged/report.json") == gate("brevity.words")
    run_asker(*words, "--engine", "local", "--num-shards", "2", out="engine", code=0)
    assert Path("engine/results.jsonl").read_bytes() == Path("run/results.jsonl").read_bytes()
    assert report("engine/report.json")["metrics"] == report()["metrics"]
    change("brevity.py")
    run_asker(*words, "--num-shards", "2", "--shard-index", "1", out="shard1", code=0)
    capsys.readouterr()
    run("merge", "shard0", "shard1", "--out", "no.jsonl", code=3)
    assert "scorers:" in capsys.readouterr().err


# Scoring again, comparing, verifying


def test_an_old_run_gets_its_measures_and_keeps_them_without_the_file(capsys):
    run_asker()
    run("score", "run", "--plugin", "brevity.py", "--out", "scored.jsonl", "--quiet", code=5)
    assert lines("scored.jsonl")[0]["scores"]["more"]["brevity.words"] == 3.0
    capsys.readouterr()
    run("score", "scored.jsonl", "--out", "kept.jsonl", "--report", "kept.json", "--quiet", code=5)
    assert "the measures of brevity are those of the lines" in capsys.readouterr().err
    assert Path("kept.jsonl").read_bytes() == Path("scored.jsonl").read_bytes()
    assert report("kept.json")["metrics"]["brevity.words"]["value"] == 3.0
    run("score", "scored.jsonl", "--plugin", "frugal.py", "--out", "both.jsonl", "--quiet", code=5)
    both = lines("both.jsonl")[0]
    assert list(both["scores"]["more"]) == ["brevity.short_enough", "brevity.words", "frugal.calls"]
    assert [mark["name"] for mark in both["scoring"]["scorers"]] == ["brevity", "frugal"]
    run("report", "scored.jsonl", "-o", "alone.json")
    assert report("alone.json")["metrics"]["brevity.words"]["value"] == 3.0
    run("score", "scored.jsonl", "--in", "dataset.jsonl", "--out", "in.jsonl", "--quiet", code=5)
    assert "brevity.words" not in lines("in.jsonl")[0]["scores"].get("more", {})


def test_comparing_pairs_the_measures_of_one_scorer(capsys):
    run_asker("--plugin", "brevity.py")
    text = Path("asker.py").read_text("utf-8")
    Path("asker.py").write_text(text.replace("I found", "I looked, and found"), "utf-8")
    run_asker("--plugin", "brevity.py", out="two")
    run("compare", "run", "two", "--json", "c.json", "--quiet", code=5)
    found = {one["metric"]: one for one in report("c.json")["exploratory"]}
    words = found["brevity.words"]
    assert (words["a"], words["b"], words["n"], words["worse"]) == (3.0, 5.0, 2, 2)
    assert (words["better_is"], found["brevity.short_enough"]["method"]) == ("lower", "tango")
    Path("primary.yaml").write_text("primary_metrics: [brevity.words]\n")
    run("compare", "run", "two", "--config", "primary.yaml", "--json", "p.json", code=5)
    assert report("p.json")["primary"][0]["metric"] == "brevity.words"
    change("brevity.py")
    run_asker("--plugin", "brevity.py", out="three")
    capsys.readouterr()
    run("compare", "run", "three", "--json", "c.json", "--quiet", code=5)
    assert "the measures of brevity are not compared" in capsys.readouterr().err
    assert "brevity.words" not in {one["metric"] for one in report("c.json")["exploratory"]}
    run("compare", "run", "three", "--plugin", "brevity.py", "--json", "c.json", "--quiet", code=5)
    assert "brevity.words" in {one["metric"] for one in report("c.json")["exploratory"]}
    Path("primary.yaml").write_text("primary_metrics: [brevity.word]\n")
    capsys.readouterr()
    run("compare", "run", "two", "--config", "primary.yaml", code=2)
    assert "did you mean brevity.words?" in capsys.readouterr().err


def test_verify_applies_a_scorer_to_a_dataset():
    item = lines("dataset.jsonl")[1]
    item["teacher_text"] = "There are 12 boats."
    Path("taught.jsonl").write_text(json.dumps(item) + "\n")
    words = ["--plugin", "brevity.py", "--out", "v.jsonl", "--report", "v.json", "--quiet"]
    # Nothing is wrong with it, and one item decides nothing: quotas are asked for.
    run("verify", "taught.jsonl", "--fixtures", "fixtures", *words, code=5)
    assert lines("v.jsonl")[0]["scores"]["more"]["brevity.words"] == 4.0
    told = callmark.verify_dataset("taught.jsonl", fixtures="fixtures", plugins=["brevity.py"])
    assert told.metrics["brevity.words"].value == 4.0


# What could not be judged, and what is wrong


def test_what_could_not_be_judged_never_passes():
    write("mute.py", "return None", measures=["ok"])
    run_asker("--plugin", "mute.py", "--gate", "mute.ok=0", *FEW, code=0)
    assert lines()[0]["scores"]["more"] == {"mute.ok": None}
    found = gate("mute.ok")
    assert (found["status"], found["value"], found["reason"]) == (
        "inconclusive", None, "no sample could be judged",
    )  # fmt: skip
    run_asker("--plugin", "mute.py", "--gate", "mute.ok=0", *FEW, "--fail-on-inconclusive",
              out="two")  # fmt: skip


def test_a_sample_without_a_value_is_in_no_denominator():
    write("some.py", "return True if sample.sample_id == 'boats' else None", measures=["ok"])
    run_asker("--plugin", "some.py", "--gate", "some.ok=1", *FEW, code=0)
    metric = report()["metrics"]["some.ok"]
    assert (metric["numerator"], metric["denominator"], metric["n"]) == (1, 1, 1)
    assert gate("some.ok")["status"] == "inconclusive"


def test_numbers_of_any_size_and_sign_are_measures():
    write("cold.py", "return -1 if sample.sample_id == 'boats' else -3.5", measures=["degrees"])
    run_asker("--plugin", "cold.py", "--gate", "cold.degrees>=-2", "--repeat", "2", *FEW, code=1)
    metric = report()["metrics"]["cold.degrees"]
    assert (metric["value"], metric["n"], metric["numerator"]) == (-2.25, 2, -4.5)
    assert report()["failing"]["cold.degrees"]["sample_ids"] == ["bridges"]


def test_a_gate_on_a_measure_that_nobody_gave_stays_open():
    Path("lost.py").write_text(
        "import callmark\nfrom callmark.records.seams import Failure\n\n\n"
        "@callmark.runner\ndef lost(conversation):\n    return Failure('gone')\n"
    )
    words = ["--plugin", "lost.py", "--runner", "lost", "--plugin", "brevity.py"]
    run("run", *FIRST, *words, "--gate", "brevity.words=5", "--max-errors", "100%", *FEW,
        "--out", "run/results.jsonl", "--quiet", code=5)  # fmt: skip
    assert gate("brevity.words")["status"] == "inconclusive"


WRONG = {
    "return sample.metadata['nothing']": r"wrong.py:6: the scorer wrong failed on sample 'boats': KeyError: 'nothing'",
    "return {'okay': True}": r"wrong.py:4: the scorer wrong gave no measures for sample 'boats': 'okay' is no measure",
    "return {'ok': 'yes'}": r"wrong.py:4: .*ok: must be a number, True, False or None, not 'yes'",
    "return float('nan')": r"wrong.py:4: .*ok: must be a finite number, or None, not nan",
    "raise SystemExit(0)": r"wrong.py:6: the scorer wrong failed on sample 'boats': SystemExit: 0",
}


@pytest.mark.parametrize("body", WRONG)
@pytest.mark.parametrize("engine", [[], ["--engine", "local", "--num-shards", "1"]])
def test_a_scorer_that_fails_stops_the_command_with_file_and_line(body, engine, capsys):
    if engine and body != "raise SystemExit(0)":
        pytest.skip("one of them is enough for the engine")
    write("wrong.py", body, measures=["ok"])
    run_asker("--plugin", "wrong.py", *engine, code=2)
    error = capsys.readouterr().err
    assert re.search(WRONG[body], error), error
    assert not Path("run/results.jsonl").exists()


BROKEN = {
    "def (": r"--plugin: \S*broken.py:1: invalid syntax",
    "import nowhere_at_all": r"--plugin: \S*broken.py:1: cannot be loaded: ModuleNotFoundError: ",
    "x = 1": r"--plugin: \S*broken.py: adds nothing: put @callmark.scorer",
    "import callmark\ncallmark.scorer(measures=[])(print)": r"broken.py:2: @callmark.scorer print: measures: name",
    "import callmark\n@callmark.scorer(measures={'a': 'up'})\ndef b(s, t): ...": (
        r"broken.py:2: @callmark.scorer b: measures: a: is \"higher\" or \"lower\" better\? Not 'up'"
    ),
    "import callmark\n@callmark.scorer(measures=['a'], gates={'aa': 1})\ndef b(s, t): ...": (
        r"gates: 'aa' is none of its measures"
    ),
    "import callmark\n@callmark.runner\ndef replay(c): ...": r"runner 'replay': ships with callmark",
    "import callmark\n@callmark.call_format(opening='(')\ndef c(r, s, e): ...": r"@callmark.call_format c: opening: ",
    "import callmark\n@callmark.scorer(measures=['a'])\nasync def b(s, t): ...": r"must be a plain function",
    "import sys\nsys.exit(0)": r"broken.py:2: cannot be loaded: SystemExit: 0",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_file_that_cannot_be_used_is_said_with_its_line(text, capsys):
    Path("broken.py").write_text(text + "\n")
    run_asker("--plugin", "broken.py", code=2)
    error = capsys.readouterr().err
    assert re.search(BROKEN[text], error), error
    Path("run.yaml").write_text("gates: {}\nplugins: [broken.py]\n")
    run("run", *FIRST, "--config", "run.yaml", code=2)
    assert capsys.readouterr().err.startswith("callmark: error: run.yaml:2: plugins: ")


def test_two_rows_of_one_name_are_refused(capsys):
    Path("again.py").write_text(EXAMPLES["brevity.py"])
    run_asker("--plugin", "brevity.py", "--plugin", "again.py", code=2)
    assert "there are two of scorer 'brevity'" in capsys.readouterr().err
    run_asker("--plugin", "brevity.py", "--plugin", "./brevity.py")


def test_a_missing_file_is_said(capsys):
    run_asker("--plugin", "missing.py", code=2)
    assert "missing.py: cannot be read: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("brevity.short_enogh=0.9", "unknown gate; did you mean brevity.short_enough?"),
        ("brevity.nothing=1", "unknown gate; this scorer has brevity.short_enough, brevity.words"),
        ("terse.words=1", "no scorer 'terse' is loaded: --plugin names its file"),
        ("brevity.words>=1", "lower is better here: write <="),
        ("brevity.words=inf", "must be a finite number"),
        ("call_f1_macro<=1", "higher is better here: write >="),
    ],
)
def test_a_gate_that_means_nothing_is_refused_before_the_run(word, said, capsys):
    run_asker("--plugin", "brevity.py", "--gate", word, code=2)
    assert said in capsys.readouterr().err
    assert not Path("run/results.jsonl.journal").exists()


def test_settings_name_plug_ins_and_their_gates():
    Path("callmark.yaml").write_text(EXAMPLES["callmark.yaml"])
    run("run", "--out", "run/results.jsonl", "--quiet", "--plugin", "frugal.py")
    assert gate("brevity.short_enough")["source"] == "config"
    assert gate("frugal.calls")["status"] == "pass"


def test_a_dataset_can_load_nothing(capsys):
    Path("evil.py").write_text("import pathlib\npathlib.Path('ran').touch()\n")
    items = Path("dataset.jsonl").read_text("utf-8").splitlines()[1:]
    for header in (
        {"__header__": True, "plugins": ["evil.py"]},
        {"__header__": {"plugins": ["evil.py"]}},
        {"__header__": True, "gates": {"evil.ok": 1}},
    ):
        Path("dataset.jsonl").write_text("\n".join([json.dumps(header), *items]) + "\n")
        main(["run", *FIRST, *ASKED, "--out", "run/results.jsonl", "--quiet"])
        assert not Path("ran").exists()
    assert "no scorer 'evil' is loaded" in capsys.readouterr().err


# In Python


class Batches(Runner):
    name = "batches"
    suspends = False
    max_batch = 2

    async def answer(self, batch):
        return [Reply(text=f"{len(batch)} at once") for _ in batch]


class Plain:
    """No more than it needs, made with the options of the run."""

    def __init__(self, options):
        self.model = options.model

    async def answer(self, batch):
        return [f"I am {self.model}" for _ in batch]


def shout(conversation: Conversation):
    return conversation.messages[-1]["content"].upper()


async def wait(conversation):
    return Failure("never") if conversation.sample_id == "boats" else "Waited."


@pytest.mark.parametrize(
    ("runner", "said"),
    [
        (Batches(), ["2 at once", "2 at once"]),
        (Batches, ["2 at once", "2 at once"]),
        (Plain, ["I am tiny", "I am tiny"]),
        (shout, ["HOW MANY BOATS?", "HOW MANY BRIDGES?"]),
        (wait, ["", "Waited."]),
    ],
    ids=["object", "class", "class with options", "function", "async function"],
)
def test_anything_that_answers_can_be_passed_to_run(runner, said):
    config = {"in": "dataset.jsonl", "fixtures": "fixtures", "model": "tiny", "max_errors": 1}
    told = callmark.run({**config, "out": "run/results.jsonl"}, runner=runner)
    assert [line["model_output"] for line in lines()] == said
    [mark] = told.provenance["plugins"]
    assert mark["seam"] == "runner"
    assert mark["sha256"]


def test_scorers_can_be_passed_to_run_and_end_with_it():
    @callmark.scorer(measures=["loud"])
    def volume(sample, trace):
        return trace.model_output.isupper()

    config = {"in": "dataset.jsonl", "fixtures": "fixtures"}
    told = callmark.run(config, runner=shout, plugins=[volume, "brevity.py"])
    assert told.metrics["volume.loud"].value == 1.0
    assert told.metrics["brevity.words"].value == 3.0
    assert "volume.loud" not in callmark.run(config, runner=shout).metrics
    with pytest.raises(UsageError, match="another one: put it into a file"):
        callmark.run({**config, "engine": "local"}, runner=shout)
    with pytest.raises(UsageError, match="neither a file nor decorated"):
        callmark.run(config, runner=shout, plugins=[shout])


def test_a_runner_that_gives_no_reply_is_told_so():
    with pytest.raises(PluginError, match="a text, a Reply or a Failure, not int"):
        callmark.run({"in": "dataset.jsonl"}, runner=lambda conversation: 3)


def test_a_plug_in_travels_to_other_machines(tmp_path, monkeypatch):
    """What the engine ray does with the files of a run."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with plugin_scope(), open_dataset(Path("dataset.jsonl")) as dataset:
        config = load_config(Path(os.devnull), {"plugins": ["brevity.py", "ask.py"]})
        plan = Plan("1", config, dataset.checked, Fingerprints(), "journal")
        sent = []
        shipment = ship(plan, lambda data: sent.append(data) or len(sent) - 1)
    Path("brevity.py").unlink()
    there = unpack(plan, shipment, lambda at: sent[at])
    with plugin_scope():
        add_plugins(there.config.plugins)
        assert [row.name for row in rows_of("scorer")] == ["brevity"]
        assert [row.name for row in rows_of("call_format")] == ["ask"]


def test_a_plug_in_that_ends_the_process_is_told_by_its_name(capsys):
    write("quits.py", "raise SystemExit(0)", measures=["ok"])
    run_asker("--plugin", "quits.py", code=2)
    assert "quits.py:6: the scorer quits failed on sample 'boats': SystemExit: 0" in (
        capsys.readouterr().err
    )


# Packages


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package with the examples as entry points."""
    home = tmp_path / "installed"
    package = home / "terse-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: terse\nVersion: 1.0\n")
    (home / "terse_rows.py").write_text(EXAMPLES["brevity.py"] + EXAMPLES["brief.py"]
                                        + EXAMPLES["quiz.py"] + EXAMPLES["asker.py"]
                                        + EXAMPLES["ask.py"])  # fmt: skip
    (package / "entry_points.txt").write_text(
        "[callmark.scorers]\nbrevity = terse_rows:brevity\n"
        "[callmark.reports]\nbrief = terse_rows:brief\n"
        "[callmark.importers]\nquiz = terse_rows:quiz\n"
        "[callmark.runners]\nasker = terse_rows:asker\n"
        "[callmark.formats]\nask = terse_rows:ask\n"
    )
    with monkeypatch.context() as patch:
        patch.syspath_prepend(home)
        yield


@pytest.mark.usefixtures("installed")
def test_an_installed_package_adds_the_same_rows():
    run("run", *FIRST, "--runner", "asker", "--out", "run/results.jsonl", "-o", "run.brief",
        "--quiet", code=5)  # fmt: skip
    assert lines()[0]["scores"]["more"]["brevity.words"] == 3.0
    assert lines()[0]["scoring"]["scorers"][0]["version"] == "1.0"
    assert "boats: I found 120." in Path("run.brief").read_text("utf-8")
    run("dataset", "import", "quiz.jsonl", "--out", "imported.jsonl")
    assert len(lines("imported.jsonl")) == 3
