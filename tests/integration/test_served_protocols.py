"""The three protocols of served models: one result, one set of rules for what goes wrong."""

import json

import pytest
from tests.endpoints import Answer, Server, city_model, completion, error, speaking
from tests.integration.conftest import Project
from tests.integration.served import KEY, Script, one_sample, short_waits  # noqa: F401

from callmark.cli import main
from callmark.config import load_config
from callmark.errors import UsageError
from callmark.run.doctor import examine_runner
from callmark.view.catalogue import _Walk

PROTOCOLS = ("openai_http", "openai_responses", "anthropic_messages")
OTHERS = PROTOCOLS[1:]
PATHS = dict(zip(PROTOCOLS, ("/v1/chat/completions", "/v1/responses", "/v1/messages"), strict=True))


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def served_by(protocol, server, **settings) -> dict:
    return {"runner": protocol, "model": "stub", "base_url": server.url, **settings}


def without_origin(lines) -> list:
    """Arguments that came as an object have no blanks of their own."""
    for line in lines:
        for name in ("fingerprints", "reasoning"):
            line.pop(name, None)
        for entry in line["tool_trace"]:
            entry["raw"] = json.loads(entry["raw"])
    return lines


def test_the_same_model_gives_the_same_results_through_all_protocols(project):
    found = {}
    for protocol in PROTOCOLS:
        with Server(speaking(protocol, city_model)) as server:
            outcome = project.run(**served_by(protocol, server, restart=True))
            assert outcome.exit_code == 0
            assert {request.path for request in server.requests} == {PATHS[protocol]}
            more = outcome.report.timing.more
            assert more["prompt_tokens"] == 20 * more["requests"]
        found[protocol] = without_origin(project.results())
        project.out.unlink()
    assert found["openai_http"] == found["openai_responses"] == found["anthropic_messages"]


@pytest.mark.parametrize("protocol", OTHERS)
def test_what_was_thought_goes_back_and_a_cache_keeps_it(tmp_path, protocol):
    project = Project(tmp_path, size=4)
    cache = str(tmp_path / "cache")
    with Server(speaking(protocol, city_model)) as server:
        project.run(**served_by(protocol, server, cache=cache))
        second = [
            request.body
            for request in server.requests
            if len(request.body.get("input", request.body.get("messages"))) > 1
        ]
        assert len(second) == 4
        assert all(
            ("gAAA1==" in json.dumps(body)) or ("Er1==" in json.dumps(body)) for body in second
        )
        lines, asked = project.out.read_bytes(), len(server.requests)
        project.out.unlink()
        project.run(**served_by(protocol, server, cache=cache, restart=True))
        assert len(server.requests) == asked
        assert project.out.read_bytes() == lines


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "trouble",
    [
        error(529, "Overloaded", type="overloaded_error"),
        error(429, "rate", type="rate_limit_error", headers={"Retry-After": "0"}),
        error(500, "oops", type="api_error"),
        Answer(body=b"no json"),
        Answer(body={}),
    ],
)
def test_what_may_pass_is_tried_again(tmp_path, protocol, trouble):
    project = one_sample(tmp_path)
    troubles = iter([trouble])
    with Server(
        lambda request: next(troubles, None) or speaking(protocol, city_model)(request)
    ) as server:
        assert project.run(**served_by(protocol, server)).report.complete
        assert len(server.requests) == 3
    [line] = project.results()
    assert line["status"] == "ok"


@pytest.mark.parametrize("protocol", OTHERS)
def test_determinism_mode_takes_a_retry_for_a_failure(tmp_path, protocol):
    project = one_sample(tmp_path)
    with Server(Script(error(529, "Overloaded"))) as server:
        project.run(**served_by(protocol, server, determinism_mode=True, max_errors=1))
        assert len(server.requests) == 1
        [body] = [request.body for request in server.requests]
    assert body["temperature"] == 0
    assert ("top_p" in body) == (protocol == "openai_responses")
    [line] = project.results()
    assert "determinism mode" in line["error"]


def test_the_key_of_anthropic_comes_from_its_own_variable_and_is_never_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-house-123")
    project = one_sample(tmp_path)
    told = {
        "type": "message",
        "content": [
            {"type": "text", "text": f"The key is {KEY}."},
            {"type": "thinking", "thinking": KEY, "signature": "x"},
        ],
        "stop_reason": "end_turn",
    }
    with Server(Script(Answer(body=told))) as server:
        project.run(**served_by("anthropic_messages", server))
        [request] = server.requests
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY.encode() not in written
    assert project.results()[0]["model_output"] == "The key is ***."


@pytest.mark.parametrize(
    ("protocol", "variable"),
    [("openai_responses", "OPENAI"), ("anthropic_messages", "ANTHROPIC")],
)
def test_messages_name_the_variables_of_the_protocol(tmp_path, protocol, variable):
    project = one_sample(tmp_path)
    with pytest.raises(UsageError, match=f"{variable}_BASE_URL"):
        project.run(runner=protocol, model="m")
    with (
        Server(Script(error(401, "no key"))) as server,
        pytest.raises(UsageError, match=f"{variable}_API_KEY"),
    ):
        project.run(**served_by(protocol, server))
    with (
        Server(Script(Answer(404, b"<html>"))) as server,
        pytest.raises(UsageError, match=PATHS[protocol][3:]),
    ):
        project.run(**served_by(protocol, server))


def test_a_server_that_runs_tools_of_its_own_is_reported_and_not_scored(tmp_path):
    project = one_sample(tmp_path)
    found = {
        "type": "message",
        "content": [
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
            {"type": "text", "text": "Many."},
        ],
        "stop_reason": "end_turn",
    }
    with Server(Script(Answer(body=found))) as server:
        outcome = project.run(**served_by("anthropic_messages", server))
    assert outcome.report.provenance["server_tools"] == ["web_search"]
    assert any(
        "tools of its own" in one and "web_search (1)" in one for one in outcome.report.warnings
    )
    assert project.results()[0]["tool_trace"] == []


def test_a_paused_turn_is_gone_on_with(tmp_path):
    project = one_sample(tmp_path)
    pause = {
        "type": "message",
        "content": [
            {"type": "text", "text": "Let me see."},
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        ],
        "stop_reason": "pause_turn",
        "usage": {"input_tokens": 7, "output_tokens": 3},
    }
    end = {
        "type": "message",
        "content": [{"type": "text", "text": "There live 1000 people there."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 9, "output_tokens": 4},
    }
    with Server(Script(Answer(body=pause), Answer(body=end))) as server:
        project.run(**served_by("anthropic_messages", server))
        first, second = server.requests
    assert second.body["messages"][:-1] == first.body["messages"]
    assert second.body["messages"][-1] == {"role": "assistant", "content": pause["content"]}
    assert project.results()[0]["model_output"] == "Let me see.\nThere live 1000 people there."


def test_a_server_that_pauses_for_ever_costs_one_trial(tmp_path):
    project = one_sample(tmp_path)
    pause = {
        "type": "message",
        "content": [{"type": "text", "text": "…"}],
        "stop_reason": "pause_turn",
    }
    with Server(Script(Answer(body=pause))) as server:
        project.run(**served_by("anthropic_messages", server, max_errors=1))
        assert len(server.requests) == 11
    assert "paused" in project.results()[0]["error"]


def test_calls_in_the_text_of_a_thinking_model_go_back_as_calls(tmp_path):
    """The server parsed nothing: thinking goes back as it came, the call as one of ours."""
    project = one_sample(tmp_path)
    wrote = '<tool_call>{"name": "web_search", "arguments": {"q": "city 0"}}</tool_call>'
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    message = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": wrote, "annotations": []}],
    }
    end = {**message, "content": [{"type": "output_text", "text": "There live 1000 people there."}]}
    with Server(
        Script(Answer(body={"output": [thought, message]}), Answer(body={"output": [end]}))
    ) as server:
        project.run(**served_by("openai_responses", server))
        sent = server.requests[-1].body["input"]
    assert sent[1] == thought
    assert [item.get("type") for item in sent[2:]] == ["function_call", "function_call_output"]
    assert sent[2]["call_id"] == sent[3]["call_id"]
    assert project.results()[0]["model_output"] == "There live 1000 people there."


@pytest.mark.parametrize("status", ["completed", "complete", None])
def test_however_a_server_says_that_it_is_done(tmp_path, status):
    project = one_sample(tmp_path)
    said = {"type": "message", "content": [{"type": "output_text", "text": "Yes."}]}
    with Server(Script(Answer(body={"status": status, "output": [said]}))) as server:
        project.run(**served_by("openai_responses", server))
    assert (project.results()[0]["model_output"], project.results()[0]["stop"]) == (
        "Yes.",
        "answer",
    )


@pytest.mark.parametrize(
    ("protocol", "body", "stop"),
    [
        (
            "openai_responses",
            {
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
                "output": [],
            },
            "truncated",
        ),
        (
            "openai_responses",
            {
                "status": "incomplete",
                "incomplete_details": {"reason": "content_filter"},
                "output": [],
            },
            "filtered",
        ),
        (
            "openai_responses",
            {"status": "incomplete", "incomplete_details": None, "output": []},
            "truncated",
        ),
        (
            "openai_responses",
            {
                "status": "failed",
                "output": [],
                "error": {"code": "invalid_prompt", "message": "flagged"},
            },
            "filtered",
        ),
        (
            "openai_responses",
            {
                "error": {
                    "code": "context_length_exceeded",
                    "message": "Your input exceeds the context window of this model.",
                }
            },
            "context_exceeded",
        ),
        (
            "anthropic_messages",
            {"type": "message", "content": [], "stop_reason": "max_tokens"},
            "truncated",
        ),
        (
            "anthropic_messages",
            {"type": "message", "content": [], "stop_reason": "model_context_window_exceeded"},
            "truncated",
        ),
        (
            "anthropic_messages",
            {"type": "message", "content": [], "stop_reason": "refusal"},
            "filtered",
        ),
        (
            "anthropic_messages",
            {
                "type": "message",
                "content": [{"type": "text", "text": "a"}],
                "stop_reason": "stop_sequence",
            },
            "answer",
        ),
        (
            "anthropic_messages",
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "prompt is too long: 210000 tokens > 200000 maximum",
                },
            },
            "context_exceeded",
        ),
    ],
)
def test_how_a_turn_ends(tmp_path, protocol, body, stop):
    project = one_sample(tmp_path)
    with Server(Script(Answer(body=body))) as server:
        project.run(**served_by(protocol, server))
    [line] = project.results()
    assert (line["status"], line["stop"]) == ("ok", stop)


def test_errors_inside_a_good_response_follow_the_same_rules(tmp_path):
    failed = {
        "status": "failed",
        "output": [],
        "error": {"code": "server_error", "message": "oops"},
    }
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    for number, (protocol, body) in enumerate(zip(OTHERS, (failed, busy), strict=True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        project = one_sample(folder)
        with Server(
            Script(
                Answer(body=body),
                speaking(protocol, lambda _: completion("Yes."))(_request(protocol)),
            )
        ) as server:
            assert project.run(**served_by(protocol, server)).report.complete
            assert len(server.requests) == 2


def _request(protocol):
    from tests.endpoints import Request

    spoken = [{"role": "user", "content": "?"}]
    return Request("POST", "", {}, {"input": spoken, "messages": spoken})


def test_a_model_without_reasoning_says_what_to_leave_out(tmp_path):
    project = one_sample(tmp_path)
    refused = error(400, "Encrypted content is not supported with this model.", param=None)
    with (
        Server(Script(refused)) as server,
        pytest.raises(UsageError, match=r"extra_body: \{include: null\}"),
    ):
        project.run(**served_by("openai_responses", server))
    with Server(speaking("openai_responses", city_model)) as server:
        project.run(
            **served_by("openai_responses", server, extra_body={"include": None}, restart=True)
        )
        assert all("include" not in request.body for request in server.requests)


def test_an_empty_account_ends_the_run_and_keeps_what_is_done(tmp_path):
    project = one_sample(tmp_path)
    broke = error(
        400,
        "Your credit balance is too low to access the Anthropic API.",
        type="invalid_request_error",
    )
    with Server(Script(broke)) as server:
        with pytest.raises(Exception, match="--resume"):
            project.run(**served_by("anthropic_messages", server))
        assert len(server.requests) == 1


# The doctor


class Patient:
    """A model behind a server that keeps some of its settings, and counts tokens."""

    def __init__(self, *, drops_tools=False, obeys=True, parallel=True) -> None:
        self.drops_tools = drops_tools
        self.obeys = obeys
        self.parallel = parallel

    def __call__(self, request):
        body, last = request.body, request.messages[-1]
        tools = [] if self.drops_tools else body.get("tools") or []
        usage = {"prompt_tokens": 10 + 40 * len(tools), "completion_tokens": 5}
        choice = body.get("tool_choice")
        word = choice.get("type") if isinstance(choice, dict) else choice
        limit = body.get("max_tokens", body.get("max_output_tokens"))
        if "Count" in str(last["content"]):
            if self.obeys and limit < 200:
                return completion("1 2 3", finish="length", usage=usage)
            return completion("1 2 3 " * 66, usage={**usage, "completion_tokens": 400})
        if last["role"] == "tool":
            return completion("There are 4217 open issues.", usage=usage)
        asks = "hello" not in last["content"]
        if self.obeys and word in ("none", "required", "any"):
            asks = word != "none"
        if not tools or not asks:
            return completion("Hello.", usage=usage)
        calls = [("web_search", {"q": "open issues"})]
        if "twice" in last["content"] and self.parallel:
            calls.append(("web_search", {"q": "closed issues"}))
        return completion(None, calls, usage=usage)


def examined(protocol, patient):
    with Server(speaking(protocol, patient), ["stub"]) as server:
        return examine_runner(load_config(None, served_by(protocol, server)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_doctor_finds_a_good_server_good_through_every_protocol(protocol):
    found = examined(protocol, Patient())
    assert {name: one for name, one in found.findings.items() if one.verdict != "ok"} == {}
    assert found.exit_code == 0
    assert (
        found.findings["template_keeps_tools"].found == "a tool makes the prompt 40 tokens longer"
    )
    assert found.findings["calls_tools"].found.endswith("as a structured call")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_doctor_says_what_a_server_leaves_aside(protocol):
    found = examined(protocol, Patient(obeys=False, parallel=False)).findings
    assert found["parallel_calls"].verdict == found["keeps_settings"].verdict == "note"
    assert "max_tokens" in found["keeps_settings"].found
    assert "tool_choice 'required'" in found["keeps_settings"].found
    assert "tool_choice 'none'" in found["keeps_settings"].found


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_doctor_finds_a_server_that_drops_the_tools(protocol):
    found = examined(protocol, Patient(drops_tools=True))
    assert found.exit_code == 1
    assert found.findings["template_keeps_tools"].verdict == "wrong"
    assert "never hears of it" in found.findings["template_keeps_tools"].found


# What trials take


def spent(project) -> list:
    return [
        json.loads(line)
        for line in (project.folder / "results.jsonl.timing.jsonl").read_text().splitlines()
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tokens_latency_and_cost_of_every_trial_stand_beside_the_results(tmp_path, protocol):
    project = Project(tmp_path, size=5)
    with Server(speaking(protocol, city_model)) as server:
        report = project.run(
            **served_by(protocol, server, prices={"prompt": 100, "completion": 1000})
        ).report
    lines = {line["sample_id"]: line for line in spent(project)}
    assert set(lines) == {f"s{number:03}" for number in range(5)}
    assert (lines["s000"]["answers"], lines["s004"]["answers"]) == (2, 1)
    assert (lines["s000"]["prompt_tokens"], lines["s000"]["completion_tokens"]) == (40, 10)
    assert lines["s000"]["cost"] == pytest.approx((40 * 100 + 10 * 1000) / 1e6)
    assert all(line["latency_sec"] > 0 for line in lines.values())
    more = report.timing.more
    assert (more["prompt_tokens"], more["completion_tokens"]) == (20 * 9, 5 * 9)
    assert more["cost"] == pytest.approx(sum(line["cost"] for line in lines.values()))
    assert 0 < more["latency_p50"] <= more["latency_p95"]


def test_what_a_resumed_run_took_is_what_all_its_parts_took(tmp_path):
    project = Project(tmp_path, size=5)
    with Server(city_model) as server:
        project.run(**served_by("openai_http", server, limit=2))
        project.out.unlink()
    with Server(city_model) as server:
        gone = iter([error(401, "revoked")])
        answers = iter(range(4))
        with (
            pytest.raises(UsageError),
            Server(
                lambda one: city_model(one) if next(answers, None) is not None else next(gone)
            ) as broken,
        ):
            project.run(**served_by("openai_http", broken, max_connections=1))
        done = len(spent(project))
        assert done == 2
        report = project.run(**served_by("openai_http", server, resume=True)).report
    assert len(spent(project)) == 5
    assert report.timing.more["prompt_tokens"] == 20 * 9


def test_a_kept_answer_takes_nothing(tmp_path):
    project = Project(tmp_path, size=3)
    cache = str(tmp_path / "cache")
    with Server(city_model) as server:
        project.run(**served_by("openai_http", server, cache=cache))
        assert len(spent(project)) == 3
        project.out.unlink()
        report = project.run(**served_by("openai_http", server, cache=cache, restart=True)).report
    assert not (tmp_path / "results.jsonl.timing.jsonl").exists()
    assert "cost" not in report.timing.more


@pytest.mark.slow
def test_an_engine_brings_it_along(tmp_path):
    project = Project(tmp_path, size=6)
    with Server(city_model) as server:
        report = project.run(
            **served_by("openai_http", server, engine="local", num_shards=2)
        ).report
    assert {line["sample_id"] for line in spent(project)} == {
        f"s{number:03}" for number in range(6)
    }
    assert report.timing.more["latency_p95"] > 0


def compared(tmp_path, *flags):
    """Two runs of one model, the second with longer answers."""
    for name, factor in (("a", 1), ("b", 3)):
        folder = tmp_path / name
        folder.mkdir()
        project = Project(folder, size=4)

        def model(request, factor=factor):
            made = city_model(request)
            made.body["usage"]["prompt_tokens"] *= factor
            made.body["usage"]["completion_tokens"] *= factor
            return made

        with Server(model) as server:
            project.run(**served_by("openai_http", server, prices={"prompt": 1, "completion": 2}))
    places = [str(tmp_path / name / "results.jsonl") for name in ("a", "b")]
    return main(["compare", *places, "--margin", "0.9", *flags])


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ((), 0),
        (("--max-ratio", "tokens=3"), 0),
        (("--max-ratio", "tokens=2.9"), 1),
        (("--max-ratio", "cost=2", "--max-ratio", "tokens=4"), 1),
    ],
)
def test_compare_shows_what_a_trial_takes_and_can_limit_it(tmp_path, capsys, flags, code):
    assert compared(tmp_path, *flags) == code
    told = capsys.readouterr().out
    assert "tokens of a trial: A 50, B 150 (× 3.00)" in told
    assert "latency of a trial: A " in told
    assert ("EXCEEDED" in told) == (code == 1)


def test_a_limit_on_what_nobody_counted_is_never_kept(project, capsys):
    project.run()
    assert (
        main(
            [
                "compare",
                str(project.out),
                str(project.out),
                "--margin",
                "0.9",
                "--max-ratio",
                "cost=2",
            ]
        )
        == 5
    )
    assert "cannot be checked" in capsys.readouterr().out


@pytest.mark.parametrize("given", ["cost", "cost=", "cost=x", "cost=0", "money=2"])
def test_a_limit_is_said_as_name_and_number(project, capsys, given):
    assert main(["compare", "a", "b", "--max-ratio", given]) == 2
    assert "--max-ratio: must be tokens=R" in capsys.readouterr().err


def test_merged_shards_took_what_all_of_them_took(tmp_path, monkeypatch):
    """And a file of what trials took is never taken for results."""
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path, size=8)
    for shard in range(2):
        with Server(city_model) as server:
            project.run(
                **served_by("openai_http", server, num_shards=2, shard_index=shard)
                | {
                    "out": f"shards/results.shard_{shard}.jsonl",
                    "report": f"shards/report.shard_{shard}.json",
                }
            )
    for given in (["shards"], sorted(map(str, (tmp_path / "shards").glob("*.jsonl")))):
        assert (
            main(["merge", *given, "--out", "results.jsonl", "--report", "report.json", "--quiet"])
            == 5
        )
        lines = spent(project)
        assert [line["index"] for line in lines] == list(range(8))
        more = json.loads((tmp_path / "report.json").read_text())["timing"]["more"]
        assert more["prompt_tokens"] == sum(line["prompt_tokens"] for line in lines) == 20 * 15
        assert more["latency_p95"] == max(line["latency_sec"] for line in lines)
    listed = {path.name for path in _Walk(tmp_path / "shards").files()}
    assert listed == {"results.shard_0.jsonl", "results.shard_1.jsonl"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_f80_a_samples_own_specs_are_offered_called_and_answered(tmp_path, protocol):
    """Two samples, each with a tool `weather.get` of its own: names are encoded, types and
    defaults are those of the spec that the sample brings."""

    def tool(key, default):
        properties = {key: {"type": "string"}, "unit": {"type": "string", "default": default}}
        schema = {"type": "object", "properties": properties, "required": [key]}
        return {"name": "weather.get", "description": f"By {key}.", "parameters": schema}

    brought = {"a": tool("city", "C"), "b": tool("town", "F")}
    items = [
        {
            "prompt": f"How warm is it in Oslo, {one}?",
            "metadata": {
                "sample_id": one,
                "tools": [spec],
                "call_sequence": [
                    {
                        "name": "weather.get",
                        "arguments": {spec["parameters"]["required"][0]: "Oslo"},
                    }
                ],
            },
        }
        for one, spec in brought.items()
    ]

    def model(request):
        last = request.messages[-1]
        if last["role"] == "tool":
            return completion(f"It has {json.loads(last['content'])['temp']} degrees.")
        (offered,) = request.body["tools"]
        shape = offered.get("function", offered)
        schema = shape.get("parameters") or shape["input_schema"]
        assert shape["name"] == "weather_get"
        return completion(None, [("weather_get", {schema["required"][0]: "Oslo"})])

    project = Project(tmp_path, size=1)
    fixtures = [
        {"name": "weather.get", "key": {"city": "Oslo", "unit": "C"}, "result": {"temp": 4}},
        {"name": "weather.get", "key": {"town": "Oslo", "unit": "F"}, "result": {"temp": 39}},
    ]
    project.write(items, fixtures)
    with Server(speaking(protocol, model)) as server:
        project.run(**served_by(protocol, server))
    lines = project.results()
    assert [line["model_output"] for line in lines] == [
        "It has 4 degrees.",
        "It has 39 degrees.",
    ]
    assert [line["scores"]["call_f1"] for line in lines] == [1.0, 1.0]
    assert [line["tool_trace"][0]["name"] for line in lines] == ["weather.get"] * 2
