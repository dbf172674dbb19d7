"""Calls and literals in Python's writing, without running them."""

import ast

import pytest

from callmark.calls.ledger import parse_tool_calls
from callmark.calls.scan import NotPython, calls_at, literal


@pytest.mark.parametrize(
    "text",
    ["1", "-1", "+2", "1.5", ".5", "2.", "1e3", "-1.5E-3", "True", "False", "None", "''", '"a"',
     "'it\\'s'", '"\\"q\\""', "'\\n\\t\\\\'", "'\\x41\\u00e9\\U0001F600\\101'", "'''a\n'b' ''c'''",
     '"""a\n"b" """', "[]", "[1, 'a', None,]", "(1,)", "()", "{}", "{'a': {'b': [1]}, 'c': (2, 3)}",
     "{ 'a' : 1 , }", "'\\\n'"],
)  # fmt: skip
def test_literals_are_what_python_says(text):
    value = ast.literal_eval(text)
    found = literal(f" {text} ")
    assert found == (list(value) if isinstance(value, tuple) else plain(value))
    assert type(found) is type(plain(value))


def plain(value):
    if isinstance(value, tuple | list):
        return [plain(entry) for entry in value]
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    return value


def test_the_spellings_of_json_are_known_too():
    assert literal("[true, false, null]") == [True, False, None]


def test_escapes_that_python_does_not_know_stay():
    """Also without a warning, as Python itself would give one."""
    assert literal(r"'\d+ \C \.'") == r"\d+ \C \."
    assert literal(r"'\U00110000 \u12 \xZ'") == r"\U00110000 \u12 \xZ"
    assert literal(r"'\ud83c\udf89 \ud800'") == "🎉 \ufffd"


@pytest.mark.parametrize(
    "text",
    ["", "x", "f(1)", "1 2", "[1", "[1 2]", "{'a'}", "{'a': }", "{1: 2}", "{'a': 1", "'a", "'a\nb'",
     "1__0", "0x10", "1a", "1e999", "9" * 5_000, "r'a'", "b'a'", "f'a'", "Truex", "[" * 500, "-", "lambda: 1",
     "{**a}", "1+1", "'a' 'b'"],
)  # fmt: skip
def test_everything_else_is_refused(text):
    with pytest.raises(NotPython):
        literal(text)


def test_calls():
    text = "[f(a=1, b='x,)]'), web.search(), ]"
    (first, second), end = calls_at(f"{text} tail", 0)
    assert (first.name, first.arguments) == ("f", {"a": 1, "b": "x,)]"})
    assert (second.name, second.arguments) == ("web.search", {})
    assert end == len(text)
    calls, end = calls_at("f(a=1)\ng(), h() done", 0)
    assert [call.name for call in calls] == ["f", "g", "h"]
    assert end == len("f(a=1)\ng(), h()")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[f(1)]", "an argument has no name"),
        ("[f(a=1, a=2)]", "given twice"),
        ("[f(a==1)]", "an argument has no name"),
        ("[f(**{'a': 1})]", "an argument has no name"),
        ("[f(a=b)]", "no literal"),
        ("[f(a=1) g()]", "not closed"),
        ("[f(a=1]", "a comma or ) is missing"),
        ("[f(a='x)]", "a string is not closed"),
        ("[f]", "looks like name(key=value)"),
        ("f", "looks like name(key=value)"),
    ],
)
def test_a_reason_is_given(text, reason):
    with pytest.raises(NotPython) as error:
        calls_at(text, 0)
    assert reason in str(error.value)


def test_only_offered_names_of_an_unmarked_list_are_calls():
    text = "Now [f(a=1), other(b=2)] done"
    assert [row["name"] for row in parse_tool_calls(text, ["f"])] == ["f"]
    assert [row["name"] for row in parse_tool_calls(text)] == ["f", "other"]
    assert parse_tool_calls(text, ["g"]) == []
