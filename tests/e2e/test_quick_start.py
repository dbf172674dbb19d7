"""The quick-start commands of the earlier document, as printed there but for the model and its
endpoint. They run in a copy of the checkout, against a small server that plays a fixed model."""

import asyncio
import json
import shlex
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from callmark.resources import data_path, demo_paths
from callmark.run.doctor import PLAIN_PROMPT, PREFERRED_PROMPT
from callmark.runners.wrappers import DEFAULT_SYSTEM

ROOT = Path(__file__).parents[2]
TINY = data_path("tiny", "model")

SERVED = """
  --runner openai_http
  --model gpt-xyz
  --in data/contextual_final.s0.jsonl
  --out eval/results.s0.openai.jsonl
  --report eval/report.s0.openai.json
  --fixtures eval/tool_broker/fixtures
  --prompt-wrapper eval/prompt_wrappers/minimal_system_user.j2
  --seed 42
  --temperature 0.0
  --min-eligible-for-gates 15
  --fail-on-fingerprint-mismatch
"""
LOCAL = """
  --runner hf_local
  --model /models/my-checkpoint
  --in data/contextual_final.s0.jsonl
  --out eval/results.s0.local.jsonl
  --report eval/report.s0.local.json
  --fixtures eval/tool_broker/fixtures
  --seed 42
  --temperature 0.0
"""

SEARCH = {"name": "web.search", "arguments": {"q": "open issues parser"}, "turn": 1}
FIRST, LAST = {"start": 0, "end": 0}, {"start": 0, "end": 6}
DOCTORS = {
    PLAIN_PROMPT: {"model_output": "Hello.", "tool_trace": [], "turns": [LAST]},
    PREFERRED_PROMPT: {"model_output": "4,217.", "tool_trace": [SEARCH], "turns": [FIRST, LAST]},
}


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


class FixedModel:
    """Says in every conversation what the bundled answers say in it, and keeps all requests."""

    def __init__(self) -> None:
        paths = demo_paths()
        answers = {line["sample_id"]: line for line in lines_of(paths.answers)}
        self.requests: list[dict] = []
        self._openings: dict[str, tuple[int, dict]] = {}
        for item in lines_of(paths.dataset)[1:]:
            prompt = item["prompt"]
            opening = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
            spoken = sum(message["role"] == "assistant" for message in opening)
            self._openings[_key(opening)] = spoken, answers[item["metadata"]["sample_id"]]
        for prompt, answer in DOCTORS.items():
            self._openings[_key([{"role": "user", "content": prompt}])] = 0, answer

    def message(self, request: dict) -> dict:
        """The next turn. Only a prompt that arrived unchanged is known."""
        self.requests.append(request)
        messages = request["messages"]
        if messages[0] == {"role": "system", "content": DEFAULT_SYSTEM}:
            messages = messages[1:]
        prefixes = (_key(messages[:size]) for size in range(len(messages), 0, -1))
        spoken, answer = next(self._openings[key] for key in prefixes if key in self._openings)
        turn = sum(message["role"] == "assistant" for message in messages) - spoken + 1
        span = answer["turns"][turn - 1]
        text = answer["model_output"].encode()[span["start"] : span["end"]].decode()
        calls = [
            {
                "id": f"call_{turn}_{at}",
                "type": "function",
                "function": {
                    "name": call["name"].replace(".", "_"),
                    "arguments": json.dumps(call["arguments"]),
                },
            }
            for at, call in enumerate(answer["tool_trace"])
            if call["turn"] == turn
        ]
        called = {"tool_calls": calls} if calls else {}
        return {"role": "assistant", "content": text or None, **called}


def _key(messages: list[dict]) -> str:
    """Who said what: ids and spellings of earlier calls are a server's own."""
    return json.dumps([[message["role"], message.get("content") or ""] for message in messages])


class Server:
    """The fixed model behind an OpenAI-compatible endpoint, in a thread of its own."""

    def __init__(self, model: FixedModel) -> None:
        self.model = model
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Server":
        self._thread.start()
        self._is_up.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        from aiohttp import web

        async def complete(request: web.Request) -> web.Response:
            message = self.model.message(await request.json())
            finish = "tool_calls" if "tool_calls" in message else "stop"
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return web.json_response({"object": "chat.completion", "choices": [choice]})

        async def models(_: web.Request) -> web.Response:
            return web.json_response({"object": "list", "data": [{"id": "gpt-xyz"}]})

        application = web.Application()
        application.router.add_post("/v1/chat/completions", complete)
        application.router.add_get("/v1/models", models)
        runner = web.AppRunner(application)
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        port = runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}/v1"
        self._is_up.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(FixedModel()) as running:
        yield running


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the commands read and write, away from the real one."""
    shutil.copytree(ROOT / "eval", tmp_path / "eval", symlinks=True)
    shutil.copytree(ROOT / "data", tmp_path / "data", symlinks=True)
    (tmp_path / "src").symlink_to(ROOT / "src")
    return tmp_path


def evaluate(python, checkout, printed: str, *more: str, **environment: str):
    """`python -m eval.cli …`, from a bare checkout."""
    words = ["-m", "eval.cli", *shlex.split(printed), *more]
    return python(*words, cwd=checkout, PYTHONPATH="", **environment)


@pytest.fixture
def endpoint(server) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-none-needed"}


@pytest.mark.slow
def test_every_flag_as_printed_is_known(python, checkout):
    """With the runner that is always there: nothing of the command line itself is refused."""
    for printed in (SERVED, LOCAL):
        answers = f"--runner replay --model {demo_paths().answers} --dry-run"
        finished = evaluate(python, checkout, printed, *answers.split())
        assert finished.returncode == 0, finished.stderr
        found = json.loads(finished.stdout)
        assert (found["decoding"]["seed"], found["decoding"]["temperature"]) == (42, 0.0)
        wrapped = found["fingerprints"]["prompt_wrapper_sha256"]
        assert (wrapped is not None) == ("--prompt-wrapper" in printed)


def test_a68_the_served_command_runs_as_printed(python, checkout, server, endpoint):
    finished = evaluate(python, checkout, SERVED, **endpoint)
    assert finished.returncode == 0, finished.stderr + finished.stdout
    results = lines_of(checkout / "eval/results.s0.openai.jsonl")
    recorded = {line["sample_id"]: line["model_output"] for line in lines_of(demo_paths().answers)}
    assert {line["sample_id"]: line["model_output"] for line in results} == recorded
    report = json.loads((checkout / "eval/report.s0.openai.json").read_bytes())
    assert (report["verdict"], report["header"]["runner"]) == ("pass", "openai_http")
    first = server.model.requests[0]
    assert first["messages"][0] == {"role": "system", "content": DEFAULT_SYSTEM}
    assert (first["model"], first["seed"], first["temperature"]) == ("gpt-xyz", 42, 0.0)
    assert "sk-none-needed" not in json.dumps(report) + json.dumps(results)


@pytest.mark.slow
def test_a46_the_sharded_command_runs_as_printed(python, checkout, endpoint):
    """Four shards into four files, which together hold every sample once."""
    found: list[str] = []
    for shard in range(4):
        more = f"--num-shards 4 --shard-index {shard} --out eval/results.s0.{shard}.jsonl"
        finished = evaluate(python, checkout, SERVED, *more.split(), **endpoint)
        assert finished.returncode in (0, 1, 5), finished.stderr  # few samples behind its gates
        results = lines_of(checkout / f"eval/results.s0.{shard}.jsonl")
        found += [line["sample_id"] for line in results]
    asked = [item["metadata"]["sample_id"] for item in lines_of(demo_paths().dataset)[1:]]
    assert sorted(found) == sorted(asked)


DOCTOR = "-m callmark doctor --runner openai_http --model gpt-xyz --max-retries 0"


def test_the_doctor_finds_the_served_model_well(python, checkout, endpoint):
    finished = python(*DOCTOR.split(), "--json", cwd=checkout, **endpoint)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    findings = json.loads(finished.stdout)["findings"]
    assert findings["calls_tools"]["found"].endswith("as a structured call")
    assert findings["uses_results"]["verdict"] == "ok"
    assert findings["equal_on_repeat"]["found"] == "0 of 5 repeats differ (0%)"


@pytest.mark.slow
def test_the_doctor_says_that_nobody_is_there(python, checkout):
    finished = python(*DOCTOR.split(), "--base-url", "http://127.0.0.1:9/v1", cwd=checkout)
    assert finished.returncode == 4, finished.stdout + finished.stderr
    assert finished.stdout.startswith("WRONG reachable")


@pytest.mark.slow
def test_a69_the_local_command_runs_as_printed(python, checkout):
    printed = LOCAL.replace("/models/my-checkpoint", str(TINY))
    finished = evaluate(python, checkout, printed)
    assert finished.returncode in (0, 1), finished.stderr
    results = lines_of(checkout / "eval/results.s0.local.jsonl")
    assert [line["status"] for line in results] == ["ok"] * len(lines_of(demo_paths().answers))
    report = json.loads((checkout / "eval/report.s0.local.json").read_bytes())
    assert report["header"]["runner"] == "hf_local"
