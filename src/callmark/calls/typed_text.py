"""Values that a format writes as plain text get their types from the tool's schema."""

from __future__ import annotations

from collections.abc import Iterator

from callmark.calls.python_text import CONSTANTS, NotPython, literal
from callmark.records.jsontext import Json, NotJson, parse_json

_COMBINED = ("anyOf", "oneOf", "allOf")


def typed_value(text: str, key: str, parameters: Json) -> Json:
    """The text as the schema types the parameter `key`. A text that fits no other type that the
    schema allows stays text; where nothing says the type, what reads as JSON is that value."""
    types = frozenset(_types(_property(key, parameters), parameters, set()))
    if types == {"string"}:
        return text
    value = _parse(text.strip())
    fits = types & _types_of(value) if types else _types_of(value)
    return value if fits - {"string"} else text


def _parse(text: str) -> Json:
    # `True` and `None` are how templates write values that they do not turn into JSON.
    for spelling in (text, text.lower()):
        if spelling in CONSTANTS:
            return CONSTANTS[spelling]
    try:
        return parse_json(text)
    except NotJson:
        pass
    try:
        return literal(text) if text[:1] in ("{", "[") else text
    except NotPython:
        return text


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
    """The types that a schema allows; none: it does not say. `seen` references lead in circles."""
    if not isinstance(schema, dict):
        return
    given = schema.get("type")
    yield from (kind for kind in _list(given) or [given] if isinstance(kind, str))
    if schema.get("nullable") is True:
        yield "null"
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        seen.add(reference)
        yield from _types(_point(reference, root), root, seen)
    for key in _COMBINED:
        for branch in _list(schema.get(key)):
            yield from _types(branch, root, seen)
    if given is None:
        for value in [schema["const"]] if "const" in schema else _list(schema.get("enum")):
            yield from _types_of(value)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _point(reference: str, root: Json) -> Json:
    """What a reference into the same document points at."""
    found = root
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found
