"""`callmark run --record`: the one mode in which live tools are called while a model answers."""

import json
from pathlib import Path

import pytest

from callmark.cli import main

FUNCTIONS = ["--python", "tests.live_functions:add", "--python", "tests.live_functions:weather"]
TRACE = [
    {"name": "add", "arguments": {"a": 40}},
    {"name": "weather", "arguments": {"city": "Bonn"}},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    item = {
        "prompt": "What is 40 + 2, and the weather in Bonn?",
        "metadata": {"sample_id": "s1", "call_sequence": TRACE},
    }
    (tmp_path / "dataset.jsonl").write_text(json.dumps(item) + "\n")
    answer = {
        "sample_id": "s1",
        "messages": [
            {"role": "user", "content": item["prompt"]},
            {"role": "assistant", "content": "", "tool_calls": [_call(0), _call(1)]},
            {"role": "assistant", "content": "The sum is 42; in Bonn it is 21 C."},
        ],
    }
    (tmp_path / "answers.jsonl").write_text(json.dumps(answer) + "\n")
    return tmp_path


def _call(at: int) -> dict:
    arguments = json.dumps(TRACE[at]["arguments"])
    return {"id": f"c{at}", "type": "function", "function": {**TRACE[at], "arguments": arguments}}


RUN = (
    "run --in dataset.jsonl --runner replay --model answers.jsonl --fixtures fixtures --quiet"
    " --out results.jsonl"
).split()


def result(folder: Path) -> dict:
    [line] = (folder / "results.jsonl").read_text().splitlines()
    return json.loads(line)


def test_live_answers_become_fixtures_that_the_next_run_is_answered_from(folder, capsys):
    assert main([*RUN, "--record", *FUNCTIONS]) in (0, 1, 5)
    assert "2 answers of live tools were written" in capsys.readouterr().err
    recorded = result(folder)
    assert [entry["served_by"] for entry in recorded["tool_trace"]] == ["live", "live"]
    report = json.loads((folder / "report.json").read_text())
    assert report["provenance"]["live_tools"]["calls"] == 2
    assert any(text.startswith("live tools were called") for text in report["warnings"])
    replay = [*RUN, "--registry", "fixtures/.registry.json", "--restart"]
    assert main(replay) in (0, 1, 5)
    replayed = result(folder)
    assert [entry["served_by"] for entry in replayed["tool_trace"]] == ["fixture:exact"] * 2
    assert [entry["result"] for entry in replayed["tool_trace"]] == [
        entry["result"] for entry in recorded["tool_trace"]
    ]
    assert replayed["scores"]["lax"]["f1"] == recorded["scores"]["lax"]["f1"] == 1.0


def test_what_is_recorded_is_not_asked_again(folder):
    main([*RUN, "--record", *FUNCTIONS])
    main([*RUN, "--record", "new", "--restart", *FUNCTIONS])
    assert {entry["served_by"] for entry in result(folder)["tool_trace"]} == {"fixture:exact"}
    report = json.loads((folder / "report.json").read_text())
    assert report["provenance"]["live_tools"]["calls"] == 0


def test_ci_refuses_it(folder, monkeypatch, capsys):
    monkeypatch.setenv("CI", "true")
    assert main([*RUN, "--record", *FUNCTIONS]) == 2
    assert "CI must not depend on" in capsys.readouterr().err
    assert not (folder / "fixtures").exists()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--record"], "which live tools?"),
        (["--record", *FUNCTIONS, "--mcp", "x"], "which live tools?"),
        (["--record", *FUNCTIONS, "--registry", "r.json"], "--registry: not with --record"),
        ([*FUNCTIONS], "--python: are for --record"),
        (["--pii", "keep"], "--pii: are for --record"),
    ],
)
def test_options_that_make_no_sense_are_refused(folder, capsys, words, what):
    assert main([*RUN, *words]) == 2
    assert what in capsys.readouterr().err


def test_a_tool_that_does_not_answer_ends_the_run_and_what_was_answered_stays(folder, capsys):
    call = {"name": "sleeps", "arguments": "{}"}
    lines = (folder / "answers.jsonl").read_text()
    slow = json.loads(lines)
    slow["messages"][1]["tool_calls"][1]["function"] = call
    (folder / "answers.jsonl").write_text(json.dumps(slow) + "\n")
    words = ["--python", "tests.live_functions:add", "--python", "tests.live_functions:sleeps"]
    assert main([*RUN, "--record", *words, "--timeout", "0.2"]) == 4
    said = capsys.readouterr().err
    assert "sleeps: no answer within 0.2 s" in said
    assert "--resume" in said
    assert (folder / "fixtures" / "add.jsonl").exists()


def records_an_account(folder: Path, *words: str) -> None:
    call = {"name": "account", "arguments": '{"name": "ada"}'}
    line = json.loads((folder / "answers.jsonl").read_text())
    line["messages"][1]["tool_calls"] = [{"id": "c", "type": "function", "function": call}]
    line["messages"][2]["content"] = "The lamp is lit for ada@acme.com."
    (folder / "answers.jsonl").write_text(json.dumps(line) + "\n")
    live = ["--python", "tests.live_functions:account"]
    assert main([*RUN, "--record", *live, *words]) in (0, 1, 5)


def test_a_secret_of_a_live_tool_is_in_no_file_and_reaches_no_model(folder):
    records_an_account(folder)
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert not [text for text in texts if "open-sesame" in text]
    [entry] = result(folder)["tool_trace"]
    assert entry["result"]["password"] == "[secret]"


def test_a_pin_holds_for_the_model_too(folder):
    records_an_account(folder, "--pin", "account:$.phrase=pinned")
    assert result(folder)["tool_trace"][0]["result"]["phrase"] == "pinned"


def test_a_run_says_that_its_results_hold_personal_data(folder, capsys):
    records_an_account(folder)
    assert "hold them as they are; --redact-pii" in capsys.readouterr().err
    records_an_account(folder, "--redact-pii", "--restart", "--record", "all")
    assert "as they are" not in capsys.readouterr().err
    assert "ada@acme.com" not in (folder / "results.jsonl").read_text()
