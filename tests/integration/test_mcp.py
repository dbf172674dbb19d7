"""Record from a live MCP server, serve what was recorded, ask the same: the answers are equal."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from tests.agents import call_all, order_agent

from callmark.cli import main
from callmark.live.server import Sessions, fixture_server, open_served

ROOT = Path(__file__).parents[2]
LIVE = ROOT / "tests" / "live_server.py"
COMMAND = f"{sys.executable} {LIVE}"
CALLS = [
    ("find_order", {"order_id": "W100"}),
    ("find_order", {"order_id": "W999", "verbose": True}),
    ("picture", {}),
    ("links", {}),
    ("query", {"sql": "select 1"}),
    ("fails", {}),
    ("refuses", {}),
]
EVERYWHERE = "0.0.0.0"  # noqa: S104 - what is tested
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "SHOP_KEY": "opensesame"}


def write_calls(path: Path, calls) -> Path:
    lines = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls]
    path.write_text("\n".join(lines))
    return path


def record(folder: Path, calls, *more: str, mcp: str = COMMAND) -> int:
    file = write_calls(folder.parent / "calls.jsonl", calls)
    return main(["fixtures", "record", str(folder), "--calls", str(file), "--mcp", mcp, *more])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mcp") / "fixtures"
    assert record(folder, CALLS, "--mode", "new", "--pii", "keep") == 0
    return folder


@pytest.fixture(scope="module")
def live():
    return call_all(StdioServerParameters(command=sys.executable, args=[str(LIVE)]), CALLS)


def served(folder: Path, sample: str | None = None):
    sessions = Sessions(open_served(folder, None))
    session = sessions.of(sample, None)
    return fixture_server(sessions, lambda _: session), session


def test_tools_schemas_and_answers_are_those_of_the_live_server(recorded, live):
    server, _ = served(recorded)
    tools, answers = call_all(server, CALLS)
    by_name = {tool.name: tool for tool in tools}
    assert by_name == {tool.name: tool for tool in live[0]}
    assert answers == live[1]


def test_a_miss_is_an_error_that_names_the_nearest_key(recorded):
    server, session = served(recorded)
    _, answers = call_all(server, [("find_order", {"order_id": "W101"}), ("nothing", {})])
    assert answers[0].is_error
    assert answers[0].content[0].text.splitlines() == [
        'no recorded answer for find_order {"order_id":"W101","verbose":false}',
        'nearest: find_order {"order_id":"W100","verbose":false} (differs in order_id)',
        'nearest: find_order {"order_id":"W999","verbose":true} (differs in order_id, verbose)',
    ]
    assert answers[1] == (-32602, "Unknown tool: nothing", None)
    assert [entry.status for entry in session.entries] == ["miss", "tool_not_offered"]


def test_wrong_arguments_are_told_and_traced(recorded):
    server, session = served(recorded)
    _, [answer] = call_all(server, [("find_order", {"order_id": 5})])
    assert answer.is_error
    assert "/order_id" in answer.content[0].text
    assert session.entries[0].status == "invalid_arguments"


@pytest.mark.parametrize("name", ["../../etc/passwd", "find_order.jsonl", "/etc/passwd", "."])
def test_no_name_of_a_client_reaches_the_disk(recorded, name):
    """The folder is read before the first call; renaming it changes no answer."""
    server, _ = served(recorded)
    hidden = recorded.with_name("hidden")
    recorded.rename(hidden)
    try:
        _, answers = call_all(server, [(name, {"path": name}), CALLS[0]])
    finally:
        hidden.rename(recorded)
    assert answers[0][0] == -32602
    assert not answers[1].is_error


def test_sequences_and_samples_are_those_of_the_broker(tmp_path):
    folder = tmp_path / "fixtures"
    assert record(folder, [("clock", {}), ("clock", {})], "--mode", "new") == 0
    server, _ = served(folder)
    _, answers = call_all(server, [("clock", {})] * 3)
    said = [answer.structured_content["now"] for answer in answers]
    assert said[0] != said[1] == said[2]


def test_times_are_pinned_and_secrets_and_personal_data_gone(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SHOP_KEY", "opensesame")
    folder = tmp_path / "fixtures"
    calls = [("clock", {}), ("secrets", {}), ("customer", {"email": "ada@acme.com"})]
    more = ("--mode", "new", "--env", "SHOP_KEY", "--pin", "clock:$.now=2026-01-01T00:00:00Z")
    assert record(folder, calls, *more) == 0
    written = "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    for gone in ("opensesame", "ghp_", "ada@acme.com", "736 5000"):
        assert gone not in written
    clock = json.loads((folder / "clock.jsonl").read_text())["result"]
    assert clock["structuredContent"]["now"] == "2026-01-01T00:00:00Z"
    assert json.loads(clock["content"][0]["text"]) == clock["structuredContent"]
    assert "personal values were replaced" in capsys.readouterr().out


@pytest.mark.slow
def test_f53_an_unknown_tool_is_listed_and_gets_no_fixture(tmp_path, capsys):
    calls = [("find_order", {"order_id": "W100"}), ("find_ordr", {"order_id": "W100"})]
    for more in ([], ["--mode", "new"]):  # the second time as well
        assert record(tmp_path / "f", calls, "--mode", "new", *more) == 1
        printed = capsys.readouterr().out
        assert 'no such tool, so nothing was recorded: find_ordr {"order_id":"W100"}' in printed
        assert "1 without a fixture" in printed
    assert sorted(path.name for path in (tmp_path / "f").glob("*.jsonl")) == ["find_order.jsonl"]


def test_f53_a_function_that_was_not_given_is_listed_too(tmp_path, capsys):
    file = write_calls(tmp_path / "calls.jsonl", [("add", {"a": 1}), ("subtract", {"a": 1})])
    words = ["fixtures", "record", str(tmp_path / "f"), "--calls", str(file), "--mode", "new"]
    assert main([*words, "--python", "tests.live_functions:add"]) == 1
    assert "no such tool, so nothing was recorded: subtract" in capsys.readouterr().out


@pytest.mark.slow
def test_a_server_that_dies_is_named_and_its_answers_stay(tmp_path, capsys):
    folder = tmp_path / "fixtures"
    code = record(folder, [CALLS[0], ("dies", {}), ("picture", {})], "--mode", "new")
    assert code == 4
    said = capsys.readouterr()
    assert "the server is gone (it said: out of memory)" in said.err
    assert (folder / "find_order.jsonl").exists()
    assert not (folder / "picture.jsonl").exists()


@pytest.mark.slow
def test_a_call_without_an_answer_in_time_is_not_recorded(tmp_path, capsys):
    folder = tmp_path / "fixtures"
    code = record(folder, [("slow", {}), CALLS[0]], "--mode", "new", "--timeout", "4")
    assert code == 4
    assert "slow: no answer within 4 s" in capsys.readouterr().err
    assert (folder / "find_order.jsonl").exists()
    assert not (folder / "slow.jsonl").exists()


@pytest.mark.parametrize(
    ("mcp", "what"),
    [
        ("/no/such/command", "No such file"),
        (f"{sys.executable} -c 'raise SystemExit(7)'", "no MCP server answered"),
        ("http://127.0.0.1:9/mcp", "no MCP server answered"),
    ],
)
def test_no_server_is_a_sentence(tmp_path, capsys, mcp, what):
    assert record(tmp_path / "f", CALLS, "--mode", "new", "--timeout", "5", mcp=mcp) == 4
    said = capsys.readouterr().err
    assert what in said
    assert "Traceback" not in said


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def started(arguments, port: int) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return child
        time.sleep(0.1)
    child.kill()
    raise AssertionError("the server does not listen")


def stopped(child: subprocess.Popen[str]) -> int:
    child.terminate()
    child.communicate(timeout=30)
    return child.returncode


def post(url: str, **headers: str) -> int:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    plain = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/list",
    }
    request = urllib.request.Request(url, data=body, headers={**plain, **headers})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.slow
def test_an_agent_runs_over_http_unchanged_and_its_trace_is_scored(recorded, tmp_path, capsys):
    """One URL per sample; a page of another name is refused; SIGTERM leaves the trace whole."""
    port, trace = free_port(), tmp_path / "trace.jsonl"
    arguments = ["-m", "callmark", "fixtures", "serve", recorded, "--http", "--port", port]
    child = started([*arguments, "--trace", trace], port)
    url = f"http://127.0.0.1:{port}/mcp"
    try:
        said = {
            order: anyio.run(order_agent, f"{url}?sample={order}", order)
            for order in ("W100", "W999")
        }
        assert post(url, Host="evil.example") == 421
        assert post(url, Origin="http://evil.example") == 403
    finally:
        code = stopped(child)
    assert code == 0
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    assert [(line["sample_id"], line["trial"]) for line in lines] == [("W100", 0), ("W999", 0)]
    assert [line["tool_trace"][0]["status"] for line in lines] == ["ok", "miss"]
    scored = score(tmp_path, recorded, trace, said)
    assert [line["scores"]["lax"]["f1"] for line in scored] == [1.0, 0.0]
    assert [line["scores"]["call_f1"] for line in scored] == [1.0, 1.0]
    looked_up = [line["scores"]["calls"] for line in scored]
    assert [(calls["hits"], calls["misses"]) for calls in looked_up] == [(1, 0), (0, 1)]
    capsys.readouterr()


def handshake(url: str, **headers: str) -> int:
    """As clients of protocol 2025-11-25 begin: the server has nothing to remember of it."""
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    plain = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={**plain, **headers})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            assert b"callmark-fixtures" in answer.read()
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def resident_kb(child) -> int:
    status = Path(f"/proc/{child.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1])


@pytest.mark.slow
def test_f72_handshakes_leave_nothing_behind(recorded):
    port = free_port()
    child = started(
        ["-m", "callmark", "fixtures", "serve", recorded, "--http", "--port", port], port
    )
    url = f"http://127.0.0.1:{port}/mcp"
    try:
        for _ in range(100):
            assert handshake(url) == 200
        before = resident_kb(child)
        for _ in range(600):
            handshake(url)
        assert resident_kb(child) - before < 6_000  # it was 41 kB each
    finally:
        stopped(child)


def serving(recorded, *more):
    """A server and the address that it printed, which is asked at once: no waiting for the port."""
    words = [sys.executable, "-m", "callmark", "fixtures", "serve", str(recorded), "--http", *more]
    child = subprocess.Popen(words, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    said = []
    for line in child.stderr:
        said.append(line)
        if line.startswith("serving at "):
            break
    return child, said[-1].removeprefix("serving at ").strip(), "".join(said[:-1])


@pytest.mark.slow
def test_f72_the_address_is_printed_when_it_answers(recorded):
    child, url, before = serving(recorded)
    try:
        assert handshake(url) == 200
        assert before == ""
        assert "token" not in url
        assert handshake(url, Host="rebound.example") == 421
    finally:
        assert stopped(child) == 0
        child.stderr.close()


@pytest.mark.slow
def test_f72_other_machines_need_a_token(recorded, monkeypatch):
    child, url, before = serving(recorded, "--host", EVERYWHERE)
    try:
        bare, _, token = url.partition("?token=")
        assert before.startswith("warning: other machines can reach 0.0.0.0")
        assert len(token) > 30
        assert handshake(url) == 200
        assert handshake(bare, Authorization=f"Bearer {token}") == 200
        for wrong in ("", "?token=", f"?token={token[:-1]}", "?token=%C2%B2"):
            assert handshake(f"{bare}{wrong}") == 401
        assert handshake(bare, Authorization="Bearer x") == 401
        assert handshake(bare, Authorization=f"Basic {token}") == 401
    finally:
        stopped(child)
        child.stderr.close()
    monkeypatch.setitem(ENVIRONMENT, "MY_TOKEN", "0123456789abcdef")
    child, url, before = serving(recorded, "--host", EVERYWHERE, "--token", "MY_TOKEN")
    try:
        assert "0123456789abcdef" not in url + before
        assert handshake(url) == 401
        assert handshake(f"{url}?token=0123456789abcdef") == 200
    finally:
        stopped(child)
        child.stderr.close()


@pytest.mark.parametrize(("name", "value"), [("NOWHERE", ""), ("SHORT", "abc"), ("ODD", "²" * 20)])
def test_a_token_that_is_none_is_refused(recorded, capsys, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert main(["fixtures", "serve", str(recorded), "--http", "--token", name]) == 2
    assert f"--token {name}: this environment variable must hold" in capsys.readouterr().err


def score(folder: Path, fixtures: Path, trace: Path, said: dict[str, str]) -> list[dict]:
    dataset, answers, out = (folder / f"{name}.jsonl" for name in ("dataset", "answers", "scored"))
    items = [
        {"prompt": f"What is the total of {name}?", "metadata": _metadata(name)} for name in said
    ]
    dataset.write_text("\n".join(map(json.dumps, items)))
    lines = [{"sample_id": name, "model_output": text} for name, text in said.items()]
    answers.write_text("\n".join(map(json.dumps, lines)))
    registry = fixtures / ".registry.json"
    words = f"score {trace} --answers {answers} --in {dataset} --registry {registry} --out {out}"
    assert main(words.split()) in (0, 1, 5)
    return [json.loads(line) for line in out.read_text().splitlines()]


def _metadata(name: str) -> dict:
    call = {"name": "find_order", "arguments": {"order_id": name}}
    return {"sample_id": name, "call_sequence": [call]}


@pytest.mark.slow
def test_an_agent_over_pipes_leaves_a_line_per_session(recorded, tmp_path):
    trace = tmp_path / "trace.jsonl"
    words = ["-m", "callmark", "fixtures", "serve", str(recorded), "--trace", str(trace)]
    server = StdioServerParameters(
        command=sys.executable, args=[*words, "--sample", "W100"], env=ENVIRONMENT
    )
    said = [anyio.run(order_agent, server, "W100") for _ in range(2)]
    assert said == ["The total of your order is 81.25 euros."] * 2
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    assert [(line["sample_id"], line["trial"]) for line in lines] == [("W100", 0), ("W100", 1)]


@pytest.mark.slow
def test_a_url_is_recorded_as_a_command_is(recorded, tmp_path):
    port = free_port()
    child = started([LIVE, "--http", port], port)
    try:
        folder = tmp_path / "fixtures"
        more = ("--mode", "new", "--pii", "keep", "--header", "Authorization: Bearer ${SHOP_KEY}")
        os.environ["SHOP_KEY"] = "opensesame"
        assert record(folder, CALLS, *more, mcp=f"http://127.0.0.1:{port}/mcp") == 0
    finally:
        del os.environ["SHOP_KEY"]
        stopped(child)
    for path in recorded.iterdir():
        assert (folder / path.name).read_text() == path.read_text()


def test_older_clients_that_shake_hands_are_served_too(recorded, live):
    server, _ = served(recorded)

    async def ask():
        async with Client(server, mode="legacy") as client:
            result = await client.call_tool(*CALLS[0])
            return result.structured_content

    assert anyio.run(ask) == live[1][0].structured_content


def test_a_command_that_cannot_be_read_is_the_users_mistake(tmp_path, capsys):
    assert record(tmp_path / "fx", CALLS, "--mode", "new", mcp='server "half') == 2
    assert "cannot be split into words: No closing quotation" in capsys.readouterr().err


def test_calls_that_nothing_answered_are_counted_as_such(tmp_path, capsys):
    calls = [("nosuch", {}), ("dies", {}), ("query", {"sql": "select 1"})]
    assert record(tmp_path / "fx", calls, "--mode", "new") == 4
    said = capsys.readouterr()
    assert "1 asked, 0 answers written, 3 without a fixture" in said.out
    assert "2 calls were not answered" in said.err


@pytest.mark.slow
def test_a_silent_server_is_given_up_after_the_timeout_that_was_asked_for(tmp_path, capsys):
    assert record(tmp_path / "fx", CALLS, "--mode", "new", "--timeout", "0.2", mcp="sleep 60") == 4
    assert "no MCP server answered within 0.2 s" in capsys.readouterr().err


@pytest.mark.slow
def test_what_a_server_prints_beside_its_messages_is_no_traceback_of_ours(tmp_path):
    words = ["fixtures", "record", "fx", "--calls", "calls.jsonl", "--mode", "new"]
    write_calls(tmp_path / "calls.jsonl", CALLS)
    done = subprocess.run(
        [sys.executable, "-m", "callmark", *words, "--mcp", "echo hello"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert done.stderr.splitlines() == [done.stderr.strip()]
