"""Logs as they lie around: several APIs in one file, documents one after the other, one trace in
several files, files that share their ids."""

import json

import pytest

from callmark.datasets.importing.importing import import_dataset
from callmark.errors import BadInput

from . import sessions
from .conftest import Made, places_in
from .span_rows import DIALECTS, console, genai, openinference
from .test_inspect import LOG


def calls_in(made: Made) -> int:
    return made.report.counts.calls


EXCHANGES = {
    "anthropic": sessions.anthropic_exchanges(),
    "responses": sessions.responses_exchanges(chained=False),
    "openai": sessions.chat_exchanges(),
}


def elsewhere(rows: list[dict], city: str) -> list[dict]:
    """The same talk about another place, so that it is another talk."""
    return json.loads(json.dumps(rows).replace("Ulm", city))


@pytest.mark.parametrize("first", EXCHANGES)
@pytest.mark.parametrize("second", EXCHANGES)
def test_a_gateway_writes_several_apis_into_one_file(make, first, second):
    """In turns, as they came: each conversation is whole, and both APIs are named."""
    one, two = EXCHANGES[first], elsewhere(EXCHANGES[second], "Graz")
    made = make([row for pair in zip(one, two, strict=True) for row in pair])
    assert made.report.format == (first if first == second else f"{first}, {second}")
    assert (made.report.counts.samples, calls_in(made), made.report.counts.results) == (2, 4, 4)
    assert "failed_exchange" not in made.kinds


def chunk(**delta: object) -> dict:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}


def part(**function: str) -> dict:
    return {"tool_calls": [{"index": 0, "function": function}]}


@pytest.mark.parametrize("as_text", [True, False])
def test_a_streamed_chat_completion_is_put_together(make, as_text):
    begin = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather"}}
    events = [
        chunk(role="assistant", content="Let "),
        chunk(content="me see."),
        chunk(tool_calls=[begin]),
        chunk(**part(arguments='{"city":')),
        chunk(**part(arguments=' "Ulm"}')),
        {"choices": [], "usage": {"total_tokens": 9}},
    ]
    sent = "".join(f"data: {json.dumps(one)}\n\n" for one in events) + "data: [DONE]\n\n"
    request = {"stream": True, "messages": [{"role": "user", "content": "How warm is Ulm?"}]}
    made = make([{"request": request, "response": sent if as_text else events}])
    [answer] = made.answers
    said = answer["messages"][-1]
    assert said["content"] == "Let me see."
    [call] = said["tool_calls"]
    assert (call["id"], call["function"]) == (
        "call_1",
        {"name": "weather", "arguments": '{"city": "Ulm"}'},
    )


def test_a_response_beside_the_messages_is_the_answer(make):
    """As gateways log it: the parts of the request, what it was set to, and what came back."""
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    message = {"role": "assistant", "content": "It is 19 degrees."}
    row = {
        "id": "log-1",
        "model": "m",
        "messages": [{"role": "user", "content": "How warm is Ulm?"}],
        "model_parameters": {"tools": [tool]},
        "response": {"choices": [{"index": 0, "message": message}]},
    }
    made = make([row])
    assert made.answers[0]["messages"][-1] == message
    assert list(made.tools) == ["weather"]


def test_other_choices_of_a_chat_completion_are_counted(make):
    choices = [
        {"index": number, "message": {"role": "assistant", "content": f"Answer {number}"}}
        for number in range(3)
    ]
    request = {"messages": [{"role": "user", "content": "How warm is Ulm?"}], "n": 3}
    made = make([{"request": request, "response": {"choices": choices}}])
    assert made.kinds["other_choice"] == 2


@pytest.mark.parametrize("rows", [console, genai])
def test_documents_over_many_lines_one_after_the_other(make, rows):
    """As the console exporter of an SDK prints spans."""
    made = make("\n".join(json.dumps(row, indent=4) for row in rows()).encode())
    assert (made.report.counts.samples, calls_in(made)) == (1, 2)
    assert made.report.sources[0].entries == len(rows())


def test_what_is_wrong_in_a_later_document_is_named_by_its_line(make):
    good = json.dumps(genai()[0], indent=1)
    bad = '{\n "a": 1,\n "b" 2\n}'
    with pytest.raises(BadInput, match=rf"source\.jsonl:{good.count(chr(10)) + 4}: not JSON"):
        make(f"{good}\n{bad}".encode())


def test_answers_of_tempo_are_otlp(make):
    batches = [one for row in genai() for one in row.get("resourceSpans", ())]
    for value in ({"batches": batches}, {"trace": {"resourceSpans": batches}}):
        assert calls_in(make(value)) == 2


def test_spans_are_named_by_what_they_tell(make):
    """A web server's span comes first."""
    attributes = [{"key": "http.method", "value": {"stringValue": "GET"}}]
    span = {"traceId": "aa", "spanId": "bb", "name": "GET /", "attributes": attributes}
    web = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    assert make([web, *openinference()]).report.format == "openinference"


SPLIT = sorted(name for name, (rows, _) in DIALECTS.items() if len(rows()) > 1)


@pytest.mark.parametrize("name", SPLIT)
def test_one_trace_in_two_files_is_one_conversation(tmp_path, name):
    """Files are rotated, and collectors write spans and log records apart."""
    rows = DIALECTS[name][0]()
    folder = tmp_path / "logs"
    folder.mkdir()
    halves = (rows[: len(rows) // 2], rows[len(rows) // 2 :])
    for number, half in enumerate(halves):
        text = "".join(json.dumps(row) + "\n" for row in half)
        (folder / f"{number}.jsonl").write_text(text, "utf-8")
    whole = tmp_path / "whole.jsonl"
    whole.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    apart, joined = places_in(tmp_path / "apart"), places_in(tmp_path / "joined")
    split, one = import_dataset(folder, apart), import_dataset(whole, joined)
    assert split.counts == one.counts
    assert apart.answers.read_bytes() == joined.answers.read_bytes()
    assert [file.entries for file in split.sources] == [len(half) for half in halves]
    assert sum(file.trials for file in split.sources) == one.counts.trials
    for kind in split.unmapped:
        for place in kind.places:
            half = halves[0 if str(place.source).endswith("0.jsonl") else 1]
            assert 1 <= place.line <= len(half)


def test_an_answer_that_names_only_its_request_is_one_turn(make):
    rows = [json.loads(line) for line in sessions.SOURCES["claude-code"][1].splitlines()]
    for number, row in enumerate(rows):
        name = row.get("message", {}).pop("id", None)
        if name is not None:
            rows[number]["requestId"] = f"req {name}"
    made = make(rows)
    assert sum(one["role"] == "assistant" for one in made.answers[0]["messages"]) == 4


def test_a_log_of_another_task_gives_no_further_trial(tmp_path):
    """Two logs of Inspect have a sample 1 each: other epochs of other questions."""
    log = json.loads(LOG.read_text("utf-8"))
    other = json.loads(json.dumps(log))
    for sample in other["samples"]:
        sample["epoch"] += 100
        sample["input"] = "Something else"
        sample["messages"] = [{"role": "user", "content": "Something else"}]
    for name, value in (("a.json", log), ("b.json", other)):
        (tmp_path / name).write_text(json.dumps(value), "utf-8")
    places = places_in(tmp_path / "made")
    report = import_dataset([tmp_path / "a.json", tmp_path / "b.json"], places)
    kinds = {kind.kind: kind.count for kind in report.unmapped}
    assert kinds["id_taken"] == len(other["samples"])
    assert "other_prompt_in_trial" not in kinds
    alone = import_dataset(tmp_path / "a.json", places_in(tmp_path / "alone"))
    assert report.counts.samples > alone.counts.samples


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "hello\n", "\n\nkey: value\n"])
def test_a_file_that_is_no_json_says_how_it_begins(make, text):
    with pytest.raises(BadInput, match=r'source\.jsonl:\d: not JSON: begins with "'):
        make(text.encode())
