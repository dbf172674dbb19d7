"""Starting is cheap: nothing heavy is loaded before it is needed."""

import ast
import json
import sys
from pathlib import Path
from typing import get_args

import pytest

from callmark.broker import check
from callmark.cli import (
    MODULES,
    dataset_export,
    dataset_generate,
    fixtures_check,
    fixtures_serve,
    options,
    probe,
    reporting,
    validate_sharding,
)
from callmark.datasets import exporting, importing
from callmark.datasets.generate import FAULTS
from callmark.datasets.importing.importing import READERS, SHAPES
from callmark.live import recorder
from callmark.live.server import Http
from callmark.probe.spec import ModelKind
from callmark.reports import finished_run as formats
from callmark.resources import demo_paths
from callmark.runners.options import SERVED
from callmark.shards import validate

ROOT = Path(__file__).parents[2]
HEAVY = {
    "numpy",
    "rich",
    "httptools",
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


def test_f60_import_callmark_loads_hardly_anything(python):
    code = (
        "import sys; before = set(sys.modules); import callmark; print(*set(sys.modules) - before)"
    )
    finished = python("-c", code)
    assert set(finished.stdout.split()) - {"types", "__future__"} == {
        "callmark",
        "callmark._version",
    }


# What a parser is made of. Everything else of ours is the work, which waits for its options.
PARSING = {"callmark", "callmark._version", "callmark.errors", "callmark.reports", "callmark.store"}
PARSING |= {"callmark.reports.layout", "callmark.store.streams"}
# Names of formats and nothing else: whatever they loaded would be found below.
PARSING |= {"callmark.datasets", "callmark.datasets.importing"}
# Of the standard library: each costs as much as the whole parser, or brings a dozen others along.
COSTLY = {"asyncio", "dataclasses", "inspect", "json", "logging", "multiprocessing", "random"}
COSTLY |= {"secrets", "socket", "subprocess", "tempfile", "xml"}
LOADED_BY = """
import contextlib, io, json, os, sys
before = set(sys.modules) - {"json"}  # what reports is not what is reported
import callmark.cli
with contextlib.redirect_stdout(io.StringIO()) as shown:
    code = callmark.cli.main(sys.argv[1:])
loaded = sorted(set(sys.modules) - before - {n for n in sys.modules if n.startswith("json")})
print(json.dumps({"code": code, "shown": shown.getvalue(), "loaded": loaded}))
"""


def loaded_by(python, *words, cwd=None):
    finished = python("-c", LOADED_BY, *words, cwd=cwd)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


@pytest.mark.parametrize("command", MODULES)
def test_f60_the_help_of_a_command_loads_no_work(python, command):
    found = loaded_by(python, *command.split(), "--help")
    assert found["code"] == 0
    assert found["shown"].startswith(f"usage: callmark {command}")
    loaded = set(found["loaded"])
    ours = {name for name in loaded if name.partition(".")[0] == "callmark"}
    assert {n for n in ours - PARSING if not n.startswith("callmark.cli")} == set()
    assert {name.partition(".")[0] for name in loaded - ours} - sys.stdlib_module_names == set()
    assert loaded & COSTLY == set()


def test_f60_what_the_parsers_state_is_what_the_work_takes():
    """They state it themselves: asking the work would load it."""
    assert dataset_export.FORMATS == exporting.FORMATS
    assert ("auto", *READERS, "parquet") == importing.CHOICES
    assert set(READERS) == {name for name, _ in SHAPES}
    names = ("openai", *(name for name in SERVED if name != "openai_http"))
    assert names == probe.SERVED_KINDS
    assert get_args(ModelKind) == ("hf", *probe.SERVED_KINDS)
    assert tuple(dataset_generate.KINDS) == tuple(FAULTS)
    assert fixtures_check.FLOOR == check.FLOOR
    assert Http().host == fixtures_serve.HOST
    assert options.MODES == recorder.MODES
    assert tuple(formats.FORMATS) == reporting.REPORT_FORMS
    for name in ("ATOL", "RTOL", "NUM_SHARDS", "OUTPUT"):
        assert getattr(validate_sharding, name) == getattr(validate, name)


# What a run of one replayed sample never uses, of ours and of others.
UNUSED = """
    api broker.check broker.nearest compare datasets.exporting datasets.generate datasets.importing
    live probe reports.compare reports.junit reports.markdown reports.probe reports.show
    reports.tables run.doctor run.rescore run.verify runners.hf runners.http.client
    runners.http.runner runners.jinja scorers.claims shards.local shards.ray store.response_cache
    view
""".split()
FOREIGN = """
    asyncio httptools jinja2 json_repair mcp multiprocessing numpy phonenumbers pyarrow ray re2 rich
    sqlite3 stdnum subprocess torch transformers xml
""".split()


def test_f60_a_run_of_one_sample_loads_what_it_uses(python, tmp_path):
    demo = demo_paths()
    found = loaded_by(
        python, "run", "--in", demo.dataset, "--fixtures", demo.fixtures, "--runner", "replay",
        "--model", demo.answers, "--only", "search-rope-01", "--out", tmp_path / "results.jsonl",
    )  # fmt: skip
    assert (tmp_path / "report.html").is_file()
    ours = [name for name in found["loaded"] if name.partition(".")[0] == "callmark"]
    unused = tuple(f"callmark.{name}" for name in UNUSED)
    assert [name for name in ours if name.startswith(unused)] == []
    assert {name.partition(".")[0] for name in found["loaded"]} & set(FOREIGN) == set()
    assert len(ours) <= 150, ours  # 216 when F60 was found


@pytest.mark.slow
def test_the_overview_costs_at_most_three_times_bare_python(python):
    """CPU, not wall time, and a ratio of two things measured in turns."""
    finished = python("-c", "from bench.startup import rows; print(rows()[0])", cwd=ROOT)
    name, ratio, _ = ast.literal_eval(finished.stdout)
    assert name.startswith("callmark --help")
    assert float(ratio) <= 3
