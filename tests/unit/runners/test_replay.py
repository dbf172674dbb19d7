"""The replay runner: answers from results files and message lists, through the real loop."""

import hashlib
import json

import pytest

from callmark.calls.registry import Registry
from callmark.errors import UsageError
from callmark.records.results import Decoding
from callmark.records.samples import sample_of
from callmark.records.trace import UserTurn
from callmark.run.play import PlaySettings, TrialInput, play
from callmark.runners.options import RunnerOptions
from callmark.runners.replay import open_replay

REGISTRY = Registry.from_specs(
    [{"name": "web.search", "parameters": {"type": "object", "required": ["q"]}}], where="test"
)


def replayed(tmp_path, line, *, trial=0, prompt="Hi", max_turns=None, registry_sha256=None):
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps(line) + "\n", "utf-8")
    options = RunnerOptions(
        model=str(path),
        decoding=Decoding(),
        tool_registry_sha256=registry_sha256 or REGISTRY.sha256,
    )
    sample = sample_of({"prompt": prompt}, index=0, sample_id="s", item_sha256="")
    settings = PlaySettings(registry=REGISTRY, max_turns=max_turns)
    trials = [TrialInput(sample, trial, frozenset({"web.search"}), ())]
    with open_replay(options) as runner:
        assert runner.model_fingerprint() == hashlib.sha256(path.read_bytes()).hexdigest()
        with pytest.raises(StopIteration) as ended:
            play(trials, runner, None, settings).send(None)
    [played] = ended.value.value
    return played


def test_only_an_id_and_a_text_are_needed(tmp_path):
    played = replayed(tmp_path, {"sample_id": "s", "model_output": "Hello"})
    assert played.trace.model_output == "Hello"
    assert played.trace.turns is None
    assert played.error is None


def test_a_null_output_is_an_empty_text(tmp_path):
    assert replayed(tmp_path, {"sample_id": "s", "model_output": None}).trace.model_output == ""


def test_calls_with_and_without_recorded_results(tmp_path):
    trace = [
        {"name": "web.search", "arguments": {"q": "a"}, "result": {"hits": 1}},
        {"name": "web.search", "arguments": {}},
    ]
    played = replayed(tmp_path, {"sample_id": "s", "model_output": "x", "tool_trace": trace})
    first, second = played.trace.tool_trace
    assert (first.status, first.served_by, first.result) == ("ok", "recorded", {"hits": 1})
    assert first.schema_errors == ()
    assert second.status == "unanswered"
    assert second.schema_errors


def test_calls_that_only_the_text_holds(tmp_path):
    text = 'Wait <tool_call>{"name": "web.search", "arguments": {"q": "a"}}</tool_call>'
    played = replayed(tmp_path, {"sample_id": "s", "model_output": text})
    assert [entry.name for entry in played.trace.tool_trace] == ["web.search"]
    assert played.trace.model_output == "Wait"


OWN = {
    "sample_id": "s",
    "model_output": "Let me see.\nIt is 5 €.\nBye",
    "turns": [{"start": 0, "end": 11}, {"start": 12, "end": 24}, {"start": 25, "end": 28}],
    "said": [{"turn": 2, "text": "Thanks"}],
    "reasoning": "hm",
    "stop": "truncated",
    "tool_trace": [
        {
            "name": "web.search",
            "arguments": {"q": "a"},
            "result": {"price": 5},
            "turn": 1,
            "status": "ok",
            "served_by": "fixture:exact",
            "schema_errors": ["/q: some verdict"],
        }
    ],
}


def test_a_line_with_turns_is_played_turn_by_turn(tmp_path):
    played = replayed(tmp_path, OWN)
    trace = played.trace
    assert trace.model_output == OWN["model_output"]
    assert [{"start": s, "end": e} for s, e in trace.turns] == OWN["turns"]
    assert trace.said == (UserTurn(2, "Thanks"),)
    assert trace.reasoning == "hm"
    assert trace.stop == "truncated"
    assert [(e.turn, e.served_by) for e in trace.tool_trace] == [(1, "recorded")]


def test_a_recording_can_be_cut_short(tmp_path):
    played = replayed(tmp_path, OWN, max_turns=2)
    assert played.trace.model_output == "Let me see.\nIt is 5 €."
    assert played.trace.stop == "max_turns"


@pytest.mark.parametrize("same", [True, False])
def test_schema_verdicts_of_another_registry_are_made_anew(tmp_path, same):
    fingerprint = REGISTRY.sha256 if same else "0" * 64
    line = {**OWN, "fingerprints": {"tool_registry_sha256": fingerprint}}
    [entry] = replayed(tmp_path, line).trace.tool_trace
    assert entry.schema_errors == (("/q: some verdict",) if same else ())


@pytest.mark.parametrize("status", ["malformed", "tool_not_offered", "invalid_arguments"])
def test_what_was_not_served_stays_so(tmp_path, status):
    entry = {"name": "web.search", "arguments": {"q": "a"}, "result": None, "status": status}
    line = {"sample_id": "s", "model_output": "x", "tool_trace": [entry]}
    [played] = replayed(tmp_path, line).trace.tool_trace
    assert (played.status, played.served_by) == (status, None)


@pytest.mark.parametrize("says", [{"status": "miss"}, {}])
def test_a_recorded_miss_is_recorded(tmp_path, says):
    missed = {"ok": False, "error": "fixture_miss"}
    entry = {"name": "web.search", "arguments": {"q": "a"}, "result": missed, **says}
    line = {"sample_id": "s", "model_output": "x", "tool_trace": [entry]}
    [played] = replayed(tmp_path, line).trace.tool_trace
    assert (played.status, played.served_by) == ("miss", "recorded")


def test_an_entry_without_a_turn_makes_the_order_unknown(tmp_path):
    entry = {key: value for key, value in OWN["tool_trace"][0].items() if key != "turn"}
    assert replayed(tmp_path, {**OWN, "tool_trace": [entry]}).trace.turns is None


def test_turns_that_leave_out_text_are_no_answer(tmp_path):
    played = replayed(tmp_path, {**OWN, "turns": [{"start": 0, "end": 11}]})
    assert "turns" in played.error


def test_a_sample_without_an_answer_is_an_error(tmp_path):
    played = replayed(tmp_path, {"sample_id": "other", "model_output": "x"})
    assert played.error.startswith("no recorded answer for sample s")
    assert played.trace.stop == "error"
    later = replayed(tmp_path, {"sample_id": "s", "model_output": "x"}, trial=1)
    assert "trial 1" in later.error


def test_a_recorded_failure_is_no_answer(tmp_path):
    line = {"sample_id": "s", "model_output": "", "status": "error", "error": "timeout"}
    assert "timeout" in replayed(tmp_path, line).error


MESSAGES = [
    {"role": "user", "content": "Hi"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "x", "function": {"name": "web_search", "arguments": '{"q":"a"}'}}],
    },
    {"role": "tool", "tool_call_id": "x", "content": '{"hits": 3}'},
    {"role": "assistant", "content": "There are 3."},
]


def test_message_lists(tmp_path):
    played = replayed(tmp_path, {"sample_id": "s", "messages": MESSAGES})
    [entry] = played.trace.tool_trace
    assert (entry.name, entry.turn, entry.served_by) == ("web.search", 1, "recorded")
    assert played.trace.model_output == "There are 3."
    assert played.trace.turns == ((0, 0), (0, 12))


def test_a_prompt_with_earlier_assistant_turns_is_not_the_answer(tmp_path):
    prompt = [
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "Two."},
        {"role": "user", "content": "Hi"},
    ]
    line = {"sample_id": "s", "messages": [*prompt, *MESSAGES[1:]]}
    assert replayed(tmp_path, line, prompt=prompt).trace.model_output == "There are 3."


def test_messages_without_an_assistant_are_no_answer(tmp_path):
    played = replayed(tmp_path, {"sample_id": "s", "messages": MESSAGES[:1]})
    assert "no assistant turn" in played.error


def test_the_file_must_be_named():
    options = RunnerOptions(model=None, decoding=Decoding(), tool_registry_sha256="")
    with pytest.raises(UsageError, match="--model FILE"), open_replay(options):
        pass
