"""Langfuse: the attributes that its SDKs send; traces and observations as its API exports them."""

from __future__ import annotations

from collections.abc import Iterator

from callmark.datasets.importing.desk import Object
from callmark.datasets.importing.span_messages import messages_in, tools_in
from callmark.datasets.importing.spans import (
    SpanKind,
    SpanStep,
    TraceSpan,
    first_of,
    json_in,
    list_in,
    nanoseconds,
    number_in,
    object_in,
    text_in,
)
from callmark.records.jsontext import Json

_PREFIX = "langfuse.observation."
_SCORES = "langfuse.trace.scores"
_KINDS: dict[str, SpanKind] = {
    "generation": "model",
    "tool": "tool",
    "agent": "agent",
    "span": "structure",
    "chain": "structure",
}
_TYPES = frozenset({*_KINDS, "event", "retriever", "embedding", "evaluator", "guardrail"})
_TRACE = ("traceId", "trace_id")
_PARENT = ("parentObservationId", "parent_observation_id")


def is_langfuse(span: TraceSpan) -> bool:
    return any(name.startswith(_PREFIX) for name in span.attributes)


def is_observation(value: Object) -> bool:
    kind = value.get("type")
    is_known = isinstance(kind, str) and kind.lower() in _TYPES
    return is_known and "id" in value and any(name in value for name in (*_TRACE, *_PARENT))


def is_langfuse_trace(value: Object) -> bool:
    return isinstance(value.get("observations"), list) and "id" in value


def spans_of_trace(value: Object, line: int) -> Iterator[TraceSpan]:
    """A trace with its observations. Where these are only named, they stand elsewhere."""
    trace = text_in(value.get("id")) or ""
    yield TraceSpan(
        line=line,
        trace=trace,
        id=f"trace {trace}" if trace else "",
        name=text_in(value.get("name")) or "",
        start=nanoseconds(value.get("timestamp")),
        attributes={_PREFIX + "type": "span", _SCORES: value.get("scores")},
    )
    for raw in list_in(value.get("observations"), "observations"):
        if not isinstance(raw, str):
            yield span_of_observation(object_in(raw, "observations"), line, trace)


def spans_of_batch(value: Object, line: int) -> Iterator[TraceSpan]:
    """What older SDKs sent: an observation is made, and changed by later events."""
    made: dict[str, Object] = {}
    for raw in list_in(value.get("batch"), "batch"):
        event = object_in(raw, "batch")
        body = object_in(event.get("body"), "body")
        kind, _, _ = str(event.get("type")).partition("-")
        kind = str(body.get("type") or kind)
        name = text_in(body.get("id")) or ""
        if kind.lower() in _TYPES:
            known = {key: one for key, one in body.items() if one is not None}
            made[name] = {"type": kind, **made.get(name, {}), **known}
    for body in made.values():
        yield span_of_observation(body, line, "")


def span_of_observation(raw: Object, line: int, trace: str) -> TraceSpan:
    is_error = str(raw.get("level")).upper() == "ERROR"
    message = text_in(first_of(raw, "statusMessage", "status_message"))
    kept = {
        "type": str(raw.get("type")).lower(),
        "input": raw.get("input"),
        "output": raw.get("output"),
        "metadata": raw.get("metadata"),
        "model.name": first_of(raw, "model", "providedModelName", "provided_model_name"),
        "usage_details": first_of(raw, "usageDetails", "usage_details", "usage"),
    }
    parent = first_of(raw, *_PARENT)
    return TraceSpan(
        line=line,
        trace=text_in(first_of(raw, *_TRACE)) or trace,
        id=text_in(raw.get("id")) or "",
        parent=text_in(parent) or "",
        name=text_in(raw.get("name")) or "",
        start=nanoseconds(first_of(raw, "startTime", "start_time")),
        attributes={_PREFIX + name: value for name, value in kept.items() if value is not None},
        error=(message or "error") if is_error else None,
    )


def read_langfuse(span: TraceSpan) -> SpanStep:
    own = {
        name.removeprefix(_PREFIX): value
        for name, value in span.attributes.items()
        if name.startswith(_PREFIX)
    }
    kind = _KINDS.get(str(own.get("type", "span")).lower(), "other")
    given, said = json_in(own.get("input")), json_in(own.get("output"))
    if kind == "tool":
        return SpanStep(
            span=span,
            kind="tool",
            name=span.name,
            call_id=_call_id(given, said),
            arguments=_arguments(given),
            result=_result(said),
            has_result=said is not None,
        )
    if kind != "model":
        scores = _scores(span.attributes.get(_SCORES))
        return SpanStep(span=span, kind=kind, name=span.name, scores=scores)
    tools, before = _request(given)
    usage = json_in(own.get("usage_details"))
    usage = usage if isinstance(usage, dict) else {}
    return SpanStep(
        span=span,
        kind="model",
        before=before,
        output=None if said is None else messages_in(_choice(said), "assistant"),
        others=_other_choices(said),
        tools=tools,
        response_id=text_in(span.attributes.get("gen_ai.response.id")),
        model=text_in(own.get("model.name")),
        usage=(
            number_in(first_of(usage, "input", "prompt_tokens", "input_tokens")),
            number_in(first_of(usage, "output", "completion_tokens", "output_tokens")),
        ),
    )


def _request(given: Json) -> tuple[tuple[Json, ...], list[Object] | None]:
    """Messages, or a request with its tools. The callback for LangChain lists the tools among
    the messages, as ones of the role `tool` that hold a spec."""
    tools: list[Json] = []
    if isinstance(given, dict) and any(name in given for name in ("messages", "input", "contents")):
        tools += tools_in(given.get("tools") or [])
        system = first_of(given, "system", "instructions")
        asked = messages_in(first_of(given, "messages", "input", "contents"))
        return tuple(tools), [*messages_in(system, "system"), *asked]
    if not isinstance(given, list):
        return (), None if given is None else messages_in(given)
    messages: list[Json] = []
    for one in given:
        match one:
            case {"role": "tool", "content": {"type": "function"} as spec}:
                tools += tools_in(spec)
            case _:
                messages.append(one)
    return tuple(tools), messages_in(messages)


def _scores(given: Json) -> Object:
    """Of a trace; of several of one name the last."""
    return {
        str(one.get("name")): first_of(one, "stringValue", "value")
        for one in (given if isinstance(given, list) else [])
        if isinstance(one, dict) and "name" in one
    }


def _choice(said: Json) -> Json:
    if isinstance(said, dict):
        choices = said.get("choices")
        if isinstance(choices, list):
            return choices[:1]
        if "role" not in said and isinstance(said.get("output"), list):
            return said["output"]
    return said


def _other_choices(said: Json) -> int:
    choices = said.get("choices") if isinstance(said, dict) else None
    return len(choices) - 1 if isinstance(choices, list) and choices else 0


def _call_id(given: Json, said: Json) -> str | None:
    for value in (said, given):
        if isinstance(value, dict):
            found = text_in(first_of(value, "tool_call_id", "toolCallId", "call_id"))
            if found:
                return found
    return None


def _arguments(given: Json) -> Json:
    match given:
        case {"args": list(), "kwargs": dict(named)}:  # a decorated function of Python
            return named
        case {"type": "tool_call", "args": dict(named)}:  # LangChain
            return named
    return given


def _result(said: Json) -> Json:
    match said:
        case {"type": "tool", "content": content}:  # LangChain
            return content
    return said
