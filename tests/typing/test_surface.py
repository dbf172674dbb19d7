"""What `import callmark` shows to type checkers, editors and readers."""

import ast
import doctest
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pace import few

import callmark
from callmark.config import RunConfig, RunSettings
from callmark.shards.validate import ShardingConfig, ShardingSettings

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FILES = [HERE / "every_name.py", HERE / "wrong_calls.py"]
NAMES = [name for name in callmark.__all__ if name != "__version__"]
FUNCTIONS = [name for name in NAMES if not isinstance(getattr(callmark, name), type)]
RECORDS = ["Comparison", "DryRun", "Report", "Validation"]


def errors_of_mypy(tmp_path: Path) -> dict[tuple[str, int], str]:
    words = ["mypy", "--strict", "--cache-dir", str(tmp_path), "--output", "json", *map(str, FILES)]
    said = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True)
    assert said.returncode in (0, 1), said.stdout + said.stderr
    found = [json.loads(line) for line in said.stdout.splitlines() if line.startswith("{")]
    return {(Path(one["file"]).name, one["line"]): one["message"] for one in found}


def errors_of_pyright(tmp_path: Path) -> dict[tuple[str, int], str]:
    """By the settings in pyproject.toml, which an editor takes too."""
    words = ["pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(ROOT)]
    said = subprocess.run(
        [sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert said.returncode in (0, 1), said.stdout + said.stderr
    found = json.loads(said.stdout[said.stdout.index("{") :])
    assert found["summary"]["filesAnalyzed"] == len(FILES), found
    return {
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1): one["message"]
        for one in found["generalDiagnostics"]
    }


@pytest.mark.parametrize("errors_of", few([errors_of_pyright, errors_of_mypy]))
def test_right_calls_have_types_and_wrong_ones_are_errors(errors_of, tmp_path):
    lines = (HERE / "wrong_calls.py").read_text("utf-8").splitlines()
    wrong = {("wrong_calls.py", at) for at, line in enumerate(lines, 1) if line.endswith("# wrong")}
    found = errors_of(tmp_path)
    assert len(wrong) > 15
    assert found.keys() == wrong, found


def test_the_right_calls_use_every_name():
    tree = ast.parse((HERE / "every_name.py").read_text("utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert set(callmark.__all__) <= used


def test_dir_lists_the_public_names_and_nothing_else():
    listed = {name for name in dir(callmark) if not name.startswith("__")}
    assert listed == set(NAMES)
    fresh = "import callmark; print(*dir(callmark))"
    said = subprocess.run([sys.executable, "-c", fresh], capture_output=True, text=True, check=True)
    assert set(NAMES) <= set(said.stdout.split())


def test_what_type_checkers_see_is_what_there_is():
    """The three lists of the façade: imports for type checkers, places, and `__all__`."""
    tree = ast.parse((ROOT / "src/callmark/__init__.py").read_text("utf-8"))
    [checked] = [
        node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    ]
    seen = {
        name.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert seen == callmark._PUBLIC
    assert set(seen) == set(NAMES)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == "validate_sharding" else name
        for name in NAMES
    ],
)
def test_the_docstring_of_a_public_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finder = doctest.DocTestFinder(recurse=False)
    [test] = finder.find(getattr(callmark, name), name, module=False, globs={})
    assert len(test.examples) > 1
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


@pytest.mark.parametrize("name", [*FUNCTIONS, "ToolBroker"])
def test_the_docstring_of_a_public_function_says_what_goes_in_and_out_and_what_is_raised(name):
    value = getattr(callmark, name)
    said = inspect.getdoc(value)
    for heading in ("Args:", "Returns:", "Raises:"):
        assert f"\n{heading}\n" in said
    listed = said.partition("Args:\n")[2].partition("\n\n")[0]
    parameters = list(inspect.signature(value).parameters)
    assert re.findall(r"^ {4}(\w+):", listed, re.M) == parameters


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_becomes_a_dict(name):
    assert callable(getattr(callmark, name).to_dict)
    assert inspect.getdoc(getattr(callmark, name))


def test_the_keywords_of_a_run_are_the_keys_of_its_settings():
    own = {"sources", "places", "config_file"}
    by_hand = {"baseline", "dry_run", "runner", "plugins"}  # arguments with types of their own
    assert set(RunSettings.__annotations__) == set(RunConfig.__struct_fields__) - own - by_hand
    assert set(ShardingSettings.__annotations__) == set(ShardingConfig.__struct_fields__)
