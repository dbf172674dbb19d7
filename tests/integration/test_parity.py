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


@pytest.mark.slow
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


def outcome_of(runner, url, model, out, *more):
    """What was said and called, and what it took, of the first samples of the shipped dataset."""
    shipped = shipped_model()
    place = [] if url is None else ["--base-url", url]
    dispatch(
        ["run", "--config", str(ROOT / ".ci" / "parity.yaml"), "--runner", runner, *place,
         "--model", model, "--in", str(shipped.dataset), "--fixtures", str(shipped.fixtures),
         "--out", str(out), "--limit", "6", "--quiet", *more]
    )  # fmt: skip
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert {line["status"] for line in lines} == {"ok"}
    said = [
        (line["model_output"], [(one["name"], one["arguments"]) for one in line["tool_trace"]])
        for line in lines
    ]
    timing = Path(f"{out}.timing.jsonl")  # an answer from a cache takes nothing
    spent = sorted(
        (one["sample_id"], one["prompt_tokens"], one["completion_tokens"])
        for one in map(
            json.loads, timing.read_text("utf-8").splitlines() if timing.exists() else ()
        )
    )
    return said, spent


@pytest.mark.slow
def test_somebody_elses_server_answers_alike_through_both_of_its_protocols(tmp_path, monkeypatch):
    """`transformers serve` speaks chat completions and Responses; the shipped model says the same,
    calls the same and takes as many tokens."""
    from dev.prove.serving import served

    monkeypatch.chdir(tmp_path)
    folder = shipped_model().folder
    with served(folder, tmp_path / "server") as url:
        chat, responses = (
            outcome_of(runner, url, str(folder), tmp_path / runner / "results.jsonl")
            for runner in ("openai_http", "openai_responses")
        )
    assert chat == responses


LITELLM = ROOT / "build" / "litellm" / "bin" / "litellm"


@pytest.mark.slow
@pytest.mark.skipif(not LITELLM.exists(), reason="`make test-slow` installs litellm")
def test_a_proxy_answers_alike_through_all_three_protocols(tmp_path, monkeypatch):
    """litellm's proxy in front of `transformers serve`: the shipped model says and calls the same
    over chat completions, Responses and Messages, without the proxy, out of a cache, and locally."""
    from dev.prove.serving import PROXIED_MODEL, PROXY_KEY, proxied, served

    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, PROXY_KEY)
    folder, found = shipped_model().folder, {}
    with served(folder, tmp_path / "server") as backend:
        direct = outcome_of("openai_http", backend, str(folder), tmp_path / "direct.jsonl")
        with proxied(LITELLM, folder, backend, tmp_path / "proxy") as url:
            for runner in ("openai_http", "openai_responses", "anthropic_messages"):
                out, cache = (
                    tmp_path / runner / "results.jsonl",
                    ("--cache", str(tmp_path / "kept")),
                )
                found[runner] = outcome_of(runner, url, PROXIED_MODEL, out, *cache)
                again = outcome_of(runner, url, PROXIED_MODEL, out, *cache, "--restart")
                assert again == (found[runner][0], [])
    found["hf_local"] = outcome_of("hf_local", None, str(folder), tmp_path / "local.jsonl")
    assert {runner: said for runner, (said, _) in found.items()} == dict.fromkeys(found, direct[0])
    assert {runner: spent for runner, (_, spent) in found.items()} == dict.fromkeys(
        found, direct[1]
    )
