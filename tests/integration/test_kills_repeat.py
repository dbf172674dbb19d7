"""`kill -9` again and again while `--repeat 3` is at work: no trial is lost, none is there twice,
and the file is the one of a run that nobody disturbed."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.integration.test_engine_local import wait_until

from callmark.run.conclude import run

SRC = Path(__file__).parents[2] / "src"
REPEAT = 3

# A run that takes a moment for each trial, so that a kill meets it at work.
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


@pytest.fixture
def repeated(large_project):
    """Every sample answered three times, each time otherwise; every seventh trial failed."""
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


def settings(project, **more) -> dict:
    return project.config(repeat=REPEAT, max_errors="50%", **more)


def finished_trials(journal: Path) -> list[tuple[str, int]]:
    """The trials with a score whose lines are whole."""
    if not journal.exists():
        return []
    *whole, _torn = journal.read_bytes().split(b"\n")
    lines = [json.loads(line) for line in whole]
    return [(line["sample_id"], line["trial"]) for line in lines if line.get("status") == "ok"]


def run_and_kill(project, journal: Path, seconds: float | None) -> None:
    """After `seconds`, or when the journal has grown, however busy the machine is."""
    known = len(finished_trials(journal))
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(settings(project, resume=True))],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        stdout=subprocess.PIPE,
    )
    assert child.stdout.readline() == b"ready\n"
    if seconds is None:
        wait_until(lambda: len(finished_trials(journal)) > known or child.poll() is not None)
    else:
        time.sleep(seconds)
    child.kill()
    child.communicate()


@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_lose_no_trial_and_double_none(repeated, kills):
    run(settings(repeated, out=str(repeated.folder / "whole.jsonl")))
    whole = (repeated.folder / "whole.jsonl").read_bytes()
    assert len(whole.splitlines()) == 60 * REPEAT
    journal = Path(f"{repeated.out}.journal")
    moments = random.Random(kills)
    before, met_at_work = set(), 0
    for kill in range(kills):
        run_and_kill(repeated, journal, moments.uniform(0, 0.6) if kill % 2 else None)
        trials = finished_trials(journal)
        assert len(trials) == len(set(trials))
        if repeated.out.exists():
            assert repeated.out.read_bytes() == whole
        if repeated.out.exists() and not journal.exists():  # it came to its end: once more
            repeated.out.unlink()
            before = set()
            continue
        assert before <= set(trials)
        met_at_work += set(trials) > before
        before = set(trials)
    assert met_at_work > kills // 10, "too few kills met the run at work"
    run(settings(repeated, resume=True))
    assert repeated.out.read_bytes() == whole
    assert not journal.exists()
