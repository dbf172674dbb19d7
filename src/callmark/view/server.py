"""The viewer on a port of this machine. Every request is guarded before anything is looked at."""

from __future__ import annotations

import hmac
import os
import secrets
import shutil
import sys
import threading
from collections.abc import Mapping
from email.message import Message
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, assert_never
from urllib.parse import parse_qsl, urlsplit

import msgspec

from callmark.errors import UsageError
from callmark.view.viewer import PLAIN, Asked, Page, ServedFile, ServedJson, ServedProblem, Viewer

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost", "[::1]")
# Where the browser says that a request comes from: this page, or the person.
OWN_SITES = ("same-origin", "none")


class Refusal(msgspec.Struct, frozen=True):
    status: int
    why: str


NO_TOKEN = Refusal(
    403, "This viewer asks for its token. Open the address that `callmark view` printed."
)


class Guard:
    """The token opens the door once: it gives a cookie, and does not stay in the address."""

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        # Cookies do not know ports. Two viewers must not overwrite each other's, and whatever
        # else listens on this machine must not be given it: nobody can guess where it belongs.
        self._cookie = f"callmark-{port}"
        self.room = f"/{secrets.token_hex(16)}"
        self._hosts = {f"{name}:{port}" for name in NAMES}
        self._origins = {f"http://{host}" for host in self._hosts}
        self.address = f"http://{ADDRESS}:{port}/?token={self.token}"

    def refusal(self, method: str, headers: Message) -> Refusal | None:
        """Why this request is not for us, whatever it knows; None: it may be."""
        # Against DNS rebinding: a page of another site can make its own name lead to this machine.
        hosts = headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return Refusal(403, "This viewer answers only to its own name and port.")
        origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site")
        if origin is not None and origin not in self._origins:
            return Refusal(403, "Another site may not ask this viewer.")
        if site is not None and site not in OWN_SITES:
            return Refusal(
                403, "Another site may not ask this viewer. Paste its address into a new tab."
            )
        # Browsers send an Origin with every POST; whoever sends none is no page of ours.
        if method == "POST" and origin is None and headers.get("Authorization") is None:
            return Refusal(403, "A request that does something says where it comes from.")
        return None

    def opens(self, token: str) -> bool:
        # In constant time: how long a refusal takes must not tell how much of a guess was right.
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def knows(self, headers: Message) -> bool:
        """By the cookie, or for scripts by `Authorization: Bearer TOKEN`."""
        word, _, token = headers.get("Authorization", "").partition(" ")
        if word.lower() == "bearer" and self.opens(token.strip()):
            return True
        try:
            cookies: SimpleCookie = SimpleCookie(headers.get("Cookie", ""))
        except CookieError:
            return False
        found = cookies.get(self._cookie)
        given = "" if found is None else found.value
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._session.encode())

    def cookie(self) -> str:
        return f"{self._cookie}={self._session}; Path={self.room}; HttpOnly; SameSite=Strict"


def protection(policy: str) -> Mapping[str, str]:
    """Goes with every answer."""
    return {
        "Content-Security-Policy": f"{policy}; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


MAX_BODY = 10_000
MAX_LENGTH_DIGITS = 15
MAX_FIELDS = 10
MAX_CONNECTIONS = 64  # a browser opens six
PATIENCE = 60.0  # seconds that a connection may be silent


class ViewServer(ThreadingMixIn, TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 32

    def __init__(self, viewer: Viewer, port: int) -> None:
        try:
            super().__init__((ADDRESS, port), Handler)
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"--port {port}: {reason}; leave it out for any free one") from None
        self.viewer = viewer
        self.guard = Guard(self.server_address[1])
        self._room = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """One thread for each connection, and no more of them than there is room for: whoever opens
        many and says little is turned away."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        # A browser that goes away in the middle of an answer is no failure.
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    server: ViewServer

    def version_string(self) -> str:
        return "callmark"

    def log_message(self, *_: object) -> None:
        """Silent: the terminal shows the address and nothing that a browser asked for."""

    def do_GET(self) -> None:
        if {"Content-Length", "Transfer-Encoding"} & {name.title() for name in self.headers}:
            # Not read, it would be taken for the next request.
            self._problem(ServedProblem(400, "A question has no body."))
            return
        self._respond(None)

    def do_POST(self) -> None:
        length = self._length()
        if isinstance(length, ServedProblem):
            self._problem(length)
            return
        # A form of another site can send text, but never JSON without asking first.
        kind = self.headers.get_content_type()
        if kind != "application/json":
            self._problem(ServedProblem(415, "JSON is needed."))
            return
        self._respond(self.rfile.read(length))

    def _length(self) -> int | ServedProblem:
        """How long the body is, by the one header that says so: nothing else is guessed at."""
        said = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or not said:
            return ServedProblem(411, "The request has to say how long it is.")
        # `isdigit` alone takes "²" and digits of other scripts, which are no lengths.
        if len(said) > 1 or not (said[0].isascii() and said[0].isdigit()):
            return ServedProblem(400, "The length of the request is not a number.")
        if len(said[0]) > MAX_LENGTH_DIGITS or int(said[0]) > MAX_BODY:
            return ServedProblem(413, "The request is too long.")
        return int(said[0])

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Whatever the parser of requests does not like: other methods, endless lines."""
        status = 405 if code == 501 else code
        self._problem(ServedProblem(status, message or explain or "This cannot be answered."))

    def _respond(self, body: bytes | None) -> None:
        guard = self.server.guard
        refusal = guard.refusal(self.command, self.headers)
        if refusal is not None:
            self._problem(ServedProblem(refusal.status, refusal.why))
            return
        try:
            url = urlsplit(self.path)
            query = dict(parse_qsl(url.query, max_num_fields=MAX_FIELDS))
        except ValueError:
            self._problem(ServedProblem(400, "This is not an address."))
            return
        if url.path == "/" and body is None and guard.opens(query.get("token", "")):
            self._send(
                303, "text/plain", 0, {"Location": f"{guard.room}/", "Set-Cookie": guard.cookie()}
            )
        elif not guard.knows(self.headers):
            self._problem(ServedProblem(NO_TOKEN.status, NO_TOKEN.why))
        else:
            self._answer(Asked(url.path.removeprefix(guard.room), query, body))

    def _answer(self, asked: Asked) -> None:
        try:
            answer = self.server.viewer.answer(asked)
        except Exception:
            # Our own fault: the terminal gets the traceback, then the browser is told to look
            # there, and all else goes on.
            self.server.handle_error(self.request, self.client_address)
            self.close_connection = True
            self._problem(
                ServedProblem(500, "A fault of callmark: see the terminal, and report it.")
            )
            return
        match answer:
            case ServedProblem() as problem:
                self._problem(problem)
            case ServedJson(data=data):
                self._send(200, "application/json", len(data))
                self.wfile.write(data)
            case ServedFile(path=path):
                with path.open("rb") as stream:
                    self._send(200, "application/json", os.fstat(stream.fileno()).st_size)
                    shutil.copyfileobj(stream, self.wfile)
            case Page() as page:
                self._page(page)
            case other:
                assert_never(other)

    def _page(self, page: Page) -> None:
        more = 0 if page.rest is None else page.rest.stat().st_size - page.rest_from
        self._send(200, "text/html", len(page.data) + more, protection(page.policy))
        self.wfile.write(page.data)
        if page.rest is not None:
            with page.rest.open("rb") as stream:
                stream.seek(page.rest_from)
                shutil.copyfileobj(stream, self.wfile)

    def _problem(self, problem: ServedProblem) -> None:
        data = problem.text.encode("utf-8", "replace") + b"\n"
        # What is left of the request is not read, so it must not be taken for the next one.
        self._send(problem.status, "text/plain", len(data), {"Connection": "close"})
        if self.command != "HEAD":
            self.wfile.write(data)

    def _send(
        self, status: int, kind: str, length: int, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {**protection(PLAIN), **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(length))
        self.end_headers()
