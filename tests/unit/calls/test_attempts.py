"""Calls as servers give them, and attempts as lines of the trace."""

import pytest

from callmark.calls.attempts import MalformedCall, ToolCall, entry_for, native_call
from callmark.records.trace import RepairedCall


@pytest.mark.parametrize("given", [None, "", "  ", "{}", {}, "null"])
def test_no_arguments_at_all_are_an_empty_object(given):
    call = native_call("f", given, call_id="c1")
    assert isinstance(call, ToolCall)
    assert call.arguments == {}
    assert call.call_id == "c1"


def test_arguments_come_as_text_or_as_an_object():
    assert native_call("f", '{"a": [1, {"b": 2}]}').arguments == {"a": [1, {"b": 2}]}
    assert native_call("f", {"a": 1}).arguments == {"a": 1}
    assert native_call("f", '{"a":1}').raw == '{"a":1}'
    assert native_call("f", {"a": 1}).raw == '{"a":1}'
    assert native_call("f", {"a": 1}, raw="as sent").raw == "as sent"


def test_d58_arguments_that_fail_to_parse_never_become_empty():
    call = native_call("f", '{"a": 1')
    assert isinstance(call, MalformedCall)
    assert call.name == "f"
    assert "not JSON" in call.reason
    assert call.repaired == RepairedCall("f", {"a": 1})


def test_python_repr_is_repaired_for_show_only():
    call = native_call("f", "{'a': True, 'b': None}")
    assert isinstance(call, MalformedCall)
    assert call.repaired == RepairedCall("f", {"a": True, "b": None})


@pytest.mark.parametrize("given", ["[1]", "3", '"x"', [1], 3, True, "NaN", '{"a": NaN}'])
def test_anything_but_an_object_is_malformed(given):
    assert isinstance(native_call("f", given), MalformedCall)


@pytest.mark.parametrize("name", [None, "", " ", 3, {"x": 1}])
def test_d4_a_call_without_a_name_is_malformed(name):
    call = native_call(name, {"a": 1})
    assert isinstance(call, MalformedCall)
    assert call.name is None


def test_deep_arguments_are_malformed_whatever_the_stack_allows():
    deep = '{"a":' * 150 + "1" + "}" * 150
    call = native_call("f", deep)
    assert isinstance(call, MalformedCall)
    assert "nested deeper than" in call.reason
    assert isinstance(native_call("f", '{"a":' * 100_000), MalformedCall)
    nested: dict = {}
    for _ in range(100_000):
        nested = {"a": nested}
    assert "nested deeper than" in native_call("f", nested).reason
    assert isinstance(native_call("f", '{"a":' * 90 + "1" + "}" * 90), ToolCall)


def test_a_long_broken_text_is_not_given_to_the_lenient_parser():
    assert native_call("f", '{"a": "' + '\\"' * 100_000).repaired is None


def test_attempts_become_lines_of_the_trace():
    entry = entry_for(native_call("f", '{"a":1}', call_id="c"), 2)
    assert (entry.name, entry.arguments, entry.turn) == ("f", {"a": 1}, 2)
    assert (entry.status, entry.served_by, entry.call_id) == ("unanswered", None, "c")
    broken = entry_for(native_call("f", "{'a':1}"), None)
    assert (broken.status, broken.arguments, broken.turn) == ("malformed", None, None)
    assert broken.repaired == RepairedCall("f", {"a": 1})
    assert broken.reason
    assert broken.raw == "{'a':1}"
