"""Where a run goes that nobody gave a place, and what is said whatever else is not."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.integration.conftest import read_lines

from callmark.cli import dispatch
from callmark.store.runs import new_run_folder


@pytest.fixture
def here(project, monkeypatch):
    """The command line in a folder with a dataset; what it prints and where it writes."""
    monkeypatch.chdir(project.folder)
    project.words = ["--in", "dataset.jsonl", "--fixtures", "fixtures", "--model", "answers.jsonl"]
    return project


def run(here, *more: str) -> int:
    return dispatch(["run", *here.words, "--no-html", "--quiet", *more])


def made() -> list[str]:
    return sorted(path.name for path in Path("runs").iterdir())


def latest() -> str:
    return str(Path("runs/latest").readlink())


def test_f55_every_run_has_a_folder_of_its_own_and_latest_leads_to_the_last(here):
    for number in (1, 2):
        assert run(here) == 0
        assert latest() == f"dataset-{number}"
    assert made() == ["dataset-1", "dataset-2", "latest"]
    assert not Path("results.jsonl").exists()
    first, second = (Path("runs", name, "results.jsonl").read_bytes() for name in made()[:2])
    assert first == second
    assert json.loads(Path("runs/latest/report.json").read_text("utf-8"))["complete"]


def test_f55_a_folder_stands_for_its_run_wherever_one_is_named(here, capsys):
    run(here)
    run(here)
    for words in (
        ["show", "runs/latest", "s001"],
        ["score", "runs/latest"],
        ["report", "runs/latest", "-o", "summary.md"],
        ["compare", "runs/dataset-1", "runs/latest"],
        ["fixtures", "suggest", "runs/latest"],
        ["baseline", "set", "runs/latest"],
        ["dataset", "add", "d.jsonl", "--from-trace", "runs/latest", "s001", "--fixtures", "f"],
        ["run", *here.words, "--baseline", "runs/latest", "--quiet", "--no-html"],
        ["run", *here.words, "--model", "runs/latest/results.jsonl", "--quiet", "--no-html"],
    ):
        assert dispatch(words) == 0, (words, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("settings", "words", "name"),
    [
        ("", [], "dataset"),
        ("name: nightly\n", [], "nightly"),
        ("name: nightly\n", ["--name", "by hand / today"], "by-hand-today"),
        ("", ["--config", "smoke.yaml"], "smoke"),
    ],
)
def test_f55_a_run_is_called_after_its_settings_or_its_dataset(here, settings, words, name):
    Path("callmark.yaml").write_text(settings or "seed: 1\n", "utf-8")
    Path("smoke.yaml").write_text("seed: 1\n", "utf-8")
    run(here, *words)
    assert latest() == f"{name}-1"


def test_f55_what_is_only_looked_at_makes_no_folder(here, capsys):
    assert run(here, "--dry-run") == 0
    assert run(here, "--show-prompt", "s001") == 0
    assert run(here, "--fixtures", "nowhere") == 2
    assert run(here, "--gate", "nonsense=1") == 2
    assert not Path("runs").exists()
    assert run(here) == 0
    assert run(here, "--fixtures", "nowhere") == 2  # what was the latest stays it
    assert made() == ["dataset-1", "latest"]
    assert latest() == "dataset-1"


def test_f55_resume_goes_on_with_the_latest_run(here, capsys):
    answers = Path("answers.jsonl").read_bytes()
    Path("answers.jsonl").write_bytes(b"".join(answers.splitlines(keepends=True)[:-1]))
    assert run(here) == 4  # one answer is missing
    assert Path("runs/dataset-1/results.jsonl.journal").is_file()
    assert dispatch(["score", "runs/latest"]) == 2
    assert "the run is not finished" in capsys.readouterr().err
    assert run(here, "--resume", "--max-errors", "1") == 0
    assert made() == ["dataset-1", "latest"]
    assert len(read_lines("runs/latest/results.jsonl")) == 25


def test_f55_resume_without_any_run_begins_one_and_a_broken_link_is_said(here, capsys):
    assert run(here, "--resume") == 0
    Path("runs/latest").unlink()
    Path("runs/latest").symlink_to("gone")
    assert run(here, "--resume") == 2
    assert (
        "runs/latest does not point to a run: name its results with --out"
        in capsys.readouterr().err
    )


def test_f55_an_out_that_exists_is_replaced_and_that_is_said(here, capsys):
    assert run(here, "--out", "mine.jsonl") == 0
    assert "is replaced" not in capsys.readouterr().err
    assert run(here, "--out", "mine.jsonl") == 0
    assert "mine.jsonl: is replaced when this run is complete" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_f55_shards_and_merge_name_theirs(here):
    for index in "01":
        assert run(here, "--num-shards", "2", "--shard-index", index) in (0, 5)
    assert dispatch(["merge", "results.shard_0.jsonl", "results.shard_1.jsonl", "--quiet"]) == 0
    assert Path("results.jsonl").is_file()
    assert not Path("runs").exists()


def test_f55_runs_that_start_at_once_never_share_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def start(_: int) -> str:
        with new_run_folder("x") as folder:
            (folder / "results.jsonl").write_text("")
            return folder.name

    with ThreadPoolExecutor(8) as threads:
        names = list(threads.map(start, range(40)))
    assert len(set(names)) == 40
    assert latest() in names
    assert made() == sorted([*names, "latest"])


def test_f55_a_folder_called_latest_is_left_alone(here):
    Path("runs/latest").mkdir(parents=True)
    assert run(here) == 0
    assert Path("runs/latest").is_dir()
    assert not Path("runs/latest").is_symlink()
    assert Path("runs/dataset-1/results.jsonl").is_file()


def test_f55_quiet_hides_no_warning(here, capsys):
    items = Path("dataset.jsonl").read_text("utf-8").splitlines(keepends=True)[1:]
    Path("dataset.jsonl").write_text("".join(items), "utf-8")
    assert run(here, "--out", "r.jsonl") == 0
    printed = capsys.readouterr()
    assert "warning: dataset.jsonl: no header line" in printed.err
    assert "warning" not in printed.out
    for words in (["score", "r.jsonl", "--in", "dataset.jsonl"], ["verify", "dataset.jsonl"]):
        dispatch([*words, "--quiet"])
        assert "warning: dataset.jsonl: no header line" in capsys.readouterr().err


def test_f55_the_place_is_found_by_a_process_of_its_own(here):
    words = [sys.executable, "-m", "callmark", "run", *here.words, "--no-html"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "runs/dataset-1/report.json: all numbers" in done.stdout


def test_f55_an_unfinished_run_shows_what_it_has(here, capsys):
    answers = Path("answers.jsonl").read_bytes()
    Path("answers.jsonl").write_bytes(b"".join(answers.splitlines(keepends=True)[:-1]))
    assert dispatch(["run", *here.words]) == 4
    printed = capsys.readouterr().out
    assert "\n  --resume --max-errors 1: the same, and it ends even if as many are" in printed
    assert "\n  runs/dataset-1/report.html: every sample in a browser\n" in printed
    page = Path("runs/latest/report.html").read_text("utf-8")
    index = page.partition('id="index">')[2].partition("</script>")[0]
    assert sorted(json.loads(index)["ids"]) == [f"s{number:03}" for number in range(25)]
    told = []
    for named in ("runs/latest", "runs/dataset-1/results.jsonl"):  # the second is what it printed
        assert dispatch(["show", named]) == 0
        told.append(capsys.readouterr().out.partition("\nnext: ")[0])
    assert told[0] == told[1]
    assert ", 1 not scored\nthe run is not finished: " in told[0]
    assert dispatch(["show", "runs/latest", "s001"]) == 0
    assert capsys.readouterr().out.startswith("s001  trial 0")
    assert dispatch(["show", "runs/latest/results.jsonl.journal", "s999"]) == 2
    Path("runs/latest/report.json").unlink()  # killed before it wrote one
    assert dispatch(["show", "runs/latest"]) == 0
    assert ", 1 not scored\nthe run is not finished: " in capsys.readouterr().out

    assert run(here, "--resume", "--max-errors", "1") == 0
    capsys.readouterr()
    assert dispatch(["show", "runs/latest"]) == 0
    assert "not finished" not in capsys.readouterr().out


def test_f55_a_run_that_too_few_samples_left_open_says_how_to_judge_them(here, capsys):
    hint = "\n  --min-eligible-for-gates 1: the same command judges what there is\n"
    assert dispatch(["run", *here.words, "--min-eligible-for-gates", "1000"]) == 5
    assert hint in capsys.readouterr().out
    assert dispatch(["run", *here.words, "--min-eligible-for-gates", "1"]) == 0
    assert hint not in capsys.readouterr().out
    assert dispatch(["run", *here.words, "--only", "s001"]) == 5  # a part has other reasons
    assert hint not in capsys.readouterr().out
