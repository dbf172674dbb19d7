"""`fixtures suggest`: misses become lines to paste, and no placeholder is ever served."""

import json

import pytest

from callmark.broker.nearest import suggest
from callmark.errors import BadInput
from callmark.records.trace import TraceEntry


def attempt(name, arguments, status="miss", **more):
    return TraceEntry(
        name=name,
        arguments=arguments,
        result=None,
        turn=1,
        raw=None,
        status=status,
        served_by=None,
        **more,
    )


def test_a136_a_miss_becomes_a_line_to_paste(broker_of, rope):
    broker = broker_of(rope)
    miss = attempt("web_search", {"q": " Rope PRECISON"})
    (line,) = suggest([("s1", miss)], broker)
    entry = json.loads(line)
    assert entry == {
        "name": "web.search",
        "key": {"q": "rope precison", "top_k": 3},
        "result": {"_fill_in": "put the tool's answer here"},
        "_asked_by": ["s1"],
        "_nearest": 'web.search {"q":"rope precision","top_k":3}',
    }
    with pytest.raises(BadInput, match=r"all\.jsonl:2: result: is still a placeholder"):
        broker_of(rope, line)
    filled = broker_of(rope, {**entry, "result": "filled in"})
    assert filled.call("web.search", miss.arguments) == "filled in"


def test_each_call_is_suggested_once_in_a_fixed_order(broker_of, rope):
    misses = [
        ("s3", attempt("web.search", {"q": "b"})),
        ("s1", attempt("web_search", {"q": " B ", "top_k": 3.0})),
        ("s1", attempt("web.search", {"q": "b", "none": None})),
        ("s2", attempt("web.search", {"q": "a"})),
        ("s2", attempt("read_file", {"path": "x"})),
    ]
    broker = broker_of(rope)
    lines = suggest(misses, broker)
    assert lines == suggest(reversed(misses), broker)
    entries = [json.loads(line) for line in lines]
    assert [(entry["name"], entry["key"].get("q")) for entry in entries] == [
        ("read_file", None), ("web.search", "a"), ("web.search", "b"),
    ]  # fmt: skip
    assert entries[2]["_asked_by"] == ["s1", "s3"]


def test_only_misses_are_suggested_and_only_those_that_still_miss(broker_of, rope):
    entries = [
        ("s", attempt("web.search", {"q": "x"}, "ok")),
        ("s", attempt("web.search", {"q": "x"}, "tool_not_offered")),
        ("s", attempt(None, None, "malformed")),
        ("s", attempt("web.search", {"q": "rope precision"})),
    ]
    assert suggest(entries, broker_of(rope)) == []


def test_without_a_broker_the_recorded_key_is_used():
    miss = attempt("t", {"q": " X "}, key_normalized={"q": "x"})
    old = attempt("t", {"q": "y"})
    keys = [json.loads(line)["key"] for line in suggest([("s", miss), ("s", old), ("s2", miss)])]
    assert keys == [{"q": "x"}, {"q": "y"}]


def test_a_line_is_one_printable_line_of_json():
    hostile = "\x1b[2J\u202e\n\u2028\U000e0001 é"
    (line,) = suggest([(hostile, attempt(hostile, {hostile: hostile}))])
    assert line.isprintable()
    assert json.loads(line)["key"] == {hostile: hostile}
