"""Parts of a dataset: shards, filters and limits."""

import json
import random

import pytest

from callmark.errors import UsageError
from callmark.run.rescore import score_file

SHARDS = 4


def run_shards(project, **settings) -> list:
    outcomes = []
    for index in range(SHARDS):
        out = str(project.folder / f"shard_{index}.jsonl")
        report = str(project.folder / f"shard_{index}.json")
        part = {"num_shards": SHARDS, "shard_index": index, "out": out, "report": report}
        outcomes.append(project.run(**part, **settings))
    return outcomes


def shard_lines(project, index: int) -> list[str]:
    return (project.folder / f"shard_{index}.jsonl").read_text("utf-8").splitlines()


def ids(lines) -> list[str]:
    return [json.loads(line)["sample_id"] for line in lines]


def test_a45_a77_a79_shards_are_disjoint_and_make_up_the_whole(project):
    project.run()
    baseline = project.out.read_text("utf-8").splitlines()
    run_shards(project)
    parts = [shard_lines(project, index) for index in range(SHARDS)]
    assert all(parts)
    merged = sorted((line for part in parts for line in part), key=baseline.index)
    assert merged == baseline


def test_a46_concatenated_shards_score_to_the_report_of_the_whole(project):
    whole = project.run().report
    run_shards(project)
    joined = project.folder / "joined.jsonl"
    parts = [project.folder / f"shard_{index}.jsonl" for index in range(SHARDS)]
    joined.write_bytes(b"".join(part.read_bytes() for part in parts))
    again = score_file(joined).report
    for field in ("metrics", "counts", "gates", "failing", "verdict", "per_tool_deltas", "summary"):
        assert getattr(again, field) == getattr(whole, field), field
    assert again.integration_span_count_histogram == whole.integration_span_count_histogram
    for name in ("dataset_sha256", "runner_fingerprint", "model_fingerprint", "fixtures_sha256"):
        assert getattr(again.header, name) == getattr(whole.header, name)


def test_a78_a82_membership_does_not_depend_on_the_order(project):
    run_shards(project)
    before = [set(ids(shard_lines(project, index))) for index in range(SHARDS)]
    header, *items = project.dataset.read_text("utf-8").splitlines()
    random.Random(5).shuffle(items)
    project.dataset.write_text("\n".join([header, *items]) + "\n", "utf-8")
    run_shards(project)
    assert [set(ids(shard_lines(project, index))) for index in range(SHARDS)] == before


@pytest.mark.parametrize("part", [{"num_shards": 4, "shard_index": 4}, {"num_shards": 0}])
def test_a45_d53_shards_out_of_range_are_refused(project, part):
    with pytest.raises(UsageError):
        project.run(**part)


def test_d48_an_empty_shard_is_empty_and_says_so(project):
    header, first, *_ = project.dataset.read_text("utf-8").splitlines()
    project.dataset.write_text(f"{header}\n{first}\n", "utf-8")
    outcomes = run_shards(project)
    empty = [index for index in range(SHARDS) if not shard_lines(project, index)]
    assert len(empty) == SHARDS - 1
    for index in empty:
        report = outcomes[index].report
        assert report.verdict == "empty"
        assert report.gates_ok is None
        assert report.counts.samples == 0
        assert outcomes[index].exit_code == 0
        assert (project.folder / f"shard_{index}.jsonl").read_bytes() == b""


def test_a_shard_is_complete_when_its_own_samples_are(project):
    assert [outcome.report.complete for outcome in run_shards(project)] == [True] * SHARDS


def test_filters_make_a_run_partial_and_its_gates_inconclusive(project):
    outcome = project.run(only=["s003", "s001"])
    assert ids(project.out.read_text("utf-8").splitlines()) == ["s001", "s003"]
    assert [line["index"] for line in project.results()] == [1, 3]
    assert outcome.report.partial is True
    assert {gate.status for gate in outcome.report.gates} == {"inconclusive"}
    assert outcome.exit_code == 5


def test_the_limit_comes_before_the_shards(project):
    run_shards(project, limit=8)
    chosen = {name for index in range(SHARDS) for name in ids(shard_lines(project, index))}
    assert chosen == {f"s{number:03}" for number in range(8)}
    assert project.run(limit=1000).report.partial is False


def test_slices(project):
    _, *items = (json.loads(x) for x in project.dataset.read_text("utf-8").splitlines())
    items[2]["metadata"]["slices"] = ["hard"]
    items[7]["metadata"]["long_context"] = True
    project.write(items)
    project.run(slice=["hard", "long_context"])
    assert ids(project.out.read_text("utf-8").splitlines()) == ["s002", "s007"]
    with pytest.raises(UsageError, match="no slice 'harder'; it has: hard, long_context"):
        project.run(slice=["harder"])


def test_the_failed_samples_of_an_earlier_run(project):
    lines = [json.loads(line) for line in project.answers.read_text("utf-8").splitlines()]
    lines[6]["model_output"] = "There live 5 people there."
    del lines[8]
    project.write(answers=lines)
    first = project.folder / "first.jsonl"
    project.run(out=str(first), max_errors=1)
    project.run(failed_from=str(first), max_errors=1)
    assert ids(project.out.read_text("utf-8").splitlines()) == ["s006", "s008"]


def test_a_choice_of_nothing_is_refused(project):
    project.run()
    with pytest.raises(UsageError, match="has no sample s999"):
        project.run(only=["s999"])
    with pytest.raises(UsageError, match="nothing to run"):
        project.run(failed_from=str(project.out), out=str(project.folder / "b.jsonl"))
