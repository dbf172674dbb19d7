"""The probe on real functions: right calls of a public benchmark, and what spoils them."""

import json

import pytest

from callmark import tool_use_fidelity

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def rows(real_data):
    lines = (real_data / "bfcl.jsonl").read_text("utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return [
        row
        for row in found
        if row["language"] == "Python"
        and len(row["functions"]) == 1
        and len(row["ground_truth"] or ()) == 1
    ]


def case_of(row: dict) -> dict:
    tool = row["functions"][0]
    prompt = row["question"][0]["content"]
    return {"prompt": prompt, "tool_spec": tool, "gold_tool_name": tool["name"]}


def right_call(row: dict, *, without: str | None = None) -> str:
    """The first accepted value of each argument; an empty one stands for leaving it out."""
    [(name, accepted)] = row["ground_truth"][0].items()
    arguments = {key: _plain(values) for key, values in accepted.items() if values[0] != ""}
    arguments.pop(without, None)
    return json.dumps({"name": name, "arguments": arguments})


def _plain(values: list) -> object:
    value = values[0]
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain([entry]) for entry in value]
    return value


def test_real_calls_are_valid_and_a_missing_argument_is_a_regression(rows):
    cases = [case_of(row) for row in rows]
    right = [right_call(row) for row in rows]
    same = tool_use_fidelity(cases, right, right)
    assert len(rows) > 300
    assert same["base_value"] > 0.97, [
        row["base"]["reason"] for row in same["evidence"]["cases"] if not row["base"]["valid"]
    ]
    assert same["decision"] == "no_regression"
    assert same["evidence"]["mean_arg_disagreement"] == 0.0
    required = [row["functions"][0]["parameters"].get("required", [None])[0] for row in rows]
    spoilt = [right_call(row, without=name) for row, name in zip(rows, required, strict=True)]
    worse = tool_use_fidelity(cases, right, spoilt)
    assert worse["decision"] == "regression"
    assert worse["ft_value"] < 0.05


def test_real_tools_under_another_name_are_invented(rows):
    cases = [case_of(row) for row in rows]
    right = [right_call(row) for row in rows]
    renamed = [text.replace('{"name": "', '{"name": "my_', 1) for text in right]
    found = tool_use_fidelity(cases, right, renamed)
    assert found["evidence"]["hallucination_rate"] == 1.0
    assert found["verdict"] == "fail"
