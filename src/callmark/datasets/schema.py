"""What a line of a dataset may be: the header in its two forms, or an item of the schema."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

import jsonschema_rs
import msgspec

from callmark.core.jsontext import Json
from callmark.core.samples import Header
from callmark.errors import BadInput
from callmark.resources import schema
from callmark.store.problems import schema_problems, shown, typed_problem

HEADER_KEY = "__header__"


class BadHeader(BadInput):
    """`field: what is wrong`, still without its place."""


def is_header(line: dict[str, Json]) -> bool:
    """`{"__header__": true, …}` or `{"__header__": {…}}`. Any other value that is not false is
    refused: read as a header by one program and as an item by another it would change hashes."""
    mark = line.get(HEADER_KEY)
    if mark is True or isinstance(mark, dict):
        return True
    if mark:
        raise BadHeader(f"{HEADER_KEY}: must be true or an object, not {shown(mark)}")
    return False


def header_of(line: dict[str, Json]) -> Header:
    """The header's fields. Null stands for absent, unknown fields are ignored."""
    mark = line[HEADER_KEY]
    fields = mark if isinstance(mark, dict) else line
    try:
        header = msgspec.convert(
            {name: value for name, value in fields.items() if value is not None}, Header
        )
    except msgspec.ValidationError as error:
        raise BadHeader(typed_problem(error)) from None
    if header.integration_span_cap is not None and header.integration_span_cap < 1:
        raise BadHeader(
            f"integration_span_cap: must be at least 1, not {header.integration_span_cap}"
        )
    return header


def slips_in_header(line: dict[str, Json]) -> dict[str, str]:
    """Unknown fields that look like a known one: other unknown fields are the owner's business."""
    mark = line[HEADER_KEY]
    fields = mark if isinstance(mark, dict) else line
    known = Header.__struct_fields__
    meant = {
        name: get_close_matches(name, known, 1, 0.8) for name in sorted(set(fields) - set(known))
    }
    return {name: close[0] for name, close in meant.items() if close}


def item_problems(item: Json) -> list[str]:
    """What the shipped schema says against an item, `[]` if nothing."""
    return schema_problems(_validator(), item)


def metadata_problems(metadata: dict[str, Json]) -> list[str]:
    """The same for metadata that stand without their item, as in a result."""
    return item_problems({"prompt": "-", "metadata": metadata}) if metadata else []


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema("eval_prompt"))
