"""The probe on models in memory: views that are switched, guards, nulls, reports, exit codes."""

import json
import statistics
from pathlib import Path

import pytest
from tests.local_models import make_adapter, random_model
from tests.probing import (
    BROKEN,
    GOOD,
    KINDS,
    OTHER,
    SPEC,
    TALK,
    WITHOUT_TOOLS,
    WRONG,
    cases,
    probed_model,
    steering_adapter,
    write_cases,
)

from callmark.cli import main
from callmark.config import load_config
from callmark.probe.run import open_views
from callmark.probe.spec import Models, ModelSpec, NullAdapterSpec
from callmark.probe.views import NullRun, Question, tools_of
from callmark.records.jsontext import digest
from callmark.runners.hf import local as hf_local

A, B = KINDS


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def able(models):
    return probed_model(models / "able", GOOD, GOOD)


@pytest.fixture(scope="module")
def talking(models):
    return probed_model(models / "talking", TALK, TALK)


@pytest.fixture(scope="module")
def half(models):
    return probed_model(models / "half", GOOD, TALK)


@pytest.fixture(scope="module")
def babbling(models):
    return random_model(models / "babbling")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.fixture
def loads(monkeypatch):
    """How often weights were read from the disk."""
    counted = []
    original = hf_local.load_model

    def counting(*arguments, **options):
        counted.append(arguments)
        return original(*arguments, **options)

    monkeypatch.setattr(hf_local, "load_model", counting)
    return counted


class Probing:
    """Calls the command in a folder of its own."""

    def __init__(self, folder: Path, capfd) -> None:
        self.folder, self.json, self._capfd = folder, folder / "probe.json", capfd

    def __call__(self, *words, code=0):
        self._capfd.readouterr()
        got = main(["probe", *map(str, words), "--json", str(self.json)])
        shown = self._capfd.readouterr()
        assert got == code, shown
        self.out, self.err = shown.out, shown.err
        if code in (2, 3, 4):
            return None
        return json.loads(self.json.read_text("utf-8"))

    def adapted(self, base, adapter, given, *more, code=0):
        file = write_cases(self.folder / "cases.jsonl", given)
        words = ["--base", base, "--adapter", adapter, "--cases", file, *more]
        return self(*words, code=code)

    @property
    def answer(self):
        return self.out.splitlines()[0]


@pytest.fixture
def probe(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Probing(tmp_path, capfd)


def steered(base, **changes):
    kinds = {KINDS["ab".index(kind)]: said for kind, said in changes.items()}
    folder = base.parent / f"{base.name}-{digest(kinds)[:12]}"
    return folder if folder.exists() else steering_adapter(folder, base, kinds)


def result_of(report):
    (one,) = report["results"]
    return one["result"]


def test_b2_b7_an_adapter_that_keeps_every_call_shows_no_drop(probe, able):
    report = probe.adapted(able, steered(able, a=OTHER), cases(12, 12))
    result = result_of(report)
    assert (result["verdict"], result["decision"]) == ("pass", "no_drop_seen")
    assert result["evidence"]["validity_delta"] == 0
    assert result["evidence"]["mean_arg_disagreement"] == 0.5  # informational: it still passes
    assert report["exit_code"] == 0
    assert probe.answer.startswith("NO DROP SEEN  valid calls: 24 of 24 before the fine-tune, 24")


def test_b55_broken_arguments_are_a_regression(probe, able):
    report = probe.adapted(able, steered(able, a=BROKEN), cases(8, 4), code=1)
    result = result_of(report)
    assert (result["decision"], result["evidence"]["num_lost"]) == ("regression", 8)
    assert result["evidence"]["hallucination_rate"] == 0
    assert probe.answer.startswith(
        "REGRESSION  valid calls: 12 of 12 before the fine-tune, 4 after"
    )
    assert "8 cases lost" in probe.out


def test_b6_tools_that_are_invented_fail_though_every_call_is_valid(probe, able):
    report = probe.adapted(able, steered(able, b=WRONG), cases(9, 3), code=1)
    result = result_of(report)
    assert (result["decision"], result["hallucination_ok"]) == ("inconclusive", False)
    assert result["evidence"]["num_hallucinated"] == 3
    assert probe.answer.startswith("INVENTED TOOLS")
    assert "calls web.find, expected web.search" in probe.out


def test_a_small_loss_is_inconclusive_never_fine(probe, able):
    report = probe.adapted(able, steered(able, b=TALK), cases(17, 3), code=5)
    result = result_of(report)
    assert (result["verdict"], result["decision"]) == ("fail", "inconclusive")
    assert probe.answer.startswith("INCONCLUSIVE")
    assert "could have shown a drop of 25%" in " ".join(probe.out.split())


def test_p1_no_call_in_either_view_is_a_failure_with_its_own_message(probe, talking):
    report = probe.adapted(talking, steered(talking, a=BROKEN), cases(3, 3), code=1)
    result = result_of(report)
    assert (result["verdict"], result["score"]) == ("fail", 0)
    assert probe.answer.startswith("NO CALLS  no valid tool call in either view (0 of 6 cases)")


def test_an_adapter_that_teaches_calls_is_seen(probe, talking):
    report = probe.adapted(talking, steered(talking, a=GOOD, b=GOOD), cases(3, 3))
    assert result_of(report)["evidence"]["num_gained"] == 6


def test_an_adapter_of_zeros_is_an_error(probe, able, loads):
    zero = make_adapter(able.parent / "zero", able, scale=0.0)
    report = probe.adapted(able, zero, cases(3, 3), code=1)
    result = result_of(report)
    assert (result["verdict"], result["decision"], result["score"]) == ("error", None, None)
    assert probe.answer.startswith("ERROR  the adapter is not applied")
    assert len(loads) == 1


def test_a_base_at_its_ceiling_leaves_nothing_for_nulls_to_show(probe, able):
    adapter = steered(able, a=OTHER)
    result = result_of(probe.adapted(able, adapter, cases(4), "--nulls", 2, code=5))
    assert "the base is at its ceiling: 100%, nulls 100%" in result["message"]
    assert not result["evidence"]["z_gate_applied"]
    assert result["evidence"]["null_rank"] == "2 nulls: p ≥ 3/3"


@pytest.mark.slow
def test_nulls_that_keep_the_format_are_named(probe, half):
    result = result_of(probe.adapted(half, steered(half, b=GOOD), cases(4, 4)))
    assert "nulls keep the format: 50% against 50% of the base" in result["message"]
    assert result["evidence"]["null_mean"] == 0.5
    assert result["verdict"] == "pass"  # nulls are never needed for a pass


def test_b9_b30_nulls_that_lose_the_format_give_a_z_with_its_gate(probe, able):
    """Drawn as large as this they drown the model. The point rule then wants a distance that so
    few nulls cannot show; the decision does not."""
    flags = ("--null-method", "init_scale", "--init-scale", 9, "--nulls", 3)
    report = probe.adapted(able, steered(able, a=OTHER), cases(10, 10), *flags)
    assert report["nulls"]["init_scale"] == 9
    (calibration,) = report["nulls"]["calibrations"]
    (rank,) = calibration["ranks"]
    mean, std = statistics.mean(rank["rates"]), statistics.pstdev(rank["rates"])
    assert mean < 0.9
    result = result_of(report)
    assert result["z_score"] == pytest.approx((1 - mean) / std)
    assert result["evidence"]["z_gate_applied"]
    assert (result["z_score"] >= 3) == (result["verdict"] == "pass")
    assert result["decision"] == "no_drop_seen"
    assert "init_scale nulls at 1 × the rank" in probe.out


def test_b28_nulls_of_other_ranks_are_told_apart(probe, able):
    flags = ("--rank-multiplier", 0.5, "--rank-multiplier", 3, "--nulls", 2)
    report = probe.adapted(able, steered(able, a=OTHER), cases(3), *flags, code=5)
    (calibration,) = report["nulls"]["calibrations"]
    assert [rank["rank_multiplier"] for rank in calibration["ranks"]] == [1, 0.5, 3]
    assert all(len(rank["rates"]) == 2 for rank in calibration["ranks"])


@pytest.mark.slow
def test_switching_views_reloads_nothing(probe, able, loads):
    probe.adapted(able, steered(able, a=OTHER), cases(5, 5), "--nulls", 4, "--no-cache", code=5)
    assert len(loads) == 1


def test_b23_base_first_then_tuned_each_once(probe, able, monkeypatch):
    switched = []
    original = hf_local.LocalRunner.texts

    def counting(self, batch, limits=None):
        switched.append((self.loaded._active, len(batch), {*limits}))
        return original(self, batch, limits)

    monkeypatch.setattr(hf_local.LocalRunner, "texts", counting)
    probe.adapted(able, steered(able, a=OTHER), cases(5, 5), "--nulls", 2, code=5)
    views = [None, "adapter", "null_0", "null_0"]
    # Then, of eight cases that both answered rightly, what they say to a result.
    again = [(None, 8, {8}), ("adapter", 8, {8})]
    assert switched == [*((view, 10, {8}) for view in views), *again]


def babble_questions():
    tool = {"type": "function", "function": SPEC}
    return [
        Question(
            name=str(number),
            messages=[{"role": "user", "content": f"{'Tell me more. ' * number}Who? {number}"}],
            tools=[tool],
            max_new_tokens=6 + 7 * number % 13,
        )
        for number in range(6)
    ]


@pytest.mark.slow
def test_outputs_are_those_of_one_view_and_one_prompt_at_a_time(babbling, loads):
    """Batches, shared beginnings and switching change no token; limits hold for each case."""
    adapter = make_adapter(babbling.parent / "loud", babbling, scale=0.5)
    found = Models(
        base=ModelSpec(base=str(babbling)), ft=ModelSpec(base=str(babbling), adapter=str(adapter))
    )
    config, questions = load_config(Path("/dev/null"), {}), babble_questions()
    run = NullRun(spec=NullAdapterSpec(), seed=0, number=1, rank_multiplier=1.0)

    def asked(wanted):
        with open_views(found, config, tools_of(questions)) as views:
            views.check(wanted)
            made = views.base(wanted), views.tuned(wanted), views.null(wanted, run)
            computed = views.measured()
            return made, computed["computed_prompt_tokens"] < computed["prompt_tokens"]

    together, shares = asked(questions)
    assert shares
    assert len({*map(tuple, together)}) == 3
    assert len(loads) == 1
    for number, question in enumerate(questions):
        alone, _ = asked([question])
        assert [texts[0] for texts in alone] == [texts[number] for texts in together]


@pytest.mark.slow
def test_equal_bytes_on_repeat_with_and_without_the_cache(probe, half):
    adapter = steered(half, b=GOOD)

    def text(*flags):
        report = probe.adapted(half, adapter, cases(3, 3), *flags)
        found = report["timing"]["nulls_from_cache"]
        assert report.pop("timing")["probe_sec"] > 0
        return json.dumps(report), found

    first, again, afresh = text(), text(), text("--no-cache")
    assert (first[1], again[1], afresh[1]) == (0, 5, 0)
    assert first[0] == again[0] == afresh[0]
    assert text("--seed", 1)[1] == 0


def test_two_checkpoints_have_no_nulls_but_are_compared(probe, able, talking, loads):
    file = write_cases(probe.folder / "cases.jsonl", cases(6))
    report = probe("--base", able, "--tuned", talking, "--cases", file, code=1)
    assert result_of(report)["decision"] == "regression"
    assert "no adapter was given" in report["nulls"]["unavailable"]
    assert "no nulls: " in probe.out
    assert len(loads) == 2


def test_a_copy_of_the_same_checkpoint_is_an_error(probe, able, tmp_path):
    import shutil

    copy = Path(shutil.copytree(able, tmp_path / "copy"))
    file = write_cases(probe.folder / "cases.jsonl", cases(2))
    probe("--base", able, "--tuned", copy, "--cases", file, code=1)
    assert "both views are the same model" in probe.answer


SPEC_FILE = """\
version: 1
models:
  base: {{base: {base}}}
  ft: {{base: {base}, adapter: {adapter}}}
defaults: {{seed: 3}}
suite:
  - {{name: nulls, kind: null_adapter, runs: 2}}
  - name: first
    kind: tool_use_fidelity
    cases: {cases}
  - name: second
    kind: tool_use_fidelity
    allowed_tools: [web.search, web.find]
    assert_validity_delta_gte: -0.5
    cases: {cases}
"""


def test_b15_a_spec_with_several_probes(probe, able):
    spec = probe.folder / "spec.yaml"
    given = json.dumps(cases(4, 4))
    spec.write_text(SPEC_FILE.format(base=able, adapter=steered(able, b=WRONG), cases=given))
    report = probe(spec, code=1)
    first, second = (one["result"] for one in report["results"])
    assert (first["name"], first["hallucination_ok"]) == ("first", False)
    assert (second["name"], second["verdict"]) == ("second", "pass")
    assert report["seed"] == 3
    assert [one["probe"] for one in report["nulls"]["calibrations"]] == ["first", "second"]
    # Eight cases are enough to rule out a drop of 50 points, which is all this one asks.
    assert "second\nNO REGRESSION" in probe.out


def test_b16_b22_without_cases_the_probe_is_skipped_and_nulls_ask_the_sentinels(probe, able):
    spec = probe.folder / "spec.yaml"
    spec.write_text(SPEC_FILE.format(base=able, adapter=steered(able, b=WRONG), cases="[]"))
    report = probe(spec, code=5)
    assert {one["result"]["verdict"] for one in report["results"]} == {"skip"}
    (calibration,) = report["nulls"]["calibrations"]
    assert (calibration["sentinels"], calibration["num_cases"]) == (True, 2)
    assert "2 sentinel cases" in probe.out


def test_an_earlier_adapter_can_be_the_base_view(probe, able, loads):
    spec = probe.folder / "spec.yaml"
    text = SPEC_FILE.format(base=able, adapter=steered(able, a=BROKEN), cases=json.dumps(cases(6)))
    before = f"base: {{base: {able}, adapter: {steered(able, b=TALK)}}}"
    spec.write_text(text.replace(f"base: {{base: {able}}}", before))
    report = probe(spec, code=1)
    assert report["results"][0]["result"]["evidence"]["num_lost"] == 6
    assert len(loads) == 1


USAGE = {
    "nothing": ([], "--cases: what should be asked?"),
    "no base": (["--cases", "c.jsonl"], "--base: which model was tuned?"),
    "no tune": (["--base", "m", "--cases", "c.jsonl"], "Give either --adapter or --tuned"),
    "served without a name": (
        ["--base", "m", "--adapter", "a", "--tuned-url", "http://x", "--cases", "c.jsonl"],
        "--tuned: which model is served there?",
    ),
    "cases and dataset": (
        ["--base", "m", "--adapter", "a", "--cases", "c.jsonl", "--dataset", "d"],
        "--cases: cannot be combined with --dataset",
    ),
    "the same model": (["--base", "m", "--tuned", "m", "--cases", "c.jsonl"], "are the same"),
    "no folder": (
        ["--base", "m", "--adapter", "a", "--cases", "c.jsonl"],
        "there is no such folder",
    ),
    "adapter of a server": (
        ["--base", "m", "--adapter", "a", "--base-url", "http://x", "--cases", "c.jsonl"],
        "a served model takes none",
    ),
    "a protocol without a server": (
        ["--base", "m", "--tuned", "a", "--kind", "openai_responses", "--cases", "c.jsonl"],
        "--kind: is for served models: give --base-url",
    ),
    "negative nulls": (
        ["--base", "m", "--adapter", "a", "--nulls", "-1", "--cases", "c.jsonl"],
        "--nulls: ",
    ),
    "rank": (
        ["--base", "m", "--adapter", "a", "--rank-multiplier", "0", "--cases", "c.jsonl"],
        "--rank-multiplier",
    ),
    "no file": (["--base", "m", "--adapter", "a", "--cases", "none.jsonl"], "none.jsonl"),
    "a spec and a flag": (["s.yaml", "--seed", "1"], "--seed: the spec s.yaml says that"),
    "no spec": (["s.yaml"], "s.yaml"),
}


@pytest.mark.parametrize("name", USAGE)
def test_wrong_usage_is_one_sentence(probe, name):
    words, message = USAGE[name]
    write_cases(probe.folder / "c.jsonl", cases(1))
    probe(*words, code=2)
    assert message in probe.err
    assert "Traceback" not in probe.err
    assert not probe.json.exists()


def test_a_case_that_does_not_fit_into_memory_is_infrastructure(probe, able, monkeypatch):
    monkeypatch.setattr(
        hf_local.Generator, "generate", lambda self, prompts, size=None: [None] * len(prompts)
    )
    probe.adapted(able, steered(able, a=OTHER), cases(2), code=4)
    assert "the memory does not suffice" in probe.err


def test_quiet_prints_only_the_answer(probe, able):
    probe.adapted(able, steered(able, a=OTHER), cases(2), "--quiet", "--nulls", 0, code=5)
    assert len(probe.out.splitlines()) == 1
    assert json.loads(probe.json.read_text())["nulls"] is None


class World:
    """A dataset of single calls, one of two calls and a control, with its fixtures."""

    def __init__(self, folder: Path) -> None:
        self.dataset, self.fixtures = folder / "dataset.jsonl", folder / "fixtures"
        self.fixtures.mkdir()
        self.registry = folder / "tools.json"
        self.registry.write_text(json.dumps([SPEC, {**SPEC, "name": "look"}]))
        entry = {"name": "web.search", "key": {"q": "rope"}, "result": {"count": 4711}}
        (self.fixtures / "all.jsonl").write_text(json.dumps(entry) + "\n")
        call = {"name": "web.search", "arguments": {"q": "rope"}}
        calls = [[call]] * 14 + [[call, call]]
        items = [
            {
                "prompt": f"Question {number} {A if number % 2 else B}",
                "metadata": {
                    "sample_id": f"s{number:02}",
                    "call_sequence": wanted,
                    "tools": ["web.search", "look"],
                    "slices": ["odd" if number % 2 else "even"],
                },
            }
            for number, wanted in enumerate(calls)
        ]
        control = {"sample_id": "none", "expected_behaviour": "no_tool"}
        items.append({"prompt": f"Hello {B}", "metadata": control})
        head = {"__header__": True, "dataset_version": "1", "span_extractor": "marker"}
        lines = [json.dumps(one) + "\n" for one in (head, *items)]
        self.dataset.write_text("".join(lines), "utf-8")

    @property
    def flags(self):
        named = {"dataset": self.dataset, "fixtures": self.fixtures, "registry": self.registry}
        return [word for name, path in named.items() for word in (f"--{name}", path)]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_a_dataset_gives_the_cases_and_is_run_whole_by_both(probe, able, world, loads):
    """Single calls are the cases, with all the tools that a sample is offered; then every metric
    is compared pairwise, by tool and slice, with the samples that flipped."""
    adapter = steered(able, a=BROKEN)
    flags = [*world.flags, "--base", able, "--adapter", adapter, "--nulls", 1]
    report = probe(*flags, "--out-dir", probe.folder / "both", code=1)
    assert len(loads) == 1
    result = result_of(report)
    assert (result["evidence"]["num_cases"], result["decision"]) == (14, "regression")
    assert report["results"][0]["case_names"] == [f"s{number:02}" for number in range(14)]
    comparison = report["comparison"]
    assert comparison["decision"] == "regression"
    assert comparison["pairs"]["paired"] == 16
    assert set(comparison["by_slice"]) == {"odd", "even"}
    assert "web.search" in comparison["by_tool"]
    assert comparison["flips"]["valid_call_rate"]["lost"]["count"] == 7
    assert "the whole dataset, base (A) against tuned (B)" in probe.out
    prints = []
    for view in ("base", "tuned"):
        lines = (probe.folder / "both" / view / "results.jsonl").read_text().splitlines()
        assert len(lines) == 16
        prints.append(json.loads(lines[0])["fingerprints"]["model_fingerprint"])
        assert (probe.folder / "both" / view / "report.json").is_file()
    assert prints[0] != prints[1]


@pytest.mark.slow
def test_both_runs_are_those_of_callmark_run(probe, able, world):
    """The shared model gives the lines that a run of its own gives, byte for byte."""
    adapter = steered(able, a=BROKEN)
    probe(*world.flags, "--base", able, "--adapter", adapter, "--nulls", 0, code=1)
    words = ["run", "--in", world.dataset, "--fixtures", world.fixtures, "--runner", "hf_local"]
    for view, more in (("base", []), ("tuned", ["--adapter", adapter])):
        out = probe.folder / view / "alone.jsonl"
        flags = ["--model", able, "--registry", world.registry, "--seed", 0, "--out", out, *more]
        main([*map(str, [*words, *flags])])
        assert (
            out.read_bytes() == (probe.folder / "probe-run" / view / "results.jsonl").read_bytes()
        )


@pytest.mark.slow
def test_the_report_of_a_dataset_is_equal_on_repeat(probe, able, world):
    flags = [*world.flags, "--base", able, "--adapter", steered(able, a=OTHER), "--nulls", 1]
    seen = []
    for _ in range(2):
        report = probe(*flags, code=5)  # the model never writes a marker: both at zero there
        del report["timing"]
        seen.append(json.dumps(report))
    assert seen[0] == seen[1]


def test_tools_that_are_not_in_the_prompt_are_an_error(probe, able, world):
    (probe.folder / "bare.tmpl").write_text("$system$user <|b|>")
    (probe.folder / "callmark.yaml").write_text("prompt_wrapper: bare.tmpl\n")
    flags = [*world.flags, "--base", able, "--adapter", steered(able, a=OTHER)]
    report = probe(*flags, code=1)
    assert report["comparison"] is None
    assert probe.answer.startswith("ERROR  the tools are not in the prompt of case 's00'")


@pytest.mark.slow
def test_a_template_that_drops_the_tools_gets_them_in_a_block_of_text(probe, models):
    """The template takes `tools` and writes nothing of it: without the check of the prompt both
    views would be asked for a tool that they cannot know."""
    deaf = probed_model(models / "deaf", GOOD, GOOD, WITHOUT_TOOLS)
    report = probe.adapted(deaf, steered(deaf, a=OTHER), cases(20), "--nulls", 0)
    assert report["views"]["runner"]["tools_block"] == "fallback"
    assert result_of(report)["decision"] == "no_drop_seen"


def test_a_template_that_has_no_room_for_tools_is_refused(probe, models):
    """It keeps the last line of what is said, so that no block of text gets through either."""
    short = WITHOUT_TOOLS.replace("{{ message.content }}", "{{ message.content.split('\\n')[-1] }}")
    deaf = probed_model(models / "last-line", GOOD, GOOD, short)
    probe.adapted(deaf, steered(deaf, a=OTHER), cases(2), code=2)
    assert "its chat template takes no conversation with tools" in probe.err


def test_the_dataset_of_a_settings_file_is_not_probed_unasked(probe, able):
    (probe.folder / "callmark.yaml").write_text("in: nowhere.jsonl\ntemperature: 1.0\n")
    report = probe.adapted(able, steered(able, a=OTHER), cases(2), "--nulls", 0, code=5)
    assert report["comparison"] is None


def test_a_dataset_without_single_calls_decides_nothing(probe, able, world):
    lines = world.dataset.read_text().splitlines()
    world.dataset.write_text("\n".join([lines[0], *lines[-2:]]) + "\n")
    flags = [*world.flags, "--base", able, "--adapter", steered(able, a=OTHER), "--nulls", 0]
    report = probe(*flags, code=5)
    assert result_of(report)["verdict"] == "skip"
