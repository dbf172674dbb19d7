"""BFCL: types become JSON Schema, accepted values become expectations."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.datasets.importing.conftest import lines_of

from callmark import score_item
from callmark.datasets.importing.bfcl import MAX_SPELLINGS, Alternatives, expected_call, json_schema
from callmark.datasets.importing.desk import Notes
from callmark.errors import BadInput

FUNCTION = {
    "name": "area",
    "description": "Area of a shape.",
    "parameters": {
        "type": "dict",
        "properties": {
            "base": {"type": "float", "description": "b"},
            "sides": {"type": "tuple", "items": {"type": "integer"}},
            "extra": {"type": "any"},
            "options": {"type": "dict", "properties": {"type": {"type": "String"}}},
            "unit": {"type": "string", "required": True},
        },
        "required": ["base"],
    },
}
QUESTION = [[{"role": "user", "content": "How large is it?"}]]


def test_types_are_mapped_to_json_schema():
    notes = Notes()
    schema = json_schema(FUNCTION["parameters"], 1, notes)
    assert schema == {
        "type": "object",
        "properties": {
            "base": {"type": "number", "description": "b"},
            "sides": {"type": "array", "items": {"type": "integer"}},
            "extra": {},
            "options": {"type": "object", "properties": {"type": {"type": "string"}}},
            "unit": {"type": "string"},
        },
        "required": ["base"],
    }
    assert notes.unmapped() == ()
    assert json_schema({"type": "Widget"}, 4, notes) == {}
    assert [(one.kind, one.places[0].line) for one in notes.unmapped()] == [("unknown_type", 4)]


def upstream(tmp_path, truth, row_id: str = "simple_python_0", **changes):
    questions = tmp_path / "BFCL_v4_simple_python.json"
    row = {"id": row_id, "question": QUESTION, "function": [FUNCTION], **changes}
    questions.write_text(json.dumps(row) + "\n", "utf-8")
    answers = tmp_path / "possible_answer" / questions.name
    answers.parent.mkdir(exist_ok=True)
    answers.write_text(json.dumps({"id": row_id, "ground_truth": truth}) + "\n", "utf-8")
    return questions


def test_questions_and_answers_of_two_files_come_together(make, tmp_path):
    accepted = {"base": [10.0], "unit": ["cm", "centimetre", ""], "sides": [[1, 2]]}
    made = make(upstream(tmp_path, [{"area": accepted}]))
    assert made.report.format == "bfcl"
    [item] = made.items
    assert item["prompt"] == "How large is it?"
    assert item["metadata"]["scenario"] == "simple_python"
    assert item["metadata"]["call_sequence"] == [
        {
            "name": "area",
            "arguments": {"base": 10.0, "unit": "cm", "sides": [1, 2]},
            "accept": {"/unit": ["centimetre", ""]},
            "optional": ["unit"],
        }
    ]
    assert made.kinds == {}


def test_irrelevance_is_a_control(make, tmp_path):
    made = make(upstream(tmp_path, [], "live_irrelevance_12-3-4"))
    metadata = made.items[0]["metadata"]
    assert metadata["expected_behaviour"] == "no_tool"
    assert metadata["tools"] == ["area"]
    item = {"prompt": "?", "metadata": metadata}
    scores = score_item(item, "", [{"name": "area", "arguments": {"base": 1}}])
    assert scores["controls_with_integration"] == 1


def test_what_breaks_its_own_schema_is_listed(make, tmp_path):
    made = make(upstream(tmp_path, [{"area": {"base": ["ten"]}}]))
    assert made.kinds == {"accepted_answer_breaks_schema": 1}
    assert "base" in made.report.unmapped[0].places[0].detail


def test_questions_without_an_answer_and_multi_turn_ones_are_counted(make, tmp_path):
    path = upstream(tmp_path, [], "live_relevance_0")
    turns = {"id": "multi_turn_base_0", "question": QUESTION * 2, "involved_classes": ["Files"]}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(turns) + "\n")
    made = make(path)
    assert made.kinds == {"multi_turn_question": 1, "no_accepted_answer": 1}
    assert made.report.counts.samples == 1


def test_a_source_of_which_nothing_fits_says_why(make):
    with pytest.raises(BadInput, match=r"nothing that could be imported \(1 multi_turn_question"):
        make([{"id": "multi_turn_base_0", "question": QUESTION * 2}])


@pytest.mark.parametrize(
    ("truth", "message"),
    [([5], ":1: ground_truth: must be an object"), ([{"area": 5}], ":1: ground_truth.area: must")],
)
def test_answers_that_are_none_are_named(make, tmp_path, truth, message):
    with pytest.raises(BadInput, match=message):
        make(upstream(tmp_path, truth))


def test_a_bad_file_of_answers_is_named(make, tmp_path):
    path = upstream(tmp_path, [])
    other = tmp_path / "other.json"
    other.write_text('{"id": "a", "ground_truth": []}\n{"id": "b"}\n', "utf-8")
    with pytest.raises(BadInput, match=r"other.json:2: must hold an id"):
        make(path, accepted=other)


def test_alternatives_inside_objects_and_lists_are_accepted_where_they_stand():
    accepted = {
        "where": [{"school": ["Blue", "Blue HS"], "year": ["", 3]}, {"school": ["Red", "R"]}]
    }
    alternatives = Alternatives()
    call = expected_call("find", accepted, None, alternatives)
    assert call["arguments"] == {"where": {"school": "Blue", "year": 3}}
    assert call["accept"] == {
        "/where/school": ["Blue HS"],
        "/where/year": ["", None],
        "/where": [{"school": "Red"}, {"school": "R"}],
    }
    assert fits(call, {"where": {"school": "Blue HS"}})
    assert fits(call, {"where": {"school": "R"}})
    assert not fits(call, {"where": {"school": "Green"}})


def test_an_argument_that_is_only_left_out_must_be():
    call = expected_call("find", {"a": [1], "b": [""]}, None, Alternatives())
    assert fits(call, {"a": 1})
    assert fits(call, {"a": 1, "b": ""})
    assert not fits(call, {"a": 1, "b": "x"})


def test_too_many_spellings_are_cut_and_said():
    many = {name: list(range(1, 9)) for name in "abc"}
    alternatives = Alternatives()
    expected_call("find", {"x": [1, many]}, None, alternatives)
    assert alternatives.cut
    assert len(alternatives.accept["/x"]) == MAX_SPELLINGS


VALUES = st.one_of(st.integers(-5, 5), st.text("ab/~", min_size=1, max_size=3), st.booleans())
ACCEPTED = st.dictionaries(
    st.text("xy/~0", min_size=1, max_size=3),
    st.tuples(st.lists(VALUES, min_size=1, max_size=3), st.booleans()).map(
        lambda drawn: [*drawn[0], ""] if drawn[1] else drawn[0]
    ),
    max_size=3,
)


@given(accepted=ACCEPTED, data=st.data())
def test_every_choice_of_accepted_values_fits_and_no_other_does(accepted, data):
    call = expected_call("find", accepted, None, Alternatives())
    chosen = {name: data.draw(st.sampled_from(values)) for name, values in accepted.items()}
    given_values = {name: value for name, value in chosen.items() if value != ""}
    assert fits(call, given_values)
    for name in accepted:
        assert not fits(call, {**given_values, name: "nobody accepts this"})


def fits(call: dict, arguments: dict) -> bool:
    item = {"prompt": "?", "metadata": {"call_sequence": [call]}}
    registry = [{"name": "find", "parameters": {"type": "object"}}]
    scores = score_item(item, "", [{"name": "find", "arguments": arguments}], registry=registry)
    return scores["call_f1"] == 1


def test_the_normalised_shape_keeps_its_schemas(make, tmp_path):
    schema = {"x-bfcl-type": "dict", "type": "object", "properties": {"n": {"type": "integer"}}}
    rows = [
        {
            "id": "parallel_0",
            "category": "parallel",
            "language": "Python",
            "question": QUESTION[0],
            "functions": [{"name": "fac", "description": "", "parameters": schema}],
            "ground_truth": [{"fac": {"n": [3]}}, {"fac": {"n": [4]}}],
            "control": None,
        }
    ]
    made = make(rows)
    assert made.tools["fac"]["parameters"] == schema
    assert made.items[0]["metadata"]["call_match"] == "unordered"
    assert not made.places.answers.exists()
    assert not made.places.fixtures.exists()
    assert lines_of(made.places.dataset)[0].keys() == {
        "__header__",
        "dataset_sha256",
        "tool_registry_sha256",
    }
