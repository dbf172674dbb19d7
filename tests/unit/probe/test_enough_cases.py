"""How many cases are enough, and how to get them for one's own tools."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.probe.asking import GOOD, PROSE, case

from callmark import tool_use_fidelity
from callmark.calls.registry import Registry
from callmark.cli import main
from callmark.errors import BadInput, UsageError
from callmark.probe.case_making import cases_text, make_cases
from callmark.probe.spec import read_cases
from callmark.probe.stats import cases_needed, cases_to_rule_out, power_of, validity_change
from callmark.probe.views import question_of

BOOK = {
    "name": "book_table",
    "description": "Book a table. Confirms by mail.",
    "parameters": {
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date"},
            "people": {"type": "integer", "minimum": 1, "maximum": 8},
            "area": {"enum": ["inside", "terrace"]},
            "wishes": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        },
        "required": ["day", "people"],
        "additionalProperties": False,
    },
}
OPEN = {
    "name": "open_file",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "id": {"type": "string", "minLength": 20}},
        "anyOf": [{"required": ["path"]}, {"required": ["id"]}],
    },
}
PING = {"name": "ping", "parameters": {"type": "object"}}
ODD = {
    "name": "odd",
    "parameters": {
        "type": "object",
        "properties": {"code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{7}$"}},
        "required": ["code"],
    },
}


def registry(*specs: dict) -> Registry:
    return Registry.from_specs(list(specs), where="the test")


@pytest.mark.parametrize(
    ("lost", "gained", "n"), [(0.2, 0.0, 30), (0.15, 0.05, 60), (0.1, 0.0, 24)]
)
def test_the_power_is_how_often_a_drop_is_found(lost, gained, n):
    random, found = np.random.default_rng(1), 0
    for _ in range(1500):
        drawn = random.random(n)
        base, tuned = drawn >= gained, (drawn < gained) | (drawn >= gained + lost)
        found += validity_change(base.tolist(), tuned.tolist(), -0.05).decision == "regression"
    assert found / 1500 == pytest.approx(power_of(n, lost, gained, -0.05), abs=0.04)


@pytest.mark.parametrize("drop", [0.08, 0.1, 0.2, 0.5])
def test_so_many_cases_have_the_power_and_one_less_has_not_for_good(drop):
    n = cases_needed(drop, 0.0, -0.05)
    assert n is not None
    assert all(power_of(one, drop, 0.0, -0.05) >= 0.8 for one in range(n, n + 60))
    assert power_of(n - 1, drop, 0.0, -0.05) < 0.8


def test_a_drop_of_exactly_the_floor_is_never_found_often_enough():
    assert cases_to_rule_out(-0.05) == 59
    assert power_of(5000, 0.05, 0.0, -0.05) < 0.8


def test_plan_answers_without_a_model(capsys, tmp_path):
    assert main(["probe", "--plan", "10"]) == 0
    shown = capsys.readouterr().out
    assert "with 66 cases, where the fine-tune only loses calls" in shown
    assert "59 cases without a single change" in shown
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(case()) + "\n" for _ in range(24)), "utf-8")
    assert main(["probe", "--plan", "10", "--cases", str(path)]) == 0
    assert "24 cases find it in 9% of probes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--plan", "5"], "more than 5"),
        (["--plan", "0.2"], "--plan 10"),
        (["--plan", "101"], "at most 100"),
        (["--plan", "nan"], "at most 100"),
        (["--plan", "10", "--base", "m"], "leave out --base"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(words, what, capsys):
    assert main(["probe", *words]) == 2
    assert what in capsys.readouterr().err


def test_cases_are_made_for_the_tools_of_a_registry():
    made = make_cases(registry(BOOK, OPEN, PING, ODD), 48, 7)
    assert made.left_out.keys() == {"odd"}
    calls = [one for one in made.cases if one.gold_tool_name is not None]
    assert (len(made.cases), len(calls)) == (48, 42)
    assert {one.gold_tool_name for one in calls} == {"book_table", "open_file", "ping"}
    assert {len(one.other_tools) for one in calls} == {0, 1, 2}
    booking = [one.prompt for one in calls if one.gold_tool_name == "book_table"]
    assert all('day: "2024-0' in prompt and "people: " in prompt for prompt in booking)
    assert any("area: " in prompt for prompt in booking)
    assert not all("area: " in prompt for prompt in booking)


def test_the_same_numbers_give_the_same_cases_and_more_leave_the_first_alone():
    tools = registry(BOOK, OPEN, PING)
    text = cases_text(make_cases(tools, 20, 3).cases)
    assert text == cases_text(make_cases(tools, 20, 3).cases)
    assert cases_text(make_cases(tools, 50, 3).cases).startswith(text)
    assert text != cases_text(make_cases(tools, 20, 4).cases)


def test_the_command_writes_cases_that_a_probe_reads(tmp_path, capsys):
    tools, out = tmp_path / "tools.json", tmp_path / "cases.jsonl"
    tools.write_text(json.dumps([BOOK, PING]), "utf-8")
    words = ["--cases", "16", "--registry", str(tools), "--out", str(out)]
    assert main(["dataset", "generate", *words]) == 0
    assert "16 cases for 2 tools, seed 42" in capsys.readouterr().out
    cases = read_cases(out)
    assert len(cases) == 16
    silent = next(one for one in cases if one.gold_tool_name is None)
    assert len(question_of(silent).tools) == 1 + len(silent.other_tools)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--cases", "0"], "at least one case"),
        (["--cases", "5", "--total", "4"], "--total: is for a dataset"),
        (["--registry", "x", "--total", "4"], "--registry: goes with --cases"),
        (["--total", "4"], "--fixtures: is needed"),
        ([], "--total: is needed"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, what, tmp_path, capsys):
    out = str(tmp_path / "out.jsonl")
    assert main(["dataset", "generate", "--out", out, *words]) == 2
    assert what in capsys.readouterr().err


def test_a_registry_of_impossible_tools_is_refused():
    with pytest.raises(UsageError, match="odd: its schema asks for values"):
        make_cases(registry(ODD), 5, 1)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.sampled_from(
            [
                {"type": "string"}, {"type": ["integer", "null"]}, {"type": "boolean"}, {},
                {"type": "number", "minimum": 3.5, "maximum": 9}, {"enum": [1, "x", None]},
                {"anyOf": [{"type": "null"}, {"type": "string"}]}, {"const": {"k": 1}},
                {"type": "object", "properties": {"z": {"type": "integer"}}, "required": ["z"]},
                {"type": "integer", "multipleOf": 5, "minimum": 11}, True, {"type": "null"},
                {"type": "string", "maxLength": 3}, {"type": "array"}, {"$ref": "#/x"},
            ]
        ),
    ),
    st.integers(),
)  # fmt: skip
def test_whatever_a_schema_says_cases_are_made_or_the_tool_is_left_out(properties, seed):
    spec = {"name": "t", "parameters": {"type": "object", "properties": properties}}
    try:
        tools = registry(spec, PING)
    except Exception:
        return
    made = make_cases(tools, 12, seed)
    assert len(made.cases) == 12


@pytest.mark.parametrize(
    ("others", "what"),
    [
        ([{}], "must be a tool with a name"),
        ([{"function": 3}], "must be a tool with a name"),
        ([{"name": "search_web"}], "search_web is offered already"),
        ([{"name": "a"}, {"function": {"name": "a"}}], "a is offered already"),
    ],
)
def test_tools_beside_the_right_one_need_a_name_of_their_own(others, what):
    with pytest.raises(BadInput, match=r"cases\[0\]\.other_tools\[\d\]: " + what):
        tool_use_fidelity([case(other_tools=others)], [GOOD], [GOOD])


def test_a_case_without_a_call_is_right_without_one_and_counted_apart():
    silent = {**case(), "gold_tool_name": None}
    found = tool_use_fidelity([case(), silent, silent], [GOOD, PROSE, PROSE], [GOOD, PROSE, GOOD])
    evidence = found["evidence"]
    assert (evidence["num_cases"], evidence["num_no_call"]) == (1, 2)
    assert (evidence["num_unwanted_base"], evidence["num_unwanted_ft"]) == (0, 1)
    assert (evidence["num_lost"], found["ft_value"], evidence["hallucination_rate"]) == (
        0,
        1.0,
        0.0,
    )
    assert evidence["failures"][0]["cause"] == "a call where none was asked for"
    none = tool_use_fidelity([silent], [PROSE], [PROSE])
    assert (none["verdict"], "no case expects a call" in none["message"]) == ("skip", True)
