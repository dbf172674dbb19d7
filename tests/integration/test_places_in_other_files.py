"""File and line also for what the commands beside `run` read: registries, allowlists, lists of
fixtures, headers, results."""

import json

import pytest

from callmark.broker.broker import ToolBroker
from callmark.cli import main
from callmark.config import load_config
from callmark.errors import BadInput, FingerprintMismatch, UsageError
from callmark.run.offers import open_registry
from callmark.run.rescore import score_file

BAD_GATE = {"gates": {"integration_coverage": {"bound": 7}}}
REGISTRY = """{
 "tools": [
  {"name": "one"},
  {"type": "function",
   "function": {"name": "two", "parameters": 7}},
  "three",
  {"name": "one"}
 ]
}"""


def said(capsys, *words) -> str:
    assert main([str(word) for word in words]) in (2, 3)
    return capsys.readouterr().err.removeprefix("callmark: error: ")


def problems_of(call, *arguments, folder) -> list[str]:
    with pytest.raises(BadInput) as caught:
        call(*arguments)
    return [problem.removeprefix(f"{folder}/") for problem in caught.value.problems]


class TestRegistry:
    def test_every_bad_spec_of_a_file(self, tmp_path):
        path = tmp_path / "tools.json"
        path.write_text(REGISTRY)
        found = problems_of(open_registry, str(path), folder=tmp_path)
        starts = (
            "tools.json:4: tool 2: two: parameters: ",
            "tools.json:6: tool 3: a spec must be",
            "tools.json:7: tool 4: one: a second tool of this name",
        )
        assert all(line.startswith(start) for line, start in zip(found, starts, strict=True))

    @pytest.mark.parametrize(
        ("text", "start"),
        [
            ('{"a": {},\n"": 7}', "tools.json:2: '': a spec must be an object"),
            ('{"a": {},\n"b": {},\n"a": {}}', "tools.json:3: 'a': stands on line 1 too"),
            ("\n\n7", "tools.json:3: expected a list of function specs, not int"),
            ('[{"name": "a"},\n{"name": "b",,', "tools.json:2: not JSON: "),
            (
                '[{"name": "a"},\n{"name": "b", "x-callmark": {"aliases": ["a"]}}]',
                "tools.json:2: b: the alias 'a' already belongs to a",
            ),
        ],
    )
    def test_what_a_file_can_be_instead(self, tmp_path, text, start):
        path = tmp_path / "tools.json"
        path.write_text(text)
        [problem] = problems_of(open_registry, str(path), folder=tmp_path)
        assert problem.startswith(start)

    def test_a_folder_names_the_file(self, tmp_path):
        (tmp_path / "a.json").write_text('[{"name": "a"},\n\n{"name": "b", "parameters": []}]')
        (tmp_path / "c.json").write_text('\n{"name": "c", "description": 7}')
        assert problems_of(open_registry, str(tmp_path), folder=tmp_path) == [
            "a.json:3: b: b: parameters: expected a JSON Schema object",
            "c.json:2: c: c: description: expected text",
        ]


def test_a_list_of_fixtures(tmp_path):
    entry = {"name": "t", "key": {"q": "x"}, "result": 1}
    entries = [entry, {**entry, "seq": 0}, 7]
    (tmp_path / "list.json").write_text(json.dumps(entries, indent=1))
    assert problems_of(ToolBroker, tmp_path, folder=tmp_path) == [
        "list.json:9: entry 2: seq: must be 1, 2, …: its place in the order of answers",
        "list.json:17: entry 3: not an object: an entry is {name, key, result}",
    ]
    (tmp_path / "list.json").write_text(json.dumps([entry, {**entry, "result": 2}], indent=1))
    [problem] = problems_of(ToolBroker, tmp_path, folder=tmp_path)
    assert problem.startswith(f"list.json:9: key: answers the same calls as {tmp_path}/list.json:2")


@pytest.mark.parametrize("command", ["verify", "dataset stats"])
def test_a_gate_of_the_header_wherever_it_is_read(project, capsys, command):
    items = [json.loads(line) for line in project.dataset.read_text().splitlines()][1:]
    project.write(items, header=BAD_GATE)
    message = said(capsys, *command.split(), project.dataset)
    where = f"{project.dataset}:1: gates.integration_coverage.bound: "
    assert message.startswith(f"{where}must be between 0 and 1, not 7")


@pytest.mark.parametrize("command", [["verify"], ["dataset", "seal", "--check"]])
def test_what_the_header_pins(project, capsys, command):
    items = [json.loads(line) for line in project.dataset.read_text().splitlines()][1:]
    project.write(items, header={"dataset_sha256": "0" * 64})
    assert said(capsys, *command, project.dataset).startswith(f"{project.dataset}:1: ")


def test_what_the_header_pins_in_a_run(project):
    items = [json.loads(line) for line in project.dataset.read_text().splitlines()][1:]
    project.write(items, header={"dataset_sha256": "0" * 64})
    with pytest.raises(FingerprintMismatch) as caught:
        project.run()
    assert str(caught.value).startswith(f"{project.dataset}:1: made for other data than this:")


def test_a_trial_that_cannot_become_a_sample(project, capsys):
    answers = [json.loads(line) for line in project.answers.read_text().splitlines()]
    answers[3]["status"] = "error"
    project.write(answers=answers)
    project.run(max_errors=1)
    words = ("dataset", "add", project.folder / "new.jsonl", "--from-trace", project.out)
    message = said(capsys, *words, "s003")
    assert message.startswith(f"{project.out}:4: s003: the trial failed (")
    message = said(capsys, *words, "s005")
    assert message.startswith(f"{project.out}:6: s005: 1 results were served in this trial:")


def test_nothing_to_score_is_an_error_with_a_dataset_too(project):
    project.out.write_text("\n\n")
    for settings in ({}, {"dataset": str(project.dataset)}):
        with pytest.raises(BadInput) as caught:
            score_file(project.out, settings)
        assert str(caught.value) == f"{project.out}: has nothing to score"


def test_settings_that_exclude_each_other(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("seed: 1\nresume: true\nrestart: true\n")
    with pytest.raises(UsageError) as caught:
        load_config(path, {})
    assert str(caught.value).startswith(f"{path}:2: resume: cannot be combined with restart")


def test_a_limit_that_no_dataset_reaches(project):
    assert project.run(limit=2**70).report.counts.trials == 25
    assert project.run(limit=2**70, only=["s001"]).report.counts.trials == 1
