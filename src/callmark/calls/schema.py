"""The JSON Schema of a tool (draft 2020-12): arguments checked by a real validator, and the types
that it gives to values written as plain text. Nothing is ever fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, NoReturn

import jsonschema_rs
import msgspec

from callmark.calls.scan import CONSTANTS, NotPython, literal
from callmark.records.jsontext import Json, NotJson, canonical_json, parse_json
from callmark.records.problems import KeySet, did_you_mean, is_own, meant_key

_LONGEST_REASON = 240
_ONE_SCHEMA = frozenset(
    "additionalItems additionalProperties contains contentSchema else if items not propertyNames"
    " then unevaluatedItems unevaluatedProperties".split()
)
_SCHEMAS = frozenset("allOf anyOf items oneOf prefixItems".split())
_NAMED_SCHEMAS = frozenset(
    "$defs definitions dependentSchemas patternProperties properties".split()
)
# One letter away from these stand words that people use to annotate: `note` is not meant as `not`.
_SHORT = frozenset(
    "$anchor $comment $dynamicAnchor $dynamicRef $id $ref $schema $vocabulary else id if not then"
    " xml nullable".split()
)
# The draft's own words, those of older drafts, and what OpenAPI adds.
_KEYWORDS = KeySet(
    known=(
        *sorted(_ONE_SCHEMA | _SCHEMAS | _NAMED_SCHEMAS | _SHORT),
        *"const contentEncoding contentMediaType default dependencies dependentRequired".split(),
        *"deprecated description discriminator enum example examples exclusiveMaximum".split(),
        *"exclusiveMinimum externalDocs format maxContains maxItems maxLength maximum".split(),
        *"maxProperties minContains minItems minLength minProperties minimum multipleOf".split(),
        *"pattern readOnly required strict title type uniqueItems writeOnly".split(),
    ),
    synonyms={"ref": "$ref", "defs": "$defs", "desc": "description", "regex": "pattern"},
    silent=_SHORT,
)
# A schema that refers to one part of itself many times, which refers to another many times, and so
# on, is small to write and takes for ever to check.
MAX_UNFOLDED = 1_000_000  # parts, with every reference written out
MAX_REASONS = 100_000  # ways that are searched for what is wrong
_NO_REASON = "/: does not fit the schema (it refers to itself too often to look for the reason)"
_NO_SCHEMAS = frozenset({"enum", "const", "default", "examples", "$defs", "definitions"})
_QUOTED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_encode = msgspec.json.Encoder().encode


class SchemaError(ValueError):
    """The schema is none, or points outside itself. The message is `path: what is wrong`."""


class Unfolded(NamedTuple):
    """A schema with its references written out: how many parts it has, and how often it begins
    anew because it refers to itself."""

    parts: int
    loops: int


class CompiledSchema(NamedTuple):
    validator: jsonschema_rs.Draft202012Validator
    unfolded: Unfolded


def compile_schema(schema: Json) -> CompiledSchema:
    """A validator, or SchemaError. A `$ref` to a file or the network is refused here."""
    if not isinstance(schema, dict | bool | str):
        kinds = '"boolean", "object"'  # in the validator's own words
        raise SchemaError(f"/: {shorten(canonical_json(schema))} is not of types {kinds}")
    try:
        validator = jsonschema_rs.Draft202012Validator(
            schema, retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions()
        )
        unfolded = _Unfolding(schema).of(schema)
    except jsonschema_rs.ValidationError as error:
        reason = shorten(error.message)
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Format):
            reason += " (patterns run in linear time: no look-around, no back-references)"
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
            reason += " (a $ref may only point into the schema itself: nothing is fetched)"
        raise SchemaError(f"{pointer(error.instance_path)}: {reason}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise SchemaError(f"/: not a JSON value: {shorten(str(error))}") from None
    if unfolded.parts > MAX_UNFOLDED:
        raise SchemaError(
            f"/: with its references written out it has more than {MAX_UNFOLDED} parts,"
            " which takes too long to check; refer to fewer parts"
        )
    return CompiledSchema(validator, unfolded)


@lru_cache(maxsize=1024)
def compiled_text(schema_text: str) -> CompiledSchema:
    """Compiled once per canonical text of the schema."""
    try:
        return compile_schema(parse_json(schema_text))
    except NotJson as error:
        raise SchemaError(f"/: {error}") from None


def compile_once(schema: Json) -> CompiledSchema:
    try:
        text = canonical_json(schema)
    except (ValueError, TypeError, RecursionError) as error:
        raise SchemaError(f"/: not a JSON value: {shorten(str(error))}") from None
    return compiled_text(text)


def keyword_slips(schema: Json) -> Iterator[str]:
    """Words that the validator would pass over although one of its own was meant: `path: what`.
    What else it does not know is an annotation, and fine."""
    waiting: list[tuple[tuple[str | int, ...], Json]] = [((), schema)]
    while waiting:
        path, here = waiting.pop()
        if not isinstance(here, dict):
            continue
        for key, value in here.items():
            if key not in _KEYWORDS.names:
                slip = _KEYWORDS.slip(key, here.keys())
                if slip is None and _is_property(value) and not is_own(key):
                    slip = "does nothing here; it belongs in properties"
                if slip is not None:
                    yield f"{pointer([*path, key])}: {slip}"
        yield from _required_slips(path, here)
        waiting += _schemas_in(path, here)


def _is_property(value: Json) -> bool:
    """Whether a value reads like the schema of an argument."""
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _required_slips(path: tuple[str | int, ...], schema: dict[str, Json]) -> Iterator[str]:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return
    for name in required:
        if isinstance(name, str) and name not in properties:
            meant = meant_key(name, tuple(properties))
            if meant is not None and meant not in required:
                yield f"{pointer([*path, 'required'])}: {name}: {did_you_mean(meant)}"


def _schemas_in(
    path: tuple[str | int, ...], schema: dict[str, Json]
) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    for key, value in schema.items():
        if key in _SCHEMAS and isinstance(value, list):
            yield from (((*path, key, at), one) for at, one in enumerate(value))
        elif key in _NAMED_SCHEMAS and isinstance(value, dict):
            yield from (((*path, key, name), one) for name, one in value.items())
        elif key in _ONE_SCHEMA:
            yield (*path, key), value


def schema_errors(schema: CompiledSchema, instance: Json) -> tuple[str, ...]:
    """`path: reason` for everything that is wrong with the instance, in a stable order."""
    validator = schema.validator
    try:
        # Encoding first costs little and stops what would overrun the validator's stack.
        _encode(instance)
        if validator.is_valid(instance):
            return ()
        # The validator remembers what it has checked, but looks for reasons along every way.
        if _ways(schema.unfolded, instance) > MAX_REASONS:
            return (_NO_REASON,)
        errors = [
            f"{pointer(error.instance_path)}: {shorten(error.message)}"
            for error in validator.iter_errors(instance)
        ]
    except (ValueError, TypeError, RecursionError) as error:
        return (f"/: not a value that JSON can hold: {shorten(str(error))}",)
    return tuple(sorted(errors))


def argument_errors(schema: CompiledSchema, arguments: Json) -> tuple[str, ...]:
    """Like `schema_errors`; arguments that are no object are one error, whatever the schema."""
    if not isinstance(arguments, dict):
        return (f"/: the arguments are {describe(arguments)}, not an object",)
    return schema_errors(schema, arguments)


def pointer(path: list[str | int]) -> str:
    """A JSON pointer for people: the root is `/`."""
    return "/" + "/".join(str(part).replace("~", "~0").replace("/", "~1") for part in path)


def shorten(text: str) -> str:
    """Both ends of a long reason: the validator puts the value first and the rule last."""
    if len(text) <= _LONGEST_REASON:
        return text
    return f"{text[: _LONGEST_REASON // 2]} … {text[-_LONGEST_REASON // 2 :]}"


def describe(value: Json) -> str:
    """What kind of JSON value this is, in words."""
    for kind, words in _KINDS:
        if isinstance(value, kind):
            return words
    return type(value).__name__


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "null"),
    (bool, "a boolean"),
    ((int, float), "a number"),
    (str, "a string"),
    ((list, tuple), "a list"),
    (dict, "an object"),
)


class _Unfolding:
    """Counts without writing anything out: each part once."""

    def __init__(self, schema: Json) -> None:
        self._root = schema
        self._known: dict[int, Unfolded | None] = {}  # None: being counted
        self._named: dict[str, Json] = {}
        self._collect(schema)

    def of(self, part: Json) -> Unfolded:
        if not isinstance(part, dict | list):
            return Unfolded(1, 0)
        if id(part) in self._known:
            return self._known[id(part)] or Unfolded(1, 1)
        self._known[id(part)] = None
        inner = part if isinstance(part, list) else self._inner(part)
        counts = [self.of(one) for one in inner]
        found = Unfolded(1 + sum(one.parts for one in counts), sum(one.loops for one in counts))
        self._known[id(part)] = found
        return found

    def _inner(self, part: dict[str, Json]) -> list[Json]:
        inner = [value for name, value in part.items() if name not in _NO_SCHEMAS]
        targets = (part.get("$ref"), part.get("$dynamicRef"))
        return inner + [self._target(one) for one in targets if isinstance(one, str)]

    def _target(self, reference: str) -> Json:
        base, _, fragment = reference.partition("#")
        found: Json = self._root
        if base:
            found = self._named.get(base) or self._named.get(base.rpartition("/")[2])
        if not fragment.startswith("/"):
            return self._named.get(f"#{fragment}") if fragment else found
        for step in _QUOTED.sub(_unquote, fragment).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isascii() and name.isdigit():
                found = found[int(name)] if len(name) < 6 and int(name) < len(found) else None
            else:
                found = found.get(name) if isinstance(found, dict) else None
        return found

    def _collect(self, part: Json) -> None:
        """What has a name of its own: `$id`, `$anchor`."""
        if not isinstance(part, dict | list):
            return
        if isinstance(part, dict):
            for word, mark in (("$id", ""), ("$anchor", "#"), ("$dynamicAnchor", "#")):
                if isinstance(name := part.get(word), str):
                    self._named[f"{mark}{name}"] = part
                    self._named.setdefault(f"{mark}{name.rpartition('/')[2]}", part)
        for one in part.values() if isinstance(part, dict) else part:
            self._collect(one)


def _unquote(quoted: re.Match[str]) -> str:
    return bytes.fromhex(quoted[0].replace("%", "")).decode("utf-8", "replace")


def _ways(unfolded: Unfolded, instance: Json) -> float:
    """No fewer than there are through the schema for a value as deep as this one."""
    if unfolded.loops < 2:
        return unfolded.parts
    return unfolded.parts * float(unfolded.loops) ** min(_depth(instance), 50)


def _depth(value: Json) -> int:
    level, depth = [value], 0
    while level := [
        inner
        for one in level
        if isinstance(one, dict | list)
        for inner in (one.values() if isinstance(one, dict) else one)
    ]:
        depth += 1
    return depth


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not fetched")


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
