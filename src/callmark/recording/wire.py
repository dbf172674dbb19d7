"""MCP's own JSON as fixtures and registries hold it, and back.

A result is kept as it came over the wire, by its wire names (`structuredContent`, `isError`),
without what only the protocol needs (`resultType`, the server's stamp in `_meta`). A JSON-RPC
error in answer to a listed tool is kept as `{"error": {"code", "message", "data"}}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from callmark.calls.registry import X_CALLMARK, ToolSpec
from callmark.core.jsontext import Json, canonical_json
from callmark.core.mcp_result import is_mcp_result
from callmark.core.trace import is_error_result

PROTOCOL_META = "io.modelcontextprotocol/"


class ProtocolError(NamedTuple):
    """What is answered instead of a result."""

    code: int
    message: str
    data: Json


def result_from_wire(raw: Mapping[str, Json]) -> dict[str, Json]:
    kept = {name: value for name, value in raw.items() if name not in ("resultType", "_meta")}
    meta = _own_meta(raw.get("_meta"))
    if meta:
        kept["_meta"] = meta
    kept.setdefault("content", [])
    kept.setdefault("isError", False)
    return kept


def error_from_wire(code: int, message: str, data: Json) -> dict[str, Json]:
    error = {"code": code, "message": message}
    return {"error": error if data is None else {**error, "data": data}}


def result_to_wire(result: Json) -> dict[str, Json] | ProtocolError:
    """What an MCP client is answered with. A result of another kind of tool is its text, and its
    structured content where it is an object."""
    if is_mcp_result(result):
        return dict(result)
    match result:
        case {"error": {"code": int(code), "message": str(message), **more}} if len(result) == 1:
            return ProtocolError(code, message, more.get("data"))
    text = result if isinstance(result, str) else canonical_json(result)
    wire: dict[str, Json] = {"content": [{"type": "text", "text": text}]}
    if isinstance(result, dict):
        wire["structuredContent"] = result
    return {**wire, "isError": is_error_result(result)}


def spec_from_wire(tool: Mapping[str, Json]) -> dict[str, Json]:
    """A tool of `tools/list` as a function spec; what else the server says of it stays in
    `x-callmark.mcp`, which no model is sent."""
    rest = {name: value for name, value in tool.items() if name not in _IN_SPEC}
    meta = _own_meta(rest.pop("_meta", None))
    if meta:
        rest["_meta"] = meta
    spec: dict[str, Json] = {"name": tool["name"]}
    if tool.get("description") is not None:
        spec["description"] = tool["description"]
    spec["parameters"] = tool["inputSchema"]
    if rest:
        spec[X_CALLMARK] = {"mcp": rest}
    return spec


def spec_to_wire(spec: ToolSpec) -> dict[str, Json]:
    tool: dict[str, Json] = {"name": spec.name}
    if "description" in spec.function:
        tool["description"] = spec.description
    return {**tool, "inputSchema": spec.parameters, **spec.x_callmark.mcp}


_IN_SPEC = frozenset({"name", "description", "inputSchema"})


def _own_meta(meta: Json) -> dict[str, Json]:
    if not isinstance(meta, dict):
        return {}
    return {name: value for name, value in meta.items() if not name.startswith(PROTOCOL_META)}
