"""HTTP/1.1 to a server that needs neither TLS nor a proxy, straight over asyncio: a local server
then costs a fifth of the CPU that a general client takes. One request at a time per connection,
connections are kept; the response is read whole."""

from __future__ import annotations

import asyncio
import time
import zlib
from typing import Literal, cast
from urllib.parse import urlsplit

import msgspec

from callmark.runners.http_endpoint import Endpoint
from callmark.runners.http_retry import asked_wait
from callmark.runners.http_transport import (
    CONNECT_SECONDS,
    KEEP_ALIVE_SECONDS,
    LOOK_SECONDS,
    Lost,
    Response,
)

LONGEST_HEAD = 1 << 16
CUT = Lost("the connection was cut before the answer was whole")
NO_HTTP = Lost("the answer is not HTTP")
_WITHOUT_BODY = frozenset({204, 304})


class _Head(msgspec.Struct, frozen=True):
    """The first lines of a response. `length` None: as long as the server goes on."""

    status: int
    headers: dict[bytes, bytes]
    length: int | Literal["chunked"] | None
    is_kept: bool

    def text(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


class Wire:
    """Requests to one server, over as many connections as are under way at once."""

    def __init__(self, endpoint: Endpoint, *, timeout: float, keep_alive: bool) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._keep_alive = keep_alive
        self._post_head = self._head_of("POST", endpoint.chat_url)
        parts = urlsplit(endpoint.base)
        self._address = parts.hostname or "", parts.port or 80
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._is_watching = False

    async def post(self, body: bytes) -> Response | Lost:
        head = b"%bContent-Length: %d\r\n\r\n" % (self._post_head, len(body))
        return await self._exchange(head + body, self._timeout)

    async def models(self) -> Response | Lost:
        head = self._head_of("GET", self._endpoint.models_url)
        return await self._exchange(head + b"\r\n", min(self._timeout, LOOK_SECONDS))

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().abort()

    def _head_of(self, method: str, url: str) -> bytes:
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {
            "Host": parts.netloc,
            "Accept-Encoding": "identity",
            **({} if self._keep_alive else {"Connection": "close"}),
            **self._endpoint.headers,
        }
        lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
        return "".join([f"{method} {target} HTTP/1.1\r\n", *lines]).encode()

    async def _exchange(self, request: bytes, limit: float) -> Response | Lost:
        connection = self._kept() or await self._opened(min(limit, CONNECT_SECONDS))
        if isinstance(connection, Lost):
            return connection
        self._busy.add(connection)
        if not self._is_watching:
            self._watch()
        try:
            outcome = await connection.exchange(request, limit)
        except BaseException:
            connection.abort()
            raise
        finally:
            self._busy.remove(connection)
        if isinstance(outcome, Lost):
            connection.abort()
            return outcome
        head, body = outcome
        if head.is_kept and self._keep_alive and connection.is_open:
            self._idle.append(connection)
        else:
            connection.abort()
        return self._response(head, body)

    def _watch(self) -> None:
        """Ends what takes too long. One timer for all: a timer each would cost more than all else
        that is done here."""
        for connection in self._busy:
            connection.end_if_late()
        self._is_watching = bool(self._busy)
        if self._is_watching:
            pause = min(1.0, self._timeout / 20)
            asyncio.get_running_loop().call_later(pause, self._watch)

    def _kept(self) -> _Connection | None:
        """The connection that was used last, if it is not about to be closed."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and connection.idle_seconds() < KEEP_ALIVE_SECONDS:
                return connection
            connection.abort()
        return None

    async def _opened(self, limit: float) -> _Connection | Lost:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(limit):
                _, connection = await loop.create_connection(_Connection, *self._address)
        except TimeoutError:
            return Lost("no connection in time", unreachable=True, timed_out=True)
        except OSError as error:
            return Lost(f"no connection: {error.strerror or error}", unreachable=True)
        return connection

    def _response(self, head: _Head, body: bytes) -> Response | Lost:
        encoding = head.headers.get(b"content-encoding", b"identity").lower()
        if encoding != b"identity":
            try:
                body = zlib.decompress(body, wbits=47)  # gzip or zlib, as its head says
            except zlib.error:
                return Lost("the answer is compressed in a way that was not asked for")
        return Response(
            status=head.status,
            content_type=head.text(b"content-type") or "",
            body=self._endpoint.without_secrets(body),
            asked=asked_wait(head.text(b"retry-after"), head.text(b"date"), time.time())
            if b"retry-after" in head.headers
            else None,
        )


_Outcome = tuple[_Head, bytes] | Lost


class _Connection(asyncio.Protocol):
    """`_answer` is the future of the request that is under way."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[_Outcome] | None = None
        self._data = bytearray()
        self._head: _Head | None = None
        self._chunks: list[bytes] = []
        self._limit = 0.0
        self._since = 0.0  # when the request was sent, or the last one ended

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def idle_seconds(self) -> float:
        return self._loop.time() - self._since

    def end_if_late(self) -> None:
        if self._loop.time() - self._since >= self._limit:
            limit = f"no answer within {self._limit:g} s (request_timeout)"
            self._end(Lost(limit, timed_out=True))

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def exchange(self, request: bytes, limit: float) -> _Outcome:
        if self._transport is None or self._transport.is_closing():
            return CUT
        self._answer = self._loop.create_future()
        self._since, self._limit = self._loop.time(), limit
        self._transport.write(request)
        return await self._answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None:  # something that nobody asked for
            self.abort()
            return
        try:
            if self._head is None and not self._data:
                self._read_first(data)
            else:
                self._data += data
                self._read_on()
        except ValueError:
            self._end(NO_HTTP)

    def _read_first(self, data: bytes) -> None:
        """Most answers come in one piece: that is not copied about."""
        end = data.find(b"\r\n\r\n")
        if end >= 0:
            head, body = _head_in(data[:end]), data[end + 4 :]
            if head.status >= 200 and head.length == len(body):
                self._end((head, body))
                return
        self._data += data
        self._read_on()

    def eof_received(self) -> None:
        self._ended()

    def connection_lost(self, error: Exception | None) -> None:
        self._ended()

    def _ended(self) -> None:
        """Without a length the end of the connection is the end of the answer."""
        if self._head is not None and self._head.length is None:
            self._end((self._head, bytes(self._data)))
        else:
            self._end(CUT)

    def _read_on(self) -> None:
        head = self._head = self._head or self._next_head()
        if head is None or head.length is None:
            return
        if head.length == "chunked":
            self._read_chunks(head)
        elif len(self._data) >= head.length:
            body = bytes(self._data[: head.length])
            del self._data[: head.length]
            self._complete(head, body)

    def _next_head(self) -> _Head | None:
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = _head_in(bytes(self._data[:end]))
            del self._data[: end + 4]
            if head.status >= 200:
                return head
        if len(self._data) > LONGEST_HEAD or not b"HTTP/1.".startswith(self._data[:7]):
            raise ValueError
        return None

    def _read_chunks(self, head: _Head) -> None:
        while (end := self._data.find(b"\r\n")) >= 0:
            size = int(self._data[:end].partition(b";")[0], 16)
            whole = end + 2 + size + 2
            if size == 0:
                # Trailers are read and dropped, up to the empty line.
                last = self._data.find(b"\r\n\r\n")
                if last >= 0:
                    del self._data[: last + 4]
                    self._complete(head, b"".join(self._chunks))
                return
            if len(self._data) < whole:
                return
            self._chunks.append(bytes(self._data[end + 2 : whole - 2]))
            del self._data[:whole]

    def _complete(self, head: _Head, body: bytes) -> None:
        if self._data:  # more than one answer: nobody knows what this connection would say next
            self._data.clear()
            head = msgspec.structs.replace(head, is_kept=False)
        self._end((head, body))

    def _end(self, outcome: _Outcome) -> None:
        answer, self._answer = self._answer, None
        self._head = None
        self._chunks = []
        self._since = self._loop.time()
        if answer is not None and not answer.done():
            answer.set_result(outcome)


def _head_in(data: bytes) -> _Head:
    """ValueError: not HTTP."""
    first, *lines = data.split(b"\r\n")
    version, status, *_ = first.split(b" ", 2)
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise ValueError
    headers = {}
    for line in lines:
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip()
    code = int(status)
    length: int | Literal["chunked"] | None = None
    if headers.get(b"transfer-encoding", b"").lower().endswith(b"chunked"):
        length = "chunked"
    elif code in _WITHOUT_BODY:
        length = 0
    elif b"content-length" in headers:
        length = int(headers[b"content-length"])
        if length < 0:
            raise ValueError
    said = headers.get(b"connection", b"").lower()
    is_kept = b"close" not in said if version == b"HTTP/1.1" else b"keep-alive" in said
    return _Head(code, headers, length, is_kept and length is not None)
