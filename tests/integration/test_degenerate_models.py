"""A model that says nothing, always the same, or what it was asked fails the gates."""

import json
from pathlib import Path

import pytest

import callmark
from callmark.run.rescore import score_file

CITIES = [f"Town{chr(65 + i // 5)}{chr(97 + i % 5)}borough" for i in range(30)]


def write_lines(path: Path, rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def items(instruction: str):
    return [
        {
            "prompt": f"How many people live in {city}, and which river crosses it? {instruction}",
            "metadata": {
                "sample_id": f"s{index}",
                "call_sequence": [{"name": "web.search", "arguments": {"q": f"people of {city}"}}],
            },
        }
        for index, city in enumerate(CITIES)
    ]


def fixtures(folder: Path) -> Path:
    folder.mkdir()
    rows = [
        {
            "name": "web.search",
            "key": {"q": f"people of {city}"},
            "result": {
                "ok": True,
                "hits": [
                    {
                        "title": f"About {city}",
                        "snippet": f"{city} on the river R{index}var has {1000 + 37 * index} people.",
                        "url": f"https://example.org/{index}",
                    }
                ],
            },
        }
        for index, city in enumerate(CITIES)
    ]
    write_lines(folder / "web.search.jsonl", rows)
    return folder


def call(index: int):
    return {"name": "web.search", "arguments": {"q": f"people of {CITIES[index]}"}}


ANSWERS = {
    "empty": lambda index, item: ("", []),
    "empty but calling": lambda index, item: ("", [call(index)]),
    "constant": lambda index, item: ("Integration: It has 1234 people.", []),
    "constant and calling": lambda index, item: ("Integration: It has 1234 people.", [call(index)]),
    "parrot": lambda index, item: (item["prompt"], []),
    "parrot with marker": lambda index, item: (f"Integration: {item['prompt']}", [call(index)]),
}


def run(tmp_path: Path, instruction: str, answer):
    rows = items(instruction)
    answers = []
    for index, item in enumerate(rows):
        text, calls = answer(index, item)
        answers.append({"sample_id": f"s{index}", "model_output": text, "tool_trace": calls})
    return callmark.run(
        {
            "runner": "replay",
            "model": str(write_lines(tmp_path / "answers.jsonl", answers)),
            "in": str(write_lines(tmp_path / "data.jsonl", [{"__header__": True}, *rows])),
            "fixtures": str(fixtures(tmp_path / "fixtures")),
            "out": str(tmp_path / "out.jsonl"),
            "report": str(tmp_path / "report.json"),
        }
    ).to_dict()


@pytest.mark.parametrize("instruction", ["Answer after `Integration:`.", "Answer briefly."])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_degenerate_model_fails(tmp_path, name, instruction):
    report = run(tmp_path, instruction, ANSWERS[name])
    assert report["verdict"] == "fail"
    assert report["gates_ok"] is False
    assert report["counts"]["eligible"] == 30


@pytest.mark.parametrize("instruction", ["Answer after `Integration:`.", "Answer briefly."])
def test_a_good_model_passes(tmp_path, instruction):
    """The counterpart: the same dataset can be passed."""

    def answer(index, item):
        text = f"It has {1000 + 37 * index} people, on the river R{index}var."
        return f"Integration: {text}", [call(index)]

    report = run(tmp_path, instruction, answer)
    assert report["verdict"] == "pass", [g for g in report["gates"] if g["status"] == "fail"]


def right_text(index: int) -> str:
    return f"It has {1000 + 37 * index} people, on the river R{index}var."


def asks_for(query: str):
    return {"name": "web.search", "arguments": {"q": query}}


# The answers are right, as if the results had been guessed: only the calls are wrong.
WRONG_CALLS = {
    "the same call twenty times": lambda index: [call(index)] * 20,
    "another call instead": lambda index: [asks_for(f"river of {CITIES[index]}")],
    "a call of another sample": lambda index: [call((index + 1) % len(CITIES))],
    "no call": lambda index: [],
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_f25_wrong_missing_and_superfluous_calls_fail(tmp_path, name):
    report = run(
        tmp_path, "Answer briefly.", lambda at, item: (right_text(at), WRONG_CALLS[name](at))
    )
    gates = {gate["name"]: gate for gate in report["gates"]}
    assert report["verdict"] == "fail"
    assert gates["call_f1_macro"]["status"] == "fail"
    assert gates["fixture_hit_rate"]["status"] in ("pass", "n/a")
    assert report["counts"]["unresolved"] == 0


def test_f25_a_run_and_its_scoring_again_count_the_same_wrong_calls(tmp_path):
    def answer(index, item):
        calls = [call(index)] if index % 3 else [asks_for("anything else")]
        return right_text(index), calls

    report = run(tmp_path, "Answer briefly.", answer)
    scored = score_file(tmp_path / "out.jsonl").report
    assert report["misses"]["wrong_calls"] == scored.misses.wrong_calls == {"web.search": 10}
    assert report["metrics"]["fixture_hit_rate"]["value"] == 1.0
    assert scored.metrics["fixture_hit_rate"].value == 1.0
    assert scored.metrics["call_f1_macro"].value == report["metrics"]["call_f1_macro"]["value"]
    assert (report["misses"]["count"], scored.misses.count) == (0, 0)


def logs(tmp_path: Path, text_of) -> Path:
    """Recorded conversations, of which no one expects anything."""
    rows = [
        {
            "sample_id": f"log-{index}",
            "model_output": text_of(index),
            "tool_trace": [
                {**call(index), "result": {"people": 1000 + 37 * index, "river": f"R{index}var"}}
            ],
        }
        for index in range(30)
    ]
    return write_lines(tmp_path / "logs.jsonl", rows)


def test_f3_recorded_answers_are_judged_by_their_flags(tmp_path):
    """Some values are supported, some are not."""
    wrong = score_file(logs(tmp_path, lambda at: right_text(at if at % 2 else at + 1)))
    gates = {gate.name: gate for gate in wrong.report.gates}
    assert wrong.report.statements.firm == {"identifier": 15}  # the river of another town
    assert gates["flagged_sample_rate"].status == "fail"
    assert (wrong.report.verdict, wrong.exit_code) == ("fail", 1)
    right = score_file(logs(tmp_path, right_text))
    assert right.report.statements.firm == {}
    assert (right.report.verdict, right.exit_code) == ("pass", 0)


@pytest.mark.parametrize("text", ["", "It has 1000 people, on the river R0var.", "Done."])
def test_f3_recorded_answers_that_are_all_the_same_never_pass(tmp_path, text):
    outcome = score_file(logs(tmp_path, lambda at: text))
    assert outcome.report.verdict in ("fail", "inconclusive")
    assert outcome.exit_code in (1, 5)
