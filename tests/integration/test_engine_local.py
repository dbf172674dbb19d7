"""The engine `local`: shards in processes give what one process gives, whatever dies on the way."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.engines import children_of, install_slow_runner, is_running
from tests.pace import few

from callmark.errors import BadInput, Incomplete, UsageError
from callmark.records.seams import Standing
from callmark.run.conclude import run
from callmark.run.prepare import complete_config
from callmark.runners.replay import open_replay
from callmark.shards.engine import Lines
from callmark.shards.local import LocalEngine
from callmark.shards.run import ByEngine
from callmark.store.journal import stamp

CHILD = """
import json, sys
from callmark.run.conclude import run
print("ready", flush=True)
sys.exit(run(json.loads(sys.argv[1])).exit_code)
"""


@pytest.fixture
def slow(large_project, tmp_path, monkeypatch):
    install_slow_runner(tmp_path / "plugin", monkeypatch)
    monkeypatch.setenv("SLOW_LOG", str(tmp_path / "answered.log"))
    return large_project


def whole(project, **settings) -> bytes:
    """The results of one process that nobody disturbed."""
    out = project.folder / "whole.jsonl"
    run(project.config(**settings, out=str(out), report=str(project.folder / "whole.json")))
    return out.read_bytes()


def without_timing(path: Path) -> dict:
    report = json.loads(path.read_text("utf-8"))
    del report["timing"]
    return report


def local(project, shards: int = 2, **settings):
    return run(project.config(engine="local", num_shards=shards, **settings))


def start(project, **settings) -> subprocess.Popen:
    config = project.config(**{"engine": "local", **settings})
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout.readline() == b"ready\n"
    return child


def wait_until(something, seconds: float = 30.0):
    end = time.monotonic() + seconds
    while not (found := something()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
    return found


def journal_lines(project) -> list[tuple[str, int]]:
    path = Path(f"{project.out}.journal")
    if not path.exists():
        return []
    *lines, _torn = path.read_bytes().split(b"\n")
    found = [json.loads(line) for line in lines[1:]]
    return [(line["sample_id"], line["trial"]) for line in found if line.get("status") == "ok"]


@pytest.mark.parametrize("shards", [1, 3, pytest.param(7, marks=pytest.mark.slow)])
def test_a77_any_number_of_shards_gives_the_bytes_and_the_report_of_one_process(project, shards):
    expected = whole(project)
    outcome = local(project, shards)
    assert project.out.read_bytes() == expected
    assert without_timing(project.report) == without_timing(project.folder / "whole.json")
    assert outcome.report.header.num_shards == 1
    assert not Path(f"{project.out}.journal").exists()


@pytest.mark.slow
def test_a46_shards_without_a_sample_are_no_trouble(project):
    assert local(project, 16, limit=2).report.counts.samples == 2
    assert len(project.results()) == 2


def test_every_trial_and_every_error_is_there_once(project):
    answers = [json.loads(line) for line in project.answers.read_text("utf-8").splitlines()]
    lines = [{**answer, "trial": trial} for answer in answers for trial in range(3)]
    for line in lines[::7]:
        line |= {"status": "error", "error": "timeout"}
    project.write(answers=lines)
    settings = {"repeat": 3, "max_errors": "20%"}
    expected = whole(project, **settings)
    local(project, 3, **settings)
    assert project.out.read_bytes() == expected
    assert without_timing(project.report) == without_timing(project.folder / "whole.json")


@pytest.mark.slow
def test_a_part_of_the_dataset_is_chosen_before_it_is_split(project):
    expected = whole(project, only=["s003", "s004", "s011"])
    local(project, 2, only=["s003", "s004", "s011"])
    assert project.out.read_bytes() == expected
    assert without_timing(project.report) == without_timing(project.folder / "whole.json")


@pytest.mark.slow
def test_errors_are_allowed_over_all_shards_together(project):
    answers = [json.loads(line) for line in project.answers.read_text("utf-8").splitlines()]
    project.write(answers=answers[4:])
    assert local(project, 4, max_errors=4).report.complete
    project.out.unlink()
    outcome = local(project, 4, max_errors=3)
    assert outcome.exit_code == 4
    assert not outcome.report.complete
    assert not project.out.exists()
    project.write(answers=answers[1:])
    with pytest.raises(Exception, match="model_fingerprint"):
        local(project, 4, max_errors=3, resume=True)


@pytest.mark.slow
def test_progress_counts_all_shards(project):
    seen: list[Standing] = []
    config = project.config(engine="local", num_shards=2)
    run(config, progress=seen.append)
    assert seen[-1].finished == seen[-1].total == 25
    assert [one.finished for one in seen] == sorted(one.finished for one in seen)


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_nothing_finished_is_done_twice(
    slow, tmp_path, monkeypatch
):
    expected = whole(slow, runner="slow")
    (tmp_path / "answered.log").unlink()
    monkeypatch.setenv("SLOW_SECONDS", "0.02")
    (tmp_path / "died").mkdir()
    monkeypatch.setenv("SLOW_DIES_ONCE", f"{tmp_path}/died/")
    local(slow, 2, runner="slow")
    assert len(list((tmp_path / "died").iterdir())) == 6
    assert slow.out.read_bytes() == expected
    assert without_timing(slow.report) == without_timing(slow.folder / "whole.json")
    answered = (tmp_path / "answered.log").read_text().splitlines()
    # What a worker had finished in its last tenth of a second was not handed over yet.
    assert 60 <= len(answered) <= 60 + 6 * 8


@pytest.mark.slow
def test_a_sample_that_kills_every_worker_ends_the_run_with_what_is_finished(slow, monkeypatch):
    monkeypatch.setenv("SLOW_DEADLY", "s030")
    with pytest.raises(Incomplete, match=r"shard \d of 2: 3 times in a row .* SIGKILL .*--resume"):
        local(slow, 2, runner="slow")
    assert not slow.out.exists()
    report = json.loads(slow.report.read_text("utf-8"))
    assert not report["complete"]
    assert report["counts"]["trials"] == len(journal_lines(slow)) > 10
    monkeypatch.delenv("SLOW_DEADLY")
    expected = whole(slow, runner="slow")
    local(slow, 2, runner="slow", resume=True)
    assert slow.out.read_bytes() == expected


@pytest.mark.slow
def test_what_the_user_must_mend_is_told_once_and_leaves_nothing_behind(slow, monkeypatch):
    monkeypatch.setenv("SLOW_REFUSES", "1")
    with pytest.raises(UsageError, match=r"^slow: no such model; name another one$"):
        local(slow, 3, runner="slow")
    assert not Path(f"{slow.out}.journal").exists()


@pytest.mark.slow
def test_a_broken_line_of_answers_is_found_by_whose_shard_it_is(project):
    answers = project.answers.read_text("utf-8").splitlines()
    answers[7] = '{"sample_id": "s007", "model_output": 7}'
    project.answers.write_text("\n".join(answers) + "\n", "utf-8")
    with pytest.raises(UsageError, match=r"answers\.jsonl:8: model_output"):
        local(project, 3)


@pytest.mark.parametrize(("first", "then"), few([(None, 2), (2, None), (2, 3)]))
def test_resumed_by_another_number_of_shards_or_by_none(project, first, then):
    """The journal is the same whoever wrote it: finished trials are keyed by sample."""
    expected = whole(project)
    answers = project.answers.read_text("utf-8").splitlines(keepends=True)
    engine = {"engine": "local", "num_shards": first} if first else {}
    lost = json.loads(answers[3]) | {"status": "error"}
    project.write(answers=[json.loads(line) for line in answers[:3]] + [lost])
    with_errors = run(project.config(**engine, max_errors=0))
    assert with_errors.exit_code == 4
    head, *_ = Path(f"{project.out}.journal").read_bytes().splitlines(keepends=True)
    project.answers.write_text("".join(answers), "utf-8")
    # The journal of the right answers, of which three are finished.
    rest = expected.splitlines(keepends=True)[:3]
    fingerprint = json.loads(expected.splitlines()[0])["fingerprints"]["model_fingerprint"]
    old = json.loads(head)
    old["fingerprints"]["model_fingerprint"] = fingerprint
    text = json.dumps(old, separators=(",", ":")).encode() + b"\n"
    Path(f"{project.out}.journal").write_bytes(text + b"".join(map(stamp, rest)))
    engine = {"engine": "local", "num_shards": then} if then else {}
    run(project.config(**engine, resume=True))
    assert project.out.read_bytes() == expected
    assert without_timing(project.report) == without_timing(project.folder / "whole.json")


@pytest.mark.slow
def test_ctrl_c_ends_all_and_reports_what_is_finished(slow, monkeypatch):
    monkeypatch.setenv("SLOW_SECONDS", "0.05")
    child = start(slow, runner="slow", num_shards=2)
    wait_until(lambda: len(journal_lines(slow)) > 5)
    workers = children_of(child.pid)
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=60)
    assert child.returncode == 130, error
    assert not any(map(is_running, workers))
    report = json.loads(slow.report.read_text("utf-8"))
    assert not report["complete"]
    assert report["counts"]["trials"] == len(journal_lines(slow))
    monkeypatch.delenv("SLOW_SECONDS")
    expected = whole(slow, runner="slow")
    local(slow, 3, runner="slow", resume=True)
    assert slow.out.read_bytes() == expected


class HitWhileTaking(LocalEngine):
    """Somebody presses Ctrl-C when trials have left their process, and before they are kept."""

    def events(self, seconds):
        found = super().events(seconds)
        if any(isinstance(event, Lines) for _, event in found):
            os.kill(os.getpid(), signal.SIGINT)
        return found


@pytest.mark.slow
def test_ctrl_c_loses_no_trial_that_was_handed_over(slow, monkeypatch):
    """The report of an interrupted run counts what its journal has, and no more."""
    monkeypatch.setenv("SLOW_SECONDS", "0.05")
    config = complete_config(slow.config(engine="local", num_shards=2, runner="slow"))
    with HitWhileTaking() as engine:
        assert run(config, players=ByEngine(engine)).exit_code == 130
    finished = journal_lines(slow)
    assert len(finished) == json.loads(slow.report.read_text("utf-8"))["counts"]["trials"] > 0
    assert len(finished) == len((slow.folder / "answered.log").read_text().splitlines())


@pytest.mark.slow
def test_a_run_that_could_not_begin_leaves_nothing_to_resume(slow, monkeypatch):
    """The next one is not told to choose between --resume and --restart of nothing."""
    monkeypatch.setenv("SLOW_GONE", "yes")
    with pytest.raises(Incomplete, match="nobody there"):
        local(slow, runner="slow")
    assert not Path(f"{slow.out}.journal").exists()


def test_more_processes_than_the_system_allows_is_said_with_what_to_do(project):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 12, hard)
    )
    try:
        with pytest.raises(Incomplete, match=r"shard \d+ of 20: Too many open files.* fewer"):
            local(project, 20)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not Path(f"{project.out}.journal").exists()


@pytest.mark.slow
def test_workers_end_with_their_driver(slow, monkeypatch):
    monkeypatch.setenv("SLOW_SECONDS", "0.2")
    child = start(slow, runner="slow", num_shards=2)
    workers = wait_until(lambda: len(journal_lines(slow)) and children_of(child.pid))
    child.kill()
    child.communicate()
    wait_until(lambda: not any(map(is_running, workers)))


@pytest.mark.slow
def test_a_dataset_that_changes_under_a_worker_is_refused(slow, monkeypatch):
    monkeypatch.setenv("SLOW_SECONDS", "0.02")
    child = start(slow, runner="slow", num_shards=2)
    wait_until(lambda: journal_lines(slow))
    lines = slow.dataset.read_text("utf-8").splitlines(keepends=True)
    slow.dataset.write_text("".join(lines[:-1]), "utf-8")
    _, error = child.communicate(timeout=60)
    assert b"changed while it was in use" in error
    assert not slow.out.exists()


def test_options_that_do_not_go_together_are_refused(project):
    with pytest.raises(UsageError, match="--shard-index: an engine runs every shard"):
        local(project, 2, shard_index=1)
    with pytest.raises(UsageError, match="--num-cpus: is for --engine ray only"):
        local(project, 2, num_cpus=2)
    with pytest.raises(UsageError, match="--engine: needs --out"):
        run({**project.config(engine="local"), "out": None})
    with pytest.raises(UsageError, match=r"--engine: a runner .* stay in this process"):
        run(project.config(engine="local"), open_runner=open_replay)


@pytest.mark.slow
def test_a_dataset_on_standard_input_reaches_every_worker(project):
    expected = whole(project)
    words = ["run", "--quiet", "--in", "-", "--fixtures", project.fixtures, "--engine", "local"]
    words += ["--num-shards", "2", "--model", project.answers, "--out", project.out]
    done = subprocess.run(
        [sys.executable, "-m", "callmark", *map(str, words)],
        input=project.dataset.read_bytes(),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        check=False,
    )
    assert done.returncode in (0, 1, 5), done.stderr
    assert project.out.read_bytes() == expected


def test_bad_input_is_said_before_anything_starts(project):
    project.dataset.write_text('{"prompt": 1}\n', "utf-8")
    with pytest.raises(BadInput, match=r"dataset\.jsonl:1"):
        local(project, 2)
