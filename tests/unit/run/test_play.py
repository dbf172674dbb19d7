"""The loop: turns, calls, answers, and when it stops."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark.broker.broker import ToolBroker
from callmark.calls.attempts import entry_for, native_call
from callmark.calls.formats import Format
from callmark.calls.registry import Registry
from callmark.records.jsontext import digest
from callmark.records.samples import sample_of
from callmark.records.seams import Failure, Reply, Runner
from callmark.records.trace import TraceEntry, UserTurn
from callmark.run.play import PlaySettings, TrialInput, join_turns, play

REGISTRY = Registry.from_specs(
    [
        {
            "name": "web.search",
            "parameters": {
                "type": "object",
                "properties": {"q": {"type": "string"}, "top_k": {"type": "integer"}},
                "required": ["q"],
            },
        },
        {"name": "read_file", "parameters": {"type": "object"}},
        {"name": "file.write", "parameters": {"type": "object"}},
    ],
    where="test",
)
FIXTURES = [
    {"name": "web.search", "key": {"q": "tallest tower"}, "result": {"hits": ["Burj Khalifa"]}},
    {"name": "web.search", "key": {"q": "broken"}, "result": {"ok": False, "error": "timeout"}},
    {"name": "web.search", "key": {"q": 7}, "result": {"hits": []}},
    {"name": "read_file", "key": {"path": "a"}, "seq": 1, "result": "first"},
    {"name": "read_file", "key": {"path": "a"}, "seq": 2, "result": "second"},
]


class Script(Runner):
    """Answers each sample with its own list of replies, and remembers what it was asked."""

    name = "script"
    suspends = False
    max_batch = 8

    def __init__(self, replies):
        self.replies = replies
        self.batches = []

    async def answer(self, batch):
        self.batches.append(
            [(c.sample_id, c.turn, json.loads(json.dumps(list(c.messages)))) for c in batch]
        )
        return [self.replies[c.sample_id][c.turn - 1] for c in batch]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fixtures")
    text = "".join(json.dumps(fixture) + "\n" for fixture in FIXTURES)
    Path(folder, "all.jsonl").write_text(text, "utf-8")
    return ToolBroker(folder, REGISTRY)


def sample(sample_id="s", prompt="Which tower is the tallest?", user_turns=(), **metadata):
    item = {"prompt": prompt, "user_turns": list(user_turns), "metadata": metadata}
    return sample_of(item, index=0, sample_id=sample_id, item_sha256="")


def call(name, arguments, **more):
    return entry_for(native_call(name, arguments, **more), None)


def drive(coroutine):
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    return ended.value.value


def play_one(broker, replies, a_sample=None, **settings):
    a_sample = a_sample or sample()
    offered = settings.pop("offered", frozenset({"web.search", "read_file"}))
    runner = Script({a_sample.sample_id: replies})
    trial = TrialInput(a_sample, 0, offered, REGISTRY.openai_tools(sorted(offered)))
    [played] = drive(play([trial], runner, broker, PlaySettings(registry=REGISTRY, **settings)))
    return played, runner


def test_a71_results_of_the_broker_reach_the_model_and_the_trace(broker):
    replies = [
        Reply(text="Let me look.", calls=(call("web.search", '{"q": "Tallest  TOWER"}'),)),
        Reply(text="It is the Burj Khalifa."),
    ]
    played, runner = play_one(broker, replies)
    [entry] = played.trace.tool_trace
    assert (entry.status, entry.served_by, entry.turn) == ("ok", "fixture:exact", 1)
    assert entry.result == {"hits": ["Burj Khalifa"]}
    assert entry.schema_errors == ()
    _, turn, messages = runner.batches[1][0]
    assert turn == 2
    assert [m["role"] for m in messages] == ["user", "assistant", "tool"]
    assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"]
    assert json.loads(messages[2]["content"]) == entry.result
    assert played.trace.model_output == "Let me look.\nIt is the Burj Khalifa."
    assert played.trace.turns == ((0, 12), (13, 36))
    assert played.trace.stop == "answer"


def test_calls_in_text_get_the_types_of_the_offered_tool(broker):
    """`7` is the text that the schema asks for, `3` a number; the table of formats is a setting."""
    text = (
        "<tool_call>\n<function=web_search>\n<parameter=q>\n7\n</parameter>\n"
        "<parameter=top_k>\n3\n</parameter>\n</function>\n</tool_call>"
    )
    played, _ = play_one(broker, [Reply(text=text), Reply(text="x")])
    [entry] = played.trace.tool_trace
    assert (entry.name, entry.arguments) == ("web.search", {"q": "7", "top_k": 3})
    assert (entry.format, entry.schema_errors) == ("qwen3_coder", ())
    played, _ = play_one(broker, [Reply(text=text), Reply(text="x")], formats=())
    assert played.trace.tool_trace == ()


def test_a15_used_fixtures_are_named_by_hash(broker):
    replies = [Reply(text="", calls=(call("web.search", {"q": "tallest tower"}),)), Reply(text="x")]
    played, _ = play_one(broker, replies)
    other, _ = play_one(broker, [Reply(text="x")])
    assert other.used_fixtures_sha256 == digest([])
    assert played.used_fixtures_sha256 != other.used_fixtures_sha256


def test_a136_a_miss_is_recorded_in_full_and_the_model_sees_only_the_reply(broker):
    replies = [Reply(text="", calls=(call("web_search", {"q": "Nothing"}),)), Reply(text="Sorry.")]
    played, runner = play_one(broker, replies, miss_reply="nothing here")
    [entry] = played.trace.tool_trace
    assert entry.name == "web.search"
    assert (entry.status, entry.served_by) == ("miss", None)
    assert entry.key_normalized == {"q": "nothing", "top_k": 3}
    assert entry.result == {
        "ok": False,
        "error": "fixture_miss",
        "name": "web.search",
        "arguments": {"q": "Nothing"},
        "key_normalized": {"q": "nothing", "top_k": 3},
    }
    assert runner.batches[1][0][2][-1]["content"] == "nothing here"


def test_statuses_of_calls_that_nothing_serves(broker):
    calls = (
        call("file.write", {}),
        call("no.such", {}),
        call("web.search", {"q": 1}),
        call("web.search", '{"q": '),
        call("web.search", {"q": "broken"}),
    )
    replies = [Reply(text="", calls=calls), Reply(text="done")]
    allowed = frozenset({"web.search", "read_file"})
    played, runner = play_one(broker, replies, allowed=allowed)
    statuses = [entry.status for entry in played.trace.tool_trace]
    assert statuses == [
        "tool_not_allowed",
        "tool_not_offered",
        "invalid_arguments",
        "malformed",
        "error",
    ]
    not_allowed, unknown, invalid, broken, error = played.trace.tool_trace
    assert not_allowed.schema_errors == ()
    assert unknown.schema_errors is None
    assert invalid.schema_errors
    assert invalid.schema_errors[0] in invalid.result["error"]
    assert broken.reason in broken.result["error"]
    assert error.served_by == "fixture:exact"
    contents = [m["content"] for m in runner.batches[1][0][2] if m["role"] == "tool"]
    assert all("fixture" not in content for content in contents)
    past = runner.batches[1][0][2][1]["tool_calls"]
    assert all(isinstance(json.loads(c["function"]["arguments"]), dict) for c in past)


def test_a_tool_of_the_registry_that_this_sample_is_not_offered(broker):
    played, _ = play_one(broker, [Reply(text="", calls=(call("file.write", {}),)), Reply(text="")])
    assert played.trace.tool_trace[0].status == "tool_not_offered"


def test_arguments_against_the_schema_are_served_where_a_fixture_exists(broker):
    played, _ = play_one(
        broker, [Reply(text="", calls=(call("web.search", {"q": 7}),)), Reply(text="")]
    )
    [entry] = played.trace.tool_trace
    assert entry.status == "ok"
    assert entry.schema_errors


def test_sequences_count_within_one_trial_only(broker):
    read = call("read_file", {"path": "a"})
    replies = [Reply(text="", calls=(read, read, read)), Reply(text="")]
    for _ in range(2):
        played, _ = play_one(broker, replies)
        assert [e.result for e in played.trace.tool_trace] == ["first", "second", "second"]


def test_a_batch_is_played_in_lockstep_and_finished_trials_drop_out(broker):
    search = call("web.search", {"q": "tallest tower"})
    runner = Script(
        {
            "a": [Reply(text="at once")],
            "b": [Reply(text="", calls=(search,)), Reply(text="later")],
            "c": [Failure("the server is gone")],
        }
    )
    trials = [TrialInput(sample(name), 0, frozenset({"web.search"}), []) for name in "abc"]
    played = drive(play(trials, runner, broker, PlaySettings(registry=REGISTRY)))
    assert [[name for name, *_ in batch] for batch in runner.batches] == [["a", "b", "c"], ["b"]]
    assert [p.trace.model_output for p in played] == ["at once", "later", ""]
    assert [p.error for p in played] == [None, None, "the server is gone"]
    assert played[2].trace.stop == "error"


def test_scripted_user_turns_follow_answers_without_calls(broker):
    replies = [
        Reply(text="The first."),
        Reply(text="", calls=(call("web.search", {"q": "tallest tower"}),)),
        Reply(text="The second."),
    ]
    played, runner = play_one(broker, replies, sample(user_turns=["And the second?"]))
    assert played.trace.said == (UserTurn(1, "And the second?"),)
    assert [m["role"] for m in runner.batches[2][0][2]] == [
        "user", "assistant", "user", "assistant", "tool",
    ]  # fmt: skip
    assert played.trace.model_output == "The first.\nThe second."
    assert played.trace.turns == ((0, 10), (10, 10), (11, 22))


def test_max_turns_ends_a_model_that_never_answers(broker):
    search = Reply(text="", calls=(call("web.search", {"q": "tallest tower"}),))
    played, runner = play_one(broker, [search] * 9, max_turns=3)
    assert len(runner.batches) == 3
    assert played.trace.stop == "max_turns"
    assert [entry.status for entry in played.trace.tool_trace] == ["ok"] * 3


def test_the_single_shot_gets_its_results_after_the_only_turn(broker):
    search = call("web.search", {"q": "tallest tower"})
    text = "Integration: the Burj Khalifa."
    played, runner = play_one(broker, [Reply(text=text, calls=(search,))], max_turns=1)
    assert len(runner.batches) == 1
    assert played.trace.turns is None
    assert played.trace.stop == "answer"
    assert played.trace.tool_trace[0].result == {"hits": ["Burj Khalifa"]}


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("length", "truncated"),
        ("content_filter", "filtered"),
        ("context_exceeded", "context_exceeded"),
    ],
)
def test_an_outcome_of_the_model_ends_the_trial_and_is_kept(broker, finish, stop):
    search = call("web.search", {"q": "tallest tower"})
    played, _ = play_one(broker, [Reply(text="Half", calls=(search,), finish=finish)])
    assert played.error is None
    assert played.trace.stop == stop
    assert played.trace.tool_trace[0].status == "ok"


CALL_TEXT = '<tool_call>{"name": "web.search", "arguments": {"q": "tallest tower"}}</tool_call>'


@pytest.mark.parametrize(("mode", "calls"), [("auto", 1), ("on", 1), ("off", 0)])
def test_calls_in_the_text(broker, mode, calls):
    replies = [Reply(text=f"Wait. {CALL_TEXT}"), Reply(text="Done.")]
    played, _ = play_one(broker, replies, parse_text=mode)
    assert len(played.trace.tool_trace) == calls
    assert ("tool_call" in played.trace.model_output) == (calls == 0)


@pytest.mark.parametrize(("mode", "calls"), [("auto", 1), ("on", 2), ("off", 1)])
def test_structured_calls_win_over_the_text(broker, mode, calls):
    """A server that leaves the call in its text as well has called once, not twice."""
    native = call("web.search", {"q": "tallest tower"})
    replies = [Reply(text=f"Wait. {CALL_TEXT}", calls=(native,)), Reply(text="Done.")]
    played, _ = play_one(broker, replies, parse_text=mode)
    assert len(played.trace.tool_trace) == calls
    if mode != "off":
        assert played.trace.model_output == "Wait.\nDone."


def test_thinking_is_cut_out_in_every_mode(broker):
    for mode in ("auto", "on", "off"):
        reply = Reply(text="<think>hm</think>Yes.", reasoning="before")
        played, _ = play_one(broker, [reply], parse_text=mode)
        assert played.trace.model_output == "Yes."
        assert played.trace.reasoning == "before\nhm"


TOWER = {"name": "web.search", "arguments": {"q": "tallest tower"}}
NAMELESS = {"name": "read_file"}  # any arguments


@pytest.mark.parametrize(
    ("expected", "made", "status"),
    [
        ([TOWER], ("web.search", {"q": "other"}), "wrong_call"),
        ([TOWER], ("read_file", {"path": "b"}), "wrong_call"),
        ([TOWER, NAMELESS], ("web_search", {"q": "other"}), "wrong_call"),
        # No call is expected: the fixtures had to know what the model might ask.
        ([], ("web.search", {"q": "other"}), "miss"),
        # It is the expected call, in another way of writing it that is accepted.
        ([TOWER | {"accept": {"/q": ["high tower"]}}], ("web.search", {"q": "high tower"}), "miss"),
        ([TOWER | {"optional": ["top_k"]}], ("web.search", {"q": "tallest tower", "top_k": 9}), "miss"),
        ([NAMELESS], ("read_file", {"path": "b"}), "miss"),
        # An expected call has no fixture itself: the folder is not whole.
        ([TOWER, {"name": "web.search", "arguments": {"q": "absent"}}], ("web.search", {"q": "other"}), "miss"),
        ([{"name": "file.write"}], ("web.search", {"q": "other"}), "miss"),
    ],
)  # fmt: skip
def test_f25_a_call_that_nobody_expects_is_the_models_where_the_fixtures_are_whole(
    broker, expected, made, status
):
    asked = sample(call_sequence=expected) if expected else sample()
    replies = [Reply(text="", calls=(call(*made),)), Reply(text="x")]
    played, runner = play_one(broker, replies, asked, miss_reply="nothing here")
    [entry] = played.trace.tool_trace
    assert (entry.status, entry.served_by) == (status, None)
    assert entry.result["error"] == "fixture_miss"
    assert runner.batches[1][0][2][-1]["content"] == "nothing here"


def test_f25_a_fixture_of_another_sample_does_not_make_the_folder_whole(tmp_path):
    own = {"name": "web.search", "key": {"q": "mine"}, "sample_id": "s1", "result": {"hits": []}}
    (tmp_path / "all.jsonl").write_text(json.dumps(own) + "\n", "utf-8")
    scoped = ToolBroker(tmp_path, REGISTRY)
    for arguments in ({"q": "mine"}, None):
        for sample_id, status in (("s1", "wrong_call"), ("s2", "miss")):
            expected = {"name": "web.search"} | (
                {} if arguments is None else {"arguments": arguments}
            )
            asked = sample(sample_id, call_sequence=[expected])
            replies = [Reply(text="", calls=(call("read_file", {"path": "b"}),)), Reply(text="x")]
            played, _ = play_one(scoped, replies, asked)
            assert played.trace.tool_trace[0].status == status


def test_recorded_answers_win_over_fixtures(broker):
    recorded = TraceEntry(
        name="web_search",
        arguments={"q": "tallest tower"},
        result={"hits": ["Eiffel"]},
        turn=None,
        raw=None,
        status="ok",
        served_by="recorded",
    )
    missed = TraceEntry(
        name="web.search", arguments={"q": "tallest tower"}, result=None, turn=None, raw=None,
        status="miss", served_by=None,
    )  # fmt: skip
    played, _ = play_one(broker, [Reply(text="x", calls=(recorded, missed), ends=True)])
    first, second = played.trace.tool_trace
    assert (first.name, first.result, first.served_by) == (
        "web.search",
        {"hits": ["Eiffel"]},
        "recorded",
    )
    assert second.status == "miss"


def test_a_recording_without_turns_has_none(broker):
    """All that the user was to say is taken as said: the recording is the whole trial."""
    search = call("web.search", {"q": "tallest tower"})
    reply = Reply(text="It is there.", calls=(search,), ends=True, ordered=False)
    played, _ = play_one(broker, [reply], sample(user_turns=["Sure?"]))
    assert played.trace.turns is None
    assert played.trace.tool_trace[0].turn is None
    assert played.trace.tool_trace[0].status == "ok"
    assert [said.text for said in played.trace.said] == ["Sure?"]
    assert played.trace.stop == "answer"


def test_what_the_user_said_in_a_recording(broker):
    replies = [Reply(text="Hello!", then_said=("Book it.",)), Reply(text="Done.", ends=True)]
    played, _ = play_one(broker, replies)
    assert played.trace.said == (UserTurn(1, "Book it."),)
    assert played.trace.model_output == "Hello!\nDone."


def test_recorded_answers_to_calls_that_only_the_text_holds(broker):
    replies = [
        Reply(text=CALL_TEXT, answers=({"hits": ["recorded"]},), then_said=()),
        Reply(text="Done.", ends=True),
    ]
    played, _ = play_one(broker, replies)
    [entry] = played.trace.tool_trace
    assert (entry.status, entry.served_by) == ("ok", "recorded")
    assert entry.result == {"hits": ["recorded"]}


def test_without_a_source_nothing_answers():
    reply = Reply(text="x", calls=(call("web.search", {"q": "a"}),), ends=True)
    played, _ = play_one(None, [reply])
    assert played.trace.tool_trace[0].status == "unanswered"


def test_ids_that_servers_invent_leave_no_trace(broker):
    outputs = []
    for call_id in ("call_9f3", "call_771"):
        search = call("web.search", {"q": "tallest tower"}, call_id=call_id)
        played, _ = play_one(broker, [Reply(text="", calls=(search,)), Reply(text="x")])
        outputs.append(played)
    assert outputs[0] == outputs[1]


def test_a70_d36_the_output_is_a_string_whatever_the_model_sends(broker):
    played, _ = play_one(broker, [Reply(text="\ud83d odd \ud800")])
    assert played.trace.model_output == "\ufffd odd \ufffd"
    empty, _ = play_one(broker, [Reply(text="")])
    assert (empty.trace.model_output, empty.trace.tool_trace) == ("", ())
    assert empty.trace.turns == ((0, 0),)


def test_lone_surrogates_in_native_arguments_do_not_end_the_run(broker):
    search = call("web.search", {"q": "a\ud800"})
    played, _ = play_one(broker, [Reply(text="", calls=(search,)), Reply(text="x")])
    assert played.trace.model_output == "x"


def test_text_is_normalised_where_the_item_asks_for_it(broker):
    text = "cafe\u0301\r\nau lait"
    plain, _ = play_one(broker, [Reply(text=text)])
    asked, _ = play_one(broker, [Reply(text=text)], sample(text_norm="NFC"))
    assert plain.trace.model_output == text
    assert asked.trace.model_output == "caf\u00e9\nau lait"
    assert asked.trace.turns == ((0, len("caf\u00e9\nau lait".encode())),)


def test_a_prompt_may_be_messages(broker):
    prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    search = call("web.search", {"q": "tallest tower"})
    a_sample = sample(prompt=prompt)
    _, runner = play_one(broker, [Reply(text="", calls=(search,)), Reply(text="Hi")], a_sample)
    assert runner.batches[0][0][2] == prompt
    assert a_sample.prompt == prompt, "the sample's own list is never extended"


@given(st.lists(st.text(alphabet=" \nabé€😀", max_size=6).map(str.strip), max_size=6))
def test_turn_ranges_cut_the_output_back_into_its_turns(texts):
    output, ranges = join_turns(texts)
    data = output.encode()
    assert [data[start:end].decode() for start, end in ranges] == texts
    assert output == "\n".join(text for text in texts if text)
    assert all(0 <= start <= end <= len(data) for start, end in ranges)
    assert list(ranges) == sorted(ranges)


_reply = st.builds(
    Reply,
    text=st.sampled_from(["", "Yes.", "<think>x</think>No.", CALL_TEXT]),
    calls=st.sampled_from(
        [
            None,
            (call("web.search", {"q": "tallest tower"}),),
            (call("read_file", {"path": "a"}), call("no.such", {})),
        ]
    ),
    finish=st.sampled_from(["stop", "stop", "length"]),
    ends=st.booleans(),
    ordered=st.sampled_from([True, True, False]),
)


@given(st.lists(st.lists(_reply, min_size=4, max_size=4), min_size=1, max_size=4))
def test_a_trial_is_the_same_alone_and_in_a_batch(broker, scripts):
    names = [f"s{number}" for number in range(len(scripts))]
    offered = frozenset({"web.search", "read_file"})
    trials = [TrialInput(sample(name), 0, offered, ()) for name in names]
    settings = PlaySettings(registry=REGISTRY, max_turns=4)
    runner = Script(dict(zip(names, scripts, strict=True)))
    together = drive(play(trials, runner, broker, settings))
    alone = [drive(play([trial], runner, broker, settings))[0] for trial in trials]
    assert together == alone
    for played in together:
        assert played.trace.stop in ("answer", "max_turns", "truncated")
        assert all(entry.status != "unanswered" for entry in played.trace.tool_trace)


def test_f13_an_answer_that_we_stumble_over_costs_its_trial_only(broker):
    """A format with a fault, as a plug-in may bring one."""

    def stumble(*_):
        raise KeyError("what the model wrote")

    stumbling = (Format("stumbling", "<odd>", "<odd>", stumble),)
    odd, other = sample("odd"), sample("other")
    runner = Script({"odd": [Reply(text="<odd>")], "other": [Reply(text="Burj Khalifa")]})
    trials = [TrialInput(one, 0, frozenset(), ()) for one in (odd, other)]
    settings = PlaySettings(registry=REGISTRY, formats=stumbling)
    lost, right = drive(play(trials, runner, broker, settings))
    assert (lost.trace.stop, right.trace.model_output) == ("error", "Burj Khalifa")
    assert "KeyError" in lost.error
    assert "please report it" in lost.error
    assert "what the model wrote" not in lost.error


def test_f12_a_secret_that_was_parted_by_what_is_cut_out_is_taken_out(broker):
    class Confident(Script):
        def without_secrets(self, text):
            return text.replace("sk-0123456789", "***")

    runner = Confident({"s": [Reply(text="sk-01234<think>sk-01<think>23456789</think>56789")]})
    trial = TrialInput(sample(), 0, frozenset(), ())
    [played] = drive(play([trial], runner, broker, PlaySettings(registry=REGISTRY)))
    assert played.trace.model_output == "***"


def test_f83_calls_in_reasoning_are_listed_and_not_made(broker):
    call = '<tool_call>{"name": "web.search", "arguments": {"q": "tallest tower"}}</tool_call>'
    told = Reply(text=f"<think>Maybe {call}</think>No.", reasoning=f"Or {call}")
    found, _ = play_one(broker, [told])
    assert found.trace.tool_trace == ()
    assert [(one.turn, one.name) for one in found.trace.thought_calls] == [(1, "web.search")] * 2
    assert found.trace.thought_calls[0].arguments == {"q": "tallest tower"}


def test_f83_a_call_in_an_unknown_format_is_refused_and_counts(broker):
    text = '<|do|>web.search<|with|>{"q": "tallest tower"}<|done|>'
    found, _ = play_one(broker, [Reply(text=text), Reply(text="No.")])
    (entry,) = found.trace.tool_trace
    assert (entry.name, entry.status, entry.format) == ("web.search", "malformed", "unparsed")
    assert found.trace.model_output == "No."
