"""What a reader of the promises found by trying them from outside: through the command line and
the library's public names only."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.pace import few

import callmark
from callmark.api import summarize_results
from callmark.errors import CallmarkError

SRC = Path(callmark.__file__).parent.parent
MAIL = "ann.smith@corp-mail.io"
OTHER_MAIL = "joe.miller@other-mail.io"

Row = dict[str, Any]


def _written(path: Path, rows: Sequence[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _item(number: int, **metadata: Any) -> Row:
    call = {"name": "web.search", "arguments": {"q": f"topic {number}"}}
    known = {"sample_id": f"s{number}", "call_sequence": [call], **metadata}
    return {"prompt": f"What is topic {number}? Begin with Integration:", "metadata": known}


def _fixture(number: int, **more: Any) -> Row:
    result = {"ok": True, "count": 1000 + 7 * number, **more}
    return {"name": "web.search", "key": {"q": f"topic {number}"}, "result": result}


def _answer(number: int, text: str | None = None) -> Row:
    text = f"Integration: count {1000 + 7 * number}" if text is None else text
    return {
        "sample_id": f"s{number}",
        "model_output": text,
        "tool_trace": [{"name": "web.search", "arguments": {"q": f"topic {number}"}, "turn": 1}],
        "turns": [{"start": 0, "end": 0}, {"start": 0, "end": len(text.encode())}],
    }


class Place:
    """A folder with a dataset, fixtures and recorded answers, and the commands that use them."""

    def __init__(
        self, folder: Path, items: Sequence[Row], fixtures: Sequence[Row], answers: Sequence[Row]
    ) -> None:
        self.folder = folder
        self.out, self.report_file = folder / "o.jsonl", folder / "r.json"
        _written(folder / "d.jsonl", [{"__header__": True}, *items])
        _written(folder / "fx" / "f.jsonl", fixtures)
        _written(folder / "a.jsonl", answers)

    def arguments(self, *more: str) -> list[str]:
        files = ["--in", "d.jsonl", "--fixtures", "fx", "--model", "a.jsonl", "--out", "o.jsonl"]
        return ["run", *files, "--report", "r.json", *more]

    def start(
        self, *arguments: str, limits: Callable[[], None] | None = None
    ) -> subprocess.Popen[str]:
        # Within limits Python would leave half of what it compiles: all later processes would fail.
        compiled = {} if limits is None else {"PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.Popen(
            [sys.executable, "-m", "callmark", *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(SRC), **compiled},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=limits,
        )

    def call(
        self, *arguments: str, limits: Callable[[], None] | None = None
    ) -> tuple[int, str, str]:
        process = self.start(*arguments, limits=limits)
        out, err = process.communicate()
        return process.returncode, out, err

    def report(self, name: str = "r.json") -> Row:
        read: Row = json.loads((self.folder / name).read_text(encoding="utf-8"))
        return read

    def lines(self) -> list[Row]:
        return [json.loads(line) for line in self.out.read_text(encoding="utf-8").splitlines()]


def _good(folder: Path, n: int) -> Place:
    every = range(n)
    return Place(folder, [*map(_item, every)], [*map(_fixture, every)], [*map(_answer, every)])


@pytest.mark.slow
def test_exit_130_never_goes_with_a_finished_results_file(tmp_path: Path) -> None:
    """Ctrl-C while the report is computed: either the run is whole (its own exit code, a complete
    report), or it was interrupted (130: no results file, a journal, a report that says so)."""
    place = _good(tmp_path, 2500)
    process = place.start(*place.arguments("--quiet"))
    while process.poll() is None and not place.out.exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    process.communicate()
    if process.returncode == 130:
        assert not place.out.exists()
        assert Path(f"{place.out}.journal").exists()
        assert place.report()["complete"] is False
    else:
        assert place.report()["complete"] is True


@pytest.mark.slow
def test_a143_the_terminal_shows_no_pii_of_the_nearest_fixtures(tmp_path: Path) -> None:
    """With --redact-pii a missed call is explained by fixtures whose keys may hold PII."""
    fixture = {"name": "web.search", "key": {"q": f"mail of {MAIL}"}, "result": {"count": 5}}
    place = Place(tmp_path, [_item(1)], [fixture], [_answer(1)])
    _, out, err = place.call(*place.arguments("--redact-pii"))
    assert MAIL not in out + err


def _mails(number: int) -> str:
    return f"{'abcdefghijklmnopqrstuvwxyz'[number]}.smith{number}@corp-mail.io"


@pytest.mark.slow
def test_a143_redaction_changes_no_metric(tmp_path: Path) -> None:
    """Each answer quotes the address in its own results. Redacted, all addresses look alike, but
    the level of chance, and with it the hard gate on the lift, must not see that."""
    n = 20
    place = Place(
        tmp_path,
        [_item(number) for number in range(n)],
        [_fixture(number, summary=_mails(number)) for number in range(n)],
        [_answer(number, f"Integration: it is {_mails(number)}") for number in range(n)],
    )
    plain_code, *_ = place.call(*place.arguments())
    plain = place.report()["metrics"]
    redacted_code, *_ = place.call(*place.arguments("--redact-pii"))
    redacted = place.report()["metrics"]
    assert plain["grounding_lift"]["value"] == 1.0
    assert {name: metric["value"] for name, metric in redacted.items()} == {
        name: metric["value"] for name, metric in plain.items()
    }
    assert redacted_code == plain_code


@pytest.mark.slow
def test_a143_a_redacted_breach_stays_a_breach_when_scored_again(tmp_path: Path) -> None:
    """The address is gone from the file, the breach is not: nothing that cannot be checked any
    more may pass."""
    place = Place(
        tmp_path,
        [*map(_item, range(20))],
        [*map(_fixture, range(20))],
        [_answer(number, f"Integration: {1000 + 7 * number} {OTHER_MAIL}") for number in range(20)],
    )
    code, *_ = place.call(*place.arguments("--redact-pii"))
    assert (code, place.report()["metrics"]["privacy_ok_rate"]["value"]) == (1, 0.0)
    code, *_ = place.call("score", "o.jsonl", "--report", "again.json")
    assert place.report("again.json")["metrics"]["privacy_ok_rate"]["value"] == 0.0
    assert code == 1


@pytest.mark.parametrize("shape", few(["turns", "no turns", "messages"]))
def test_scripted_follow_ups_are_said_whatever_the_recording_looks_like(
    tmp_path: Path, shape: str
) -> None:
    """A recording that does not repeat what the user said was still made with the dataset's own
    follow-ups, each sent after an answer without calls."""
    item = {"prompt": "x", "user_turns": ["thanks, 555?"], "metadata": {"sample_id": "s"}}
    item["metadata"]["call_sequence"] = ["web.search"]  # type: ignore[index]
    fixture = {"name": "web.search", "key": {"q": "a"}, "result": {"count": 77}}
    call = {"name": "web.search", "arguments": {"q": "a"}, "turn": 1}
    answer: Row = {"sample_id": "s", "model_output": "It is 77.\nYes 555.", "tool_trace": [call]}
    if shape == "turns":
        ranges = ((0, 0), (0, 9), (10, 18))
        answer["turns"] = [{"start": start, "end": end} for start, end in ranges]
    elif shape == "messages":
        function = {"name": "web.search", "arguments": '{"q": "a"}'}
        calls = [{"id": "1", "type": "function", "function": function}]
        answer = {
            "sample_id": "s",
            "messages": [
                {"role": "assistant", "content": None, "tool_calls": calls},
                {"role": "assistant", "content": "It is 77."},
                {"role": "assistant", "content": "Yes 555."},
            ],
        }
    place = Place(tmp_path, [item], [fixture], [answer])
    place.call(*place.arguments())
    (line,) = place.lines()
    labels = [value["label"] for span in line["scores"]["spans"] for value in span["values"]]
    assert [said["text"] for said in line["said"]] == ["thanks, 555?"]
    assert labels == ["supported", "user_said"]


def test_a_right_clarify_answer_costs_no_parity(tmp_path: Path) -> None:
    """The right answer to a clarify sample calls nothing, so its calls are not compared."""
    clarify = {"adversarial": {"type": "ambiguity", "expected": "ask_clarify"}}
    items = [_item(n, **clarify, call_sequence=["web.search", "read_file"]) for n in range(20)]
    asked = [{"sample_id": f"s{n}", "model_output": f"Which one, {n}?"} for n in range(20)]
    place = Place(
        tmp_path,
        [*items, *map(_item, range(20, 40))],
        [*map(_fixture, range(40))],
        [*asked, *map(_answer, range(20, 40))],
    )
    code, *_ = place.call(*place.arguments())
    report = place.report()
    status = {gate["name"]: gate["status"] for gate in report["gates"]}
    assert status["clarify_ok_rate"] == "pass"
    assert status["multi_call_parity_rate"] != "fail"
    assert (report["verdict"], code) == ("pass", 0)


@pytest.mark.slow
def test_a_full_disk_leaves_a_report_that_says_incomplete(tmp_path: Path) -> None:
    """Exit 4: the journal stays, and the report of an earlier, better run does not."""
    place = _good(tmp_path, 60)
    code, *_ = place.call(*place.arguments())
    assert (code, place.report()["verdict"]) == (0, "pass")
    place.out.unlink()

    def no_file_above_100_kb() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    code, _, err = place.call(*place.arguments(), limits=no_file_above_100_kb)
    assert code == 4, err
    assert not place.out.exists()
    assert Path(f"{place.out}.journal").exists()
    assert place.report()["complete"] is False


@pytest.mark.slow
def test_the_report_can_go_to_a_pipe(tmp_path: Path) -> None:
    place = _good(tmp_path, 2)
    arguments = [*place.arguments("--quiet"), "--report", "/dev/stdout"]
    code, out, err = place.call(*arguments)
    assert code == 5, err
    assert '"report_version"' in out


@pytest.mark.slow
def test_a67_score_compares_what_the_header_pins(tmp_path: Path) -> None:
    """The dataset given to `score --in` pins hashes that can be computed: they are compared."""
    place = _good(tmp_path, 20)
    place.call(*place.arguments())
    pins = {"__header__": True, "dataset_sha256": "0" * 64, "tool_registry_sha256": "1" * 64}
    _written(tmp_path / "d2.jsonl", [pins, *map(_item, range(20))])
    code, _, err = place.call("score", "o.jsonl", "--in", "d2.jsonl")
    assert code == 3
    assert "dataset_sha256" in err
    assert "tool_registry_sha256" in err


@pytest.mark.slow
def test_a1_lines_of_failed_trials_do_not_depend_on_where_the_answers_lie(tmp_path: Path) -> None:
    """Two runs with the same inputs give the same bytes, in whatever folder these stand."""
    written = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        place = Place(folder, [_item(0), _item(1)], [_fixture(0)], [_answer(0)])
        answers = str(folder / "a.jsonl")
        place.call(*place.arguments("--model", answers, "--max-errors", "1"))
        written.append(place.out.read_bytes())
    assert written[0] == written[1]


def test_summarize_results_refuses_a_line_without_an_id() -> None:
    with pytest.raises(CallmarkError, match="sample_id"):
        summarize_results(iter([{}]))


@pytest.mark.slow
def test_a143_redaction_keeps_clusters_apart(tmp_path: Path) -> None:
    """Clusters named by an address are still as many clusters, so intervals stay what they are."""
    place = Place(
        tmp_path,
        [_item(number, cluster=_mails(number // 5)) for number in range(20)],
        [*map(_fixture, range(20))],
        [_answer(number, "Integration: 5" if number < 5 else None) for number in range(20)],
    )
    place.call(*place.arguments())
    plain = place.report()["metrics"]["integration_f1_macro_lax"]
    place.call(*place.arguments("--redact-pii"))
    assert place.report()["metrics"]["integration_f1_macro_lax"] == plain
