"""A change of shape changes no result: what four sets of answers come to, byte for byte. Where a
change is meant to alter them, the hashes are written anew in the same commit:
`python -m tests.integration.test_same_bytes` prints them."""

import hashlib
import json
import os
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from callmark.cli import main
from callmark.resources import data_path

HASHES: dict[str, dict[str, str]] = {
    "demo": {
        "results.jsonl": "93f818866e4b6ac2",
        "report.json": "582116ab18f94f1f",
        "report.html": "f3508a7135d53a15",
        "junit.xml": "5181d7e688555d50",
        "summary.md": "d28f7d714736c778",
    },
    "example": {
        "results.jsonl": "f32928295c54f464",
        "report.json": "d765fcbcb307b311",
        "report.html": "59a20ebf3cf00e2d",
        "junit.xml": "730acc667de31d18",
        "summary.md": "cfcbb17d2ebc43a0",
    },
    "generated": {
        "results.jsonl": "512cb15847ede88b",
        "report.json": "68c57b5366edef30",
        "report.html": "2dddc931d0aa0e7a",
        "junit.xml": "d27e00e98836924b",
        "summary.md": "d3442e8ee722db3d",
    },
    "tau2_main_retail": {
        "results.jsonl": "9be36452fe5dca79",
        "report.json": "e74c51b64554b061",
        "report.html": "5a4754709eb190d1",
        "junit.xml": "60714518c91ee1d1",
        "summary.md": "02b4ea686bfb533b",
    },
    "tau_bench_airline_gpt4o": {
        "results.jsonl": "0244ef82f519e029",
        "report.json": "7856215ece98cf99",
        "report.html": "cf9764a529046ecd",
        "junit.xml": "60714518c91ee1d1",
        "summary.md": "9231d04e4994db8f",
    },
}

FAULTS = (
    "ungrounded_span=0.1", "altered_number=0.1", "altered_date=0.1", "missing_call=0.05",
    "wrong_argument=0.05", "malformed_call=0.05", "contaminated_control=0.1", "leaked_email=0.05",
)  # fmt: skip
OLDER = ("tau2_main_retail", "tau_bench_airline_gpt4o")


def call(*words: str) -> None:
    with redirect_stdout(StringIO()):
        code = main(list(words))
    assert code in (0, 1, 5), (code, words)


def demo() -> Path:
    call("demo", "--replay", "--out-dir", "run")
    return Path("run")


def example() -> Path:
    call("init", "--example", ".")
    call("run", "--out", "run/results.jsonl", "--no-html")
    return Path("run")


def generated() -> Path:
    made = ["--total", "400", "--seed", "7", "--out", "data.jsonl", "--fixtures", "fixtures"]
    planted = [word for fault in FAULTS for word in ("--fault", fault)]
    call("dataset", "generate", *made, "--with-answers", "flawed", *planted)
    given = ["--in", "data.jsonl", "--fixtures", "fixtures", "--model", "data.answers.jsonl"]
    call("run", *given, "--out", "run/results.jsonl", "--no-html")
    return Path("run")


def episodes(name: str) -> Path:
    real = Path(os.environ["CALLMARK_REAL_DATA"])
    Path("in.jsonl").symlink_to(real / "episodes" / f"{name}.jsonl")
    call("score", "in.jsonl", "--out", "run/results.jsonl", "--report", "run/report.json")
    return Path("run")


def hashes(run: Path) -> dict[str, str]:
    """Of the run's files, and of its report in every form as if each of its steps had taken one
    second."""
    report = json.loads((run / "report.json").read_bytes())
    timing = all_ones(report["timing"])
    timing["exceeded"], timing["perf_budget"]["status"] = False, "pass"
    report["timing"] = timing
    text = json.dumps(report, ensure_ascii=False).replace(str(data_path()), "data")
    (run / "report.json").write_text(text, "utf-8")
    forms = ["-o", "run/junit.xml", "-o", "run/summary.md", "-o", "run/report.html"]
    call("report", str(run), *forms)
    names = ("results.jsonl", "report.json", "report.html", "junit.xml", "summary.md")
    return {name: hashlib.sha256((run / name).read_bytes()).hexdigest()[:16] for name in names}


def all_ones(value: object) -> object:
    if isinstance(value, dict):
        return {key: all_ones(inner) for key, inner in value.items()}
    return 1.0 if isinstance(value, float) else value


def check(name: str, run: Path) -> None:
    assert hashes(run) == HASHES[name]


@pytest.mark.parametrize("build", [demo, example, generated], ids=lambda build: build.__name__)
def test_shipped_sets_come_to_the_same_bytes(tmp_path, monkeypatch, build):
    monkeypatch.chdir(tmp_path)
    check(build.__name__, build())


@pytest.mark.real
@pytest.mark.parametrize("name", OLDER)
def test_real_episodes_come_to_the_same_bytes(tmp_path, monkeypatch, name):
    if "CALLMARK_REAL_DATA" not in os.environ:
        pytest.skip("CALLMARK_REAL_DATA is not set")
    monkeypatch.chdir(tmp_path)
    check(name, episodes(name))


if __name__ == "__main__":
    every = {build.__name__: build for build in (demo, example, generated)}
    if "CALLMARK_REAL_DATA" in os.environ:
        every |= {name: lambda name=name: episodes(name) for name in OLDER}
    for name, build in every.items():
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            sys.stdout.write(f'    "{name}": {json.dumps(hashes(build()), indent=8)},\n')
