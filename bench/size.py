"""What size costs: memory and CPU of many records, look-ups among many fixtures.

`make bench` measures 20,000 of each; `make bench-size` (TOOLMARK_BENCH_SIZE) a million, which takes
half an hour and 8 GB of disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

SIZE = int(os.environ.get("TOOLMARK_BENCH_SIZE", "20000"))
CITIES = 1000
LOOKUPS = 200_000
# The children measure themselves: what a process had at most is known only when it ends.
LOAD = """
import json, random, resource, sys, time
from toolmark import ToolBroker
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


class Used(NamedTuple):
    cpu_seconds: float
    peak_mb: float


def _item(number: int) -> dict[str, object]:
    """A question about a city; every tenth is a control."""
    name = f"city-{number:07}"
    prompt = f"How many people live in city {number % CITIES}?"
    if number % 10 == 9:
        return {"prompt": prompt, "metadata": {"sample_id": name, "expected_behaviour": "no_tool"}}
    calls = [{"name": "web.search", "arguments": {"q": f"city {number % CITIES}"}}]
    return {"prompt": prompt, "metadata": {"sample_id": name, "call_sequence": calls}}


def _answer(number: int) -> dict[str, object]:
    name = f"city-{number:07}"
    if number % 10 == 9:
        return {"sample_id": name, "model_output": f"I know it without a tool, {number % 7}."}
    call = {"name": "web.search", "arguments": {"q": f"City  {number % CITIES}"}}
    text = f"There live {1000 + 7 * (number % CITIES)} people there."
    return {"sample_id": name, "model_output": text, "tool_trace": [call]}


def _fixture(number: int) -> dict[str, object]:
    result = {"ok": True, "count": 1000 + 7 * number, "summary": f"City {number} is large."}
    return {"name": "web.search", "key": {"q": f"city {number}"}, "result": result}


def _write(path: Path, lines: Iterable[dict[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def _toolmark(*words: object) -> Used:
    """CPU seconds and peak memory of one command. Answers without a dataset decide no gate."""
    child = subprocess.Popen(
        [sys.executable, "-m", "toolmark", *map(str, words), "--quiet"], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode in (0, 5), words
    return Used(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def _run(folder: Path, size: int) -> Used:
    header: dict[str, object] = {"__header__": True, "dataset_version": "1"}
    items = _write(folder / "dataset.jsonl", chain((header,), map(_item, range(size))))
    answers = _write(folder / "answers.jsonl", map(_answer, range(size)))
    _write(folder / "fixtures" / "all.jsonl", map(_fixture, range(CITIES)))
    files = ("--in", items, "--fixtures", folder / "fixtures", "--model", answers)
    return _toolmark("run", "--runner", "replay", *files, "--out", folder / "results.jsonl")


def _fixtures(folder: Path, size: int) -> dict[str, float]:
    _write(folder / "many" / "all.jsonl", map(_fixture, range(size)))
    words = [sys.executable, "-c", LOAD, str(folder / "many"), str(size), str(LOOKUPS)]
    done = subprocess.run(words, check=True, capture_output=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def rows() -> list[tuple[str, str, str]]:
    """(what, figure, bound). Peak memory has its bound at a million, and is shown at any size."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        tenth = _run(folder / "tenth", SIZE // 10)
        whole = _run(folder / "whole", SIZE)
        again = _toolmark("score", folder / "whole" / "results.jsonl")
        foreign = _toolmark("score", folder / "whole" / "answers.jsonl")
        (folder / "whole" / "results.jsonl").unlink()
        fixtures = _fixtures(folder, SIZE)
    return [
        (f"CPU: run {SIZE:,} ÷ run {SIZE // 10:,} records", _ratio(whole, tenth), "<= 11"),
        (f"MB at most: run {SIZE:,} records", f"{whole.peak_mb:.0f}", "<= 150"),
        (f"MB at most: score {SIZE:,} results", f"{again.peak_mb:.0f}", "<= 150"),
        (f"MB at most: score {SIZE:,} answers of others", f"{foreign.peak_mb:.0f}", "<= 150"),
        (f"CPU s: load {SIZE:,} fixtures", f"{fixtures['load']:.1f}", "<= 30"),
        (f"1000 look-ups/s among {SIZE:,}", f"{fixtures['rate'] / 1000:.0f}", ">= 100"),
        (f"MB at most: {SIZE:,} fixtures", f"{fixtures['peak']:.0f}", ""),
    ]


def _ratio(larger: Used, smaller: Used) -> str:
    return f"{larger.cpu_seconds / smaller.cpu_seconds:.2f}"
