"""`callmark doctor --runner`: what it finds out of any runner, what it says, and how it ends."""

import json

import pytest
from tests.scripted import Scripted, calling, plug

from callmark.cli import main
from callmark.errors import FingerprintMismatch, Incomplete, UsageError
from callmark.records.seams import Failure, Observed, Reply
from callmark.run.doctor import CHECKS

FLAGS = ["--runner", "scripted", "--model", "the-model"]


def good(one):
    """A model that does everything right."""
    if not one.tools:
        return Reply(text="Hello!")
    if one.turn == 1:
        first = calling("web_search", {"q": "open issues parser"})
        if one.sample_id != "doctor-parallel":
            return first
        second = calling("web_search", {"q": "closed issues parser"})
        return Reply(text="", calls=(*first.calls, *second.calls))
    return Reply(text="There are 4,217 open issues.")


@pytest.fixture
def examined(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def examine(runner, *flags):
        plug(monkeypatch, tmp_path, runner)
        code = main(["doctor", *FLAGS, *flags, "--json"])
        captured = capsys.readouterr()
        assert captured.err == ""
        found = json.loads(captured.out)
        assert found["exit_code"] == code
        assert list(found["findings"])[: len(CHECKS)] == list(CHECKS)
        return code, found["findings"], found

    return examine


def verdicts(findings) -> list[str]:
    return [finding["verdict"] for finding in findings.values()]


@pytest.mark.parametrize("suspends", [False, True])
def test_a_good_runner_is_found_good(examined, suspends):
    runner = Scripted(good, suspends=suspends)
    runner.parts = {"tools_block": "native"}
    code, findings, _ = examined(runner)
    # What a server does with its settings only a server can show.
    assert findings.pop("keeps_settings")["verdict"] == "unchecked"
    assert (code, set(verdicts(findings))) == (0, {"ok"})
    assert findings["parallel_calls"]["found"] == "2 calls in one turn"
    assert findings["reachable"]["found"] == "scripted is ready with the model the-model"
    assert (
        findings["calls_tools"]["found"]
        == 'web.search {"q":"open issues parser"}, as a structured call'
    )
    assert findings["uses_results"]["found"] == '"There are 4,217 open issues."'
    assert findings["equal_on_repeat"]["found"] == "0 of 5 repeats differ (0%)"
    assert runner.closed == 1


def test_it_is_asked_as_a_run_would_ask(examined):
    """One plain prompt, then the same tool conversation once and five times more; the tool is
    offered with its real schema and its result comes back."""
    runner = Scripted(good, max_batch=4)
    examined(runner)
    assert [one.sample_id for one in runner.seen].count("doctor-plain") == 1
    tool = [one for one in runner.seen if one.sample_id == "doctor-tool"]
    assert (len(tool), {one.trial for one in tool}) == (12, {0})
    assert tool[0].tools[0]["function"]["parameters"]["required"] == ["q"]
    assert [message["role"] for message in tool[1].messages] == ["user", "assistant", "tool"]
    assert json.loads(tool[1].messages[-1]["content"])["summary"] == "there are 4217 open issues"
    assert runner.options.decoding.temperature == 0.0


def test_settings_are_those_of_a_run(examined, tmp_path):
    (tmp_path / "w.j2").write_text('{"system": "{{ system }}", "user": "<{{ user }}>"}', "utf-8")
    tools = [{"name": name, "parameters": {"type": "object"}} for name in ("zip", "add")]
    (tmp_path / "tools.json").write_text(json.dumps(tools), "utf-8")
    runner = Scripted(lambda one: Reply(text="No."), suspends=True)
    flags = (
        "--prompt-wrapper w.j2 --system S --registry tools.json --temperature 0.7 --max-tokens 9"
    )
    code, findings, _ = examined(runner, *flags.split(), "--repeat", "3")
    assert code == 1
    assert findings["equal_on_repeat"]["found"] == "0 of 3 repeats differ (0%)"
    system, user = runner.seen[1].messages
    assert (system["content"], user["content"][:20]) == ("S", "<Call the tool add o")
    assert (runner.options.decoding.temperature, runner.options.decoding.max_tokens) == (0.0, 9)
    examined(runner, "--temperature", "null")
    assert runner.options.decoding.temperature is None


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        (Reply(text="I cannot search."), 'no call came, but "I cannot search."'),
        (Reply(text="Let me", finish="length"), 'cut off before a call came, but "Let me"'),
        (calling("web_search", '{"q": '), "a call that cannot be read (the arguments are not JSON"),
        (calling("web_search", {"query": "x"}), "arguments that the tool does not take"),
        (
            calling("web_open", {"url": "https://example.com"}),
            "a call of web.open, which was not offered",
        ),
        (Reply(text='<tool_call>{"name": "web.search"'), "a call that cannot be read"),
    ],
)
def test_a_model_that_calls_no_tool_rightly_is_wrong(examined, reply, found):
    code, findings, _ = examined(Scripted(lambda one: reply if one.tools else Reply(text="Hi.")))
    finding = findings["calls_tools"]
    assert (code, finding["verdict"]) == (1, "wrong")
    assert finding["found"].startswith(found)
    assert finding["means"]
    assert finding["next"]


def test_a_call_in_the_text_is_read_and_said(examined):
    text = 'I look. <tool_call>{"name": "web.search", "arguments": {"q": "x"}}</tool_call>'
    code, findings, _ = examined(
        Scripted(lambda one: Reply(text=text if one.turn == 1 else "4217"))
    )
    assert findings["calls_tools"]["verdict"] == "ok"
    assert "written in the text (hermes)" in findings["calls_tools"]["found"]
    assert findings["answers"]["found"] == "called web.search, though no tool was offered"
    assert (code, findings["answers"]["verdict"]) == (0, "note")


@pytest.mark.parametrize(
    ("last", "said"),
    [("It has none.", '"It has none."'), ("", "an empty text")],
)
def test_a_model_that_does_not_use_results_is_noted(examined, last, said):
    code, findings, _ = examined(
        Scripted(lambda one: Reply(text=last) if one.turn > 1 else good(one))
    )
    assert (code, findings["uses_results"]["verdict"]) == (0, "note")
    assert (
        findings["uses_results"]["found"]
        == f"was told that there are 4217 open issues, and answered {said}"
    )


def test_a_single_shot_never_sees_a_result(examined):
    _, findings, _ = examined(Scripted(good), "--max-turns", "1")
    assert findings["uses_results"]["verdict"] == "unchecked"


@pytest.mark.parametrize(
    ("reply", "verdict", "found"),
    [
        (Reply(text=""), "wrong", "an empty text (stopped by answer)"),
        (Reply(text="", finish="length"), "wrong", "an empty text (stopped by truncated)"),
        (Reply(text="Hel", finish="length"), "note", 'cut off: "Hel"'),
        (Reply(text="word " * 99), "ok", '"' + "word " * 16 + '…"'),
    ],
)
def test_what_a_plain_answer_tells(examined, reply, verdict, found):
    code, findings, _ = examined(Scripted(lambda one: good(one) if one.tools else reply))
    assert (findings["answers"]["verdict"], findings["answers"]["found"]) == (verdict, found)
    assert code == (verdict == "wrong")


@pytest.mark.parametrize(
    ("block", "verdict"),
    [("native", "ok"), ("fallback", "note"), ("raw", "note"), (None, "unchecked")],
)
def test_whether_the_template_keeps_tools_comes_from_the_runner(examined, block, verdict):
    runner = Scripted(good)
    runner.parts = {} if block is None else {"tools_block": block}
    code, findings, _ = examined(runner)
    assert (code, findings["template_keeps_tools"]["verdict"]) == (0, verdict)


@pytest.mark.parametrize(
    ("flags", "verdict", "code"), [((), "note", 0), (("--determinism-mode",), "wrong", 1)]
)
def test_the_flip_rate_counts_repeats_that_differ_from_the_first(examined, flags, verdict, code):
    answers = iter(["4217", "4217!", "4217", "4217?", "4217"])

    def moody(one):
        is_moody = one.turn == 2 and one.sample_id == "doctor-tool"
        return Reply(text=next(answers)) if is_moody else good(one)

    found_code, findings, _ = examined(Scripted(moody, suspends=True), *flags, "--repeat", "4")
    finding = findings["equal_on_repeat"]
    assert (found_code, finding["verdict"]) == (code, verdict)
    assert finding["found"] == "2 of 4 repeats differ (50%)"
    assert "differ by chance alone" in finding["means"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("--model: no such model"), 2),
        (FingerprintMismatch("another model"), 3),
        (Incomplete("http://localhost:1: nobody answers"), 4),
    ],
)
def test_a_runner_that_is_not_ready_ends_it_with_its_own_exit_code(examined, error, code):
    runner = Scripted(good)
    runner.not_ready = error
    found_code, findings, _ = examined(runner)
    assert (found_code, findings["reachable"]["found"]) == (code, str(error))
    assert verdicts(findings) == ["wrong", *["unchecked"] * (len(CHECKS) - 1)]
    assert runner.closed == 1


@pytest.mark.parametrize(
    ("breaks", "stage"),
    [
        (lambda one: not one.tools, "answers"),
        (lambda one: bool(one.tools), "calls_tools"),
        (lambda one: one.turn == 2, "uses_results"),
    ],
)
def test_infrastructure_that_fails_is_never_a_pass(examined, breaks, stage):
    def script(one):
        return Failure("HTTP 502 after 5 tries") if breaks(one) else good(one)

    code, findings, _ = examined(Scripted(script))
    at = list(CHECKS).index(stage)
    assert (code, findings[stage]["verdict"]) == (4, "wrong")
    assert findings[stage]["found"].endswith("HTTP 502 after 5 tries")
    assert verdicts(findings) == ["ok"] * at + ["wrong"] + ["unchecked"] * (len(CHECKS) - 1 - at)


def test_a_failure_among_the_repeats_is_no_flip(examined):
    answered = []

    def script(one):
        answered.append(one)
        return Failure("cut off") if len(answered) > 6 else good(one)

    code, findings, _ = examined(Scripted(script))
    assert (code, findings["equal_on_repeat"]["found"]) == (4, "cut off")


def test_what_the_runner_observed_is_shown(examined, capsys):
    runner = Scripted(good)
    runner.saw = Observed(
        provenance={"base_url": "http://x/v1"},
        measured={"requests": 13},
        warnings=("the server changed",),
    )
    code, findings, whole = examined(runner)
    assert (code, findings["warnings"]["found"]) == (0, "the server changed")
    assert (whole["provenance"], whole["measured"]) == (
        {"base_url": "http://x/v1"},
        {"requests": 13},
    )
    assert main(["doctor", *FLAGS]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "ok    reachable             scripted is ready with the model the-model"
    assert "      base_url: http://x/v1" in shown
    assert "      requests: 13" in shown


def test_people_are_told_what_it_means_and_what_next(examined, capsys):
    examined(Scripted(lambda one: Reply(text="No.\x1b[2J")))
    assert main(["doctor", *FLAGS]) == 1
    shown = capsys.readouterr().out
    assert "WRONG calls tools           no call came" in shown
    assert "it means: samples that expect a call would all fail" in shown
    assert "next: is the model trained to call tools?" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--runner", "repaly"], "there is no 'repaly'; there is: "),
        (["--runner", "replay"], "needs --model FILE"),
        (["--runner", "replay", "--model", "absent.jsonl"], "absent.jsonl"),
        ([*FLAGS, "--prompt-wrapper", "absent.j2"], "absent.j2: no such file"),
        ([*FLAGS, "--registry", "absent.json"], "absent.json: no such file"),
        ([*FLAGS, "--allowlist", "none.json"], "--allowlist: allows no tool"),
    ],
)
def test_a_wrong_setting_is_exit_2_and_nothing_is_asked(
    tmp_path, monkeypatch, capsys, flags, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "none.json").write_text("[]", "utf-8")
    runner = Scripted(good)
    plug(monkeypatch, tmp_path, runner)
    assert main(["doctor", *flags]) == 2
    assert message in capsys.readouterr().out
    assert runner.seen == []


def test_a_setting_of_a_file_is_named_by_its_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "callmark.yaml").write_text("seed: 1\napi_key: literal\n", "utf-8")
    plug(monkeypatch, tmp_path, Scripted(good))
    assert main(["doctor", *FLAGS]) == 2
    assert "callmark.yaml:2: api_key: " in capsys.readouterr().out


def test_a_recording_can_be_examined_too(tmp_path, capsys):
    """Nothing is special about any runner: one that has the answers passes."""
    call = {"name": "web.search", "arguments": {"q": "open issues parser"}, "turn": 1}
    turns = [{"start": 0, "end": 0}, {"start": 0, "end": 4}]
    lines = [
        {"sample_id": "doctor-plain", "model_output": "Hello."},
        {"sample_id": "doctor-tool", "model_output": "4217", "tool_trace": [call], "turns": turns},
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    assert main(["doctor", "--runner", "replay", "--model", str(path)]) == 0
    assert "0 of 5 repeats differ" in capsys.readouterr().out


def test_the_machine_is_told_as_json_too(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is True
    assert {"Jinja2", "httptools"} <= {check["subject"] for check in found["checks"]}
