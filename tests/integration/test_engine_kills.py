"""`kill -9` of workers and of the driver, again and again: nothing is lost, nothing is there twice,
and the file is that of a run that nobody disturbed."""

import json
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.engines import children_of, install_slow_runner
from tests.integration.test_engine_local import journal_lines, start, wait_until, whole

REPEAT = 3


@pytest.fixture
def repeated(large_project, tmp_path, monkeypatch):
    """Every sample answered three times, each time otherwise; every seventh trial failed."""
    install_slow_runner(tmp_path / "plugin", monkeypatch)
    monkeypatch.setenv("SLOW_SECONDS", "0.01")
    answers = [json.loads(line) for line in large_project.answers.read_text("utf-8").splitlines()]
    lines = [
        {**answer, "trial": trial, "model_output": f"{answer['model_output']} ({trial})"}
        for answer in answers
        for trial in range(REPEAT)
    ]
    for line in lines[::7]:
        line |= {"status": "error", "error": "timeout"}
    large_project.write(answers=lines)
    return large_project


SETTINGS = {"repeat": REPEAT, "max_errors": "50%", "runner": "slow"}


def disturbed(project, moments: random.Random, *, at_work: bool) -> bool:
    """One run, in which a worker or the driver is killed: by the clock, or `at_work`, when the
    journal has grown, however busy the machine is. Whether it came to its end."""
    known = len(journal_lines(project))
    child = start(project, **SETTINGS, resume=True, num_shards=moments.choice([2, 3]))
    if at_work:
        wait_until(lambda: len(journal_lines(project)) > known or child.poll() is not None)
    else:
        time.sleep(moments.uniform(0.3, 1.8))
    workers = children_of(child.pid)
    driver = moments.random() < 0.5 or not workers
    victim = child.pid if driver else moments.choice(workers)
    with suppress(ProcessLookupError):
        os.kill(victim, signal.SIGKILL)
    if not driver:
        time.sleep(moments.uniform(0, 0.5))
        child.kill()
    child.communicate()
    return project.out.exists() and not Path(f"{project.out}.journal").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_of_workers_and_driver_lose_no_trial_and_double_none(repeated, kills):
    expected = whole(repeated, **SETTINGS)
    assert len(expected.splitlines()) == 60 * REPEAT
    moments = random.Random(kills)
    before: set[tuple[str, int]] = set()
    met_at_work = 0
    for kill in range(kills):
        came_to_its_end = disturbed(repeated, moments, at_work=kill % 2 == 0)
        trials = journal_lines(repeated)
        assert len(trials) == len(set(trials))
        if repeated.out.exists():
            assert repeated.out.read_bytes() == expected
        if came_to_its_end:  # once more
            repeated.out.unlink()
            before = set()
            continue
        assert before <= set(trials)
        met_at_work += set(trials) > before
        before = set(trials)
    assert met_at_work > kills // 10, "too few kills met the run at work"
    child = start(repeated, **SETTINGS, resume=True, num_shards=2)
    child.communicate(timeout=120)
    assert repeated.out.read_bytes() == expected
    assert not Path(f"{repeated.out}.journal").exists()
