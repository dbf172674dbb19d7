"""Where a served model is, and how to be let in."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from callmark.errors import UsageError
from callmark.runners.http_secrets import Secrets, secrets_in_query
from callmark.runners.options import ServedOptions

CHAT = "/chat/completions"


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """`base` is for people: without credentials and query. `headers` let us in; `proxy` is the
    environment's, with its credentials. `secrets`: all that is in here and no one's business."""

    base: str
    chat_url: str
    models_url: str
    headers: dict[str, str]
    proxy: str | None
    secrets: Secrets

    def __repr__(self) -> str:
        return f"Endpoint({self.base})"

    @property
    def has_key(self) -> bool:
        return any(name.lower() in ("authorization", "api-key") for name in self.headers)


def endpoint_of(served: ServedOptions) -> Endpoint:
    given = (served.base_url or "").strip()
    if not given:
        raise UsageError(
            "--base-url: where is the server? Name it, or set OPENAI_BASE_URL"
            " (https://api.openai.com/v1, http://127.0.0.1:8000/v1)"
        )
    parts = _parts_of(given)
    path = parts.path.rstrip("/").removesuffix(CHAT)
    host = parts.netloc.rpartition("@")[2]
    secrets = [*served.secrets, *filter(None, (served.api_key,)), *secrets_in_query(parts.query)]
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
        basic = b64encode(f"{user}:{password}".encode()).decode()
        headers["Authorization"] = f"Basic {basic}"
        secrets += [password, parts.password or "", basic]
    elif served.api_key:
        headers["Authorization"] = f"Bearer {served.api_key}"
    proxy = proxy_for(parts)
    word = urlsplit(proxy or "").password or ""
    return Endpoint(
        base=urlunsplit((parts.scheme, host, path, "", "")),
        chat_url=urlunsplit((parts.scheme, host, path + CHAT, parts.query, "")),
        models_url=urlunsplit((parts.scheme, host, path + "/models", parts.query, "")),
        headers=_checked(_merged(headers, served.headers)),
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


def _merged(ours: dict[str, str], theirs: dict[str, str]) -> dict[str, str]:
    named = {name.lower() for name in theirs}
    return {name: value for name, value in ours.items() if name.lower() not in named} | theirs


def _checked(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not value.isprintable() or not name.isascii():
            raise UsageError(
                f"--headers: the value of {name} has a character that no header may have;"
                " is there a line end in the key?"
            )
    return headers
