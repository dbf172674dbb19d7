"""The table of formats in the documentation is the table of the code."""

import re
from pathlib import Path

import pytest

from callmark.calls.formats import FORMATS
from callmark.calls.ledger import parse_tool_calls

DOCUMENT = Path(__file__).parents[3] / "docs" / "call-formats.md"
ROW = re.compile(r"^\| `(\w+)` \| (.+) \| (?:`{4} (.+) `{4}|`([^`]+)`) \|$", re.M)
ROWS = [
    (name, marks, (fenced or example).replace("\\|", "|").replace("⏎", "\n"))
    for name, marks, fenced, example in ROW.findall(DOCUMENT.read_text("utf-8"))
]


def test_every_format_is_documented_once():
    assert [name for name, _, _ in ROWS] == list(dict.fromkeys(name for name, _, _ in ROWS))
    assert {name for name, _, _ in ROWS} == {row.name for row in FORMATS}


@pytest.mark.parametrize(("name", "marks", "example"), ROWS, ids=[name for name, _, _ in ROWS])
def test_its_example_is_a_call(name, marks, example):
    for format_name in ("auto", name):
        (row,) = parse_tool_calls(example, ["f"], format_name)
        assert (row["name"], row["arguments"]) == ("f", {"a": 1})
        assert (row["format"], row["status"]) == (name, "ok")
