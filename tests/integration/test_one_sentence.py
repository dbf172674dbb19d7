"""Mistakes that many make: each is understood, or named in one sentence with the way out."""

import json

import pytest
from tests.endpoints import Server, city_model
from tests.integration.served import short_waits  # noqa: F401
from tests.local_models import random_model
from tests.probing import cases, write_cases

from callmark.calls.registry import Registry, registry_sha256, validate_arguments
from callmark.cli import dispatch
from callmark.config import load_config
from callmark.run.offers import open_registry

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
OPENAI = {"name": "weather", "description": "Weather.", "parameters": SCHEMA}
MCP = {"name": "weather", "description": "Weather.", "inputSchema": SCHEMA}
ANTHROPIC = {"name": "weather", "description": "Weather.", "input_schema": SCHEMA}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def sentence(capsys, words) -> str:
    """What is said of the one mistake in this command line."""
    capsys.readouterr()
    assert dispatch([str(word) for word in words]) == 2
    [line] = capsys.readouterr().err.splitlines()
    return line


def test_f54_who_names_a_server_means_it(project, capsys):
    files = ["--in", project.dataset, "--fixtures", project.fixtures, "--out", project.out]
    with Server(city_model) as server:
        words = ["run", *files, "--model", "stub", "--base-url", server.url, "--quiet"]
        assert dispatch(list(map(str, words))) == 0
        assert len(server.requests) == 45
    assert load_config(None, {"base_url": "http://x/v1", "runner": "replay"}).runner == "replay"
    assert load_config(None, {}).runner == "replay"


@pytest.mark.parametrize("name", ["model-Q4.gguf", "folder"])
def test_f54_a_gguf_model_that_cannot_be_loaded_can_be_served(project, capsys, tmp_path, name):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "model-Q4.gguf").write_bytes(b"GGUF")
    (folder / "config.json").write_text("{}")
    model = folder if name == "folder" else folder / name
    said = sentence(
        capsys, ["run", "--in", project.dataset, "--runner", "hf_local", "--model", model]
    )
    for part in (str(model), "model-Q4.gguf", "llama-server", "--base-url", "safetensors"):
        assert part in said


def test_f54_specs_of_mcp_and_anthropic_are_read(tmp_path):
    shapes = [OPENAI, MCP, ANTHROPIC, {"type": "function", "function": MCP},
              {**ANTHROPIC, "type": "custom", "cache_control": {"type": "ephemeral"}}]  # fmt: skip
    assert len({registry_sha256([shape]) for shape in shapes}) == 1
    for shape in shapes:
        path = tmp_path / "tools.json"
        path.write_text(json.dumps({"tools": [shape]}))
        registry = open_registry(str(path))
        assert registry.validate("weather", {"town": "Ulm"}) != ()
        assert registry.validate("weather", {"city": "Ulm"}) == ()
        assert registry.openai_tools(["weather"]) == [{"type": "function", "function": OPENAI}]
        assert validate_arguments(shape, {"city": 1})


def test_f54_what_an_mcp_server_says_besides_is_kept_and_not_sent():
    hints = {"title": "The weather", "annotations": {"readOnlyHint": True}}
    registry = Registry.from_specs([{**MCP, **hints}], where="here")
    [spec] = registry.specs
    assert spec.x_callmark.mcp == hints
    assert registry.openai_tools(["weather"]) == [{"type": "function", "function": OPENAI}]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('[{"prompt": "a"},\n {"prompt": "b"}]\n', ["is a JSON list", "callmark dataset import"]),
        ('[\n  {"prompt": "a"},\n  {"prompt": "b"}\n]\n', ["is a JSON list"]),
        ('{\n  "prompt": "a"\n}\n', ["goes over many lines", "callmark dataset import"]),
        ("prompt,expected\nWhere?,there\nWhat?,that\n", ["seems to be CSV", "csv.DictReader"]),
        ('"id";"the prompt";""\n1;2;3\n', ["seems to be CSV"]),
        ("id\tprompt\n1\tWhere?\n", ["seems to be CSV"]),
        ("PAR1\x15\x04\x15", ["is a Parquet table or an archive"]),
    ],
)
def test_f54_what_is_no_json_lines_is_said_once(project, capsys, text, parts):
    many = text + "x,y\n" * 30
    project.dataset.write_text(many, "utf-8")
    said = sentence(capsys, ["run", "--in", project.dataset, "--model", project.answers])
    assert "one JSON object on each line" in said
    assert str(project.dataset) in said
    for part in parts:
        assert part in said


def test_f54_the_way_out_of_a_json_list_works(project, capsys, tmp_path):
    items = project.dataset.read_text("utf-8").splitlines()[1:]
    listed = tmp_path / "listed.json"
    listed.write_text(f"[{','.join(items)}]", "utf-8")
    made = tmp_path / "made.jsonl"
    assert dispatch(["dataset", "import", str(listed), "--out", str(made)]) == 0
    words = ["run", "--in", made, "--model", project.answers, "--dry-run"]
    assert dispatch(list(map(str, words))) == 0


def test_f54_one_broken_line_is_still_that_line(project, capsys):
    lines = project.dataset.read_text("utf-8").splitlines()
    project.dataset.write_text("\n".join([lines[0], "{oops", *lines[1:]]), "utf-8")
    said = sentence(capsys, ["run", "--in", project.dataset, "--model", project.answers])
    assert f"{project.dataset}:2: not JSON" in said


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("call_f1", "call_f1_macro"),
        ("call-f1", "call_f1_macro"),
        ("call_f1_marco", "call_f1_macro"),
        ("parity", "multi_call_parity_rate"),
        ("hit_rate", "fixture_hit_rate"),
    ],
)
def test_f54_an_unknown_gate_is_told_by_the_name_of_the_option_and_of_the_gate(
    project, capsys, given, meant
):
    words = ["run", "--in", project.dataset, "--model", project.answers, "--gate", f"{given}=0.5"]
    said = sentence(capsys, words)
    assert f"--gate {given}: unknown gate" in said
    assert meant in said


def test_f54_a_dataset_is_no_file_of_cases(project, capsys):
    words = ["probe", "--base", "a", "--tuned", "b", "--cases", project.dataset]
    said = sentence(capsys, words)
    assert "is a dataset, no file of cases: give it with --dataset" in said
    items = project.dataset.read_text("utf-8").splitlines()[1:]
    listed = project.folder / "listed.json"
    listed.write_text(f"[{','.join(items)}]", "utf-8")
    words[-1] = listed
    assert "give it with --dataset" in sentence(capsys, words)


def test_f54_what_is_wrong_with_a_model_is_said_of_the_option_that_names_it(tmp_path, capsys):
    pytest.importorskip("torch")
    file = write_cases(tmp_path / "cases.jsonl", cases(2))
    able = random_model(tmp_path / "able")
    asked = ["--cases", file, "--nulls", "0"]
    gone, near = tmp_path / "gone", f"{able}-tuned"
    said = sentence(capsys, ["probe", "--base", gone, "--tuned", able, *asked])
    assert f"--base: {gone}: there is no such folder" in said
    said = sentence(capsys, ["probe", "--base", able, "--tuned", near, *asked])
    assert f"--tuned: {near}: there is no such folder" in said
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "version: 1\nmodels:\n"
        f"  base: {{kind: hf, base: {gone}}}\n  ft: {{kind: hf, base: {able}}}\n"
        "suite:\n  - kind: tool_use_fidelity\n    cases:\n      - " + json.dumps(cases(1)[0]) + "\n"
    )
    assert f"{spec}: models.base.base: {gone}: there is" in sentence(capsys, ["probe", spec])
