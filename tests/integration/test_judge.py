"""`examples/judge.py`: a model's opinion beside the numbers, through any runner, asked once."""

import json
import shutil
from pathlib import Path

import pytest
from tests.endpoints import Request, Server, completion

from callmark.cli import main
from callmark.resources import starter_paths

JUDGE = Path(__file__).parents[2] / "examples" / "judge.py"


def strict_judge(request: Request):
    """Says no to every refund, and nothing that can be read to one question."""
    asked = request.messages[-1]["content"]
    if "total-W100" in asked or "order W100?" in asked:
        return completion("I cannot tell.")
    return completion("No." if "refund" in asked.split("Answer:")[1] else "Yes, it does.")


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(JUDGE, tmp_path / "judge.py")
    with Server(strict_judge) as server:
        (tmp_path / "judge.yaml").write_text(
            f"runner: openai_http\nmodel: judge-1\nbase_url: {server.url}\ncache: judged\n"
        )
        yield server


def words(out: str) -> list[str]:
    shipped = starter_paths()
    return [
        "run", "--in", str(shipped.dataset), "--fixtures", str(shipped.fixtures), "--registry",
        str(shipped.registry), "--model", str(shipped.answers), "--out", out, "--plugin",
        "judge.py", "--no-html", "--verbose",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_judge_is_asked_once_warns_and_never_fails(project, tmp_path, capsys):
    assert main(words("one/results.jsonl")) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("PASS")
    report = json.loads((tmp_path / "one/report.json").read_text())
    metric = report["metrics"]["judge.model_says_yes"]
    assert metric["denominator"] == 17  # 18 samples; of one it could not tell
    assert metric["numerator"] == 15
    (gate,) = [one for one in report["gates"] if one["name"] == "judge.model_says_yes"]
    assert (gate["policy"], gate["status"]) == ("warning_only", "pass")
    assert "judge" in json.dumps(report["provenance"]["plugins"])
    asked = len(project.requests)
    assert asked == 18
    assert main(["score", "one/results.jsonl", "--plugin", "judge.py", "--quiet"]) == 0
    assert len(project.requests) == asked


@pytest.mark.slow
def test_a_judge_can_be_asked_afterwards_and_only_warns(project, tmp_path, capsys):
    plain = [word for word in words("two/results.jsonl") if word not in ("--plugin", "judge.py")]
    assert main(plain) == 0
    gate = ["--gate", "judge.model_says_yes=0.95"]
    assert main(["score", "two/results.jsonl", "--plugin", "judge.py", *gate]) == 0
    shown = capsys.readouterr().out
    assert "judge.model_says_yes" in shown.partition("warnings")[2]


def test_the_judge_is_some_twenty_lines():
    code = JUDGE.read_text("utf-8").partition("@callmark.scorer")[2]
    assert len(code.splitlines()) <= 20
