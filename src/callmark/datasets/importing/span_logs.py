"""Logs of spans, whatever wrote them: every record is taken apart into spans, every trace becomes
conversations, and those that go on in a later trace are put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from callmark.datasets.importing.conversation import Talk, imported_talk, opening_length
from callmark.datasets.importing.desk import Desk, Imported, Object, Record, spec_of_name
from callmark.datasets.importing.langfuse import (
    is_langfuse,
    is_langfuse_trace,
    is_observation,
    read_langfuse,
    span_of_observation,
    spans_of_batch,
    spans_of_trace,
)
from callmark.datasets.importing.openai_agents import (
    is_agents_item,
    is_agents_span,
    read_agents_span,
    span_of_item,
)
from callmark.datasets.importing.openinference import is_openinference, read_openinference
from callmark.datasets.importing.otel_genai import is_genai, read_genai
from callmark.datasets.importing.span_threads import Thread, TraceThreads
from callmark.datasets.importing.spans import (
    BadSpan,
    SpanEvent,
    SpanStep,
    SpanStore,
    TraceSpan,
    is_otlp,
    is_plain_span,
    list_in,
    object_in,
    spans_of_otlp,
    spans_of_plain,
    text_in,
)
from callmark.errors import BadInput
from callmark.records.jsontext import Json
from callmark.records.samples import NOT_RECORDED

# How a span is read: by the first dialect whose attributes it has.
DIALECTS: tuple[tuple[str, Callable[[TraceSpan], bool], Callable[[TraceSpan], SpanStep]], ...] = (
    ("openai-agents", is_agents_span, read_agents_span),
    ("langfuse", is_langfuse, read_langfuse),
    ("openinference", is_openinference, read_openinference),
    ("otel-genai", is_genai, read_genai),
)
_LOOKED_AT = 200  # spans of the first record, to know its dialect
# Lists of records that a file may wrap once more.
_WRAPPERS = ("items", "data", "spans", "traces")
_OURS = frozenset({"format", "trace_id", "spans", "agent", "parent", "model", "usage", "errors"})
# What holds an export as OTLP: rows of others, and Tempo's answers.
_HOLDERS = ("otlp", "trace")
_FRAME = frozenset({*_WRAPPERS, *_HOLDERS, "events", "trace_id"})


def read_span_log(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    """Spans of one trace may stand anywhere in the source, so it is read to its end first."""
    with SpanStore() as store:
        for line, value in records:
            try:
                for number, span in enumerate(spans_in(value, line)):
                    store.add(_name(span, number, desk))
            except BadSpan as error:
                raise BadInput(f"{desk.place(line)}: {error}") from None
        for spans in store.traces():
            _keep_threads(spans, store, desk)
        for line, name, is_known in store.bare():
            desk.notes.add("span_merged" if is_known else "span_without_content", line, name)
        listed: set[str] = set()
        for data in store.threads():
            imported = imported_talk(_talk(_unpack(data), desk, listed), desk)
            if imported is not None:
                yield imported


def dialect_of(value: Json) -> str | None:
    """Which dialect the spans of a record speak, None if it holds no span; of several the first in
    the table, for those write their own attributes beside others'."""
    try:
        spans = list(islice(spans_in(value, 0), _LOOKED_AT)) if is_span_record(value) else []
    except BadSpan:
        return "otel-genai" if isinstance(value, dict) and is_otlp(value) else None
    if not spans and not (isinstance(value, dict) and (is_agents_item(value) or is_otlp(value))):
        return None
    for name, speaks, _ in DIALECTS:
        if any(map(speaks, spans)):
            return name
    if isinstance(value, dict) and is_agents_item(value):
        return "openai-agents"
    return "otel-genai"


def is_span_record(value: Json) -> bool:
    """Whether a record holds spans of any shape that is known."""
    if not isinstance(value, dict) or "messages" in value:
        return False
    if is_otlp(value) or is_agents_item(value) or is_langfuse_trace(value):
        return True
    if is_observation(value) or is_plain_span(value) or _is_batch(value):
        return True
    for name in _HOLDERS:
        inner = value.get(name)
        if isinstance(inner, dict):
            return is_otlp(inner)
    for name in _WRAPPERS:
        inner = value.get(name)
        if isinstance(inner, list) and inner and is_span_record(inner[0]):
            return True
    return False


def _is_batch(value: Object) -> bool:
    match value.get("batch"):
        case [{"type": str(), "body": dict()}, *_]:
            return True
    return False


def spans_in(value: Json, line: int, trace: str = "") -> Iterator[TraceSpan]:
    """Every span of a record, by the shape that it has."""
    whole = object_in(value, "a record")
    holder = next((one for one in _HOLDERS if isinstance(whole.get(one), dict)), None)
    if holder is not None and is_otlp(object_in(whole[holder], holder)):
        spans = list(spans_of_otlp(object_in(whole[holder], holder), line))
        events = list_in(whole.get("events"), "events")
        yield from _with_row(_with_events(spans, events, line), whole)
    elif is_otlp(whole):
        yield from spans_of_otlp(whole, line)
    elif is_agents_item(whole):
        yield span_of_item(whole, line)
    elif is_langfuse_trace(whole):
        yield from spans_of_trace(whole, line)
    elif is_observation(whole):
        yield span_of_observation(whole, line, trace)
    elif _is_batch(whole):
        yield from spans_of_batch(whole, line)
    elif is_plain_span(whole):
        yield from spans_of_plain(whole, line, trace)
    else:
        name = next((one for one in _WRAPPERS if isinstance(whole.get(one), list)), None)
        if name is None:
            raise BadSpan("holds no span: neither OTLP, nor a span, a trace or an observation")
        # Observations of one trace, as an API gives them, need not repeat its name.
        below = text_in(whole.get("trace_id")) or trace or f"line-{line}"
        inner = (span for one in list_in(whole[name], name) for span in spans_in(one, line, below))
        # The pages of an API say which page they are: nothing of the conversations.
        yield from inner if name == "data" else _with_row(inner, whole)


def _with_row(spans: Iterable[TraceSpan], row: Object) -> Iterator[TraceSpan]:
    """What else a row says stays with its first span."""
    more = {name: value for name, value in row.items() if name not in _FRAME and value is not None}
    for span in spans:
        yield msgspec.structs.replace(span, row=more) if more else span
        more = {}


def _with_events(spans: list[TraceSpan], raw: list[Json], line: int) -> Iterator[TraceSpan]:
    """Events that stand beside the spans of a row: by span id, else by the id of the response,
    else they are the first span's."""
    events = [_event(object_in(one, "events")) for one in raw]
    left: list[tuple[str, SpanEvent]] = []
    by_response: dict[Json, list[SpanEvent]] = {}
    for span_id, event in events:
        response = event.attributes.get("gen_ai.response.id")
        if span_id or not isinstance(response, str):
            left.append((span_id, event))
        else:
            by_response.setdefault(response, []).append(event)
    for span in spans:
        response = span.attributes.get("gen_ai.response.id")
        own = by_response.pop(response, []) if isinstance(response, str) else []
        own += [event for span_id, event in left if span_id in ("", span.id)]
        left = [(span_id, event) for span_id, event in left if span_id not in ("", span.id)]
        yield msgspec.structs.replace(span, events=(*span.events, *own)) if own else span
    left += [("", event) for events in by_response.values() for event in events]
    for span_id, event in left:  # its span may stand in another row
        trace = spans[0].trace if spans else ""
        yield TraceSpan(line=line, trace=trace, id=span_id, events=(event,), is_log=True)


def _event(raw: Object) -> tuple[str, SpanEvent]:
    name = text_in(raw.get("event_name")) or text_in(raw.get("name")) or ""
    attributes = object_in(raw.get("attributes"), "attributes")
    span_id = text_in(raw.get("span_id")) or text_in(raw.get("spanId")) or ""
    return span_id, SpanEvent(name=name, attributes=attributes, body=raw.get("body"))


def _name(span: TraceSpan, number: int, desk: Desk) -> TraceSpan:
    """Every span has a name of its own, and belongs to a trace."""
    if span.trace and span.id:
        return span
    desk.notes.add("span_without_id", span.line, span.name)
    own = span.id or f"line-{span.line}-span-{number + 1}"
    return msgspec.structs.replace(span, id=own, trace=span.trace or own)


# --- from a trace to threads ---------------------------------------------------------------------


def _keep_threads(spans: list[TraceSpan], store: SpanStore, desk: Desk) -> None:
    steps: list[tuple[str, SpanStep]] = []
    for span in _unite(spans, desk):
        try:
            steps.append(_read(span))
        except BadSpan as error:
            raise BadInput(f"{desk.place(span.line)}: span {span.id}: {error}") from None
    trace = TraceThreads(steps, desk.notes)
    threads = trace.read()
    for _, step in steps:
        if step.kind == "model" and step.has_content and step.response_id is not None:
            store.add_response(step.response_id)
    for step in trace.unsaid:
        store.add_bare(step.response_id, step.span.line, step.span.name)
    renamed: dict[str, str] = {}
    for thread in threads:
        parent = None if thread.parent is None else renamed.get(thread.parent, thread.parent)
        whole = _continue_earlier(msgspec.structs.replace(thread, parent=parent), store)
        renamed[thread.sample_id] = whole.sample_id
        store.put_thread(_pack(whole), whole.end)


def _unite(spans: list[TraceSpan], desk: Desk) -> list[TraceSpan]:
    """Log records go to their spans; a span that was exported twice counts once."""
    found: dict[str, TraceSpan] = {}
    logs: dict[str, list[TraceSpan]] = {}
    for span in spans:
        if span.is_log:
            logs.setdefault(span.id, []).append(span)
        elif span.id in found:
            desk.notes.add(
                "span_merged", span.line, f"{span.name}: a second span of the id {span.id}"
            )
        else:
            found[span.id] = span
    for own, records in logs.items():
        home = found.get(own, records[0])
        events = [event for record in records for event in record.events]
        known = () if own not in found else home.events
        found[own] = msgspec.structs.replace(home, events=(*known, *events))
    return sorted(found.values(), key=lambda span: span.start)


def _read(span: TraceSpan) -> tuple[str, SpanStep]:
    for name, speaks, read in DIALECTS:
        if speaks(span):
            return name, read(span)
    return "otel-genai", SpanStep(span=span, kind="structure", name=span.name)


def _continue_earlier(thread: Thread, store: SpanStore) -> Thread:
    """A chat whose requests are traces of their own: each holds what was said before."""
    for at in range(len(thread.heads) - 1, -1, -1):
        if thread.messages[at]["role"] != "assistant" if at < len(thread.messages) else True:
            continue
        data = store.take_thread(thread.heads[at])
        if data is None:
            continue
        earlier = _unpack(data)
        last = max(k for k, one in enumerate(earlier.messages) if one["role"] == "assistant")
        turns = sum(one["role"] == "assistant" for one in thread.messages[: at + 1])
        return msgspec.structs.replace(
            earlier,
            messages=[*earlier.messages[: last + 1], *thread.messages[at + 1 :]],
            spans=[*earlier.spans, *thread.spans[turns:]],
            end=thread.end,
            tools=[*earlier.tools, *(one for one in thread.tools if one not in earlier.tools)],
            model=thread.model or earlier.model,
            usage=(earlier.usage[0] + thread.usage[0], earlier.usage[1] + thread.usage[1]),
            errors=[*earlier.errors, *thread.errors],
            deeds=earlier.deeds + thread.deeds,
        )
    return thread


def _talk(thread: Thread, desk: Desk, listed: set[str]) -> Talk:
    messages = thread.messages
    desk.meet(thread.dialect)
    has_turns = any(one["role"] == "assistant" for one in messages)
    if has_turns and not opening_length(messages):
        desk.notes.add("prompt_not_recorded", thread.line, thread.sample_id)
        messages = [{"role": "user", "content": NOT_RECORDED}, *messages]
    usage = {"input_tokens": thread.usage[0], "output_tokens": thread.usage[1]}
    return Talk(
        line=thread.line,
        sample_id=thread.sample_id,
        messages=messages,
        tools=[_spec(one, thread.line, desk, listed) for one in thread.tools] or None,
        lists_all=False,
        about={
            "format": thread.dialect,
            "trace_id": thread.trace,
            "spans": thread.spans,
            "agent": thread.agent,
            "parent": thread.parent,
            "model": thread.model,
            "usage": usage if any(thread.usage) else None,
            "errors": thread.errors or None,
            **{name: value for name, value in thread.row.items() if name not in _OURS},
        },
        scores=thread.scores,
        own_deeds=thread.deeds > 0,
        error=None if has_turns or not thread.errors else str(thread.errors[0]["error"]),
    )


def _spec(tool: Json, line: int, desk: Desk, listed: set[str]) -> Json:
    """A tool that is only named takes anything."""
    if not isinstance(tool, str):
        return tool
    if tool not in listed:
        listed.add(tool)
        desk.notes.add("tool_without_schema", line, tool)
    return spec_of_name(tool)


_pack = msgspec.json.Encoder().encode
_unpack = msgspec.json.Decoder(Thread).decode
