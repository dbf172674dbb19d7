"""Scoring again what is already there: own results, other people's, and conversations."""

import asyncio
import json
import socket
from pathlib import Path

import msgspec
import pytest

from callmark.errors import BadInput, UsageError
from callmark.run.conclude import run
from callmark.run.rescore import score_file


def write_lines(path: Path, lines) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def metrics_of(report) -> dict:
    return {name: metric.value for name, metric in report.metrics.items()}


def test_a26_own_results_give_the_same_lines_and_the_same_numbers(demo, tmp_path):
    first = run(demo)
    again = tmp_path / "again.jsonl"
    outcome = score_file(demo["out"], {"out": str(again), "report": str(tmp_path / "again.json")})
    assert again.read_bytes() == Path(demo["out"]).read_bytes()
    assert metrics_of(outcome.report) == metrics_of(first.report)
    assert outcome.report.verdict == first.report.verdict
    assert outcome.exit_code == 0


def test_a_line_alone_knows_what_it_was_scored_with(project, tmp_path):
    """Cap, strict keys, allowlist and echo rule of the header come back without the dataset."""
    header = {
        "integration_span_cap": 1,
        "strict_keys": ["summary"],
        "url_allowlist": ["tools.test"],
        "privacy_echo": "deny",
        "span_extractor": "marker",
    }
    answers = [
        {
            "sample_id": f"s{number:03}",
            "model_output": f"Integration: {1000 + 7 * number} people.\nIntegration: See"
            " https://tools.test/x or ann.lee@mail.test",
            "tool_trace": [{"name": "web.search", "arguments": {"q": f"city {number}"}}],
        }
        for number in range(25)
    ]
    items = [json.loads(line) for line in project.dataset.read_text("utf-8").splitlines()][1:]
    project.write(items=items, answers=answers, header=header)
    project.run()
    again = tmp_path / "again.jsonl"
    score_file(project.out, {"out": str(again)})
    assert again.read_bytes() == project.out.read_bytes()
    first = json.loads(again.read_text("utf-8").splitlines()[0])
    assert first["scores"]["spans_over_cap"] == 1
    assert first["scores"]["strict"]["grounded"] == 0
    assert first["scores"]["privacy"]["invented_urls"] == []
    wider = score_file(project.out, {"out": str(again), "integration_span_cap": 2})
    assert wider.report.integration_span_count_histogram["2"] == 25
    first = json.loads(again.read_text("utf-8").splitlines()[0])
    assert first["scores"]["spans_over_cap"] == 0


def test_a14_a141_scoring_opens_no_socket_and_no_event_loop(demo, tmp_path, monkeypatch):
    run(demo)

    def refuse(*_args, **_kwargs):
        raise AssertionError("no socket, no event loop")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(asyncio, "new_event_loop", refuse)
    assert score_file(demo["out"]).exit_code == 0
    assert score_file(messages_file(tmp_path)).report.counts.samples == 1


def test_the_dataset_overrides_what_the_lines_say(project):
    project.run()
    items = [json.loads(line) for line in project.dataset.read_text("utf-8").splitlines()][1:]
    for item in items:
        item["metadata"]["expected_behaviour"] = "no_tool"
    project.write(items)
    alone = score_file(project.out)
    joined = score_file(project.out, {"dataset": str(project.dataset)})
    assert alone.report.counts.eligible == 20
    assert joined.report.counts.controls == 25
    assert joined.report.header.dataset_sha256 != alone.report.header.dataset_sha256


def test_a_part_of_the_dataset_is_partial_and_another_dataset_is_refused(project):
    project.run(limit=5)
    joined = score_file(project.out, {"dataset": str(project.dataset)})
    assert joined.report.partial is True
    assert joined.exit_code == 5
    assert any("20 samples" in warning for warning in joined.report.warnings)
    items = [json.loads(line) for line in project.dataset.read_text("utf-8").splitlines()][1:]
    project.write(items[3:])
    with pytest.raises(BadInput, match=r"results.jsonl:1: .*\(2 more such lines\)"):
        score_file(project.out, {"dataset": str(project.dataset)})


def test_repeated_trials_are_joined_and_kept_together(project):
    lines = [json.loads(line) for line in project.answers.read_text("utf-8").splitlines()]
    both = [{**line, "trial": trial} for trial in (0, 1) for line in lines]
    project.write(answers=both)
    for settings in ({}, {"dataset": str(project.dataset)}):
        report = score_file(project.answers, settings).report
        assert report.counts.samples == 25
        assert report.counts.trials == 50


def test_errors_stay_errors(project):
    lines = [json.loads(line) for line in project.answers.read_text("utf-8").splitlines()]
    project.write(answers=lines[:-1])
    project.run(max_errors=1)
    outcome = score_file(project.out)
    assert outcome.report.counts.trials_error == 1
    assert outcome.exit_code == 4
    assert score_file(project.out, {"max_errors": 1}).exit_code == 0


def spec(required: str) -> dict:
    return {"name": "web.search", "parameters": {"type": "object", "required": [required]}}


def test_recorded_verdicts_are_kept_where_the_tools_are_not_at_hand(project):
    registry = project.folder / "tools.json"
    registry.write_text(json.dumps([spec("nope")]), "utf-8")
    project.run(registry=str(registry))
    with_other_tools = score_file(project.out)
    with_its_own = score_file(project.out, {"registry": str(registry)})
    for outcome in (with_other_tools, with_its_own):
        assert outcome.report.metrics["json_args_valid_rate"].value == 0.0


def test_verdicts_are_made_anew_where_the_tools_are_at_hand(project, tmp_path):
    project.run()
    lines = project.results()
    for line in lines:
        for entry in line["tool_trace"]:
            entry["schema_errors"] = ["/: an old mistake"]
    stale = write_lines(tmp_path / "stale.jsonl", lines)
    assert score_file(stale).report.metrics["json_args_valid_rate"].value == 1.0


def test_the_extractor_is_the_recorded_one_unless_somebody_decides(project, tmp_path):
    project.run(span_extractor="marker")
    out = tmp_path / "again.jsonl"

    def extractors(**settings):
        score_file(project.out, {"out": str(out), "restart": True, **settings})
        return {json.loads(line)["span_extractor"] for line in out.read_text("utf-8").splitlines()}

    assert extractors() == {"marker"}
    assert extractors(span_extractor="claims") == {"claims"}
    assert extractors(dataset=str(project.dataset)) == {"claims"}


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]


def weather(arguments: str = '{"city": "Oslo"}') -> list:
    call = {"id": "1", "type": "function", "function": {"name": "get_weather"}}
    call["function"]["arguments"] = arguments
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather in Oslo?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": '{"celsius": 17, "sky": "clear"}'},
        {"role": "assistant", "content": "It is 17 degrees."},
        {"role": "user", "content": "And how windy, 5 or 6?"},
        {"role": "assistant", "content": "Windy: 6."},
    ]


def messages_file(folder, **line) -> Path:
    return write_lines(folder / "m.jsonl", [{"id": "a", "messages": weather(), **line}])


def one_result(path, tmp_path, **settings) -> dict:
    out = tmp_path / "scored.jsonl"
    score_file(path, {"out": str(out), **settings})
    [line] = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    return line


def test_conversations_are_scored_without_expectations(tmp_path):
    line = one_result(messages_file(tmp_path, tools=TOOLS), tmp_path)
    assert line["sample_id"] == "a"
    assert [message["role"] for message in line["prompt"]] == ["system", "user"]
    assert line["said"] == [{"turn": 2, "text": "And how windy, 5 or 6?"}]
    assert line["model_output"] == "It is 17 degrees.\nWindy: 6."
    assert line["turns"] == [
        {"start": 0, "end": 0},
        {"start": 0, "end": 17},
        {"start": 18, "end": 27},
    ]
    [entry] = line["tool_trace"]
    assert (entry["name"], entry["served_by"], entry["schema_errors"]) == (
        "get_weather",
        "recorded",
        [],
    )
    scores = line["scores"]
    assert scores["kind"] == "unclassified"
    assert scores["json_args_valid"] is True
    assert scores["values"]["supported"] == 1
    assert scores["values"]["user_said"] == 1
    report = score_file(messages_file(tmp_path, tools=TOOLS)).report
    by_name = {gate.name: gate for gate in report.gates}
    assert by_name["integration_f1_macro_lax"].status == "n/a"


def test_arguments_are_checked_against_the_tools_of_the_line(tmp_path):
    wrong = messages_file(tmp_path, tools=TOOLS, messages=weather('{"city": 7}'))
    assert one_result(wrong, tmp_path)["scores"]["json_args_valid"] is False
    other = [{"type": "function", "function": {"name": "other", "parameters": {"type": "object"}}}]
    not_offered = messages_file(tmp_path, tools=other)
    assert one_result(not_offered, tmp_path)["scores"]["json_args_valid"] is False


def test_without_tools_only_what_can_be_checked_is_checked(tmp_path):
    assert one_result(messages_file(tmp_path), tmp_path)["scores"]["json_args_valid"] is True
    broken = messages_file(tmp_path, messages=weather('{"city": '))
    assert one_result(broken, tmp_path)["scores"]["json_args_valid"] is False


def test_calls_in_the_text_of_a_conversation(tmp_path):
    text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
    messages = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": f"<think>hm</think>{text}"},
        {"role": "tool", "content": '{"celsius": 17}'},
        {"role": "assistant", "content": "It is 17."},
    ]
    line = one_result(messages_file(tmp_path, tools=TOOLS, messages=messages), tmp_path)
    assert line["reasoning"] == "hm"
    assert line["model_output"] == "It is 17."
    assert line["tool_trace"][0]["result"] == '{"celsius": 17}'
    assert line["scores"]["values"]["supported"] == 1


def test_a_conversation_joined_with_its_dataset(tmp_path):
    item = {
        "prompt": weather()[:2],
        "metadata": {"sample_id": "a", "call_sequence": [{"name": "get_weather"}]},
    }
    dataset = write_lines(tmp_path / "d.jsonl", [{"__header__": True}, item])
    line = one_result(messages_file(tmp_path, tools=TOOLS), tmp_path, dataset=str(dataset))
    assert line["scores"]["kind"] == "eligible"
    assert line["scores"]["call_f1"] is not None


def test_unanswered_calls_stay_unanswered(tmp_path):
    line = one_result(messages_file(tmp_path, tools=TOOLS, messages=weather()[:3]), tmp_path)
    assert line["tool_trace"][0]["status"] == "unanswered"
    assert line["stop"] == "max_turns"


def test_bad_files_end_with_a_sentence(tmp_path):
    with pytest.raises(BadInput, match="has nothing to score"):
        score_file(write_lines(tmp_path / "empty.jsonl", []))
    bad = write_lines(
        tmp_path / "bad.jsonl",
        [{"sample_id": "a", "model_output": "x", "metadata": {"call_sequence": [{"n": 1}]}}],
    )
    with pytest.raises(BadInput, match=r"bad.jsonl:1: metadata.call_sequence"):
        score_file(bad)
    tools = messages_file(tmp_path, tools=[{"type": "function"}])
    with pytest.raises(BadInput, match=r"m.jsonl:1: tools"):
        score_file(tools)
    good = messages_file(tmp_path)
    with pytest.raises(UsageError, match="the file being scored"):
        score_file(good, {"out": str(good)})


def test_the_result_is_plain_json_for_everybody(demo):
    run(demo)
    plain = msgspec.to_builtins(score_file(demo["out"]).report)
    assert json.loads(json.dumps(plain))["verdict"] == "pass"


def test_recorded_misses_are_no_misses_of_these_fixtures(project, tmp_path):
    """Of results that are replayed nothing is looked up: neither hits nor misses count, but a
    trial with a recorded miss stays unresolved and the miss is listed."""
    fixtures = sorted(project.fixtures.glob("*.jsonl"))
    lines = fixtures[0].read_text("utf-8").splitlines(keepends=True)
    fixtures[0].write_text("".join(lines[:-2]), "utf-8")
    first = project.run().report
    assert first.misses.count == 1  # the other is of a control
    recorded = tmp_path / "recorded.jsonl"
    recorded.write_bytes(project.out.read_bytes())
    second = project.run(model=str(recorded)).report
    assert second.metrics["fixture_hit_rate"].value is None
    assert (second.counts.unresolved, second.misses) == (first.counts.unresolved, first.misses)
    hits = next(gate for gate in second.gates if gate.name == "fixture_hit_rate")
    assert hits.status != "pass"
    again = score_file(recorded, {}).report  # scored again, not replayed: those were looked up
    assert again.metrics["fixture_hit_rate"] == first.metrics["fixture_hit_rate"]
