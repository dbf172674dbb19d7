"""The model that ships: small, without pickle, and exactly what its manifest and script say."""

import hashlib
import json
import re
import shutil
import struct
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from dev.training.adapters import ADAPTERS
from dev.training.bundle import write_cases, write_dataset
from dev.training.dialogues import FAMILIES, training_dialogue
from dev.training.evaluate import record_answers
from dev.training.learning import Course, learn, new_model
from dev.training.making import ADAPTER_BASE, SEED
from dev.training.rendering import training_view
from dev.training.words import Words, split_of
from dev.training.world import World
from hypothesis import given
from hypothesis import strategies as st

from callmark import run, verify_dataset
from callmark.api import builtin_registry
from callmark.datasets.reader import open_dataset
from callmark.summary.gates import GATES

TINY = Path(__file__).parents[2] / "src" / "callmark" / "data" / "tiny"
FIXTURES = TINY.parent / "fixtures"
MODEL = TINY / "model"
ADAPTER_FOLDERS = sorted((TINY / "adapters").iterdir())
FILES = sorted(path for path in TINY.rglob("*") if path.is_file())
WEIGHTS = [path for path in FILES if path.suffix == ".safetensors"]


def json_of(path: Path) -> dict:
    return json.loads(path.read_text("utf-8"))


def tensors_of(path: Path) -> dict:
    """The header of a safetensors file."""
    with path.open("rb") as stream:
        (size,) = struct.unpack("<Q", stream.read(8))
        header = json.loads(stream.read(size))
    header.pop("__metadata__", None)
    return header


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_model_tokenizer_and_template_are_small():
    assert size_of(MODEL) <= 8 * 1024 * 1024


@pytest.mark.parametrize("folder", ADAPTER_FOLDERS, ids=lambda path: path.name)
def test_adapters_are_small_and_plain(folder):
    assert size_of(folder) <= 400 * 1024
    config = json_of(folder / "adapter_config.json")
    assert config["base_model_name_or_path"] == ADAPTER_BASE
    assert config["peft_type"] == "LORA"


def test_there_is_an_adapter_of_each_kind():
    assert {folder.name for folder in ADAPTER_FOLDERS} == set(ADAPTERS)


def test_weights_are_safetensors_only():
    kinds = {path.suffix for path in FILES}
    assert kinds <= {".safetensors", ".json", ".jsonl", ".jinja", ".md"}
    assert len(WEIGHTS) == 1 + len(ADAPTERS)


@pytest.mark.parametrize("path", WEIGHTS, ids=lambda path: path.parent.name)
def test_weights_are_single_precision(path):
    assert {tensor["dtype"] for tensor in tensors_of(path).values()} == {"F32"}


def test_every_file_is_in_the_manifest_with_its_hash():
    listed = json_of(TINY / "manifest.json")["sha256"]
    found = {
        path.relative_to(TINY).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in FILES
        if path.name != "manifest.json"
    }
    assert listed == found


@pytest.mark.parametrize(
    "path", [path for path in FILES if path not in WEIGHTS], ids=lambda p: p.name
)
def test_no_file_names_a_place_on_a_machine(path):
    text = path.read_text("utf-8")
    assert not re.search(r"/(tmp|home|root|work|usr|Users)/|[A-Z]:\\\\|_name_or_path\": \"/", text)


def test_the_checkpoint_can_be_served_with_tools():
    """The chat template renders tools and past calls; the response template gives calls back."""
    template = (MODEL / "chat_template.jinja").read_text("utf-8")
    assert "tools" in template
    assert "tool_calls" in template
    response = json_of(MODEL / "tokenizer_config.json")["response_template"]
    assert response["fields"]["tool_calls"]["close"] == "</tool_call>"


def test_the_dataset_is_what_the_script_makes(tmp_path, capsys):
    made = tmp_path / "tiny"
    made.mkdir()
    fixtures = shutil.copytree(FIXTURES, tmp_path / "fixtures")
    own = list(fixtures.glob("tiny.*"))
    for path in own:
        path.unlink()
    write_dataset(made, fixtures, SEED)
    write_cases(made / "cases.jsonl", SEED)
    assert own
    assert sorted(fixtures.glob("tiny.*")) == sorted(own)
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        shipped = TINY.parent / path.relative_to(tmp_path)
        assert path.read_bytes() == shipped.read_bytes(), path.name


def test_enough_samples_stand_behind_every_gate():
    with open_dataset(TINY / "dataset.jsonl") as dataset:
        samples = list(dataset.samples())
    kinds = Counter(sample.expectation.kind for sample in samples)
    assert kinds["eligible"] >= 60
    for kind in ("control", "negative_control", "clarify"):
        assert kinds[kind] >= 15, kind
    eligible = [sample for sample in samples if sample.expectation.kind == "eligible"]
    assert sum(len(sample.expectation.calls) > 1 for sample in eligible) >= 16
    assert sum(sample.expectation.retry for sample in eligible) >= 16


@pytest.mark.slow
def test_the_dataset_verifies():
    report = verify_dataset(TINY / "dataset.jsonl", fixtures=FIXTURES)
    assert report.verdict == "pass"


def test_the_recorded_answers_pass_every_hard_gate(tmp_path):
    """Only what a dataset without locales, slices, checks and long results cannot have is not
    judged."""
    report = run(
        {
            "runner": "replay",
            "model": str(TINY / "answers.jsonl"),
            "dataset": str(TINY / "dataset.jsonl"),
            "fixtures": str(FIXTURES),
            "out": str(tmp_path / "results.jsonl"),
        }
    )
    assert report.verdict == "pass"
    status = {gate.name: gate.status for gate in report.gates}
    open_gates = {name for name, state in status.items() if state == "n/a"}
    assert all(
        name.startswith(("locale_", "teacher_heavy_", "checks_", "copy_", "unchanged_"))
        for name in open_gates
    )
    assert {status[name] for name in status.keys() - open_gates} == {"pass"}
    assert status.keys() <= GATES.keys()


def test_the_cases_of_the_probe():
    lines = (TINY / "cases.jsonl").read_text("utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    assert len(cases) == 24
    assert len({case["prompt"] for case in cases}) == 24
    for case in cases:
        assert set(case) == {"prompt", "tool_spec", "gold_tool_name", "max_new_tokens"}
        assert case["tool_spec"]["name"] == case["gold_tool_name"]
        assert builtin_registry().spec(case["gold_tool_name"]) is not None


def test_what_the_adapters_do_to_the_cases_is_written_down():
    """Valid calls of 24: all, all, a clear loss, and a loss too small to be sure of."""
    kept = {
        name: counts["valid"] for name, counts in json_of(TINY / "manifest.json")["cases"].items()
    }
    assert kept["base"] >= 23
    assert kept["keeps"] >= 23
    assert kept["damages"] <= kept["base"] - 8
    assert 2 <= kept["base"] - kept["loses"] <= 4


@pytest.mark.slow
def test_the_model_still_says_what_was_recorded(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    assert record_answers(TINY, tmp_path / "answers.jsonl", tmp_path) == "pass"

    recorded = (tmp_path / "answers.jsonl").read_text("utf-8")
    assert recorded == (TINY / "answers.jsonl").read_text("utf-8")


@pytest.mark.slow
def test_interrupted_training_ends_as_if_it_had_not_been(tmp_path):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)  # several would wait for each other beside other tests
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    course = Course(steps=4, peak=1e-3, seed=1)

    def trained(folder: Path, *interrupted_after: int) -> list:
        for stop in (*interrupted_after, course.steps):
            model = new_model(tokenizer, 1)
            for done, _ in learn(model, tokenizer, training_dialogue, course, folder, save_every=1):
                if done == stop:
                    break
        return list(model.parameters())

    whole, resumed = trained(tmp_path / "whole"), trained(tmp_path / "resumed", 1, 3)
    assert all(torch.equal(*pair) for pair in zip(whole, resumed, strict=True))


@given(st.integers(0, 10_000))
def test_held_out_words_are_never_trained_on(seed):
    assert split_of(Words(Random(seed), "training").word()) == "training"
    assert split_of(Words(Random(seed), "held_out").name()) == "held_out"


@given(st.integers(0, 10_000))
def test_training_dialogues_are_whole(seed):
    """Every call is offered its tool and fits its schema; the same seed gives the same dialogue."""
    dialogue = training_dialogue(Random(seed), 1.0)
    assert dialogue == training_dialogue(Random(seed), 1.0)
    registry = builtin_registry()
    for call in dialogue.calls:
        assert not registry.validate(call.name, call.arguments)
    messages, tools = training_view(Random(seed), dialogue)
    offered = {tool["function"]["name"] for tool in tools}
    called = {call["function"]["name"] for one in messages for call in one.get("tool_calls") or ()}
    assert called <= offered


@pytest.mark.parametrize("name", FAMILIES)
def test_long_families_wait_until_copying_is_learnt(name):
    early = {training_dialogue(Random(seed), 0.0).family for seed in range(300)}
    is_long = any(
        len(FAMILIES[name].make(World(Random(seed), "training"), name).calls) > 1
        for seed in range(5)
    )
    assert (name in early) is not is_long
