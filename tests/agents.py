"""An agent as somebody builds it with the official SDK: it lists the tools, calls them, and answers
from what they returned. It knows nothing of fixtures."""

from __future__ import annotations

import anyio
from mcp import Client, MCPError


def call_all(target, calls, mode="auto"):
    """Tools and answers, as the official client sees them; an MCPError is an answer too. `mode`
    "legacy" speaks the protocol of 2025-11-25, which the servers of today do."""

    async def ask():
        async with Client(target, mode=mode) as client:
            tools = (await client.list_tools()).tools
            return tools, [await _called(client, name, arguments) for name, arguments in calls]

    return anyio.run(ask)


async def _called(client, name, arguments):
    try:
        result = await client.call_tool(name, arguments)
    except MCPError as error:
        return (error.code, error.message, error.data)
    # The stamp of the server that answered is no part of the answer.
    return result.model_copy(update={"meta": None})


async def order_agent(target, order_id):
    """One question, one call, one answer in words."""
    async with Client(target) as client:
        [tool] = [tool for tool in (await client.list_tools()).tools if "order" in tool.name]
        result = await client.call_tool(tool.name, {"order_id": order_id})
        if result.is_error:
            return f"I could not find the order: {result.content[0].text}."
        return f"The total of your order is {result.structured_content['total']} euros."
