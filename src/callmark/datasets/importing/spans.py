"""Spans of any tracing system: what a record of a log holds of them, what they say of a model or a
tool, and a place on disk where they wait until their trace is complete."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count, groupby
from typing import Any, Literal, Self

import msgspec

from callmark.datasets.importing.desk import Object
from callmark.errors import OutputFailed
from callmark.records.jsontext import Json, NotJson, parse_json, well_formed

SpanKind = Literal["model", "tool", "agent", "other", "structure"]


class SpanEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a span, or a log record beside it, says of a moment."""

    name: str
    attributes: Object = {}
    body: Json = None


class TraceSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One span. `attributes` as they were written, flat or nested; `error`: what failed in it;
    `is_log`: no span, but log records of one that may stand elsewhere; `row`: what else the record
    says that holds it."""

    line: int
    trace: str
    id: str
    parent: str = ""
    name: str = ""
    scope: str = ""
    start: int = 0
    attributes: Object = {}
    events: tuple[SpanEvent, ...] = ()
    error: str | None = None
    is_log: bool = False
    row: Object = {}


class SpanStep(msgspec.Struct, frozen=True, kw_only=True):
    """What a span says: a call of a model (`before` and `output` are messages, None if it does not
    say them), a call of a tool (`name`, `arguments`, `result`), or what belongs together."""

    span: TraceSpan
    kind: SpanKind
    name: str = ""
    before: list[Object] | None = None
    output: list[Object] | None = None
    others: int = 0
    tools: tuple[Json, ...] = ()
    call_id: str | None = None
    arguments: Json = None
    result: Json = None
    has_result: bool = False
    response_id: str | None = None
    model: str | None = None
    usage: tuple[int, int] = (0, 0)
    scores: Object = {}

    @property
    def has_content(self) -> bool:
        return self.before is not None or self.output is not None


class BadSpan(ValueError):
    """A record that looks like spans and cannot be read as such."""


def first_of(value: Object, *names: str) -> Json:
    """The first of these fields that is there: every tool spells them in its own way."""
    return next((value[name] for name in names if value.get(name) is not None), None)


def json_in(value: Json) -> Json:
    """A text that spells out an object or a list as JSON, as that; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return parse_json(value)
        except NotJson:
            return value
    return value


def text_in(value: Json) -> str | None:
    return well_formed(value) if isinstance(value, str) and value else None


def number_in(value: Json) -> int:
    """A count, which OTLP and some databases write as a text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value < 2**63 else 0  # as much as a database holds


def list_in(value: Json, name: str) -> list[Json]:
    """A field that has to be a list if it is there."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadSpan(f"{name}: must be a list")
    return value


def object_in(value: Json, name: str) -> Object:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadSpan(f"{name}: must be an object")
    return value


def nanoseconds(value: Json) -> int:
    """A moment, as nanoseconds since 1970 or as ISO 8601; 0: it is not said."""
    if isinstance(value, str) and not value.isdigit():
        try:
            moment = datetime.fromisoformat(value)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        except (ValueError, OverflowError):
            return 0
        microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        return number_in(microseconds * 1000)
    return number_in(value)


# --- OTLP ---------------------------------------------------------------------------------------


# The last is what Tempo calls them.
_RESOURCES = ("resourceSpans", "resource_spans", "batches")


def is_otlp(value: Object) -> bool:
    if "batches" in value:
        match value["batches"]:
            case [{"resource": _}, *_] | [{"scopeSpans": _}, *_]:
                return True
        return False
    return any(name in value for name in (*_RESOURCES, "resourceLogs", "resource_logs"))


def spans_of_otlp(value: Object, line: int) -> Iterator[TraceSpan]:
    """The JSON of an export request, as collectors and file exporters write it. Protobuf's own JSON
    has the same fields in snake case."""
    for resource in list_in(first_of(value, *_RESOURCES), "resourceSpans"):
        whole = object_in(resource, "resourceSpans")
        scopes = first_of(
            whole,
            "scopeSpans",
            "scope_spans",
            "instrumentationLibrarySpans",
            "instrumentation_library_spans",
        )
        for scoped in list_in(scopes, "scopeSpans"):
            holder = object_in(scoped, "scopeSpans")
            scope = object_in(first_of(holder, "scope", "instrumentationLibrary"), "scope")
            for raw in list_in(holder.get("spans"), "spans"):
                yield _otlp_span(object_in(raw, "spans"), text_in(scope.get("name")) or "", line)
    for resource in list_in(first_of(value, "resourceLogs", "resource_logs"), "resourceLogs"):
        whole = object_in(resource, "resourceLogs")
        for scoped in list_in(first_of(whole, "scopeLogs", "scope_logs"), "scopeLogs"):
            holder = object_in(scoped, "scopeLogs")
            for raw in list_in(first_of(holder, "logRecords", "log_records"), "logRecords"):
                yield _log_span(object_in(raw, "logRecords"), line)


def _otlp_span(raw: Object, scope: str, line: int) -> TraceSpan:
    attributes = _attributes(raw.get("attributes"))
    events = tuple(
        SpanEvent(
            name=text_in(one.get("name")) or "", attributes=_attributes(one.get("attributes"))
        )
        for one in (object_in(each, "events") for each in list_in(raw.get("events"), "events"))
    )
    status = object_in(raw.get("status"), "status")
    return TraceSpan(
        line=line,
        trace=text_in(first_of(raw, "traceId", "trace_id")) or "",
        id=text_in(first_of(raw, "spanId", "span_id")) or "",
        parent=text_in(first_of(raw, "parentSpanId", "parent_span_id")) or "",
        name=text_in(raw.get("name")) or "",
        scope=scope,
        start=nanoseconds(first_of(raw, "startTimeUnixNano", "start_time_unix_nano")),
        attributes=attributes,
        events=events,
        error=failure_of(status.get("code"), status.get("message"), attributes, events),
    )


def _log_span(raw: Object, line: int) -> TraceSpan:
    """A log record, as a span that has nothing but this event."""
    attributes = _attributes(raw.get("attributes"))
    name = first_of(raw, "eventName", "event_name") or attributes.get("event.name")
    body = raw.get("body")
    event = SpanEvent(
        name=text_in(name) or "",
        attributes=attributes,
        body=_any_value(body) if isinstance(body, dict) else body,
    )
    return TraceSpan(
        line=line,
        trace=text_in(first_of(raw, "traceId", "trace_id")) or "",
        id=text_in(first_of(raw, "spanId", "span_id")) or "",
        start=nanoseconds(first_of(raw, "timeUnixNano", "time_unix_nano", "observedTimeUnixNano")),
        events=(event,),
        is_log=True,
    )


def _attributes(value: Json) -> Object:
    """OTLP lists them as keys and typed values; others write an object."""
    if isinstance(value, dict):
        return value
    made: Object = {}
    for raw in list_in(value, "attributes"):
        pair = object_in(raw, "attributes")
        key = pair.get("key")
        if not isinstance(key, str):
            raise BadSpan("attributes: key: must be a text")
        made[key] = _any_value(pair.get("value"))
    return made


def _any_value(value: Json) -> Json:
    if not isinstance(value, dict) or len(value) != 1:
        return value
    [(kind, inner)] = value.items()
    match kind, inner:
        case (("intValue" | "int_value"), str(digits)):
            return int(digits) if digits.lstrip("-").isdigit() and len(digits) < 20 else digits
        case (("arrayValue" | "array_value"), dict(holder)):
            return [_any_value(one) for one in list_in(holder.get("values"), "arrayValue")]
        case (("kvlistValue" | "kvlist_value"), dict(holder)):
            return _attributes(list_in(holder.get("values"), "kvlistValue"))
        case str(name), _ if name.endswith(("Value", "_value")):
            return inner
    return value


def failure_of(
    code: Json, message: Json, attributes: Object, events: tuple[SpanEvent, ...] = ()
) -> str | None:
    """What failed in a span, by its status, its exception or its type of error."""
    kind = attributes.get("error.type")
    raised = next((one.attributes for one in events if one.name == "exception"), {})
    told = text_in(message) or text_in(raised.get("exception.message")) or text_in(kind)
    is_error = code == 2 or (isinstance(code, str) and code.upper().endswith("ERROR"))
    return (told or "error") if is_error or isinstance(kind, str) else None


# --- spans as plain objects: SDKs' own JSON, Phoenix, nested trees -------------------------------


def is_plain_span(value: Object) -> bool:
    context = value.get("context")
    holder = context if isinstance(context, dict) else value
    has_ids = any(first_of(holder, *names) is not None for names in (_TRACE, _SPAN))
    has_more = any(
        name in value
        for name in (*_ATTRIBUTES, "child_spans", "attributes.openinference.span.kind")
    )
    return has_ids and has_more


_TRACE = ("trace_id", "traceId", "TraceId", "context.trace_id")
_SPAN = ("span_id", "spanId", "SpanId", "context.span_id")
_PARENT = ("parent_id", "parent_span_id", "parentSpanId", "parentId", "ParentSpanId")
_ATTRIBUTES = ("attributes", "span_attributes", "SpanAttributes")
_START = ("start_time", "startTime", "startTimeUnixNano", "timestamp", "Timestamp")


def spans_of_plain(
    value: Object, line: int, trace: str = "", parent: str = ""
) -> Iterator[TraceSpan]:
    """A span with its children, if they stand below it."""
    waiting: list[tuple[Object, str]] = [(value, parent)]
    while waiting:
        raw, above = waiting.pop()
        span = _plain_span(raw, line, trace, above)
        yield span
        children = list_in(first_of(raw, "child_spans", "children"), "child_spans")
        waiting.extend((object_in(one, "child_spans"), span.id) for one in reversed(children))


def _plain_span(raw: Object, line: int, trace: str, parent: str) -> TraceSpan:
    context = raw.get("context")
    ids = {**raw, **context} if isinstance(context, dict) else raw
    given = first_of(raw, *_ATTRIBUTES)
    columns = {
        name.removeprefix("attributes."): column
        for name, column in raw.items()
        if name.startswith("attributes.")
    }
    attributes = {**_attributes(json_in(given)), **columns}
    kind = raw.get("span_kind")
    if isinstance(kind, str) and kind.isupper():  # Phoenix has it outside
        attributes.setdefault("openinference.span.kind", kind)
    events = tuple(
        SpanEvent(
            name=text_in(one.get("name")) or "", attributes=_attributes(one.get("attributes"))
        )
        for one in (
            object_in(each, "events") for each in list_in(json_in(raw.get("events")), "events")
        )
    )
    status = raw.get("status")
    status = status if isinstance(status, dict) else {"code": status}
    code = first_of({**status, **raw}, "status_code", "code", "StatusCode")
    return TraceSpan(
        line=line,
        trace=_plain_id(first_of(ids, *_TRACE)) or trace,
        id=_plain_id(first_of(ids, *_SPAN, "id")),
        parent=_plain_id(first_of(raw, *_PARENT)) or parent,
        name=text_in(first_of(raw, "name", "span_name", "SpanName")) or "",
        scope=text_in(raw.get("scope_name")) or "",
        start=nanoseconds(first_of(raw, *_START)),
        attributes=attributes,
        events=events,
        error=failure_of(
            code,
            first_of(
                {**status, **raw}, "status_message", "message", "description", "StatusMessage"
            ),
            attributes,
            events,
        ),
    )


def _plain_id(value: Json) -> str:
    text = text_in(value) or (str(value) if isinstance(value, int) else "")
    return text.removeprefix("0x")


def nested(attributes: Object) -> Object:
    """Dotted names as a tree, lists by their numbers: `a.0.b` is `{"a": [{"b": …}]}`. What is a
    tree already stays one."""
    tree: dict[str, object] = {}
    for name, value in attributes.items():
        _graft(tree, name.split("."), value)
    return {name: _listed(value) for name, value in tree.items()}


def _graft(tree: dict[str, object], path: list[str], value: object) -> None:
    for step in path[:-1]:
        below = tree.get(step)
        if isinstance(below, list):
            below = {str(number): one for number, one in enumerate(below)}
        elif not isinstance(below, dict):
            below = {}
        tree[step] = below
        tree = below
    if isinstance(value, dict) and isinstance(tree.get(path[-1]), dict):
        value = {**tree[path[-1]], **value}  # type: ignore[dict-item]
    tree[path[-1]] = value


def _listed(value: object) -> object:
    if isinstance(value, list):
        return [_listed(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value and all(isinstance(name, str) and name.isascii() and name.isdigit() for name in value):
        return [_listed(value[name]) for name in sorted(value, key=_number)]
    if any(isinstance(name, str) and "." in name for name in value):
        return nested(value)
    return {name: _listed(one) for name, one in value.items()}


def _number(name: str) -> tuple[int, str]:
    return len(name.lstrip("0")), name.lstrip("0")


# --- waiting on disk ----------------------------------------------------------------------------


class SpanStore:
    """Spans in the order of the source, given back trace by trace, in the order in which these
    began. A file of interleaved traces may be larger than memory, so it is a database that
    goes away with the import."""

    def __init__(self) -> None:
        self._numbers = count()
        self._folder = tempfile.TemporaryDirectory(prefix="callmark-")
        self._base = sqlite3.connect(f"{self._folder.name}/spans.sqlite", isolation_level=None)
        self._base.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-8192;"
            "CREATE TABLE traces (id INTEGER PRIMARY KEY, name TEXT UNIQUE, start INTEGER);"
            "CREATE TABLE spans (trace INTEGER, n INTEGER, data BLOB);"
            "CREATE TABLE responses (id TEXT PRIMARY KEY) WITHOUT ROWID;"
            "CREATE TABLE bare (response TEXT, line INTEGER, name TEXT);"
            "CREATE TABLE threads (n INTEGER PRIMARY KEY, data BLOB);"
            "CREATE TABLE ends (mark BLOB PRIMARY KEY, thread INTEGER) WITHOUT ROWID;"
            "BEGIN"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._base.close()
        self._folder.cleanup()

    def add(self, span: TraceSpan) -> None:
        start = span.start or None
        found = self._do(
            "INSERT INTO traces (name, start) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET"
            " start = min(ifnull(start, excluded.start), ifnull(excluded.start, start))"
            " RETURNING id",
            span.trace,
            start,
        )
        self._do(
            "INSERT INTO spans VALUES (?, ?, ?)", found[0][0], next(self._numbers), _pack(span)
        )

    def traces(self) -> Iterator[list[TraceSpan]]:
        """The spans of each trace, earliest first."""
        self._do("CREATE INDEX by_trace ON spans (trace, n)")
        rows = self._base.execute(
            "SELECT traces.id, data FROM traces CROSS JOIN spans ON spans.trace = traces.id"
            " ORDER BY ifnull(traces.start, 0), traces.id, n"
        )
        for _, group in groupby(rows, key=lambda row: row[0]):
            spans = [_unpack_span(data) for _, data in group]
            yield sorted(spans, key=lambda span: span.start)

    def add_response(self, response: str) -> None:
        self._do("INSERT OR IGNORE INTO responses VALUES (?)", response)

    def add_bare(self, response: str | None, line: int, name: str) -> None:
        """A call of a model that says nothing; another span of it may, in whatever trace."""
        self._do("INSERT INTO bare VALUES (?, ?, ?)", response, line, name)

    def bare(self) -> Iterator[tuple[int, str, bool]]:
        """Line and name of each, and whether another span said what it did not."""
        rows = self._base.execute(
            "SELECT line, name, responses.id IS NOT NULL FROM bare LEFT JOIN responses"
            " ON responses.id = bare.response ORDER BY bare.rowid"
        )
        for line, name, is_known in rows:
            yield line, name, bool(is_known)

    def put_thread(self, data: bytes, end: bytes) -> None:
        [(number,)] = self._do("INSERT INTO threads (data) VALUES (?) RETURNING n", data)
        self._do("INSERT OR REPLACE INTO ends VALUES (?, ?)", end, number)

    def take_thread(self, end: bytes) -> bytes | None:
        """The conversation that ended so, which goes on elsewhere: it is none of its own then."""
        found = self._do("DELETE FROM ends WHERE mark = ? RETURNING thread", end)
        if not found:
            return None
        rows = self._do("DELETE FROM threads WHERE n = ? RETURNING data", found[0][0])
        data: bytes = rows[0][0]
        return data

    def threads(self) -> Iterator[bytes]:
        for (data,) in self._base.execute("SELECT data FROM threads ORDER BY n"):
            yield data

    def _do(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._base.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            raise OutputFailed(
                f"{self._folder.name}: spans could not be sorted there: {error}."
                " Free some space, or let TMPDIR point to another folder."
            ) from None


_pack = msgspec.json.Encoder().encode
_unpack_span = msgspec.json.Decoder(TraceSpan).decode
