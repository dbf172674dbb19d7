"""A request goes out, a response or the reason for none comes back; nothing here reads what was
said. Where a served model is, and what must not be told of it; connections that are kept; how many
requests it bears. httptools (llhttp), its leniencies off, parses what comes off the wire."""

from __future__ import annotations

import asyncio
import re
import select
import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable
from functools import cached_property
from io import BytesIO
from ssl import SSLContext, SSLError, create_default_context
from typing import TypeVar, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import msgspec
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from callmark.errors import UsageError
from callmark.records.jsontext import Json
from callmark.runners.http import detours, spellings
from callmark.runners.http.detours import NoConnection, Tunnel, why
from callmark.runners.http.trouble import (
    CUT,
    MOST_BYTES,
    NO_CONNECTION,
    NO_HTTP,
    TOO_LARGE,
    Lost,
    Response,
    asked_wait,
)
from callmark.runners.options import SERVED, Address, ServedOptions

HIDDEN = "***"
# Without one of these no character is spelt in another way. Most texts have none.
_ESCAPE = re.compile(r"""[\\%&=](?:(?<=\\)[uUxX0-7/"'\\+=]|(?<=&)[#a-zA-Z]|[0-9a-fA-F]{2})""")


class Secrets:
    """Takes given values out of decoded text: as they are, escaped (JSON, URLs, HTML, character by
    character or only in part), in base64 (also as part of something longer) and in hex."""

    def __init__(self, values: Iterable[str]) -> None:
        long = {one for value in values for one in (value, value.strip())}
        self._values = sorted(one for one in long if len(one) >= spellings.SHORTEST_SECRET)
        self._forms = spellings.forms_of(self._values) if self._values else []

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
        return spellings.pattern_of(self._values)


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
    secrets = [*served.secrets, *filter(None, (served.api_key,))]
    if parts.query:
        secrets += spellings.secrets_in_query(parts.query)
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


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# What a request says about itself: another word would be a lie.
_OURS = frozenset({"content-length", "transfer-encoding"})


def _check(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if name.lower() in _OURS:
            raise UsageError(f"--headers: {name} is said by callmark itself: leave it out")
        if _HEADER_NAME.fullmatch(name) is None:
            raise UsageError(f"--headers: {name!r} cannot be the name of a header")
        if not value.isprintable():
            raise UsageError(
                f"--headers: the value of {name} has a character that no header may have;"
                " is there a line end in the key?"
            )
    return headers


# Of what is no body: the head, the sizes of chunks, trailers.
MOST_AROUND = 64 << 10
# For every byte of a body: chunks of one byte have five.
AROUND_A_BYTE = 16
# Bodies beyond this are read one after the other, so that many of them fill no memory.
LARGE = 256 << 10
READ_AT_ONCE = 64 << 10
NEXT_ADDRESS_SECONDS = 0.25  # then another one of the same host is tried, too
CONNECT_SECONDS = 30.0
LOOK_SECONDS = 10.0
# Below the 5 seconds of common servers: a connection is not used at the moment it is closed.
KEEP_ALIVE_SECONDS = 4.0


class Head:
    """The fields of a response that are read, and what they say about its body."""

    def __init__(self, status: int, fields: list[tuple[bytes, bytes]]) -> None:
        self.status = status
        self._found: dict[bytes, bytes] = {}
        self._twice: set[bytes] = set()
        for given, value in fields:
            name = given.lower()
            if name in self._found:
                self._twice.add(name)
            self._found.setdefault(name, value)

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
    def codings(self) -> str | None:
        """How the body is compressed; what nobody can undo, where two fields say it."""
        return "two" if b"content-encoding" in self._twice else self.get(b"content-encoding")


class Whole(msgspec.Struct, frozen=True):
    """A response as it came."""

    head: Head
    body: bytes

    def response(self) -> Response | Lost:
        head = self.head
        coding = head.codings
        body = self.body if coding is None else detours.inflate(self.body, coding, MOST_BYTES)
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
        self._deadline, self._late = 0.0, CUT
        self._timer: asyncio.TimerHandle | None = None
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
        self._deadline, self._late = deadline, late
        if self._timer is None or deadline < self._timer.when():
            self._watch()
        try:
            outcome = await waiting
        finally:
            self._waiting = None
            if not waiting.done() or waiting.cancelled():
                self.abort()
        # Inflated here, where it is read at once, and not where answers come in.
        return outcome.response() if isinstance(outcome, Whole) else outcome

    def _watch(self) -> None:
        """One timer for many answers: most come long before their limit."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting is not None and loop.time() >= self._deadline:
            self._answer(self._late)
        elif self._waiting is not None:
            self._timer = loop.call_at(self._deadline, self._watch)

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
        if self._timer is not None:
            self._timer.cancel()
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


def place_of(parts: SplitResult) -> Place:
    host = (parts.hostname or "").rstrip(".")
    if not host.isascii():
        host = host.encode("idna").decode()
    is_tls = parts.scheme == "https"
    return Place(host, parts.port or (443 if is_tls else 80), is_tls)


class Route:
    """The way to a server, straight or through a proxy."""

    def __init__(self, url: str, proxy: str | None) -> None:
        self._proxy: Place | None = None
        self._lets_in: dict[str, str] = {}
        try:
            if proxy is not None:
                named = detours.parts_of_proxy(proxy)
                self._proxy, self._lets_in = place_of(named), detours.let_in_by_proxy(named)
            self._server = place_of(urlsplit(url))
        except UnicodeError:
            raise UsageError("--base-url: the host's name cannot be one") from None

    @cached_property
    def _context(self) -> SSLContext:
        """The system's certificates, or those that SSL_CERT_FILE names."""
        context = create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        return context

    def head(self, method: str, url: str, headers: dict[str, str]) -> bytes:
        """Of every request to that address: all but the length of its body."""
        parts = urlsplit(url)
        target = quote(parts.path or "/", _KEPT)
        if parts.query:
            target += "?" + quote(parts.query, _KEPT + "?")
        every = _merge({"Host": self._server.written}, headers)
        if self._proxy is not None and not self._server.is_tls:
            target = f"http://{self._server.written}{target}"
            every |= self._lets_in
        fields = "".join(f"{name}: {value}\r\n" for name, value in every.items())
        return f"{method} {target} HTTP/1.1\r\n{fields}".encode()

    async def connect(self, room: memoryview) -> Connection:
        """Raises NoConnection."""
        first, connection = self._proxy or self._server, Connection(room)
        try:
            if self._proxy is None or not self._server.is_tls:
                return await self._open(first, lambda: connection)
            tunnel, server = await self._open(first, Tunnel), self._server
            link = await tunnel.lead_to(server.whole, self._lets_in)
            await detours.start_tls(link, connection, self._context, server.host)
            return connection
        except SSLError as error:
            raise NoConnection(Lost(f"TLS: {why(error)}", unreachable=True)) from None
        except OSError as error:
            to = "no connection to the proxy" if self._proxy is not None else "no connection"
            raise NoConnection(Lost(f"{to}: {why(error)}", unreachable=True)) from None
        except ValueError:  # names that nobody could have
            reason = "no connection: the host's name cannot be one"
            raise NoConnection(Lost(reason, unreachable=True)) from None

    async def _open(self, place: Place, protocol: Callable[[], Speaker]) -> Speaker:
        tls = self._context if place.is_tls else None
        # Of a number there is no other address; and who is cancelled there may leave a socket open.
        delay = None if set(place.host) <= _OF_NUMBERS else NEXT_ADDRESS_SECONDS
        opened = await asyncio.get_running_loop().create_connection(
            protocol, place.host, place.port, ssl=tls, happy_eyeballs_delay=delay
        )
        return opened[1]


# In paths and queries as they are; what is escaped stays so.
_KEPT = "/%:@!$&'()*+,;=~"
_OF_NUMBERS = frozenset("0123456789.:")


class Transport:
    """Requests to one server over connections that are kept: plain, TLS or through a proxy."""

    def __init__(self, endpoint: Endpoint, *, timeout: float, keep_alive: bool) -> None:
        self._timeout = timeout
        self._keep_alive = keep_alive
        self._route = Route(endpoint.url, endpoint.proxy)
        headers = {"User-Agent": "callmark", "Accept-Encoding": "identity"}
        if not keep_alive:
            # Determinism mode: a kept connection may be closed under us, which would need a retry.
            headers["Connection"] = "close"
        headers = _merge(headers, endpoint.headers)
        self._post = self._route.head("POST", endpoint.url, headers) + b"Content-Length: "
        self._get = self._route.head("GET", endpoint.models_url, headers) + b"\r\n"
        self._late = _no_answer_within(timeout)
        self._idle: deque[Connection] = deque()
        self._room = memoryview(bytearray(READ_AT_ONCE))
        self._one_large = asyncio.Lock()

    async def post(self, body: bytes) -> Response | Lost:
        request = b"%b%d\r\n\r\n%b" % (self._post, len(body), body)
        return await self._exchange(request, self._timeout, self._late)

    async def models(self) -> Response | Lost:
        # A list of models is no work for a server: whoever does not answer soon does not have one.
        limit = min(self._timeout, LOOK_SECONDS)
        return await self._exchange(self._get, limit, _no_answer_within(limit))

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().abort()
        await asyncio.sleep(0)  # that is when they are told

    async def _exchange(self, request: bytes, limit: float, late: Lost) -> Response | Lost:
        """The limit is that of the whole: of a connection, of the answer, of what waits here."""
        now = asyncio.get_running_loop().time()
        deadline = now + limit
        connection = self._kept(now)
        if connection is None:
            try:
                async with asyncio.timeout_at(min(deadline, now + CONNECT_SECONDS)):
                    connection = await self._route.connect(self._room)
            except NoConnection as error:
                return error.lost
            except TimeoutError:
                return NO_CONNECTION
        received: Response | Lost | None = None
        try:
            received = await connection.ask(request, deadline, late)
            if received is None:
                async with asyncio.timeout_at(deadline), self._one_large:
                    received = await connection.ask_rest(deadline, late)
            return received
        except TimeoutError:
            return late
        finally:
            if self._keep_alive and connection.is_kept and isinstance(received, Response):
                connection.idle_since = asyncio.get_running_loop().time()
                self._idle.append(connection)
            else:
                connection.abort()

    def _kept(self, now: float) -> Connection | None:
        """The one that was used last; those that were idle for long are closed."""
        idle = self._idle
        while idle and idle[0].idle_since + KEEP_ALIVE_SECONDS < now:
            idle.popleft().abort()
        while idle:
            connection = idle.pop()
            if connection.is_free:
                return connection
            connection.abort()
        return None


def _no_answer_within(limit: float) -> Lost:
    return Lost(f"no answer within {limit:g} s (request_timeout)", timed_out=True)


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
