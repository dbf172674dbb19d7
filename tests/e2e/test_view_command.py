"""`callmark view` as a person starts and ends it."""

import http.client
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.endpoints import Answer, Server

from callmark.cli import main


@pytest.fixture
def start(child_environment, tmp_path):
    """The command in a process of its own, and where it says that it is."""
    started: list[subprocess.Popen] = []
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def call(*words: str | Path) -> tuple[subprocess.Popen, str, str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "callmark", "view", *map(str, words)],
            cwd=tmp_path,
            env={**child_environment, "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        said, address = process.stdout.readline(), process.stdout.readline().strip()
        return process, said, address

    yield call
    for process in started:
        process.kill()
        process.communicate()


def ask(address: str, path: str, status: int = 200) -> object:
    port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]{40,})", address).groups()
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    assert answer.status == status, text
    return json.loads(text) if status == 200 else text.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_is_and_leaves_nothing_behind(start, world, number):
    assert (
        main([*world.arguments("--out", str(world.folder / "runs/a/results.jsonl")), "--quiet"])
        == 0
    )
    before = sorted((world.folder / "runs").rglob("*"))
    process, said, address = start("runs")
    assert said == "runs: 1 run; Ctrl-C ends the viewer\n"
    [run] = ask(address, "/runs")["runs"]
    assert run["name"] == "a"
    assert len(ask(address, f"/run/{run['id']}/index")["ids"]) == 20
    assert list((world.folder / "temporary").iterdir())
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")
    assert not list((world.folder / "temporary").iterdir())
    assert sorted((world.folder / "runs").rglob("*")) == before


@pytest.mark.slow
def test_the_port_can_be_chosen_and_two_have_two_tokens(start):
    _, _, first = start()
    port = re.search(r":(\d+)/", first)[1]
    failed, _, _ = start("--port", port)
    _, err = failed.communicate(timeout=30)
    assert failed.returncode == 2
    assert f"--port {port}: " in err
    assert "any free one" in err
    _, _, second = start()
    assert first.partition("token=")[2] != second.partition("token=")[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere: no such folder"),
        ([__file__], "is a file, a folder is needed"),
        (["--port", "70000"], "--port: must be a number from 1 to 65535"),
        (["--port", "x"], "invalid int value"),
    ],
)
def test_mistakes_are_said_in_one_sentence(words, message, capsys):
    assert main(["view", *words]) == 2
    assert message in capsys.readouterr().err


def reply(request) -> Answer:
    """A model that thinks for a while."""
    number = re.search(r"project (\d+)", json.dumps(request.messages))[1]
    call = {
        "name": "web_search",
        "arguments": json.dumps({"q": f"open issues of project {number}"}),
    }
    message: dict[str, object] = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": call}],
    }
    if request.messages[-1]["role"] == "tool":
        message = {"role": "assistant", "content": f"It has {1003 + 17 * int(number)} open issues."}
    return Answer(body={"choices": [{"message": message, "finish_reason": "stop"}]}, before=0.15)


@pytest.mark.slow
def test_a_real_run_is_followed_from_its_first_trial_to_its_report(start, world, child_environment):
    (world.folder / "runs").mkdir()
    _, _, address = start("runs")
    assert ask(address, "/runs")["runs"] == []
    with Server(reply) as server:
        words = world.arguments(
            "--out", "runs/live/results.jsonl", "--max-connections", "2", "--quiet"
        )
        words = [word if word != "replay" else "openai_http" for word in words]
        words[words.index("--model") + 1] = "thinker"
        run = subprocess.Popen(
            [sys.executable, "-m", "callmark", *words, "--base-url", server.url],
            cwd=world.folder,
            env=child_environment,
        )
        seen, place, number = [], 0, None
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            runs = ask(address, "/runs")["runs"]
            if number is None and runs:
                assert runs[0]["word"] == "unfinished"
                number = runs[0]["id"]
            if number is not None:
                piece = ask(address, f"/run/{number}/piece?from={place}")
                if "became" in piece:
                    break
                for name, at in zip(piece["index"]["ids"], piece["index"]["at"], strict=True):
                    sample = ask(address, f"/run/{number}/sample?at={at}") if not seen else None
                    assert sample is None or sample["sides"][0]["result"]["sample_id"] == name
                    seen.append(name)
                place = piece["next"]
            time.sleep(0.05)
        assert run.wait(30) == 0
    assert 0 < len(seen) <= 20
    assert len(set(seen)) == len(seen)
    head = ask(address, f"/run/{piece['became']}/head")
    assert head["word"] == "pass"
    assert len(ask(address, f"/run/{piece['became']}/index")["ids"]) == 20
