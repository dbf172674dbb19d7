"""Whatever the arguments hold, what a format writes is read back; and no text breaks a reader."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.call_writers import JSON_WRITERS, TEXT_WRITERS, tools_for

from callmark.calls.attempts import ToolCall
from callmark.calls.ledger import KNOWN_MARKS, parse_tool_calls, read_turn

UNHURRIED = settings(deadline=None)  # a busy machine is no failure
CLOSINGS = (
    "</tool_call>", "</function>", "</parameter>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
    "<tool_sep>", "<parameter=a>", "<|message|>", "<|call|>", "<|end|>", "<|return|>", "<|start|>assistant",
    " to=functions.f ", "analysis", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>",
    "<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|python_end|>", "<|END_ACTION|>", "[ARGS]", "</invoke>",
    '<parameter name="a">', '<tool_call|>', '<|"|>', "call:f{", "f(", "f(a=", "a=", "'", '"', "(", ")", "[", "]", "{",
    "}", "\\", ",", ":", ";", "\n", " ", "1", "x", "f", '"f"', '"arguments"', ">", "é", "<|im_end|>", "</s>", "Action: ",
)  # fmt: skip
MARKS = sorted(KNOWN_MARKS) + list(CLOSINGS)
MARKED_TEXT = st.lists(st.sampled_from(MARKS), max_size=5).map("".join)
NAMES = st.sampled_from(["web.search", "f", "g-h"])
KEYS = st.sampled_from(["a", "b_c", "longer_key", "d1"])
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)


def values(strings: st.SearchStrategy) -> st.SearchStrategy:
    return st.recursive(
        SCALARS | strings,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=6,
    )


def calls(strings: st.SearchStrategy) -> st.SearchStrategy:
    arguments = st.dictionaries(KEYS, values(strings), max_size=3)
    return st.lists(st.tuples(NAMES, arguments), min_size=1, max_size=3)


@UNHURRIED
@given(calls(st.text(max_size=20) | MARKED_TEXT), st.sampled_from(JSON_WRITERS))
def test_quoted_marks_never_matter(written, writer):
    """Strings in JSON or Python may hold any mark, of this format and of all others."""
    text = f"Well.\n{writer.write(written)}"
    turn = read_turn(text, offered=["web.search", "f", "g.h"])
    assert [(call.name, call.arguments) for call in turn.attempts] == written
    assert turn.text == "Well."


TAGLESS = st.text(st.characters(exclude_characters="<", exclude_categories=("Cs",)), max_size=20)


@UNHURRIED
@given(
    st.tuples(NAMES, st.dictionaries(KEYS, values(TAGLESS), max_size=3)),
    st.sampled_from(TEXT_WRITERS),
)
def test_texts_get_their_types_back_from_the_schema(call, writer):
    rows = parse_tool_calls(f"Well.\n{writer.write([call])}", tools_for([call]))
    assert [(row["name"], row["arguments"], row["status"]) for row in rows] == [(*call, "ok")]
    for key, value in call[1].items():
        assert type(rows[0]["arguments"][key]) is type(value)


@UNHURRIED
@given(st.lists(st.sampled_from(MARKS), max_size=30).map("".join), st.sampled_from([None, {"f"}]))
def test_no_text_breaks_a_reader(text, offered):
    turn = read_turn(text, offered=offered)
    assert turn == read_turn(text, offered=offered)
    assert turn.text == turn.text.strip()
    for attempt in turn.attempts:
        assert attempt.format
        if not isinstance(attempt, ToolCall):
            assert attempt.reason


@UNHURRIED
@given(st.lists(st.sampled_from(MARKS), max_size=30).map("".join))
def test_a_named_format_finds_only_its_own_calls(text):
    for name in ("hermes", "qwen3_coder", "pythonic", "harmony", "mistral"):
        assert {row["format"] for row in parse_tool_calls(text, format=name)} <= {name}
