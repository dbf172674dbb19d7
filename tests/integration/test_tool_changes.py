"""`fixtures check` with the tools as they are now: what changed since they were recorded, and which
samples that touches."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from callmark.cli import main

pytest.importorskip("mcp")

LIVE = Path(__file__).parents[1] / "live_server.py"
COMMAND = f"{sys.executable} {LIVE}"
CALLS = {
    "a": ("find_order", {"order_id": "W100"}),
    "b": ("find_order", {"order_id": "W999", "verbose": True}),
    "c": ("query", {"sql": "select 1"}),
    "d": ("links", {}),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """A folder with a dataset of four samples, and what a live MCP server answered to it."""
    folder = tmp_path_factory.mktemp("recorded")
    lines = [
        json.dumps(
            {
                "prompt": "?",
                "metadata": {
                    "sample_id": one,
                    "call_sequence": [{"name": name, "arguments": arguments}],
                },
            }
        )
        for one, (name, arguments) in CALLS.items()
    ]
    (folder / "dataset.jsonl").write_text("\n".join(lines), "utf-8")
    words = ["--in", str(folder / "dataset.jsonl"), "--mcp", COMMAND, "--pii", "keep"]
    assert main(["fixtures", "record", str(folder / "fixtures"), *words, "--mode", "new"]) == 0
    return folder


@pytest.fixture
def world(recorded, tmp_path) -> Path:
    return shutil.copytree(recorded, tmp_path / "world")


def check(world, capsys, *more: str) -> tuple[int, str]:
    words = ["fixtures", "check", str(world / "fixtures"), "--in", str(world / "dataset.jsonl")]
    code = main([*words, *more])
    said = capsys.readouterr().out
    return code, said[said.find("tools that changed") :] if "tools that changed" in said else said


def other_server(world: Path, *edits: tuple[str, str]) -> str:
    text = LIVE.read_text("utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (world / "server.py").write_text(text, "utf-8")
    return f"{sys.executable} {world / 'server.py'}"


@pytest.mark.slow
def test_the_same_server_has_not_changed(world, capsys):
    code, said = check(world, capsys, "--mcp", COMMAND)
    assert code == 0
    assert "no change seen in 12 tools" in said


def test_a_changed_schema_is_named_with_its_samples(world, capsys):
    server = other_server(
        world,
        ('"order_id": {"type": "string"}', '"order_id": {"type": "integer"}'),
        ('"required": ["order_id"]', '"required": ["order_id", "shop"]'),
    )
    code, said = check(world, capsys, "--mcp", server)
    assert code == 1
    assert [line.strip() for line in said.splitlines()][:7] == [
        "tools that changed (1 of 12)",
        "find_order: it takes other arguments than it did",
        'order_id: type was "string", is "integer"',
        "shop: is new, and required",
        "fixtures: 2",
        "samples (2): a, b",
        "calls that it would refuse now (4)",
    ]
    assert "sample a: " in said
    assert "find_order.jsonl:1: " in said


@pytest.mark.slow
def test_a_tool_that_vanished_is_named_with_its_samples(world, capsys):
    server = other_server(world, ('"customer", "query")', '"customer", "ask")'))
    code, said = check(world, capsys, "--mcp", server)
    assert code == 1
    assert "query: there is no such tool any more\n    fixtures: 1\n    samples (1): c\n" in said
    assert "tools that nobody recorded: ask" in said


@pytest.mark.slow
def test_a_tool_that_nothing_was_recorded_of_is_not_missed(world, capsys):
    code, said = check(world, capsys, "--mcp", other_server(world, ('"slow", "dies")', '"slow")')))
    assert code == 0
    assert "dies: there is no such tool any more" in said


@pytest.mark.slow
def test_another_description_is_told_and_fails_nothing(world, capsys):
    server = other_server(world, ("Look an order up.", "Finds an order."))
    code, said = check(world, capsys, "--mcp", server)
    assert code == 0
    assert "find_order: it is described otherwise, and takes the same arguments" in said
    assert "its description" in said


def specs_of(world: Path) -> list[dict]:
    return json.loads((world / "fixtures" / ".registry.json").read_text("utf-8"))["tools"]


def write_specs(world: Path, specs: list[dict], name: str = "new.json") -> str:
    (world / name).write_text(json.dumps(specs), "utf-8")
    return str(world / name)


def test_a_registry_file_is_compared_in_the_same_way(world, capsys):
    specs = specs_of(world)
    assert check(world, capsys, "--registry", write_specs(world, specs))[0] == 0
    order = next(one for one in specs if one["name"] == "find_order")
    del order["parameters"]["properties"]["verbose"]
    order["parameters"]["additionalProperties"] = False
    code, said = check(world, capsys, "--registry", write_specs(world, specs))
    assert code == 1
    assert "verbose: is gone" in said
    assert "additionalProperties of its arguments: null is false now" in said
    assert "calls that it would refuse now (2)" in said  # b's, recorded and expected
    assert "samples (2): a, b" in said


def test_without_recorded_specs_only_what_is_refused_is_told(world, capsys):
    specs = specs_of(world)
    old = write_specs(world, specs, "old.json")
    (world / "fixtures" / ".registry.json").unlink()
    order = next(one for one in specs if one["name"] == "find_order")
    order["parameters"]["properties"]["order_id"] = {"type": "integer"}
    new = write_specs(world, specs)
    code, said = check(world, capsys, "--registry", new)
    assert code == 1
    assert "find_order: what it was is not known (--recorded)" in said
    code, said = check(world, capsys, "--registry", new, "--recorded", old)
    assert code == 1
    assert 'order_id: type was "string", is "integer"' in said


@pytest.mark.slow
def test_a_sample_that_brings_its_own_spec_goes_by_that(world, capsys):
    spec = next(one for one in specs_of(world) if one["name"] == "find_order")
    older = json.loads(json.dumps(spec))
    older["parameters"]["properties"]["order_id"] = {"type": "string", "maxLength": 9}
    items = [json.loads(line) for line in (world / "dataset.jsonl").read_text().splitlines()]
    for item, own in ((items[0], older), (items[1], spec)):
        tool = {"type": "function", "function": {k: v for k, v in own.items() if k[0] != "x"}}
        item["metadata"]["tools"] = [tool]
    (world / "dataset.jsonl").write_text("\n".join(map(json.dumps, items)), "utf-8")
    code, said = check(world, capsys, "--mcp", COMMAND)
    assert code == 1
    assert "order_id: maxLength was 9, is not given" in said
    assert "samples (1): a" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--recorded", "x.json"], "--recorded: which tools are there now?"),
        (["--registry", "x.json", "--mcp", "y"], "--registry: the tools are those of --mcp"),
        (["--env", "HOME"], "are for --mcp or --python"),
    ],
)
def test_options_that_would_do_nothing_are_refused(world, capsys, words, said):
    assert main(["fixtures", "check", str(world / "fixtures"), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_server_that_does_not_start_is_told(world, capsys):
    assert main(["fixtures", "check", str(world / "fixtures"), "--mcp", "false"]) == 4
    assert "no MCP server answered" in capsys.readouterr().err
