"""Answers of other programs: two fields are enough, messages are taken too."""

import hashlib
import json

import pytest

from callmark.errors import BadInput
from callmark.records.results import ByteRange
from callmark.records.samples import sample_id_of
from callmark.records.trace import UserTurn
from callmark.resources import demo_paths
from callmark.store.files import encode_result
from callmark.store.recorded import (
    RecordedAnswer,
    RecordedIndex,
    RecordedMessages,
    read_recorded,
)

MESSAGES = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None}]


@pytest.fixture
def file(tmp_path):
    def write(*lines):
        path = tmp_path / "answers.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(texts), "utf-8")
        return path

    return write


def problems_of(path):
    with pytest.raises(BadInput) as caught:
        RecordedIndex(path)
    with pytest.raises(BadInput):
        list(read_recorded(path))
    return [line.removeprefix(str(path)) for line in caught.value.problems]


def test_two_fields_are_enough(file):
    (answer,) = read_recorded(file({"sample_id": "a", "model_output": "x"}))
    assert answer == RecordedAnswer(line=1, sample_id="a", trial=0, model_output="x")


def test_d36_null_output_is_empty_text_and_nulls_are_absent(file):
    """A standard answer that only calls tools has no text: that is no crash."""
    line = dict.fromkeys(
        ["model_output", "trial", "tool_trace", "turns", "said", "reasoning", "stop", "status",
         "span_extractor", "prompt", "metadata", "fingerprints", "decoding", "index"]
    )  # fmt: skip
    (answer,) = read_recorded(file({"sample_id": 7, **line}))
    assert answer == RecordedAnswer(line=1, sample_id="7", trial=0, model_output="")


@pytest.mark.parametrize(
    ("key", "meant"),
    [("tool_traces", "tool_trace"), ("toolTrace", "tool_trace"), ("sampleid", "sample_id")],
)
def test_f1_what_an_answer_hangs_on_is_not_lost_for_a_letter(file, key, meant):
    line = {"sample_id": "a", "model_output": "x", key: []}
    assert problems_of(file(line)) == [f":1: {key}: unknown key; did you mean {meant}?"]


def test_everything_optional_is_taken(file):
    (answer,) = read_recorded(
        file(
            {
                "sample_id": "a",
                "trial": 2,
                "model_output": "Zwölf",
                "turns": [{"start": 0, "end": 6, "role": "assistant"}],
                "said": [{"turn": 1, "text": "go on"}],
                "tool_trace": [{"name": "t", "arguments": {}, "result": {"n": 1}}, 5],
                "stop": "truncated",
                "status": "error",
                "metadata": {"x": 1},
                "decoding": {"temperature": 1, "other": 3},
                "fingerprints": {"dataset_sha256": "d"},
                "unknown": 1,
            }
        )
    )
    assert answer.trial == 2
    assert answer.turns == (ByteRange(0, 6),)
    assert answer.said == (UserTurn(1, "go on"),)
    assert [entry.status for entry in answer.tool_trace] == ["ok", "malformed"]
    assert (answer.stop, answer.status, answer.metadata) == ("truncated", "error", {"x": 1})
    assert answer.decoding.temperature == 1.0
    assert answer.fingerprints.dataset_sha256 == "d"


def test_our_own_lines_lose_nothing_that_scoring_needs(file, make_result):
    result = make_result()
    (answer,) = read_recorded(file(encode_result(result).decode().strip()))
    same = """sample_id trial model_output tool_trace turns said reasoning stop span_extractor
    status index prompt metadata item_sha256 used_fixtures_sha256 offered_tools_sha256 fingerprints
    decoding""".split()
    for name in same:
        assert getattr(answer, name) == getattr(result, name), name


def test_message_lists_in_both_forms(file):
    tools = [{"name": "t"}]
    lines = [
        {"messages": MESSAGES, "sample_id": "a", "id": "no", "trial": 1, "tools": tools},
        {"messages": MESSAGES, "id": 5},
        {"messages": MESSAGES},
        MESSAGES,
    ]
    named, numbered, hashed, bare = read_recorded(file(*lines))
    assert named == RecordedMessages(line=1, sample_id="a", trial=1, messages=MESSAGES, tools=tools)
    assert (numbered.sample_id, numbered.trial, numbered.tools) == ("5", 0, None)
    assert hashed.sample_id == bare.sample_id == sample_id_of({"messages": MESSAGES})
    assert bare.messages == MESSAGES


def test_shapes_may_be_mixed_in_one_file(file):
    kinds = [
        type(r) for r in read_recorded(file(MESSAGES, "", {"sample_id": 1, "model_output": ""}))
    ]
    assert kinds == [RecordedMessages, RecordedAnswer]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON: Expecting property name enclosed in double quotes (column 2)"),
        ("3", "must be a JSON object or a list of messages"),
        ({"sample_id": "a"}, "model_output: is missing (a line holds model_output, or messages)"),
        ({"model_output": "x"}, "sample_id: is missing"),
        ({"sample_id": "", "model_output": "x"}, "sample_id: must not be empty"),
        ({"sample_id": "a", "model_output": 3}, "model_output: must be a string, not 3"),
        ({"sample_id": "a", "model_output": "", "trial": -1},
         "trial: must be at least 0, not -1"),
        ({"sample_id": "a", "model_output": "x", "turns": [{"start": 0, "end": 2}]},
         "turns[0]: 0 to 2 is no range in an answer of 1 bytes"),
        ({"sample_id": "a", "model_output": "x", "stop": "later"},
         "stop: must be answer, max_turns, truncated, filtered, context_exceeded or error,"
         ' not "later"'),
        ({"sample_id": "a", "model_output": "x", "tool_trace": [{"repaired": {"name": "x"}}]},
         "tool_trace[0].repaired.arguments: is missing"),
        ({"sample_id": "a", "model_output": "x", "decoding": {"seed": "x"}},
         "decoding.seed: must be a whole number, not a string"),
        ({"messages": []}, "messages: must not be empty"),
        ({"messages": [{"role": "robot"}]},
         "messages[0].role: must be system, developer, user, assistant, tool or function,"
         ' not "robot"'),
        ("[" * 250 + "]" * 250, "nested deeper than 200 levels"),
    ],
)  # fmt: skip
def test_bad_lines_are_named(file, line, problem):
    assert problems_of(file("", line)) == [f":2: {problem}"]


def test_up_to_twenty_problems_before_anything_is_run(file):
    assert len(problems_of(file(*[{"model_output": n} for n in range(30)]))) == 20
    named = problems_of(file(*[{"model_output": "x"}] * 30))
    assert named == [f":{n}: sample_id: is missing" for n in range(1, 21)]


def test_the_index_finds_answers_by_sample_and_trial(file):
    lines = [
        {"sample_id": f"s{n}", "trial": trial, "model_output": f"{n} {trial}"}
        for n in range(50)
        for trial in range(2)
    ]
    with RecordedIndex(file(*lines)) as index:
        assert len(index) == 100
        for line in reversed(lines):
            found = index.get(line["sample_id"], line["trial"])
            assert found.model_output == line["model_output"]
            assert found.line == lines.index(line) + 1
        assert index.get("s1", 2) is None
        assert index.get("s50", 0) is None


def test_the_same_answer_twice_names_both_lines(file):
    line = {"sample_id": "é", "model_output": "x"}
    path = file(line, {**line, "trial": 1}, {**line, "trial": 0})
    with pytest.raises(BadInput) as caught:
        RecordedIndex(path)
    assert str(caught.value) == (
        f'{path}:3: sample_id: "é", trial 0 stands on line 1 too:'
        " number repeated answers with `trial`"
    )


def test_the_index_knows_the_files_hash(file):
    path = file({"sample_id": "a", "model_output": "x"}, "")
    with RecordedIndex(path) as index:
        assert index.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_that_changed_is_noticed(file):
    path = file({"sample_id": "a", "model_output": "x"})
    with RecordedIndex(path) as index:
        path.write_text(json.dumps({"sample_id": "b", "model_output": "x"}), "utf-8")
        with pytest.raises(BadInput, match="the file changed while it was in use"):
            index.get("a", 0)


@pytest.mark.parametrize("now", ["not JSON at all", json.dumps({"sample_id": "b"})])
def test_a_file_that_became_something_else_is_noticed(file, now):
    path = file({"sample_id": "a", "model_output": "x" * 50})
    with RecordedIndex(path) as index:
        path.write_text(now, "utf-8")
        with pytest.raises(BadInput, match="the file changed while it was in use"):
            index.get("a", 0)


def test_only_answers_that_are_wanted_are_read_and_what_is_unreadable_is_told(file):
    lines = [{"sample_id": name, "model_output": name} for name in "abc"]
    with RecordedIndex(file(*lines), wants="b".__eq__) as index:
        assert len(index) == 1
        assert index.get("b", 0).model_output == "b"
    with pytest.raises(BadInput, match=r"answers.jsonl:2: "):
        RecordedIndex(file(lines[0], "{", lines[1]), wants="b".__eq__)


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(BadInput, match="no such file"):
        RecordedIndex(tmp_path / "no.jsonl")
    with pytest.raises(BadInput, match="is a folder"):
        list(read_recorded(tmp_path))


def test_the_shipped_answers_are_read():
    with RecordedIndex(demo_paths().answers) as index:
        assert len(index) > 100


def test_a_message_stays_on_one_line_whatever_it_quotes(file):
    path = file({"sample_id": "a", "model_output": "x", "stop": "a\nb", "said": [{"\n": 1}]})
    with pytest.raises(BadInput) as caught:
        list(read_recorded(path))
    assert all("\n" not in problem for problem in caught.value.problems)
    assert len(caught.value.problems) == 3
