"""Calls in formats that nobody knows are attempts; texts about tools are none."""

import pytest
from tests.call_lookalikes import MADE_UP, TOOLS, about_tools, prose

from callmark import parse_tool_calls
from callmark.calls.attempts import entry_for
from callmark.calls.ledger import read_turn

NAMES = [tool["name"] for tool in TOOLS]
EITHER = pytest.mark.parametrize("tools", [TOOLS, NAMES], ids=["specs", "names"])


@EITHER
@pytest.mark.parametrize("written", MADE_UP)
def test_f83_a_call_in_a_format_that_nobody_knows_is_an_attempt(written, tools):
    for text in (
        written,
        f"Let me look.\n{written}\nOne moment please, I am working.",
        f"Sure, I can look that up. {written}\nOne moment please, I am working.",
    ):
        (row,) = parse_tool_calls(text, tools)
        assert (row["status"], row["format"], row["arguments"]) == ("unparsed", "unparsed", None)
        assert "Paris" in row["raw"]
        assert "no known format" in row["reason"]


def test_a_sentence_before_it_stays():
    turn = read_turn(f"Sure, I can look that up. {MADE_UP[0]}", offered=NAMES)
    assert turn.text == "Sure, I can look that up."


def test_there_are_as_many_as_promised():
    assert len(MADE_UP) >= 30
    assert len(set(MADE_UP)) == len(MADE_UP)
    assert len(about_tools()) >= 200


@EITHER
def test_a_text_about_tools_calls_none(tools):
    assert [text for text in about_tools() if parse_tool_calls(text, tools)] == []


@pytest.mark.parametrize("tools", [TOOLS, NAMES, None], ids=["specs", "names", "unknown"])
def test_ordinary_prose_with_code_calls_nothing(tools):
    wrong = [text for text in prose(5_000) if parse_tool_calls(text, tools)]
    assert len(wrong) <= 50, wrong[:5]


def test_what_is_said_around_it_stays():
    turn = read_turn(f"Let me look.\n{MADE_UP[0]}\nOne moment please, I am on it.", offered=NAMES)
    assert turn.text.split("\n") == ["Let me look.", "", "One moment please, I am on it."]
    (attempt,) = turn.attempts
    assert attempt.name == "get_weather"
    entry = entry_for(attempt, 1)
    assert (entry.status, entry.format) == ("malformed", "unparsed")  # invalid, and an attempt


def test_each_of_several_is_an_attempt():
    text = 'CALL get_weather WITH {"city": "Paris"};\nCALL web.search WITH {"query": "rope"};'
    rows = parse_tool_calls(text, TOOLS)
    assert [(row["name"], row["status"]) for row in rows] == [
        ("get_weather", "unparsed"),
        ("web.search", "unparsed"),
    ]


def test_a_mark_for_calling_counts_where_no_tool_is_known():
    (row,) = parse_tool_calls('<|begin_tool_use|>frobnicate{"a": 1}<|end_tool_use|>')
    assert (row["status"], row["name"]) == ("unparsed", None)


@pytest.mark.parametrize(
    "text",
    [
        "<tool_response>{\"city\": \"Paris\"}</tool_response>",
        "<|content_tool_error|>boom<|end_message|>",
        "Click <ActionButton label=\"x\">here</ActionButton>.",
        "See [get_weather(city=1)](https://example.com/docs).",
        "`<call>get_weather(city=\"Paris\")</call>` is how some write it.",
    ],
)  # fmt: skip
def test_what_a_tool_said_or_a_page_shows_is_no_call(text):
    assert parse_tool_calls(text, TOOLS) == []


def test_one_that_is_read_is_not_counted_again():
    text = '<minimax:tool_call><invoke name="get_weather"><parameter name="city">Paris</parameter></invoke></minimax:tool_call>'
    assert [row["status"] for row in parse_tool_calls(text, TOOLS)] == ["ok"]


def test_who_asks_for_one_format_gets_what_that_one_reads():
    assert parse_tool_calls(MADE_UP[0], TOOLS, format="hermes") == []
    assert read_turn(MADE_UP[0], offered=NAMES, formats=()).attempts == ()


@pytest.mark.parametrize("written", MADE_UP)
def test_no_prefix_of_it_breaks_anything(written):
    for length in range(len(written)):
        assert len(parse_tool_calls(written[:length], TOOLS)) <= 1


@pytest.mark.parametrize(
    "text",
    [
        "Some wrap calls in <tool_call> tags; Llama 3.1 writes JSON; Mistral has a [TOOL_CALLS] token.",
        "v1.3\n* parser: handle <function=...> with no parameters\n* docs: describe it",
        "```python\npattern = re.compile(r'<tool_call>(.*?)</tool_call>', re.S)\n```",
        '```json\n{"event": "get_weather", "data": {"city": "Paris"}}\n```\nis what the hook gets.',
        "Usage: search <text> [--limit <n>]\n       get_weather <city> [<days>]",
        "Possible actions: [search] [get_weather] [book_flight]. Choose one.",
    ],
)
@EITHER
def test_marks_and_names_that_are_shown_are_not_used(text, tools):
    assert parse_tool_calls(text, tools) == []


@pytest.mark.parametrize(
    "text",
    [
        "Let me use <tool_call> search for a rope",
        "I will check. <tool_call> the weather in Paris",
        'Now the <tool_call> tags: {"name": "get_weather"',
        '```python\n<tool_call>{"name": "get_weather", "arguments": {"city": "Par\n```',
        "so it is <tool_call> the weather in Paris </tool_call>",
    ],
)
@EITHER
def test_a_mark_that_is_used_in_a_sentence_is_an_attempt(text, tools):
    assert len(parse_tool_calls(text, tools)) == 1


def test_a_key_that_reports_elsewhere_may_be_an_argument():
    keys = {"status": {"type": "string"}, "order": {"type": "string"}}
    tool = {"name": "set_order", "parameters": {"type": "object", "properties": keys}}
    text = '{"tool": "set_order", "input": {"order": "W1", "status": "sent"}}'
    assert [row["status"] for row in parse_tool_calls(text, [tool])] == ["unparsed"]
