"""OpenInference: spans of Arize's instrumentations, flat as in OTLP or as a tree as in Phoenix."""

from __future__ import annotations

from callmark.datasets.importing.desk import Object
from callmark.datasets.importing.span_messages import is_message, messages_in, tools_in
from callmark.datasets.importing.spans import (
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
    "LLM": "model",
    "TOOL": "tool",
    "AGENT": "agent",
    "CHAIN": "structure",
    "PROMPT": "structure",
}


def is_openinference(span: TraceSpan) -> bool:
    if "openinference" in span.attributes:
        return True
    return any(
        name.startswith(("openinference.", "llm.input_messages.", "llm.output_messages."))
        for name in span.attributes
    )


def read_openinference(span: TraceSpan) -> SpanStep:
    tree = nested(span.attributes)
    named = str(_at(tree, "openinference", "span", "kind") or "LLM").upper()
    kind = _KINDS.get(named, "other")
    if kind == "tool":
        return _tool_step(span, tree)
    if kind != "model":
        return SpanStep(span=span, kind=kind, name=text_in(_at(tree, "agent", "name")) or span.name)
    llm = _at(tree, "llm")
    llm = llm if isinstance(llm, dict) else {}
    given = json_in(llm.get("input_messages"))
    said = json_in(llm.get("output_messages"))
    whole = json_in(_at(tree, "output", "value"))
    before = messages_in(given) if given is not None else _values(_at(tree, "input", "value"))
    output = messages_in(said, "assistant") if said is not None else _answer(whole, span)
    response = whole.get("id") if isinstance(whole, dict) else None
    choices = whole.get("choices") if isinstance(whole, dict) else None
    others = len(choices) - 1 if isinstance(choices, list) and choices else 0
    if others and output is not None:
        output = output[:1]  # else they are the items of one answer
    return SpanStep(
        span=span,
        kind="model",
        before=before,
        output=output,
        others=others,
        tools=tools_in(_tool_list(llm.get("tools"))),
        response_id=text_in(response),
        model=text_in(llm.get("model_name")),
        usage=(
            number_in(_at(llm, "token_count", "prompt")),
            number_in(_at(llm, "token_count", "completion")),
        ),
    )


def _values(value: Json) -> list[Object] | None:
    """What went in, where no messages are listed: those of the request, or the text."""
    value = json_in(value)
    if isinstance(value, dict):
        value = first_of(value, "messages", "input", "contents")
    if value is None:
        return None
    if isinstance(value, list) and not all(is_message(one) for one in value):
        return None
    return messages_in(value)


def _answer(value: Json, span: TraceSpan) -> list[Object] | None:
    if span.error is not None and value is None:
        return None
    if isinstance(value, str):
        return messages_in(value, "assistant")
    if not isinstance(value, dict):
        return None
    choices = value.get("choices")
    if isinstance(choices, list):
        return messages_in(choices[:1], "assistant")
    found = first_of(value, "output", "content")
    return None if found is None else messages_in(found, "assistant")


def _tool_step(span: TraceSpan, tree: Object) -> SpanStep:
    arguments = json_in(first_of(_branch(tree, "input"), "value"))
    if arguments is None:
        arguments = json_in(_at(tree, "tool_call", "function", "arguments"))
    result = _branch(tree, "output").get("value")
    call_id = first_of(_branch(tree, "tool"), "id", "call_id") or _at(tree, "tool_call", "id")
    return SpanStep(
        span=span,
        kind="tool",
        name=text_in(_branch(tree, "tool").get("name")) or span.name,
        call_id=text_in(call_id),
        arguments=arguments,
        result=result,
        has_result=result is not None,
    )


def _tool_list(tools: Json) -> list[Json]:
    """`tool.json_schema` of each; what else a tool says is kept where there is no schema."""
    found: list[Json] = []
    for one in tools if isinstance(tools, list) else []:
        tool = one.get("tool") if isinstance(one, dict) else None
        tool = tool if isinstance(tool, dict) else one
        schema = tool.get("json_schema") if isinstance(tool, dict) else None
        found.append(tool if schema is None else schema)
    return found


def _branch(tree: Object, name: str) -> Object:
    found = tree.get(name)
    return found if isinstance(found, dict) else {}


def _at(tree: Json, *path: str) -> Json:
    for step in path:
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree
