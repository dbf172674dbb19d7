"""The MCP server that answers from fixtures: what clients ask, remembered session by session, over
this process's own pipes or streamable HTTP."""

from __future__ import annotations

import fcntl
import hmac
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import parse_qs

import msgspec

from callmark._version import __version__
from callmark.broker.broker import BrokerSession, ToolBroker
from callmark.broker.nearest import explain_miss, printable
from callmark.calls.registry import Registry
from callmark.errors import BadInput, CallmarkError, MissingExtra, UsageError
from callmark.live.mcp import ProtocolError, result_to_wire, spec_to_wire
from callmark.live.recorder import REGISTRY
from callmark.records.jsontext import Json, canonical_json, digest
from callmark.records.problems import Problems
from callmark.records.results import Fingerprints
from callmark.records.seams import Hit, Miss
from callmark.records.trace import EntryStatus, TraceEntry, answer_entry
from callmark.run.offers import open_registry
from callmark.store.files import (
    atomic_writer,
    check_writable,
    filled_lines,
    make_folder,
    object_of,
    output_failed,
)
from callmark.store.recorded import RecordedAnswer, read_recorded, recorded_of

if TYPE_CHECKING:
    from mcp.server import Server


UNKNOWN_TOOL = -32602  # JSON-RPC's "invalid params", which MCP servers answer with
NO_SAMPLE = "session"

MAX_SESSIONS = 100_000
LONGEST_ID = 1_000  # characters

Answer = dict[str, Json] | ProtocolError


class TooManySessions(Exception):
    """A client names more samples than any dataset that one server is meant for."""


class Session:
    """One trial of one sample, as a client sees the tools. `trial` None: the next free one.
    `keeps_calls`: for a trace; a server without one would only fill its memory."""

    def __init__(
        self,
        broker: ToolBroker,
        sample_id: str | None,
        trial: int | None,
        *,
        keeps_calls: bool = True,
    ) -> None:
        self.sample_id = sample_id
        self.trial = trial
        self.entries: list[TraceEntry] = []
        self._keeps_calls = keeps_calls
        self._broker = broker
        self._tools: BrokerSession = broker.session(sample_id)

    def call(self, name: str, arguments: dict[str, Json]) -> Answer:
        entry, answer = self._settled(name, arguments)
        if self._keeps_calls:
            self.entries.append(entry)
        return answer

    def as_line(self, trial: int) -> dict[str, Json]:
        """A results line; what the agent said is not known here."""
        registry_sha256 = None if self._broker.registry is None else self._broker.registry.sha256
        fingerprints = Fingerprints(
            tool_registry_sha256=registry_sha256, fixtures_sha256=self._broker.fixtures_sha256
        )
        return {
            "sample_id": self.sample_id or NO_SAMPLE,
            "trial": trial,
            "model_output": "",
            "tool_trace": msgspec.to_builtins(self.entries),
            "used_fixtures_sha256": digest(list(self._tools.used)),
            "offered_tools_sha256": registry_sha256,
            "fingerprints": msgspec.to_builtins(fingerprints),
        }

    def _settled(self, name: str, arguments: dict[str, Json]) -> tuple[TraceEntry, Answer]:
        registry = self._broker.registry
        tool = None if registry is None else registry.resolve(name)
        entry = TraceEntry(
            name=tool or name,
            arguments=arguments,
            result=None,
            turn=None,
            raw=None,
            status="unanswered",
            served_by=None,
        )
        if registry is None or tool is None:
            what = f"Unknown tool: {name}"
            refused = _refuse(entry, "tool_not_offered", what)
            return refused, ProtocolError(UNKNOWN_TOOL, what, None)
        errors = registry.validate(tool, arguments)
        entry = msgspec.structs.replace(entry, schema_errors=errors)
        try:
            found = self._tools.answer(tool, arguments)
        except BadInput as error:  # two patterns that fit equally: whoever wrote them must choose
            return msgspec.structs.replace(entry, reason=str(error)), _failure(str(error))
        match found:
            case Hit(result=result, served_by=served_by):
                return answer_entry(entry, result, served_by), result_to_wire(result)
            case Miss() if errors:
                what = "invalid arguments: " + "; ".join(errors)
                return _refuse(entry, "invalid_arguments", what), _failure(what)
            case Miss() as miss:
                return _miss(entry, miss), _failure(self._why(miss))

    def _why(self, miss: Miss) -> str:
        """The nearest keys, without a place on this machine's disk."""
        why = explain_miss(self._broker, miss.name, miss.arguments, self.sample_id)
        head = f"no recorded answer for {why.name} {printable(why.key_json or '')}"
        near = {
            f"nearest: {one.name} {printable(one.key_json)}"
            f" (differs in {', '.join(map(printable, one.differs))})": None
            for one in why.nearest
        }
        return "\n".join([head, *near])


class Sessions:
    """All sessions of one server, by sample and trial: at most so many, as clients name them."""

    def __init__(self, broker: ToolBroker, *, keeps_calls: bool = True) -> None:
        self.broker = broker
        self._keeps_calls = keeps_calls
        self._by_trial: dict[tuple[str | None, int | None], Session] = {}

    def of(self, sample_id: str | None, trial: int | None) -> Session:
        """The session of this sample and trial, which begins now if there is none."""
        found = self._by_trial.get((sample_id, trial))
        if found is None:
            if len(self._by_trial) >= MAX_SESSIONS or len(sample_id or "") > LONGEST_ID:
                raise TooManySessions
            found = Session(self.broker, sample_id, trial, keeps_calls=self._keeps_calls)
            self._by_trial[sample_id, trial] = found
        return found

    def __iter__(self) -> Iterator[Session]:
        """Those that belong to a sample or asked something, in the order of their beginning."""
        for session in self._by_trial.values():
            if session.sample_id is not None or session.entries:
                yield session


def _failure(text: str) -> dict[str, Json]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _refuse(entry: TraceEntry, status: EntryStatus, why: str) -> TraceEntry:
    result = {"ok": False, "error": why}
    return msgspec.structs.replace(entry, status=status, result=result, reason=why)


def _miss(entry: TraceEntry, miss: Miss) -> TraceEntry:
    result = {
        "ok": False,
        "error": "fixture_miss",
        "name": miss.name,
        "arguments": miss.arguments,
        "key_normalized": miss.key_normalized,
    }
    return msgspec.structs.replace(
        entry, status="miss", result=result, key_normalized=miss.key_normalized
    )


def join_answers(trace: Path, answers: Path, joined: BinaryIO) -> None:
    """Every session of the trace with the answer of its sample and trial. An answer without a
    session is one of an agent that never asked for a tool; a session without an answer is an
    error."""
    said = {(one.sample_id, one.trial): one.model_output for one in _lines(answers)}
    problems = Problems()
    objects = (object_of(line.json) for line in filled_lines(trace))
    for asked, line in zip(_lines(trace), objects, strict=True):
        answer = said.pop((asked.sample_id, asked.trial), None)
        if answer is None:
            what = f"sample {asked.sample_id}, trial {asked.trial} has no answer in {answers}"
            problems.add(f"{trace}:{asked.line}", what)
        else:
            joined.write(_encode({**line, "model_output": answer}))
    problems.raise_if_any()
    for (sample_id, trial), answer in said.items():
        joined.write(_encode({"sample_id": sample_id, "trial": trial, "model_output": answer}))


def _lines(path: Path) -> Iterator[RecordedAnswer]:
    for line in read_recorded(path):
        if not isinstance(line, RecordedAnswer):
            raise BadInput(f"{path}:{line.line}: must hold sample_id and model_output")
        yield line


def _encode(line: dict[str, Json]) -> bytes:
    return msgspec.json.encode(line) + b"\n"


_NEXT = "Free some space or choose another place."
Place = tuple[str, int]  # sample and trial


class TraceFile:
    """What is in the file already stays, whoever wrote it. Servers that run side by side, as an
    agent starts one per sample, may share one file: no two lines of it are about one trial."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._locked():
            check_writable(path)
        self._mine: dict[int, Place] = {}  # by the id of a session

    def write(self, sessions: Iterable[Session]) -> None:
        """Write all of them, in the place of what this server had written of them before."""
        with self._locked():
            mine = set(self._mine.values())
            others = [(line, place) for line, place in self._lines() if place not in mine]
            taken = mine.union(place for _, place in others)
            placed = [(session, self._place(session, taken)) for session in sessions]
            with atomic_writer(self.path) as stream:
                stream.writelines(line for line, _ in others)
                for session, (_, trial) in placed:
                    stream.write(msgspec.json.encode(session.as_line(trial)) + b"\n")

    def _place(self, session: Session, taken: set[Place]) -> Place:
        """The trial that the client named, or the first one; if the file has that of another server
        or an earlier one, the next that is free. It stays what it was when it was first written."""
        found = self._mine.get(id(session))
        if found is None:
            sample_id, trial = session.sample_id or NO_SAMPLE, session.trial or 0
            while (sample_id, trial) in taken:
                trial += 1
            found = self._mine[id(session)] = (sample_id, trial)
            taken.add(found)
        return found

    def _lines(self) -> Iterator[tuple[bytes, Place]]:
        if not self.path.exists():
            return
        for line in filled_lines(self.path):
            try:
                found = recorded_of(line)
            except BadInput as error:
                raise BadInput(f"{self.path}:{line.number}: {error}") from None
            end = b"" if line.data.endswith(b"\n") else b"\n"
            yield line.data + end, (found.sample_id, found.trial)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_name(f".{self.path.name}.lock")
        try:
            make_folder(lock.parent)
            fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise output_failed(self.path, error, _NEXT) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


ANYTHING: dict[str, Json] = {"type": "object"}


def open_served(folder: Path, registry_path: str | None) -> ToolBroker:
    """The folder with all its tools: those of the registry, then those that only fixtures name."""
    registry = _registry_of(folder, registry_path)
    broker = ToolBroker(folder, registry)
    unknown = sorted(broker.index.by_tool.keys() - set(registry.names))
    if not unknown:
        return broker
    more = [{"name": name, "parameters": ANYTHING} for name in unknown]
    specs = [*(spec.function for spec in registry.specs), *more]
    return ToolBroker(folder, Registry.from_specs(specs, where=str(folder)))


def describe_tools(broker: ToolBroker) -> list[dict[str, Json]]:
    """`tools/list`, in the order of the names."""
    registry = broker.registry
    return [] if registry is None else [spec_to_wire(spec) for spec in registry.specs]


def _registry_of(folder: Path, path: str | None) -> Registry:
    """What was recorded with the fixtures; else the built-in tools that they name."""
    own = folder / REGISTRY
    if path is not None or own.exists():
        return open_registry(path or str(own))
    builtin = open_registry(None)
    named = ToolBroker(folder, builtin).index.by_tool
    return Registry(spec for spec in builtin.specs if spec.name in named)


NAME = "callmark-fixtures"
PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SECONDS_BETWEEN_WRITES = 1.0
UNKNOWN_SESSION = -32602  # JSON-RPC's "invalid params"
MAX_REQUESTS = 256  # at a time; one that sends nothing for ever is one of them


class Http(msgspec.Struct, frozen=True, kw_only=True):
    """`hosts`: names beside its own that the server answers to. `token`: what every request has to
    show, as `Authorization: Bearer TOKEN` or `?token=TOKEN`; None: nothing."""

    host: str = "127.0.0.1"
    port: int = 0
    hosts: tuple[str, ...] = ()
    token: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


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
    clients keep none of their own. `ready` is told the URL, once it is answered to."""
    anyio = _anyio()
    if not http.is_local and not http.token:
        raise UsageError(f"--host {http.host}: other machines can reach it: it needs a token")
    listening = _listening(http)
    port: int = listening.getsockname()[1]

    def session_of(request: Any) -> Session:
        query = request.query_params if request is not None else {}
        try:
            return sessions.of(query.get("sample") or sample_id, _trial(query.get("trial")))
        except TooManySessions:
            from mcp import MCPError

            what = f"this server keeps at most {MAX_SESSIONS} samples: start another one"
            raise MCPError(UNKNOWN_SESSION, what, None) from None

    async def serve() -> None:
        import uvicorn

        app = fixture_server(sessions, session_of).streamable_http_app(
            streamable_http_path=PATH,
            # The URL names the session: what the library would keep for each handshake, and only
            # forget after half an hour, serves nobody.
            stateless_http=True,
            transport_security=_security(http, port),
            host=http.host,
        )

        class Announcing(uvicorn.Server):  # type: ignore[misc]
            # Signals are ours: the trace is written before the process ends.
            capture_signals = nullcontext

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                ready(_address(http, port))

        server = Announcing(
            uvicorn.Config(
                app if http.token is None else _asks_for_token(app, http.token),
                log_level="warning",
                timeout_graceful_shutdown=2,
                limit_concurrency=MAX_REQUESTS,
            )
        )

        def stop() -> None:
            server.should_exit = True

        async with anyio.create_task_group() as group:
            group.start_soon(_until_signal, stop)
            if trace is not None:
                group.start_soon(_write_now_and_then, sessions, trace)
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

    tools = [Tool.model_validate(tool, by_name=False) for tool in describe_tools(sessions.broker)]

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


def _address(http: Http, port: int) -> str:
    shown = f"[{http.host}]" if ":" in http.host else http.host
    return f"http://{shown}:{port}{PATH}"


def _asks_for_token(app: Any, token: str) -> Any:
    """The application behind a door: a request shows the token before anything is looked at."""

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or _shows(scope, token):
            await app(scope, receive, send)
            return
        text = b"This server asks for its token.\n"
        headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    return guarded


def _shows(scope: Any, token: str) -> bool:
    shown = [value[7:] for name, value in scope["headers"]
             if name == b"authorization" and value[:7].lower() == b"bearer "]  # fmt: skip
    query: bytes = scope["query_string"]
    with suppress(ValueError):
        shown += parse_qs(query, max_num_fields=10).get(b"token", [])
    return any(hmac.compare_digest(one.strip(), token.encode()) for one in shown)


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
    is_number = text is not None and text.isascii() and text.isdecimal() and len(text) < 10
    return int(text) if is_number and text is not None else None


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
