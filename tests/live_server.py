"""A real MCP server for the tests: small, but with every kind of answer that MCP has. Started as a
script it speaks over its pipes; `--http PORT` serves a URL."""

from __future__ import annotations

import itertools
import json
import os
import sys

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server import Server

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ANYTHING = {"type": "object"}
ORDER = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string"},
        "verbose": {"type": "boolean", "default": False},
    },
    "required": ["order_id"],
}
TOOLS = [
    types.Tool(
        name="find_order",
        title="Find an order",
        description="Look an order up.",
        input_schema=ORDER,
        output_schema={"type": "object", "properties": {"total": {"type": "number"}}},
        annotations=types.ToolAnnotations(read_only_hint=True),
    ),
    *(
        types.Tool(name=name, input_schema=ANYTHING)
        for name in ("clock", "count", "picture", "links", "secrets", "customer", "query")
    ),
    *(
        types.Tool(name=name, input_schema=ANYTHING)
        for name in ("fails", "refuses", "slow", "dies")
    ),
]
_COUNT = itertools.count(1)


def _text(text: str, **more: object) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **more)


def _structured(value: dict) -> types.CallToolResult:
    return _text(json.dumps(value, indent=2), structured_content=value)


async def _answer(name: str, arguments: dict) -> types.CallToolResult:  # noqa: C901
    match name:
        case "find_order" if arguments.get("order_id") == "W100":
            return _structured({"order_id": "W100", "total": 81.25, "items": ["lamp", "cable"]})
        case "find_order":
            return _text("no such order", is_error=True)
        case "clock":
            return _structured({"now": f"2026-11-{next(_COUNT):02}T08:00:00Z", "zone": "UTC"})
        case "count":
            return _text(f"{next(_COUNT)}")
        case "picture":
            image = types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
            return types.CallToolResult(content=[image])
        case "links":
            link = types.ResourceLink(type="resource_link", name="Manual", uri="demo://manual/7")
            inside = types.TextResourceContents(uri="demo://note", text="the lamp needs 40 W")
            return types.CallToolResult(
                content=[link, types.EmbeddedResource(type="resource", resource=inside)]
            )
        case "secrets":
            return _text(f"key {os.environ.get('SHOP_KEY', '')} and ghp_{'a1' * 18}")
        case "customer":
            return _structured({"email": arguments.get("email"), "phone": "+1 212 736 5000"})
        case "query":
            return _text("[{'id': 1, 'name': 'Ada Lovelace', 'paid': None}]")
        case "refuses":
            raise MCPError(-32010, "not today", {"try": "tomorrow"})
        case "slow":
            await anyio.sleep(600)
        case "dies":
            os.write(2, b"out of memory\n")
            os._exit(3)
    raise ValueError(f"{name} broke")


async def call_tool(context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name not in {tool.name for tool in TOOLS}:
        raise MCPError(-32602, f"Unknown tool: {params.name}")
    try:
        return await _answer(params.name, params.arguments or {})
    except ValueError as error:
        return _text(f"{error}", is_error=True)


async def list_tools(context: object, params: object) -> types.ListToolsResult:
    return types.ListToolsResult(tools=TOOLS)


def live_server() -> Server:
    return Server("shop", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


async def _over_pipes() -> None:
    from mcp.server.stdio import stdio_server

    server = live_server()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        import uvicorn

        uvicorn.run(live_server().streamable_http_app(), port=int(sys.argv[2]), log_level="error")
    else:
        anyio.run(_over_pipes)
