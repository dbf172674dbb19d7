"""What is wrong is said where it stands: file and line, whichever part of a run finds it."""

import json

import pytest
from tests.integration.conftest import write_journal

from callmark.config import load_config
from callmark.errors import BadInput, UsageError
from callmark.run.conclude import run
from callmark.run.prepare import rules_of
from callmark.run.rescore import score_file
from callmark.store.journal import stamp, unstamp


def read_lines(path) -> list:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def write_lines(path, lines) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


@pytest.fixture
def results(project):
    project.run()
    return project.out


def problem_with(results, lines, **settings) -> str:
    write_lines(results, lines)
    with pytest.raises(BadInput) as caught:
        score_file(results, settings)
    [problem] = caught.value.problems
    return problem.removeprefix(str(results))


def test_a_result_that_stands_there_twice(results):
    lines = read_lines(results)
    found = problem_with(results, [*lines, lines[3]])
    assert found.startswith(':26: sample_id: "s003", trial 0 stands on line 4 too')


def test_a_trial_that_is_there_scored_and_failed(results):
    lines = read_lines(results)
    failed = {**lines[3], "status": "error", "error": "timeout"}
    assert problem_with(results, [*lines, failed]).startswith(':26: sample_id: "s003", trial 0')


def test_two_samples_that_claim_one_place(results):
    lines = read_lines(results)
    lines[7]["index"] = 2
    found = problem_with(results, lines)
    assert found.startswith(':8: index: 2 is that of "s002" on line 3 too')


def test_one_sample_at_two_places(results):
    """Counted as two samples it would lift n."""
    lines = read_lines(results)
    again = {**lines[3], "trial": 1, "index": 90}
    found = problem_with(results, [*lines, again])
    assert found.startswith(":26: index: is 90, but sample")


def test_answers_of_others_that_stand_there_twice(project):
    lines = read_lines(project.answers)
    found = problem_with(project.answers, [*lines, lines[0]])
    assert found.startswith(':26: sample_id: "s000", trial 0 stands on line 1 too')


def test_an_answer_that_no_sample_asked_for(project, results):
    lines = read_lines(results)
    dataset = str(project.dataset)
    found = problem_with(results, [*lines, {**lines[0], "sample_id": "no"}], dataset=dataset)
    assert found.startswith(f':26: sample_id: "no" is no sample of {dataset}')
    gap = problem_with(results, [*lines, {**lines[0], "trial": 2}], dataset=dataset)
    assert gap.startswith(':26: trial: is 2, but "s000" has no trial 1')


@pytest.mark.parametrize(("field", "value"), [("index", 2**32), ("trial", 2**40), ("index", -1)])
def test_numbers_that_are_no_place(results, field, value):
    lines = read_lines(results)
    lines[1][field] = value
    found = problem_with(results, lines)
    assert found.startswith(f":2: {field}: must be at ")


def test_a_whole_number_may_be_written_with_a_point(project):
    lines = read_lines(project.answers)
    lines[0] |= {"trial": 0.0, "turns": [{"start": 0.0, "end": 5.0}], "said": []}
    lines[0]["model_output"] = "There"
    write_lines(project.answers, lines)
    assert project.run().report.counts.trials == 25


def test_a_gate_of_the_header_that_makes_no_sense(project):
    items = read_lines(project.dataset)[1:]
    project.write(items, header={"gates": {"integration_coverage": {"bound": 7}}})
    with pytest.raises(UsageError) as caught:
        project.run()
    where = f"{project.dataset}:1: gates.integration_coverage.bound: "
    assert str(caught.value).startswith(where)
    project.write(items, header={"gates": {"no_such": {}}})
    with pytest.raises(UsageError) as caught:
        project.run()
    assert str(caught.value).startswith(f"{project.dataset}:1: gates.no_such: unknown gate")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "seed: 1\ngates:\n  call_f1_macro:\n    bound: 7\n",
            ":4: gates.call_f1_macro.bound: must",
        ),
        ("gates:\n  call_f1_macro: {bnd: 7}\n", ":2: gates.call_f1_macro.bnd: unknown key"),
        ("gates:\n  call_f1_macro: {}\n", ":2: gates.call_f1_macro: says nothing"),
        ("\nmax_errors: some\n", ":2: max_errors: must be a number such as 3"),
        ('parse_text: "\\ud800"\n', ":1: parse_text: must be auto, on or off"),
        ('gates:\n  call_f1_macro: {policy: "\\ud800"}\n', ":2: gates.call_f1_macro.policy: "),
        ("seed: !!set {a, b}\n", ":1: seed: must be a whole number"),
        ("' ': 1\n", ':1: " ": unknown key'),
    ],
)
def test_settings_of_a_file_are_named_by_their_line(tmp_path, text, message):
    path = tmp_path / "settings.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError) as caught:
        rules_of(load_config(path, {}))
    assert str(caught.value).removeprefix(str(path)).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [("runner: nix\n", ":1: runner: there is no 'nix'"), ("only: [nix]\n", ":1: only: ")],
)
def test_settings_that_only_the_run_can_judge(project, tmp_path, text, message):
    path = tmp_path / "settings.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError) as caught:
        run(load_config(path, project.config()))
    assert str(caught.value).removeprefix(str(path)).startswith(message)
    with pytest.raises(UsageError, match=r"^--only: "):
        run(load_config(path, project.config(only=["nobody"], runner="replay")))


def test_a_tool_that_nobody_has_is_named_with_its_line(project):
    items = read_lines(project.dataset)[1:]
    items[4]["metadata"]["tools"] = ["no\nsuch"]
    project.write(items)
    with pytest.raises(BadInput) as caught:
        project.run()
    [problem] = caught.value.problems
    assert problem.startswith(f"{project.dataset}:6: metadata.tools: 'no\\nsuch' (samples: 1)")


def test_a_name_in_the_allowlist_that_allows_nothing_is_a_warning(project, tmp_path):
    path = tmp_path / "allowed.json"
    path.write_text('["web.search", "web.serach"]', "utf-8")
    warnings = project.run(allowlist=str(path)).report.warnings
    expected = "the allowlist names 'web.serach', which is not a tool in the registry"
    assert expected in warnings
    scored = score_file(project.out, {"allowlist": str(path)}).report.warnings
    assert expected in scored


def test_a_prompt_whose_calls_have_no_shape_is_read(project):
    items = read_lines(project.dataset)[1:]
    items[0]["prompt"] = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "tool_calls": [{"function": 7}, {"function": {"name": {}}}]},
        {"role": "tool", "content": "{}"},
    ]
    project.write(items)
    assert project.run().report.counts.trials == 25


def test_arguments_that_are_nested_deeply_are_a_miss(project):
    lines = read_lines(project.answers)
    deep: list = []
    for _ in range(120):
        deep = [deep]
    lines[0]["tool_trace"][0]["arguments"] = {"q": deep}
    write_lines(project.answers, lines)
    assert project.run().report.misses.count <= 1


class TestJournal:
    """A journal that holds what the run could not have written is refused, and nothing is lost."""

    @pytest.fixture
    def journal(self, project):
        write_lines(project.answers, read_lines(project.answers)[:20])
        assert project.run().exit_code == 4
        return project.folder / "results.jsonl.journal"

    def refusal(self, project, journal, lines) -> str:
        write_journal(journal, lines)
        before = journal.read_bytes()
        with pytest.raises(BadInput) as caught:
            project.run(resume=True, max_errors=9)
        assert journal.read_bytes()[: len(before)] == before
        assert not project.out.exists()
        return str(caught.value).removeprefix(str(journal))

    def test_a_trial_of_another_sample(self, project, journal):
        lines = read_lines(journal)
        lines[2]["sample_id"] = "stranger"
        found = self.refusal(project, journal, lines)
        assert found.startswith(':3: sample_id: "stranger" is no sample of this run. --resume')

    def test_a_failed_trial_that_nobody_asked_for(self, project, journal):
        lines = read_lines(journal)
        lines[-1]["trial"] = 5
        found = self.refusal(project, journal, lines)
        assert found.startswith(f":{len(lines)}: trial: is 5, but this run has 1 of each sample")

    def test_metadata_that_cannot_be_read(self, project, journal):
        lines = read_lines(journal)
        for call_sequence in ([{"name": {}}], 7, [{}]):
            lines[2]["metadata"]["call_sequence"] = call_sequence
            assert ":3: metadata.call_sequence" in self.refusal(project, journal, lines)

    def test_slices_and_keys_that_are_no_names(self, project, journal):
        """They would be sorted, or looked up: neither can be done with them."""
        lines = read_lines(journal)
        for metadata in ({"slices": ["a", 7]}, {"strict_keys": [[]]}):
            wrong = [*lines[:3], {**lines[3], "metadata": metadata}, *lines[4:]]
            assert self.refusal(project, journal, wrong).startswith(":4: metadata.s")

    def test_a_sample_that_stands_elsewhere(self, project, journal):
        """Its line would be written to another place, and no number would tell."""
        lines = read_lines(journal)
        lines[4]["index"] = 700
        found = self.refusal(project, journal, lines)
        assert found.startswith(":5: index: is 700, but the sample stands at 2")

    @pytest.mark.parametrize("claim", [{"index": 0}, {"index": 23}])
    def test_a_failed_trial_that_claims_the_place_of_another(self, project, journal, claim):
        """It would take the place of a finished one, and the number of lines would not tell."""
        lines = read_lines(journal)
        found = self.refusal(project, journal, [*lines[:-1], {**lines[-1], **claim}])
        what = f"index: is {claim['index']}, but the sample stands at 24"
        assert found.startswith(f":{len(lines)}: {what}")

    def test_numbers_too_long_to_read(self, project, journal):
        lines = read_lines(journal)
        write_journal(journal, [*lines[:2], {**lines[2], "noted": "NUMBER"}, *lines[3:]])
        head, *others = journal.read_bytes().splitlines(keepends=True)
        bare = [unstamp(line).replace(b'"NUMBER"', b"7" * 5000) for line in others]
        journal.write_bytes(head + b"".join(map(stamp, bare)))
        assert project.run(resume=True, max_errors=9).report.counts.trials == 25

    def test_a_head_without_fingerprints(self, project, journal):
        """Taken for an empty one, it would let the trials below it vanish."""
        lines = [{"journal": 2}, *read_lines(journal)[1:]]
        assert self.refusal(project, journal, lines).startswith(":1: not a line of a journal")
