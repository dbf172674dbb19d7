"""Specs in every form, real JSON Schema for arguments, and names in their variants."""

import hashlib
import json
from pathlib import Path

import pytest

import callmark
from callmark.calls.registry import Registry, registry_sha256, tool_names, validate_arguments
from callmark.errors import BadInput, UsageError

DATA = Path(callmark.__file__).parent / "data"
BUILTIN = json.loads((DATA / "tools" / "builtin.json").read_text("utf-8"))

SEARCH = {
    "name": "web.search",
    "description": "Search.",
    "parameters": {
        "type": "object",
        "properties": {
            "q": {"type": "string"},
            "top_k": {"type": "integer", "minimum": 1},
            "safe": {"enum": ["on", "off"]},
        },
        "required": ["q"],
        "additionalProperties": False,
    },
}
CODE = {"name": "code_exec", "parameters": {}, "x-callmark": {"aliases": ["code.execute"]}}


def nested_schema(depth):
    return {"not": nested_schema(depth - 1)} if depth else {}


def registry(*specs):
    return Registry.from_specs(list(specs), where="tools.json")


def problems_of(specs):
    with pytest.raises(BadInput) as caught:
        Registry.from_specs(specs, where="tools.json")
    return caught.value.problems


@pytest.mark.parametrize(
    "specs",
    [
        [SEARCH],
        SEARCH,
        {"tools": [SEARCH]},
        {"web.search": SEARCH},
        {"web.search": {key: value for key, value in SEARCH.items() if key != "name"}},
        [{"type": "function", "function": SEARCH}],
        {"type": "function", "function": SEARCH},
    ],
    ids=["list", "single", "tools", "mapping", "mapping without names", "wrapped", "one wrapped"],
)
def test_every_form_of_specs_is_one_registry(specs):
    """The hash is computed from what the specs say, however they are packed."""
    found = Registry.from_specs(specs, where="tools.json")
    assert found.names == ("web.search",)
    assert found.sha256 == registry_sha256([SEARCH])
    assert found.validate("web.search", {"q": "x"}) == ()


def test_a59_the_hash_is_sha256_of_canonical_json_and_follows_every_change():
    text = json.dumps(
        {"web.search": SEARCH}, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
    assert registry_sha256([SEARCH]) == hashlib.sha256(text.encode()).hexdigest()
    assert registry_sha256([SEARCH, CODE]) == registry_sha256([CODE, SEARCH])
    changed = json.loads(json.dumps(SEARCH))
    changed["parameters"]["properties"]["top_k"]["minimum"] = 2
    assert registry_sha256([changed]) != registry_sha256([SEARCH])


def test_a7_arguments_are_checked_by_the_whole_schema():
    """true for an integer, a missing key, a wrong enum and an unknown key are each invalid."""
    tools = registry(SEARCH)
    assert tools.validate("web.search", {"q": "x", "top_k": 3, "safe": "on"}) == ()
    assert tools.validate("web.search", {"q": "x", "top_k": True}) == (
        '/top_k: true is not of type "integer"',
    )
    assert tools.validate("web.search", {"top_k": 3}) == ('/: "q" is a required property',)
    (error,) = tools.validate("web.search", {"q": "x", "safe": "maybe"})
    assert error.startswith('/safe: "maybe" is not one of')
    (error,) = tools.validate("web.search", {"q": "x", "topk": 3})
    assert "topk" in error


def test_d37_no_corner_of_the_schema_language_is_skipped():
    """Bounds, booleans, lists, nested objects and oneOf; 3.0 is an integer, 3.5 is none."""
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 9},
            "flag": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "box": {"type": "object", "properties": {"w": {"type": "number"}}, "required": ["w"]},
            "id": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        },
    }
    tools = registry({"name": "f", "parameters": schema})
    good = {"n": 3.0, "flag": False, "tags": ["a"], "box": {"w": 1}, "id": 7}
    assert tools.validate("f", good) == ()
    for wrong, where in [
        ({"n": 3.5}, "/n"), ({"n": True}, "/n"), ({"n": 0}, "/n"), ({"n": "3"}, "/n"),
        ({"flag": 0}, "/flag"), ({"tags": [1]}, "/tags/0"), ({"tags": "a"}, "/tags"),
        ({"box": {}}, "/box"), ({"box": {"w": "1"}}, "/box/w"), ({"id": None}, "/id"),
    ]:  # fmt: skip
        (error,) = tools.validate("f", wrong)
        assert error.startswith(f"{where}: "), error


@pytest.mark.parametrize("arguments", [None, "x", 3, True, ["path", "x"], [["path", "x"]]])
def test_d4_arguments_that_are_no_object_are_one_error(arguments):
    assert len(registry(SEARCH).validate("web.search", arguments)) == 1
    assert len(validate_arguments(SEARCH, arguments)) == 1


def test_arguments_that_no_json_text_can_hold_are_an_error_not_a_crash():
    deep: dict = {}
    for _ in range(50_000):
        deep = {"a": deep}
    for arguments in ({"q": "\ud800"}, {1: 2}, {"q": object()}, deep):
        assert len(validate_arguments({"name": "f", "parameters": {}}, arguments)) == 1


def test_long_values_do_not_flood_the_error():
    (error,) = registry(SEARCH).validate("web.search", {"q": ["x" * 10_000]})
    assert len(error) < 300
    assert error.endswith('is not of type "string"')


def test_errors_come_in_one_order():
    errors = registry(SEARCH).validate("web.search", {"z": 1, "top_k": "3"})
    assert list(errors) == sorted(errors)
    assert len(errors) == 3


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ([{"parameters": {}}], "tools.json: tool 1: no name"),
        ([{"name": "  "}], "tools.json: tool 1: no name"),
        (["web.search"], "tools.json: tool 1: a spec must be an object"),
        ([SEARCH, SEARCH], "tools.json: tool 2: web.search: a second tool of this name"),
        ({"other": SEARCH}, "tools.json: other: the spec calls itself 'web.search'"),
        ([{"name": "f", "parameters": []}], "tools.json: tool 1: f: parameters: expected"),
        ([{"name": "f", "parameters": {"type": "dict"}}], "tool 1: f: parameters: /type: "),
        ([{"name": "f", "inputSchema": []}], "f: parameters: expected"),
        ([{"name": "f", "x-other": {"ignore": ["a"]}}], "f: x-other: has the fields of x-callmark"),
        ([{"name": "f", "description": 3}], "f: description: expected text"),
        (
            [{"name": "f", "x-callmark": {"ignored": []}}],
            "f: x-callmark.ignored: unknown key; did you mean ignore?",
        ),
        ([{"name": "f", "x-callmark": {"ignore": "a"}}], "f: x-callmark: "),
        ([{"function": {"name": "f"}, "x-callmark": {}}], "belongs inside `function`"),
        ([CODE, {"name": "code.execute"}], "the alias 'code.execute' already belongs"),
        ("web.search", "tools.json: expected a list of function specs"),
        ([{"name": "f", "parameters": {"const": float("nan")}}], "tools.json: tool 1: f: "),
        ([{"name": "f", "parameters": nested_schema(150)}], "f: parameters: /: nested deeper"),
    ],
)
def test_a_bad_spec_is_named_with_what_is_wrong(specs, expected):
    (problem,) = problems_of(specs)
    assert expected in problem


def test_a_tool_may_be_called_function():
    """Beside others it is one of them, and they do not vanish."""
    both = Registry.from_specs({"function": {}, "other": {}}, where="x")
    assert both.names == ("function", "other")
    wrapped = {"type": "function", "function": {"name": "f"}}
    assert Registry.from_specs(wrapped, where="x").names == ("f",)
    assert Registry.from_specs({"function": {"name": "function"}}, where="x").names == ("function",)
    assert "belongs inside `function`" in problems_of({**wrapped, "x-callmark": {}})[0]


def test_all_bad_specs_are_named_at_once():
    assert (
        len(problems_of([{"name": "a", "parameters": 3}, {}, {"name": "b", "parameters": 4}])) == 3
    )


@pytest.mark.parametrize(
    "reference",
    ["http://example.com/s.json", "https://localhost:1/x", "file:///etc/passwd", "other.json"],
)
def test_a_ref_to_a_file_or_the_network_is_refused_and_nothing_is_fetched(reference):
    specs = [{"name": "f", "parameters": {"properties": {"x": {"$ref": reference}}}}]
    (problem,) = problems_of(specs)
    assert "tool 1: f: parameters:" in problem
    assert reference in problem
    assert "nothing is fetched" in problem
    with pytest.raises(BadInput, match="nothing is fetched"):
        validate_arguments(specs[0], {})


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "^(a*)*b", "^(.*a){12}$"])
def test_f15_a_pattern_in_a_schema_takes_linear_time(pattern):
    spec = {"name": "t", "parameters": {"properties": {"q": {"pattern": pattern}}}}
    [problem] = registry(spec).validate("t", {"q": "a" * 100_000 + "!"})
    assert problem.startswith("/q: ")


@pytest.mark.parametrize("pattern", ["^(?=(a+)+$)b", r"^(?:(a)\1|a+)+$", "(?<!a)b"])
@pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
def test_f15_a_pattern_that_needs_backtracking_is_refused(pattern, keyword):
    rule = pattern if keyword == "pattern" else {pattern: {}}
    [problem] = problems_of([{"name": "t", "parameters": {"properties": {"q": {keyword: rule}}}}])
    assert "patterns run in linear time: no look-around, no back-references" in problem


NO_REASON = "/: does not fit the schema (it refers to itself too often to look for the reason)"


def nested(depth, leaf):
    for _ in range(depth):
        leaf = {"x": leaf}
    return leaf


@pytest.mark.parametrize(
    ("name", "place"),
    [("a{}", "#/$defs/a{}"), ("ä {}", "#/$defs/%C3%A4%20{}"), ("a/{}", "#/$defs/a~1{}")],
)
def test_f15_a_schema_that_unfolds_without_end_is_refused(name, place):
    defs = {name.format(n): {"allOf": [{"$ref": place.format(n + 1)}] * 2} for n in range(40)}
    schema = {"$defs": {**defs, name.format(40): {"type": "object"}}, "$ref": place.format(0)}
    [problem] = problems_of([{"name": "t", "parameters": schema}])
    assert "with its references written out it has more than 1000000 parts" in problem


def test_f15_names_of_parts_are_followed_as_well():
    parts = [{"$anchor": f"a{n}", "allOf": [{"$ref": f"#a{n + 1}"}] * 2} for n in range(40)]
    schema = {"$defs": {str(n): part for n, part in enumerate(parts)}, "$ref": "#a0"}
    schema["$defs"]["40"] = {"$anchor": "a40"}
    [problem] = problems_of([{"name": "t", "parameters": schema}])
    assert "with its references written out it has more than 1000000 parts" in problem


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"x": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}},
        {
            "properties": {"x": {"$ref": "#"}},
            "patternProperties": {"x": {"$ref": "#"}},
            "type": "object",
        },
        {
            "anyOf": [
                {"properties": {"x": {"$ref": "#"}}, "required": ["x"], "minProperties": 1},
                {"properties": {"x": {"$ref": "#"}}, "required": ["x"], "maxProperties": 5},
            ]
        },
        {
            "$dynamicAnchor": "n",
            "type": "object",
            "properties": {"x": {"allOf": [{"$dynamicRef": "#n"}, {"$dynamicRef": "#n"}]}},
        },
    ],
)
@pytest.mark.parametrize("leaf", [1, {"x": {}}, {}])
def test_f15_a_schema_that_refers_to_itself_takes_no_time(schema, leaf):
    """For each level there are twice as many ways: with sixty nobody would live to see it."""
    problems = registry({"name": "t", "parameters": schema}).validate("t", nested(60, leaf))
    assert problems in ((), (NO_REASON,))


def test_a_schema_that_refers_to_itself_gives_reasons_where_it_can():
    node = {"type": "object", "properties": {"x": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}
    problems = registry({"name": "t", "parameters": node}).validate("t", nested(3, 1))
    assert set(problems) == {'/x/x/x: 1 is not of type "object"'}


def test_a_ref_inside_the_schema_works():
    schema = {"$defs": {"n": {"type": "integer"}}, "properties": {"x": {"$ref": "#/$defs/n"}}}
    assert validate_arguments({"name": "f", "parameters": schema}, {"x": 1}) == []
    assert validate_arguments({"name": "f", "parameters": schema}, {"x": "1"}) != []


def test_p8_validate_arguments_reads_plain_and_wrapped_specs():
    for spec in (SEARCH, {"type": "function", "function": SEARCH}):
        assert validate_arguments(spec, {"q": "x"}) == []
        assert validate_arguments(spec, {"q": 3}) == ['/q: 3 is not of type "string"']
    with pytest.raises(BadInput, match="spec: "):
        validate_arguments("web.search", {})


def test_names_resolve_exactly_then_by_separator_then_by_alias():
    tools = registry(SEARCH, CODE)
    assert tools.resolve("web.search") == "web.search"
    assert tools.resolve("web_search") == tools.resolve("web-search") == "web.search"
    assert tools.resolve("code.exec") == "code_exec"
    assert tools.resolve("code.execute") == tools.resolve("code_execute") == "code_exec"
    assert tools.resolve("websearch") is None
    assert tools.resolve("Web.Search") is None
    assert tools.spellings({"code_exec", "other"}) == {"code_exec", "code.execute", "other"}


def test_a_variant_of_two_names_is_neither():
    tools = registry({"name": "a.b"}, {"name": "a_b"})
    assert tools.resolve("a.b") == "a.b"
    assert tools.resolve("a_b") == "a_b"
    assert tools.resolve("a-b") is None


def test_an_unknown_tool_never_validates():
    assert registry(SEARCH).validate("nope", {}) == ("/: unknown tool nope",)


def test_d39_what_is_offered_carries_the_real_parameters():
    tools = registry(SEARCH, CODE)
    search, code = tools.openai_tools(["web.search", "code_exec"])
    assert search == {"type": "function", "function": SEARCH}
    assert code["function"] == {"name": "code_exec", "parameters": {}}  # our extension stays home
    assert registry({"name": "f"}).openai_tools(["f"])[0]["function"]["parameters"] == {
        "type": "object",
        "properties": {},
    }
    with pytest.raises(UsageError, match="no tool 'nope'"):
        tools.openai_tools(["nope"])


def test_tool_names_of_names_and_specs():
    assert tool_names(["a", "b"]) == {"a", "b"}
    assert tool_names([SEARCH, {"type": "function", "function": CODE}]) == {
        "web.search",
        "code_exec",
    }
    assert tool_names({"tools": [SEARCH]}) == {"web.search"}
    with pytest.raises(UsageError):
        tool_names([{"parameters": {}}])


def test_d38_the_built_in_tools_are_there_at_once():
    """Built from data: no state, no folder that a first use creates."""
    tools = Registry.from_specs(BUILTIN, where="builtin.json")
    assert tools.names == (
        "code_exec", "file.write", "read_file", "repo.read", "web.open", "web.search",
    )  # fmt: skip
    allowed = json.loads((DATA / "config" / "tools.allowlist.json").read_text("utf-8"))
    assert tuple(allowed["tools"]) == tools.names
    assert tools.resolve("code.execute") == "code_exec"
    for spec in tools.specs:
        assert spec.description
        assert spec.parameters["properties"]


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("web.search", {"q": "x", "top_k": 5}, {"query": "x"}),
        ("web.search", {"q": "x", "top_k": None}, {"q": "x", "top_k": True}),
        ("web.search", {"q": "x"}, {"q": "x", "top_k": 0}),
        ("web.open", {"url": "https://example.com/a"}, {"url": "example.com"}),
        ("read_file", {"path": "README.md"}, {}),
        ("read_file", {"file_id": "file-1"}, {"file": "x"}),
        ("code_exec", {"code": "print(1)"}, {"code": "x", "language": "klingon"}),
        ("file.write", {"path": "a.txt", "content": ""}, {"path": "a.txt"}),
        ("repo.read", {"path": "src/a.py", "ref": "main"}, {"name": "repo.read", "arguments": {}}),
    ],
)
def test_d37_the_built_in_schemas_describe_the_arguments(name, right, wrong):
    tools = Registry.from_specs(BUILTIN, where="builtin.json")
    assert tools.validate(name, right) == ()
    assert tools.validate(name, wrong) != ()


def test_the_built_in_schemas_suit_endpoints_that_refuse_a_choice_at_the_top():
    for spec in Registry.from_specs(BUILTIN, where="builtin.json").specs:
        assert spec.parameters["type"] == "object"
        assert not spec.parameters.keys() & {"oneOf", "anyOf", "allOf", "enum", "not"}
