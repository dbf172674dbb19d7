"""On which line a value of a JSON text stands."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark.records.jsontext import (
    NotJson,
    line_of,
    lines_of_entries,
    members,
    parse_json,
    repeated_name,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def paths_in(value, above=()):
    yield above, value
    entries = enumerate(value) if isinstance(value, list) else ()
    for key, inner in value.items() if isinstance(value, dict) else entries:
        yield from paths_in(inner, (*above, key))


@given(VALUES, st.sampled_from([None, 0, 2]), st.booleans())
def test_every_value_is_met_once_and_in_order(value, indent, escaped):
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    assert [path for path, _ in members(text)] == [path for path, _ in paths_in(value)]


@given(st.lists(VALUES, max_size=5), st.data())
def test_the_line_of_a_value_is_that_of_a_mark_put_in_its_place(value, data):
    path = data.draw(st.sampled_from([path for path, _ in paths_in(value)]))
    marked = json.loads(json.dumps(value))
    holder = [marked]
    for part in (0, *path[:-1]) if path else ():
        holder = holder[part]
    holder[path[-1] if path else 0] = mark = "the mark that no text holds"
    lines = json.dumps(marked if path else mark, indent=1).split("\n")
    expected = next(number for number, line in enumerate(lines, 1) if mark in line)
    assert line_of(json.dumps(value, indent=1), path) == expected


@given(st.lists(VALUES, max_size=5), st.sampled_from([None, 1]))
def test_entries_of_a_list(value, indent):
    text = "\n " + json.dumps(value, indent=indent)
    assert list(lines_of_entries(text)) == [n for path, n in members(text) if len(path) == 1]


def test_what_is_not_there_is_placed_where_it_should_be():
    text = '{\n "tools":\n [1,\n  2]\n}'
    assert line_of(text, ("tools", 1)) == 4
    assert line_of(text, ("tools", 7, "name")) == 3
    assert line_of(text, ("other",)) == 1
    assert line_of("\n\n7", ()) == 3


def test_of_two_values_under_one_name_the_last_counts():
    text = '{"a": [1],\n "b": 2,\n "a": [3,\n 4]}'
    assert line_of(text, ("a", 1)) == 4
    assert line_of(text, ("a",)) == 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1,\n"a": 2}', (("a",), 2, 1)),
        ('[{"a": {"b": 1,\n"c": 2,\n"b": ' + "7" * 5000 + "}}]", ((0, "a", "b"), 3, 1)),
        (r'{"a": 1, "\u0061": 2}', (("a",), 1, 1)),
        ('[{"a": 1}, {"a": 1}, "a", "a"]', None),
    ],
)
def test_a_name_that_stands_there_twice(text, found):
    assert repeated_name(text) == found


@pytest.mark.parametrize(
    ("data", "line", "what"),
    [
        ("[1,\n2", 2, "not JSON: Expecting ',' delimiter (column 2)"),
        (b'["a",\n"\xff"]', 2, "not UTF-8 (byte 7)"),
        ('["NaN",\n\nNaN]', 3, "not JSON: NaN is not a JSON number"),
        ("[1,\n1E400]", 2, "not JSON: the number 1E400 is out of range"),
        ("[1,\n" + "7" * 5000 + "]", 2, "has 5000 digits, too many to read"),
        ("[\n" * 150 + "]" * 150, 101, "nested deeper than 100 levels"),
        ("[\n" * 50_000, 101, "nested deeper than 100 levels"),
    ],
)
def test_what_is_no_json_has_a_line(data, line, what):
    with pytest.raises(NotJson) as caught:
        parse_json(data)
    assert caught.value.line == line
    assert what in str(caught.value)
