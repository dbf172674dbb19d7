"""What size costs: memory and CPU of many records, look-ups among many fixtures, verification.

`make bench` measures 20,000 of each, which takes some two minutes; `make bench-size`
(CALLMARK_BENCH_SIZE) a million, which takes most of an hour and 5 GB of disk. The bounds are those
for a million: only there do they say that it fits."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

SIZE = int(os.environ.get("CALLMARK_BENCH_SIZE", "20000"))
CITIES = 1000
LOOKUPS = 200_000
VERIFIED = 2000
# The children measure themselves: what a process had at most is known only when it ends.
LOAD = """
import json, random, resource, sys, time
from callmark import ToolBroker
folder, size, lookups = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
start = time.process_time()
broker = ToolBroker(folder)
load = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
chosen = random.Random(7).choices(range(size), k=lookups)
calls = [{"q": f"City  {number}", "lang": None} for number in chosen]
session = broker.session()
start = time.process_time()
for call in calls:
    session.answer("web.search", call)
rate = lookups / (time.process_time() - start)
assert broker.stats["hits"] == lookups
print(json.dumps({"load": load, "rate": rate, "peak": peak}))
"""

Row = tuple[str, str, str]


class Used(NamedTuple):
    cpu_seconds: float
    peak_mb: float


def short_id(number: int) -> str:
    return f"city-{number:07}"


def hash_id(number: int) -> str:
    """As long, and as little alike, as the ids of samples that were given none."""
    return hashlib.sha256(short_id(number).encode()).hexdigest()


NAMINGS: dict[str, Callable[[int], str]] = {"short": short_id, "SHA-256": hash_id}


def _item(number: int, sample_id: str) -> dict[str, object]:
    """A question about a city; every tenth is a control."""
    prompt = f"How many people live in city {number % CITIES}?"
    metadata: dict[str, object] = {"sample_id": sample_id}
    if number % 10 == 9:
        metadata["expected_behaviour"] = "no_tool"
    else:
        call = {"name": "web.search", "arguments": {"q": f"city {number % CITIES}"}}
        metadata["call_sequence"] = [call]
    return {"prompt": prompt, "metadata": metadata}


def _answer(number: int, sample_id: str) -> dict[str, object]:
    if number % 10 == 9:
        return {"sample_id": sample_id, "model_output": f"I know it without, {number % 7}."}
    call = {"name": "web.search", "arguments": {"q": f"City  {number % CITIES}"}}
    text = f"There live {1000 + 7 * (number % CITIES)} people there."
    return {"sample_id": sample_id, "model_output": text, "tool_trace": [call]}


def _fixture(number: int) -> dict[str, object]:
    result = {"ok": True, "count": 1000 + 7 * number, "summary": f"City {number} is large."}
    return {"name": "web.search", "key": {"q": f"city {number}"}, "result": result}


def _write(path: Path, lines: Iterable[dict[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def callmark(*words: object) -> Used:
    """CPU seconds and peak memory of one command. What its gates say is not measured here."""
    child = subprocess.Popen(
        [sys.executable, "-m", "callmark", *map(str, words)], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode in (0, 1, 5), words
    return Used(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def write_recorded(folder: Path, size: int, name: Callable[[int], str]) -> list[object]:
    """A dataset with its fixtures and answers, and how `callmark run` is told of them."""
    header: dict[str, object] = {"__header__": True, "dataset_version": "1"}
    samples = (_item(number, name(number)) for number in range(size))
    items = _write(folder / "dataset.jsonl", chain((header,), samples))
    replies = (_answer(number, name(number)) for number in range(size))
    answers = _write(folder / "answers.jsonl", replies)
    _write(folder / "fixtures" / "all.jsonl", map(_fixture, range(CITIES)))
    fixtures = folder / "fixtures"
    return ["--runner", "replay", "--in", items, "--fixtures", fixtures, "--model", answers]


def _run(folder: Path, size: int, name: Callable[[int], str]) -> Used:
    files = write_recorded(folder, size, name)
    return callmark("run", "--quiet", *files, "--out", folder / "results.jsonl")


def _record_rows(kind: str) -> Iterator[Row]:
    """With ids of one kind: memory of every way to score, and how CPU grows with the records."""
    with TemporaryDirectory() as name:
        whole = Path(name) / "whole"
        tenth = _run(Path(name) / "tenth", SIZE // 10, NAMINGS[kind])
        run = _run(whole, SIZE, NAMINGS[kind])
        growth = f"{run.cpu_seconds / tenth.cpu_seconds:.2f}"
        yield f"CPU: run {SIZE:,} ÷ {SIZE // 10:,} records, {kind} ids", growth, "<= 11"
        yield f"MB: run {SIZE:,} records, {kind} ids", f"{run.peak_mb:.0f}", "<= 150"
        again = callmark("score", "--quiet", whole / "results.jsonl")
        yield f"MB: score {SIZE:,} results, {kind} ids", f"{again.peak_mb:.0f}", "<= 150"
        foreign = callmark("score", "--quiet", whole / "answers.jsonl")
        yield f"MB: score {SIZE:,} answers, {kind} ids", f"{foreign.peak_mb:.0f}", "<= 150"
        yield from _compare_rows(whole / "results.jsonl", kind)


def _compare_rows(results: Path, kind: str) -> Iterator[Row]:
    """Against a model that gives up on every twentieth question."""
    worse = results.with_name("worse.jsonl")
    with results.open("rb") as lines, worse.open("wb") as made:
        for number, line in enumerate(lines):
            changes: dict[str, object] = {
                "model_output": "I do not know.",
                "turns": [],
                "spans": [],
            }
            gives_up = number % 20 == 0
            made.write(
                json.dumps({**json.loads(line), **changes}).encode() + b"\n" if gives_up else line
            )
    used = callmark("compare", "--quiet", results, worse)
    yield f"MB: compare {SIZE:,} pairs, {kind} ids", f"{used.peak_mb:.0f}", "<= 300"
    yield f"CPU s: compare {SIZE:,} pairs, {kind} ids", f"{used.cpu_seconds:.0f}", ""


def _fixture_rows() -> Iterator[Row]:
    with TemporaryDirectory() as name:
        folder = Path(name) / "many"
        _write(folder / "all.jsonl", map(_fixture, range(SIZE)))
        words = [sys.executable, "-c", LOAD, str(folder), str(SIZE), str(LOOKUPS)]
        done = subprocess.run(words, check=True, capture_output=True)
    found: dict[str, float] = json.loads(done.stdout)
    yield f"CPU s: load {SIZE:,} fixtures", f"{found['load']:.1f}", "<= 30"
    yield f"1000 look-ups/s among {SIZE:,}", f"{found['rate'] / 1000:.0f}", ">= 100"
    yield f"MB: {SIZE:,} fixtures", f"{found['peak']:.0f}", ""


def _verify_rows() -> Iterator[Row]:
    with TemporaryDirectory() as name:
        dataset, fixtures = Path(name) / "dataset.jsonl", Path(name) / "fixtures"
        made = ("--total", VERIFIED, "--seed", 7, "--out", dataset, "--fixtures", fixtures)
        callmark("dataset", "generate", *made)
        used = callmark("verify", "--quiet", dataset, "--fixtures", fixtures)
    per_100 = used.cpu_seconds * 100 / VERIFIED
    yield f"CPU s per 100: verify {VERIFIED:,} items, start included", f"{per_100:.2f}", "<= 2"


def rows() -> Iterator[Row]:
    """(what, figure, bound), each as soon as it is known."""
    for kind in NAMINGS:
        yield from _record_rows(kind)
    yield from _fixture_rows()
    yield from _verify_rows()
