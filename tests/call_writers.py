"""How each format writes calls, to be read back: the formats' own definitions, turned around."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Call = tuple[str, dict[str, Any]]


class Writer(NamedTuple):
    """`text_after`: an answer may follow the calls. `texts`: strings stand there as they are, so
    that types come from the schema and the format's own tags cannot be quoted."""

    label: str
    format: str
    write: Callable[[Sequence[Call]], str]
    text_after: bool = True
    texts: bool = False


def tools_for(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """Specs whose schemas have the types of these arguments."""
    return [
        {"name": name, "parameters": {"type": "object", "properties": properties_of(arguments)}}
        for name, arguments in calls
    ]


def properties_of(arguments: dict[str, Any]) -> dict[str, Any]:
    return {key: {"type": type_name(value)} for key, value in arguments.items()}


def type_name(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object"}
    return "null" if value is None else names.get(type(value), "array")


def as_json(call: Call, arguments_key: str = "arguments", name_key: str = "name") -> str:
    return json.dumps({name_key: call[0], arguments_key: call[1]}, ensure_ascii=False)


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def as_python(call: Call) -> str:
    return f"{call[0]}({', '.join(f'{key}={value!r}' for key, value in call[1].items())})"


def as_gemma(value: Any, quote: str) -> str:
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{as_gemma(v, quote)}" for key, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(as_gemma(entry, quote) for entry in value) + "]"
    return json.dumps(value)


def each(write: Callable[[Call], str], between: str = "\n") -> Callable[[Sequence[Call]], str]:
    return lambda calls: between.join(map(write, calls))


def marked(opening: str, closing: str = "") -> Callable[[Sequence[Call]], str]:
    return each(lambda call: f"{opening}{as_json(call)}{closing}")


def listed(opening: str, closing: str = "", **keys: str) -> Callable[[Sequence[Call]], str]:
    return lambda calls: f"{opening}[{', '.join(as_json(c, **keys) for c in calls)}]{closing}"


def tagged(opening: str, parameter: str, parameter_end: str, closing: str) -> Callable[[Call], str]:
    def write(call: Call) -> str:
        parameters = "".join(
            f"{parameter.format(key=key)}{as_text(value)}{parameter_end}"
            for key, value in call[1].items()
        )
        return f"{opening.format(name=call[0])}{parameters}{closing}"

    return write


def invoke(space: str) -> Callable[[Call], str]:
    return tagged(
        f'<{space}invoke name="{{name}}">\n',
        f'<{space}parameter name="{{key}}">',
        f"</{space}parameter>\n",
        f"</{space}invoke>",
    )


def gemma(opening: str, closing: str, quote: str) -> Callable[[Sequence[Call]], str]:
    return each(lambda call: f"{opening}call:{call[0]}{as_gemma(call[1], quote)}{closing}", "")


def named(before: str, between: str, after: str) -> Callable[[Call], str]:
    return lambda call: (
        f"{before}{call[0]}{between}{json.dumps(call[1], ensure_ascii=False)}{after}"
    )


def sectioned(
    opening: str, write: Callable[[Call], str], closing: str
) -> Callable[[Sequence[Call]], str]:
    return lambda calls: opening + "".join(map(write, calls)) + closing


QWEN = tagged(
    "<tool_call>\n<function={name}>\n", "<parameter={key}>\n", "\n</parameter>\n",
    "</function>\n</tool_call>",
)  # fmt: skip
GLM = tagged(
    "<tool_call>{name}\n", "<arg_key>{key}</arg_key>\n<arg_value>", "</arg_value>\n", "</tool_call>"
)
DEEPSEEK = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
BEGIN, SEPARATOR, END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
KIMI = named("<|tool_call_begin|>functions.", ":0<|tool_call_argument_begin|>", "<|tool_call_end|>")
HARMONY = named(
    "<|start|>assistant<|channel|>commentary to=functions.",
    " <|constrain|>json<|message|>",
    "<|call|>",
)


def kimi_k3(call: Call) -> str:
    arguments = "".join(
        f'<|open|>argument key="{key}" type="{type_name(value)}"<|sep|>{as_text(value)}'
        "<|close|>argument<|sep|>"
        for key, value in call[1].items()
    )
    opening = f'<|open|>call tool="{call[0]}" index="1"<|sep|>'
    return f"{opening}{arguments}<|close|>call<|sep|>"


def minimax_m3(call: Call) -> str:
    mark = "]<]minimax[>["
    arguments = "".join(
        f"{mark}<{key}>{as_text(value)}{mark}</{key}>" for key, value in call[1].items()
    )
    return f'{mark}<invoke name="{call[0]}">{arguments}{mark}</invoke>'


def key_value(opening: str, closing: str, space: str = "", *, types: bool = False):
    def write(call: Call) -> str:
        arguments = "".join(
            f"<{space}arg_key>{key}</{space}arg_key>"
            + f"<{space}arg_type>{type_name(value)}</{space}arg_type>" * types
            + f"<{space}arg_value>{as_text(value)}</{space}arg_value>"
            for key, value in call[1].items()
        )
        return f"{opening}{call[0]}{arguments}{closing}"

    return write


IFM = ("<ifm|tool_calls>", "</ifm|tool_calls>")
IFM_CALL = ("<ifm|tool_call>", "</ifm|tool_call>")
PLAMO = ("<|plamo:begin_tool_requests:plamo|>", "<|plamo:end_tool_requests:plamo|>")

WRITERS = (
    Writer("hermes", "hermes", marked("<tool_call>\n", "\n</tool_call>")),
    Writer("hermes list", "hermes", listed("<tool_call>", "</tool_call>")),
    Writer("qwen3_coder", "qwen3_coder", each(QWEN), texts=True),
    Writer(
        "qwen3_coder without the outer tag",
        "qwen3_coder",
        each(lambda call: QWEN(call).removeprefix("<tool_call>\n").removesuffix("\n</tool_call>")),
        texts=True,
    ),
    Writer("seed_oss", "qwen3_coder", each(lambda call: QWEN(call).replace("tool_call", "seed:tool_call")), texts=True),
    Writer("glm45", "glm45", each(GLM), texts=True),
    Writer("glm47", "glm45", each(lambda call: GLM(call).replace(">\n<", "><"), ""), texts=True),
    Writer(
        "hunyuan",
        "glm45",
        sectioned(
            "<tool_calls>",
            tagged(
                "<tool_call>{name}<tool_sep>", "<arg_key>{key}</arg_key>\n<arg_value>",
                "</arg_value>\n", "</tool_call>\n",
            ),
            "</tool_calls>",
        ),
        texts=True,
    ),
    Writer("llama", "llama", lambda calls: "<|python_tag|>" + "; ".join(as_json(c, "parameters") for c in calls)),
    Writer("llama repeated", "llama", marked("<|python_tag|>", "<|eom_id|>")),
    Writer("llama in python", "llama", each(lambda call: f"<|python_tag|>{as_python(call).replace('(', '.call(', 1)}")),
    Writer("llama function", "llama", each(named("<function=", ">", "</function>"))),
    Writer("pythonic", "pythonic", lambda calls: f"[{', '.join(map(as_python, calls))}]"),
    Writer("llama4", "pythonic", lambda calls: f"<|python_start|>[{', '.join(map(as_python, calls))}]<|python_end|>"),
    Writer("lfm2", "pythonic", lambda calls: f"<|tool_call_start|>[{', '.join(map(as_python, calls))}]<|tool_call_end|>"),
    Writer("lfm2 in JSON", "pythonic", listed("<|tool_call_start|>", "<|tool_call_end|>")),
    Writer("olmo3", "pythonic", lambda calls: "<function_calls>" + "\n".join(map(as_python, calls)) + "</function_calls>"),
    Writer("mistral", "mistral", listed("[TOOL_CALLS] ")),
    Writer("mistral named", "mistral", each(named("[TOOL_CALLS]", "[ARGS]", ""), "")),
    Writer("mistral with ids", "mistral", each(named("[TOOL_CALLS]", "[CALL_ID]a1b2c3[ARGS]", ""), "")),
    Writer("mistral without marks inside", "mistral", each(named("[TOOL_CALLS]", "", ""), "")),
    Writer(
        "deepseek_v3",
        "deepseek_v3",
        sectioned(DEEPSEEK[0], named(f"{BEGIN}function{SEPARATOR}", "\n```json\n", f"\n```{END}"), DEEPSEEK[1]),
    ),
    Writer("deepseek_v3_1", "deepseek_v3", sectioned(DEEPSEEK[0], named(BEGIN, SEPARATOR, END), DEEPSEEK[1])),
    Writer(
        "deepseek distilled",
        "deepseek_v3",
        sectioned(
            "<｜tool_calls_begin｜>",
            named("<｜tool_call_begin｜>function<｜tool_sep｜>", "\n```json\n", "\n```<｜tool_call_end｜>"),
            "<｜tool_calls_end｜>",
        ),
    ),
    Writer("kimi_k2", "kimi_k2", sectioned("<|tool_calls_section_begin|>", KIMI, "<|tool_calls_section_end|>")),
    Writer("harmony", "harmony", sectioned("", HARMONY, ""), text_after=False),
    Writer("granite", "granite", listed("<|tool_call|>")),
    Writer("granite 20b", "granite", marked("<function_call> ")),
    Writer("granite at the end", "granite", listed("<tool_call> "), text_after=False),
    Writer("functools", "functools", listed("functools")),
    Writer("command_r", "command_r", listed("<|START_ACTION|>", "<|END_ACTION|>", arguments_key="parameters", name_key="tool_name")),
    Writer("command_r fenced", "fenced", listed("Action: ```json\n", "\n```", arguments_key="parameters", name_key="tool_name")),
    Writer("gemma4", "gemma", gemma("<|tool_call>", "<tool_call|>", '<|"|>'), texts=True),
    Writer("gemma4 that ends the turn", "gemma", gemma("<|tool_call>", "<turn|>", '<|"|>'), texts=True),
    Writer("gemma4 with a colon", "gemma", gemma("<|tool_call>:", "<tool_call|>", '<|"|>'), texts=True),
    Writer("gemma4 without marks", "gemma", gemma("\n", "\n", '<|"|>'), texts=True),
    Writer("functiongemma", "gemma", gemma("<start_function_call>", "<end_function_call>", "<escape>"), texts=True),
    Writer("minimax", "invoke", sectioned("<minimax:tool_call>\n", invoke(""), "\n</minimax:tool_call>"), texts=True),
    Writer("deepseek_v3_2", "invoke", sectioned("<｜DSML｜function_calls>\n", invoke("｜DSML｜"), "\n</｜DSML｜function_calls>"), texts=True),
    Writer("deepseek_v3_2 in ASCII", "invoke", sectioned("<|DSML|function_calls>\n", invoke("|DSML|"), "\n</|DSML|function_calls>"), texts=True),
    Writer("minimax without quotes", "invoke", sectioned("<minimax:tool_call>\n", tagged("<invoke name={name}>\n", "<parameter name={key}>", "</parameter>\n", "</invoke>"), "\n</minimax:tool_call>"), texts=True),
    Writer("step3", "invoke", sectioned("<｜tool_calls_begin｜>", invoke("steptml:"), "<｜tool_calls_end｜>"), texts=True),
    Writer("minicpm", "invoke", each(tagged('<function name="{name}">', '<param name="{key}">', "</param>", "</function>")), texts=True),
    Writer("deepseek_v4_1", "invoke", sectioned("<｜DSML｜ calls>\n", invoke("｜DSML｜ "), "\n</｜DSML｜ calls>"), texts=True),
    Writer("gigachat35", "invoke", sectioned("<｜GCML｜tool_calls>", invoke("｜GCML｜"), "</｜GCML｜tool_calls>"), texts=True),
    Writer(
        "muse_glimmer",
        "invoke",
        each(
            lambda call: (
                f"<|start|>assistant to={call[0]}<|message|><atem:function_calls>\n"
                f"{invoke('atem:')(call)}\n</atem:function_calls><|eom|>"
            ),
            "",
        ),
        texts=True,
    ),
    Writer("message to a tool", "invoke", each(named("<|start|>assistant to=functions.", "<|message|>", "<|eom|>"), "")),
    Writer("minicpm without blanks", "invoke", each(tagged('<functionname="{name}">', '<paramname="{key}">', "</param>", "</function>")), texts=True),
    Writer("hy_v4", "glm45", each(lambda call: key_value("<tool_call>", "</tool_call>")(call).replace("tool_call>", "tool_call:6124c78e>").replace("arg_key>", "arg_key:6124c78e>").replace("arg_value>", "arg_value:6124c78e>")), texts=True),
    Writer("iquest_coder", "glm45", each(key_value("<iquestcoder_tool_call>", "</iquestcoder_tool_call>")), texts=True),
    Writer("k2_horizon", "k2_horizon", sectioned(IFM[0], key_value(*IFM_CALL, "ifm|"), IFM[1]), texts=True),
    Writer("k2_horizon with types", "k2_horizon", sectioned(IFM[0], key_value(*IFM_CALL, "ifm|", types=True), IFM[1]), texts=True),
    Writer("k2_horizon in JSON", "k2_horizon", marked(*IFM_CALL)),
    Writer("solar_open2", "solar_open2", each(tagged("<|tool_call:start|>{name}\n", "<|tool_arg:start|>{key}<|tool_arg:value|>", "<|tool_arg:end|>\n", "<|tool_call:end|>")), texts=True),
    Writer("kimi_k3", "kimi_k3", sectioned("<|open|>tools<|sep|>", kimi_k3, "<|close|>tools<|sep|>"), texts=True),
    Writer("minimax_m3", "minimax_m3", sectioned("]<]minimax[>[<tool_call>\n", minimax_m3, "]<]minimax[>[</tool_call>"), texts=True),
    Writer("apertus", "apertus", lambda calls: "<|tools_prefix|>" + json.dumps([{name: args} for name, args in calls], ensure_ascii=False) + "<|tools_suffix|>"),
    Writer("inkling", "inkling", each(lambda call: f"<|message_model|>{call[0]}<|content_invoke_tool_json|>{as_json(call, 'args')}<|end_message|>", "")),
    Writer(
        "plamo",
        "plamo",
        sectioned(
            PLAMO[0],
            named(
                "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>",
                "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>",
                "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>",
            ),
            PLAMO[1],
        ),
    ),
    Writer("glm4", "name_json", each(named("\n", "\n", ""))),
    Writer("functionary", "name_json", each(named(">>>", "\n", ""), "")),
    Writer("gpt-oss in tags", "name_json", each(named("<tool_call>assistant to=functions.", " json\n", "\n</tool_call>"))),
    Writer("step_audio_2", "name_json", each(named("<tool_call>function\n", "\n", "</tool_call>"))),
    Writer("react", "react", each(named("\nAction: ", "\nAction Input: ", "\n"))),
    Writer("react in python", "pythonic", each(lambda call: "\nAction: " + as_python(call))),
    Writer("python in tags", "pythonic", each(lambda call: f"<tool_call>{as_python(call)}</tool_call>")),
    Writer("solar_open", "solar_open", sectioned("<|tool_calls|>", named("<|tool_call:begin|>a1<|tool_call:name|>", "<|tool_call:args|>", "<|tool_call:end|>"), "<|calls|>")),
    Writer("functionary_v2", "functionary_v2", each(named("<|from|>assistant\n<|recipient|>", "\n<|content|>", ""))),
    Writer("qwen_agent", "qwen_agent", each(named("✿FUNCTION✿: ", "\n✿ARGS✿: ", "\n"))),
    Writer("mcp_tags", "mcp_tags", each(named("<use_mcp_tool>\n<server_name>default</server_name>\n<tool_name>", "</tool_name>\n<arguments>\n", "\n</arguments>\n</use_mcp_tool>"))),
    Writer("cwm", "cwm", each(named("<tool: ", ">\n", "\n</tool>"))),
    Writer("tool_code", "tool_code", lambda calls: "```tool_code\n" + "\n".join(map(as_python, calls)) + "\n```"),
    Writer("tool_code printed", "tool_code", lambda calls: "<tool_code>\n" + "\n".join(f"print(default_api.{as_python(c)})" for c in calls) + "\n</tool_code>"),
    Writer("python lines", "pythonic", each(lambda call: "\n" + as_python(call))),
    Writer("python on one line", "pythonic", lambda calls: "\n" + ", ".join(map(as_python, calls))),
    Writer("longcat in tags", "longcat", each(key_value("<longcat_tool_call>", "</longcat_tool_call>", "longcat_")), texts=True),
    Writer("longcat", "longcat", marked("<longcat_tool_call>", "</longcat_tool_call>")),
    Writer("nemotron", "nemotron", listed("<TOOLCALL>", "</TOOLCALL>")),
    Writer("jamba", "jamba", listed("<tool_calls>", "</tool_calls>")),
    Writer("internlm", "internlm", marked("<|action_start|><|plugin|>", "<|action_end|>")),
    Writer("gigachat", "gigachat", marked("<|function_call|>")),
    Writer("gigachat role", "gigachat", marked("<|message_sep|>\n\nfunction call<|role_sep|>\n")),
    Writer("tool_call_prefix", "tool_call_prefix", marked("TOOL_CALL: ")),
    Writer("fenced", "fenced", marked("```json\n", "\n```")),
    Writer("bare", "bare", each(as_json, "; ")),
    Writer("bare list", "bare", listed("")),
)  # fmt: skip
JSON_WRITERS = tuple(writer for writer in WRITERS if not writer.texts)
TEXT_WRITERS = tuple(writer for writer in WRITERS if writer.texts)
