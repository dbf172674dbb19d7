"""Requests and answers of the Responses and the Messages API: every field, every kind of item, and
whatever else a server may send."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sdk_types import check_request

from callmark.calls.registry import Registry
from callmark.errors import UsageError
from callmark.records.results import Decoding
from callmark.records.seams import Conversation, Usage
from callmark.resources import builtin_tools
from callmark.runners.http.messages_api import BLOCKS, MessagesApi
from callmark.runners.http.responses import ITEMS, ResponsesApi
from callmark.runners.http.runner import NeverAnswer, NoAnswer, SentIds, ServerAnswer
from callmark.runners.http.trouble import Complaint
from callmark.runners.options import RunnerOptions, ServedOptions

REGISTRY = Registry.from_specs(builtin_tools(), where="test")
TOOLS = tuple(REGISTRY.openai_tools(REGISTRY.names))
PROTOCOLS = (ResponsesApi, MessagesApi)
PROMPT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "web.search", "arguments": '{"q": "x"}'},
}
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def speaker(protocol, extra_body=None, **decoding):
    options = RunnerOptions(
        model="m",
        decoding=Decoding(**decoding),
        tool_registry_sha256="",
        tools=TOOLS,
        served=ServedOptions(extra_body=extra_body or {}),
    )
    return protocol(options)


def sent(protocol, messages=PROMPT, tools=TOOLS, **settings) -> dict:
    talk = Conversation(sample_id="s", trial=0, turn=1, messages=messages, tools=tools)
    body = json.loads(speaker(protocol, **settings).body(talk))
    check_request(protocol.name, body)
    return body


def test_a_response_is_asked_for_without_a_state():
    body = sent(ResponsesApi, max_tokens=99)
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    assert (body["max_output_tokens"], body["temperature"]) == (99, 0.0)
    assert not {"seed", "max_tokens", "messages", "previous_response_id"} & set(body)
    assert body["stream"] is False
    assert body["input"] == PROMPT
    first = body["tools"][0]
    assert (first["type"], first["strict"]) == ("function", False)
    assert first["parameters"] == TOOLS[0]["function"]["parameters"]
    assert all("." not in tool["name"] for tool in body["tools"])


def test_a_message_has_its_system_apart_and_a_limit():
    body = sent(MessagesApi, max_tokens=99)
    assert (body["system"], body["max_tokens"]) == ("Be brief.", 99)
    assert body["messages"] == [{"role": "user", "content": "Hi"}]
    assert not {"seed", "store", "stream"} & set(body)
    assert body["tools"][0]["input_schema"] == TOOLS[0]["function"]["parameters"]
    with pytest.raises(UsageError, match="--max-tokens"):
        speaker(MessagesApi, max_tokens=None)


@pytest.mark.parametrize(
    ("word", "item", "block"),
    [
        ("auto", "auto", {"type": "auto"}),
        ("required", "required", {"type": "any"}),
        ("any", "required", {"type": "any"}),
        ("none", "none", {"type": "none"}),
        (
            "web.search",
            {"type": "function", "name": "web_search"},
            {"type": "tool", "name": "web_search"},
        ),
        (None, None, None),
    ],
)
def test_how_a_tool_is_chosen(word, item, block):
    assert sent(ResponsesApi, tool_choice=word).get("tool_choice") == item
    assert sent(MessagesApi, tool_choice=word).get("tool_choice") == block
    assert "tool_choice" not in sent(ResponsesApi, tools=[], tool_choice=word)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_a_user_cannot_set_is_refused(protocol):
    for field in protocol.refused:
        with pytest.raises(UsageError, match=f"--extra-body.{field}"):
            speaker(protocol, extra_body={field: 1})
    assert (
        sent(protocol, extra_body={"metadata": {"user_id": "x"}, "temperature": None}).get(
            "temperature"
        )
        is None
    )


def test_a_top_p_of_one_is_not_sent_beside_a_temperature():
    assert "top_p" not in sent(MessagesApi, temperature=0.0, top_p=1.0)
    assert sent(MessagesApi, temperature=None, top_p=1.0)["top_p"] == 1.0
    assert sent(MessagesApi, temperature=0.5, top_p=0.9)["top_p"] == 0.9
    assert sent(ResponsesApi, temperature=0.0, top_p=1.0)["top_p"] == 1.0


def test_a_prompt_with_calls_and_results_in_it():
    talk = [
        *PROMPT,
        {"role": "assistant", "content": "I look.", "tool_calls": [CALL, {**CALL, "id": "call_2"}]},
        {"role": "tool", "tool_call_id": "call_2", "content": "two"},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "one"}]},
        {"role": "user", "content": "And?"},
    ]
    items = sent(ResponsesApi, talk)["input"][2:]
    assert items[0] == {"role": "assistant", "content": "I look."}
    assert [item.get("call_id") for item in items[1:5]] == ["call_1", "call_2", "call_2", "call_1"]
    assert items[4]["output"] == [{"type": "input_text", "text": "one"}]
    _, said, told = sent(MessagesApi, talk)["messages"]
    assert [block["type"] for block in said["content"]] == ["text", "tool_use", "tool_use"]
    assert said["content"][1] == {
        "type": "tool_use",
        "id": "call_1",
        "name": "web_search",
        "input": {"q": "x"},
    }
    assert [block["type"] for block in told["content"]] == ["tool_result", "tool_result", "text"]


def test_pictures_go_out_in_the_form_of_the_protocol():
    parts = [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    talk = [{"role": "user", "content": parts}]
    [item] = sent(ResponsesApi, talk)["input"]
    assert item["content"][1] == {"type": "input_image", "image_url": PIXEL, "detail": "auto"}
    [message] = sent(MessagesApi, talk)["messages"]
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    assert message["content"][1] == {"type": "image", "source": source}


@pytest.mark.parametrize(
    ("part", "item", "block"),
    [
        ("bare", {"type": "input_text", "text": "bare"}, {"type": "text", "text": "bare"}),
        (
            {"type": "output_text", "text": "said"},
            {"type": "input_text", "text": "said"},
            {"type": "text", "text": "said"},
        ),
        (
            {"type": "image_url", "image_url": "https://x.org/a.png"},
            {"type": "input_image", "image_url": "https://x.org/a.png", "detail": "auto"},
            {"type": "image", "source": {"type": "url", "url": "https://x.org/a.png"}},
        ),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0="}},
            {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0="},
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
            },
        ),
    ],
)
def test_every_kind_of_part_has_its_form(part, item, block):
    talk = [{"role": "user", "content": [part, {"type": "text", "text": "!"}]}]
    [said] = sent(ResponsesApi, talk)["input"]
    assert said["content"][0] == item
    [said] = sent(MessagesApi, talk)["messages"]
    assert said["content"][0] == block


def test_a_part_of_no_known_kind_goes_out_as_it_is():
    own = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
    talk = Conversation(
        sample_id="s", trial=0, turn=1, messages=[{"role": "user", "content": [own]}], tools=[]
    )
    assert json.loads(speaker(ResponsesApi).body(talk))["input"][0]["content"] == [own]
    assert json.loads(speaker(MessagesApi).body(talk))["messages"][0]["content"] == [own]


def test_a_result_that_is_no_text_is_sent_as_json():
    answered_by = {"role": "tool", "tool_call_id": "call_1", "content": {"count": 1}}
    talk = [*PROMPT, {"role": "assistant", "content": "", "tool_calls": [CALL]}, answered_by]
    assert sent(ResponsesApi, talk)["input"][-1]["output"] == '{"count":1}'
    [result] = sent(MessagesApi, talk)["messages"][-1]["content"]
    assert result["content"] == '{"count":1}'


@pytest.mark.parametrize(
    ("arguments", "sent_input"),
    [('{"q": ', {"malformed": '{"q": '}), ({"q": "x"}, {"q": "x"}), (None, {}), ([1], {})],
)
def test_arguments_of_an_earlier_call_are_an_object_in_a_message(arguments, sent_input):
    call = {**CALL, "function": {"name": "web.search", "arguments": arguments}}
    talk = [*PROMPT, {"role": "assistant", "content": "", "tool_calls": [call]}]
    [block] = sent(MessagesApi, talk)["messages"][-1]["content"]
    assert block["input"] == sent_input


def test_a_call_without_a_name_goes_back_as_ours():
    item = {"type": "function_call", "call_id": "c9", "arguments": "{}"}
    talk = [*PROMPT, {"role": "assistant", "content": "", ITEMS: [item], "tool_calls": [CALL]}]
    back = sent(ResponsesApi, talk)["input"][-1]
    assert (back["call_id"], back["name"]) == ("c9", "web_search")


def test_an_empty_turn_leaves_no_gap():
    """No text may be empty there, and roles take turns."""
    talk = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "b"},
    ]
    [message] = sent(MessagesApi, talk)["messages"]
    assert [block["text"] for block in message["content"]] == ["a", "b"]


def test_a_broken_call_goes_back_as_something_that_can_be_read():
    item = {"type": "function_call", "call_id": "c9", "name": "web_search", "arguments": '{"q": '}
    ours = {**CALL, "function": {"name": "web.search", "arguments": '{"malformed":"{\\"q\\": "}'}}
    talk = [*PROMPT, {"role": "assistant", "content": "", ITEMS: [item], "tool_calls": [ours]}]
    back = sent(ResponsesApi, talk)["input"][-1]
    assert (back["call_id"], json.loads(back["arguments"])) == ("c9", {"malformed": '{"q": '})
    block = {"type": "tool_use", "id": "t9", "name": "web_search", "input": "no object"}
    talk = [*PROMPT, {"role": "assistant", "content": "", BLOCKS: [block], "tool_calls": [ours]}]
    [back] = sent(MessagesApi, talk)["messages"][-1]["content"]
    assert (back["id"], back["input"]) == ("t9", {"malformed": '{"q": '})


def test_an_id_that_a_server_uses_twice_is_sent_once():
    ids = SentIds()
    assert [ids.call(f"call_{n}", "call_0") for n in (1, 2)] == ["call_0", "call_2"]
    assert [ids.result(f"call_{n}") for n in (1, 2)] == ["call_0", "call_2"]
    assert ids.call("call_3", "call_2") == "call_3"
    assert ids.result(None) == "call_3"
    assert ids.call("call_3", "call_2") == "call_3_"
    assert ids.result("of another talk") == "of another talk"


def answered(protocol, body) -> ServerAnswer:
    found = speaker(protocol).read(json.dumps(body).encode())
    assert isinstance(found, ServerAnswer)
    return found


def test_what_a_response_says():
    thought = {
        "type": "reasoning",
        "id": "r",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "gA",
    }
    spoke = {
        "type": "message",
        "content": [{"type": "output_text", "text": "So"}, {"type": "refusal", "refusal": " no."}],
    }
    search = {"type": "web_search_call", "id": "w", "status": "completed"}
    call = {
        "type": "function_call",
        "call_id": "c",
        "name": "web_search",
        "arguments": '{"q": "x"}',
    }
    usage = {"input_tokens": 7, "input_tokens_details": {"cached_tokens": 3}, "output_tokens": 2}
    found = answered(
        ResponsesApi, {"output": [thought, search, spoke, call], "usage": usage, "model": "m-1"}
    )
    reply = found.reply
    assert (reply.text, reply.reasoning, reply.usage) == ("So no.", "Hm.", Usage(7, 2, 3))
    assert [(entry.name, entry.arguments) for entry in reply.calls] == [("web.search", {"q": "x"})]
    assert reply.carried == {ITEMS: [thought, search, spoke, call]}
    assert (found.server_tools, found.model) == (("web_search_call",), "m-1")


def test_what_a_message_says():
    blocks = [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "text", "text": "It is "},
        {"type": "text", "text": "5."},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "text", "text": "So."},
        {"type": "tool_use", "id": "t", "name": "web_search", "input": {"q": "x"}},
    ]
    usage = {
        "input_tokens": 2,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 4,
        "output_tokens": 5,
    }
    found = answered(
        MessagesApi,
        {"type": "message", "content": blocks, "stop_reason": "tool_use", "usage": usage},
    )
    reply = found.reply
    assert (reply.text, reply.reasoning, reply.usage) == ("It is 5.\nSo.", "Hm.", Usage(9, 5, 3))
    assert [(entry.name, entry.arguments) for entry in reply.calls] == [("web.search", {"q": "x"})]
    assert (reply.carried, found.server_tools) == ({BLOCKS: blocks}, ("web_search",))


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_response_that_came_to_nothing_may_be_asked_for_again(status):
    with pytest.raises(NoAnswer, match=f"the server says that the answer is {status}"):
        speaker(ResponsesApi).read(json.dumps({"status": status, "output": []}).encode())


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": "429"}, 429),
        ({"code": 503}, 503),
        ({"code": 7}, 500),
        ({"code": "rate_limit_exceeded"}, 429),
        ({"code": "invalid_image"}, 400),
        ("it broke", 500),
    ],
)
def test_the_status_of_an_error_in_a_good_response(error, status):
    found = speaker(ResponsesApi).read(json.dumps({"error": error}).encode())
    assert isinstance(found, Complaint)
    assert found.status == status


def test_a_response_may_say_its_text_plainly_and_more_than_text():
    plain = {"type": "message", "content": "One."}
    mixed = {"type": "message", "content": [{"type": "hologram"}, {"type": "text", "text": "Two."}]}
    assert answered(ResponsesApi, {"output": [plain, mixed]}).reply.text == "One.\nTwo."


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        ({"input_tokens": 2, "cache_read_input_tokens": "3", "output_tokens": 5}, Usage(2, 5)),
        ({"input_tokens": "2", "output_tokens": 5}, None),
        ([], None),
    ],
)
def test_what_a_message_cannot_count_is_left_out(usage, found):
    body = {"type": "message", "content": [{"type": "text", "text": "5"}], "usage": usage}
    assert answered(MessagesApi, body).reply.usage == found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**30) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "text",
                    "content",
                    "name",
                    "id",
                    "arguments",
                    "input",
                    "summary",
                    "call_id",
                    "code",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
KIND = st.sampled_from(
    [
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "text",
        "tool_use",
        "thinking",
        "server_tool_use",
        "x_call",
    ]
)
ITEM = st.builds(
    lambda kind, more: {**(more if isinstance(more, dict) else {}), "type": kind}, KIND | JSON, JSON
)
FIELDS = ("status", "stop_reason", "error", "incomplete_details", "usage", "model", "type")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(
    items=st.lists(ITEM | JSON, max_size=4) | JSON,
    more=st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4),
)
def test_no_body_is_more_than_an_answer_or_none(protocol, items, more):
    """And what was said can always be sent back."""
    speaks = speaker(protocol)
    body = json.dumps({"output": items, "content": items, **more}).encode()
    try:
        found = speaks.read(body)
    except (NoAnswer, NeverAnswer):
        return
    if isinstance(found, Complaint):
        return
    calls = [{**CALL, "id": f"call_{n}"} for n, _ in enumerate(found.reply.calls or ())]
    message = {
        "role": "assistant",
        "content": found.reply.text,
        **found.reply.carried,
        "tool_calls": calls,
    }
    talk = Conversation(sample_id="s", trial=0, turn=2, messages=[*PROMPT, message], tools=TOOLS)
    assert isinstance(json.loads(speaks.body(talk)), dict)


def test_the_reader_that_is_not_ours_sees_what_is_wrong():
    body = sent(ResponsesApi)
    with pytest.raises(Exception, match="arguments"):
        check_request(
            "openai_responses", {**body, "input": [{"type": "function_call", "name": "x"}]}
        )
    with pytest.raises(Exception, match="max_tokens"):
        check_request("anthropic_messages", {"model": "m", "messages": []})
