"""A live MCP server: a command that speaks over its pipes, or a URL."""

from __future__ import annotations

import logging
import math
import shlex
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urlsplit

import msgspec

from callmark.calls.registry import X_CALLMARK, ToolSpec
from callmark.errors import Incomplete, MissingExtra, UsageError
from callmark.live.recorder import Answered, LostCall
from callmark.records.jsontext import Json, canonical_json, parse_json, want_text
from callmark.records.trace import is_error_result, is_mcp_result

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal
    from mcp import Client

PROTOCOL_META = "io.modelcontextprotocol/"


class ProtocolError(NamedTuple):
    """What is answered instead of a result."""

    code: int
    message: str
    data: Json


def result_from_wire(raw: Mapping[str, Json]) -> dict[str, Json]:
    kept = {name: value for name, value in raw.items() if name not in ("resultType", "_meta")}
    meta = _own_meta(raw.get("_meta"))
    if meta:
        kept["_meta"] = meta
    kept.setdefault("content", [])
    kept.setdefault("isError", False)
    return kept


def error_from_wire(code: int, message: str, data: Json) -> dict[str, Json]:
    error = {"code": code, "message": message}
    return {"error": error if data is None else {**error, "data": data}}


def result_to_wire(result: Json) -> dict[str, Json] | ProtocolError:
    """What an MCP client is answered with. A result of another kind of tool is its text, and its
    structured content where it is an object."""
    if is_mcp_result(result):
        return dict(result)
    match result:
        case {"error": {"code": int(code), "message": str(message), **more}, **rest} if not rest:
            return ProtocolError(code, message, more.get("data"))
    text = result if isinstance(result, str) else canonical_json(result)
    wire: dict[str, Json] = {"content": [{"type": "text", "text": text}]}
    if isinstance(result, dict):
        wire["structuredContent"] = result
    return {**wire, "isError": is_error_result(result)}


def spec_from_wire(tool: Mapping[str, Json]) -> dict[str, Json]:
    """A tool of `tools/list` as a function spec; what else the server says of it stays in
    `x-callmark.mcp`, which no model is sent."""
    rest = {name: value for name, value in tool.items() if name not in _IN_SPEC}
    meta = _own_meta(rest.pop("_meta", None))
    if meta:
        rest["_meta"] = meta
    spec: dict[str, Json] = {"name": tool["name"]}
    if tool.get("description") is not None:
        spec["description"] = tool["description"]
    spec["parameters"] = tool["inputSchema"]
    if rest:
        spec[X_CALLMARK] = {"mcp": rest}
    return spec


def spec_to_wire(spec: ToolSpec) -> dict[str, Json]:
    tool: dict[str, Json] = {"name": spec.name}
    if "description" in spec.function:
        tool["description"] = spec.description
    return {**tool, "inputSchema": spec.parameters, **spec.x_callmark.mcp}


_IN_SPEC = frozenset({"name", "description", "inputSchema"})


def _own_meta(meta: Json) -> dict[str, Json]:
    if not isinstance(meta, dict):
        return {}
    return {name: value for name, value in meta.items() if not name.startswith(PROTOCOL_META)}


SHOWN_STDERR = 2000  # characters of what the server complained about
LISTED_PAGES = 100  # of tools; a server that pages for ever must not hold us
# Servers print all kinds of things; the SDK would log a traceback for each line of them.
_QUIET = logging.NullHandler()


class McpTarget(msgspec.Struct, frozen=True, kw_only=True):
    """`address`: a command line or a URL. `env` goes to the command, `headers` to the URL; their
    values are secrets."""

    address: str
    env: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    timeout: float = 30.0

    @property
    def is_url(self) -> bool:
        return self.address.startswith(("http://", "https://"))

    @property
    def origin(self) -> str:
        """The address as a report may show it: no query, no password, no arguments."""
        if not self.is_url:
            return f"mcp command {Path(_words(self.address)[0]).name}"
        parts = urlsplit(self.address)
        return f"mcp {parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"


class McpTools:
    """The tools of one MCP server, as long as the context is open. Calls are made one by one."""

    def __init__(self, target: McpTarget) -> None:
        self.target = target
        self.origin = target.origin
        self.specs: Sequence[dict[str, Json]] = ()
        self._stack = ExitStack()
        self._stderr: Any = None
        self._names: frozenset[str] = frozenset()

    def __enter__(self) -> Self:
        try:
            from anyio.from_thread import start_blocking_portal
            from mcp import MCPError
        except ModuleNotFoundError:
            raise MissingExtra("an MCP server", "mcp") from None
        logging.getLogger("mcp").addHandler(_QUIET)
        with ExitStack() as stack:
            self._stderr = stack.enter_context(
                tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
            )
            self._portal: BlockingPortal = stack.enter_context(start_blocking_portal())
            try:
                self._client: Client = self._connected(stack)
                self.specs = tuple(self._portal.call(self._listed))
            except (OSError, MCPError, TimeoutError, ValueError, BaseExceptionGroup) as error:
                raise Incomplete(
                    f"{self.origin}: no MCP server answered{self._why(error)}{self._complaints()};"
                    " start it by hand to see why, then try again"
                ) from None
            self._names = frozenset(want_text(spec["name"]) for spec in self.specs)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *failure: object) -> None:
        # A server that is dead already must not hide what it has answered.
        try:
            self._stack.close()
        except BaseExceptionGroup as ending:
            if ending.split((OSError, EOFError))[1] is not None:
                raise

    def call(self, name: str, arguments: dict[str, Json]) -> Answered | LostCall:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
        from pydantic import ValidationError

        try:
            raw = self._portal.call(self._called, name, arguments)
        except MCPError as error:
            if error.code == REQUEST_TIMEOUT:
                return LostCall(f"{name}: no answer within {self.target.timeout:g} s")
            if error.code == CONNECTION_CLOSED:
                return LostCall(f"{self.origin}: the server is gone{self._complaints()}", gone=True)
            if name not in self._names:
                return LostCall(f"{name}: the server has no such tool ({error.message})")
            return Answered(error_from_wire(error.code, error.message, error.data))
        except ValidationError as error:
            return LostCall(f"{name}: the answer is none that MCP knows: {error.title}")
        except (OSError, BaseExceptionGroup) as error:
            return LostCall(f"{self.origin}: {_first(error)}{self._complaints()}", gone=True)
        if raw.get("resultType") not in (None, "complete"):
            return LostCall(
                f"{name}: the server asks back ({raw['resultType']}) instead of answering"
            )
        return _as_json(name, result_from_wire(raw))

    def _connected(self, stack: ExitStack) -> Client:
        from mcp import Client

        enter = self._portal.wrap_async_context_manager
        client = Client(self._transport(stack), read_timeout_seconds=self.target.timeout)
        return stack.enter_context(enter(_soon(client, self.target.timeout)))

    def _transport(self, stack: ExitStack) -> Any:
        from mcp import StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        target = self.target
        if target.is_url:
            client = create_mcp_http_client(headers=dict(target.headers))
            stack.enter_context(self._portal.wrap_async_context_manager(client))
            return streamable_http_client(target.address, http_client=client)
        command, *arguments = _words(target.address)
        server = StdioServerParameters(command=command, args=arguments, env=dict(target.env))
        return stdio_client(server, errlog=self._stderr)

    async def _listed(self) -> list[dict[str, Json]]:
        specs: list[dict[str, Json]] = []
        cursor: str | None = None
        # A server whose pages never end must not keep us here for ever.
        for _ in range(LISTED_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            specs += [
                spec_from_wire(tool.model_dump(by_alias=True, mode="json", exclude_unset=True))
                for tool in page.tools
            ]
            cursor = page.next_cursor
            if cursor is None:
                break
        return specs

    async def _called(self, name: str, arguments: dict[str, Json]) -> dict[str, Json]:
        """The answer as it came. The client's own `call_tool` would refuse one that breaks the
        tool's output schema: that is the tool's mistake, and worth recording."""
        from mcp_types import CallToolRequest, CallToolRequestParams
        from pydantic import TypeAdapter

        request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments))
        raw: Any = TypeAdapter(dict[str, Any])
        answer: dict[str, Json] = await self._client.session.send_request(request, raw)
        return answer

    def _why(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError):
            return f" within {self.target.timeout:g} s (a slow one needs a longer --timeout)"
        return f": {_first(error)}"

    def _complaints(self) -> str:
        """The end of what the server wrote to its standard error, in one line."""
        if self._stderr is None:
            return ""
        self._stderr.seek(0)
        text = self._stderr.read()[-SHOWN_STDERR:]
        for secret in (*self.target.env.values(), *self.target.headers.values()):
            text = text.replace(secret, "[secret]") if secret else text
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return f" (it said: {' | '.join(lines[-5:])})" if lines else ""


@asynccontextmanager
async def _soon(client: Client, seconds: float) -> AsyncIterator[Client]:
    """The client, if its server answers in time; the SDK itself waits longer than it is told."""
    import anyio

    with anyio.fail_after(seconds) as limit:
        async with client as connected:
            limit.deadline = math.inf
            yield connected


def _as_json(name: str, result: dict[str, Json]) -> Answered | LostCall:
    """What a fixture file could not hold is no answer: NaN, or a depth that nobody can read."""
    try:
        parse_json(canonical_json({"result": result}))
    except (ValueError, RecursionError) as error:
        return LostCall(f"{name}: the answer cannot be kept: {error}")
    return Answered(result)


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--mcp {command}: cannot be split into words: {error}") from None
    if not words:
        raise UsageError("--mcp: which server? Give a command or a URL")
    return words


def _first(error: BaseException) -> str:
    for leaf in _leaves(error):
        return f"{leaf}" or type(leaf).__name__
    return type(error).__name__


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error
