"""A request goes out, a response or the reason for none comes back; nothing here reads what was
said. This is the one place that knows aiohttp, which parses what comes off the wire."""

from __future__ import annotations

import asyncio
import os
import re
import select
import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from functools import cached_property
from html.entities import html5
from io import BytesIO
from socket import gaierror
from ssl import SSLError
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import SplitResult, unquote, unquote_plus, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakSet

import msgspec

from callmark.errors import UsageError
from callmark.records.jsontext import Json
from callmark.runners.http.trouble import asked_wait
from callmark.runners.options import SERVED, Address, ServedOptions

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, ClientTimeout, TCPConnector
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.connector import Connection
    from multidict import CIMultiDictProxy

HIDDEN = "***"
# Local servers are given words such as EMPTY for a key: nothing to hide, and part of any text.
SHORTEST_SECRET = 8

# Without one of these no character is spelt in another way. Most texts have none.
_ESCAPE = re.compile(r"""[\\%&=](?:(?<=\\)[uUxX0-7/"'\\+=]|(?<=&)[#a-zA-Z]|[0-9a-fA-F]{2})""")
_SLASHES = r"\\{0,6}"
_ENTITIES: dict[str, list[str]] = {}
for _name, _text in html5.items():
    if _name.endswith(";"):
        _ENTITIES.setdefault(_text, []).append(_name)


class Secrets:
    """Takes given values out of decoded text: as they are, escaped (JSON, URLs, HTML, character by
    character or only in part), in base64 (also as part of something longer) and in hex."""

    def __init__(self, values: Iterable[str]) -> None:
        long = {one for value in values for one in (value, value.strip())}
        self._values = sorted(one for one in long if len(one) >= SHORTEST_SECRET)
        self._encoded = sorted({form for one in self._values for form in _encodings(one)})
        found = {*self._values, *self._encoded, *filter(None, map(_decode, self._values))}
        self._forms = sorted(found, key=lambda form: (-len(form), form))

    def __bool__(self) -> bool:
        return bool(self._forms)

    def __repr__(self) -> str:
        return f"Secrets({len(self._values)})"

    def clean(self, text: str) -> str:
        """The text without them. Pieces have to be joined before."""
        # Escapes first: what is spelt with them may hold what is not.
        if self._forms and _ESCAPE.search(text):
            text = self._spellings.sub(HIDDEN, text)
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        return text

    def clean_json(self, value: Json) -> Json:
        """The same for every string of a JSON value, keys included."""
        match value:
            case str():
                return self.clean(value)
            case list():
                return [self.clean_json(one) for one in value]
            case dict():
                return {self.clean(key): self.clean_json(one) for key, one in value.items()}
            case int() if value > 10**7:  # a key may be nothing but digits
                return value if self.clean(written := str(value)) == written else HIDDEN
            case _:
                return value

    @cached_property
    def _spellings(self) -> re.Pattern[str]:
        whole = ["".join(map(_spell, value)) for value in self._values]
        # Letters and digits of base64 are never escaped where the rest is not.
        partly = [
            "".join(one if one.isalnum() else _spell(one) for one in form) for form in self._encoded
        ]
        return re.compile("|".join(sorted({*whole, *partly}, key=len, reverse=True)))


def _encodings(value: str) -> Iterator[str]:
    data = value.encode("utf-8", "surrogatepass")
    yield data.hex()
    yield data.hex().upper()
    for before in range(3):
        # What stands before and after shares the first and the last character with the secret.
        whole = b64encode(bytes(before) + data).decode()
        start, end = (8 * before + 5) // 6, 8 * (before + len(data)) // 6
        yield whole[start:end]
        yield whole[start:end].replace("+", "-").replace("/", "_")


def _decode(value: str) -> str | None:
    """As a server sees it that undoes an escaping which was never done."""
    undone = unquote_plus(value)
    return undone if undone != value and len(undone.strip()) >= SHORTEST_SECRET else None


def _spell(character: str) -> str:
    """A pattern of all spellings of one character. Every repetition is bounded."""
    code, same = ord(character), re.escape(character)
    if character in "+ ":  # a URL says the one for the other
        same = r"[+ ]"
    units = character.encode("utf-16-be", "surrogatepass").hex()
    escaped = r"\\{1,6}u" + r"\\{1,6}u".join(re.findall("....", units))
    data = character.encode("utf-8", "surrogatepass")
    ways = [
        rf"(?i:{escaped})",
        rf"(?i:\\{{1,6}}(?:u0{{0,6}}{code:x}|u\{{0{{0,6}}{code:x}\}}|x0{{0,2}}{code:x}))",
        rf"\\{{1,6}}0{{0,2}}{code:o}",
        "".join(rf"(?i:%(?:25){{0,4}}{one:02x})" for one in data),
        "".join(rf"(?i:={one:02x})" for one in data),
        rf"(?i:&(?:amp;){{0,3}}\#(?:0{{0,6}}{code};?|x0{{0,6}}{code:x};?))",
    ]
    if names := _ENTITIES.get(character):
        ways.append(rf"&(?:amp;){{0,3}}(?:{'|'.join(map(re.escape, names))})")
    if character == "+":
        ways.append(r"%(?:25){0,4}20")
    return f"(?:{'|'.join(ways)}|{_SLASHES}{same})"


def secrets_in_query(query: str) -> list[str]:
    """Values of an address's query whose names say that they let somebody in."""
    pairs = (pair.partition("=") for pair in query.split("&"))
    return [
        spelling
        for name, _, value in pairs
        if _LETS_IN.search(name)
        for spelling in (value, unquote(value))
    ]


_LETS_IN = re.compile(r"key|token|secret|sig|auth|pass|code|cred", re.IGNORECASE)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """`base` is for people: without credentials and query. `headers` let us in; `proxy` is the
    environment's, with its credentials. `secrets`: all that is in here and no one's business."""

    base: str
    url: str
    models_url: str
    headers: dict[str, str]
    proxy: str | None
    secrets: Secrets

    def __repr__(self) -> str:
        return f"Endpoint({self.base})"

    @property
    def has_key(self) -> bool:
        return any(name.lower() in KEY_HEADERS for name in self.headers)


KEY_HEADERS = frozenset({"authorization", "api-key", "x-api-key"})


def endpoint_of(served: ServedOptions, address: Address = SERVED["openai_http"]) -> Endpoint:
    given = (served.base_url or "").strip()
    if not given:
        raise UsageError(
            f"--base-url: where is the server? Name it, or set {address.url_variable}"
            f" ({address.example}, http://127.0.0.1:8000{address.folder or '/v1'})"
        )
    parts = _parts_of(given)
    # What people paste is the whole address of the endpoint as often as its base.
    path = parts.path.rstrip("/").removesuffix(address.path)
    path = path.removesuffix(address.folder) + address.folder
    host = parts.netloc.rpartition("@")[2]
    secrets = [*served.secrets, *filter(None, (served.api_key,)), *secrets_in_query(parts.query)]
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        **address.headers,
    }
    if parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
        basic = b64encode(f"{user}:{password}".encode()).decode()
        headers["Authorization"] = f"Basic {basic}"
        # In every spelling in which a server may repeat it: plain, quoted for a URL, in base64.
        secrets += [password, parts.password or "", basic]
    elif served.api_key:
        is_bearer = address.key_header == "Authorization"
        headers[address.key_header] = f"Bearer {served.api_key}" if is_bearer else served.api_key
    proxy = proxy_for(parts)
    word = urlsplit(proxy or "").password or ""
    return Endpoint(
        base=urlunsplit((parts.scheme, host, path, "", "")),
        url=urlunsplit((parts.scheme, host, path + address.path, parts.query, "")),
        models_url=urlunsplit((parts.scheme, host, path + "/models", parts.query, "")),
        headers=_check(_merge(headers, served.headers)),
        proxy=proxy,
        secrets=Secrets([*secrets, word, unquote(word)]),
    )


def proxy_for(address: SplitResult) -> str | None:
    """What http_proxy, https_proxy, all_proxy and no_proxy say."""
    if proxy_bypass(address.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(address.scheme) or proxies.get("all")


def _parts_of(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        # The text is not repeated: it may hold a password.
        raise UsageError(
            "--base-url: must be http://HOST/… or https://HOST/…, such as https://api.openai.com/v1"
        )
    return parts


# Names of headers know no case: "authorization" of a settings file replaces our "Authorization".
def _merge(ours: dict[str, str], theirs: dict[str, str]) -> dict[str, str]:
    named = {name.lower() for name in theirs}
    return {name: value for name, value in ours.items() if name.lower() not in named} | theirs


def _check(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not value.isprintable() or not name.isascii():
            raise UsageError(
                f"--headers: the value of {name} has a character that no header may have;"
                " is there a line end in the key?"
            )
    return headers


CONNECT_SECONDS = 30.0
LOOK_SECONDS = 10.0
# Below the 5 seconds of common servers: a connection is not used at the moment it is closed.
KEEP_ALIVE_SECONDS = 4.0
# Of one body, inflated. The head has aiohttp's bounds: 8 kB a line, 128 lines.
MOST_BYTES = 64 << 20
# A body that is still to come is waited for so long at a time.
WATCH_SECONDS = 0.25
# Bodies beyond this are read one after the other, so that many of them fill no memory.
LARGE = 256 << 10


# The connection that this task's request went out on.
_link: ContextVar[asyncio.Transport | None] = ContextVar("link", default=None)


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


class Transport:
    """Requests to one server over connections that are kept: plain, TLS or through a proxy. Opened
    by its first request, in the loop that makes it."""

    def __init__(self, endpoint: Endpoint, *, timeout: float, keep_alive: bool) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._keep_alive = keep_alive
        self._session: ClientSession | None = None
        self._failures: tuple[type[Exception], ...] = ()
        self._url: Any = None
        self._one_large = asyncio.Lock()

    async def post(self, body: bytes) -> Response | Lost:
        session = self._session or self._opened()
        return await self._exchange(session, "POST", self._url, body, self._timeout)

    async def models(self) -> Response | Lost:
        session = self._session or self._opened()
        # A list of models is no work for a server: whoever does not answer soon does not have one.
        limit = min(self._timeout, LOOK_SECONDS)
        return await self._exchange(session, "GET", self._endpoint.models_url, None, limit)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> ClientSession:
        import aiohttp
        from aiohttp.http_exceptions import HttpProcessingError
        from yarl import URL

        self._session = aiohttp.ClientSession(
            connector=_connector(keep_alive=self._keep_alive),
            headers={"Accept-Encoding": "identity", **self._endpoint.headers},
            # The whole has one limit, which is ours: it holds for what waits here too.
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=min(self._timeout, CONNECT_SECONDS)
            ),
            # One answer must not change the next request.
            cookie_jar=aiohttp.DummyCookieJar(),
            # Not by trust_env, which asks a thread before every request.
            proxy=self._endpoint.proxy,
        )
        self._failures = (aiohttp.ClientError, OSError, HttpProcessingError)
        self._url = URL(self._endpoint.url)
        return self._session

    async def _exchange(
        self, session: ClientSession, method: str, url: Any, sent: bytes | None, limit: float
    ) -> Response | Lost:
        try:
            async with asyncio.timeout(limit):
                # A redirect is never followed: the key goes to this host only.
                response = await session.request(method, url, data=sent, allow_redirects=False)
                try:
                    received = await self._received(response)
                finally:
                    if not response.closed:
                        response.close()
                # Read to its end, a connection is kept; what was no HTTP may go on like that.
                link = _link.get()
                if isinstance(received, Lost) and link is not None:
                    link.abort()
                return received
        except TimeoutError as error:
            return _timed_out(error, limit)
        except self._failures as error:
            return _lost(error)

    async def _received(self, response: ClientResponse) -> Response | Lost:
        headers = response.headers
        if response.status < 200 or not _is_framed(headers):
            return NO_HTTP
        length = headers.get("Content-Length")
        # Too long a number is never read as one.
        if length is not None and (len(length) > 18 or int(length) > MOST_BYTES):
            return TOO_LARGE
        body = await self._body(response)
        if body is None:
            return TOO_LARGE
        retry_after = headers.get("Retry-After")
        return Response(
            status=response.status,
            content_type=headers.get("Content-Type", ""),
            body=body,
            asked=None
            if retry_after is None
            else asked_wait(retry_after, headers.get("Date"), time.time()),
        )

    async def _body(self, response: ClientResponse) -> bytes | None:
        """None: there is too much of it. A buffer hands out what it holds without a copy; parts and
        what they are joined to would take the memory of both."""
        whole = BytesIO()
        if not await _read(response, whole, LARGE):
            async with self._one_large:
                if not await _read(response, whole, MOST_BYTES):
                    return None
        return whole.getvalue()


def _connector(*, keep_alive: bool) -> TCPConnector:
    from aiohttp import TCPConnector

    if not keep_alive:
        # Determinism mode: a kept connection may be closed under us, and that would need a retry.
        return TCPConnector(limit=0, force_close=True)

    class Connector(TCPConnector):
        """A kept connection on which something came that nobody asked for is not used again: it
        would be taken for the next answer, or it is the end of the connection."""

        kept: ClassVar[WeakSet[asyncio.Transport]] = WeakSet()

        async def connect(
            self, req: ClientRequest, traces: list[Any], timeout: ClientTimeout
        ) -> Connection:
            while True:
                connection = await super().connect(req, traces, timeout)
                link, protocol = connection.transport, connection.protocol
                _link.set(link)
                if link is None or protocol is None:
                    return connection
                if link not in self.kept:
                    self.kept.add(link)
                    return connection
                if not protocol.should_close and _is_quiet(link):
                    return connection
                connection.close()

    return Connector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS)


def _is_quiet(link: asyncio.Transport) -> bool:
    """Whether nothing waits to be read that the loop has not seen yet."""
    asked = select.poll()
    try:
        asked.register(link.get_extra_info("socket").fileno(), select.POLLIN)
    except (OSError, ValueError, AttributeError):  # closed
        return False
    return not asked.poll(0)


async def _read(response: ClientResponse, whole: BytesIO, most: int) -> bool:
    """Whether the end came before there was more than that."""
    while whole.tell() <= most:
        is_here = response.content.is_eof()
        part = await (response.content.readany() if is_here else _next_part(response))
        if not part:
            return True
        whole.write(part)
    return False


async def _next_part(response: ClientResponse) -> bytes:
    """aiohttp ends a connection that says what is no HTTP, and leaves who reads the body waiting:
    so the connection is looked at while nothing comes."""
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(WATCH_SECONDS):
                return await response.content.readany()
        if not response.content.is_eof() and _is_gone(response):
            # The end of a connection may be the end of the body: that is told a moment later.
            await asyncio.sleep(WATCH_SECONDS / 5)
            if not response.content.is_eof():
                from aiohttp import ClientPayloadError

                raise ClientPayloadError


def _is_gone(response: ClientResponse) -> bool:
    link = response.connection and response.connection.transport
    return link is None or link.is_closing()


def _is_framed(headers: CIMultiDictProxy[str]) -> bool:
    """Whether one and only one thing says where the body ends (or nothing: then the connection
    does). aiohttp's parsers differ in what they let pass."""
    codings = headers.getall("Transfer-Encoding", ())
    lengths = headers.getall("Content-Length", ())
    if codings:
        return not lengths and len(codings) == 1 and codings[0].strip().lower() == "chunked"
    return not lengths or (len(lengths) == 1 and lengths[0].isdecimal() and lengths[0].isascii())


def _timed_out(error: TimeoutError, limit: float) -> Lost:
    from aiohttp import ConnectionTimeoutError

    if isinstance(error, ConnectionTimeoutError):
        return Lost("no connection in time", unreachable=True, timed_out=True)
    return Lost(f"no answer within {limit:g} s (request_timeout)", timed_out=True)


def _lost(error: Exception) -> Lost:
    """In our own words: what the library says may hold addresses with passwords in them."""
    import aiohttp
    from aiohttp.http_exceptions import HttpProcessingError

    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            return Lost(f"TLS: {_why(error)}", unreachable=True)
        case aiohttp.ClientProxyConnectionError():
            return Lost(f"no connection to the proxy: {_why(error)}", unreachable=True)
        case aiohttp.ClientConnectorError():
            return Lost(f"no connection: {_why(error)}", unreachable=True)
        case aiohttp.ServerDisconnectedError():
            return CUT
        case aiohttp.ClientPayloadError() | aiohttp.ClientResponseError() | HttpProcessingError():
            return _malformed(error)
        case _:
            return Lost(f"the connection failed: {_why(error)}")


def _malformed(error: Exception) -> Lost:
    from aiohttp.http_exceptions import ContentEncodingError

    if str(error).startswith("Response payload is not completed"):
        return CUT
    cause = error.__cause__
    if isinstance(cause, ContentEncodingError) or (
        cause is not None and isinstance(cause.__cause__, ContentEncodingError)
    ):
        return NOT_INFLATED
    return NO_HTTP


def _why(error: Exception) -> str:
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(inner, SSLError | gaierror) and inner.strerror:
        return inner.strerror
    if isinstance(inner, OSError) and inner.errno:
        # Not its own text: aiohttp puts the address there, with all that is in it.
        return os.strerror(inner.errno)
    return type(inner).__name__


class AdaptiveLimit:
    """Between `least` and `most`. Starts quickly (one more for every answer), and after the first
    sign of too much goes up by one per round trip. `patience`: answers that took longer than this
    many seconds are no reason for more requests."""

    def __init__(
        self,
        *,
        start: int,
        least: int,
        most: int,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = float(start)
        self._least = least
        self._most = most
        self._patience = patience
        self._clock = clock
        self._cut_at: float | None = None
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.highest = 0

    @property
    def now(self) -> int:
        return int(self._limit)

    async def enter(self) -> float:
        """Waits for room; the time at which it was there."""
        if self._under_way < self.now and not self._waiting:
            self._take()
        else:
            await self._queue()
        return self._clock()

    def leave(self) -> None:
        self._under_way -= 1
        self._admit()

    def answered(self, since: float) -> None:
        # A slow answer is the first sign of a full queue at the server, long before it says 429.
        if self._limit < self._most and self._clock() - since <= self._patience:
            # As TCP does it: fast until the first loss, then one more per round trip.
            step = 1.0 if self._cut_at is None else 1.0 / self._limit
            self._limit = min(float(self._most), self._limit + step)
            self._admit()

    def too_much(self, since: float) -> None:
        """Half as many. What was sent before the last cut says nothing about what holds now."""
        if self._cut_at is None or since >= self._cut_at:
            self._limit = max(float(self._least), min(self._limit, self._under_way) / 2)
            self._cut_at = self._clock()

    async def _queue(self) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave()  # the room had been given just before
            raise

    def _admit(self) -> None:
        while self._waiting and self._under_way < self.now:
            place = self._waiting.popleft()
            if not place.done():
                self._take()
                place.set_result(None)

    def _take(self) -> None:
        self._under_way += 1
        self.highest = max(self.highest, self._under_way)
