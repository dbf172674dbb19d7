"""Who may ask. The server is for the person who started it: other machines cannot reach it, and
other pages in that person's browser, or names that lead here, are refused."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from email.message import Message
from http.cookies import CookieError, SimpleCookie

import msgspec

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
        if method == "POST" and origin is None and headers.get("Authorization") is None:
            return Refusal(403, "A request that does something says where it comes from.")
        return None

    def opens(self, token: str) -> bool:
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
