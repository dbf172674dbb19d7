"""What a served model is sent: every field, every name, every character."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark.calls.registry import Registry
from callmark.errors import UsageError
from callmark.records.results import Decoding
from callmark.records.seams import Conversation
from callmark.resources import builtin_tools
from callmark.runners.http.chat import CALL_FIELDS, ChatCompletions
from callmark.runners.options import RunnerOptions, ServedOptions

REGISTRY = Registry.from_specs(builtin_tools(), where="test")
TOOLS = tuple(REGISTRY.openai_tools(REGISTRY.names))
USER = {"role": "user", "content": "Hi"}


def writer(tools=TOOLS, extra_body=None, **decoding) -> ChatCompletions:
    options = RunnerOptions(
        model="m",
        decoding=Decoding(**decoding),
        tool_registry_sha256="",
        tools=tools,
        served=ServedOptions(extra_body=extra_body or {}),
    )
    return ChatCompletions(options)


def sent(messages=(USER,), tools=TOOLS, *, trial=0, of=None, **settings) -> dict:
    conversation = Conversation(
        sample_id="s", trial=trial, turn=1, messages=list(messages), tools=tools
    )
    return json.loads((of or writer(**settings)).body(conversation))


def test_a68_d39_tools_go_out_with_their_real_schemas():
    for tool, original in zip(sent()["tools"], TOOLS, strict=True):
        assert tool["type"] == "function"
        assert tool["function"]["parameters"] == original["function"]["parameters"]
        assert tool["function"]["parameters"]["properties"]
        assert tool["function"]["description"]


def test_names_leave_in_the_alphabet_of_endpoints():
    names = [tool["function"]["name"] for tool in sent()["tools"]]
    assert "web_search" in names
    assert all(name.replace("_", "").isalnum() for name in names)


def test_two_tools_of_one_sent_name_are_refused_before_the_run():
    twins = [{"name": "a.b"}, {"name": "a_b"}]
    registry = Registry.from_specs(twins, where="test")
    with pytest.raises(UsageError, match=r"a\.b.*a_b"):
        writer(tools=tuple(registry.openai_tools(["a.b", "a_b"])))


def test_a42_decoding_parameters_reach_the_request():
    body = sent(temperature=0.7, top_p=0.9, max_tokens=17, seed=5, tool_choice="required")
    assert body["model"] == "m"
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.7, 0.9, 17)
    assert (body["seed"], body["tool_choice"]) == (5, "required")


def test_null_leaves_a_field_out():
    body = sent(temperature=None, top_p=None, max_tokens=None, seed=None, tool_choice=None)
    assert set(body) == {"model", "messages", "tools"}


def test_without_tools_there_is_no_tool_choice():
    body = sent(tools=())
    assert "tools" not in body
    assert "tool_choice" not in body


def test_extra_fields_are_merged_last():
    body = sent(extra_body={"temperature": 1, "top_k": 4, "chat_template_kwargs": {"x": True}})
    assert body["temperature"] == 1
    assert body["top_k"] == 4
    assert body["chat_template_kwargs"] == {"x": True}


@pytest.mark.parametrize("field", ["messages", "tools", "stream"])
def test_what_belongs_to_the_run_cannot_be_an_extra_field(field):
    with pytest.raises(UsageError, match=f"--extra-body.{field}"):
        writer(extra_body={field: True})


def test_trials_of_one_sample_have_different_seeds():
    of = writer(seed=7)
    assert [sent(trial=trial, of=of)["seed"] for trial in (0, 1, 2, 0)] == [7, 8, 9, 7]


def test_a_tool_choice_may_name_a_tool():
    body = sent(tool_choice="web.search")
    assert body["tool_choice"] == {"type": "function", "function": {"name": "web_search"}}
    without = [tool for tool in TOOLS if tool["function"]["name"] != "web.search"]
    assert sent(tools=without, tool_choice="web.search")["tool_choice"] == "auto"
    assert sent(tool_choice="validated")["tool_choice"] == "validated"


def test_names_in_the_history_are_the_names_that_were_offered():
    call = {"id": "1", "type": "function", "function": {"name": "web.search", "arguments": "{}"}}
    history = [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "name": "web.search", "content": "web.search"},
    ]
    body = sent(history)
    assert body["messages"][1]["tool_calls"][0]["function"]["name"] == "web_search"
    assert body["messages"][2]["name"] == "web_search"
    assert body["messages"][2]["content"] == "web.search"
    assert call["function"]["name"] == "web.search"


def test_what_belonged_to_a_call_goes_back_with_it():
    calls = [
        {"id": str(at), "type": "function", "function": {"name": "web.open", "arguments": "{}"}}
        for at in range(2)
    ]
    more = [{"extra_content": {"google": {"thought_signature": "abc"}}}, {}]
    message = {"role": "assistant", "content": "", "tool_calls": calls, CALL_FIELDS: more}
    said = sent([USER, message])["messages"][1]
    assert CALL_FIELDS not in said
    assert said["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "abc"}}
    assert "extra_content" not in said["tool_calls"][1]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "tool_calls": None},
        {"role": "assistant", "tool_calls": ["web.search", {"function": None}, {"function": {}}]},
        {"role": "tool", "name": None, "content": [{"type": "text", "text": "x"}]},
    ],
)
def test_odd_messages_of_a_dataset_pass_unchanged(message):
    assert sent([message])["messages"] == [message]


@given(st.text())
def test_any_prompt_arrives_unchanged(text):
    assert sent([{"role": "user", "content": text}])["messages"][0]["content"] == text


def test_a_lone_surrogate_does_not_end_a_run():
    assert sent([{"role": "user", "content": "a\ud800"}])["messages"][0]["content"] == "a\ud800"


def test_what_was_encoded_for_one_offer_is_not_sent_for_another():
    of = writer()
    for _ in range(3):
        for names in (["web.search"], ["read_file", "web.open"], []):
            tools = REGISTRY.openai_tools(names)
            offered = [
                tool["function"]["name"] for tool in sent(tools=tools, of=of).get("tools", ())
            ]
            assert offered == [name.replace(".", "_") for name in names]
