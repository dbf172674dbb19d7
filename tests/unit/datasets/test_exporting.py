"""Results as a log of Inspect: the shape, the bytes, and the way back. That their own reader opens
it is another test, which installs it."""

import json
import zipfile

import msgspec
import pytest
from tests.builders import make_result
from tests.stated_run import stated

from callmark.datasets.exporting import export_inspect
from callmark.datasets.importing.importing import import_dataset
from callmark.datasets.importing.writing import ImportPaths
from callmark.errors import BadInput
from callmark.records.results import ByteRange
from callmark.records.trace import TraceEntry, UserTurn
from callmark.store.files import encode_result


def entry(**changes) -> TraceEntry:
    made = {
        "name": "weather",
        "arguments": {"city": "Ulm"},
        "result": {"temp_c": 19},
        "turn": 1,
        "raw": None,
        "status": "ok",
        "served_by": "fixture:exact",
    }
    return TraceEntry(**{**made, **changes})


def result(index: int = 0, **changes):
    made = {
        "prompt": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Ulm?"}],
        "model_output": "It is 19.\nBye.",
        "turns": (ByteRange(0, 0), ByteRange(0, 9), ByteRange(10, 14)),
        "tool_trace": (entry(), entry(status="error", result={"error": "down"})),
        "said": (UserTurn(2, "Thanks"),),
    }
    return msgspec.structs.replace(make_result(index), **{**made, **changes})


@pytest.fixture
def results(tmp_path):
    def write(*lines):
        path = tmp_path / "results.jsonl"
        path.write_bytes(b"".join(map(encode_result, lines)))
        return path

    return write


def test_a_result_is_the_conversation_that_it_was(results, tmp_path):
    out = tmp_path / "log.json"
    assert export_inspect(results(result()), out) == 1
    log = json.loads(out.read_text("utf-8"))
    assert (log["version"], log["status"]) == (2, "success")
    [sample] = log["samples"]
    assert [one["role"] for one in sample["messages"]] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert sample["messages"][4]["error"] == {"type": "unknown", "message": '{"error":"down"}'}
    assert sample["scores"]["privacy_ok"] == {"value": 1.0}
    assert sample["epoch"] == 1


def test_a_flagged_answer_says_why(results, tmp_path):
    """The mean is over the answers in which something was checked."""
    out = tmp_path / "log.json"
    lines = [
        make_result(0, statements=stated("supported", "altered"), answered=True),
        make_result(1, statements=stated("supported")),
        make_result(2, statements=stated("unchecked")),
        make_result(3, statements=stated("contradicted", tier="advisory")),
    ]
    export_inspect(results(*lines), out)
    log = json.loads(out.read_text("utf-8"))
    flagged = [sample["scores"].get("flagged") for sample in log["samples"]]
    told = {"value": 1.0, "explanation": "altered: says “9”; no result has it"}
    assert flagged == [told, {"value": 0.0}, None, {"value": 0.0}]
    [mean] = [one for one in log["results"]["scores"] if one["name"] == "flagged"]
    assert (mean["scored_samples"], mean["metrics"]["mean"]["value"]) == (3, 1 / 3)
    assert log["samples"][0]["scores"]["answered"] == {"value": 1.0}


def test_thoughts_are_kept_before_the_first_turn(results, tmp_path):
    out = tmp_path / "log.json"
    export_inspect(results(result(reasoning="I look it up.")), out)
    [sample] = json.loads(out.read_text("utf-8"))["samples"]
    assert sample["messages"][2]["content"] == [
        {"type": "reasoning", "reasoning": "I look it up."},
        {"type": "text", "text": ""},
    ]


def test_the_order_is_not_known_a_call_is_malformed_a_trial_failed(results, tmp_path):
    broken = entry(status="malformed", arguments=None, name=None, raw="{x", result=None)
    waiting = entry(status="unanswered", result=None)
    unordered = result(0, turns=None, tool_trace=(broken, waiting))
    failed = result(1, status="error", scores=None, stop="error", error="the endpoint was lost")
    out = tmp_path / "log.json"
    export_inspect(results(unordered, failed), out)
    first, second = json.loads(out.read_text("utf-8"))["samples"]
    calls = first["messages"][2]["tool_calls"]
    assert calls[0]["parse_error"] == "{x"
    assert [one["role"] for one in first["messages"][2:]] == [
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert second["error"]["message"] == "the endpoint was lost"
    assert second["scores"] == {}


@pytest.mark.parametrize("name", ["log.json", "log.eval"])
def test_the_same_results_give_the_same_bytes_and_come_back(results, tmp_path, name):
    path = results(result(0), result(1, sample_id="../../evil"))
    out, again = tmp_path / name, tmp_path / f"again-{name}"
    export_inspect(path, out)
    export_inspect(path, again)
    assert out.read_bytes() == again.read_bytes()
    places = ImportPaths(
        dataset=tmp_path / "d.jsonl",
        registry=tmp_path / "t.json",
        fixtures=tmp_path / "f",
        answers=tmp_path / "a.jsonl",
    )
    report = import_dataset(out, places)
    assert report.counts.samples == 2
    answers = [json.loads(line) for line in places.answers.read_text("utf-8").splitlines()]
    assert answers[0]["messages"][3]["content"] == '{"temp_c":19}'
    assert answers[0]["messages"][4]["content"] == '{"error":"down"}'


def test_no_name_in_the_archive_is_a_path(results, tmp_path):
    out = tmp_path / "log.eval"
    export_inspect(results(result(0, sample_id="../../evil"), result(1, sample_id="a/b")), out)
    with zipfile.ZipFile(out) as archive:
        names = archive.namelist()
    assert not any(".." in name or name.count("/") > 1 for name in names)
    assert {"header.json", "summaries.json", "_journal/start.json"} <= set(names)


def test_nothing_to_export_is_an_error(results, tmp_path):
    with pytest.raises(BadInput, match="has no results"):
        export_inspect(results(), tmp_path / "log.json")
    assert not (tmp_path / "log.json").exists()


def test_calls_that_the_prompt_holds_are_kept(results, tmp_path):
    """With their results; a call that cannot be read says what it was, and an image that it was."""
    image = {"type": "image_url", "image_url": {"url": "x"}}
    calls = [
        {"id": "a", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}},
        {"id": "b", "function": {"name": "weather", "arguments": "{city"}},
        "no call",
    ]
    prompt = [
        {"role": "user", "content": [{"type": "text", "text": "Bonn?"}, image]},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "7"},
        {"role": "user", "content": "Ulm?"},
    ]
    out = tmp_path / "log.json"
    export_inspect(results(result(prompt=prompt)), out)
    [sample] = json.loads(out.read_text("utf-8"))["samples"]
    asked, called, told, *_ = sample["messages"]
    assert asked["content"] == "Bonn?\n[image_url]"
    assert called["content"] == ""
    good, broken, none = called["tool_calls"]
    assert (good["id"], good["function"], good["arguments"]) == ("a", "weather", {"city": "Bonn"})
    assert "parse_error" not in good
    assert (broken["arguments"], broken["parse_error"]) == ({}, "{city")
    assert none["id"] == ""
    assert (told["tool_call_id"], told["function"], told["content"]) == ("a", "weather", "7")


def test_an_archive_lists_what_failed(results, tmp_path):
    failed = result(1, status="error", scores=None, stop="error", error="the endpoint was lost")
    out = tmp_path / "log.eval"
    export_inspect(results(result(0), failed), out)
    with zipfile.ZipFile(out) as archive:
        first, second = json.loads(archive.read("summaries.json"))
    assert "error" not in first
    assert second["error"] == "the endpoint was lost"
