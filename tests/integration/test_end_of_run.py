"""The end of a run is one commit: results, report, page, and only then the journal goes. Whenever
it is cut short, `--resume` judges what is there and asks nobody for what was answered."""

from pathlib import Path

import pytest
from dev.campaign.kills import check_kills
from tests.endpoints import Answer, Server, city_model, error
from tests.integration.conftest import journalled, read_lines, write_lines
from tests.integration.served import served, short_waits
from tests.integration.sharded import without_timing
from tests.pace import few

from callmark.errors import BadInput, OutputFailed
from callmark.run.conclude import run
from callmark.run.rescore import score_file

__all__ = ["short_waits"]


def journal_of(project) -> Path:
    return Path(f"{project.out}.journal")


class World:
    """A run that ended well, and the server that answered it."""

    def __init__(self, project, server, **settings) -> None:
        self.project, self.server = project, server
        self.settings = served(server, **settings)
        project.run(**self.settings)
        self.results, self.report = project.out.read_bytes(), without_timing(project.report)
        self.forget()

    def forget(self) -> None:
        self.server.requests.clear()
        self.server.looks.clear()

    def resume(self, **settings):
        return self.project.run(**self.settings, resume=True, **settings)

    def check(self) -> None:
        assert self.project.out.read_bytes() == self.results
        assert without_timing(self.project.report) == self.report
        assert not journal_of(self.project).exists()
        assert (self.server.requests, self.server.looks) == ([], [])


@pytest.fixture
def world(project):
    with Server(city_model, models=["stub"]) as server:
        yield World(project, server)


def test_f7_a_complete_output_is_judged_and_nobody_is_asked(world):
    written = world.project.out.stat()
    outcome = world.resume()
    assert outcome.exit_code == 0
    assert outcome.notes == (
        f"{world.project.out}: is complete: it was judged again, and nothing was asked",
    )
    world.check()
    assert world.project.out.stat().st_mtime_ns == written.st_mtime_ns


def test_f7_a_budget_that_was_not_measured_is_not_kept_to(world):
    """Nothing was scored, so no seconds are no proof."""
    budget = world.resume().report.timing.perf_budget
    assert budget is not None
    assert budget.status == "inconclusive"
    assert budget.value is None


def test_f7_a_complete_output_needs_no_server_at_all(project):
    with Server(city_model) as server:
        world = World(project, server)
    assert world.resume().exit_code == 0
    world.check()


@pytest.mark.parametrize("engine", few([{}, {"engine": "local", "num_shards": 2}]))
def test_f7_cut_short_before_the_report_nothing_is_asked_again(world, engine):
    """The report cannot be written: so it ends where a kill would end it."""
    project = world.project
    project.out.unlink()
    config = project.config(**world.settings, **engine)
    with pytest.raises(OutputFailed):
        run({**config, "report": "/dev/full"})
    assert project.out.read_bytes() == world.results
    assert journal_of(project).exists()
    world.forget()
    assert run({**config, "resume": True}).exit_code == 0
    world.check()


def test_f7_killed_between_results_and_their_mark_nothing_is_asked_again(world):
    project = world.project
    with pytest.raises(OutputFailed):
        run({**project.config(**world.settings), "report": "/dev/full"})
    whole = journal_of(project).read_bytes().splitlines(keepends=True)
    assert b'"written"' in whole[-1]
    for kept in (whole[:-1], [*whole[:-1], whole[-1][:30]]):
        journal_of(project).write_bytes(b"".join(kept))
        world.forget()
        outcome = world.resume()
        assert "every trial is in it: nothing was asked" in outcome.notes[0]
        world.check()


def test_f7_the_journal_is_there_until_everything_is_published(world):
    project, seen = world.project, []

    def publish(report, is_whole):
        seen.append((report.complete, is_whole, journal_of(project).exists()))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(project.config(**world.settings), publish=publish)
    assert seen == [(True, True, True)]
    world.forget()
    assert world.resume().exit_code == 0
    world.check()


def failing_for_city_3(request) -> Answer:
    if any("city 3?" in str(message["content"]) for message in request.messages):
        return error(500)
    return city_model(request)


@pytest.mark.parametrize("is_published", [True, False])
def test_f7_lost_trials_that_were_allowed_do_not_make_it_incomplete(project, is_published):
    with Server(failing_for_city_3) as server:
        world = World(project, server, max_errors=1, max_retries=0)
        if not is_published:
            with pytest.raises(OutputFailed):
                run({**project.config(**world.settings), "report": "/dev/full"})
            world.forget()
        assert world.resume().report.counts.trials_error == 1
        world.check()


def test_lost_trials_are_tried_again_where_the_run_did_not_end(project):
    with Server(failing_for_city_3) as server:
        settings = served(server, max_retries=0)
        assert project.run(**settings).exit_code == 4
        server.requests.clear()
        assert project.run(**settings, resume=True).exit_code == 4
        assert len(server.requests) == 1
        server._answer = city_model
        assert project.run(**settings, resume=True).exit_code == 0
    assert {line["status"] for line in project.results()} == {"ok"}


@pytest.mark.parametrize(
    "change", [{"seed": 7}, {"max_turns": 3}, {"miss_reply": "none"}, {"limit": 5}, {"repeat": 2}]
)
def test_results_of_other_settings_are_not_taken_for_this_run(world, change):
    outcome = world.resume(**change)
    assert world.server.requests
    assert outcome.notes == ()


def test_other_gates_judge_the_same_results_anew(world):
    outcome = world.resume(gates={"integration_coverage": {"bound": 0.1}})
    assert world.server.requests == []
    assert outcome.report.header.gates["integration_coverage"].bound == 0.1
    assert world.project.out.read_bytes() == world.results


def test_a_complete_output_that_was_altered_is_refused(world):
    project = world.project
    lines = project.results()
    lines[0]["model_output"] += " And more."
    write_lines(project.out, lines)
    before = project.out.read_bytes()
    with pytest.raises(BadInput, match=r"is not the file that .* was written with") as caught:
        world.resume()
    assert f"callmark score {project.out}" in str(caught.value)
    assert project.out.read_bytes() == before
    assert world.server.requests == []


def test_without_a_report_nobody_says_who_answered(world):
    world.project.report.unlink()
    outcome = world.resume()
    assert world.server.requests == []
    assert any("who answered is not known" in text for text in outcome.report.warnings)
    assert "base_url" not in outcome.report.provenance
    assert world.project.out.read_bytes() == world.results


def test_a_new_run_that_was_killed_before_its_first_trial_is_gone_on_with(world):
    """An older output of the same settings is not taken for it."""
    project = world.project
    with pytest.raises(OutputFailed):
        run({**project.config(**world.settings), "report": "/dev/full"})
    head = journal_of(project).read_bytes().splitlines(keepends=True)[0]
    journal_of(project).write_bytes(head)
    world.forget()
    world.resume()
    assert len(world.server.requests) == 45


@pytest.mark.parametrize("place", ["report", "page"])
def test_f8_a_report_that_finds_no_room_loses_nothing(world, place):
    project = world.project
    project.out.unlink()

    def write_page(report, is_whole):
        raise OutputFailed("page.html: could not be written: no room.", "Run it again.")

    config = project.config(**world.settings)
    if place == "report":
        config["report"] = "/dev/full"
    with pytest.raises(OutputFailed) as caught:
        run(config, publish=write_page if place == "page" else None)
    assert caught.value.exit_code == 4
    message = str(caught.value)
    assert f"Nothing is lost: every trial is in {project.out}. `callmark score {project.out}`" in (
        message
    )
    assert "un it again" not in message
    assert project.out.read_bytes() == world.results
    scored = score_file(project.out).report
    assert (scored.counts.trials, scored.complete) == (25, True)


def test_f8_a_report_of_an_unfinished_run_that_finds_no_room_points_to_the_journal(project):
    with Server(failing_for_city_3) as server:
        config = project.config(**served(server, max_retries=0), report="/dev/full")
        with pytest.raises(OutputFailed) as caught:
            run(config)
    assert f"What is finished is in {journal_of(project)}." in str(caught.value)
    assert "--resume" in str(caught.value)
    assert len(journalled(project.out)) == len(read_lines(project.dataset)) - 1


@pytest.mark.slow
@pytest.mark.parametrize(("kills", "samples"), [(20, 10_000)])
def test_f7_kills_at_the_end_of_a_run_lose_nothing_and_ask_for_nothing(kills, samples):
    """`make campaign` kills 200 times."""
    found = check_kills(kills, samples, "test")
    assert found.problems == []
    assert found.ends.total() == kills
    assert found.ends["had ended"] < kills
