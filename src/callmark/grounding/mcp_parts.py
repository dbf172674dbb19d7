"""What an MCP result says: the parts of it that can be evidence.

Structured content is walked as it stands. A text block is walked too, unless it only repeats the
structured content or one of its values, as most servers let it: evidence would count twice.
What describes a block (`type`, `mimeType`, `annotations`) and bytes in base64 are no evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from callmark.calls.python_text import NotPython, literal
from callmark.records.jsontext import Json, canonical_json, want_list, want_object
from callmark.records.trace import json_inside


class Part(NamedTuple):
    """`path` is a JSON pointer into the result."""

    path: str
    key: str
    value: Json


def parts_of(result: dict[str, Json]) -> Iterator[Part]:
    """The parts of a result that `is_mcp_result` knows as one."""
    structured = result.get("structuredContent")
    if structured is not None:
        yield Part("/structuredContent", "structuredContent", structured)
    for at, block in enumerate(want_list(result["content"])):
        for part in _parts_of_block(want_object(block), f"/content/{at}"):
            if not _repeats(part.value, structured):
                yield part


def _parts_of_block(block: dict[str, Json], path: str) -> Iterator[Part]:
    match block:
        case {"type": "text", "text": str(text)}:
            yield Part(f"{path}/text", "text", _value_of(text))
        case {"type": "resource", "resource": dict(resource)}:
            for name in ("uri", "text"):
                if isinstance(resource.get(name), str):
                    yield Part(f"{path}/resource/{name}", name, _value_of(resource[name]))
        case {"type": "resource_link"}:
            for name in ("name", "title", "uri", "description"):
                if isinstance(block.get(name), str):
                    yield Part(f"{path}/{name}", name, block[name])


def _value_of(text: str) -> Json:
    """JSON inside a text, and what Python prints for its lists and dicts: some servers do that."""
    inside = json_inside(text)
    if inside is not text or text.strip()[:1] not in ("[", "{", "("):
        return inside
    try:
        return literal(text.strip())
    except NotPython:
        return text


def _repeats(value: Json, structured: Json) -> bool:
    if structured is None:
        return False
    values = structured.values() if isinstance(structured, dict) else ()
    said = canonical_json(value)
    return any(
        said == canonical_json(json_inside(one) if isinstance(one, str) else one)
        for one in (structured, *values)
    )
