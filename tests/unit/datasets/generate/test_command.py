"""`callmark dataset generate`, from its flags to its files."""

import json

import pytest

from callmark.cli import main
from callmark.datasets.generate import AnswersWanted, generate
from callmark.errors import CannotWrite, UsageError


@pytest.fixture
def flags(tmp_path):
    return ["dataset", "generate", "--total", "60", "--seed", "5", "--out", str(tmp_path / "d.jsonl"),
            "--fixtures", str(tmp_path / "f")]  # fmt: skip


def lines_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_dataset_and_its_fixtures(flags, tmp_path, capsys):
    assert main(flags) == 0
    shown = capsys.readouterr().out
    assert "60 samples, seed 5" in shown
    header, *items = lines_of(tmp_path / "d.jsonl")
    assert header["__header__"] is True
    assert header["generator"] == {"total": 60, "version": "1"}
    assert len(items) == 60
    names = {path.name for path in (tmp_path / "f").iterdir()}
    assert names == {"web.search.jsonl", "web.open.jsonl", "read_file.jsonl", "code_exec.jsonl",
                     "file.write.jsonl", "repo.read.jsonl"}  # fmt: skip


def test_flawed_answers_and_their_truth(flags, tmp_path, capsys):
    where = tmp_path / "answers.jsonl"
    wanted = ["--with-answers", "flawed", "--fault", "contaminated_control=0.5", "--answers"]
    assert main([*flags, *wanted, str(where)]) == 0
    assert "controls_with_integration" in capsys.readouterr().out
    answers, truths = lines_of(where), lines_of(tmp_path / "answers.truth.jsonl")
    assert [one["sample_id"] for one in answers] == [one["sample_id"] for one in truths]
    planted = [one for one in truths if one["fault"]]
    assert len(planted) == 3
    assert all(one["truth"]["contaminated"] == 1 for one in planted)
    assert all("contaminated" in one["moved"] for one in planted)
    code = main(["run", "--in", str(tmp_path / "d.jsonl"), "--fixtures", str(tmp_path / "f"),
                 "--model", str(where), "--out", str(tmp_path / "results.jsonl"),
                 "--report", str(tmp_path / "report.json"), "--quiet"])  # fmt: skip
    assert code == 1


def test_answers_stand_beside_the_dataset_if_no_place_is_named(flags, tmp_path):
    assert main([*flags, "--with-answers", "good"]) == 0
    first = lines_of(tmp_path / "d.answers.jsonl")[0]
    assert set(first) == {"sample_id", "trial", "model_output", "tool_trace", "turns"}
    assert (tmp_path / "d.answers.truth.jsonl").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--fault", "leaked_card=0.1"], "need --with-answers"),
        (["--answers", "x.jsonl"], "need --with-answers"),
        (["--with-answers", "flawed"], "at least one --fault"),
        (["--with-answers", "good", "--fault", "leaked_card=0.1"], "good with none"),
        (["--with-answers", "flawed", "--fault", "leaked_card"], "write KIND=RATE"),
        (["--with-answers", "flawed", "--fault", "leaked_car=0.1"], "no such fault"),
        (["--total", "0"], "--total must be at least 1"),
    ],
)
def test_wrong_usage_is_one_sentence_and_nothing_is_written(flags, tmp_path, more, message, capsys):
    assert main([*flags, *more]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "d.jsonl").exists()


def test_nothing_foreign_is_mixed_with_the_fixtures(tmp_path):
    folder = tmp_path / "f"
    folder.mkdir()
    (folder / "mine.jsonl").write_text("")
    with pytest.raises(UsageError, match=r"mine\.jsonl is there already"):
        generate(10, 1, out=tmp_path / "d.jsonl", fixtures=folder)
    with pytest.raises(UsageError, match="lies below --fixtures"):
        generate(10, 1, out=tmp_path / "g" / "d.jsonl", fixtures=tmp_path / "g")
    with pytest.raises(UsageError, match="different files"):
        generate(10, 1, out=tmp_path / "d.jsonl", fixtures=tmp_path / "g",
                 answers=AnswersWanted(tmp_path / "d.jsonl"))  # fmt: skip


def test_places_that_cannot_be_written_are_found_first(tmp_path):
    with pytest.raises(CannotWrite, match="is a folder"):
        generate(10, 1, out=tmp_path, fixtures=tmp_path / "f")
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite, match="cannot be written"):
        generate(10, 1, out=tmp_path / "d.jsonl", fixtures=tmp_path / "file")
    assert not (tmp_path / "d.jsonl").exists()


def test_a_second_run_replaces_what_the_first_one_wrote(tmp_path):
    place = {"out": tmp_path / "d.jsonl", "fixtures": tmp_path / "f"}
    generate(60, 1, **place)
    generate(3, 2, **place)
    assert len(lines_of(tmp_path / "d.jsonl")) == 4
    assert (tmp_path / "f" / "repo.read.jsonl").read_bytes() == b""
