"""What a stranger touches first: make targets, workflows, licence, pinned versions."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
MAKE = ["make", "--no-print-directory"]  # these tests may themselves be started by make
WORKFLOWS = ROOT / ".github" / "workflows"
PINNED = f"actions/none@{40 * '0'}"  # what a step without an action counts as
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.M))


def test_the_readme_has_its_two_commands_and_make_knows_them():
    readme = (ROOT / "README.md").read_text("utf-8")
    for target in ("demo", "test"):
        assert f"make {target}" in readme
        assert target in TARGETS


FORMER_NAME = "tool" + "mark"  # a stranger's package has it


def test_f5_the_former_name_stands_in_one_line_of_the_changelog_and_nowhere_else():
    found = subprocess.run(
        ["git", "grep", "-iIn", FORMER_NAME], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    assert [line.partition(":")[0] for line in found.splitlines()] == ["CHANGELOG.md"]
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert FORMER_NAME not in files.lower()


def test_f5_nothing_tells_people_to_install_from_an_index():
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("src/callmark/**/*.py")]
    advice = re.compile(r"(pip|pipx|uv)[^\n]{0,20} install '?callmark|uvx callmark")
    assert [path.name for path in texts if advice.search(path.read_text("utf-8"))] == []


def test_make_alone_lists_every_target():
    listed = subprocess.run(MAKE, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    promised = {"demo", "test", "test-real", "test-slow", "lint", "format", "bench", "build"}
    promised |= {"ci-broker-smoke", "clean", "venv", "help"}
    assert promised <= set(re.findall(r"make ([a-z-]+)", listed))


def test_make_test_real_insists_on_the_real_material(tmp_path: Path):
    stamp = tmp_path / ".installed"
    stamp.touch()
    finished = subprocess.run(
        [*MAKE, "test-real", f"READY={stamp}", "CALLMARK_REAL_DATA="],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode != 0
    assert "set CALLMARK_REAL_DATA" in finished.stderr


def test_a128_make_ci_broker_smoke_fails_when_fixtures_break(tmp_path: Path):
    """One fixture of eight is for a sample that does not exist: the dataset misses it."""
    command = tmp_path / "callmark"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT}/src exec {sys.executable} -m callmark "$@"\n')
    command.chmod(0o755)
    fixtures = shutil.copytree(ROOT / "src/callmark/data/fixtures", tmp_path / "fixtures")
    make = [
        *MAKE,
        "ci-broker-smoke",
        f"LIGHT={command}",
        f"BIN={tmp_path}",
        f"FIXTURES={fixtures}",
    ]
    whole = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=False)
    assert whole.returncode == 0, whole.stdout + whole.stderr
    for path in fixtures.glob("*.jsonl"):
        entries = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        alone = [entry for entry in entries if "seq" not in entry and "sample_id" not in entry]
        for entry in alone[::8]:
            entry["sample_id"] = "nobody"
        path.write_text("\n".join(map(json.dumps, entries)), "utf-8")
    finished = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode != 0
    assert finished.stdout.startswith("FAIL")


@pytest.mark.parametrize(
    ("workflow", "targets"),
    [
        ("ci", {"lint", "test"}),
        ("docs", {"docs"}),
        ("broker-smoke", {"ci-broker-smoke"}),
        ("smoke", {"ci-smoke"}),
        ("locale", {"ci-locale"}),
        ("teacher-heavy", {"ci-teacher-heavy"}),
        ("parity", {"ci-parity"}),
        ("sharding", {"validate-sharding"}),
    ],
)
def test_a130_workflows_run_the_make_targets(workflow: str, targets: set[str]):
    """On every push and pull request, and nothing but `make` with targets that exist."""
    parsed = workflow_of(WORKFLOWS / f"{workflow}.yml")
    assert {"push", "pull_request"} == set(parsed[True])  # YAML 1.1 reads `on` as true
    steps = [step for job in parsed["jobs"].values() for step in job["steps"]]
    commands = " ".join(step.get("run", "") for step in steps).split()
    assert commands[0] == "make"
    assert targets == set(commands[1:])
    assert targets <= TARGETS


@pytest.mark.parametrize("path", sorted(WORKFLOWS.glob("*.yml")), ids=lambda path: path.stem)
def test_workflows_may_read_and_nothing_else_and_end(path: Path):
    parsed = workflow_of(path)
    assert parsed["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in parsed[True]
    assert "secrets." not in path.read_text("utf-8")
    for job in parsed["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 60
        assert "permissions" not in job
        for step in job["steps"]:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step.get("uses", PINNED)), step
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


def workflow_of(path: Path) -> dict:
    return yaml.safe_load(path.read_text("utf-8"))


def test_ci_covers_the_python_versions_that_the_package_promises():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    promised = {name.split(" :: ")[-1] for name in project["classifiers"] if "Python :: 3." in name}
    matrix = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    assert set(matrix["jobs"]["test"]["strategy"]["matrix"]["python"]) == promised


def test_constraints_are_names_and_versions_of_everything_that_is_needed():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", pin) for pin in pins), pins
    pinned = {pin.partition("==")[0] for pin in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + extras["dev"] + extras["docs"]
    names = {re.match(r"[\w-]+", want)[0].lower() for want in wanted}
    assert names <= pinned


def test_the_licence_is_the_whole_apache_2():
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text("utf-8")


def test_the_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert text.startswith("# Changelog\n")
    assert "keepachangelog.com" in text
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", one) for one in headings[1:])
    kinds = set(re.findall(r"^### (.*)$", text, re.M))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_ci_run_fails_when_make_fails(tmp_path: Path):
    (tmp_path / ".ci").mkdir()
    script = tmp_path / ".ci" / "run"
    script.write_bytes((ROOT / ".ci" / "run").read_bytes())
    script.chmod(0o755)
    (tmp_path / "Makefile").write_text("lint:\n\t@true\ntest:\n\t@echo '1 failed'; false\n")
    finished = subprocess.run([script], capture_output=True, text=True, check=False)
    assert finished.returncode != 0
    assert "1 failed" in finished.stdout
