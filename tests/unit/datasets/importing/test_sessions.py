"""Messages and sessions of other programs: the same conversation in every shape comes out the same,
and what is odd in a shape is mapped or named."""

import json
import re
from pathlib import Path

import pytest
from tests.unit.datasets.importing.conftest import Made, places_in
from tests.unit.datasets.importing.sessions import (
    ANTHROPIC_TOOL,
    ATIF,
    ATIF_STEPS,
    BLOCKS,
    FIRST,
    GEMINI,
    GEMINI_MESSAGES,
    ITEMS,
    LANGCHAIN,
    MINI,
    SECOND,
    SHAREGPT,
    SOURCES,
    STORY,
    THOUGHT,
    WEATHER,
    anthropic_exchanges,
    claude_lines,
    codex_lines,
    flat,
    lines,
    responses_exchanges,
    step,
    tool_use,
)

from callmark.datasets.importing.importing import import_dataset
from callmark.errors import BadInput
from callmark.records.samples import NOT_RECORDED


def told(messages: list[dict]) -> list[tuple]:
    """Who said, called, thought and returned what."""
    found = []
    for message in messages:
        role, text = message["role"], message.get("content") or ""
        if role == "tool":
            inside = json.loads(text) if text.startswith("{") else {}
            failed = isinstance(inside, dict) and "error" in inside
            found.append((role, inside["error"], "error") if failed else (role, text))
            continue
        calls = [
            (call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in message.get("tool_calls", ())
        ]
        thought = message.get("reasoning_content")
        more = (calls, thought) if thought else (calls,) if calls else ()
        found.append((role, text, *more))
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_the_same_conversation_comes_out_of_every_shape(make, name):
    known_as, data = SOURCES[name]
    made = make(data)
    assert made.report.format == known_as
    assert made.report.counts.samples == made.report.counts.answers == 1
    [answer], [item] = made.answers, made.items
    spoken = [one for one in told(answer["messages"]) if one[0] != "system"]
    failed = spoken[6]
    assert failed[:1] + failed[2:] == ("tool", "error")
    assert failed[1].endswith("no such station")
    assert [one for one in spoken if one is not failed] == [
        one for one in STORY if one is not STORY[6]
    ]
    prompt = item["prompt"]
    assert (prompt if isinstance(prompt, str) else prompt[-1]["content"]) == STORY[0][1]
    assert item["user_turns"] == ["And Bonn?"]
    assert item["metadata"]["imported_from"]["format"] == known_as
    assert [(line["name"], line["key"]) for line in made.fixtures] == [
        ("weather", {"city": "Ulm"}),
        ("weather", {"city": "Bonn"}),
    ]
    assert list(made.tools) == ["weather"]


@pytest.mark.parametrize("name", SOURCES)
def test_the_same_source_gives_the_same_bytes(tmp_path, name):
    path = tmp_path / "source"
    path.write_bytes(SOURCES[name][1])
    for folder in ("a", "b"):
        import_dataset(path, places_in(tmp_path / folder))
    for made in (tmp_path / "a").rglob("*.json*"):
        assert made.read_bytes() == Path(str(made).replace("/a/", "/b/")).read_bytes()


def again(made: Made, folder: Path) -> Made:
    """What was imported, exported to OpenAI messages with its tools, and imported once more."""
    talks = []
    for item in made.items:
        name = item["metadata"]["sample_id"]
        answer = next(one for one in made.answers if one["sample_id"] == name)
        offered = item["metadata"].get("tools")
        specs = [made.tools[one] for one in offered] if offered is not None else None
        talks.append({"id": name, "messages": answer["messages"], "tools": specs})
    path = folder / "talks.jsonl"
    path.write_bytes(lines(*talks))
    places = places_in(folder / "again")
    return Made(places, import_dataset(path, places, format="openai"))


@pytest.mark.parametrize("name", SOURCES)
def test_to_openai_messages_and_back_nothing_is_lost(make, tmp_path, name):
    made = make(SOURCES[name][1])
    back = again(made, tmp_path)
    assert [one["messages"] for one in back.answers] == [one["messages"] for one in made.answers]
    assert back.fixtures == made.fixtures
    assert [(one["prompt"], one.get("user_turns")) for one in back.items] == [
        (one["prompt"], one.get("user_turns")) for one in made.items
    ]


# --- Anthropic -------------------------------------------------------------------------------


def test_blocks_below_plain_talk_are_not_read_as_openai(make):
    plain = {
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi"}]
    }
    made = make([plain, {"messages": BLOCKS, "tools": [ANTHROPIC_TOOL]}])
    assert made.report.format == "openai, anthropic"
    assert made.report.counts.fixtures == 2
    assert "reasoning_content" in made.answers[1]["messages"][1]


def test_a_streamed_answer_is_put_together(make):
    events = [
        {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "me see."}},
        {"type": "content_block_start", "index": 1, "content_block": {**tool_use("", FIRST), "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"ci'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": 'ty": "Ulm"}'}},
    ]  # fmt: skip
    text = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
    first, *_ = anthropic_exchanges()
    made = make([{**first, "response": text}])
    assert told(made.answers[0]["messages"])[1] == ("assistant", "Let me see.", STORY[1][2])


def test_a_tool_of_the_provider_is_a_call_with_a_result(make):
    content = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "Ulm"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "title": "19 degrees"}]},
        {"type": "text", "text": "It is "},
        {"type": "text", "text": "19 degrees.", "citations": []},
        {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_search", "input": {"query": "Bonn"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_2", "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "No more."},
    ]  # fmt: skip
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    request = {"messages": [{"role": "user", "content": "Ulm?"}], "tools": tools}
    response = {"type": "message", "role": "assistant", "content": content}
    made = make([{"request": request, "response": response}])
    messages = told(made.answers[0]["messages"])
    assert [one[0] for one in messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert messages[3][1] == "It is 19 degrees."
    assert messages[4] == ("tool", "max_uses_exceeded", "error")
    assert made.kinds == {"hidden_reasoning": 1, "tool_without_schema": 1}
    assert made.report.counts.fixtures == 2


def test_a_request_that_failed_and_was_sent_again_is_one_conversation(make):
    first, *others = anthropic_exchanges()
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    made = make([{**first, "status": 529, "response": error}, first, *others])
    assert made.report.counts.samples == 1
    assert made.kinds == {"failed_exchange": 1}


def test_a_request_that_only_failed_is_an_answer_with_that_error(make):
    first, *_ = anthropic_exchanges()
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    made = make([{**first, "status": 529, "response": error}])
    assert (made.answers[0]["status"], made.answers[0]["error"]) == ("error", "Overloaded")


def test_exchanges_of_several_conversations_may_interleave(make):
    one = anthropic_exchanges()
    other = json.loads(json.dumps(one).replace("Ulm", "Aulendorf").replace("_000", "_100"))
    mixed = [exchange for pair in zip(one, other, strict=True) for exchange in pair]
    made = make(mixed)
    assert made.report.counts.samples == 2
    assert sorted(len(answer["messages"]) for answer in made.answers) == [8, 8]


def test_an_answer_that_was_asked_for_again_is_a_sample_of_its_own(make):
    """No call is counted twice: what came before is the prompt."""
    exchanges = anthropic_exchanges()
    other = {**exchanges[3]["response"], "content": [{"type": "text", "text": "Bonn is unknown."}]}
    made = make([*exchanges, {**exchanges[3], "response": other}])
    assert made.report.counts.samples == 2
    assert made.kinds == {"other_branch": 1}
    second = made.items[1]
    assert len(second["prompt"]) == 7
    assert second["metadata"]["imported_from"]["parent"] == made.items[0]["metadata"]["sample_id"]
    assert {line["sample_id"] for line in made.fixtures} == {made.answers[0]["sample_id"]}


def test_a_tool_that_answered_was_offered_and_one_that_was_made_up_was_not(make):
    exchanges = anthropic_exchanges()
    for exchange in exchanges:
        exchange["request"]["tools"] = [{**ANTHROPIC_TOOL, "name": "other"}]
    made = make(exchanges)
    assert sorted(made.tools) == ["other", "weather"]
    assert made.kinds == {"tool_without_schema": 1}
    failed = json.dumps(exchanges).replace("temp_c", "error")
    made = make(json.loads(failed))
    assert sorted(made.tools) == ["other"]
    assert made.kinds == {"call_of_unknown_tool": 2}


def test_an_exchange_that_stands_there_twice_is_taken_once(make):
    exchanges = anthropic_exchanges()
    made = make([*exchanges, exchanges[1], *reversed(exchanges)])
    assert made.report.counts.samples == 1
    assert made.kinds == {"recorded_twice": 5}


# --- Responses -------------------------------------------------------------------------------


def test_clients_that_change_what_they_send_back_break_no_conversation(make):
    """Ids of calls that are written anew, arguments that are: it is one conversation."""
    text = json.dumps(responses_exchanges(chained=False))
    exchanges = json.loads(text)
    for exchange in exchanges[1:]:
        for item in exchange["request"]["input"]:
            if item.get("type") == "function_call":
                item["arguments"] = '{"town": "Ulm"}'
    made = make(exchanges)
    assert made.report.counts.samples == 1
    assert told(made.answers[0]["messages"])[1][2] == [("weather", {"city": "Ulm"})]
    renamed = json.loads(text.replace(f'"{FIRST}"', '"call_0"'))
    for exchange in renamed[1:]:
        for item in exchange["request"]["input"]:
            if "call_id" in item:
                item["call_id"] = f"resp_1:{item['call_id']}"
    assert make(renamed).report.counts.samples == 1


def test_a_chain_whose_beginning_is_missing_says_so(make):
    made = make(responses_exchanges(chained=True)[2:])
    assert made.kinds["history_missing"] == 1
    assert made.items[0]["prompt"] == "And Bonn?"


def test_tools_of_the_provider_and_custom_ones_are_calls(make):
    items = [
        {"role": "user", "content": "Go."},
        {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
        {"type": "code_interpreter_call", "id": "ci1", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]},
        {"type": "mcp_call", "id": "m1", "name": "ask", "arguments": '{"q": 1}', "error": "refused"},
        {"type": "web_search_call", "id": "w1", "action": {"type": "search", "query": "x"}},
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"type": "surprise", "x": 1},
    ]  # fmt: skip
    made = make([{"items": items}])
    calls = [call for one in told(made.answers[0]["messages"]) for call in (one[2:3] or [()])[0]]
    assert [call for call in calls if isinstance(call, tuple)] == [
        ("patch", {"input": "*** Begin"}),
        ("code_interpreter", {"input": "1+1"}),
        ("ask", {"q": 1}),
        ("web_search", {"type": "search", "query": "x"}),
    ]
    assert made.answers[0]["messages"][-1]["content"] == "No."
    assert {name: made.kinds[name] for name in ("hidden_reasoning", "part_left_out")} == {
        "hidden_reasoning": 1,
        "part_left_out": 1,
    }
    assert made.kinds["call_without_result"] == 1


def test_bare_items_on_both_sides_of_an_entry(make):
    """Without a request around them; who instructs, speaks from elsewhere and offers tools."""
    offered = [{"type": "namespace", "name": "sky", "tools": [{"type": "function", **WEATHER}]}]
    entry = {
        "instructions": [{"role": "developer", "content": "Be brief."}],
        "input": [
            {"role": "user", "content": "How warm is Ulm?"},
            {"type": "agent_message", "content": [{"type": "text", "text": "Hurry."}, {"data": 1}]},
        ],
        "output": flat(ITEMS[1:4]),
        "tools": offered,
    }
    made = make([entry])
    assert made.report.format == "responses"
    said = told(made.answers[0]["messages"])
    assert [one[0] for one in said[:3]] == ["system", "user", "user"]
    assert made.answers[0]["messages"][2]["content"] == "Hurry."
    assert said[3:] == STORY[1:4]
    assert made.tools["weather"] == WEATHER
    entry = {"input": "How warm is Ulm?", "output": flat(ITEMS[1:4])}
    assert told(make([entry], name="text.jsonl").answers[0]["messages"]) == STORY[:4]


def test_a_streamed_response_is_its_last_state_or_its_finished_items(make):
    def stream(*events: dict) -> str:
        return "".join(f"data: {json.dumps(one)}\n\n" for one in events)

    begun = {"type": "response.created", "response": {"id": "r1", "output": []}}
    done = [{"type": "response.output_item.done", "item": item} for item in ITEMS[1]]
    whole = {"type": "response.completed", "response": {"id": "r1", "output": ITEMS[1]}}
    request = {"input": "How warm is Ulm?"}
    for at, events in enumerate(((begun, *done), (begun, *done, whole))):
        made = make([{"request": request, "response": stream(*events)}], name=f"{at}.jsonl")
        assert told(made.answers[0]["messages"]) == STORY[:2]
    lost = {"type": "error", "error": {"message": "Overloaded"}}
    made = make([{"request": request, "response": stream(begun, lost)}], name="lost.jsonl")
    assert (made.answers[0]["status"], made.answers[0]["error"]) == ("error", "Overloaded")


# --- sessions --------------------------------------------------------------------------------


def test_atif_copied_steps_are_context_and_sub_agents_are_linked(make):
    inner = {
        **ATIF,
        "trajectory_id": "t2",
        "steps": [step(1, "user", "Look."), step(2, "agent", "Seen.")],
    }
    copied = [{**one, "is_copied_context": True} for one in ATIF_STEPS[:3]]
    made = make({**ATIF, "steps": [*copied, *ATIF_STEPS[3:]], "subagent_trajectories": [inner]})
    assert len(made.items[0]["prompt"]) == 5
    assert [line["key"] for line in made.fixtures] == [{"city": "Bonn"}]
    assert made.items[1]["metadata"]["imported_from"]["parent"] == "t1"
    assert made.kinds == {"context_step": 3, "sub_agent": 1}


def test_atif_results_without_an_id_belong_to_their_step(make):
    steps = json.loads(json.dumps(ATIF_STEPS))
    steps[1]["observation"]["results"][0]["source_call_id"] = None
    steps[1]["tool_calls"].append(
        {"tool_call_id": "x", "function_name": "weather", "arguments": {}}
    )
    steps[2]["observation"] = {"results": [{"content": "Your answer could not be read."}]}
    made = make({**ATIF, "schema_version": "ATIF-v1.0", "steps": steps})
    assert made.fixtures[0]["result"] == '{"temp_c": 19}'
    assert made.kinds["call_without_result"] == 1
    assert ("user", "Your answer could not be read.") in told(made.answers[0]["messages"])


def test_claude_code_sub_agents_are_samples_of_their_own(make):
    task = {"type": "tool_use", "id": "toolu_task", "name": "Task", "input": {"prompt": "Look."}}
    main = [
        {"role": "user", "content": "Ask somebody."},
        {"role": "assistant", "content": [task]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_task", "content": "seen"}]},
        {"role": "assistant", "content": "Somebody saw it."},
    ]  # fmt: skip
    inner = [{"role": "user", "content": "Look."}, *BLOCKS[1:4]]
    side = json.loads(re.sub(r'"u(\d)', r'"v\1', json.dumps(claude_lines(inner)[1:])))
    for line in side:
        line["isSidechain"] = True
    own = claude_lines(main)
    made = make([*own[:3], *side, *own[3:]])
    first, second = made.items
    assert first["metadata"]["sample_id"] == "s1"
    assert second["prompt"] == "Look."
    about = second["metadata"]["imported_from"]
    assert (about["parent"], about["parent_call"]) == ("s1", "toolu_task")
    assert made.kinds["sub_agent"] == 1
    assert [line["name"] for line in made.fixtures] == ["Task", "weather"]


def test_claude_code_a_rewound_session_is_a_branch_of_its_own(make):
    own = claude_lines()
    back = {**own[-1], "type": "user", "uuid": "w1", "parentUuid": "u3-0"}
    back["message"] = {"role": "user", "content": "And Kiel?"}
    answer = {**own[-1], "uuid": "w2", "parentUuid": "w1"}
    answer["message"] = {
        "role": "assistant",
        "id": "msg_w",
        "content": [tool_use("Kiel", "toolu_w")],
    }
    made = make([*own, back, answer])
    assert made.report.counts.samples == 2
    assert made.items[1]["prompt"][-1]["content"] == "And Kiel?"
    assert made.items[1]["metadata"]["imported_from"]["parent"] == "s1"
    assert [line["key"] for line in made.fixtures] == [{"city": "Ulm"}, {"city": "Bonn"}]
    assert made.kinds["other_branch"] == made.kinds["call_without_result"] == 1


def test_claude_code_results_between_the_blocks_of_one_answer(make):
    """Tools start while the answer is still coming: two calls, one turn."""
    own = claude_lines(
        [
            {"role": "user", "content": "Both."},
            {"role": "assistant", "content": [tool_use("Ulm", "toolu_1"), tool_use("Bonn", "toolu_2")]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "19"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "20"}]},
            {"role": "assistant", "content": "19 and 20."},
        ]
    )  # fmt: skip
    own[3], own[4] = own[4], own[3]
    own.insert(6, {**own[4], "uuid": "copy"})
    made = make(own)
    assert [one[0] for one in told(made.answers[0]["messages"])] == [
        *("user", "assistant", "tool", "tool", "assistant")
    ]
    assert [line["result"] for line in made.fixtures] == ["19", "20"]
    assert made.kinds["recorded_twice"] == 1


def test_claude_code_a_session_that_begins_with_the_model_keeps_its_calls(make):
    made = make(claude_lines(BLOCKS[1:]))
    assert made.kinds["prompt_not_recorded"] == 1
    assert made.items[0]["prompt"] == NOT_RECORDED
    assert made.report.counts.fixtures == 2


def test_claude_code_what_the_program_says_is_not_the_model(make):
    own = claude_lines()
    synthetic = {**own[-1], "uuid": "x", "isApiErrorMessage": True}
    synthetic["message"] = {"role": "assistant", "model": "<synthetic>", "content": "API Error"}
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "y", "sessionId": "s1"}
    made = make([*own, synthetic, boundary])
    assert made.kinds["failed_exchange"] == made.kinds["compacted"] == 1
    assert told(made.answers[0]["messages"])[-1] == STORY[-1]


def test_codex_what_only_an_event_tells_is_taken(make):
    made = make([one for one in codex_lines() if one["payload"].get("role") != "user"])
    assert told(made.answers[0]["messages"])[0] == STORY[0]
    assert made.items[0]["user_turns"] == ["And Bonn?"]


def test_codex_before_lines_had_kinds(make):
    items = [one["payload"] for one in codex_lines() if one["type"] == "response_item"]
    made = make([{"id": "s0", "timestamp": "t", "instructions": "Be brief."}, *items])
    assert made.report.format == "codex"
    assert [one[0] for one in told(made.answers[0]["messages"])[:2]] == ["system", "user"]


def test_codex_items_that_are_told_complete_are_taken_once(make):
    own = codex_lines()
    for line in own:
        if line["payload"].get("type") == "user_message":
            content = [{"type": "text", "text": line["payload"]["message"]}]
            item = {"type": "UserMessage", "id": "x", "content": content}
            line["payload"] = {"type": "item_completed", "item": item}
    made = make([*own, {"timestamp": "t", "type": "world_state", "payload": {}}])
    assert len(made.answers[0]["messages"]) == len(STORY)
    assert made.kinds["recorded_twice"] == 3


def test_codex_what_a_sub_agent_has_of_its_parent_is_prompt(make):
    own = [{**line, "ordinal": at} for at, line in enumerate(codex_lines())]
    start = next(at for at, line in enumerate(own) if line["payload"].get("call_id") == SECOND)
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "p1"}}}
    meta = {**own[0]["payload"], "source": source, "subagent_history_start_ordinal": start}
    made = make([{**own[0], "payload": meta}, *own[1:]])
    assert len(made.items[0]["prompt"]) == 5
    assert [line["key"] for line in made.fixtures] == [{"city": "Bonn"}]


def test_codex_a_sub_agent_names_its_parent(make):
    own = codex_lines()
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "p1", "depth": 1}}}
    own[0]["payload"] = {**own[0]["payload"], "source": source}
    made = make(own)
    assert made.items[0]["metadata"]["imported_from"]["parent"] == "p1"


def codex(kind: str, **payload: object) -> dict:
    return {"timestamp": "t", "type": kind, "payload": payload}


def test_codex_what_happened_besides_the_talk_is_told(make):
    own = codex_lines()
    own[0]["payload"] = {**own[0]["payload"], "forked_from_id": "s0"}
    more = [
        codex("event_msg", type="exec_command_end", call_id=FIRST),
        codex("event_msg", type="stream_error", message="the stream was lost"),
        codex("event_msg", type="agent_message", message="Anything else?"),
        codex("response_item", type="compaction", encrypted_content="x"),
        codex("compacted", message="They talked about Ulm."),
    ]
    made = make([*own, *more])
    said = told(made.answers[0]["messages"])
    assert said[len(STORY) - 1] == ("assistant", STORY[-1][1] + "\n\nAnything else?")
    assert said[-1] == ("user", "They talked about Ulm.")
    assert made.items[0]["metadata"]["imported_from"]["parent"] == "s0"
    places = {kind.kind: [one.detail for one in kind.places] for kind in made.report.unmapped}
    assert places["failed_exchange"] == ["the stream was lost"]
    assert f"exec_command_end {FIRST}" in places["recorded_twice"]
    assert made.kinds["compacted"] == 2


def test_gemini_cli_several_sessions_a_summary_and_a_sub_agent(make):
    thought = [{"text": THOUGHT, "thought": True}, {"text": "Hello."}]
    other = [
        {**GEMINI, "sessionId": "s2", "kind": "subagent"},
        {"id": "n1", "type": "user", "content": "Hi"},
        {"id": "n2", "type": "gemini", "content": thought},
    ]
    summed = {"$set": {"messages": GEMINI_MESSAGES[3:]}}
    made = make([GEMINI, *GEMINI_MESSAGES, summed, *other])
    assert [one["metadata"]["sample_id"] for one in made.items] == ["s1", "s2"]
    first, second = made.answers
    assert told(first["messages"]) == STORY
    assert told(second["messages"])[1] == ("assistant", "Hello.", [], THOUGHT)
    assert made.kinds["compacted"] == made.kinds["sub_agent"] == 1


def test_gemini_cli_a_rewound_chat_keeps_what_was_taken_back(make):
    again = [{**GEMINI_MESSAGES[3], "id": "n4", "content": "And Kiel?"}]
    made = make([GEMINI, *GEMINI_MESSAGES, {"$rewindTo": "m4"}, *again])
    assert made.report.counts.samples == 2
    assert [len(answer["messages"]) for answer in made.answers] == [5, 8]
    assert made.kinds["other_branch"] == 1
    assert [line["key"] for line in made.fixtures] == [{"city": "Ulm"}, {"city": "Bonn"}]


def test_mini_swe_agent_code_in_a_text_stays_text(make):
    messages = [
        {"role": "system", "content": "Write one bash block."},
        {"role": "user", "content": "List."},
        {"role": "assistant", "content": "THOUGHT: so\n```bash\nls\n```"},
        {"role": "user", "content": [{"type": "text", "text": "<returncode>0</returncode>"}]},
    ]
    made = make({"trajectory_format": "mini-swe-agent-1", "info": {}, "messages": messages})
    assert made.report.format == "mini-swe-agent"
    assert made.report.counts.fixtures == made.report.counts.tools == 0
    assert made.kinds == {"said_at_the_end": 1}


def test_mini_swe_agent_where_the_model_was_asked_for_responses(make):
    answers = [{"object": "response", "output": ITEMS[at]} for at in (1, 3)]
    failed = [{"object": "response", "error": "lost"}]
    messages = [ITEMS[0][0], answers[0], *ITEMS[2], *failed, answers[1]]
    made = make({**MINI, "messages": messages})
    assert made.report.format == "mini-swe-agent"
    assert told(made.answers[0]["messages"]) == STORY[:4]


def test_sharegpt_an_instruction_beside_the_turns_and_results_with_names(make):
    turns = [dict(one) for one in SHAREGPT["conversations"][:5]]
    turns[3]["value"] = json.dumps({"name": "weather", "content": {"temp_c": 19}})
    made = make([{**SHAREGPT, "system": "Be brief.", "conversations": turns}])
    system, *said = made.answers[0]["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert (said[2]["name"], said[2]["content"]) == ("weather", '{"temp_c":19}')


def test_atif_a_copied_step_among_own_ones_is_left_out(make):
    again = {**ATIF_STEPS[0], "is_copied_context": True}
    made = make({**ATIF, "steps": [*ATIF_STEPS, again]})
    assert told(made.answers[0]["messages"]) == STORY
    assert made.kinds["recorded_twice"] == 1


def test_langchain_messages_of_other_roles_and_times(make):
    legacy = {"name": "weather", "arguments": '{"city": "Ulm"}'}
    messages = [
        {"type": "chat", "role": "developer", "content": "Be brief."},
        {"type": "chat", "role": "user", "content": "How warm is Ulm?"},
        {"type": "ai", "content": "", "additional_kwargs": {"function_call": legacy}},
        {"type": "function", "name": "weather", "content": '{"temp_c": 19}'},
        {"type": "chat", "role": "model", "content": "It is 19 degrees in Ulm."},
    ]
    made = make([{"messages": [{"type": "human", "content": "Hello."}, *messages]}])
    assert told(made.answers[0]["messages"])[1:] == [
        ("system", "Be brief."),
        STORY[0],
        ("assistant", "", [("weather", {"city": "Ulm"})]),
        *STORY[2:4],
    ]


def test_langchain_runs_that_are_no_talk_are_told(make):
    run = {"run_type": "llm", "inputs": {"messages": LANGCHAIN[:3]}, "dotted_order": "a.1"}
    run["outputs"] = {"messages": [LANGCHAIN[3]]}
    tool = {"run_type": "tool", "inputs": {}, "outputs": {}, "dotted_order": "a.2"}
    root = {"id": "r", "run_type": "chain", "inputs": {}, "dotted_order": "a"}
    stray = {"run_type": "retriever", "inputs": {}, "outputs": {}, "parent_run_id": "r"}
    made = make([{**root, "child_runs": [run, tool]}, stray])
    assert told(made.answers[0]["messages"]) == STORY[:4]
    [left] = [one for one in made.report.unmapped if one.kind == "line_left_out"]
    assert [one.detail for one in left.places] == [
        "a tool that ran after the model's last turn",
        "a run of retriever",
    ]


def test_sharegpt_with_the_field_names_of_chat_messages(make):
    call = {"id": "c", "function": {"name": "weather", "arguments": '{"city": "Ulm"}'}}
    turns = [
        {"role": "user", "content": "Ulm?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "19"},
        {"role": "assistant", "content": "<tool_call>{broken</tool_call>"},
    ]
    made = make([{"conversations": turns}])
    assert [line["result"] for line in made.fixtures] == ["19"]
    assert made.kinds == {"malformed_call": 1, "tool_without_schema": 1}


def test_claude_code_as_it_prints_a_session(make):
    """`stream-json` begins with the model, and names the call of a sub-agent."""
    line = {"session_id": "q1", "parent_tool_use_id": None}
    task = {"type": "tool_use", "id": "toolu_task", "name": "Task", "input": {"prompt": "Look."}}
    inner = {"id": "m2", "content": [{"type": "text", "text": "Seen."}]}
    result = [{"type": "tool_result", "tool_use_id": "toolu_task", "content": "Seen."}]
    made = make(
        [
            {"type": "system", "subtype": "init", "session_id": "q1", "tools": ["Task"]},
            {**line, "type": "assistant", "message": {"id": "m1", "content": [task]}},
            {**line, "type": "assistant", "message": inner, "parent_tool_use_id": "toolu_task"},
            {**line, "type": "user", "message": {"content": result}},
            {**line, "type": "result", "subtype": "success", "result": "Done."},
        ]
    )
    assert [item["prompt"] for item in made.items] == [NOT_RECORDED, "Look."]
    assert made.items[1]["metadata"]["imported_from"]["parent_call"] == "toolu_task"
    assert made.kinds["line_left_out"] == 2


def test_sessions_of_one_name_are_told_apart(make):
    other = {**ATIF, "steps": ATIF_STEPS[:3]}
    made = make([ATIF, other, ATIF])
    assert [item["metadata"]["sample_id"] for item in made.items] == ["t1", "t1-2"]
    assert made.kinds == {"duplicate": 1, "session_renamed": 1}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([{**ATIF, "steps": 5}], r":1: steps: must be a list"),
        ([{**ATIF, "steps": [{"source": "x"}]}], r":1: steps\[0\].source: must be one of"),
        ([*claude_lines(), {"type": "user", "message": 5}], r"message: must be an object"),
        ([*anthropic_exchanges(), {"request": {"messages": 1}, "response": {}}], r":5: messages"),
        ([{"messages": [{"role": "x", "content": [tool_use("", "")]}, *BLOCKS]}], "role"),
        ([flat(ITEMS), 5], r":2: must be a JSON object"),
    ],
)
def test_bad_input_is_named(make, source, message):
    with pytest.raises(BadInput, match=message):
        make(source)
