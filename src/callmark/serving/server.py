"""The MCP server: over this process's own pipes, or streamable HTTP."""

from __future__ import annotations

import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from callmark._version import __version__
from callmark.core.jsontext import canonical_json
from callmark.errors import CallmarkError, MissingExtra, UsageError
from callmark.recording.wire import ProtocolError
from callmark.serving.sessions import Session, Sessions
from callmark.serving.tools import listed
from callmark.serving.trace_file import TraceFile

if TYPE_CHECKING:
    from mcp.server import Server

NAME = "callmark-fixtures"
PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SECONDS_BETWEEN_WRITES = 1.0


class Http(msgspec.Struct, frozen=True, kw_only=True):
    """`hosts`: names beside its own that the server answers to."""

    host: str = "127.0.0.1"
    port: int = 0
    hosts: tuple[str, ...] = ()


def serve_stdio(sessions: Sessions, sample_id: str | None, trace: TraceFile | None) -> None:
    """Serve one session until the client closes the pipe."""
    anyio = _anyio()
    session = sessions.of(sample_id, None)

    async def serve() -> None:
        from mcp.server.stdio import stdio_server

        server = fixture_server(sessions, lambda _: session)
        async with anyio.create_task_group() as group:
            group.start_soon(_until_signal, group.cancel_scope.cancel)
            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())
            group.cancel_scope.cancel()

    _run(serve, sessions, trace)


def serve_http(
    sessions: Sessions,
    sample_id: str | None,
    trace: TraceFile | None,
    http: Http,
    ready: Callable[[str], None],
) -> None:
    """Serve until somebody stops it. `?sample=ID&trial=K` in the URL names the session: newer
    clients keep none of their own. `ready` is told the URL."""
    anyio = _anyio()
    listening = _listening(http)
    port: int = listening.getsockname()[1]

    def session_of(request: Any) -> Session:
        query = request.query_params if request is not None else {}
        return sessions.of(query.get("sample") or sample_id, _trial(query.get("trial")))

    async def serve() -> None:
        import uvicorn

        app = fixture_server(sessions, session_of).streamable_http_app(
            streamable_http_path=PATH,
            transport_security=_security(http, port),
            host=http.host,
        )
        # Signals are ours: the trace is written before the process ends.
        server: Any = type("Server", (uvicorn.Server,), {"capture_signals": nullcontext})(
            uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
        )

        def stop() -> None:
            server.should_exit = True

        async with anyio.create_task_group() as group:
            group.start_soon(_until_signal, stop)
            if trace is not None:
                group.start_soon(_write_now_and_then, sessions, trace)
            shown = f"[{http.host}]" if ":" in http.host else http.host
            ready(f"http://{shown}:{port}{PATH}")
            await server.serve(sockets=[listening])
            group.cancel_scope.cancel()

    with listening:
        _run(serve, sessions, trace)


def _run(serve: Callable[[], Awaitable[None]], sessions: Sessions, trace: TraceFile | None) -> None:
    """Serve to the end, and leave the trace whole. A failure of ours is told as one sentence."""
    try:
        _anyio().run(serve)
    except BaseExceptionGroup as failures:
        ours: BaseException | None = failures.subgroup(CallmarkError)
        while isinstance(ours, BaseExceptionGroup):
            ours = ours.exceptions[0]
        raise ours or failures from None
    finally:
        if trace is not None:
            trace.write(sessions)


def fixture_server(sessions: Sessions, session_of: Callable[[Any], Session]) -> Server[Any]:
    """The server itself. `session_of` is given the HTTP request, or None over pipes."""
    from mcp import MCPError
    from mcp.server import Server
    from mcp_types import CallToolResult, ListToolsResult, Tool
    from pydantic import ValidationError

    tools = [Tool.model_validate(tool, by_name=False) for tool in listed(sessions.broker)]

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        session_of(context.request)  # a client that asks for the tools has begun its trial
        return ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        answer = session_of(context.request).call(params.name, params.arguments or {})
        if isinstance(answer, ProtocolError):
            raise MCPError(answer.code, answer.message, answer.data)
        try:
            return CallToolResult.model_validate(answer, by_name=False)
        except ValidationError:  # written by hand, and not quite MCP: still an answer
            plain = {"content": [{"type": "text", "text": canonical_json(answer)}]}
            return CallToolResult.model_validate(plain, by_name=False)

    return Server(NAME, version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def _security(http: Http, port: int) -> Any:
    """Only requests that name this server: a page in a browser may reach a loopback port under a
    name of its own."""
    from mcp.server.transport_security import TransportSecuritySettings

    names = {*LOOPBACK, *http.hosts, f"[{http.host}]" if ":" in http.host else http.host}
    hosts = sorted(f"{name}:{port}" for name in names)
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*hosts, *http.hosts],
        allowed_origins=origins,
    )


def _listening(http: Http) -> socket.socket:
    family = socket.AF_INET6 if ":" in http.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((http.host, http.port))
    except (OSError, OverflowError) as error:
        listening.close()
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            f"--port {http.port}: {http.host} cannot be listened on: {reason}; 0 takes a free port"
        ) from None
    return listening


def _trial(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else None


async def _until_signal(stop: Callable[[], None]) -> None:
    anyio = _anyio()
    with (
        suppress(NotImplementedError),
        anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as heard,
    ):
        async for _ in heard:
            stop()
            return


async def _write_now_and_then(sessions: Sessions, trace: TraceFile) -> None:
    anyio = _anyio()
    seen = -1
    while True:
        asked = sum(1 + len(session.entries) for session in sessions)
        if asked != seen:
            trace.write(sessions)
            seen = asked
        await anyio.sleep(SECONDS_BETWEEN_WRITES)


def _anyio() -> Any:
    try:
        import anyio
        import mcp  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra("fixtures serve", "mcp") from None
    return anyio
