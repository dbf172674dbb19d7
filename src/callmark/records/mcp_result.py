"""Tool results in the form of MCP: `content` blocks, `structuredContent`, `isError`."""

from __future__ import annotations

from typing import TypeGuard

from callmark.records.jsontext import Json, canonical_json, want_list, want_object

# What each kind of block must hold.
BLOCKS: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "image": {"data": str, "mimeType": str},
    "audio": {"data": str, "mimeType": str},
    "resource": {"resource": dict},
    "resource_link": {"name": str, "uri": str},
}
FIELDS = frozenset({"content", "structuredContent", "isError", "resultType", "_meta"})


def is_mcp_result(result: Json) -> TypeGuard[dict[str, Json]]:
    """Whether this is a whole MCP result, and not an object that happens to have `content`."""
    if not isinstance(result, dict) or not result.keys() <= FIELDS:
        return False
    content = result.get("content")
    if not isinstance(content, list):
        return False
    return all(map(_is_block, content)) and (bool(content) or len(result) > 1)


def _is_block(block: Json) -> bool:
    if not isinstance(block, dict):
        return False
    kind = block.get("type")
    needed = BLOCKS.get(kind) if isinstance(kind, str) else None
    return needed is not None and all(
        isinstance(block.get(name), wanted) for name, wanted in needed.items()
    )


def text_of(result: dict[str, Json]) -> str:
    """What a model is shown of an MCP result: its texts, one after the other. Pictures and sounds
    are named, not written out; structured content stands in where there is no block at all."""
    texts = [_text_of_block(want_object(block)) for block in want_list(result["content"])]
    if not texts and "structuredContent" in result:
        return canonical_json(result["structuredContent"])
    return "\n".join(texts)


def _text_of_block(block: dict[str, Json]) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource", "resource": {"uri": uri}}:
            return f"[resource {uri}]"
        case {"type": "resource_link", "uri": uri}:
            return f"[{block.get('name') or 'resource'}]({uri})"
    return f"[{block['type']} {block.get('mimeType', '')}]".replace(" ]", "]")
