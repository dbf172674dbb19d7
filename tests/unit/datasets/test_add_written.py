"""A sample from a few words; what cannot be met is refused before it is written."""

import json

import pytest

from callmark.cli import main
from callmark.resources import starter_paths

TOOLS = ["--registry", str(starter_paths().registry)]


@pytest.fixture
def dataset(tmp_path):
    return tmp_path / "eval.jsonl"


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_sample_with_calls_and_facts(dataset, capsys):
    words = ["--prompt", "What does W100 cost?", "--call", "find_order", "order_id=W100"]
    assert main(["dataset", "new", str(dataset), *TOOLS, *words, "--fact", "81.25"]) == 0
    shown = capsys.readouterr().out
    assert f"{dataset}:2: sample-1 is added" in shown
    assert "callmark fixtures record" in shown
    header, item = lines(dataset)
    assert header == {"__header__": True, "dataset_version": "1"}
    assert item["metadata"] == {
        "sample_id": "sample-1",
        "call_sequence": [{"name": "find_order", "arguments": {"order_id": "W100"}}],
        "required_facts": [81.25],
    }
    assert main(["dataset", "new", str(dataset), "--prompt", "Hello"]) == 0
    assert f"{dataset}:3: sample-2 is added" in capsys.readouterr().out
    assert lines(dataset)[-1]["metadata"]["expected_behaviour"] == "no_tool"
    found = main(["verify", str(dataset), *TOOLS, "--fixtures", str(starter_paths().fixtures)])
    assert found == 0


def test_values_are_json_or_text_as_the_schema_asks(dataset, tmp_path):
    tools = tmp_path / "tools.json"
    properties = {"id": {"type": "string"}, "n": {"type": "integer"}, "deep": {"type": "boolean"}}
    parameters = {"type": "object", "properties": properties, "required": ["id"]}
    tools.write_text(json.dumps([{"name": "f", "parameters": parameters}]))
    words = ["--call", "f", "id=100", "n=3", "deep=true", "--call", "f", '{"id": "7"}']
    assert main(["dataset", "new", str(dataset), "--registry", str(tools), "--prompt", "x", *words]) == 0  # fmt: skip
    calls = [call["arguments"] for call in lines(dataset)[1]["metadata"]["call_sequence"]]
    assert calls == [{"id": "100", "n": 3, "deep": True}, {"id": "7"}]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--call", "find_ordr", "order_id=W1"], "no such tool in the registry; did you mean find_order"),
        (["--call", "find_order", "order_id=100"], "does not match"),
        (["--call", "find_order"], "required property"),
        (["--call", "find_order", "W100"], "write NAME=VALUE, or one JSON object"),
        (["--fact", "3"], "give the --call that returns it"),
        (["--id", "a", "--call", "find_order", "order_id=W1"], None),
    ],
)  # fmt: skip
def test_what_cannot_be_met_is_refused(dataset, capsys, words, what):
    code = main(["dataset", "new", str(dataset), *TOOLS, "--prompt", "x", *words])
    shown = capsys.readouterr().err
    assert (code, dataset.exists()) == ((0, True) if what is None else (2, False))
    assert what is None or what in shown
    if what is None:
        assert main(["dataset", "new", str(dataset), "--prompt", "x", "--id", "a"]) == 2
        assert "the sample a is there already" in capsys.readouterr().err
