"""Messages and tools in the spellings that providers and instrumentations have for them."""

import json

import pytest

from callmark.datasets.importing.span_messages import (
    FAILED,
    OWN_DEEDS,
    key_of_call,
    messages_in,
    tools_in,
)
from callmark.datasets.importing.spans import nested

from .talks import WEATHER


def said(messages):
    """Without how a call is wrapped."""
    return [
        {
            **one,
            **(
                {
                    "tool_calls": [
                        (c.get("id"), c["function"]["name"], json.loads(c["function"]["arguments"]))
                        for c in one["tool_calls"]
                    ]
                }
                if "tool_calls" in one
                else {}
            ),
        }
        for one in messages
    ]


ULM = {"city": "Ulm"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [(None, "weather", ULM)]}
TOLD = {"role": "tool", "content": "19", "tool_call_id": "t1"}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        pytest.param(
            {"role": "assistant", "content": None,
             "function_call": {"name": "weather", "arguments": '{"city": "Ulm"}'}},
            [CALLED],
            id="one function call, before there were several",
        ),
        pytest.param(
            {"role": "assistant", "function_call_name": "weather",
             "function_call_arguments_json": '{"city": "Ulm"}'},
            [CALLED],
            id="the same in two fields",
        ),
        pytest.param(
            {"type": "custom_tool_call", "call_id": "t1", "name": "patch", "input": "*** Begin"},
            [{"role": "assistant", "content": None,
              "tool_calls": [("t1", "patch", {"input": "*** Begin"})]}],
            id="a custom tool takes one text",
        ),
        pytest.param(
            {"type": "web_search_call", "id": "w1", "status": "completed"},
            [{"role": "assistant", "content": None, OWN_DEEDS: 1}],
            id="a search of the provider's",
        ),
        pytest.param(
            {"role": "assistant", "content": [
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                {"type": "mcp_tool_result", "tool_use_id": "s1", "content": []},
                {"type": "text", "text": "Found."},
            ]},
            [{"role": "assistant", "content": "Found.", OWN_DEEDS: 1}],
            id="a call of the provider's and its result are one deed",
        ),
        pytest.param(
            {"role": "user", "content": [
                {"text": "Here:"},
                {"toolResult": {"toolUseId": "t1", "content": [{"text": "19"}]}},
                {"text": "And now?"},
            ]},
            [{"role": "user", "content": "Here:"}, TOLD, {"role": "user", "content": "And now?"}],
            id="Converse tells a result among texts",
        ),
        pytest.param(
            {"role": "user", "parts": [
                {"functionResponse": {"id": "t1", "name": "weather", "response": {"temp_c": 19}}}
            ]},
            [{**TOLD, "name": "weather", "content": '{"temp_c": 19}'}],
            id="Gemini's result",
        ),
        pytest.param(
            {"type": "tool_result", "tool_use_id": "t1", "content": "19", "is_error": True},
            [{**TOLD, FAILED: True}],
            id="a result that its source calls an error",
        ),
        pytest.param(
            {"role": "tool", "tool_call_id": "t1",
             "content": [{"message_content": {"type": "text", "text": "19"}}]},
            [TOLD],
            id="OpenInference wraps the text of a result",
        ),
        pytest.param(
            {"role": "assistant", "content": "19.", "reasoning_content": "I look."},
            [{"role": "assistant", "content": "19.", "reasoning_content": "I look."}],
            id="thoughts beside the text",
        ),
        pytest.param(
            {"role": "assistant", "content": [
                {"type": "reasoning", "summary": [
                    {"type": "summary_text", "text": "First."}, {"text": "Then."},
                ]},
                {"type": "text", "text": "19."},
            ]},
            [{"role": "assistant", "content": "19.", "reasoning_content": "First.\nThen."}],
            id="thoughts in a summary of several parts",
        ),
        pytest.param(
            {"role": "user", "content": [{"type": "image", "url": "x"}, {"type": "text", "text": "Who?"}]},
            [{"role": "user", "content": [{"type": "image", "url": "x"}, {"type": "text", "text": "Who?"}]}],
            id="a text after an image",
        ),
    ],
)  # fmt: skip
def test_a_message_is_read_however_it_is_spelt(given, wanted):
    assert said(messages_in(given)) == wanted
    assert said(messages_in(json.dumps(given))) == wanted


@pytest.mark.parametrize(
    "given",
    [
        {"tools": [WEATHER]},
        [{"functionDeclarations": [WEATHER]}],
        {"toolSpec": {**WEATHER, "parameters": None, "inputSchema": {"json": WEATHER["parameters"]}}},
        json.dumps({"type": "function", "function": WEATHER}),
    ],
    ids=["a request", "Gemini", "Converse", "a text"],
)  # fmt: skip
def test_a_tool_is_read_however_it_is_spelt(given):
    assert tools_in(given) == (WEATHER,)


def test_where_no_tools_are_told_there_are_none():
    assert tools_in(None) == ()


def test_calls_are_the_same_whatever_their_ids_and_their_spelling():
    def call(arguments, name="weather"):
        return {"id": arguments, "function": {"name": name, "arguments": arguments}}

    assert key_of_call(call('{"a": 1, "b": 2}')) == key_of_call(call('{"b":2,"a":1}'))
    assert key_of_call(call("{broken")) == ("weather", "{broken")
    assert key_of_call({"name": "weather"}) == ("", '{"name":"weather"}')


def test_attributes_that_are_half_a_tree_become_one():
    """Some instrumentations write a list whole and later add to its entries by dotted names."""
    assert nested({"llm.tools": [{"name": "a"}, {"name": "b"}], "llm.tools.1.id": "x"}) == {
        "llm": {"tools": [{"name": "a"}, {"name": "b", "id": "x"}]}
    }
    assert nested({"llm.model": "m", "llm": {"vendor": "v"}}) == {
        "llm": {"model": "m", "vendor": "v"}
    }
