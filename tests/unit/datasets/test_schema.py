"""The two shipped schemas: valid themselves, and really what lines are held to."""

import json
from typing import get_args

import jsonschema_rs
import msgspec
import pytest

from callmark.datasets.schema import item_problems
from callmark.records import results as scores
from callmark.records import samples, trace
from callmark.records.results import Result
from callmark.resources import demo_paths, schema

NAMES = ("eval_prompt", "eval_result")
METADATA_FIELDS = """sample_id expected_behaviour call_sequence call_match tools tool_result_fields
required_facts strict_keys negative_control decoy_values locale_probe locale language adversarial
scenario complexity structure cluster long_context slices integration_spans_bytes
json_args_spans_bytes spans_target text_norm line_endings attempts""".split()


@pytest.mark.parametrize("name", NAMES)
def test_a20_a21_the_schemas_are_valid_draft_2020_12(name):
    shipped = schema(name)
    assert shipped["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema_rs.meta.validate(shipped)


def test_a20_every_shipped_item_matches():
    items = demo_paths().dataset.read_text("utf-8").splitlines()[1:]
    assert [item_problems(json.loads(item)) for item in items] == [[]] * len(items)


def test_every_metadata_field_is_described():
    described = schema("eval_prompt")["$defs"]["metadata"]["properties"]
    assert set(METADATA_FIELDS) <= set(described)
    resolved = {"$ref", "description"}
    assert all(resolved & set(field) for field in described.values())


@pytest.mark.parametrize("field", METADATA_FIELDS)
def test_null_is_absent_in_every_metadata_field(field):
    assert item_problems({"prompt": "x", "metadata": {field: None}}) == []


def test_unknown_fields_are_kept():
    assert item_problems({"prompt": "x", "mine": 1, "metadata": {"mine": {"deep": []}}}) == []


def test_what_the_schema_accepts_becomes_a_sample():
    item = {
        "prompt": [
            {"role": "system", "content": "s"},
            {"role": "assistant", "tool_calls": [{"id": "1"}]},
            {"role": "tool", "content": [{"type": "text", "text": "t"}], "tool_call_id": "1"},
        ],
        "metadata": {
            "call_sequence": [
                "plain",
                {"name": "a", "arguments": None, "accept": {"/q": ["x", 1]}, "optional": ["k"]},
            ],
            "required_facts": ["x", 1, 2.5],
            "integration_spans_bytes": [[0, 4], {"start": 5, "end": 6}],
            "cluster": 4,
        },
    }
    assert item_problems(item) == []
    sample = samples.sample_of(item, index=0, sample_id="s", item_sha256="")
    assert [call.name for call in sample.expectation.calls] == ["plain", "a"]


# --- the result schema says what the records say


def flattened(node, definitions):
    """A schema without references, descriptions and ways of writing the same thing."""
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return flattened(definitions[node["$ref"].rsplit("/", 1)[1]], definitions)
    kinds = node.get("type")
    if "anyOf" in node:
        parts = [flattened(part, definitions) for part in node["anyOf"]]
        if any("enum" in part for part in parts):  # of words, or null
            return {"enum": [word for part in parts for word in part.get("enum", [None])]}
        merged = {key: value for part in parts for key, value in part.items()}
        return {**merged, "type": sorted({kind for part in parts for kind in part["type"]})}
    flat = {}
    if kinds:
        flat["type"] = sorted([kinds] if isinstance(kinds, str) else kinds)
    if "enum" in node:
        flat["enum"] = sorted(node["enum"], key=lambda word: (word is None, word or ""))
    if "items" in node:
        flat["items"] = flattened(node["items"], definitions)
    if "properties" in node:
        flat["properties"] = {
            name: flattened(value, definitions) for name, value in node["properties"].items()
        }
        flat["required"] = sorted(node.get("required", []))
    return flat


def test_a49_the_result_schema_describes_the_record_exactly():
    """A field, a type or an enum that changes in the code has to change in the schema."""
    shipped = schema("eval_result")
    # Json is object, of which msgspec makes no schema of its own: any value.
    derived = msgspec.json.schema(Result, schema_hook=lambda _: {"$comment": "any value"})
    ours = flattened(shipped, shipped["$defs"])
    theirs = flattened(derived, derived["$defs"])
    assert ours == theirs


def test_enums_are_those_of_the_code():
    definitions = schema("eval_result")["$defs"]
    status = definitions["trace_entry"]["properties"]["status"]["enum"]
    assert status == list(get_args(trace.EntryStatus))
    assert definitions["stop"]["enum"] == list(get_args(trace.Stop))
    recorded = definitions["recorded"]["properties"]
    assert recorded["stop"]["enum"] == [*get_args(trace.Stop), None]
    assert recorded["span_extractor"]["enum"] == [*get_args(samples.Extractor), None]
    assert definitions["statement_label"]["enum"] == list(get_args(scores.StatementLabel))
