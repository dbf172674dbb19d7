"""Values that a format writes as plain text get their types from the tool's schema."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callmark.calls.python_text import CONSTANTS, NotPython, literal
from callmark.records.jsontext import Json, NotJson, parse_json

_COMBINED = ("anyOf", "oneOf", "allOf")
_ZEROS = re.compile(r"[+-]?+0\d{1,18}+")
# What people write for a type that JSON Schema calls otherwise.
_TYPE_NAMES = {
    **dict.fromkeys(("str", "text", "varchar", "char", "enum"), "string"),
    **dict.fromkeys(("int", "long", "short", "int32", "int64", "uint32", "uint64"), "integer"),
    **dict.fromkeys(("float", "double", "num", "decimal"), "number"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("dict", "map"), "object"),
    **dict.fromkeys(("list", "tuple"), "array"),
}


def typed_value(text: str, key: str, parameters: Json, *, is_string: bool = False) -> Json:
    """The text as the schema types the parameter `key`. A text that fits no other type that the
    schema allows stays text; where nothing says the type, what reads as JSON is that value.
    `is_string`: the format says that it is a text, which holds unless the schema allows none."""
    schema = _property(key, parameters)
    types = frozenset(_types(schema, parameters, set()))
    if is_string and (not types or "string" in types):
        return text
    return typed_leaf(text, schema, parameters)


def typed_leaf(text: str, schema: Json, root: Json) -> Json:
    """The same for the schema of the value itself; references point into `root`."""
    types = frozenset(_types(schema, root, set()))
    if types == {"string"}:
        return text
    value = _parse(text.strip(), is_list="array" in types)
    if "integer" in types and "string" not in types and _ZEROS.fullmatch(text.strip()):
        value = int(text)  # JSON knows no leading zeros; what counts things needs none
    fits = types & _types_of(value) if types else _types_of(value)
    return value if fits - {"string"} else text


def _parse(text: str, *, is_list: bool) -> Json:
    # `True` and `None` are how templates write values that they do not turn into JSON.
    for spelling in (text, text.lower()):
        if spelling in CONSTANTS:
            return CONSTANTS[spelling]
    try:
        return parse_json(text)
    except NotJson:
        pass
    try:
        return literal(text) if text.startswith(("{", "[", "(")[: 2 + is_list]) else text
    except NotPython:
        return text


def schema_below(schema: Json, key: str, root: Json) -> Json:
    """What a schema says of the member `key` of an object, or of the entries of a list."""
    for branch in _branches(schema, root, set()):
        properties = branch.get("properties")
        if isinstance(properties, dict) and key in properties:
            return properties[key]
        if isinstance(branch.get("items"), dict) and "array" in _types(branch, root, set()):
            return branch["items"]
        if isinstance(branch.get("additionalProperties"), dict):
            return branch["additionalProperties"]
    return None


def allows(schema: Json, kind: str, root: Json) -> bool:
    return kind in _types(schema, root, set())


def _types_of(value: Json) -> frozenset[str]:
    match value:
        case None:
            return frozenset({"null"})
        case bool():
            return frozenset({"boolean"})
        case int():
            return frozenset({"integer", "number"})
        case float():
            return frozenset({"integer", "number"} if value.is_integer() else {"number"})
        case str():
            return frozenset({"string"})
        case dict():
            return frozenset({"object"})
        case _:
            return frozenset({"array"})


def _property(key: str, parameters: Json) -> Json:
    if not isinstance(parameters, dict):
        return None
    properties = parameters.get("properties")
    if isinstance(properties, dict) and key in properties:
        return properties[key]
    return parameters.get("additionalProperties")


def _types(schema: Json, root: Json, seen: set[str]) -> Iterator[str]:
    """The types that a schema allows; none: it does not say."""
    for branch in _branches(schema, root, seen):
        given = branch.get("type")
        yield from (_TYPE_NAMES.get(k, k) for k in _list(given) or [given] if isinstance(k, str))
        if branch.get("nullable") is True:
            yield "null"
        if given is None:
            for value in [branch["const"]] if "const" in branch else _list(branch.get("enum")):
                yield from _types_of(value)


def _branches(schema: Json, root: Json, seen: set[str]) -> Iterator[dict[str, Json]]:
    """The schema and all that it refers to or combines. `seen` references lead in circles."""
    if not isinstance(schema, dict):
        return
    yield schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        seen.add(reference)
        yield from _branches(_point(reference, root), root, seen)
    for key in _COMBINED:
        for branch in _list(schema.get(key)):
            yield from _branches(branch, root, seen)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _point(reference: str, root: Json) -> Json:
    """What a reference into the same document points at."""
    found = root
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found
