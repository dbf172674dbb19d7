"""Traces interleave in a file of spans, so they wait on disk: memory does not grow with their number."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.datasets.importing.span_rows import DIALECTS

PEAK = """
import resource, sys
from pathlib import Path
from callmark.datasets.importing.importing import import_dataset
from callmark.datasets.importing.writing import ImportPaths

source, folder = map(Path, sys.argv[1:])
report = import_dataset(source, ImportPaths(
    dataset=folder / "data.jsonl", registry=folder / "tools.json",
    fixtures=folder / "fixtures", answers=folder / "answers.jsonl",
))
print(report.counts.samples, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def write_traces(path: Path, count: int) -> Path:
    """All first spans, then all second ones, and so on."""
    rows = [json.dumps(row) for row in DIALECTS["genai"][0]()]
    with path.open("w", encoding="utf-8") as stream:
        for row in rows:
            for number in range(count):
                named = row.replace("5" * 32, f"{number:032x}").replace("Ulm", f"Ulm {number}")
                stream.write(named + "\n")
    return path


def peak_of(path: Path, folder: Path) -> tuple[int, int]:
    told = subprocess.run(
        [sys.executable, "-c", PEAK, path, folder], capture_output=True, text=True, check=True
    ).stdout
    samples, kilobytes = map(int, told.split())
    return samples, kilobytes


@pytest.mark.slow
def test_memory_stays_flat_over_ten_times_as_many_traces(tmp_path):
    few = peak_of(write_traces(tmp_path / "few.jsonl", 600), tmp_path / "few")
    many = peak_of(write_traces(tmp_path / "many.jsonl", 6_000), tmp_path / "many")
    assert (few[0], many[0]) == (600, 6_000)
    # A database's cache of 8 MiB, and short hashes of every sample.
    assert many[1] - few[1] < 20_000
