"""A server that fails, refuses, is not there or goes away: what is tried again, what ends the run,
and what a person is told."""

import json

import pytest
from tests.endpoints import Answer, Server, city_model, completion, error
from tests.integration.conftest import Project, journalled
from tests.integration.served import KEY, Script, one_sample, served, short_waits  # noqa: F401

from callmark.errors import Incomplete, UsageError
from callmark.run import loop as running_loop
from callmark.run import play as evaluate
from callmark.runners.http import chat

# Trouble that passes


FAULTS = {
    "429": error(429, headers={"Retry-After": "0"}),
    "429 with a date": error(429, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
    "500": error(500),
    "503": error(503),
    "cut": Answer(body=b"x", keep=10),
    "garbage": Answer(body=b"<html>"),
    "truncated": Answer(body=b'{"choices": [{"message": {"content": "Th'),
    "no choices": Answer(body={"choices": []}),
    "wrong types": Answer(body={"choices": {"0": "x"}}),
    "an error inside": Answer(body={"error": {"message": "overloaded", "code": 502}}),
    "silence": Answer(before=9.0),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_d61_a_failure_is_tried_again(tmp_path, fault):
    project = one_sample(tmp_path)
    answers = Script(FAULTS[fault], completion("There live 1000 people."))
    with Server(answers) as server:
        outcome = project.run(**served(server, request_timeout=0.3))
        assert len(server.requests) == 2
    assert [result["status"] for result in project.results()] == ["ok"]
    assert outcome.report.timing.more["retries"] == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_a95_a113_in_determinism_mode_a_retry_is_a_failure(tmp_path, fault):
    """One request per turn: a server that fails once and then works loses the trial."""
    project = one_sample(tmp_path)
    answers = Script(FAULTS[fault], completion("There live 1000 people."))
    with Server(answers) as server:
        outcome = project.run(**served(server, determinism_mode=True, request_timeout=0.3))
        assert len(server.requests) == 1
    assert outcome.exit_code == 4
    assert not project.out.exists()
    [line] = journalled(project.out)
    assert line["status"] == "error"
    assert line["scores"] is None
    assert line["error"].startswith("retry needed in determinism mode: ")


def test_a93_a94_d55_determinism_mode_fixes_what_is_sent(project):
    with Server(city_model) as server:
        project.run(**served(server, determinism_mode=True, temperature=0.7, top_p=0.5))
        sent = {(one.body["temperature"], one.body["top_p"]) for one in server.requests}
    assert sent == {(0.0, 1.0)}


def test_retries_end_and_the_trial_is_not_scored(tmp_path):
    project = one_sample(tmp_path)
    with Server(Script(error(500, "broken"))) as server:
        outcome = project.run(**served(server, max_retries=2))
        assert len(server.requests) == 3
        assert outcome.exit_code == 4
        assert outcome.report.verdict == "incomplete"
        [line] = journalled(project.out)
        assert (line["status"], line["error"]) == ("error", "500: broken (3 tries)")
        assert line["scores"] is None
    with Server(city_model) as server:
        assert project.run(**served(server, resume=True)).exit_code in (0, 5)
    assert [result["status"] for result in project.results()] == ["ok"]


def test_max_errors_lets_a_run_finish(project):
    def mostly(request):
        if "city 7?" in request.messages[0]["content"]:
            return error(500)
        return city_model(request)

    with Server(mostly) as server:
        outcome = project.run(**served(server, max_errors=1))
    assert outcome.exit_code == 0
    lost = [result for result in project.results() if result["status"] == "error"]
    assert [result["sample_id"] for result in lost] == ["s007"]


def test_a_sample_that_takes_too_long_is_lost_not_scored(tmp_path):
    project = one_sample(tmp_path)
    with Server(Script(Answer(before=9.0))) as server:
        outcome = project.run(**served(server, sample_timeout=0.2))
    assert outcome.exit_code == 4
    [line] = journalled(project.out)
    assert "sample_timeout" in line["error"]


def test_a_server_that_streams_is_told_so(tmp_path):
    project = one_sample(tmp_path)
    stream = Answer(
        body=b'data: {"choices": []}\n\n', headers={"Content-Type": "text/event-stream"}
    )
    with Server(Script(stream)) as server:
        project.run(**served(server))
        assert len(server.requests) == 1
    [line] = journalled(project.out)
    assert "streams" in line["error"]


# Trouble that does not


def test_a_server_that_dies_ends_the_run_and_what_is_finished_stays(tmp_path):
    project = Project(tmp_path, size=300)
    count = iter(range(10_000))

    def dying(request):
        return city_model(request) if next(count) < 100 else error(502, "Bad Gateway")

    with Server(dying) as server, pytest.raises(Incomplete, match=r"in a row.*502.*--resume"):
        project.run(**served(server, max_retries=1, max_connections=4))
    assert next(count) < 300
    assert not project.out.exists()
    assert json.loads(project.report.read_text())["complete"] is False
    lines = journalled(project.out)
    assert sum(line["status"] == "ok" for line in lines) > 20
    with Server(city_model) as server:
        assert project.run(**served(server, resume=True)).exit_code == 0
        assert len(server.requests) < 600
    assert len(project.results()) == 300


def test_a_silent_server_is_noticed_by_the_time_limit_of_samples_too(tmp_path, monkeypatch):
    monkeypatch.setattr(running_loop, "LOST_IN_A_ROW", 5)
    project = Project(tmp_path, size=40)
    with Server(Script(Answer(before=30.0))) as server, pytest.raises(Incomplete, match="5 trials"):
        project.run(**served(server, sample_timeout=0.1, max_connections=5))


def test_nobody_there_is_said_before_anything_is_written(project):
    with Server(city_model) as server:
        settings = served(server)
    with pytest.raises(
        Incomplete, match=rf"{settings['base_url']}: cannot be reached: .*--base-url"
    ):
        project.run(**settings)
    assert not project.out.exists()
    assert not list(project.folder.glob("*.journal"))


def untouched(project):
    return (
        not project.out.exists()
        and not project.report.exists()
        and not list(project.folder.glob("*.journal"))
    )


BAD = {
    "wrong key": (error(401, "Incorrect API key"), "does not accept the key"),
    "no rights": (error(403, "forbidden"), "does not accept the key"),
    "unknown model": (error(404, "The model `stub` does not exist", code="model_not_found"), "--model: .* has no 'stub'"),
    "no tools": (error(400, "stub does not support tools"), "does not do tools"),
    "a parameter": (error(400, "bad seed", param="seed"), "'seed'"),
    "another path": (error(404, "Not Found"), "looks like https://api.openai.com/v1"),
    "elsewhere": (Answer(307, headers={"Location": "https://user:pw@h/"}), "--base-url"),
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
def test_what_the_user_has_to_mend_stops_the_run_at_once(project, bad, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answer, message = BAD[bad]
    with Server(Script(answer)) as server, pytest.raises(UsageError, match=message) as failure:
        project.run(**served(server))
    assert len(server.requests) <= 16
    assert untouched(project)
    assert KEY not in str(failure.value)
    assert "pw@" not in str(failure.value)


def test_a_wrong_key_is_noticed_before_the_first_request(project, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Server(city_model, models=error(401, f"no: {KEY}")) as server:
        with pytest.raises(UsageError, match="does not accept the key") as failure:
            project.run(**served(server))
        assert server.requests == []
    assert KEY not in str(failure.value)
    assert untouched(project)


@pytest.mark.parametrize(
    "models", [None, error(500), error(403), Answer(body=b"<html>"), Answer(body=[1]), Answer(body={"data": [{}, 3]}), Answer(body=b"", keep=3)]
)  # fmt: skip
def test_a_server_without_a_list_of_models_is_fine(project, models):
    with Server(city_model, models=models) as server:
        assert project.run(**served(server)).exit_code == 0


def test_an_unknown_model_is_told_which_there_are(project):
    answer = error(404, "The model `stub` does not exist", code="model_not_found")
    told = pytest.raises(UsageError, match="it has: qwen, llama")
    with Server(Script(answer), models=["qwen", "llama"]) as server, told:
        project.run(**served(server))


def test_a_server_that_takes_any_name_is_warned_of(project):
    with Server(city_model, models=["qwen"]) as server:
        warnings = project.run(**served(server)).report.warnings
        assert any("lists only: qwen" in warning for warning in warnings)
    with Server(city_model, models=["stub:latest"]) as server:
        assert not project.run(**served(server)).report.warnings


def test_no_endpoint_and_no_model_are_usage_errors(project):
    with pytest.raises(UsageError, match="--base-url: where is the server"):
        project.run(runner="openai_http", model="m")
    with pytest.raises(UsageError, match="--model: which one"):
        project.run(runner="openai_http", model=None, base_url="http://127.0.0.1:1/v1")
    assert untouched(project)


def test_a_journal_with_results_survives_a_mistake(project):
    """A key that is withdrawn in the middle of a run loses nothing."""
    count = iter(range(1000))

    def withdrawn(request):
        return city_model(request) if next(count) < 20 else error(401, "revoked")

    with Server(withdrawn) as server, pytest.raises(UsageError):
        project.run(**served(server, max_connections=1))
    assert len(journalled(project.out)) > 4
    with Server(city_model) as server:
        assert project.run(**served(server, resume=True)).exit_code == 0


# Trouble that is our own


def test_f13_an_answer_that_we_stumble_over_costs_one_trial(project, monkeypatch):
    """Whatever reading an answer raises, the run goes on."""
    read = chat.reply_of

    def stumbling(completion, codec):
        if completion.model == "odd":
            raise RecursionError("what the server sent")
        return read(completion, codec)

    def odd(request):
        is_odd = "city 7?" in request.messages[0]["content"]
        return completion("x", model="odd") if is_odd else city_model(request)

    monkeypatch.setattr(chat, "reply_of", stumbling)
    with Server(odd) as server:
        outcome = project.run(**served(server, max_errors=1))
        assert len([one for one in server.requests if "city 7?" in one.messages[0]["content"]]) == 1
    assert outcome.exit_code == 0
    [lost] = [result for result in project.results() if result["status"] == "error"]
    assert lost["sample_id"] == "s007"
    assert "RecursionError" in lost["error"]
    assert "please report it" in lost["error"]
    assert "what the server sent" not in lost["error"]


def test_f13_an_answer_that_cannot_be_scored_costs_one_trial(project, monkeypatch):
    score = evaluate.score_trial

    def stumbling(sample, trace, settings):
        if sample.sample_id == "s007":
            raise MemoryError
        return score(sample, trace, settings)

    monkeypatch.setattr(evaluate, "score_trial", stumbling)
    with Server(city_model) as server:
        outcome = project.run(**served(server, max_errors=1))
    assert outcome.exit_code == 0
    [lost] = [result for result in project.results() if result["status"] == "error"]
    assert (lost["sample_id"], lost["scores"]) == ("s007", None)
    assert "could not be scored: MemoryError" in lost["error"]
