"""Killed at the end: the results are written, then the report and its forms, then the journal
goes. Cut short anywhere, `--resume` gives the same bytes and asks for nothing that was answered."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.endpoints import Answer, Request, Server, completion

LEFT = 20  # trials that some of the journals still lack
FILES = ("results.jsonl", "report.json", "summary.md", "junit.xml")
# What can be seen of the end of a run, in this order. A kill is aimed at the time after one of
# them: on a busy machine a moment counted from the beginning would always fall into the first.
STEPS = (".callmark-*", *FILES)
WAIT_SECONDS = 600.0


class Killed(NamedTuple):
    """`ends`: how far the runs were when they were killed."""

    ends: Counter[str]
    problems: list[str]


def check_kills(kills: int, samples: int, seed: str) -> Killed:
    found = Killed(Counter(), [])
    with tempfile.TemporaryDirectory(prefix="callmark-kills-") as name, Server(_answer) as server:
        folder = Path(name)
        prepared = _Prepared(folder, server, samples)
        chance = random.Random(seed)
        for number in range(kills):
            left = LEFT if number % 4 == 3 else 0
            step = number % len(STEPS)
            end, problems = prepared.kill(step, chance.random(), left)
            found.ends[end] += 1
            found.problems.extend(f"kill {number} ({end}): {problem}" for problem in problems)
    return found


def _answer(request: Request) -> Answer:
    number = int(str(request.messages[-1]["content"]).split()[-1].rstrip("?"))
    return completion(f"There live {1000 + 7 * number} people there.", system_fingerprint="fp")


class _Prepared:
    """A run whose every trial is in its journal, and the files that it ends with."""

    def __init__(self, folder: Path, server: Server, samples: int) -> None:
        self._folder, self._server = folder, server
        self._journal = folder / "results.jsonl.journal"
        (folder / "fixtures").mkdir()
        fixture = {"name": "web.search", "key": {"q": "city 0"}, "result": {"count": 1000}}
        (folder / "fixtures" / "all.jsonl").write_text(json.dumps(fixture) + "\n")
        with (folder / "dataset.jsonl").open("w", encoding="utf-8") as stream:
            stream.write('{"__header__": true}\n')
            for number in range(samples):
                stream.write(json.dumps(_item(number)) + "\n")
        full = self._run("--report", "/dev/full")
        if full != 4:
            raise RuntimeError(f"a run without room for its report ended with {full}")
        self._results = self._file("results.jsonl")
        lines = self._journal.read_bytes().splitlines(keepends=True)
        self._whole = [line for line in lines if not line.startswith(b'{"written"')]
        self._restore(0)
        self._code = self._run("--resume")
        self._expected = {name: self._file(name) for name in FILES}
        self._seconds = self._lengths()

    def kill(self, step: int, share: float, left: int) -> tuple[str, list[str]]:
        """A run that lacks `left` trials is killed in the time after `step`; then `--resume`."""
        self._restore(left)
        child = self._child("--resume")
        self._wait_for(STEPS[step], child)
        time.sleep(share * self._seconds[step])
        child.kill()
        child.wait()
        end = self._how_far(ended=child.returncode >= 0)
        answered = self._answered()
        del self._server.requests[:], self._server.looks[:]
        code = self._run("--resume")
        return end, list(self._problems(code, answered, left))

    def _problems(self, code: int, answered: set[str], left: int) -> Iterator[str]:
        if code != self._code:
            yield f"exit code {code}, not {self._code}"
        if self._journal.exists():
            yield "the journal is still there"
        if self._file("results.jsonl") != self._results:
            yield "results.jsonl is not that of a run that nobody killed"
        for name in FILES:
            if self._file(name) != self._expected[name]:
                yield f"{name} differs"
        asked = [str(one.messages[-1]["content"]).split()[-1].rstrip("?")
                 for one in self._server.requests]  # fmt: skip
        if again := answered.intersection(asked):
            yield f"asked again although answered: {sorted(again)[:5]}"
        if not left and (self._server.looks or asked):
            yield "the server was asked although nothing was left"

    def _restore(self, left: int) -> None:
        for name in FILES:
            (self._folder / name).unlink(missing_ok=True)
        kept = self._whole[:-left] if left else self._whole
        self._journal.write_bytes(b"".join(kept))

    def _answered(self) -> set[str]:
        """The numbers of the samples whose answers were on the disk."""
        path = self._journal if self._journal.exists() else self._folder / "results.jsonl"
        *lines, _torn = path.read_bytes().split(b"\n")
        found = map(json.loads, lines)
        return {str(line["index"]) for line in found if "sample_id" in line}

    def _how_far(self, *, ended: bool) -> str:
        if ended:
            return "had ended"
        if not self._journal.exists():
            return "journal gone"
        there = [(self._folder / name).exists() for name in FILES]
        if all(there):
            return "everything written"
        if there[1]:
            return "report written"
        return "results written" if there[0] else "nothing written"

    def _lengths(self) -> list[float]:
        """The seconds after each step, to the next one or to the end of the process."""
        self._restore(0)
        child = self._child("--resume")
        moments = []
        for step in STEPS:
            self._wait_for(step, child)
            moments.append(time.monotonic())
        child.wait()
        moments.append(time.monotonic())
        return [later - earlier for earlier, later in pairwise(moments)]

    def _wait_for(self, step: str, child: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + WAIT_SECONDS
        while not any(self._folder.glob(step)) and child.poll() is None:
            if time.monotonic() > until:
                child.kill()
                raise RuntimeError("a run did not come to its end")
            time.sleep(0.0005)

    def _run(self, *words: str) -> int:
        return self._child(*words).wait()

    def _child(self, *words: str) -> subprocess.Popen[bytes]:
        source = Path(__file__).parents[2] / "src"
        kept = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        return subprocess.Popen(
            [sys.executable, "-m", "callmark", "run", "--in", "dataset.jsonl", "--fixtures",
             "fixtures", "--runner", "openai_http", "--model", "stub", "--base-url",
             self._server.url, "--out", "results.jsonl", "--report", "report.json", "--markdown",
             "summary.md", "--junit", "junit.xml", "--no-html", "--quiet", *words],
            cwd=self._folder, env={**kept, "PYTHONPATH": str(source)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def _file(self, name: str) -> bytes:
        """What is in it, but for what a clock measured."""
        data = (self._folder / name).read_bytes()
        if name == "report.json":
            return json.dumps({**json.loads(data), "timing": None}).encode()
        if name == "results.jsonl":
            return data
        return b"written" if data else b""


def _item(number: int) -> dict[str, object]:
    call = {"name": "web.search", "arguments": {"q": f"city {number}"}}
    metadata = {"sample_id": f"s{number:05}", "call_sequence": [call]}
    return {"prompt": f"How many people live in city {number}?", "metadata": metadata}
