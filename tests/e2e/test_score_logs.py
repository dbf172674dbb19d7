"""`callmark score LOGS`: a log of anybody's, without a dataset, a model or fixtures."""

import gzip
import json
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "support-log.jsonl"
KINDS = (
    "1  statements that the tools do not back",
    "1  deeds reported but not done",
    "1  arguments that came from nowhere",
    "1  calls that break their schema",
)


def measured(path: Path) -> list[dict]:
    """What the lines say, without where it was read from."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [{name: line[name] for name in ("sample_id", "scores", "tool_trace")} for line in lines]


def test_the_example_is_read_judged_and_shown(callmark, tmp_path):
    finished = callmark("score", EXAMPLE)
    assert finished.returncode == 1, finished.stderr
    for kind in KINDS:
        assert kind in finished.stdout
    assert "says “94.50”; call 0 /total has 84.5" in finished.stdout
    assert "/email of call 0" in finished.stdout
    folder = tmp_path / "runs" / "latest"
    assert {"results.jsonl", "report.json", "report.html"} <= {one.name for one in folder.iterdir()}
    assert "cancel-it" in (folder / "report.html").read_text("utf-8")
    assert "statements: 6 backed by results, 2 flagged, 0 unchecked\n" in finished.stdout
    assert "no answer text" not in finished.stdout
    # Whose email it is, only those see who ask for it, with a command that names the run.
    at = finished.stdout.splitlines().index("         send-invoice: email in call 0")
    show = "         callmark show runs/support-log-1/results.jsonl send-invoice"
    assert finished.stdout.splitlines()[at + 1] == show
    # The way from a finding to its conversation is a command to copy.
    assert (
        "    callmark show runs/support-log-1/results.jsonl cancel-it send-invoice\n"
        in finished.stdout
    )
    show_all = "callmark show runs/support-log-1/results.jsonl: which samples failed, and why"
    assert f"\n  {show_all}\n" in finished.stdout
    assert callmark("show", "runs/latest").stdout.startswith("2 of 3 samples failed\n")
    shown = callmark("show", "runs/latest", "cancel-it")
    assert "94.50" in shown.stdout
    assert "  nobody gave /email\n" in callmark("show", "runs/latest", "send-invoice").stdout
    # A long command stands below its purpose, and breaks where a shell goes on reading.
    told = " ".join(finished.stdout.replace("\\\n", " ").split())
    asked = f"callmark dataset import {EXAMPLE} --expect observed --out FILE"
    assert f"{asked}: a test set of it" in told or told.endswith(f"a test set of it: {asked}")


@pytest.mark.slow
def test_a_folder_a_pattern_and_standard_input_give_the_same_numbers(callmark, tmp_path):
    (tmp_path / "logs").mkdir()
    packed = tmp_path / "logs" / "support.jsonl.gz"
    packed.write_bytes(gzip.compress(EXAMPLE.read_bytes()))
    callmark("score", EXAMPLE, "--out", "plain.jsonl")
    for number, named in enumerate(("logs", "logs/*.gz", packed)):
        finished = callmark("score", named, "--out", f"{number}.jsonl")
        assert finished.returncode == 1, finished.stderr
        assert all(kind in finished.stdout for kind in KINDS)
        assert measured(tmp_path / f"{number}.jsonl") == measured(tmp_path / "plain.jsonl")
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_two_scorings_of_one_log_are_equal(callmark, tmp_path):
    for name in ("one", "two"):
        callmark("score", EXAMPLE, EXAMPLE.parent, "--out", f"{name}.jsonl", "--report", "r.json")
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert json.loads((tmp_path / "r.json").read_text("utf-8"))["warnings"] == []


def test_f12_no_secret_of_a_log_reaches_results_or_page(callmark, tmp_path):
    key = "sk-abcdefghijklmnopqrstuvwxyz"
    messages = [{"role": "user", "content": f"Use {key}."}, {"role": "assistant", "content": key}]
    (tmp_path / "log.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    callmark("score", "log.jsonl")
    made = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert {path.name for path in made} >= {"results.jsonl", "report.html"}
    assert not [path.name for path in made if key.encode() in path.read_bytes()]


def test_a_log_says_in_how_many_conversations_there_is_nothing_to_check(callmark, tmp_path):
    lines = [json.loads(line) for line in EXAMPLE.read_text("utf-8").splitlines()]
    for line in lines[:2]:
        line["messages"][-1]["content"] = ""
    log = tmp_path / "log.jsonl"
    for silent, have, them in (
        (1, "1 conversation has", "it"),
        (2, "2 conversations have", "them"),
    ):
        told = [*lines[:silent], *EXAMPLE.read_text("utf-8").splitlines()[silent:]]
        texts = (one if isinstance(one, str) else json.dumps(one) for one in told)
        log.write_text("\n".join(texts))
        said = callmark("score", "log.jsonl").stdout
        assert f"\n{have} no answer text: nothing to check in {them}\n" in said
        assert "3 conversations, 3 calls\nstatements: " in said


def test_what_is_left_out_of_a_log_is_said(callmark, tmp_path):
    asked = {"id": "asked", "messages": [{"role": "user", "content": "Hello?"}]}
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl").write_text(EXAMPLE.read_text("utf-8") + json.dumps(asked))
    (tmp_path / "logs" / "notes.txt").write_text("nothing\n")
    finished = callmark("score", "logs")
    assert "logs/a.jsonl (openai): 3 conversations" in finished.stdout
    assert "no_answer" in finished.stdout
    assert "not_a_log" in finished.stdout


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["nowhere/*.json"], "nowhere/*.json: matches no file"),
        (["a.jsonl", "b.jsonl", "--in", "d.jsonl"], "one file is scored at a time"),
        (["empty"], "no file in it"),
        (["odd.json", "odd.json"], "an object with the keys rows"),
    ],
)
def test_what_cannot_be_scored_is_said(callmark, tmp_path, files, said):
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd.json").write_text('{"rows": []}')
    finished = callmark("score", *files)
    assert finished.returncode == 2
    assert said in finished.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("other.json", b'{"kind": 1, "rows": []}', "an object with the keys kind, rows"),
        ("cut.jsonl.gz", b"\x1f\x8bbroken", "cut.jsonl.gz"),
        ("broken.jsonl", b'{"sample_id": "a", "model_output": 5}\n', "model_output"),
    ],
)
def test_a_file_of_no_known_kind_says_what_it_looks_like(callmark, tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    finished = callmark("score", path)
    assert finished.returncode == 2
    assert said in finished.stderr
    assert "UTF-8" not in finished.stderr


def test_places_are_named_within_the_folder_that_was_given(callmark, tmp_path):
    logs = tmp_path / "logs"
    (logs / "old").mkdir(parents=True)
    asked = {"id": "asked", "messages": [{"role": "user", "content": "Hello?"}]}
    (logs / "a.jsonl").write_text(EXAMPLE.read_text("utf-8"))
    (logs / "old" / "b.jsonl").write_text(json.dumps(asked))
    said = callmark("score", logs).stdout
    [row] = [row for row in said.splitlines() if row.startswith("  no_answer")]
    assert row.split()[:3] == ["no_answer", "1", "old/b.jsonl:1"]


def test_what_no_model_could_repeat_is_rejected_by_a_command_to_copy(callmark):
    callmark("dataset", "import", EXAMPLE, "--expect", "observed", "--out", "logs.jsonl")
    files = ("--registry", "logs.tools.json", "--fixtures", "logs.fixtures")
    told = " ".join(callmark("verify", "logs.jsonl", *files).stdout.split())
    asked = "callmark dataset accept logs.jsonl --all --reject send-invoice"
    assert told.endswith(f"accept it, but for what no model could repeat: {asked}")
    played = callmark("run", "--in", "logs.jsonl", *files, "--model", "logs.answers.jsonl").stdout
    # Of what was observed, what a firm rule flagged is not accepted with the rest.
    flagged = "callmark dataset accept logs.jsonl --all --reject cancel-it"
    what_for = "what was observed is right, but for what was flagged"
    assert f"{what_for}: {flagged}" in " ".join(played.split())
    accepted = callmark("dataset", "accept", "logs.jsonl", "--all", "--reject", "send-invoice")
    assert f"\nnext: callmark run --in logs.jsonl {' '.join(files)} --runner" in accepted.stdout
    assert "accept" not in callmark("verify", "logs.jsonl", *files).stdout
