"""A change of shape changes no result: what four sets of answers come to, byte for byte. Where a
change is meant to alter them, the hashes are written anew in the same commit:
`python -m tests.integration.test_same_bytes` prints them."""

import hashlib
import json
import os
import re
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
        "report.html": "e6dc613e47c5f3b0",
        "junit.xml": "5181d7e688555d50",
        "summary.md": "d28f7d714736c778",
    },
    "example": {
        "results.jsonl": "f32928295c54f464",
        "report.json": "d765fcbcb307b311",
        "report.html": "8c551cdeba639255",
        "junit.xml": "730acc667de31d18",
        "summary.md": "cfcbb17d2ebc43a0",
    },
    "generated": {
        "results.jsonl": "512cb15847ede88b",
        "report.json": "68c57b5366edef30",
        "report.html": "00a5b95b26545d63",
        "junit.xml": "d27e00e98836924b",
        "summary.md": "d3442e8ee722db3d",
    },
    "tau2_main_retail": {
        "results.jsonl": "9be36452fe5dca79",
        "report.json": "e74c51b64554b061",
        "report.html": "6960c40baa490d72",
        "junit.xml": "60714518c91ee1d1",
        "summary.md": "02b4ea686bfb533b",
    },
    "tau_bench_airline_gpt4o": {
        "results.jsonl": "0244ef82f519e029",
        "report.json": "7856215ece98cf99",
        "report.html": "91a608b65b64bb85",
        "junit.xml": "60714518c91ee1d1",
        "summary.md": "9231d04e4994db8f",
    },
}

FAULTS = (
    "ungrounded_span=0.1", "altered_number=0.1", "altered_date=0.1", "missing_call=0.05",
    "wrong_argument=0.05", "malformed_call=0.05", "contaminated_control=0.1", "leaked_email=0.05",
)  # fmt: skip
# Gained since the hashes were taken; taken out again before anything is hashed.
ADDED_METRICS = ("checks_ok_rate",)
ADDED_TO_SCORES = b',"checks_ok":null,"checks":[]'
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
    drop_added(report)
    results = (run / "results.jsonl").read_bytes()
    if report["shard"] is not None:
        assert report["shard"]["results_sha256"] == hashlib.sha256(results).hexdigest()
    results = results.replace(ADDED_TO_SCORES, b"")
    if report["shard"] is not None:
        report["shard"]["results_sha256"] = hashlib.sha256(results).hexdigest()
    (run / "results.jsonl").write_bytes(results)
    text = json.dumps(report, ensure_ascii=False).replace(str(data_path()), "data")
    (run / "report.json").write_text(text, "utf-8")
    forms = ["-o", "run/junit.xml", "-o", "run/summary.md", "-o", "run/report.html"]
    call("report", str(run), *forms)
    names = ("results.jsonl", "report.json", "report.html", "junit.xml", "summary.md")
    found = {name: (run / name).read_bytes() for name in names}
    found["report.html"] = page_data(found["report.html"])
    return {name: hashlib.sha256(data).hexdigest()[:16] for name, data in found.items()}


def drop_added(report: dict) -> None:
    """What reports have gained since: no sample of these sets has checks."""
    for name in ADDED_METRICS:
        assert report["metrics"].pop(name)["n"] == 0
        assert report["metrics_miss_free"].pop(name)["n"] == 0
        assert report["summary"].pop(name) is None
        del report["header"]["gates"][name]
        [gate] = [one for one in report["gates"] if one["name"] == name]
        assert (gate["status"], gate["n"]) == ("n/a", 0)
        report["gates"].remove(gate)


def page_data(page: bytes) -> bytes:
    """What a page shows, without what shows it. Where one block of samples ends and the next one
    begins depends on their size."""
    blocks = re.findall(rb'<script type="application/json" ([^>]*)>(.*?)</script>', page, re.S)
    samples = b",".join(data[1:-1] for about, data in blocks if b"chunk" in about)
    others = b"\n".join(data for about, data in blocks if b"chunk" not in about)
    return others + b"\n" + samples.replace(ADDED_TO_SCORES, b"")


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
