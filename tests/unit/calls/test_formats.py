"""Every format that models write calls in, read back from its own definition."""

import pytest
from tests.call_writers import WRITERS, tools_for

from callmark.calls.attempts import ToolCall
from callmark.calls.formats import FORMATS
from callmark.calls.ledger import KNOWN_MARKS, parse_tool_calls, read_turn
from callmark.calls.registry import Registry
from callmark.errors import UsageError

SCENES = {
    "one": [("get_weather", {"city": "Paris"})],
    "parallel": [("get_weather", {"city": "Paris"}), ("get_time", {"zone": "CET", "full": True})],
    "the same twice": [("get_weather", {"city": "Rome"}), ("get_weather", {"city": "Rome"})],
    "no arguments": [("now", {})],
    "types": [("f", {"i": 42, "x": -3.5, "yes": True, "no": False, "nil": None, "s": "7"})],
    "nested": [("f", {"o": {"a": [1, {"b": None}], "d": {"e": {"g": [[]]}}}, "l": ["x", {}]})],
    "empty values": [("f", {"s": "", "l": [], "o": {}})],
    "unicode": [("f", {"city": "Zürich 東京 🎉 العربية", "o": {"ключ": "значение"}})],
    "escapes": [("f", {"said": 'He said "hi" to Anne\'s', "path": "C:\\temp\\new", "t": "a\tb"})],
    "lines": [("f", {"code": "def f():\n    return 1\n", "then": "two\nlines"})],
    "brackets": [("f", {"a": "[x](y) {z} `c` ) ] }", "b": "a < b > c && d, e; f=1"})],
    "a dotted name": [("web.search", {"q": "rope", "top_k": 3})],
    "a hyphened name": [("mcp-search_docs", {"q": "rope"})],
}
EVERY_WRITER = pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.label)
EVERY_SCENE = pytest.mark.parametrize("scene", SCENES)


def found(text, calls, **options):
    rows = parse_tool_calls(text, tools_for(calls), **options)
    assert {row["status"] for row in rows} <= {"ok"}, rows
    return [(row["name"], row["arguments"]) for row in rows]


@EVERY_WRITER
@EVERY_SCENE
def test_a69_what_a_format_writes_is_read_back(writer, scene):
    calls = SCENES[scene]
    text = writer.write(calls)
    assert found(text, calls) == calls
    assert found(text, calls, format=writer.format) == calls
    assert {row["format"] for row in parse_tool_calls(text, tools_for(calls))} == {writer.format}


@EVERY_WRITER
def test_nothing_of_the_calls_stays_in_the_text(writer):
    calls = SCENES["parallel"]
    after = "Done." if writer.text_after else ""
    turn = read_turn(f"Let me see.\n{writer.write(calls)}\n{after}", offered=dict(calls))
    assert turn.text.split() == ["Let", "me", "see.", *after.split()]
    assert len(turn.attempts) == 2


@EVERY_WRITER
def test_several_calls_have_raws_of_their_own(writer):
    calls = SCENES["parallel"]
    first, second = parse_tool_calls(writer.write(calls), tools_for(calls))
    assert "Paris" in first["raw"]
    assert "CET" not in first["raw"]
    assert "CET" in second["raw"]
    assert "Paris" not in second["raw"]


@EVERY_WRITER
def test_calls_that_are_only_thought_of_are_no_attempts(writer):
    written = writer.write(SCENES["one"])
    assert read_turn(f"<think>{written}</think>No.", offered=None).attempts == ()
    assert len(read_turn(f"<think>Hm.</think>{written}", offered=None).attempts) == 1


@EVERY_WRITER
def test_a_cut_off_turn_makes_no_call_that_was_not_written(writer):
    """Whatever the length at which a turn was cut: a call is whole or it is not well formed."""
    calls = SCENES["parallel"] + SCENES["lines"]
    text = f"Well. {writer.write(calls)}"
    offered = frozenset(name for name, _ in calls)
    schema_of = Registry.from_specs(tools_for(calls), where="tools").parameters
    for length in range(len(text)):
        turn = read_turn(text[:length], offered=offered, schema_of=schema_of)
        sound = [(a.name, a.arguments) for a in turn.attempts if isinstance(a, ToolCall)]
        assert sound == calls[: len(sound)], text[:length]
        assert len(turn.attempts) <= len(sound) + 1


@EVERY_WRITER
def test_a_call_of_a_tool_that_is_not_offered_needs_a_mark(writer):
    """Behind a mark it is an attempt; JSON or Python in running text is none."""
    attempts = read_turn(writer.write(SCENES["one"]), offered={"other"}).attempts
    unmarked = {
        "bare", "bare list", "fenced", "command_r fenced", "pythonic", "python lines", "glm4",
        "minicpm", "minicpm without blanks", "react in python", "gemma4 without marks",
        "python on one line",
    }  # fmt: skip
    assert len(attempts) == (writer.label not in unmarked)


IN_ONE = (
    '<｜DSML｜invoke name="get_weather"><｜DSML｜parameter name="{key}" string="{is_string}">{value}'
    "</｜DSML｜parameter></｜DSML｜invoke>",
    '<function name="get_weather"><param name="{key}">{value}</param></function>',
    "<tool_call><function=get_weather><parameter={key}>{value}</parameter></function></tool_call>",
)


@pytest.mark.parametrize("written", IN_ONE)
@pytest.mark.parametrize("key", ["arguments", "input", "properties"])
@pytest.mark.parametrize("is_string", ["true", "false"])
def test_f83_all_arguments_in_one_parameter_are_the_arguments(written, key, is_string):
    whole = {"city": "Paris", "days": 2}
    text = written.format(key=key, is_string=is_string, value='{"city": "Paris", "days": 2}')
    assert found(text, [("get_weather", whole)]) == [("get_weather", whole)]
    # The tool has a parameter of that name, or none of those in it: it is what it seems to be.
    for properties in ({key: {"a": 1}}, {"town": "x"}):
        ((_, arguments),) = found(text, [("get_weather", properties)])
        assert list(arguments) == [key]


def test_who_names_the_format_gets_json_calls_of_other_tools_where_they_are_all():
    text = '[{"name": "now", "parameters": {}}, {"name": "then", "parameters": {"a": 1}}]'
    assert parse_tool_calls(text, ["other"]) == []
    assert [row["name"] for row in parse_tool_calls(f" {text}\n", ["other"], "json")] == [
        "now",
        "then",
    ]
    assert parse_tool_calls(f"As in {text}", ["other"], "json") == []
    assert parse_tool_calls(f"{text} is an example", ["other"], "json") == []


@pytest.mark.parametrize("noise", ["{bad} ", "set {x} ", 'a stray " and { ', "[f(x)] ", "[f( "])
def test_p6_every_candidate_in_the_text_is_tried(noise):
    for written in ('{"name": "f", "arguments": {"a": 1}}', "[f(a=1)]"):
        (row,) = parse_tool_calls(noise + written, ["f"])
        assert (row["name"], row["arguments"], row["status"]) == ("f", {"a": 1}, "ok")


def test_every_row_of_the_table_is_written_by_somebody():
    assert {row.name for row in FORMATS} == {writer.format for writer in WRITERS}


def test_no_mark_hides_another():
    """Marks that begin alike are looked for at once, from left to right: one that overlaps another
    would not be found. Only the bracket, which is no mark of its own, begins others."""
    marks = KNOWN_MARKS - {"["}
    for one in marks:
        for other in marks - {one}:
            if one[0] == other[0]:
                assert one not in other
                assert not any(other.startswith(one[at:]) for at in range(1, len(one)))


@pytest.mark.parametrize(
    ("name", "formats"),
    [
        ("hermes", {"hermes"}), ("Qwen2.5", {"hermes"}), ("qwen3-coder", {"qwen3_coder"}),
        ("llama3_json", {"llama", "bare"}), ("llama4_pythonic", {"pythonic"}),
        ("DeepSeek-V3.1", {"deepseek_v3"}), ("glm4_moe", {"glm45"}), ("gpt-oss", {"harmony"}),
        ("granite-20b-fc", {"granite", "hermes", "bare"}), ("phi4_mini_json", {"functools"}),
        ("cohere", {"command_r", "fenced"}), ("kimi_k2", {"kimi_k2"}), ("mistral", {"mistral"}),
    ],
)  # fmt: skip
def test_families_know_their_formats_by_other_names(name, formats):
    for writer in WRITERS:
        written = writer.write(SCENES["one"])
        read_as = {row["format"] for row in parse_tool_calls(written, format=name)}
        assert read_as <= formats
        if writer.format in formats and len(formats) == 1:
            assert read_as == formats


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(UsageError, match=r"'klingon'; known: auto, .*qwen3_coder.*harmony"):
        parse_tool_calls("x", format="klingon")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<tool: function>\nbash ls -la | wc\n</tool>", ("bash", {"command": "ls -la | wc"})),
        ("<tool: run>\nprint(1)\n</tool>", ("run", {"code": "print(1)"})),
        ('commentary to=functions.bash json{"command": "ls"}', ("bash", {"command": "ls"})),
        ('assistantcommentary to=functions.bash {"command": "ls"}', ("bash", {"command": "ls"})),
        ('-> tool/bash\n{"command": "ls"}', ("bash", {"command": "ls"})),
        ("<call>bash{command:<|\"|>ls<|\"|>}", ("bash", {"command": "ls"})),
        ("<start_function_call>call:bash{command:ls -la}<end_function_call>", ("bash", {"command": "ls -la"})),
        ('```tool_call\nbash(command="ls")\n```', ("bash", {"command": "ls"})),
        ('Call: bash(command="ls")<bot_end>', ("bash", {"command": "ls"})),
        ('<|think|>Hm.<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>7<|tool_call:name|>bash'
         '<|tool_call:args|>{"command": "ls"}<|tool_call:end|><|calls|>', ("bash", {"command": "ls"})),
        ("<ifm|think_fast>Hm.</ifm|think_fast><ifm|tool_call>bash</ifm|tool_call>", ("bash", {})),
        ('<thought>Hm.</thought><tool_call>bash<arg_key>n</arg_key>\\n<arg_value>2</arg_value>\\n</tool_call>', ("bash", {"n": 2})),
        ('<｜DSML｜invoke name="bash"><｜DSML｜parameter name="n" string="true">2</｜DSML｜parameter></｜DSML｜invoke>', ("bash", {"n": 2})),
    ],
)  # fmt: skip
def test_f83_what_other_parsers_read_is_read(text, expected):
    tools = [
        {"name": "bash", "parameters": {"type": "object", "properties": {
            "command": {"type": "string"}, "n": {"type": "integer"}}}},
        {"name": "run", "parameters": {"type": "object", "properties": {"code": {"type": "string"}}}},
    ]  # fmt: skip
    (row,) = parse_tool_calls(text, tools)
    assert (row["name"], row["arguments"], row["status"]) == (*expected, "ok")
    turn = read_turn(text, offered={"bash", "run"})
    assert turn.text == ""


def test_a_word_in_tags_is_thinking_only_where_it_is_closed():
    assert read_turn("<thought>Hm.</thought>Yes.", offered=()).text == "Yes."
    assert read_turn("The <thought> tag is new.", offered=()).text == "The <thought> tag is new."
