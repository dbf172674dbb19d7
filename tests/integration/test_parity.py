"""One model, served by somebody else's server and run locally: the same evaluation."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from callmark.cli import dispatch
from callmark.resources import shipped_model

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_shipped_model_scores_alike_served_and_local(tmp_path):
    """`make ci-parity`: transformers serve and hf_local, macro F1 within 0.03."""
    (tmp_path / ".ci").symlink_to(ROOT / ".ci")
    finished = subprocess.run(
        [sys.executable, "-m", "dev.prove.parity"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "POINT CHECK OK" in finished.stdout


def test_ci_parity_fails_on_a_model_that_answers_worse(tmp_path):
    """Breaking the hook on purpose: one side with its answers taken away."""
    shipped = shipped_model()
    good = shipped.answers
    silent = tmp_path / "silent.jsonl"
    lines = good.read_text("utf-8").splitlines()
    silent.write_text(
        "".join(
            json.dumps({"sample_id": json.loads(line)["sample_id"], "model_output": ""}) + "\n"
            for line in lines
        )
    )
    runs = []
    for name, answers in (("good", good), ("silent", silent)):
        out = tmp_path / name / "results.jsonl"
        dispatch(
            ["run", "--in", str(shipped.dataset), "--fixtures", str(shipped.fixtures), "--out", str(out),
             "--runner", "replay", "--model", str(answers), "--quiet"]
        )  # fmt: skip
        runs.append(str(out))
    finished = subprocess.run(
        [sys.executable, "-m", "dev.prove.parity", *runs],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1, finished.stdout + finished.stderr


@pytest.mark.slow
def test_somebody_elses_server_answers_alike_through_both_of_its_protocols(tmp_path, monkeypatch):
    """`transformers serve` speaks chat completions and Responses; the shipped model says the same,
    calls the same and takes as many tokens."""
    from dev.prove.serving import served

    monkeypatch.chdir(tmp_path)
    shipped = shipped_model()
    found, spent = {}, {}
    with served(shipped.folder, tmp_path / "server") as url:
        for runner in ("openai_http", "openai_responses"):
            out = tmp_path / runner / "results.jsonl"
            dispatch(
                ["run", "--config", str(ROOT / ".ci" / "parity.yaml"), "--runner", runner,
                 "--model", str(shipped.folder), "--base-url", url, "--in", str(shipped.dataset),
                 "--fixtures", str(shipped.fixtures), "--out", str(out), "--limit", "6", "--quiet"]
            )  # fmt: skip
            lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
            assert {line["status"] for line in lines} == {"ok"}
            found[runner] = [
                (
                    line["model_output"],
                    [(one["name"], one["arguments"]) for one in line["tool_trace"]],
                )
                for line in lines
            ]
            timing = Path(f"{out}.timing.jsonl").read_text("utf-8").splitlines()
            spent[runner] = sorted(
                (one["sample_id"], one["prompt_tokens"], one["completion_tokens"])
                for one in map(json.loads, timing)
            )
    assert found["openai_http"] == found["openai_responses"]
    assert spent["openai_http"] == spent["openai_responses"]
