"""A model that says nothing, always the same, or what it was asked fails the gates."""

import json
from pathlib import Path

import pytest

import callmark

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
    )


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
