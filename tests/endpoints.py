"""A real server on 127.0.0.1 for tests: it answers as it is told, rightly or in every wrong way."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import run
from typing import Literal, Self

FOREVER = 3600.0


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: dict

    @property
    def messages(self) -> list[dict]:
        return self.body["messages"]


@dataclass(frozen=True)
class Answer:
    """`body`: bytes, a JSON value, or a function that makes one. `keep`: only so many bytes of the response leave, then the
    connection is cut. `before`: seconds of silence; `between`: seconds between single bytes.
    `then`: what follows, for as long as the client takes it; `ends`: how, after raw bytes."""

    status: int = 200
    body: object = b""
    headers: dict[str, str] = field(default_factory=dict)
    keep: int | None = None
    before: float = 0.0
    between: float = 0.0
    raw: bytes | None = None
    then: Iterable[bytes] = ()
    ends: Literal["closed", "reset", "silent"] = "closed"

    def data(self) -> bytes:
        if self.raw is not None:
            return self.raw
        made = self.body() if callable(self.body) else self.body
        body = made if isinstance(made, bytes) else json.dumps(made).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        lines = [f"{name}: {value}" for name, value in {**headers, **self.headers}.items()]
        return "\r\n".join([f"HTTP/1.1 {self.status} X", *lines, "", ""]).encode() + body


class Server:
    """Runs in a thread of its own while it is entered. `requests` are those for answers, in the
    order in which they came; `most` is how many were under way at once."""

    def __init__(
        self,
        answer: Callable[[Request], Answer],
        models: Answer | Sequence[str] | None = None,
        *,
        certificate: Path | None = None,
    ) -> None:
        """`certificate`: with its key, for TLS (see `self_signed`)."""
        self._answer = answer
        self._models = models
        self._tls = None if certificate is None else ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if self._tls is not None:
            self._tls.load_cert_chain(certificate)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._started = threading.Event()
        self.under_way = 0
        self.most = 0
        self.requests: list[Request] = []
        self.looks: list[Request] = []
        self.connections = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        async def start() -> asyncio.Server:
            server = await asyncio.start_server(
                self._client, "127.0.0.1", self.port, backlog=1024, ssl=self._tls
            )
            self.port = server.sockets[0].getsockname()[1]
            return server

        async def end(server: asyncio.Server) -> None:
            server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        server = self._loop.run_until_complete(start())
        self._loop.call_soon(self._started.set)
        self._loop.run_forever()
        self._loop.run_until_complete(end(server))
        self._loop.close()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (request := await _read(reader)) is not None:
                self.under_way += 1
                self.most = max(self.most, self.under_way)
                try:
                    is_open = await _send(writer, self._answer_to(request))
                finally:
                    self.under_way -= 1
                if not is_open:
                    break
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    def _answer_to(self, request: Request) -> Answer:
        if request.method == "GET":
            self.looks.append(request)
            match self._models:
                case None:
                    return Answer(404, {"error": {"message": "Not Found"}})
                case Answer():
                    return self._models
                case names:
                    return Answer(body={"object": "list", "data": [{"id": one} for one in names]})
        self.requests.append(request)
        return self._answer(request)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    data = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = first.split(" ")
    return Request(method, path, headers, json.loads(data) if data else {})


async def _send(writer: asyncio.StreamWriter, answer: Answer) -> bool:
    """Whether the connection may be used again."""
    if answer.before:
        await asyncio.sleep(answer.before)
    data = answer.data() if answer.keep is None else answer.data()[: answer.keep]
    if answer.between:
        for at in range(len(data)):
            if writer.is_closing():
                return False
            writer.write(data[at : at + 1])
            await asyncio.sleep(answer.between)
    else:
        writer.write(data)
    await writer.drain()
    for more in answer.then:
        if writer.is_closing():
            return False
        writer.write(more)
        await writer.drain()
        await asyncio.sleep(0)  # a client that takes everything must not keep others waiting
    if answer.ends == "silent":
        await asyncio.sleep(FOREVER)
    if answer.ends == "reset":
        link = writer.get_extra_info("socket")
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return answer.keep is None and answer.raw is None


class TunnelProxy:
    """A proxy that opens a way to wherever it is asked for one, or answers with these bytes."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 OK\r\n\r\n") -> None:
        self._answer = answer
        self.heads: list[str] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._open: list[socket.socket] = [self._socket]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for link in self._open:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                link = self._socket.accept()[0]
                self._open.append(link)
                threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        head = b""
        with suppress(OSError):
            while b"\r\n\r\n" not in head:
                head += link.recv(1)
            self.heads.append(head.decode())
            link.sendall(self._answer)
            if not self._answer.startswith(b"HTTP/1.1 200"):
                link.close()
                return
            host, _, port = head.split()[1].decode().rpartition(":")
            server = socket.create_connection((host, int(port)))
            self._open.append(server)
            threading.Thread(target=_pipe, args=(server, link), daemon=True).start()
            _pipe(link, server)


def _pipe(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def self_signed(folder: Path) -> Path:
    """A certificate for 127.0.0.1 with its key; SSL_CERT_FILE makes a client trust it."""
    made, key = folder / "certificate.pem", folder / "key.pem"
    words = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", made]
    run(["openssl", "req", "-x509", *words, *names], check=True, capture_output=True)
    made.write_text(made.read_text() + key.read_text())
    return made


def completion(
    content: object = None,
    calls: Sequence[tuple[str, object]] = (),
    *,
    finish: str | None = None,
    message: dict | None = None,
    **fields: object,
) -> Answer:
    """A chat completion. `calls`: (name, arguments), arguments as an object or as any text."""
    made: dict = {"role": "assistant", "content": content}
    if calls:
        made["tool_calls"] = [
            {
                "id": f"id-{at}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": given if isinstance(given, str) else json.dumps(given),
                },
            }
            for at, (name, given) in enumerate(calls)
        ]
    choice = {
        "index": 0,
        "message": made | (message or {}),
        "finish_reason": finish or ("tool_calls" if calls else "stop"),
    }
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    body = {"id": "x", "object": "chat.completion", "model": "stub", "choices": [choice]}
    return Answer(body={**body, "usage": usage, **fields})


def error(status: int, message: str = "no", *, headers: dict | None = None, **more) -> Answer:
    return Answer(status, {"error": {"message": message, **more}}, headers or {})


def city_model(request: Request) -> Answer:
    """Answers the questions of `tests/integration/conftest.py` rightly, in two turns."""
    last = request.messages[-1]
    if last["role"] == "tool":
        count = json.loads(last["content"])["count"]
        return completion(f"There live {count} people there.")
    number = int(re.findall(r"city (\d+)", last["content"])[-1])
    if number % 5 == 4:
        return completion("I can say that without a tool.")
    return completion(None, [("web_search", {"q": f"city {number}"})])


def speaking(protocol: str, model: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
    """The same model behind another protocol. It thinks, and wants to see its thoughts again."""
    if protocol == "openai_http":
        return model

    def answer(request: Request) -> Answer:
        read, write = {
            "openai_responses": (_read_items, _write_items),
            "anthropic_messages": (_read_blocks, _write_blocks),
        }[protocol]
        asked = Request(request.method, request.path, request.headers, read(request.body))
        made = model(asked)
        if made.status != 200 or not isinstance(made.body, dict):
            return made
        return Answer(body=write(made.body, len(asked.messages)))

    return answer


def _read_items(body: dict) -> dict:
    messages = []
    for item in body["input"]:
        match item:
            case {"type": "function_call_output", "output": output}:
                messages.append({"role": "tool", "content": output})
            case {"role": role, "content": content}:
                messages.append({"role": role, "content": content})
            case _:
                messages.append({"role": "assistant", "content": None})
    return {**body, "messages": messages}


def _write_items(made: dict, number: int) -> dict:
    message = made["choices"][0]["message"]
    items: list[dict] = [
        {
            "type": "reasoning",
            "id": f"rs_{number}",
            "summary": [],
            "encrypted_content": f"gAAA{number}==",
        }
    ]
    if message["content"] is not None:
        part = {"type": "output_text", "text": message["content"], "annotations": []}
        items.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    items += [
        {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": one["id"],
            "status": "completed",
            **one["function"],
        }
        for one in message.get("tool_calls") or ()
    ]
    counted, is_cut = made["usage"], made["choices"][0]["finish_reason"] == "length"
    usage = {
        "input_tokens": counted["prompt_tokens"],
        "output_tokens": counted["completion_tokens"],
    }
    return {
        "id": "resp_1",
        "object": "response",
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "model": "stub",
        "output": items,
        "error": None,
        "usage": usage,
    }


def _read_blocks(body: dict) -> dict:
    messages = []
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_result":
                messages.append({"role": "tool", "content": block["content"]})
            else:
                messages.append({"role": message["role"], "content": block.get("text")})
    return {**body, "messages": messages}


def _write_blocks(made: dict, number: int) -> dict:
    message = made["choices"][0]["message"]
    blocks: list[dict] = [{"type": "thinking", "thinking": "", "signature": f"Er{number}=="}]
    if message["content"] is not None:
        blocks.append({"type": "text", "text": message["content"]})
    calls = message.get("tool_calls") or ()
    blocks += [
        {
            "type": "tool_use",
            "id": one["id"],
            "name": one["function"]["name"],
            "input": json.loads(one["function"]["arguments"]),
        }
        for one in calls
    ]
    counted, is_cut = made["usage"], made["choices"][0]["finish_reason"] == "length"
    usage = {
        "input_tokens": counted["prompt_tokens"],
        "output_tokens": counted["completion_tokens"],
    }
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "stub",
        "content": blocks,
        "stop_reason": "max_tokens" if is_cut else "tool_use" if calls else "end_turn",
        "usage": usage,
    }
