"""Two served models: an endpoint for each view, calls as fields or as text, no nulls."""

import json
from pathlib import Path

import pytest
from tests.endpoints import Server, completion, error, speaking
from tests.probing import (
    GOOD,
    KINDS,
    TALK,
    case,
    cases,
    probed_model,
    steering_adapter,
    write_cases,
)

from callmark.cli import main


@pytest.fixture(autouse=True)
def own_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def by_model(**answers):
    """Each model answers with its own function of the request."""
    return lambda request: answers[request.body["model"]](request)


def good(request):
    name = request.body["tools"][0]["function"]["name"]
    return completion(None, [(name, {"q": "rope"})])


def written(request):
    return completion(GOOD)


def broken(request):
    return completion(None, [("web_search", '{"q": "rope"')])


def probe(url, *more, size=24):
    cases = [case(number, "", max_new_tokens=8 if number % 2 else 16) for number in range(size)]
    file = write_cases(Path("cases.jsonl"), cases)
    words = ["probe", "--base", "before", "--tuned", "after", "--base-url", url, "--cases", file]
    return main([*map(str, words), "--json", "probe.json", "--max-retries", "0", *more])


def report():
    return json.loads(Path("probe.json").read_text("utf-8"))


def test_calls_as_fields_and_calls_as_text_are_the_same_calls(capsys):
    with Server(by_model(before=good, after=written), ["before", "after"]) as server:
        assert probe(server.url) == 0
    result = report()["results"][0]["result"]
    assert (result["decision"], result["evidence"]["num_valid_ft"]) == ("no_drop_seen", 24)
    assert result["evidence"]["hallucination_rate"] == 0  # names come back from the wire
    assert report()["nulls"]["unavailable"].startswith("the models are served")
    assert "no nulls: the models are served" in capsys.readouterr().out


def test_b1_each_view_is_asked_each_case_once_greedily_with_its_own_bound():
    with Server(by_model(before=good, after=good), ["before", "after"]) as server:
        assert probe(server.url) == 0
        bodies = [request.body for request in server.requests]
    again = [body for body in bodies if body["messages"][-1]["role"] == "tool"]
    assert len(again) == 2 * 8  # the result of a call, given to eight cases of each view
    bodies = [body for body in bodies if body not in again]
    assert len(bodies) == 48
    assert {body["temperature"] for body in bodies} == {0.0}
    for model in ("before", "after"):
        own = [body for body in bodies if body["model"] == model]
        prompts = {body["messages"][0]["content"]: body["max_tokens"] for body in own}
        assert len(prompts) == len(own) == 24
        assert all(
            bound == (8 if int(text.split()[1]) % 2 else 16) for text, bound in prompts.items()
        )


def test_the_same_answers_everywhere_are_pointed_out(capsys):
    with Server(by_model(before=good, after=good)) as server:
        assert probe(server.url) == 0
    # Folded at 80 columns.
    assert "do they serve the same model?" in " ".join(capsys.readouterr().out.split())


def test_arguments_that_are_no_json_stay_invalid(capsys):
    with Server(by_model(before=good, after=broken)) as server:
        assert probe(server.url) == 1
    assert report()["results"][0]["result"]["decision"] == "regression"
    assert capsys.readouterr().out.startswith("REGRESSION")


def test_two_endpoints():
    with Server(by_model(before=good)) as one, Server(by_model(after=broken)) as other:
        assert probe(one.url, "--tuned-url", other.url) == 1
        assert (len(one.requests), len(other.requests)) == (24, 24)


def test_a_server_that_fails_is_infrastructure_not_the_model(capsys):
    with Server(by_model(before=good, after=lambda _: error(500))) as server:
        assert probe(server.url, size=3) == 4
    assert "no answer" in capsys.readouterr().err


def test_a_server_that_is_not_there(capsys):
    assert probe("http://127.0.0.1:9/v1", size=1) == 4
    assert "cannot be reached" in capsys.readouterr().err


def test_a_dataset_is_run_whole_by_both():
    call = {"name": "web.search", "arguments": {"q": "rope"}}
    items = [
        {
            "prompt": f"Question {number}",
            "metadata": {
                "sample_id": f"s{number}",
                "call_sequence": [call],
                "tools": ["web.search"],
            },
        }
        for number in range(8)
    ]
    head = {"__header__": True, "dataset_version": "1"}
    write_cases(Path("d.jsonl"), [head, *items])

    def answering(request):
        if request.messages[-1]["role"] == "tool":
            return completion("It is 4711.")
        return good(request)

    with Server(by_model(before=answering, after=broken)) as server:
        words = "probe --base before --tuned after --dataset d.jsonl --json probe.json --base-url"
        assert main([*words.split(), server.url, "--max-retries", "0"]) == 1
    found = report()
    assert found["comparison"]["pairs"]["paired"] == 8
    assert found["comparison"]["flips"]["valid_call_rate"]["lost"]["count"] == 8


@pytest.mark.parametrize("kind", ["openai", "openai_responses", "anthropic_messages"])
def test_served_views_speak_every_protocol(kind):
    """A spec names the protocol; the answers are the same ones."""

    def answer(request):
        return completion(None, [("web_search", {"q": "rope"})])

    protocol = "openai_http" if kind == "openai" else kind
    cases = [case(number, "") for number in range(20)]
    with Server(speaking(protocol, by_model(before=answer, after=answer)), ["before"]) as server:
        models = {
            view: {"kind": kind, "base": name, "endpoint": server.url}
            for view, name in (("base", "before"), ("ft", "after"))
        }
        suite = [{"name": "calls", "kind": "tool_use_fidelity", "cases": cases}]
        Path("spec.yaml").write_text(json.dumps({"version": 1, "models": models, "suite": suite}))
        assert main(["probe", "spec.yaml", "--json", "probe.json", "--max-retries", "0"]) == 0
        assert len(server.requests) == 56  # 20 cases of each view, and 8 of each with a result
    assert report()["results"][0]["result"]["evidence"]["num_valid_ft"] == 20


def test_an_adapter_that_works_here_and_not_on_the_server_is_found(tmp_path, capsys):
    """The server does not apply it: it answers as the base does."""
    base = probed_model(tmp_path / "model", TALK, TALK)
    adapter = steering_adapter(tmp_path / "lora", base, {KINDS[0]: GOOD})
    file = write_cases(tmp_path / "cases.jsonl", cases(20))
    words = ["probe", "--base", base, "--adapter", adapter, "--tuned", "lora", "--cases", file]
    words += ["--max-retries", 0, "--json", "probe.json", "--html", "probe.html", "--tuned-url"]
    with Server(by_model(lora=lambda _: completion(TALK)), ["lora"]) as server:
        assert main([*map(str, words), server.url]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("REGRESSION  valid calls: 20 of 20 by lora, 0 by lora (served)")
    assert "20 × no call, prose instead" in shown
    assert "asked: a checkpoint and a served model; base float32 on cpu (strict" in shown
    with Server(by_model(lora=written), ["lora"]) as server:
        assert main([*map(str, words), server.url]) == 0
    evidence = report()["results"][0]["result"]["evidence"]
    assert evidence["num_same_text"] == evidence["num_same_call"] == 20


@pytest.mark.parametrize("kind", ["openai_responses", "anthropic_messages"])
def test_two_servers_may_speak_two_protocols(kind):
    asked = write_cases(Path("cases.jsonl"), [case(number, "") for number in range(20)])

    def answer(request):
        return completion(None, [("web_search", {"q": "rope"})])

    with (
        Server(by_model(before=answer), ["before"]) as one,
        Server(speaking(kind, by_model(after=answer)), ["after"]) as other,
    ):
        words = ["probe", "--base", "before", "--tuned", "after", "--base-url", one.url]
        words += ["--tuned-url", other.url, "--tuned-kind", kind, "--cases", asked]
        assert main([*map(str, words), "--json", "probe.json", "--max-retries", "0"]) == 0
    assert report()["results"][0]["result"]["evidence"]["num_same_call"] == 20
    assert report()["models"]["ft"]["kind"] == kind


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--tuned-url", "http://x/v1", "--adapter", "a"], "--tuned: which model is served there"),
        (["--base-url", "http://x/v1", "--adapter", "a"], "--adapter: a served model takes none"),
        (["--adapter", "a", "--kind", "openai"], "--kind: is for served models"),
        (["--tuned", "b", "--base-url", "http://x/v1", "--tuned-dtype", "float16"], "--tuned-dtype: a server chooses"),
        ([], "--adapter: what is the fine-tune?"),
    ],
)  # fmt: skip
def test_models_that_do_not_go_together_are_refused(words, what, capsys):
    asked = write_cases(Path("cases.jsonl"), cases(1))
    assert main(["probe", "--base", "m", "--cases", str(asked), *words]) == 2
    assert what in capsys.readouterr().err


def test_one_model_in_two_types_of_weights(tmp_path, capsys):
    base = probed_model(tmp_path / "model", GOOD, GOOD)
    asked = write_cases(tmp_path / "cases.jsonl", cases(20))
    words = ["probe", "--base", base, "--tuned-dtype", "bfloat16", "--cases", asked]
    assert main([*map(str, words), "--json", "probe.json"]) == 0
    shown = capsys.readouterr().out
    assert "20 of 20 by model, 20 by model (bfloat16)" in shown
    assert "tuned bfloat16 on cpu (best effort: a repeat may differ in a token)" in shown
    assert report()["results"][0]["result"]["evidence"]["num_same_text"] == 20
