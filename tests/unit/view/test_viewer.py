"""What the viewer finds, keeps and answers, without a socket between."""

import json
from email.message import Message

import pytest
from tests.builders import make_result, numbered
from tests.unit.reports.finished_runs import finished, report_of

from callmark.errors import BadInput, UsageError
from callmark.reports.finished_run import FinishedRun
from callmark.store.files import encode_result
from callmark.store.journal import open_journal
from callmark.view import opened, viewer
from callmark.view.catalogue import (
    NO_NOTES,
    Lister,
    NoSuchRun,
    RunCatalogue,
    RunNotes,
    notes_path,
    read_notes,
    write_notes,
)
from callmark.view.opened import JudgedRun, read_piece
from callmark.view.server import Guard
from callmark.view.viewer import Asked, Doing, Jobs, ServedProblem, Viewer, WantedComparison


def write_run(folder, samples=3) -> FinishedRun:
    folder.mkdir(parents=True, exist_ok=True)
    return finished(folder, numbered(make_result() for _ in range(samples)))


def doing(**changes) -> Doing:
    def judge(path):
        return JudgedRun(report_of(numbered([make_result()] * 3)), None)

    parts = {
        "read_report": lambda path: report_of([]),
        "judge": judge,
        "compare": lambda wanted, page: ["false"],
        "rules": {},
    }
    return Doing(**{**parts, **changes})


def test_notes_do_not_follow_a_link(tmp_path):
    """It could lead anywhere."""
    results, other = tmp_path / "results.jsonl", tmp_path / "mine.txt"
    other.write_text(json.dumps({"note": "of something else"}))
    notes_path(results).symlink_to(other)
    assert read_notes(results) == NO_NOTES
    with pytest.raises(UsageError, match="is a link, and was left as it is"):
        write_notes(results, RunNotes("mine", ()))
    assert "something else" in other.read_text()


def test_a_run_that_nobody_has_found_is_none(tmp_path):
    catalogue = RunCatalogue(tmp_path)
    for ask in (catalogue.find, catalogue.successor):
        with pytest.raises(NoSuchRun):
            ask("0123456789abcdef")
    assert RunCatalogue(tmp_path / "nowhere").scan().runs == ()


def test_a_journal_of_another_program_is_no_run(tmp_path):
    (tmp_path / "results.jsonl.journal").write_text("ext3 superblock\n")
    assert RunCatalogue(tmp_path).scan().runs == ()


def test_a_report_of_trials_is_not_that_of_a_file_without_any(tmp_path):
    (tmp_path / "results.jsonl").write_bytes(b"")
    (tmp_path / "report.json").write_bytes(b"{}")
    found = RunCatalogue(tmp_path).scan()
    of_trials = Lister(tmp_path, lambda path: report_of([make_result()]))
    [row] = of_trials.listing(found).runs
    assert row.word == "no report"
    assert row.reason == "report.json is about another run (it has trials, the file none)"
    [row] = Lister(tmp_path, lambda path: report_of([])).listing(found).runs
    assert row.word == "empty"


@pytest.fixture
def at_once(monkeypatch):
    """A job is done when it was started."""

    class Thread:
        def __init__(self, target, args, daemon):
            self.start = lambda: target(*args)

    monkeypatch.setattr(viewer.threading, "Thread", Thread)


def wanted(tmp_path, common=False) -> WantedComparison:
    for name in "ab":
        write_run(tmp_path / name)
    a, b = RunCatalogue(tmp_path).scan().runs
    return WantedComparison(a, b, common)


def test_only_the_latest_comparisons_are_kept(tmp_path, at_once, monkeypatch):
    monkeypatch.setattr(viewer, "KEPT", 1)
    jobs = Jobs(tmp_path, lambda wanted, page: ["cp", "/dev/null", str(page)])
    first = jobs.start(wanted(tmp_path)).id
    assert jobs.page(first).is_file()
    second = jobs.start(wanted(tmp_path, common=True)).id
    assert jobs.state(second).word == "done"
    with pytest.raises(viewer.NoSuchJob):
        jobs.state(first)
    assert [path.name for path in tmp_path.glob("*.html")] == [f"compare-{second}.html"]


def test_a_comparison_after_the_end_of_the_viewer_is_not_begun(tmp_path, at_once):
    jobs = Jobs(tmp_path, lambda wanted, page: ["no such program"])
    jobs.close()
    job = jobs.start(wanted(tmp_path)).id
    assert (jobs.state(job).word, jobs.state(job).message) == ("failed", "the viewer has ended")


def refuses(error):
    def judge(path):
        raise error

    return judge


@pytest.mark.parametrize(
    ("path", "more", "answer"),
    [
        ("/head", {}, ServedProblem(422, "Permission denied")),
        ("/verdict", {}, ServedProblem(422, "Permission denied")),
        ("/piece", {"query": {"from": "-1"}}, viewer.NOT_HERE),
        ("/sample", {"query": {"at": "x"}}, viewer.NOT_HERE),
    ],
)
def test_what_cannot_be_answered_is_said(tmp_path, path, more, answer):
    write_run(tmp_path)
    does = doing(judge=refuses(PermissionError(13, "Permission denied")))
    shown = Viewer(tmp_path, tmp_path, does)
    [run] = RunCatalogue(tmp_path).scan().runs
    assert shown.answer(Asked(f"/run/{run.id}{path}", **more)) == answer


@pytest.mark.parametrize("body", [b"", b"[]", b'{"note": 3}', b'{"words": ""}', b"\xff"])
def test_a_note_that_is_none_is_refused(tmp_path, body):
    write_run(tmp_path)
    [run] = RunCatalogue(tmp_path).scan().runs
    found = Viewer(tmp_path, tmp_path, doing()).answer(Asked(f"/run/{run.id}/note", body=body))
    assert found.status == 400
    assert found.text.startswith("note: ")
    assert not notes_path(run.path).exists()


def test_a_bad_report_is_said_in_its_own_words(tmp_path):
    write_run(tmp_path)
    does = doing(judge=refuses(BadInput("report.json: is none")))
    [run] = RunCatalogue(tmp_path).scan().runs
    answer = Viewer(tmp_path, tmp_path, does).answer(Asked(f"/run/{run.id}/verdict"))
    assert answer == ServedProblem(422, "report.json: is none")


def test_of_many_opened_runs_the_latest_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(opened, "KEPT", 1)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for name in "ab":
        write_run(tmp_path / "runs" / name)
    openings = opened.Openings(scratch, doing().judge)
    ready = [openings.open(run) for run in RunCatalogue(tmp_path / "runs").scan().runs]
    assert [one.head.exists() for one in ready] == [False, True]
    assert [one.index.exists() for one in ready] == [False, True]


@pytest.mark.parametrize("head", [b'{"journal":2,"fingerprints":[1]}', b'{"journal":2,"finge'])
def test_a_journal_without_fingerprints_shows_its_trials(tmp_path, head):
    path = tmp_path / "results.jsonl"
    with open_journal(path, {}, mode="new") as journal:
        journal.append(encode_result(make_result()))
    lines = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(b"".join([head + b"\n", *lines[1:]]))
    piece = read_piece(journal.path, 0, {})
    assert (piece.pins, piece.index.ids) == ((), ["s0"])


def test_a_cookie_that_no_browser_would_send_opens_nothing():
    guard, headers = Guard(8000), Message()
    headers["Cookie"] = "a,b=1"
    assert not guard.knows(headers)
