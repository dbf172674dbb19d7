"""Shards from the command line: run, merged, validated, under the old names too."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def without_timing(path: Path) -> dict:
    report = json.loads(path.read_bytes())
    del report["timing"]
    return report


def run_shards(callmark, world, number: int) -> list[int]:
    part = ("--num-shards", str(number), "--quiet")
    return [
        callmark(*world.arguments(*part, "--shard-index", str(index))).returncode
        for index in range(number)
    ]


@pytest.mark.slow
def test_a85_shards_name_their_own_files_and_merge_to_the_whole(callmark, world, tmp_path):
    whole = callmark(*world.arguments("--out", tmp_path / "whole" / "results.jsonl", "--quiet"))
    assert run_shards(callmark, world, 3) == [0, 0, 0]
    names = {path.name for path in tmp_path.glob("*.shard_*")}
    assert names == {
        name
        for index in range(3)
        for name in (
            f"results.shard_{index}.jsonl",
            f"results.shard_{index}.jsonl.summary",
            f"report.shard_{index}.json",
        )
    }
    merged = callmark("merge", ".", "--in", world.dataset, "--quiet")
    assert (merged.returncode, merged.stdout) == (whole.returncode, whole.stdout)
    for name in ("results.jsonl", "report.json"):
        ours, theirs = tmp_path / name, tmp_path / "whole" / name
        if name == "results.jsonl":
            assert ours.read_bytes() == theirs.read_bytes()
        else:
            assert without_timing(ours) == without_timing(theirs)


@pytest.mark.slow
def test_shards_in_one_folder_keep_their_own_reports(callmark, world, tmp_path):
    for index, name in enumerate(("a.jsonl", "b.jsonl")):
        part = ("--num-shards", "2", "--shard-index", str(index), "--out", name, "--quiet")
        assert callmark(*world.arguments(*part)).returncode == 0
    assert (tmp_path / "a.report.json").is_file()
    assert callmark("merge", "b.jsonl", "a.jsonl", "--quiet").returncode == 0


def test_a45_which_shard_must_be_said(callmark, world):
    """A third of a dataset must not pass for the whole because a flag was forgotten."""
    finished = callmark(*world.arguments("--num-shards", "3"))
    assert finished.returncode == 2
    assert "which of the 3 shards? Add --shard-index" in finished.stderr


@pytest.mark.slow
def test_one_shard_of_a_run_whose_settings_file_names_an_engine(callmark, world, tmp_path):
    """Flags win: whoever asks for one shard gets one shard."""
    text = "engine: ray\nnum_cpus: 2\nnum_shards: 2\n"
    (tmp_path / "callmark.yaml").write_text(text, "utf-8")
    assert callmark(*world.arguments("--shard-index", "1", "--quiet")).returncode == 0
    assert (tmp_path / "results.shard_1.jsonl").is_file()
    both = world.arguments("--shard-index", "1", "--engine", "local")
    assert "an engine runs every shard" in callmark(*both).stderr
    auto = callmark(*world.arguments("--num-shards", "auto", "--engine", "local"))
    assert "with --engine, leave it out" in auto.stderr


@pytest.mark.slow
def test_a_shard_has_a_page_only_if_it_is_asked_for(callmark, world, tmp_path):
    part = world.arguments("--num-shards", "2", "--shard-index", "0", "--quiet")
    callmark(*part)
    assert not list(tmp_path.glob("*.html"))
    callmark(*part, "--html")
    assert (tmp_path / "report.shard_0.html").is_file()


@pytest.mark.slow
def test_a_shard_is_not_compared_with_the_baseline_of_a_whole_run(callmark, world, tmp_path):
    callmark(*world.arguments("--out", "whole.jsonl", "--quiet"))
    part = ("--num-shards", "2", "--shard-index", "0", "--quiet", "--baseline", "whole.jsonl")
    finished = callmark(*world.arguments(*part))
    assert finished.returncode == 0
    assert "not compared with whole.jsonl: a shard is compared after merge" in finished.stderr
    assert not (tmp_path / "comparison.json").exists()


def test_a_shard_that_is_not_there_is_called_so(callmark):
    assert "gone.jsonl: no such file" in callmark("merge", "gone.jsonl").stderr


@pytest.mark.slow
def test_shards_with_one_settings_file_do_not_write_over_each_other(callmark, world, tmp_path):
    places = "out: runs/mine.jsonl\nreport: runs/report.json\n"
    (tmp_path / "callmark.yaml").write_text(places, "utf-8")
    assert run_shards(callmark, world, 2) == [0, 0]
    made = {path.name for path in (tmp_path / "runs").iterdir()}
    assert {name for name in made if not name.startswith("tools-")} == {
        f"mine.shard_{index}.{kind}"
        for index in range(2)
        for kind in ("jsonl", "jsonl.summary", "report.json")
    }
    shards = [f"runs/mine.shard_{index}.jsonl" for index in range(2)]
    assert callmark("merge", *shards, "--quiet").returncode == 0


def test_the_merged_gates_decide_the_exit_code(callmark, world):
    """Of a shard only fixtures, privacy and completeness do."""
    lines = [json.loads(line) for line in world.answers.read_text("utf-8").splitlines()]
    for at, line in enumerate(lines):
        line["model_output"] = f"It has {at} open issues."
    world.write(world.answers, lines)
    assert run_shards(callmark, world, 2) == [0, 0]
    merged = callmark("merge", ".", "--quiet")
    assert merged.returncode == 1
    assert merged.stdout.startswith("FAIL")


@pytest.mark.parametrize("fault", ["fixture", "privacy"])
def test_a_shard_that_no_merge_can_mend_fails_at_once(callmark, world, fault):
    lines = [json.loads(line) for line in world.answers.read_text("utf-8").splitlines()]
    if fault == "fixture":
        path = world.fixtures / "web.search.jsonl"
        fixtures = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        query = lines[0]["tool_trace"][0]["arguments"]["q"]
        world.write(path, [one for one in fixtures if one["key"]["q"] != query])
    else:
        lines[0]["model_output"] += " Write to jane.roe@mail.test."
    world.write(world.answers, lines)
    assert sorted(run_shards(callmark, world, 2)) == [0, 1]


def test_refusals_have_their_exit_codes(callmark, world, tmp_path):
    run_shards(callmark, world, 2)
    missing = callmark("merge", "results.shard_0.jsonl")
    assert missing.returncode == 2
    assert "these are missing: 1" in missing.stderr
    report = tmp_path / "report.shard_1.json"
    changed = json.loads(report.read_bytes())
    changed["header"]["model_fingerprint"] = "other"
    report.write_text(json.dumps(changed), "utf-8")
    assert callmark("merge", ".").returncode == 3
    changed["complete"] = False
    report.write_text(json.dumps(changed), "utf-8")
    assert callmark("merge", ".").returncode == 4
    assert not (tmp_path / "results.jsonl").exists()


@pytest.mark.slow
def test_a111_the_validator_takes_every_flag_of_the_old_one(python, world, tmp_path):
    """From a checkout, by its old name, not installed."""
    finished = python(
        "-m", "scripts.validate_sharding_determinism",
        "--dataset", world.dataset, "--model", world.answers, "--runner", "replay",
        "--num-shards", "2", "--fixtures", world.fixtures, "--atol", "1e-6", "--rtol", "1e-6",
        "--seed", "42", "--output", tmp_path / "validation.json", "--temp-dir", tmp_path / "runs",
        cwd=ROOT, PYTHONPATH="",
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("EQUAL  2 shards of ")
    assert json.loads((tmp_path / "validation.json").read_bytes())["ok"] is True
    assert (tmp_path / "runs" / "results.baseline.jsonl").is_file()


@pytest.mark.slow
def test_a109_the_old_name_writes_to_the_old_place(python, world, tmp_path):
    finished = python(
        "-m", "scripts.validate_sharding_determinism", "--dataset", "nowhere.jsonl",
        PYTHONPATH=str(ROOT),
    )  # fmt: skip
    assert finished.returncode == 2
    assert finished.stdout.startswith("NOT COMPARED\n")
    report = json.loads((tmp_path / "eval/reports/sharding_validation.json").read_bytes())
    assert report["ok"] is False
    assert "nowhere.jsonl" in report["reasons"][0]


def test_a110_make_validate_sharding_is_one_command(tmp_path):
    words = ["make", "--no-print-directory", "-n", "validate-sharding", f"READY={tmp_path}"]
    words += ["DATASET=d.jsonl", "MODEL=/m", "RUNNER=hf_local", "SHARDS=4"]
    shown = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    [command] = shown.stdout.strip().splitlines()
    assert command.split()[1:] == [
        "-m", "scripts.validate_sharding_determinism", "--dataset", '"d.jsonl"',
        "--model", '"/m"', "--runner", '"hf_local"', "--num-shards", '"4"',
        "--fixtures", '"eval/tool_broker/fixtures"',
    ]  # fmt: skip
