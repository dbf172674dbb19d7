"""A request goes out, a response or the reason for none comes back; nothing here reads what was
said. This is the one place that knows aiohttp."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from callmark.runners.http_endpoint import Endpoint
from callmark.runners.http_retry import asked_wait

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

CONNECT_SECONDS = 30.0
LOOK_SECONDS = 10.0
# Below the 5 seconds of common servers: a connection is not used at the moment it is closed.
KEEP_ALIVE_SECONDS = 4.0


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """`asked`: seconds of its Retry-After. What is secret is out of the body already."""

    status: int
    content_type: str
    body: bytes
    asked: float | None


class Lost(msgspec.Struct, frozen=True):
    """There was no response, or not a whole one. `unreachable`: not even a connection."""

    reason: str
    unreachable: bool = False
    timed_out: bool = False


class Transport(Protocol):
    """Opened by its first request, in the loop that makes it."""

    async def post(self, body: bytes) -> Response | Lost: ...

    async def models(self) -> Response | Lost: ...

    async def close(self) -> None: ...


def open_transport(endpoint: Endpoint, *, timeout: float, keep_alive: bool) -> Transport:
    proxy = proxy_for(endpoint.base)
    if proxy is None and endpoint.base.startswith("http:"):
        from callmark.runners.http_wire import Wire

        return Wire(endpoint, timeout=timeout, keep_alive=keep_alive)
    return AiohttpTransport(endpoint, timeout=timeout, keep_alive=keep_alive, proxy=proxy)


class AiohttpTransport:
    """TLS and proxies as aiohttp gives them."""

    def __init__(
        self, endpoint: Endpoint, *, timeout: float, keep_alive: bool, proxy: str | None
    ) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._proxy = proxy
        self._keep_alive = keep_alive
        self._session: ClientSession | None = None
        self._failures: tuple[type[Exception], ...] = ()
        self._chat_url: Any = None

    async def post(self, body: bytes) -> Response | Lost:
        session = self._session or self._opened()
        return await self._received(session.post(self._chat_url, data=body, allow_redirects=False))

    async def models(self) -> Response | Lost:
        from aiohttp import ClientTimeout

        session = self._session or self._opened()
        limit = ClientTimeout(total=min(self._timeout, LOOK_SECONDS))
        return await self._received(
            session.get(self._endpoint.models_url, timeout=limit, allow_redirects=False)
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> ClientSession:
        import aiohttp
        from yarl import URL

        if self._keep_alive:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS)
        else:
            connector = aiohttp.TCPConnector(limit=0, force_close=True)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=self._endpoint.headers,
            timeout=aiohttp.ClientTimeout(
                total=self._timeout, sock_connect=min(self._timeout, CONNECT_SECONDS)
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Not by trust_env, which asks a thread before every request.
            proxy=self._proxy,
        )
        self._failures = (aiohttp.ClientError, OSError)
        self._chat_url = URL(self._endpoint.chat_url)
        return self._session

    async def _received(self, request: Awaitable[ClientResponse]) -> Response | Lost:
        try:
            response = await request
            body = await response.read()
        except TimeoutError as error:
            return _timed_out(error, self._timeout)
        except self._failures as error:
            return _lost(error)
        headers = response.headers
        retry_after = headers.get("Retry-After")
        return Response(
            status=response.status,
            content_type=headers.get("Content-Type", ""),
            body=self._endpoint.without_secrets(body),
            asked=None
            if retry_after is None
            else asked_wait(retry_after, headers.get("Date"), time.time()),
        )


def proxy_for(url: str) -> str | None:
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _timed_out(error: TimeoutError, limit: float) -> Lost:
    from aiohttp import ConnectionTimeoutError

    if isinstance(error, ConnectionTimeoutError):
        return Lost("no connection in time", unreachable=True, timed_out=True)
    return Lost(f"no answer within {limit:g} s (request_timeout)", timed_out=True)


def _lost(error: Exception) -> Lost:
    """In our own words: what the library says may hold addresses with passwords in them."""
    import aiohttp

    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            return Lost(f"TLS: {_why(error)}", unreachable=True)
        case aiohttp.ClientProxyConnectionError():
            return Lost(f"no connection to the proxy: {_why(error)}", unreachable=True)
        case aiohttp.ClientConnectorError():
            return Lost(f"no connection: {_why(error)}", unreachable=True)
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            return Lost("the connection was cut before the answer was whole")
        case aiohttp.ClientResponseError():
            return Lost("the answer is not HTTP")
        case _:
            return Lost(f"the connection failed: {_why(error)}")


def _why(error: Exception) -> str:
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror
    return type(inner).__name__
