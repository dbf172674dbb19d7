"""`--cache`: the same lines with it and without it, no answer for another question, and nothing in
it that should not be there."""

import json
import re
from pathlib import Path

import pytest
from tests.endpoints import Server, city_model, completion, error
from tests.integration.conftest import Project, fixture, item
from tests.integration.served import KEY, Script, one_sample, served, short_waits  # noqa: F401
from tests.scripted import Scripted, calling, plug

import callmark
from callmark.cli import main
from callmark.errors import BadInput, FingerprintMismatch, UsageError
from callmark.records.seams import Failure, Reply
from callmark.run.cached import check_cache
from callmark.run.conclude import run
from callmark.run.preview import dry_run

TINY = Path(callmark.__file__).parent / "data" / "tiny"
REVISED = {"model_revision": "1"}
WRAPPER = '{"user": "Please: {{ user }}"}'


@pytest.fixture
def server():
    with Server(city_model) as running:
        yield running


def counts(outcome) -> dict:
    more = outcome.report.timing.more
    return {name: more[f"cache_{name}"] for name in ("hits", "asked", "stored")}


def entries(folder: Path) -> list[dict]:
    return [
        json.loads(line)
        for path in folder.glob("answers-*.jsonl")
        for line in path.read_text("utf-8").splitlines()
    ]


def run_cached(project: Project, server: Server, **settings):
    cache = str(project.folder / "cache")
    return project.run(**{**served(server, cache=cache, restart=True, **REVISED), **settings})


# --- equal to a run without it


def test_a_hit_gives_the_line_that_the_server_would_have_given(project, server):
    without = project.run(**served(server, **REVISED))
    plain = project.out.read_bytes()
    first = run_cached(project, server)
    assert project.out.read_bytes() == plain
    asked = len(server.requests)
    again = run_cached(project, server)
    assert project.out.read_bytes() == plain
    assert len(server.requests) == asked
    assert counts(first) == {"hits": 0, "asked": 45, "stored": 45}
    assert counts(again) == {"hits": 45, "asked": 0, "stored": 0}
    assert "cache_hits" not in without.report.timing.more


@pytest.mark.slow
def test_the_processes_of_an_engine_share_it(project, server):
    run_cached(project, server, cache=None)
    plain = project.out.read_bytes()
    cache = {"cache": str(project.folder / "cache")}
    settings = served(server, restart=True, engine="local", num_shards=2, **REVISED, **cache)
    config = project.config(**settings)
    asked = len(server.requests)
    assert counts(run(config)) == {"hits": 0, "asked": 45, "stored": 45}
    assert project.out.read_bytes() == plain
    assert counts(run(config)) == {"hits": 45, "asked": 0, "stored": 0}
    assert project.out.read_bytes() == plain
    assert len(server.requests) == asked + 45
    assert len(list((project.folder / "cache").glob("answers-*"))) <= 2


def test_only_what_is_new_is_asked_for(project, server):
    run_cached(project, server, limit=10)
    assert counts(run_cached(project, server)) == {"hits": 18, "asked": 27, "stored": 27}


def test_what_a_model_can_say_comes_back_as_it_was(tmp_path):
    """Malformed and parallel calls, thinking, what a server wants back, large numbers."""
    huge = json.dumps({"q": "city 0", "top_k": 10**30})
    odd = completion(
        "Well\ud800 é",
        [("web_search", '{"q": "city 0"'), ("web_search", huge), ("no_such", [1, 2.0])],
        message={"reasoning_content": "hm", "extra_content": {"a": [1.0, -0.0]}},
    )
    project = one_sample(tmp_path)
    written = []
    for cache in (None, str(tmp_path / "cache"), str(tmp_path / "cache")):
        with Server(Script(odd, completion("There live 1000 people.", finish="length"))) as server:
            settings = served(server, restart=True, **REVISED)
            outcome = project.run(**settings, cache=cache)
        written.append(project.out.read_bytes())
    assert written[0] == written[1] == written[2]
    assert counts(outcome)["asked"] == 0
    assert project.results()[0]["stop"] == "truncated"


@pytest.mark.slow
def test_a_local_model_answers_the_same_from_its_cache_and_each_adapter_for_itself(tmp_path):
    pytest.importorskip("torch")
    config = {"runner": "hf_local", "model": str(TINY / "model"), "limit": 4, "max_tokens": 64}
    config |= {"dataset": str(TINY / "dataset.jsonl"), "fixtures": str(TINY.parent / "fixtures")}
    out = tmp_path / "results.jsonl"

    def one_run(**settings):
        outcome = run({**config, "out": str(out), "restart": True, **settings})
        return outcome.report.timing.more.get("cache_hits"), out.read_bytes()

    cache = {"cache": str(tmp_path / "cache")}
    _, plain = one_run()
    assert one_run(**cache) == (0, plain)
    hits, lines = one_run(**cache)
    assert (hits > 0, lines) == (True, plain)
    adapter = str(next((TINY / "adapters").iterdir()))
    assert one_run(**cache, adapter=adapter)[0] == 0


# --- no answer for another question


def cities(tmp_path) -> Project:
    project = Project(tmp_path, size=2)
    project.write([item(0)], [fixture(0)])
    return project


CHANGES = {
    "model": {"model": "other"},
    "revision": {"model_revision": "2"},
    "temperature": {"temperature": 0.5},
    "top_p": {"top_p": 0.5},
    "max_tokens": {"max_tokens": 99},
    "seed": {"seed": 7},
    "max_turns": {"max_turns": 3},
    "tool_choice": {"tool_choice": "required"},
    "system": {"system": "You are brief."},
    "extra_body": {"extra_body": {"top_k": 1}},
    "parse_text": {"parse_text": "off"},
}


@pytest.mark.parametrize("changed", CHANGES.values(), ids=CHANGES)
def test_another_model_or_way_of_asking_finds_nothing(tmp_path, server, changed):
    project = cities(tmp_path)
    run_cached(project, server)
    assert counts(run_cached(project, server, **changed))["hits"] == 0
    assert counts(run_cached(project, server))["asked"] == 0


def test_another_wrapper_finds_nothing(tmp_path, server):
    project = cities(tmp_path)
    wrapper = tmp_path / "w.j2"
    for text in (WRAPPER, WRAPPER.replace("Please", "Do")):
        wrapper.write_text(text)
        assert counts(run_cached(project, server, prompt_wrapper=str(wrapper)))["hits"] == 0


def test_another_trial_finds_nothing_at_first(tmp_path, server):
    project = cities(tmp_path)
    run_cached(project, server)
    assert counts(run_cached(project, server, repeat=3)) == {"hits": 2, "asked": 4, "stored": 4}
    assert counts(run_cached(project, server, repeat=3))["asked"] == 0


def test_other_tools_find_nothing_also_where_only_their_order_differs(tmp_path, server):
    """A prompt shows the fields of a tool in the order in which they stand."""
    project = cities(tmp_path)
    registry = tmp_path / "tools.json"
    q, top_k = ("q", {"type": "string"}), ("top_k", {"type": "integer"})
    for fields in ([q, top_k], [top_k, q], [q]):
        parameters = {"type": "object", "properties": dict(fields)}
        spec = {"name": "web.search", "description": "Search.", "parameters": parameters}
        registry.write_text(json.dumps([spec]))
        names = {"registry": str(registry), "allowlist": str(tmp_path / "allow.json")}
        (tmp_path / "allow.json").write_text('["web.search"]')
        assert counts(run_cached(project, server, **names))["hits"] == 0


def test_an_answer_of_the_environment_is_part_of_the_question(tmp_path, server, monkeypatch):
    """`${NAME}` in `extra_body` may choose an adapter."""
    project = cities(tmp_path)
    for name in ("red", "blue"):
        monkeypatch.setenv("ADAPTER", name)
        outcome = run_cached(project, server, extra_body={"lora": "${ADAPTER}"})
        assert counts(outcome)["hits"] == 0


def test_two_adapters_of_one_model_have_answers_of_their_own(tmp_path, monkeypatch):
    project = cities(tmp_path)
    runner = Scripted(lambda one: Reply(text="Hm."))
    settings = plug(monkeypatch, tmp_path, runner)
    for adapter in "ab":
        runner.model_fingerprint = lambda adapter=adapter: f"model+{adapter}"
        outcome = project.run(**settings, cache=str(tmp_path / "cache"), restart=True)
        assert counts(outcome)["hits"] == 0


@pytest.mark.parametrize(("temperature", "hits"), [(0.0, 2), (0.7, 1), (None, 1)])
def test_samples_that_ask_the_same_share_an_answer_only_where_none_is_drawn(
    tmp_path, monkeypatch, temperature, hits
):
    project = cities(tmp_path)
    runner = Scripted(lambda one: Reply(text="Hm."))
    runner.model_fingerprint = lambda: "model"
    settings = plug(monkeypatch, tmp_path, runner)
    settings |= {"cache": str(tmp_path / "cache"), "restart": True, "temperature": temperature}
    project.run(**settings)
    project.write([item(0), item(0, sample_id="twin")])
    assert counts(project.run(**settings))["hits"] == hits


# --- two servers behind one cache


def says(name: str, fingerprint: str):
    """A server of its own mind, which says who it is."""
    return lambda request: completion(
        f"Says {name}.", model=f"stub-{name}", system_fingerprint=fingerprint
    )


def test_f18_without_a_revision_each_endpoint_has_its_own_answers(tmp_path):
    project = cities(tmp_path)
    unnamed = {"model_revision": None}
    with Server(says("a", "fp_a")) as a, Server(says("b", "fp_b")) as b:
        run_cached(project, a, **unnamed)
        assert counts(run_cached(project, b, **unnamed)) == {"hits": 0, "asked": 1, "stored": 1}
        assert project.results()[0]["model_output"] == "Says b."
        again = run_cached(project, b, **unnamed)
        assert counts(again) == {"hits": 1, "asked": 0, "stored": 0}
        assert project.results()[0]["model_output"] == "Says b."
    assert any("only --model-revision could tell" in text for text in again.report.warnings)
    assert not any("more than one" in text for text in again.report.warnings)


def test_f18_a_second_endpoint_of_one_revision_is_named_in_the_report(tmp_path):
    project = cities(tmp_path)
    with Server(says("a", "fp_a")) as a, Server(says("b", "fp_b")) as b:
        run_cached(project, a)
        project.write([item(0), item(1)])
        report = run_cached(project, b).report
        urls = a.url, b.url
    assert [line["model_output"] for line in project.results()] == ["Says a.", "Says b."]
    told = report.provenance
    assert (told["base_url"], told["cached_base_url"]) == (urls[1], [urls[0]])
    assert told["cached_served_models"] == ["stub-a"]
    assert told["cached_system_fingerprints"] == ["fp_a"]
    [said] = [text for text in report.warnings if "more than one base_url" in text]
    assert urls[0] in said
    assert urls[1] in said
    assert any("fp_a" in text and "fp_b" in text for text in report.warnings)


@pytest.mark.parametrize("engine", [None, "local"])
def test_f18_a_second_endpoint_is_refused_in_determinism_mode(tmp_path, engine):
    project = cities(tmp_path)
    settings = {"determinism_mode": True, "engine": engine, "num_shards": 2 if engine else 1}
    with Server(says("a", "fp")) as a, Server(says("a", "fp")) as b:
        run_cached(project, a, determinism_mode=True)
        cache = {"cache": str(project.folder / "cache")}
        config = project.config(**served(b, restart=True, **REVISED, **cache, **settings))
        with pytest.raises(FingerprintMismatch, match="more than one base_url: kept ones of http"):
            run(config)
        assert not b.requests


def test_f18_another_server_behind_one_endpoint_is_told_too(tmp_path):
    answers = [completion(name, system_fingerprint=f"fp_{name}") for name in "ab"]
    for mode in (False, True):
        folder = tmp_path / str(mode)
        folder.mkdir()
        project = cities(folder)
        with Server(Script(*answers)) as server:
            run_cached(project, server, determinism_mode=mode)
            project.write([item(0), item(1)])
            if mode:
                with pytest.raises(FingerprintMismatch, match="fp_a; this run asks fp_b"):
                    run_cached(project, server, determinism_mode=mode)
                assert len(entries(folder / "cache")) == 1
            else:
                report = run_cached(project, server).report
                assert any("fp_a" in text and "fp_b" in text for text in report.warnings)


# --- what is never held


def test_errors_and_too_long_prompts_are_asked_for_again(tmp_path):
    project = one_sample(tmp_path)
    long = error(400, "maximum context length is 8 tokens", code="context_length_exceeded")
    for trouble in (error(500), long, completion("There.", finish="error")):
        with Server(Script(trouble)) as server:
            outcome = run_cached(project, server, max_retries=0, max_errors=1)
            assert counts(outcome) == {"hits": 0, "asked": 1, "stored": 0}
    assert entries(tmp_path / "cache") == []


def test_a_refused_parameter_ends_the_run_and_nothing_is_held(tmp_path):
    project = one_sample(tmp_path)
    with Server(Script(error(400, "bad", param="seed"))) as server, pytest.raises(UsageError):
        run_cached(project, server)
    assert entries(tmp_path / "cache") == []


def test_in_determinism_mode_a_failure_takes_all_of_the_run_with_it(tmp_path):
    project = Project(tmp_path, size=3)
    settings = {"determinism_mode": True, "max_errors": 3, "max_connections": 1}
    answers = completion("A."), completion("B.")
    with Server(Script(*answers, error(500), completion("C."))) as server:
        outcome = run_cached(project, server, **settings)
    assert counts(outcome)["stored"] == 0
    assert entries(tmp_path / "cache") == []


def test_in_determinism_mode_a_second_server_takes_all_of_the_run_with_it(tmp_path):
    project = Project(tmp_path, size=3)
    answers = [completion("A.", system_fingerprint=name) for name in "xy"]
    settings = {"determinism_mode": True, "max_connections": 1}
    with Server(Script(*answers)) as server, pytest.raises(FingerprintMismatch):
        run_cached(project, server, **settings)
    assert entries(tmp_path / "cache") == []


def test_without_determinism_mode_a_failure_costs_only_itself(tmp_path, monkeypatch):
    project = Project(tmp_path, size=3)
    broken = Scripted(lambda one: Failure("x") if one.sample_id == "s001" else Reply(text="Hm."))
    broken.model_fingerprint = lambda: "model"
    settings = plug(monkeypatch, tmp_path, broken)
    outcome = project.run(**settings, cache=str(tmp_path / "cache"), max_errors=1)
    assert counts(outcome) == {"hits": 0, "asked": 3, "stored": 2}


def test_what_json_cannot_hold_is_asked_for_again(tmp_path, monkeypatch):
    project = cities(tmp_path)
    runner = Scripted(lambda one: Reply(text="lone \ud800"))
    runner.model_fingerprint = lambda: "model"
    settings = plug(monkeypatch, tmp_path, runner)
    for _ in range(2):
        outcome = project.run(**settings, cache=str(tmp_path / "cache"), restart=True)
        assert counts(outcome) == {"hits": 0, "asked": 1, "stored": 0}


def test_no_secret_is_in_the_cache(tmp_path, server, monkeypatch):
    project = cities(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("SECRET", f"{KEY}-2")
    settings = {"extra_body": {"user": "${SECRET}"}, "headers": {"X-Token": "${SECRET}"}}
    assert counts(run_cached(project, server, **settings))["stored"] == 2
    for path in (tmp_path / "cache").iterdir():
        assert KEY not in path.read_text("utf-8")


# --- where it is of no use


def test_redacted_runs_keep_nothing_beside_them(tmp_path, server):
    with pytest.raises(UsageError, match="--cache: does not go with redact_pii"):
        run_cached(cities(tmp_path), server, redact_pii=True)
    assert not (tmp_path / "cache").exists()


def test_recorded_answers_need_no_cache(project):
    report = project.run(cache=str(project.folder / "cache")).report
    assert "--cache: not used: replay answers from a recording anyway" in report.warnings
    assert not (project.folder / "cache").exists()


def test_a_runner_that_does_not_know_its_model_gets_no_cache(tmp_path, monkeypatch):
    project = cities(tmp_path)
    settings = plug(monkeypatch, tmp_path, Scripted(lambda one: Reply(text="Hm.")))
    report = project.run(**settings, cache=str(tmp_path / "cache")).report
    assert any("cannot tell one model from another" in one for one in report.warnings)
    assert not (tmp_path / "cache").exists()


def test_a_dry_run_makes_no_folder(tmp_path, server):
    dry_run(cities(tmp_path).config(**served(server, **REVISED), cache=str(tmp_path / "cache")))
    assert not (tmp_path / "cache").exists()


def test_a_folder_of_something_else_is_refused_before_anything_is_asked(tmp_path, server):
    project = cities(tmp_path)
    with pytest.raises(BadInput, match="is not a cache"):
        run_cached(project, server, cache=str(project.fixtures))
    assert not server.requests


def test_without_a_cache_there_is_nothing_to_check(tmp_path, server):
    from callmark.config import load_config

    check_cache(load_config(None, served(server)))


def test_whoever_wants_to_see_the_model_itself_turns_it_off(project, server, monkeypatch):
    monkeypatch.chdir(project.folder)
    Path("callmark.yaml").write_text("cache: kept\nrunner: openai_http\n", "utf-8")
    words = ["run", "--in", project.dataset, "--fixtures", project.fixtures, "--out", project.out]
    words += ["--model", "stub", "--base-url", server.url, "--quiet"]
    main([*map(str, words), "--no-cache"])
    assert len(server.requests) == 45
    assert not Path("kept").exists()


# --- what is said


def test_the_terminal_says_how_many_answers_came_from_it(project, server, capsys):
    words = ["run", "--in", project.dataset, "--fixtures", project.fixtures, "--out", project.out]
    words += ["--runner", "openai_http", "--model", "stub", "--base-url", server.url]
    words += ["--cache", project.folder / "cache", "--model-revision", "1"]
    for hits in (0, 45):
        main([*map(str, words)])
        assert re.search(
            rf"25 trials in .* s; {hits} of 45 answers from the cache",
            " ".join(capsys.readouterr().out.split()),
        )


def test_a_run_that_was_stopped_goes_on_with_a_cache(project, server):
    """The journal knows nothing of the cache: it may come between two parts of a run."""
    run_cached(project, server)
    plain = project.out.read_bytes()
    project.out.unlink()

    def tired(request):
        return city_model(request) if len(half.requests) < 35 else error(500)

    with Server(tired) as half:
        settings = served(half, max_retries=0, **REVISED)
        assert project.run(**settings).exit_code == 4
    assert not project.out.exists()
    outcome = run_cached(project, server, restart=False, resume=True)
    assert project.out.read_bytes() == plain
    assert counts(outcome)["asked"] == 0 < counts(outcome)["hits"] < 45


def test_calls_of_a_script_come_back(tmp_path, monkeypatch):
    project = cities(tmp_path)
    runner = Scripted(
        lambda one: (
            Reply(text="It is 1000.") if one.turn > 1 else calling("web.search", {"q": "city 0"})
        )
    )
    runner.model_fingerprint = lambda: "model"
    settings = {**plug(monkeypatch, tmp_path, runner), "cache": str(tmp_path / "cache")}
    project.run(**settings)
    first, asked = project.out.read_bytes(), len(runner.seen)
    project.run(**settings, restart=True)
    assert (project.out.read_bytes(), len(runner.seen)) == (first, asked)
