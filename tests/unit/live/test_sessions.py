"""One session: what a call is answered, and what the trace says of it."""

import json
from pathlib import Path

import anyio
import pytest
from mcp import Client

from callmark.errors import MissingExtra
from callmark.live.mcp import McpTarget, McpTools
from callmark.live.server import Session, Sessions, fixture_server, open_served, serve_stdio


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
