"""What `--cache` costs and saves: a served run that fills it and one that is answered by it, in
units of a run without it; and the folder alone, with many answers in it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from statistics import median
from tempfile import TemporaryDirectory

from bench.http import run_callmark, stub_server, write_files

ROUNDS = 3
SAMPLES = 4_000
KEPT = 100_000
# Two processes: what the first had at most would hide what the second needs.
START = """
import hashlib, json, random, resource, sys, time
from pathlib import Path
from callmark.store.response_cache import ResponseCache
folder, size = Path(sys.argv[1]), int(sys.argv[2])
keys = [hashlib.sha256(b"%d" % number).hexdigest() for number in range(size)]
text = b'{"text":"%s"}' % (b"There live 7007 people there. " * 20)
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
"""
FILL = """
with ResponseCache(folder) as cache:
    for key in keys:
        cache.put(key, text)
print(json.dumps({"put": time.process_time() - start}))
"""
FIND = """
with ResponseCache(folder) as cache:
    opened = time.process_time() - start
    random.Random(7).shuffle(keys)
    start = time.process_time()
    assert all(cache.get(key) == text for key in keys)
    got = time.process_time() - start
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
print(json.dumps({"open": opened, "get": got, "grown": grown}))
"""


def _served_rows() -> Iterator[tuple[str, str, str]]:
    filling, answered = [], []
    with TemporaryDirectory() as name, stub_server() as url:
        folder = Path(name)
        cache = folder / "cache"
        kept = ("--cache", cache, "--model-revision", "1")
        write_files(folder, SAMPLES)
        for _ in range(ROUNDS):
            plain = run_callmark(folder, url).cpu_seconds
            filling.append(run_callmark(folder, url, *kept).cpu_seconds / plain)
            answered.append(run_callmark(folder, url, *kept).cpu_seconds / plain)
            rmtree(cache)
    served = f"CPU: run {SAMPLES:,} served samples"
    yield f"{served}, filling a cache ÷ without", f"{median(filling):.2f}", "<= 1.25"
    yield f"{served}, answered by it ÷ without", f"{median(answered):.2f}", "<= 1"


def _folder_rows() -> Iterator[tuple[str, str, str]]:
    found: dict[str, float] = {}
    with TemporaryDirectory() as name:
        for script in (FILL, FIND):
            words = [sys.executable, "-c", START + script, str(Path(name) / "cache"), str(KEPT)]
            done = subprocess.run(words, check=True, capture_output=True)
            found |= json.loads(done.stdout)
    yield f"CPU s: open a cache of {KEPT:,} answers", f"{found['open']:.2f}", "<= 1"
    yield "  µs: find one of them", f"{found['get'] / KEPT * 1e6:.0f}", "<= 50"
    yield "  µs: keep one", f"{found['put'] / KEPT * 1e6:.0f}", "<= 50"
    yield "  MB: while it is open", f"{found['grown']:.0f}", "<= 20"


def rows() -> Iterator[tuple[str, str, str]]:
    """(what, figure, bound), each as soon as it is known."""
    yield from _served_rows()
    yield from _folder_rows()
