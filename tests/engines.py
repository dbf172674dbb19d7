"""A runner for tests of engines: recorded answers, but slow, written down, and fatal if asked.

It is installed as a plug-in would be, so that worker processes find it like any other."""

from __future__ import annotations

import os
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"

MODULE = '''
"""Answers from a recording; the environment says what goes wrong."""
import os, signal, time
from contextlib import contextmanager
from callmark.records.seams import Runner
from callmark.errors import Incomplete, UsageError
from callmark.runners.replay import open_replay


class SlowRunner(Runner):
    name = "slow"
    suspends = False
    max_batch = 1

    def __init__(self, replay):
        self._replay = replay

    async def ready(self):
        if "SLOW_REFUSES" in os.environ:
            raise UsageError("slow: no such model; name another one")
        if "SLOW_GONE" in os.environ:
            raise Incomplete("slow: nobody there")

    async def answer(self, batch):
        time.sleep(float(os.environ.get("SLOW_SECONDS", "0")))
        name = batch[0].sample_id
        if name == os.environ.get("SLOW_DEADLY"):
            os.kill(os.getpid(), signal.SIGKILL)
        once = os.environ.get("SLOW_DIES_ONCE")
        if once and name.endswith("7") and not os.path.exists(once + name):
            open(once + name, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        if "SLOW_LOG" in os.environ:
            with open(os.environ["SLOW_LOG"], "a") as log:
                log.write(f"{name} {batch[0].trial}\\n")
        return await self._replay.answer(batch)

    def model_fingerprint(self):
        return self._replay.model_fingerprint()


@contextmanager
def open_slow(options):
    with open_replay(options) as replay:
        yield SlowRunner(replay)
'''


def install_slow_runner(folder: Path, monkeypatch) -> None:
    """The runner `slow`, for this process and for all that it starts."""
    info = folder / "slow_runner-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "slow_runner.py").write_text(MODULE, "utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-runner\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[callmark.runners]\nslow = slow_runner:open_slow\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SRC), str(folder)]))


def children_of(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
