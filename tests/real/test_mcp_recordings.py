"""Answers of real MCP servers: each becomes a fixture, grounds what it says, and is served again as
it was."""

import json
from collections import defaultdict

import pytest
from tests.agents import call_all

from callmark.live.mcp import result_from_wire, spec_from_wire
from callmark.live.python import PlannedCall
from callmark.live.record import Keeping, record
from callmark.live.recorder import Answered, LostCall
from callmark.live.server import Sessions, fixture_server, open_served
from callmark.records.trace import is_error_result

pytestmark = pytest.mark.real
SERVERS = ("time", "git", "filesystem", "memory", "everything", "sequential-thinking")


@pytest.fixture(scope="module")
def recordings(real_data):
    by_server = defaultdict(list)
    for line in (real_data / "mcp_recordings.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        by_server[row["server"]].append(row)
    return by_server


class Replayed:
    """The real server, as far as it was recorded: its tools, and its answers in their order."""

    def __init__(self, rows):
        self.origin = rows[0]["server"]
        self.specs = [spec_from_wire(tool) for tool in rows[0]["tools"]]
        self._rows = iter(rows[1:])

    def call(self, name, arguments):
        row = next(self._rows)
        assert (row["tool"], row["arguments"]) == (name, arguments)
        if row["result"] is None:
            return LostCall(row["exception"])
        return Answered(result_from_wire(row["result"]))


@pytest.mark.parametrize("server", SERVERS)
def test_every_answer_of_a_real_server_is_served_as_it_was(recordings, tmp_path, server):
    rows = recordings[server]
    calls = [(row["tool"], row["arguments"]) for row in rows[1:]]
    planned = [PlannedCall(name, arguments, None, "") for name, arguments in calls]
    kept = Keeping(folder=tmp_path / "fixtures", pii="keep")
    done = record(planned, Replayed(rows), kept, "new")
    assert len(done.lost) + len(done.unknown) == sum(row["result"] is None for row in rows[1:])
    sessions = Sessions(open_served(kept.folder, None))
    session = sessions.of(None, None)
    tools, answers = call_all(fixture_server(sessions, lambda _: session), calls, "legacy")
    listed = [
        tool.model_dump(by_alias=True, mode="json", exclude_none=True, exclude_unset=True)
        for tool in sorted(tools, key=lambda tool: tool.name)
    ]
    assert listed == sorted(rows[0]["tools"], key=lambda tool: tool["name"])
    for row, answer, entry in zip(rows[1:], answers, session.entries, strict=True):
        if row["result"] is None:
            assert answer[1] == row["exception"].removeprefix("MCPError: ")
            continue
        assert answer.model_dump(by_alias=True, mode="json", exclude_none=True) == row["result"]
        failed = is_error_result(row["result"])
        assert entry.status == ("error" if failed else "ok")


def test_there_are_38_answers(recordings):
    assert sum(row.get("result") is not None for rows in recordings.values() for row in rows) == 38
