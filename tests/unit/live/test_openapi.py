"""An OpenAPI document becomes tools: the arguments that a model fills in, nothing else."""

import json

import pytest
import yaml

from callmark.calls.registry import Registry
from callmark.calls.schema import argument_errors, compile_once
from callmark.cli import main
from callmark.errors import BadInput, UsageError
from callmark.live.openapi import read_openapi
from callmark.resources import load_registry_file

SHOP = {
    "openapi": "3.0.3",
    "info": {"title": "shop", "version": "1"},
    "paths": {
        "/orders/{order_id}": {
            "parameters": [{"$ref": "#/components/parameters/OrderId"}],
            "get": {
                "operationId": "find_order",
                "summary": "Look up one order.",
                "parameters": [
                    {"name": "verbose", "in": "query", "schema": {"type": "boolean"}},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                ],
            },
            "delete": {"summary": "Cancel it."},
        },
        "/orders": {
            "post": {
                "operationId": "order.create",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/NewOrder"}}
                    },
                },
            }
        },
        "/notes": {
            "post": {
                "operationId": "add_notes",
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {"type": "array", "items": {"type": "string"}}
                        }
                    }
                },
            }
        },
    },
    "components": {
        "parameters": {
            "OrderId": {
                "name": "order_id",
                "in": "path",
                "required": True,
                "description": "such as W100",
                "schema": {"type": "string", "pattern": "^W[0-9]+$"},
            }
        },
        "schemas": {
            "NewOrder": {
                "type": "object",
                "required": ["lines"],
                "properties": {
                    "note": {"type": "string", "nullable": True, "example": "fragile"},
                    "lines": {"type": "array", "items": {"$ref": "#/components/schemas/Line"}},
                },
            },
            "Line": {
                "type": "object",
                "properties": {
                    "sku": {"type": "string"},
                    "count": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
                    "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Line"}},
                },
            },
            "Unused": {"type": "string"},
        },
    },
}


def errors(specs, name, arguments):
    registry = Registry.from_specs(specs, where="test")
    return argument_errors(compile_once(registry.parameters(name)), arguments)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_operations_become_tools_with_schemas_that_judge_calls(tmp_path, form):
    path = tmp_path / f"shop.{form}"
    path.write_text(json.dumps(SHOP) if form == "json" else yaml.safe_dump(SHOP, sort_keys=False))
    specs = read_openapi(path)
    names = [spec["name"] for spec in specs]
    assert names == ["find_order", "delete_orders_order_id", "order.create", "add_notes"]
    assert specs[0]["description"] == "Look up one order."
    assert specs[0]["parameters"]["properties"].keys() == {"order_id", "verbose"}
    assert specs[0]["parameters"]["required"] == ["order_id"]
    assert not errors(specs, "find_order", {"order_id": "W100", "verbose": True})
    assert errors(specs, "find_order", {"order_id": "100"})
    assert specs[2]["parameters"]["$defs"].keys() == {"Line"}
    good = {"note": None, "lines": [{"sku": "a", "count": 1, "parts": [{"count": 2}]}]}
    assert not errors(specs, "order.create", good)
    assert errors(specs, "order.create", {"lines": [{"count": 0}]})
    assert errors(specs, "order.create", {"note": "x"})
    assert not errors(specs, "add_notes", {"body": ["a"]})


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"swagger": "2.0"}, "Swagger 2.0: an OpenAPI document of version 3 is needed"),
        ({"openapi": "3.1.0", "paths": {}}, "has no operation"),
        ({"openapi": "3.1.0", "paths": {"/a": {"$ref": "other.json"}}}, "in the document itself"),
        ({"openapi": "3.1.0", "paths": {"/a": {"$ref": "#/x"}}}, "no such part"),
        ({"openapi": "3.1.0", "paths": {"/a": 3}}, "must be an object"),
        ([], "must be an object"),
    ],
)
def test_what_is_no_openapi_is_refused_with_its_file(tmp_path, document, what):
    path = tmp_path / "api.json"
    path.write_text(json.dumps(document))
    with pytest.raises(BadInput, match=what) as error:
        read_openapi(path)
    assert str(path) in str(error.value)


def deep(levels):
    return {"items": deep(levels - 1)} if levels else {"type": "string"}


def asked(schema, **more):
    body = {"content": {"application/json": {"schema": schema}}}
    return json.dumps(
        {"openapi": "3.0.0", "paths": {"/a": {"post": {"requestBody": body}}}, **more}
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"openapi": "3.0.0", "paths": {}', "api.json: "),
        ("openapi: [3\n", "api.json: not YAML: while parsing a flow sequence"),
        (asked({"properties": {"a": deep(200)}}), "api.json: nested deeper than 100 levels"),
        (
            asked({"properties": {"a": {"$ref": "#/components/schemas/Gone"}}}),
            "[$]ref #/components/schemas/Gone: there is no such part in the document",
        ),
    ],
)
def test_a_document_that_is_broken_says_where(tmp_path, text, what):
    path = tmp_path / "api.json"
    path.write_text(text)
    with pytest.raises((BadInput, UsageError), match=what) as error:
        read_openapi(path)
    assert str(path) in str(error.value)


def test_every_schema_of_a_choice_is_translated(tmp_path):
    path = tmp_path / "api.json"
    choice = {"anyOf": [{"type": "string", "nullable": True}, {"type": "integer"}]}
    path.write_text(asked({"type": "object", "properties": {"a": choice}}))
    [spec] = read_openapi(path)
    found = json.dumps(spec)
    assert '"anyOf": [{"type": ["string", "null"]}, {"type": "integer"}]' in found


def test_aliases_that_would_fill_the_memory_are_refused(tmp_path):
    path = tmp_path / "api.yaml"
    path.write_text("openapi: 3.0.0\na: &a [1]\nb: [*a, *a]\npaths: {}\n")
    with pytest.raises(BadInput, match="aliases"):
        read_openapi(path)


def test_two_operations_of_one_name_are_refused(tmp_path):
    path = tmp_path / "api.json"
    same = {"get": {"operationId": "f"}}
    path.write_text(json.dumps({"openapi": "3.0.0", "paths": {"/a": same, "/b": same}}))
    with pytest.raises(BadInput, match="two operations are called f"):
        read_openapi(path)


def test_the_command_writes_a_registry_and_keeps_what_is_there(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "api.json").write_text(json.dumps(SHOP))
    (tmp_path / "u2_shop.py").write_text(
        'def track(parcel: int, far: bool = False) -> dict:\n    """Where is it?"""\n    return {}\n'
    )
    assert main(["tools", "tools.json", "--openapi", "api.json"]) == 0
    assert "4 tools written: add_notes" in capsys.readouterr().out
    assert main(["tools", "tools.json", "--python", "u2_shop:track"]) == 0
    assert "1 tool written, 4 kept: track" in capsys.readouterr().out
    specs = load_registry_file(tmp_path / "tools.json").specs
    assert [spec["name"] for spec in specs["tools"]][-1] == "track"
    assert main(["tools", "tools.json"]) == 2
    assert "which tools?" in capsys.readouterr().err
    both = ["--openapi", "api.json", "--python", "u2_shop:track"]
    assert main(["tools", "tools.json", *both]) == 2
