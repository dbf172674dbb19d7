"""Traces of the OpenAI Agents SDK: `trace` and `trace.span` objects, as its exporter sends them."""

from __future__ import annotations

from callmark.datasets.importing.desk import Object
from callmark.datasets.importing.span_messages import messages_in, tools_in
from callmark.datasets.importing.spans import (
    SpanKind,
    SpanStep,
    TraceSpan,
    first_of,
    json_in,
    nanoseconds,
    number_in,
    object_in,
    text_in,
)
from callmark.records.jsontext import Json

# Where the data of such a span stand among its attributes.
SPAN_DATA = "openai.agents.span_data"
_KINDS: dict[str, SpanKind] = {
    "generation": "model",
    "response": "model",
    "function": "tool",
    "agent": "agent",
    "custom": "structure",
    "task": "structure",
    "turn": "structure",
    "handoff": "structure",
}


def is_agents_item(value: Object) -> bool:
    return value.get("object") in ("trace", "trace.span")


def span_of_item(raw: Object, line: int) -> TraceSpan:
    """A span; a `trace` is one too, which says how the others are called together."""
    if raw.get("object") == "trace":
        name = text_in(raw.get("id")) or ""
        return TraceSpan(
            line=line,
            trace=name,
            id=name,
            name=text_in(raw.get("workflow_name")) or "",
            attributes={SPAN_DATA: {"type": "task"}},
        )
    data = object_in(raw.get("span_data"), "span_data")
    return TraceSpan(
        line=line,
        trace=text_in(raw.get("trace_id")) or "",
        id=text_in(raw.get("id")) or "",
        parent=text_in(raw.get("parent_id")) or "",
        name=text_in(data.get("name")) or str(data.get("type") or ""),
        scope="openai-agents",
        start=nanoseconds(raw.get("started_at")),
        attributes={SPAN_DATA: data},
        error=_error_of(raw.get("error")),
    )


def _error_of(failure: Json) -> str | None:
    """What went wrong; the SDK says it in general, and the details below `data`."""
    match failure:
        case None:
            return None
        case {"message": str(message), "data": {"error": str(details)}}:
            return f"{message}: {details}"
        case {"message": str(message)} if message:
            return message
    return text_in(failure) or "error"


def is_agents_span(span: TraceSpan) -> bool:
    return SPAN_DATA in span.attributes


def read_agents_span(span: TraceSpan) -> SpanStep:
    data = object_in(span.attributes[SPAN_DATA], "span_data")
    kind = _KINDS.get(str(data.get("type")), "other")
    if kind == "tool":
        result = data.get("output")
        return SpanStep(
            span=span,
            kind="tool",
            name=span.name,
            arguments=json_in(data.get("input")),
            # The exporter writes null for every result that Python takes for false.
            result="" if result is None else result,
            has_result=result is not None or span.error is None,
        )
    if kind == "model":
        return _model_step(span, data)
    names = data.get("tools") if kind == "agent" else None
    return SpanStep(
        span=span,
        kind=kind,
        name=span.name,
        tools=tuple(names) if isinstance(names, list) else (),
    )


def _model_step(span: TraceSpan, data: Object) -> SpanStep:
    """A `response` span names the response and no more, unless a processor of the user's added
    what went in and came out; a `generation` has both."""
    response = data.get("response")
    response = response if isinstance(response, dict) else {}
    given: Json = json_in(data.get("input"))
    said: Json = json_in(first_of(data, "output") or response.get("output"))
    before = None if given is None else messages_in(given)
    system = messages_in(response.get("instructions"), "system")
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return SpanStep(
        span=span,
        kind="model",
        before=None if before is None else [*system, *before],
        output=None if said is None else messages_in(said, "assistant"),
        tools=tools_in(response.get("tools") or []),
        response_id=text_in(first_of(data, "response_id") or response.get("id")),
        model=text_in(first_of(data, "model") or response.get("model")),
        usage=(
            number_in(first_of(usage, "input_tokens", "prompt_tokens")),
            number_in(first_of(usage, "output_tokens", "completion_tokens")),
        ),
    )
