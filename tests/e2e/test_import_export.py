"""`callmark dataset import | export` as a stranger's shell calls them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TALK = {
    "id": "talk-1",
    "messages": [
        {"role": "user", "content": "How warm is Ulm?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "function": {"name": "weather", "arguments": '{"city": "Ulm"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": '{"temp_c": 19}'},
        {"role": "assistant", "content": "It is 19 degrees in Ulm."},
    ],
}


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    path = tmp_path / "talks.jsonl"
    path.write_text(json.dumps(TALK) + "\n", "utf-8")
    return path


def test_import_says_what_it_made_and_what_comes_next(callmark, talks, tmp_path):
    finished = callmark("dataset", "import", talks, "--out", "data.jsonl", "--report", "r.json")
    assert finished.returncode == 0, finished.stderr
    assert "data.jsonl: 1 sample from" in finished.stdout
    assert "tool_without_schema" in finished.stdout
    report = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert report["format"] == "openai"
    [kind] = report["unmapped"]
    assert (kind["kind"], kind["count"]) == ("tool_without_schema", 1)
    assert kind["places"] == [{"line": 1, "detail": "weather"}]
    following = finished.stdout.partition("next: callmark ")[2].splitlines()[0].split()
    ran = callmark(*following, "--out", "results.jsonl")
    assert ran.returncode in (0, 5), ran.stdout + ran.stderr


@pytest.mark.parametrize("how", [("--expect", "observed"), ("--per-step",)])
def test_an_import_that_expects_something_is_verified_first(callmark, tmp_path, how):
    mailed = [{"role": "user", "content": "I am ann.lee@mail.example."}, *TALK["messages"]]
    (tmp_path / "talks.jsonl").write_text(json.dumps({**TALK, "messages": mailed}) + "\n", "utf-8")
    finished = callmark("dataset", "import", "talks.jsonl", "--out", "data.jsonl", *how)
    assert finished.returncode == 0, finished.stderr
    told, _, following = finished.stdout.partition("next: callmark ")
    assert "1 personal value is replaced by a made-up one" in told
    few = "1 sample is" if how == ("--expect", "observed") else "2 samples are"
    assert f"{few} too few for most gates, which want 15" in told
    assert ("--per-step makes a sample of each step" in told) == (how != ("--per-step",))
    verify, run, model = following.splitlines()
    assert model.startswith("with a model: callmark run --in data.jsonl --registry ")
    assert verify == "verify data.jsonl --registry data.tools.json --fixtures data.fixtures"
    verified = callmark(*verify.split())
    assert verified.returncode == 0, verified.stdout + verified.stderr
    ran = callmark(*run.removeprefix("then: callmark ").split(), "--out", "results.jsonl")
    assert ran.returncode in (0, 5), ran.stdout + ran.stderr


@pytest.mark.slow
def test_what_was_run_is_exported_and_imported(callmark, talks, tmp_path):
    callmark("dataset", "import", talks, "--out", "data.jsonl")
    callmark("score", "data.answers.jsonl", "--in", "data.jsonl", "--registry", "data.tools.json",
             "--out", "results.jsonl")  # fmt: skip
    for name in ("run.eval", "run.json"):
        exported = callmark("dataset", "export", "results.jsonl", "--out", name)
        assert exported.returncode == 0, exported.stderr
        assert f"{name}: 1 trial (inspect)" in exported.stdout
        back = callmark("dataset", "import", name, "--out", f"{name}.jsonl")
        assert back.returncode == 0, back.stderr
    for name in ("data.parquet", "plain.jsonl"):
        assert callmark("dataset", "export", "data.jsonl", "--out", name).returncode == 0


@pytest.mark.slow
def test_an_exported_log_brings_its_tools_along(callmark, tmp_path):
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [{"name": "weather", "description": "Weather.", "parameters": schema}]
    (tmp_path / "talks.jsonl").write_text(json.dumps({**TALK, "tools": tools}) + "\n", "utf-8")
    callmark("dataset", "import", "talks.jsonl", "--out", "data.jsonl")
    callmark("run", "--in", "data.jsonl", "--registry", "data.tools.json", "--fixtures",
             "data.fixtures", "--model", "data.answers.jsonl", "--out", "results.jsonl")  # fmt: skip
    export = ("dataset", "export", "results.jsonl", "--registry", "data.tools.json", "--out")
    for name in ("run.eval", "run.json"):
        assert callmark(*export, name).returncode == 0
        back = callmark("dataset", "import", name, "--out", f"{name}.jsonl")
        assert "tool_without_schema" not in back.stdout
        made = json.loads((tmp_path / f"{name}.tools.json").read_text("utf-8"))
        assert made == tools
    (tmp_path / "other.json").write_text(json.dumps([{**tools[0], "name": "other"}]), "utf-8")
    refused = callmark(*export, "run.eval", "--registry", "other.json")
    assert refused.returncode == 2
    assert "these are not the tools of results.jsonl" in refused.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["import", "nowhere.jsonl", "--out", "x.jsonl"], "nowhere.jsonl: no such file"),
        (["import", "talks.jsonl"], "required: --out"),
        (["import", "talks.jsonl", "--out", "talks.jsonl"], "must differ"),
        (
            ["import", "talks.jsonl", "--out", "x.jsonl", "--format", "tau-bench"],
            ":1: task_id: is missing",
        ),
        (["export", "talks.jsonl", "--out", "x.txt"], "does not tell the format"),
        (["export", "talks.jsonl", "--out", "x.eval"], "talks.jsonl:1: index: is missing"),
        (["export", "talks.jsonl", "--out", "talks.jsonl"], "is the file being exported"),
        (
            ["export", "talks.jsonl", "--out", "x.jsonl", "--registry", "r.json"],
            "only applies to an Inspect log",
        ),
    ],
)
def test_mistakes_are_one_sentence_and_exit_2(callmark, talks, words, message):
    finished = callmark("dataset", *words)
    assert finished.returncode == 2
    assert message in finished.stderr
    assert "Traceback" not in finished.stderr


# --- with Inspect itself -----------------------------------------------------------------------

INSPECT = "inspect-ai==0.3.285"
WRITE_LOGS = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import ToolError, tool

@tool
def weather():
    async def execute(city: str, days: int = 1) -> str:
        '''Weather of a city.

        Args:
            city: The city.
            days: How many days.
        '''
        if city == "Nowhere":
            raise ToolError("no such city")
        return '{"city": "%s", "temp_c": 21.5}' % city
    return execute

def answer(messages, tools, tool_choice, config):
    name, arguments, text = next(row for row in (
        ("Paris", {"city": "Paris"}, "It is 21.5 degrees in Paris."),
        ("Nowhere", {"city": "Nowhere"}, "I could not find that city."),
        ("Rome", {"town": "Rome"}, "x" * 2000),
    ) if row[0] in messages[0].text)
    if messages[-1].role == "tool":
        made = ModelOutput.from_content("mockllm/model", text)
    else:
        made = ModelOutput.for_tool_call("mockllm/model", "weather", arguments)
    made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return made

samples = [Sample(input=f"Weather in {city}?", target="21.5", id=name)
           for name, city in (("a", "Paris"), ("b", "Nowhere"), (3, "Rome"))]
task = Task(dataset=samples, solver=[use_tools(weather()), generate()], scorer=includes(), epochs=2)
for kind in ("json", "eval"):
    model = get_model("mockllm/model", custom_outputs=answer)
    [log] = eval(task, model=model, log_dir=sys.argv[1], log_format=kind, display="none",
                 max_samples=1, max_connections=1)
    assert log.status == "success", log.error
"""
READ_LOGS = """
import sys
from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries
for path in sys.argv[1:]:
    log = read_eval_log(path)
    first = log.samples[0]
    same = read_eval_log_sample(path, first.id, first.epoch)
    assert same.messages == first.messages
    assert len(read_eval_log_sample_summaries(path)) == len(log.samples)
    print(log.status, len(log.samples), len(first.messages), sorted(first.scores))
"""


@pytest.fixture(scope="module")
def inspect_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their program in an environment of its own, or in the one that is named."""
    named = os.environ.get("CALLMARK_INSPECT_PYTHON")
    if named:
        return Path(named)
    folder = tmp_path_factory.mktemp("inspect")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", INSPECT], check=True)
    return python


@pytest.mark.slow
def test_logs_that_inspect_wrote_are_imported_and_ours_open_in_its_reader(
    callmark, inspect_python, tmp_path
):
    logs = tmp_path / "logs"
    script = tmp_path / "write.py"
    script.write_text(WRITE_LOGS, "utf-8")
    subprocess.run([inspect_python, script, logs], check=True)
    written = sorted(logs.iterdir())
    assert sorted(path.suffix for path in written) == [".eval", ".json"]
    for path in written:
        kind = path.suffix.removeprefix(".")
        finished = callmark("dataset", "import", path, "--out", f"{kind}.jsonl")
        assert finished.returncode == 0, finished.stderr
        assert f"{kind}.jsonl: 3 samples" in finished.stdout
        scored = callmark("score", f"{kind}.answers.jsonl", "--in", f"{kind}.jsonl",
                          "--registry", f"{kind}.tools.json", "--out", f"{kind}.results.jsonl")  # fmt: skip
        assert scored.returncode in (0, 1, 5), scored.stderr
        lines = (tmp_path / f"{kind}.results.jsonl").read_text("utf-8").splitlines()
        results = [json.loads(line) for line in lines]
        statuses = {
            (one["sample_id"], one["trial"]): [call["status"] for call in one["tool_trace"]]
            for one in results
        }
        assert statuses == {
            (name, trial): [status]
            for name, status in (("a", "ok"), ("b", "error"), ("3", "error"))
            for trial in (0, 1)
        }
        for name in (f"{kind}-out.json", f"{kind}-out.eval"):
            callmark("dataset", "export", f"{kind}.results.jsonl", "--out", name)
    ours = sorted(tmp_path.glob("*-out.*"))
    read = subprocess.run(
        [inspect_python, "-c", READ_LOGS, *ours],
        check=True,
        capture_output=True,
        text=True,
    )
    assert [line.split()[:3] for line in read.stdout.splitlines()] == [["success", "6", "4"]] * 4
