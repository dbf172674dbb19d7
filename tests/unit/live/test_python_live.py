"""Python functions as live tools."""

import pytest

from callmark.calls.registry import Registry
from callmark.errors import UsageError
from callmark.live.python import PythonTools
from callmark.live.recorder import Answered, LostCall

FUNCTIONS = "tests.live_functions"


def tools(*names, **options):
    return PythonTools([f"{FUNCTIONS}:{name}" for name in names], **options)


def test_a_signature_becomes_a_schema():
    add, weather = tools("add", "weather").specs
    assert add["parameters"] == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert add["description"].startswith("Add two numbers.")
    assert weather["parameters"]["properties"]["unit"] == {"enum": ["C", "F"], "default": "C"}
    registry = Registry.from_specs([add, weather], where="here")
    assert registry.validate("add", {"a": 1}) == ()
    assert registry.validate("add", {"a": "1"})


def test_functions_are_called_async_ones_too():
    called = tools("add", "weather")
    assert called.call("add", {"a": 1}) == Answered({"sum": 3})
    assert called.call("weather", {"city": "Bonn", "unit": "F"}) == Answered("Bonn: 21 F")


def test_what_a_function_raises_is_its_answer():
    called = tools("breaks", "add")
    assert called.call("breaks", {"reason": "no row"}) == Answered(
        {"ok": False, "error": "LookupError: no row"}
    )
    for arguments in ({"a": "x"}, {"c": 1}):
        answer = called.call("add", arguments)
        assert isinstance(answer, Answered)
        assert answer.result["error"].startswith("invalid arguments")


def test_no_answer_is_lost_and_never_recorded():
    lost = tools("sleeps", "odd", timeout=0.05)
    assert lost.call("sleeps", {}) == LostCall("sleeps: no answer within 0.05 s")
    assert "JSON" in lost.call("odd", {}).reason
    assert "no function" in lost.call("nope", {}).reason


@pytest.mark.parametrize(
    "name", ["tests", "tests:", "no.such:thing", f"{FUNCTIONS}:nope", "time:time"]
)
def test_what_is_no_function_is_refused(name):
    with pytest.raises(UsageError, match="--python"):
        PythonTools([name])


@pytest.mark.parametrize("name", ["{}", "{}:", "{}:ad", "tests/live_functions.py:add", "{}.py:add"])
def test_who_names_no_function_is_told_those_that_there_are(name):
    with pytest.raises(UsageError) as refused:
        PythonTools([name.format(FUNCTIONS)])
    is_found = "/" not in name
    assert (f" --python {FUNCTIONS}:add --python {FUNCTIONS}:" in str(refused.value)) == is_found


def test_a_type_that_several_arguments_have_is_written_once():
    [spec] = tools("distance").specs
    assert spec["parameters"]["properties"]["end"] == {"$ref": "#/$defs/Place"}
    assert spec["parameters"]["$defs"]["Place"]["required"] == ["city"]
    registry = Registry.from_specs([spec], where="here")
    assert registry.validate("distance", {"start": {"city": "Bonn"}, "end": {"city": "Rome"}}) == ()
    assert registry.validate("distance", {"start": {}, "end": {"city": "Rome"}})


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([":add"], "--python :add: write module:function"),
        ([f"{FUNCTIONS}:add", f"{FUNCTIONS}:add"], "two functions of one name"),
    ],
)
def test_a_function_needs_a_module_and_a_name_of_its_own(names, said):
    with pytest.raises(UsageError, match=said):
        PythonTools(names)
