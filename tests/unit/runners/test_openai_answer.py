"""What a chat completion says, in all the shapes that servers give it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark.calls.attempts import NameCodec
from callmark.records.seams import Usage
from callmark.runners.http.chat import (
    CALL_FIELDS,
    completion_of,
    error_in,
    reply_of,
    usage_of,
)
from callmark.runners.http.runner import NoAnswer

CODEC = NameCodec(["web.search", "read_file"])


def read(message, finish="stop", **body):
    choice = {"index": 0, "message": message, "finish_reason": finish}
    data = json.dumps({"choices": [choice], **body}).encode()
    return reply_of(completion_of(data), CODEC)


def call(name, arguments, **more):
    return {
        "id": "x",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **more,
    }


@pytest.mark.parametrize("content", [None, "", [], "absent"])
def test_d36_a_call_comes_without_content(content):
    message = {"role": "assistant", "tool_calls": [call("web_search", '{"q": "x"}')]}
    if content != "absent":
        message["content"] = content
    reply = read(message, "tool_calls")
    assert reply.text == ""
    [entry] = reply.calls
    assert (entry.name, entry.arguments, entry.status) == ("web.search", {"q": "x"}, "unanswered")
    assert (entry.format, entry.raw) == ("native", '{"q": "x"}')


@pytest.mark.parametrize("calls", [None, [], "absent"])
def test_d36_no_calls_are_none(calls):
    message = {"content": "Hi"} | ({} if calls == "absent" else {"tool_calls": calls})
    reply = read(message)
    assert reply.text == "Hi"
    assert reply.calls is None


def test_a68_parallel_calls_keep_their_order():
    reply = read({"tool_calls": [call("web_search", '{"q": "a"}'), call("read_file", "{}")]})
    assert [entry.name for entry in reply.calls] == ["web.search", "read_file"]


def test_a68_a_legacy_function_call_is_a_call():
    reply = read({"content": None, "function_call": {"name": "web_search", "arguments": "{}"}})
    assert [entry.name for entry in reply.calls] == ["web.search"]


def test_an_empty_function_call_beside_an_answer_is_none():
    reply = read({"content": "4", "function_call": {"name": "", "arguments": ""}})
    assert reply.calls is None


def test_tool_calls_win_over_a_function_call():
    reply = read(
        {
            "tool_calls": [call("read_file", "{}")],
            "function_call": {"name": "web_search", "arguments": "{}"},
        }
    )
    assert [entry.name for entry in reply.calls] == ["read_file"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"q": "x"}, {"q": "x"}),
        ('{"q": "x"}', {"q": "x"}),
        (None, {}),
        ("", {}),
        ("{}", {}),
    ],
)
def test_arguments_come_as_text_as_an_object_or_not_at_all(arguments, found):
    [entry] = read({"tool_calls": [call("web_search", arguments)]}).calls
    assert (entry.status, entry.arguments) == ("unanswered", found)


@pytest.mark.parametrize(
    "arguments", ['{"q": "x"', "[1]", "null null", "q=x", 3, [1], '"q"', "NaN"]
)
def test_d58_broken_arguments_are_a_malformed_attempt(arguments):
    [entry] = read({"tool_calls": [call("web_search", arguments)]}).calls
    assert entry.status == "malformed"
    assert entry.name == "web.search"
    assert entry.arguments is None
    assert entry.reason


@pytest.mark.parametrize("odd", ["web_search", 7, None, {}, {"function": None}, call("", "{}")])
def test_a_call_that_is_none_is_a_malformed_attempt(odd):
    [entry] = read({"tool_calls": [odd]}).calls
    assert entry.status == "malformed"
    assert "names no tool" in entry.reason


def test_a_name_that_was_never_offered_stays_as_it_was_written():
    [entry] = read({"tool_calls": [call("web_browse", "{}")]}).calls
    assert entry.name == "web_browse"


def test_parts_are_joined_and_thinking_kept_apart():
    reply = read(
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm "}, {"text": "ok"}]},
                {"type": "thinking", "thinking": "."},
                {"type": "text", "text": "4"},
                {"type": "output_text", "text": "2"},
                {"type": "image_url", "image_url": {}},
                "!",
                {"type": "refusal", "refusal": " No more."},
            ]
        }
    )
    assert (reply.text, reply.reasoning) == ("42! No more.", "hm ok.")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_fields_are_kept_apart(field):
    reply = read({"content": "4", field: "two and two"})
    assert (reply.text, reply.reasoning) == ("4", "two and two")


def test_reasoning_goes_back_where_a_protocol_needs_it():
    details = [{"type": "reasoning.text", "text": "two and two", "signature": "s"}]
    assert read({"content": "4", "reasoning_content": "r"}).carried == {"reasoning_content": "r"}
    reply = read({"content": "4", "reasoning_details": details})
    assert reply.carried == {"reasoning_details": details}
    assert reply.reasoning == "two and two"
    assert read({"content": "4", "reasoning": "r", "reasoning_content": None}).carried == {}


def test_what_a_server_puts_beside_a_call_is_kept_for_the_way_back():
    signed = call("read_file", "{}", extra_content={"google": {"thought_signature": "s"}})
    reply = read({"tool_calls": [call("web_search", "{}"), signed]})
    assert reply.carried[CALL_FIELDS] == [{}, {"extra_content": signed["extra_content"]}]


def test_a_refusal_is_what_the_model_said():
    assert read({"content": None, "refusal": "I cannot help with that."}).text.startswith(
        "I cannot"
    )
    assert read({"content": "4", "refusal": ""}).text == "4"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("tool_calls", "stop"),
        ("eos", "stop"),
        ("", "stop"),
        (None, "stop"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("content_filter", "content_filter"),
        ("content_filter: PROHIBITED_CONTENT", "content_filter"),
        ("SAFETY", "content_filter"),
    ],
)
def test_why_a_turn_ended(reason, finish):
    assert read({"content": "x"}, reason).finish == finish


def test_a_filtered_choice_may_have_no_message():
    body = b'{"choices": [{"finish_reason": "content_filter"}]}'
    assert reply_of(completion_of(body), CODEC).finish == "content_filter"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"Internal Server Error",
        b"{}",
        b'{"choices": null}',
        b'{"choices": []}',
        b'{"choices": {}}',
        b'{"choices": [null]}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": "hi"}]}',
        b'{"choices": [{"message": {"content": 3}}]}',
        b'{"choices": [{"message": {"content": {"text": "x"}}}]}',
        b'{"choices": [{"message": {"tool_calls": {"0": 1}}}]}',
        b'{"choices": [{"message": {"content": "x"}, "finish_reason": 3}]}',
        b'{"choices": [{"message": {"content": "x"}, "finish_reason": "error"}]}',
        b"\xff\xfe",
    ],
)
def test_what_is_no_completion_is_said_in_one_clause(body):
    with pytest.raises(NoAnswer) as failure:
        reply_of(completion_of(body), CODEC)
    assert str(failure.value)
    assert "\n" not in str(failure.value)


def test_a_lone_surrogate_is_replaced():
    body = b'{"choices": [{"message": {"content": "a\\ud800b"}}]}'
    assert reply_of(completion_of(body), CODEC).text == "a�b"


def test_an_error_may_come_in_a_good_response():
    assert error_in(completion_of(b'{"error": {"message": "no"}}')) == {"message": "no"}
    inside = b'{"choices": [{"message": {"content": ""}, "error": {"code": 502}}]}'
    assert error_in(completion_of(inside)) == {"code": 502}
    assert error_in(completion_of(b'{"choices": []}')) is None


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}, Usage(3, 4)),
        ({"prompt_tokens": 3}, Usage(3, 0)),
        (None, None),
        ({"prompt_tokens": "3"}, None),
        ({"prompt_tokens": -1}, None),
        ([], None),
    ],
)
def test_usage_is_counted_or_not_known(usage, found):
    assert usage_of(completion_of(json.dumps({"usage": usage}).encode())) == found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["content", "tool_calls", "function_call", "refusal", "reasoning", "reasoning_details"]
)


@given(st.dictionaries(FIELDS, JSON), JSON)
def test_no_message_whatever_raises_anything_but_no_answer(message, finish):
    data = json.dumps({"choices": [{"message": message, "finish_reason": finish}]}).encode()
    try:
        reply = reply_of(completion_of(data), CODEC)
    except NoAnswer:
        return
    assert isinstance(reply.text, str)
    for entry in reply.calls or ():
        assert entry.status in ("unanswered", "malformed")


def padded(field: str, size: int) -> bytes:
    body = {"choices": [{"message": {"content": "4"}}], "usage": {"prompt_tokens": 7}}
    return json.dumps(body).encode()[:-1] + b', "%b": [%b]}' % (
        field.encode(),
        b",".join([b"[1]"] * size),
    )


def test_f11_what_is_not_read_may_be_large():
    completion = completion_of(padded("logprobs", 300_000))
    assert reply_of(completion, CODEC).text == "4"
    assert usage_of(completion) == Usage(prompt_tokens=7)


@pytest.mark.parametrize(
    "body",
    [
        padded("system_fingerprint", 300_000),
        b'{"choices": [' + b"{}," * 1_000_000 + b"{}]}",
        b'{"choices": [{"message": {"content": "' + b"x" * (5 << 20) + b'"}}]}',
        b"[" * (1 << 20),
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"9" * (1 << 20),
    ],
)
def test_f11_what_is_read_may_not(body):
    with pytest.raises(NoAnswer):
        completion_of(body)


@pytest.mark.parametrize("place", ["usage", "error", "model"])
def test_f13_numbers_of_any_length_are_read_or_refused(place):
    body = b'{"choices": [{"message": {"content": "4"}}], "%b": %b}' % (place.encode(), b"9" * 5000)
    with pytest.raises(NoAnswer, match="5000 digits"):
        completion_of(body)


def test_f13_nesting_that_cannot_be_walked_is_refused():
    deep = b"[" * 150 + b"]" * 150
    with pytest.raises(NoAnswer, match="nested deeper"):
        completion_of(b'{"choices": [{"message": {"reasoning_details": ' + deep + b"}}]}")
