"""One small conversation as every kind of span log holds it, written by hand: the same four calls of
a model and two runs of a tool, the second of which fails."""

import json

from tests.unit.datasets.importing.talks import WEATHER, assistant, call, result, user

TRACE = "5" * 32
MODEL = "m-1"
FAILURE = "no such city"
CONVERSATION = [
    {"role": "system", "content": "You know the weather."},
    user("How warm is Ulm?"),
    call("weather", '{"city": "Ulm"}', "a"),
    result('{"temp_c": 19}', "a"),
    assistant("It is 19 degrees in Ulm."),
    user("And in Bonn?"),
    call("weather", '{"city": "Bonn"}', "b"),
    result(FAILURE, "b"),
    assistant("I could not find out."),
]
ANSWERS = [at for at, one in enumerate(CONVERSATION) if one["role"] == "assistant"]
RUNS = [("a", "Ulm", '{"temp_c": 19}', None), ("b", "Bonn", None, FAILURE)]


def value(raw: object) -> dict:
    if isinstance(raw, bool):
        return {"boolValue": raw}
    if isinstance(raw, int):
        return {"intValue": str(raw)}
    if isinstance(raw, list):
        return {"arrayValue": {"values": [value(one) for one in raw]}}
    if isinstance(raw, dict):
        return {"kvlistValue": {"values": pairs(raw)}}
    return {"stringValue": raw}


def pairs(raw: dict) -> list[dict]:
    return [{"key": key, "value": value(one)} for key, one in raw.items()]


def span(number: int, name: str, attributes: dict, **more) -> dict:
    error = more.pop("error", None)
    made = {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "parentSpanId": "f" * 16,
        "name": name,
        "startTimeUnixNano": str(1_700_000_000_000_000_000 + number),
        "endTimeUnixNano": str(1_700_000_000_000_000_001 + number),
        "attributes": pairs(attributes),
        "status": {} if error is None else {"code": "STATUS_CODE_ERROR", "message": error},
    }
    return {key: one for key, one in {**made, **more}.items() if one is not None}


def otlp(spans: list[dict], scope: str = "by.hand") -> dict:
    return {
        "resourceSpans": [
            {"resource": {}, "scopeSpans": [{"scope": {"name": scope}, "spans": spans}]}
        ]
    }


def logs(records: list[dict]) -> dict:
    return {"resourceLogs": [{"scopeLogs": [{"scope": {"name": "x"}, "logRecords": records}]}]}


def parts_of(message: dict, result_name: str = "response") -> dict:
    parts = []
    if message["role"] == "tool":
        parts.append(
            {
                "type": "tool_call_response",
                "id": message["tool_call_id"],
                result_name: message["content"],
            }
        )
    elif message["content"]:
        parts.append({"type": "text", "content": message["content"]})
    for one in message.get("tool_calls", ()):
        function = one["function"]
        arguments = json.loads(function["arguments"])
        parts.append(
            {
                "type": "tool_call",
                "id": one["id"],
                "name": function["name"],
                "arguments": arguments,
            }
        )
    return {"role": message["role"], "parts": parts}


def in_order(models: list[dict], tools: list[dict]) -> list[dict]:
    """As they end: model, tool, model, model, tool, model."""
    return [models[0], tools[0], models[1], models[2], tools[1], models[3]]


def number_of(turn: int) -> int:
    return 10 * turn + 1


def genai_tools() -> list[dict]:
    return [
        span(
            number_of((0, 2)[k]) + 1,
            "execute_tool weather",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "weather",
                "gen_ai.tool.call.id": call_id,
                "gen_ai.tool.call.arguments": json.dumps({"city": city}),
                **({} if told is None else {"gen_ai.tool.call.result": told}),
            },
            error=error,
        )
        for k, (call_id, city, told, error) in enumerate(RUNS)
    ]


def agent_span() -> dict:
    return span(
        0,
        "invoke_agent",
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "Weatherman"},
        spanId="f" * 16,
        parentSpanId=None,
    )


def chat_attributes(turn: int) -> dict:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": MODEL,
        "gen_ai.response.id": f"response-{turn}",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
    }


DEFINITIONS = {"gen_ai.tool.definitions": json.dumps([{"type": "function", **WEATHER}])}


def contents(turn: int, **options) -> dict:
    at = ANSWERS[turn]
    return {
        "gen_ai.input.messages": [parts_of(one, **options) for one in CONVERSATION[:at]],
        "gen_ai.output.messages": [{**parts_of(CONVERSATION[at]), "finish_reason": "stop"}],
    }


def genai() -> list[dict]:
    models = [
        span(
            number_of(turn),
            "chat",
            {
                **chat_attributes(turn),
                **DEFINITIONS,
                **{name: json.dumps(one) for name, one in contents(turn).items()},
            },
        )
        for turn in range(4)
    ]
    return [otlp([one]) for one in [*in_order(models, genai_tools()), agent_span()]]


def genai_event() -> list[dict]:
    """The messages in one log record each, in lines of their own."""
    models = [span(number_of(turn), "chat", chat_attributes(turn)) for turn in range(4)]
    records = [
        {
            "eventName": "gen_ai.client.inference.operation.details",
            "traceId": TRACE,
            "spanId": f"{number_of(turn):016x}",
            "attributes": pairs({**contents(turn), **DEFINITIONS}),
        }
        for turn in range(4)
    ]
    return [otlp(in_order(models, genai_tools())), logs(records), otlp([agent_span()])]


def genai_event_in_row() -> list[dict]:
    """Rows that wrap the spans of a call with its events."""
    models = [span(number_of(turn), "chat", chat_attributes(turn)) for turn in range(4)]
    rows = [
        {
            "otlp": otlp([one]),
            "events": [
                {
                    "event_name": "gen_ai.client.inference.operation.details",
                    "body": None,
                    "attributes": {
                        **chat_attributes(turn),
                        **contents(turn),
                        "gen_ai.tool.definitions": [WEATHER],
                    },
                }
            ],
        }
        for turn, one in enumerate(models)
    ]
    return [*rows, {"otlp": otlp([*genai_tools(), agent_span()])}]


def message_events(turn: int) -> list[tuple[str, dict]]:
    at = ANSWERS[turn]
    made = []
    for one in CONVERSATION[:at]:
        body = {"content": one["content"], "tool_calls": one.get("tool_calls")}
        if one["role"] == "tool":
            body["id"] = one["tool_call_id"]
        made.append(
            (f"gen_ai.{one['role']}.message", {k: v for k, v in body.items() if v is not None})
        )
    answer = {k: v for k, v in CONVERSATION[at].items() if v is not None}
    made.append(("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": answer}))
    return made


def genai_old_logs() -> list[dict]:
    """A log record for each message, as instrumentations wrote them at first."""
    models = [
        span(number_of(turn), "chat", {**chat_attributes(turn), **DEFINITIONS}) for turn in range(4)
    ]
    records = [
        {
            "traceId": TRACE,
            "spanId": f"{number_of(turn):016x}",
            "attributes": pairs({"event.name": name}),
            "body": value(body),
        }
        for turn in range(4)
        for name, body in message_events(turn)
    ]
    return [logs(records), otlp([*in_order(models, genai_tools()), agent_span()])]


def genai_span_events() -> list[dict]:
    models = [
        span(
            number_of(turn),
            "chat",
            {**chat_attributes(turn), **DEFINITIONS},
            events=[
                {"name": name, "attributes": pairs({"gen_ai.event.content": json.dumps(body)})}
                for name, body in message_events(turn)
            ],
        )
        for turn in range(4)
    ]
    return [otlp([*in_order(models, genai_tools()), agent_span()])]


def numbered(prefix: str, messages: list[dict]) -> dict:
    made = {}
    for at, one in enumerate(messages):
        made[f"{prefix}.{at}.role"] = one["role"]
        if one["content"] is not None:
            made[f"{prefix}.{at}.content"] = one["content"]
        if "tool_call_id" in one:
            made[f"{prefix}.{at}.tool_call_id"] = one["tool_call_id"]
        for k, each in enumerate(one.get("tool_calls", ())):
            below = f"{prefix}.{at}.tool_calls.{k}"
            made[f"{below}.id"] = each["id"]
            made[f"{below}.name"] = each["function"]["name"]
            made[f"{below}.arguments"] = each["function"]["arguments"]
    return made


def openllmetry_numbers() -> list[dict]:
    models = [
        span(
            number_of(turn),
            "openai.chat",
            {
                "llm.request.type": "chat",
                "gen_ai.response.model": MODEL,
                "gen_ai.usage.prompt_tokens": 10,
                "gen_ai.usage.completion_tokens": 2,
                "llm.request.functions.0.name": "weather",
                "llm.request.functions.0.description": WEATHER["description"],
                "llm.request.functions.0.parameters": json.dumps(WEATHER["parameters"]),
                **numbered("gen_ai.prompt", CONVERSATION[: ANSWERS[turn]]),
                **numbered("gen_ai.completion", [CONVERSATION[ANSWERS[turn]]]),
            },
        )
        for turn in range(4)
    ]
    tools = [
        span(
            number_of((0, 2)[k]) + 1,
            "weather.tool",
            {
                "traceloop.span.kind": "tool",
                "traceloop.entity.name": "weather",
                "traceloop.entity.input": json.dumps({"args": [], "kwargs": {"city": city}}),
                **({} if told is None else {"traceloop.entity.output": told}),
            },
            error=error,
        )
        for k, (_, city, told, error) in enumerate(RUNS)
    ]
    agent = span(
        0,
        "Weatherman.agent",
        {"traceloop.span.kind": "agent", "traceloop.entity.name": "Weatherman"},
        spanId="f" * 16,
        parentSpanId=None,
    )
    return [otlp([*in_order(models, tools), agent])]


def pydantic_ai() -> list[dict]:
    """Instructions apart, results in the user's messages under `result`."""
    models = []
    for turn in range(4):
        given = contents(turn, result_name="result")
        asked = [
            {**one, "role": "user" if one["role"] == "tool" else one["role"]}
            for one in given["gen_ai.input.messages"][1:]
        ]
        attributes = {
            **chat_attributes(turn),
            **DEFINITIONS,
            "gen_ai.system_instructions": json.dumps(
                [{"type": "text", "content": "You know the weather."}]
            ),
            "gen_ai.input.messages": json.dumps(asked),
            "gen_ai.output.messages": json.dumps(given["gen_ai.output.messages"]),
        }
        models.append(span(number_of(turn), "chat m-1", attributes))
    return [otlp([*in_order(models, genai_tools()), agent_span()])]


def flat_message(prefix: str, at: int, one: dict) -> dict:
    below = f"{prefix}.{at}.message"
    made = {f"{below}.role": one["role"]}
    if one["content"] is not None:
        made[f"{below}.content"] = one["content"]
    if "tool_call_id" in one:
        made[f"{below}.tool_call_id"] = one["tool_call_id"]
    for k, each in enumerate(one.get("tool_calls", ())):
        function = f"{below}.tool_calls.{k}.tool_call.function"
        made[f"{below}.tool_calls.{k}.tool_call.id"] = each["id"]
        made[f"{function}.name"] = each["function"]["name"]
        made[f"{function}.arguments"] = each["function"]["arguments"]
    return made


def llm_attributes(turn: int) -> dict:
    made = {
        "openinference.span.kind": "LLM",
        "llm.model_name": MODEL,
        "llm.token_count.prompt": 10,
        "llm.token_count.completion": 2,
        "llm.tools.0.tool.json_schema": json.dumps({"type": "function", "function": WEATHER}),
        "input.value": "{}",
    }
    for at, one in enumerate(CONVERSATION[: ANSWERS[turn]]):
        made |= flat_message("llm.input_messages", at, one)
    return made | flat_message("llm.output_messages", 0, CONVERSATION[ANSWERS[turn]])


def tool_attributes(city: str, told: str | None) -> dict:
    made = {
        "openinference.span.kind": "TOOL",
        "tool.name": "weather",
        "input.value": json.dumps({"city": city}),
    }
    return made if told is None else {**made, "output.value": told}


AGENT = {"openinference.span.kind": "AGENT", "agent.name": "Weatherman"}


def openinference() -> list[dict]:
    models = [span(number_of(turn), "ChatCompletion", llm_attributes(turn)) for turn in range(4)]
    tools = [
        span(number_of((0, 2)[k]) + 1, "weather", tool_attributes(city, told), error=error)
        for k, (_, city, told, error) in enumerate(RUNS)
    ]
    agent = span(0, "Weatherman", AGENT, spanId="f" * 16, parentSpanId=None)
    return [otlp([one]) for one in [*in_order(models, tools), agent]]


def plain(number: int, name: str, attributes: dict, error: str | None = None) -> dict:
    return {
        "trace_id": TRACE,
        "span_id": f"{number:016x}",
        "parent_span_id": "f" * 16,
        "span_name": name,
        "timestamp": f"2025-03-19T16:32:08.{number:06}Z",
        "span_attributes": attributes,
        "status_code": "Ok" if error is None else "Error",
        "status_message": error or "",
        "events": [],
        "child_spans": [],
    }


def plain_spans() -> list[dict]:
    models = [plain(number_of(turn), "call", llm_attributes(turn)) for turn in range(4)]
    tools = [
        plain(number_of((0, 2)[k]) + 1, "Tool", tool_attributes(city, told), error)
        for k, (_, city, told, error) in enumerate(RUNS)
    ]
    return in_order(models, tools)


def openinference_tree() -> list[dict]:
    root = plain(0, "Agent.run", AGENT)
    root |= {"span_id": "f" * 16, "parent_span_id": None, "child_spans": plain_spans()}
    return [{"trace_id": TRACE, "spans": [root]}]


def tree_of(attributes: dict) -> dict:
    """As Phoenix's API gives them: every dot a level."""
    made: dict = {}
    for name, one in attributes.items():
        below = made
        *path, last = name.split(".")
        for step in path:
            below = below.setdefault(step, {})
        below[last] = one

    def listed(raw: object) -> object:
        if not isinstance(raw, dict):
            return raw
        if raw and all(key.isdigit() for key in raw):
            return [listed(raw[key]) for key in sorted(raw, key=int)]
        return {key: listed(one) for key, one in raw.items()}

    return listed(made)


def phoenix() -> list[dict]:
    root = {**plain(0, "Agent.run", AGENT), "span_id": "f" * 16, "parent_span_id": None}
    rows = [
        {
            "id": "U3Bhbjox",
            "name": one["span_name"],
            "context": {"trace_id": one["trace_id"], "span_id": one["span_id"]},
            "parent_id": one["parent_span_id"],
            "start_time": one["timestamp"],
            "status_code": one["status_code"].upper(),
            "status_message": one["status_message"],
            "attributes": tree_of(one["span_attributes"]),
            "events": [],
        }
        for one in [root, *plain_spans()]
    ]
    return [{"data": rows, "next_cursor": None}]


def observation(number: int, kind: str, name: str, **more) -> dict:
    return {
        "id": f"o{number}",
        "traceId": TRACE,
        "type": kind,
        "name": name,
        "startTime": f"2025-03-19T16:32:08.{number:06}Z",
        "parentObservationId": "agent",
        "level": "DEFAULT",
        **more,
    }


def observations() -> list[dict]:
    tools = [{"type": "function", "function": WEATHER}]
    models = [
        observation(
            number_of(turn),
            "GENERATION",
            "OpenAI-generation",
            model=MODEL,
            input={"tools": tools, "messages": CONVERSATION[: ANSWERS[turn]]},
            output=CONVERSATION[ANSWERS[turn]],
            usageDetails={"input": 10, "output": 2, "total": 12},
        )
        for turn in range(4)
    ]
    runs = [
        observation(
            number_of((0, 2)[k]) + 1,
            "TOOL",
            "weather",
            input={"city": city},
            output=told,
            level="DEFAULT" if error is None else "ERROR",
            statusMessage=error,
        )
        for k, (_, city, told, error) in enumerate(RUNS)
    ]
    agent = observation(0, "AGENT", "Weatherman", id="agent", parentObservationId=None)
    return [*in_order(models, runs), agent]


def langfuse_api() -> list[dict]:
    return [{"id": TRACE, "name": "t", "observations": observations(), "scores": []}]


def langfuse_page() -> list[dict]:
    """Observations of one trace need not name it; what went in and out may be texts."""
    page = []
    for one in observations():
        kept = {key: each for key, each in one.items() if key != "traceId"}
        for name in ("input", "output"):
            if isinstance(kept.get(name), dict):
                kept[name] = json.dumps(kept[name])
        page.append(kept)
    return [{"data": page, "meta": {"page": 1}}]


def clickhouse() -> list[dict]:
    """Rows of the table that the collector's exporter for ClickHouse fills."""
    root = {**plain(0, "Agent.run", AGENT), "span_id": "f" * 16, "parent_span_id": ""}
    return [
        {
            "Timestamp": one["timestamp"],
            "TraceId": one["trace_id"],
            "SpanId": one["span_id"],
            "ParentSpanId": one["parent_span_id"],
            "SpanName": one["span_name"],
            "SpanAttributes": {key: str(each) for key, each in one["span_attributes"].items()},
            "StatusCode": one["status_code"],
            "StatusMessage": one["status_message"],
        }
        for one in [root, *plain_spans()]
    ]


def console() -> list[dict]:
    """As the Python SDK's console exporter prints them."""
    root = {**plain(0, "Agent.run", AGENT), "span_id": "f" * 16, "parent_span_id": None}
    return [
        {
            "name": one["span_name"],
            "context": {
                "trace_id": f"0x{one['trace_id']}",
                "span_id": f"0x{one['span_id']}",
                "trace_state": "[]",
            },
            "kind": "SpanKind.INTERNAL",
            "parent_id": one["parent_span_id"] and f"0x{one['parent_span_id']}",
            "start_time": one["timestamp"],
            "end_time": one["timestamp"],
            "status": {
                "status_code": one["status_code"].upper(),
                "description": one["status_message"] or None,
            },
            "attributes": one["span_attributes"],
            "events": [],
            "links": [],
            "resource": {"attributes": {}},
        }
        for one in [root, *plain_spans()]
    ]


def langfuse_observations() -> list[dict]:
    return observations()


def langfuse_batch() -> list[dict]:
    made = []
    for one in observations():
        kind = one["type"].lower()
        first = {key: one[key] for key in one if key != "output"}
        made.append({"type": f"{kind}-create", "body": first})
        made.append(
            {"type": f"{kind}-update", "body": {"id": one["id"], "output": one.get("output")}}
        )
    return [{"batch": made}]


def langfuse_otlp() -> list[dict]:
    spans = []
    for one in observations():
        kept = {
            "type": one["type"].lower(),
            "input": one.get("input"),
            "output": one.get("output"),
            "model.name": one.get("model"),
            "usage_details": one.get("usageDetails"),
        }
        attributes = {
            f"langfuse.observation.{name}": each if isinstance(each, str) else json.dumps(each)
            for name, each in kept.items()
            if each is not None
        }
        number = int(one["id"][1:]) if one["id"] != "agent" else 0
        own = {} if number else {"spanId": "f" * 16, "parentSpanId": None}
        error = one.get("statusMessage")
        spans.append(span(number, one["name"], attributes, error=error, **own))
    return [otlp(spans, "langfuse-sdk")]


def agents_item(number: int, data: dict, error: str | None = None) -> dict:
    return {
        "object": "trace.span",
        "id": f"span_{number}",
        "trace_id": f"trace_{TRACE}",
        "parent_id": "span_0" if number else None,
        "started_at": f"2025-03-19T16:32:08.{number:06}+00:00",
        "ended_at": "2025-03-19T16:32:09+00:00",
        "span_data": data,
        "error": None if error is None else {"message": error, "data": {}},
    }


def agents_items(*, generation: bool) -> list[dict]:
    models = []
    for turn in range(4):
        usage = {"input_tokens": 10, "output_tokens": 2}
        data = {"type": "response", "response_id": f"resp_{turn}", "usage": usage}
        if generation:
            at = ANSWERS[turn]
            data = {
                "type": "generation",
                "input": CONVERSATION[:at],
                "output": [CONVERSATION[at]],
                "model": MODEL,
                "usage": usage,
            }
        models.append(agents_item(number_of(turn), data))
    tools = [
        agents_item(
            number_of((0, 2)[k]) + 1,
            {
                "type": "function",
                "name": "weather",
                "input": json.dumps({"city": city}),
                "output": told,
                "mcp_data": None,
            },
            error,
        )
        for k, (_, city, told, error) in enumerate(RUNS)
    ]
    agent = agents_item(
        0, {"type": "agent", "name": "Weatherman", "tools": ["weather"], "handoffs": []}
    )
    trace = {"object": "trace", "id": f"trace_{TRACE}", "workflow_name": "w", "group_id": None}
    return [*in_order(models, tools), agent, trace]


def agents_generation() -> list[dict]:
    return agents_items(generation=True)


def agents_response() -> list[dict]:
    return [{"items": agents_items(generation=False)}]


# By name: the rows and the format as which they are known.
DIALECTS = {
    "genai": (genai, "otel-genai"),
    "genai event": (genai_event, "otel-genai"),
    "genai event in a row": (genai_event_in_row, "otel-genai"),
    "genai old logs": (genai_old_logs, "otel-genai"),
    "genai span events": (genai_span_events, "otel-genai"),
    "openllmetry numbers": (openllmetry_numbers, "otel-genai"),
    "pydantic ai": (pydantic_ai, "otel-genai"),
    "openinference": (openinference, "openinference"),
    "openinference tree": (openinference_tree, "openinference"),
    "phoenix": (phoenix, "openinference"),
    "clickhouse": (clickhouse, "openinference"),
    "console": (console, "openinference"),
    "langfuse page": (langfuse_page, "langfuse"),
    "langfuse otlp": (langfuse_otlp, "langfuse"),
    "langfuse trace": (langfuse_api, "langfuse"),
    "langfuse observations": (langfuse_observations, "langfuse"),
    "langfuse batch": (langfuse_batch, "langfuse"),
    "agents generation": (agents_generation, "openai-agents"),
}
