"""Recorded bodies, streams and errors of a dozen providers, served once more by a real server: each
goes through the runner to the ledger, the retry or the error that it stands for."""

import asyncio
import json

import pytest
from msgspec.structs import replace
from tests.endpoints import Answer, Server

from callmark.calls.registry import Registry
from callmark.errors import UsageError
from callmark.records.results import Decoding
from callmark.records.seams import Conversation, Failure, Reply
from callmark.runners.http.chat import ChatCompletions
from callmark.runners.http.runner import ServedRunner
from callmark.runners.http.trouble import RetryPolicy
from callmark.runners.options import RunnerOptions, ServedOptions

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def rows(real_data):
    recorded = (real_data / "openai_responses.jsonl").read_bytes()
    return [json.loads(line) for line in recorded.splitlines()]


def tools_of(row) -> list:
    given = row["request"].get("tools") or []
    functions = [{"name": tool["function"]["name"]} for tool in given]
    registry = Registry.from_specs(functions, where="recorded") if functions else None
    return registry.openai_tools(registry.names) if registry else []


def asked(row, server) -> Reply | Failure:
    tools = tools_of(row)
    options = RunnerOptions(
        model=row["request"]["model"],
        decoding=Decoding(),
        tool_registry_sha256="",
        tools=tuple(tools),
        served=ServedOptions(base_url=server.url, api_key="k", max_retries=1),
    )
    runner = ServedRunner(options, ChatCompletions, RetryPolicy(first_wait=0.001))
    question = {"role": "user", "content": "?"}
    conversation = Conversation(sample_id="s", trial=0, turn=1, messages=[question], tools=tools)

    async def talk():
        try:
            [reply] = await runner.answer([conversation])
            return reply
        finally:
            await runner.close()

    return asyncio.run(talk())


def recorded_answer(row) -> Answer:
    if row["sse"] is not None:
        return Answer(row["status"], row["sse"].encode(), {"Content-Type": "text/event-stream"})
    return Answer(row["status"], row["response"])


def outcome_of(row):
    """What the runner made of the row, and how often it asked."""
    with Server(lambda _: recorded_answer(row)) as server:
        try:
            return asked(row, server), len(server.requests)
        except UsageError as error:
            return error, len(server.requests)


def expected_calls(message) -> list:
    legacy = message.get("function_call")
    calls = message.get("tool_calls") or (
        [{"function": legacy}] if legacy and legacy["name"] else []
    )
    return [
        (call["function"]["name"], json.loads(call["function"].get("arguments") or "{}"))
        for call in calls
    ]


def text_in(content) -> str:
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] == "text")
    return content or ""


def test_every_recorded_answer_gives_its_text_its_calls_and_its_reasoning(rows):
    bodies = [row for row in rows if row["status"] == 200 and row["response"] is not None]
    assert len(bodies) == 53
    for row in bodies:
        reply, requests = outcome_of(row)
        [choice] = row["response"]["choices"]
        message = choice["message"]
        assert isinstance(reply, Reply), row["id"]
        assert requests == 1
        assert reply.text == text_in(message.get("content")), row["id"]
        found = [(entry.name, entry.arguments) for entry in reply.calls or ()]
        assert found == expected_calls(message), row["id"]
        assert all(entry.status == "unanswered" for entry in reply.calls or ())
        assert reply.finish == ("length" if choice["finish_reason"] == "length" else "stop")
        written = message.get("reasoning_content") or message.get("reasoning")
        assert not written or reply.reasoning == written, row["id"]
        for field in ("reasoning_content", "reasoning_details", "extra_content"):
            assert reply.carried.get(field) == (message.get(field) or None), row["id"]


def test_thinking_in_content_parts_is_kept_apart(rows):
    parted = [row for row in rows if "content_list" in row["tags"]]
    assert parted
    for row in parted:
        reply, _ = outcome_of(row)
        assert reply.reasoning
        assert reply.reasoning not in reply.text


def test_every_recorded_error_goes_where_it_belongs(rows):
    errors = {row["id"]: row for row in rows if row["status"] >= 400}
    seen = {}
    for name, row in errors.items():
        outcome, requests = outcome_of(row)
        code = row["response"]["error"].get("code")
        match row["status"], code:
            case 429, _:
                assert isinstance(outcome, Failure), name
                assert outcome.reason.startswith("429: ")
                assert requests == 2
                seen[name] = "tried again"
            case 404, "model_not_found":
                assert isinstance(outcome, UsageError), name
                assert str(outcome).startswith("--model: ")
                assert requests == 1
                seen[name] = "unknown model"
            case 400, "tool_use_failed":
                written = row["response"]["error"]["failed_generation"]
                assert replace(outcome, seconds=None) == Reply(text=written), name
                seen[name] = "what the model wrote"
            case 400, None:
                assert isinstance(outcome, UsageError), name
                assert row["response"]["error"]["param"] in str(outcome)
                seen[name] = "parameter"
    assert sorted(seen) == sorted(errors)
    assert set(seen.values()) == {
        "tried again",
        "unknown model",
        "what the model wrote",
        "parameter",
    }


def test_a_stream_that_nobody_asked_for_is_a_clear_failure(rows):
    streams = [row for row in rows if row["sse"] is not None]
    assert len(streams) == 7
    for row in streams:
        outcome, requests = outcome_of(row)
        assert outcome == Failure("the server streams its answer, which was not asked for")
        assert requests == 1
