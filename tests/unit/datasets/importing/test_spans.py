"""Logs of spans in: the same conversation, whoever wrote it down; what goes together and what does
not; what is left out is told."""

import json

import pytest
from tests.unit.datasets.importing.span_rows import (
    ANSWERS,
    CONVERSATION,
    DIALECTS,
    FAILURE,
    MODEL,
    TRACE,
    agents_response,
    chat_attributes,
    contents,
    genai,
    number_of,
    otlp,
    span,
)
from tests.unit.datasets.importing.talks import WEATHER, assistant, user

from callmark.datasets.accept import is_incomplete
from callmark.errors import BadInput
from callmark.run.rescore import score_file
from callmark.store.files import read_results

ERROR = json.dumps({"error": FAILURE})


def spoken(messages: list[dict]) -> list[tuple]:
    """What was said and called, without how it was written."""
    return [
        (
            one["role"],
            one["content"] or "",
            [
                (c.get("id"), c["function"]["name"], json.loads(c["function"]["arguments"]))
                for c in one.get("tool_calls", ())
            ],
            one.get("tool_call_id"),
        )
        for one in messages
    ]


def chat(number: int, before: list[dict], answer: dict | None, **more) -> dict:
    """A call of a model, by numbered parts of GenAI."""

    def part(one: dict) -> dict:
        return {"role": one["role"], "parts": [{"type": "text", "content": one["content"]}]}

    attributes = {
        **chat_attributes(number),
        "gen_ai.input.messages": json.dumps([*map(part, before)]),
    }
    if answer is not None:
        attributes["gen_ai.output.messages"] = json.dumps([part(answer)])
    return span(number, "chat", attributes, **more)


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_tells_the_same_conversation(make, name):
    rows, known_as = DIALECTS[name]
    made = make(rows())
    assert made.report.format == known_as
    assert made.report.counts.samples == 1
    [item], [answer] = made.items, made.answers
    wanted = [
        {**one, "content": ERROR} if one["content"] == FAILURE else one for one in CONVERSATION
    ]
    assert spoken(answer["messages"]) == spoken(wanted)
    assert item["user_turns"] == ["And in Bonn?"]
    about = item["metadata"]["imported_from"]
    assert about["format"] == known_as
    assert about["model"] == MODEL
    assert about["agent"] == "Weatherman"
    assert about["usage"] == {"input_tokens": 40, "output_tokens": 8}
    assert len(about["spans"]) == len(set(about["spans"])) == len(ANSWERS)
    assert None not in about["spans"]
    assert item["metadata"]["tools"] == ["weather"]
    has_schema = known_as != "openai-agents"
    own = 2 if name in ("langfuse trace", "agents generation") else 1  # a trace and an agent
    assert made.kinds == {"structure_span": own, "span_error": 1} | (
        {} if has_schema else {"tool_without_schema": 1}
    )
    if has_schema:
        assert made.tools["weather"] == WEATHER


def test_what_is_imported_can_be_scored(make, tmp_path):
    made = make(genai())
    out = tmp_path / "scored.jsonl"
    named = {"in": str(made.places.dataset), "registry": str(made.places.registry)}
    score_file(made.places.answers, {**named, "out": str(out)})
    [result] = read_results(out)
    assert [entry.status for entry in result.tool_trace] == ["ok", "error"]


@pytest.mark.parametrize("name", DIALECTS)
def test_the_order_of_lines_does_not_matter(make, tmp_path, name):
    rows, _ = DIALECTS[name]
    forth = make(rows()).answers
    back = make(list(reversed(rows())), name="other.jsonl").answers
    assert [one["messages"] for one in forth] == [one["messages"] for one in back]


def test_one_document_is_read_like_lines(make):
    whole = [one for row in genai() for one in row["resourceSpans"]]
    made = make({"resourceSpans": whole}, name="trace.json")
    assert (made.report.format, made.report.counts.samples) == ("otel-genai", 1)


def test_responses_of_the_agents_sdk_say_no_text(make):
    made = make(agents_response())
    assert made.report.format == "openai-agents"
    [answer] = made.answers
    asked, *rest = answer["messages"]
    assert asked == {"role": "user", "content": "(what was asked is not recorded)"}
    assert [(one["role"], len(one.get("tool_calls", ()))) for one in rest] == [
        ("assistant", 1),
        ("tool", 0),
        ("assistant", 0),
        ("assistant", 1),
        ("tool", 0),
        ("assistant", 0),
    ]
    assert rest[1]["content"] == '{"temp_c": 19}'
    assert rest[4]["content"] == ERROR
    assert made.kinds["text_not_recorded"] == made.kinds["prompt_not_recorded"] == 1
    assert made.items[0]["metadata"]["tools"] == ["weather"]


# --- what goes together ----------------------------------------------------------------------


def test_a_chat_whose_requests_are_traces_of_their_own_is_one(make):
    said = [user("Hi"), assistant("Hello"), user("How are you?"), assistant("Well"), user("Bye")]
    spans = [
        chat(k + 1, said[: 2 * k + 1], said[2 * k + 1], traceId=f"{k:032x}", parentSpanId=None)
        for k in range(2)
    ]
    spans.append(chat(3, said, assistant("Bye"), traceId="9" * 32, parentSpanId=None))
    made = make([otlp([one]) for one in spans])
    [answer] = made.answers
    assert spoken(answer["messages"]) == spoken([*said, assistant("Bye")])
    about = made.items[0]["metadata"]["imported_from"]
    assert about["spans"] == [f"{k:016x}" for k in (1, 2, 3)]
    assert about["trace_id"] == "0" * 32


@pytest.mark.parametrize("way", ["nested", "other trace", "inside out"])
def test_one_call_that_left_two_spans_is_one(make, way):
    told = chat(1, [user("Hi")], assistant("Hello"), parentSpanId=None)
    bare = span(2, "messages.create", chat_attributes(1), parentSpanId="0" * 15 + "1")
    if way == "other trace":
        bare |= {"traceId": "7" * 32}
        del bare["parentSpanId"]
    elif way == "inside out":
        told["parentSpanId"] = bare["spanId"]
        del bare["parentSpanId"]
    made = make([otlp([bare]), otlp([told])])
    assert made.report.counts.samples == 1
    assert made.kinds == {"span_merged": 1}


def test_two_accounts_of_one_call_are_one(make):
    outer = chat(1, [user("Hi")], assistant("Hello"), parentSpanId=None)
    inner = chat(2, [user("Hi")], assistant("Hello"), parentSpanId=outer["spanId"])
    twice = chat(3, [user("Hi")], assistant("Hello"), parentSpanId=None)
    made = make([otlp([outer, inner, twice, outer])])
    assert made.report.counts.samples == 1
    assert made.kinds == {"span_merged": 3}


def test_a_call_without_content_is_told(make):
    bare = span(2, "chat", chat_attributes(9), parentSpanId=None)
    made = make(
        [otlp([chat(1, [user("Hi")], assistant("Hello"), parentSpanId=None)]), otlp([bare])]
    )
    assert made.kinds == {"span_without_content": 1}
    with pytest.raises(BadInput, match="1 span_without_content"):
        make([otlp([bare])], name="alone.jsonl")


def test_a_sub_agent_is_a_sample_of_its_own_that_names_its_parent(make):
    rows = genai()
    run = rows[1]["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    agent = span(
        100,
        "invoke_agent helper",
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "Helper"},
        parentSpanId=run["spanId"],
    )
    below = chat(101, [user("Look it up")], assistant("19"), parentSpanId=agent["spanId"])
    made = make([*rows, otlp([agent, below])])
    assert [one["metadata"]["sample_id"] for one in made.items] == [TRACE, f"{TRACE}-2"]
    about = made.items[1]["metadata"]["imported_from"]
    assert (about["parent"], about["agent"]) == (TRACE, "Helper")
    assert "parent" not in made.items[0]["metadata"]["imported_from"]


def test_a_conversation_that_forks_is_told(make):
    first = chat(1, [user("Hi")], assistant("Hello"))
    ways = [
        chat(k, [user("Hi"), assistant("Hello"), user(f"Way {k}")], assistant("Yes"))
        for k in (2, 3)
    ]
    made = make([otlp([first, *ways])])
    assert made.report.counts.samples == 2
    assert made.kinds == {"branched": 1}
    about = [one["metadata"]["imported_from"]["spans"] for one in made.items]
    assert about == [[f"{1:016x}", f"{2:016x}"], [f"{1:016x}", f"{3:016x}"]]


def test_a_server_that_keeps_the_conversation_is_sent_results_only(make):
    """With `previous_response_id` a prompt holds what is new: it belongs where the call was made."""
    asked, answered = contents(0), contents(1)
    after = [answered["gen_ai.input.messages"][-1]]
    spans = [
        span(
            number_of(turn),
            "chat",
            {
                **chat_attributes(turn),
                "gen_ai.input.messages": json.dumps(given),
                "gen_ai.output.messages": json.dumps(said),
            },
        )
        for turn, (given, said) in enumerate(
            [
                (asked["gen_ai.input.messages"], asked["gen_ai.output.messages"]),
                (after, answered["gen_ai.output.messages"]),
            ]
        )
    ]
    made = make([otlp(spans)])
    [answer] = made.answers
    assert spoken(answer["messages"]) == spoken(CONVERSATION[:5])


def test_a_stop_word_that_an_agent_puts_back_is_no_other_text(make):
    first = chat(1, [user("Go")], assistant("Thought: x\n```py\nf(1)\n```"))
    again = [
        user("Go"),
        assistant("Thought: x\n```py\nf(1)\n```<end_code>"),
        user("Observation: 2"),
    ]
    made = make([otlp([first, chat(2, again, assistant("It is 2."))])])
    assert made.report.counts.samples == 1
    [answer] = made.answers
    assert not any(one.get("tool_calls") for one in answer["messages"])


def test_code_agents_keep_their_code_as_text(make):
    """smolagents writes the call out under roles of its own, and its tools run from code."""

    def attributes(messages: list[tuple[str, str]], said: str) -> dict:
        made = {"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant"}
        made["llm.output_messages.0.message.content"] = said
        for at, (role, text) in enumerate(messages):
            made[f"llm.input_messages.{at}.message.role"] = role
            made[f"llm.input_messages.{at}.message.content"] = text
        return made

    begin = [("system", "Use code."), ("user", "How much is it?")]
    more = [("assistant", "Code: f()"), ("tool-call", "Calling tools: f"), ("tool-response", "42")]
    spans = [
        span(1, "call", attributes(begin, "Code: f()")),
        span(2, "F", {"openinference.span.kind": "TOOL", "tool.name": "f", "input.value": "{}"}),
        span(3, "call", attributes(begin + more, "It is 42.")),
    ]
    made = make([otlp(spans)])
    [answer] = made.answers
    assert [(one["role"], one["content"]) for one in answer["messages"]] == [
        *begin,
        ("assistant", "Code: f()"),
        ("user", "42"),
        ("assistant", "It is 42."),
    ]
    assert made.kinds == {"call_written_out": 1, "tool_span_without_call": 1}


def test_parallel_calls_thoughts_and_tools_of_the_provider(make):
    said = [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Two cities."},
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                {"type": "tool_call", "id": "a", "name": "weather", "arguments": {"city": "Ulm"}},
                {
                    "type": "tool_call",
                    "id": "b",
                    "name": "weather",
                    "arguments": '{"city": "Bonn"}',
                },
            ],
        }
    ]
    attributes = {
        **chat_attributes(1),
        "gen_ai.input.messages": json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": "?"}]}]
        ),
        "gen_ai.output.messages": json.dumps(said),
    }
    made = make([otlp([span(1, "chat", attributes)])])
    [_, turn] = made.answers[0]["messages"]
    assert [one["id"] for one in turn["tool_calls"]] == ["a", "b"]
    assert turn["reasoning_content"] == "Two cities."
    assert made.kinds == {"call_without_result": 2, "provider_tool": 1, "tool_without_schema": 1}
    # That the model made no call of ours there says nothing: nobody accepts it by accident.
    assert [one["metadata"].get("provider_calls") for one in made.items] == [True]
    assert is_incomplete(made.items[0])


@pytest.mark.parametrize("is_in_prompt", [True, False])
def test_an_id_that_is_used_again_is_another_call(make, is_in_prompt):
    def turn(number: int, before: list[dict]) -> dict:
        call = {"type": "tool_call", "id": "call_1", "name": "weather", "arguments": {"n": number}}
        attributes = {
            **chat_attributes(number),
            "gen_ai.input.messages": json.dumps(before),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [call]}]),
        }
        return span(number, "chat", attributes)

    def run(number: int) -> dict:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "weather",
            "gen_ai.tool.call.id": "call_1",
            "gen_ai.tool.call.result": f"result {number}",
        }
        return span(number, "execute_tool", attributes)

    asked = {"role": "user", "parts": [{"type": "text", "content": "?"}]}
    called = json.loads(turn(1, [])["attributes"][-1]["value"]["stringValue"])
    if is_in_prompt:
        told = {"type": "tool_call_response", "id": "call_1", "response": "result 2"}
        called.append({"role": "tool", "parts": [told]})
    made = make([otlp([turn(1, [asked]), run(2), turn(3, [asked, *called]), run(4)])])
    roles = [(one["role"], one["content"]) for one in made.answers[0]["messages"]]
    assert roles == [
        ("user", "?"),
        ("assistant", ""),
        ("tool", "result 2"),
        ("assistant", ""),
        ("tool", "result 4"),
    ]


def test_what_else_a_row_says_is_kept(make):
    rows = [{"otlp": row, "recording": "r1"} for row in genai()]
    about = make(rows).items[0]["metadata"]["imported_from"]
    assert about["recording"] == "r1"


def test_scores_of_a_langfuse_trace_are_kept(make):
    [trace] = DIALECTS["langfuse trace"][0]()
    trace["scores"] = [{"name": "helpful", "value": 1.0}, {"name": "tone", "stringValue": "kind"}]
    [answer] = make([trace]).answers
    assert answer["source_scores"] == {"helpful": 1.0, "tone": "kind"}


def test_other_choices_are_told(make):
    output = [
        {"role": "assistant", "parts": [{"type": "text", "content": text}]} for text in ("A", "B")
    ]
    attributes = {
        **chat_attributes(1),
        "gen_ai.response.finish_reasons": ["stop", "stop"],
        "gen_ai.input.messages": json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": "?"}]}]
        ),
        "gen_ai.output.messages": json.dumps(output),
    }
    made = make([otlp([span(1, "chat", attributes)])])
    assert made.answers[0]["messages"][-1]["content"] == "A"
    assert made.kinds == {"other_choice": 1}


def test_an_error_in_the_first_call_is_a_failed_trial(make):
    spans = [
        chat(1, [user("Hi")], None, error="rate limit"),
        chat(2, [user("Ho")], assistant("Yes")),
    ]
    made = make([otlp(spans)])
    assert [one.get("status", "ok") for one in made.answers] == ["error", "ok"]
    assert made.kinds == {"failed_trial": 1, "span_error": 1}


def test_a_call_that_was_tried_again_is_one_conversation(make):
    spans = [
        chat(1, [user("Hi")], None, error="rate limit"),
        chat(2, [user("Hi")], assistant("Yes")),
    ]
    made = make([otlp(spans)])
    assert made.report.counts.samples == 1
    assert made.items[0]["metadata"]["imported_from"]["errors"] == [
        {"span": f"{1:016x}", "name": "chat", "error": "rate limit"}
    ]


# --- what is wrong with it -------------------------------------------------------------------


def test_a_circle_of_parents_and_orphans_do_no_harm(make):
    spans = [
        chat(1, [user("Hi")], assistant("Hello"), parentSpanId=f"{2:016x}"),
        span(2, "a", {}, parentSpanId=f"{3:016x}"),
        span(3, "b", {}, parentSpanId=f"{2:016x}"),
        chat(4, [user("Ho")], assistant("Hey"), parentSpanId=f"{4:016x}"),
        chat(5, [user("Ha")], assistant("Hm"), parentSpanId="nowhere"),
    ]
    made = make([otlp(spans)])
    assert made.report.counts.samples == 3
    assert made.kinds == {"structure_span": 2}


def test_spans_without_ids_are_told(make):
    one = chat(1, [user("Hi")], assistant("Hello"))
    other = chat(2, [user("Ho")], assistant("Hey"))
    del one["traceId"], one["spanId"], other["traceId"]
    made = make([otlp([one, other])])
    names = [one["metadata"]["sample_id"] for one in made.items]
    assert names == ["line-1-span-1", other["spanId"]]
    assert made.kinds == {"span_without_id": 2}


def test_a_deep_tree_of_spans_takes_no_longer_than_a_flat_one(make):
    deep = 20_000
    spans = [span(k, "layer", {}, parentSpanId=f"{k - 1:016x}") for k in range(1, deep)]
    spans += [
        chat(k + deep, [user(f"Hi {k}")], assistant("Yes"), parentSpanId=f"{deep - 1:016x}")
        for k in range(200)
    ]
    made = make([otlp(spans)])
    assert made.report.counts.samples == 200


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"resourceSpans": 5}, "resourceSpans: must be a list"),
        ({"resourceSpans": [{"scopeSpans": [{"spans": [7]}]}]}, "spans: must be an object"),
        (otlp([{**span(1, "x", {}), "attributes": 3}]), "attributes: must be a list"),
        ({"other": 1}, "holds no span"),
        (3, "a record: must be an object"),
    ],
)
def test_what_is_no_span_is_named_by_its_line(make, record, message):
    good = otlp([chat(1, [user("Hi")], assistant("Hello"))])
    with pytest.raises(BadInput, match=rf"source\.jsonl:2: {message}"):
        make([good, record])
