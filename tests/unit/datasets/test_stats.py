"""What a dataset holds, and which gates it can decide."""

import io
import json
import sys

import pytest

from callmark.cli import main
from callmark.datasets.reader import open_dataset
from callmark.datasets.stats import cell_of, dataset_stats, prompt_bytes
from callmark.resources import demo_paths
from callmark.summary.gates import GATES

CALL = {"name": "web.search", "arguments": {"q": "x"}}


def stats_of(path, *items, header=None, **options):
    lines = [{"__header__": True, **(header or {})}, *items]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with open_dataset(path) as dataset:
        return dataset_stats(dataset, **options)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data.jsonl"


def item(number: int, prompt="?", **metadata) -> dict:
    return {"prompt": prompt, "metadata": {"sample_id": f"s{number}", **metadata}}


def test_counts_of_every_sort(file):
    stats = stats_of(
        file,
        item(0, scenario="a", complexity="hard", call_sequence=[CALL, CALL], language="de"),
        item(1, scenario="a", complexity=1, call_sequence=[CALL], structure="single", cluster=1),
        item(2, expected_behaviour="no_tool", tools=["web.open"], cluster="1"),
        item(3, negative_control=True, call_sequence=["read_file"], slices=["x"], scenario="b"),
        item(4, adversarial={"type": "ambiguity", "expected": "ask_clarify"}, cluster=2),
        {**item(5, locale="fr", locale_probe=True), "teacher_text": "", "user_turns": ["and?"]},
    )
    assert stats.samples == 6
    assert stats.kinds == {
        "clarify": 1, "control": 1, "eligible": 2, "negative_control": 1, "unclassified": 1,
    }  # fmt: skip
    assert stats.cells == {"a": {"1": 1, "hard": 1}, "b": {"-": 1}}
    assert stats.expected_calls == {"0": 3, "1": 2, "2": 1}
    assert (stats.tools, stats.offered) == ({"read_file": 1, "web.search": 2}, {"web.open": 1})
    assert (stats.languages, stats.structures) == ({"de": 1}, {"single": 1})
    assert (stats.locales, stats.locale_probes) == ({"fr": 1}, {"fr": 1})
    assert (stats.slices, stats.adversarial) == ({"x": 1}, {"ambiguity": 1})
    assert (stats.with_teacher_text, stats.with_user_turns, stats.clusters) == (1, 1, 2)


def test_prompt_sizes_are_bytes_of_text(file):
    parts = [{"type": "text", "text": "é"}, {"type": "image_url", "image_url": "long"}]
    messages = [{"role": "system", "content": "ab"}, {"role": "user", "content": parts}]
    messages.append({"role": "assistant", "content": None})
    assert prompt_bytes(messages) == 4
    stats = stats_of(file, item(0, messages), item(1, "漢" * 8000), item(2, ""))
    sizes = stats.prompt_bytes
    assert (sizes.smallest, sizes.median, sizes.largest) == (0, 4, 24_000)
    assert (sizes.total, sizes.long) == (24_004, 1)


@pytest.mark.parametrize(
    ("metadata", "cell"),
    [
        ({}, None),
        ({"scenario": "a"}, ("a", "-")),
        ({"complexity": 2}, ("-", "2")),
        ({"scenario": "a", "complexity": "b"}, ("a", "b")),
    ],
)
def test_cells(metadata, cell):
    assert cell_of(metadata) == cell


def reach(stats, name):
    return next((one.n, one.decided) for one in stats.gates if one.name == name)


@pytest.mark.parametrize(("eligible", "decided"), [(0, "n/a"), (14, "open"), (15, "yes")])
def test_a43_a_gate_needs_15_samples(file, eligible, decided):
    items = [item(at, call_sequence=[CALL], required_facts=[1]) for at in range(eligible)]
    controls = [item(100 + at, expected_behaviour="decline") for at in range(3)]
    stats = stats_of(file, *items, *controls)
    assert reach(stats, "integration_f1_macro_lax") == (eligible, decided)
    assert reach(stats, "grounding_lift") == (eligible, decided)
    assert reach(stats, "controls_with_integration") == (3, "open")
    assert reach(stats, "multi_call_parity_rate") == (0, "n/a")
    assert reach(stats, "perf_budget_sec_per_100")[0] == eligible + 3
    assert {one.name for one in stats.gates} == {
        name for name, kind in GATES.items() if not kind.of_dataset and not kind.on_request
    }


def test_the_fixture_gate_is_decided_at_any_size_and_the_bound_can_be_moved(file):
    stats = stats_of(file, item(0, call_sequence=[CALL]), min_eligible=1)
    assert reach(stats, "fixture_hit_rate") == (1, "yes")
    assert reach(stats, "answered_rate") == (1, "yes")
    assert reach(stats, "integration_coverage") == (0, "n/a")  # claims, and no facts
    assert reach(stats, "unsupported_value_rate") == (0, "n/a")
    assert reach(stats, "grounding_lift") == (0, "n/a")  # nobody to compare with


def test_chance_needs_two_samples_with_the_same_tools(file):
    other = {"name": "read_file", "arguments": {"path": "p"}}
    lines = [item(at, call_sequence=[CALL]) for at in range(4)]
    stats = stats_of(file, *lines, item(9, call_sequence=[other]))
    assert reach(stats, "grounding_lift") == (4, "open")


def test_on_the_terminal_and_as_json(capsys, monkeypatch):
    path = demo_paths().dataset
    assert main(["dataset", "stats", str(path)]) == 0
    shown = capsys.readouterr().out
    assert f"{path}: 153 samples" in shown
    for text in ("control 17", "recovery", "locale_delta_de", "web.search 55", "median"):
        assert text in shown
    assert main(["dataset", "stats", str(path), "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["samples"] == sum(plain["kinds"].values()) == 153
    assert sum(n for row in plain["cells"].values() for n in row.values()) == 153
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert main(["dataset", "stats", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**plain, "dataset": "<stdin>"}


def test_bad_input_is_one_sentence(tmp_path, capsys):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"prompt": "a"}\nnot json\n')
    assert main(["dataset", "stats", str(bad)]) == 2
    assert f"{bad}:2: not JSON" in capsys.readouterr().err
    bad.write_text('{"__header__": true, "gates": {"x": 1}}\n{"prompt": "a"}\n')
    assert main(["dataset", "stats", str(bad)]) == 2
    assert "gates.x: no such gate" in capsys.readouterr().err


def test_names_cannot_steer_the_terminal(file, capsys):
    stats_of(file, item(0, scenario="\x1b[2J", language="\x1b[1m"))
    assert main(["dataset", "stats", str(file)]) == 0
    assert "\x1b" not in capsys.readouterr().out
