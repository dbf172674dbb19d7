"""Where a served model is, what must not be told of it, and how many requests it bears; requests
go out over connections that are kept. Nothing here reads what was said."""

from __future__ import annotations

import asyncio
import re
import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from html.entities import html5
from urllib.parse import SplitResult, unquote, unquote_plus, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from callmark.errors import UsageError
from callmark.records.jsontext import Json
from callmark.runners.http.connection import (
    NO_CONNECTION,
    READ_AT_ONCE,
    Connection,
    Lost,
    NoConnection,
    Response,
    Route,
)
from callmark.runners.options import SERVED, Address, ServedOptions

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


CONNECT_SECONDS = 30.0
LOOK_SECONDS = 10.0
# Below the 5 seconds of common servers: a connection is not used at the moment it is closed.
KEEP_ALIVE_SECONDS = 4.0


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
