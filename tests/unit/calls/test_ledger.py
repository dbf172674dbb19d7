"""Model text → clean text, thinking and call attempts."""

import time

import pytest

from callmark.calls.attempts import MalformedCall, ToolCall
from callmark.calls.formats import FORMATS, Format, TextBlock
from callmark.calls.ledger import parse_tool_calls, read_turn
from callmark.errors import UsageError

CALL = '{"name": "f", "arguments": {"a": {"b": [1, {"c": 2}]}}}'
ARGUMENTS = {"a": {"b": [1, {"c": 2}]}}


def calls_in(text, offered=None, **options):
    return [
        (attempt.name, attempt.arguments if isinstance(attempt, ToolCall) else None)
        for attempt in read_turn(text, offered=offered, **options).attempts
    ]


@pytest.mark.parametrize(
    ("format_name", "text"),
    [
        ("hermes", f"<tool_call>{CALL}</tool_call>"),
        ("hermes", f"<tool_call>\n{CALL}\n</tool_call>"),
        ("hermes", f"<tool_call>[{CALL}]</tool_call>"),
        ("tool_call_prefix", f"TOOL_CALL: {CALL}"),
        ("tool_call_prefix", f"TOOL_CALL:\n{CALL}"),
        ("fenced", f"```json\n{CALL}\n```"),
        ("fenced", f"```JSON {CALL} ```"),
        ("fenced", f"```\n[{CALL}]\n```"),
        ("fenced", f"```tool_call\n{CALL}\n```"),
        ("bare", CALL),
        ("bare", f"[{CALL}]"),
        ("bare", f'{{"type": "function", "function": {CALL}}}'),
        ("bare", f'{{"function": {CALL}}}'),
        ("bare", f'{{"tool_calls": [{{"id": "1", "function": {CALL}}}]}}'),
        ("bare", '{"arguments": {"a": {"b": [1, {"c": 2}]}}, "name": "f"}'),
        ("bare", '{"name": "f", "parameters": {"a": {"b": [1, {"c": 2}]}}}'),
        ("bare", '{"name": "f", "arguments": "{\\"a\\": {\\"b\\": [1, {\\"c\\": 2}]}}"}'),
    ],
)
def test_d58_each_format_gives_a_nested_call_once(format_name, text):
    """Nested arguments are whole, whatever the order of keys, and nothing is counted twice."""
    turn = read_turn(f"Let me see. {text} Done.", offered={"f"})
    (call,) = turn.attempts
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments, call.format) == ("f", ARGUMENTS, format_name)
    assert call.raw in text
    assert turn.text.split() == ["Let", "me", "see.", "Done."]
    assert calls_in(text, {"f"}, format=format_name) == [("f", ARGUMENTS)]


def test_a69_several_calls_come_out_once_each_in_order():
    text = (
        'First <tool_call>{"name": "a", "arguments": {}}</tool_call>'
        '<tool_call>[{"name": "b", "arguments": {}}, {"name": "c", "arguments": {}}]</tool_call>\n'
        'TOOL_CALL: {"name": "d", "arguments": {"x": {"y": 1}}}\n'
        '```json\n{"name": "e", "arguments": {}}\n{"name": "f", "arguments": {}}\n```\n'
        '{"name": "g", "arguments": {}}; {"name": "g", "arguments": {}} last'
    )
    assert [name for name, _ in calls_in(text)] == list("abcdefgg")
    assert read_turn(text, offered=None).text.split() == ["First", "last"]


def test_calls_are_not_looked_for_inside_calls():
    inner = '{"name": "g", "arguments": {}}'
    nested = (
        f'{{"name": "f", "arguments": {{"call": {inner}, "s": "<tool_call>{{}}</tool_call>"}}}}'
    )
    for text in (f"<tool_call>{nested}</tool_call>", f"TOOL_CALL: {nested}", nested):
        assert [name for name, _ in calls_in(text)] == ["f"]
    quoted = '{"name": "f", "arguments": {"s": "</tool_call> ``` TOOL_CALL: {"}}'
    for text in (f"<tool_call>{quoted}</tool_call>", f"```json\n{quoted}\n```", quoted):
        assert calls_in(text) == [("f", {"s": "</tool_call> ``` TOOL_CALL: {"})]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "other", "arguments": {}}',
        '```json\n{"name": "other", "arguments": {}}\n```',
        '{"name": "f"}',
        '{"name": "f", "arguments": [1]}',
        '{"name": "f", "arguments": "no json"}',
        '{"name": "f", "arguments": ""}',
        '{"name": "f", "arguments": null}',
        '{"arguments": {}}',
        '{"name": 3, "arguments": {}}',
        '{"name": "f", "arguments": {}',
        '```json\n{"name": "f", "arguments": {\n```',
        '{"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}',
        '[1, 2]', "{}", "[]", '{"a": {"name": "f", "arguments": {}}}',
        "def f(): return {'name': 'f', 'arguments': {}}",
    ],
)  # fmt: skip
def test_json_without_a_mark_is_an_attempt_only_if_it_is_a_call_of_an_offered_tool(text):
    turn = read_turn(text, offered={"f"})
    assert turn.attempts == ()
    assert turn.text == text


def test_with_nothing_said_about_tools_every_name_counts():
    assert calls_in('{"name": "anything", "arguments": {}}') == [("anything", {})]
    assert calls_in('{"name": "anything", "arguments": {}}', offered=()) == []


@pytest.mark.parametrize("name", ["web.search", "web_search", "web-search"])
def test_a_variant_of_an_offered_name_names_it(name):
    assert calls_in(f'{{"name": "{name}", "arguments": {{}}}}', {"web.search"}) == [(name, {})]


def test_behind_a_mark_every_name_is_an_attempt():
    assert calls_in('<tool_call>{"name": "x", "arguments": {}}</tool_call>', {"f"}) == [("x", {})]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<tool_call>[1]</tool_call>", "not a number"),
        ("<tool_call>[]</tool_call>", "no call in it"),
        ("<tool_call></tool_call>", "nothing in it"),
        ("<tool_call>", "nothing in it"),
        ("<tool_call>not valid json</tool_call>", "not JSON"),
        ('<tool_call>{"name": "f", "arguments": {"x": 1}', "not JSON"),
        ('<tool_call>{"name": "f", "arguments": {"x": 1}} then', "not closed"),
        ('<tool_call>{"name": "f", "arguments": [1]}</tool_call>', "a list, not an object"),
        ('<tool_call>{"name": "f", "arguments": "x"}</tool_call>', "arguments are not JSON"),
        ('<tool_call>{"arguments": {}}</tool_call>', "names no tool"),
        ('<tool_call>{"name": "f", "arguments": {"x": NaN}}</tool_call>', "NaN"),
        ('<tool_call>{"name": "f", "arguments": {}} tail</tool_call>', "not JSON"),
        ("TOOL_CALL: web.search(q=1)", "not JSON"),
        ("TOOL_CALL: []", "no call in it"),
        ("```tool_call\n{broken\n```", "not JSON"),
        ("```tool_call\n```", "nothing in it"),
    ],
)
def test_a_malformed_attempt_is_one_attempt_with_its_reason(text, reason):
    turn = read_turn(f"Before. {text}", offered={"f"})
    (attempt,) = turn.attempts
    assert isinstance(attempt, MalformedCall)
    assert reason in attempt.reason
    assert turn.text.removesuffix(" then") == "Before."


def test_a_whole_call_that_ends_the_turn_needs_no_closing_mark():
    """A server that stops at the mark leaves it out; arguments that were cut off are not whole."""
    for end in ("", "\n", "<|im_end|>"):
        turn = read_turn(f'Hm. <tool_call>\n{{"name": "f", "arguments": {{}}}}{end}', offered={"f"})
        assert [type(attempt) for attempt in turn.attempts] == [ToolCall]
        assert turn.text == "Hm."


def test_an_unclosed_call_does_not_hide_the_next_one():
    first, second = read_turn(
        '<tool_call>{"name": "a", "arguments": {}}\n'
        '<tool_call>{"name": "b", "arguments": {}}</tool_call>',
        offered=None,
    ).attempts
    assert isinstance(first, MalformedCall)
    assert first.name == "a"
    assert isinstance(second, ToolCall)
    assert second.name == "b"


def test_the_answer_after_a_broken_call_stays():
    broken = 'TOOL_CALL: {"name": "f", "arguments": {"x": 1}\nThe answer is 5.'
    assert read_turn(broken, offered=None).text == "The answer is 5."
    lines = 'TOOL_CALL: {\n  "name": "f",\n  "arguments": {"s": "two\nlines"}\n}\nThe answer is 5.'
    assert read_turn(lines, offered=None).text == "The answer is 5."
    unclosed = '<tool_call>{"name": "f", "arguments": {}} The answer is 5.'
    assert read_turn(unclosed, offered=None).text == "The answer is 5."


def test_repair_is_never_silent():
    (row,) = parse_tool_calls("<tool_call>{'name': 'f', 'arguments': {'x': True}}</tool_call>")
    assert row["status"] == "repaired"
    assert (row["name"], row["arguments"]) == ("f", {"x": True})
    assert "not JSON" in row["reason"]


def test_the_public_ledger():
    rows = parse_tool_calls(
        'Hi <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call> <tool_call>no!</tool_call>',
        tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}],
    )
    assert rows[0] == {
        "name": "f",
        "arguments": {"a": 1},
        "format": "hermes",
        "raw": '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>',
        "status": "ok",
        "reason": None,
    }
    assert rows[1]["status"] == "malformed"
    assert rows[1]["name"] is None
    assert rows[1]["arguments"] is None
    assert rows[1]["reason"]
    assert parse_tool_calls('{"name": "g", "arguments": {}}', tools=["f"]) == []
    assert parse_tool_calls("", tools=[]) == []
    assert parse_tool_calls(None) == []


def test_d36_a_turn_without_text_is_empty():
    assert read_turn("", offered=None).attempts == ()


@pytest.mark.parametrize(
    ("text", "clean", "thought"),
    [
        ("<think>Hm.</think>\n\nFive.", "Five.", "Hm."),
        ("Hm.\n</think>\n\nFive.", "Five.", "Hm."),
        ("<think></think>Five.", "Five.", ""),
        ("<think>cut off", "", "cut off"),
        ("<think>a</think>One.<think>b</think>Two.", "One.Two.", "a\nb"),
        ("a</think>One.<think>b</think>Two.", "One.Two.", "a\nb"),
        ("<thinking>Hm.</thinking>Five.", "Five.", "Hm."),
        ("Five is < six.", "Five is < six.", ""),
    ],
)
def test_thinking_is_cut_out_and_kept_apart(text, clean, thought):
    turn = read_turn(text, offered=None)
    assert (turn.text, turn.reasoning, turn.attempts) == (clean, thought, ())


def test_a_call_that_is_only_thought_of_is_no_attempt():
    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    assert calls_in(f"<think>{call}</think>No.") == []
    assert calls_in(f"<think>Hm.</think>{call}") == [("f", {})]
    assert calls_in(f"{call}</think>No.") == []


def test_f83_a_call_in_closed_reasoning_is_listed_and_not_made():
    call = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    for text in (f"<think>{call}</think>No.", f"{call}</think>No."):
        (row,) = parse_tool_calls(text, ["f"])
        assert (row["status"], row["name"], row["arguments"]) == ("in_reasoning", "f", {"a": 1})
        turn = read_turn(text, offered={"f"})
        assert (turn.attempts, len(turn.thought_of), turn.text) == ((), 1, "No.")
    both = parse_tool_calls(f"<think>{call}</think>{call}", ["f"])
    assert [row["status"] for row in both] == ["in_reasoning", "ok"]
    analysis = f"<|channel|>analysis<|message|>Or {call}?<|end|><|channel|>final<|message|>No."
    assert [row["status"] for row in parse_tool_calls(analysis, ["f"])] == ["in_reasoning"]


def test_a_call_ends_thinking_that_nobody_closed():
    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    turn = read_turn(f"<think>Let me see. {call}", offered={"f"})
    assert (turn.reasoning, turn.text, len(turn.attempts)) == ("Let me see.", "", 1)
    # Without a mark it is a thought like the rest.
    turn = read_turn('<think>Maybe {"name": "f", "arguments": {}}', offered={"f"})
    assert (turn.attempts, len(turn.thought_of)) == ((), 1)


@pytest.mark.parametrize(
    "text",
    [
        r'[{"name": "get\_weather", "arguments": {"city\_name": "Paris"}}]',
        r'[TOOL_CALLS] [{"name": "get\_weather", "arguments": {"city\_name": "Paris"}}]',
        r'[get\_weather(city\_name="Paris")]',
        'get\\_weather\n{"city_name": "Paris"}',
    ],
)
def test_f83_names_with_markdowns_escapes_are_read(text):
    (row,) = parse_tool_calls(text, ["get_weather"])
    assert (row["name"], row["arguments"], row["status"]) == (
        "get_weather",
        {"city_name": "Paris"},
        "ok",
    )
    said = r"The tool get\_weather is called so."
    assert read_turn(said, offered={"get_weather"}).text == said


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('f(a=1, s="x")', "pythonic"),
        ('```python\nf(a=1, s="x")\n```', "pythonic"),
        ('I will.\n\nf(a=1, s="x")\n', "pythonic"),
        ('f\n{"a": 1, "s": "x"}', "name_json"),
        ('all\nHello.>>>f\n{"a": 1, "s": "x"}', "name_json"),
        ('Thought: hm.\nAction: f\nAction Input: {"a": 1, "s": "x"}\nObservation: 5', "react"),
        ('```json\n{"action": "f", "action_input": {"a": 1, "s": "x"}}\n```', "fenced"),
        ('```tool_code\nprint(f(a=1, s="x"))\n```', "tool_code"),
        ('```tool_code\ny = default_api.f(a=1, s="x")\n```', "tool_code"),
    ],
)
def test_f83_calls_that_0_1_0_did_not_see(text, found):
    (row,) = parse_tool_calls(text, ["f"])
    assert (row["arguments"], row["format"], row["status"]) == ({"a": 1, "s": "x"}, found, "ok")


@pytest.mark.parametrize(
    "text",
    [
        'Call f(a=1, s="x") to see.',
        "For example:\n```python\nf(a=1)\n```\nThat is all.",
        "f()\nis how it is called.",
        "The first is\nf\n{and this is no object}",
        "Action: f\nis what I would do.",
    ],
)
def test_text_that_shows_a_call_makes_none(text):
    assert not [row for row in parse_tool_calls(text, ["f"]) if row["status"] == "ok"]


def test_elements_in_elements_are_objects_and_lists():
    mark = "]<]minimax[>["
    parts = (
        '<invoke name="f"> <o> <n>3 </n> <z>null </z> </o> <l> <item>a </item> <item>b </item> </l>'
        " <t>x </t> <t>y </t> <e> </e> </invoke>"
    )
    text = "".join(mark + part.strip() for part in parts.replace(" <", "\0<").split("\0")).replace(
        " ]", "]"
    )
    kinds = {
        "o": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "z": {"type": ["string", "null"]}},
        },
        "l": {"type": "array", "items": {"type": "string"}},
        "e": {"type": "array"},
    }
    tools = [{"name": "f", "parameters": {"type": "object", "properties": kinds}}]
    (row,) = parse_tool_calls(text, tools)
    assert row["arguments"] == {"o": {"n": 3, "z": None}, "l": ["a", "b"], "t": ["x", "y"], "e": []}


def test_a_call_that_quotes_a_closing_mark_is_no_thought():
    call = '<tool_call>{"name": "f", "arguments": {"s": "</think>"}}</tool_call>'
    assert calls_in(f"Well. {call}") == [("f", {"s": "</think>"})]
    assert calls_in(f"Hm.</think>{call}") == [("f", {"s": "</think>"})]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Five.<|im_end|>", "Five."),
        ("<|im_start|>assistant\nFive.<|im_end|>\n", "Five."),
        ("Five.<|eot_id|>", "Five."),
        ("<|start_header_id|>assistant<|end_header_id|>\n\nFive.", "Five."),
        ("<s> Five.</s>", "Five."),
        ("Five.</s></s><pad>", "Five."),
        ("Five.<end_of_turn>", "Five."),
        ("Five.<｜end▁of▁sentence｜>", "Five."),
        ("Not <s>five</s> six.", "Not <s>five</s> six."),
        ("a <|b|> c", "a <|b|> c"),
        ("x\ud800y", "x\ufffdy"),
    ],
)
def test_special_tokens_are_cut_out(text, clean):
    assert read_turn(text, offered=None).text == clean


def test_an_unknown_format_is_a_usage_error():
    with pytest.raises(UsageError, match="hermes"):
        read_turn("x", offered=None, format="klingon")


def test_the_table_takes_further_formats():
    def read(reading, start, mark_end):
        end = reading.text.index("!", mark_end)
        name = reading.text[mark_end:end]
        return TextBlock(end + 1, (ToolCall(name, {}, reading.text[start : end + 1], "bang"),))

    bang = Format("bang", "call ", "call ", read)
    turn = read_turn("Now call f! done", offered=None, formats=(*FORMATS, bang))
    assert turn.text == "Now  done"
    assert [attempt.format for attempt in turn.attempts] == ["bang"]


@pytest.mark.parametrize(
    "text",
    ["{" * 100_000, "[" * 100_000, '{"name":' * 20_000, '[{"name":' * 20_000,
     "<tool_call>" + "[" * 100_000 + "</tool_call>",
     "<tool_call>" + '{"name":' * 20_000, "TOOL_CALL: " + '{"a":' * 20_000,
     '{"name": "f", "arguments": ' + '{"a":' * 500 + "1" + "}" * 501],
    ids=lambda text: f"{text[:14]}x{len(text)}",
)  # fmt: skip
def test_b41_deep_json_never_overruns_the_stack(text):
    assert not [a for a in read_turn(text, offered=None).attempts if isinstance(a, ToolCall)]


def cpu_of(text):
    def once():
        begin = time.process_time()
        read_turn(text, offered=None)
        return time.process_time() - begin

    return min(once() for _ in range(4))


@pytest.mark.slow  # measures CPU, which a busy machine makes noisy
@pytest.mark.parametrize(
    "unit",
    ["{", "[", "<tool_call>", '{"name":', "TOOL_CALL: ", "```json\n{", '{"{"name"', "</s>", "<think>",
     '<tool_call>{"name":"f","arguments":{}}', '{"name":"f","arguments":{', "[f(a=", "[f(a='", "[f(a=[1,",
     "<function=a><parameter=b>x", "<function=a>{", "<tool_call>f<arg_key>a</arg_key><arg_value>",
     "<|tool_call_begin|>f:0<|tool_call_argument_begin|>{", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{",
     "<|channel|>analysis<|message|>", "<|channel|>commentary to=f<|message|>{", "[TOOL_CALLS]f[ARGS]{",
     "[TOOL_CALLS] [{", "functools[{", '<invoke name="f"><parameter name="a">', "<|python_tag|>f(a=",
     "<|tool_call>call:f{a:", "<|START_ACTION|>[{", "<function_calls>f(a=1)\n", "f(a=1)\n", "f()\n", "f\n{",
     "<call>f", "f: a=1 ", "\ncall:f{", "\ncall:f{a:1", "<tool: f>", "<|recipient|>f<|content|>{", "<|x|>f ", "Action: f\nAction Input: ", '<|open|>call tool="f"<|sep|>',
     '<|open|>call tool="f"<|sep|><|open|>argument key="a"<|sep|>', "to=f<|message|>", "<|tools_prefix|>[{",
     ']<]minimax[>[<invoke name="f">]<]minimax[>[<a>', "<tool_code>f(a=", "g\\_h ", "<a_call_a_",
     '{"action_input": ', '{"action": "f", "action_input": '],
)  # fmt: skip
def test_twice_the_text_costs_about_twice_the_cpu(unit):
    """With the closing marks far away at the end, where a naive search would look each time."""
    end = (
        '</tool_call> "name" ``` </parameter> </function> )] <|end|> <|tool_call_end|> </arg_value>'
        " </invoke> <tool_call|> <｜tool▁call▁end｜> </function_calls>"
    )
    short, long = (unit * (size // len(unit)) + end for size in (40_000, 80_000))
    # In turns, so that a busy moment meets both; the least of all is nearest to what it costs.
    spent = [(cpu_of(long), cpu_of(short)) for _ in range(3)]
    assert min(one for one, _ in spent) <= 2.5 * min(one for _, one in spent) + 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ['{"action_input": ', '{"action": "f", "action_input": ', '{"name": [']
)
def test_json_that_is_too_deep_for_the_decoder_costs_no_more_than_other_text(unit):
    """Below a certain length the decoder reaches the end, above it gives up: both cost alike."""
    short, long = (unit * (size // len(unit)) for size in (10_000, 100_000))
    assert cpu_of(long) <= 13 * cpu_of(short) + 0.01


def test_many_calls_in_one_list_do_not_repeat_the_text():
    member = '{"name": "f", "arguments": {}}'
    text = '<tool_call>{"tool_calls": [' + ",".join([member] * 2_000) + "]}</tool_call>"
    attempts = read_turn(text, offered=None).attempts
    assert len(attempts) == 2_000
    assert sum(len(attempt.raw) for attempt in attempts) < 2 * len(text)
