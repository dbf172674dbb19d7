"""One small conversation, written by hand in the shape of every message and session format.

The user asks for Ulm, the model thinks, says a word, calls a tool and answers; then for Bonn, where
the tool fails."""

import json

THOUGHT = "I look it up."
FIRST, SECOND = "call_weather_0001", "call_weather_0002"
STORY = [
    ("user", "How warm is Ulm?"),
    ("assistant", "Let me see.", [("weather", {"city": "Ulm"})], THOUGHT),
    ("tool", '{"temp_c": 19}'),
    ("assistant", "It is 19 degrees in Ulm."),
    ("user", "And Bonn?"),
    ("assistant", "", [("weather", {"city": "Bonn"})]),
    ("tool", "no such station", "error"),
    ("assistant", "I do not know about Bonn."),
]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
WEATHER = {"name": "weather", "description": "Weather of a city.", "parameters": SCHEMA}


def lines(*values: object) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def document(value: object) -> bytes:
    return json.dumps(value, indent=1).encode()


# --- Anthropic Messages ----------------------------------------------------------------------

ANTHROPIC_TOOL = {"name": "weather", "description": "Weather of a city.", "input_schema": SCHEMA}


def tool_use(city: str, call_id: str) -> dict:
    return {"type": "tool_use", "id": call_id, "name": "weather", "input": {"city": city}}


BLOCKS = [
    {"role": "user", "content": "How warm is Ulm?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": THOUGHT, "signature": "x"},
            {"type": "text", "text": "Let me see."},
            tool_use("Ulm", FIRST),
        ],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": FIRST, "content": '{"temp_c": 19}'}],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "It is 19 degrees in Ulm."}]},
    {"role": "user", "content": [{"type": "text", "text": "And Bonn?"}]},
    {"role": "assistant", "content": [tool_use("Bonn", SECOND)]},
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": SECOND,
                "content": [{"type": "text", "text": "no such station"}],
                "is_error": True,
            }
        ],
    },
    {"role": "assistant", "content": "I do not know about Bonn."},
]


def without_thoughts(message: dict) -> dict:
    """As many clients send an answer back."""
    content = message["content"]
    kept = content if isinstance(content, str) else [b for b in content if b["type"] != "thinking"]
    return {**message, "content": kept}


def anthropic_exchanges() -> list[dict]:
    exchanges = []
    for at, message in enumerate(BLOCKS):
        if message["role"] == "assistant":
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            sent = [without_thoughts(one) for one in BLOCKS[:at]]
            answer = {"id": f"msg_{at}", "type": "message", "role": "assistant", "content": blocks}
            request = {"model": "claude", "messages": sent, "tools": [ANTHROPIC_TOOL]}
            exchanges.append({"request": request, "status": 200, "response": answer})
    return exchanges


# --- OpenAI Responses ------------------------------------------------------------------------


def item_call(city: str, call_id: str) -> dict:
    arguments = json.dumps({"city": city})
    return {"type": "function_call", "call_id": call_id, "name": "weather", "arguments": arguments}


def said(text: str) -> dict:
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }


ITEMS = [
    [{"role": "user", "content": "How warm is Ulm?"}],
    [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]},
        said("Let me see."),
        item_call("Ulm", FIRST),
    ],
    [{"type": "function_call_output", "call_id": FIRST, "output": '{"temp_c": 19}'}],
    [said("It is 19 degrees in Ulm.")],
    [{"role": "user", "content": [{"type": "input_text", "text": "And Bonn?"}]}],
    [item_call("Bonn", SECOND)],
    [
        {
            "type": "function_call_output",
            "call_id": SECOND,
            "output": '{"error": "no such station"}',
        }
    ],
    [said("I do not know about Bonn.")],
]


def flat(parts: list[list[dict]]) -> list[dict]:
    return [item for part in parts for item in part]


def responses_exchanges(*, chained: bool) -> list[dict]:
    """With the whole history, or with what is new and the name of the answer before it."""
    exchanges = []
    sent_from, before = 0, None
    for at in (1, 3, 5, 7):
        sent = [item for item in flat(ITEMS[sent_from:at]) if item.get("type") != "reasoning"]
        request = {"model": "gpt", "input": sent, "tools": [{"type": "function", **WEATHER}]}
        if chained and before:
            request["previous_response_id"] = before
        response = {"id": f"resp_{at}", "object": "response", "status": "completed"}
        response["output"] = ITEMS[at]
        exchanges.append({"request": request, "status": 200, "response": response})
        before = response["id"]
        sent_from = at + 1 if chained else 0
    return exchanges


# --- sessions --------------------------------------------------------------------------------


def atif_call(city: str, call_id: str) -> dict:
    return {"tool_call_id": call_id, "function_name": "weather", "arguments": {"city": city}}


def step(number: int, source: str, message: str, **more) -> dict:
    return {"step_id": number, "source": source, "message": message, **more}


def observed(call_id: str | None, content: str, **more) -> dict:
    return {"results": [{"source_call_id": call_id, "content": content, **more}]}


ATIF_STEPS = [
    step(1, "user", "How warm is Ulm?"),
    step(
        2,
        "agent",
        "Let me see.",
        reasoning_content=THOUGHT,
        tool_calls=[atif_call("Ulm", FIRST)],
        observation=observed(FIRST, '{"temp_c": 19}'),
    ),
    step(3, "agent", "It is 19 degrees in Ulm."),
    step(4, "user", "And Bonn?"),
    step(
        5,
        "agent",
        "",
        tool_calls=[atif_call("Bonn", SECOND)],
        observation=observed(SECOND, "no such station", extra={"is_error": True}),
    ),
    step(6, "agent", "I do not know about Bonn."),
]
ATIF = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s1",
    "trajectory_id": "t1",
    "agent": {
        "name": "a",
        "version": "1",
        "tool_definitions": [{"type": "function", "function": WEATHER}],
    },
    "steps": ATIF_STEPS,
}


def claude_lines(messages: list[dict] = BLOCKS, **more) -> list[dict]:
    """A line for each block, as the program writes them."""
    made: list[dict] = [
        {
            "type": "file-history-snapshot",
            "messageId": "m",
            "snapshot": {},
            "isSnapshotUpdate": False,
        }
    ]
    parent = None
    for at, message in enumerate(messages):
        content = message["content"]
        is_answer = message["role"] == "assistant"
        if is_answer and isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for number, block in enumerate(content if is_answer else [content]):
            uuid = f"u{at}-{number}"
            inner = {"role": message["role"], "content": [block] if is_answer else block}
            if is_answer:
                inner |= {"id": f"msg_{at}", "type": "message", "model": "claude"}
            line = {"parentUuid": parent, "isSidechain": False, "sessionId": "s1", "uuid": uuid}
            made.append({**line, "type": message["role"], "message": inner, **more})
            parent = uuid
    return made


def codex_lines() -> list[dict]:
    def line(kind: str, payload: dict) -> dict:
        return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}

    items = [dict(item) for item in flat(ITEMS)]
    for item in items:
        if "role" in item and isinstance(item["content"], str):
            item["type"] = "message"
            item["content"] = [{"type": "input_text", "text": item["content"]}]
        if item.get("call_id") == SECOND and "output" in item:
            item["output"] = "Exit code: 1\nWall time: 0 seconds\nOutput:\nno such station"
    made = [line("session_meta", {"id": "s1", "cli_version": "0.77.0", "source": "cli"})]
    for item in items:
        if item.get("type") == "reasoning":
            made.append(line("event_msg", {"type": "agent_reasoning", "text": THOUGHT}))
        made.append(line("response_item", item))
        if item.get("role") == "user":
            text = item["content"][0]["text"]
            made.append(line("event_msg", {"type": "user_message", "message": text}))
            made.append(line("turn_context", {"model": "gpt-codex"}))
    made.append(line("event_msg", {"type": "token_count", "info": None}))
    return made


def gemini_call(city: str, call_id: str, status: str, **response) -> dict:
    result = [{"functionResponse": {"id": call_id, "name": "weather", "response": response}}]
    call = {"id": call_id, "name": "weather", "args": {"city": city}, "status": status}
    return {**call, "result": result}


GEMINI_MESSAGES = [
    {"id": "m1", "type": "user", "content": "How warm is Ulm?"},
    {
        "id": "m2",
        "type": "gemini",
        "content": "Let me see.",
        "thoughts": [{"subject": "", "description": THOUGHT}],
        "toolCalls": [gemini_call("Ulm", FIRST, "success", output='{"temp_c": 19}')],
        "model": "gemini",
    },
    {"id": "m3", "type": "gemini", "content": "It is 19 degrees in Ulm.", "model": "gemini"},
    {"id": "m4", "type": "user", "content": [{"text": "And Bonn?"}]},
    {
        "id": "m5",
        "type": "gemini",
        "content": "",
        "toolCalls": [gemini_call("Bonn", SECOND, "error", error="no such station")],
    },
    {"id": "m6", "type": "gemini", "content": [{"text": "I do not know about Bonn."}]},
]
GEMINI = {"sessionId": "s1", "projectHash": "p", "startTime": "t", "lastUpdated": "t"}


def chat_call(city: str, call_id: str) -> dict:
    function = {"name": "weather", "arguments": json.dumps({"city": city})}
    return {"id": call_id, "type": "function", "function": function}


MINI = {
    "info": {"exit_status": "Submitted", "submission": "", "model_stats": {}, "mini_version": "2"},
    "trajectory_format": "mini-swe-agent-1.1",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "How warm is Ulm?"}]},
        {
            "role": "assistant",
            "content": "Let me see.",
            "reasoning_content": THOUGHT,
            "tool_calls": [chat_call("Ulm", FIRST)],
            "extra": {"cost": 0.1},
        },
        {"role": "tool", "tool_call_id": FIRST, "content": '{"temp_c": 19}', "extra": {"returncode": 0}},
        {"role": "assistant", "content": "It is 19 degrees in Ulm."},
        {"role": "user", "content": "And Bonn?"},
        {"role": "assistant", "content": None, "tool_calls": [chat_call("Bonn", SECOND)]},
        {"role": "tool", "tool_call_id": SECOND, "content": "no such station", "extra": {"returncode": 2}},
        {"role": "assistant", "content": "I do not know about Bonn."},
        {"role": "exit", "content": "", "extra": {"exit_status": "Submitted"}},
    ],
}  # fmt: skip


CHAT = [
    {key: value for key, value in one.items() if key != "extra"}
    for one in MINI["messages"]
    if one["role"] != "exit"
]
CHAT[0] = {"role": "user", "content": "How warm is Ulm?"}
CHAT[6] = {**CHAT[6], "content": '{"error": "no such station"}'}


def chat_exchanges() -> list[dict]:
    """As a proxy keeps them: bodies as texts below what was said about them."""
    made = []
    for at, message in enumerate(CHAT):
        if message["role"] == "assistant":
            request = {"messages": CHAT[:at], "tools": [{"type": "function", "function": WEATHER}]}
            response = {"id": f"chatcmpl-{at}", "choices": [{"index": 0, "message": message}]}
            made.append(
                {
                    "request": {"method": "POST", "body": json.dumps(request)},
                    "response": {"headers": {}, "body": json.dumps(response)},
                }
            )
    return made


def lc_call(city: str, call_id: str) -> dict:
    return {"name": "weather", "args": {"city": city}, "id": call_id, "type": "tool_call"}


LANGCHAIN = [
    {"type": "human", "content": "How warm is Ulm?"},
    {
        "type": "ai",
        "content": [
            {"type": "thinking", "thinking": THOUGHT},
            {"type": "text", "text": "Let me see."},
            tool_use("Ulm", FIRST),
        ],
        "tool_calls": [lc_call("Ulm", FIRST)],
        "invalid_tool_calls": [],
    },
    {"type": "tool", "content": '{"temp_c": 19}', "tool_call_id": FIRST, "name": "weather", "status": "success"},
    {"type": "ai", "content": "It is 19 degrees in Ulm."},
    {"type": "human", "content": "And Bonn?"},
    {"type": "ai", "content": "", "tool_calls": [lc_call("Bonn", SECOND)]},
    {"type": "tool", "content": "no such station", "tool_call_id": SECOND, "name": "weather", "status": "error"},
    {"type": "ai", "content": "I do not know about Bonn."},
]  # fmt: skip
CLASSES = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}


def constructor(message: dict) -> dict:
    path = ["langchain", "schema", "messages", CLASSES[message["type"]]]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": message}


def langsmith() -> dict:
    """A trace as it is exported, its runs out of order."""
    runs = [
        {
            "id": f"llm-{at}",
            "run_type": "llm",
            "dotted_order": f"root.{at}",
            "inputs": {"messages": [[constructor(one) for one in LANGCHAIN[:at]]]},
            "outputs": {"generations": [[{"text": "", "message": constructor(LANGCHAIN[at])}]]},
            "extra": {"invocation_params": {"tools": [{"type": "function", "function": WEATHER}]}},
        }
        for at in (5, 1, 7, 3)
    ]
    tool = {"id": "t", "run_type": "tool", "dotted_order": "root.2", "inputs": {}, "outputs": {}}
    root = {
        "id": "trace-1",
        "run_type": "chain",
        "dotted_order": "root",
        "inputs": {},
        "outputs": {},
    }
    return {**root, "child_runs": [*runs[:2], tool, *runs[2:]]}


def shared(who: str, value: object) -> dict:
    return {"from": who, "value": value if isinstance(value, str) else json.dumps(value)}


def weather_call(city: str) -> dict:
    return {"name": "weather", "arguments": {"city": city}}


SHAREGPT = {
    "id": "s1",
    "tools": json.dumps([WEATHER]),
    "conversations": [
        shared("human", "How warm is Ulm?"),
        shared("gpt", f"<think>{THOUGHT}</think>\n\nLet me see."),
        shared("function_call", weather_call("Ulm")),
        shared("observation", '{"temp_c": 19}'),
        shared("gpt", "It is 19 degrees in Ulm."),
        shared("human", "And Bonn?"),
        shared("function_call", [weather_call("Bonn")]),
        shared("observation", {"error": "no such station"}),
        shared("gpt", "I do not know about Bonn."),
    ],
}
HERMES = {
    "conversations": [
        shared("system", f"Use them. <tools>\n{json.dumps(WEATHER)}\n</tools>"),
        shared("human", "How warm is Ulm?"),
        shared(
            "gpt",
            f"<think>{THOUGHT}</think>Let me see.\n"
            f"<tool_call>\n{json.dumps(weather_call('Ulm'))}\n</tool_call>",
        ),
        shared("tool", '<tool_response>\n{"temp_c": 19}\n</tool_response>'),
        shared("gpt", "It is 19 degrees in Ulm."),
        shared("human", "And Bonn?"),
        shared("gpt", f"<tool_call>{json.dumps(weather_call('Bonn'))}</tool_call>"),
        shared("tool", '<tool_response>{"error": "no such station"}</tool_response>'),
        shared("gpt", "I do not know about Bonn."),
    ],
}

_claude = claude_lines()
# What it is → the format that it is known as, and the bytes.
SOURCES: dict[str, tuple[str, bytes]] = {
    "anthropic blocks": ("anthropic", lines({"tools": [ANTHROPIC_TOOL], "messages": BLOCKS})),
    "anthropic list": ("anthropic", document(BLOCKS)),
    "anthropic rows": ("anthropic", lines({"source": "x", "interactions": anthropic_exchanges()})),
    "anthropic exchanges": ("anthropic", lines(*anthropic_exchanges())),
    "openai exchanges": ("openai", lines(*chat_exchanges())),
    "responses items": ("responses", document(flat(ITEMS))),
    "responses rows": ("responses", lines({"interactions": responses_exchanges(chained=False)})),
    "responses exchanges": ("responses", lines(*responses_exchanges(chained=False))),
    "responses chained": ("responses", lines(*responses_exchanges(chained=True))),
    "responses rollout": (
        "responses",
        lines(
            {
                "responses_create_params": {"input": ITEMS[0], "tools": [WEATHER]},
                "response": {"id": "r", "output": flat(ITEMS[1:])},
                "reward": 1.0,
            }
        ),
    ),
    "atif": ("atif", document(ATIF)),
    "claude-code": ("claude-code", lines(*_claude)),
    "codex": ("codex", lines(*codex_lines())),
    "gemini-cli document": ("gemini-cli", document({**GEMINI, "messages": GEMINI_MESSAGES})),
    "gemini-cli lines": (
        "gemini-cli",
        lines(GEMINI, *GEMINI_MESSAGES[:1], {**GEMINI_MESSAGES[1], "toolCalls": []},
              *GEMINI_MESSAGES[1:], {"$set": {"lastUpdated": "u"}}),
    ),
    "mini-swe-agent": ("mini-swe-agent", document(MINI)),
    "langchain list": ("langchain", document(LANGCHAIN)),
    "langchain data": (
        "langchain",
        lines({"messages": [{"type": one["type"], "data": one} for one in LANGCHAIN]}),
    ),
    "langchain lc": ("langchain", lines([constructor(one) for one in LANGCHAIN])),
    "langchain state": ("langchain", document({"values": {"messages": LANGCHAIN}, "next": []})),
    "responses listed": ("responses", document({"object": "list", "data": flat(ITEMS)})),
    "langsmith trace": ("langchain", document(langsmith())),
    "langsmith runs": (
        "langchain",
        lines(*(run for run in langsmith()["child_runs"])),
    ),
    "sharegpt": ("sharegpt", document([SHAREGPT])),
    "sharegpt hermes": ("sharegpt", lines(HERMES)),
}  # fmt: skip
