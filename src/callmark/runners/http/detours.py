"""What few answers need: a body that is compressed, a proxy that leads to the server, words for
what failed."""

from __future__ import annotations

import asyncio
import os
import re
import zlib
from base64 import b64encode
from collections.abc import Mapping
from io import BytesIO
from socket import gaierror
from ssl import SSLContext, SSLError
from typing import cast
from urllib.parse import SplitResult, unquote, urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from callmark.errors import UsageError
from callmark.runners.http.trouble import MOST_BYTES, NOT_INFLATED, TOO_LARGE, Lost

# A gzip body may have members, and each costs something however little it holds.
MOST_MEMBERS = 1000
INFLATED_AT_ONCE = 64 << 10
LONGEST_HEAD = 64 << 10  # of a proxy


def inflate(body: bytes, coding: str, most: int = MOST_BYTES) -> bytes | Lost:
    """`most`: so many bytes it may become."""
    match coding.lower():
        case "identity" | "":
            return body
        case "gzip" | "x-gzip":
            return _inflated(body, 31, most)
        case "deflate":
            # Meant is zlib's format; some servers send what is inside of it.
            bits = 15 if body[:1] and body[0] & 15 == 8 else -15
            return _inflated(body, bits, most)
        case _:
            return NOT_INFLATED


def _inflated(body: bytes, window_bits: int, most: int) -> bytes | Lost:
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
            if whole.tell() > most:
                return TOO_LARGE
            if members > MOST_MEMBERS:
                return NOT_INFLATED
            rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    return whole.getvalue() if inflater is None or inflater.eof else NOT_INFLATED


class NoConnection(Exception):
    """Nobody can be asked. `lost` says why, in words of ours: those of the libraries may hold
    addresses with passwords in them."""

    def __init__(self, lost: Lost) -> None:
        self.lost = lost


class Tunnel(asyncio.Protocol):
    """The answer of a proxy that is asked for a way to a server."""

    def __init__(self) -> None:
        self._refused: asyncio.Future[Lost | None] = asyncio.get_running_loop().create_future()
        self._parser = HttpResponseParser(self)
        self._read = self._status = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._link = cast("asyncio.Transport", transport)

    async def lead_to(self, server: str, headers: Mapping[str, str]) -> asyncio.Transport:
        """The way to that server, for whatever is to be said to it. Raises NoConnection."""
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n{fields}\r\n"
        try:
            self._link.write(head.encode())
            refused = await self._refused
        except BaseException:
            self._link.abort()
            raise
        if refused is not None:
            self._link.abort()
            raise NoConnection(refused)
        return self._link

    def data_received(self, data: bytes) -> None:
        self._read += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._answer("does not speak HTTP")
        if self._status:
            is_open = 200 <= self._status < 300
            self._answer(None if is_open else f"opens no way to the server: status {self._status}")
        elif self._read > LONGEST_HEAD:
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
        if not self._refused.done():
            refused = None if why_not is None else Lost(f"the proxy {why_not}", unreachable=True)
            self._refused.set_result(refused)


async def start_tls(
    link: asyncio.Transport, protocol: asyncio.BaseProtocol, context: SSLContext, host: str
) -> None:
    """With a server, inside of a connection that leads to it."""
    try:
        inner = await asyncio.get_running_loop().start_tls(
            link, protocol, context, server_hostname=host
        )
    except BaseException:
        link.abort()
        raise
    protocol.connection_made(cast("asyncio.Transport", inner))


def parts_of_proxy(url: str) -> SplitResult:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        is_known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_known = False
    if not is_known:
        # Without its text, which may hold a password.
        raise UsageError(
            "the proxy that the environment names (http_proxy, https_proxy, all_proxy): must be"
            " http://HOST:PORT or https://HOST:PORT; no_proxy names hosts that need none"
        )
    return parts


def let_in_by_proxy(parts: SplitResult) -> dict[str, str]:
    """The headers that its address has a password for."""
    if parts.username is None:
        return {}
    word = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {b64encode(word).decode()}"}


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
