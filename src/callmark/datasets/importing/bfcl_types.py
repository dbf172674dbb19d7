"""The types of BFCL's function documents as JSON Schema."""

from __future__ import annotations

from callmark.core.jsontext import Json
from callmark.datasets.importing.desk import Object
from callmark.datasets.importing.notes import Notes

_JSON_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
# None: any value.
TYPE: dict[str, str | None] = {
    **{name: name for name in _JSON_TYPES},
    **dict.fromkeys(("dict", "hashmap", "hashtable", "map"), "object"),
    **dict.fromkeys(("float", "double"), "number"),
    **dict.fromkeys(("tuple", "list", "arraylist", "queue", "stack", "set"), "array"),
    **dict.fromkeys(("int", "long", "short", "byte", "bigint"), "integer"),
    **dict.fromkeys(("str", "char"), "string"),
    "bool": "boolean",
    "any": None,
}


def function_spec(function: Object, line: int, notes: Notes) -> Object:
    """A function document with parameters that are JSON Schema."""
    parameters = function.get("parameters")
    if not isinstance(parameters, dict):
        return function
    return {**function, "parameters": json_schema(parameters, line, notes)}


def json_schema(node: Object, line: int, notes: Notes) -> Object:
    schema: Object = {}
    for key, value in node.items():
        if key == "type" and isinstance(value, str):
            schema |= _typed(value, line, notes)
        elif key == "properties" and isinstance(value, dict):
            schema[key] = {name: _inner(one, line, notes) for name, one in value.items()}
        elif key in ("items", "additionalProperties"):
            schema[key] = _inner(value, line, notes)
        elif key != "required" or isinstance(value, list):
            # `required: true` inside a property says nothing that JSON Schema could say there.
            schema[key] = value
    return schema


def _inner(value: Json, line: int, notes: Notes) -> Json:
    return json_schema(value, line, notes) if isinstance(value, dict) else value


def _typed(name: str, line: int, notes: Notes) -> Object:
    if name.lower() not in TYPE:
        notes.add("unknown_type", line, name)
    found = TYPE.get(name.lower())
    return {} if found is None else {"type": found}
