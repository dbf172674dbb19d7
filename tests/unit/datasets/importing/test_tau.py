"""Results of tau-bench and tau2, in the shapes that these programs write."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit.datasets.importing.talks import ASKED_TWICE, assistant, call, result, user

from callmark.errors import BadInput

ACTION = {"name": "book", "kwargs": {"city": "Ulm"}}


def run_of(task: int, trial: int, **changes) -> dict:
    return {
        "task_id": task,
        "reward": 1.0,
        "info": {
            "task": {
                "user_id": "ann",
                "actions": [ACTION],
                "instruction": "You want to know the weather.",
                "outputs": ["19"],
            },
            "source": "user",
        },
        "traj": ASKED_TWICE,
        "trial": trial,
        **changes,
    }


def test_every_trial_of_tau_bench_is_a_sample_and_a_task_is_a_cluster(make):
    made = make([[run_of(0, 0), run_of(0, 1), run_of(7, 0)]], name="airline.json")
    assert made.report.format == "tau-bench"
    metadata = [item["metadata"] for item in made.items]
    assert [one["sample_id"] for one in metadata] == [
        "task-0-trial-0",
        "task-0-trial-1",
        "task-7-trial-0",
    ]
    assert [one["cluster"] for one in metadata] == ["task-0", "task-0", "task-7"]
    assert metadata[0]["call_sequence"] == [{"name": "book", "arguments": {"city": "Ulm"}}]
    assert metadata[0]["call_match"] == "superset"
    assert metadata[0]["required_facts"] == ["19"]
    assert metadata[0]["imported_from"]["instruction"] == "You want to know the weather."
    assert made.answers[0]["source_scores"] == {"reward": 1.0}
    assert len(made.fixtures) == 6
    assert made.kinds == {"said_at_the_end": 3, "tool_without_schema": 1}


def test_lines_of_a_document_are_named(make):
    runs = [run_of(0, 0), {**run_of(0, 1), "traj": "none"}]
    text = "[\n" + ",\n".join(map(json.dumps, runs)) + "\n]\n"
    with pytest.raises(BadInput, match=r"airline.json:3: traj: must be a list"):
        make(text.encode(), name="airline.json")


def message(role: str, **fields) -> dict:
    return {"role": role, "turn_idx": 0, "timestamp": "2025-01-01T00:00:00", **fields}


def simulation(**changes) -> dict:
    tool_call = {
        "id": "t1",
        "name": "weather",
        "arguments": {"city": "Ulm"},
        "requestor": "assistant",
    }
    of_user = {"id": "u1", "name": "reboot", "arguments": {}, "requestor": "user"}
    return {
        "id": "sim-1",
        "task_id": "3",
        "start_time": "",
        "end_time": "",
        "duration": 1.0,
        "termination_reason": "user_stop",
        "reward_info": {"reward": 0.5},
        "trial": 1,
        "messages": [
            message("assistant", content="Hi! How can I help you today?"),
            message("user", content="How warm is Ulm?"),
            message("assistant", tool_calls=[tool_call]),
            message("tool", id="t1", content="no such city", error=True),
            message("assistant", content="I could not find out."),
            message("user", content="I restart", tool_calls=[of_user]),
            message("tool", id="u1", content="done", requestor="user"),
            message("assistant", content="Good."),
        ],
        **changes,
    }


def results(*simulations: dict, **environment) -> dict:
    action = {
        "action_id": "0",
        "name": "weather",
        "arguments": {"city": "Ulm", "note": "free"},
        "requestor": "assistant",
        "compare_args": ["city"],
    }
    by_user = {"action_id": "1", "name": "reboot", "arguments": {}, "requestor": "user"}
    criteria = {
        "actions": [action, by_user],
        "communicate_info": ["19"],
        "nl_assertions": ["The agent was kind."],
    }
    return {
        "timestamp": "2025",
        "info": {"environment_info": {"domain_name": "town", "policy": "Be kind.", **environment}},
        "tasks": [{"id": "3", "evaluation_criteria": criteria}],
        "simulations": list(simulations),
    }


def test_a_simulation_of_tau2(make):
    made = make(results(simulation()), name="results.json")
    assert made.report.format == "tau2"
    [item] = made.items
    assert [one["role"] for one in item["prompt"]] == ["system", "assistant", "user"]
    assert item["prompt"][0]["content"] == "Be kind."
    assert item["user_turns"] == ["I restart"]
    metadata = item["metadata"]
    assert metadata["sample_id"] == "task-3-trial-1"
    assert metadata["call_sequence"] == [
        {"name": "weather", "arguments": {"city": "Ulm"}, "optional": ["note"]}
    ]
    assert metadata["required_facts"] == ["19"]
    assert [(line["name"], line["result"]) for line in made.fixtures] == [
        ("weather", '{"error": "no such city"}')
    ]
    assert made.kinds == {"assertion": 1, "tool_without_schema": 1, "user_call": 1}


def test_tau2_may_list_its_tools(make):
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    signature = {"name": "weather", "doc": "Weather.", "params": schema, "returns": {}}
    made = make(results(simulation(), tool_defs={"weather": signature}), name="results.json")
    assert made.items[0]["metadata"]["tools"] == ["weather"]
    assert made.tools["weather"] == {
        "name": "weather",
        "description": "Weather.",
        "parameters": schema,
    }
    assert "tool_without_schema" not in made.kinds


def test_a_simulation_that_infrastructure_lost_is_no_answer(make):
    lost = simulation(termination_reason="infrastructure_error")
    made = make(results(lost), name="results.json")
    assert made.answers[0]["status"] == "error"
    assert made.answers[0]["error"] == "infrastructure_error"
    assert made.kinds["failed_trial"] == 1


def test_a_bad_simulation_is_named_by_its_line(make):
    text = json.dumps(results(simulation(), {**simulation(), "task_id": None}), indent=1)
    second = [number for number, line in enumerate(text.splitlines(), 1) if line == "  {"][-1]
    with pytest.raises(BadInput, match=rf"results.json:{second}: task_id"):
        make(text.encode(), name="results.json")


def test_tau2_that_is_no_document_is_refused(make):
    talk = [user("x"), call("weather", "{}"), result("1"), assistant("y")]
    with pytest.raises(BadInput, match="tau2 is read from one JSON document"):
        make([{"messages": talk}, {"messages": talk}], format="tau2")


def tau2_folder(root: Path, *ids: str, indexed: Sequence[str] | None = None) -> Path:
    """As tau2 writes it where simulations are long: the order of the index is that of the run."""
    folder = root / "run"
    (folder / "simulations").mkdir(parents=True)
    frame = results()
    del frame["simulations"]
    index = [{"id": one, "task_id": "3", "trial": 0} for one in indexed or ids]
    (folder / "results.json").write_text(json.dumps({**frame, "simulation_index": index}, indent=2))
    for trial, one in enumerate(ids):
        text = json.dumps(simulation(id=one, trial=trial))
        (folder / "simulations" / f"{one}.json").write_text(text)
    return folder


@pytest.mark.parametrize("named", ["", "results.json"])
def test_a_folder_of_tau2_is_what_one_document_would_be(make, tmp_path, named):
    made = make(tau2_folder(tmp_path, "b", "a") / named)
    ids = [item["metadata"]["imported_from"]["simulation"] for item in made.items]
    assert (made.report.format, ids) == ("tau2", ["b", "a"])
    assert len(made.answers) == 2


def test_a_folder_that_lacks_a_simulation_is_refused(make, tmp_path):
    folder = tau2_folder(tmp_path, "a", indexed=("a", "../../etc/hosts"))
    with pytest.raises(BadInput, match="1 simulations have no file in simulations/"):
        make(folder)


def test_a_folder_that_lacks_its_simulations_is_no_run_of_tau2(make, tmp_path):
    folder = tau2_folder(tmp_path, "a", indexed=("a",))
    shutil.rmtree(folder / "simulations")
    with pytest.raises(BadInput, match=r"is a folder without results\.json and simulations/"):
        make(folder / "results.json")
