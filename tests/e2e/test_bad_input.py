"""Bad input gets a sentence with file, line, field and what to do, and the right exit code; what is
finished stays on disk."""

import json
import resource
import subprocess
import sys

import pytest


def refused(finished, code, *parts):
    """Ended with this code and one message that holds all of these; never with a traceback."""
    assert finished.returncode == code, finished.stdout + finished.stderr
    assert "callmark: error: " in finished.stderr
    assert "Traceback" not in finished.stderr
    for part in parts:
        assert str(part) in finished.stderr
    return finished.stderr


def test_a_dataset_that_is_not_there(callmark, world):
    world.dataset.unlink()
    refused(callmark(*world.arguments()), 2, world.dataset, "no such file")


def test_a_dataset_that_is_not_utf8(callmark, world):
    data = world.dataset.read_bytes() + b'{"prompt": "caf\xe9"}\n'
    world.dataset.write_bytes(data)
    refused(callmark(*world.arguments()), 2, f"{world.dataset}:22: ", "UTF-8")


def test_a_dataset_that_is_not_json(callmark, world):
    world.write_dataset({}, '{"prompt": ')
    refused(callmark(*world.arguments()), 2, f"{world.dataset}:22: ", "JSON")


def test_a20_a_dataset_against_the_schema(callmark, world):
    world.write_dataset({}, '{"prompt": 7}', '{"prompt": "x", "metadata": {"call_sequence": {}}}')
    message = refused(callmark(*world.arguments()), 2, f"{world.dataset}:22: prompt: ")
    assert f"{world.dataset}:23: metadata.call_sequence: " in message


def test_an_empty_dataset(callmark, world):
    world.dataset.write_text("")
    refused(callmark(*world.arguments()), 2, world.dataset, "empty")


def test_d48_a_dataset_of_a_header_only(callmark, world):
    world.dataset.write_text('{"__header__": true}\n')
    refused(callmark(*world.arguments()), 2, world.dataset, "empty")


def test_one_id_twice_names_both_lines(callmark, world):
    world.write_dataset({}, json.dumps(world.items[3]))
    refused(callmark(*world.arguments()), 2, f"{world.dataset}:22: ", "issues-03", "line 5")


def test_a39_a_fixture_folder_that_is_missing(callmark, world):
    arguments = world.arguments("--fixtures", world.folder / "nowhere")
    refused(
        callmark(*arguments), 2, world.folder / "nowhere", "no such fixture folder", "--fixtures"
    )


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('{"name": "web.search", ', "JSON"),
        ('["web.search"]', "object"),
        ('{"name": "web.search", "key": {"q": "x"}}', "result: is missing"),
        ('{"name": "web.search", "key": {"q": "x"}, "reslut": 1}', "did you mean result?"),
    ],
)
def test_a_broken_fixture_names_file_line_and_field(callmark, world, line, field):
    file = world.fixtures / "broken.jsonl"
    file.write_text(f"\n{line}\n")
    refused(callmark(*world.arguments()), 2, f"{file}:2: ", field)


def test_contradictory_fixtures_name_both_places(callmark, world):
    file = world.fixtures / "z.jsonl"
    entry = {
        "name": "web.search",
        "key": {"q": "Open issues of  project 3"},
        "result": {"count": 1},
    }
    world.write(file, [entry])
    refused(callmark(*world.arguments()), 2, f"{file}:1", "web.search.jsonl:4")


@pytest.mark.parametrize("field", ["dataset_sha256", "tool_registry_sha256", "fixtures_sha256"])
def test_a67_a_header_that_pins_another_hash(callmark, world, field):
    world.write_dataset({field: "0" * 64})
    refused(callmark(*world.arguments()), 3, field, "0" * 64)
    finished = callmark(*world.arguments("--no-fail-on-fingerprint-mismatch"))
    assert finished.returncode == 0, finished.stderr
    _, _, warnings = finished.stdout.partition("\nwarnings\n")
    assert f"  {field}" in warnings


def test_a34_an_unknown_runner(callmark, world):
    refused(callmark(*world.arguments("--runner", "nobody")), 2, "nobody", "replay")


def test_an_unknown_gate(callmark, world):
    refused(
        callmark(*world.arguments("--gate", "call_f1_macr=0.5")), 2, "did you mean call_f1_macro"
    )


def test_an_unknown_field(callmark, world):
    config = world.folder / "callmark.yaml"
    config.write_text("seed: 1\ntemprature: 0.5\n")
    refused(callmark(*world.arguments()), 2, "callmark.yaml:2: ", "did you mean temperature?")


def test_d53_a_shard_index_out_of_range(callmark, world):
    refused(callmark(*world.arguments("--num-shards", "2", "--shard-index", "2")), 2, "0 to 1")
    refused(callmark(*world.arguments("--num-shards", "0")), 2, "--num-shards")


def test_an_output_folder_that_cannot_be_written(callmark, world):
    """Below a file no folder can be made, not even by root."""
    out = world.dataset / "results.jsonl"
    refused(callmark(*world.arguments("--out", out)), 2, out)


def test_answers_that_are_missing_or_broken(callmark, world):
    refused(callmark(*world.arguments("--model", "nowhere.jsonl")), 2, "nowhere.jsonl")
    world.answers.write_text('{"sample_id": "issues-00"}\n')
    refused(callmark(*world.arguments()), 2, f"{world.answers}:1: model_output: is missing")


def test_a_sample_without_an_answer_makes_the_run_incomplete(callmark, world):
    lines = world.answers.read_text().splitlines(keepends=True)
    world.answers.write_text("".join(lines[:-1]))
    finished = callmark(*world.arguments())
    assert finished.returncode == 4, finished.stdout
    assert finished.stdout.startswith("INCOMPLETE")
    assert not (world.folder / "results.jsonl").exists()
    assert (world.folder / "results.jsonl.journal").exists()
    assert json.loads((world.folder / "report.json").read_bytes())["complete"] is False
    world.answers.write_text("".join(lines))
    again = callmark(*world.arguments("--max-errors", "1", "--restart"))
    assert again.returncode == 0, again.stderr


def test_an_unfinished_run_is_not_overwritten(callmark, world):
    (world.folder / "results.jsonl.journal").write_text('{"journal":2,"fingerprints":{}}\n')
    refused(callmark(*world.arguments()), 2, "results.jsonl.journal", "--resume", "--restart")


def test_a_journal_of_another_run_is_refused_by_name(callmark, world):
    (world.folder / "results.jsonl.journal").write_text('{"journal":2,"fingerprints":{"seed":1}}\n')
    refused(callmark(*world.arguments("--resume")), 3, "results.jsonl.journal", "--restart")


@pytest.mark.slow
def test_a_disk_that_fills_loses_nothing_that_is_finished(world, child_environment):
    """A limit on the size of files stands for the full disk."""

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    command = [sys.executable, "-m", "callmark", *world.arguments("--report", "r.json")]
    # Python would leave half of what it compiles, and every later process would fail on it.
    environment = {**child_environment, "PYTHONDONTWRITEBYTECODE": "1"}
    finished = subprocess.run(
        command, cwd=world.folder, env=environment, preexec_fn=little_room,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    refused(finished, 4, "results.jsonl.journal", "--resume")
    journal = (world.folder / "results.jsonl.journal").read_text("utf-8").splitlines()
    assert len(journal) > 2
    assert all(json.loads(line) for line in journal)
    again = subprocess.run(
        [*command, "--resume"], cwd=world.folder, env=child_environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert len((world.folder / "results.jsonl").read_text("utf-8").splitlines()) == 20


def in_bash(command, env):
    return subprocess.run(
        ["bash", "-c", command], env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("words", ["--help", "run --help", "fixtures check"])
def test_a_closed_pipe_is_quiet(child_environment, words):
    """Nobody reads, nobody complains."""
    command = f"{sys.executable} -m callmark {words} | true; echo ${{PIPESTATUS[0]}}"
    finished = in_bash(command, child_environment)
    assert finished.stderr == ""
    assert finished.stdout.strip() == "0"


@pytest.mark.slow
def test_a_terminal_that_cannot_show_a_character_does_not_end_the_run(callmark, world):
    finished = callmark(*world.arguments(), PYTHONIOENCODING="ascii", LC_ALL="C")
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("words", ["--help", "run --help", "fixtures check"])
def test_a_full_standard_output_is_an_error(child_environment, words):
    finished = in_bash(f"{sys.executable} -m callmark {words} > /dev/full", child_environment)
    assert finished.returncode == 4
    assert finished.stderr.startswith("callmark: error: No space left")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["show", "nowhere.jsonl", "x"], "nowhere.jsonl: no such file"),
        (["score", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (["fixtures", "suggest", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (["fixtures", "check", "nowhere"], "nowhere: no such fixture folder"),
        (["run"], "--in: which dataset?"),
    ],
)
def test_missing_files_are_named(callmark, arguments, part):
    refused(callmark(*arguments), 2, part)
