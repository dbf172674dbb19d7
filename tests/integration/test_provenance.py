"""One run, one provenance: who answered is written down with the answers, and two servers behind
one journal, or behind the shards of one run, are never told as one."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.endpoints import Server, city_model, completion
from tests.integration.served import served, short_waits
from tests.integration.sharded import run_shard
from tests.pace import few

from callmark.errors import FingerprintMismatch
from callmark.run.conclude import run
from callmark.shards.merge import merge_shards

__all__ = ["short_waits"]


def speaking_as(model: str, fingerprint: str):
    def answer(request):
        made = city_model(request)
        made.body.update(model=model, system_fingerprint=fingerprint)
        return made

    return answer


def interrupted(project, server, at: int = 9, **settings) -> None:
    """A run that somebody ends after so many trials."""

    def press_ctrl_c(standing):
        if standing.finished == at:
            os.kill(os.getpid(), signal.SIGINT)

    config = project.config(**served(server, max_connections=1, **settings))
    assert run(config, progress=press_ctrl_c).exit_code == 130


def segments_in(project) -> list[dict]:
    lines = map(json.loads, Path(f"{project.out}.journal").read_text("utf-8").splitlines())
    return [line for line in lines if "segment" in line]


ENGINES = [{}, {"engine": "local", "num_shards": 2}]


@pytest.mark.parametrize("engine", few(ENGINES))
def test_f6_two_servers_behind_one_journal_are_both_named(project, engine):
    with Server(speaking_as("m-a", "fp-a")) as first, Server(speaking_as("m-b", "fp-b")) as second:
        interrupted(project, first)
        outcome = run(project.config(**served(second, resume=True), **engine))
        assert second.requests
    report = outcome.report
    parts = [
        (one["base_url"], one["served_models"], one["system_fingerprints"])
        for one in report.provenance["segments"]
    ]
    assert parts == [(first.url, ["m-a"], ["fp-a"]), (second.url, ["m-b"], ["fp-b"])]
    who = "the runs behind this journal do not agree in"
    for told in (
        f"{who} base_url: {first.url} and {second.url}",
        f"{who} served_models: m-a and m-b",
        f"{who} system_fingerprints: fp-a and fp-b",
    ):
        assert told in report.warnings
    assert json.loads(project.report.read_text("utf-8"))["provenance"] == report.provenance


def test_f6_a_third_run_still_names_the_first_two(project):
    with (
        Server(speaking_as("m", "fp-a")) as first,
        Server(speaking_as("m", "fp-b")) as second,
        Server(speaking_as("m", "fp-c")) as third,
    ):
        interrupted(project, first, 5)
        interrupted(project, second, 12, resume=True)
        report = project.run(**served(third, resume=True)).report
    parts = [one["system_fingerprints"] for one in report.provenance["segments"]]
    assert parts == [["fp-a"], ["fp-b"], ["fp-c"]]


def test_f6_one_server_behind_one_journal_is_told_as_in_a_run_that_nobody_ended(project):
    with Server(speaking_as("m", "fp")) as server:
        whole = run({**project.config(**served(server)), "out": str(project.folder / "w.jsonl")})
        interrupted(project, server)
        report = project.run(**served(server, resume=True)).report
    assert report.provenance == whole.report.provenance
    assert report.warnings == whole.report.warnings
    assert "segments" not in report.provenance


@pytest.mark.parametrize("engine", few(ENGINES))
def test_f6_in_determinism_mode_another_address_is_refused_before_it_is_asked(project, engine):
    with Server(speaking_as("m", "fp")) as first, Server(speaking_as("m", "fp")) as second:
        interrupted(project, first, determinism_mode=True)
        before = Path(f"{project.out}.journal").read_bytes()
        settings = served(second, resume=True, determinism_mode=True)
        with pytest.raises(FingerprintMismatch, match="do not agree in base_url") as caught:
            run(project.config(**settings, **engine))
        assert (first.url in str(caught.value), second.url in str(caught.value)) == (True, True)
        assert caught.value.exit_code == 3
        assert (second.requests, second.looks) == ([], [])
        assert Path(f"{project.out}.journal").read_bytes() == before
        again = served(first, resume=True, determinism_mode=True)
        assert run(project.config(**again, **engine)).report.complete


@pytest.mark.parametrize("engine", few(ENGINES))
@pytest.mark.parametrize("other", [("m", "fp-b"), ("m-b", "fp")])
def test_f6_in_determinism_mode_another_server_at_the_same_address_is_refused(
    project, engine, other
):
    with Server(speaking_as("m", "fp")) as server:
        interrupted(project, server, determinism_mode=True)
        server._answer = speaking_as(*other)
        settings = served(server, resume=True, determinism_mode=True)
        with pytest.raises(FingerprintMismatch, match="do not agree in"):
            run(project.config(**settings, **engine))
    assert not project.out.exists()
    kept = [
        line
        for line in map(json.loads, Path(f"{project.out}.journal").read_text().splitlines())
        if "sample_id" in line
    ]
    assert len(kept) == 9


def test_f6_who_answers_is_on_the_disk_before_what_was_answered(project):
    """A name that comes up in the middle of a run is written before the trial that brought it."""
    calls = iter(range(10_000))

    def changing(request):
        name = "early" if next(calls) < 10 else "late"
        return speaking_as(name, "fp")(request)

    with Server(changing) as server:
        interrupted(project, server, 20)
    lines = [
        json.loads(line) for line in Path(f"{project.out}.journal").read_text().splitlines()[1:]
    ]
    assert "segment" in lines[0]
    assert lines[0]["provenance"]["base_url"] == server.url
    names = [line["provenance"]["served_models"] for line in lines if "segment" in line]
    assert names == [[], ["early"], ["early", "late"]]
    assert {line["segment"] for line in lines if "segment" in line} == {1}


def test_f6_a_run_that_got_no_answer_is_no_part_of_the_provenance(project):
    with Server(lambda _: completion(None)) as silent, Server(city_model) as server:
        silent._answer = speaking_as("m", "fp")
        interrupted(project, silent, 3)
        other = served(server, resume=True)
        with pytest.raises(Exception, match="cannot be reached"):
            project.run(**{**other, "base_url": "http://127.0.0.1:9/v1"})
        report = project.run(**other).report
    assert [one["base_url"] for one in report.provenance["segments"]] == [silent.url, server.url]


def test_f6_no_password_of_an_address_is_journalled(project):
    with Server(city_model) as server:
        place = server.url.replace("//", "//name:pass-word-1234@")
        config = project.config(**{**served(server), "base_url": place, "report": "/dev/full"})
        with pytest.raises(Exception, match="Nothing is lost"):
            run(config)
    text = Path(f"{project.out}.journal").read_text("utf-8")
    assert "pass-word-1234" not in text
    assert server.url in text


def test_f6_the_shards_of_two_servers_are_both_named_and_refused_in_determinism_mode(
    project, tmp_path
):
    folder = tmp_path / "shards"
    folder.mkdir()
    for mode in (False, True):
        servers = (Server(speaking_as("m", "fp-a")), Server(speaking_as("m", "fp-b")))
        for index, server in enumerate(servers):
            with server:
                config = project.config(**served(server, determinism_mode=mode))
                run_shard(config, folder, 2, index)
        if mode:
            with pytest.raises(FingerprintMismatch, match="in determinism mode they must"):
                merge_shards([folder], out=None, report=None)
            continue
        report = merge_shards([folder], out=None, report=None).report
        assert [one["base_url"] for one in report.provenance["segments"]] == [
            server.url for server in servers
        ]
        told = f"the shards do not agree in base_url: {servers[0].url} and {servers[1].url}"
        assert told in report.warnings


def test_the_revision_that_was_given_stands_in_the_provenance(project):
    with Server(city_model) as server:
        report = project.run(**served(server, model_revision="2026-10")).report
    assert report.provenance["model_revision"] == "2026-10"
