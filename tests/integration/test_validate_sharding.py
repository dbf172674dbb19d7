"""Shards that change something are found out, each change with its own reason."""

import json
from pathlib import Path

import msgspec
import pytest
from tests.integration.sharded import change_report, rewrite, run_shards
from tests.pace import few

import callmark
from callmark.errors import UsageError
from callmark.records.results import Fingerprints
from callmark.records.samples import shard_of
from callmark.resources import demo_paths, shipped_model
from callmark.run.conclude import run
from callmark.run.offers import open_registry
from callmark.shards.validate import (
    BASELINE,
    ENVIRONMENT,
    ShardingConfig,
    Validation,
    child_environment,
    run_flags,
    validate_files,
    validate_sharding,
)

FIELDS = (
    "ok", "num_shards", "dataset_sha256", "runner_fingerprint", "model_fingerprint",
    "per_example_mismatches", "metric_diffs", "shard_sizes", "duplicates", "missing",
    "fingerprints_match", "coverage_ok", "metrics_match", "gates_ok",
)  # fmt: skip
CHECKS = ("fingerprints_match", "coverage_ok", "metrics_match", "gates_ok")
SHARDS = 3


class Runs:
    """A baseline and its shards as they were written, to be spoilt by hand."""

    def __init__(self, project) -> None:
        self.folder = project.folder / "runs"
        self.folder.mkdir()
        out, report = (str(self.folder / name) for name in BASELINE)
        run(project.config(out=out, report=report))
        self.paths = run_shards(project.config(), self.folder, SHARDS)

    def lines(self, shard: int) -> list[dict]:
        return [json.loads(line) for line in self.paths[shard].read_bytes().splitlines()]

    def write(self, shard: int, lines: list[dict]) -> None:
        rewrite(self.paths[shard], [json.dumps(line).encode() + b"\n" for line in lines])

    def eligible(self, shard: int) -> tuple[list[dict], dict]:
        lines = self.lines(shard)
        return lines, next(line for line in lines if line["tool_trace"])

    def verdict(self) -> Validation:
        return validate_files(self.folder, SHARDS)

    def refused(self, *failed: str) -> Validation:
        """Not ok, and exactly these checks failed."""
        found = self.verdict()
        assert not found.ok
        assert found.reasons
        assert {name for name in CHECKS if not getattr(found, name)} == set(failed)
        return found


@pytest.fixture
def runs(project):
    return Runs(project)


def test_a83_d62_equal_runs_are_equal(runs):
    found = runs.verdict()
    assert found.ok, found.reasons
    assert found.heading == "EQUAL"
    assert found.reasons == ()
    assert sum(found.shard_sizes) == 25
    assert all(getattr(found, name) for name in CHECKS)


def test_a88_a_changed_argument_is_one_mismatch(runs):
    lines, line = runs.eligible(1)
    line["tool_trace"][0]["arguments"]["q"] = "another city"
    runs.write(1, lines)
    found = runs.refused()
    assert found.per_example_mismatches == 1
    assert found.reasons[0].startswith(
        f"sample '{line['sample_id']}', trial 0: tool_trace[0].arguments.q is "
    )


def test_a99_a100_arguments_are_compared_as_the_broker_reads_them(runs):
    lines, line = runs.eligible(1)
    query = line["tool_trace"][0]["arguments"]["q"]
    line["tool_trace"][0]["arguments"] = {"top_k": 3, "q": f"  {query.upper()} ", "lang": None}
    runs.write(1, lines)
    assert runs.verdict().ok


SPECS = [
    {
        "name": "web.search",
        "parameters": {
            "type": "object",
            "properties": {
                "q": {"type": "string"},
                "top_k": {"type": "integer", "default": 3},
                "lang": {"type": "string", "default": "en"},
            },
            "required": ["q"],
        },
        "x-callmark": {"ignore": ["trace_id"]},
    }
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("added", "equal"),
    [
        ({"lang": "en"}, True),
        pytest.param({"trace_id": "7"}, True, marks=pytest.mark.slow),
        pytest.param({"lang": "de"}, False, marks=pytest.mark.slow),
    ],
)
def test_f32_a_schema_default_written_out_is_no_mismatch(project, added, equal):
    """With the run's own registry, named by its settings file."""
    registry = project.folder / "tools.json"
    registry.write_text(json.dumps(SPECS), "utf-8")
    settings = project.folder / "settings.yaml"
    settings.write_text(f"registry: {registry}\n", "utf-8")
    folder = project.folder / "runs"
    config = config_of(project, config=str(settings), num_shards=SHARDS, temp_dir=str(folder))
    assert validate_sharding(config).validation.heading == "EQUAL"
    path = folder / "results.shard_1.jsonl"
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    next(line for line in lines if line["tool_trace"])["tool_trace"][0]["arguments"] |= added
    rewrite(path, [json.dumps(line).encode() + b"\n" for line in lines])
    found = validate_files(folder, SHARDS, registry=open_registry(str(registry)))
    assert found.ok is equal, found.reasons
    assert found.per_example_mismatches == (not equal)


def test_d67_the_order_of_calls_counts(runs):
    baseline = runs.folder / BASELINE[0]
    lines, line = runs.eligible(1)
    second = {**line["tool_trace"][0], "arguments": {"q": "a second one"}}
    line["tool_trace"].append(second)
    runs.write(1, lines)
    everything = [json.loads(one) for one in baseline.read_bytes().splitlines()]
    here = next(one for one in everything if one["sample_id"] == line["sample_id"])
    here["tool_trace"].insert(0, second)
    baseline.write_bytes(b"".join(json.dumps(one).encode() + b"\n" for one in everything))
    assert runs.verdict().per_example_mismatches == 1


def test_d67_the_text_of_the_answer_counts(runs):
    lines, line = runs.eligible(0)
    line["model_output"] += "!"
    runs.write(0, lines)
    assert "model_output is " in runs.refused().reasons[0]


@pytest.mark.parametrize(("off", "equal"), [(5e-7, True), (2e-6, False)])
def test_a99_a103_scores_may_differ_by_the_tolerance(runs, off, equal):
    lines, line = runs.eligible(1)
    assert line["scores"]["lax"]["f1"] == 1.0
    line["scores"]["lax"]["f1"] -= off
    runs.write(1, lines)
    found = runs.verdict()
    assert found.ok is equal
    if not equal:
        assert "scores.lax.f1 is 1.0 without shards, 0.999998" in found.reasons[0]


def test_a99_counts_are_exact(runs):
    lines, line = runs.eligible(1)
    line["scores"]["facts_required"] += 1
    runs.write(1, lines)
    found = runs.refused("metrics_match")
    assert "scores.facts_required is 1 without shards, 2 with them" in found.reasons[0]


def test_a99_spans_are_exact(runs):
    lines, line = runs.eligible(1)
    line["scores"]["spans"][0]["end"] -= 1
    runs.write(1, lines)
    assert "scores.spans[0].end is " in runs.refused().reasons[0]


def test_a101_a102_a_dropped_sample_is_named(runs):
    lines = runs.lines(1)
    gone = lines.pop(0)["sample_id"]
    runs.write(1, lines)
    found = runs.refused("coverage_ok", "metrics_match")
    assert found.missing == (gone,)
    assert f"samples missing from all shards: {gone}" in found.reasons
    assert found.shard_sizes[1] == len(lines)


def test_a101_d66_a_doubled_sample_is_named(runs):
    lines = runs.lines(1)
    runs.write(1, [lines[0], *lines])
    found = runs.refused("coverage_ok", "metrics_match")
    assert found.duplicates == (lines[0]["sample_id"],)


def test_a101_a_sample_in_two_shards_is_named(runs):
    lines = runs.lines(0)
    runs.write(0, [*lines, runs.lines(1)[0]])
    found = runs.refused("coverage_ok", "metrics_match")
    assert found.duplicates == (runs.lines(1)[0]["sample_id"],)
    assert "a shard that its id does not belong to" in " ".join(found.reasons)


def test_a101_an_added_sample_is_named(runs):
    lines = runs.lines(1)
    runs.write(1, [*lines, {**lines[0], "index": 99, "sample_id": "new"}])
    found = runs.refused("coverage_ok", "metrics_match")
    assert "samples in the shards, but not in the baseline: new" in found.reasons


def test_a78_a112_a_sample_in_the_wrong_shard_is_named(runs):
    moved, *rest = runs.lines(1)
    runs.write(1, rest)
    runs.write(0, [*runs.lines(0), moved])
    found = runs.refused("coverage_ok")
    assert found.reasons == (
        f"samples in a shard that its id does not belong to: {moved['sample_id']}",
    )


@pytest.mark.parametrize("name", few(Fingerprints.__struct_fields__, 2))
def test_a90_a98_a_fingerprint_that_differs_is_named(runs, name):
    value = {"id": "other"} if name == "tokenizer_fingerprint" else "other"
    change_report(runs.paths[2], "header", name, value=value)
    found = runs.refused("fingerprints_match")
    assert found.reasons[0].startswith(f"fingerprint {name}: the baseline has ")


@pytest.mark.parametrize("name", few(Fingerprints.__struct_fields__, 2))
def test_a98_a_fingerprint_that_differs_in_one_line_is_named(runs, name):
    lines = runs.lines(2)
    lines[0]["fingerprints"][name] = {"id": "x"} if name == "tokenizer_fingerprint" else "x"
    runs.write(2, lines)
    assert runs.refused("fingerprints_match").reasons == (
        f"fingerprint {name}: differs in lines of shard 2",
    )


@pytest.mark.parametrize(("off", "equal"), [(9e-7, True), (2e-6, False)])
def test_a103_metrics_have_a_tolerance(runs, off, equal):
    report = json.loads((runs.folder / BASELINE[1]).read_bytes())
    summary = report["summary"]
    summary["avg_integration_f1_macro_lax"] -= off
    (runs.folder / BASELINE[1]).write_bytes(json.dumps(report).encode())
    assert runs.verdict().ok is equal
    if not equal:
        found = runs.refused("metrics_match")
        assert set(found.metric_diffs) == {"avg_integration_f1_macro_lax"}


@pytest.mark.parametrize(
    ("part", "name"),
    [("summary", "num_eligible"), ("integration_span_count_histogram", "1")],
)
def test_a104_counts_and_histogram_are_exact(runs, part, name):
    report = json.loads((runs.folder / BASELINE[1]).read_bytes())
    report[part][name] += 1
    (runs.folder / BASELINE[1]).write_bytes(json.dumps(report).encode())
    assert [key.endswith(name) for key in runs.refused("metrics_match").metric_diffs] == [True]


def test_a105_the_tools_are_the_same(runs):
    report = json.loads((runs.folder / BASELINE[1]).read_bytes())
    report["per_tool_deltas"]["other"] = report["per_tool_deltas"]["web.search"]
    (runs.folder / BASELINE[1]).write_bytes(json.dumps(report).encode())
    assert list(runs.refused("metrics_match").metric_diffs) == ["per_tool_deltas.other"]


def test_a104_d68_contaminated_controls_fail_even_if_both_sides_have_them(project):
    answers = [json.loads(line) for line in project.answers.read_text("utf-8").splitlines()]
    answers[4]["tool_trace"] = [{"name": "web.search", "arguments": {"q": "city 3"}}]
    project.write(answers=answers)
    found = Runs(project).refused("metrics_match")
    assert list(found.metric_diffs) == ["controls_with_integration (must be 0)"]
    assert found.per_example_mismatches == 0
    assert found.heading == "EQUAL, BUT A GATE FAILED"
    assert found.reasons == (
        "metric controls_with_integration (must be 0) is 1 with and without shards",
    )


def test_a106_a115_a_fixture_miss_in_one_shard_fails(project):
    fixtures = (project.fixtures / "all.jsonl").read_text("utf-8").splitlines()
    kept = [one for one in map(json.loads, fixtures) if one["key"] != {"q": "city 3"}]
    project.write(fixtures=kept)
    shard = shard_of("s003", SHARDS)
    found = Runs(project).refused("gates_ok")
    assert [one for one in found.reasons if one.startswith(f"shard {shard}: gate fixture_hit_rate")]


def test_a106_a116_a_privacy_breach_in_one_shard_fails(project):
    answers = [json.loads(line) for line in project.answers.read_text("utf-8").splitlines()]
    answers[3]["model_output"] += " Write to jane.roe@mail.test."
    project.write(answers=answers)
    shard = shard_of("s003", SHARDS)
    found = Runs(project).refused("gates_ok")
    assert found.reasons == (f"shard {shard}: gate privacy_ok_rate failed: {_rate(found, shard)}",)


def test_f31_a_gate_that_fails_alike_does_not_make_shards_unequal(project):
    answers = [json.loads(line) for line in project.answers.read_text("utf-8").splitlines()]
    answers[3]["model_output"] += " Write to jane.roe@mail.test."
    project.write(answers=answers)
    runs = Runs(project)
    found = runs.verdict()
    assert (found.ok, found.heading) == (False, "EQUAL, BUT A GATE FAILED")
    lines, line = runs.eligible(1)
    line["model_output"] += "!"
    runs.write(1, lines)
    assert runs.verdict().heading == "NOT EQUAL"


def test_f31_contaminated_controls_on_one_side_only_are_a_difference(runs):
    report = json.loads((runs.folder / BASELINE[1]).read_bytes())
    report["summary"]["controls_with_integration"] = 1
    (runs.folder / BASELINE[1]).write_bytes(json.dumps(report).encode())
    assert runs.verdict().heading == "NOT EQUAL"


@pytest.mark.slow
def test_f31_what_did_not_run_is_not_compared(project):
    outcome = validate_sharding(config_of(project, fixtures=str(project.folder / "nowhere")))
    assert (outcome.exit_code, outcome.validation.heading) == (2, "NOT COMPARED")


def _rate(found: Validation, shard: int) -> str:
    size = found.shard_sizes[shard]
    return f"{(size - 1) / size} is not = 1.0"


def test_a106_other_gates_of_a_shard_have_no_say(project):
    """A model that is wrong is wrong with and without shards."""
    answers = [json.loads(line) for line in project.answers.read_text("utf-8").splitlines()]
    for answer in answers:
        answer["model_output"] = f"I do not know about {answer['sample_id']}."
    project.write(answers=answers)
    assert Runs(project).verdict().ok


def test_d64_an_empty_shard_is_no_mismatch(project):
    project.write(items=[json.loads(project.dataset.read_text("utf-8").splitlines()[1])])
    found = Runs(project).verdict()
    assert found.ok, found.reasons
    assert sorted(found.shard_sizes) == [0, 0, 1]


def test_a108_time_is_not_compared(runs):
    change_report(runs.paths[0], "timing", "wall_time_sec", value=1e6)
    assert runs.verdict().ok


def config_of(project, **more) -> dict:
    output = project.folder / "deep" / "sharding_validation.json"
    files = {"dataset": project.dataset, "fixtures": project.fixtures, "model": project.answers}
    named = {name: str(path) for name, path in {**files, "output": output}.items()}
    return {**named, "runner": "replay", "num_shards": 2, **more}


def written(config: dict) -> dict:
    return json.loads(Path(config["output"]).read_bytes())


@pytest.mark.slow
def test_a84_a85_a109_a111_the_validator_runs_and_keeps_what_was_asked_for(project):
    config = config_of(project, temp_dir=str(project.folder / "kept"), seed=7)
    validation = callmark.validate_sharding(config)
    report = validation.to_dict()
    assert report == written(config)
    assert tuple(report) == (*FIELDS, "reasons")
    assert validation.ok is report["ok"] is True
    made = {path.name for path in (project.folder / "kept").iterdir()}
    kept = {name for name in made if not name.startswith("tools-")}
    assert kept == {
        *BASELINE,
        *(f"results.shard_{index}.jsonl" for index in range(2)),
        *(f"results.shard_{index}.jsonl.summary" for index in range(2)),
        *(f"report.shard_{index}.json" for index in range(2)),
    }
    baseline = json.loads((project.folder / "kept" / BASELINE[1]).read_bytes())
    assert baseline["header"]["seed"] == 7
    assert baseline["header"]["decoding"]["temperature"] == 0.0
    assert baseline["header"]["decoding"]["top_p"] == 1.0
    assert baseline["shard"]["settings"]["determinism_mode"] is True


def test_d63_d65_a_run_that_fails_leaves_a_report_with_all_fields(project):
    config = config_of(project, model=str(project.folder / "nowhere.jsonl"))
    outcome = validate_sharding(config)
    assert outcome.exit_code == 2
    report = written(config)
    assert tuple(report) == (*FIELDS, "reasons")
    assert report["ok"] is False
    assert not any(report[name] for name in CHECKS)
    assert report["reasons"][0].startswith("the baseline failed with exit code 2: ")
    assert "nowhere.jsonl" in report["reasons"][0]


@pytest.mark.slow
def test_d63_failing_gates_do_not_end_the_validation(project):
    project.write(answers=[{"sample_id": f"s{n:03}", "model_output": f"{n}?"} for n in range(25)])
    outcome = validate_sharding(config_of(project))
    assert outcome.validation.ok, outcome.validation.reasons
    assert outcome.exit_code == 0


@pytest.mark.slow
def test_a95_lost_trials_are_said(project):
    answers = project.answers.read_text("utf-8").splitlines(keepends=True)
    project.answers.write_text("".join(answers[:-1]), "utf-8")
    config = config_of(project)
    assert validate_sharding(config).exit_code == 4
    assert "exit code 4" in written(config)["reasons"][0]


@pytest.mark.slow
def test_a_run_that_lost_trials_is_named_with_its_verdict(project):
    answers = project.answers.read_text("utf-8").splitlines(keepends=True)
    project.answers.write_text("".join(answers[:-1]), "utf-8")
    config = config_of(project)
    validate_sharding(config)
    assert "INCOMPLETE trials are missing or ended in an error" in written(config)["reasons"][0]


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["num_shards: 4", "engine: local\nnum_shards: 3"])
def test_the_shards_and_engine_of_a_settings_file_are_not_those_of_its_runs(
    project, tmp_path, setting
):
    """Else the baseline would itself be a shard, and what is equal be called different."""
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"{setting}\n", "utf-8")
    outcome = validate_sharding(config_of(project, config=str(settings)))
    assert outcome.validation.ok, outcome.validation.reasons


def test_a92_the_environment_leaves_nothing_to_chance():
    ours = {"HOME": "/home/me", "PYTHONHASHSEED": "5", "PYTHONPATH": "mine"}
    found = child_environment({**ours, "GITHUB_STEP_SUMMARY": "summary.md"})
    assert "GITHUB_STEP_SUMMARY" not in found
    assert {name: found[name] for name in ENVIRONMENT} == {
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    assert found["HOME"] == "/home/me"
    assert found["PYTHONPATH"].endswith(":mine")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_shards": 0}, "num_shards: "),
        ({"atol": -1.0}, "atol: "),
        ({"shards": 3}, "shards"),
        ({"dataset": "-"}, "standard input"),
    ],
)
def test_settings_that_make_no_sense_are_refused(project, wrong, message):
    with pytest.raises(UsageError, match=message):
        validate_sharding({**config_of(project), **wrong})


def test_the_tolerance_is_what_was_asked_for(runs):
    lines, line = runs.eligible(1)
    line["scores"]["lax"]["f1"] -= 1e-3
    runs.write(1, lines)
    assert not validate_files(runs.folder, SHARDS).ok
    assert validate_files(runs.folder, SHARDS, atol=1e-2).ok
    assert validate_files(runs.folder, SHARDS, atol=1e-4, rtol=1e-2).ok


def test_every_field_has_a_flag_of_the_command():
    from callmark.cli.validate_sharding import GROUPS

    flags = {
        flag.removeprefix("--").replace("-", "_") for group in GROUPS.values() for flag in group
    }
    assert flags == set(ShardingConfig.__struct_fields__)


@pytest.mark.slow
def test_f31_the_shipped_model_passes(tmp_path):
    pytest.importorskip("torch")
    paths = shipped_model()
    outcome = validate_sharding(
        {
            "dataset": str(paths.dataset),
            "fixtures": str(paths.fixtures),
            "model": str(paths.folder),
            "runner": "hf_local",
            "num_shards": 4,
            "output": str(tmp_path / "validation.json"),
        }
    )
    assert outcome.validation.ok, outcome.validation.reasons


@pytest.mark.slow
def test_recorded_answers_pass(tmp_path):
    paths = demo_paths()
    files = {name: str(getattr(paths, name)) for name in ("dataset", "fixtures")}
    output = str(tmp_path / "validation.json")
    outcome = validate_sharding({**files, "model": str(paths.answers), "output": output})
    assert outcome.validation.ok, outcome.validation.reasons
    assert msgspec.json.decode(Path(output).read_bytes())["num_shards"] == 4


def test_its_runs_take_nothing_from_a_cache_that_a_settings_file_names():
    config = ShardingConfig(dataset="d.jsonl", model="m", runner="replay", num_shards=2)
    assert {"--no-cache", "--determinism-mode"} <= set(run_flags(config))
