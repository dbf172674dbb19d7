"""OpenTelemetry's conventions for generative AI, in all the forms that are found: messages on the
span, in one event, in an event each, or in numbered attributes."""

from __future__ import annotations

from callmark.datasets.importing.desk import Object
from callmark.datasets.importing.span_messages import messages_in, tools_in
from callmark.datasets.importing.spans import (
    SpanEvent,
    SpanKind,
    SpanStep,
    TraceSpan,
    first_of,
    json_in,
    nested,
    number_in,
    text_in,
)
from callmark.records.jsontext import Json

_KINDS: dict[str, SpanKind] = {
    "chat": "model",
    "llm": "model",
    "completion": "model",
    "text_completion": "model",
    "generate_content": "model",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "create_agent": "structure",
    "invoke_workflow": "structure",
    "embeddings": "other",
    "retrieval": "other",
    # OpenLLMetry's own word for spans of the program
    "tool": "tool",
    "agent": "agent",
    "workflow": "structure",
    "task": "structure",
}
_DETAILS = "gen_ai.client.inference.operation.details"
_CHOICE = "gen_ai.choice"
_SAYS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    _CHOICE: "assistant",
    "gen_ai.content.prompt": "user",
    "gen_ai.content.completion": "assistant",
}


def is_genai(span: TraceSpan) -> bool:
    return any(event.name.startswith("gen_ai.") for event in span.events) or any(
        name.startswith(("gen_ai.", "traceloop.", "llm.request.")) for name in span.attributes
    )


def read_genai(span: TraceSpan) -> SpanStep:
    details = next((one for one in span.events if one.name == _DETAILS), None)
    attributes = span.attributes
    if details is not None:
        body = details.body if isinstance(details.body, dict) else {}
        attributes = {**body, **details.attributes, **attributes}
    kind = _kind_of(span, attributes)
    if kind == "tool":
        return _tool_step(span, attributes)
    before, output, others = _messages_of(span, attributes)
    choices = _choices(attributes, output)
    return SpanStep(
        span=span,
        kind=kind,
        name=text_in(first_of(attributes, "gen_ai.agent.name", "traceloop.entity.name"))
        or span.name,
        before=before,
        output=output if choices < 2 or output is None else output[:1],
        others=others + choices - 1,
        tools=_tools_of(attributes),
        response_id=text_in(attributes.get("gen_ai.response.id")),
        model=text_in(first_of(attributes, "gen_ai.response.model", "gen_ai.request.model")),
        usage=(
            number_in(
                first_of(attributes, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
            ),
            number_in(
                first_of(attributes, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
            ),
        ),
    )


def _kind_of(span: TraceSpan, attributes: Object) -> SpanKind:
    named = first_of(attributes, "gen_ai.operation.name", "traceloop.span.kind", "llm.request.type")
    if isinstance(named, str) and named.lower() in _KINDS:
        return _KINDS[named.lower()]
    if "gen_ai.tool.name" in attributes:
        return "tool"
    is_model = any(
        name in attributes
        for name in ("gen_ai.request.model", "gen_ai.response.model", "gen_ai.input.messages")
    ) or any(event.name in _SAYS for event in span.events)
    is_model = is_model or any(name.startswith("gen_ai.prompt.") for name in attributes)
    if "gen_ai.agent.name" in attributes and not is_model:
        return "agent"
    return "model" if is_model else "structure"


def _tool_step(span: TraceSpan, attributes: Object) -> SpanStep:
    entity = json_in(attributes.get("traceloop.entity.input"))
    if isinstance(entity, dict):  # OpenLLMetry: the arguments of the function
        entity = first_of(entity, "inputs", "kwargs", "input_str") or entity
    result = first_of(
        attributes,
        "gen_ai.tool.call.result",
        "gen_ai.tool.result",
        "gen_ai.tool.message",
        "tool_response",
        "traceloop.entity.output",
    )
    said = [event for event in span.events if event.name == _CHOICE]
    if result is None and said:  # Strands
        result = first_of(said[-1].attributes, "message", "content")
    name = first_of(attributes, "gen_ai.tool.name", "traceloop.entity.name")
    arguments = first_of(
        attributes, "gen_ai.tool.call.arguments", "gen_ai.tool.arguments", "tool_arguments"
    )
    return SpanStep(
        span=span,
        kind="tool",
        name=text_in(name) or span.name.removeprefix("execute_tool "),
        call_id=text_in(attributes.get("gen_ai.tool.call.id")),
        arguments=json_in(arguments) if arguments is not None else json_in(entity),
        result=result,
        has_result=result is not None,
    )


def _messages_of(
    span: TraceSpan, attributes: Object
) -> tuple[list[Object] | None, list[Object] | None, int]:
    """What went in, what came out, and how many other answers there were."""
    whole = first_of(attributes, "pydantic_ai.all_messages", "all_messages_events")
    before = attributes.get("gen_ai.input.messages")
    output = attributes.get("gen_ai.output.messages")
    if before is not None or output is not None or whole is not None:
        told = messages_in(attributes.get("gen_ai.system_instructions"), "system")
        asked = messages_in(before if whole is None else whole)
        system = [{**one, "role": "system"} for one in told]
        if asked[: len(system)] == system:
            system = []
        return [*system, *asked], messages_in(output, "assistant"), 0
    events = [event for event in span.events if event.name in _SAYS] or _listed_events(attributes)
    if events:
        return _of_events(events)
    return *_of_numbers(attributes), 0


def _listed_events(attributes: Object) -> list[SpanEvent]:
    """Pydantic AI once wrote the events of a span into one attribute."""
    listed = json_in(attributes.get("events"))
    found = []
    for one in listed if isinstance(listed, list) else []:
        name = one.get("event.name") if isinstance(one, dict) else None
        if isinstance(name, str) and name in _SAYS:
            found.append(SpanEvent(name=name, body=one))
    return found


def _of_events(events: list[SpanEvent]) -> tuple[list[Object], list[Object], int]:
    before: list[Object] = []
    output: list[Object] = []
    others = 0
    for event in events:
        role = _SAYS[event.name]
        raw = _said_in(event)
        if event.name in (_CHOICE, "gen_ai.content.completion"):
            index = raw.get("index") if isinstance(raw, dict) else None
            inner = raw.get("message") if isinstance(raw, dict) else None
            if index:
                others += 1
            else:
                output += messages_in(raw if inner is None else inner, role)
        else:
            before += messages_in({"role": role, **raw} if isinstance(raw, dict) else raw, role)
    return before, output, others


def _said_in(event: SpanEvent) -> Json:
    """The body of a log record, or what an event of a span has in its attributes."""
    if isinstance(event.body, dict):
        return event.body
    given = event.attributes
    whole = json_in(first_of(given, "gen_ai.event.content", "gen_ai.prompt", "gen_ai.completion"))
    if whole is not None:
        return whole
    kept = ("role", "content", "id", "tool_calls", "message", "index", "name")
    return {name: json_in(given[name]) for name in kept if name in given}


def _of_numbers(attributes: Object) -> tuple[list[Object] | None, list[Object] | None]:
    """`gen_ai.prompt.0.content` and its like, OpenLLMetry's first way."""
    wanted = {
        name: value
        for name, value in attributes.items()
        if name.startswith(("gen_ai.prompt.", "gen_ai.completion."))
    }
    tree = nested(wanted).get("gen_ai")
    if not isinstance(tree, dict):
        return None, None
    return messages_in(tree.get("prompt")), messages_in(tree.get("completion"), "assistant")


def _choices(attributes: Object, output: list[Object] | None) -> int:
    """Several messages are several choices only if there are as many reasons to finish; else they
    are the parts of one answer."""
    reasons = attributes.get("gen_ai.response.finish_reasons")
    number = len(output or ())
    return number if isinstance(reasons, list) and len(reasons) == number > 1 else 1


def _tools_of(attributes: Object) -> tuple[Json, ...]:
    given = first_of(attributes, "gen_ai.tool.definitions", "gen_ai.request.tools")
    if given is not None:
        return tools_in(given)
    wanted = {
        name: value
        for name, value in attributes.items()
        if name.startswith("llm.request.functions.")
    }
    if wanted:
        tree = nested(wanted)["llm"]
        match tree:
            case {"request": {"functions": functions}}:
                return tools_in(functions)
    parameters = json_in(attributes.get("model_request_parameters"))  # Pydantic AI
    functions = parameters.get("function_tools") if isinstance(parameters, dict) else None
    if not isinstance(functions, list):
        return ()
    return tools_in(
        [
            {**one, "parameters": one.get("parameters_json_schema")}
            for one in functions
            if isinstance(one, dict)
        ]
    )
