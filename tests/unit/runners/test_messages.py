"""Message lists as recordings: what answers which call, whatever the ids look like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark.runners.messages import replies_of, split_prompt, text_of


def assistant(content="", calls=(), **more):
    message = {"role": "assistant", "content": content, **more}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in calls
        ]
    return message


def tool(content, call_id=None, **more):
    return {"role": "tool", "content": content, **more} | (
        {} if call_id is None else {"tool_call_id": call_id}
    )


def user(content):
    return {"role": "user", "content": content}


def results(replies):
    return [[entry.result for entry in reply.calls or ()] for reply in replies]


def test_the_prompt_is_what_was_said_before_the_first_assistant_message():
    messages = [user("a"), user("b"), assistant("c"), user("d")]
    prompt, rest = split_prompt(messages)
    assert prompt == messages[:2]
    assert list(rest) == messages[2:]
    assert split_prompt([user("a")]) == ([user("a")], ())


def test_results_are_matched_by_id_then_by_order():
    calls = [("x", "a", "{}"), ("y", "b", "{}"), ("z", "c", "{}")]
    replies = replies_of([assistant("", calls), tool("2", "y"), tool("1", "x"), tool("3", "?")])
    assert results(replies) == [["1", "2", "3"]]


def test_an_id_that_is_used_again_answers_the_call_that_still_waits():
    one, two = assistant("", [("x", "a", "{}")]), assistant("", [("x", "a", "{}")])
    replies = replies_of([one, tool("1", "x"), two, tool("2", "x"), assistant("done")])
    assert results(replies) == [["1"], ["2"], []]


def test_doubled_ids_in_one_turn_are_answered_in_order():
    calls = [("x", "a", "{}"), ("x", "a", "{}")]
    replies = replies_of([assistant("", calls), tool("1", "x"), tool("2", "x")])
    assert results(replies) == [["1", "2"]]


def test_without_ids_the_name_decides_then_the_order():
    calls = [(None, "a", "{}"), (None, "b", "{}"), (None, "c", "{}")]
    replies = replies_of([assistant("", calls), tool("b!", name="b"), tool("1"), tool("2")])
    assert results(replies) == [["1", "b!", "2"]]


def test_the_legacy_form():
    call = assistant(None, function_call={"name": "a", "arguments": '{"x": 1}'})
    [reply] = replies_of([call, {"role": "function", "name": "a", "content": "{}"}])
    [entry] = reply.calls
    assert (entry.name, entry.arguments, entry.result, entry.status) == ("a", {"x": 1}, "{}", "ok")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ("plain", "plain"),
        ([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, "b"], "a\nb"),
        ([{"type": "refusal", "refusal": "no"}], "no"),
        (7, ""),
        ([None, 3], ""),
    ],
)
def test_d36_content_of_every_shape(content, text):
    assert text_of(content) == text
    assert replies_of([assistant(content)])[0].text == text


def test_d36_missing_content_null_calls_and_a_refusal():
    replies = replies_of(
        [{"role": "assistant", "tool_calls": None}, assistant(None, refusal="I cannot.")]
    )
    assert [reply.text for reply in replies] == ["", "I cannot."]
    assert [reply.calls for reply in replies] == [None, None]


@pytest.mark.parametrize(
    ("arguments", "parsed", "status"),
    [
        (None, {}, "unanswered"),
        ("", {}, "unanswered"),
        ('{"a": 1}', {"a": 1}, "unanswered"),
        ({"a": 1}, {"a": 1}, "unanswered"),
        ('{"a": ', None, "malformed"),
        ("[1]", None, "malformed"),
    ],
)
def test_arguments_of_every_shape(arguments, parsed, status):
    [reply] = replies_of([assistant("", [("x", "a", arguments)])])
    assert [(e.arguments, e.status) for e in reply.calls] == [(parsed, status)]


def test_a_malformed_call_stays_malformed_when_something_answered_it():
    [reply] = replies_of([assistant("", [("x", "a", "{")]), tool("what?", "x")])
    assert [(e.status, e.result) for e in reply.calls] == [("malformed", "what?")]


def test_error_results_are_recognised_inside_text():
    [reply] = replies_of([assistant("", [("x", "a", "{}")]), tool('{"error": "gone"}', "x")])
    assert reply.calls[0].status == "error"


def test_results_that_are_parts_or_plain_json():
    calls = [("x", "a", "{}"), ("y", "a", "{}"), ("z", "a", "{}")]
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    replies = replies_of(
        [assistant("", calls), tool(parts, "x"), tool({"n": 1}, "y"), tool(None, "z")]
    )
    assert results(replies) == [["one\ntwo", {"n": 1}, None]]
    assert [entry.status for entry in replies[0].calls] == ["ok", "ok", "ok"]


def test_thinking_of_every_shape():
    replies = replies_of(
        [
            assistant("a", reasoning_content="one"),
            assistant("b", reasoning="two"),
            assistant([{"type": "thinking", "thinking": "three"}, {"type": "text", "text": "c"}]),
        ]
    )
    assert [reply.reasoning for reply in replies] == ["one", "two", "three"]
    assert replies[2].text == "c"


def test_what_the_user_says_in_between_and_where_the_recording_ends():
    replies = replies_of([assistant("a"), user("b"), user("c"), assistant("d"), user("e")])
    assert [reply.then_said for reply in replies] == [("b", "c"), None]
    assert [reply.ends for reply in replies] == [False, True]


def test_results_for_calls_that_only_the_text_holds_are_kept_in_order():
    text = '<tool_call>{"name": "a", "arguments": {}}</tool_call>'
    replies = replies_of([assistant(text), tool("1"), tool("2"), assistant("done")])
    assert replies[0].answers == ("1", "2")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
_message = st.fixed_dictionaries(
    {"role": st.sampled_from(["assistant", "tool", "user", "function", "system", "?"])},
    optional=dict.fromkeys(
        ("content", "tool_calls", "function_call", "tool_call_id", "name", "reasoning"), _json
    ),
)


@given(st.lists(_message, max_size=8))
def test_any_message_list_gives_one_reply_for_each_assistant_message(messages):
    replies = replies_of(messages)
    assert len(replies) == sum(message["role"] == "assistant" for message in messages)
    assert [reply.ends for reply in replies] == [False] * (len(replies) - 1) + [True] * bool(
        replies
    )
