"""Conversations as a local model reads them: its own chat template, with the tools really in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from callmark.calls.registry import name_of_tool
from callmark.errors import UsageError
from callmark.records.jsontext import Json, digest, want_list, want_object, want_text
from callmark.records.trace import json_inside
from callmark.runners.messages import Message, text_of

ToolsBlock = Literal["native", "fallback", "raw"]
RAW_TEXT = "raw_text"  # the field of an assistant message that keeps what the model wrote

TOOLS_BLOCK = """\
You can call these tools. Each line between the marks is one of them, as JSON.
<tools>
{tools}
</tools>
To call one, write its name and its arguments as a JSON object between these marks, once per call:
<tool_call>
{{"name": "the name of the tool", "arguments": {{"the name of an argument": "its value"}}}}
</tool_call>
The results come back between <tool_response> and </tool_response>."""

# Some templates write today's date into the prompt: here it is always the same day.
_FIXED_DATE = {
    "%A": "Friday", "%a": "Fri", "%B": "July", "%b": "Jul", "%d": "26", "%-d": "26", "%m": "07",
    "%Y": "2024", "%y": "24", "%H": "12", "%I": "12", "%M": "00", "%S": "00", "%p": "PM",
}  # fmt: skip
_PROBE = "probe-4711"
_PROBED_CALLS = (("first-4712", "result-4713"), ("second-4714", "result-4715"))


class CannotRender(Exception):
    """A chat template refuses this conversation. The text is its reason."""


class _Form(NamedTuple):
    """One way to put a conversation to a template. `gives_tools`: the template renders them."""

    gives_tools: bool
    messages: Callable[[Sequence[Message], Sequence[Json]], list[Message]]


class RawPrompts:
    """No chat template: the user's text is the exact prompt. What comes later is appended, the
    model's own words as it wrote them, results between `<tool_response>` marks."""

    tools_block: ToolsBlock = "raw"

    def text(self, messages: Sequence[Message], tools: Sequence[Json]) -> str:
        first, *later = messages
        return str(first.get("content") or "") + "".join(map(_append, later))

    def fingerprint_parts(self) -> dict[str, Json]:
        return {"chat_template": None, "tools_block": self.tools_block}


class ChatPrompts:
    """Renders with the checkpoint's chat template. What the template cannot carry (tools, calls of
    earlier turns, a system message) is written out in the text instead."""

    def __init__(self, tokenizer: Any, tools: Sequence[Json], where: str) -> None:
        self._tokenizer = tokenizer
        self._template = _template_of(tokenizer, where)
        self.has_system = True
        try:
            self._rendered([{"role": "user", "content": "Hello"}], None)
        except CannotRender as error:
            raise UsageError(
                f"--model: {where}: its chat template fails: {error}; fix it, or give the exact"
                " prompt with a .tmpl wrapper (--prompt-wrapper)"
            ) from None
        self.has_system = self._carries_system()
        self._forms = tuple(form for form in _FORMS if self._carries(form, tools))
        if not self._forms:
            raise UsageError(
                f"--model: {where}: its chat template takes no conversation with tools, nor one"
                " that spells them out; give the exact prompt with a .tmpl wrapper"
            )

    @property
    def tools_block(self) -> ToolsBlock:
        return "native" if self._forms[0].gives_tools else "fallback"

    def fingerprint_parts(self) -> dict[str, Json]:
        return {
            "chat_template": digest(self._template),
            "tools_block": self.tools_block,
            "system_role": self.has_system,
        }

    def text(self, messages: Sequence[Message], tools: Sequence[Json]) -> str:
        """The prompt, up to where the model speaks; raises CannotRender."""
        messages = _plain_messages(messages)
        refusal = CannotRender("no tool block is complete")
        for form in self._forms:
            try:
                text = self._formed(form, messages, tools)
            except CannotRender as error:
                refusal = error
                continue
            if all(name in text for name in _names(tools)):
                return text
        raise refusal

    def end_of_turn(self) -> str:
        """What the template writes after an assistant's words."""
        said: list[Message] = [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": _PROBE},
        ]
        try:
            text = self._rendered(said, None, opens_turn=False)
        except CannotRender:
            return ""
        return text.rpartition(_PROBE)[2]

    def _formed(self, form: _Form, messages: Sequence[Message], tools: Sequence[Json]) -> str:
        made = form.messages(messages, tools)
        made = [{k: v for k, v in one.items() if k != RAW_TEXT} for one in made]
        if not self.has_system:
            made = _without_system(made)
        return self._rendered(made, list(tools) if form.gives_tools and tools else None)

    def _rendered(
        self, messages: list[Message], tools: list[Json] | None, *, opens_turn: bool = True
    ) -> str:
        import jinja2

        try:
            text: str = self._tokenizer.apply_chat_template(
                messages,
                tools=tools,
                chat_template=self._template,
                add_generation_prompt=opens_turn,
                tokenize=False,
            )
        except (
            jinja2.TemplateError,
            TypeError,
            ValueError,
            LookupError,
            AttributeError,
            ArithmeticError,
            RecursionError,
            ImportError,
        ) as error:
            raise CannotRender(" ".join(str(error).split())[:300]) from None
        return text

    def _carries_system(self) -> bool:
        said: list[Message] = [
            {"role": "system", "content": _PROBE},
            {"role": "user", "content": "Hello"},
        ]
        try:
            return _PROBE in self._rendered(said, None)
        except CannotRender:
            return False

    def _carries(self, form: _Form, tools: Sequence[Json]) -> bool:
        """Whether every tool, and two calls made at once with their results, can be read in what
        this form renders."""
        names = list(_names(tools))
        said = _probing_turn(names[0] if names else "probe")
        try:
            opening = self._formed(form, said[:1], tools)
            later = self._formed(form, said, tools)
        except CannotRender:
            return False
        parts = [part for pair in _PROBED_CALLS for part in pair]
        return all(name in opening for name in names) and all(
            part in later for part in (*names, *parts)
        )


def open_prompts(
    tokenizer: Any, tools: Sequence[Json], *, raw: bool, where: str
) -> ChatPrompts | RawPrompts:
    return RawPrompts() if raw else ChatPrompts(tokenizer, tools, where)


def _template_of(tokenizer: Any, where: str) -> str:
    try:
        found: str = tokenizer.get_chat_template(tools=[])
    except ValueError:
        raise UsageError(
            f"--model: {where}: has no chat template: add chat_template.jinja, or give the exact"
            " prompt with a .tmpl wrapper (--prompt-wrapper)"
        ) from None
    return _date_macro() + found if "strftime_now" in found else found


def _date_macro() -> str:
    """A macro takes the place of the function that reads the clock."""
    written = "format" + "".join(f"|replace('{k}','{v}')" for k, v in _FIXED_DATE.items())
    # The empty text keeps a newline at the start of the template from being trimmed.
    return f"{{% macro strftime_now(format) %}}{{{{ {written} }}}}{{% endmacro %}}{{{{ '' }}}}"


def _names(tools: Sequence[Json]) -> Iterator[str]:
    return (name_of_tool(want_object(tool)) for tool in tools)


def _plain_messages(messages: Sequence[Message]) -> list[Message]:
    """Text for contents, objects for arguments, short ids, and the tool's name at its result: what
    one template or another insists on."""
    made: list[Message] = []
    ids: dict[Json, tuple[str, str]] = {}
    for message in messages:
        plain = {key: value for key, value in message.items() if value is not None}
        plain["content"] = _text_only(message.get("content"))
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            plain["tool_calls"] = [_plain_call(call, ids) for call in calls]
        if message.get("tool_call_id") in ids:
            plain["tool_call_id"], plain["name"] = ids[message["tool_call_id"]]
        made.append(plain)
    return made


def _text_only(content: Json) -> str:
    parts = content if isinstance(content, list) else ()
    for part in parts:
        kind = part.get("type", "text") if isinstance(part, dict) else "text"
        if kind != "text":
            raise CannotRender(f"the prompt holds a part that is no text ({kind})")
    return text_of(content)


def _plain_call(call: Json, ids: dict[Json, tuple[str, str]]) -> Json:
    made = want_object(call)
    function = want_object(made["function"])
    given, name = function.get("arguments"), want_text(function["name"])
    arguments = json_inside(given) if isinstance(given, str) else given
    ids[made.get("id")] = (_call_id(len(ids) + 1), name)
    return {
        "id": ids[made.get("id")][0],
        "type": "function",
        "function": {"name": name, "arguments": {} if arguments == "" else arguments},
    }


def _probing_turn(name: str) -> list[Message]:
    numbered = list(enumerate(_PROBED_CALLS, start=1))
    calls = [
        {
            "id": _call_id(number),
            "type": "function",
            "function": {"name": name, "arguments": {"probe": value}},
        }
        for number, (value, _) in numbered
    ]
    results: list[Message] = [
        {"role": "tool", "tool_call_id": _call_id(number), "name": name, "content": result}
        for number, (_, result) in numbered
    ]
    asked: Message = {"role": "user", "content": "Hello"}
    return [asked, {"role": "assistant", "content": "", "tool_calls": calls}, *results]


def _call_id(number: int) -> str:
    return f"call{number:05}"  # nine letters and digits: some templates refuse all else


def _as_they_are(messages: Sequence[Message], tools: Sequence[Json]) -> list[Message]:
    return list(messages)


def _one_call_a_message(messages: Sequence[Message], tools: Sequence[Json]) -> list[Message]:
    """Calls made side by side as calls made one after the other."""
    made: list[Message] = []
    results = {one.get("tool_call_id"): one for one in messages if one.get("role") == "tool"}
    moved: set[Json] = set()
    for message in messages:
        calls = list(map(want_object, want_list(message.get("tool_calls"))))
        if message.get("tool_call_id") in moved:
            continue
        if len(calls) < 2:
            made.append(message)
            continue
        for position, call in enumerate(calls):
            content = message["content"] if position == 0 else ""
            made.append({**message, "content": content, "tool_calls": [call]})
            if call["id"] in results:
                made.append(results[call["id"]])
                moved.add(call["id"])
    return made


def _in_own_words(messages: Sequence[Message], tools: Sequence[Json]) -> list[Message]:
    """Calls inside the text, as the model wrote them: for templates that know no others."""
    return [
        {"role": "assistant", "content": one.get(RAW_TEXT) or _mark(one)}
        if one.get("tool_calls")
        else one
        for one in messages
    ]


def _written_out(messages: Sequence[Message], tools: Sequence[Json]) -> list[Message]:
    """Tools in a system block, calls and results as marked text; neighbours of one role joined."""
    made: list[Message] = []
    if tools:
        lines = "\n".join(msgspec.json.encode(tool).decode() for tool in tools)
        made.append({"role": "system", "content": TOOLS_BLOCK.format(tools=lines)})
    for message in messages:
        role = "user" if message["role"] == "tool" else message["role"]
        content = _mark(message)
        if made and made[-1]["role"] == role:
            made[-1] = {"role": role, "content": f"{made[-1]['content']}\n\n{content}"}
        else:
            made.append({"role": role, "content": content})
    return made


# In this order; the first that a template carries is used.
_FORMS = (
    _Form(True, _as_they_are),
    _Form(True, _one_call_a_message),
    _Form(True, _in_own_words),
    _Form(False, _written_out),
)


def _mark(message: Message) -> str:
    if message["role"] == "tool":
        return f"<tool_response>\n{message['content']}\n</tool_response>"
    calls = [want_object(call)["function"] for call in want_list(message.get("tool_calls"))]
    texts = [f"<tool_call>\n{msgspec.json.encode(call).decode()}\n</tool_call>" for call in calls]
    return "\n".join(filter(None, (want_text(message["content"]), *texts)))


def _without_system(messages: Sequence[Message]) -> list[Message]:
    """For templates that know no system role: its text stands before the user's first words."""
    system = [want_text(one["content"]) for one in messages if one["role"] == "system"]
    others = [dict(one) for one in messages if one["role"] != "system"]
    first = next((one for one in others if one["role"] == "user"), None)
    if system and first is not None:
        first["content"] = "\n\n".join((*system, want_text(first["content"])))
    return others


def _append(message: Message) -> str:
    if message.get("role") == "assistant":
        return str(message.get(RAW_TEXT, message.get("content") or ""))
    text = text_of(message.get("content"))
    shown = f"<tool_response>\n{text}\n</tool_response>" if message.get("role") == "tool" else text
    return f"\n{shown}\n"
