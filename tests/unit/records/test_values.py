"""Values that come from outside: what they have to be, what they are called, what tells them apart."""

from types import MappingProxyType

import jsonschema_rs
import msgspec
import pytest
from tests.builders import make_result, served_call

import callmark
from callmark.errors import UsageError
from callmark.records.jsontext import (
    digest,
    digest_parsed,
    want_list,
    want_number,
    want_object,
    want_text,
    want_texts,
)
from callmark.records.problems import schema_problems
from callmark.records.report import quarantine_problems
from callmark.records.results import MARKED, marks_of
from callmark.records.samples import checks_of
from callmark.store.files import decode_result, encode_result


@pytest.mark.parametrize(
    ("want", "value", "found"),
    [
        (want_object, MappingProxyType({"a": 1}), {"a": 1}),
        (want_object, None, {}),
        (want_list, (1, 2), (1, 2)),
        (want_list, None, ()),
        (want_texts, ["a"], ("a",)),
        (want_texts, None, ()),
        (want_number, 1.5, 1.5),
    ],
)
def test_a_value_of_the_kind_that_is_wanted(want, value, found):
    assert want(value) == found


@pytest.mark.parametrize(
    ("want", "value", "said"),
    [
        (want_object, [1], "must be an object, not list"),
        (want_list, "abc", "must be a list, not str"),
        (want_text, None, "must be a text, not NoneType"),
        (want_texts, [1], "must be a text, not int"),
        (want_number, "1", "must be a number, not str"),
    ],
)
def test_a_value_of_another_kind_is_refused(want, value, said):
    with pytest.raises(TypeError, match=f"^{said}$"):
        want(value)


@pytest.mark.parametrize("value", [{"b": 1, "a": 10**30}, ["a\ud800"], {"x": [1.0, None]}])
def test_what_was_parsed_has_the_digest_of_any_other_value(value):
    assert digest_parsed(value) == digest(value)


@pytest.mark.parametrize(
    ("sample_id", "num_shards", "said"),
    [
        ("a", 0, "--num-shards must be a whole number from 1, not 0"),
        ("a", "3", "--num-shards must be a whole number from 1, not '3'"),
        (7, 3, "a sample_id is a text, not 7; see sample_id_of"),
    ],
)
def test_a_shard_of_nothing_sensible_is_refused(sample_id, num_shards, said):
    with pytest.raises(UsageError) as caught:
        callmark.shard_of(sample_id, num_shards)
    assert str(caught.value) == said


def test_a_check_that_nobody_knows_is_refused():
    with pytest.raises(TypeError, match="checks: no such check: rhymes"):
        checks_of([{"contains": "a"}, {"rhymes": True}])


def test_every_quarantine_that_is_none_is_told():
    problems = list(quarantine_problems({"a": 3, "b": "me", "c": {"owner": "o", "til": 1}}))
    assert problems[0] == (("a",), "must be {owner, until, why}, not 3")
    assert problems[1][0] == ("b",)
    assert ("c", "til") in [where for where, _ in problems]


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"maximum": 3}, 4, "a: must be at most 3, not 4"),
        ({"minimum": 3}, 2, "a: must be at least 3, not 2"),
        ({"minLength": 1}, "", "a: must not be empty"),
        (
            {"additionalProperties": False, "properties": {"b": {}}},
            {"b": 1, "c": 2},
            "a: unknown field c",
        ),
    ],
)
def test_what_a_schema_forbids_is_said_in_words(schema, value, said):
    validator = jsonschema_rs.Draft202012Validator({"properties": {"a": schema}})
    assert schema_problems(validator, {"a": value}) == [said]


def marks(**changes):
    result = make_result(**changes)
    return dict(zip(MARKED, marks_of(result), strict=True))


def called_with(arguments):
    return [msgspec.structs.replace(served_call(), arguments=arguments)]


@pytest.mark.parametrize(
    "changes",
    [
        {"output": "a\ud800b é \x7f\n"},
        {"trace": called_with({"q": "\udfff", "x": 1e16})},
        {"trace": called_with({"n": 10**30})},
        {"trace": called_with({"n": 10**30, "\ud800": 1e-7})},
    ],
)
def test_an_answer_keeps_its_mark_when_it_is_written_and_read(changes):
    made = make_result(**changes)
    assert marks_of(decode_result(encode_result(made))) == marks_of(made)
    assert marks(**changes)["answer"] != marks()["answer"]


def test_texts_that_differ_have_marks_that_differ():
    assert marks(output="a\ud800b")["answer"] != marks(output="a\ud800c")["answer"]
    # As long as a hash, and none.
    hashes = [msgspec.structs.replace(make_result(), item_sha256=letter * 64) for letter in "xyz"]
    assert len({marks_of(one)[0] for one in hashes}) == 3
