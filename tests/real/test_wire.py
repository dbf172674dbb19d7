"""Recorded exchanges of the Responses and the Messages API, served once more by a real server: each
goes through the runner to the ledger, the retry or the error that it stands for; whole dialogues
are played, and what the model thought goes back as it came."""

import asyncio
import json

import pytest
from tests.endpoints import Answer, Server
from tests.sdk_types import check_request

from callmark.calls.registry import Registry
from callmark.errors import CallmarkError, Incomplete, UsageError
from callmark.records.results import Decoding
from callmark.records.samples import Sample, expectation_of
from callmark.records.seams import Conversation, Failure, Hit, Reply
from callmark.run.play import PlaySettings, TrialInput, play_alone
from callmark.runners.http.messages_api import MessagesApi
from callmark.runners.http.responses import ResponsesApi
from callmark.runners.http.runner import ServedRunner
from callmark.runners.http.trouble import RetryPolicy
from callmark.runners.options import RunnerOptions, ServedOptions

pytestmark = pytest.mark.real

PROTOCOLS = {"openai_responses": ResponsesApi, "anthropic_messages": MessagesApi}
DIALOGUES = {
    "openai_responses": "traces/openai_responses_api/conversations.jsonl",
    "anthropic_messages": "traces/anthropic_messages/conversations.jsonl",
}
THOUGHT = {"reasoning", "thinking", "redacted_thinking"}


def rows_of(path) -> list:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def runner_for(protocol, server, *, tools=(), **decoding) -> ServedRunner:
    options = RunnerOptions(
        model="m",
        decoding=Decoding(**decoding),
        tool_registry_sha256="",
        tools=tuple(tools),
        served=ServedOptions(base_url=server.url, api_key="key-0123456789", max_retries=1),
    )
    return ServedRunner(options, PROTOCOLS[protocol], RetryPolicy(first_wait=0.001))


def outcome_of(protocol, row):
    """What the runner made of the exchange, and how often it asked."""
    with Server(lambda _: Answer(row["status"], row["response"])) as server:
        runner = runner_for(protocol, server)
        question = {"role": "user", "content": "?"}
        conversation = Conversation(sample_id="s", trial=0, turn=1, messages=[question], tools=[])

        async def talk():
            try:
                [reply] = await runner.answer([conversation])
                return reply
            finally:
                await runner.close()

        try:
            return asyncio.run(talk()), len(server.requests), runner.observed()
        except CallmarkError as error:
            return error, len(server.requests), runner.observed()


def recorded_blocks(response) -> list:
    return response.get("output", response.get("content")) or []


def recorded_calls(response) -> list:
    found = [
        block
        for block in recorded_blocks(response)
        if block["type"] in ("function_call", "tool_use")
    ]
    return [
        (one["name"], one["input"] if "input" in one else json.loads(one["arguments"]))
        for one in found
    ]


def recorded_text(response) -> str:
    texts = []
    for block in recorded_blocks(response):
        if block["type"] == "text":
            texts.append(block["text"])
        for part in block.get("content") or () if block["type"] == "message" else ():
            texts += [part.get("text", part.get("refusal"))]
    return "".join(texts)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_recorded_exchange_comes_to_the_right_end(real_data, protocol):
    rows = rows_of(real_data / "prompts" / f"{protocol}.jsonl")
    assert rows
    for row in rows:
        found, asked, observed = outcome_of(protocol, row)
        tags = set(row["tags"])
        if row["status"] == 200 and "background_queued" not in tags:
            assert isinstance(found, Reply), row["tags"]
            assert [(call.name, call.arguments) for call in found.calls or ()] == recorded_calls(
                row["response"]
            )
            assert found.text.replace("\n", "") == recorded_text(row["response"]).replace("\n", "")
            assert (found.finish == "content_filter") == ("stop_refusal" in tags)
            assert found.usage is not None or "usage" not in row["response"]
            ran = [
                tag for tag in tags if tag.endswith(("_call", "_tool_use")) and tag != "tool_call"
            ]
            ran += [tag for tag in tags if tag == "server_tool_use"]
            assert bool(observed.provenance.get("server_tools")) == bool(ran)
            continue
        assert not isinstance(found, Reply), row["tags"]
        is_passing = row["status"] in (429, 529) and "insufficient_quota_429" not in tags
        assert asked == (2 if is_passing else 1)
        if "insufficient_quota_429" in tags:
            assert isinstance(found, Incomplete)
        elif row["status"] == 404 or "temperature" in json.dumps(row["response"].get("error")):
            assert isinstance(found, UsageError)
        else:
            assert isinstance(found, Failure)


class Results:
    """The results that the recorded client gave to the model, in their order."""

    def __init__(self, results) -> None:
        self._results = list(results)

    def session(self, sample_id=None):
        return self

    def answer(self, name, arguments):
        return Hit(self._results.pop(0) if self._results else "", "recorded", "")

    def has_answer(self, name, arguments):
        return True


def spoken(request) -> list:
    return request.get("input", request.get("messages"))


def results_in(interactions) -> list:
    """Results of a whole dialogue. A later request repeats the earlier ones."""
    found: dict = {}
    for one in interactions:
        for item in spoken(one["request"]):
            blocks = item.get("content") if isinstance(item.get("content"), list) else []
            for block in [item, *blocks]:
                if block.get("type") in ("function_call_output", "tool_result"):
                    given = block.get("output", block.get("content"))
                    found[block.get("call_id", block.get("tool_use_id"))] = (
                        given if isinstance(given, str) else json.dumps(given)
                    )
    return list(found.values())


def tools_in(interactions) -> Registry:
    specs: dict = {}
    for one in interactions:
        for tool in one["request"].get("tools") or ():
            schema = tool.get("parameters", tool.get("input_schema"))
            if schema is not None:
                specs[tool["name"]] = {
                    "name": tool["name"],
                    "description": tool.get("description") or "",
                    "parameters": schema,
                }
        for block in recorded_blocks(one["response"]):
            if block["type"] in ("function_call", "tool_use"):
                specs.setdefault(block["name"], {"name": block["name"]})
    return Registry.from_specs(list(specs.values()), where="recorded")


def played(protocol, interactions):
    """The dialogue as a run would have it: what was sent, and the trial."""
    registry = tools_in(interactions)
    tools = registry.openai_tools(registry.names)
    answers = iter(interactions)
    ends = [not recorded_calls(one["response"]) for one in interactions]
    sample = Sample(
        index=0,
        sample_id="s",
        prompt=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go."}],
        metadata={},
        expectation=expectation_of({}),
        user_turns=("Go on.",) * sum(ends),
    )
    with Server(lambda _: Answer(body=next(answers)["response"])) as server:
        runner = runner_for(protocol, server, tools=tools)
        settings = PlaySettings(registry=registry, max_turns=len(interactions))
        trial = TrialInput(sample, 0, frozenset(registry.names), tools)

        async def talk():
            try:
                return await play_alone(trial, runner, Results(results_in(interactions)), settings)
            finally:
                await runner.close()

        return asyncio.run(talk()), [request.body for request in server.requests]


def thoughts_in(items) -> list:
    blocks = [
        block
        for item in items
        for block in (item, *(item["content"] if isinstance(item.get("content"), list) else ()))
    ]
    return [json.dumps(block) for block in blocks if block.get("type") in THOUGHT]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_whole_dialogues_are_played_and_what_was_thought_goes_back_as_it_came(real_data, protocol):
    carried = 0
    for row in rows_of(real_data / DIALOGUES[protocol]):
        interactions = [one for one in row["interactions"] if isinstance(one["response"], dict)]
        if not interactions:
            continue  # streamed
        trial, sent = played(protocol, interactions)
        assert trial.error is None
        assert len(sent) == len(interactions)
        expected = [call for one in interactions for call in recorded_calls(one["response"])]
        assert [(entry.name, entry.arguments) for entry in trial.trace.tool_trace] == expected
        for number, body in enumerate(sent):
            check_request(protocol, body)
            before = [
                block for one in interactions[:number] for block in recorded_blocks(one["response"])
            ]
            assert thoughts_in(spoken(body)) == thoughts_in(before)
            carried += len(thoughts_in(before))
            check_pairs(protocol, body)
    assert carried


def check_pairs(protocol, body) -> None:
    """Every call has one result, every result one call."""
    made, answered = [], []
    for item in spoken(body):
        for block in [item, *(item["content"] if isinstance(item.get("content"), list) else ())]:
            if block.get("type") in ("function_call", "tool_use"):
                made.append(block.get("call_id", block.get("id")))
            if block.get("type") in ("function_call_output", "tool_result"):
                answered.append(block.get("call_id", block.get("tool_use_id")))
    assert made == answered
    assert len(set(made)) == len(made)
