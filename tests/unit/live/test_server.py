"""One session: what a call is answered, and what the trace says of it: a line per session, and nobody
else's line is lost."""

import json
import multiprocessing
from pathlib import Path

import anyio
import pytest
from mcp import Client

from callmark.errors import BadInput, MissingExtra
from callmark.live.mcp import McpTarget, McpTools
from callmark.live.server import (
    LONGEST_ID,
    Session,
    Sessions,
    TooManySessions,
    TraceFile,
    describe_tools,
    fixture_server,
    join_answers,
    open_served,
    serve_stdio,
)
from callmark.resources import data_path


def session(tmp_path: Path, *entries: dict, sample: str | None = None) -> Session:
    (tmp_path / "f.jsonl").write_text("\n".join(map(json.dumps, entries)))
    return Sessions(open_served(tmp_path, None)).of(sample, None)


def test_fixtures_that_contradict_each_other_are_told_not_raised(tmp_path):
    rule = {"a": {"contains": "x"}}, {"a": {"contains": "y"}}
    first, second = (
        {"name": "t", "key": {"a": "xy"}, "match": one, "result": at} for at, one in enumerate(rule)
    )
    asked = session(tmp_path, first, second)
    answer = asked.call("t", {"a": "xy"})
    assert answer["isError"]
    assert "make one of them narrower" in answer["content"][0]["text"]
    assert asked.entries[0].status == "unanswered"


def test_answers_of_a_sample_come_first_and_sequences_go_on(tmp_path):
    entries = [
        {"name": "t", "key": {}, "result": "everybody"},
        {
            "name": "t",
            "key": {},
            "sample_id": "s",
            "seq": 1,
            "result": {"ok": False, "error": "busy"},
        },
        {"name": "t", "key": {}, "sample_id": "s", "seq": 2, "result": "mine"},
    ]
    mine = session(tmp_path, *entries, sample="s")
    assert mine.call("t", {})["isError"]
    assert mine.call("t", {})["content"] == [{"type": "text", "text": "mine"}]
    assert [entry.status for entry in mine.entries] == ["error", "ok"]
    other = session(tmp_path, *entries, sample="x")
    assert other.call("t", {})["content"][0]["text"] == "everybody"


def test_a_result_that_is_almost_mcp_is_still_an_answer(tmp_path):
    odd = {"content": [{"type": "text", "text": "x", "annotations": {"priority": "high"}}]}
    asked = session(tmp_path, {"name": "t", "key": {}, "result": odd})

    async def ask():
        sessions = Sessions(open_served(tmp_path, None))
        async with Client(fixture_server(sessions, lambda _: asked)) as client:
            return await client.call_tool("t", {})

    assert json.loads(anyio.run(ask).content[0].text) == {**odd}


def test_without_the_extra_there_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "f.jsonl").write_text('{"name": "t", "key": {}, "result": 1}')
    served = Sessions(open_served(tmp_path, None))
    monkeypatch.setitem(__import__("sys").modules, "mcp", None)
    with pytest.raises(MissingExtra, match=r"'\.\[mcp\]'"):
        serve_stdio(served, None, None)
    with pytest.raises(MissingExtra, match=r"'\.\[mcp\]'"), McpTools(McpTarget(address="x")):
        pass


FIXTURES = data_path("fixtures")


def sessions() -> Sessions:
    return Sessions(open_served(FIXTURES, None))


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_built_in_tools_have_their_schemas_and_unknown_ones_take_anything(tmp_path):
    tools = {tool["name"]: tool for tool in describe_tools(sessions().broker)}
    assert "q" in tools["web.search"]["inputSchema"]["properties"]
    (tmp_path / "odd.jsonl").write_text('{"name": "odd", "key": {}, "result": 1}\n')
    [odd] = describe_tools(open_served(tmp_path, None))
    assert odd == {"name": "odd", "inputSchema": {"type": "object"}}


def test_writing_again_replaces_only_what_was_mine(tmp_path):
    trace = TraceFile(tmp_path / "trace.jsonl")
    served = sessions()
    served.of("a", None).call("read_file", {"path": "x"})
    trace.write(served)
    other = TraceFile(trace.path)
    other.write([sessions().of("a", None)])
    served.of("a", None).call("read_file", {"path": "y"})
    served.of("b", 3).call("read_file", {"path": "y"})
    trace.write(served)
    found = [
        (line["sample_id"], line["trial"], len(line["tool_trace"])) for line in lines(trace.path)
    ]
    assert sorted(found) == [("a", 0, 2), ("a", 1, 0), ("b", 3, 1)]


def test_f17_a_second_server_keeps_what_the_first_one_wrote(tmp_path):
    """Also where a client names the same trial, and each of them writes more than once."""
    path = tmp_path / "trace.jsonl"
    first, second = (TraceFile(path), sessions()), (TraceFile(path), sessions())
    for number in range(3):
        for (trace, served), asked in ((first, "first"), (second, "second")):
            for trial in (0, None, 2):
                served.of("a", trial).call("read_file", {"path": f"{asked}-{number}"})
            served.of(None, None).call("read_file", {"path": f"{asked}-{number}"})
            trace.write(served)
    third = sessions()
    third.of("a", 0).call("read_file", {"path": "third-0"})
    TraceFile(path).write(third)
    places = [(line["sample_id"], line["trial"]) for line in lines(path)]
    assert len(set(places)) == len(places) == 9
    kept = sorted(
        [entry["arguments"]["path"] for entry in line["tool_trace"]] for line in lines(path)
    )
    whole = [[f"{asked}-{number}" for number in range(3)] for asked in ("first", "second")]
    assert kept == [*[whole[0]] * 4, *[whole[1]] * 4, ["third-0"]]


def test_f72_a_server_without_a_trace_keeps_no_calls():
    served = Sessions(open_served(FIXTURES, None), keeps_calls=False)
    served.of("a", None).call("read_file", {"path": "x"})
    assert served.of("a", None).entries == []


def test_f72_a_client_cannot_name_samples_without_end():
    served = sessions()
    with pytest.raises(TooManySessions):
        served.of("x" * (LONGEST_ID + 1), None)


def _write(path: Path, number: int) -> None:
    served = sessions()
    served.of(f"s{number}", None).call("read_file", {"path": "x"})
    TraceFile(path).write(served)


@pytest.mark.slow
def test_servers_side_by_side_lose_nothing(tmp_path):
    path = tmp_path / "trace.jsonl"
    started = [
        multiprocessing.get_context("spawn").Process(target=_write, args=(path, number))
        for number in range(4)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert sorted(line["sample_id"] for line in lines(path)) == ["s0", "s1", "s2", "s3"]


def test_a_session_of_nobody_that_asked_nothing_leaves_no_line(tmp_path):
    served = sessions()
    served.of(None, None)
    served.of("control", None)
    TraceFile(tmp_path / "t.jsonl").write(served)
    assert [line["sample_id"] for line in lines(tmp_path / "t.jsonl")] == ["control"]


def test_answers_are_joined_by_sample_and_trial(tmp_path):
    trace, answers = tmp_path / "trace.jsonl", tmp_path / "answers.jsonl"
    served = sessions()
    served.of("a", 0).call("read_file", {"path": "x"})
    TraceFile(trace).write(served)
    said = [{"sample_id": "a", "model_output": "A"}, {"sample_id": "b", "model_output": "B"}]
    answers.write_text("\n".join(map(json.dumps, said)))
    joined = tmp_path / "joined.jsonl"
    with joined.open("wb") as stream:
        join_answers(trace, answers, stream)
    first, second = lines(joined)
    assert (first["model_output"], len(first["tool_trace"])) == ("A", 1)
    assert second == {"sample_id": "b", "trial": 0, "model_output": "B"}
    answers.write_text('{"sample_id": "b", "model_output": "B"}')
    with joined.open("wb") as stream, pytest.raises(BadInput, match=r"trace\.jsonl:1: sample a"):
        join_answers(trace, answers, stream)
