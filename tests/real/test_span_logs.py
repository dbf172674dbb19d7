"""Real logs of spans: what comes out of an import equals what another reading of the raw file counts.
The counting below shares no code with the importers: it looks for ids and names, nothing else."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.test_imports import imported, lines_of

pytestmark = pytest.mark.real

# Anthropic runs these itself: nobody here answers them.
PROVIDERS = "srvtoolu_"
MADE_UP = {"bar"}  # the answer to it: "Unknown tool name: 'bar'"
COUNTED = ("results", "errors", "turns")
# No tool failed in any of them, which is counted too; failing ones are in the tests by hand.
# Of each file: samples, calls, results, errors, turns of the assistant.
TABLE = {
    "otel_genai/openllmetry_anthropic.jsonl": (8, 9, 8, 0, 17),
    "otel_genai/openllmetry_openai_chat.jsonl": (6, 7, 6, 0, 12),
    "otel_genai/openllmetry_openai_responses.jsonl": (6, 8, 8, 0, 15),
    "otel_genai/otel_openai_v2_chat.jsonl": (6, 7, 6, 0, 12),
    "otel_genai/otel_openai_v2_chat_events.jsonl": (6, 7, 6, 0, 12),
    "otel_genai/pydantic_ai.jsonl": (10, 12, 12, 0, 21),
    "openinference_replayed/openinference_agents.jsonl": (10, 12, 11, 0, 20),
    "openinference_replayed/openinference_anthropic.jsonl": (8, 9, 8, 0, 17),
    "openinference_replayed/openinference_openai_chat.jsonl": (6, 7, 6, 0, 12),
    "openinference_replayed/openinference_openai_responses.jsonl": (6, 8, 8, 0, 15),
    "langfuse_otel/langfuse_openai_chat.jsonl": (6, 7, 6, 0, 12),
    "openai_agents_sdk/agents_sdk_spans.jsonl": (9, 11, 11, 0, 19),
}


def attributes_of(row: dict) -> Iterator[dict]:
    for resource in row["otlp"]["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                made = {}
                for pair in span["attributes"]:
                    made[pair["key"]] = next(iter(pair["value"].values()))
                yield {**made, "_status": span["status"].get("code")}


class Count:
    """One row: calls as (name, arguments), turns as the longest list of answers."""

    def __init__(self) -> None:
        self.calls: Counter = Counter()
        self.results = self.turns = self.errors = 0
        self.tools: set[str] = set()

    def conversation(self, calls: list, results: int, turns: int) -> None:
        """Prompts grow, so the last one has everything."""
        found = Counter(calls)
        if (sum(found.values()), turns) >= (sum(self.calls.values()), self.turns):
            self.calls, self.results, self.turns = found, results, turns


def arguments(raw: object) -> str:
    return json.dumps(json.loads(raw) if isinstance(raw, str) else raw, sort_keys=True)


def blocks_of_assistants(roles: list[tuple[str, bool]]) -> int:
    """Turns: answers that follow each other belong together unless both have a text."""
    turns, before, had_text = 0, "", False
    for role, has_text in roles:
        if role == "assistant":
            if before != "assistant" or (has_text and had_text):
                turns += 1
                had_text = has_text
            else:
                had_text = had_text or has_text
        before = role
    return turns


def count_genai(row: dict) -> Count:
    made = Count()
    for span in [*attributes_of(row), *(one["attributes"] for one in row.get("events", ()))]:
        is_tool = span.get("gen_ai.operation.name") == "execute_tool"
        made.errors += is_tool and span.get("_status") == "STATUS_CODE_ERROR"
        tools = span.get("gen_ai.tool.definitions")
        made.tools |= {one["name"] for one in json.loads(tools)} if tools else set()
        both = []
        for name in ("gen_ai.input.messages", "gen_ai.output.messages"):
            raw = span.get(name)
            both += json.loads(raw) if isinstance(raw, str) else raw or []
        parts = [part for message in both for part in message["parts"]]
        calls = [
            (part["name"], arguments(part["arguments"]))
            for part in parts
            if part["type"] == "tool_call"
        ]
        results = sum(part["type"] == "tool_call_response" for part in parts)
        roles = []
        for message in both:
            kinds = {part["type"] for part in message["parts"]}
            texts = any(part.get("type") == "text" and part["content"] for part in message["parts"])
            roles.append(("tool" if "tool_call_response" in kinds else message["role"], texts))
        if both:
            made.conversation(calls, results, blocks_of_assistants(roles))
    return made


def count_openinference(row: dict) -> Count:
    made = Count()
    for span in attributes_of(row):
        is_tool = span.get("openinference.span.kind") == "TOOL"
        made.errors += is_tool and span["_status"] == "STATUS_CODE_ERROR"
        if span.get("openinference.span.kind") != "LLM":
            continue
        calls, results, roles = [], 0, []
        for side in ("llm.input_messages", "llm.output_messages"):
            numbers = sorted({int(k.split(".")[2]) for k in span if k.startswith(side + ".")})
            for number in numbers:
                own = f"{side}.{number}.message"
                role = span.get(f"{own}.role", "assistant")
                results += role == "tool"
                inner = {k: v for k, v in span.items() if k.startswith(f"{own}.tool_calls.")}
                for k in range(20):
                    name = inner.get(f"{own}.tool_calls.{k}.tool_call.function.name")
                    given = inner.get(f"{own}.tool_calls.{k}.tool_call.function.arguments", "{}")
                    call_id = inner.get(f"{own}.tool_calls.{k}.tool_call.id", "")
                    if name is not None and not call_id.startswith(PROVIDERS):
                        calls.append((name, arguments(given or "{}")))
                texts = [
                    v
                    for k, v in span.items()
                    if k == f"{own}.content"
                    or (k.startswith(f"{own}.contents.") and k.endswith(".text"))
                ]
                roles.append((role, any(texts)))
        for name, value in span.items():
            if name.startswith("llm.tools."):
                spec = json.loads(value)
                named = spec.get("function", spec).get("name")
                made.tools |= {named} if named else set()
        made.conversation(calls, results, blocks_of_assistants(roles))
    return made


def count_langfuse(row: dict) -> Count:
    made = Count()
    for span in attributes_of(row):
        given = json.loads(span["langfuse.observation.input"])
        asked = given["messages"] if isinstance(given, dict) else given
        if isinstance(given, dict):
            made.tools |= {one["function"]["name"] for one in given["tools"]}
        both = [*asked, json.loads(span["langfuse.observation.output"])]
        calls = [
            (one["function"]["name"], arguments(one["function"]["arguments"]))
            for message in both
            for one in message.get("tool_calls") or ()
        ]
        roles = [(one["role"], bool(one.get("content"))) for one in both]
        results = sum(role == "tool" for role, _ in roles)
        made.conversation(calls, results, blocks_of_assistants(roles))
    return made


def count_agents(row: dict) -> Count:
    made = Count()
    data = [(one, one["span_data"]) for one in row["items"] if one["object"] == "trace.span"]
    functions = [(one, inner) for one, inner in data if inner["type"] == "function"]
    if not functions:  # neither a text nor a call: nothing is known of it
        return made
    made.calls = Counter((inner["name"], arguments(inner["input"])) for _, inner in functions)
    made.results = sum(inner["output"] is not None for _, inner in functions)
    made.errors = sum(one["error"] is not None for one, _ in functions)
    made.turns = sum(inner["type"] == "response" for _, inner in data)
    made.tools = {name for _, inner in data for name in inner.get("tools") or ()}
    return made


COUNTS = {
    "otel_genai": count_genai,
    "openinference_replayed": count_openinference,
    "langfuse_otel": count_langfuse,
    "openai_agents_sdk": count_agents,
}


def counted(source: Path) -> dict:
    rows = [COUNTS[source.parent.name](row) for row in lines_of(source)]
    rows = [row for row in rows if row.turns]
    calls: Counter = Counter()
    for row in rows:
        calls += row.calls
    # A tool that answered was there, be it that no request lists it (a search found it).
    called = {name for row in rows for name, _ in row.calls} - MADE_UP
    return {
        "samples": len(rows),
        "calls": calls,
        "results": sum(row.results for row in rows),
        "errors": sum(row.errors for row in rows),
        "turns": sum(row.turns for row in rows),
        "tools": called.union(*(row.tools for row in rows)),
    }


def found(places) -> dict:
    answers = [one["messages"] for one in lines_of(places.answers)]
    messages = [message for talk in answers for message in talk]
    calls = Counter(
        (one["function"]["name"].partition("__")[0], arguments(one["function"]["arguments"]))
        for message in messages
        for one in message.get("tool_calls") or ()
    )
    results = [message["content"] for message in messages if message["role"] == "tool"]
    specs = json.loads(places.registry.read_text("utf-8"))
    return {
        "samples": len(answers),
        "calls": calls,
        "results": len(results),
        "errors": sum(text.startswith('{"error": ') for text in results),
        "turns": sum(message["role"] == "assistant" for message in messages),
        "tools": {spec["name"].partition("__")[0] for spec in specs},
    }


@pytest.mark.parametrize("name", TABLE)
def test_an_import_equals_another_reading_of_the_file(real_data: Path, tmp_path: Path, name: str):
    source = real_data / "traces" / name
    places, _ = imported(source, tmp_path)
    ours, theirs = found(places), counted(source)
    assert ours == theirs
    calls = sum(ours["calls"].values())
    assert (ours["samples"], calls, *(ours[one] for one in COUNTED)) == TABLE[name]


def test_the_same_recordings_are_the_same_conversations(real_data: Path, tmp_path: Path):
    """Five instrumentations on the same six recorded chats."""
    names = [name for name in TABLE if name.endswith(("chat.jsonl", "chat_events.jsonl"))]
    talks = []
    for number, name in enumerate(names):
        places, _ = imported(real_data / "traces" / name, tmp_path / str(number))
        talks.append(
            [
                [
                    (
                        message["role"],
                        message["content"] or "",
                        [one["function"]["name"] for one in message.get("tool_calls") or ()],
                    )
                    for message in one["messages"]
                ]
                for one in lines_of(places.answers)
            ]
        )
    assert len(names) == 5
    assert all(one == talks[0] for one in talks)


# --- TRAIL -------------------------------------------------------------------------------------


def spans_below(span: dict) -> Iterator[dict]:
    yield span
    for child in span["child_spans"]:
        yield from spans_below(child)


def test_every_call_of_a_model_in_trail_is_a_turn_of_a_sample(real_data: Path, tmp_path: Path):
    """So 75 of the 81 annotated errors lie on a turn. Five lie on the two calls that the provider
    refused, which `errors` names, and one on a tool that ran from code. Samples: 16 tasks of GAIA
    have facts, plan, work and answer, two of them plan anew in two calls, four of SWE-bench have
    one conversation each."""
    folder = real_data / "traces" / "openinference_trail"
    marked = {one["trace_id"]: one["errors"] for one in lines_of(folder / "annotations.jsonl")}
    totals: Counter = Counter()
    for source in sorted(folder.glob("*.json")):
        tree = json.loads(source.read_text("utf-8"))
        spans = [span for root in tree["spans"] for span in spans_below(root)]
        answered = {
            span["span_id"]
            for span in spans
            if any(name.startswith("llm.output_messages") for name in span["span_attributes"])
        }
        places, report = imported(source, tmp_path / source.stem)
        told = {one.kind: one.count for one in report.unmapped}
        items = lines_of(places.dataset)[1:]
        turns = [
            span for one in items for span in one["metadata"]["imported_from"]["spans"] if span
        ]
        assert set(turns) == answered
        for one, answer in zip(items, lines_of(places.answers), strict=True):
            said = [m for m in answer["messages"] if m["role"] == "assistant"]
            assert len(said) == len(one["metadata"]["imported_from"]["spans"])
            assert not any(message.get("tool_calls") for message in said)
        tools = sum(s["span_attributes"].get("openinference.span.kind") == "TOOL" for s in spans)
        assert told.get("tool_span_without_call", 0) == tools
        assert told.get("span_error", 0) == sum(s["status_code"] == "Error" for s in spans)
        failed = {
            one["span"]
            for item in items
            for one in item["metadata"]["imported_from"].get("errors", ())
        }
        places_of_errors = [one["location"] for one in marked[source.stem]]
        totals.update(
            samples=len(items),
            turns=len(answered),
            errors=len(places_of_errors),
            on_turns=sum(one in answered for one in places_of_errors),
            on_failed=sum(one in failed - answered for one in places_of_errors),
        )
    assert totals == {"samples": 72, "turns": 112, "errors": 81, "on_turns": 75, "on_failed": 5}
