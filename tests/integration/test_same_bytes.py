"""What must stay where scoring changes: on datasets that are read with `marker`, every lax and
strict number of every sample, to the digit, as it was before statements were checked. And two runs
come to the same bytes. `python -m tests.integration.test_same_bytes` prints the hashes."""

import hashlib
import json
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from tests.pace import few

from callmark.cli import main

HASHES: dict[str, dict[str, str]] = {
    "demo": {"read": "179", "samples": "ce1cc191753ee33f", "metrics": "55da3c0696c2bed5"},
    "example": {"read": "153", "samples": "fac640c864ae72b6", "metrics": "baa8e0a5b981fcfd"},
    "generated": {"read": "400", "samples": "8ea90cded95d95ad", "metrics": "90621d016ede0d0d"},
}

FAULTS = (
    "ungrounded_span=0.1", "altered_number=0.1", "altered_date=0.1", "missing_call=0.05",
    "wrong_argument=0.05", "malformed_call=0.05", "contaminated_control=0.1", "leaked_email=0.05",
)  # fmt: skip
# Of a span: where it is, and what it counts for.
OF_SPAN = ("start", "end", "scored", "lax", "strict", "counted", "good")
OF_SCORES = (
    "lax", "strict", "spans_total", "spans_over_cap", "spans_counted", "recall_kind",
    "facts_required",
)  # fmt: skip


def call(*words: str) -> None:
    with redirect_stdout(StringIO()):
        code = main(list(words))
    assert code in (0, 1, 5), (code, words)


def demo(out: str = "run") -> Path:
    call("demo", "--replay", "--out-dir", out)
    return Path(out)


def example(out: str = "run") -> Path:
    if not Path("callmark.yaml").exists():
        call("init", "--example", ".")
    call("run", "--out", f"{out}/results.jsonl", "--no-html")
    return Path(out)


def generated(out: str = "run") -> Path:
    made = ["--total", "400", "--seed", "7", "--out", "data.jsonl", "--fixtures", "fixtures"]
    planted = [word for fault in FAULTS for word in ("--fault", fault)]
    if not Path("data.jsonl").exists():
        call("dataset", "generate", *made, "--with-answers", "flawed", *planted)
    given = ["--in", "data.jsonl", "--fixtures", "fixtures", "--model", "data.answers.jsonl"]
    call("run", *given, "--out", f"{out}/results.jsonl", "--no-html")
    return Path(out)


BUILDS = (demo, example, generated)


def hashes(run: Path) -> dict[str, str]:
    """Of the numbers of every sample that was read with `marker`, and of what they come to."""
    results = map(json.loads, (run / "results.jsonl").read_text("utf-8").splitlines())
    samples = [numbers_of(one) for one in results if one["span_extractor"] == "marker"]
    metrics = json.loads((run / "report.json").read_bytes())["metrics"]
    named = {name: one for name, one in metrics.items() if name.startswith("integration_")}
    return {"read": str(len(samples)), "samples": digest(samples), "metrics": digest(named)}


def numbers_of(result: dict) -> list:
    scores = result["scores"]
    spans = [[span[name] for name in OF_SPAN] for span in scores["spans"]]
    numbers = [scores[name] for name in OF_SCORES]
    return [result["sample_id"], result["trial"], spans, numbers]


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def timeless(run: Path) -> list[object]:
    report = json.loads((run / "report.json").read_bytes())
    del report["timing"]
    return [(run / "results.jsonl").read_bytes(), report]


@pytest.mark.parametrize("build", few(BUILDS, 2), ids=lambda build: build.__name__)
def test_lax_and_strict_stay_as_they_were_and_two_runs_are_equal(tmp_path, monkeypatch, build):
    monkeypatch.chdir(tmp_path)
    first = build("one")
    assert hashes(first) == HASHES[build.__name__]
    assert timeless(first) == timeless(build("two"))


if __name__ == "__main__":
    for build in BUILDS:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            found = json.dumps(hashes(build()), indent=8)
            sys.stdout.write(f'    "{build.__name__}": {found},\n')
