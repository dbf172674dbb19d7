"""A training seen checkpoint by checkpoint: asked once, decided about in a fixed sequence."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.local_models import make_adapter
from tests.probing import (
    BROKEN,
    GOOD,
    KINDS,
    OTHER,
    TALK,
    cases,
    probed_model,
    steering_adapter,
    write_cases,
)

from callmark.cli import main
from callmark.probe.records import Checkpoint, FidelityResult
from callmark.probe.run import judge_series
from callmark.probe.stats import validity_change
from callmark.runners.hf.local import LocalRunner

A, B = KINDS


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model, and eight checkpoints of a training that spoils half of its calls from the third
    on. The first had a bad moment."""
    folder = tmp_path_factory.mktemp("series")
    base = probed_model(folder / "base", GOOD, GOOD)
    out = folder / "outputs"
    for at in range(1, 9):
        changes = {A: OTHER, B: BROKEN} if at == 1 or at >= 3 else {A: OTHER}
        steering_adapter(out / f"checkpoint-{at * 50}", base, changes)
    (out / "runs").mkdir()
    return base, out, write_cases(folder / "cases.jsonl", cases(14, 10))


@pytest.fixture
def generated(monkeypatch):
    """How many answers were generated at each call."""
    counted = []
    original = LocalRunner.texts

    def counting(self, batch, limits=None):
        counted.append(len(batch))
        return original(self, batch, limits)

    monkeypatch.setattr(LocalRunner, "texts", counting)
    return counted


def probed(*words) -> int:
    return main(["probe", *map(str, words)])


def test_f20_a_series_asks_the_base_once_and_names_the_first_that_loses(
    trained, tmp_path, generated, capsys
):
    base, out, asked = trained
    page = tmp_path / "p.html"
    words = ["--base", base, "--checkpoints", out, "--cases", asked, "--html", page]
    assert probed(*words, "--json", tmp_path / "p.json") == 1
    assert generated[:9] == [24] * 9
    # What both views say to results: the base and the last one, within a tenth of all the others.
    assert generated[9:] == [8, 8]
    assert sum(generated) <= 1.1 * 9 * 24
    shown = capsys.readouterr().out
    assert shown.startswith("▅█▅▅▅▅▅▅  valid calls from checkpoint-50 to checkpoint-400\n")
    assert "the first checkpoint that loses is checkpoint-150, and the 5 after it" in shown
    assert "dips that recovered, an observation and no finding: checkpoint-50" in shown
    report = json.loads((tmp_path / "p.json").read_text("utf-8"))
    series = report["series"]
    assert series["first_losing"] == "checkpoint-150"
    assert [one["standing"] for one in series["points"]] == ["dips", "holds"] + ["loses"] * 6
    assert [one["checkpoint"]["step"] for one in series["points"]] == list(range(50, 401, 50))
    assert report["results"][0]["result"] == series["points"][-1]["result"]
    assert report["nulls"] is None
    text = page.read_text("utf-8")
    assert "Valid calls, checkpoint by checkpoint" in text
    assert main(["show", str(tmp_path / "p.json"), "20", "--checkpoint", "checkpoint-100"]) == 0
    assert "valid in both views" in capsys.readouterr().out
    assert main(["show", str(tmp_path / "p.json"), "20"]) == 0
    assert "lost: valid before the fine-tune" in capsys.readouterr().out
    assert main(["show", str(tmp_path / "p.json"), "20", "--checkpoint", "x"]) == 2
    assert "there is: checkpoint-50, checkpoint-100" in capsys.readouterr().err


@pytest.mark.slow
def test_a_series_says_the_same_as_each_probe_alone(trained, tmp_path):
    base, out, asked = trained
    words = ["--base", base, "--cases", asked, "--nulls", 0, "--quiet", "--json"]
    other = Path(shutil.copytree(out / "checkpoint-50", tmp_path / "of-another-make"))
    config = json.loads((other / "adapter_config.json").read_text("utf-8"))
    (other / "adapter_config.json").write_text(json.dumps({**config, "lora_alpha": 3}), "utf-8")
    folders = [out / "checkpoint-100", other, out / "checkpoint-50", out / "checkpoint-400"]
    adapters = [word for one in folders for word in ("--adapter", one)]
    assert probed(*words, tmp_path / "all.json", *adapters) == 1
    points = json.loads((tmp_path / "all.json").read_text("utf-8"))["series"]["points"]
    for point, folder in zip(points, folders, strict=True):
        probed(*words, tmp_path / "one.json", "--adapter", folder)
        alone = json.loads((tmp_path / "one.json").read_text("utf-8"))["results"][0]["result"]
        # What is said to results is asked of the last one, and of fewer cases.
        kept = [one for one in alone["evidence"]["checks"] if one["name"] != "ignores_results"]
        alone["evidence"]["checks"] = kept
        checks = point["result"]["evidence"]["checks"]
        point["result"]["evidence"]["checks"] = [
            one for one in checks if one["name"] != "ignores_results"
        ]
        assert point["result"] == alone


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        (lambda weights: dict([*weights.items()][1:]), "it lacks weights for"),
        (lambda weights: {**weights, "base_model.model.x.lora_A.weight": next(iter(weights.values()))}, "the model has no place for"),
    ],
)  # fmt: skip
def test_a_damaged_checkpoint_in_the_middle_is_named(trained, tmp_path, capsys, changes, what):
    from safetensors.torch import load_file, save_file

    base, out, asked = trained
    broken = Path(shutil.copytree(out / "checkpoint-100", tmp_path / "broken"))
    weights = load_file(broken / "adapter_model.safetensors")
    save_file(
        {key: one.clone() for key, one in changes(weights).items()},
        broken / "adapter_model.safetensors",
    )
    folders = [out / "checkpoint-50", broken, out / "checkpoint-100"]
    adapters = [word for one in folders for word in ("--adapter", one)]
    assert probed("--base", base, *adapters, "--cases", asked, "--quiet") == 2
    told = capsys.readouterr().err
    assert str(broken) in told
    assert what in told


def test_whole_models_are_a_series_too_and_the_saved_end_comes_last(tmp_path, generated, capsys):
    base = probed_model(tmp_path / "base", GOOD, GOOD)
    out = tmp_path / "out"
    probed_model(out, TALK, GOOD)
    probed_model(out / "checkpoint-9", GOOD, OTHER)
    probed_model(out / "checkpoint-10", OTHER, GOOD)
    asked = write_cases(tmp_path / "cases.jsonl", cases(12, 12))
    assert probed("--base", base, "--checkpoints", out, "--cases", asked, "--quiet") == 1
    assert generated == [24] * 4 + [4] * 2
    shown = capsys.readouterr().out
    assert "the first checkpoint that loses is final, which is the last" in shown


def test_the_end_that_is_the_last_checkpoint_again_is_not_asked_twice(trained, tmp_path, generated):
    base, out, asked = trained
    again = Path(shutil.copytree(out / "checkpoint-100", tmp_path / "again"))
    shutil.copytree(out / "checkpoint-100", again / "checkpoint-2")
    shutil.copytree(out / "checkpoint-50", again / "checkpoint-1")
    assert probed("--base", base, "--checkpoints", again, "--cases", asked, "--quiet") == 0
    assert generated == [24] * 3 + [3] * 2


def test_a_checkpoint_that_is_not_applied_leaves_the_series_undecided(trained, tmp_path, capsys):
    base, out, asked = trained
    make_adapter(tmp_path / "zero-1", base, scale=0.0)
    adapters = ["--adapter", tmp_path / "zero-1", "--adapter", out / "checkpoint-100"]
    assert probed("--base", base, *adapters, "--cases", asked) == 5
    assert "the adapter is not applied" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (["best"], "has no number at the end of its name"),
        (["checkpoint-1"], "holds 1 checkpoint: a series takes two or more"),
        ([], "holds no checkpoints"),
    ],
)
def test_a_folder_that_is_no_series_is_refused(trained, tmp_path, capsys, names, what):
    base, out, asked = trained
    for name in names:
        shutil.copytree(out / "checkpoint-50", tmp_path / "few" / name)
    (tmp_path / "few").mkdir(exist_ok=True)
    words = ["--base", base, "--checkpoints", tmp_path / "few", "--cases", asked]
    assert probed(*words) == 2
    assert what in capsys.readouterr().err


@pytest.mark.parametrize(
    "other", ["--adapter", "--tuned", "--base-url", "--tuned-url", "--dataset"]
)
def test_what_a_series_does_not_take_is_an_error(trained, capsys, other):
    base, out, asked = trained
    words = ["--base", base, "--checkpoints", out, "--cases", asked, other, "x"]
    assert probed(*words) == 2
    assert f"leave out {other}" in capsys.readouterr().err


def standings_of(vectors: np.ndarray) -> list[str]:
    """`vectors`: base, then each checkpoint, yes or no for every case."""
    base, *tuned = vectors.tolist()
    results = [
        FidelityResult(
            name="t",
            verdict="pass",
            message="",
            decision=validity_change(base, one, -0.05).decision,
        )
        for one in tuned
    ]
    named = [Checkpoint(label=str(at)) for at in range(len(tuned))]
    return [one.standing for one in judge_series(named, results).points]


@pytest.mark.parametrize("rate", [0.5, 0.7, 0.9, 0.98])
def test_a_series_without_a_change_is_called_a_loss_in_five_of_a_hundred_at_most(rate):
    random = np.random.default_rng(0)
    wrong = sum("loses" in standings_of(random.random((9, 64)) < rate) for _ in range(400))
    assert wrong <= 0.05 * 400 + 3 * (400 * 0.05 * 0.95) ** 0.5


def test_a_drop_of_20_points_is_found_at_the_end_of_a_series():
    """64 cases that the base answers rightly; from the fourth on each is lost in one of five."""
    random, found = np.random.default_rng(0), 0
    for _ in range(400):
        kept = np.ones((9, 64), bool)
        kept[4:] = random.random((5, 64)) >= 0.2
        found += standings_of(kept)[-1] == "loses"
    assert found >= 0.95 * 400
