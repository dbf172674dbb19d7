"""Tool results in the form of MCP: `content` blocks, `structuredContent`, `isError`."""

from __future__ import annotations

from toolmark.core.jsontext import Json, canonical_json

BLOCKS = frozenset({"text", "image", "audio", "resource", "resource_link"})
FIELDS = frozenset({"content", "structuredContent", "isError", "resultType", "_meta"})


def is_mcp_result(result: Json) -> bool:
    """Whether this is a whole MCP result, and not an object that happens to have `content`."""
    if not isinstance(result, dict) or not result.keys() <= FIELDS:
        return False
    content = result.get("content")
    if not isinstance(content, list):
        return False
    blocks = all(isinstance(block, dict) and block.get("type") in BLOCKS for block in content)
    return blocks and (bool(content) or len(result) > 1)


def text_of(result: dict[str, Json]) -> str:
    """What a model is shown of an MCP result: its texts, one after the other. Pictures and sounds
    are named, not written out; structured content stands in where there is no block at all."""
    texts = [_text_of_block(block) for block in result["content"]]
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
