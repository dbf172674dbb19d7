"""Attempts that are not well formed: one entry each, with the reason, and what stays of the text."""

import pytest

from callmark.calls.attempts import MalformedCall, ToolCall
from callmark.calls.ledger import parse_tool_calls, read_turn

WEATHER = {
    "name": "f",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "n": {"type": "integer"}},
    },
}


@pytest.mark.parametrize(
    ("format_name", "text", "name", "reason"),
    [
        ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n", "f", "not closed by </function>"),
        ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>\nx", "f", "a parameter is not closed"),
        ("qwen3_coder", "<function=f>\n<parameter=a", "f", "not closed by </function>"),
        ("glm45", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x", "f", "a parameter is not closed"),
        ("glm45", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n", "f", "not closed by </tool_call>"),
        ("hermes", "<tool_call>f", None, "not JSON"),
        ("llama", '<|python_tag|>{"name": "f", "parameters": {"a"', "f", "not JSON"),
        ("llama", "<|python_tag|>import os\nos.listdir()", None, "not a call in Python"),
        ("llama", "<|python_tag|>", None, "looks like name(key=value)"),
        ("llama", '<function=f>{"a": 1', "f", "not JSON"),
        ("llama", '<function=f>{"a": 1}', "f", "not closed by </function>"),
        ("pythonic", "<|python_start|>[f(a=1", None, "a comma or ) is missing"),
        ("pythonic", '<|python_start|>[f("x")]<|python_end|>', None, "an argument has no name"),
        ("pythonic", "<|python_start|>[f(a=g(1))]<|python_end|>", None, "a value is no literal"),
        ("pythonic", "<|tool_call_start|>[]<|tool_call_end|>", None, "no call in it"),
        ("pythonic", "<function_calls>nothing</function_calls>", None, "looks like name(key=value)"),
        ("mistral", "[TOOL_CALLS] [not valid json]", None, "not JSON"),
        ("mistral", '[TOOL_CALLS]f[ARGS]{"a": ', "f", "not JSON"),
        ("mistral", "[TOOL_CALLS]f[ARGS]", "f", "nothing in it"),
        ("mistral", "[TOOL_CALLS]", None, "names no tool"),
        ("mistral", "[TOOL_CALLS]f[ARGS][1]", "f", "a list, not an object"),
        ("deepseek_v3", '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": 1<｜tool▁call▁end｜>', "f", "not JSON"),
        ("deepseek_v3", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function", None, "names no tool"),
        ("deepseek_v3", '<｜tool▁calls▁begin｜>function<｜tool▁sep｜>f\n{"a": 1}<｜tool▁calls▁end｜>', None, "no call begins"),
        ("deepseek_v3", '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": 1} and more<｜tool▁call▁end｜>', "f", "not JSON"),
        ("kimi_k2", '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a"', "f", "not JSON"),
        ("kimi_k2", '<|tool_call_begin|>0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>', None, "names no tool"),
        ("kimi_k2", "<|tool_calls_section_begin|>Hello", None, "no call begins"),
        ("harmony", "<|channel|>commentary to=functions.f", "f", "has no message"),
        ("harmony", "<|channel|>commentary to=functions.f <|constrain|>json<|message|>", "f", "nothing in it"),
        ("harmony", "<|channel|>commentary to=python<|message|>print(1)<|call|>", "python", "not JSON"),
        ("granite", '<|tool_call|>[{"name": "f", "arguments": {"a"', "f", "not JSON"),
        ("granite", '<function_call> {"name": 1}', None, "names no tool"),
        ("functools", 'functools[{"name": "f", "arguments": "x"}]', "f", "arguments are not JSON"),
        ("functools", "functools[]", None, "no call in it"),
        ("command_r", '<|START_ACTION|>[{"tool_name": "f", "parameters": [1]}]<|END_ACTION|>', "f", "a list, not an object"),
        ("command_r", '<|START_ACTION|>[{"tool_name": "f", "param', "f", "not JSON"),
        ("gemma", "<|tool_call>call:f{a:<|\"|>x", "f", "not JSON"),
        ("gemma", "<|tool_call>f<tool_call|>", None, "looks like call:name"),
        ("invoke", '<｜DSML｜invoke name="f"><｜DSML｜parameter name="a">x', "f", "a parameter is not closed"),
        ("invoke", '<invoke name="f">{"a": }</invoke>', "f", "not JSON"),
        ("jamba", "<tool_calls>[{]</tool_calls>", None, "not JSON"),
        ("tool_call_prefix", 'TOOL_CALL:\n{"name": "f", "arguments": {"a": }}', "f", "not JSON"),
    ],
)  # fmt: skip
def test_a_malformed_attempt_has_its_reason(format_name, text, name, reason):
    turn = read_turn(f"Before. {text}", offered={"f"})
    (attempt,) = turn.attempts
    assert isinstance(attempt, MalformedCall)
    assert (attempt.format, attempt.name) == (format_name, name)
    assert reason in attempt.reason
    assert attempt.raw in text
    assert turn.text == "Before."


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("<function=f>\n<parameter=a>\nx\n<parameter=n>\n2\n</parameter>\n</function>", {"a": "x", "n": 2}),
        ("<function=f>\n<parameter=a>\nx\n</function>", {"a": "x"}),
        ("<tool_call>f\n<arg_key>a</arg_key><arg_key>n</arg_key><arg_value>2</arg_value></tool_call>", {"n": 2}),
        ("<tool_call>f\n<arg_key>a</arg_key></tool_call>", {}),
        ("<function=f>\nwell\n<parameter=n>\n2\n</parameter>\n</function>", {"n": 2}),
        ("[TOOL_CALLS]f[ARGS]{'a': 'x'}", {"a": "x"}),
        ('<function=f>{"a": "x",}</function>', {"a": "x"}),
    ],
)  # fmt: skip
def test_repair_is_shown_and_never_silent(text, arguments):
    (row,) = parse_tool_calls(text, [WEATHER])
    assert row["status"] == "repaired"
    assert (row["name"], row["arguments"]) == ("f", arguments)
    assert row["reason"]


def test_a_call_that_was_cut_off_inside_a_value_is_not_completed():
    """Nobody knows what would have followed."""
    for text in (
        "<function=f>\n<parameter=a>\nParis and Lo",
        "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>Paris and Lo",
        "<function=f>\n<parameter=a>\nParis\n</parameter>\n",
    ):
        (row,) = parse_tool_calls(text, [WEATHER])
        assert (row["status"], row["name"], row["arguments"]) == ("malformed", "f", None)


@pytest.mark.parametrize(
    "broken",
    ["<function=a>\n<parameter=x>\n1", "<tool_call>\n<function=a>\n", "<function=a>{"],
)
def test_an_unclosed_call_does_not_swallow_the_next_one(broken):
    text = f"{broken}\n<function=f>\n<parameter=a>\n2\n</parameter>\n</function>"
    first, second = read_turn(text, offered=None).attempts
    assert (first.name, isinstance(first, MalformedCall)) == ("a", True)
    assert isinstance(second, ToolCall)
    assert second.arguments == {"a": 2}


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("[TOOL_CALLS]f[ARGS]{broken\nThe answer is 5.", "The answer is 5."),
        ('<|tool_call|>[{"name": "f"\n"x"\nThe answer is 5.', "The answer is 5."),
        ("functools[] The answer is 5.", "The answer is 5."),
        ("<|python_tag|>print(1)<|eom_id|>The answer is 5.", "The answer is 5."),
        ('invalid:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>', "invalid:0"),
    ],
)
def test_the_answer_around_a_broken_call_stays(text, clean):
    assert read_turn(text, offered={"f"}).text == clean


@pytest.mark.parametrize(
    "text",
    [
        "See [f(a=1)](https://example.com/f).",
        "[f(x)] means f of x, [f()() is not closed.",
        "[1, 2], [a], [f] and f(a=1) are no calls.",
        "Use functools.wraps or functools[wraps].",
        "<function name=\"other\"><param name=\"a\">1</param></function>",
        "<invoke name=\"other\"></invoke>",
        "The tags <tool_calls> and </tool_calls> stand around calls.",
        "The tags <function_calls> <x> are plain text.",
        "A channel is no <channel>.",
        "Action: go. TOOL_CALLS: none. call:f{}",
    ],
)  # fmt: skip
def test_text_that_only_looks_like_a_call_stays_text(text):
    turn = read_turn(text, offered={"f"})
    assert turn.attempts == ()
    assert turn.text == text


@pytest.mark.parametrize("text", ['[f("x")]', "[f(10)]", 'f("x")', "[f(a=2*3)]", "f(a=b)"])
def test_a_turn_that_is_only_a_call_is_an_attempt_whatever_its_arguments(text):
    (row,) = parse_tool_calls(text, ["f"])
    assert (row["name"], row["status"], row["format"]) == ("f", "malformed", "pythonic")
    assert parse_tool_calls(text, ["other"]) == []
