"""The CI hooks really fail when they are broken: each is run on good answers, and on answers that
are broken in the one way that it is there for."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from callmark.summary.wording import METRICS

ROOT = Path(__file__).parents[2]
HOOKS = ("ci-smoke", "ci-locale", "ci-teacher-heavy")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
Finished = subprocess.CompletedProcess[str]


class Bench:
    """`make` with this checkout as the installed one, and a folder of its own for what it makes."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self._environment = environment
        for name, module in (("callmark", "-m callmark "), ("python", "")):
            script = folder / "bin" / name
            script.parent.mkdir(exist_ok=True)
            script.write_text(
                f'#!/bin/sh\nPYTHONPATH={ROOT}/src exec {sys.executable} {module}"$@"\n'
            )
            script.chmod(0o755)

    def make(self, target: str, **given: str | Path) -> Finished:
        places = {"LIGHT": self.folder / "bin" / "callmark", "BIN": self.folder / "bin"}
        places["HOOKS"] = self.folder / "hooks"
        words = [f"{name}={value}" for name, value in {**places, **given}.items()]
        return self._run("make", "--no-print-directory", target, *words)

    def flawed(self, total: int, *faults: str) -> Path:
        """Answers to the samples of a hook, with these faults."""
        out = self.folder / "flawed" / "answers.jsonl"
        planted = [word for fault in faults for word in ("--fault", fault)]
        finished = self._run(
            self.folder / "bin" / "callmark", "dataset", "generate", "--seed", "7",
            "--total", str(total), "--out", out.with_name("dataset.jsonl"),
            "--fixtures", out.with_name("fixtures"), "--answers", out,
            "--with-answers", "flawed" if faults else "good", *planted,
        )  # fmt: skip
        assert finished.returncode == 0, finished.stderr
        return out

    def _run(self, *words: str | Path) -> Finished:
        return subprocess.run(
            list(map(str, words)),
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )


@pytest.fixture
def bench(tmp_path: Path, child_environment: dict[str, str]) -> Bench:
    drop = {"DATASET", "FIXTURES", "ANSWERS", "MAKEFLAGS", "MAKELEVEL"}
    kept = {name: value for name, value in child_environment.items() if name not in drop}
    return Bench(tmp_path, kept)


def rewrite(answers: Path, change: Callable[[dict], None]) -> Path:
    lines = [json.loads(line) for line in answers.read_text("utf-8").splitlines()]
    for line in lines:
        change(line)
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return answers


def judged(finished: Finished, gate: str) -> str:
    """What the last lines of a hook say about a gate."""
    found = re.search(rf"^([A-Z/]+) +{gate}: ", finished.stdout, re.M)
    return found[1] if found else ""


def failed_gates(finished: Finished) -> list[str]:
    assert finished.returncode != 0, finished.stdout
    told = re.search(r"^FAIL  failed: (.+(?:\n  .+)*)", finished.stdout, re.M)
    assert told is not None, finished.stdout
    keys = {words.label: key for key, words in METRICS.items()}
    return [keys[label] for label in " ".join(told[1].split()).split(", ")]


def test_a131_a132_smoke_passes_on_good_answers(bench: Bench):
    finished = bench.make("ci-smoke")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert judged(finished, "controls_with_integration") == "PASS"
    assert judged(finished, "integration_coverage") == "PASS"
    assert "60 samples" in finished.stdout


@pytest.mark.slow
def test_a131_smoke_fails_on_one_contaminated_control(bench: Bench):
    answers = bench.flawed(60, "contaminated_control=0.1")
    finished = bench.make("ci-smoke", ANSWERS=answers)
    assert failed_gates(finished) == ["controls_with_integration"]


@pytest.mark.slow
def test_a132_smoke_fails_when_answers_do_not_integrate(bench: Bench):
    """A tenth of the answers say the same without the marker."""
    answers = bench.flawed(60)
    seen = []

    def unmark(line: dict) -> None:
        seen.append(line)
        if line["tool_trace"] and len(seen) % 10 == 0:
            line["model_output"] = line["model_output"].replace("Integration:", "Found it at:")

    finished = bench.make("ci-smoke", ANSWERS=rewrite(answers, unmark))
    assert failed_gates(finished) == ["integration_coverage"]


@pytest.mark.slow
def test_a134_locale_fails_when_one_language_is_grounded_in_the_wrong_fields(bench: Bench):
    """German answers whose tools gave the values outside of the fields that count."""
    answers = bench.flawed(400)
    good = bench.make("ci-locale", ANSWERS=answers)
    assert good.returncode == 0, good.stdout + good.stderr
    items = answers.with_name("dataset.jsonl").read_text("utf-8").splitlines()[1:]
    probes = [item["metadata"] for item in map(json.loads, items)]
    german = [
        one["sample_id"] for one in probes if one["language"] == "de" and one.get("locale_probe")
    ]

    def misplace(line: dict) -> None:
        if line["sample_id"] in german[:2]:
            line["tool_trace"][0]["result"] = {"ok": True, "footnote": line["model_output"]}

    finished = bench.make("ci-locale", ANSWERS=rewrite(answers, misplace))
    assert failed_gates(finished) == ["locale_delta_de"]


@pytest.mark.slow
def test_a134_locale_does_not_pass_on_a_dataset_without_probes(bench: Bench, world):
    """The run itself passes: what was to be checked is not there."""
    finished = bench.make(
        "ci-locale", DATASET=world.dataset, FIXTURES=world.fixtures, ANSWERS=world.answers
    )
    assert finished.returncode != 0
    assert finished.stdout.startswith("PASS")
    assert judged(finished, "locale_delta_fr") == "N/A"


@pytest.mark.slow
def test_a135_teacher_heavy_warns_on_spans_over_the_cap(bench: Bench):
    answers = bench.flawed(400, "too_many_spans=0.2")
    finished = bench.make("ci-teacher-heavy", ANSWERS=answers)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert judged(finished, "teacher_heavy_spans_over_cap") == "WARN"
    assert judged(finished, "teacher_heavy_f1_lax") == "PASS"


@pytest.mark.slow
def test_a135_teacher_heavy_fails_on_a_low_f1(bench: Bench):
    """Every digit of a few of these answers is another one."""
    answers = bench.flawed(400)
    items = answers.with_name("dataset.jsonl").read_text("utf-8").splitlines()[1:]
    heavy = [
        item["metadata"]["sample_id"]
        for item in map(json.loads, items)
        if "teacher_heavy" in item["metadata"].get("slices", ())
    ]

    def miscount(line: dict) -> None:
        if line["sample_id"] in heavy[:4]:
            line["model_output"] = line["model_output"].translate(
                str.maketrans("0123456789", "7289314605")
            )

    finished = bench.make("ci-teacher-heavy", ANSWERS=rewrite(answers, miscount))
    assert failed_gates(finished) == ["teacher_heavy_f1_lax"]


@pytest.mark.parametrize("hook", ["ci-broker-smoke", *HOOKS, "validate-sharding"])
def test_f34_a_hook_without_a_model_installs_no_torch(hook: str, tmp_path: Path):
    """All that such a hook would do on a fresh machine: callmark and what it needs, nothing more."""
    fresh = [f"VENV={tmp_path}/venv", f"HOOKS={tmp_path}/hooks"]
    words = ["make", "--no-print-directory", "--dry-run", hook, *fresh]
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    shown = subprocess.run(words, cwd=ROOT, env=kept, capture_output=True, text=True, check=True)
    installs = [line for line in shown.stdout.splitlines() if " pip install " in line]
    assert [line.split(" -c ")[1] for line in installs] == ["constraints.txt -e ."]


def test_f34_what_the_light_environment_installs_needs_no_torch():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    heavy = {"torch", "transformers", "peft", "safetensors", "ray", "mcp"}
    assert not heavy & {re.match(r"[\w-]+", one)[0] for one in project["dependencies"]}


def test_f41_the_user_chooses_the_build_of_torch(tmp_path: Path):
    words = ["make", "--no-print-directory", "-n", "venv", f"VENV={tmp_path}/venv"]
    chosen = [*words, "TORCH=torch --index-url https://builds.example.org/cpu"]
    for command, wanted in ((words, "torch"), (chosen, chosen[-1].removeprefix("TORCH="))):
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        installs = [line for line in shown.stdout.splitlines() if " pip install " in line]
        assert installs[1].endswith(f" -c constraints.txt {wanted}")
        assert installs[2].endswith("-e '.[dev,docs,hf,mcp]'")


@pytest.mark.parametrize("hook", HOOKS)
def test_a_dataset_of_your_own_needs_answers_of_your_own(bench: Bench, hook: str):
    finished = bench.make(hook, DATASET="data/contextual_final.s0.jsonl")
    assert finished.returncode != 0
    assert f"make {hook}: which answers to" in finished.stderr


@pytest.mark.parametrize("hook", HOOKS)
def test_every_gate_that_a_hook_is_for_is_binding_in_its_settings(hook: str):
    settings = yaml.safe_load(
        (ROOT / ".ci" / f"{hook.removeprefix('ci-')}.yaml").read_text("utf-8")
    )
    target = re.search(rf"^{hook}: .*\n\t\$\(call hook,[^,]+,\d+,([\w ]+)\)$", MAKEFILE, re.M)
    assert not set(settings["gates"]) & set(target[1].split())
