"""Formats without types take them from the tool's schema."""

import pytest

from callmark.calls.ledger import parse_tool_calls, read_turn
from callmark.calls.registry import Registry
from callmark.calls.schema import SchemaError, compile_once, compile_schema, typed_value


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, "42", "42"),
        ({"type": "string"}, "true", "true"),
        ({"type": "string"}, "null", "null"),
        ({"type": "string"}, '{"a": 1}', '{"a": 1}'),
        ({"type": "string"}, '"quoted"', '"quoted"'),
        ({"type": "string"}, "  kept  ", "  kept  "),
        ({"type": "integer"}, "42", 42),
        ({"type": "integer"}, " -7 ", -7),
        ({"type": "integer"}, "3.0", 3.0),
        ({"type": "integer"}, "3.5", "3.5"),
        ({"type": "integer"}, "many", "many"),
        ({"type": "integer"}, "9" * 30, int("9" * 30)),
        ({"type": "integer"}, "9" * 5_000, "9" * 5_000),
        ({"type": "integer"}, "true", "true"),
        ({"type": "number"}, "3.5", 3.5),
        ({"type": "number"}, "3", 3),
        ({"type": "number"}, "1e999", "1e999"),
        ({"type": "number"}, "NaN", "NaN"),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": "boolean"}, "TRUE", True),
        ({"type": "boolean"}, "1", "1"),
        ({"type": "null"}, "None", None),
        ({"type": "object"}, '{"a": [1]}', {"a": [1]}),
        ({"type": "object"}, "{'a': True}", {"a": True}),
        ({"type": "object"}, "{1, 2}", "{1, 2}"),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "array"}, "['a', 'b']", ["a", "b"]),
        ({"type": "array"}, "a, b", "a, b"),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["integer", "string"]}, "5", 5),
        ({"type": ["integer", "string"]}, "five", "five"),
        ({"anyOf": [{"type": "object"}, {"type": "null"}]}, '{"k": 1}', {"k": 1}),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, "x", "x"),
        ({"allOf": [{"type": "integer"}]}, "5", 5),
        ({"type": "string", "nullable": True}, "null", None),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": [1, 2]}, "1", 1),
        ({"const": True}, "true", True),
        ({"$ref": "#/$defs/count"}, "5", 5),
        ({"$ref": "#/$defs/name"}, "5", "5"),
        ({"$ref": "#/$defs/circle"}, "5", 5),
        ({"$ref": "#/nowhere"}, "5", 5),
        ({}, "5", 5),
        ({}, "Paris", "Paris"),
        ({}, "02134", "02134"),
        ({}, '"quoted"', '"quoted"'),
        ({}, "True", True),
        (True, "[1]", [1]),
        ({"type": [{}, 3]}, "5", 5),
    ],
)  # fmt: skip
def test_the_schema_says_what_a_text_means(schema, text, value):
    parameters = {
        "properties": {"x": schema},
        "$defs": {
            "count": {"type": "integer"},
            "name": {"type": "string"},
            "circle": {"anyOf": [{"$ref": "#/$defs/circle"}, {"$ref": "#/$defs/circle"}]},
        },
    }
    found = typed_value(text, "x", parameters)
    assert found == value
    assert type(found) is type(value)


def test_parameters_that_the_schema_does_not_name():
    assert typed_value("5", "y", {"additionalProperties": {"type": "string"}}) == "5"
    assert typed_value("5", "y", {"additionalProperties": False}) == 5
    for nothing in (None, [], {"properties": None}, {"properties": []}):
        assert typed_value("5", "y", nothing) == 5


CALL = (
    "<tool_call>\n<function=web_search>\n<parameter=q>\n42\n</parameter>\n</function>\n</tool_call>"
)
SPEC = {
    "name": "web.search",
    "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
}


@pytest.mark.parametrize(
    ("tools", "value"),
    [
        ([SPEC], "42"),
        ([{"type": "function", "function": SPEC}], "42"),
        ({"tools": [SPEC]}, "42"),
        ({"web.search": SPEC}, "42"),
        (["web.search"], 42),
        ([{"name": "web.search"}], 42),
        (None, 42),
    ],
)
def test_specs_give_types_and_names_do_not(tools, value):
    (row,) = parse_tool_calls(CALL, tools)
    assert row["arguments"] == {"q": value}


def test_a_registry_knows_the_schema_by_any_spelling():
    registry = Registry.from_specs([SPEC], where="tools")
    assert registry.parameters("web_search") == SPEC["parameters"]
    assert registry.parameters("absent") is None
    (call,) = read_turn(CALL, offered=registry.names, schema_of=registry.parameters).attempts
    assert call.arguments == {"q": "42"}


def test_a_value_stands_on_lines_of_its_own():
    """Qwen's format puts one newline before and one after a value; all others belong to it."""
    text = "<function=f>\n<parameter=a>\n\n  x\n\n</parameter>\n<parameter=b>y</parameter>\n</function>"
    (row,) = parse_tool_calls(text)
    assert row["arguments"] == {"a": "\n  x\n", "b": "y"}


def test_a_format_may_say_itself_that_a_value_is_a_string():
    text = (
        '<｜DSML｜invoke name="f"><｜DSML｜parameter name="a" string="true">5</｜DSML｜parameter>'
        '<｜DSML｜parameter name="b" string="false">5</｜DSML｜parameter></｜DSML｜invoke>'
        '<｜DSML｜invoke name="g"/>'
    )
    first, second = parse_tool_calls(text)
    assert (first["arguments"], second["arguments"]) == ({"a": "5", "b": 5}, {})


def test_a_value_may_hold_the_tags_of_other_formats():
    code = "<b>x</b> </function> </tool_call> {'a': 1}"
    text = f"<tool_call><function=f><parameter=code>{code}</parameter></function></tool_call>"
    (row,) = parse_tool_calls(text)
    assert row["arguments"] == {"code": code}
    text = '<function name="f"><param name="a"><![CDATA[ <b>\n ]]></param></function>'
    (row,) = parse_tool_calls(text)
    assert row["arguments"] == {"a": " <b>\n "}


@pytest.mark.parametrize("compiled", [compile_once, compile_schema])
@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ([1], '/: [1] is not of types "boolean", "object"'),
        (None, '/: null is not of types "boolean", "object"'),
        ({"default": {1, 2}}, "/: not a JSON value: "),
        ({"default": 10**5000}, "/: not a JSON value: "),
    ],
)
def test_what_is_no_schema_is_refused_in_a_sentence(compiled, schema, said):
    with pytest.raises(SchemaError) as caught:
        compiled(schema)
    assert str(caught.value).startswith(said)
