"""Real logs become regression sets: their own recordings keep them, and every change is named."""

import json
import re
from pathlib import Path

import pytest

from callmark.cli.dataset_import import main as import_main
from callmark.datasets.importing.importing import recognise
from callmark.run.conclude import run
from callmark.store.files import read_results

pytestmark = pytest.mark.real

SOURCES = (
    "traces/anthropic_messages/conversations.jsonl",
    "traces/otel_genai",
    "traces/openai_responses_api/conversations.jsonl",
)
DEEDS = ("cancel", "exchange", "modify", "return")


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def write_lines(path: Path, values: list[dict]) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
    return path


def play(answers: str = "set.answers.jsonl"):
    settings = {"in": "set.jsonl", "registry": "set.tools.json", "model": answers, "out": "r.jsonl"}
    if Path("set.fixtures").exists():
        settings["fixtures"] = "set.fixtures"
    report = run({"runner": "replay", "max_turns": 1000, **settings}).report
    return report, {one.sample_id: one for one in read_results(Path("r.jsonl"))}


def assert_kept(report, results) -> None:
    assert not [gate.name for gate in report.gates if gate.status == "fail"]
    assert report.metrics["unchanged_rate"].value == 1
    assert report.misses.count == 0
    assert all(one.scores.changes == () for one in results.values())


@pytest.fixture
def retail(real_data, tmp_path, monkeypatch) -> list[dict]:
    """The episodes that were right."""
    monkeypatch.chdir(tmp_path)
    episodes = lines_of(real_data / "episodes" / "tau2_retail.jsonl")
    return [one for one in episodes if one["reward"] == 1]


@pytest.mark.parametrize("option", [("--expect", "observed"), ("--per-step",)])
def test_the_recorded_answers_keep_what_was_observed(retail, option, capsys):
    write_lines(Path("log.jsonl"), retail)
    import_main(["log.jsonl", "--out", "set.jsonl", *option])
    printed = capsys.readouterr().out
    assert "not_repeatable" not in printed
    items = lines_of(Path("set.jsonl"))[1:]
    turns = [
        one
        for episode in retail
        for one in episode["messages"][2:]  # after the policy and the greeting
        if one["role"] == "assistant"
    ]
    assert len(items) == (len(turns) if option == ("--per-step",) else len(retail))
    assert all(item["metadata"]["observed"] for item in items)
    assert_kept(*play())


def own_turn(line: dict) -> dict:
    return [one for one in line["messages"] if one["role"] == "assistant"][-1]


def test_one_argument_one_value_and_one_deed_are_named(retail):
    write_lines(Path("log.jsonl"), retail[:12])
    import_main(["log.jsonl", "--out", "set.jsonl", "--per-step"])
    facts = {
        item["metadata"]["sample_id"]: item["metadata"].get("required_facts", [])
        for item in lines_of(Path("set.jsonl"))[1:]
    }
    lines, said = lines_of(Path("set.answers.jsonl")), {}
    for line in lines:
        turn, name = own_turn(line), line["sample_id"]
        calls = [one["function"] for one in turn.get("tool_calls") or ()]
        prices = [one for one in facts[name] if re.fullmatch(r"\d+\.\d\d", one)]
        if "argument" not in said and calls and "order_id" in calls[0]["arguments"]:
            given = {**json.loads(calls[0]["arguments"]), "order_id": "#W0000001"}
            calls[0]["arguments"] = json.dumps(given)
            said["argument"] = (name, "#W0000001")
        elif "deed" not in said and calls and calls[0]["name"].startswith(DEEDS):
            line["messages"] = line["messages"][: line["messages"].index(turn) + 1]
            del turn["tool_calls"]
            turn["content"] = "It is done."
            said["deed"] = (name, f"does not call {calls[0]['name']}")
        elif "value" not in said and not calls and prices:
            turn["content"] = turn["content"].replace(prices[0], f"1{prices[0]}")
            said["value"] = (name, f'does not state "{prices[0]}"')
    write_lines(Path("alt.jsonl"), lines)
    report, results = play("alt.jsonl")
    assert len(said) == 3
    assert set(report.failing["unchanged_rate"].sample_ids) == {name for name, _ in said.values()}
    for name, what in said.values():
        assert any(what in change for change in results[name].scores.changes)
    assert report.misses.count == 0


def test_another_model_on_the_same_steps_misses_nothing(retail):
    """Its turns at the same place of the same tasks: most differ, and each with both calls."""
    tuned = {one["task_id"]: one for one in retail if one["model"].startswith("ft:")}
    other = {one["task_id"]: one for one in retail if one["model"] == "gpt-4.1"}
    both = sorted(tuned.keys() & other.keys())
    assert len(both) > 15
    write_lines(Path("log.jsonl"), [tuned[task] for task in both])
    import_main(["log.jsonl", "--out", "set.jsonl", "--per-step", "--pii", "keep"])
    prompts = {
        one["metadata"]["sample_id"]: one["prompt"] for one in lines_of(Path("set.jsonl"))[1:]
    }
    tasks = {tuned[task]["id"]: task for task in both}
    answers = []
    for name, prompt in prompts.items():
        episode, _, step = name.rpartition("#")
        turns = [one for one in other[tasks[episode]]["messages"] if one["role"] == "assistant"][1:]
        turn = turns[min(int(step), len(turns)) - 1]
        answers.append({"sample_id": name, "messages": [*prompt, turn]})
    write_lines(Path("other.jsonl"), answers)
    report, results = play("other.jsonl")
    assert report.misses.count == 0
    changed = {name: one.scores.changes for name, one in results.items() if one.scores.changes}
    assert report.failing["unchanged_rate"].count == len(changed)
    assert 0 < len(changed) < len(results)
    assert any(" instead of " in change for changes in changed.values() for change in changes)


@pytest.mark.parametrize("option", [("--expect", "observed"), ("--per-step",)])
@pytest.mark.parametrize("name", SOURCES)
def test_other_formats_keep_what_was_observed_too(real_data, name, option, tmp_path, monkeypatch):
    source = real_data / name
    files = sorted(source.glob("*.json*")) if source.is_dir() else [source]
    if not all(recognise(file) for file in files):
        pytest.skip(f"{name}: no importer knows it")
    monkeypatch.chdir(tmp_path)
    import_main([str(source), "--out", "set.jsonl", *option])
    report, results = play()
    assert all(one.metadata.get("observed") for one in results.values())
    assert_kept(report, results)


@pytest.mark.parametrize("option", [("--expect", "observed"), ("--per-step",)])
@pytest.mark.parametrize("name", SOURCES)
def test_in_other_formats_each_change_is_named_too(real_data, name, option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    import_main([str(real_data / name), "--out", "set.jsonl", *option])
    items = {
        one["metadata"]["sample_id"]: one["metadata"] for one in lines_of(Path("set.jsonl"))[1:]
    }
    lines, said = lines_of(Path("set.answers.jsonl")), {}
    for line in lines:
        turns = [one for one in line["messages"] if one["role"] == "assistant"]
        own = turns[-1:] if option == ("--per-step",) else turns
        calling = [one for one in own if one.get("tool_calls")]
        facts = [str(one) for one in items[line["sample_id"]].get("required_facts", [])]
        stated = [one for one in facts if one in str(own[-1]["content"]) and len(facts) == 1]
        if calling and "argument" not in said:
            function = calling[-1]["tool_calls"][0]["function"]
            given = dict.fromkeys(json.loads(function["arguments"]), "ZZ-9999")
            function["arguments"] = json.dumps(given)
            said["argument"] = (line["sample_id"], "zz-9999") if given else None
        elif calling and "deed" not in said:
            turn, [first, *_] = calling[-1], calling[-1].pop("tool_calls")
            turn["content"] = "It is done."
            end = line["messages"].index(turn) + 1
            line["messages"] = line["messages"][:end]
            said["deed"] = (line["sample_id"], f"does not call {first['function']['name']}".lower())
        elif stated and not own[-1].get("tool_calls") and "value" not in said:
            own[-1]["content"] = own[-1]["content"].replace(stated[0], "77123")
            said["value"] = (line["sample_id"], f'does not state "{stated[0]}"'.lower())
        said = {what: place for what, place in said.items() if place is not None}
    write_lines(Path("alt.jsonl"), lines)
    report, results = play("alt.jsonl")
    assert set(said) == {"argument", "deed", "value"}
    assert set(report.failing["unchanged_rate"].sample_ids) == {one for one, _ in said.values()}
    for sample_id, what in said.values():
        assert any(what in change.lower() for change in results[sample_id].scores.changes)
    assert report.misses.count == 0
