"""A conversation of 3,000 calls and 50 MB goes through import, scoring, page and viewer."""

import json
import time

import pytest

from callmark.cli import main
from callmark.reports.html.page import TRIAL_BYTES
from callmark.store.files import read_results

CALLS = 3000
ROWS = 270


def long_conversation(calls: int, rows: int) -> dict:
    messages = [{"role": "user", "content": "Read all the logs and tell me how they end."}]
    for at in range(calls):
        arguments = json.dumps({"path": f"logs/{at:05d}.log"})
        function = {"name": "read_file", "arguments": arguments}
        calling = [{"id": f"c{at}", "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": "", "tool_calls": calling})
        text = "\n".join(
            f"worker {'abcdefgh'[(at + row) % 8]} has taken the next parcel off the belt, looked at"
            for row in range(rows)
        )
        result = json.dumps({"log": text, "parcels": 7000 + at})
        messages.append({"role": "tool", "tool_call_id": f"c{at}", "content": result})
    last = f"I read {calls} logs. The last one has {7000 + calls - 1} parcels."
    messages.append({"role": "assistant", "content": last})
    return {"id": "long", "messages": messages}


def elapsed(started: float) -> float:
    return time.process_time() - started


@pytest.mark.slow
def test_3_000_calls_and_50_mb_are_imported_scored_and_looked_at(tmp_path, browser):
    source = tmp_path / "long.jsonl"
    source.write_text(json.dumps(long_conversation(CALLS, ROWS)), "utf-8")
    assert source.stat().st_size > 50_000_000
    started = time.process_time()
    assert main(["dataset", "import", str(source), "--out", str(tmp_path / "d.jsonl")]) == 0
    assert elapsed(started) < 60
    started = time.process_time()
    results, page = tmp_path / "run" / "results.jsonl", tmp_path / "run" / "report.html"
    assert main(["score", str(source), "--out", str(results), "--quiet"]) in (0, 5)
    [result] = read_results(results)
    assert len(result.tool_trace) == CALLS
    assert elapsed(started) < 400
    started = time.process_time()
    assert main(["report", str(results), "--html", str(page)]) in (0, 5)
    assert elapsed(started) < 60
    assert page.stat().st_size < 2 * TRIAL_BYTES
    browser.open(page, "s=long&t=0")
    browser.wait(f"document.querySelectorAll('.message.call').length === {CALLS}", 60)
    assert "callmark show RUN ID" in browser.js(
        "return document.querySelector('.message.call .result').textContent"
    )
    assert browser.complaints() == []


def test_what_is_cut_says_how_much_there_is(tmp_path, monkeypatch, capsys):
    """The same with a small page: what is large is cut, the answer and its scores are not."""
    monkeypatch.setattr("callmark.reports.html.page.TRIAL_BYTES", 40_000)
    source = tmp_path / "long.jsonl"
    source.write_text(json.dumps(long_conversation(20, ROWS)), "utf-8")
    results = tmp_path / "results.jsonl"
    assert main(["score", str(source), "--out", str(results), "--quiet"]) in (0, 5)
    assert main(["report", str(results), "--html", str(tmp_path / "page.html")]) in (0, 5)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.count("characters; `callmark show RUN ID --full` has them)") == 20
    assert "The last one has 7019 parcels." in page
