"""`callmark view --accept DATASET`: what was merely observed is accepted or rejected by key."""

import json
from pathlib import Path

import pytest
from tests.browser.test_view import id_of, visit
from tests.browser.view_world import Client, viewing

from callmark.cli import main
from callmark.datasets.reader import open_dataset

CITIES = ("Ulm", "Bonn", "Graz")


def talk(city: str, degrees: int) -> dict:
    function = {"name": "weather", "arguments": json.dumps({"city": city})}
    return {
        "id": city,
        "messages": [
            {"role": "user", "content": f"How warm is {city}?"},
            {"role": "assistant", "tool_calls": [{"id": "a", "function": function}]},
            {"role": "tool", "tool_call_id": "a", "content": json.dumps({"temp_c": degrees})},
            {"role": "assistant", "content": f"It is {degrees} degrees in {city}."},
        ],
    }


@pytest.fixture
def judged(tmp_path, monkeypatch) -> Path:
    """A folder with a run over a dataset of three observed conversations."""
    monkeypatch.chdir(tmp_path)
    Path("scratch").mkdir()
    lines = [json.dumps(talk(city, 19 + at)) for at, city in enumerate(CITIES)]
    Path("log.jsonl").write_text("\n".join(lines), "utf-8")
    assert (
        main(["dataset", "import", "log.jsonl", "--expect", "observed", "--out", "set.jsonl"]) == 0
    )
    words = "run --in set.jsonl --registry set.tools.json --fixtures set.fixtures"
    words += " --model set.answers.jsonl --out runs/one/results.jsonl --quiet"
    main(words.split())
    return tmp_path / "set.jsonl"


def expectations(dataset: Path) -> dict[str, tuple[bool, bool]]:
    """Of each sample: merely observed, and whether calls are expected."""
    with open_dataset(dataset) as opened:
        assert opened.header.dataset_sha256 == opened.sha256
        return {
            one.sample_id: (one.expectation.observed, bool(one.expectation.calls))
            for one in opened.samples()
        }


def test_a_accepts_and_r_rejects_the_sample_that_is_shown(browser, judged, tmp_path):
    with viewing(tmp_path / "runs", tmp_path / "scratch", judged) as server:
        visit(browser, server.guard.address)
        run = id_of(browser, "one")
        visit(browser, server.guard.address, f"run/{run}#s=Ulm&t=0")
        browser.wait("document.getElementById('judged') !== null")
        assert "Is it right?" in browser.js("return document.getElementById('judged').textContent")
        browser.type("a")
        browser.wait("document.getElementById('judged').textContent.startsWith('accepted')")
        assert expectations(judged)["Ulm"] == (False, True)
        visit(browser, server.guard.address, f"run/{run}#s=Bonn&t=0")
        browser.wait("document.getElementById('judged') !== null")
        browser.type("r")
        browser.wait("document.getElementById('judged').textContent.startsWith('rejected')")
    found = expectations(judged)
    assert found == {"Ulm": (False, True), "Bonn": (False, False), "Graz": (True, True)}
    assert browser.complaints() == []


def test_judging_is_a_post_that_names_the_sample(judged, tmp_path):
    def post(client: Client, body: object):
        headers = {"Content_Type": "application/json", **client.bearer}
        return client.ask("/accept", "POST", json.dumps(body).encode(), **headers)

    with viewing(tmp_path / "runs", tmp_path / "scratch", judged) as server:
        client = Client(server)
        assert client.json("/accepting") == {"dataset": "set.jsonl"}
        assert post(client, {"sample_id": "Ulm", "right": True}).status == 200
        again = post(client, {"sample_id": "Ulm", "right": True})
        assert again.status == 422
        assert "merely observed" in again.text
        assert post(client, {"sample_id": "Ulm"}).status == 400
        assert client.known("/accept").status == 405
    assert expectations(judged)["Ulm"] == (False, True)
    with viewing(tmp_path / "runs", tmp_path / "scratch") as server:
        client = Client(server)
        assert client.json("/accepting") == {"dataset": None}
        assert post(client, {"sample_id": "Bonn", "right": True}).status == 404


def test_the_same_by_flag(judged, capsys):
    assert main(["dataset", "accept", str(judged), "--all", "--reject", "Bonn"]) == 0
    assert "2 samples accepted, 1 rejected" in capsys.readouterr().out
    assert expectations(judged) == {
        "Ulm": (False, True),
        "Bonn": (False, False),
        "Graz": (False, True),
    }
