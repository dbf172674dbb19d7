"""The operations of an OpenAPI 3 document as tool specs: nothing is called, the file is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from callmark.errors import BadInput, UsageError
from callmark.records.jsontext import Json, NotJson, parse_json, want_object
from callmark.store.files import read_input

METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")
SCHEMAS = "#/components/schemas/"
BODY = "body"
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_DEEPEST = 100
# What describes the API to people or to servers, and is no JSON Schema.
_NO_SCHEMA = frozenset({"nullable", "discriminator", "xml", "externalDocs", "example"})

Object = dict[str, Json]


def read_openapi(path: Path) -> list[Object]:
    """One spec per operation, named by its `operationId`, in the order of the document."""
    document = _read(path)
    version = str(document.get("openapi") or "")
    if not version.startswith("3."):
        told = f"Swagger {document['swagger']}" if "swagger" in document else "no `openapi: 3.x`"
        raise BadInput(f"{path}: {told}: an OpenAPI document of version 3 is needed")
    try:
        specs = [
            _spec(document, place, method, shared, operation)
            for place, item in want_object(document.get("paths")).items()
            for shared, method, operation in _operations(_resolve(document, item))
        ]
    except (TypeError, UsageError) as error:
        raise BadInput(f"{path}: {error}") from None
    if not specs:
        raise BadInput(f"{path}: paths: has no operation")
    names = [str(spec["name"]) for spec in specs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"{path}: two operations are called {twice}: give each an operationId")
    return specs


def _read(path: Path) -> Object:
    text = read_input(path)
    try:
        value = parse_json(text) if text.lstrip()[:1] == b"{" else _parse_yaml(path, text)
    except NotJson as error:
        raise BadInput(f"{path}: {error}") from None
    if not isinstance(value, dict):
        raise BadInput(f"{path}: must be an object: an OpenAPI document")
    return value


def _parse_yaml(path: Path, text: bytes) -> Json:
    try:
        # Ten aliases of ten aliases of ten would fill the memory when they are written out.
        if any(isinstance(one, yaml.AliasEvent) for one in yaml.parse(text, yaml.SafeLoader)):
            raise BadInput(f"{path}: has YAML aliases: write it as JSON, or without them")
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise BadInput(f"{path}: not YAML: {str(error).splitlines()[0]}") from None


def _operations(item: Object) -> Iterator[tuple[list[Json], str, Object]]:
    shared = item.get("parameters")
    for method in METHODS:
        operation = item.get(method)
        if isinstance(operation, dict):
            yield shared if isinstance(shared, list) else [], method, operation


def _spec(
    document: Object, place: str, method: str, shared: list[Json], operation: Object
) -> Object:
    name = str(operation.get("operationId") or f"{method}{place}")
    properties: Object = {}
    required: list[Json] = []
    own = operation.get("parameters")
    for given in [*shared, *(own if isinstance(own, list) else [])]:
        parameter = _resolve(document, given)
        # Cookies and headers are set by whoever sends the request, not by a model.
        if parameter.get("in") not in ("path", "query") or "name" not in parameter:
            continue
        argument = str(parameter["name"])
        properties[argument] = _argument(parameter)
        if parameter.get("required") and argument not in required:
            required.append(argument)
    _add_body(document, operation, properties, required)
    parameters: Object = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    definitions = _definitions(document, parameters)
    if definitions:
        parameters["$defs"] = definitions
    told = operation.get("description") or operation.get("summary") or f"{method.upper()} {place}"
    return {
        "name": _NOT_A_NAME.sub("_", name).strip("_")[:64],
        "description": str(told).strip(),
        "parameters": parameters,
    }


def _argument(parameter: Object) -> Object:
    schema = dict(want_object(_schema(parameter.get("schema") or {})))
    if "description" in parameter and "description" not in schema:
        schema["description"] = parameter["description"]
    return schema


def _add_body(
    document: Object, operation: Object, properties: Object, required: list[Json]
) -> None:
    """The fields of a JSON body become arguments; a body of another shape is one argument."""
    body = _resolve(document, operation.get("requestBody") or {})
    content = want_object(body.get("content"))
    kind = next((one for one in content if one.split(";")[0].endswith("json")), None)
    if kind is None:
        return
    given = want_object(want_object(content[kind]).get("schema"))
    schema = _resolve(document, given)
    fields = want_object(schema.get("properties"))
    if not fields or fields.keys() & properties.keys():
        properties[BODY] = _schema(given)
        required += [BODY] if body.get("required") else []
        return
    properties |= {name: _schema(field) for name, field in fields.items()}
    needed = schema.get("required")
    if body.get("required") and isinstance(needed, list):
        required += needed


def _resolve(document: Object, given: Json, depth: int = 0) -> Object:
    """What a `$ref` inside the document stands for."""
    value = want_object(given)
    reference = value.get("$ref")
    if not isinstance(reference, str):
        return value
    if not reference.startswith("#/") or depth > _DEEPEST:
        raise UsageError(f"$ref {reference}: only what is in the document itself is followed")
    found: Json = document
    for step in reference[2:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        raise UsageError(f"$ref {reference}: there is no such part in the document")
    return _resolve(document, found, depth + 1)


def _schema(value: Json, depth: int = 0) -> Json:
    """A schema of OpenAPI 3.0 as JSON Schema 2020-12; those of 3.1 are that already."""
    if depth > _DEEPEST:
        raise UsageError(f"a schema is nested deeper than {_DEEPEST} levels")
    if isinstance(value, list):
        return [_schema(entry, depth + 1) for entry in value]
    if not isinstance(value, dict):
        return value
    made = {
        name: _schema(entry, depth + 1) for name, entry in value.items() if name not in _NO_SCHEMA
    }
    reference = made.get("$ref")
    if isinstance(reference, str) and reference.startswith(SCHEMAS):
        made["$ref"] = "#/$defs/" + reference.removeprefix(SCHEMAS)
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(made.get(exclusive), bool) and made.pop(exclusive) and bound in made:
            made[exclusive] = made.pop(bound)
    if value.get("nullable") is True and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    return made


def _definitions(document: Object, parameters: Object) -> Object:
    """The shared schemas that these arguments need, and what those need in turn."""
    shared = want_object(want_object(document.get("components")).get("schemas"))
    found: Object = {}
    waiting = list(_names_in(parameters))
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        if name not in shared:
            raise UsageError(f"$ref {SCHEMAS}{name}: there is no such part in the document")
        found[name] = _schema(shared[name])
        waiting += _names_in(found[name])
    return dict(sorted(found.items()))


def _names_in(value: Json) -> Iterator[str]:
    if isinstance(value, list):
        for entry in value:
            yield from _names_in(entry)
    elif isinstance(value, dict):
        for name, entry in value.items():
            if name == "$ref" and isinstance(entry, str) and entry.startswith("#/$defs/"):
                yield entry.removeprefix("#/$defs/")
            else:
                yield from _names_in(entry)
