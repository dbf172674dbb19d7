"""What is finished is never lost: journal, resumption, interrupts, and kill -9."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.conftest import write_journal
from tests.pace import few

from callmark.errors import BadInput, FingerprintMismatch, OutputFailed, UsageError
from callmark.run import conclude as running
from callmark.run import prepare as setup
from callmark.runners.replay import ReplayRunner, open_replay

SRC = Path(__file__).parents[2] / "src"
KILLS = int(os.environ.get("CALLMARK_KILLS", "10"))


class Broken(ReplayRunner):
    """Raises once, at the given sample."""

    at: str
    error: BaseException

    async def answer(self, batch):
        if batch[0].sample_id == self.at:
            raise self.error
        return await super().answer(batch)


@pytest.fixture
def breaks(monkeypatch):
    """Make the replay runner fail at one sample."""

    @contextmanager
    def open_broken(options):
        with open_replay(options) as runner:
            runner.__class__ = Broken
            yield runner

    def arrange(at: str, error: BaseException) -> None:
        Broken.at, Broken.error = at, error
        monkeypatch.setattr(setup, "find_runner", lambda _name: open_broken)

    yield arrange
    monkeypatch.undo()


def journal_of(project) -> Path:
    return Path(f"{project.out}.journal")


def baseline(project) -> bytes:
    out = project.folder / "baseline.jsonl"
    project.run(out=str(out))
    return out.read_bytes()


def test_an_interrupt_keeps_what_is_finished_and_says_so(project, breaks, monkeypatch):
    whole = baseline(project)
    breaks("s010", KeyboardInterrupt())
    outcome = project.run()
    assert outcome.exit_code == 130
    assert not project.out.exists()
    assert outcome.report.complete is False
    assert outcome.report.verdict == "incomplete"
    assert outcome.report.counts.trials == 10
    assert json.loads(project.report.read_text("utf-8"))["complete"] is False
    monkeypatch.undo()
    with pytest.raises(UsageError, match=r"--resume.*--restart"):
        project.run()
    resumed = project.run(resume=True)
    assert resumed.exit_code == 0
    assert project.out.read_bytes() == whole
    assert not journal_of(project).exists()


def test_a_resumed_run_reports_what_an_uninterrupted_one_reports(project, breaks, monkeypatch):
    whole = project.run(out=str(project.folder / "baseline.jsonl"))
    breaks("s013", KeyboardInterrupt())
    project.run()
    monkeypatch.undo()
    resumed = project.run(resume=True)
    assert without_timing(resumed.report) == without_timing(whole.report)


def without_timing(report):
    import msgspec

    plain = msgspec.to_builtins(report)
    plain.pop("timing")
    return plain


def test_ctrl_c_in_the_middle_of_a_trial_finishes_that_trial(project):
    """The signal comes while a trial is being counted: it must not be counted half."""
    whole = baseline(project)

    def press_ctrl_c(standing):
        if standing.finished == 7:
            os.kill(os.getpid(), signal.SIGINT)

    outcome = running.run(project.config(), progress=press_ctrl_c)
    assert outcome.exit_code == 130
    assert outcome.report.counts.trials == 7
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    project.run(resume=True)
    assert project.out.read_bytes() == whole


def test_a_crash_of_the_runner_keeps_what_is_finished(project, breaks, monkeypatch):
    whole = baseline(project)
    breaks("s020", ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        project.run()
    monkeypatch.undo()
    seen = []
    running.run(project.config(resume=True), progress=lambda *counts: seen.append(counts))
    assert project.out.read_bytes() == whole
    assert len(seen) == 25


def test_errors_are_tried_again_on_resume(project):
    whole = baseline(project)
    answers = project.answers.read_text("utf-8")
    failing = project.folder / "failing.jsonl"
    project.answers.rename(failing)
    lines = [json.loads(line) for line in answers.splitlines()]
    lines[3] = {"sample_id": "s003", "model_output": "", "status": "error", "error": "timeout"}
    project.write(answers=lines)
    failed = project.run()
    assert failed.exit_code == 4
    assert failed.report.errors.first[0].error == "the recorded trial had failed: timeout"
    journal = journal_of(project)
    key = json.loads(journal.read_text("utf-8").splitlines()[0])["fingerprints"]
    project.answers.write_text(answers, "utf-8")
    with pytest.raises(FingerprintMismatch, match="model_fingerprint"):
        project.run(resume=True)
    # The same model answers this time: only then may its journal go on.
    again = journal.read_text("utf-8").replace(key["model_fingerprint"], sha256(project.answers))
    write_journal(journal, map(json.loads, again.splitlines()))
    resumed = project.run(resume=True)
    assert resumed.exit_code == 0
    assert resumed.report.counts.trials_error == 0
    assert project.out.read_bytes() == whole


def sha256(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


def interrupted(project, breaks, monkeypatch, **settings) -> None:
    breaks("s003", KeyboardInterrupt())
    assert project.run(**settings).exit_code == 130
    monkeypatch.undo()


@pytest.mark.parametrize(
    "change",
    [
        {"repeat": 2},
        {"seed": 7},
        {"max_turns": 1},
        {"parse_text": "off"},
        {"span_extractor": "marker"},
        {"integration_span_cap": 9},
        {"redact_pii": True},
        {"miss_reply": "none"},
        {"limit": 5},
        {"only": ["s001"]},
        {"num_shards": 2, "shard_index": 0},
        {"url_allowlist": ["corp.io"]},
        {"privacy_echo": "deny"},
        {"tiers": {"value": "advisory"}},
        {"temperature": 1.0},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_changes_the_results_is_refused_on_resume(project, breaks, monkeypatch, change):
    interrupted(project, breaks, monkeypatch)
    with pytest.raises(FingerprintMismatch) as caught:
        project.run(resume=True, **change)
    assert caught.value.exit_code == 3
    named = {"parse_text": "runner_fingerprint", "seed": "decoding", "temperature": "decoding"}
    field, *_ = change
    assert named.get(field, field) in str(caught.value)


def test_a_changed_dataset_or_fixture_is_refused_on_resume(project, breaks, monkeypatch):
    interrupted(project, breaks, monkeypatch)
    extra = {"name": "web.search", "key": {"q": "new"}, "result": 1}
    (project.fixtures / "more.jsonl").write_text(json.dumps(extra) + "\n", "utf-8")
    with pytest.raises(FingerprintMismatch, match="fixtures_sha256"):
        project.run(resume=True)


@pytest.mark.parametrize(
    "change",
    [
        {"gates": {"integration_coverage": {"bound": 0.1}}},
        {"min_eligible_for_gates": 3},
        {"max_errors": 9},
        {"fail_on_gate_failure": False},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_does_not_change_the_results_may_change(project, breaks, monkeypatch, change):
    whole = baseline(project)
    interrupted(project, breaks, monkeypatch)
    assert project.run(resume=True, **change).exit_code == 0
    assert project.out.read_bytes() == whole


def test_a_larger_limit_goes_on_where_the_smaller_one_ended(project, breaks, monkeypatch):
    whole = baseline(project)
    interrupted(project, breaks, monkeypatch, limit=5)
    with pytest.raises(FingerprintMismatch, match="limit"):
        project.run(resume=True, limit=4)
    assert project.run(resume=True).report.partial is False
    assert project.out.read_bytes() == whole


def test_restart_throws_the_journal_away(project, breaks, monkeypatch):
    whole = baseline(project)
    interrupted(project, breaks, monkeypatch, repeat=2)
    assert project.run(restart=True).exit_code == 0
    assert project.out.read_bytes() == whole


def test_the_journal_holds_no_pii_when_it_is_to_be_redacted(project, breaks, monkeypatch):
    lines = [json.loads(line) for line in project.answers.read_text("utf-8").splitlines()]
    lines[0]["model_output"] += " Write to jane.doe@corp-mail.io."
    project.write(answers=lines)
    interrupted(project, breaks, monkeypatch, redact_pii=True)
    assert "jane.doe" not in journal_of(project).read_text("utf-8")


def test_a_full_disk_loses_nothing_that_was_finished(project):
    """The system refuses to let the journal grow: what it holds by then is whole."""
    whole = baseline(project)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(OutputFailed) as caught:
            project.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.exit_code == 4
    assert "--resume" in str(caught.value)
    assert not project.out.exists()
    assert len(journal_of(project).read_text("utf-8").splitlines()) > 2
    project.run(resume=True)
    assert project.out.read_bytes() == whole


# A run that takes half a second, so that a kill meets it at work.
CHILD = """
import json, sys, time
from callmark.run.conclude import run
from callmark.runners.replay import ReplayRunner
answer = ReplayRunner.answer
async def slowly(self, batch):
    time.sleep(0.002)
    return await answer(self, batch)
ReplayRunner.answer = slowly
print("ready", flush=True)
run(json.loads(sys.argv[1]))
"""


def start(project) -> subprocess.Popen:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(project.config())],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        stdout=subprocess.PIPE,
    )
    assert child.stdout.readline() == b"ready\n"
    return child


@pytest.mark.slow
def test_kill_9_at_any_moment_then_resume_gives_the_same_bytes(large_project):
    project = large_project
    whole = baseline(project)
    child = start(project)
    started = time.monotonic()
    child.communicate()
    duration = time.monotonic() - started
    assert project.out.read_bytes() == whole
    moments = random.Random(17)
    at_work = 0
    for _ in range(KILLS):
        project.out.unlink(missing_ok=True)
        child = start(project)
        time.sleep(moments.uniform(0, duration))
        child.kill()
        child.communicate()
        at_work += not project.out.exists()
        project.run(resume=True)
        assert project.out.read_bytes() == whole
        assert not journal_of(project).exists()
    assert at_work, "no kill met the run at work"


def test_two_runs_of_one_output_do_not_meet(project):
    child = start(project)
    try:
        while not journal_of(project).exists():
            time.sleep(0.005)
        os.kill(child.pid, signal.SIGSTOP)
        with pytest.raises(UsageError):
            project.run(resume=True)
    finally:
        child.kill()
        child.communicate()


# A journal that somebody or something damaged


def put(line: dict, path: str, value) -> dict:
    """The same line with another value at `scores.lax.f1`."""
    first, _, rest = path.partition(".")
    return {**line, first: put(line[first], rest, value) if rest else value}


ALTERED = {
    "item_sha256": "0" * 64,
    "sample_id": "stranger",
    "index": 24,
    "trial": 1,
    "scores": None,
    "scores.lax.f1": 1e308,
    "scores.strict.precision": -0.5,
    "scores.call_f1": 1.5,
    "scores.lax.grounded": 9,
    "scores.strict.found": 1 << 20,
    "scores.spans_counted": -1,
    "scores.calls.matched": 3,
    "scores.calls.valid_attempts": 5,
    "scores.calls.misses": 1 << 40,
    "scores.values": {"supported": -3},
    "scores.kind": "best",
    "fingerprints.model_fingerprint": "another",
    "decoding.seed": 7,
    "scoring.integration_span_cap": 9,
    "metadata.call_sequence": 7,
}


@pytest.mark.parametrize("path", few(ALTERED, 7))
def test_f19_a_line_that_no_run_could_have_written_is_named_and_can_be_left_out(
    project, breaks, monkeypatch, path
):
    """Its hash is right: whoever altered it made a new one."""
    whole = baseline(project)
    breaks("s010", KeyboardInterrupt())
    project.run()
    monkeypatch.undo()
    journal = journal_of(project)
    lines = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    assert lines[4]["sample_id"] == "s002"
    lines[4] = put(lines[4], path, ALTERED[path])
    write_journal(journal, lines)
    with pytest.raises(BadInput) as caught:
        project.run(resume=True)
    assert caught.value.exit_code == 2
    assert str(caught.value).startswith(f"{journal}:5: ")
    assert path.split(".")[-1] in str(caught.value)
    assert "--resume --salvage" in str(caught.value)
    assert not project.out.exists()
    outcome = project.run(resume=True, salvage=True)
    assert project.out.read_bytes() == whole
    assert "9 finished trials are kept, 1 lines left out (line 5; line 5: " in outcome.notes[0]
    assert "; 16 trials are run: s002, s010, s011" in outcome.notes[0]


def test_f19_an_altered_answer_with_its_old_scores_is_noticed(project, breaks, monkeypatch):
    whole = baseline(project)
    interrupted(project, breaks, monkeypatch)
    journal = journal_of(project)
    text = journal.read_text("utf-8")
    journal.write_text(text.replace("There live 1007 people", "There live 1008 people"), "utf-8")
    with pytest.raises(BadInput, match=":4: is garbled: this is not what was written there"):
        project.run(resume=True)
    outcome = project.run(resume=True, salvage=True)
    assert project.out.read_bytes() == whole
    damage = [text for text in outcome.report.warnings if "was damaged" in text]
    assert damage == [
        "the journal of this run was damaged: 1 of its lines were left out (line 4), and what"
        " they held was run again"
    ]


def test_f19_lines_before_and_after_garbled_ones_are_kept_and_the_rest_is_run(project):
    """Also in the journal of shards; and what was left out stays so when that run is killed too."""
    from callmark.run.conclude import run

    whole = baseline(project)
    with pytest.raises(OutputFailed):
        project.run(report="/dev/full")
    project.out.unlink()
    journal = journal_of(project)
    lines = journal.read_bytes().splitlines(keepends=True)
    for at in (5, 6, 20):
        lines[at] = lines[at][:40] + b"\0\0\0" + lines[at][43:]
    journal.write_bytes(b"".join(lines))
    with pytest.raises(BadInput) as caught:
        project.run(resume=True)
    assert f"{journal}:6: is garbled: this is not what was written there (2 more such lines)" in (
        str(caught.value)
    )
    asked = []
    with pytest.raises(OutputFailed):
        running.run(
            project.config(resume=True, salvage=True, report="/dev/full"),
            progress=lambda standing: asked.append(standing),
        )
    assert asked[-1].resumed == 22
    project.out.unlink()
    outcome = run(project.config(resume=True, engine="local", num_shards=2))
    assert "3 of its lines were left out (line 6, 7, 21)" in outcome.report.warnings[0]
    assert project.out.read_bytes() == whole


def test_salvage_is_for_resume(project):
    with pytest.raises(UsageError, match="--salvage: goes with --resume"):
        project.run(salvage=True)


def test_salvage_of_a_whole_journal_is_a_resume(project, breaks, monkeypatch):
    whole = baseline(project)
    interrupted(project, breaks, monkeypatch)
    outcome = project.run(resume=True, salvage=True)
    assert (outcome.notes, outcome.report.warnings) == ((), project.run().report.warnings)
    assert project.out.read_bytes() == whole
