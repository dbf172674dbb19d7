"""The same bytes whatever the hash seed, the language, the time zone or the folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pace import few

SRC = Path(__file__).parents[2] / "src"
CHILD = "import json, sys; from callmark.run.conclude import run; run(json.loads(sys.argv[1]))"


@pytest.mark.parametrize(
    "changed",
    few(
        [
            {"PYTHONHASHSEED": "4242", "LANG": "tr_TR.UTF-8", "LC_ALL": "C", "TZ": "Pacific/Apia"},
            {"PYTHONHASHSEED": "1"},
        ]
    ),
    ids=["everything", "hash seed"],
)
def test_a1_equal_bytes_in_another_environment(demo, tmp_path, changed):
    from callmark.run.conclude import run

    run(demo)
    other = {
        **demo,
        "out": str(tmp_path / "o" / "r.jsonl"),
        "report": str(tmp_path / "o" / "r.json"),
    }
    environment = {**os.environ, "PYTHONPATH": str(SRC), **changed}
    subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(other)], check=True, env=environment, cwd=tmp_path
    )
    assert Path(other["out"]).read_bytes() == Path(demo["out"]).read_bytes()
    reports = [
        json.loads(Path(path).read_text("utf-8")) for path in (demo["report"], other["report"])
    ]
    for report in reports:
        report.pop("timing")
    assert reports[0] == reports[1]
