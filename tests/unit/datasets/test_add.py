"""A failure that a run has shown becomes a sample with fixtures of its own."""

import json

import msgspec
import pytest
from tests.builders import make_error, make_result, missed_call

from callmark.broker.broker import ToolBroker
from callmark.calls.registry import Registry
from callmark.cli import main
from callmark.datasets.add import add_from_trace, fixture_entries, sample_item
from callmark.datasets.reader import dataset_sha256, open_dataset
from callmark.errors import BadInput, CannotWrite, UsageError
from callmark.records.trace import TraceEntry, UserTurn
from callmark.resources import builtin_tools, demo_paths
from callmark.run.conclude import run
from callmark.store.files import encode_result

REGISTRY = Registry.from_specs(builtin_tools(), where="built in")
OK, BUSY = {"ok": True, "count": 7}, {"ok": False, "error": "busy"}


def served(q: str, result, **changes) -> TraceEntry:
    entry = TraceEntry(
        name="web.search",
        arguments={"q": q},
        result=result,
        turn=1,
        raw=None,
        status="error" if result == BUSY else "ok",
        served_by="fixture:exact",
    )
    return msgspec.structs.replace(entry, **changes)


def trial(*trace, kind="eligible", **changes):
    metadata = changes.pop("metadata", {})
    result = make_result(0, kind, sample_id="old", trace=trace, metadata=metadata)
    return msgspec.structs.replace(result, **changes)


@pytest.fixture
def dataset(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{"__header__": true}\n{"prompt":  "a", "metadata": {"sample_id": "a"}}')
    return path


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "fixtures"


def lines_of(path) -> list:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_sample_asks_the_same_again(dataset, folder):
    before = dataset.read_bytes()
    metadata = {"slices": ["x"], "own": {"deep": 1}, "required_facts": [7]}
    result = trial(served("x", OK), metadata=metadata, said=(UserTurn(1, "and then?"),), trial=2)
    added = add_from_trace(dataset, result, fixtures=folder, registry=REGISTRY)
    assert (added.sample_id, added.line, added.fixtures_added) == ("old", 3, 1)
    assert dataset.read_bytes().startswith(before + b"\n")
    item = lines_of(dataset)[-1]
    assert item["prompt"] == result.prompt
    assert item["user_turns"] == ["and then?"]
    assert item["metadata"] == {
        **result.metadata, "sample_id": "old", "added_from": {"sample_id": "old", "trial": 2},
    }  # fmt: skip
    with open_dataset(dataset) as opened:
        assert opened.facts.samples == 2


def test_the_fixtures_are_seen_by_the_new_sample_only(dataset, folder):
    result = trial(served("x", OK))
    add_from_trace(dataset, result, fixtures=folder, new_id="new", registry=REGISTRY)
    broker = ToolBroker(folder, REGISTRY)
    assert broker.session("new").answer("web.search", {"q": " X "}).result == OK
    assert broker.index.find(broker.normalised("web.search", {"q": "x"}), "old") is None


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([OK], [(OK, None)]),
        ([OK, OK, OK], [(OK, None)]),
        ([BUSY, OK], [(BUSY, 1), (OK, 2)]),
        ([BUSY, BUSY, OK, OK], [(BUSY, 1), (BUSY, 2), (OK, 3)]),
    ],
)
def test_different_answers_to_one_call_are_a_sequence(results, expected):
    """Spelt in whatever way, it is one call; the last answer repeats by itself."""
    trace = [served(f"{' ' * at}X", result) for at, result in enumerate(results)]
    entries = fixture_entries(trace, "new", REGISTRY)
    assert [(entry["result"], entry.get("seq")) for entry in entries] == expected
    assert all(entry["sample_id"] == "new" for entry in entries)


def test_only_what_was_served_is_kept():
    trace = [
        missed_call(),
        served("x", OK, status="malformed"),
        served("y", OK, status="tool_not_offered"),
        served("z", OK, name="fly"),
    ]
    assert [entry["name"] for entry in fixture_entries(trace, "new", REGISTRY)] == ["fly"]


def test_a_later_run_is_served_what_the_trial_was_served(tmp_path):
    """The whole way: a run with an error and a retry, added, sealed, run again by itself."""
    demo, runs = demo_paths(), tmp_path / "run"
    common = {"model": str(demo.answers), "only": ["retry-manifest-01", "compare-rail-01"]}
    run({**common, "dataset": str(demo.dataset), "fixtures": str(demo.fixtures), "out": str(runs / "results.jsonl")})  # fmt: skip
    mine, folder = tmp_path / "mine.jsonl", tmp_path / "fixtures"
    for name in common["only"]:
        words = ["dataset", "add", str(mine), "--from-trace", str(runs), name]
        assert main([*words, "--fixtures", str(folder)]) == 0
    assert main(["dataset", "seal", str(mine), "--fixtures", str(folder)]) == 0
    again = tmp_path / "again.jsonl"
    run({**common, "dataset": str(mine), "fixtures": str(folder), "out": str(again), "span_extractor": "marker"})  # fmt: skip
    first = {one["sample_id"]: one for one in lines_of(runs / "results.jsonl")}
    for one in lines_of(again):
        before = first[one["sample_id"]]
        assert [e["result"] for e in one["tool_trace"]] == [
            e["result"] for e in before["tool_trace"]
        ]
        assert one["scores"] == before["scores"]


def test_observed_calls_stand_in_where_nothing_is_expected():
    trace = [
        served("x", OK),
        missed_call(key={"q": "y"}),
        served("z", OK, status="malformed"),
        served("z", OK, schema_errors=("/top_k: wrong",)),
    ]
    item = sample_item(trial(*trace, kind="unclassified"), "new")
    assert item["metadata"]["call_sequence"] == [
        {"name": "web.search", "arguments": {"q": "x"}},
        {"name": "web.search", "arguments": {"q": "x"}},
    ]
    kept = sample_item(trial(served("other", OK)), "new")
    assert kept["metadata"]["call_sequence"] == [{"name": "web.search", "arguments": {"q": "x"}}]


@pytest.mark.parametrize("kind", ["control", "clarify"])
def test_a_call_that_was_wrong_is_never_put_down_as_right(kind):
    assert "call_sequence" not in sample_item(trial(served("x", OK), kind=kind), "n")["metadata"]


def test_what_speaks_of_the_teachers_text_is_left_out():
    metadata = {"integration_spans_bytes": [[0, 1]], "tool_result_fields": {"a": 1}, "kept": 1}
    item = sample_item(trial(metadata=metadata), "new")
    left = {"call_sequence", "required_facts", "kept", "sample_id", "added_from"}
    assert item["metadata"].keys() == left


def test_expected_calls_that_were_not_made_are_named(dataset, folder):
    expected = {
        "call_sequence": [{"name": "web.search", "arguments": {"q": text}} for text in "xy"]
    }
    added = add_from_trace(
        dataset, trial(served("x", OK), metadata=expected), fixtures=folder, registry=REGISTRY
    )
    assert added.without_result == ('web.search {"q":"y","top_k":3}',)


def test_an_id_that_is_taken_is_refused_by_line_and_nothing_changes(dataset, folder):
    before = dataset.read_bytes()
    with pytest.raises(UsageError, match=r"data\.jsonl:2: the sample a is there already.*--id"):
        add_from_trace(dataset, trial(served("x", OK)), fixtures=folder, new_id="a")
    assert dataset.read_bytes() == before
    assert not folder.exists()


def test_a_second_attempt_after_a_crash_between_the_two_files(dataset, folder):
    result = trial(served("x", BUSY), served("x", OK))
    before = dataset.read_bytes()
    add_from_trace(dataset, result, fixtures=folder, registry=REGISTRY)
    kept = (folder / "added.jsonl").read_bytes()
    dataset.write_bytes(before)
    added = add_from_trace(dataset, result, fixtures=folder, registry=REGISTRY)
    assert added.fixtures_added == 0
    assert (folder / "added.jsonl").read_bytes() == kept


def test_fixtures_are_appended_and_never_contradict(dataset, folder):
    folder.mkdir()
    file = folder / "added.jsonl"
    file.write_bytes(b'{"name": "web.search", "key": {"q": "x"}, "result": 1, "sample_id": "b"}')
    add_from_trace(dataset, trial(served("x", OK)), fixtures=folder, registry=REGISTRY)
    assert [line["sample_id"] for line in lines_of(file)] == ["b", "old"]
    with pytest.raises(UsageError, match=r"added\.jsonl:1: holds another answer for b"):
        add_from_trace(dataset, trial(served("x", OK)), fixtures=folder, new_id="b")
    file.write_bytes(b"{\n")
    with pytest.raises(BadInput, match=r"added\.jsonl:1: not JSON"):
        add_from_trace(dataset, trial(served("x", OK)), fixtures=folder, new_id="c")


def test_a_new_dataset_may_begin_with_a_failure(tmp_path, folder):
    path = tmp_path / "bugs.jsonl"
    assert add_from_trace(path, trial(served("x", OK)), fixtures=folder).line == 1
    assert add_from_trace(path, trial(), new_id="b").fixtures is None
    with open_dataset(path) as opened:
        assert opened.facts.samples == 2


def test_served_results_need_a_place(dataset):
    with pytest.raises(UsageError, match=r"1 results were served .* --fixtures"):
        add_from_trace(dataset, trial(served("x", OK)))


def test_a_trial_that_infrastructure_lost_is_no_sample(dataset):
    with pytest.raises(UsageError, match="the trial failed"):
        add_from_trace(dataset, make_error(0))


def test_bad_input_leaves_both_files_alone(dataset, folder, tmp_path):
    before = dataset.read_bytes()
    with pytest.raises(BadInput, match=r"old: metadata\.tools: must be a list"):
        add_from_trace(dataset, trial(served("x", OK), metadata={"tools": "x"}), fixtures=folder)
    with pytest.raises(CannotWrite):
        add_from_trace(dataset, trial(served("x", OK)), fixtures=dataset)
    with pytest.raises(UsageError, match="must be a file"):
        add_from_trace(tmp_path, trial(served("x", OK)), fixtures=folder)
    assert dataset.read_bytes() == before
    assert not folder.exists()


def test_the_command_line_says_what_is_next(dataset, folder, tmp_path, capsys):
    results = tmp_path / "results.jsonl"
    expected = {"call_sequence": [{"name": "web.search", "arguments": {"q": "y"}}]}
    results.write_bytes(encode_result(trial(served("x", OK), metadata=expected)))
    words = ["dataset", "add", str(dataset), "--from-trace", str(results), "old"]
    sha256 = dataset_sha256(dataset)
    assert main([*words, "--fixtures", str(folder), "--id", "n-1"]) == 0
    shown = capsys.readouterr().out
    assert f"{dataset}:3: n-1 is added" in shown
    assert "expected, but not called in that trial, so no result is known: web.search" in shown
    assert f"callmark dataset seal {dataset} --fixtures {folder}" in shown
    assert dataset_sha256(dataset) != sha256
    assert main([*words, "--trial", "3"]) == 2
    assert "old has no trial 3; it has 0" in capsys.readouterr().err
    assert main([*words[:-1], "odl"]) == 2
    assert "near to it: old" in capsys.readouterr().err
    assert main(words[:3]) == 2
    assert "--from-trace" in capsys.readouterr().err
    results.write_text("{}\n")
    assert main(words) == 2
    assert f"{results}: its first entry is an object" in capsys.readouterr().err


def test_guessed_calls_are_said_to_be_guessed(dataset, folder, tmp_path, capsys):
    results = tmp_path / "results.jsonl"
    results.write_bytes(encode_result(trial(served("x", OK), kind="unclassified")))
    words = ["dataset", "add", str(dataset), "--from-trace", str(results), "old"]
    assert main([*words, "--fixtures", str(folder)]) == 0
    assert "call_sequence holds the 1 calls that were observed" in capsys.readouterr().out
