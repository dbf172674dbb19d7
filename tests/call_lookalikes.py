"""Calls in formats that nobody has, and texts about tools that call none."""

from __future__ import annotations

import random
from collections.abc import Iterator

TOOLS = [
    {
        "name": name,
        "description": text,
        "parameters": {"type": "object", "properties": {key: {"type": kind} for key, kind in keys}},
    }
    for name, text, keys in (
        ("get_weather", "The weather of a place.", (("city", "string"), ("days", "integer"))),
        ("web.search", "Search the web.", (("query", "string"), ("top_k", "integer"))),
        ("book_flight", "Book a flight.", (("origin", "string"), ("destination", "string"))),
        ("search", "Search the shop.", (("text", "string"), ("limit", "integer"))),
    )
]

# Each with marks of its own; every one calls get_weather for Paris, once.
MADE_UP = (
    '<|do|>get_weather<|with|>{"city": "Paris"}<|done|>',
    '<call fn="get_weather"><city>Paris</city></call>',
    '⟦call get_weather⟧ {"city": "Paris"} ⟦end⟧',
    '<<CALL get_weather>> {"city": "Paris"} <<END>>',
    "@@tool@@ get_weather @@args@@ city=Paris @@end@@",
    '#!call get_weather {"city": "Paris"}',
    "::get_weather::city=Paris::",
    '{{call:get_weather city="Paris"}}',
    '[[tool: get_weather | city: "Paris"]]',
    '(call get_weather (city "Paris"))',
    "tool: get_weather\nargs:\n  city: Paris",
    'CALL get_weather WITH {"city": "Paris"};',
    '<|fn_begin|>get_weather<|fn_args|>{"city":"Paris"}<|fn_end|>',
    '{"tool": "get_weather", "city": "Paris"}',
    '{"get_weather": {"city": "Paris"}}',
    '<action type="get_weather" city="Paris"/>',
    "%%invoke get_weather city=Paris%%",
    '$get_weather{city: "Paris"}',
    "<tool>get_weather</tool><args>city=Paris</args>",
    '«tool»get_weather«/tool» {"city": "Paris"}',
    'function_call => get_weather => {"city": "Paris"}',
    '<run_tool><id>get_weather</id><params>{"city": "Paris"}</params></run_tool>',
    '[FUNC]get_weather[PARAMS]{"city": "Paris"}[/FUNC]',
    "@get_weather(city: Paris)",
    '!tool get_weather --> {"city": "Paris"}',
    "<x:exec cmd=get_weather city=Paris>",
    '<｜act｜>get_weather<｜arg｜>{"city": "Paris"}<｜end｜>',
    'ACTION[get_weather]{"city": "Paris"}',
    "<request>\n  <method>get_weather</method>\n  <city>Paris</city>\n</request>",
    '~~~call\nget_weather\ncity = "Paris"\n~~~',
    "【get_weather】【city】Paris【/city】",
    'get_weather <- {"city": "Paris"}',
    '{"args": {"city": "Paris"}, "call": "get_weather"}',
    '{\n  "tool": "get_weather",\n  "input": {\n    "city": "Paris"\n  }\n}',
    "- use: get_weather\n  set: {city: Paris}",
    "<|get_weather|>city=Paris<|/get_weather|>",
    "<<<get_weather|city=Paris>>>",
    "/get_weather city=Paris",
    "#tool[get_weather](city=Paris)",
    '→ get_weather(city → "Paris")',
    "\\call{get_weather}{city=Paris}",
    "<get_weather>\n<city>Paris</city>\n</get_weather>",
    '<tool name="get_weather"><arg key="city" value="Paris"/></tool>',
    "BEGIN_CALL\nname=get_weather\ncity=Paris\nEND_CALL",
    "<agent:act tool='get_weather' with='{\"city\": \"Paris\"}'>",
    '<plugin>get_weather</plugin><plugin_args>{"city": "Paris"}</plugin_args>',
    '::tool get_weather tool-input {"city": "Paris"}',
    '<|exec|>{"fn": "get_weather", "kw": {"city": "Paris"}}<|/exec|>',
    '<A>get_weather</A><B>{"city": "Paris"}</B>',
    "#CALL get_weather\n#ARG city Paris\n#END",
    "<cmd>get_weather --city Paris</cmd>",
    '<ns1:execute function="get_weather"><ns1:arg name="city">Paris</ns1:arg></ns1:execute>',
    '<operator>get_weather</operator>\n<operand>{"city": "Paris"}</operand>',
    '{"tool": "get_weather", "parameters": {"city": "Paris"}}',
    '{"function_name": "get_weather", "parameters": {"city": "Paris"}}',
    '<zeta:call>get_weather | {"city": "Paris"}</zeta:call>',
    '⟨tool⟩get_weather⟨args⟩{"city":"Paris"}⟨/tool⟩',
    '!!CALL(get_weather){city:"Paris"}!!',
    '$$get_weather$$ {"city": "Paris"} $$',
    '^get_weather^{"city": "Paris"}^',
    '(tool-call :name get_weather :city "Paris")',
    '[TOOL]get_weather[/TOOL][INPUT]{"city": "Paris"}[/INPUT]',
    "<function_invocation>\n<function_name>get_weather</function_name>\n"
    '<function_args>{"city":"Paris"}</function_args>\n</function_invocation>',
)

_ABOUT = (
    "I can use {name} to look this up for you, if you like.",
    "The {name} tool takes a {key} and answers with a list.",
    "`{name}` needs the argument `{key}`. Which one do you mean?",
    'To call `{name}`, pass `{key}` as a string, for example `{name}({key}="Paris")`.',
    "There are four tools: get_weather, web.search, book_flight and search.",
    "- `{name}`: does what it says; parameters: `{key}` (string).",
    "- {name}({key}: str) -> dict: gives an answer.",
    "1. **{name}** – give it a {key} and it answers.",
    "{name} failed, because the {key} was missing. Should I try again?",
    "I did not call {name}: the question needs no tool.",
    "A tool call has a name and arguments, as in `<call>{name}</call>`.",
    "In many formats a call stands between <tool_call> and its closing tag; {name} is no exception.",
    "The mark `<tool_call>` opens a call of {name}, `</tool_call>` closes it.",
    "| tool | argument |\n|---|---|\n| {name} | {key} |",
    'You would write:\n```python\nresult = {name}({key}="Paris")\nprint(result)\n```\nand read the result.',
    "{name} returned nothing, so there is no {key} to show.",
    'Its schema is {{"name": "{name}", "description": "A tool.", "parameters": {{"type": "object",'
    ' "properties": {{"{key}": {{"type": "string"}}}}}}}}.',
    "The function {name} (see its {key} argument) is not what you need here.",
    "Please tell me the {key}, then I will run {name}.",
    "{name} is called with {key}, and {key} is a plain text.",
    "Tools such as {name} are called actions by some and functions by others.",
    "If {name} were free, I would have used it [1]; see {{2}} for the {key}.",
    "No function call was made. {name} stays unused.",
    "What does {name} do? It takes: {key}. It gives: an answer.",
    "<b>{name}</b> is offered, <i>{key}</i> is its argument.",
    "{name}\n- {key}: the first argument\n- more: the others",
    "{name} ({key} = Paris) said that all is well.",
    'In JSON it would be `{{"name": "{name}", "arguments": {{"{key}": "…"}}}}`, I think.',
    "Use {name} when the {key} is known; otherwise ask.",
    "Use {name} with argument {key} set to Paris. Call {name} with {key} names in English.",
    "<ul><li>{name}</li><li>others</li></ul>",
    "<details><summary>{name}</summary>{key}: a name</details>",
    'Result of {name}: {{"{key}": "Paris", "status": "ok"}}',
    "The log says: {name} failed with status 500 for {key}=Paris.",
    "Tool used: {name}\nAnswer: 20 degrees",
    "Here is the draft for {name}:\n\nSubject: Hello\n\nShall I send it?",
    "def {name}({key}: str, more: int = 1):\n    return ask(URL, {key})",
    'curl -X POST https://api.example.com/{name} -d \'{{"{key}": "Paris"}}\'',
)


def about_tools() -> list[str]:
    """More than two hundred texts that speak of tools and call none."""
    names = [(tool["name"], next(iter(tool["parameters"]["properties"]))) for tool in TOOLS]
    texts = [about.format(name=name, key=key) for about in _ABOUT for name, key in names]
    mixed = random.Random(17)
    return texts + [" ".join(mixed.sample(texts, 2)) for _ in range(100)]


_SUBJECTS = "The report|Our team|A reader|This function|The parser|My colleague|The table|She|Each row|The server".split(
    "|"
)
_VERBS = "returns|shows|contains|writes|calls|searches|opens|maps|expects|logs|prints|holds".split(
    "|"
)
_OBJECTS = (
    "a list [1, 2, 3]", "the value {x}", '{"name": "Ann", "age": 31}', "`f(x) = x + 1`", "(see page 4)",
    "a[i] = b[j]", "<b>bold</b> text", "the tuple (a, b)", '["red", "blue"]', "x = 3; y = x * 2",
    "if (a < b && c > d) { return a; }", "the tag <div class=\"call\">", "print(len(items))",
    '{"arguments": {"a": 1}}', "a function call", "List<Map<String, Integer>>", "$HOME/bin", "#42",
    "the search results", "key: value pairs", "std::function<void(int)>", "the weather in Paris: 20 °C",
    "`SELECT name FROM tools WHERE id = 1`", "[a link](https://example.com/x)", "```json\n{\"a\": [1]}\n```",
    "an action item", "2 > 1", "foo(bar=1, baz='x')", "{{ template }}", "lambda x: x[0]", "<ToolTip title=\"x\">",
    '{"type": "function", "name": "main"}', "**Action:** wait", "the method name(args)", "a|b|c", "[x](y) {z}",
)  # fmt: skip
_ENDS = (".", "!", "?", " and stops.", ", which is fine.", "; see below.", " (as before).", ":")


def prose(count: int) -> Iterator[str]:
    """Sentences with code, JSON and brackets in them: the same ones every time."""
    draw = random.Random(2026)
    for _ in range(count):
        words = (draw.choice(_SUBJECTS), draw.choice(_VERBS), draw.choice(_OBJECTS))
        more = (
            f" while {draw.choice(_SUBJECTS).lower()} {draw.choice(_VERBS)} {draw.choice(_OBJECTS)}"
        )
        yield " ".join(words) + more * draw.randrange(2) + draw.choice(_ENDS)
