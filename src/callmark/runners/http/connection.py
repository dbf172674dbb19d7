"""One connection to a server: a request goes out, a response or the reason for none comes back.
This is the one place that knows httptools (llhttp), which parses what comes off the wire; its
leniencies stay off. Head, body and inflated body have bounds."""

from __future__ import annotations

import asyncio
import os
import re
import select
import time
import zlib
from base64 import b64encode
from functools import cached_property
from io import BytesIO
from socket import gaierror
from ssl import SSLContext, SSLError, create_default_context
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast
from urllib.parse import quote, unquote, urlsplit

import msgspec
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from callmark.errors import UsageError
from callmark.runners.http.trouble import asked_wait

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Of one body: as it comes, and inflated.
MOST_BYTES = 64 << 20
# Of what is no body: the head, the sizes of chunks, trailers.
MOST_AROUND = 64 << 10
# For every byte of a body: chunks of one byte have five.
AROUND_A_BYTE = 16
# Bodies beyond this are read one after the other, so that many of them fill no memory.
LARGE = 256 << 10
# A gzip body may have members, and each costs something however little it holds.
MOST_MEMBERS = 1000
READ_AT_ONCE = INFLATED_AT_ONCE = 64 << 10
# Before another address of the same host is tried.
NEXT_ADDRESS_SECONDS = 0.25


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """`asked`: seconds of its Retry-After."""

    status: int
    content_type: str
    body: bytes
    asked: float | None


class Lost(msgspec.Struct, frozen=True):
    """There was no response, or not a whole one. `unreachable`: not even a connection;
    `for_good`: it would be lost again."""

    reason: str
    unreachable: bool = False
    timed_out: bool = False
    for_good: bool = False


CUT = Lost("the connection was cut before the answer was whole")
NO_HTTP = Lost("the answer is not HTTP", for_good=True)
NOT_INFLATED = Lost("the answer is compressed in a way that cannot be undone", for_good=True)
TOO_LARGE = Lost(f"the answer is larger than {MOST_BYTES >> 20} MB", for_good=True)
NO_CONNECTION = Lost("no connection in time", unreachable=True, timed_out=True)


class NoConnection(Exception):
    """Nobody can be asked. `lost` says why, in words of ours: those of the libraries may hold
    addresses with passwords in them."""

    def __init__(self, lost: Lost) -> None:
        self.lost = lost


class Head:
    """The fields of a response that are read, and what they say about its body."""

    READ: ClassVar[frozenset[bytes]] = frozenset(
        b"content-encoding content-length content-type date retry-after transfer-encoding".split()
    )

    def __init__(self, status: int, fields: list[tuple[bytes, bytes]]) -> None:
        self.status = status
        self._found: dict[bytes, bytes] = {}
        self._twice: set[bytes] = set()
        for name, value in fields:
            name = name.lower()
            if name in self.READ:
                if name in self._found:
                    self._twice.add(name)
                else:
                    self._found[name] = value

    def get(self, name: bytes) -> str | None:
        value = self._found.get(name)
        return None if value is None else value.decode("latin-1").strip()

    def problem(self) -> Lost | None:
        """Whether one and only one thing says where the body ends (or nothing: then the connection
        does). The parser has refused what is no number, and two lengths; other codings it leaves to
        us."""
        coding, length = self.get(b"transfer-encoding"), self.get(b"content-length")
        if coding is not None and (coding.lower() != "chunked" or self._twice & _FRAMING):
            return NO_HTTP
        if length is not None and int(length) > MOST_BYTES:
            return TOO_LARGE
        return None

    @property
    def ends_with_connection(self) -> bool:
        return not self._found.keys() & _FRAMING

    @property
    def codings(self) -> str:
        """How the body is compressed; what nobody can undo, where two fields say it."""
        found = self.get(b"content-encoding") or "identity"
        return f"{found}, twice" if b"content-encoding" in self._twice else found


class Whole(msgspec.Struct, frozen=True):
    """A response as it came."""

    head: Head
    body: bytes

    def response(self) -> Response | Lost:
        head = self.head
        body = inflate(self.body, head.codings)
        if isinstance(body, Lost):
            return body
        again = head.get(b"retry-after")
        return Response(
            status=head.status,
            content_type=head.get(b"content-type") or "",
            body=body,
            asked=None if again is None else asked_wait(again, head.get(b"date"), time.time()),
        )


_FRAMING = frozenset({b"transfer-encoding", b"content-length"})


def inflate(body: bytes, coding: str) -> bytes | Lost:
    match coding.lower():
        case "identity":
            return body
        case "gzip" | "x-gzip":
            return _inflated(body, 31)
        case "deflate":
            # Meant is zlib's format; some servers send what is inside of it.
            return _inflated(body, 15 if body[:1] and body[0] & 15 == 8 else -15)
        case _:
            return NOT_INFLATED


def _inflated(body: bytes, window_bits: int) -> bytes | Lost:
    """In steps, so that no more is ever in memory than the bound."""
    whole, members, inflater = BytesIO(), 0, None
    view = memoryview(body)
    for start in range(0, len(body), INFLATED_AT_ONCE):
        rest: bytes | memoryview = view[start : start + INFLATED_AT_ONCE]
        part = b""
        while rest or (len(part) == INFLATED_AT_ONCE and inflater and not inflater.eof):
            if inflater is None or inflater.eof:
                inflater, members = zlib.decompressobj(window_bits), members + 1
            try:
                part = inflater.decompress(rest, INFLATED_AT_ONCE)
            except zlib.error:
                return NOT_INFLATED
            whole.write(part)
            if whole.tell() > MOST_BYTES:
                return TOO_LARGE
            if members > MOST_MEMBERS:
                return NOT_INFLATED
            rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    return whole.getvalue() if inflater is None or inflater.eof else NOT_INFLATED


class Connection(asyncio.BufferedProtocol):
    """Asked by one at a time. `room`: what is read goes through there at once, so that all
    connections can share it."""

    def __init__(self, room: memoryview) -> None:
        self.idle_since = 0.0
        self._room = room
        self._link: asyncio.Transport | None = None
        self._poll = select.poll()
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._waiting: asyncio.Future[Whole | Lost | None] | None = None
        self._is_asked = False
        self.is_kept = False
        self._forget()

    def _forget(self) -> None:
        """So that no answer takes memory which nobody waits for."""
        self._read = self._size = 0
        self._fields: list[tuple[bytes, bytes]] = []
        self._head: Head | None = None
        self._body = BytesIO()
        self._end: Whole | Lost | None = None
        self._may_be_large = False

    async def ask(self, request: bytes, deadline: float, late: Lost) -> Response | Lost | None:
        """None: the body is large, and the rest of it is not read until somebody asks for it. A
        connection is to be asked again only if it `is_free`."""
        self._is_asked, self.is_kept = True, False
        if self._link is None:
            return CUT
        self._link.write(request)
        return await self._wait(deadline, late)

    async def ask_rest(self, deadline: float, late: Lost) -> Response | Lost:
        self._may_be_large = True
        if self._link is None:
            return CUT
        self._link.resume_reading()
        return await self._wait(deadline, late) or CUT

    async def _wait(self, deadline: float, late: Lost) -> Response | Lost | None:
        loop = asyncio.get_running_loop()
        self._waiting = waiting = loop.create_future()
        timer = loop.call_at(deadline, self._answer, late)
        try:
            outcome = await waiting
        finally:
            timer.cancel()
            self._waiting = None
            if not waiting.done() or waiting.cancelled():
                self.abort()
        # Inflated here, where it is read at once, and not where answers come in.
        return outcome.response() if isinstance(outcome, Whole) else outcome

    @property
    def is_free(self) -> bool:
        """Whether it is open, and nothing came or waits to be read that nobody asked for: it would
        be taken for the next answer, or it is the end of the connection."""
        return self.is_kept and self._link is not None and not self._poll.poll(0)

    def abort(self) -> None:
        self.is_kept = False
        if self._link is not None:
            self._link.abort()

    def _answer(self, outcome: Whole | Lost | None) -> None:
        """A connection is kept only after a whole answer."""
        if isinstance(outcome, Lost):
            self.abort()
        if outcome is not None:
            self._is_asked = False
            self._forget()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(outcome)

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._link = cast("asyncio.Transport", transport)
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        parser = self._parser
        if not self._is_asked or parser is None:
            self.abort()
            return
        self._read += nbytes
        try:
            parser.feed_data(self._room[:nbytes])
        except (HttpParserError, HttpParserUpgrade):
            self._end = NO_HTTP
        if self._end is not None:
            self._answer(self._end)
        elif self._read - self._size > MOST_AROUND + AROUND_A_BYTE * self._size:
            self._answer(NO_HTTP)
        elif self._size > LARGE and not self._may_be_large:
            if self._link is not None:
                self._link.pause_reading()
            self._answer(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._link = self._parser = None
        self.is_kept = False
        if not self._is_asked:
            return
        head = self._head
        if exc is not None:
            self._answer(Lost(f"the connection failed: {why(exc)}"))
        elif head is not None and head.ends_with_connection:
            self._answer(Whole(head, self._body.getvalue()))
        else:
            self._answer(CUT)

    # What the parser calls. After the end of an answer nothing else is expected: it is not read,
    # and the connection not kept.

    def on_message_begin(self) -> None:
        if self._end is not None:
            self.is_kept = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is None:
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        parser = self._parser
        if self._end is not None or parser is None:
            return
        status, fields = parser.get_status_code(), self._fields
        if status < 100 or parser.get_http_version() not in ("1.0", "1.1"):
            self._end = NO_HTTP
        elif status < 200:
            self._fields = []  # of what goes before the answer
        else:
            self._head = Head(status, fields)
            self._end = self._head.problem()

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._end is None:
            self._body.write(body)
            if self._size > MOST_BYTES:
                self._end = TOO_LARGE

    def on_message_complete(self) -> None:
        parser, head, link = self._parser, self._head, self._link
        if self._end is None and head is not None and parser is not None and link is not None:
            self._end = Whole(head, self._body.getvalue())
            # Who answers before the request was sent is not read to by the rest of it.
            self.is_kept = parser.should_keep_alive() and not link.get_write_buffer_size()


class Tunnel(asyncio.Protocol):
    """The answer of a proxy that is asked for a way to a server."""

    def __init__(self) -> None:
        self.refused: asyncio.Future[Lost | None] = asyncio.get_running_loop().create_future()
        self._parser = HttpResponseParser(self)
        self._read = self._status = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.link = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._read += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._answer("does not speak HTTP")
        if self._status:
            is_open = 200 <= self._status < 300
            self._answer(None if is_open else f"opens no way to the server: status {self._status}")
        elif self._read > MOST_AROUND:
            self._answer("does not speak HTTP")

    def connection_lost(self, exc: Exception | None) -> None:
        self._answer("cut the connection")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._status = 0 if 100 <= status < 200 else status

    def on_body(self, body: bytes) -> None:
        if self._status < 300:  # the server does not speak first
            self._answer("does not speak HTTP")

    def _answer(self, why_not: str | None) -> None:
        if not self.refused.done():
            refused = None if why_not is None else Lost(f"the proxy {why_not}", unreachable=True)
            self.refused.set_result(refused)


Speaker = TypeVar("Speaker", bound=asyncio.BaseProtocol)


class Place(msgspec.Struct, frozen=True):
    """Who is connected to."""

    host: str
    port: int
    is_tls: bool

    @property
    def written(self) -> str:
        """Without the port where it is the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_tls else 80) else f"{host}:{self.port}"

    @property
    def whole(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def place_of(url: str) -> Place:
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if not host.isascii():
        host = host.encode("idna").decode()
    is_tls = parts.scheme == "https"
    return Place(host, parts.port or (443 if is_tls else 80), is_tls)


def _proxy_at(url: str) -> tuple[Place, dict[str, str]]:
    """Who it is, and the headers that it lets us in for."""
    url = url if "://" in url else f"http://{url}"
    try:
        place, parts = place_of(url), urlsplit(url)
        is_known = parts.scheme in ("http", "https") and bool(place.host)
    except ValueError:
        is_known = False
    if not is_known:
        # Without its text, which may hold a password.
        raise UsageError(
            "the proxy that the environment names (http_proxy, https_proxy, all_proxy): must be"
            " http://HOST:PORT or https://HOST:PORT; no_proxy names hosts that need none"
        )
    if parts.username is None:
        return place, {}
    word = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return place, {"Proxy-Authorization": f"Basic {b64encode(word).decode()}"}


class Route:
    """The way to a server, straight or through a proxy."""

    def __init__(self, url: str, proxy: str | None) -> None:
        self._proxy: Place | None = None
        self._lets_in: dict[str, str] = {}
        if proxy is not None:
            self._proxy, self._lets_in = _proxy_at(proxy)
        try:
            self._server = place_of(url)
        except ValueError:
            raise UsageError("--base-url: the host's name cannot be one") from None

    @cached_property
    def _context(self) -> SSLContext:
        """The system's certificates, or those that SSL_CERT_FILE names."""
        context = create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context

    def head(self, method: str, url: str, headers: Mapping[str, str]) -> bytes:
        """Of every request to that address: all but the length of its body."""
        parts = urlsplit(url)
        target = quote(parts.path or "/", _KEPT)
        if parts.query:
            target += "?" + quote(parts.query, _KEPT + "?")
        every = {**headers}
        if "host" not in map(str.lower, headers):
            every = {"Host": self._server.written, **headers}
        if self._proxy is not None and not self._server.is_tls:
            target = f"http://{self._server.written}{target}"
            every |= self._lets_in
        return _head_of(f"{method} {target}", every)

    async def connect(self, room: memoryview) -> Connection:
        """Raises NoConnection."""
        first, connection = self._proxy or self._server, Connection(room)
        try:
            if self._proxy is None or not self._server.is_tls:
                return await self._open(first, lambda: connection)
            return await self._through(self._proxy, connection)
        except SSLError as error:
            raise NoConnection(Lost(f"TLS: {why(error)}", unreachable=True)) from None
        except OSError as error:
            to = "no connection to the proxy" if self._proxy is not None else "no connection"
            raise NoConnection(Lost(f"{to}: {why(error)}", unreachable=True)) from None
        except ValueError:  # names that nobody could have
            reason = "no connection: the host's name cannot be one"
            raise NoConnection(Lost(reason, unreachable=True)) from None

    async def _open(self, place: Place, protocol: Callable[[], Speaker]) -> Speaker:
        _, speaker = await asyncio.get_running_loop().create_connection(
            protocol,
            place.host,
            place.port,
            ssl=self._context if place.is_tls else None,
            happy_eyeballs_delay=NEXT_ADDRESS_SECONDS,
        )
        return speaker

    async def _through(self, proxy: Place, connection: Connection) -> Connection:
        """A connection by TLS to the server inside of one to the proxy."""
        loop, server = asyncio.get_running_loop(), self._server
        tunnel = await self._open(proxy, Tunnel)
        try:
            headers = {"Host": server.whole, **self._lets_in}
            tunnel.link.write(_head_of(f"CONNECT {server.whole}", headers) + b"\r\n")
            refused = await tunnel.refused
            if refused is not None:
                raise NoConnection(refused)
            link = await loop.start_tls(
                tunnel.link, connection, self._context, server_hostname=server.host
            )
            connection.connection_made(cast("asyncio.Transport", link))
        except BaseException:
            tunnel.link.abort()
            raise
        return connection


# In paths and queries as they are; what is escaped stays so.
_KEPT = "/%:@!$&'()*+,;=~"


def _head_of(line: str, headers: Mapping[str, str]) -> bytes:
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{line} HTTP/1.1\r\n{fields}".encode()


def why(error: Exception) -> str:
    """In our own words: what an error says may hold the address with all that is in it."""
    if isinstance(error, SSLError | gaierror) and error.strerror:
        return error.strerror
    if isinstance(error, OSError):
        # Of several addresses that were tried only the text tells.
        tried = re.findall(r"\[Errno (\d+)\]", str(error))
        number = error.errno or (int(tried[-1]) if tried else 0)
        if number:
            return os.strerror(number)
    return type(error).__name__
