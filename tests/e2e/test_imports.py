"""Starting is cheap: nothing heavy is loaded before it is needed."""

import json

import pytest

HEAVY = {"numpy", "rich", "aiohttp", "torch", "msgspec", "transformers", "argparse", "yaml"}
LOADED = "import sys, json; print(json.dumps(sorted({n.partition('.')[0] for n in sys.modules})))"
OVERVIEW = """
import contextlib, io, toolmark.cli
with contextlib.redirect_stdout(io.StringIO()) as shown:
    assert toolmark.cli.main(["--help"]) == 0
assert "toolmark run" in shown.getvalue() or "run " in shown.getvalue()
"""


@pytest.mark.parametrize("code", ["import toolmark", OVERVIEW], ids=["import", "help"])
def test_starting_loads_nothing_heavy(python, code):
    finished = python("-c", f"{code}\n{LOADED}")
    assert finished.returncode == 0, finished.stderr
    assert not set(json.loads(finished.stdout)) & HEAVY
