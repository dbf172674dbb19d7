"""A chat-completions server that costs next to nothing: every sample calls a search in its first
turn and answers in its second. Prints its port; ends when its input does."""

from __future__ import annotations

import asyncio
import json
import re
import sys

NUMBER = re.compile(rb"city (\d+)")
TOOL_RESULT = re.compile(rb'"role": ?"tool"')
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def body_for(request: bytes) -> bytes:
    found = NUMBER.search(request)
    number = int(found.group(1)) if found else 0
    message: dict[str, object] = {"role": "assistant", "content": None}
    if TOOL_RESULT.search(request):
        message["content"] = f"There live {1000 + 7 * number} people there."
    else:
        function = {"name": "web_search", "arguments": json.dumps({"q": f"city {number}"})}
        message["tool_calls"] = [{"id": "call_a", "type": "function", "function": function}]
    finish = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    usage = {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320}
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": "stub",
            "choices": [choice],
            "usage": usage,
            "system_fingerprint": "fp",
        }
    ).encode()


class Stub(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            found = LENGTH.search(self.data, 0, end)
            size = end + 4 + (int(found.group(1)) if found else 0)
            if len(self.data) < size:
                return
            request, self.data = self.data[:size], self.data[size:]
            body = b'{"data":[{"id":"stub"}]}' if request.startswith(b"GET") else body_for(request)
            self.transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                % len(body)
                + body
            )


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Stub, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
