"""Recorded answers in shards: merging them in units of scoring them, and the local engine with two
processes in units of one."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from filecmp import cmp
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.size import callmark, short_id, write_recorded

SHARDS = 16
MERGED = 16_000
PLAYED = 20_000
ROUNDS = 1
# The driver's own memory: what its children had counts elsewhere. What this process has when it
# starts one counts too, so no file is held here.
DRIVER = """
import resource, sys
from callmark.cli import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)
sys.exit(code)
"""


class Played(NamedTuple):
    wall_seconds: float
    driver_mb: float


def _merge_rows() -> Iterator[tuple[str, str, str]]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        files = write_recorded(folder, MERGED, short_id)
        whole, merged = folder / "whole.jsonl", folder / "merged.jsonl"
        scored = callmark("run", "--quiet", *files, "--out", whole)
        shards = [folder / f"results.shard_{index}.jsonl" for index in range(SHARDS)]
        for index, out in enumerate(shards):
            part = ("--num-shards", SHARDS, "--shard-index", index)
            report = folder / f"report.shard_{index}.json"
            callmark("run", "--quiet", *files, *part, "--out", out, "--report", report)
        used = callmark("merge", "--quiet", *shards, "--out", merged)
        assert cmp(merged, whole, shallow=False)
    ratio = f"{used.cpu_seconds / scored.cpu_seconds:.2f}"
    yield f"CPU: merge {SHARDS} shards of {MERGED:,} ÷ score them in one run", ratio, "<= 0.5"
    yield f"  MB: merge {SHARDS} shards of {MERGED:,}", f"{used.peak_mb:.0f}", "<= 150"


def _play(folder: Path, files: list[object], processes: int) -> Played:
    out = folder / f"results_{processes}.jsonl"
    engine = ("--engine", "local", "--num-shards", processes)
    words = [sys.executable, "-c", DRIVER, "run", "--quiet", *files, *engine, "--out", out]
    started = time.perf_counter()
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    assert done.returncode in (0, 1, 5), done.stderr
    return Played(seconds, float(done.stderr.split()[-1]))


def _engine_rows() -> Iterator[tuple[str, str, str]]:
    one, two = [], []
    with TemporaryDirectory() as name:
        folder = Path(name)
        files = write_recorded(folder, PLAYED, short_id)
        for _ in range(ROUNDS):
            one.append(_play(folder, files, 1))
            two.append(_play(folder, files, 2))
        first, second = (folder / f"results_{processes}.jsonl" for processes in (1, 2))
        assert cmp(first, second, shallow=False)
    faster = median(
        alone.wall_seconds / both.wall_seconds for alone, both in zip(one, two, strict=True)
    )
    what = f"wall time: local engine, {PLAYED:,} answers, 1 process ÷ 2"
    yield what, f"{faster:.2f}", ">= 1.7"
    driver = max(played.driver_mb for played in two)
    yield "  MB: its driver", f"{driver:.0f}", "<= 200"


def rows() -> Iterator[tuple[str, str, str]]:
    """(what, figure, bound), each as soon as it is known."""
    yield from _merge_rows()
    yield from _engine_rows()
