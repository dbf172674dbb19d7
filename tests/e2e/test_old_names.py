"""The names of the earlier harness work from a checkout, installed or not."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATHS = {
    "a16": "eval/HARNESS.md",
    "a17": "eval/cli.py",
    "a18": "eval/config/eval.default.yaml",
    "a19": "eval/config/tools.allowlist.json",
    "a20": "eval/schemas/eval_prompt.schema.json",
    "a21": "eval/schemas/eval_result.schema.json",
    "a22": "eval/runners/base.py",
    "a22_f30_served": "eval/runners/openai_http.py",
    "a22_f30_local": "eval/runners/hf_local.py",
    "a23": "eval/tool_broker/broker.py",
    "a24_search": "eval/tool_broker/fixtures/web.search.jsonl",
    "a24_read": "eval/tool_broker/fixtures/read_file.jsonl",
    "a24_code": "eval/tool_broker/fixtures/code_exec.jsonl",
    "a25_scorer": "eval/scoring/scorer.py",
    "a25_metrics": "eval/scoring/metrics.py",
    "a26": "eval/reports/summarize.py",
    "a40": "eval/prompt_wrappers/minimal_system_user.j2",
    "a28": "data/contextual_final.s0.jsonl",
    "a28_f30": "data/contextual_final.jsonl",
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a16_to_a28_the_file_is_there(path):
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("path", [p for p in PATHS.values() if p.endswith((".json", ".jsonl"))])
def test_a24_json_files_parse(path):
    text = (ROOT / path).read_text("utf-8")
    for part in text.splitlines() if path.endswith("l") else [text]:
        json.loads(part)


@pytest.mark.parametrize(
    "code",
    [
        "from eval.runners.base import Runner, Reply, Failure, Conversation",
        "from eval.tool_broker.broker import ToolBroker\nToolBroker('eval/tool_broker/fixtures')",
        "from eval.scoring.scorer import score_item",
        "from eval.scoring.metrics import DEFINITIONS, Summariser, measures",
        "from eval.reports.summarize import summarize_results; assert callable(summarize_results)",
    ],
)
def test_a22_to_a26_imports_work_from_a_bare_checkout(python, code):
    """Without PYTHONPATH: `eval` itself finds the sources beside it, before any installed ones."""
    finished = python(
        "-c", f"{code}\nimport callmark; print(callmark.__file__)", cwd=ROOT, PYTHONPATH=""
    )
    assert finished.returncode == 0, finished.stderr
    assert Path(finished.stdout.strip()).is_relative_to(ROOT / "src")


def test_f30_a22_the_runners_have_their_old_names_and_need_no_torch(python):
    """The heavy modules are missing: importing a runner must not ask for them."""
    code = (
        "import sys\n"
        "for name in ('torch', 'transformers', 'peft', 'safetensors', 'tokenizers'):\n"
        "    sys.modules[name] = None\n"
        "from eval.runners.hf_local import LocalRunner, open_local\n"
        "from eval.runners.openai_http import OpenAIRunner, open_openai\n"
        "from callmark.plugins import find_runner\n"
        "assert find_runner('hf_local') is open_local\n"
        "assert find_runner('openai_http') is open_openai\n"
    )
    finished = python("-c", code, cwd=ROOT, PYTHONPATH="")
    assert finished.returncode == 0, finished.stderr


@pytest.mark.slow
def test_f30_f31_the_validators_dataset_fits_the_shipped_model_and_fixtures(python, tmp_path):
    """As printed, but with the answers that the shipped model gave."""
    finished = python(
        "-m", "eval.cli", "--in", "data/contextual_final.jsonl",
        "--fixtures", "eval/tool_broker/fixtures",
        "--runner", "replay", "--model", "src/callmark/data/tiny/answers.jsonl",
        "--out", tmp_path / "results.jsonl", "--report", tmp_path / "report.json",
        cwd=ROOT, PYTHONPATH="",
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_a17_the_old_command_answers(python):
    finished = python("-m", "eval.cli", "--help-all", cwd=ROOT, PYTHONPATH="")
    assert finished.returncode == 0, finished.stderr
    assert "--min-eligible-for-gates" in finished.stdout


def test_a18_the_values_of_the_default_file_are_the_defaults():
    import yaml

    from callmark.config import load_config

    shipped = yaml.safe_load((ROOT / PATHS["a18"]).read_text("utf-8"))
    config = load_config(None, {})
    for name, value in shipped.items():
        if name != "gates":
            found = getattr(config, name)
            assert (list(found) if isinstance(found, tuple) else found) == value, name
    assert config.gates[0].gates == shipped["gates"]


def test_no_file_exists_twice():
    """Below eval/ and data/ there are links into src, and Python files of a few lines."""
    for folder in ("eval", "data"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_symlink():
                assert not path.readlink().is_absolute(), path
                assert path.resolve().is_relative_to(ROOT / "src"), path
            elif path.suffix == ".py":
                assert len(path.read_text("utf-8").splitlines()) <= 16, path


@pytest.mark.slow
def test_a17_the_command_of_the_old_document_runs(python, tmp_path):
    """As it stands there, but for the runner, which here replays."""
    finished = python(
        "-m", "eval.cli",
        "--runner", "replay",
        "--model", "src/callmark/data/demo/answers.jsonl",
        "--in", "data/contextual_final.s0.jsonl",
        "--out", tmp_path / "results.s0.jsonl",
        "--report", tmp_path / "report.s0.json",
        "--fixtures", "eval/tool_broker/fixtures",
        "--seed", "42",
        "--temperature", "0.0",
        "--min-eligible-for-gates", "15",
        "--fail-on-fingerprint-mismatch",
        cwd=ROOT,
        PYTHONPATH="",
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    report = json.loads((tmp_path / "report.s0.json").read_bytes())
    assert re.fullmatch("[0-9a-f]{64}", report["header"]["dataset_sha256"])
    assert (
        len((tmp_path / "results.s0.jsonl").read_bytes().splitlines()) == report["counts"]["trials"]
    )
