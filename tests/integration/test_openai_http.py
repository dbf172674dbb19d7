"""Whole runs against a real server on this machine: what it is sent, what becomes of its answers,
and what is seen and shown of it."""

import json
import os
import re
import signal
import subprocess
import sys
import threading

import pytest
from tests.builders import ROOT
from tests.endpoints import Answer, Server, city_model, completion, error
from tests.integration.conftest import Project, journalled, write_lines
from tests.integration.served import KEY, Script, one_sample, served, short_waits  # noqa: F401

from callmark.errors import FingerprintMismatch

# What goes out, what comes back


def test_a68_a71_a_served_model_calls_reads_and_answers(project):
    with Server(city_model) as server:
        outcome = project.run(**served(server))
    assert outcome.exit_code == 0
    assert outcome.report.verdict == "pass"
    result = project.results()[0]
    assert result["model_output"] == "There live 1000 people there."
    [call] = result["tool_trace"]
    assert (call["name"], call["status"], call["turn"]) == ("web.search", "ok", 1)
    second = next(one for one in server.requests if one.messages[-1]["role"] == "tool")
    assistant, tool = second.messages[-2:]
    assert assistant["tool_calls"][0]["function"]["name"] == "web_search"
    assert assistant["tool_calls"][0]["id"] == tool["tool_call_id"]
    assert json.loads(tool["content"])["count"]


def test_a70_the_same_run_twice_gives_the_same_bytes(project):
    files = []
    for limit in (1, 64):
        with Server(city_model) as server:
            project.run(**served(server, max_connections=limit))
        files.append(project.out.read_bytes())
    assert files[0] == files[1]


def test_d39_controls_are_offered_tools_too(project):
    with Server(city_model) as server:
        project.run(**served(server))
        assert all(request.body["tools"] for request in server.requests)


def test_the_environment_names_endpoint_and_key(project, monkeypatch):
    with Server(city_model) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        project.run(runner="openai_http", model="stub")
        assert {one.headers["authorization"] for one in server.requests} == {f"Bearer {KEY}"}


def test_headers_and_body_fields_of_the_config_go_along(project, monkeypatch):
    monkeypatch.setenv("TEAM", "a-team-of-ours")
    settings = {
        "headers": {"X-Team": "${TEAM}"},
        "extra_body": {"top_k": 5, "user": "${TEAM}"},
        "temperature": None,
    }
    with Server(city_model) as server:
        first = project.run(**served(server, **settings)).report.header
        request = server.requests[0]
        monkeypatch.setenv("TEAM", "another-team")
        second = project.run(**served(server, **settings)).report.header
        third = project.run(**served(server, extra_body={"top_k": 6})).report.header
    assert request.headers["x-team"] == "a-team-of-ours"
    assert (request.body["top_k"], request.body["user"]) == (5, "a-team-of-ours")
    assert "temperature" not in request.body
    # What came out of the environment is no part of the fingerprint, what was written is.
    assert first.runner_fingerprint == second.runner_fingerprint != third.runner_fingerprint


def test_a62_the_model_fingerprint_is_name_and_revision(project):
    with Server(city_model) as server:
        seen = {
            project.run(**served(server, **more)).report.header.model_fingerprint
            for more in ({}, {"model": "other"}, {"model_revision": "2"}, {"max_connections": 3})
        }
    assert len(seen) == 3


def test_calls_left_in_the_text_are_found(tmp_path):
    project = one_sample(tmp_path)
    text = '<tool_call>{"name": "web_search", "arguments": {"q": "city 0"}}</tool_call>'
    with Server(Script(completion(text), completion("There live 1000 people."))) as server:
        project.run(**served(server))
    [result] = project.results()
    assert result["tool_trace"][0]["status"] == "ok"
    assert result["model_output"] == "There live 1000 people."


def test_reasoning_is_kept_apart_and_goes_back(tmp_path):
    project = one_sample(tmp_path)
    thinking = completion(
        None, [("web_search", {"q": "city 0"})], message={"reasoning_content": "I search."}
    )
    with Server(Script(thinking, completion("1000 people."))) as server:
        project.run(**served(server))
        assert server.requests[1].messages[1]["reasoning_content"] == "I search."
    [result] = project.results()
    assert (result["reasoning"], result["model_output"]) == ("I search.", "1000 people.")


def test_d36_d58_a_broken_call_is_an_attempt_and_the_model_is_told(tmp_path):
    project = one_sample(tmp_path)
    answers = Script(completion(None, [("web_search", '{"q": "city')]), completion("Sorry."))
    with Server(answers) as server:
        project.run(**served(server))
        assert "could not be read" in server.requests[1].messages[-1]["content"]
    [result] = project.results()
    assert result["tool_trace"][0]["status"] == "malformed"
    assert result["scores"]["json_args_valid"] is False


@pytest.mark.parametrize(
    ("answer", "stop"),
    [
        (completion("There live 10", finish="length"), "truncated"),
        (completion("", finish="content_filter"), "filtered"),
        (error(400, "maximum context length is 10 tokens", code="context_length_exceeded"), "context_exceeded"),
        (completion("I do not know."), "answer"),
    ],
)  # fmt: skip
def test_outcomes_of_the_model_are_scored_and_flagged(tmp_path, answer, stop):
    project = one_sample(tmp_path)
    with Server(Script(answer)) as server:
        project.run(**served(server))
        assert len(server.requests) == 1
    [result] = project.results()
    assert (result["status"], result["stop"]) == ("ok", stop)
    assert result["scores"] is not None


NASTY = [
    "quotes \" and ' and `",
    "line\nends\r\nand\ttabs",
    "back\\slash \\n \\u0041",
    "{{ user }} {% raw %} $user ${HOME} $$",
    "emoji 🧑‍🔬 and שלום and مرحبا",
    "\u202ereversed\u202c \ufeff zero\u200bwidth \x00 \x1f",
    "x" * 50_000,
]


def test_every_prompt_arrives_unchanged(tmp_path):
    project = Project(tmp_path, size=1)
    project.write(
        [
            {"prompt": text, "metadata": {"sample_id": str(at)}, "user_turns": [text]}
            for at, text in enumerate(NASTY)
        ]
    )
    with Server(Script(completion("ok"))) as server:
        project.run(**served(server, max_connections=1))
        sent = [request.messages for request in server.requests]
    assert [one[0]["content"] for one in sent[::2]] == NASTY
    assert [one[-1]["content"] for one in sent[1::2]] == NASTY


# How many at once


def test_max_connections_is_a_bound(large_project):
    with Server(lambda request: Answer(**{**vars(city_model(request)), "before": 0.01})) as server:
        outcome = large_project.run(**served(server, max_connections=7))
        assert server.most == 7
    assert outcome.report.timing.more["highest_concurrency"] == 7


def test_a_busy_server_is_asked_less(tmp_path):
    """It bears four at once and says so: the run finds that out, and finishes."""
    project = Project(tmp_path, size=150)

    def bears_four(request):
        if server.under_way > 4:
            return error(429)
        return Answer(**{**vars(city_model(request)), "before": 0.002})

    with Server(bears_four) as server:
        outcome = project.run(**served(server, max_retries=30))
    assert outcome.exit_code == 0
    more = outcome.report.timing.more
    assert more["retries"] > 0
    assert more["requests"] < 3 * 270


# What is seen and shown


def test_provenance_and_tokens(project):
    with Server(
        lambda request: Answer(body={**city_model(request).body, "system_fingerprint": "fp1"})
    ) as server:
        url = server.url.replace("//", "//me:topsecret1@")
        report = project.run(runner="openai_http", model="stub", base_url=url).report
    assert report.provenance["base_url"] == server.url
    assert report.provenance["served_models"] == ["stub"]
    assert report.provenance["system_fingerprints"] == ["fp1"]
    requests = report.timing.more["requests"]
    assert requests == len(server.requests) == 45
    assert report.timing.more["prompt_tokens"] == 20 * requests
    assert report.timing.more["completion_tokens"] == 5 * requests
    assert b"topsecret1" not in project.out.read_bytes() + project.report.read_bytes()


def changing(request):
    fingerprint = "fp2" if "city 9?" in request.messages[0]["content"] else "fp1"
    return Answer(body={**city_model(request).body, "system_fingerprint": fingerprint})


def test_another_system_fingerprint_is_a_warning_and_in_determinism_mode_a_failure(project):
    with Server(changing) as server:
        [warning] = project.run(**served(server)).report.warnings
        assert "fp1, fp2" in warning
        with pytest.raises(FingerprintMismatch, match="fp1, fp2"):
            project.run(**served(server, determinism_mode=True))


def echo(request):
    """A server that puts all that it was sent into its error."""
    return Answer(
        500, {"error": {"message": json.dumps(dict(request.headers)), "more": request.body}}
    )


def test_the_key_reaches_no_file_no_message_no_output(tmp_path, project):
    header = {"X-Api-Key": "${OTHER_SECRET}", "X-Plain": "plain"}
    config = {"headers": header, "extra_body": {"user": "${THIRD_SECRET}"}, "max_retries": 0}
    (tmp_path / "callmark.yaml").write_text(json.dumps(config))
    secrets = {
        "OPENAI_API_KEY": KEY,
        "OTHER_SECRET": "another-secret-1234",
        "THIRD_SECRET": 'third/"secret"-1234',
    }
    with Server(echo, models=Answer(body=b"")) as server:
        words = ["--in", project.dataset, "--runner", "openai_http", "--model", "stub"]
        place = server.url.replace("//", "//name:pass-word-1234@")
        done = subprocess.run(
            [sys.executable, "-m", "callmark", "run", *map(str, words), "--base-url", place],
            cwd=tmp_path,
            env={**os.environ, **secrets, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            check=False,
        )
        assert server.requests[0].headers["x-api-key"] == "another-secret-1234"
    assert done.returncode == 4
    shown = [done.stdout, done.stderr]
    shown += [
        path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file() and path.suffix != ".yaml"
    ]
    assert any(b"x-plain" in text for text in shown)
    for secret in (*secrets.values(), "pass-word-1234", "bmFtZTpwYXNzLXdvcmQtMTIzNA=="):
        for text in shown:
            assert secret.encode() not in text
            assert json.dumps(secret)[1:-1].encode() not in text


def test_a_key_in_an_answer_is_taken_out(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project = one_sample(tmp_path)
    with Server(
        lambda request: completion(f"Your key is {request.headers['authorization']}.")
    ) as server:
        project.run(**served(server))
    [result] = project.results()
    assert result["model_output"] == "Your key is Bearer ***."


# Ctrl-C


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    project = Project(tmp_path, size=60)
    count = iter(range(1000))

    def slow_after_a_while(request):
        if next(count) == 30:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        if next(count) > 30:
            return Answer(before=9.0)
        return city_model(request)

    with Server(slow_after_a_while) as server:
        outcome = project.run(**served(server, max_connections=8))
    assert outcome.exit_code == 130
    assert outcome.report.complete is False
    kept = journalled(project.out)
    assert kept
    assert all(line["status"] == "ok" for line in kept)
    with Server(city_model) as server:
        assert project.run(**served(server, resume=True)).exit_code == 0
    assert re.match(rb'\{"index":0,', project.out.read_bytes())


def test_results_of_a_served_model_can_be_replayed(project):
    with Server(city_model) as server:
        first = project.run(**served(server)).report
    recorded = write_lines(project.folder / "recorded.jsonl", project.results())
    second = project.run(runner="replay", model=str(recorded)).report
    looked_up = {"fixture_hit_rate"}  # recorded results are not looked up again
    for name in first.metrics.keys() - looked_up:
        assert first.metrics[name] == second.metrics[name], name
