"""OpenAI-style conversations become samples, fixtures, answers and a registry."""

import json

import pytest
from tests.unit.datasets.importing.talks import (
    ASKED_TWICE,
    WEATHER,
    assistant,
    call,
    result,
    user,
)

from callmark.broker.broker import ToolBroker
from callmark.calls.registry import Registry
from callmark.datasets.reader import open_dataset
from callmark.errors import BadInput, UsageError
from callmark.run.conclude import run
from callmark.run.offers import open_registry
from callmark.run.rescore import score_file
from callmark.store.files import read_results

TALK = {"id": "talk-1", "tools": [WEATHER], "messages": ASKED_TWICE, "reward": 1.0}


def test_a_conversation_becomes_a_sample_with_everything_that_belongs_to_it(make):
    made = make([TALK])
    [item] = made.items
    assert item["prompt"] == ASKED_TWICE[:2]
    assert item["user_turns"] == ["And now?"]
    assert item["metadata"]["tools"] == ["weather"]
    assert item["metadata"]["imported_from"] == {"reward": 1.0}
    assert made.tools == {"weather": WEATHER}
    assert [(line["seq"], line["result"]) for line in made.fixtures] == [
        (1, '{"temp_c": 19}'),
        (2, '{"temp_c": 21}'),
    ]
    assert {line["sample_id"] for line in made.fixtures} == {"talk-1"}
    assert made.answers[0]["messages"] == ASKED_TWICE
    assert made.kinds == {"said_at_the_end": 1}


def test_the_header_pins_what_was_written(make):
    made = make([TALK])
    registry = open_registry(str(made.places.registry))
    with open_dataset(made.places.dataset) as dataset:
        assert dataset.header.dataset_sha256 == dataset.sha256
        assert dataset.header.tool_registry_sha256 == registry.sha256
    broker = ToolBroker(made.places.fixtures, registry)
    assert made.header["fixtures_sha256"] == broker.fixtures_sha256


def test_what_is_replayed_on_the_fixtures_equals_what_is_scored(make, tmp_path):
    made = make([TALK])
    asked = tmp_path / "asked.jsonl"
    messages = [one for one in ASKED_TWICE if one["role"] != "tool"]
    asked.write_text(json.dumps({**made.answers[0], "messages": messages}) + "\n", "utf-8")
    named = {"in": str(made.places.dataset), "registry": str(made.places.registry)}
    out = tmp_path / "out.jsonl"
    fixtures = str(made.places.fixtures)
    run({**named, "runner": "replay", "model": str(asked), "fixtures": fixtures, "out": str(out)})
    score_file(made.places.answers, {**named, "out": str(tmp_path / "scored.jsonl")})
    [served] = read_results(out)
    [scored] = read_results(tmp_path / "scored.jsonl")
    assert [entry.served_by for entry in served.tool_trace] == ["fixture:exact"] * 2
    assert served.scores.spans == scored.scores.spans
    assert served.scores.lax == scored.scores.lax
    assert (served.model_output, served.said) == (scored.model_output, scored.said)
    assert [e.result for e in served.tool_trace] == [e.result for e in scored.tool_trace]


@pytest.mark.parametrize("times", [1, 2])
def test_the_same_source_gives_the_same_bytes(make, times):
    made = make([TALK, {**TALK, "id": "talk-2"}])
    read = [path.read_bytes() for path in made.places.files]
    again = make([TALK, {**TALK, "id": "talk-2"}])
    assert [path.read_bytes() for path in again.places.files] == read


def test_bare_lists_and_one_document_are_read_too(make):
    bare = make([ASKED_TWICE])
    assert bare.report.counts.samples == 1
    assert bare.kinds["tool_without_schema"] == 1
    assert bare.tools["weather"]["parameters"] == {"type": "object"}
    listed = make([[TALK, {**TALK, "id": "b"}]], name="one-line.json")
    assert listed.report.counts.samples == 2
    spread = make({"messages": ASKED_TWICE}, name="spread.json")
    assert spread.report.counts.samples == 1


def test_tools_for_a_source_that_holds_none(make, tmp_path):
    given = tmp_path / "given.json"
    given.write_text(json.dumps([WEATHER]), "utf-8")
    made = make([ASKED_TWICE], tools=given)
    assert made.tools == {"weather": WEATHER}
    assert "tool_without_schema" not in made.kinds


def test_f80_another_tool_of_the_same_name_is_brought_along_and_keeps_its_name(make):
    other = {**WEATHER, "parameters": {"type": "object", "properties": {"zip": {}}}}
    talk = [user("Weather?"), call("weather", '{"zip": 1}'), result("sun"), assistant("Sun.")]
    made = make([TALK, {"id": "b", "tools": [other], "messages": talk}])
    assert made.tools == {"weather": WEATHER}
    assert made.items[0]["metadata"]["tools"] == ["weather"]
    assert made.items[1]["metadata"]["tools"] == [other]
    called = made.answers[1]["messages"][1]["tool_calls"][0]["function"]["name"]
    assert called == made.fixtures[-1]["name"] == "weather"
    assert made.kinds["tool_brought_along"] == 1


@pytest.mark.parametrize("backwards", [False, True])
def test_a_log_without_specs_is_not_judged_by_the_tool_of_another(make, backwards):
    strict = {**WEATHER, "parameters": {**WEATHER["parameters"], "required": ["city"]}}
    talk = [user("Weather?"), call("weather", '{"zip": 1}'), result("sun"), assistant("Sun.")]
    lines = [{**TALK, "tools": [strict]}, {"id": "no-spec", "messages": talk}]
    made = make(lines[::-1] if backwards else lines)
    assert made.kinds["tool_without_schema"] == made.kinds["tool_brought_along"] == 1
    by_id = {item["metadata"]["sample_id"]: item["metadata"] for item in made.items}
    specs = [
        one for item in by_id.values() for one in item.get("tools", ()) if isinstance(one, dict)
    ]
    assert len(specs) == 1
    assert ("required" in specs[0]["parameters"]) is backwards


def test_two_calls_of_its_own_tool_that_the_registry_takes_for_one_are_told_apart(make):
    """The registry's tool, which another log listed, has a default; the sample's own has none."""
    properties = {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}}
    listed = {"name": "weather", "parameters": {"type": "object", "properties": properties}}
    listed["parameters"]["required"] = ["city"]
    talk = [
        user("Ulm?"),
        call("weather", '{"city": "Ulm"}'),
        result("sun"),
        call("weather", '{"city": "Ulm", "days": 1}'),
        result("rain"),
        call("weather", '{"zip": 1}'),
        result("fog"),
        assistant("Rain."),
    ]
    lines = [{**TALK, "tools": [listed]}, {"id": "no-spec", "messages": talk}]
    made = make(lines)
    assert made.items[1]["metadata"]["tools"][0]["parameters"] == {"type": "object"}
    broker = ToolBroker(made.places.fixtures, open_registry(str(made.places.registry)))
    own = made.items[1]["metadata"]["tools"]
    for order in (
        (({"city": "Ulm"}, "sun"), ({"city": "Ulm", "days": 1}, "rain")),
        (
            ({"city": "Ulm", "days": 1}, "rain"),
            ({"zip": 1}, "fog"),
        ),
    ):
        session = broker.session("no-spec").with_tools(Registry.from_specs(own, where="own"))
        assert [session.answer("weather", key).result for key, _ in order] == [
            told for _, told in order
        ]


def test_trials_of_one_sample_share_it_and_differences_are_listed(make):
    messages = [user("Ulm?"), call("weather", '{"city": "Ulm"}'), result("19"), assistant("19.")]
    second = [user("Ulm?"), call("weather", '{"city": "Ulm"}'), result("21"), assistant("21.")]
    third = [user("Bonn?"), assistant("No idea.")]
    lines = [
        {"id": "a", "trial": number, "messages": talk}
        for number, talk in enumerate((messages, second, third))
    ]
    made = make(lines)
    assert made.report.counts.samples == 1
    assert [line["trial"] for line in made.answers] == [0, 1, 2]
    assert [line["result"] for line in made.fixtures] == ["19"]
    assert made.kinds["other_result_in_trial"] == made.kinds["other_prompt_in_trial"] == 1


def test_a_trial_that_was_offered_another_tool_of_that_name_gives_no_fixtures(make):
    """Its calls are other calls by its own tool and the same by that of the sample."""
    own = {**WEATHER, "parameters": {"type": "object", "properties": {"zip": {"default": 1}}}}
    talk = [user("Ulm?"), call("weather", '{"city": "Ulm"}'), result("19"), assistant("19.")]
    lines = [
        {"id": "a", "trial": number, "tools": [tool], "messages": talk}
        for number, tool in enumerate((WEATHER, own))
    ]
    made = make(lines)
    assert [line["result"] for line in made.fixtures] == ["19"]
    assert made.kinds["other_tools_in_trial"] == 1


def test_nothing_is_lost_without_a_word(make):
    strange = [
        user("Hello"),
        call("weather", "{broken"),
        result("?"),
        assistant("one"),
        assistant("two"),
        user("more"),
        call("weather", '{"city": "Ulm"}', "z"),
    ]
    lines = [
        {"messages": strange, "tools": [WEATHER, {"description": "no name"}]},
        {"messages": strange, "tools": [WEATHER, {"description": "no name"}]},
        {"messages": [assistant("I speak first")]},
        {"id": "x", "messages": [user("Hi"), assistant("Hi")], "metadata": {"tools": 5}},
    ]
    made = make(lines)
    assert made.kinds == {
        "bad_tool": 1,
        "call_without_result": 2,
        "duplicate": 1,
        "malformed_call": 2,
        "metadata_kept_apart": 1,
        "no_prompt": 1,
        "script_cut": 2,
    }
    assert made.items[1]["metadata"]["imported_from"]["metadata"] == {"tools": 5}
    places = {entry.kind: [place.line for place in entry.places] for entry in made.report.unmapped}
    assert places["duplicate"] == [2]
    assert places["no_prompt"] == [3]


def test_a_call_of_a_tool_that_was_not_offered_gets_no_fixture(make):
    talk = [user("x"), call("other", "{}"), result("1"), assistant("y")]
    made = make([{"tools": [WEATHER], "messages": talk}])
    assert made.kinds == {"call_of_unknown_tool": 1}
    assert made.report.counts.fixtures == 0
    assert sorted(made.tools) == ["weather"]


def test_a_greeting_before_the_question_belongs_to_the_prompt(make):
    made = make([[assistant("Hi! How can I help?"), user("Ulm?"), assistant("Nice town.")]])
    assert [one["role"] for one in made.items[0]["prompt"]] == ["assistant", "user"]
    assert made.report.counts.turns == 2


def test_a_spec_that_no_registry_takes_lets_every_argument_pass(make):
    bad = {"name": "bad", "parameters": {"type": "nonsense"}}
    made = make([{"tools": [bad], "messages": [user("x"), assistant("y")]}])
    assert made.tools["bad"]["parameters"] == {"type": "object"}
    assert made.kinds == {"bad_tool": 1}


def test_tools_in_the_shape_of_mcp_are_taken(make):
    tool = {"name": "echo", "inputSchema": {"type": "object", "properties": {"x": {}}}}
    made = make([{"tools": [tool], "messages": [user("x"), assistant("y")]}])
    assert made.tools["echo"]["parameters"] == tool["inputSchema"]


def test_one_id_twice_is_an_error_that_names_both_lines(make):
    with pytest.raises(BadInput, match=r'source.jsonl:2: sample_id: "talk-1".* line 1 too'):
        make([TALK, {**TALK, "reward": 0.0}])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b'{"messages": [{"role": "user"}]}\n{"messages": 5}\n', r":2: messages: must be a list"),
        (b'{"messages": [{"role": "user"}]}\n{broken\n', r":2: not JSON"),
        (b'{"messages": [{"role": "user"}]}\n\xff\n', r":2: not UTF-8"),
        (b'{"messages": [{"role": "nobody"}]}\n', r":1: messages\[0\].role: must be"),
        (b"", "is empty"),
        (
            b'[\n{"messages": [{"role": "user", "content": "x"}]},\n{"messages": []}]',
            r":3: messages",
        ),
        (b'{"a":\n[1,\n', r":3: not JSON"),
    ],
)
def test_bad_input_is_named_by_file_and_line(make, lines, message):
    with pytest.raises(BadInput, match=message):
        make(lines)


def test_an_unknown_shape_says_what_next(make):
    with pytest.raises(UsageError, match=r"looks like none of .* --format"):
        make([{"text": "?"}])


def test_nothing_is_written_if_anything_is_wrong(make, tmp_path):
    with pytest.raises(BadInput):
        make(b'{"messages": [{"role": "user", "content": "x"}]}\n{broken\n')
    assert [path.name for path in (tmp_path / "made").rglob("*")] == []


def test_a_folder_with_other_fixtures_is_refused(make, tmp_path):
    folder = tmp_path / "made" / "fixtures"
    folder.mkdir(parents=True)
    (folder / "mine.jsonl").write_text("{}", "utf-8")
    with pytest.raises(UsageError, match="name a folder of its own"):
        make([TALK])
