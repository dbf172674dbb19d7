"""The pages that people look at, each made by the command that makes it for them."""

import json
import shutil
from contextlib import chdir
from pathlib import Path

from tests.browser.view_world import make_run

from callmark.cli import main
from callmark.resources import data_path, demo_paths

ROOT = Path(__file__).parents[2]
CHECKPOINTS = ("keeps", "keeps", "loses", "damages")
# run -> its model, and every how many answers it says nothing
FIVE_RUNS = {
    "small-v1": ("small", 3),
    "small-v2": ("small", 5),
    "large-v1": ("large", 9),
    "large-v2": ("large", 20),
    "large-v3": ("large", 0),
}


def command(*words: object) -> int:
    return main([str(word) for word in words])


def replay(answers: Path, out: Path) -> None:
    paths = demo_paths()
    words = ("run", "--runner", "replay", "--in", paths.dataset, "--fixtures", paths.fixtures)
    command(*words, "--model", answers, "--out", out, "--quiet")


def make_demo(folder: Path) -> Path:
    replay(demo_paths().answers, folder / "results.jsonl")
    return folder / "report.html"


def make_example(folder: Path) -> Path:
    """What `callmark init` and `callmark run` make."""
    with chdir(folder):
        command("init")
        command("run", "--out", "results.jsonl", "--quiet")
    return folder / "report.html"


def make_failing(folder: Path) -> Path:
    """Every third answer has wrong figures, every seventh says nothing, some call nothing."""
    lines = demo_paths().answers.read_text("utf-8").splitlines()
    answers = [json.loads(line) for line in lines]
    for answer in answers[1::3]:
        answer["model_output"] = answer["model_output"].replace("1", "7").replace("2", "9")
    for answer in answers[::7]:
        answer.update(model_output="I do not know.", turns=None)
    for answer in answers[5::9]:
        answer.update(tool_trace=[], turns=None)
    spoilt = folder / "answers.jsonl"
    spoilt.write_text("".join(f"{json.dumps(answer)}\n" for answer in answers), "utf-8")
    replay(spoilt, folder / "results.jsonl")
    return folder / "report.html"


def make_comparison(folder: Path, before: Path, after: Path) -> Path:
    page = folder / "comparison.html"
    command("compare", before.parent, after.parent, "--html", page, "--quiet")
    return page


def make_probe(folder: Path) -> Path:
    page = folder / "probe.html"
    words = ("probe", "--base", data_path("tiny/model"), "--cases", data_path("tiny/cases.jsonl"))
    adapter = data_path("tiny/adapters/damages")
    command(*words, "--adapter", adapter, "--nulls", 0, "--html", page, "--quiet")
    return page


def make_series(folder: Path) -> Path:
    """A training that goes wrong, from adapters that ship."""
    for step, name in enumerate(CHECKPOINTS, start=1):
        adapter = data_path(f"tiny/adapters/{name}")
        shutil.copytree(adapter, folder / "outputs" / f"checkpoint-{100 * step}")
    page = folder / "series.html"
    words = ("probe", "--base", data_path("tiny/model"), "--cases", data_path("tiny/cases.jsonl"))
    command(*words, "--checkpoints", folder / "outputs", "--nulls", 0, "--html", page, "--quiet")
    return page


def make_logs(folder: Path) -> Path:
    out = folder / "results.jsonl"
    command("score", ROOT / "examples" / "support-log.jsonl", "--out", out, "--quiet")
    command("report", out, "--html", folder / "report.html")
    return folder / "report.html"


def make_five_runs(folder: Path) -> Path:
    """For the viewer: two models over one dataset."""
    for at, (name, (model, worse)) in enumerate(FIVE_RUNS.items()):
        out = folder / name / "results.jsonl"
        make_run(out, worse=worse, age=3600 * (len(FIVE_RUNS) - at), model=model)
    return folder


def make_matrix(folder: Path, runs: Path) -> Path:
    """The same five, as one file: each against the best."""
    page = folder / "models.html"
    best, *others = reversed(FIVE_RUNS)
    command("compare", *(runs / name for name in (best, *others)), "--html", page, "--quiet")
    return page
