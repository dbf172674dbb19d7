"""Samples that bring the specs of their tools along."""

import json

import pytest

from callmark import parse_tool_calls, run, score_item
from callmark.cli import main
from callmark.errors import BadInput


def spec(name, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": name, "parameters": schema}


NUMBER, TEXT = {"type": "number"}, {"type": "string"}
SAMPLES = {
    "a": (spec("bmi", weight=NUMBER), {"weight": 70}),
    "b": (spec("bmi", kilos=NUMBER), {"kilos": 70}),
    "c": (spec("solve.equation", formula=TEXT), {"formula": "x+1"}),
}


def item(sample_id, tools, name, arguments):
    calls = [{"name": name, "arguments": arguments}]
    metadata = {"sample_id": sample_id, "tools": tools, "call_sequence": calls}
    return {"prompt": "Go.", "metadata": metadata}


def written(path, values):
    path.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
    return str(path)


def played(tmp_path, items, calls, **settings):
    """`calls`: sample → (name, arguments) as the model wrote them."""
    answers = [
        {"sample_id": one, "model_output": "", "tool_trace": [{"name": name, "arguments": given}]}
        for one, (name, given) in calls.items()
    ]
    out = tmp_path / "out.jsonl"
    made = {"runner": "replay", "in": written(tmp_path / "d.jsonl", items), "out": str(out)}
    run({**made, "model": written(tmp_path / "m.jsonl", answers), **settings})
    lines = map(json.loads, out.read_text("utf-8").splitlines())
    return {line["sample_id"]: line for line in lines}


def test_f80_two_samples_may_have_two_tools_of_one_name(tmp_path):
    items = [item(one, [tool], tool["name"], given) for one, (tool, given) in SAMPLES.items()]
    calls = {one: (tool["name"], given) for one, (tool, given) in SAMPLES.items()}
    lines = played(tmp_path, items, calls)
    assert {one: line["scores"]["call_f1"] for one, line in lines.items()} == dict.fromkeys(
        "abc", 1.0
    )
    assert all(line["scores"]["json_args_valid"] for line in lines.values())
    swapped = {"a": ("bmi", {"kilos": 70}), "b": ("bmi", {"weight": 70})}
    lines = played(tmp_path, items[:2], swapped)
    assert [line["scores"]["json_args_valid"] for line in lines.values()] == [False, False]


def test_f81_a_name_is_folded_against_what_the_sample_is_offered(tmp_path):
    registry = tmp_path / "tools.json"
    both = [spec("solve.equation", formula=TEXT), spec("solve_equation", text=TEXT)]
    registry.write_text(json.dumps(both), "utf-8")
    given = {"formula": "x+1"}
    items = [item("c", ["solve.equation"], "solve.equation", given)]
    lines = played(tmp_path, items, {"c": ("solve_equation", given)}, registry=str(registry))
    assert lines["c"]["scores"]["call_f1"] == 1.0
    assert lines["c"]["scores"]["json_args_valid"] is True
    assert lines["c"]["tool_trace"][0]["name"] == "solve.equation"


def test_another_tool_than_its_own_is_not_offered(tmp_path):
    tool, given = SAMPLES["a"]
    lines = played(tmp_path, [item("a", [tool], "bmi", given)], {"a": ("web.search", {"q": "x"})})
    assert lines["a"]["scores"]["json_args_valid"] is False


def test_names_and_specs_may_stand_together():
    tool, given = SAMPLES["a"]
    sample = item("a", ["web.search", tool], "bmi", given)
    scores = score_item(sample, "", [{"name": "bmi", "arguments": given, "result": {"bmi": 22}}])
    assert (scores["call_f1"], scores["json_args_valid"]) == (1.0, True)


def test_a_spec_that_cannot_be_used_is_named_before_the_run(tmp_path):
    broken = {"name": "bmi", "description": "", "parameters": {"type": "nonsense"}}
    with pytest.raises(BadInput, match=r"d\.jsonl:1: metadata\.tools"):
        played(tmp_path, [item("a", [broken], "bmi", {})], {"a": ("bmi", {})})


def test_a_set_has_no_order():
    tags = {"type": "array", "items": TEXT, "uniqueItems": True}
    for kind, f1 in ((tags, 1.0), ({"type": "array"}, 0.0)):
        sample = item("a", [spec("tag", tags=kind)], "tag", {"tags": ["x", "y"]})
        scores = score_item(sample, "", [{"name": "tag", "arguments": {"tags": ["y", "x"]}}])
        assert scores["call_f1"] == f1


def test_f82_an_expected_call_may_say_which_of_its_lists_have_no_order():
    tool = spec("tag", tags={"type": "array"}, more={"type": "array"})
    right = {"tags": ["Red", "blue"], "more": [1, 2]}
    sample = item("a", [tool], "tag", right)
    (call,) = sample["metadata"]["call_sequence"]
    call["unordered"] = ["tags"]

    def f1(**given):
        return score_item(sample, "", [{"name": "tag", "arguments": {**right, **given}}])["call_f1"]

    assert f1(tags=["blue", "Red"]) == 1.0
    assert f1(tags=["blue", "Red", "Red"]) == f1(tags=["blue"]) == f1(more=[2, 1]) == 0.0
    assert f1(tags=["blue", "red"]) == 0.0
    sample["metadata"]["string_match"] = "lenient"
    assert f1(tags=["BLUE", "red"]) == 1.0
    call["accept"] = {"/tags": [["x", "y"]]}
    assert f1(tags=["y", "x"]) == f1(tags=["blue", "red"]) == 1.0
    assert f1(tags=["y", "z"]) == 0.0


def test_a_call_in_text_is_typed_by_the_samples_own_spec():
    text = "<tool_call><function=bmi><parameter=weight>70</parameter></function></tool_call>"
    (row,) = parse_tool_calls(text, [SAMPLES["a"][0]])
    assert row["arguments"] == {"weight": 70}


def weather(default, **extension):
    """A tool of the same name in several samples, each with another default."""
    unit = {"type": "string", "default": default}
    tool = spec("weather.get", city=TEXT)
    tool["parameters"]["properties"]["unit"] = unit
    return {**tool, "x-callmark": {"aliases": ["meteo"], "casefold": ["city"], **extension}}


def fixtures_in(tmp_path, *entries):
    folder = tmp_path / "fixtures"
    folder.mkdir()
    written(folder / "f.jsonl", entries)
    return {"fixtures": str(folder)}


def entry(result, key, **more):
    return {"name": "weather.get", "key": key, "result": {"temp": result}, **more}


def results_of(lines):
    return {one: line["tool_trace"][0]["result"] for one, line in lines.items()}


def test_f80_defaults_and_aliases_of_a_samples_own_spec_reach_the_fixtures(tmp_path):
    celsius, fahrenheit = weather("C"), weather("F", ignore=["verbose"])
    items = [
        item("a", [celsius], "weather.get", {"city": "Oslo"}),
        item("b", [fahrenheit], "weather.get", {"city": "Oslo"}),
        item("c", [celsius], "weather.get", {"city": "Rome"}),
    ]
    folder = fixtures_in(
        tmp_path,
        entry(4, {"city": "Oslo", "unit": "C"}),
        entry(39, {"city": "Oslo", "unit": "F"}),
        {**entry(20, {"city": "Rome"}, sample_id="c"), "name": "meteo"},
    )
    calls = {
        "a": ("weather_get", {"city": "OSLO"}),
        "b": ("meteo", {"city": "oslo", "verbose": True}),
        "c": ("weather.get", {"city": "rome", "unit": "C"}),
    }
    lines = played(tmp_path, items, calls, **folder)
    assert results_of(lines) == {"a": {"temp": 4}, "b": {"temp": 39}, "c": {"temp": 20}}
    assert {line["tool_trace"][0]["served_by"] for line in lines.values()} == {"fixture:exact"}


def test_f80_a_tool_of_the_registry_does_not_rule_a_samples_own_of_the_same_name(tmp_path):
    """Its default would stand in the key of every fixture."""
    registry = tmp_path / "tools.json"
    registry.write_text(json.dumps([weather("K", aliases=["meteo", "thermo"])]), "utf-8")
    items = [
        item("a", [weather("C")], "weather.get", {"city": "Oslo"}),
        item("b", ["weather.get"], "weather.get", {"city": "Oslo"}),
    ]
    folder = fixtures_in(
        tmp_path, entry(4, {"city": "Oslo"}), entry(277, {"city": "Bonn", "unit": "K"})
    )
    calls = {
        "a": ("weather.get", {"city": "Oslo", "unit": "C"}),
        "b": ("thermo", {"city": "Bonn"}),
    }
    lines = played(tmp_path, items, calls, registry=str(registry), **folder)
    assert results_of(lines) == {"a": {"temp": 4}, "b": {"temp": 277}}


def test_f80_patterns_and_sequences_hold_for_own_specs(tmp_path):
    items = [item("a", [weather("C")], "weather.get", {"city": "Oslo"})]
    folder = fixtures_in(
        tmp_path,
        entry(1, {"city": "Oslo"}, seq=1),
        entry(2, {"city": "Oslo"}, seq=2),
        entry(9, {"unit": "C"}, match={"city": {"contains": "BERG"}}),
    )
    trace = [
        {"name": "weather.get", "arguments": {"city": city}}
        for city in ("Oslo", "oslo", "Bamberg", "Paris")
    ]
    answers = [{"sample_id": "a", "model_output": "", "tool_trace": trace}]
    out = tmp_path / "out.jsonl"
    made = {"runner": "replay", "in": written(tmp_path / "d.jsonl", items), "out": str(out)}
    run({**made, "model": written(tmp_path / "m.jsonl", answers), **folder})
    served = json.loads(out.read_text("utf-8"))["tool_trace"]
    assert [one["result"].get("temp") for one in served] == [1, 2, 9, None]
    assert [one["served_by"] for one in served[:3]] == [
        "fixture:exact", "fixture:exact", "fixture:pattern",
    ]  # fmt: skip


def test_without_fixtures_the_key_of_a_miss_is_that_of_the_samples_own_spec(tmp_path):
    items = [item("a", [weather("C")], "weather.get", {"city": "Oslo"})]
    lines = played(tmp_path, items, {"a": ("meteo", {"city": "OSLO"})})
    missed = lines["a"]["tool_trace"][0]
    assert missed["key_normalized"] == {"city": "oslo", "unit": "C"}


def test_f83_attempts_in_no_known_format_are_listed_in_the_report(tmp_path, capsys):
    tool, given = SAMPLES["a"]
    texts = {
        "a": '<|do|>bmi<|with|>{"weight": 70}<|done|>',
        "b": "I do not know.",
        "c": "::bmi::weight=70::",
    }
    items = [item(one, [tool], "bmi", given) for one in texts]
    answers = [{"sample_id": one, "model_output": text} for one, text in texts.items()]
    files = [
        "--in", written(tmp_path / "d.jsonl", items),
        "--model", written(tmp_path / "m.jsonl", answers),
    ]  # fmt: skip
    report = tmp_path / "report.json"
    main(
        [
            "run",
            "--runner",
            "replay",
            *files,
            "--out",
            str(tmp_path / "o.jsonl"),
            "--report",
            str(report),
        ]
    )
    found = json.loads(report.read_text("utf-8"))["unparsed"]
    assert found["count"] == 2
    assert [(one["sample_id"], one["name"], one["raw"]) for one in found["first"]] == [
        ("a", "bmi", texts["a"]),
        ("c", "bmi", texts["c"]),
    ]
    assert (
        "calls in no known format, all of them invalid: 2; the first, in a: <|do|>bmi"
        in " ".join(capsys.readouterr().out.split())
    )
