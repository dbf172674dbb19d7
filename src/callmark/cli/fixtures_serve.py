"""`callmark fixtures serve`."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import CommandParser
from callmark.errors import UsageError

if TYPE_CHECKING:
    from callmark.live.server import Http

SHORTEST_TOKEN = 16
HOST = "127.0.0.1"


def build_parser() -> CommandParser:
    parser = CommandParser(
        "fixtures serve",
        """
        Serve recorded tool answers as an MCP server, so that any agent can run on
        them unchanged.

        It speaks over standard input and output, or over streamable HTTP with --http.
        A call without a fixture gets an error that names the nearest ones. Every call
        is written to --trace, which `callmark score` reads.
        """,
        """
        callmark fixtures serve fixtures/ --sample search-rope-01 --trace trace.jsonl
        callmark fixtures serve fixtures/ --http --port 8400 --trace trace.jsonl
        callmark score trace.jsonl --answers answers.jsonl --in dataset.jsonl
        """,
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder with fixtures")
    parser.add_argument(
        "--registry",
        metavar="PATH",
        help="tool specs (default: those recorded with the fixtures, or the built-in ones)",
    )
    parser.add_argument("--sample", metavar="ID", help="serve as this sample would see the tools")
    parser.add_argument("--trace", metavar="FILE", type=Path, help="write every call to this file")
    parser.add_argument("--http", action="store_true", help="serve over streamable HTTP")
    parser.add_argument("--host", default=HOST, help="address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="port to listen on (default: any free one)"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="another host name that clients may use for this server; may be repeated",
    )
    parser.add_argument(
        "--token",
        metavar="NAME",
        help="environment variable with the token that every request must carry, as"
        " `Authorization: Bearer` or `?token=`. Default: none on this machine's own address;"
        " elsewhere a new one, which is printed",
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    import secrets

    import msgspec

    from callmark.live.server import Http, Sessions, TraceFile, open_served, serve_http, serve_stdio

    http = Http(host=options.host, port=options.port, hosts=tuple(options.allow_host))
    if not options.http and (http != Http() or options.token is not None):
        raise UsageError(
            "--host, --port, --allow-host and --token are for --http; add it, or leave them out"
        )
    made = not http.is_local and options.token is None
    token = secrets.token_urlsafe(32) if made else _token(options.token)
    http = msgspec.structs.replace(http, token=token)
    trace = None if options.trace is None else TraceFile(options.trace)
    served = open_served(options.folder, options.registry)
    sessions = Sessions(served, keeps_calls=trace is not None)
    if options.http:
        serve_http(sessions, options.sample, trace, http, partial(_say_where, http, made=made))
    else:
        serve_stdio(sessions, options.sample, trace)
    return 0


def _token(name: str | None) -> str | None:
    if name is None:
        return None
    token = os.environ.get(name, "")
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise UsageError(
            f"--token {name}: this environment variable must hold at least {SHORTEST_TOKEN}"
            " printable ASCII characters"
        )
    return token


def _say_where(http: Http, url: str, *, made: bool) -> None:
    if not http.is_local:
        print(
            f"warning: other machines can reach {http.host}: whoever has the token gets every"
            " recorded answer, and nothing is encrypted",
            file=sys.stderr,
        )
    print(f"serving at {url}{f'?token={http.token}' if made else ''}", file=sys.stderr, flush=True)
