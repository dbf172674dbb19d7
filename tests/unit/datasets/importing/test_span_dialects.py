"""What one dialect of spans has and no other: requests and answers kept whole, older spellings."""

import json

import pytest

from callmark.datasets.importing.langfuse import read_langfuse, span_of_observation
from callmark.errors import UsageError

from .span_rows import MODEL, chat_attributes, observation, otlp, plain, span
from .talks import WEATHER, assistant, call, user

SPEC = {"type": "function", "function": WEATHER}
ASKED = {"messages": [user("How warm is Ulm?")]}
SAID = assistant("19 degrees.")
CHOICES = {"id": "r1", "choices": [{"message": SAID}, {"message": assistant("20 degrees.")}]}
ITEMS = {
    "output": [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "19 degrees."}],
        }
    ]
}


def spoken(made) -> list[tuple[str, str]]:
    [answer] = made.answers
    return [(one["role"], one["content"]) for one in answer["messages"]]


def llm(given, said, **more) -> dict:
    attributes = {
        "openinference.span.kind": "LLM",
        "input.value": json.dumps(given) if not isinstance(given, str) else given,
        "output.value": json.dumps(said) if not isinstance(said, str) else said,
    }
    return otlp([span(1, "call", {**attributes, **more}, parentSpanId=None)])


@pytest.mark.parametrize("given", [ASKED, ASKED["messages"], "How warm is Ulm?"])
@pytest.mark.parametrize(
    ("said", "others"),
    [(CHOICES, 1), (ITEMS, 0), ({"content": "19 degrees."}, 0), ("19 degrees.", 0)],
)
def test_openinference_a_request_and_an_answer_that_are_kept_whole(make, given, said, others):
    made = make([llm(given, said)])
    assert spoken(made) == [("user", "How warm is Ulm?"), ("assistant", "19 degrees.")]
    assert made.kinds == ({"other_choice": 1} if others else {})


@pytest.mark.parametrize("given", [[1, 2], [{"x": 1}]])
def test_openinference_a_list_that_is_no_messages_is_no_prompt(make, given):
    made = make([llm(given, "19 degrees.")])
    assert spoken(made)[1:] == [("assistant", "19 degrees.")]
    assert made.kinds == {"prompt_not_recorded": 1}


def test_openinference_the_kind_of_a_span_may_stand_beside_its_attributes(make):
    row = plain(1, "call", {"input.value": json.dumps(ASKED), "output.value": "19 degrees."})
    made = make([{**row, "span_kind": "LLM"}])
    assert made.report.format == "openinference"
    assert spoken(made) == [("user", "How warm is Ulm?"), ("assistant", "19 degrees.")]


def test_batches_of_something_else_are_no_spans(make):
    with pytest.raises(UsageError, match="an object with the keys batches"):
        make([{"batches": [{"size": 3}]}])


@pytest.mark.parametrize(("said", "others"), [(CHOICES, 1), (ITEMS, 0)])
def test_langfuse_an_answer_that_is_kept_whole(make, said, others):
    made = make([observation(1, "GENERATION", "call", input=ASKED, output=said)])
    assert spoken(made) == [("user", "How warm is Ulm?"), ("assistant", "19 degrees.")]
    assert made.kinds.get("other_choice", 0) == others


def test_langfuse_tools_that_stand_among_the_messages_are_tools(make):
    """As its callback for LangChain writes them."""
    given = [*ASKED["messages"], {"role": "tool", "content": SPEC}]
    made = make([observation(1, "GENERATION", "call", input=given, output=SAID)])
    assert spoken(made) == [("user", "How warm is Ulm?"), ("assistant", "19 degrees.")]
    assert made.tools == {"weather": WEATHER}


@pytest.mark.parametrize(
    "given",
    [
        {"city": "Ulm"},
        {"args": [], "kwargs": {"city": "Ulm"}},
        {"type": "tool_call", "name": "weather", "id": "c1", "args": {"city": "Ulm"}},
    ],
)
@pytest.mark.parametrize("said", ["19", {"type": "tool", "content": "19", "tool_call_id": "c1"}])
def test_langfuse_a_tool_is_read_whoever_called_it(given, said):
    row = observation(1, "TOOL", "weather", input=given, output=said)
    step = read_langfuse(span_of_observation(row, 1, ""))
    assert (step.kind, step.name, step.arguments, step.result) == (
        "tool",
        "weather",
        {"city": "Ulm"},
        "19",
    )
    assert step.call_id == ("c1" if isinstance(said, dict) else None)


def test_pydantic_ai_events_in_one_attribute_and_tools_of_its_request(make):
    events = [
        {"event.name": "gen_ai.user.message", **user("How warm is Ulm?")},
        {"event.name": "something.else", "content": "no"},
        {"event.name": "gen_ai.choice", "index": 0, "message": SAID},
    ]
    tool = {key: value for key, value in WEATHER.items() if key != "parameters"}
    attributes = {
        **{k: v for k, v in chat_attributes(1).items() if k != "gen_ai.tool.definitions"},
        "events": json.dumps(events),
        "model_request_parameters": json.dumps(
            {"function_tools": [{**tool, "parameters_json_schema": WEATHER["parameters"]}]}
        ),
    }
    made = make([otlp([span(1, "chat", attributes, parentSpanId=None)])])
    assert spoken(made) == [("user", "How warm is Ulm?"), ("assistant", "19 degrees.")]
    assert made.tools == {"weather": WEATHER}
    assert made.items[0]["metadata"]["imported_from"]["model"] == MODEL


def test_strands_tells_what_a_tool_returned_in_an_event(make):
    asked = call("weather", '{"city": "Ulm"}')
    parts = [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Ulm"}}]
    attributes = {
        **chat_attributes(1),
        "gen_ai.input.messages": json.dumps([user("How warm is Ulm?")]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
    }
    ran = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weather",
        "gen_ai.tool.call.id": "c1",
    }
    told = [{"key": "message", "value": {"stringValue": '[{"text": "19"}]'}}]
    tool = span(
        2, "execute_tool weather", ran, events=[{"name": "gen_ai.choice", "attributes": told}]
    )
    made = make([otlp([span(1, "chat", attributes), tool])])
    [answer] = made.answers
    assert answer["messages"][1]["tool_calls"][0]["function"]["name"] == "weather"
    assert asked["tool_calls"][0]["id"] == answer["messages"][1]["tool_calls"][0]["id"]
    assert answer["messages"][2] == {"role": "tool", "tool_call_id": "c1", "content": "19"}
