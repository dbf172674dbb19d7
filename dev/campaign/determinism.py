"""The same in other processes: whatever the hash seed, the locale, the time zone or the folder."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from callmark.datasets.generate import AnswersWanted, generate

SETTINGS: tuple[dict[str, str], ...] = (
    {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"},
    {"PYTHONHASHSEED": "1", "TZ": "Asia/Kolkata", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "4294967295", "TZ": "America/St_Johns", "LC_ALL": "POSIX"},
    {"PYTHONHASHSEED": "12345", "TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8"},
    {"PYTHONHASHSEED": "7", "TZ": "Europe/Berlin", "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE"},
    {"PYTHONHASHSEED": "99", "TZ": ":nonsense", "LC_ALL": "xx_YY", "COLUMNS": "43"},
    {"PYTHONHASHSEED": "3", "TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "0"},
    {"PYTHONHASHSEED": "random", "TZ": "Asia/Tokyo", "LC_ALL": "ja_JP.eucJP", "HOME": "/nowhere"},
)
TIMES = (b"perf_budget", b" trials in ")  # lines that say how long it took
TIMED = ("report.json", "rescored.json")
PAGE_TIMES = re.compile(rb'<script type="application/json" id="timing">[^<]*</script>')
CASE_TIMES = re.compile(rb'<testcase [^>]* name="perf_budget[^>]*?(?:/>|>.*?</testcase>)', re.S)


class Differing(NamedTuple):
    setting: str
    file: str


class Determinism(NamedTuple):
    settings: int
    files: int
    differing: tuple[Differing, ...]


def check_determinism(total: int, seed: int, settings: int = len(SETTINGS)) -> Determinism:
    """One dataset through run, score, verify, compare and reports in child processes."""
    differing: list[Differing] = []
    first: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="callmark-campaign-") as name:
        for number, setting in enumerate(SETTINGS[:settings]):
            # Folders of one name, so that messages that hold a path are alike.
            folder = Path(name, str(number), "work")
            folder.mkdir(parents=True)
            answers = AnswersWanted(folder / "answers.jsonl", {"altered_number": 0.2})
            generate(total, seed, out=folder / "d.jsonl", fixtures=folder / "fx", answers=answers)
            # On a busy machine one of the runs may exceed the time budget: that is no difference.
            (folder / "callmark.yaml").write_text(
                "gates: {perf_budget_sec_per_100: {bound: 1000.0}}\n", "utf-8"
            )
            for words in _commands():
                _child(words, folder, setting)
            found = dict(_digests(folder))
            first = first or found
            shown = " ".join(f"{key}={value}" for key, value in setting.items())
            files = sorted(first.keys() | found.keys())
            differing += [Differing(shown, f) for f in files if first.get(f) != found.get(f)]
    return Determinism(settings, len(first), tuple(differing))


def _commands() -> Iterator[list[str]]:
    yield ["run", "--in", "d.jsonl", "--fixtures", "fx", "--model", "answers.jsonl", "--runner",
           "replay", "--out", "results.jsonl", "--report", "report.json"]  # fmt: skip
    yield ["score", "results.jsonl", "--out", "rescored.jsonl", "--report", "rescored.json"]
    yield ["report", "results.jsonl", "-o", "r.md", "-o", "r.xml", "-o", "r.csv"]
    yield ["show", "results.jsonl", "--claims"]
    yield ["dataset", "stats", "d.jsonl"]
    yield ["fixtures", "check", "fx", "--in", "d.jsonl"]


def _child(words: list[str], folder: Path, setting: dict[str, str]) -> None:
    kept = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}
    source = str(Path(__file__).parents[2] / "src")
    environment = {**kept, "PYTHONPATH": source, **setting}
    done = subprocess.run(
        [sys.executable, "-m", "callmark", *words],
        cwd=folder, env=environment, capture_output=True, check=False,
    )  # fmt: skip
    name = "-".join(word for word in words[:2] if word.isalpha())
    (folder / f"{name}.stdout").write_bytes(done.stdout)
    (folder / f"{name}.exit").write_text(str(done.returncode))


def without_timing(page: bytes) -> bytes:
    """A page without the one block that a clock filled."""
    return PAGE_TIMES.sub(b"", page, count=1)


def _digests(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if path.name in TIMED:
                data = json.dumps({**json.loads(data), "timing": None}, sort_keys=True).encode()
            if path.suffix == ".html":
                data = without_timing(data)
            if path.suffix == ".xml":  # a budget that is exceeded says by how much
                data = CASE_TIMES.sub(b"", data)
            if path.suffix in (".stdout", ".md"):
                # One gate is about time; how wide it is written sets the columns of its table.
                lines = [b" ".join(line.split()) for line in data.split(b"\n")]
                data = b"\n".join(line for line in lines if not any(word in line for word in TIMES))
            yield str(path.relative_to(folder)), hashlib.sha256(data).hexdigest()
