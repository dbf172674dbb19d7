"""JSON Schema (draft 2020-12) by a real validator. Nothing is ever fetched."""

from __future__ import annotations

from functools import lru_cache
from typing import NoReturn

import jsonschema_rs
import msgspec

from callmark.core.jsontext import Json, NotJson, canonical_json, parse_json

_LONGEST_REASON = 240
_encode = msgspec.json.Encoder().encode


class SchemaError(ValueError):
    """The schema is none, or points outside itself. The message is `path: what is wrong`."""


def compile_schema(schema: Json) -> jsonschema_rs.Draft202012Validator:
    """A validator, or SchemaError. A `$ref` to a file or the network is refused here."""
    try:
        return jsonschema_rs.Draft202012Validator(
            schema, retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions()
        )
    except jsonschema_rs.ValidationError as error:
        reason = shorten(error.message)
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Format):
            reason += " (patterns run in linear time: no look-around, no back-references)"
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
            reason += " (a $ref may only point into the schema itself: nothing is fetched)"
        raise SchemaError(f"{pointer(error.instance_path)}: {reason}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise SchemaError(f"/: not a JSON value: {shorten(str(error))}") from None


@lru_cache(maxsize=1024)
def compiled_text(schema_text: str) -> jsonschema_rs.Draft202012Validator:
    """Compiled once per canonical text of the schema."""
    try:
        return compile_schema(parse_json(schema_text))
    except NotJson as error:
        raise SchemaError(f"/: {error}") from None


def compiled(schema: Json) -> jsonschema_rs.Draft202012Validator:
    try:
        text = canonical_json(schema)
    except (ValueError, TypeError, RecursionError) as error:
        raise SchemaError(f"/: not a JSON value: {shorten(str(error))}") from None
    return compiled_text(text)


def schema_errors(validator: jsonschema_rs.Draft202012Validator, instance: Json) -> tuple[str, ...]:
    """`path: reason` for everything that is wrong with the instance, in a stable order."""
    try:
        # Encoding first costs little and stops what would overrun the validator's stack.
        _encode(instance)
        if validator.is_valid(instance):
            return ()
        errors = [
            f"{pointer(error.instance_path)}: {shorten(error.message)}"
            for error in validator.iter_errors(instance)
        ]
    except (ValueError, TypeError, RecursionError) as error:
        return (f"/: not a value that JSON can hold: {shorten(str(error))}",)
    return tuple(sorted(errors))


def argument_errors(
    validator: jsonschema_rs.Draft202012Validator, arguments: Json
) -> tuple[str, ...]:
    """Like `schema_errors`; arguments that are no object are one error, whatever the schema."""
    if not isinstance(arguments, dict):
        return (f"/: the arguments are {describe(arguments)}, not an object",)
    return schema_errors(validator, arguments)


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


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not fetched")
