"""Starting is cheap: nothing heavy is loaded before it is needed."""

import ast
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {
    "numpy",
    "rich",
    "aiohttp",
    "torch",
    "msgspec",
    "transformers",
    "argparse",
    "yaml",
    "jinja2",
}
LOADED = "import sys, json; print(json.dumps(sorted({n.partition('.')[0] for n in sys.modules})))"
OVERVIEW = """
import contextlib, io, callmark.cli
with contextlib.redirect_stdout(io.StringIO()) as shown:
    assert callmark.cli.main(["--help"]) == 0
assert "callmark run" in shown.getvalue() or "run " in shown.getvalue()
"""


@pytest.mark.parametrize("code", ["import callmark", OVERVIEW], ids=["import", "help"])
def test_starting_loads_nothing_heavy(python, code):
    finished = python("-c", f"{code}\n{LOADED}")
    assert finished.returncode == 0, finished.stderr
    assert not set(json.loads(finished.stdout)) & HEAVY


@pytest.mark.slow
def test_the_overview_costs_at_most_three_times_bare_python(python):
    """CPU, not wall time, and a ratio of two things measured in turns."""
    finished = python("-c", "from bench.startup import rows; print(rows()[0])", cwd=ROOT)
    name, ratio, _ = ast.literal_eval(finished.stdout)
    assert name.startswith("callmark --help")
    assert float(ratio) <= 3
